//! What people and the worker ask of an approval: the bodies of requests, and the commands to the lane.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::record::ApproverGroup;
use crate::field::parse as parse_body;
use crate::problem::Problem;

/// Bytes of an approver's comment.
pub const MAX_COMMENT_BYTES: usize = 1_000;

/// An administrator's decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// With a JSON Merge Patch (RFC 7396) of the arguments, as JSON text.
    Approve {
        edit: Option<String>,
    },
    Reject,
    Cancel,
}

/// The body of `POST /v1/approvals/{approval_id}/approve`; may be empty.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveRequest {
    /// At most 1,000 bytes.
    pub comment: Option<String>,
    /// The hash of the approved call. If the call was edited since, the approval is refused. For an
    /// edited call it is required, unless `If-Match` is sent.
    pub action_hash: Option<String>,
    /// Changes the call: a JSON Merge Patch (RFC 7396) of its arguments. Then only the edited call
    /// is valid, and everybody has to approve again.
    #[schema(value_type = Option<Object>)]
    pub edit: Option<serde_json::Map<String, serde_json::Value>>,
}

/// The body of `POST /v1/approvals/{approval_id}/reject` and `/cancel`; may be empty.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseRequest {
    /// At most 1,000 bytes.
    pub comment: Option<String>,
}

/// An administrator's decision on an approval, on its way to the lane. The worker has checked the
/// credential, its scope, and the groups, all as of one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideCommand {
    pub tenant: String,
    pub lane: u16,
    pub approval_id: String,
    pub administrator: String,
    pub key_id: String,
    /// Who issued the credential.
    #[serde(default)]
    pub issued_by: Option<String>,
    /// Names the request in answers and logs.
    pub http_request_id: String,
    /// All groups that the administrator is a member of.
    pub groups: Vec<String>,
    pub epoch: u64,
    pub verdict: Verdict,
    pub comment: Option<String>,
    /// The hash in the administrator's request.
    pub action_hash: Option<String>,
    /// The header `If-Match`.
    pub if_match: Option<String>,
}

/// A request to the lane that stores approvals of registry changes. The worker has checked the
/// credential, its scope and the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeCommand {
    pub tenant: String,
    pub lane: u16,
    pub administrator: String,
    pub key_id: String,
    pub epoch: u64,
    /// The hash of the change, in lower-case hex.
    pub action_hash: String,
    pub step: ChangeStep,
}

/// A step of a registry change's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStep {
    /// The change waits for approval.
    Ask {
        /// The change's audit event.
        event: String,
        resource: String,
        /// The change as approvers read it, in canonical form.
        input: String,
        groups: Vec<ApproverGroup>,
    },
    /// This request makes the change and uses the approval.
    Use { approval_id: String, request_id: String },
}

/// The decision that a route makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerdictKind {
    Approve,
    Reject,
    Cancel,
}

impl VerdictKind {
    /// Reads the body of a decision, which may be empty. Returns the verdict, the comment, and the
    /// hash of what is approved.
    ///
    /// # Errors
    ///
    /// `malformed_request` or `invalid_field`.
    pub fn read(self, body: &[u8]) -> Result<(Verdict, Option<String>, Option<String>), Problem> {
        let (verdict, comment, action_hash) = if self == Self::Approve {
            let request: ApproveRequest = read_body(body)?;
            let edit = request.edit.map(|patch| serde_json::Value::Object(patch).to_string());
            (Verdict::Approve { edit }, request.comment, request.action_hash)
        } else {
            let request: CloseRequest = read_body(body)?;
            let verdict = if self == Self::Reject { Verdict::Reject } else { Verdict::Cancel };
            (verdict, request.comment, None)
        };
        if comment.as_ref().is_some_and(|comment| comment.len() > MAX_COMMENT_BYTES) {
            let detail = format!("`comment` has more than {MAX_COMMENT_BYTES} bytes");
            return Err(Problem::field("comment", detail));
        }
        Ok((verdict, comment, action_hash))
    }
}

fn read_body<T: DeserializeOwned + Default>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() { Ok(T::default()) } else { parse_body(body) }
}
