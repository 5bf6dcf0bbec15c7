//! The JSON-RPC 2.0 messages that Gateward writes itself.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::json;

const VERSION: &str = "2.0";

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u32,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: &'a R,
}

#[derive(Serialize)]
struct ErrorResponse<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    error: ErrorObject<'a>,
}

#[derive(Serialize)]
pub struct ErrorObject<'a> {
    pub code: i32,
    pub message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a RawValue>,
}

/// A request.
#[must_use]
pub fn request(id: u32, method: &str, params: &impl Serialize) -> String {
    text(&Request { jsonrpc: VERSION, id, method, params })
}

/// A response with a result.
#[must_use]
pub fn response(id: &RawValue, result: &impl Serialize) -> String {
    text(&Response { jsonrpc: VERSION, id, result })
}

/// A response with an error; without an id, the message has no such member.
#[must_use]
pub fn error_response(id: Option<&RawValue>, error: ErrorObject<'_>) -> String {
    text(&ErrorResponse { jsonrpc: VERSION, id, error })
}

/// An id as it is written, from its JSON text. A text that is not JSON becomes `null`.
#[must_use]
pub fn id(text: &str) -> &RawValue {
    serde_json::from_str(text).unwrap_or(RawValue::NULL)
}

/// Messages are made of strings, numbers and JSON texts, so writing one cannot fail.
fn text(message: &impl Serialize) -> String {
    json::to_string(message)
}
