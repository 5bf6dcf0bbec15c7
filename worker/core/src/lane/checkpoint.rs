//! State checkpoints bound how much a start reads: only the journal rows after the newest one. The signed checkpoints of
//! the lane's log are something else (`publish`).
//!
//! INVARIANT (a row up to the checkpoint is needed for the flush alone): `agents` has the newest
//! state of each agent up to the checkpoint, `limit_books` has the newest of each book, `meta` has
//! the day's count of bytes, and no row up to there is later than the time in `meta`.

use super::state::Lane;
use super::storage::{CHECKPOINT, LaneSql, StorageError, integer, set_meta};
use crate::gate::config::MAX_STORAGE_BYTES;
use crate::sql::lane as sql;

/// Rows after which a state checkpoint is taken if no flush takes one. A start reads this many rows in
/// about 10 ms. A checkpoint takes about as long, so in an outage at 300 rows a second the lane
/// pays it every 3 seconds. With many books of limits, it is taken earlier.
pub(super) const CHECKPOINT_ROWS: u64 = 1_000;

impl Lane {
    pub(super) fn checkpoint_if_due(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        if self.head.seq - self.checkpoint < CHECKPOINT_ROWS && !self.limits.are_many() {
            return Ok(());
        }
        self.take_checkpoint(storage, now_ms)
    }

    /// The order matters if a statement fails: the checkpoint is written only after everything that
    /// it claims.
    pub(super) fn take_checkpoint(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        storage.exec(sql::KEEP_STATES, &[integer(self.checkpoint)?])?;
        self.limits.keep_books(storage, now_ms)?;
        self.day.save(storage, &self.head)?;
        set_meta(storage, CHECKPOINT, format!("{}:{}", self.head.seq, self.latest_ms))?;
        self.checkpoint = self.head.seq;
        self.limits.kept();
        self.check_storage_size(storage);
        Ok(())
    }

    /// Checks whether the storage is full. It runs at every checkpoint, so that an outage without
    /// alarms fills no more than the reserve.
    pub(super) fn check_storage_size(&mut self, storage: &impl LaneSql) {
        self.storage_full = storage.size_bytes() > MAX_STORAGE_BYTES;
    }
}
