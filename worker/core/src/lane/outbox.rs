//! What is to be told to the tenant's webhook: a message for each step of an approval, kept until
//! the receiver took it or it was given up.
//!
//! INVARIANT (told at least once): the statement that writes a step puts its message here, so there
//! is never one without the other, and it is deleted only when it was taken, when D1 holds it as a
//! dead letter, or when the tenant has no webhook.
//!
//! Whether there is a webhook, only D1 knows: the decision path asks nobody.

use serde_json::{Value as Json, json};

use super::flush::MAX_FLUSH_BYTES;
use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer, parse_approval, unreadable, unsigned};
use crate::approval::webhook::Message;
use crate::sql::lane as sql;

/// Messages that one alarm sends, all at once: an invocation has six connections on Cloudflare, and
/// the flush that goes on meanwhile needs some.
pub const MAX_DELIVERIES: i64 = 4;

/// Attempts after which a message is given up. With the pauses between them they span 31 hours:
/// what a receiver that is down over a day still gets.
pub const MAX_ATTEMPTS: u32 = 12;
/// The pause after the first failed attempt. Each is [`PAUSE_FACTOR`] times the one before.
const FIRST_PAUSE_MS: u64 = 5_000;
const PAUSE_FACTOR: u64 = 4;
/// The longest pause: 6 hours, so that a receiver that is back is found within a shift.
pub(super) const MAX_PAUSE_MS: u64 = 6 * 60 * 60 * 1_000;

/// Messages that wait for a receiver that does not take them; the oldest beyond are given up. At
/// some 2 KB each they take 20 MB.
pub const MAX_OUTBOX_ROWS: u64 = 10_000;

/// Dead letters of one batch, which is bounded to [`MAX_FLUSH_BYTES`] too.
const MAX_DEAD_LETTERS: i64 = 500;

/// A message that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Of its step.
    pub seq: u64,
    /// Those that failed.
    pub attempts: u32,
    pub message: Message,
}

/// Messages that were given up, on their way to D1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetters {
    /// A JSON array.
    pub rows: String,
    pub seqs: Vec<u64>,
}

/// The pause after so many failed attempts.
const fn pause_ms(attempts: u32) -> u64 {
    let pause_ms =
        FIRST_PAUSE_MS.saturating_mul(PAUSE_FACTOR.saturating_pow(attempts.saturating_sub(1)));
    if pause_ms < MAX_PAUSE_MS { pause_ms } else { MAX_PAUSE_MS }
}

impl Lane {
    /// What is due by now, the longest first; at most [`MAX_DELIVERIES`].
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
        Ok(rows.into_iter().map(|(delivery, _)| delivery).collect())
    }

    /// The receiver took it.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: then it is told again.
    pub fn delivered(storage: &impl LaneSql, delivery: &Delivery) -> Result<(), StorageError> {
        drop_messages(storage, &[delivery.seq])
    }

    /// The receiver did not take it: it is due again after a pause, or given up.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn delivery_failed(
        storage: &impl LaneSql,
        delivery: &Delivery,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let attempts = delivery.attempts + 1;
        let due = match attempts < MAX_ATTEMPTS {
            true => integer(now_ms.saturating_add(pause_ms(attempts)))?,
            false => Value::Null,
        };
        let values = [integer(delivery.seq)?, Value::Integer(attempts.into()), due];
        storage.exec(sql::DELIVERY_FAILED, &values).map(drop)
    }

    /// There is no webhook: nobody is told of the steps up to `seq`.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn forget_deliveries(storage: &impl LaneSql, seq: u64) -> Result<(), StorageError> {
        storage.exec(sql::FORGET_DELIVERIES, &[integer(seq)?]).map(drop)
    }

    /// Some of what was given up, or has no room; `None` when there is nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn dead_letters(
        &self,
        storage: &impl LaneSql,
    ) -> Result<Option<DeadLetters>, StorageError> {
        let values = [integer(MAX_OUTBOX_ROWS)?, Value::Integer(MAX_DEAD_LETTERS)];
        let Some((_, lane)) = &self.identity else { return Ok(None) };
        let dead = self.messages(storage, sql::DEAD_LETTERS, &values)?;
        let (mut rows, mut seqs) = (String::from("["), Vec::new());
        for (Delivery { seq, attempts, message: Message { id, body } }, decision_id) in dead {
            let payload: Json =
                serde_json::from_str(&body).map_err(|_| unreadable("a webhook's message"))?;
            let row = json!({
                "event_id": format!("{lane}.{seq}.webhook_dead_lettered"),
                "decision_id": decision_id,
                "detail": { "webhook_id": id, "attempts": attempts, "payload": payload },
            });
            let row = row.to_string();
            if !seqs.is_empty() {
                if rows.len() + row.len() > MAX_FLUSH_BYTES {
                    break;
                }
                rows.push(',');
            }
            rows.push_str(&row);
            seqs.push(seq);
        }
        rows.push(']');
        Ok((!seqs.is_empty()).then_some(DeadLetters { rows, seqs }))
    }

    /// D1 has the dead letters.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: then they are written again, to no effect.
    pub fn dead_lettered(storage: &impl LaneSql, seqs: &[u64]) -> Result<(), StorageError> {
        drop_messages(storage, seqs)
    }

    /// When the next message is due, or has been; `None` when none waits.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn next_delivery(storage: &impl LaneSql) -> Result<Option<u64>, StorageError> {
        let rows = storage.exec(sql::NEXT_DELIVERY, &[])?;
        match rows.first().map(Vec::as_slice) {
            None => Ok(None),
            Some([Value::Integer(at_ms)]) => unsigned(*at_ms).map(Some),
            // It was given up, and D1 does not have it.
            Some([Value::Null]) => Ok(Some(0)),
            Some(_) => Err(unreadable("when a webhook's message is due")),
        }
    }

    /// Messages, each with the decision that its approval belongs to.
    fn messages(
        &self,
        storage: &impl LaneSql,
        statement: &str,
        values: &[Value],
    ) -> Result<Vec<(Delivery, String)>, StorageError> {
        let Some((tenant, lane)) = &self.identity else { return Ok(Vec::new()) };
        let rows = storage.exec(statement, values)?.into_iter().map(|row| {
            let [seq, at_ms, Value::Text(event), Value::Text(record), attempts] = row.as_slice()
            else {
                return Err(unreadable("a webhook's message"));
            };
            let number = |value: &Value| match value {
                Value::Integer(number) => unsigned(*number),
                _ => Err(unreadable("a webhook's message")),
            };
            let (seq, at_ms, approval) = (number(seq)?, number(at_ms)?, parse_approval(record)?);
            let attempts = u32::try_from(number(attempts)?).unwrap_or(u32::MAX);
            let message = Message::of((tenant, *lane), (seq, at_ms), event, &approval);
            Ok((Delivery { seq, attempts, message }, approval.decision_id))
        });
        rows.collect()
    }
}

fn drop_messages(storage: &impl LaneSql, seqs: &[u64]) -> Result<(), StorageError> {
    storage.exec(sql::DROP_MESSAGES, &[Value::Text(json!(seqs).to_string())]).map(drop)
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
