//! What happens to an agent in its lane and is no decision on a call: an administrator restores or
//! untaints it, or text of an untrusted server that answers no call taints it. Each is one journal
//! row, with a receipt of the kind `registry` and an audit event.
//!
//! What administrators did to the agent in the registry itself stays there.

use serde::{Deserialize, Serialize};

use super::agent_state::AgentState;
use super::facts::EventFacts;
use super::row::{ContainmentDetail, ContainmentRow, Event, JournalEntry};
use super::space;
use super::taint_state::Taint;
use crate::problem::Problem;
use crate::receipt::{AgentEvent, BODY_VERSION, Body, REGISTRY_KIND, RegistryBody};
use crate::taint::Scope;

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

/// The members of an event's row.
#[derive(Serialize)]
struct EventDetail<'a> {
    containment: ContainmentRow<'a>,
}

/// What a row tells of an event.
struct Told<'a> {
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
    let told = Told {
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
    let entry = entry(facts, &next, told)?;
    Ok(Some((entry, next)))
}

/// Marks the agent, or the run that a harness assigned. `None` when a mark of this server is so young
/// that another row would say nothing new.
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
    let told = Told {
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
    let entry = entry(facts, &next, told)?;
    Ok(Some((entry, next)))
}

fn entry(
    facts: &EventFacts<'_>,
    next: &AgentState,
    told: Told<'_>,
) -> Result<JournalEntry, Problem> {
    // The row takes as much space as a read's.
    if !facts.space.takes(facts.head, false) {
        return Err(space::full());
    }
    let event = Event {
        head: facts.head,
        at_ms: facts.now_ms,
        agent: told.agent,
        state: next,
        decision_id: told.decision_id,
    };
    let body = Body::Registry(RegistryBody {
        administrator: told.administrator,
        agent: told.agent,
        change: told.event,
        decision_id: told.decision_id,
        epoch: told.epoch,
        kind: REGISTRY_KIND,
        lane: told.lane,
        prev_hash: &facts.head.hash,
        seq: event.seq(),
        tenant: told.tenant,
        time: &event.time(),
        version: BODY_VERSION,
    });
    let containment = ContainmentRow {
        quarantined: next.quarantined,
        risk_steps: next.risk.stored_steps(),
        event: Some(told.event.as_str()),
        source: told.source,
        detail: Some(told.detail),
    };
    Ok(event.entry(&body, EventDetail { containment }))
}
