//! Messages from a server: which kind each is, and what they say. [`super::response`] changes them.

use super::Era;
use super::envelope::{self, INPUT_REQUEST, MESSAGE};
use super::error::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};
use crate::gate::Effect;
use crate::json::raw::RawObject;
use crate::json::{self, Json};

/// A message from a server.
#[derive(Debug)]
pub enum Incoming {
    /// A response. The id is a JSON text in canonical form; `None` for an error that belongs to no
    /// request.
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

/// Reads a message and drops members that its kind does not have. Returns `None` when it is not a
/// JSON-RPC message, or when a client could read it as a different one.
#[must_use]
pub fn read(text: &str) -> Option<Incoming> {
    let mut message = RawObject::parse(text)?;
    if envelope::confusable(MESSAGE, message.names()).is_some() || message.text("jsonrpc")? != "2.0"
    {
        return None;
    }
    let id = match message.get("id") {
        None => None,
        // Only an error may belong to no request.
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
        // Some clients would read it as a response.
        return None;
    }
    message.retain(|name| matches!(name, "jsonrpc" | "id" | "method" | "params"));
    let method = message.text("method")?;
    let params = match message.get("params") {
        None => Ok(Json::Object(Vec::new())),
        Some(params) => json::parse(params.as_bytes()),
    };
    let Some(id) = id else {
        // Parameters beyond the bounds are forwarded, and count as unreviewed text.
        let params = params.unwrap_or(Json::Null);
        return Some(Incoming::Notification { method, params, message });
    };
    let params = params.ok()?;
    let is_clear = matches!(params, Json::Object(_)) && params.confusable_key().is_none();
    is_clear.then_some(Incoming::Request { id, method, params, message })
}

/// The result of a response. `None` when it is not an object, or has a key that a client could read as
/// one that Gateward checks.
#[must_use]
pub fn result(message: &RawObject) -> Option<RawObject> {
    unambiguous("result", message)
}

/// The effect of a call, by its response.
///
/// An error says that the call did nothing only if the server did not understand it. Other errors can follow an effect,
/// and a client can cause one: some servers answer so to a call that the client cancels.
///
/// In a session, no response says that. Servers find a request by its id, so a client that sends two requests with one
/// id can get the error of one as the response to the other.
#[must_use]
pub fn effect(message: &RawObject, era: Era) -> Effect {
    match (era, said_effect(message)) {
        (Era::Session, Effect::Failed) => Effect::Unclear,
        (_, effect) => effect,
    }
}

fn said_effect(message: &RawObject) -> Effect {
    const NOT_UNDERSTOOD: [i32; 4] =
        [PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS];
    if message.get("error").is_some() {
        let code = message.object("error").and_then(|error| error.get("code")?.parse().ok());
        return match code.is_some_and(|code| NOT_UNDERSTOOD.contains(&code)) {
            true => Effect::Failed,
            false => Effect::Unclear,
        };
    }
    let result = message.object("result").unwrap_or_default();
    // The client repeats a call that the server asks something about, and the repetition counts.
    let asks = result.text("resultType").as_deref() == Some("input_required");
    match asks || result.get("isError") == Some("true") {
        true => Effect::Failed,
        false => Effect::Succeeded,
    }
}

/// The error of a response. `None` for the same reasons.
#[must_use]
pub fn error(message: &RawObject) -> Option<RawObject> {
    unambiguous("error", message)
}

fn unambiguous(name: &str, message: &RawObject) -> Option<RawObject> {
    message.object(name).filter(|object| envelope::confusable_within(name, object).is_none())
}

/// Requests to the client in one response. Each costs a hop to the lane.
const MAX_INPUT_REQUESTS: usize = 16;

/// The requests to the client in a stateless server's result: methods with their parameters. `None`
/// when they cannot be read, or are more than [`MAX_INPUT_REQUESTS`].
#[must_use]
pub fn input_requests(result: &RawObject) -> Option<Vec<(String, Json)>> {
    let Some(requests) = result.get("inputRequests") else { return Some(Vec::new()) };
    let requests = json::parse(requests.as_bytes()).ok()?;
    if requests.confusable_key().is_some() {
        return None;
    }
    let Json::Object(requests) = requests else { return None };
    if requests.len() > MAX_INPUT_REQUESTS {
        return None;
    }
    let mut asked = Vec::new();
    for (_, request) in requests {
        let Json::Object(members) = &request else { return None };
        let names = members.iter().map(|(name, _)| name.as_str());
        if envelope::confusable(INPUT_REQUEST, names).is_some() {
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
/// `elicitation/create`. `None` when they cannot be read, or are more than [`MAX_INPUT_REQUESTS`].
#[must_use]
pub fn elicitations(error: &RawObject) -> Option<Vec<Json>> {
    let data = match error.get("data") {
        Some(data) if data.starts_with('{') => RawObject::parse(data)?,
        _ => return Some(Vec::new()),
    };
    let Some(asked) = data.get("elicitations") else { return Some(Vec::new()) };
    match json::parse(asked.as_bytes()).ok().filter(|asked| asked.confusable_key().is_none())? {
        Json::Array(asked)
            if asked.len() <= MAX_INPUT_REQUESTS
                && asked.iter().all(|params| matches!(params, Json::Object(_))) =>
        {
            Some(asked)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_message_is_classified_or_rejected() {
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
            // Members that some clients read as others, or that change the kind of the message.
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
    fn members_that_json_rpc_does_not_define_are_not_forwarded() {
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
    fn only_an_answer_that_the_call_did_not_run_gives_back_what_it_held() {
        for (text, expected) in [
            (r#"{"result":{"content":[]}}"#, Effect::Succeeded),
            (r#"{"result":{"isError":false,"resultType":"complete"}}"#, Effect::Succeeded),
            (r#"{"result":{"isError":true}}"#, Effect::Failed),
            (r#"{"result":{"resultType":"input_required"}}"#, Effect::Failed),
            (r#"{"error":{"code":-32602,"message":"m"}}"#, Effect::Failed),
            (r#"{"error":{"code":-32603,"message":"m"}}"#, Effect::Unclear),
            (r#"{"error":{"code":0,"message":"Request cancelled"}}"#, Effect::Unclear),
            (r#"{"error":{"code":"-32602"}}"#, Effect::Unclear),
            (r#"{"error":{}}"#, Effect::Unclear),
        ] {
            let message = RawObject::parse(text).unwrap();
            assert_eq!(effect(&message, Era::Stateless), expected, "{text}");
            let in_session = if expected == Effect::Failed { Effect::Unclear } else { expected };
            assert_eq!(effect(&message, Era::Session), in_session, "{text}");
        }
    }

    #[test]
    fn a_result_or_error_with_a_confusable_key_is_not_read() {
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
    fn a_results_requests_to_the_client_are_read_or_rejected() {
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
            let asked = input_requests(&RawObject::parse(text).unwrap()).map(|asked| {
                asked.iter().map(|(m, p)| format!("{m} {}", p.canonical())).collect::<Vec<_>>()
            });
            let expected = expected.map(|texts| texts.iter().map(|t| (*t).to_owned()).collect());
            assert_eq!(asked, expected, "{text}");
        }
    }

    #[test]
    fn an_errors_elicitations_are_read_or_rejected() {
        let many = format!(
            r#"{{"data":{{"elicitations":[{}]}}}}"#,
            ["{}"; MAX_INPUT_REQUESTS + 1].join(",")
        );
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
            let asked = elicitations(&RawObject::parse(text).unwrap());
            assert_eq!(asked.map(|asked| asked.len()), expected, "{text}");
        }
    }
}
