//! What a lane tells a proxy: the decision as far as a proxy needs it, and where the call goes.

use serde::{Deserialize, Serialize};

use crate::call::command::{GateCommand, Purpose};
use crate::decision::{Decision, ReasonCode};
use crate::registry::upstream::{DenialForm, Upstream};

/// Whether an agent could use an item of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    Visible,
    /// Usable; but nobody approved its definition by hash, so its text is the server's own.
    Unreviewed,
    /// No call of this agent could pass.
    Hidden,
    /// Not registered.
    Unknown,
    /// Registered with another definition.
    Changed,
}

impl Visibility {
    /// Whether the agent could use the item.
    #[must_use]
    pub const fn is_usable(self) -> bool {
        matches!(self, Self::Visible | Self::Unreviewed)
    }
}

/// What a proxy must know of an untrusted server, so that its text taints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untrusted {
    /// The run that its text taints, if a harness assigned one; else it taints the agent.
    pub run: Option<String>,
    /// How long the taint lasts.
    pub period_ms: u64,
    /// SHA-256 of the instructions that were pinned when the server was registered, in lower-case
    /// hex. These do not taint.
    pub instructions_sha256: Option<String>,
}

/// Writes a [`ProxyReply`]; the decision is JSON already. The routes stay in the lane.
#[must_use]
pub fn reply(
    decision: Option<&str>,
    upstream: Option<&Upstream>,
    untrusted: Option<Untrusted>,
    denial: DenialForm,
    command: &GateCommand,
    visible: &[Visibility],
) -> String {
    // Plain data always serializes; what were empty could not be read, and nothing passes then.
    let json = |value: serde_json::Result<String>| value.unwrap_or_default();
    let upstream = json(serde_json::to_string(&upstream.map(Upstream::without_routes)));
    let untrusted = json(serde_json::to_string(&untrusted));
    let visible = json(serde_json::to_string(visible));
    let denial = json(serde_json::to_string(&denial));
    let route = match &command.purpose {
        Purpose::Routed(path) => path.as_str(),
        _ => "",
    };
    let route = json(serde_json::to_string(route));
    let tool = json(serde_json::to_string(&command.call.tool));
    let decision = decision.unwrap_or("null");
    format!(
        "{{\"decision\":{decision},\"upstream\":{upstream},\"untrusted\":{untrusted},\
         \"denial\":{denial},\"tool\":{tool},\"route\":{route},\"visible\":{visible}}}"
    )
}

/// As a proxy reads it.
#[derive(Debug, Deserialize)]
pub struct ProxyReply {
    /// Absent when none was made: the request is admitted.
    pub decision: Option<ProxyDecision>,
    /// Present when the request may go there.
    pub upstream: Option<Upstream>,
    /// Present when the server is untrusted and the request may go there.
    pub untrusted: Option<Untrusted>,
    /// How a denial is answered.
    pub denial: DenialForm,
    /// What is called.
    pub tool: String,
    /// The path of the route by which an HTTP request calls it.
    pub route: String,
    /// Of each candidate, in order.
    pub visible: Vec<Visibility>,
}

/// What of [`crate::gate::respond::Response`] a proxy needs.
#[derive(Debug, Deserialize)]
pub struct ProxyDecision {
    pub decision_id: String,
    pub decision: Decision,
    pub reason: String,
    pub reason_code: ReasonCode,
    pub matched_policies: Vec<String>,
    pub redacted_fields: Vec<String>,
    pub approval: Option<ProxyApproval>,
    pub receipt: Option<ProxyReceipt>,
    /// `degraded`, or absent.
    #[serde(default)]
    pub engine_mode: Option<String>,
}

/// What the decision asks for, or the call presented.
#[derive(Debug, Deserialize)]
pub struct ProxyApproval {
    pub approval_id: String,
    pub expires_at: String,
}

/// The decision's link in the chain.
#[derive(Debug, Deserialize)]
pub struct ProxyReceipt {
    pub receipt_hash: String,
}
