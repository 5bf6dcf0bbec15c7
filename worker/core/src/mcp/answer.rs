//! What comes from a server: which kind of message it is, and what is changed of an answer.

use super::denial;
use super::envelope::{self, INPUT_REQUEST, MESSAGE, is_own};
use super::error::RpcError;
use super::raw::{RawObject, array};
use super::seal::{Handle, Seal};
use super::{Era, META_PREFIX, TASKS_EXTENSION};
use crate::gate::proxy::ProxyDecision;
use crate::json::{self, Json};

/// A message from a server.
#[derive(Debug)]
pub enum Incoming {
    /// To the request that has this id, a JSON text in canonical form; `None` for an error that is
    /// about no request.
    Answer {
        id: Option<String>,
        message: RawObject,
    },
    Request {
        id: String,
        method: String,
        params: Json,
        message: RawObject,
    },
    Notification {
        method: String,
        params: Json,
        message: RawObject,
    },
}

/// Reads a message; what is passed on of it has the members of its kind and no others. `None` when
/// it is not a message of JSON-RPC, or when other readers may take it for another one.
#[must_use]
pub fn read(text: &str) -> Option<Incoming> {
    let mut message = RawObject::parse(text)?;
    if envelope::mistaken(MESSAGE, message.names()).is_some() || message.text("jsonrpc")? != "2.0" {
        return None;
    }
    let id = match message.get("id") {
        None => None,
        // Only an error may be about no request.
        Some("null") if message.get("error").is_some() => None,
        Some(id) => match json::parse(id.as_bytes()) {
            Ok(id @ (Json::String(_) | Json::Integer(_))) => Some(id.canonical()),
            _ => return None,
        },
    };
    let (result, error) = (message.get("result").is_some(), message.get("error").is_some());
    if message.get("method").is_none() {
        message.retain(|name| matches!(name, "jsonrpc" | "id" | "result" | "error"));
        let answers = result != error && (id.is_some() || error);
        return answers.then_some(Incoming::Answer { id, message });
    }
    if result || error {
        // Some readers would take it for an answer.
        return None;
    }
    message.retain(|name| matches!(name, "jsonrpc" | "id" | "method" | "params"));
    let method = message.text("method")?;
    let params = match message.get("params") {
        None => Ok(Json::Object(Vec::new())),
        Some(params) => json::parse(params.as_bytes()),
    };
    let Some(id) = id else {
        // What cannot be read within the bounds passes, and counts as text.
        let params = params.unwrap_or(Json::Null);
        return Some(Incoming::Notification { method, params, message });
    };
    let params = params.ok()?;
    let is_clear = matches!(params, Json::Object(_)) && params.twin().is_none();
    is_clear.then_some(Incoming::Request { id, method, params, message })
}

/// The result of an answer. `None` when it is not an object, or when other readers may find in it
/// what Gateward does not.
#[must_use]
pub fn result(message: &RawObject) -> Option<RawObject> {
    unmistakable("result", message)
}

/// The error of an answer, likewise.
#[must_use]
pub fn error(message: &RawObject) -> Option<RawObject> {
    unmistakable("error", message)
}

fn unmistakable(name: &str, message: &RawObject) -> Option<RawObject> {
    message.object(name).filter(|object| envelope::misread(name, object).is_none())
}

/// What a server asks of the client in one answer: each costs a hop to the lane.
const MAX_ASKED: usize = 16;

/// What a stateless server's result asks of the client: methods with their parameters. `None` when
/// that cannot be read, or is too much.
#[must_use]
pub fn asked(result: &RawObject) -> Option<Vec<(String, Json)>> {
    let Some(requests) = result.get("inputRequests") else { return Some(Vec::new()) };
    let requests = json::parse(requests.as_bytes()).ok()?;
    if requests.twin().is_some() {
        return None;
    }
    let Json::Object(requests) = requests else { return None };
    if requests.len() > MAX_ASKED {
        return None;
    }
    let mut asked = Vec::new();
    for (_, request) in requests {
        let Json::Object(members) = &request else { return None };
        let names = members.iter().map(|(name, _)| name.as_str());
        if envelope::mistaken(INPUT_REQUEST, names).is_some() {
            return None;
        }
        let method = request.get("method")?.as_str()?.to_owned();
        let params = request.get("params").cloned().unwrap_or(Json::Object(Vec::new()));
        matches!(params, Json::Object(_)).then_some(())?;
        asked.push((method, params));
    }
    Some(asked)
}

/// What an error asks of the client before it calls again (-32042): parameters of
/// `elicitation/create`. `None` when that cannot be read, or is too much.
#[must_use]
pub fn elicited(error: &RawObject) -> Option<Vec<Json>> {
    let data = match error.get("data") {
        Some(data) if data.starts_with('{') => RawObject::parse(data)?,
        _ => return Some(Vec::new()),
    };
    let Some(asked) = data.get("elicitations") else { return Some(Vec::new()) };
    match json::parse(asked.as_bytes()).ok().filter(|asked| asked.twin().is_none())? {
        Json::Array(asked)
            if asked.len() <= MAX_ASKED
                && asked.iter().all(|params| matches!(params, Json::Object(_))) =>
        {
            Some(asked)
        }
        _ => None,
    }
}

/// Takes out of an error what no server says in Gateward's place, and members that JSON-RPC does not
/// know.
pub fn clean(error: &mut RawObject) {
    error.retain(|name| matches!(name, "code" | "data" | "message"));
    if let Some(mut data) = error.object("data")
        && data.retain(|key| !is_own(key))
    {
        error.set("data", data.write());
    }
}

/// What is changed of the result of `method`; `decision` is what let it through, if one was made.
///
/// # Errors
///
/// The result is of a kind that does not pass.
pub fn finish(
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
            return Err(RpcError::upstream("the server's result is of a kind that does not pass"));
        }
        if let Some(state) = result.text("requestState") {
            result.set_text("requestState", &seal.seal(Handle::RequestState, &state));
        }
        // Whoever shares a cache has not been asked whether it may see this.
        if result.get("cacheScope").is_some() {
            result.set_text("cacheScope", "private");
        }
    }
    let mut meta = result.object("_meta").unwrap_or_default();
    // What Gateward says there, no server says in its place.
    let mut changed = meta.retain(|key| !is_own(key));
    if let Some(decision) = decision {
        let all = denial::meta(decision);
        for key in ["decision_id", "redacted_fields", "engine_mode"] {
            let key = [META_PREFIX, key].concat();
            if let Some(json) = all.get(&key) {
                meta.set(&key, json);
                changed = true;
            }
        }
    }
    if changed {
        result.set("_meta", meta.write());
    }
    Ok(())
}

/// The error that a server gets whose request the client is not asked.
#[must_use]
pub fn refusal(id: &str, method: &str, reason: &str) -> String {
    /// What clients say when a user rejects a request to sample.
    const REJECTED: i32 = -1;
    let code = match method {
        "sampling/createMessage" | "elicitation/create" => REJECTED,
        _ => super::error::METHOD_NOT_FOUND,
    };
    RpcError::in_band(code, reason).with_id(Some(id)).body(Era::Session)
}

/// Several messages as the one batch that they came in.
#[must_use]
pub fn together(messages: &[String], batch: bool) -> String {
    match messages {
        [one] if !batch => one.clone(),
        messages => array(messages),
    }
}

/// The answer with this result, or this error.
#[must_use]
pub fn with(mut message: RawObject, field: &str, value: &RawObject) -> String {
    message.set(field, value.write());
    message.write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential::token::MacKeys;
    use crate::decision::{Decision, ReasonCode};

    #[test]
    fn a_servers_message_is_known_for_what_it_is() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1.0,"result":{"x":12345678901234567890}}"#, "answer 1"),
            (r#"{"jsonrpc":"2.0","id":"a","error":{}}"#, "answer \"a\""),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "answer -"),
            (r#"{"jsonrpc":"2.0","error":{}}"#, "answer -"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, "request 1 roots/list {}"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":[]}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, "none"),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
                "notification notifications/progress",
            ),
            (r#"{"id":1,"result":{}}"#, "none"),
            // Members that some readers take for others, or whose kind they tell otherwise.
            (
                r#"{"jsonrpc":"2.0","method":"notifications/message","Method":"sampling/createMessage","id":1,"params":{}}"#,
                "none",
            ),
            (r#"{"jsonrpc":"2.0","METHOD":"roots/list","id":1,"result":{}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"Result":{"tools":[]}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"ID":2,"method":"ping"}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, "none"),
            (r#"{"jsonrpc":"2.0","method":"notifications/progress","error":{}}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"A":2}}"#, "none"),
            ("<html></html>", "none"),
            ("[]", "none"),
        ] {
            let seen = match read(text) {
                None => "none".to_owned(),
                Some(Incoming::Answer { id, .. }) => {
                    format!("answer {}", id.unwrap_or("-".to_owned()))
                }
                Some(Incoming::Request { id, method, params, .. }) => {
                    format!("request {id} {method} {}", params.canonical())
                }
                Some(Incoming::Notification { method, .. }) => format!("notification {method}"),
            };
            assert_eq!(seen, expected, "{text}");
        }
    }

    #[test]
    fn members_that_json_rpc_does_not_know_are_not_passed_on() {
        for (text, expected) in [
            (
                r#"{"jsonrpc":"2.0","x":1,"id":1,"result":{"y": 1.0}}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{"y": 1.0}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"error":{},"params":{}}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"tools":[]}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#,
            ),
            (
                r#"{"extra":{},"jsonrpc":"2.0","method":"notifications/progress"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
            ),
        ] {
            let (Incoming::Answer { message, .. }
            | Incoming::Request { message, .. }
            | Incoming::Notification { message, .. }) = read(text).unwrap();
            assert_eq!(message.write(), expected);
        }
    }

    #[test]
    fn a_result_or_error_of_two_readings_is_not_read() {
        for (text, is_read) in [
            (r#"{"result":{"tools":[],"structuredContent":{"a":1,"A":2}}}"#, true),
            (r#"{"result":{"tools":[],"Tools":[{"name":"x"}]}}"#, false),
            (r#"{"result":{"resultType":"complete","InputRequests":{"k":{"method":"a"}}}}"#, false),
            (r#"{"result":{"_meta":{"dev.gateward/decision_id":"x","a":1,"a":2}}}"#, false),
            (r#"{"result":[]}"#, false),
            (r#"{"error":{"code":1,"data":{"a":1,"A":2}}}"#, true),
            (r#"{"error":{"code":1,"data":{"elicitations":[],"Elicitations":[{}]}}}"#, false),
            (r#"{"error":{"code":1,"Data":{"elicitations":[{}]}}}"#, false),
        ] {
            let message = RawObject::parse(text).unwrap();
            assert_eq!(result(&message).or_else(|| error(&message)).is_some(), is_read, "{text}");
        }
    }

    #[test]
    fn what_a_result_asks_of_the_client_is_read_or_refused() {
        for (text, expected) in [
            ("{}", Some(vec![])),
            (r#"{"inputRequests":{"k":{"method":"roots/list"}}}"#, Some(vec!["roots/list {}"])),
            (
                r#"{"inputRequests":{"k":{"method":"a","params":{"x":1}},"l":{"method":"b"}}}"#,
                Some(vec![r#"a {"x":1}"#, "b {}"]),
            ),
            (r#"{"inputRequests":[]}"#, None),
            (r#"{"inputRequests":{"k":{}}}"#, None),
            (r#"{"inputRequests":{"k":{"method":"a","params":1}}}"#, None),
            (r#"{"inputRequests":{"k":{"method":"roots/list","Params":{"x":1}}}}"#, None),
            (r#"{"inputRequests":{"k":{"method":"a","Method":"b"}}}"#, None),
            (r#"{"inputRequests":{"k":{"method":"a"},"K":{"method":"b"}}}"#, None),
            (r#"{"inputRequests":{"k":{"method":"a","params":{"x":1,"X":2}}}}"#, None),
        ] {
            let asked = asked(&RawObject::parse(text).unwrap()).map(|asked| {
                asked.iter().map(|(m, p)| format!("{m} {}", p.canonical())).collect::<Vec<_>>()
            });
            let expected = expected.map(|texts| texts.iter().map(|t| (*t).to_owned()).collect());
            assert_eq!(asked, expected, "{text}");
        }
    }

    #[test]
    fn what_an_error_asks_of_the_client_is_read_or_refused() {
        let many =
            format!(r#"{{"data":{{"elicitations":[{}]}}}}"#, ["{}"; MAX_ASKED + 1].join(","));
        for (text, expected) in [
            ("{}", Some(0)),
            (r#"{"data":"elicitations"}"#, Some(0)),
            (r#"{"data":{"x":1}}"#, Some(0)),
            (r#"{"data":{"elicitations":[{"mode":"url"},{}]}}"#, Some(2)),
            (r#"{"data":{"\u0065licitations":[{}]}}"#, Some(1)),
            (r#"{"data":{"elicitations":{}}}"#, None),
            (r#"{"data":{"elicitations":[1]}}"#, None),
            (r#"{"data":{"elicitations":[{"url":"a","URL":"b"}]}}"#, None),
            (r#"{"data":{"x":1,"elicitations":[],"elicitations":[{}]}}"#, None),
            (&many, None),
        ] {
            let asked = elicited(&RawObject::parse(text).unwrap());
            assert_eq!(asked.map(|asked| asked.len()), expected, "{text}");
        }
    }

    #[test]
    fn an_error_says_nothing_in_gatewards_place() {
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
            clean(&mut error);
            assert_eq!(error.write(), expected);
        }
    }

    #[test]
    fn of_a_result_only_what_must_change_does() {
        let keys = MacKeys::new("a-mac-key-for-tests-of-40-characters-000", None).unwrap();
        let seal = Seal { keys: &keys, tenant: "t", agent: "a", server: "s" };
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
            let finished = finish(method, &mut result, None, era, &seal);
            assert_eq!(finished.ok().map(|()| result.write()).as_deref(), expected, "{text}");
        }
        let decision = ProxyDecision {
            decision_id: "d".to_owned(),
            decision: Decision::Redact,
            reason: String::new(),
            reason_code: ReasonCode::PolicyRedact,
            matched_policies: Vec::new(),
            redacted_fields: vec!["ssn".to_owned()],
            approval: None,
            receipt: None,
            engine_mode: None,
        };
        let mut result = RawObject::parse("{}").unwrap();
        finish("tools/call", &mut result, Some(&decision), Era::Session, &seal).unwrap();
        assert_eq!(
            result.write(),
            r#"{"_meta":{"dev.gateward/decision_id":"d","dev.gateward/redacted_fields":["ssn"]}}"#
        );
    }
}
