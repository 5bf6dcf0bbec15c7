//! Step 4: the command that the worker sends to the lane. `lane/protocol.rs` encodes it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::call::http_tool::{HttpRequest, Unresolved};
use crate::call::outcome::ReportedOutcome;
use crate::call::run::{ReportedResult, RunStart};
use crate::credential::signature::SignatureNonce;
use crate::json::Json;
use crate::trace::TraceId;
use crate::warrant::Carried;

/// Items of one page of a list. A longer page is rejected.
pub const MAX_CANDIDATES: usize = 1_000;

/// The parameter of an MCP message with the client's answers to questions of the server.
pub const INPUT_RESPONSES: &str = "inputResponses";

/// A call and its credential, whose MAC was verified.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GateCommand {
    pub tenant: String,
    pub lane: u16,
    pub key_id: String,
    /// SHA-256 of the credential's secret; if `located`, the agent's public key.
    pub secret_hash: [u8; 32],
    /// Whether the caller sent a locator and no credential: then its warrant says who calls.
    pub located: bool,
    /// The id of this request in responses and logs.
    pub http_request_id: String,
    /// The caller's trace, if the caller sent one.
    pub trace_id: Option<TraceId>,
    /// The address of the client, as the platform reports it.
    pub source_address: Option<IpAddr>,
    /// Whether the worker verified the request's signature.
    pub signed: bool,
    /// Whether the caller presented a run credential: then the run is fixed, and the caller is not the
    /// harness itself.
    pub run_credential: bool,
    /// Whether Gateward forwards the call if it passes, and so sees how it ends.
    pub forwarded: bool,
    /// The nonce of the signed request. If one HTTP request makes several commands, only the first has it.
    pub signature_nonce: Option<SignatureNonce>,
    pub purpose: Purpose,
    /// The MCP session of the call. Approvers see it.
    pub session: Option<String>,
    /// The `Mcp-Param-*` headers of an MCP call: the rest of the name in lower case, and the decoded
    /// value.
    pub parameters: Vec<(String, String)>,
    /// What goes to the server beside the arguments: headers, or members of the message. The shield reads all of it, and
    /// [`Self::answers`] is looked up as the arguments are.
    /// [`Json::Null`] if nothing does.
    pub beside: Json,
    /// The warrant that the caller presented.
    pub warrant: Option<Carried>,
    pub call: ToolCall,
}

/// What the lane must do. Only the call of a [`Purpose::Authorize`] names an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Purpose {
    /// Decide. The caller obeys the decision.
    Authorize,
    /// Decide, and return the upstream if the call is allowed. Gateward forwards the call.
    Forward,
    /// The same for an HTTP request. The server's routes determine its tool and input.
    Route(HttpRequest),
    /// A [`Purpose::Route`] whose route was found; contains the route's path. Only the lane makes it.
    Routed(String),
    /// A [`Purpose::Route`] that does not call a tool. Only the lane makes it.
    Unroutable(Unresolved),
    /// Check and charge the agent, check that the server is granted and active, and return its upstream.
    /// Policies are not evaluated. The call's tool is the method, for the record of a denial. `cost`
    /// counts against the agent's rate: one for each name that the message subscribes to, and zero to ask again
    /// about a stream that is open.
    Message { cost: u32 },
    /// Decide on a server's request to the client, in the agent's session. It is charged like a request
    /// of the agent, but counts neither as a call nor as a denial, and never requests an approval.
    Ask,
    /// Which items of a list the agent may use, or of those that a message names. The input is what the message says. It
    /// is empty for a list. Nothing is charged.
    Filter(Vec<Candidate>),
    /// Check and charge the agent, which reads its own records. The call names only the agent.
    Read,
    /// Begin a run, or add to its instruction. The call names only the agent and the run.
    StartRun(RunStart),
    /// A result that the caller got without Gateward. The call names agent, run, server and tool.
    ReportResult(ReportedResult),
    /// The outcome of a call that the agent asked about. The call names only the agent.
    ReportOutcome(ReportedOutcome),
}

/// The use of a list's item, for [`Purpose::Filter`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    pub tool: String,
    /// The input, if all of it is known.
    pub input: Option<Json>,
    /// The resource, if it is known.
    pub resource: Option<String>,
    /// The hash of a tool's listed definition, in lower-case hex.
    pub definition_sha256: Option<String>,
}

impl GateCommand {
    /// What a request id is bound to: the call, and the credential and the warrant that it was made with. Another
    /// credential or warrant may allow less. The proof is not part of it, because a caller that tries again makes a new
    /// proof.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let call = hex::encode(self.call.fingerprint);
        match &self.warrant {
            None => format!("{}:{call}", self.key_id),
            Some(warrant) => format!("{}:{call}:{}", self.key_id, hex::encode(warrant.hash)),
        }
    }

    /// The arguments that limits and windows read. If a gateway asks about a request with a body, there are none:
    /// Gateward does not see the body, and the API may read the same argument from it.
    #[must_use]
    pub fn counted_input(&self) -> &Json {
        if self.is_blind() { &Json::Null } else { &self.call.input }
    }

    /// What the client of an MCP call answers to questions of the server (`inputResponses`). These answers can name a
    /// destination as the arguments can.
    #[must_use]
    pub fn answers(&self) -> Option<&Json> {
        self.beside.get("params")?.get(INPUT_RESPONSES).filter(|answers| **answers != Json::Null)
    }

    /// Whether it is about a message that calls no tool and names resources or prompts. Then the input is what it says.
    #[must_use]
    pub fn names_what_it_is_about(&self) -> bool {
        let says_something = !matches!(&self.call.input, Json::Object(said) if said.is_empty());
        says_something && matches!(self.purpose, Purpose::Filter(_))
    }

    /// Whether the call may have arguments that Gateward does not see: a gateway asks about a request with a body.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        let is_read = |route: &(String, String)| matches!(route.0.as_str(), "GET" | "HEAD");
        !self.forwarded && self.call.route.as_ref().is_some_and(|it| !is_read(it))
    }

    /// Bytes of memory that the arguments need while a lane decides. The body of an HTTP request counts
    /// twice: it is copied into the call's input.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let purpose = match &self.purpose {
            Purpose::Route(request) => 2 * request.body.as_ref().map_or(0, Json::heap_bytes),
            Purpose::Filter(candidates) => {
                let inputs = candidates.iter().filter_map(|candidate| candidate.input.as_ref());
                inputs.map(Json::heap_bytes).sum()
            }
            Purpose::StartRun(start) => start.heap_bytes(),
            Purpose::ReportResult(result) => result.text.capacity(),
            _ => 0,
        };
        let warrant = self.warrant.as_ref().map_or(0, Carried::heap_bytes);
        let rounded = self.call.rounded.capacity() * size_of::<f64>();
        purpose + warrant + self.call.input.heap_bytes() + rounded
    }
}
