//! Messages for the tenant's webhook: one for each step of an approval. A message stays until the
//! receiver has taken it or the lane gives up.
//!
//! INVARIANT (delivered at least once): the statement that writes a step also writes its message,
//! so neither exists without the other. A message is deleted only when the receiver has taken it,
//! by the statement that writes its dead letter, or when the tenant has no webhook.
//!
//! Only D1 knows whether the tenant has a webhook, and the decision path does not ask.

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer, parse_approval, unreadable, unsigned};
use crate::approval::webhook::Message;
use crate::approval::{Approval, ApprovalEvent};
use crate::gate::config::Config;
use crate::gate::{DeadLetter, dead_letter};
use crate::sql::lane as sql;

/// Messages that one alarm sends at the same time. An invocation has six connections on Cloudflare,
/// and the flush that runs meanwhile needs some of them.
pub const MAX_DELIVERIES: i64 = 4;

/// Attempts after which the lane gives up. With the pauses between them they span 31 hours, so a
/// receiver that is down for a day still gets the message.
pub const MAX_ATTEMPTS: u32 = 12;
/// The pause after the first failed attempt. Each pause is [`PAUSE_FACTOR`] times the one before.
const FIRST_PAUSE_MS: u64 = 5_000;
const PAUSE_FACTOR: u64 = 4;
/// The longest pause: 6 hours, so that a receiver gets its messages within a working day after it
/// is back.
pub(super) const MAX_PAUSE_MS: u64 = 6 * 60 * 60 * 1_000;

/// Messages that wait for a receiver that does not take them. With more, the lane gives up the
/// oldest. At about 2 KB each they take 20 MB.
pub const MAX_OUTBOX_ROWS: u64 = 10_000;

/// Dead letters that one alarm writes. Each is a row of the journal.
const MAX_DEAD_LETTERS: i64 = 500;

/// A message that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The sequence number of its step.
    pub seq: u64,
    /// Failed attempts.
    pub attempts: u32,
    pub message: Message,
}

/// A message as it is stored.
struct Stored {
    delivery: Delivery,
    event: ApprovalEvent,
    approval: Approval,
    last_status: u16,
}

/// The pause after this many failed attempts.
const fn pause_ms(attempts: u32) -> u64 {
    let pause_ms =
        FIRST_PAUSE_MS.saturating_mul(PAUSE_FACTOR.saturating_pow(attempts.saturating_sub(1)));
    if pause_ms < MAX_PAUSE_MS { pause_ms } else { MAX_PAUSE_MS }
}

impl Lane {
    /// The messages that are due, those that waited longest first; at most [`MAX_DELIVERIES`].
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn due_deliveries(
        &self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<Vec<Delivery>, StorageError> {
        let values = [integer(now_ms)?, Value::Integer(MAX_DELIVERIES)];
        let rows = self.messages(storage, sql::DUE_DELIVERIES, &values)?;
        Ok(rows.into_iter().map(|stored| stored.delivery).collect())
    }

    /// Deletes a message that the receiver has taken.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: then the message is sent again.
    pub fn delivered(storage: &impl LaneSql, delivery: &Delivery) -> Result<(), StorageError> {
        storage.exec(sql::DROP_MESSAGE, &[integer(delivery.seq)?]).map(drop)
    }

    /// Records a failed attempt and the receiver's status, 0 if it did not answer. The message is due again after a pause,
    /// or the lane gives up.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn delivery_failed(
        storage: &impl LaneSql,
        delivery: &Delivery,
        status: u16,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let attempts = delivery.attempts + 1;
        let due = match attempts < MAX_ATTEMPTS {
            true => integer(now_ms.saturating_add(pause_ms(attempts)))?,
            false => Value::Null,
        };
        let values = [integer(delivery.seq)?, Value::Integer(attempts.into()), due];
        storage.exec(sql::DELIVERY_FAILED, &values)?;
        let status = [integer(delivery.seq)?, Value::Integer(status.into())];
        storage.exec(sql::KEEP_FAILURE, &status).map(drop)
    }

    /// Deletes the messages of the steps up to `seq`, because the tenant has no webhook.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn forget_deliveries(storage: &impl LaneSql, seq: u64) -> Result<(), StorageError> {
        storage.exec(sql::FORGET_DELIVERIES, &[integer(seq)?]).map(drop)
    }

    /// Writes rows for messages that the lane gave up, or that exceed the outbox, a bounded number of them. If the journal
    /// is full, they wait for the next alarm.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: what has no row is still in the outbox.
    pub fn write_dead_letters(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let Some((tenant, lane)) = self.identity.clone() else { return Ok(()) };
        let values = [integer(MAX_OUTBOX_ROWS)?, Value::Integer(MAX_DEAD_LETTERS)];
        for stored in self.messages(storage, sql::DEAD_LETTERS, &values)? {
            let Stored { delivery, event, approval, last_status } = &stored;
            let state = self.state_of(storage, &approval.agent, now_ms)?;
            let letter = DeadLetter {
                seq: delivery.seq,
                event: *event,
                approval,
                message: &delivery.message,
                attempts: delivery.attempts,
                last_status: *last_status,
            };
            let facts = self.event_facts(config, &state, now_ms);
            let Some((entry, state)) = dead_letter(&facts, (&tenant, lane), &letter) else {
                return Ok(());
            };
            self.journal(storage, entry, None, state, now_ms)?;
        }
        Ok(())
    }

    /// When the next message is due, or was due; `None` if no message waits.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn next_delivery(storage: &impl LaneSql) -> Result<Option<u64>, StorageError> {
        let rows = storage.exec(sql::NEXT_DELIVERY, &[])?;
        match rows.first().map(Vec::as_slice) {
            None => Ok(None),
            Some([Value::Integer(at_ms)]) => unsigned(*at_ms).map(Some),
            // The lane gave it up, and it has no row yet.
            Some([Value::Null]) => Ok(Some(0)),
            Some(_) => Err(unreadable("when a webhook's message is due")),
        }
    }

    fn messages(
        &self,
        storage: &impl LaneSql,
        statement: &str,
        values: &[Value],
    ) -> Result<Vec<Stored>, StorageError> {
        let Some((tenant, lane)) = &self.identity else { return Ok(Vec::new()) };
        let rows = storage.exec(statement, values)?.into_iter().map(|row| {
            let [seq, at_ms, Value::Text(event), Value::Text(record), attempts, status] =
                row.as_slice()
            else {
                return Err(unreadable("a webhook's message"));
            };
            let number = |value: &Value| match value {
                Value::Integer(number) => unsigned(*number),
                _ => Err(unreadable("a webhook's message")),
            };
            let (seq, at_ms, approval) = (number(seq)?, number(at_ms)?, parse_approval(record)?);
            let event =
                ApprovalEvent::parse(event).ok_or_else(|| unreadable("a webhook's message"))?;
            let attempts = u32::try_from(number(attempts)?).unwrap_or(u32::MAX);
            let message = Message::of((tenant, *lane), (seq, at_ms), event, &approval);
            let last_status = u16::try_from(number(status)?).unwrap_or_default();
            let delivery = Delivery { seq, attempts, message };
            Ok(Stored { delivery, event, approval, last_status })
        });
        rows.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_six_hours_and_attempts_span_more_than_a_day() {
        let pauses_s: Vec<u64> = (1..MAX_ATTEMPTS).map(|n| pause_ms(n) / 1_000).collect();
        assert_eq!(
            pauses_s,
            [5, 20, 80, 320, 1_280, 5_120, 20_480, 21_600, 21_600, 21_600, 21_600]
        );
        assert_eq!(pauses_s.iter().sum::<u64>() / 3_600, 31);
        assert_eq!(pause_ms(u32::MAX), MAX_PAUSE_MS);
    }
}
