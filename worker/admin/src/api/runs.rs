//! Answers to a harness's requests about its runs.

use serde::Serialize;
use utoipa::ToSchema;

/// A run, and a credential with which an agent makes calls in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct IssuedRun {
    pub run_id: String,
    /// The run credential. It is shown only once.
    pub credential: String,
    /// When the run credential expires.
    #[schema(format = DateTime)]
    pub expires_at: String,
}

/// A result was recorded.
#[derive(Debug, Serialize, ToSchema)]
pub struct Recorded {
    /// Always `true`: otherwise the answer is a problem.
    pub recorded: bool,
}
