//! What a lane remembers of one agent between its calls.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::risk_state::RiskState;
use super::taint_state::Taint;
use crate::bucket::Bucket;
use crate::clock::repair_time;
use crate::decision::ReasonCode;
use crate::json;
use crate::velocity::SlidingWindow;

/// The state of one agent. Every journal row of the agent has it, so the format is persisted. A
/// test pins it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Goes up with every change. Of two stored states, the one with the higher number is the
    /// newer.
    pub revision: u64,
    pub bucket: Option<Bucket>,
    /// Only a quarantine decision sets it, and only [`super::event::carry_out`] clears it.
    pub quarantined: bool,
    /// The last journalled denial because the agent was stopped.
    pub status_denial: Option<StatusDenial>,
    // The fields from here on are left out of a state that does not need them, to keep rows small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined_by: Option<QuarantinedBy>,
    #[serde(default, skip_serializing_if = "RiskState::is_default")]
    pub risk: RiskState,
    #[serde(default, skip_serializing_if = "Taint::is_default")]
    pub taint: Taint,
    /// The registry's epoch of the newest command that lifted the taint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub untainted_epoch: u64,
    /// How many approvals the agent asked for that are still open.
    #[serde(default, skip_serializing_if = "is_default")]
    pub open_approvals: u32,
    /// The windows of policies whose key is only the agent, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<(Rc<str>, SlidingWindow)>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The decision that quarantined an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedBy {
    pub decision_id: String,
    /// The registry's epoch at which it was decided.
    pub epoch: u64,
}

/// When a stopped agent's denial was last journalled, and with which reason code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusDenial {
    pub at_ms: u64,
    pub code: String,
}

impl AgentState {
    /// The state as it is stored.
    #[must_use]
    pub fn encode(&self) -> String {
        // Plain data always serializes. An empty state would be refused when it is read.
        json::to_string(self)
    }

    pub(super) fn window(&self, name: &str) -> Option<&SlidingWindow> {
        self.windows.iter().find(|(held, _)| **held == *name).map(|(_, window)| window)
    }

    /// The window of this name, which is empty if there was none.
    pub(super) fn window_mut(&mut self, name: &str) -> &mut SlidingWindow {
        let found = self.windows.iter().position(|(held, _)| **held == *name);
        if found.is_none() {
            self.windows.push((name.into(), SlidingWindow::default()));
        }
        let at = found.unwrap_or(self.windows.len() - 1);
        #[expect(clippy::indexing_slicing, reason = "found or pushed above")]
        &mut self.windows[at].1
    }

    /// Records that a denial of a stopped agent was journalled.
    pub(super) fn count_status_denial(&mut self, code: ReasonCode, now_ms: u64) {
        let code = code.code().to_owned();
        self.status_denial = Some(StatusDenial { at_ms: now_ms, code });
    }

    /// Moves every time that lies in the future to now. Returns whether there was one.
    pub(crate) fn repair_clock(&mut self, now_ms: u64) -> bool {
        let bucket = self.bucket.as_mut().is_some_and(|bucket| bucket.repair_clock(now_ms));
        let denial = self.status_denial.as_mut();
        let repairs = [
            bucket,
            denial.is_some_and(|denial| repair_time(&mut denial.at_ms, now_ms)),
            self.windows.iter_mut().fold(false, |any, (_, it)| it.repair_clock(now_ms) | any),
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
    use crate::clock::{CLOCK_TOLERANCE_MS, DAY_MS};

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
            "risk": {"steps": 1, "since_ms": at_ms, "denials": count(7_000), "window_ms": 7_000},
            "taint": {"agent": mark, "runs": [run]},
            "windows": [["calls", {"slots": [[at_ms, 4]]}]],
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
