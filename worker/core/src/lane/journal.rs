//! The journal: how a row is written, with everything that changes with it, and read.

use std::mem;

use super::state::{AgentInMemory, Lane};
use super::storage::{LaneSql, StorageError, Value, encode_steps, first_text, integer, unreadable};
use super::windows;
use crate::gate::{AgentState, JournalEntry};
use crate::id::MAX_SEQ;
use crate::json;
use crate::limit::book::{self, Writes};
use crate::sql::lane as sql;

impl Lane {
    /// Writes one row, or two together, and then takes the state into memory.
    pub(super) fn journal(
        &mut self,
        storage: &impl LaneSql,
        mut entry: JournalEntry,
        next: Option<JournalEntry>,
        state: AgentState,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.check_not_stopped()?;
        let head = next.as_ref().unwrap_or(&entry).head.clone();
        let rows = 1 + u64::from(next.is_some());
        let bytes = entry.row.len() + next.as_ref().map_or(0, |next| next.row.len());
        self.day.begin(storage, &self.head, now_ms)?;
        let has_steps = !entry.windows.is_empty() || entry.approval.is_some() || next.is_some();
        let (statement, values) = if has_steps {
            let entries: Vec<_> = [Some(&entry), next.as_ref()].into_iter().flatten().collect();
            let steps = Value::Text(encode_steps(&entries, now_ms));
            self.approvals_open = None;
            match entry.windows.is_empty() {
                true => (sql::INSERT_STEPS, vec![steps]),
                false => (sql::COUNT, vec![steps, windows::rows(&entry.windows)]),
            }
        } else {
            insert(&mut entry, now_ms)?
        };
        storage.exec(statement, &values)?;
        if let Some(limits) = entry.limits {
            self.limits.take_journalled(*limits);
        }
        self.windows.take(entry.windows);
        let strangers = self.agents.get(&entry.agent).and_then(|agent| agent.strangers);
        self.agents.insert(entry.agent, AgentInMemory { state, journalled: head.seq, strangers });
        self.head = head;
        self.latest_ms = self.latest_ms.max(now_ms);
        self.day.add(bytes);
        self.journal_rows += rows;
        self.checkpoint_if_due(storage, now_ms)
    }

    /// A journal row that was not flushed yet.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn row(&self, storage: &impl LaneSql, seq: u64) -> Result<Option<String>, StorageError> {
        if seq <= self.flushed_through() {
            return Ok(None);
        }
        let rows = storage.exec(sql::ROW, &[integer(seq)?])?;
        Ok(first_text(&rows).map(str::to_owned))
    }

    /// Up to `limit` rows from `from` on that were not flushed yet, as a JSON array. There is none above [`MAX_SEQ`].
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn rows(
        &self,
        storage: &impl LaneSql,
        from: u64,
        limit: u32,
    ) -> Result<String, StorageError> {
        let from = from.max(self.flushed_through() + 1).min(MAX_SEQ + 1);
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

/// The statement that inserts a row without windows and without approvals, and its values. It takes the texts out of the
/// entry.
fn insert(
    entry: &mut JournalEntry,
    now_ms: u64,
) -> Result<(&'static str, Vec<Value>), StorageError> {
    let text = |value: Option<String>| value.map_or(Value::Null, Value::Text);
    let mut values = vec![
        integer(entry.head.seq)?,
        integer(now_ms)?,
        Value::Text(mem::take(&mut entry.head.hash)),
        Value::Text(entry.agent.clone()),
        Value::Text(mem::take(&mut entry.state)),
        text(entry.request_key.take()),
        Value::Text(mem::take(&mut entry.fingerprint)),
        text(entry.nonce_key.take()),
        Value::Text(mem::take(&mut entry.row)),
    ];
    if let Some(step) = entry.gives_up {
        values.push(integer(step)?);
        return Ok((sql::INSERT_DEAD_LETTER, values));
    }
    let limits = entry.limits.as_deref();
    values.push(text(limits.map(|limits| book::as_json(&limits.books))));
    let statement = match limits {
        None | Some(Writes { reservation: None, settles: None, .. }) => sql::INSERT,
        Some(Writes { reservation, settles, .. }) => {
            values.push(text(reservation.as_ref().map(json::to_string)));
            values.push(text(settles.clone()));
            sql::INSERT_LIMITED
        }
    };
    Ok((statement, values))
}
