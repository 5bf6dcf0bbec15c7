//! The response body of `POST /v1/authorize`.

use serde::Serialize;

use super::ruling::Ruling;
use super::trust::CallTrust;
use crate::approval::{Approval, ApprovalStatus};
use crate::call::command::GateCommand;
use crate::decision::{Decision, ReasonCode};
use crate::id;
use crate::json;
use crate::limit::Violation;
use crate::policy::bundle::Risk;
use crate::policy::risk;
use crate::provenance::Provenance;
use crate::receipt::{CANON_VERSION, Logged};
use crate::shield::Noted;
use crate::taint::TaintExplanation;
use crate::trust::SourceTrust;
use crate::warrant::NeededApprovals;

/// The `engine_mode` of a decision that was made while a dependency was unavailable.
pub const DEGRADED: &str = "degraded";
/// The `degraded_cause` of a decision for which D1 did not confirm the registry in time.
pub const REGISTRY_UNCONFIRMED: &str = "registry_unconfirmed";

/// The fields are written in this order.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(description = "What was decided, and why.")]
pub struct AuthorizeResponse<'a> {
    decision_id: &'a str,
    decision: Decision,
    /// 0–100.
    risk_score: u8,
    risk_level: Risk,
    /// 0–100.
    composite_risk_score: u8,
    reason: &'a str,
    reason_code: ReasonCode,
    matched_policies: &'a [String],
    approval: Option<DecisionApproval<'a>>,
    redacted_fields: &'a [String],
    root_trust_level: SourceTrust,
    trust: CallTrust,
    dry_run: bool,
    bundle: &'a str,
    receipt: Option<ReplyReceipt<'a>>,
    /// The caller's trace (W3C Trace Context). Present if the caller sent one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    trace_id: Option<String>,
    /// `degraded` if a dependency of the decision was unavailable; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    engine_mode: Option<&'static str>,
    /// Why the decision is degraded: `registry_unconfirmed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    degraded_cause: Option<&'static str>,
    /// Present if the decision would have been different without taint: where the taint comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TaintExplanation)]
    taint: Option<&'a TaintExplanation>,
    /// Where the destinations of a write came from. Present if the call was tainted, or its run was assigned
    /// by a harness.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Provenance)]
    provenance: Option<&'a Provenance>,
    /// What the shield found in the arguments. Present if it found something.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Noted)]
    shield: Option<&'a Noted>,
    /// A checkpoint that covers the receipt. Present if the caller asked for it with `Prefer: wait`, and one was published
    /// in time. The worker adds it to the answer of the lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Logged)]
    log: Option<Logged>,
    /// Present if a limit denies the call: the first one that it violates.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<Violation>)]
    violated_limits: Option<[&'a Violation; 1]>,
    /// Present if the call is denied because it does not have the approvals that its warrant asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = NeededApprovals)]
    warrant_approvals: Option<&'a NeededApprovals>,
}

/// The approval that the decision asks for, or that the call presented.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct DecisionApproval<'a> {
    approval_id: &'a str,
    /// The status after this decision.
    status: ApprovalStatus,
    /// All groups that must approve, sorted, separated by commas.
    approver_group: String,
    #[schema(format = DateTime)]
    expires_at: String,
    /// The action hash of the call that it allows.
    action_hash: &'a str,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = Receipt)]
pub struct ReplyReceipt<'a> {
    pub receipt_id: String,
    pub lane: u16,
    pub seq: u64,
    pub receipt_hash: &'a str,
    pub prev_receipt_hash: &'a str,
    pub canon_version: &'static str,
}

impl<'a> ReplyReceipt<'a> {
    pub fn new(lane: u16, seq: u64, hash: &'a str, previous: &'a str) -> Self {
        Self {
            receipt_id: id::receipt_id(lane, seq),
            lane,
            seq,
            receipt_hash: hash,
            prev_receipt_hash: previous,
            canon_version: CANON_VERSION,
        }
    }
}

/// What decided a call.
#[derive(Clone, Copy)]
pub struct DecidedBy<'a> {
    /// The digest of the policies.
    pub bundle: &'a str,
    /// Why the decision is degraded, if it is.
    pub degraded_cause: Option<&'static str>,
}

fn group_names(approval: &Approval) -> Vec<&str> {
    approval.approver_groups.iter().map(|needed| needed.group.as_str()).collect()
}

/// The response as JSON. `approval` has the time at which its status is shown.
#[must_use]
pub fn response(
    command: &GateCommand,
    (ruling, shield): (&Ruling, Option<&Noted>),
    trust: CallTrust,
    decided_by: DecidedBy<'_>,
    decision_id: &str,
    approval: Option<(&Approval, u64)>,
    receipt: Option<ReplyReceipt<'_>>,
) -> String {
    let call = &command.call;
    let (tool_risk, writes) = match &ruling.tool {
        Some(tool) => (tool.risk, tool.writes),
        // An unknown tool counts as the riskiest.
        None => (Risk::Critical, true),
    };
    let root = trust.effective.lowest(call.root_trust_level.unwrap_or(trust.effective));
    let score = risk::score(
        tool_risk,
        writes,
        call.contains_sensitive_data,
        shield.map_or(0, Noted::score),
    );
    let response = AuthorizeResponse {
        decision_id,
        decision: ruling.decision,
        risk_score: score,
        risk_level: risk::level(score),
        composite_risk_score: risk::composite(score, root),
        reason: &ruling.reason,
        reason_code: ruling.reason_code,
        matched_policies: &ruling.matched_policies,
        approval: approval.map(|(approval, now_ms)| DecisionApproval {
            approval_id: &approval.approval_id,
            status: approval.status_at(now_ms),
            approver_group: group_names(approval).join(","),
            expires_at: id::rfc3339(approval.expires_at_ms),
            action_hash: approval.valid_hash(),
        }),
        redacted_fields: &ruling.redact_fields,
        root_trust_level: root,
        trust,
        dry_run: call.dry_run,
        bundle: decided_by.bundle,
        receipt,
        trace_id: command.trace_id.map(|id| id.to_string()),
        engine_mode: decided_by.degraded_cause.map(|_| DEGRADED),
        degraded_cause: decided_by.degraded_cause,
        taint: ruling.taint.as_deref(),
        provenance: ruling.provenance.as_deref(),
        shield,
        log: None,
        violated_limits: ruling.violation.as_deref().map(|violation| [violation]),
        warrant_approvals: ruling.warrant_approvals.as_deref(),
    };
    // Plain data always serializes.
    json::to_string(&response)
}
