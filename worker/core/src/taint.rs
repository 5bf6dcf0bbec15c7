//! Taint, as callers, approvers and receipts are told of it. What a lane remembers of it is in
//! `gate/taint_state.rs`.

use serde::{Deserialize, Serialize};

use crate::trust::SourceTrust;

/// The most that a tainted call is trusted.
pub const TAINTED_TRUST: SourceTrust = SourceTrust::UntrustedExternal;

/// How long a mark lasts after the last text of an untrusted server, unless the tenant registered
/// another period: an agent's context seldom outlives a day.
pub const DEFAULT_TAINT_S: u32 = 24 * 60 * 60;

/// Whose calls a mark concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All calls of the agent.
    Agent,
    /// The calls of a run that a harness assigned.
    Run(&'a str),
}

/// A call that was let pass to an untrusted server. Decision ids sort by time, so the greatest is the
/// newest. Fields are in the order that receipts need.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
pub struct TaintingCall {
    /// The decision that let it pass.
    pub decision_id: String,
    pub server: String,
    pub tool: String,
}

/// Where taint comes from and how it ends, for people. A part of decisions, receipts, approvals and
/// audit events: the fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = Taint)]
pub struct TaintExplanation {
    /// The newest call to an untrusted server; absent when none is known, as for text that answers no
    /// call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = TaintingCall)]
    pub call: Option<TaintingCall>,
    /// When it ends, unless more text comes or an administrator lifts it.
    #[schema(format = DateTime)]
    pub ends_at: String,
    /// When the last text came.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// Whose text it was. The newest last; at most four.
    pub servers: Vec<String>,
    #[schema(format = DateTime)]
    pub since: String,
}

impl TaintExplanation {
    /// In words that a model can pass on. All names in it are registered ones.
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
                "; its latest call to such a server was `{server}/{tool}` (decision {decision_id})"
            )
        });
        format!(
            "Since {since} this {reader} may have read text of the untrusted server{plural} \
             `{servers}`{call}. This taint ends at {ends_at} if no more such text comes, or when an \
             administrator runs `gateward agent untaint {agent}`."
        )
    }
}
