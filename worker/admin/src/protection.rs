//! Protected groups: members must approve each change that affects who can approve.
//!
//! A quorum is worth only as much as its group. So these changes wait until members of the
//! protected group approve them: adding a member, issuing a credential to a member, and ending the
//! protection. Removing a member waits too, since it makes the group smaller and the next change
//! easier.
//!
//! INVARIANT (never alone): such a change needs the approvals of two different members, or of the
//! only one while there is one. It does not matter who asks: a member with `registry:write` could
//! create another administrator to ask in its place.
//!
//! INVARIANT (never empty): a protected group has at least one administrator as a member.

use gateward_core::approval::{ApproverGroup, MAX_APPROVAL_INPUT_BYTES};
use gateward_core::json::{self, Json};
use gateward_core::problem::{Problem, ProblemCode};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use crate::change::{Actor, At, Change, Outcome, RequiredApproval};
use crate::refusal::conflict;

/// Members who must approve: more than one person.
pub const QUORUM: u8 = 2;

/// A protected group that a change concerns.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Protected {
    pub group: String,
    /// Administrators who are members; counted up to [`QUORUM`].
    pub administrators: u8,
}

impl Protected {
    fn needed(&self) -> ApproverGroup {
        let quorum = self.administrators.clamp(1, QUORUM);
        ApproverGroup { group: self.group.clone(), quorum }
    }
}

/// The change, if it has its approvals or needs none.
pub(super) fn guard(
    at: &At<'_>,
    protected: &[Protected],
    resource: &str,
    mut change: Change,
) -> Result<Outcome, Problem> {
    if protected.is_empty() {
        return Ok(Outcome::Changed(change));
    }
    let mut groups: Vec<ApproverGroup> = protected.iter().map(Protected::needed).collect();
    groups.sort_unstable();
    let Some(approval) = at.approval else {
        return Ok(Outcome::NeedsApproval(RequiredApproval {
            event: change.event,
            resource: resource.to_owned(),
            groups,
        }));
    };
    if !groups.iter().all(|needed| approval.covers(needed)) {
        return Err(conflict("the approval has fewer approvals than the change needs now"));
    }
    if let Some(detail) = change.detail.as_object_mut() {
        detail.insert("approval_id".to_owned(), approval.approval_id.as_str().into());
    }
    change.approved = true;
    Ok(Outcome::Changed(change))
}

/// A protected group keeps a member: without one, nobody could approve a new one.
pub(super) fn keeps_a_member(protected: &[Protected]) -> Result<(), Problem> {
    match protected.iter().any(|group| group.administrators < 2) {
        true => Err(conflict("a protected group keeps at least one administrator as a member")),
        false => Ok(()),
    }
}

/// A change as approvers see it, and the hash that binds the approval to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// JSON in canonical form: who asks, with which credential, method, path and body.
    pub input: String,
    /// SHA-256 in lower-case hex.
    pub hash: String,
}

/// The change that `actor` asks for in `tenant`. The actor's credential is part of it: the answer
/// may contain a new credential's secret, and others may have credentials of the same
/// administrator.
///
/// # Errors
///
/// `malformed_request` when the body is not JSON or is too large to be read by an approver,
/// `input_invalid` when it is ambiguous.
pub fn propose(
    tenant: &str,
    actor: &Actor,
    method: &str,
    path: &str,
    body: &[u8],
) -> Result<Proposal, Problem> {
    let malformed = |detail: String| Problem::new(ProblemCode::MalformedRequest, detail);
    let body = match body.is_empty() {
        true => Json::Null,
        false => json::parse_definition(body)?,
    };
    let text = |value: &str| Json::String(value.to_owned());
    let input = Json::Object(vec![
        ("administrator".to_owned(), text(&actor.name)),
        ("body".to_owned(), body),
        ("key_id".to_owned(), text(&actor.key_id)),
        ("method".to_owned(), text(method)),
        ("path".to_owned(), text(path)),
    ]);
    let input = input.canonical();
    if input.len() > MAX_APPROVAL_INPUT_BYTES {
        return Err(malformed(format!(
            "a change that needs approval must have at most {MAX_APPROVAL_INPUT_BYTES} bytes"
        )));
    }
    let hash = Sha256::new().chain_update("change:").chain_update(tenant).chain_update([0]);
    Ok(Proposal { hash: hex::encode(hash.chain_update(&input).finalize()), input })
}
