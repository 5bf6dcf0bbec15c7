//! A clock that was ahead and came back leaves times in the future behind. Such a time would stop or
//! mark an agent until the clock has caught up: for a day, if it was a day ahead.
//!
//! INVARIANT (a repair hands nothing out): it moves a time or a day to now, and keeps what was counted.
//! While the clock was ahead it did hand out what time hands out: each jump to a later day and back lets
//! an agent use its daily quota once more, and each jump ahead fills its bucket. A lane cannot tell a
//! jump ahead from a pause.

use super::{AgentState, CALLS_WINDOW_MS, DENIALS_WINDOW_MS};
use crate::budget::DAY_MS;

/// How far in the future a stored time may lie without being repaired. The clocks of two machines that
/// an object runs on differ by milliseconds, so this is a clock that was wrong; and what lies less far
/// ahead is over after as many seconds.
pub const CLOCK_TOLERANCE_MS: u64 = 10_000;

/// Moves a time that lies in the future to now. Returns whether it did.
pub(super) fn repair_time(at_ms: &mut u64, now_ms: u64) -> bool {
    repair_window(at_ms, 1, now_ms)
}

/// Moves the number of a window, or of a day, that lies in the future to the present one.
pub(crate) fn repair_window(window: &mut u64, width_ms: u64, now_ms: u64) -> bool {
    let repairs = window.saturating_mul(width_ms) > now_ms.saturating_add(CLOCK_TOLERANCE_MS);
    if repairs {
        *window = now_ms / width_ms;
    }
    repairs
}

impl AgentState {
    /// Moves every time that lies in the future to now. Returns whether there was one.
    pub(crate) fn repair_clock(&mut self, now_ms: u64) -> bool {
        let bucket = self.bucket.as_mut().is_some_and(|bucket| bucket.repair_clock(now_ms));
        let denial = self.status_denial.as_mut();
        let repairs = [
            bucket,
            denial.is_some_and(|denial| repair_time(&mut denial.at_ms, now_ms)),
            repair_window(&mut self.quota_day, DAY_MS, now_ms),
            self.calls.repair_clock(now_ms, CALLS_WINDOW_MS),
            self.denials.repair_clock(now_ms, DENIALS_WINDOW_MS),
            self.risk.repair_clock(now_ms),
            self.taint.repair_clock(now_ms),
        ];
        let repaired = repairs.contains(&true);
        self.revision += u64::from(repaired);
        repaired
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW_MS: u64 = 50 * DAY_MS;

    /// A state whose times are all `at_ms`.
    fn state(revision: u64, at_ms: u64) -> serde_json::Value {
        let count =
            |width_ms: u64| json!({"window": at_ms / width_ms, "current": 2, "previous": 3});
        let mark = json!({"since_ms": at_ms, "at_ms": at_ms, "servers": ["web"]});
        let mut run = mark.clone();
        run["run"] = json!("ca978112ca1bbdca");
        json!({
            "revision": revision, "bucket": {"micro": 5, "at_ms": at_ms}, "quarantined": false,
            "status_denial": {"at_ms": at_ms, "code": "agent_frozen"},
            "quota_day": at_ms / DAY_MS, "quota_used": 4,
            "calls": count(CALLS_WINDOW_MS), "denials": count(DENIALS_WINDOW_MS),
            "risk": {"steps": 1, "since_ms": at_ms, "denials": count(7_000), "window_ms": 7_000},
            "taint": {"agent": mark, "runs": [run]},
        })
    }

    #[test]
    fn every_time_in_the_future_becomes_now_once_and_what_was_counted_stays() {
        for (ahead_ms, repairs) in
            [(0, false), (CLOCK_TOLERANCE_MS, false), (30 * DAY_MS, true), (u64::MAX / 4, true)]
        {
            let before = state(1, NOW_MS + ahead_ms);
            let after = if repairs { state(2, NOW_MS) } else { before.clone() };
            let mut repaired: AgentState = serde_json::from_value(before).unwrap();
            assert_eq!(repaired.repair_clock(NOW_MS), repairs, "{ahead_ms}");
            assert_eq!(serde_json::to_value(&repaired).unwrap(), after, "{ahead_ms}");
            assert!(!repaired.repair_clock(NOW_MS), "{ahead_ms}: again");
        }
        let nothing = AgentState::default();
        assert!(!nothing.clone().repair_clock(0));
    }
}
