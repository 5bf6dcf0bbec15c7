//! The journal: how a row is written, with everything that changes with it, and read.

use super::state::{Held, Lane};
use super::storage::{LaneSql, StorageError, Value, first_text, integer, steps, unreadable};
use super::windows;
use crate::gate::{AgentState, JournalEntry};
use crate::limit::book::Writes;
use crate::sql::lane as sql;

impl Lane {
    /// Writes one row, or two together, and then takes the state into memory.
    pub(super) fn journal(
        &mut self,
        storage: &impl LaneSql,
        entry: JournalEntry,
        next: Option<JournalEntry>,
        state: AgentState,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.check_not_stopped()?;
        let head = next.as_ref().map_or(&entry, |next| next).head.clone();
        let rows = 1 + u64::from(next.is_some());
        let bytes = entry.row.len() + next.as_ref().map_or(0, |next| next.row.len());
        self.day.begin(storage, &self.head, now_ms)?;
        if !entry.windows.is_empty() || entry.approval.is_some() || next.is_some() {
            let entries: Vec<_> = [Some(&entry), next.as_ref()].into_iter().flatten().collect();
            let steps = Value::Text(steps(&entries, now_ms));
            self.approvals_open = None;
            match entry.windows.is_empty() {
                true => storage.exec(sql::INSERT_STEPS, &[steps])?,
                false => storage.exec(sql::COUNT, &[steps, windows::rows(&entry.windows)])?,
            };
        } else {
            let text = |value: Option<String>| value.map_or(Value::Null, Value::Text);
            let mut values = vec![
                integer(entry.head.seq)?,
                integer(now_ms)?,
                Value::Text(entry.head.hash),
                Value::Text(entry.agent.clone()),
                Value::Text(entry.state),
                text(entry.request_key),
                Value::Text(entry.fingerprint),
                text(entry.nonce_key),
                Value::Text(entry.row),
            ];
            let mut statement = sql::INSERT;
            // Plain data always serializes.
            match entry.limits.as_deref() {
                None => {
                    if let Some(step) = entry.gives_up {
                        statement = sql::INSERT_DEAD_LETTER;
                        values.push(integer(step)?);
                    }
                }
                Some(Writes { books, reservation: None, settles: None }) if books.len() == 1 => {
                    statement = sql::INSERT_COUNTED;
                    values.extend(books.iter().flat_map(|(name, book)| {
                        let book = serde_json::to_string(book).unwrap_or_default();
                        [Value::Text(name.clone()), Value::Text(book)]
                    }));
                }
                Some(Writes { books, reservation, settles }) => {
                    statement = sql::INSERT_LIMITED;
                    let books = serde_json::to_string(books).unwrap_or_default();
                    let reservation = reservation.as_ref().map(serde_json::to_string);
                    values.push(Value::Text(books));
                    values.push(text(reservation.transpose().unwrap_or_default()));
                    values.push(text(settles.clone()));
                }
            }
            storage.exec(statement, &values)?;
        }
        if let Some(limits) = entry.limits {
            self.limits.take(*limits);
        }
        self.windows.take(entry.windows);
        let strangers = self.agents.get(&entry.agent).and_then(|held| held.strangers);
        self.agents.insert(entry.agent, Held { state, journalled: head.seq, strangers });
        self.head = head;
        self.latest_ms = self.latest_ms.max(now_ms);
        self.day.add(bytes);
        self.journal_rows += rows;
        self.checkpoint_if_due(storage)
    }

    /// A journal row that was not flushed yet.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn row(storage: &impl LaneSql, seq: u64) -> Result<Option<String>, StorageError> {
        let rows = storage.exec(sql::ROW, &[integer(seq)?])?;
        Ok(first_text(&rows).map(str::to_owned))
    }

    /// Up to `limit` journal rows from `from` on, as a JSON array.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn rows(storage: &impl LaneSql, from: u64, limit: u32) -> Result<String, StorageError> {
        let rows = storage.exec(sql::ROWS, &[integer(from)?, Value::Integer(i64::from(limit))])?;
        let texts: Option<Vec<&str>> = rows
            .iter()
            .map(|row| match row.as_slice() {
                [_, _, Value::Text(text), _] => Some(text.as_str()),
                _ => None,
            })
            .collect();
        Ok(format!("[{}]", texts.ok_or_else(|| unreadable("a journal row"))?.join(",")))
    }
}
