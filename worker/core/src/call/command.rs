//! Step 5: a call as the worker sends it to its lane. `lane/protocol.rs` encodes it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::call::http_tool::{HttpRequest, Unresolved};
use crate::credential::signature::SignatureNonce;
use crate::json::Json;

/// Tools, resources or prompts of one listing that the lane looks at. A page of more is refused.
pub const MAX_CANDIDATES: usize = 1_000;

/// A call with the credential that makes it; its MAC was checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateCommand {
    pub tenant: String,
    pub lane: u16,
    pub key_id: String,
    /// SHA-256 of the credential's secret.
    pub secret_hash: [u8; 32],
    /// Names this request in answers and logs.
    pub http_request_id: String,
    /// The connecting address, as the platform says it.
    pub source_address: Option<IpAddr>,
    /// Whether the worker verified the request's signature.
    pub signed: bool,
    /// What makes the signed request good for one use. One HTTP request may make several commands;
    /// only the first has it.
    pub signature_nonce: Option<SignatureNonce>,
    pub purpose: Purpose,
    /// The MCP session that the call came in, if there is one. Approvers see it.
    pub session: Option<String>,
    /// The `Mcp-Param-*` headers that an MCP call came with, decoded: what follows, in lower case,
    /// and the value.
    pub parameters: Vec<(String, String)>,
    pub call: ToolCall,
}

/// What is wanted of the lane. Unless it is [`Purpose::Authorize`], the call names no environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Purpose {
    /// A decision, which the caller obeys.
    Authorize,
    /// A decision, and where the call goes if it is allowed: Gateward forwards it itself.
    Forward,
    /// The same of an HTTP request, whose tool and input the server's routes say.
    Route(HttpRequest),
    /// [`Purpose::Forward`] of an HTTP request, by the route of this path. The lane's own finding.
    Routed(String),
    /// An HTTP request that is no call: why. The lane's own finding.
    Unroutable(Unresolved),
    /// No decision: who asks is checked and charged, the server must be granted and active, and the
    /// answer says where it is. The call's tool is the method, for the record of a denial. It costs
    /// this many requests of the agent's rate: one for each name that it subscribes to.
    Message { cost: u32 },
    /// A decision on what a server asks of its client, in the agent's session. It is charged like a
    /// request of the agent, but counts neither as its call nor as its denial, and no approval is
    /// asked for.
    Ask,
    /// What of a listing the agent could use at all; nothing is charged.
    Filter(Vec<Candidate>),
    /// No decision: the agent reads its own records. Its credential is checked and one request is
    /// charged. The call names the agent and nothing else.
    Read,
}

/// An item of a listing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub tool: String,
    /// The call's input, where all of it is known.
    pub input: Option<Json>,
    /// What the call is about, where that is known.
    pub resource: Option<String>,
    /// Of a tool's definition as it is listed, in lower-case hex.
    pub definition_sha256: Option<String>,
}

impl GateCommand {
    /// Bytes of memory that its arguments hold while a lane decides: those of an HTTP request twice, as
    /// they came and as the call's input.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let purpose = match &self.purpose {
            Purpose::Route(request) => 2 * request.body.as_ref().map_or(0, Json::heap_bytes),
            Purpose::Filter(candidates) => {
                let inputs = candidates.iter().filter_map(|candidate| candidate.input.as_ref());
                inputs.map(Json::heap_bytes).sum()
            }
            _ => 0,
        };
        purpose + self.call.input.heap_bytes()
    }
}
