//! Step 5: the one command that hops from the worker to the lane.
//!
//! The encoding is postcard behind one version byte. Durable Objects may run older code than
//! the worker for minutes after a deploy; a version that the lane does not know is refused, and
//! the caller tries again.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::call::http_tool::{HttpRequest, Unresolved};
use crate::credential::signature::SignatureNonce;
use crate::json::Json;

/// Raised whenever [`GateCommand`], or anything in it, changes its shape.
pub const COMMAND_VERSION: u8 = 4;

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
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Serializing plain data into memory cannot fail; an empty command is refused below.
        postcard::to_extend(self, vec![COMMAND_VERSION]).unwrap_or_default()
    }

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

    /// `None` when this is not a command of this version.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first() {
            Some((&COMMAND_VERSION, body)) => postcard::from_bytes(body).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call;

    const PINNED: &str = "04017407016b0101010101010101010101010101010101010101010101010101010101010101016801\
        00c000020701010179010101017a0003626f740470726f6401730178017201060101610505000101020103\
        000000000000e03f040174000201010171010170017501760177010501016e0180a0d5edee66010000596f\
        262c1c56b820c5ce78a93b71693cd6eea4a26eeeac0efc5bb73e4691423aeaf49919b9c6744bd3a4a6a5b5\
        5c8359f608f5ed471fdfe97ca34d437fe75499";

    /// A lane of the last deploy may read what a worker of this one wrote: whoever changes these
    /// bytes raises [`COMMAND_VERSION`].
    #[test]
    fn a_command_of_this_version_keeps_its_bytes() {
        let body = br#"{"agent":{"id":"bot","environment":"prod"},
            "tool_call":{"tool":"s","action":"x","resource":"r","mutates_state":true,
              "parameters":{"a":[null,true,-1,0.5,"t"]}},
            "context":{"source_trust":"semi_trusted_customer","contains_sensitive_data":true},
            "request_id":"q","approval_id":"p","user":{"id":"u","role":"v"},
            "trace":{"run_id":"w","root_trust_level":"unknown"},
            "nonce":"n","timestamp":"2026-01-01T00:00:00Z","dry_run":true}"#;
        let command = GateCommand {
            tenant: "t".to_owned(),
            lane: 7,
            key_id: "k".to_owned(),
            secret_hash: [1; 32],
            http_request_id: "h".to_owned(),
            source_address: Some([192, 0, 2, 7].into()),
            signed: true,
            signature_nonce: Some(SignatureNonce { nonce: "y".to_owned(), created_ms: 1 }),
            purpose: Purpose::Forward,
            session: Some("z".to_owned()),
            parameters: Vec::new(),
            call: call::parse(body, "t").unwrap(),
        };
        let bytes = command.encode();
        assert_eq!(hex::encode(&bytes), PINNED);
        assert_eq!(GateCommand::decode(&bytes), Some(command));
        assert_eq!(GateCommand::decode(&[&[COMMAND_VERSION + 1], &bytes[1..]].concat()), None);
    }
}
