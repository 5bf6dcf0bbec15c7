//! Ends reservations whose outcome nobody reported in time.

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, first_text, integer};
use crate::clock::DAY_MS;
use crate::gate::limits::{OUTCOME_MARGIN_MS, agent_of_requests};
use crate::limit::reservation::{Ending, Reservation};
use crate::limit::{Book, book};
use crate::metrics::{ReservationEvent, Series};
use crate::registry::upstream::MAX_TIMEOUT_MS;
use crate::sql::lane as sql;

/// Reservations that one alarm ends. Each is a statement.
const MAX_ENDED: usize = 500;

/// Longer than a reservation lasts whose call's outcome is reported: a day.
const MAX_REPORT_MS: u64 = DAY_MS + DAY_MS / 24;

/// Unused books that one flush deletes.
const MAX_FORGOTTEN_BOOKS: i64 = 500;

/// Days for which an unused book is kept: two of the longest windows, so that every window in it is over.
const BOOK_DAYS: u64 = 62;

impl Lane {
    /// Ends reservations whose outcome did not arrive in time, a bounded number of them, and forgets books that
    /// nobody used for long.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn end_reservations(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        // If the end is later than such a reservation can last, the clock was ahead when it was made.
        let is_over = |it: &&Reservation| {
            let most_ms = match it.forwarded {
                // Twice the margin: small steps of the clock end no call that still runs.
                true => u64::from(MAX_TIMEOUT_MS) + 2 * OUTCOME_MARGIN_MS,
                false => MAX_REPORT_MS,
            };
            !(now_ms + 1..now_ms + most_ms).contains(&it.ends_at_ms)
        };
        let over = self.limits.reservations.values().filter(is_over).take(MAX_ENDED);
        for reservation in over.cloned().collect::<Vec<_>>() {
            let ending = match reservation.forwarded {
                true => Ending::Unclear,
                // The caller reported nothing, so all of it stays used.
                false => Ending::Succeeded(None),
            };
            let writes = self.limits.writes_to_settle(storage, &reservation, ending)?;
            let books = Value::Text(book::as_json(&writes.books));
            let id = Value::Text(reservation.decision_id.clone());
            storage.exec(sql::SETTLE, &[integer(now_ms / DAY_MS)?, books, id])?;
            self.limits.take(writes);
            self.tally(Series::Reservation(ReservationEvent::Expired), 1);
        }
        let before = integer((self.steady_ms() / DAY_MS).saturating_sub(BOOK_DAYS))?;
        storage.exec(sql::FORGET_BOOKS, &[before, Value::Integer(MAX_FORGOTTEN_BOOKS)]).map(drop)
    }

    /// The books of these names as they are stored, and the buckets of agents' requests as they are now; empty texts
    /// where nothing was used.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn books(
        &mut self,
        storage: &impl LaneSql,
        names: &[String],
        now_ms: u64,
    ) -> Result<Vec<String>, StorageError> {
        let read = |name: &String| {
            if let Some(agent) = agent_of_requests(name) {
                return self.book_of_requests(storage, agent, now_ms);
            }
            let rows = storage.exec(sql::BOOK, &[Value::Text(name.clone())])?;
            Ok(first_text(&rows).unwrap_or_default().to_owned())
        };
        names.iter().map(read).collect()
    }

    fn book_of_requests(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        now_ms: u64,
    ) -> Result<String, StorageError> {
        self.load_agent(storage, agent, now_ms)?;
        let bucket = self.agents.get(agent).and_then(|agent| agent.state.bucket);
        // Plain data always serializes.
        let text = |bucket| serde_json::to_string(&Book::of_requests(bucket)).unwrap_or_default();
        Ok(bucket.map(text).unwrap_or_default())
    }

    /// When the next reservation ends; `None` if there is none.
    #[must_use]
    pub fn next_reservation_end(&self) -> Option<u64> {
        self.limits.reservations.values().map(|reservation| reservation.ends_at_ms).min()
    }
}
