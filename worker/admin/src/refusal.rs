//! Problems that several kinds of changes are refused with.

use gateward_core::problem::{Problem, ProblemCode};

/// An operator's credentials are ended by operators.
pub(super) fn operators_only() -> Problem {
    Problem::new(ProblemCode::Forbidden, "only an operator revokes an operator's credential")
}

/// The problem for what the caller cannot change.
pub(super) fn internal(what: &str) -> Problem {
    let detail = format!("{what}; tell the worker's operator the request id");
    Problem::new(ProblemCode::Internal, detail)
}

/// The problem for a field that is not valid. `must` says what it must be.
pub(super) fn refused(field: &str, must: &str) -> Problem {
    Problem::field(field, format!("`{field}`: {must}"))
}

pub(super) fn conflict(detail: &str) -> Problem {
    Problem::new(ProblemCode::StateConflict, detail)
}

pub(super) fn name_taken(what: &str, deleted: bool) -> Problem {
    let detail = match deleted {
        true => format!("a deleted {what} had this name, so it cannot be used again"),
        false => format!("another {what} has this name"),
    };
    Problem::new(ProblemCode::NameTaken, detail)
}

pub(super) fn limit_reached(what: &str, max: u64) -> Problem {
    Problem::new(ProblemCode::LimitReached, format!("there are already {max} {what}, the limit"))
}
