//! Step 11: from what the policies say to what the caller is told.

use serde::Serialize;

use super::resolve::Tool;
use super::taint::TaintExplanation;
use crate::approval::{Approval, ApproverGroup};
use crate::bundle::{AnnotatedDecision, PolicyRecord};
use crate::policy::Evaluation;

/// What a call may do, strongest restriction first: where several policies determine, the first
/// of these wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Quarantine,
    Deny,
    RequireApproval,
    Redact,
    Allow,
}

impl Decision {
    /// Whether the call goes on.
    #[must_use]
    pub const fn passes(self) -> bool {
        matches!(self, Self::Allow | Self::Redact)
    }

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quarantine => "quarantine",
            Self::Deny => "deny",
            Self::RequireApproval => "require_approval",
            Self::Redact => "redact",
            Self::Allow => "allow",
        }
    }
}

/// Why, as a stable code; the list is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, utoipa::ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ReasonCode {
    PolicyAllow,
    PolicyRedact,
    PolicyRequireApproval,
    ApprovalGranted,
    ApprovalPending,
    ApprovalUnknown,
    ApprovalMismatch,
    ApprovalInsufficient,
    ApprovalRejected,
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalUsed,
    ApprovalsExhausted,
    ApprovalInputTooLarge,
    PolicyForbid,
    PolicyQuarantine,
    NoPolicyPermits,
    PolicyError,
    InputInvalid,
    ScopeMissing,
    ToolNotGranted,
    ServerUnknown,
    ToolUnknown,
    ToolInactive,
    RouteUnmapped,
    InputSchemaMismatch,
    SchemaUnusable,
    UpstreamMissing,
    HeaderMismatch,
    AgentFrozen,
    AgentRevoked,
    AgentQuarantined,
    AgentBanned,
    UserBanned,
    RunBanned,
    SourceAddressBanned,
    TenantInactive,
    QuotaExhausted,
    TenantRowsExhausted,
    TenantBytesExhausted,
}

impl ReasonCode {
    /// The code, and the sentence for callers where no policy gives a better one.
    #[must_use]
    pub const fn parts(self) -> (&'static str, &'static str) {
        match self {
            Self::PolicyAllow => ("policy_allow", "A policy permits this call."),
            Self::PolicyRedact => {
                ("policy_redact", "A policy permits this call without the redacted fields.")
            }
            Self::PolicyRequireApproval => {
                ("policy_require_approval", "A policy permits this call once it is approved.")
            }
            Self::ApprovalGranted => ("approval_granted", "The call was approved."),
            Self::ApprovalPending => ("approval_pending", "The approval is not decided yet."),
            Self::ApprovalUnknown => ("approval_unknown", "The agent has no such approval."),
            Self::ApprovalMismatch => {
                ("approval_mismatch", "This is not the call that the approval is for.")
            }
            Self::ApprovalInsufficient => (
                "approval_insufficient",
                "The policies ask for more than the approval has; ask for another without it.",
            ),
            Self::ApprovalRejected => ("approval_rejected", "The approval was rejected."),
            Self::ApprovalCancelled => ("approval_cancelled", "The approval was cancelled."),
            Self::ApprovalExpired => ("approval_expired", "The approval has expired."),
            Self::ApprovalUsed => ("approval_used", "The approval was used; it is good once."),
            Self::ApprovalsExhausted => (
                "approvals_exhausted",
                "The agent has as many open approvals as it can have; use some, or let them expire.",
            ),
            Self::ApprovalInputTooLarge => (
                "approval_input_too_large",
                "The call needs approval, and its arguments are too large for an approver to read.",
            ),
            Self::PolicyForbid => ("policy_forbid", "A policy forbids this call."),
            Self::PolicyQuarantine => {
                ("policy_quarantine", "A policy forbids this call and stops the agent.")
            }
            Self::NoPolicyPermits => ("no_policy_permits", "No policy permits this call."),
            Self::PolicyError => ("policy_error", "A policy could not be evaluated."),
            Self::InputInvalid => {
                ("input_invalid", "The arguments are ambiguous, or hold what no policy can judge.")
            }
            Self::ScopeMissing => {
                ("scope_missing", "The credential's scopes do not cover this tool.")
            }
            Self::ToolNotGranted => {
                ("tool_not_granted", "The agent or its credential is not granted this tool.")
            }
            Self::ServerUnknown => ("server_unknown", "This server is not registered."),
            Self::ToolUnknown => ("tool_unknown", "This tool is not registered."),
            Self::ToolInactive => ("tool_inactive", "This tool or its server is not active."),
            Self::RouteUnmapped => ("route_unmapped", "No route of the server fits this request."),
            Self::InputSchemaMismatch => {
                ("input_schema_mismatch", "The arguments do not match the tool's schema.")
            }
            Self::SchemaUnusable => ("schema_unusable", "The tool's schema cannot be used."),
            Self::HeaderMismatch => (
                "header_mismatch",
                "A header that mirrors an argument is not as the tool's schema says.",
            ),
            Self::UpstreamMissing => {
                ("upstream_missing", "Gateward does not know where this server is.")
            }
            Self::AgentFrozen => ("agent_frozen", "The agent is frozen."),
            Self::AgentRevoked => ("agent_revoked", "The agent is revoked."),
            Self::AgentQuarantined => ("agent_quarantined", "The agent is quarantined."),
            Self::AgentBanned => ("agent_banned", "The agent is banned."),
            Self::UserBanned => ("user_banned", "The user is banned."),
            Self::RunBanned => ("run_banned", "The run is banned."),
            Self::SourceAddressBanned => {
                ("source_address_banned", "The address that the call comes from is banned.")
            }
            Self::TenantInactive => ("tenant_inactive", "The tenant is not active."),
            Self::QuotaExhausted => ("quota_exhausted", "The agent has used its quota for today."),
            Self::TenantRowsExhausted => {
                ("tenant_rows_exhausted", "The tenant has written as many records as it may today.")
            }
            Self::TenantBytesExhausted => (
                "tenant_bytes_exhausted",
                "The tenant has written as many bytes of records as it may today.",
            ),
        }
    }

    #[must_use]
    pub const fn code(self) -> &'static str {
        self.parts().0
    }
}

/// What was decided about a call.
#[derive(Debug, Clone)]
pub struct Ruling {
    pub decision: Decision,
    pub reason_code: ReasonCode,
    pub reason: String,
    /// Sorted ids.
    pub matched_policies: Vec<String>,
    /// Sorted by group; not empty exactly when the decision is `require_approval`.
    pub approver_groups: Vec<ApproverGroup>,
    /// Sorted.
    pub redact_fields: Vec<String>,
    /// Known from step 9 on.
    pub tool: Option<Tool>,
    /// Present if the decision would have been another one without taint.
    pub taint: Option<Box<TaintExplanation>>,
    /// A repeated status denial, or one for the tenant's bound: answered and counted, not journalled.
    pub counted_only: bool,
    /// Whether the call's request id and nonce stand for this ruling from now on. Not so when it
    /// was ruled before the replay step: the request id may have its answer already.
    pub binds_request: bool,
}

impl Ruling {
    /// A denial without policies.
    #[must_use]
    pub fn deny(reason_code: ReasonCode) -> Self {
        Self {
            decision: Decision::Deny,
            reason_code,
            reason: reason_code.parts().1.to_owned(),
            matched_policies: Vec::new(),
            approver_groups: Vec::new(),
            redact_fields: Vec::new(),
            tool: None,
            taint: None,
            counted_only: false,
            binds_request: true,
        }
    }
}

/// The ruling that the evaluation of a call of `tool` comes to, with the approval that the call has.
pub fn from_policies(evaluation: &Evaluation, tool: Tool, approval: Option<&Approval>) -> Ruling {
    let mut ruling = Ruling::deny(ReasonCode::NoPolicyPermits);
    ruling.tool = Some(tool);
    if !evaluation.erring.is_empty() {
        // Cedar skips a policy that errs; had it been a forbid, it would be gone.
        ruling.matched_policies = ids(&evaluation.erring);
        return ruled(ruling, Decision::Deny, ReasonCode::PolicyError, Vec::new());
    }
    let determining = &evaluation.determining;
    ruling.matched_policies = ids(determining);
    let annotated = |kind: AnnotatedDecision| -> Vec<&'static PolicyRecord> {
        determining.iter().copied().filter(|p| p.annotations.decision == kind).collect()
    };
    if !evaluation.allowed {
        let quarantining = annotated(AnnotatedDecision::Quarantine);
        return if !quarantining.is_empty() {
            ruled(ruling, Decision::Quarantine, ReasonCode::PolicyQuarantine, quarantining)
        } else if determining.is_empty() {
            ruling
        } else {
            ruled(ruling, Decision::Deny, ReasonCode::PolicyForbid, determining.clone())
        };
    }
    let approving = annotated(AnnotatedDecision::RequireApproval);
    let redacting = annotated(AnnotatedDecision::Redact);
    ruling.redact_fields =
        sorted(redacting.iter().flat_map(|p| p.annotations.redact_fields).copied());
    let needed = needed_groups(&approving);
    let held_back = match approval {
        None => !approving.is_empty(),
        Some(approval) if needed.iter().all(|needed| approval.covers(needed)) => false,
        Some(_) => {
            return ruled(ruling, Decision::Deny, ReasonCode::ApprovalInsufficient, Vec::new());
        }
    };
    if held_back {
        ruling.approver_groups = needed;
        return ruled(
            ruling,
            Decision::RequireApproval,
            ReasonCode::PolicyRequireApproval,
            approving,
        );
    }
    if !redacting.is_empty() {
        return ruled(ruling, Decision::Redact, ReasonCode::PolicyRedact, redacting);
    }
    if !approving.is_empty() {
        return ruled(ruling, Decision::Allow, ReasonCode::ApprovalGranted, Vec::new());
    }
    let permitting = annotated(AnnotatedDecision::Plain);
    if permitting.is_empty() {
        // Allowed, and yet by no permit that the bundle knows: never let that pass.
        return ruled(ruling, Decision::Deny, ReasonCode::PolicyError, Vec::new());
    }
    ruled(ruling, Decision::Allow, ReasonCode::PolicyAllow, permitting)
}

/// What a server asks is let pass or not: nobody is asked to approve it, and it stops no agent.
pub fn without_effects(mut ruling: Ruling) -> Ruling {
    if !ruling.decision.passes() {
        ruling.decision = Decision::Deny;
        ruling.approver_groups = Vec::new();
    }
    ruling
}

/// Every group that a policy asks, each with the most people that any asks of it.
fn needed_groups(approving: &[&'static PolicyRecord]) -> Vec<ApproverGroup> {
    let mut groups: Vec<ApproverGroup> = Vec::new();
    for annotations in approving.iter().map(|policy| &policy.annotations) {
        let Some(group) = annotations.approver_group else { continue };
        match groups.iter_mut().find(|needed| needed.group == group) {
            Some(needed) => needed.quorum = needed.quorum.max(annotations.quorum),
            None => {
                groups.push(ApproverGroup { group: group.to_owned(), quorum: annotations.quorum });
            }
        }
    }
    groups.sort_unstable();
    groups
}

fn ids(policies: &[&'static PolicyRecord]) -> Vec<String> {
    policies.iter().map(|policy| policy.id.to_owned()).collect()
}

/// Sets the decision; the sentence is the deciding policies' own where they have one.
fn ruled(
    mut ruling: Ruling,
    decision: Decision,
    code: ReasonCode,
    deciding: Vec<&'static PolicyRecord>,
) -> Ruling {
    let mut sentences: Vec<&str> = deciding.iter().filter_map(|p| p.annotations.reason).collect();
    sentences.dedup();
    ruling.decision = decision;
    ruling.reason_code = code;
    ruling.reason =
        if sentences.is_empty() { code.parts().1.to_owned() } else { sentences.join(" ") };
    ruling
}

fn sorted<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut texts: Vec<String> = texts.map(str::to_owned).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}
