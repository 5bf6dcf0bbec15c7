//! Repairs of a lane whose clock went back.

use super::clock::Clock;
use super::outbox::MAX_PAUSE_MS;
use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer};
use crate::clock::CLOCK_TOLERANCE_MS;
use crate::gate::CountedEvent;
use crate::receipt::retention::PRUNE_INTERVAL_MS;
use crate::sql::lane as sql;

/// How long ago the clock must have passed a time before anything is deleted by it.
pub(super) const STEADY_MS: u64 = 60 * 60 * 1_000;

/// The source of audit counts that concern the lane itself.
const LANE: &str = "lane";

impl Lane {
    /// A time that the clock passed at least an hour ago; 0 if there is none. Records are deleted
    /// by it.
    #[must_use]
    pub fn steady_ms(&self) -> u64 {
        self.clock.steady_ms
    }

    /// Reads the clock, and repairs the lane's stored times if the clock went back.
    pub(super) fn check_clock(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let Clock { reading_ms, steady_ms, .. } = self.clock;
        let back = now_ms.saturating_add(CLOCK_TOLERANCE_MS) < reading_ms;
        let reads = back || now_ms >= reading_ms.saturating_add(STEADY_MS);
        if back {
            self.clock = Clock {
                reading_ms: now_ms,
                steady_ms: steady_ms.min(now_ms),
                back_ms: now_ms,
                back_seq: self.head.seq,
            };
            repair_due_times(storage, now_ms)?;
        } else if reads {
            self.clock = Clock { reading_ms: now_ms, steady_ms: reading_ms, ..self.clock };
        }
        if reads {
            // Stored last: if a repair fails, it is repeated, which is a no-op for what was
            // repaired.
            self.clock.save(storage)?;
        }
        if back | self.day.repair_clock(storage, &self.head, now_ms)? {
            self.count(storage, CountedEvent::ClockRepaired, LANE, now_ms)?;
        }
        Ok(())
    }
}

/// Moves times that are due in the future to now: the next prune, webhook messages, and approvals.
/// An approval that was asked for in the future has expired
/// ([`crate::approval::Approval::status_at`]).
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
