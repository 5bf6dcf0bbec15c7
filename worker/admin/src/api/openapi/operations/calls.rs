//! Calls, and the approvals that they wait for.

use gateward_core::approval::{
    ApprovalStatus, ApprovalView, ApproveRequest, CloseRequest, VerdictKind,
};
use gateward_core::call::outcome::OutcomeRequest;
use gateward_core::call::run::{ReportRequest, StartRequest};
use gateward_core::field::Name;
use gateward_core::gate::AuthorizeResponse;
use gateward_core::problem::ProblemCode::{
    AgentMismatch, CallDenied, EnvironmentMismatch, InvalidField, JournalFull, LaneUnavailable,
    RateLimited, RequestIdConflict, StateConflict, WarrantRefused,
};
use utoipa::openapi::Required;

use super::super::component::reference;
use super::super::entry::Entry;
use super::super::schema::AuthorizeRequest;
use crate::api::approvals::ApprovalPage;
use crate::api::runs::{IssuedRun, Recorded};

pub(super) fn authorize() -> Entry {
    Entry::new("calls", "authorize", "Asks whether a tool may be called.")
        .takes_with::<AuthorizeRequest>(Required::True)
        .answers::<AuthorizeResponse<'_>>()
        .refuses(&[
            AgentMismatch,
            CallDenied,
            EnvironmentMismatch,
            RequestIdConflict,
            RateLimited,
            JournalFull,
            LaneUnavailable,
            WarrantRefused,
        ])
}

pub(super) fn start_run() -> Entry {
    Entry::new(
        "calls",
        "start_run",
        "Starts a run with the user's instruction, or adds to the instruction of a run. Needs the \
         credential of a harness.",
    )
    .takes::<StartRequest>()
    .creates::<IssuedRun>("The run, and a credential for it.")
    .refuses(&[RateLimited, JournalFull, LaneUnavailable])
}

pub(super) fn report_result() -> Entry {
    Entry::new(
        "calls",
        "report_result",
        "Records a result that the agent got without Gateward. Needs the credential of a harness.",
    )
    .takes::<ReportRequest>()
    .answers::<Recorded>()
    .refuses(&[RateLimited, JournalFull, LaneUnavailable])
}

pub(super) fn report_outcome() -> Entry {
    Entry::new(
        "calls",
        "report_outcome",
        "Reports what became of a call that was allowed. Limits get back what it did not use.",
    )
    .takes::<OutcomeRequest>()
    .answers::<Recorded>()
    .refuses(&[RateLimited, JournalFull, LaneUnavailable])
}

pub(super) fn list_approvals() -> Entry {
    Entry::new(
        "approvals",
        "list_approvals",
        "Lists approvals without arguments, newest first; an agent sees its own.",
    )
    .filtered("status", reference::<ApprovalStatus>(), "Only with this status.")
    .filtered("group", reference::<Name>(), "Only those that ask this group to approve.")
    .filtered("agent", reference::<Name>(), "Only this agent's.")
    .in_pages()
    .answers::<ApprovalPage<'_>>()
}

pub(super) fn read_approval() -> Entry {
    Entry::new(
        "approvals",
        "read_approval",
        "Returns an approval, with the call's arguments \
         while it is open; an agent may poll its own.",
    )
    .answers::<ApprovalView<'_>>()
    .tagged()
    .polled()
    .refuses(&[LaneUnavailable])
}

pub(super) fn decide_approval(kind: VerdictKind) -> Entry {
    let (id, summary) = match kind {
        VerdictKind::Approve => (
            "approve_approval",
            "Approves a call, edited if the body says so, for the caller's groups.",
        ),
        VerdictKind::Reject => ("reject_approval", "Rejects a call. This is final."),
        VerdictKind::Cancel => {
            ("cancel_approval", "Cancels an open approval, granted or not. This is final.")
        }
    };
    let entry = Entry::new("approvals", id, summary);
    let entry = match kind {
        VerdictKind::Approve => entry.takes_with::<ApproveRequest>(Required::False),
        _ => entry.takes_with::<CloseRequest>(Required::False),
    };
    entry.answers::<ApprovalView<'_>>().tagged().matching().refuses(&[
        InvalidField,
        StateConflict,
        JournalFull,
        LaneUnavailable,
    ])
}
