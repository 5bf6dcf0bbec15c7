//! The action that policies decide on: which tool of the server a request calls, with which input.
//!
//! Reading a resource, getting a prompt, and everything that a server asks of a client are actions too.
//! They are registered and authorized like tools, under the names of their methods.

use super::error::{INVALID_PARAMS, RpcError};
use super::message::Message;
use crate::bounds::MAX_RESOURCE_BYTES;
use crate::call::command::{Candidate, MAX_CANDIDATES};
use crate::call::run::MAX_INSTRUCTION_BYTES;
use crate::json::Json;
use crate::name::is_tool_name;

/// The methods that are registered as tools. `resources/read` and `prompts/get` are registered together
/// with a server that has the capability.
pub const RESOURCES_READ: &str = "resources/read";
pub const PROMPTS_GET: &str = "prompts/get";
pub const METHOD_TOOLS: [&str; 5] =
    [RESOURCES_READ, PROMPTS_GET, "sampling/createMessage", "elicitation/create", "roots/list"];

/// The key in `_meta` of the instruction that the user gave, with which a harness starts a run.
pub const INSTRUCTION: &str = "dev.gateward/instruction";

/// The instruction in a message's `_meta`.
///
/// # Errors
///
/// It is not a string, is empty, or is longer than [`MAX_INSTRUCTION_BYTES`].
pub fn instruction(message: &Message) -> Result<Option<&str>, RpcError> {
    let stated = message.params.get("_meta").and_then(|meta| meta.get(INSTRUCTION));
    match stated {
        None => Ok(None),
        Some(Json::String(text)) if (1..=MAX_INSTRUCTION_BYTES).contains(&text.len()) => {
            Ok(Some(text))
        }
        Some(_) => {
            let must = format!("must be a string of 1 to {MAX_INSTRUCTION_BYTES} bytes");
            Err(invalid(&["`", INSTRUCTION, "` ", &must].concat()))
        }
    }
}

/// An action of a server.
#[derive(Debug, PartialEq)]
pub struct Action {
    pub tool: String,
    /// The resource's URI or the prompt's name; empty for a tool.
    pub resource: String,
    /// Always [`Json::Object`].
    pub input: Json,
}

/// The action of a `tools/call`, `resources/read` or `prompts/get`.
///
/// # Errors
///
/// A parameter is missing or not valid.
pub fn of(message: &Message) -> Result<Action, RpcError> {
    let text = |key: &str| {
        let text = message.params.get(key).and_then(Json::as_str);
        let text = text.filter(|text| text.len() <= MAX_RESOURCE_BYTES).map(str::to_owned);
        text.ok_or_else(|| invalid(&["`", key, "` must be a string"].concat()))
    };
    let arguments = match message.params.get("arguments") {
        None | Some(Json::Null) => None,
        Some(arguments @ Json::Object(_)) => Some(arguments.clone()),
        Some(_) => return Err(invalid("`arguments` must be an object")),
    };
    match message.method.as_str() {
        RESOURCES_READ => {
            let uri = text("uri")?;
            let input = Json::Object(vec![("uri".to_owned(), Json::String(uri.clone()))]);
            Ok(Action { tool: RESOURCES_READ.to_owned(), resource: uri, input })
        }
        PROMPTS_GET => {
            let name = text("name")?;
            let mut input: Vec<_> =
                arguments.into_iter().map(|value| ("arguments".to_owned(), value)).collect();
            input.push(("name".to_owned(), Json::String(name.clone())));
            Ok(Action { tool: PROMPTS_GET.to_owned(), resource: name, input: Json::Object(input) })
        }
        _ => {
            let tool = text("name")?;
            if !is_tool_name(&tool) || METHOD_TOOLS.contains(&tool.as_str()) {
                return Err(invalid(
                    "`name` must be the name of a tool: 1 to 128 of `[A-Za-z0-9_./-]`, and no method",
                ));
            }
            let input = arguments.unwrap_or(Json::Object(Vec::new()));
            Ok(Action { tool, resource: String::new(), input })
        }
    }
}

/// Whether one of these fields identifies what an action reads or gets, such as `uri` or `name`. Such a
/// field cannot be redacted; a prompt's arguments can.
#[must_use]
pub fn identifies(input: &Json, fields: &[String]) -> bool {
    fields.iter().any(|field| input.get(field).is_some())
}

/// The resources and prompts that a request names. The agent must be allowed to use each of them.
///
/// # Errors
///
/// The parameters are not valid for the method.
pub fn named(message: &Message) -> Result<Vec<Candidate>, RpcError> {
    let text = |value: Option<&Json>| value.and_then(Json::as_str).map(str::to_owned);
    let params = &message.params;
    let named = match message.method.as_str() {
        "resources/subscribe" => text(params.get("uri")).map(|uri| vec![resource(&uri)]),
        "completion/complete" => {
            params.get("ref").and_then(|of| match of.get("type")?.as_str()? {
                "ref/prompt" => Some(vec![prompt(&text(of.get("name"))?)]),
                // The URI is not known yet: the template is still being completed.
                "ref/resource" => Some(vec![template()]),
                _ => None,
            })
        }
        _ => match params.get("notifications").and_then(|asked| asked.get("resourceSubscriptions"))
        {
            None => Some(Vec::new()),
            Some(Json::Array(uris)) if uris.len() <= MAX_CANDIDATES => {
                uris.iter().map(|uri| uri.as_str().map(resource)).collect()
            }
            Some(_) => None,
        },
    };
    named.ok_or_else(|| invalid("the parameters are not valid for this method"))
}

/// What such a request says to the server, except for MCP's own words in it and `_meta`.
#[must_use]
pub fn said(message: &Message) -> Json {
    let Json::Object(params) = &message.params else { return Json::Object(Vec::new()) };
    let mut said = params.clone();
    said.retain(|(name, _)| name != "_meta");
    for (name, value) in &mut said {
        if let (Json::Object(reference), "ref") = (value, name.as_str()) {
            reference.retain(|(name, _)| name != "type");
        }
    }
    Json::Object(said)
}

fn invalid(message: &str) -> RpcError {
    RpcError::in_band(INVALID_PARAMS, message)
}

/// The candidate for reading this resource.
#[must_use]
pub fn resource(uri: &str) -> Candidate {
    let input = Json::Object(vec![("uri".to_owned(), Json::String(uri.to_owned()))]);
    Candidate { input: Some(input), resource: Some(uri.to_owned()), ..template() }
}

/// The candidate for reading a resource whose URI is not known.
#[must_use]
pub fn template() -> Candidate {
    Candidate {
        tool: RESOURCES_READ.to_owned(),
        input: None,
        resource: None,
        definition_sha256: None,
    }
}

/// The candidate for getting this prompt with any arguments.
#[must_use]
pub fn prompt(name: &str) -> Candidate {
    Candidate { tool: PROMPTS_GET.to_owned(), resource: Some(name.to_owned()), ..template() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::mcp::message::Kind;

    fn message(method: &str, params: &str) -> Message {
        Message {
            kind: Kind::Request,
            id: "1".to_owned(),
            method: method.to_owned(),
            params: json::parse(params.as_bytes()).unwrap(),
            parameters: Vec::new(),
            text: String::new(),
        }
    }

    #[test]
    fn a_request_becomes_the_action_that_it_does() {
        for (method, params, expected) in [
            ("tools/call", r#"{"name":"t"}"#, Some("t||{}")),
            ("tools/call", r#"{"name":"t","arguments":{"a":1}}"#, Some(r#"t||{"a":1}"#)),
            ("tools/call", r#"{"name":"t","arguments":null}"#, Some("t||{}")),
            ("tools/call", r#"{"name":"t","arguments":[]}"#, None),
            ("tools/call", r#"{"name":"a b"}"#, None),
            // A method is not the name of a tool.
            ("tools/call", r#"{"name":"resources/read"}"#, None),
            ("tools/call", "{}", None),
            ("tools/call", "null", None),
            (
                "resources/read",
                r#"{"uri":"a://b","x":1}"#,
                Some(r#"resources/read|a://b|{"uri":"a://b"}"#),
            ),
            ("resources/read", r#"{"uri":5}"#, None),
            ("prompts/get", r#"{"name":"p"}"#, Some(r#"prompts/get|p|{"name":"p"}"#)),
            (
                "prompts/get",
                r#"{"name":"p","arguments":{"x":"y"}}"#,
                Some(r#"prompts/get|p|{"arguments":{"x":"y"},"name":"p"}"#),
            ),
        ] {
            let action = of(&message(method, params)).ok().map(|action| {
                format!("{}|{}|{}", action.tool, action.resource, action.input.canonical())
            });
            assert_eq!(action.as_deref(), expected, "{params}");
        }
    }

    #[test]
    fn the_instruction_is_a_text_in_the_members_of_gateward() {
        let of = |meta: &str| {
            let message = message("tools/call", &format!(r#"{{"_meta":{meta}}}"#));
            instruction(&message).map(|text| text.map(str::len)).map_err(|error| error.code)
        };
        let stated = |text: String| format!(r#"{{"{INSTRUCTION}":{text}}}"#);
        for (meta, expected) in [
            ("null".to_owned(), Ok(None)),
            ("{}".to_owned(), Ok(None)),
            (stated(r#""pay""#.to_owned()), Ok(Some(3))),
            (stated(r#""""#.to_owned()), Err(INVALID_PARAMS)),
            (stated("5".to_owned()), Err(INVALID_PARAMS)),
            (stated("null".to_owned()), Err(INVALID_PARAMS)),
            (stated(format!("\"{}\"", "x".repeat(16_384))), Ok(Some(16_384))),
            (stated(format!("\"{}\"", "x".repeat(16_385))), Err(INVALID_PARAMS)),
        ] {
            assert_eq!(of(&meta), expected, "{}", &meta[..meta.len().min(60)]);
        }
    }

    #[test]
    fn a_field_that_identifies_the_resource_or_prompt_is_found() {
        for (method, params, field, expected) in [
            ("resources/read", r#"{"uri":"a://b"}"#, "uri", true),
            ("resources/read", r#"{"uri":"a://b"}"#, "name", false),
            ("prompts/get", r#"{"name":"p","arguments":{"email":"x"}}"#, "name", true),
            ("prompts/get", r#"{"name":"p","arguments":{"email":"x"}}"#, "arguments", true),
            ("prompts/get", r#"{"name":"p","arguments":{"email":"x"}}"#, "email", false),
        ] {
            let action = of(&message(method, params)).unwrap();
            assert_eq!(
                identifies(&action.input, &[field.to_owned()]),
                expected,
                "{method} {field}"
            );
        }
    }

    #[test]
    fn a_requests_resources_and_prompts_become_candidates() {
        for (method, params, expected) in [
            ("resources/subscribe", r#"{"uri":"a"}"#, Some(vec![resource("a")])),
            ("resources/subscribe", "{}", None),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/prompt","name":"p"}}"#,
                Some(vec![prompt("p")]),
            ),
            (
                "completion/complete",
                r#"{"ref":{"type":"ref/resource","uri":"a://{x}"}}"#,
                Some(vec![template()]),
            ),
            ("completion/complete", r#"{"ref":{"type":"ref/tool","name":"p"}}"#, None),
            (
                "subscriptions/listen",
                r#"{"notifications":{"toolsListChanged":true}}"#,
                Some(vec![]),
            ),
            (
                "subscriptions/listen",
                r#"{"notifications":{"resourceSubscriptions":["a","b"]}}"#,
                Some(vec![resource("a"), resource("b")]),
            ),
            ("subscriptions/listen", r#"{"notifications":{"resourceSubscriptions":[1]}}"#, None),
        ] {
            assert_eq!(named(&message(method, params)).ok(), expected, "{params}");
        }
    }

    #[test]
    fn what_a_request_says_is_all_but_the_words_of_mcp() {
        for (params, expected) in [
            (r#"{"uri":"a","_meta":{"progressToken":1}}"#, r#"{"uri":"a"}"#),
            (
                r#"{"ref":{"type":"ref/resource","uri":"a://{x}"},"argument":{"name":"x","value":"s"},"context":{"arguments":{"y":"t"}}}"#,
                r#"{"argument":{"name":"x","value":"s"},"context":{"arguments":{"y":"t"}},"ref":{"uri":"a://{x}"}}"#,
            ),
            (r#"{"ref":5}"#, r#"{"ref":5}"#),
            ("{}", "{}"),
            ("null", "{}"),
        ] {
            assert_eq!(said(&message("m", params)).canonical(), expected);
        }
    }
}
