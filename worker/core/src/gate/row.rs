//! The rows of a lane's journal.

use serde::Serialize;

use super::agent_state::AgentState;
use super::windows::WindowRow;
use crate::approval::{Approval, ApprovalInput};
use crate::call::outcome::Reported;
use crate::decision::{Decision, ReasonCode};
use crate::id;
use crate::json;
use crate::limit::Amount;
use crate::limit::book::Writes;
use crate::metrics::{CountedDecision, Series};
use crate::policy::risk::RiskTier;
use crate::receipt::{self, Body, ChainHead, ReceiptKind};
use crate::taint::TaintExplanation;
use crate::text_enum::text_enum;

/// One row of the lane's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalEntry {
    /// The chain's head after this row.
    pub head: ChainHead,
    pub agent: String,
    /// [`AgentState`] as JSON.
    pub state: String,
    /// The agent and the request id; `None` if the call has none.
    pub request_key: Option<String>,
    pub fingerprint: String,
    /// The agent and the nonce; `None` if the call has none.
    pub nonce_key: Option<String>,
    /// [`JournalRow`] as JSON. The flush copies it to D1.
    pub row: String,
    /// The arguments that are stored with the row's approval, if the row has one.
    pub approval: Option<ApprovalInput>,
    /// The changes of limits that are written with the row.
    pub limits: Option<Box<Writes>>,
    /// The windows of policies that count the call.
    pub windows: Vec<WindowRow>,
    /// The step whose message to the webhook becomes a dead letter with this row.
    pub gives_up: Option<u64>,
}

/// A row as D1 gets it: the members of every row, and those of its kind. Persisted: the triggers in
/// `d1-migrations/` read the members by name.
#[derive(Debug, Serialize)]
pub struct JournalRow<'a, D> {
    /// [`Body::row_kind`] of the receipt; absent for a decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReceiptKind>,
    pub seq: u64,
    pub at_ms: u64,
    /// The decision that the row belongs to; may be empty.
    pub decision_id: &'a str,
    pub agent: &'a str,
    #[serde(flatten)]
    pub detail: D,
    pub receipt_hash: &'a str,
    pub prev_receipt_hash: &'a str,
    /// The answer to the call; `None` if the row is not a decision's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<&'a str>,
    /// The receipt's canonical body.
    pub receipt: &'a str,
    /// What the row adds to metrics, besides the series of a decision. The last member, see [`split_metrics`].
    #[serde(skip)]
    pub metrics: &'a [Series<'a>],
}

/// The text between a row's other members and its member `metrics`. Nothing after it can have this text: in a
/// series, a string is followed by a comma or a bracket, and a quote inside of a string is escaped.
const METRICS_MEMBER: &str = ",\"metrics\":";

/// A row as D1 stores it, without its closing brace, and the series that it adds to, a JSON array. A row of a version
/// without metrics adds to none.
#[must_use]
pub fn split_metrics(row: &str) -> (&str, &str) {
    let row = row.strip_suffix('}').unwrap_or(row);
    row.rsplit_once(METRICS_MEMBER).unwrap_or((row, "[]"))
}

/// The members of a decision's row.
#[derive(Debug, Serialize)]
pub struct DecisionDetail<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub decision: Decision,
    pub reason_code: ReasonCode,
    /// The approval that the decision asks for.
    pub approval: Option<&'a Approval>,
    /// Present if the decision changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub containment: Option<ContainmentRow<'a>>,
    /// Present if taint caused the decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taint: Option<&'a TaintExplanation>,
    pub counted: CountedDecision,
}

impl<D: Serialize> JournalRow<'_, D> {
    #[must_use]
    pub fn encode(&self) -> String {
        let mut row = json::to_string(self);
        // Plain data always has a text. An empty row would fail the flush, so nothing would be lost.
        if row.pop().is_some() {
            row.push_str(METRICS_MEMBER);
            row.push('[');
            for (at, series) in self.metrics.iter().enumerate() {
                if at > 0 {
                    row.push(',');
                }
                series.push(&mut row);
            }
            row.push_str("]}");
        }
        row
    }
}

text_enum! {
    /// Audit events of a lane, besides those of approvals and agents, outcomes' endings, and those that are counted.
    LaneEvent {
        RiskTierRaised = "risk_tier_raised",
        RiskTierLowered = "risk_tier_lowered",
        /// The shield withheld an answer.
        ResultBlocked = "upstream_result_blocked",
        WebhookDeadLettered = "webhook_dead_lettered",
    }
}

/// A journal row's member `containment`: the agent's containment after the row. The trigger of
/// `d1-migrations/0004_approvals.sql` reads it.
#[derive(Debug, Serialize)]
pub struct ContainmentRow<'a> {
    pub quarantined: bool,
    pub risk_steps: u8,
    /// The audit event, if the decision does not imply it.
    pub event: Option<&'static str>,
    /// The cause of the event: the agent, or an administrator.
    pub source: &'a str,
    pub detail: Option<ContainmentDetail<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ContainmentDetail<'a> {
    /// The agent's effective risk tier, before and after.
    RiskTier { from: RiskTier, to: RiskTier },
    /// The decision that had quarantined the agent; may be empty.
    Restored { decision_id: &'a str },
    /// The server whose text tainted the agent.
    Tainted { server: &'a str },
    /// Always true.
    Untainted { untainted: bool },
    /// The run, and the keyed hash of the instruction in lower-case hex. Versions before stored its SHA-256, as
    /// `instruction_sha256`.
    RunStarted { run: &'a str, instruction_hash: String },
    /// What a caller reported about its call, and what it spent if that was less than its number.
    OutcomeReported { outcome: Reported, amount: Option<Amount> },
}

/// An event in the lane that is not a decision on a call.
pub struct Event<'a> {
    /// The chain's head before the event.
    pub head: &'a ChainHead,
    pub at_ms: u64,
    pub agent: &'a str,
    /// The agent's state after it.
    pub state: &'a AgentState,
    /// The decision that it belongs to; may be empty.
    pub decision_id: &'a str,
}

impl Event<'_> {
    /// The event's sequence number.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.head.seq + 1
    }

    /// The event's time, as receipts have it.
    #[must_use]
    pub fn time(&self) -> String {
        id::rfc3339(self.at_ms)
    }

    /// The journal row of the event, with its receipt, the members of its kind, and what it adds to metrics.
    #[must_use]
    pub fn entry(
        &self,
        body: &Body<'_>,
        detail: impl Serialize,
        metrics: &[Series<'_>],
    ) -> JournalEntry {
        let seq = self.seq();
        let (receipt, hash) = receipt::seal(body);
        let row = JournalRow {
            kind: Some(body.row_kind()),
            seq,
            at_ms: self.at_ms,
            decision_id: self.decision_id,
            agent: self.agent,
            detail,
            receipt_hash: &hash,
            prev_receipt_hash: &self.head.hash,
            response: None,
            receipt: &receipt,
            metrics,
        };
        JournalEntry {
            agent: self.agent.to_owned(),
            state: self.state.encode(),
            request_key: None,
            fingerprint: String::new(),
            nonce_key: None,
            row: row.encode(),
            approval: None,
            limits: None,
            windows: Vec::new(),
            gives_up: None,
            head: ChainHead { seq, hash },
        }
    }
}

/// The key under which an agent's request id or nonce is stored. Names have no `/`.
#[must_use]
pub fn scoped_key(agent: &str, value: &str) -> String {
    format!("{agent}/{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rows_metrics_are_found_whatever_its_names_are() {
        let series = |kind, limit| Series::LimitHit { kind, limit };
        for (metrics, expected) in [
            (vec![], "[]"),
            (vec![Series::DeadLetter], r#"[["dead_letters",[],[]]]"#),
            (
                vec![series("metrics", ",\"metrics\":["), series("}", "]")],
                r#"[["limits_hit",["metrics"],[",\"metrics\":["]],["limits_hit",["}"],["]"]]]"#,
            ),
        ] {
            let row = JournalRow {
                kind: None,
                seq: 1,
                at_ms: 2,
                decision_id: "d",
                agent: ",\"metrics\":[",
                detail: serde_json::json!({}),
                receipt_hash: "a",
                prev_receipt_hash: "b",
                response: None,
                receipt: "{\"metrics\":[]}",
                metrics: &metrics,
            };
            let row = row.encode();
            let (rest, found) = split_metrics(&row);
            assert_eq!(found, expected);
            assert!(rest.ends_with(r#""receipt":"{\"metrics\":[]}""#), "{rest}");
        }
        assert_eq!(split_metrics(r#"{"seq":1}"#), (r#"{"seq":1"#, "[]"));
    }
}
