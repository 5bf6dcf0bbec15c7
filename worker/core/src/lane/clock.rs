//! The lane's clock, which can jump ahead and come back.
//!
//! INVARIANT (a jump deletes nothing): records are deleted by [`Clock::steady_ms`], a time that the
//! clock passed an hour ago and has not gone back behind since. So a clock that jumps ahead and
//! comes back within the hour deletes nothing too early. Two jumps ahead within an hour look like a
//! pause of the lane, and do delete.
//!
//! The lane reads the clock with every event, and stores a reading each hour.

use super::storage::{LaneSql, StorageError, meta, set_meta, unreadable};

const NAME: &str = "clock";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The stored reading.
    pub(super) reading_ms: u64,
    /// The reading before it, at least an hour earlier; 0 if there was none.
    pub(super) steady_ms: u64,
    /// When the clock last went back, as it read afterwards; 0 if it never did.
    pub(super) back_ms: u64,
    /// The newest journal row at that time. The rows up to it were written before.
    pub(super) back_seq: u64,
}

impl Clock {
    pub(super) fn start(storage: &impl LaneSql) -> Result<Self, StorageError> {
        let Some(stored) = meta(storage, NAME)? else { return Ok(Self::default()) };
        let numbers: Option<Vec<u64>> = stored.split(':').map(|text| text.parse().ok()).collect();
        let Some([reading_ms, steady_ms, back_ms, back_seq]) = numbers.as_deref() else {
            return Err(unreadable("the readings of the clock"));
        };
        let (reading_ms, steady_ms) = (*reading_ms, *steady_ms);
        Ok(Self { reading_ms, steady_ms, back_ms: *back_ms, back_seq: *back_seq })
    }

    pub(super) fn save(&self, storage: &impl LaneSql) -> Result<(), StorageError> {
        let Self { reading_ms, steady_ms, back_ms, back_seq } = self;
        set_meta(storage, NAME, format!("{reading_ms}:{steady_ms}:{back_ms}:{back_seq}"))
    }

    /// Records that are kept for `kept_ms` are deleted if they are older than this time.
    pub(super) fn expired_ms(&self, kept_ms: u64) -> u64 {
        self.steady_ms.saturating_sub(kept_ms)
    }

    /// The last row that has expired although its time is in the future: it was written before the
    /// clock went back, and that is long enough ago.
    pub(super) fn expired_seq(&self, kept_ms: u64) -> u64 {
        if self.back_ms < self.expired_ms(kept_ms) { self.back_seq } else { 0 }
    }
}
