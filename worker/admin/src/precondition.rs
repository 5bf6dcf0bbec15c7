//! `If-Match`.

use gateward_core::etag::matches_etag;
use gateward_core::problem::{Problem, ProblemCode};

use crate::change::At;

/// Whether `If-Match` allows a change of this revision.
pub(super) fn check_match(at: &At<'_>, revision: u64) -> Result<(), Problem> {
    if at.if_match.is_none_or(|header| matches_etag(header, revision)) {
        return Ok(());
    }
    let detail = "the record was changed since you read it: read it again";
    Err(Problem::new(ProblemCode::PreconditionFailed, detail))
}

/// Records that never change have no revision, so only `*` matches.
pub(super) fn check_no_match(at: &At<'_>) -> Result<(), Problem> {
    if at.if_match.is_none_or(|header| header.trim() == "*") {
        return Ok(());
    }
    let detail = "this record has no revision: leave `If-Match` out";
    Err(Problem::new(ProblemCode::PreconditionFailed, detail))
}
