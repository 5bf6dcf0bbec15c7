//! Taint as it is shown to callers and approvers, and stored in receipts. A lane's own state of it is in
//! `gate/taint_state.rs`.

use serde::{Deserialize, Serialize};

use crate::trust::SourceTrust;

/// The highest trust of a tainted call.
pub const TAINTED_TRUST: SourceTrust = SourceTrust::UntrustedExternal;

/// How long a taint lasts after the last untrusted text, unless the tenant's limits say
/// otherwise. An agent's context seldom lasts longer than a day.
pub const DEFAULT_TAINT_S: u32 = 24 * 60 * 60;

/// The calls that a taint applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All calls of the agent.
    Agent,
    /// The calls of one run that a harness assigned.
    Run(&'a str),
}

/// A call whose answer may have had untrusted text. Decision ids sort by time, so the greatest is the newest.
/// Fields are in the order that receipts need.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
pub struct TaintingCall {
    /// The decision that allowed it.
    pub decision_id: String,
    pub server: String,
    pub tool: String,
}

/// The cause and the end of a taint, for people. It is a part of decisions, receipts, approvals and audit
/// events. Fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Taint)]
pub struct TaintExplanation {
    /// The newest call that may have returned such text; absent when none is known, for example because the text was
    /// not the result of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TaintingCall)]
    pub call: Option<TaintingCall>,
    /// When it ends, unless more text arrives or an administrator removes the taint.
    #[schema(format = DateTime)]
    pub ends_at: String,
    /// When the last text arrived.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// The servers whose text it was, the newest last; at most four.
    pub servers: Vec<String>,
    #[schema(format = DateTime)]
    pub since: String,
}

impl TaintExplanation {
    /// The explanation in sentences that a model can pass on. All names in it are registered.
    #[must_use]
    pub fn sentences(&self, scope: Scope<'_>, agent: &str) -> String {
        let Self { call, ends_at, servers, since, .. } = self;
        let reader = match scope {
            Scope::Agent => "agent",
            Scope::Run(_) => "run",
        };
        let plural = if servers.len() == 1 { "" } else { "s" };
        let servers = servers.join("`, `");
        let call = call.as_ref().map_or_else(String::new, |call| {
            let TaintingCall { decision_id, server, tool } = call;
            format!(
                "; the latest call that may have returned it was `{server}/{tool}` (decision {decision_id})"
            )
        });
        format!(
            "Since {since} this {reader} may have read untrusted text of the server{plural} \
             `{servers}`{call}. This taint ends at {ends_at} if no more such text comes, or when an \
             administrator runs `gateward agent untaint {agent}`."
        )
    }
}
