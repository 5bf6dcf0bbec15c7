//! Why a warrant does not carry a call.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decision::ReasonCode;
use crate::schema::quote;

/// A refusal: the code for programs, and a sentence for people. It names tools and arguments of the caller's own
/// warrant, and nothing that policies say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub code: ReasonCode,
    pub reason: String,
    /// Present if the code is [`ReasonCode::WarrantApprovalMissing`].
    pub approvals: Option<Box<NeededApprovals>>,
}

/// The approvals that a warrant asks for, if the call does not have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct NeededApprovals {
    /// What each approval must name: 64 lower-case hex digits.
    pub request_hash: String,
    /// How many valid approvals the call has.
    pub got: usize,
    /// How many it needs, each of another approver.
    pub need: usize,
}

impl NeededApprovals {
    /// For a problem's body.
    #[must_use]
    pub fn to_json(&self) -> Option<Box<Value>> {
        // Plain data always serializes.
        serde_json::to_value(self).ok().map(Box::new)
    }
}

/// Bytes of a reason beside its own words: those before it and after it.
const ROOM: usize = 80;

impl Refusal {
    #[must_use]
    pub fn new(code: ReasonCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into(), approvals: None }
    }

    /// A refusal of a call that does not have the approvals which its warrant asks for. The warrant names so many
    /// approvers.
    #[must_use]
    pub fn without_approvals(needed: NeededApprovals, approvers: usize) -> Self {
        let NeededApprovals { request_hash, need, .. } = &needed;
        let reason = format!(
            "The warrant asks for approvals: {need} of its approvers ({approvers}), for the request hash {request_hash}."
        );
        let approvals = Some(Box::new(needed));
        Self { approvals, ..Self::new(ReasonCode::WarrantApprovalMissing, reason) }
    }

    /// A refusal with the code's own sentence.
    #[must_use]
    #[inline(never)]
    pub fn of(code: ReasonCode) -> Self {
        let mut text = String::with_capacity(code.sentence().len() + ROOM);
        text.push_str(code.sentence());
        Self::new(code, text)
    }

    /// The refusal of bytes that cannot be read as a warrant.
    #[must_use]
    #[inline(never)]
    pub fn malformed(reason: &str) -> Self {
        let code = ReasonCode::WarrantMalformed;
        Self::new(code, ["The warrant cannot be read: ", reason, "."].concat())
    }

    /// The same, before any cryptography.
    #[must_use]
    pub fn before_signatures(mut self) -> Self {
        self.reason.push_str(" No signature was verified.");
        self
    }

    /// A refusal that concerns one link. The root is link 0.
    #[must_use]
    pub fn at(code: ReasonCode, link: usize, reason: &str) -> Self {
        Self::about(code, link, (reason, None, ""))
    }

    /// The same. The reason may name an argument or a tool between its words.
    ///
    /// It is written in one piece and without the formatter, because refusals must cost little.
    #[must_use]
    #[inline(never)]
    pub fn about(
        code: ReasonCode,
        link: usize,
        (before, argument, after): (&str, Option<&str>, &str),
    ) -> Self {
        let argument_bytes = argument.map_or(0, str::len);
        let mut text = String::with_capacity(before.len() + argument_bytes + after.len() + ROOM);
        text.push_str("Link ");
        text.push_str(itoa::Buffer::new().format(link));
        text.push_str(" of the warrant's chain: ");
        text.push_str(before);
        if let Some(argument) = argument {
            quote(&mut text, argument);
        }
        text.push_str(after);
        text.push('.');
        Self::new(code, text)
    }
}
