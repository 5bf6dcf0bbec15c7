//! The state of limits, as agents and administrators read it.

use serde::Serialize;
use utoipa::ToSchema;

use crate::limit::book::Status;

/// What is left of the limits of an agent, and of a credential of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitStates {
    pub agent: String,
    /// Limits of the agent, and of each agent.
    pub of_agent: Vec<Status>,
    /// Limits of the credential, and of each credential; empty if no credential was named.
    pub of_credential: Vec<Status>,
}
