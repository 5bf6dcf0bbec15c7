//! Receipts: the hash-chained record of a lane's decisions.
//!
//! A receipt's hash is SHA-256 over its body in RFC 8785 form. The body holds the hash of the
//! receipt before it, so nobody can change, drop or reorder a receipt without breaking every later
//! link. The first body of a lane holds [`GENESIS`].
//!
//! INVARIANT (canonical as written): the bodies declare their fields in RFC 8785 order and hold
//! only strings, integers, booleans, arrays and objects: no fractions and no nulls. So serializing a
//! body gives its canonical form directly. A test pins it.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use utoipa::openapi::Object;

use super::head::{LaneCheckpointBody, RegistryEventBody};
use super::kind::{ReceiptKind, only};
use crate::approval::{ApprovalEvent, ApprovalStatus, ApproverGroup};
use crate::decision::{Decision, ReasonCode};
use crate::json::{self, Json};
use crate::provenance::Provenance;
use crate::shield::Noted;
use crate::taint::TaintExplanation;
use crate::text_enum::text_enum;
use crate::tlog::tile::MAX_ENTRY_BYTES;
use crate::trust::SourceTrust;

/// The version of every [`Body`]. Version 1 had one quorum for all approver groups.
pub const BODY_VERSION: u8 = 2;
/// The scheme by which bodies become bytes.
pub const CANON_VERSION: &str = "rfc8785";
/// The previous hash of a lane's first receipt.
pub const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// Bytes of a body: in a bundle of a log's entries, the length of each has two bytes. What a receipt holds is bounded so
/// that no body is longer. The largest are bodies of decisions, by their resource, what the shield found, and sinks.
pub const MAX_RECEIPT_BYTES: usize = MAX_ENTRY_BYTES;

/// The body of a receipt. Its member `kind` selects the schema. Hashes are SHA-256 in lower-case
/// hex. A text that does not apply is empty.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[schema(
    as = ReceiptBody,
    discriminator(property_name = "kind", mapping(
        ("decision" = "#/components/schemas/DecisionReceiptBody"),
        ("approval" = "#/components/schemas/ApprovalReceiptBody"),
        ("dead_letter" = "#/components/schemas/DeadLetterReceiptBody"),
        ("outcome" = "#/components/schemas/OutcomeReceiptBody"),
        ("registry" = "#/components/schemas/RegistryReceiptBody"),
        ("lane_checkpoint" = "#/components/schemas/LaneCheckpointReceiptBody"),
        ("registry_event" = "#/components/schemas/RegistryEventReceiptBody"),
    ))
)]
pub enum Body<'a> {
    Decision(DecisionBody<'a>),
    Approval(ApprovalBody<'a>),
    DeadLetter(DeadLetterBody<'a>),
    Outcome(OutcomeBody<'a>),
    Registry(RegistryBody<'a>),
    LaneCheckpoint(LaneCheckpointBody<'a>),
    RegistryEvent(RegistryEventBody<'a>),
}

impl Body<'_> {
    /// The kind of its journal row, by which D1's trigger distributes it. Not always the body's: the tables of D1 have a
    /// closed list.
    #[must_use]
    pub const fn row_kind(&self) -> ReceiptKind {
        match self {
            Self::Decision(_) => ReceiptKind::Decision,
            Self::Approval(_) | Self::DeadLetter(_) => ReceiptKind::Approval,
            Self::Outcome(_) => ReceiptKind::Outcome,
            Self::Registry(_) => ReceiptKind::Registry,
            Self::LaneCheckpoint(_) => ReceiptKind::LaneCheckpoint,
            Self::RegistryEvent(_) => ReceiptKind::RegistryEvent,
        }
    }
}

fn decision_kind() -> Object {
    only(ReceiptKind::Decision)
}

/// The receipt of a decision.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = DecisionReceiptBody)]
pub struct DecisionBody<'a> {
    /// The action hash of the call.
    pub action_hash: &'a str,
    pub agent: &'a str,
    /// The approval that the decision asks for, or that the call presented; empty if there is none.
    pub approval_id: &'a str,
    /// The digest of the policies that decided.
    pub bundle: &'a str,
    pub decision: Decision,
    pub decision_id: &'a str,
    /// Why the decision was made during an outage of D1; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub degraded_cause: Option<&'a str>,
    /// `degraded`; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub engine_mode: Option<&'a str>,
    pub epoch: u64,
    pub key_id: &'a str,
    #[schema(schema_with = decision_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    pub matched_policies: &'a [String],
    pub obligations: Obligations<'a>,
    pub prev_hash: &'a str,
    /// Where the destinations of the call came from; absent if that was not looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Provenance)]
    pub provenance: Option<&'a Provenance>,
    pub reason_code: ReasonCode,
    pub resource: &'a str,
    pub run: &'a str,
    pub seq: u64,
    pub server: &'a str,
    /// What the shield found in the arguments; absent if it found nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Noted)]
    pub shield: Option<&'a Noted>,
    /// Present if the decision would have been different without taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TaintExplanation)]
    pub taint: Option<&'a TaintExplanation>,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub tool: &'a str,
    /// The trust that counted.
    pub trust: SourceTrust,
    pub user: &'a str,
    pub version: u8,
    /// The warrant that the call was made with; absent if there was none, or if it did not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = WarrantNote)]
    pub warrant: Option<&'a WarrantNote>,
}

/// A warrant whose chain and proof were verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct WarrantNote {
    /// SHA-256 of the stack's bytes.
    pub chain_hash: String,
    /// How many links precede the last one.
    pub depth: usize,
    /// The id of the last link: 32 hex digits.
    pub id: String,
    /// The key that signed the first link: 64 hex digits.
    pub root: String,
}

/// What the caller must do, or must have done, for the decision to hold.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct Obligations<'a> {
    /// Sorted.
    pub approver_groups: &'a [ApproverGroup],
    /// Sorted.
    pub redact_fields: &'a [String],
}

fn approval_kind() -> Object {
    only(ReceiptKind::Approval)
}

/// The receipt of a step of an approval.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = ApprovalReceiptBody)]
pub struct ApprovalBody<'a> {
    /// The action hash that the approval allows after the step.
    pub action_hash: &'a str,
    /// The administrator who decided; empty if no administrator did.
    pub administrator: &'a str,
    pub agent: &'a str,
    pub approval_id: &'a str,
    /// The step.
    pub change: ApprovalEvent,
    /// The decision that used or tampered with the approval; otherwise the decision that asked for
    /// it.
    pub decision_id: &'a str,
    pub epoch: u64,
    /// The credential that decided, or that made the call.
    pub key_id: &'a str,
    #[schema(schema_with = approval_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    pub prev_hash: &'a str,
    pub seq: u64,
    /// The status after the step.
    pub status: ApprovalStatus,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub version: u8,
}

fn dead_letter_kind() -> Object {
    only(ReceiptKind::DeadLetter)
}

/// The receipt of a message to the webhook that was given up.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = DeadLetterReceiptBody)]
pub struct DeadLetterBody<'a> {
    pub agent: &'a str,
    /// The approval that the message was about.
    pub approval_id: &'a str,
    /// Failed attempts; fewer than 12 if too many messages waited.
    pub attempts: u32,
    /// The step that the message was about.
    pub change: ApprovalEvent,
    /// The decision that asked for the approval.
    pub decision_id: &'a str,
    #[schema(schema_with = dead_letter_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    /// The receiver's HTTP status at the last attempt; 0 if it did not answer.
    pub last_status: u16,
    /// The message's `webhook-id`.
    pub message_id: &'a str,
    pub prev_hash: &'a str,
    pub seq: u64,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub version: u8,
}

fn registry_kind() -> Object {
    only(ReceiptKind::Registry)
}

text_enum! {
    /// An event of an agent. Its receipt and its audit event have this name.
    AgentEvent {
        /// An administrator lifted the lane's own quarantine.
        Restored = "agent_restored",
        /// An administrator lifted the taint of the agent and of all its runs.
        Untainted = "agent_untainted",
        /// Untrusted text tainted the agent without a call.
        Tainted = "agent_tainted",
        /// A harness stated what the user asked for in a run of the agent.
        RunStarted = "run_started",
        /// A caller reported the outcome of its call.
        OutcomeReported = "outcome_reported",
    }
}

/// The receipt of an event of an agent in its lane.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = RegistryReceiptBody)]
pub struct RegistryBody<'a> {
    pub administrator: &'a str,
    pub agent: &'a str,
    /// The event.
    pub change: AgentEvent,
    /// The decision that the event undoes; may be empty.
    pub decision_id: &'a str,
    pub epoch: u64,
    #[schema(schema_with = registry_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    pub prev_hash: &'a str,
    pub seq: u64,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub version: u8,
}

fn outcome_kind() -> Object {
    only(ReceiptKind::Outcome)
}

text_enum! {
    /// How an upstream's answer ended.
    Ending {
        /// The upstream ended it.
        Complete = "complete",
        /// The caller went away.
        CallerGone = "caller_gone",
        /// The upstream could not be reached, or broke the connection.
        UpstreamFailed = "upstream_failed",
        /// The upstream took longer than its server's limits allow.
        TimedOut = "timed_out",
        /// The answer had more bytes than its server's limit allows.
        TooLarge = "too_large",
        /// The answer could not be passed on.
        Refused = "refused",
    }
}

impl Ending {
    /// The audit event of an answer that ended badly.
    #[must_use]
    pub const fn event(self) -> Option<&'static str> {
        match self {
            Self::Complete | Self::CallerGone => None,
            Self::UpstreamFailed => Some("upstream_failed"),
            Self::TimedOut => Some("upstream_timed_out"),
            Self::TooLarge => Some("upstream_result_too_large"),
            Self::Refused => Some("upstream_result_refused"),
        }
    }
}

/// The receipt of the outcome of a forwarded call.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = OutcomeReceiptBody)]
pub struct OutcomeBody<'a> {
    pub agent: &'a str,
    /// Bytes of the answer's body, as far as the server sent it.
    pub bytes: u64,
    /// The hash of the decision's receipt.
    pub decision_hash: &'a str,
    pub decision_id: &'a str,
    /// From the request's start to the answer's end.
    pub duration_ms: u64,
    /// How the answer ended.
    pub ending: Ending,
    #[schema(schema_with = outcome_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    pub prev_hash: &'a str,
    /// Whether the shield withheld the answer from the caller; absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub result_blocked: bool,
    /// SHA-256 over the answer's body, as far as the server sent it; empty if it sent none.
    pub result_sha256: &'a str,
    pub seq: u64,
    pub server: &'a str,
    /// What the shield found in the answer; absent if it found nothing, or did not look.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Noted)]
    pub shield: Option<&'a Noted>,
    /// The server's HTTP status; 0 if there was no answer.
    pub status: u16,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub version: u8,
}

/// The canonical body and its hash.
#[must_use]
pub fn seal(body: &Body<'_>) -> (String, String) {
    // These bodies always serialize. An empty body would not verify.
    let text = json::to_string(body);
    let hash = hash(&text);
    (text, hash)
}

/// The hash of a canonical body.
#[must_use]
pub fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// Reads a body, which must be in its canonical form.
///
/// # Errors
///
/// What is wrong with the text, as a sentence.
pub fn read(text: &str) -> Result<Json, String> {
    let body = json::parse(text.as_bytes()).map_err(|error| format!("body: {error}"))?;
    if body.canonical() != text {
        return Err("the body is not in its canonical form".to_owned());
    }
    Ok(body)
}

/// A receipt as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReceipt {
    pub seq: u64,
    pub receipt_hash: String,
    pub prev_receipt_hash: String,
    pub body: String,
}

/// The first error in a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Break {
    pub seq: u64,
    pub problem: String,
}

/// Verifies consecutive receipts, the first of which must be number `from`. `previous` is the hash
/// of receipt `from - 1`, or [`GENESIS`]. If it is `None`, the first link back is not checked.
///
/// # Errors
///
/// The first [`Break`].
pub fn verify(receipts: &[StoredReceipt], from: u64, previous: Option<&str>) -> Result<(), Break> {
    let mut expected_previous = previous.map(str::to_owned);
    for (expected_seq, receipt) in (from..).zip(receipts) {
        verify_one(receipt, expected_seq, expected_previous.as_deref())
            .map_err(|problem| Break { seq: expected_seq, problem })?;
        expected_previous = Some(receipt.receipt_hash.clone());
    }
    Ok(())
}

fn verify_one(
    receipt: &StoredReceipt,
    expected_seq: u64,
    expected_previous: Option<&str>,
) -> Result<(), String> {
    if receipt.seq != expected_seq {
        return Err(format!("receipt {expected_seq} is missing"));
    }
    let body = read(&receipt.body)?;
    if hash(&receipt.body) != receipt.receipt_hash {
        return Err("the body does not have the receipt's hash".to_owned());
    }
    let same = |field: &str, value: &str| body.get(field).and_then(Json::as_str) == Some(value);
    if body.get("seq") != i64::try_from(expected_seq).ok().map(Json::Integer).as_ref() {
        return Err("the body has another sequence number".to_owned());
    }
    if !same("prev_hash", &receipt.prev_receipt_hash) {
        return Err("the previous hash in the body differs from the row's".to_owned());
    }
    match expected_previous {
        Some(previous) if previous != receipt.prev_receipt_hash => {
            Err("the previous hash is not the hash of the receipt before".to_owned())
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
