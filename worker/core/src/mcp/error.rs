//! JSON-RPC errors that Gateward answers with, and the HTTP status of each.

use super::Era;
use super::raw::{RawObject, quoted};

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

/// An id that is not known.
const NULL: &str = "null";

/// The HTTP status of a refused credential: clients obtain another one when they see it.
const UNAUTHORIZED: u16 = 401;

/// The code of a problem that has this status.
#[must_use]
pub const fn own_code(status: u16) -> i32 {
    OWN_CODES - status as i32
}

/// The HTTP status of an answer that has only an error. An error of one message is an answer like any
/// other, so its status is 200: clients end the whole session, or hide the message, when a request is
/// answered with another status. The stateless revision names 400 and 404 for some errors. What concerns
/// the connection or the credential, and not one message, keeps its status.
const fn http_status(era: Era, status: u16, code: i32, has_id: bool) -> u16 {
    let is_transports =
        matches!(code, TRANSPORT | SESSION_NOT_FOUND | HEADER_MISMATCH | UNSUPPORTED_VERSION);
    if !has_id || is_transports || status == UNAUTHORIZED {
        return status;
    }
    match (era, status) {
        (Era::Stateless, 400 | 404) => status,
        _ => 200,
    }
}

/// The same for an error that a server answered with this status.
#[must_use]
pub fn status_of_answer(era: Era, status: u16, body: &str) -> u16 {
    let read = RawObject::parse(body).and_then(|message| {
        let code = message.object("error")?.get("code")?.parse().ok()?;
        Some((code, message.get("id").is_some_and(|id| id != NULL)))
    });
    read.map_or(status, |(code, has_id)| http_status(era, status, code, has_id))
}

/// An answer to one request that is sent as an event. The HTTP status of an event stream says nothing of
/// it, so an error without an id gets the request's: a client could not tell what it answers.
#[must_use]
pub fn as_event(body: String, id: &str) -> String {
    match RawObject::parse(&body) {
        Some(mut message) if message.get("id").is_none_or(|id| id == NULL) => {
            message.set("id", id);
            message.write()
        }
        _ => body,
    }
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

    /// The HTTP status of an answer that has only this error.
    #[must_use]
    pub fn http_status(&self, era: Era) -> u16 {
        http_status(era, self.status, self.code, self.id.is_some())
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
            let body = error.body(Era::Session);
            let of_server =
                [Era::Session, Era::Stateless].map(|era| status_of_answer(era, status, &body));
            assert_eq!(of_server, [session, stateless], "{body}");
        }
        for body in ["", "[]", "{}", r#"{"id":1,"error":{}}"#] {
            assert_eq!(status_of_answer(Era::Session, 500, body), 500, "{body}");
        }
    }

    #[test]
    fn an_event_is_known_as_the_answer_to_its_request() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, r#"{"jsonrpc":"2.0","id":7,"error":{}}"#),
            (r#"{"jsonrpc":"2.0","error":{}}"#, r#"{"jsonrpc":"2.0","error":{},"id":7}"#),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
        ] {
            assert_eq!(as_event(body.to_owned(), "7"), expected);
        }
    }
}
