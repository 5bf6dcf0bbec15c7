//! What happens to an agent in its lane and is no decision on a call: an administrator restores or
//! untaints it, or text of an untrusted server that answers no call taints it. Each is one journal
//! row, with a receipt of the kind `registry` and an audit event.
//!
//! What administrators did to the agent in the registry itself stays there.

use serde::{Deserialize, Serialize};

use super::containment::{ContainmentDetail, ContainmentRow};
use super::journal::{self, JournalEntry, Room};
use super::taint::{Scope, Taint};
use super::{AgentState, ChainHead};
use crate::id;
use crate::problem::Problem;
use crate::receipt::{self, BODY_VERSION, Body, RegistryBody};

/// What an administrator has the lane do about an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneAction {
    /// Lift the lane's own quarantine.
    Restore,
    /// Lift the taint of the agent and of all its runs.
    Untaint,
}

/// An administrator's command about one agent. The worker has checked the credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    pub tenant: String,
    pub lane: u16,
    pub agent: String,
    pub action: LaneAction,
    /// The administrator's name.
    pub administrator: String,
    /// The epoch that the command gave the tenant. A caller that got no answer repeats a command
    /// with the same epoch: then it lifts nothing that came after it.
    pub epoch: u64,
}

/// Text of an untrusted server that is about to reach an agent and answers no decided call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaintCommand {
    pub tenant: String,
    pub lane: u16,
    pub agent: String,
    pub server: String,
    /// The run, if a harness assigned it.
    pub run: Option<String>,
    /// How long the mark lasts.
    pub period_ms: u64,
}

/// The row as D1 gets it. Persisted: the flush statements pin the format.
#[derive(Debug, Serialize)]
struct Row<'a> {
    kind: &'static str,
    seq: u64,
    at_ms: u64,
    /// The decision that the event undoes; empty when there is none.
    decision_id: &'a str,
    agent: &'a str,
    receipt: &'a str,
    receipt_hash: &'a str,
    prev_receipt_hash: &'a str,
    containment: ContainmentRow<'a>,
}

/// What happened; the receipt and the audit name it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, utoipa::ToSchema)]
pub enum AgentEvent {
    /// The lane lifted its own quarantine.
    #[schema(rename = "agent_restored")]
    Restored,
    /// The taint of the agent and of all its runs was lifted.
    #[schema(rename = "agent_untainted")]
    Untainted,
    /// Text of an untrusted server that answers no call tainted the agent.
    #[schema(rename = "agent_tainted")]
    Tainted,
}

impl AgentEvent {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "agent_restored",
            Self::Untainted => "agent_untainted",
            Self::Tainted => "agent_tainted",
        }
    }
}

/// One event, before it has a row.
struct Event<'a> {
    tenant: &'a str,
    lane: u16,
    agent: &'a str,
    event: AgentEvent,
    /// The administrator; empty when no person caused it.
    administrator: &'a str,
    /// Who caused it: the administrator, or the server.
    source: &'a str,
    decision_id: &'a str,
    epoch: u64,
    detail: ContainmentDetail<'a>,
}

/// Carries out an administrator's command: the row and the agent's new state. `None` when there is
/// nothing to lift, or when the quarantine came after the command.
///
/// # Errors
///
/// `journal_full`.
pub fn carry_out(
    room: &Room<'_>,
    head: &ChainHead,
    state: &AgentState,
    command: &AgentCommand,
    now_ms: u64,
) -> Result<Option<(JournalEntry, AgentState)>, Problem> {
    let by = state.quarantined_by.as_ref();
    let mut next = AgentState { revision: state.revision + 1, ..state.clone() };
    let decision_id = by.map_or("", |by| by.decision_id.as_str());
    let (event, decision_id, detail) = match command.action {
        LaneAction::Restore => {
            if !state.quarantined || by.is_some_and(|by| by.epoch >= command.epoch) {
                return Ok(None);
            }
            next.quarantined = false;
            next.quarantined_by = None;
            // The first denial of a later quarantine is journalled again.
            next.status_denial = None;
            (AgentEvent::Restored, decision_id, ContainmentDetail::Restored { decision_id })
        }
        LaneAction::Untaint => {
            // A command that is repeated lifts nothing that came after it. So it is written down also
            // if there is nothing to lift.
            if command.epoch <= state.untainted_epoch {
                return Ok(None);
            }
            next.taint = Taint::default();
            next.untainted_epoch = command.epoch;
            (AgentEvent::Untainted, "", ContainmentDetail::Untainted { untainted: true })
        }
    };
    let event = Event {
        tenant: &command.tenant,
        lane: command.lane,
        agent: &command.agent,
        event,
        administrator: &command.administrator,
        source: &command.administrator,
        decision_id,
        epoch: command.epoch,
        detail,
    };
    let entry = row(room, head, &next, event, now_ms)?;
    Ok(Some((entry, next)))
}

/// Marks the agent, or the run that a harness assigned. `None` when a mark of this server is so young
/// that another row would say nothing new.
///
/// # Errors
///
/// `journal_full`: then the text must not reach the agent.
pub fn taint(
    room: &Room<'_>,
    head: &ChainHead,
    state: &AgentState,
    command: &TaintCommand,
    now_ms: u64,
) -> Result<Option<(JournalEntry, AgentState)>, Problem> {
    let scope = command.run.as_deref().map_or(Scope::Agent, Scope::Run);
    let server = command.server.as_str();
    if state.taint.is_fresh(scope, server, command.period_ms, now_ms) {
        return Ok(None);
    }
    let mut next = AgentState { revision: state.revision + 1, ..state.clone() };
    next.taint.add(scope, server, None, command.period_ms, now_ms);
    let event = Event {
        tenant: &command.tenant,
        lane: command.lane,
        agent: &command.agent,
        event: AgentEvent::Tainted,
        administrator: "",
        source: server,
        decision_id: "",
        epoch: 0,
        detail: ContainmentDetail::Tainted { server },
    };
    let entry = row(room, head, &next, event, now_ms)?;
    Ok(Some((entry, next)))
}

fn row(
    room: &Room<'_>,
    head: &ChainHead,
    next: &AgentState,
    event: Event<'_>,
    now_ms: u64,
) -> Result<JournalEntry, Problem> {
    // The row takes as much room as a read's.
    if !room.takes(head, false) {
        return Err(journal::full());
    }
    let seq = head.seq + 1;
    let (body, hash) = receipt::seal(&Body::Registry(RegistryBody {
        administrator: event.administrator,
        agent: event.agent,
        change: event.event.as_str(),
        decision_id: event.decision_id,
        epoch: event.epoch,
        kind: receipt::REGISTRY_KIND,
        lane: event.lane,
        prev_hash: &head.hash,
        seq,
        tenant: event.tenant,
        time: &id::rfc3339(now_ms),
        version: BODY_VERSION,
    }));
    let row = Row {
        kind: receipt::REGISTRY_KIND,
        seq,
        at_ms: now_ms,
        decision_id: event.decision_id,
        agent: event.agent,
        receipt: &body,
        receipt_hash: &hash,
        prev_receipt_hash: &head.hash,
        containment: ContainmentRow {
            quarantined: next.quarantined,
            risk_steps: next.risk.stored_steps(),
            event: Some(event.event.as_str()),
            source: event.source,
            detail: Some(event.detail),
        },
    };
    let head = ChainHead { seq, hash: hash.clone() };
    Ok(JournalEntry::of_event(event.agent, next, &row, head))
}
