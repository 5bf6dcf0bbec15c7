//! The lane's answer to a proxy: the decision, as far as a proxy needs it, and where the call goes.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::call::command::{GateCommand, Purpose};
use crate::decision::{Decision, ReasonCode};
use crate::json;
use crate::limit::Violation;
use crate::problem::{Problem, ProblemCode};
use crate::provenance::ResultTrust;
use crate::registry::upstream::{DenialForm, Upstream};
use crate::shield::{Modes, Noted};
use crate::warrant::NeededApprovals;

/// Whether an agent could use an item of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Visibility {
    Visible,
    /// Usable. Nobody approved its definition by hash, so its text is untrusted text of the server.
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

/// What a proxy must know, so that a text of the server taints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untrusted {
    /// The run that the text taints, if a harness assigned one; otherwise the text taints the
    /// agent.
    pub run: Option<String>,
    /// How long the taint lasts.
    pub period_ms: u64,
    /// SHA-256 of the instructions that were pinned when the server was registered, in lower-case
    /// hex. Pinned instructions do not taint.
    pub instructions_sha256: Option<String>,
}

/// What a proxy must observe in the answer to a message of an assigned run. The last piece of the answer, or the list in
/// it, is passed on only when the lane has stored the values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observe {
    pub run: String,
    /// Whether the server is trusted.
    pub trusted: bool,
    /// Which parts of the result have a trust of their own.
    pub result_trust: Option<ResultTrust>,
}

/// How a proxy inspects what the server returns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InspectResults {
    /// The modes that hold for the call.
    pub modes: Modes,
    /// The modes of the server, for messages that belong to no call.
    pub server: Modes,
    /// Whose calls a finding taints.
    pub taints: Untrusted,
}

/// What a proxy must do with what the server returns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRules {
    /// Present if the server is untrusted and the request may go there.
    pub untrusted: Option<Untrusted>,
    /// Present if the proxy must observe the values of the answer. If there is no decision, it observes only
    /// the values of lists, and those of errors and completions of an untrusted server.
    pub observe: Option<Observe>,
    /// Present if the server's registration asks for it.
    pub inspect: Option<InspectResults>,
}

/// A [`ProxyReply`], as the lane writes it. The routes stay in the lane.
#[derive(Serialize)]
struct Reply<'a> {
    decision: Option<&'a RawValue>,
    upstream: Option<Upstream>,
    answer: AnswerRules,
    denial: DenialForm,
    tool: &'a str,
    route: &'a str,
    visible: &'a [Visibility],
}

/// Writes a [`ProxyReply`] as JSON; `decision` is the JSON of a decision.
#[must_use]
pub fn reply(
    decision: Option<&str>,
    upstream: Option<&Upstream>,
    answer: AnswerRules,
    denial: DenialForm,
    command: &GateCommand,
    visible: &[Visibility],
) -> String {
    let decision = match decision.map(serde_json::from_str).transpose() {
        Ok(decision) => decision,
        // A proxy cannot read an empty reply, so nothing passes.
        Err(_) => return String::new(),
    };
    let route = match &command.purpose {
        Purpose::Routed(path) => path.as_str(),
        _ => "",
    };
    let upstream = upstream.map(Upstream::without_routes);
    let tool = &command.call.tool;
    let reply = Reply { decision, upstream, answer, denial, tool, route, visible };
    json::to_string(&reply)
}

/// The lane's answer, as a proxy reads it.
#[derive(Debug, Deserialize)]
pub struct ProxyReply {
    /// Absent if no decision was needed: the request passes.
    pub decision: Option<ProxyDecision>,
    /// Where the request goes; present if it may.
    pub upstream: Option<Upstream>,
    pub answer: AnswerRules,
    /// How a denial is answered.
    pub denial: DenialForm,
    /// The tool that is called.
    pub tool: String,
    /// The path of the route that an HTTP request matched; otherwise empty.
    pub route: String,
    /// The visibility of each candidate, in order.
    pub visible: Vec<Visibility>,
}

/// The members of [`super::respond::AuthorizeResponse`] that a proxy needs.
#[derive(Debug, Deserialize)]
pub struct ProxyDecision {
    pub decision_id: String,
    pub decision: Decision,
    pub reason: String,
    pub reason_code: ReasonCode,
    pub matched_policies: Vec<String>,
    pub redacted_fields: Vec<String>,
    /// What the shield found.
    #[serde(default)]
    pub shield: Noted,
    /// The limit that denies the call, in a list.
    #[serde(default)]
    pub violated_limits: Vec<Violation>,
    /// The approvals that the call's warrant asks for.
    #[serde(default)]
    pub warrant_approvals: Option<NeededApprovals>,
    pub approval: Option<ProxyApproval>,
    pub receipt: Option<ProxyReceipt>,
    /// `degraded`, or absent.
    #[serde(default)]
    pub engine_mode: Option<String>,
}

impl ProxyDecision {
    /// What the caller of an HTTP API or of a gateway gets if the decision does not let the call pass.
    #[must_use]
    pub fn problem(&self) -> Problem {
        let problem = Problem::new(ProblemCode::CallDenied, &self.reason);
        Problem {
            violated_limit: self.violated_limits.first().cloned().map(Box::new),
            warrant_approvals: self.warrant_approvals.as_ref().and_then(NeededApprovals::to_json),
            ..problem
        }
    }
}

/// The approval that the decision asks for, or that the call presented.
#[derive(Debug, Deserialize)]
pub struct ProxyApproval {
    pub approval_id: String,
    pub expires_at: String,
}

/// The decision's receipt.
#[derive(Debug, Deserialize)]
pub struct ProxyReceipt {
    pub receipt_hash: String,
}
