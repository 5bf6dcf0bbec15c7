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

/// The HTTP status of a refused credential: clients obtain another one when they see it.
const UNAUTHORIZED: u16 = 401;

/// The code of a problem that has this status.
#[must_use]
pub const fn own_code(status: u16) -> i32 {
    OWN_CODES - status as i32
}

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The HTTP status that says the same; see [`RpcError::http_status`].
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

    /// The HTTP status of an answer that has only this error. An error of one message is an answer like
    /// any other, so its status is 200: clients end the whole session, or hide the message, when a
    /// request is answered with another status. The stateless revision names 400 and 404 for some
    /// errors. What concerns the connection or the credential, and not one message, keeps its status.
    #[must_use]
    pub fn http_status(&self, era: Era) -> u16 {
        let is_of_one_message = self.id.is_some()
            && self.status != UNAUTHORIZED
            && !matches!(
                self.code,
                TRANSPORT | SESSION_NOT_FOUND | HEADER_MISMATCH | UNSUPPORTED_VERSION
            );
        match (era, self.status) {
            _ if !is_of_one_message => self.status,
            (Era::Stateless, 400 | 404) => self.status,
            _ => 200,
        }
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

    #[test]
    fn an_error_of_one_message_is_an_answer_with_status_200() {
        for (status, code, id, session, stateless) in [
            (400, INVALID_REQUEST, Some("1"), 200, 400),
            (400, INVALID_REQUEST, None, 400, 400),
            (400, PARSE_ERROR, None, 400, 400),
            (400, INVALID_PARAMS, Some("1"), 200, 400),
            (404, METHOD_NOT_FOUND, Some("1"), 200, 404),
            (502, INTERNAL_ERROR, Some("1"), 200, 200),
            (429, own_code(429), Some("1"), 200, 200),
            (429, own_code(429), None, 429, 429),
            (503, own_code(503), Some("1"), 200, 200),
            (403, own_code(403), Some("1"), 200, 200),
            (401, own_code(401), Some("1"), 401, 401),
            (404, SESSION_NOT_FOUND, Some("1"), 404, 404),
            (400, TRANSPORT, Some("1"), 400, 400),
            (400, HEADER_MISMATCH, Some("1"), 400, 400),
            (400, UNSUPPORTED_VERSION, Some("1"), 400, 400),
        ] {
            let error = RpcError::new(status, code, "").with_id(id);
            let found = (error.http_status(Era::Session), error.http_status(Era::Stateless));
            assert_eq!(found, (session, stateless), "{status} {code} {id:?}");
        }
    }
}
