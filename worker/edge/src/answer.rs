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
    response.map(Answer::Whole).map_err(|_| internal("the response could not be written"))
}

/// The problem for what the caller cannot change.
pub fn internal(what: &str) -> Problem {
    let detail = format!("{what}; tell the worker's operator the request id");
    Problem::new(ProblemCode::Internal, detail)
}
