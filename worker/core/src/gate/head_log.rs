//! The entries of a tenant's head log: checkpoints that its lanes signed, and events of its registry. Each is one journal
//! row of the lane [`HEAD_LANE`].

use serde::{Deserialize, Serialize};

use super::agent_state::AgentState;
use super::facts::EventFacts;
use super::row::{Event, JournalEntry};
use crate::bounds::HEAD_LANE;
use crate::problem::Problem;
use crate::receipt::{
    BODY_VERSION, Body, LaneCheckpointBody, ReceiptKind, RegistryEvent, RegistryEventBody,
};

/// The agent of the head log's rows. No agent can have this name.
const HEAD: &str = "_head";

/// A checkpoint that a lane published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneCheckpoint {
    pub tenant: String,
    pub of_lane: u16,
    /// The signed note.
    pub note: String,
    /// The number of the receipt that is the first entry of the lane's log.
    pub first: u64,
    /// The last receipt that was deleted because of its age; 0 if none was.
    pub pruned_through: u64,
}

/// An entry's row has no members besides those of every row.
#[derive(Serialize)]
struct NoDetail {}

/// The row of a lane's checkpoint.
///
/// # Errors
///
/// `journal_full`.
pub fn lane_checkpoint(
    facts: &EventFacts<'_>,
    checkpoint: &LaneCheckpoint,
) -> Result<(JournalEntry, AgentState), Problem> {
    let event = begin(facts)?;
    let body = Body::LaneCheckpoint(LaneCheckpointBody {
        checkpoint: &checkpoint.note,
        first: checkpoint.first,
        kind: ReceiptKind::LaneCheckpoint,
        lane: HEAD_LANE,
        of_lane: checkpoint.of_lane,
        prev_hash: &facts.head.hash,
        pruned_through: checkpoint.pruned_through,
        seq: event.seq(),
        tenant: &checkpoint.tenant,
        time: &event.time(),
        version: BODY_VERSION,
    });
    Ok((event.entry(&body, NoDetail {}, &[]), facts.state.clone()))
}

/// The row of an event of the registry.
///
/// # Errors
///
/// `journal_full`.
pub fn registry_event(
    facts: &EventFacts<'_>,
    tenant: &str,
    registry_event: &RegistryEvent,
) -> Result<(JournalEntry, AgentState), Problem> {
    let event = begin(facts)?;
    let body = Body::RegistryEvent(RegistryEventBody {
        event_hash: &registry_event.hash(),
        event_id: &registry_event.event_id,
        kind: ReceiptKind::RegistryEvent,
        lane: HEAD_LANE,
        prev_hash: &facts.head.hash,
        seq: event.seq(),
        tenant,
        time: &event.time(),
        version: BODY_VERSION,
    });
    Ok((event.entry(&body, NoDetail {}, &[]), facts.state.clone()))
}

fn begin<'a>(facts: &EventFacts<'a>) -> Result<Event<'a>, Problem> {
    facts.check_space()?;
    Ok(Event {
        head: facts.head,
        at_ms: facts.now_ms,
        agent: HEAD,
        state: facts.state,
        decision_id: "",
    })
}
