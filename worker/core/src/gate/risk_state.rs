//! How far an agent's denials raise its risk tier above the registered one.

use serde::{Deserialize, Serialize};

use crate::bucket::SlidingCount;
use crate::clock::repair_time;
use crate::policy::risk::RiskTier;
use crate::registry::TenantRecord;

/// Denials in a window that do not raise the tier. An agent that tries ten forbidden calls ten
/// times each stays below.
pub const DEFAULT_RISK_DENIALS: u32 = 100;
/// The same window as that of the policies' own count of denials.
pub const DEFAULT_RISK_WINDOW_S: u32 = 600;
/// Longer than the pauses of an agent that keeps trying. Short enough that one bad hour does not
/// cost a day's work.
pub const DEFAULT_RISK_QUIET_S: u32 = 3_600;

/// A tenant's limits for raising and lowering risk tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RiskLimits {
    /// More denials than this in the window raise the tier by a step.
    denials: u32,
    window_ms: u64,
    /// Each period of this length without a denial lowers the tier by a step.
    quiet_ms: u64,
}

impl RiskLimits {
    /// The tenant's values, with defaults for those that it has not set.
    #[must_use]
    pub fn new(denials: Option<u32>, window_s: Option<u32>, quiet_s: Option<u32>) -> Self {
        let ms = |seconds: u32| u64::from(seconds.max(1)) * 1_000;
        Self {
            denials: denials.unwrap_or(DEFAULT_RISK_DENIALS),
            window_ms: ms(window_s.unwrap_or(DEFAULT_RISK_WINDOW_S)),
            quiet_ms: ms(quiet_s.unwrap_or(DEFAULT_RISK_QUIET_S)),
        }
    }

    #[must_use]
    pub fn of(tenant: Option<&TenantRecord>) -> Self {
        match tenant {
            Some(tenant) => {
                let limits = &tenant.settings;
                Self::new(limits.risk_denials, limits.risk_window_s, limits.risk_quiet_s)
            }
            None => Self::new(None, None, None),
        }
    }
}

/// How far an agent's tier is raised. Only journalled decisions change it, so every change has an
/// audit event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RiskState {
    /// Steps above the registered tier, as of `since_ms`.
    steps: u8,
    /// The time of the last denial, or of the last step down.
    since_ms: u64,
    /// Denials since the last step up.
    denials: SlidingCount,
    /// The window that `denials` counts in. If the tenant sets another one, the count starts again.
    window_ms: u64,
}

impl RiskState {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The steps that remain at `now_ms`.
    #[must_use]
    pub fn steps(&self, limits: RiskLimits, now_ms: u64) -> u8 {
        let quiet = now_ms.saturating_sub(self.since_ms) / limits.quiet_ms;
        self.steps.saturating_sub(u8::try_from(quiet).unwrap_or(u8::MAX))
    }

    /// The steps when the state was last journalled. D1 has the same.
    pub(super) fn stored_steps(&self) -> u8 {
        self.steps
    }

    /// If the last denial lies in the future, the quiet period starts now.
    pub(super) fn repair_clock(&mut self, now_ms: u64) -> bool {
        // The window is 0 before the first denial.
        repair_time(&mut self.since_ms, now_ms)
            | (self.window_ms > 0 && self.denials.repair_clock(now_ms, self.window_ms))
    }

    /// Brings the state to `now_ms`. A state that holds nothing any more becomes the default, which
    /// takes no bytes of a row.
    pub(super) fn settle(&mut self, limits: RiskLimits, now_ms: u64) {
        let steps = self.steps(limits, now_ms);
        let lowered = u64::from(self.steps.saturating_sub(steps));
        self.since_ms = self.since_ms.saturating_add(lowered.saturating_mul(limits.quiet_ms));
        self.steps = steps;
        if self.window_ms != limits.window_ms {
            (self.denials, self.window_ms) = (SlidingCount::default(), limits.window_ms);
        }
        if steps == 0 && self.denials.count(now_ms, limits.window_ms) == 0 {
            *self = Self::default();
        }
    }

    /// Adds a denial. Call [`RiskState::settle`] first.
    pub(super) fn count_denial(&mut self, limits: RiskLimits, registered: RiskTier, now_ms: u64) {
        self.window_ms = limits.window_ms;
        self.denials.add(now_ms, limits.window_ms);
        self.since_ms = self.since_ms.max(now_ms);
        if self.denials.count(now_ms, limits.window_ms) > limits.denials {
            self.denials = SlidingCount::default();
            // A step beyond the highest tier would only make the way back longer.
            if registered.raised(self.steps) < RiskTier::High {
                self.steps += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: RiskLimits = RiskLimits { denials: 2, window_ms: 10_000, quiet_ms: 60_000 };
    const START_MS: u64 = 1_000_000_000;

    /// The state after denials at these times.
    fn after(registered: RiskTier, times: &[u64]) -> RiskState {
        let mut state = RiskState::default();
        for at in times {
            state.settle(LIMITS, START_MS + at);
            state.count_denial(LIMITS, registered, START_MS + at);
        }
        state
    }

    #[test]
    fn more_denials_than_the_limit_in_a_window_raise_by_a_step_and_the_count_begins_anew() {
        for (registered, times, steps) in [
            (RiskTier::Low, &[0, 1][..], 0),
            (RiskTier::Low, &[0, 1, 2], 1),
            (RiskTier::Low, &[0, 1, 2, 3, 4], 1),
            (RiskTier::Low, &[0, 1, 2, 3, 4, 5], 2),
            (RiskTier::Low, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 2),
            (RiskTier::Medium, &[0, 1, 2, 3, 4, 5], 1),
            (RiskTier::High, &[0, 1, 2, 3, 4, 5], 0),
            (RiskTier::Low, &[0, 15_000, 30_000, 45_000], 0),
        ] {
            assert_eq!(after(registered, times).steps, steps, "{registered:?} {times:?}");
        }
    }

    #[test]
    fn each_quiet_period_lowers_by_a_step_and_a_denial_begins_it_anew() {
        let raised = after(RiskTier::Low, &[0, 1, 2, 3, 4, 5]);
        for (later_ms, steps) in
            [(0, 2), (60_004, 2), (60_005, 1), (120_004, 1), (120_005, 0), (9_999_999, 0)]
        {
            let mut settled = raised;
            assert_eq!(raised.steps(LIMITS, START_MS + later_ms), steps, "{later_ms}");
            settled.settle(LIMITS, START_MS + later_ms);
            assert_eq!(settled.steps, steps, "{later_ms}");
            // Reading does not start a period again, and a state that holds nothing is the default.
            assert_eq!(settled.steps(LIMITS, START_MS + 120_005), 0, "{later_ms}");
            assert_eq!(settled.is_default(), steps == 0, "{later_ms}");
        }
        let denied_again = after(RiskTier::Low, &[0, 1, 2, 3, 4, 5, 50_000]);
        assert_eq!(denied_again.steps(LIMITS, START_MS + 109_999), 2);
        assert_eq!(denied_again.steps(LIMITS, START_MS + 110_000), 1);
    }

    #[test]
    fn a_window_of_another_width_begins_a_count_of_its_own() {
        let mut state = after(RiskTier::Low, &[0, 1]);
        let wider = RiskLimits { window_ms: 1_000_000, ..LIMITS };
        state.settle(wider, START_MS + 2);
        state.count_denial(wider, RiskTier::Low, START_MS + 2);
        assert_eq!((state.steps, state.denials.count(START_MS + 2, wider.window_ms)), (0, 1));
    }
}
