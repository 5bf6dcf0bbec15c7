//! Step 12: the decision becomes one row, and only that row makes it so.

use serde::Serialize;

use super::approval::{self, Occasion, Presented};
use super::containment::{self, ContainmentRow};
use super::outcome::{Decision, ReasonCode, Ruling};
use super::respond::{self, Engine, Receipt};
use super::taint::{TaintExplanation, TaintingCall};
use super::{
    AgentState, CALLS_WINDOW_MS, ChainHead, Counted, DEGRADED, DENIALS_WINDOW_MS, Draft,
    REGISTRY_UNCONFIRMED, Step, Stop,
};
use super::{meter, replay};
use crate::approval::{Approval, ApprovalInput};
use crate::command::Purpose;
use crate::config::Config;
use crate::id::{self, MAX_SEQ};
use crate::policy::PolicyEngine;
use crate::problem::{Problem, ProblemCode};
use crate::receipt::{self, BODY_VERSION, Body, DecisionBody, Obligations};

/// One row of the lane's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    pub head: ChainHead,
    pub agent: String,
    /// [`AgentState`] as JSON.
    pub state: String,
    /// Agent and request id; `None` when the call has none.
    pub request_key: Option<String>,
    pub fingerprint: String,
    /// Agent and nonce; `None` when the call has none.
    pub nonce_key: Option<String>,
    /// [`Row`] as JSON: what the flush copies to D1.
    pub row: String,
    /// What is kept of the call with the row's approval, if the row has one.
    pub approval: Option<ApprovalInput>,
}

impl JournalEntry {
    /// Of what happened to an agent and is no decision on a call.
    pub fn of_event(
        agent: &str,
        state: &AgentState,
        row: &impl Serialize,
        head: ChainHead,
    ) -> Self {
        Self {
            head,
            agent: agent.to_owned(),
            state: encode_state(state),
            request_key: None,
            fingerprint: String::new(),
            nonce_key: None,
            // Plain data always serializes; a row that were empty would fail the flush, not vanish.
            row: serde_json::to_string(row).unwrap_or_default(),
            approval: None,
        }
    }
}

/// What D1 gets to know. Persisted: the format is pinned by the flush statements.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    pub seq: u64,
    pub at_ms: u64,
    pub decision_id: &'a str,
    pub agent: &'a str,
    pub server: &'a str,
    pub tool: &'a str,
    pub decision: Decision,
    pub reason_code: &'a str,
    pub response: &'a str,
    pub receipt: &'a str,
    pub receipt_hash: &'a str,
    pub prev_receipt_hash: &'a str,
    /// Only where the decision asks for it.
    pub approval: Option<&'a Approval>,
    /// Only where it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containment: Option<ContainmentRow<'a>>,
    /// Only where taint caused the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taint: Option<&'a TaintExplanation>,
}

impl Row<'_> {
    #[must_use]
    pub fn encode(&self) -> String {
        // Plain data always serializes; a row that were empty would fail the flush, not vanish.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The key under which an agent's request id or nonce is stored. Names have no `/`.
#[must_use]
pub fn scoped_key(agent: &str, value: &str) -> String {
    format!("{agent}/{value}")
}

/// Whether the journal takes a decision like this: writes end at the soft bound, all at the hard.
pub fn admit(draft: &Draft<'_>, ruling: &Ruling) -> Result<(), Stop> {
    let facts = draft.facts;
    if draft.command.call.dry_run || ruling.counted_only {
        return Ok(());
    }
    // Of an unknown tool there is only the caller's word; the denial is a row like any other.
    let claim = draft.command.call.mutates_state;
    let writes = ruling.tool.as_ref().map_or(claim, |tool| tool.writes);
    let room = Room {
        config: facts.config,
        journal_rows: facts.journal_rows,
        storage_full: facts.storage_full,
    };
    if room.takes(facts.head, writes) { Ok(()) } else { Err(Stop::Problem(full(), None)) }
}

/// How much the journal holds.
#[derive(Clone, Copy)]
pub struct Room<'a> {
    pub config: &'a Config,
    /// Rows that wait to be flushed.
    pub journal_rows: u64,
    /// Whether the lane's storage is near its end.
    pub storage_full: bool,
}

impl Room<'_> {
    /// Whether there is room for one more row, of a call that writes or of anything else.
    pub fn takes(&self, head: &ChainHead, writes: bool) -> bool {
        let config = self.config;
        let most = if writes { config.journal_soft_rows } else { config.journal_hard_rows };
        !self.storage_full && head.seq < MAX_SEQ && self.journal_rows < most
    }

    /// Whether there is room for a row that ends an approval: it gives storage back, so it is taken
    /// though the storage is full.
    pub fn takes_end(&self, head: &ChainHead) -> bool {
        head.seq < MAX_SEQ && self.journal_rows < self.config.journal_hard_rows
    }
}

pub fn full() -> Problem {
    Problem::new(
        ProblemCode::JournalFull,
        "decisions wait to be written to D1; no more are taken until they are",
    )
}

/// The answer, the row, and the agent's new state.
pub fn conclude(mut draft: Draft<'_>, engine: &PolicyEngine, ruling: Ruling) -> Step {
    let (command, facts) = (draft.command, draft.facts);
    let call = &command.call;
    let trust = draft.trust();
    let bundle = engine.bundle().digest;
    let degraded_cause = (!facts.records.confirmed).then_some(REGISTRY_UNCONFIRMED);
    let decided_by = Engine { bundle, degraded_cause };
    // The row and the receipt say what the clock says. Ids never go back, as it may.
    let id_ms = facts.now_ms.max(facts.latest_ms);
    if call.dry_run || ruling.counted_only {
        let decision_id = id::decision_id(id_ms, command.lane, 0, &call.fingerprint);
        let known = facts.approval.filter(|_| draft.presented != Presented::Nothing);
        let known = known.map(|approval| (approval, facts.now_ms));
        let body = respond::response(call, &ruling, trust, decided_by, &decision_id, known, None);
        let rejection = ruling.counted_only.then_some(match ruling.reason_code {
            ReasonCode::TenantRowsExhausted => Counted::TenantRowsExhausted,
            ReasonCode::TenantBytesExhausted => Counted::TenantBytesExhausted,
            _ => Counted::StatusDenied,
        });
        return draft.answer(200, body, None, rejection);
    }

    let (seq, previous) = (facts.head.seq + 1, facts.head.hash.as_str());
    let decision_id = id::decision_id(id_ms, command.lane, seq, &salt(previous, call));
    // What a server asks is not the agent's doing.
    let counted = match command.purpose {
        Purpose::Ask => None,
        _ => Some(ruling.decision),
    };
    if let Some(decision) = counted {
        count(&mut draft, decision);
    }
    taint(&mut draft, &ruling, &decision_id);
    let containment = containment::settle(&mut draft, counted, &decision_id);
    let asks =
        ruling.decision == Decision::RequireApproval && draft.presented == Presented::Nothing;
    let asked = asks.then(|| approval::ask(&mut draft, &ruling, &decision_id, seq));
    let settled = approval::settle(&mut draft, ruling.decision, &decision_id);
    let known = asked.as_ref().map(|(approval, _)| approval);
    let known = known.or(settled.as_ref().map(|(approval, _)| approval));
    let known = known.or(facts.approval.filter(|_| draft.presented != Presented::Nothing));
    let action_hash = hex::encode(draft.action_hash);
    let epoch = facts.records.tenant.as_ref().map_or(0, |tenant| tenant.epoch);
    let (body, hash) = receipt::seal(&Body::Decision(DecisionBody {
        action_hash: &action_hash,
        agent: &call.agent,
        approval_id: known.map_or("", |approval| &approval.approval_id),
        bundle,
        decision: ruling.decision.as_str(),
        decision_id: &decision_id,
        degraded_cause,
        engine_mode: degraded_cause.map(|_| DEGRADED),
        epoch,
        key_id: &command.key_id,
        kind: receipt::DECISION_KIND,
        lane: command.lane,
        matched_policies: &ruling.matched_policies,
        obligations: Obligations {
            approver_groups: &ruling.approver_groups,
            redact_fields: &ruling.redact_fields,
        },
        prev_hash: previous,
        reason_code: ruling.reason_code.code(),
        resource: &call.resource,
        run: &call.run_id,
        seq,
        server: &call.server,
        taint: ruling.taint.as_deref(),
        tenant: &command.tenant,
        time: &id::rfc3339(facts.now_ms),
        tool: &call.tool,
        trust: trust.effective.as_str(),
        user: &call.user_id,
        version: BODY_VERSION,
    }));
    let receipt = Receipt::new(command.lane, seq, &hash, previous);
    let response = respond::response(
        call,
        &ruling,
        trust,
        decided_by,
        &decision_id,
        known.map(|approval| (approval, facts.now_ms)),
        Some(receipt),
    );
    let row = Row {
        seq,
        at_ms: facts.now_ms,
        decision_id: &decision_id,
        agent: &call.agent,
        server: &call.server,
        tool: &call.tool,
        decision: ruling.decision,
        reason_code: ruling.reason_code.code(),
        response: &response,
        receipt: &body,
        receipt_hash: &hash,
        prev_receipt_hash: previous,
        approval: asked.as_ref().map(|(approval, _)| approval),
        containment,
        taint: ruling.taint.as_deref(),
    };
    let bound = |value: &Option<String>| {
        let value = value.as_ref().filter(|_| ruling.binds_request);
        value.map(|value| scoped_key(&call.agent, value))
    };
    let head = ChainHead { seq, hash: hash.clone() };
    let approval_entry = settled.map(|(approval, event)| {
        let occasion = Occasion {
            tenant: &command.tenant,
            lane: command.lane,
            epoch,
            now_ms: facts.now_ms,
            head: &head,
            administrator: "",
            key_id: &command.key_id,
            decision_id: &decision_id,
        };
        approval::entry(&occasion, &approval, ApprovalInput::default(), event, &draft.agent)
    });
    let entry = JournalEntry {
        agent: call.agent.clone(),
        state: encode_state(&draft.agent),
        request_key: bound(&call.request_id),
        fingerprint: replay::fingerprint(command),
        nonce_key: bound(&call.nonce),
        row: row.encode(),
        head,
        approval: asked.map(|(_, input)| input),
    };
    let counted = degraded_cause.map(|_| Counted::DecidedDegraded);
    let mut step = draft.answer(200, response, None, counted);
    step.entry = Some(entry);
    step.approval_entry = approval_entry;
    step
}

/// What the decision does to the agent's counters.
fn count(draft: &mut Draft<'_>, decision: Decision) {
    let now_ms = draft.facts.now_ms;
    draft.agent.calls.add(now_ms, CALLS_WINDOW_MS);
    match decision {
        Decision::Allow | Decision::Redact => meter::commit_quota(draft),
        Decision::RequireApproval => {}
        Decision::Deny | Decision::Quarantine => {
            draft.agent.denials.add(now_ms, DENIALS_WINDOW_MS);
        }
    }
}

/// A call that may reach an untrusted server taints: so does what that server asks of its client.
fn taint(draft: &mut Draft<'_>, ruling: &Ruling, decision_id: &str) {
    let untrusted = ruling.tool.as_ref().is_some_and(|tool| tool.server.is_untrusted());
    if ruling.decision.passes() && untrusted {
        let (command, facts) = (draft.command, draft.facts);
        let scope = super::scope(command, facts.records);
        let period_ms = super::taint_period_ms(facts.records);
        let (server, tool) = (&command.call.server, &command.call.tool);
        let call = TaintingCall {
            decision_id: decision_id.to_owned(),
            server: server.clone(),
            tool: tool.clone(),
        };
        draft.agent.taint.add(scope, server, Some(call), period_ms, facts.now_ms);
    }
}

/// Bits for the decision id that neither another tenant's lane nor another call will have.
fn salt(previous: &str, call: &crate::call::ToolCall) -> [u8; 32] {
    use sha2::{Digest as _, Sha256};
    Sha256::new().chain_update(previous).chain_update(call.fingerprint).finalize().into()
}

/// The stored form of an agent's state.
#[must_use]
pub fn encode_state(state: &AgentState) -> String {
    // Plain data always serializes; an empty state would be refused when read.
    serde_json::to_string(state).unwrap_or_default()
}
