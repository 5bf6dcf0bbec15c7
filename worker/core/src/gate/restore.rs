//! An administrator's command that lifts the lane's own quarantine of an agent.
//!
//! What administrators did to the agent themselves is the registry's, and stays.

use serde::{Deserialize, Serialize};

use super::containment::{ContainmentDetail, ContainmentRow};
use super::journal::{self, JournalEntry, Room};
use super::{AgentState, ChainHead};
use crate::id;
use crate::problem::Problem;
use crate::receipt::{self, BODY_VERSION, RegistryBody};

/// What happened, in the receipt and in the audit.
const RESTORED: &str = "agent_restored";

/// Which agent, and on whose word. The worker has checked the administrator's credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreCommand {
    pub tenant: String,
    pub lane: u16,
    pub agent: String,
    /// The administrator's name.
    pub administrator: String,
    /// The tenant's epoch that the command gave it. What was decided at it, or later, was decided
    /// after the command, which a caller that got no answer may repeat.
    pub epoch: u64,
}

/// What D1 gets to know of it. Persisted: the format is pinned by the flush statements.
#[derive(Debug, Serialize)]
struct Row<'a> {
    kind: &'static str,
    seq: u64,
    at_ms: u64,
    /// The decision that had quarantined the agent; empty when it is not known.
    decision_id: &'a str,
    agent: &'a str,
    receipt: &'a str,
    receipt_hash: &'a str,
    prev_receipt_hash: &'a str,
    containment: ContainmentRow<'a>,
}

/// The row and the agent's new state; `None` when the lane does not hold the agent quarantined, or
/// has quarantined it since the command.
pub fn restore(
    room: &Room<'_>,
    head: &ChainHead,
    state: &AgentState,
    command: &RestoreCommand,
    now_ms: u64,
) -> Result<Option<(JournalEntry, AgentState)>, Problem> {
    let by = state.quarantined_by.as_ref();
    if !state.quarantined || by.is_some_and(|by| by.epoch >= command.epoch) {
        return Ok(None);
    }
    // It lets calls in again, but takes one row itself, as a read does.
    if !room.takes(head, false) {
        return Err(journal::full());
    }
    let quarantined_by = by.map_or("", |by| by.decision_id.as_str());
    let restored = AgentState {
        revision: state.revision + 1,
        quarantined: false,
        quarantined_by: None,
        // A quarantine after this one is told from its first denial on.
        status_denial: None,
        ..state.clone()
    };
    let seq = head.seq + 1;
    let (body, hash) = receipt::seal(&RegistryBody {
        administrator: &command.administrator,
        agent: &command.agent,
        change: RESTORED,
        decision_id: quarantined_by,
        epoch: command.epoch,
        kind: receipt::REGISTRY_KIND,
        lane: command.lane,
        prev_hash: &head.hash,
        seq,
        tenant: &command.tenant,
        time: &id::rfc3339(now_ms),
        version: BODY_VERSION,
    });
    let row = Row {
        kind: receipt::REGISTRY_KIND,
        seq,
        at_ms: now_ms,
        decision_id: quarantined_by,
        agent: &command.agent,
        receipt: &body,
        receipt_hash: &hash,
        prev_receipt_hash: &head.hash,
        containment: ContainmentRow {
            quarantined: false,
            risk_steps: restored.risk.stored_steps(),
            event: Some(RESTORED),
            source: &command.administrator,
            detail: Some(ContainmentDetail::Restored { decision_id: quarantined_by }),
        },
    };
    let entry = JournalEntry::of_event(
        &command.agent,
        &restored,
        &row,
        ChainHead { seq, hash: hash.clone() },
    );
    Ok(Some((entry, restored)))
}
