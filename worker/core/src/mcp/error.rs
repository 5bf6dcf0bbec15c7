//! JSON-RPC errors that Gateward answers with, and the HTTP status of each.

use super::Era;
use super::raw::quoted;

pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
pub const INTERNAL_ERROR: i32 = -32603;
/// What the session revisions' own implementations use for the transport's errors.
pub const TRANSPORT: i32 = -32000;
pub const SESSION_NOT_FOUND: i32 = -32001;
/// Header and body disagree (revision 2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The revision is not served (revision 2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;
/// Gateward's own codes are this less the HTTP status that says the same: outside of what JSON-RPC and
/// MCP keep for themselves.
const OWN_CODES: i32 = -31000;
/// A call that was denied, where the server is registered to have that answered as an error.
pub const DENIED: i32 = own_code(403);

/// The code of a problem that has this status.
#[must_use]
pub const fn own_code(status: u16) -> i32 {
    OWN_CODES - status as i32
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    pub status: u16,
    pub code: i32,
    pub message: String,
    /// A JSON text.
    pub data: Option<String>,
    /// The request's id as JSON text, if it could be read.
    pub id: Option<String>,
}

impl RpcError {
    #[must_use]
    pub fn new(status: u16, code: i32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None, id: None }
    }

    /// An answer that a handler could give too: its HTTP status is that of any answer.
    #[must_use]
    pub fn in_band(code: i32, message: impl Into<String>) -> Self {
        Self::new(200, code, message)
    }

    /// What the upstream sent is no answer, and nothing of it is passed on.
    #[must_use]
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new(502, INTERNAL_ERROR, message)
    }

    #[must_use]
    pub fn with_id(self, id: Option<&str>) -> Self {
        Self { id: id.map(str::to_owned), ..self }
    }

    #[must_use]
    pub fn with_data(self, data: String) -> Self {
        Self { data: Some(data), ..self }
    }

    /// The message. The session revisions have `null` for an id that is not known, the stateless
    /// one has none.
    #[must_use]
    pub fn body(&self, era: Era) -> String {
        let id = match (&self.id, era) {
            (Some(id), _) => ["\"id\":", id, ","].concat(),
            (None, Era::Session) => "\"id\":null,".to_owned(),
            (None, Era::Stateless) => String::new(),
        };
        let data = self.data.as_ref().map_or(String::new(), |data| [",\"data\":", data].concat());
        let message = quoted(&self.message);
        format!(
            "{{\"jsonrpc\":\"2.0\",{id}\"error\":{{\"code\":{},\"message\":{message}{data}}}}}",
            self.code
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_requests_id_or_what_its_era_has_for_none() {
        let error = RpcError::new(400, INVALID_REQUEST, "say \"x\"");
        for (error, era, expected) in [
            (
                error.clone(),
                Era::Session,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"say \"x\""}}"#,
            ),
            (
                error.clone(),
                Era::Stateless,
                r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"say \"x\""}}"#,
            ),
            (
                error.with_id(Some("\"a\"")).with_data("[1]".to_owned()),
                Era::Stateless,
                r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"say \"x\"","data":[1]}}"#,
            ),
        ] {
            assert_eq!(error.body(era), expected);
        }
        assert_eq!(DENIED, -31_403);
    }
}
