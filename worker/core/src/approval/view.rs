//! Approvals in answers.

use serde::Serialize;
use utoipa::ToSchema;

use super::record::{Approval, ApprovalInput, ApprovalStatus, ApprovalWarrant, ApproverGroup};
use crate::provenance::Provenance;
use crate::taint::TaintExplanation;
use crate::trust::SourceTrust;

/// An approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Approval)]
pub struct ApprovalView<'a> {
    approval_id: &'a str,
    status: ApprovalStatus,
    revision: u64,
    /// The decision that asked for it; empty for a change of the registry.
    decision_id: &'a str,
    /// `_registry` for a change of the registry; `user_id` is then the administrator who asks.
    agent: &'a str,
    server: &'a str,
    tool: &'a str,
    resource: &'a str,
    /// As the caller stated it. The action hash covers it only if `assigned`.
    user_id: &'a str,
    /// As the caller stated it. The action hash covers it only if `assigned`.
    run_id: &'a str,
    /// Whether a harness stated user and run: then the approval is for this user and run alone.
    assigned: bool,
    /// The MCP session of the call; null if there was none. The hash never covers it.
    session: Option<&'a str>,
    /// Of an HTTP request; covered by the hash, as is `route`.
    method: Option<&'a str>,
    /// The path of the registered route.
    route: Option<&'a str>,
    source_trust: SourceTrust,
    /// The taint because of which the call waits; null if it would wait without taint, too.
    taint: Option<&'a TaintExplanation>,
    /// Where the destinations of the call came from; null if that was not looked up.
    provenance: Option<&'a Provenance>,
    /// The warrant of the call that asked; null if it had none. The hash never covers it: the approval is good for the
    /// same call of each holder of the agent's warrants, and of the agent itself.
    warrant: Option<&'a ApprovalWarrant>,
    /// Why approval is needed.
    reason: &'a str,
    matched_policies: &'a [String],
    /// All of them must approve.
    approver_groups: &'a [ApproverGroup],
    approvers: Vec<ApproverView<'a>>,
    /// Of the call that was asked for.
    action_hash: &'a str,
    /// Its arguments; null in lists, and once the approval is closed.
    #[schema(value_type = Option<Object>)]
    input: Option<serde_json::Value>,
    /// The call as an approver edited it: then only this one is valid.
    edited: Option<Edited<'a>>,
    /// Who rejected or cancelled it; null if nobody did.
    closed_by: Option<&'a str>,
    /// The last decision's comment.
    comment: Option<&'a str>,
    /// How often it was presented for another call; the fifth time cancels it.
    tampering: u8,
    /// The decision that used it; for a change of the registry, the request.
    used_by: Option<&'a str>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    approved_at: Option<String>,
    #[schema(format = DateTime)]
    closed_at: Option<String>,
    /// In the answer to a decision: whether the same person had made it before. It counts once.
    already_decided: bool,
}

/// One person's approval.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Approver)]
pub struct ApproverView<'a> {
    administrator: &'a str,
    /// The key id of the credential that approved; empty if the approval is older than this field.
    key_id: &'a str,
    /// Who issued that credential; null if the approval is older than this field.
    issued_by: Option<&'a str>,
    /// The approver groups for which it counts.
    groups: &'a [String],
    #[schema(format = DateTime)]
    at: String,
}

/// A call as an approver edited it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EditedCall)]
pub struct Edited<'a> {
    action_hash: &'a str,
    by: &'a str,
    /// Null in lists, and once the approval is closed.
    #[schema(value_type = Option<Object>)]
    input: Option<serde_json::Value>,
}

impl Approval {
    /// The approval as of `now_ms`.
    #[must_use]
    pub fn view(&self, input: &ApprovalInput, now_ms: u64, already: bool) -> ApprovalView<'_> {
        let rfc3339 = crate::id::rfc3339;
        let open = self.status_at(now_ms).is_open();
        // The lane wrote it. If it is unreadable, the rest is still useful.
        let read = |text: &Option<String>| {
            text.as_deref().filter(|_| open).and_then(|text| serde_json::from_str(text).ok())
        };
        ApprovalView {
            approval_id: &self.approval_id,
            status: self.status_at(now_ms),
            revision: self.revision,
            decision_id: &self.decision_id,
            agent: &self.agent,
            server: &self.server,
            tool: &self.tool,
            resource: &self.resource,
            user_id: &self.user_id,
            run_id: &self.run_id,
            assigned: self.assigned,
            session: self.session.as_deref(),
            method: self.route.as_ref().map(|(method, _)| method.as_str()),
            route: self.route.as_ref().map(|(_, path)| path.as_str()),
            source_trust: self.source_trust,
            taint: self.taint.as_ref(),
            provenance: self.provenance.as_ref(),
            warrant: self.warrant.as_ref(),
            reason: &self.reason,
            matched_policies: &self.matched_policies,
            approver_groups: &self.approver_groups,
            approvers: self
                .approvers
                .iter()
                .map(|approver| ApproverView {
                    administrator: &approver.administrator,
                    key_id: &approver.key_id,
                    issued_by: approver.issued_by.as_deref(),
                    groups: &approver.groups,
                    at: rfc3339(approver.at_ms),
                })
                .collect(),
            action_hash: &self.action_hash,
            input: read(&input.asked),
            edited: self.edited_action_hash.as_deref().map(|action_hash| Edited {
                action_hash,
                by: self.edited_by.as_deref().unwrap_or_default(),
                input: read(&input.edited),
            }),
            closed_by: self.closed_by.as_deref(),
            comment: self.comment.as_deref(),
            tampering: self.tampering,
            used_by: self.used_by.as_deref(),
            created_at: rfc3339(self.created_at_ms),
            expires_at: rfc3339(self.expires_at_ms),
            approved_at: self.approved_at_ms.map(rfc3339),
            closed_at: self.closed_at_ms.map(rfc3339),
            already_decided: already,
        }
    }
}
