//! The JSON-RPC errors that Gateward responds with, and the HTTP status of each.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::Era;
use super::jsonrpc::{self, ErrorObject};
use crate::json::raw::RawObject;

pub const PARSE_ERROR: i32 = -32700;
pub const INVALID_REQUEST: i32 = -32600;
pub const METHOD_NOT_FOUND: i32 = -32601;
pub const INVALID_PARAMS: i32 = -32602;
pub const INTERNAL_ERROR: i32 = -32603;
/// An error of the transport. MCP's SDKs use this code in the session revisions.
pub const TRANSPORT: i32 = -32000;
pub const SESSION_NOT_FOUND: i32 = -32001;
/// A header is missing or differs from the body (revision 2026-07-28).
pub const HEADER_MISMATCH: i32 = -32020;
/// The server does not support the requested revision (revision 2026-07-28).
pub const UNSUPPORTED_VERSION: i32 = -32022;
/// Gateward's own codes are this number minus an HTTP status. They lie outside of the ranges that
/// JSON-RPC and MCP reserve.
const OWN_CODES: i32 = -31000;
/// A denied call, if the server is registered with errors as the form of a denial.
pub const DENIED: i32 = own_code(403);

/// A warrant does not carry the call. This code and the next are those that clients of the format know.
pub const WARRANT_DENIED: i32 = -32001;
/// A warrant asks for approvals that the call does not have.
pub const WARRANT_APPROVAL: i32 = -32002;

/// The id of an error whose request is not known.
const NULL: &str = "null";

/// The HTTP status of a rejected credential. Clients obtain another credential when they see it.
const UNAUTHORIZED: u16 = 401;

/// The error code for a problem with this HTTP status.
#[must_use]
pub const fn own_code(status: u16) -> i32 {
    OWN_CODES - status as i32
}

/// The HTTP status of a response that is only an error.
///
/// An error about one message has status 200, as any other response to it: with another status, clients
/// end the whole session or hide the error from the user. The stateless revision requires 400 and 404
/// for some errors. Errors about the connection or the credential keep their status.
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

/// The same for an error that a server sent with this status.
#[must_use]
pub fn status_of_answer(era: Era, status: u16, body: &str) -> u16 {
    let read = RawObject::parse(body).and_then(|message| {
        let code = message.object("error")?.get("code")?.parse().ok()?;
        Some((code, message.get("id").is_some_and(|id| id != NULL)))
    });
    read.map_or(status, |(code, has_id)| http_status(era, status, code, has_id))
}

/// A response to one request that is sent as an event. An error without an id gets the request's id:
/// otherwise a client could not match it, since the HTTP status of the stream was sent before.
#[must_use]
pub fn as_event(body: String, id: &str) -> String {
    match RawObject::parse(&body) {
        Some(mut message) if message.get("id").is_none_or(|id| id == NULL) => {
            message.set_raw("id", jsonrpc::id(id).to_owned());
            message.write()
        }
        _ => body,
    }
}

/// A JSON-RPC error.
#[derive(Debug, Clone)]
pub struct RpcError {
    /// The corresponding HTTP status. A response may have another one: see [`RpcError::http_status`].
    pub status: u16,
    pub code: i32,
    pub message: String,
    pub data: Option<Box<RawValue>>,
    /// The request's id, if it could be read.
    pub id: Option<Box<RawValue>>,
}

impl RpcError {
    #[must_use]
    pub fn new(status: u16, code: i32, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), data: None, id: None }
    }

    /// An error about one message. Its HTTP status is 200.
    #[must_use]
    pub fn in_band(code: i32, message: impl Into<String>) -> Self {
        Self::new(200, code, message)
    }

    /// The upstream did not send a valid response. Gateward forwards none of it.
    #[must_use]
    pub fn upstream(message: impl Into<String>) -> Self {
        Self::new(502, INTERNAL_ERROR, message)
    }

    /// `id` is a JSON text.
    #[must_use]
    pub fn with_id(self, id: Option<&str>) -> Self {
        Self { id: id.map(|id| jsonrpc::id(id).to_owned()), ..self }
    }

    #[must_use]
    pub fn with_data(self, data: &impl Serialize) -> Self {
        Self { data: to_raw_value(data).ok(), ..self }
    }

    /// The HTTP status of a response that is only this error.
    #[must_use]
    pub fn http_status(&self, era: Era) -> u16 {
        http_status(era, self.status, self.code, self.id.is_some())
    }

    /// The response. If the id is not known, it is `null` in the session revisions and absent in the
    /// stateless one.
    #[must_use]
    pub fn body(&self, era: Era) -> String {
        let id = match (&self.id, era) {
            (Some(id), _) => Some(&**id),
            (None, Era::Session) => Some(RawValue::NULL),
            (None, Era::Stateless) => None,
        };
        let (message, data) = (self.message.as_str(), self.data.as_deref());
        jsonrpc::error_response(id, ErrorObject { code: self.code, message, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_without_an_id_is_written_as_its_era_requires() {
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
                error.with_id(Some("\"a\"")).with_data(&[1]),
                Era::Stateless,
                r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32600,"message":"say \"x\"","data":[1]}}"#,
            ),
        ] {
            assert_eq!(error.body(era), expected);
        }
        assert_eq!(DENIED, -31_403);
    }

    #[test]
    fn an_error_about_one_message_has_status_200() {
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
    fn an_error_that_is_sent_as_an_event_has_its_requests_id() {
        for (body, expected) in [
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, r#"{"jsonrpc":"2.0","id":7,"error":{}}"#),
            (r#"{"jsonrpc":"2.0","error":{}}"#, r#"{"jsonrpc":"2.0","error":{},"id":7}"#),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
        ] {
            assert_eq!(as_event(body.to_owned(), "7"), expected);
        }
    }
}
