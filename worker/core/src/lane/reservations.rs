//! Ends reservations whose outcome nobody reported in time.

use super::limits::write_books;
use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer};
use crate::clock::DAY_MS;
use crate::gate::limits::{OUTCOME_MARGIN_MS, agent_of_requests};
use crate::json;
use crate::limit::Book;
use crate::limit::book::{self, Writes};
use crate::limit::reservation::{Ending, Reservation};
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
            self.settle(storage, writes, now_ms)?;
            self.tally(Series::Reservation(ReservationEvent::Expired), 1);
        }
        let before = integer((self.steady_ms() / DAY_MS).saturating_sub(BOOK_DAYS))?;
        storage.exec(sql::FORGET_BOOKS, &[before, Value::Integer(MAX_FORGOTTEN_BOOKS)]).map(drop)
    }

    /// Writes changes for which there is no row.
    pub(super) fn settle(
        &mut self,
        storage: &impl LaneSql,
        writes: Writes,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        if self.limits.are_journalled(&writes.books) {
            // Otherwise, a start would take the older book in the row.
            self.take_checkpoint(storage, now_ms)?;
        }
        write_books(storage, book::as_json(&writes.books), writes.settles.clone(), now_ms)?;
        self.limits.take(writes);
        Ok(())
    }

    /// The books of these names, and the buckets of agents' requests; empty texts where nothing was used.
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
        self.limits.make_space();
        let read = |name: &String| {
            let book = match agent_of_requests(name) {
                Some(agent) => self.book_of_requests(storage, agent, now_ms)?,
                None => self.limits.read(storage, name)?,
            };
            // Plain data always serializes.
            let text = || json::to_string(&book);
            Ok(if book == Book::default() { String::new() } else { text() })
        };
        names.iter().map(read).collect()
    }

    fn book_of_requests(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        now_ms: u64,
    ) -> Result<Book, StorageError> {
        self.load_agent(storage, agent, now_ms)?;
        let bucket = self.agents.get(agent).and_then(|agent| agent.state.bucket);
        Ok(bucket.map(Book::of_requests).unwrap_or_default())
    }

    /// When the next reservation ends; `None` if there is none.
    #[must_use]
    pub fn next_reservation_end(&self) -> Option<u64> {
        self.limits.reservations.values().map(|reservation| reservation.ends_at_ms).min()
    }
}
