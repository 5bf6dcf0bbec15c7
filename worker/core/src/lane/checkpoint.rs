//! Checkpoints bound what a start reads: it looks only at the journal rows after the newest one.
//!
//! INVARIANT (a row up to the checkpoint waits for D1 and for nothing else): the newest state of each
//! agent up to there is in `agents`, its bytes are in the day's count in `meta`, and its time is not
//! later than the latest one that `meta` holds.

use super::state::Lane;
use super::storage::{CHECKPOINT, LaneSql, StorageError, integer, set_meta};
use crate::gate::config::MAX_STORAGE_BYTES;
use crate::sql::lane as sql;

/// Rows after which a checkpoint is taken when no flush takes one: so many rows a start reads, in some
/// 10 ms. Taking it costs about as long, so an hour's outage at 300 rows/s pays it every 3 seconds.
pub(super) const CHECKPOINT_ROWS: u64 = 1_000;

impl Lane {
    pub(super) fn checkpoint_if_due(&mut self, storage: &impl LaneSql) -> Result<(), StorageError> {
        if self.head.seq - self.checkpoint < CHECKPOINT_ROWS {
            return Ok(());
        }
        self.take_checkpoint(storage)
    }

    /// The order lets any statement be the last: the checkpoint is written when all that it says holds.
    pub(super) fn take_checkpoint(&mut self, storage: &impl LaneSql) -> Result<(), StorageError> {
        storage.exec(sql::KEEP_STATES, &[integer(self.checkpoint)?])?;
        self.day.save(storage, &self.head)?;
        set_meta(storage, CHECKPOINT, format!("{}:{}", self.head.seq, self.latest_ms))?;
        self.checkpoint = self.head.seq;
        self.look_at_storage(storage);
        Ok(())
    }

    /// Whether anything more is taken. At every checkpoint, so that an outage in which no alarm comes
    /// fills no more than the reserve.
    pub(super) fn look_at_storage(&mut self, storage: &impl LaneSql) {
        self.storage_full = storage.size_bytes() > MAX_STORAGE_BYTES;
    }
}
