//! The velocity windows of a tenant, which its lanes share. Each is in the storage of an object of its own.

use serde_json::json;

use super::repair::STEADY_MS;
use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, unreadable, unsigned};
use super::windows::{expire, read};
use crate::gate::windows::{HOUR_MS, hour};
use crate::json;
use crate::sql::lane as sql;
use crate::velocity::Counted;
use crate::velocity::shared::{CountRequest, SharedWindow};

/// How long after the end of a window its object deletes windows that are over.
pub const PRUNE_WINDOWS_MS: u64 = STEADY_MS;

impl Lane {
    /// Counts the call `entry` in a tenant's window, and returns the count of the other calls. If `entry` is `None`, it
    /// only returns the count. It runs in the object of the window.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn count_call(
        storage: &impl LaneSql,
        entry: Option<&str>,
        request: &CountRequest,
        now_ms: u64,
    ) -> Result<Counted, StorageError> {
        let name = request.row();
        let mut window: SharedWindow = read(storage, &name)?.unwrap_or_default();
        let counted = window.count_call(entry, request, now_ms);
        if entry.is_some() {
            write(storage, &name, &window, request.width_ms)?;
        }
        Ok(counted)
    }

    /// Deletes windows that are over, a bounded number of them. Returns when to do it again; `None` if none is left.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn prune_windows(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<Option<u64>, StorageError> {
        self.check_clock(storage, now_ms)?;
        expire(storage, self.steady_ms())?;
        let oldest = match storage.exec(sql::OLDEST_WINDOW, &[])?.first().map(Vec::as_slice) {
            None => return Ok(None),
            Some([Value::Integer(hour)]) => unsigned(*hour)?,
            Some(_) => return Err(unreadable("when a window is over")),
        };
        Ok(Some(match oldest < hour(self.steady_ms()) {
            // There were more than one run deletes.
            true => now_ms,
            // Windows are deleted by a time that the clock passed an hour ago.
            false => (oldest + 1).saturating_mul(HOUR_MS).max(now_ms + STEADY_MS),
        }))
    }

    /// Removes a call from the window that counted it, because the call does not pass. Deletes the window if it counts
    /// no other call. Returns whether the window had the call as one that can be withdrawn.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn withdraw(
        storage: &impl LaneSql,
        entry: &str,
        request: &CountRequest,
    ) -> Result<bool, StorageError> {
        let name = request.row();
        let Some(mut window) = read::<SharedWindow>(storage, &name)? else { return Ok(false) };
        if !window.withdraw(entry) {
            return Ok(false);
        }
        match window.is_empty() {
            true => storage.exec(sql::DELETE_WINDOW, &[Value::Text(name)]).map(drop)?,
            false => write(storage, &name, &window, request.width_ms)?,
        }
        Ok(true)
    }
}

fn write(
    storage: &impl LaneSql,
    name: &str,
    window: &SharedWindow,
    width_ms: u64,
) -> Result<(), StorageError> {
    // Plain data always serializes. A window that cannot be read fails each request for it.
    let record = json::to_string(window);
    let rows = json!([[name, hour(window.ends_at_ms(width_ms)), record]]).to_string();
    storage.exec(sql::COUNT, &[Value::Text("[]".to_owned()), Value::Text(rows)]).map(drop)
}
