//! What every handler returns.

use gateward_core::problem::{Problem, ProblemCode};
use worker::Result;
use worker::worker_sys::web_sys::Response;

pub enum Answer {
    /// The body of a 200 response.
    Json(String),
    /// A response with its own status and headers.
    Whole(Response),
}

pub type Answered = std::result::Result<Answer, Problem>;

/// A response with its own status and headers, or a problem if the runtime cannot create it.
pub fn whole(response: Result<Response>) -> Answered {
    let failed = |_| Problem::new(ProblemCode::Internal, "the response could not be written");
    response.map(Answer::Whole).map_err(failed)
}
