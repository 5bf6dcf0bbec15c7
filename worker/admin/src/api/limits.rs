//! The state of limits, as agents and administrators read it.

use gateward_core::limit::status::Status;
use gateward_core::registry::SubjectKind;
use serde::Serialize;
use utoipa::ToSchema;

/// What is left of the limits of an agent, and of a credential of it; or what is left of one limit.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct LimitStates {
    /// Null if one limit was asked for.
    #[schema(required)]
    pub agent: Option<String>,
    /// Limits of the agent, and of each agent. If a limit covers its requests, it comes first.
    pub of_agent: Vec<Status>,
    /// Limits of the credential, and of each credential; empty if no credential was named.
    pub of_credential: Vec<Status>,
    /// Limits of the tenant and of the agent's groups; or the count of the subject that was asked for; or the
    /// first 100 counts of the limit that was asked for. What lanes hold of them counts as used.
    pub shared: Vec<SharedLimitState>,
}

/// What is left of a limit that is counted for several agents together.
#[derive(Debug, Serialize, ToSchema)]
pub struct SharedLimitState {
    pub subject_kind: SubjectKind,
    /// What is counted: a group, a tool, a server, a user, or `*` for the tenant.
    pub subject: String,
    #[serde(flatten)]
    pub state: Status,
}
