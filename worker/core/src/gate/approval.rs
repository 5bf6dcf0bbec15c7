//! The approval's part of a decision, and the steps of an approval itself. Each step is a row of
//! the lane's journal.
//!
//! INVARIANT (used with its decision): one statement writes the row that lets an approved call pass
//! and the row that uses the approval up. So neither exists without the other.

use serde::Serialize;

use super::agent_state::AgentState;
use super::draft::{Draft, PresentedApproval};
use super::facts::EventFacts;
use super::metrics;
use super::row::{Event, JournalEntry};
use super::ruling::Ruling;
use super::space;
use crate::approval::{
    Approval, ApprovalEvent, ApprovalInput, ApprovalStatus, ApprovalWarrant, ApproverGroup,
    CHANGE_APPROVAL_S, ChangeCommand, DEFAULT_APPROVAL_S, DecideCommand, Decided,
    MAX_APPROVAL_INPUT_BYTES, MAX_OPEN_APPROVALS, REGISTRY, REGISTRY_SERVER,
};
use crate::decision::{Decision, ReasonCode};
use crate::id;
use crate::problem::{Problem, ProblemCode};
use crate::receipt::{ApprovalBody, BODY_VERSION, Body, ChainHead, ReceiptKind};
use crate::trust::SourceTrust;

/// The members of the row of an approval's step.
#[derive(Debug, Serialize)]
struct StepDetail<'a> {
    event: ApprovalEvent,
    /// Who caused the step: an administrator, the agent, or the lane's clock.
    source: &'a str,
    detail: Detail<'a>,
    approval: &'a Approval,
}

#[derive(Debug, Serialize)]
struct Detail<'a> {
    approval_id: &'a str,
    status: ApprovalStatus,
    action_hash: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    comment: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tampering: Option<u8>,
}

/// The source of an expiry. Nobody can have this name.
const CLOCK: &str = "_clock";

/// When and where a step happens, and who caused it.
pub struct StepContext<'a> {
    pub tenant: &'a str,
    pub lane: u16,
    pub epoch: u64,
    pub now_ms: u64,
    pub head: &'a ChainHead,
    /// The administrator who decided; empty if no administrator did.
    pub administrator: &'a str,
    /// The id of the credential that was used; empty if none was.
    pub key_id: &'a str,
    /// The decision that the step belongs to.
    pub decision_id: &'a str,
}

/// Step 7: finds out whether the call's `approval_id` is usable for this call, and if not, why.
pub fn check_presented(draft: &mut Draft<'_>) -> Result<(), ReasonCode> {
    let call = &draft.command.call;
    if call.approval_id.is_none() {
        return Ok(());
    }
    let Some(approval) = draft.facts.approval.filter(|approval| approval.agent == call.agent)
    else {
        return Err(ReasonCode::ApprovalUnknown);
    };
    let hash = hex::encode(draft.action_hash);
    let (presented, refused) = match approval.status_at(draft.facts.now_ms) {
        ApprovalStatus::Rejected => {
            (PresentedApproval::Useless, Some(ReasonCode::ApprovalRejected))
        }
        ApprovalStatus::Cancelled => {
            (PresentedApproval::Useless, Some(ReasonCode::ApprovalCancelled))
        }
        ApprovalStatus::Expired => (PresentedApproval::Useless, Some(ReasonCode::ApprovalExpired)),
        ApprovalStatus::Used => (PresentedApproval::Useless, Some(ReasonCode::ApprovalUsed)),
        _ if approval.valid_hash() != hash => {
            // A caller that repeats the call as it was before an edit does not tamper.
            let asked = approval.action_hash == hash;
            let presented =
                if asked { PresentedApproval::Useless } else { PresentedApproval::Tampered };
            (presented, Some(ReasonCode::ApprovalMismatch))
        }
        ApprovalStatus::Pending => (PresentedApproval::Pending, None),
        ApprovalStatus::Approved => (PresentedApproval::Granted, None),
    };
    draft.presented = presented;
    refused.map_or(Ok(()), Err)
}

/// An unusable approval overrides the policy decision, except for a canary tool: no `approval_id`
/// may prevent its quarantine.
pub fn deny_if_unusable(refused: Option<ReasonCode>, ruling: Ruling) -> Ruling {
    match refused {
        Some(code) if ruling.decision != Decision::Quarantine => {
            Ruling { tool: ruling.tool, ..Ruling::deny(code) }
        }
        _ => ruling,
    }
}

/// The approval that allows a call that policies hold back.
pub fn granted<'a>(draft: &Draft<'a>) -> Option<&'a Approval> {
    draft.facts.approval.filter(|_| draft.presented == PresentedApproval::Granted)
}

/// After step 11: denies a call that needs approval and cannot wait for one. A call whose approval is still pending
/// keeps waiting for that one.
pub fn deny_if_it_cannot_wait(draft: &Draft<'_>, mut ruling: Ruling) -> Ruling {
    if ruling.decision != Decision::RequireApproval {
        return ruling;
    }
    let refused = if draft.command.answers().is_some() {
        // An approval is for the arguments alone: with answers beside them, no call can use it.
        ReasonCode::ApprovalCoversNoAnswers
    } else if draft.presented == PresentedApproval::Pending {
        // The approval that the call presented stays open.
        ruling.reason_code = ReasonCode::ApprovalPending;
        ReasonCode::ApprovalPending.sentence().clone_into(&mut ruling.reason);
        return ruling;
    } else if draft.agent.open_approvals >= MAX_OPEN_APPROVALS {
        ReasonCode::ApprovalsExhausted
    } else if draft.command.call.input.canonical().len() > MAX_APPROVAL_INPUT_BYTES {
        ReasonCode::ApprovalInputTooLarge
    } else {
        return ruling;
    };
    let Ruling { matched_policies, tool, taint, provenance, .. } = ruling;
    Ruling { matched_policies, tool, taint, provenance, ..Ruling::deny(refused) }
}

/// The approval that a `require_approval` decision creates, and the arguments that approvers read.
pub fn ask(draft: &mut Draft<'_>, ruling: &Ruling, decision_id: &str) -> (Approval, ApprovalInput) {
    let (command, now_ms) = (draft.command, draft.facts.now_ms);
    let call = &command.call;
    let own = draft.facts.records.tool.as_ref().and_then(|tool| tool.approval_ttl_s);
    let open_ms = u64::from(own.unwrap_or(DEFAULT_APPROVAL_S)) * 1_000;
    draft.agent.open_approvals = draft.agent.open_approvals.saturating_add(1);
    let approval = Approval {
        approval_id: id::approval_id(command.lane, draft.seq()),
        decision_id: decision_id.to_owned(),
        agent: call.agent.clone(),
        server: call.server.clone(),
        tool: call.tool.clone(),
        resource: call.resource.clone(),
        user_id: call.user_id.clone(),
        run_id: call.run_id.clone(),
        assigned: draft.facts.records.is_harness(),
        session: command.session.clone(),
        route: call.route.clone(),
        source_trust: draft.trust().effective,
        taint: ruling.taint.as_deref().cloned(),
        provenance: ruling.provenance.as_deref().cloned(),
        warrant: draft
            .warranted
            .map(|claim| ApprovalWarrant { id: claim.id(), holder: claim.holder.to_string() }),
        reason: ruling.reason.clone(),
        matched_policies: ruling.matched_policies.clone(),
        status: ApprovalStatus::Pending,
        revision: 1,
        approver_groups: ruling.approver_groups.clone(),
        action_hash: hex::encode(draft.action_hash),
        edited_action_hash: None,
        edited_by: None,
        approvers: Vec::new(),
        closed_by: None,
        comment: None,
        tampering: 0,
        used_by: None,
        created_at_ms: now_ms,
        expires_at_ms: now_ms.saturating_add(open_ms),
        approved_at_ms: None,
        closed_at_ms: None,
    };
    (approval, ApprovalInput { asked: Some(call.input.canonical()), edited: None })
}

/// Updates the approval that the call presented. Returns it with the step that was taken.
pub fn update_presented(
    draft: &mut Draft<'_>,
    decision: Decision,
    decision_id: &str,
) -> Option<(Approval, ApprovalEvent)> {
    let now_ms = draft.facts.now_ms;
    let mut approval = draft.facts.approval?.clone();
    let event = match draft.presented {
        PresentedApproval::Granted if decision.passes() => approval.use_up(decision_id, now_ms),
        PresentedApproval::Tampered => approval.note_tampering(now_ms),
        _ => return None,
    };
    count_closed(&mut draft.agent, &approval);
    Some((approval, event))
}

/// A closed approval no longer counts against the agent's open approvals.
fn count_closed(state: &mut AgentState, approval: &Approval) {
    if approval.closed_at_ms.is_some() {
        state.open_approvals = state.open_approvals.saturating_sub(1);
    }
}

/// The journal row of a step. `state` is the agent's state after it.
pub fn entry(
    context: &StepContext<'_>,
    approval: &Approval,
    input: ApprovalInput,
    event: ApprovalEvent,
    state: &AgentState,
) -> JournalEntry {
    let decision_id = context.decision_id;
    let agent = approval.agent.as_str();
    let step = Event { head: context.head, at_ms: context.now_ms, agent, state, decision_id };
    let body = Body::Approval(ApprovalBody {
        action_hash: approval.valid_hash(),
        administrator: context.administrator,
        agent,
        approval_id: &approval.approval_id,
        change: event,
        decision_id,
        epoch: context.epoch,
        key_id: context.key_id,
        kind: ReceiptKind::Approval,
        lane: context.lane,
        prev_hash: &context.head.hash,
        seq: step.seq(),
        status: approval.status,
        tenant: context.tenant,
        time: &step.time(),
        version: BODY_VERSION,
    });
    let decided = !context.administrator.is_empty();
    let detail = StepDetail {
        event,
        source: match event {
            _ if decided => context.administrator,
            ApprovalEvent::Expired => CLOCK,
            _ => agent,
        },
        detail: Detail {
            approval_id: &approval.approval_id,
            status: approval.status,
            action_hash: approval.valid_hash(),
            comment: approval.comment.as_deref().filter(|_| decided),
            tampering: (event == ApprovalEvent::Tampered).then_some(approval.tampering),
        },
        approval,
    };
    let metrics = metrics::of_approval(approval, event, context.now_ms);
    JournalEntry { approval: Some(input), ..step.entry(&body, detail, &metrics) }
}

/// Applies an administrator's decision to the approval. Returns the row and the agent's new state,
/// or `None` if nothing changed.
pub fn decide(
    facts: &EventFacts<'_>,
    approval: &mut Approval,
    input: &mut ApprovalInput,
    command: &DecideCommand,
) -> Result<Option<(JournalEntry, AgentState)>, Problem> {
    let Decided::Step(event) = approval.decide(input, command, facts.now_ms)? else {
        return Ok(None);
    };
    let fits = match approval.closed_at_ms {
        Some(_) => facts.space.has_space_for_closing_row(facts.head),
        None => facts.space.has_space_for_row(facts.head, false),
    };
    if !fits {
        return Err(space::full());
    }
    let decision_id = approval.decision_id.clone();
    let context = StepContext {
        tenant: &command.tenant,
        lane: command.lane,
        epoch: command.epoch,
        now_ms: facts.now_ms,
        head: facts.head,
        administrator: &command.administrator,
        key_id: &command.key_id,
        decision_id: &decision_id,
    };
    Ok(Some(step(facts, &context, approval, input.clone(), event)))
}

/// The row of an approval that has expired; `None` if the journal is full.
pub fn expire(
    facts: &EventFacts<'_>,
    (tenant, lane): (&str, u16),
    approval: &mut Approval,
) -> Option<(JournalEntry, AgentState)> {
    if !facts.space.has_space_for_closing_row(facts.head) {
        return None;
    }
    let event = approval.expire(facts.now_ms);
    let decision_id = approval.decision_id.clone();
    let context = StepContext {
        tenant,
        lane,
        epoch: 0,
        now_ms: facts.now_ms,
        head: facts.head,
        administrator: "",
        key_id: "",
        decision_id: &decision_id,
    };
    Some(step(facts, &context, approval, ApprovalInput::default(), event))
}

/// A change of the registry that needs an approval.
pub struct RegistryChange<'a> {
    pub event: &'a str,
    pub resource: &'a str,
    pub input: &'a str,
    pub groups: &'a [ApproverGroup],
}

/// The row of the approval that a registry change waits for, and the state after it.
pub fn ask_change(
    facts: &EventFacts<'_>,
    command: &ChangeCommand,
    change: &RegistryChange<'_>,
) -> Result<(String, JournalEntry, AgentState), Problem> {
    if facts.state.open_approvals >= MAX_OPEN_APPROVALS {
        let detail = format!(
            "{MAX_OPEN_APPROVALS} changes, the limit, wait for approval: have some approved or cancelled"
        );
        return Err(Problem::new(ProblemCode::LimitReached, detail));
    }
    facts.check_space()?;
    let now_ms = facts.now_ms;
    let approval = Approval {
        approval_id: id::approval_id(command.lane, facts.head.seq + 1),
        decision_id: String::new(),
        agent: REGISTRY.to_owned(),
        server: REGISTRY_SERVER.to_owned(),
        tool: change.event.to_owned(),
        resource: change.resource.to_owned(),
        user_id: command.administrator.clone(),
        run_id: String::new(),
        assigned: false,
        session: None,
        route: None,
        source_trust: SourceTrust::Unknown,
        taint: None,
        provenance: None,
        warrant: None,
        reason: "It changes who can approve for a protected group.".to_owned(),
        matched_policies: Vec::new(),
        status: ApprovalStatus::Pending,
        revision: 1,
        approver_groups: change.groups.to_vec(),
        action_hash: command.action_hash.clone(),
        edited_action_hash: None,
        edited_by: None,
        approvers: Vec::new(),
        closed_by: None,
        comment: None,
        tampering: 0,
        used_by: None,
        created_at_ms: now_ms,
        expires_at_ms: now_ms.saturating_add(u64::from(CHANGE_APPROVAL_S) * 1_000),
        approved_at_ms: None,
        closed_at_ms: None,
    };
    let open_approvals = facts.state.open_approvals + 1;
    let state = AgentState { open_approvals, ..facts.state.clone() };
    let facts = &EventFacts { state: &state, ..*facts };
    let input = ApprovalInput { asked: Some(change.input.to_owned()), edited: None };
    let context = change_context(facts, command);
    let (entry, state) = step(facts, &context, &approval, input, ApprovalEvent::Requested);
    Ok((approval.approval_id, entry, state))
}

/// The row that uses up the approval of a registry change, and the state after it.
pub fn use_change(
    facts: &EventFacts<'_>,
    approval: &mut Approval,
    command: &ChangeCommand,
    request_id: &str,
) -> Result<(JournalEntry, AgentState), Problem> {
    approval.lets_change(&command.action_hash, facts.now_ms)?;
    if !facts.space.has_space_for_closing_row(facts.head) {
        return Err(space::full());
    }
    let event = approval.use_up(request_id, facts.now_ms);
    let context = change_context(facts, command);
    Ok(step(facts, &context, approval, ApprovalInput::default(), event))
}

/// No decision belongs to a step of a registry change.
fn change_context<'a>(facts: &EventFacts<'a>, command: &'a ChangeCommand) -> StepContext<'a> {
    StepContext {
        tenant: &command.tenant,
        lane: command.lane,
        epoch: command.epoch,
        now_ms: facts.now_ms,
        head: facts.head,
        administrator: &command.administrator,
        key_id: &command.key_id,
        decision_id: "",
    }
}

fn step(
    facts: &EventFacts<'_>,
    context: &StepContext<'_>,
    approval: &Approval,
    input: ApprovalInput,
    event: ApprovalEvent,
) -> (JournalEntry, AgentState) {
    let mut state = AgentState { revision: facts.state.revision + 1, ..facts.state.clone() };
    count_closed(&mut state, approval);
    (entry(context, approval, input, event, &state), state)
}
