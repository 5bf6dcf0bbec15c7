//! What the lane knows of its clock, which can jump ahead and come back.
//!
//! INVARIANT (a jump deletes nothing): what is past its time is deleted by [`Clock::steady_ms`]. The
//! clock has passed that time for an hour, and has not gone back behind it. So a clock that jumps ahead
//! and comes back within the hour deletes nothing that is within its time. Two jumps ahead in a row, the
//! second within the hour of the first, look like a pause of the lane, and do.
//!
//! A lane looks at the clock with every event, and remembers a look each hour.

use super::storage::{LaneSql, StorageError, Value, integer, meta, set_meta, unreadable};
use super::{Counted, Lane};
use crate::gate::CLOCK_TOLERANCE_MS;
use crate::lane::outbox::MAX_PAUSE_MS;
use crate::retention::PRUNE_INTERVAL_MS;
use crate::sql::lane as sql;

const NAME: &str = "clock";

/// How long the clock must have passed a time before anything is deleted by it.
const STEADY_MS: u64 = 60 * 60 * 1_000;

/// The source of audit counts that are the lane's own.
pub(super) const LANE: &str = "lane";

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Clock {
    /// The look that is remembered.
    look_ms: u64,
    /// The look before it, an hour earlier at least; 0 when there was none.
    pub(super) steady_ms: u64,
    /// When the clock last went back, by the clock after that; 0 when it never did.
    back_ms: u64,
    /// The newest journal row of then: the rows up to it were written before.
    back_seq: u64,
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

    fn save(&self, storage: &impl LaneSql) -> Result<(), StorageError> {
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

impl Lane {
    /// The time that the clock has passed for an hour; 0 while there is none. Records are deleted by it.
    #[must_use]
    pub fn steady_ms(&self) -> u64 {
        self.clock.steady_ms
    }

    /// Looks at the clock, and repairs what is the lane's own when it went back.
    pub(super) fn look_at_clock(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let Clock { look_ms, steady_ms, .. } = self.clock;
        let back = now_ms.saturating_add(CLOCK_TOLERANCE_MS) < look_ms;
        let looks = back || now_ms >= look_ms.saturating_add(STEADY_MS);
        if back {
            self.clock = Clock {
                look_ms: now_ms,
                steady_ms: steady_ms.min(now_ms),
                back_ms: now_ms,
                back_seq: self.head.seq,
            };
            repair_due_times(storage, now_ms)?;
        } else if looks {
            self.clock = Clock { look_ms: now_ms, steady_ms: look_ms, ..self.clock };
        }
        if looks {
            // Last: what was repaired before a failure is repaired again, to no effect.
            self.clock.save(storage)?;
        }
        if back | self.day.repair_clock(storage, &self.head, now_ms)? {
            self.count(storage, Counted::ClockRepaired, LANE, now_ms)?;
        }
        Ok(())
    }
}

/// Brings what is due at a time in the future to now: when to prune, messages of the webhook, and
/// approvals that were asked for in the future, which are over ([`crate::approval::Approval::status_at`]).
fn repair_due_times(storage: &impl LaneSql, now_ms: u64) -> Result<(), StorageError> {
    let after = |longest_ms: u64| {
        integer(now_ms.saturating_add(CLOCK_TOLERANCE_MS).saturating_add(longest_ms))
    };
    let now = integer(now_ms)?;
    if Lane::next_prune(storage)?
        .is_some_and(|at_ms| at_ms > now_ms + CLOCK_TOLERANCE_MS + PRUNE_INTERVAL_MS)
    {
        Lane::set_next_prune(storage, now_ms)?;
    }
    let deliveries: [Value; 2] = [now.clone(), after(MAX_PAUSE_MS)?];
    storage.exec(sql::REPAIR_DELIVERIES, &deliveries)?;
    storage.exec(sql::REPAIR_APPROVALS, &[now, after(0)?]).map(drop)
}
