//! Approvals: a call or a registry change that waits for people, and the steps of its life.
//!
//! An approval belongs to the lane that asked for it, and every change of it is a step of that
//! lane. This file decides which steps a state allows and how each changes the record.
//! [`crate::gate`] journals the steps.
//!
//! INVARIANT (one hash at a time): exactly one action hash is valid: that of the edited call if an
//! approver edited it, else that of the requested call. An edit discards the approvals before it,
//! since they were for another call.
//!
//! INVARIANT (closed is final): an approval that was rejected, cancelled or used, or has expired,
//! never changes again, and the call's arguments are deleted.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::call::Action;
use crate::clock::CLOCK_TOLERANCE_MS;
use crate::etag::matches_etag;
use crate::field::parse as parse_body;
use crate::json;
use crate::merge_patch::merge_patch;
use crate::problem::{Problem, ProblemCode};
use crate::provenance::Provenance;
use crate::taint::TaintExplanation;
use crate::text_enum::text_enum;
use crate::trust::SourceTrust;

/// Open approvals of one agent. A person does not review more, and with their requested and edited
/// arguments they take at most 13 MB.
pub const MAX_OPEN_APPROVALS: u32 = 100;

/// Bytes of the arguments, in canonical form, that are stored for the approvers to read.
pub const MAX_APPROVAL_INPUT_BYTES: usize = 64 * 1024;

/// Uses with another call than the approved one; the last of them cancels the approval. One may be
/// a mistake. Five are an agent that tries to get another call through.
pub const MAX_TAMPERING: u8 = 5;

/// How long an approval is open if its tool has no time of its own.
pub const DEFAULT_APPROVAL_S: u32 = 30 * 60;
/// The shortest time of a tool: in less, nobody could answer.
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

/// Bytes of an approver's comment.
pub const MAX_COMMENT_BYTES: usize = 1_000;

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
    /// The hash of the edited call. If there is one, only it is valid.
    pub edited_action_hash: Option<String>,
    pub edited_by: Option<String>,
    /// In order of time.
    pub approvers: Vec<Approver>,
    /// Who rejected or cancelled it.
    pub closed_by: Option<String>,
    /// The last decision's comment.
    pub comment: Option<String>,
    /// Uses with another call.
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

/// What a step was. The audit uses these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub enum ApprovalEvent {
    /// An administrator asked for a change of the registry that members of a group must approve.
    #[serde(rename = "approval_requested")]
    Requested,
    /// One more person approved, and more are needed.
    #[serde(rename = "approval_endorsed")]
    Endorsed,
    #[serde(rename = "approval_approved")]
    Approved,
    #[serde(rename = "approval_rejected")]
    Rejected,
    #[serde(rename = "approval_cancelled")]
    Cancelled,
    #[serde(rename = "approval_expired")]
    Expired,
    #[serde(rename = "approval_used")]
    Used,
    #[serde(rename = "approval_tampered")]
    Tampered,
}

impl ApprovalEvent {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "approval_requested",
            Self::Endorsed => "approval_endorsed",
            Self::Approved => "approval_approved",
            Self::Rejected => "approval_rejected",
            Self::Cancelled => "approval_cancelled",
            Self::Expired => "approval_expired",
            Self::Used => "approval_used",
            Self::Tampered => "approval_tampered",
        }
    }
}

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

/// The result of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decided {
    /// The approval changed.
    Step(ApprovalEvent),
    /// No-op: this person made the same decision before.
    Already,
}

impl Approval {
    /// The status at `now_ms`: expired also if the lane has not written it yet. One that was
    /// requested in the future counts as expired, since it would be open for too long.
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
    pub fn good_hash(&self) -> &str {
        self.edited_action_hash.as_deref().unwrap_or(&self.action_hash)
    }

    /// Whether enough different members of the group approved.
    #[must_use]
    pub fn covers(&self, needed: &ApproverGroup) -> bool {
        let of_group = |approver: &&Approver| approver.groups.contains(&needed.group);
        self.approvers.iter().filter(of_group).count() >= usize::from(needed.quorum)
    }

    /// Applies an administrator's decision. On an error nothing changes. A person's repeated
    /// decision is a no-op, also if `If-Match` names the revision before it: a caller that got no
    /// answer may repeat the request (RFC 9110, section 13.1.1).
    ///
    /// # Errors
    ///
    /// The problem for the administrator.
    pub fn decide(
        &mut self,
        input: &mut ApprovalInput,
        command: &DecideCommand,
        now_ms: u64,
    ) -> Result<Decided, Problem> {
        let (mut next, mut next_input) = (self.clone(), input.clone());
        let decided = match &command.verdict {
            Verdict::Approve { edit } => {
                next.approve(&mut next_input, command, edit.as_deref(), now_ms)
            }
            Verdict::Reject => next.reject(command, now_ms),
            Verdict::Cancel => next.cancel(command, now_ms),
        };
        if let Err(problem) = &decided
            && problem.code == ProblemCode::Forbidden
        {
            return Err(problem.clone());
        }
        let tags = command.if_match.as_deref();
        if decided != Ok(Decided::Already)
            && tags.is_some_and(|tags| !matches_etag(tags, self.revision))
        {
            let detail = "the approval was changed since you read it: read it again";
            return Err(Problem::new(ProblemCode::PreconditionFailed, detail));
        }
        let decided = decided?;
        if decided != Decided::Already {
            next.revision += 1;
            next.comment.clone_from(&command.comment);
            if next.closed_at_ms.is_some() {
                next_input = ApprovalInput::default();
            }
            (*self, *input) = (next, next_input);
        }
        Ok(decided)
    }

    fn approve(
        &mut self,
        input: &mut ApprovalInput,
        command: &DecideCommand,
        edit: Option<&str>,
        now_ms: u64,
    ) -> Result<Decided, Problem> {
        let groups = self.groups_of(command)?;
        let status = self.status_at(now_ms);
        if !status.is_open() {
            return Err(closed(status));
        }
        let conflict = |detail| Err(Problem::new(ProblemCode::StateConflict, detail));
        let edited = edit.map(|patch| self.edited(input, command, patch)).transpose()?;
        let edited = edited.filter(|(hash, _)| hash != self.good_hash());
        let name = command.administrator.as_str();
        let own = self.approvers.iter().find(|approver| approver.administrator == name);
        if edited.is_none()
            && let Some(own) = own
            && (status == ApprovalStatus::Approved
                || groups.iter().all(|group| own.groups.contains(group)))
        {
            return Ok(Decided::Already);
        }
        match &command.action_hash {
            Some(hash) if hash != self.good_hash() => {
                return conflict("the call has changed: read the approval again");
            }
            None if self.edited_action_hash.is_some() && command.if_match.is_none() => {
                return conflict(
                    "the call was edited: send the `action_hash` of the call that you approve",
                );
            }
            _ => {}
        }
        if status == ApprovalStatus::Approved {
            return conflict("the approval already has all the approvals that it needs");
        }
        // There are never more approvers than the quorums need.
        let needed =
            |needed: &&ApproverGroup| groups.contains(&needed.group) && !self.covers(needed);
        if edited.is_none() && self.approver_groups.iter().find(needed).is_none() {
            return conflict("your groups already have all the approvals that they need");
        }
        if let Some((hash, arguments)) = edited {
            self.edited_action_hash = Some(hash);
            self.edited_by = Some(name.to_owned());
            input.edited = Some(arguments);
            self.approvers.clear();
        }
        match self.approvers.iter_mut().find(|approver| approver.administrator == name) {
            // Membership has grown.
            Some(approver) => {
                approver.groups.extend(groups);
                approver.groups.sort_unstable();
                approver.groups.dedup();
            }
            None => {
                let administrator = name.to_owned();
                self.approvers.push(Approver {
                    administrator,
                    key_id: command.key_id.clone(),
                    issued_by: command.issued_by.clone(),
                    groups,
                    at_ms: now_ms,
                });
            }
        }
        if !self.approver_groups.iter().all(|needed| self.covers(needed)) {
            return Ok(Decided::Step(ApprovalEvent::Endorsed));
        }
        self.status = ApprovalStatus::Approved;
        self.approved_at_ms = Some(now_ms);
        Ok(Decided::Step(ApprovalEvent::Approved))
    }

    fn reject(&mut self, command: &DecideCommand, now_ms: u64) -> Result<Decided, Problem> {
        self.groups_of(command)?;
        match self.status_at(now_ms) {
            ApprovalStatus::Pending => {
                self.close(ApprovalStatus::Rejected, Some(&command.administrator), now_ms);
                Ok(Decided::Step(ApprovalEvent::Rejected))
            }
            ApprovalStatus::Rejected if self.was_closed_by(command) => Ok(Decided::Already),
            ApprovalStatus::Approved => Err(Problem::new(
                ProblemCode::StateConflict,
                "the approval already has all the approvals that it needs; cancel it instead",
            )),
            status => Err(closed(status)),
        }
    }

    fn cancel(&mut self, command: &DecideCommand, now_ms: u64) -> Result<Decided, Problem> {
        match self.status_at(now_ms) {
            ApprovalStatus::Pending | ApprovalStatus::Approved => {
                self.close(ApprovalStatus::Cancelled, Some(&command.administrator), now_ms);
                Ok(Decided::Step(ApprovalEvent::Cancelled))
            }
            ApprovalStatus::Cancelled if self.was_closed_by(command) => Ok(Decided::Already),
            status => Err(closed(status)),
        }
    }

    fn was_closed_by(&self, command: &DecideCommand) -> bool {
        self.closed_by.as_deref() == Some(&command.administrator)
    }

    /// The approver groups that the administrator may decide for.
    fn groups_of(&self, command: &DecideCommand) -> Result<Vec<String>, Problem> {
        let forbidden = |detail| Err(Problem::new(ProblemCode::Forbidden, detail));
        if command.administrator == self.agent {
            return forbidden("you cannot decide on your own request");
        }
        let needed = self.approver_groups.iter().map(|needed| &needed.group);
        let groups: Vec<String> =
            needed.filter(|group| command.groups.contains(group)).cloned().collect();
        match groups.is_empty() {
            true => forbidden("you are not a member of a group that must approve"),
            false => Ok(groups),
        }
    }

    /// The edited call's hash and arguments.
    fn edited(
        &self,
        input: &ApprovalInput,
        command: &DecideCommand,
        patch: &str,
    ) -> Result<(String, String), Problem> {
        let read = |text: &str| {
            json::parse(text.as_bytes()).map_err(|error| match error.ambiguous {
                true => Problem::from(error),
                false => Problem::field("edit", error.message),
            })
        };
        if self.agent == REGISTRY {
            return Err(Problem::field("edit", "a change of the registry cannot be edited"));
        }
        let current = input.edited.as_ref().or(input.asked.as_ref());
        // Refuse a patch with a duplicate key.
        read(patch)?;
        let current = current.map_or("{}", String::as_str);
        let merged = merge_patch(current, patch)
            .map_err(|_| Problem::field("edit", "must be a JSON Merge Patch"))?;
        let arguments = read(&merged)?;
        let text = arguments.canonical();
        if text.len() > MAX_APPROVAL_INPUT_BYTES {
            let detail =
                format!("the edited arguments must have at most {MAX_APPROVAL_INPUT_BYTES} bytes");
            return Err(Problem::field("edit", detail));
        }
        let action = Action {
            tenant: &command.tenant,
            agent: &self.agent,
            server: &self.server,
            tool: &self.tool,
            resource: &self.resource,
            input: &arguments,
            route: self.route.as_ref().map(|(method, path)| (method.as_str(), path.as_str())),
            user: if self.assigned { &self.user_id } else { "" },
            run: if self.assigned { &self.run_id } else { "" },
        };
        Ok((hex::encode(action.hash()), text))
    }

    /// This decision uses it.
    pub fn use_up(&mut self, decision_id: &str, now_ms: u64) -> ApprovalEvent {
        self.used_by = Some(decision_id.to_owned());
        self.close(ApprovalStatus::Used, None, now_ms);
        self.revision += 1;
        ApprovalEvent::Used
    }

    /// It was presented for another call.
    pub fn tamper(&mut self, now_ms: u64) -> ApprovalEvent {
        self.tampering += 1;
        self.revision += 1;
        if self.tampering >= MAX_TAMPERING {
            self.close(ApprovalStatus::Cancelled, None, now_ms);
        }
        ApprovalEvent::Tampered
    }

    /// Whether it allows exactly this registry change now.
    ///
    /// # Errors
    ///
    /// The problem for the administrator.
    pub fn lets_change(&self, action_hash: &str, now_ms: u64) -> Result<(), Problem> {
        let conflict = |detail: &str| Err(Problem::new(ProblemCode::StateConflict, detail));
        match self.status_at(now_ms) {
            _ if self.agent != REGISTRY || self.good_hash() != action_hash => {
                conflict("the approval is for another change, or somebody else requested it")
            }
            ApprovalStatus::Approved => Ok(()),
            ApprovalStatus::Pending => conflict("the approval is not approved yet"),
            status => Err(closed(status)),
        }
    }

    /// It expires.
    pub fn expire(&mut self, now_ms: u64) -> ApprovalEvent {
        self.close(ApprovalStatus::Expired, None, now_ms);
        self.revision += 1;
        ApprovalEvent::Expired
    }

    fn close(&mut self, status: ApprovalStatus, by: Option<&str>, now_ms: u64) {
        self.status = status;
        self.closed_by = by.map(str::to_owned);
        self.closed_at_ms = Some(now_ms);
    }
}

fn closed(status: ApprovalStatus) -> Problem {
    let detail = format!("the approval is already {}", status.as_str());
    Problem::new(ProblemCode::StateConflict, detail)
}
