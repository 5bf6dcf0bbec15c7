//! What a lane decides about an agent by itself: its quarantine, and how far denials raise its risk
//! tier above the registered one.
//!
//! The agent's state in the lane's journal is the truth. D1 has copies for reading.

use serde::{Deserialize, Serialize};

use super::agent_state::{AgentState, QuarantinedBy};
use super::draft::Draft;
use super::risk_state::RiskLimits;
use super::row::{ContainmentDetail, ContainmentRow, LaneEvent};
use crate::decision::Decision;
use crate::policy::risk::RiskTier;
use crate::registry::TenantRecord;
use crate::taint::{Scope, TaintExplanation};

/// An agent's containment, for reading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Containment {
    pub quarantined: bool,
    /// Steps by which the registered risk tier is raised.
    pub risk_steps: u8,
    /// The taint of the agent's calls outside of assigned runs; `None` if these calls are not tainted.
    pub taint: Option<TaintExplanation>,
}

impl Containment {
    #[must_use]
    pub fn of(state: &AgentState, tenant: &TenantRecord, now_ms: u64) -> Self {
        Self {
            quarantined: state.quarantined,
            risk_steps: state.risk.steps(RiskLimits::of(Some(tenant)), now_ms),
            taint: state.taint.explain(Scope::Agent, tenant.taint_period_ms(), now_ms),
        }
    }
}

/// The agent's risk tier, as policies see it.
pub fn effective_tier(draft: &Draft<'_>, registered: RiskTier) -> RiskTier {
    let limits = RiskLimits::of(draft.facts.records.tenant.as_deref());
    registered.raised(draft.agent.risk.steps(limits, draft.facts.now_ms))
}

/// Applies a journalled decision to the agent's containment. Returns what the row says of it, or
/// `None` if nothing changed.
pub fn settle<'a>(
    draft: &mut Draft<'a>,
    decision: Option<Decision>,
    decision_id: &str,
) -> Option<ContainmentRow<'a>> {
    let (facts, now_ms) = (draft.facts, draft.facts.now_ms);
    let registered = facts.records.agent.as_ref()?.risk_tier;
    let limits = RiskLimits::of(facts.records.tenant.as_deref());
    let quarantines = decision == Some(Decision::Quarantine);
    let epoch = draft.epoch();
    let state = &mut draft.agent;
    let before = state.risk.stored_steps();
    state.risk.settle(limits, now_ms);
    if decision.is_some_and(Decision::denies) {
        state.risk.count_denial(limits, registered, now_ms);
    }
    if quarantines {
        state.quarantined = true;
        let decision_id = decision_id.to_owned();
        state.quarantined_by = Some(QuarantinedBy { decision_id, epoch });
    }
    let after = state.risk.stored_steps();
    if before == after && !quarantines {
        return None;
    }
    let (from, to) = (registered.raised(before), registered.raised(after));
    let event = match from.cmp(&to) {
        std::cmp::Ordering::Less => Some(LaneEvent::RiskTierRaised),
        std::cmp::Ordering::Greater => Some(LaneEvent::RiskTierLowered),
        std::cmp::Ordering::Equal => None,
    };
    Some(ContainmentRow {
        quarantined: state.quarantined,
        risk_steps: after,
        event: event.map(LaneEvent::as_str),
        source: &draft.command.call.agent,
        detail: event.map(|_| ContainmentDetail::RiskTier { from, to }),
    })
}
