//! Events of an agent in its lane that are not decisions on a call: an administrator restores or
//! untaints the agent, text of an untrusted server taints it without a call, or a harness states what the
//! user asked for in a run. Each event is one journal row, with a receipt of the kind `registry` and an
//! audit event.
//!
//! What administrators change in the registry itself is not here.

use serde::{Deserialize, Serialize};

use super::agent_state::AgentState;
use super::facts::EventFacts;
use super::metrics;
use super::row::{ContainmentDetail, ContainmentRow, Event, JournalEntry};
use super::taint_state::Taint;
use crate::call::command::GateCommand;
use crate::call::outcome::ReportedOutcome;
use crate::metrics::Series;
use crate::problem::Problem;
use crate::receipt::{AgentEvent, BODY_VERSION, Body, ReceiptKind, RegistryBody};
use crate::taint::Scope;

/// What an administrator orders a lane to do about an agent.
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
    /// The epoch that the command gave the tenant. A caller that got no answer repeats the command
    /// with the same epoch. The repeat then lifts nothing that came after the first.
    pub epoch: u64,
}

/// Untrusted text that is about to reach an agent and belongs to no decided call.
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

/// The members of an event's row.
#[derive(Serialize)]
struct EventDetail<'a> {
    containment: ContainmentRow<'a>,
}

/// What an event's row and its receipt contain.
struct EventFields<'a> {
    tenant: &'a str,
    lane: u16,
    agent: &'a str,
    event: AgentEvent,
    /// The administrator; empty if no person caused the event.
    administrator: &'a str,
    /// Who caused the event: the administrator, or the server.
    source: &'a str,
    decision_id: &'a str,
    epoch: u64,
    detail: ContainmentDetail<'a>,
}

/// Carries out an administrator's command. Returns the row and the agent's new state; `None` if
/// there is nothing to lift, or if the quarantine is newer than the command.
///
/// # Errors
///
/// `journal_full`.
pub fn carry_out(
    facts: &EventFacts<'_>,
    command: &AgentCommand,
) -> Result<Option<(JournalEntry, AgentState)>, Problem> {
    let state = facts.state;
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
            // After a later quarantine, the first denial is journalled again.
            next.status_denial = None;
            (AgentEvent::Restored, decision_id, ContainmentDetail::Restored { decision_id })
        }
        LaneAction::Untaint => {
            // A repeated command must not lift taint that came after the first command. So the epoch of the
            // command is stored even if there is no taint to lift.
            if command.epoch <= state.untainted_epoch {
                return Ok(None);
            }
            next.taint = Taint::default();
            next.untainted_epoch = command.epoch;
            (AgentEvent::Untainted, "", ContainmentDetail::Untainted { untainted: true })
        }
    };
    let fields = EventFields {
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
    let entry = entry(facts, &next, fields, &[])?;
    Ok(Some((entry, next)))
}

/// Marks the agent, or the run that a harness assigned, as tainted. `None` if this server's mark is
/// recent enough that another row would add nothing.
///
/// # Errors
///
/// `journal_full`: then the text must not reach the agent.
pub fn taint(
    facts: &EventFacts<'_>,
    command: &TaintCommand,
) -> Result<Option<(JournalEntry, AgentState)>, Problem> {
    let (state, now_ms) = (facts.state, facts.now_ms);
    let scope = command.run.as_deref().map_or(Scope::Agent, Scope::Run);
    let server = command.server.as_str();
    if state.taint.is_fresh(scope, server, command.period_ms, now_ms) {
        return Ok(None);
    }
    let mut next = AgentState { revision: state.revision + 1, ..state.clone() };
    next.taint.add(scope, server, None, command.period_ms, now_ms);
    let fields = EventFields {
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
    let entry = entry(facts, &next, fields, &[])?;
    Ok(Some((entry, next)))
}

/// The row that says what a harness stated about a run: the run and the keyed hash of the instruction.
///
/// # Errors
///
/// `journal_full`.
pub fn run_started(
    facts: &EventFacts<'_>,
    command: &GateCommand,
    instruction_hash: String,
) -> Result<JournalEntry, Problem> {
    let call = &command.call;
    let fields = EventFields {
        tenant: &command.tenant,
        lane: command.lane,
        agent: &call.agent,
        event: AgentEvent::RunStarted,
        administrator: "",
        source: &call.agent,
        decision_id: "",
        epoch: 0,
        detail: ContainmentDetail::RunStarted { run: &call.run_id, instruction_hash },
    };
    entry(facts, facts.state, fields, &[])
}

/// The row that says what a caller reported about its call.
///
/// # Errors
///
/// `journal_full`.
pub fn outcome_reported(
    facts: &EventFacts<'_>,
    command: &GateCommand,
    reported: &ReportedOutcome,
) -> Result<JournalEntry, Problem> {
    let fields = EventFields {
        tenant: &command.tenant,
        lane: command.lane,
        agent: &command.call.agent,
        event: AgentEvent::OutcomeReported,
        administrator: "",
        source: &command.call.agent,
        decision_id: &reported.decision_id,
        epoch: 0,
        detail: ContainmentDetail::OutcomeReported {
            outcome: reported.outcome,
            amount: reported.amount,
        },
    };
    entry(facts, facts.state, fields, &[metrics::of_report(reported.outcome)])
}

fn entry(
    facts: &EventFacts<'_>,
    next: &AgentState,
    fields: EventFields<'_>,
    metrics: &[Series<'_>],
) -> Result<JournalEntry, Problem> {
    // The row takes as much space as that of a read.
    facts.check_space()?;
    let event = Event {
        head: facts.head,
        at_ms: facts.now_ms,
        agent: fields.agent,
        state: next,
        decision_id: fields.decision_id,
    };
    let body = Body::Registry(RegistryBody {
        administrator: fields.administrator,
        agent: fields.agent,
        change: fields.event,
        decision_id: fields.decision_id,
        epoch: fields.epoch,
        kind: ReceiptKind::Registry,
        lane: fields.lane,
        prev_hash: &facts.head.hash,
        seq: event.seq(),
        tenant: fields.tenant,
        time: &event.time(),
        version: BODY_VERSION,
    });
    let containment = ContainmentRow {
        quarantined: next.quarantined,
        risk_steps: next.risk.stored_steps(),
        event: Some(fields.event.as_str()),
        source: fields.source,
        detail: Some(fields.detail),
    };
    Ok(event.entry(&body, EventDetail { containment }, metrics))
}
