//! The steps of an approval's life: which of them a state allows, and how each changes the record.
//! [`crate::gate`] journals the steps.
//!
//! INVARIANT (one hash at a time): exactly one action hash is valid: that of the edited call if an
//! approver edited it, else that of the requested call. An edit discards the approvals before it,
//! since they were for another call.
//!
//! INVARIANT (closed is final): an approval that was rejected, cancelled or used, or has expired,
//! never changes again, and the call's arguments are deleted.

use super::command::{DecideCommand, Verdict};
use super::record::{
    Approval, ApprovalInput, ApprovalStatus, Approver, ApproverGroup, MAX_APPROVAL_INPUT_BYTES,
    REGISTRY,
};
use crate::call::Action;
use crate::etag::matches_etag;
use crate::json;
use crate::merge_patch::merge_patch;
use crate::problem::{Problem, ProblemCode};
use crate::text_enum::text_enum;

/// How often an approval may be used with a call that was not approved; the last such use cancels
/// the approval. One use may be a mistake. Five mean that an agent tries to get another call
/// through.
pub const MAX_TAMPERING: u8 = 5;

text_enum! {
    /// What a step was. The audit uses these names.
    ApprovalEvent {
        /// A call, or a change of the registry, waits for people. For a call, the decision's own row is this step's.
        Requested = "approval_requested",
        /// One more person approved, and more are needed.
        Endorsed = "approval_endorsed",
        Approved = "approval_approved",
        Rejected = "approval_rejected",
        Cancelled = "approval_cancelled",
        Expired = "approval_expired",
        Used = "approval_used",
        Tampered = "approval_tampered",
    }
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
    /// Applies an administrator's decision. On an error nothing changes. A person's repeated
    /// decision is a no-op, even if `If-Match` names the revision before the decision: a caller
    /// that got no answer may repeat the request (RFC 9110, section 13.1.1).
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
        let edited = edited.filter(|(hash, _)| hash != self.valid_hash());
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
            Some(hash) if hash != self.valid_hash() => {
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

    /// Notes that it was presented for another call. After [`MAX_TAMPERING`] times, it is cancelled.
    pub fn note_tampering(&mut self, now_ms: u64) -> ApprovalEvent {
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
            _ if self.agent != REGISTRY || self.valid_hash() != action_hash => {
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
