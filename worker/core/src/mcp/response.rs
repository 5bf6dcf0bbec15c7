//! What the client gets in place of a server's message: errors and results with the changes that a proxy must make, and
//! the refusal that the server gets for a request that is not forwarded. [`super::answer`] reads the messages.

use super::denial;
use super::envelope::is_own;
use super::error::{METHOD_NOT_FOUND, RpcError};
use super::seal::{Handle, Seal};
use super::{Era, META_PREFIX, TASKS_EXTENSION};
use crate::gate::proxy::ProxyDecision;
use crate::json::raw::{self, RawObject};

/// Removes from an error Gateward's own keys, which no server may set, and members that JSON-RPC does not
/// define.
pub fn clean_error(error: &mut RawObject) {
    error.retain(|name| matches!(name, "code" | "data" | "message"));
    if let Some(mut data) = error.object("data")
        && data.retain(|key| !is_own(key))
    {
        error.set("data", &data);
    }
}

/// Changes the result of `method` for the client. `decision` allowed the call, if it was one.
///
/// # Errors
///
/// The result's type is not supported.
pub fn finish_result(
    method: &str,
    result: &mut RawObject,
    decision: Option<&ProxyDecision>,
    era: Era,
    seal: &Seal<'_>,
) -> Result<(), RpcError> {
    match method {
        "initialize" => {
            result.remove(&["capabilities", "tasks"]);
        }
        "server/discover" => {
            result.remove(&["capabilities", "extensions", TASKS_EXTENSION]);
        }
        _ => {}
    }
    if era == Era::Stateless {
        let kind = result.text("resultType").unwrap_or_else(|| "complete".to_owned());
        if !matches!(kind.as_str(), "complete" | "input_required") {
            return Err(RpcError::upstream("the type of the server's result is not supported"));
        }
        if let Some(state) = result.text("requestState") {
            result.set("requestState", &seal.seal(Handle::RequestState, &state));
        }
        // A shared cache would show the result to agents that no policy decided on.
        if result.get("cacheScope").is_some() {
            result.set("cacheScope", "private");
        }
    }
    let mut meta = result.object("_meta").unwrap_or_default();
    // No server may set Gateward's own keys.
    let mut changed = meta.retain(|key| !is_own(key));
    if let Some(decision) = decision {
        let all = denial::meta(decision);
        for key in ["decision_id", "redacted_fields", "engine_mode"] {
            let key = [META_PREFIX, key].concat();
            if let Some(value) = all.raw(&key) {
                meta.set_raw(&key, value.to_owned());
                changed = true;
            }
        }
    }
    if changed {
        result.set("_meta", &meta);
    }
    Ok(())
}

/// Forbids the client to keep a result with untrusted text: out of a cache, it would not taint a later run.
pub fn forbid_caching(result: &mut RawObject) {
    if result.get("ttlMs").is_some() {
        result.set("ttlMs", &0);
    }
}

/// The error response that the server gets to a request that is not forwarded to the client.
#[must_use]
pub fn refuse_request(id: &str, method: &str, reason: &str) -> String {
    /// The code that clients use when a user rejects a sampling request.
    const REJECTED: i32 = -1;
    let code = match method {
        "sampling/createMessage" | "elicitation/create" => REJECTED,
        _ => METHOD_NOT_FOUND,
    };
    RpcError::in_band(code, reason).with_id(Some(id)).body(Era::Session)
}

/// The body for these messages: an array if they were received as a batch.
#[must_use]
pub fn join(mut messages: Vec<String>, batch: bool) -> String {
    match messages.len() {
        1 if !batch => messages.pop().unwrap_or_default(),
        _ => raw::array(&messages),
    }
}

/// The response with another `result` or `error`.
#[must_use]
pub fn with_field(mut message: RawObject, field: &str, value: &RawObject) -> String {
    message.set(field, value);
    message.write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::token::MacKeys;
    use crate::decision::{Decision, ReasonCode};

    #[test]
    fn an_error_cannot_set_gatewards_own_keys() {
        for (text, expected) in [
            (
                r#"{"code":1,"data":{"dev.gateward/decision_id":"x","a":1.0}}"#,
                r#"{"code":1,"data":{"a":1.0}}"#,
            ),
            (r#"{"code":1,"data":{"Dev.Gateward/decision_id":"x"}}"#, r#"{"code":1,"data":{}}"#),
            (r#"{"code":1,"data":{"a": 1.0}}"#, r#"{"code":1,"data":{"a": 1.0}}"#),
            (r#"{"code":1,"message":"m","x":1}"#, r#"{"code":1,"message":"m"}"#),
        ] {
            let mut error = RawObject::parse(text).unwrap();
            clean_error(&mut error);
            assert_eq!(error.write(), expected);
        }
    }

    #[test]
    fn a_result_changes_only_where_it_must() {
        let keys = MacKeys::new("a-mac-key-for-tests-of-40-characters-000", None).unwrap();
        let seal = Seal { keys: &keys, tenant: "t", agent: "a", server: "s", action: &[1; 32] };
        let state = seal.seal(Handle::RequestState, "x");
        let sealed = format!(r#"{{"resultType":"input_required","requestState":"{state}"}}"#);
        for (method, era, text, expected) in [
            (
                "tools/call",
                Era::Session,
                r#"{"content":[ ],"x":1e2}"#,
                Some(r#"{"content":[ ],"x":1e2}"#),
            ),
            (
                "tools/call",
                Era::Session,
                r#"{"_meta":{"dev.gateward/decision":"allow","a":1,"DEV.gateward/decision_id":"x"}}"#,
                Some(r#"{"_meta":{"a":1}}"#),
            ),
            (
                "initialize",
                Era::Session,
                r#"{"capabilities":{"tasks":{},"tools":{}}}"#,
                Some(r#"{"capabilities":{"tools":{}}}"#),
            ),
            (
                "resources/read",
                Era::Stateless,
                r#"{"cacheScope":"public","ttlMs":5}"#,
                Some(r#"{"cacheScope":"private","ttlMs":5}"#),
            ),
            (
                "tools/call",
                Era::Stateless,
                r#"{"resultType":"input_required","requestState":"x"}"#,
                Some(&sealed),
            ),
            ("tools/call", Era::Stateless, r#"{"resultType":"task","taskId":"x"}"#, None),
        ] {
            let mut result = RawObject::parse(text).unwrap();
            let finished = finish_result(method, &mut result, None, era, &seal);
            assert_eq!(finished.ok().map(|()| result.write()).as_deref(), expected, "{text}");
        }
        for (text, expected) in [
            (r#"{"contents":[],"ttlMs":60000}"#, r#"{"contents":[],"ttlMs":0}"#),
            (r#"{"content":[]}"#, r#"{"content":[]}"#),
        ] {
            let mut result = RawObject::parse(text).unwrap();
            forbid_caching(&mut result);
            assert_eq!(result.write(), expected);
        }
        let decision = ProxyDecision {
            decision_id: "d".to_owned(),
            decision: Decision::Redact,
            reason: String::new(),
            reason_code: ReasonCode::PolicyRedact,
            matched_policies: Vec::new(),
            redacted_fields: vec!["ssn".to_owned()],
            shield: Default::default(),
            violated_limits: Vec::new(),
            warrant_approvals: None,
            approval: None,
            receipt: None,
            engine_mode: None,
        };
        let mut result = RawObject::parse("{}").unwrap();
        finish_result("tools/call", &mut result, Some(&decision), Era::Session, &seal).unwrap();
        assert_eq!(
            result.write(),
            r#"{"_meta":{"dev.gateward/decision_id":"d","dev.gateward/redacted_fields":["ssn"]}}"#
        );
    }
}
