//! The velocity windows of agents, stored and in memory.

use std::collections::HashMap;

use serde_json::json;

use super::storage::{LaneSql, StorageError, Value, first_text, integer, unreadable};
use crate::gate::windows::{Counting, WindowRow, hour};
use crate::json;
use crate::sql::lane as sql;
use crate::velocity::SlidingWindow;

/// Windows in memory. With more, all are dropped, and read again when they are needed. A full one takes about a
/// kilobyte.
const MAX_WINDOWS: usize = 10_000;

/// The most windows that one alarm deletes because they are over. If more are over, the next alarm is due at once. A
/// flush deletes as many, or as many as were written since the last flush if these are more.
const MAX_EXPIRED_WINDOWS: i64 = 1_000;

/// The windows of agents that a lane has in memory, by the names of their rows.
#[derive(Debug, Default)]
pub(super) struct WindowCache {
    windows: HashMap<String, SlidingWindow>,
    /// Rows that were written since the last flush: it adds at most as many.
    written: i64,
}

impl WindowCache {
    /// Loads the windows of a call into memory that have rows in the lane.
    pub fn load(
        &mut self,
        storage: &impl LaneSql,
        countings: &[Counting],
        now_ms: u64,
    ) -> Result<(), StorageError> {
        if self.windows.len() > MAX_WINDOWS {
            self.windows.clear();
        }
        for name in countings.iter().filter_map(Counting::row) {
            if !self.windows.contains_key(&name) {
                let window = read(storage, &name)?.unwrap_or_default();
                self.windows.insert(name.clone(), window);
            }
            if let Some(window) = self.windows.get_mut(&name) {
                window.repair_clock(now_ms);
            }
        }
        Ok(())
    }

    pub const fn rows(&self) -> &HashMap<String, SlidingWindow> {
        &self.windows
    }

    /// Takes what was written.
    pub fn take(&mut self, rows: Vec<WindowRow>) {
        self.written = self.written.saturating_add(i64::try_from(rows.len()).unwrap_or(i64::MAX));
        self.windows.extend(rows.into_iter().map(|row| (row.name, row.window)));
    }

    /// Deletes windows that are over, a bounded number of them, but at least as many as were written since the last time.
    /// So a lane does not add rows faster than it deletes them.
    pub fn expire(&mut self, storage: &impl LaneSql, steady_ms: u64) -> Result<(), StorageError> {
        expire_most(storage, steady_ms, self.written.max(MAX_EXPIRED_WINDOWS))?;
        self.written = 0;
        self.windows.retain(|_, window| !window.is_empty());
        Ok(())
    }
}

/// Rows as [`sql::COUNT`] expects them.
pub(super) fn rows(rows: &[WindowRow]) -> Value {
    let rows = rows.iter().map(|WindowRow { name, hour, window }| {
        // Plain data always serializes. A window that cannot be read stops its lane.
        json!([name, hour, json::to_string(window)])
    });
    Value::Text(serde_json::Value::Array(rows.collect()).to_string())
}

/// A window as it is stored.
pub(super) fn read<T: serde::de::DeserializeOwned>(
    storage: &impl LaneSql,
    name: &str,
) -> Result<Option<T>, StorageError> {
    let rows = storage.exec(sql::WINDOW, &[Value::Text(name.to_owned())])?;
    if rows.is_empty() {
        return Ok(None);
    }
    let window = first_text(&rows).and_then(|text| serde_json::from_str(text).ok());
    window.map(Some).ok_or_else(|| unreadable("a window of policies"))
}

/// Deletes windows that are over, a bounded number of them.
pub(super) fn expire(storage: &impl LaneSql, steady_ms: u64) -> Result<(), StorageError> {
    expire_most(storage, steady_ms, MAX_EXPIRED_WINDOWS)
}

fn expire_most(storage: &impl LaneSql, steady_ms: u64, most: i64) -> Result<(), StorageError> {
    let values = [integer(hour(steady_ms))?, Value::Integer(most)];
    storage.exec(sql::EXPIRE_WINDOWS, &values).map(drop)
}
