//! Step 5: the one command that hops from the worker to the lane.
//!
//! The encoding is postcard behind one version byte. Durable Objects may run older code than
//! the worker for minutes after a deploy; a version that the lane does not know is refused, and
//! the caller tries again.

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;

/// Raised whenever [`GateCommand`], or anything in it, changes its shape.
pub const COMMAND_VERSION: u8 = 1;

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
    pub call: ToolCall,
}

impl GateCommand {
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Serializing plain data into memory cannot fail; an empty command is refused below.
        postcard::to_extend(self, vec![COMMAND_VERSION]).unwrap_or_default()
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
