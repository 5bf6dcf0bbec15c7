//! The windows of a tenant, each in the storage of an object of its own.

use serde_json::json;

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value};
use super::windows::{expire, read};
use crate::gate::windows::hour;
use crate::sql::lane as sql;
use crate::velocity::Counted;
use crate::velocity::shared::{Look, SharedWindow};

/// Windows that are over, of which one look deletes this many: more than it adds.
const MAX_EXPIRED_WINDOWS: i64 = 4;

impl Lane {
    /// What others have in a tenant's window, in the window's object. Counts the call `entry`; `None`: it only
    /// looks.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn look(
        &mut self,
        storage: &impl LaneSql,
        entry: Option<&str>,
        look: &Look,
        now_ms: u64,
    ) -> Result<Counted, StorageError> {
        let name = look.row();
        let mut window: SharedWindow = read(storage, &name)?.unwrap_or_default();
        let counted = window.look(entry, look, now_ms);
        if entry.is_some() {
            write(storage, &name, &window, look.width_ms)?;
            self.look_at_clock(storage, now_ms)?;
            expire(storage, self.steady_ms(), MAX_EXPIRED_WINDOWS)?;
        }
        Ok(counted)
    }

    /// A call that was counted by a look does not pass.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn withdraw(storage: &impl LaneSql, entry: &str, look: &Look) -> Result<(), StorageError> {
        let name = look.row();
        let Some(mut window) = read::<SharedWindow>(storage, &name)? else { return Ok(()) };
        match window.withdraw(entry) {
            true => write(storage, &name, &window, look.width_ms),
            false => Ok(()),
        }
    }
}

fn write(
    storage: &impl LaneSql,
    name: &str,
    window: &SharedWindow,
    width_ms: u64,
) -> Result<(), StorageError> {
    // Plain data always serializes. A window that cannot be read fails each look at it.
    let record = serde_json::to_string(window).unwrap_or_default();
    let rows = json!([[name, hour(window.ends_at_ms(width_ms)), record]]).to_string();
    storage.exec(sql::COUNT, &[Value::Text("[]".to_owned()), Value::Text(rows)]).map(drop)
}
