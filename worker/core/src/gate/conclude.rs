//! Step 12: the decision becomes one row of the journal.
//!
//! INVARIANT (one row): one row holds the answer, the receipt and the agent's new state, so a
//! decision is written completely or not at all.

use sha2::{Digest as _, Sha256};

use super::approval::{self, StepContext};
use super::containment;
use super::draft::{Draft, PresentedApproval, scope, taint_period_ms};
use super::metrics::Noted;
use super::respond::{self, DEGRADED, DecidedBy, REGISTRY_UNCONFIRMED, ReplyReceipt};
use super::row::{ContainmentRow, DecisionDetail, JournalEntry, JournalRow, scoped_key};
use super::ruling::Ruling;
use super::step::{CountedEvent, Step};
use super::{limits, metrics, provenance, shield, velocity, warrant};
use crate::approval::{Approval, ApprovalEvent, ApprovalInput};
use crate::call::ToolCall;
use crate::call::command::Purpose;
use crate::decision::{Decision, ReasonCode};
use crate::id;
use crate::metrics::Series;
use crate::policy::PolicyEngine;
use crate::receipt::{self, BODY_VERSION, Body, ChainHead, DecisionBody, Obligations, ReceiptKind};
use crate::taint::TaintingCall;

/// What a journalled decision changes besides the agent's counters.
struct Effects<'a> {
    containment: Option<ContainmentRow<'a>>,
    /// The approval that the decision asks for, with the arguments that approvers read.
    asked: Option<(Approval, ApprovalInput)>,
    /// The approval that the call presented, as it is after the decision, and the step that it
    /// took.
    settled: Option<(Approval, ApprovalEvent)>,
}

impl Effects<'_> {
    /// The approval that the answer shows.
    fn approval<'a>(&'a self, draft: &Draft<'a>) -> Option<&'a Approval> {
        let asked = self.asked.as_ref().map(|(approval, _)| approval);
        let settled = self.settled.as_ref().map(|(approval, _)| approval);
        asked.or(settled).or_else(|| presented(draft))
    }
}

/// A receipt's canonical body and its hash.
struct Sealed {
    body: String,
    hash: String,
}

/// Ends a call that was ruled on: the answer, the row, and the agent's new state.
pub fn conclude(mut draft: Draft<'_>, engine: &PolicyEngine, ruling: &Ruling) -> Step {
    let decided_by = decided_by(engine, &draft);
    if draft.command.call.dry_run || ruling.counted_only {
        return unrecorded(draft, decided_by, ruling);
    }
    let decision_id = decision_id(&draft);
    let observation = provenance::of_call(&draft, ruling);
    let effects = update_state(&mut draft, engine, ruling, &decision_id);
    let resource = shield::stored_resource(engine, &draft);
    let sealed = seal_receipt(&draft, decided_by, ruling, &effects, &decision_id, &resource);
    let response = response(&draft, decided_by, ruling, &effects, &decision_id, &sealed.hash);
    let is_degraded = decided_by.degraded_cause.is_some();
    let (entry, approval_entry) =
        build_entries(&draft, is_degraded, ruling, effects, &decision_id, sealed, &response);
    let counted = is_degraded.then_some(CountedEvent::DecidedDegraded);
    let mut step = draft.answer(200, response, None, counted);
    step.entry = Some(entry);
    step.approval_entry = approval_entry;
    step.observation = observation;
    step
}

/// Ends a call whose decision is not journalled.
fn unrecorded(draft: Draft<'_>, decided_by: DecidedBy<'_>, ruling: &Ruling) -> Step {
    let (command, facts) = (draft.command, draft.facts);
    let id_ms = facts.now_ms.max(facts.latest_ms);
    let decision_id = id::decision_id(id_ms, command.lane, 0, &command.call.fingerprint);
    let approval = presented(&draft).map(|approval| (approval, facts.now_ms));
    let trust = draft.trust();
    let body = respond::response(
        command,
        (ruling, draft.shield.as_ref()),
        trust,
        decided_by,
        &decision_id,
        approval,
        None,
    );
    let counted = ruling.counted_only.then_some(match ruling.reason_code {
        ReasonCode::TenantRowsExhausted => CountedEvent::TenantRowsExhausted,
        ReasonCode::TenantBytesExhausted => CountedEvent::TenantBytesExhausted,
        _ => CountedEvent::StatusDenied,
    });
    draft.answer(200, body, None, counted)
}

/// Applies the decision to the agent's state.
fn update_state<'a>(
    draft: &mut Draft<'a>,
    engine: &PolicyEngine,
    ruling: &Ruling,
    decision_id: &str,
) -> Effects<'a> {
    // A request of a server to its client is not the agent's own call.
    let own = match draft.command.purpose {
        Purpose::Ask => None,
        _ => Some(ruling.decision),
    };
    if let Some(decision) = own {
        velocity::count(draft, engine, decision);
    }
    if ruling.denies_caller {
        draft.agent.count_status_denial(ruling.reason_code, draft.facts.now_ms);
    }
    taint(draft, ruling, decision_id);
    // An agent that uses a shared limit up must not raise the risk tiers of others.
    let is_own = ruling.violation.as_ref().is_none_or(|violation| !violation.shared);
    let containment = containment::settle(draft, own.filter(|_| is_own), decision_id);
    let asks = ruling.decision == Decision::RequireApproval
        && draft.presented == PresentedApproval::Nothing;
    let asked = asks.then(|| approval::ask(draft, ruling, decision_id));
    let settled = approval::update_presented(draft, ruling.decision, decision_id);
    Effects { containment, asked, settled }
}

/// `resource`: as it is stored. The action hash covers it as it was sent.
fn seal_receipt(
    draft: &Draft<'_>,
    decided_by: DecidedBy<'_>,
    ruling: &Ruling,
    effects: &Effects<'_>,
    decision_id: &str,
    resource: &str,
) -> Sealed {
    let (command, facts) = (draft.command, draft.facts);
    let call = &command.call;
    let approval = effects.approval(draft);
    let warrant = warrant::note(draft);
    let (body, hash) = receipt::seal(&Body::Decision(DecisionBody {
        action_hash: &hex::encode(draft.action_hash),
        agent: &call.agent,
        approval_id: approval.map_or("", |approval| &approval.approval_id),
        bundle: decided_by.bundle,
        decision: ruling.decision,
        decision_id,
        degraded_cause: decided_by.degraded_cause,
        engine_mode: decided_by.degraded_cause.map(|_| DEGRADED),
        epoch: draft.epoch(),
        key_id: &command.key_id,
        kind: ReceiptKind::Decision,
        lane: command.lane,
        matched_policies: &ruling.matched_policies,
        obligations: Obligations {
            approver_groups: &ruling.approver_groups,
            redact_fields: &ruling.redact_fields,
        },
        prev_hash: &facts.head.hash,
        provenance: ruling.provenance.as_deref(),
        reason_code: ruling.reason_code,
        resource,
        run: &call.run_id,
        seq: draft.seq(),
        server: &call.server,
        shield: draft.shield.as_ref(),
        taint: ruling.taint.as_deref(),
        tenant: &command.tenant,
        time: &id::rfc3339(facts.now_ms),
        tool: &call.tool,
        trust: draft.trust().effective,
        user: &call.user_id,
        version: BODY_VERSION,
        warrant: warrant.as_ref(),
    }));
    Sealed { body, hash }
}

/// The answer to a call whose decision is journalled.
fn response(
    draft: &Draft<'_>,
    decided_by: DecidedBy<'_>,
    ruling: &Ruling,
    effects: &Effects<'_>,
    decision_id: &str,
    receipt_hash: &str,
) -> String {
    let (command, facts) = (draft.command, draft.facts);
    let approval = effects.approval(draft).map(|approval| (approval, facts.now_ms));
    let receipt = ReplyReceipt::new(command.lane, draft.seq(), receipt_hash, &facts.head.hash);
    respond::response(
        command,
        (ruling, draft.shield.as_ref()),
        draft.trust(),
        decided_by,
        decision_id,
        approval,
        Some(receipt),
    )
}

/// The decision's entry, and that of the approval that the call presented.
fn build_entries(
    draft: &Draft<'_>,
    is_degraded: bool,
    ruling: &Ruling,
    effects: Effects<'_>,
    decision_id: &str,
    sealed: Sealed,
    response: &str,
) -> (JournalEntry, Option<JournalEntry>) {
    let call = &draft.command.call;
    let Effects { containment, asked, settled } = effects;
    let limits = limits::writes(draft, ruling.decision.passes(), decision_id);
    let noted = Noted {
        degraded: is_degraded,
        asks: asked.is_some(),
        reserves: limits.as_ref().is_some_and(|writes| writes.reservation.is_some()),
    };
    let detail = DecisionDetail {
        server: &call.server,
        tool: &call.tool,
        decision: ruling.decision,
        reason_code: ruling.reason_code,
        approval: asked.as_ref().map(|(approval, _)| approval),
        containment,
        taint: ruling.taint.as_deref(),
        counted: metrics::counted(draft),
    };
    let series = metrics::of_decision(draft, ruling, noted);
    let row = decision_row(draft, decision_id, detail, &sealed, response, &series);
    let scoped = |value: &Option<String>| {
        let value = value.as_ref().filter(|_| !ruling.denies_caller);
        value.map(|value| scoped_key(&call.agent, value))
    };
    let head = ChainHead { seq: draft.seq(), hash: sealed.hash };
    let approval_entry = settled.map(|settled| approval_entry(draft, &head, settled, decision_id));
    let entry = JournalEntry {
        agent: call.agent.clone(),
        state: draft.agent.encode(),
        request_key: scoped(&call.request_id),
        fingerprint: draft.command.fingerprint(),
        nonce_key: scoped(&warrant::used_proof(draft, ruling).or_else(|| call.nonce.clone())),
        row,
        head,
        approval: asked.map(|(_, input)| input),
        limits,
        windows: velocity::rows(draft, ruling.decision),
        gives_up: None,
    };
    (entry, approval_entry)
}

fn decision_row(
    draft: &Draft<'_>,
    decision_id: &str,
    detail: DecisionDetail<'_>,
    sealed: &Sealed,
    response: &str,
    metrics: &[Series<'_>],
) -> String {
    let row = JournalRow {
        kind: None,
        seq: draft.seq(),
        at_ms: draft.facts.now_ms,
        decision_id,
        agent: &draft.command.call.agent,
        detail,
        receipt_hash: &sealed.hash,
        prev_receipt_hash: &draft.facts.head.hash,
        response: Some(response),
        receipt: &sealed.body,
        metrics,
    };
    row.encode()
}

/// The entry of the step that the presented approval took. `head`: the chain's head after the decision.
fn approval_entry(
    draft: &Draft<'_>,
    head: &ChainHead,
    (approval, event): (Approval, ApprovalEvent),
    decision_id: &str,
) -> JournalEntry {
    let context = StepContext {
        tenant: &draft.command.tenant,
        lane: draft.command.lane,
        epoch: draft.epoch(),
        now_ms: draft.facts.now_ms,
        head,
        administrator: "",
        key_id: &draft.command.key_id,
        decision_id,
    };
    approval::entry(&context, &approval, ApprovalInput::default(), event, &draft.agent)
}

fn decided_by<'a>(engine: &PolicyEngine, draft: &Draft<'a>) -> DecidedBy<'a> {
    let confirmed = draft.facts.records.confirmed;
    DecidedBy {
        bundle: engine.bundle().digest,
        degraded_cause: (!confirmed).then_some(REGISTRY_UNCONFIRMED),
    }
}

/// The decision's id. A row and a receipt have the clock's time. An id never has an earlier time
/// than the one before, even if the clock was set back.
fn decision_id(draft: &Draft<'_>) -> String {
    let (command, facts) = (draft.command, draft.facts);
    let id_ms = facts.now_ms.max(facts.latest_ms);
    let salt = salt(&facts.head.hash, &command.call);
    id::decision_id(id_ms, command.lane, draft.seq(), &salt)
}

/// Bits for the decision id that no other tenant's lane and no other call has.
fn salt(previous: &str, call: &ToolCall) -> [u8; 32] {
    Sha256::new().chain_update(previous).chain_update(call.fingerprint).finalize().into()
}

/// The approval that the call presented, if it belongs to the agent.
fn presented<'a>(draft: &Draft<'a>) -> Option<&'a Approval> {
    draft.facts.approval.filter(|_| draft.presented != PresentedApproval::Nothing)
}

/// A call whose results strangers may have written taints its scope, and so does a request of that server
/// to its client.
fn taint(draft: &mut Draft<'_>, ruling: &Ruling, decision_id: &str) {
    if !ruling.decision.passes() || !draft.facts.records.is_untrusted() {
        return;
    }
    let (command, facts) = (draft.command, draft.facts);
    let (server, tool) = (&command.call.server, &command.call.tool);
    let call = TaintingCall {
        decision_id: decision_id.to_owned(),
        server: server.clone(),
        tool: tool.clone(),
    };
    let (scope, period_ms) = (scope(command, facts.records), taint_period_ms(facts.records));
    draft.agent.taint.add(scope, server, Some(call), period_ms, facts.now_ms);
}
