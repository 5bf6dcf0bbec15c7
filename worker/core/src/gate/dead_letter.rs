//! A message to the tenant's webhook that the lane gives up: one journal row, with a receipt of the kind `dead_letter` and
//! an audit event that has the message.

use serde::Serialize;
use serde_json::value::RawValue;

use super::agent_state::AgentState;
use super::facts::EventFacts;
use super::row::{Event, JournalEntry, LaneEvent};
use crate::approval::webhook::Message;
use crate::approval::{Approval, ApprovalEvent};
use crate::metrics::Series;
use crate::receipt::{BODY_VERSION, Body, DeadLetterBody, ReceiptKind};

/// A message that is given up.
pub struct DeadLetter<'a> {
    /// The sequence number of its step.
    pub seq: u64,
    /// The step.
    pub event: ApprovalEvent,
    pub approval: &'a Approval,
    pub message: &'a Message,
    /// Failed attempts.
    pub attempts: u32,
    /// The receiver's status at the last attempt; 0 if it did not answer.
    pub last_status: u16,
}

/// The members of its row.
#[derive(Serialize)]
struct LetterDetail<'a> {
    event: LaneEvent,
    source: &'static str,
    detail: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    attempts: u32,
    last_status: u16,
    payload: &'a RawValue,
    webhook_id: &'a str,
}

/// The row; `None` if the journal is full, or if the message cannot be read.
pub fn dead_letter(
    facts: &EventFacts<'_>,
    (tenant, lane): (&str, u16),
    letter: &DeadLetter<'_>,
) -> Option<(JournalEntry, AgentState)> {
    let &DeadLetter { approval, message, attempts, last_status, .. } = letter;
    // This row deletes the message, so it frees storage. Like a row that closes an approval, it is written
    // even if the storage is full.
    if !facts.space.has_space_for_closing_row(facts.head) {
        return None;
    }
    let event = Event {
        head: facts.head,
        at_ms: facts.now_ms,
        agent: &approval.agent,
        state: facts.state,
        decision_id: &approval.decision_id,
    };
    let body = Body::DeadLetter(DeadLetterBody {
        agent: &approval.agent,
        approval_id: &approval.approval_id,
        attempts,
        change: letter.event,
        decision_id: &approval.decision_id,
        kind: ReceiptKind::DeadLetter,
        lane,
        last_status,
        message_id: &message.id,
        prev_hash: &facts.head.hash,
        seq: event.seq(),
        tenant,
        time: &event.time(),
        version: BODY_VERSION,
    });
    let payload = serde_json::from_str(&message.body).ok()?;
    let detail = Detail { attempts, last_status, payload, webhook_id: &message.id };
    let detail = LetterDetail { event: LaneEvent::WebhookDeadLettered, source: "webhook", detail };
    let mut entry = event.entry(&body, detail, &[Series::DeadLetter]);
    entry.gives_up = Some(letter.seq);
    Some((entry, facts.state.clone()))
}
