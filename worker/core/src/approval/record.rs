//! Approvals: a call or a registry change that waits for people.
//!
//! An approval belongs to the lane that asked for it, and every change of it is a step of that
//! lane (`steps.rs`).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::clock::CLOCK_TOLERANCE_MS;
use crate::provenance::Provenance;
use crate::taint::TaintExplanation;
use crate::text_enum::text_enum;
use crate::trust::SourceTrust;

/// Open approvals of one agent. A person does not review more, and with their requested and edited
/// arguments they take at most 13 MB.
pub const MAX_OPEN_APPROVALS: u32 = 100;

/// Bytes of the arguments, in canonical form, that are stored for the approvers to read.
pub const MAX_APPROVAL_INPUT_BYTES: usize = 64 * 1024;

/// How long an approval is open if its tool has no time of its own.
pub const DEFAULT_APPROVAL_S: u32 = 30 * 60;
/// The shortest time of a tool. Nobody could answer in less time.
pub const MIN_APPROVAL_S: u32 = 60;
/// The longest time of a tool: a week, which covers a long weekend.
pub const MAX_APPROVAL_S: u32 = 7 * 24 * 60 * 60;

/// The agent in an approval of a registry change. No agent can have this name, so no call uses such
/// an approval and no agent reads it.
pub const REGISTRY: &str = "_registry";
/// The server in an approval of a registry change.
pub const REGISTRY_SERVER: &str = "gateward";
/// How long a registry change waits: the members of a group may work in different time zones.
pub const CHANGE_APPROVAL_S: u32 = 24 * 60 * 60;

text_enum! {
    /// The state of an approval. `pending` and `approved` ones are open, the others are closed.
    ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Rejected = "rejected",
        Cancelled = "cancelled",
        Expired = "expired",
        Used = "used",
    }
}

impl ApprovalStatus {
    /// Whether its status can still change.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Approved)
    }
}

/// A group whose members must approve, and how many of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct ApproverGroup {
    pub group: String,
    /// Different people.
    #[schema(minimum = 1, maximum = 16)]
    pub quorum: u8,
}

/// One person's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approver {
    pub administrator: String,
    /// The key id of the credential that approved; empty if the approval is older than this field.
    #[serde(default)]
    pub key_id: String,
    /// Who issued that credential.
    #[serde(default)]
    pub issued_by: Option<String>,
    /// The approver groups that the person was a member of. Sorted.
    pub groups: Vec<String>,
    pub at_ms: u64,
}

/// The warrant of a call that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApprovalWarrant {
    /// The id of the last link: 32 hex digits.
    pub id: String,
    /// The key of the last link's holder, who makes the call: 64 hex digits.
    pub holder: String,
}

/// An approval without the call's arguments. Persisted in the lane, in its journal's rows and in
/// D1: a new field needs a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub approval_id: String,
    /// The decision that asked for it.
    pub decision_id: String,
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub resource: String,
    /// As the caller stated it. The action hash covers it only if `assigned`.
    pub user_id: String,
    pub run_id: String,
    /// Whether a harness stated user and run.
    #[serde(default)]
    pub assigned: bool,
    /// The MCP session of the call. Approvers see it; the action hash does not cover it.
    #[serde(default)]
    pub session: Option<String>,
    /// Method and path of the registered route, for an HTTP request.
    #[serde(default)]
    pub route: Option<(String, String)>,
    /// The effective trust.
    pub source_trust: SourceTrust,
    /// Present if the call waits because of taint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<TaintExplanation>,
    /// Where the destinations of the call came from, if that was looked up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
    /// As the call had it. The action hash does not cover it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warrant: Option<ApprovalWarrant>,
    pub reason: String,
    pub matched_policies: Vec<String>,
    pub status: ApprovalStatus,
    /// Counts changes.
    pub revision: u64,
    /// Sorted by group.
    pub approver_groups: Vec<ApproverGroup>,
    /// The hash of the requested call, in lower-case hex.
    pub action_hash: String,
    /// The hash of the edited call. If it is present, only this hash is valid.
    pub edited_action_hash: Option<String>,
    pub edited_by: Option<String>,
    /// In order of time.
    pub approvers: Vec<Approver>,
    /// Who rejected or cancelled it.
    pub closed_by: Option<String>,
    /// The last decision's comment.
    pub comment: Option<String>,
    /// How often it was used with another call.
    pub tampering: u8,
    /// The decision that used it.
    pub used_by: Option<String>,
    pub created_at_ms: u64,
    pub expires_at_ms: u64,
    pub approved_at_ms: Option<u64>,
    pub closed_at_ms: Option<u64>,
}

/// The arguments of a call that waits, in canonical form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalInput {
    pub asked: Option<String>,
    pub edited: Option<String>,
}

/// An approval in its lane.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldApproval {
    pub approval: Approval,
    pub input: ApprovalInput,
}

impl Approval {
    /// The status at `now_ms`. It is expired even if the lane has not written the expiry yet. An
    /// approval with a request time in the future counts as expired, because it would be open for
    /// too long.
    #[must_use]
    pub fn status_at(&self, now_ms: u64) -> ApprovalStatus {
        let latest_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let over = now_ms >= self.expires_at_ms || self.created_at_ms > latest_ms;
        match self.status.is_open() && over {
            true => ApprovalStatus::Expired,
            false => self.status,
        }
    }

    /// The only valid hash.
    #[must_use]
    pub fn valid_hash(&self) -> &str {
        self.edited_action_hash.as_deref().unwrap_or(&self.action_hash)
    }

    /// Whether enough different members of the group approved.
    #[must_use]
    pub fn covers(&self, needed: &ApproverGroup) -> bool {
        let of_group = |approver: &&Approver| approver.groups.contains(&needed.group);
        self.approvers.iter().filter(of_group).count() >= usize::from(needed.quorum)
    }
}
