//! The changes to a client's message before it is forwarded. Everything else keeps its bytes.

use serde_json::value::RawValue;

use super::TASKS_EXTENSION;
use super::envelope::{META_CAPABILITIES, is_own};
use super::error::{INVALID_PARAMS, RpcError};
use super::message::Message;
use super::redact::{Removed, redact};
use super::seal::{Handle, Seal};
use crate::call::command::INPUT_RESPONSES;
use crate::json::raw::RawObject;
use crate::shield::Redaction;

/// The parameter of a stateless request with the server's state, sealed.
pub const REQUEST_STATE: &str = "requestState";

/// Checks a sealed `requestState`, so that one of another agent, server or call is refused before the call is decided.
///
/// # Errors
///
/// The `requestState` was not sealed for this agent, server and call.
pub fn check_state(message: &Message, seal: &Seal<'_>) -> Result<(), RpcError> {
    match message.params.get(REQUEST_STATE) {
        Some(state) => opened(state.as_str(), seal).map(drop),
        None => Ok(()),
    }
}

/// The server's value. `sealed` is `None` if it is not a string.
fn opened<'t>(sealed: Option<&'t str>, seal: &Seal<'_>) -> Result<&'t str, RpcError> {
    let invalid = || RpcError::in_band(INVALID_PARAMS, "`requestState` must be a string");
    seal.open(Handle::RequestState, sealed.ok_or_else(invalid)?)
}

/// The message's text as it is forwarded. Gateward's own keys, tasks (which Gateward does not support) and the redacted
/// fields are removed. Markers replace what the shield redacts. A sealed `requestState` is opened. The values of the
/// redacted fields, and the values that markers replace, are added to `removed`.
///
/// # Errors
///
/// As [`check_state`].
pub fn rewrite(
    message: &Message,
    redacted: &[String],
    redaction: Redaction<'_>,
    seal: &Seal<'_>,
    removed: &mut Removed,
) -> Result<String, RpcError> {
    let unchanged = || Ok(message.text.clone());
    let Some(mut whole) = RawObject::parse(&message.text) else { return unchanged() };
    let Some(mut params) = whole.object("params") else { return unchanged() };
    let mut changed = match message.method.as_str() {
        "initialize" => params.remove(&["capabilities", "tasks"]),
        "tools/call" => params.remove(&["task"]),
        _ => false,
    };
    if let Some(mut meta) = params.object("_meta") {
        let mut edited = meta.retain(|key| !is_own(key));
        edited |= meta.remove(&[META_CAPABILITIES, "extensions", TASKS_EXTENSION]);
        if edited {
            params.set("_meta", &meta);
            changed = true;
        }
    }
    if params.get(REQUEST_STATE).is_some() {
        let sealed = params.text(REQUEST_STATE);
        params.set(REQUEST_STATE, opened(sealed.as_deref(), seal)?);
        changed = true;
    }
    for field in ["arguments", INPUT_RESPONSES] {
        if let Some(value) = params.get(field)
            && let Some(redacted) = redact(value, redacted, removed)
        {
            match RawValue::from_string(redacted) {
                Ok(redacted) => params.set_raw(field, redacted),
                // A value that cannot be redacted is not forwarded.
                Err(_) => params.set(field, RawValue::NULL),
            }
            changed = true;
        }
        if redaction.is_needed()
            && let Some(value) = params.get(field)
            && let Some(redacted) = removed.mark(value, redaction)
        {
            params.set_raw(field, redacted);
            changed = true;
        }
    }
    if !changed {
        return unchanged();
    }
    whole.set("params", &params);
    Ok(whole.write())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::token::MacKeys;
    use crate::json::{self, Json};
    use crate::mcp::message::Kind;
    use crate::shield::{Rules, Shield};

    fn nothing() -> Redaction<'static> {
        let shield = Box::leak(Box::new(Shield::new(Rules::default())));
        Redaction { shield, tenant: "t", categories: &[] }
    }

    fn message(method: &str, text: &str) -> Message {
        let (method, text) = (method.to_owned(), text.to_owned());
        let params = json::parse(text.as_bytes()).unwrap().get("params").cloned();
        Message {
            kind: Kind::Request,
            id: "1".to_owned(),
            method,
            params: params.unwrap_or(Json::Null),
            parameters: Vec::new(),
            text,
        }
    }

    #[test]
    fn a_message_is_forwarded_with_its_bytes_except_for_what_must_change() {
        let keys = MacKeys::new("a-mac-key-for-tests-of-40-characters-000", None).unwrap();
        let seal = Seal { keys: &keys, tenant: "t", agent: "a", server: "s", action: &[1; 32] };
        let state = seal.seal(Handle::RequestState, "st\"");
        let of = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc" : "2.0","id":1,"params":{params},"method":"{method}","x":1.0}}"#)
        };
        for (method, params, redacted, expected) in [
            ("tools/call", r#"{"name":"t","arguments":{"a":1.0,"b":"x"}}"#, "", None),
            (
                "tools/call",
                r#"{"name":"t","arguments":{"a":1.0,"b":"x"}}"#,
                "b",
                Some(r#"{"name":"t","arguments":{"a":1.0}}"#),
            ),
            (
                "tools/call",
                r#"{"name":"t","inputResponses":{"k":{"content":{"a":1.0,"b":"x"}}}}"#,
                "b",
                Some(r#"{"name":"t","inputResponses":{"k":{"content":{"a":1.0}}}}"#),
            ),
            (
                "tools/call",
                r#"{"name":"t","task":{},"_meta":{"dev.gateward/run_id":"r","dev.gateward/instruction":"i","progressToken":5}}"#,
                "",
                Some(r#"{"name":"t","_meta":{"progressToken":5}}"#),
            ),
            (
                "initialize",
                r#"{"capabilities":{"tasks":{},"roots":{}}}"#,
                "",
                Some(r#"{"capabilities":{"roots":{}}}"#),
            ),
            (
                "tools/list",
                r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{},"y":{}}}}}"#,
                "",
                Some(
                    r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"y":{}}}}}"#,
                ),
            ),
            (
                "tools/call",
                &format!(r#"{{"name":"t","requestState":"{state}"}}"#)
                    .replace("st\"\"", "st\\\"\""),
                "",
                Some(r#"{"name":"t","requestState":"st\""}"#),
            ),
        ] {
            let text = of(method, params);
            let redacted = [redacted.to_owned()];
            let message = message(method, &text);
            assert!(check_state(&message, &seal).is_ok(), "{text}");
            let forwarded = rewrite(&message, &redacted, nothing(), &seal, &mut Removed::default());
            let expected = expected.map_or(text, |params| of(method, params).replace(" : ", ":"));
            assert_eq!(forwarded.unwrap(), expected);
        }
        for state in ["5", "null", "\"st\"", &format!("\"{state}x\"").replace("\"x", "x")] {
            let text = of("tools/call", &format!(r#"{{"requestState":{state}}}"#));
            let message = message("tools/call", &text);
            let error =
                rewrite(&message, &[], nothing(), &seal, &mut Removed::default()).unwrap_err();
            assert_eq!((error.status, error.code), (200, INVALID_PARAMS), "{state}");
            assert_eq!(check_state(&message, &seal).unwrap_err().message, error.message, "{state}");
        }
    }
}
