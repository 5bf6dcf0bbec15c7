//! What the lane knows of its clock, which can jump ahead and come back.
//!
//! INVARIANT (a jump deletes nothing): what is past its time is deleted by [`Clock::steady_ms`]. The
//! clock has passed that time for an hour, and has not gone back behind it. So a clock that jumps ahead
//! and comes back within the hour deletes nothing that is within its time. Two jumps ahead in a row, the
//! second within the hour of the first, look like a pause of the lane, and do.
//!
//! A lane looks at the clock with every event, and remembers a look each hour.

use super::storage::{LaneSql, StorageError, meta, set_meta, unreadable};

const NAME: &str = "clock";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The look that is remembered.
    pub(super) look_ms: u64,
    /// The look before it, an hour earlier at least; 0 when there was none.
    pub(super) steady_ms: u64,
    /// When the clock last went back, by the clock after that; 0 when it never did.
    pub(super) back_ms: u64,
    /// The newest journal row of then: the rows up to it were written before.
    pub(super) back_seq: u64,
}

impl Clock {
    pub(super) fn start(storage: &impl LaneSql) -> Result<Self, StorageError> {
        let Some(stored) = meta(storage, NAME)? else { return Ok(Self::default()) };
        let numbers: Option<Vec<u64>> = stored.split(':').map(|text| text.parse().ok()).collect();
        let Some([look_ms, steady_ms, back_ms, back_seq]) = numbers.as_deref() else {
            return Err(unreadable("the looks at the clock"));
        };
        let (look_ms, steady_ms) = (*look_ms, *steady_ms);
        Ok(Self { look_ms, steady_ms, back_ms: *back_ms, back_seq: *back_seq })
    }

    pub(super) fn save(&self, storage: &impl LaneSql) -> Result<(), StorageError> {
        let Self { look_ms, steady_ms, back_ms, back_seq } = self;
        set_meta(storage, NAME, format!("{look_ms}:{steady_ms}:{back_ms}:{back_seq}"))
    }

    /// The time from before which nothing is kept that is kept for `kept_ms`.
    pub(super) fn expired_ms(&self, kept_ms: u64) -> u64 {
        self.steady_ms.saturating_sub(kept_ms)
    }

    /// The last row that is past its time although it bears a time in the future: it was written before
    /// the clock went back, and that was so long ago.
    pub(super) fn expired_seq(&self, kept_ms: u64) -> u64 {
        if self.back_ms < self.expired_ms(kept_ms) { self.back_seq } else { 0 }
    }
}
