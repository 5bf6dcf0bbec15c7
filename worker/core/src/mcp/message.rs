//! What a client POSTs: one message, or in one revision several, each known for what it is.
//!
//! The body says which era a message is of; headers are checked against it. Of several things that
//! are wrong with it the first in the order of this file is answered: the specification's own.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::envelope::{self, META_CAPABILITIES, META_VERSION};
use super::error::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError, TRANSPORT,
    UNSUPPORTED_VERSION,
};
use super::raw::{RawObject, items, quoted};
use super::{BATCH_VERSION, Era, SESSION_VERSIONS, STATELESS_VERSION};
use crate::bounds::MAX_PARAMETER_HEADERS;
use crate::json::{self, Json};

/// Messages of one batch: each costs a hop to the lane, of which one HTTP request has a few dozen.
pub const MAX_BATCH: usize = 16;

/// Bytes of a message that is no call: a model's answer of ten thousand words, or a subscription to a
/// thousand resources. A call may take the whole body, since its arguments are decided.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The headers that say something about the body; one that is absent is `None`.
#[derive(Debug, Default, Clone)]
pub struct Headers {
    pub protocol_version: Option<String>,
    pub method: Option<String>,
    pub name: Option<String>,
    /// `Mcp-Param-*`: what follows, in lower case, and the value.
    pub parameters: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Response,
}

/// One JSON-RPC message of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub kind: Kind,
    /// The id's JSON text in its canonical form; empty for a notification.
    pub id: String,
    /// Empty for a response.
    pub method: String,
    /// [`Json::Null`] when there are none.
    pub params: Json,
    /// The `Mcp-Param-*` headers of a stateless call, decoded: what follows, in lower case, and the
    /// value. Which argument each must be, the tool's schema says.
    pub parameters: Vec<(String, String)>,
    /// The message as it came.
    pub text: String,
}

/// What was POSTed.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    pub era: Era,
    pub batch: bool,
    pub messages: Vec<Message>,
}

/// Reads a body.
///
/// # Errors
///
/// The era that the error is answered in, and the error, as the era's revisions have them.
pub fn receive(body: &[u8], headers: &Headers) -> Result<Received, (Era, RpcError)> {
    // What cannot be read is answered in the era that the header names.
    let said = era_of_header(headers);
    let document = json::parse(body).map_err(|error| {
        let id = id_of_request(body);
        let is_json = error.ambiguous || id.is_some();
        let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
        (said, RpcError::new(400, code, error.message).with_id(id.as_deref()))
    })?;
    // What is JSON is UTF-8.
    let text = std::str::from_utf8(body).unwrap_or_default();
    match document {
        Json::Array(documents) => batch(documents, text, headers)
            .map(|messages| Received { era: Era::Session, batch: true, messages })
            .map_err(|error| (said, error)),
        document => {
            let mut message = message(document, text.to_owned()).map_err(|error| (said, error))?;
            let era = era(&message, headers);
            let checked =
                check(&message, era, headers).and_then(|()| parameters(&message, era, headers));
            message.parameters =
                checked.map_err(|error| (era, error.with_id(message.id_if_request())))?;
            Ok(Received { era, batch: false, messages: vec![message] })
        }
    }
}

/// The id of a request that was refused before it was read as a message: the arguments may hold a
/// number beyond the supported ones. `None` when the body is not one JSON-RPC request.
#[must_use]
pub fn id_of_request(body: &[u8]) -> Option<String> {
    let fields = RawObject::parse(std::str::from_utf8(body).ok()?)?;
    fields.text("method")?;
    let id = json::parse(fields.get("id")?.as_bytes()).ok()?;
    matches!(id, Json::String(_) | Json::Integer(_)).then(|| id.canonical())
}

/// A batch: of the one revision that has them, and nothing in it of another.
fn batch(documents: Vec<Json>, text: &str, headers: &Headers) -> Result<Vec<Message>, RpcError> {
    let refuse = |message: &str| Err(RpcError::new(400, INVALID_REQUEST, message));
    if headers.protocol_version.as_ref().is_some_and(|version| version != BATCH_VERSION) {
        return refuse("this revision has no batches");
    }
    if documents.is_empty() || documents.len() > MAX_BATCH {
        return refuse("a batch has 1 to 16 messages");
    }
    let mut messages: Vec<Message> = Vec::new();
    for (document, text) in documents.into_iter().zip(items(text).unwrap_or_default()) {
        // The batch is refused as a whole, so the error answers none of its messages.
        let message = message(document, text.to_owned()).map_err(|error| error.with_id(None))?;
        if message.method == "initialize" || version_of(&message).is_some() {
            return refuse("this message cannot be one of a batch");
        }
        let twice = |other: &Message| other.kind == message.kind && other.id == message.id;
        if message.kind == Kind::Request && messages.iter().any(twice) {
            return refuse("two requests of a batch have the same id");
        }
        messages.push(message);
    }
    Ok(messages)
}

/// One message, as JSON-RPC 2.0 has it and MCP narrows it.
fn message(document: Json, text: String) -> Result<Message, RpcError> {
    let refuse = |message: &str| RpcError::new(400, INVALID_REQUEST, message);
    let Json::Object(fields) = document else {
        return Err(refuse("the body must be one JSON-RPC message"));
    };
    let (mut version, mut id, mut method, mut params) = (None, None, None, Json::Null);
    let (mut result, mut error) = (false, false);
    for (key, value) in fields {
        match key.as_str() {
            "jsonrpc" => version = Some(value),
            "id" => id = Some(value),
            "method" => method = Some(value),
            "params" => params = value,
            "result" => result = true,
            "error" => error = true,
            // Some readers take `Method` for `method`: see `envelope`.
            _ => return Err(refuse("the message has a field that JSON-RPC does not know")),
        }
    }
    let id = match id {
        None => None,
        Some(id @ (Json::String(_) | Json::Integer(_))) => Some(id.canonical()),
        Some(_) => return Err(refuse("`id` must be a string or an integer")),
    };
    let refuse = |message: &str| refuse(message).with_id(id.as_deref());
    if version.as_ref().and_then(Json::as_str) != Some("2.0") {
        return Err(refuse("`jsonrpc` must be \"2.0\""));
    }
    let (kind, method) = match (method, result || error) {
        (Some(Json::String(method)), false) => {
            (if id.is_some() { Kind::Request } else { Kind::Notification }, method)
        }
        (None, true) if id.is_some() && result != error => (Kind::Response, String::new()),
        _ => return Err(refuse("the message is neither a request, a notification nor a response")),
    };
    if !matches!(params, Json::Object(_) | Json::Null) {
        return Err(
            RpcError::new(400, INVALID_PARAMS, "`params` must be an object").with_id(id.as_deref())
        );
    }
    let misread = || {
        let raw = RawObject::parse(&text)?.object("params")?;
        envelope::misread("params", &raw)
    };
    if kind != Kind::Response
        && let Some(key) = params.twin().map(str::to_owned).or_else(misread)
    {
        let detail = ["`", &key, "` can be taken for another parameter"].concat();
        return Err(RpcError::new(400, INVALID_PARAMS, detail).with_id(id.as_deref()));
    }
    let id = id.unwrap_or_default();
    Ok(Message { kind, id, method, params, parameters: Vec::new(), text })
}

/// The revision that a message claims for itself, whatever it is.
fn version_of(message: &Message) -> Option<&Json> {
    message.params.get("_meta")?.get(META_VERSION)
}

/// Revisions are dates: one that is not older than the stateless one is of its era.
#[must_use]
pub fn era_of_header(headers: &Headers) -> Era {
    match &headers.protocol_version {
        Some(version) if is_date(version) && version.as_str() >= STATELESS_VERSION => {
            Era::Stateless
        }
        _ => Era::Session,
    }
}

fn is_date(version: &str) -> bool {
    version.len() == STATELESS_VERSION.len()
        && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn era(message: &Message, headers: &Headers) -> Era {
    if version_of(message).is_some() { Era::Stateless } else { era_of_header(headers) }
}

/// Whether headers and envelope are as the era has them.
fn check(message: &Message, era: Era, headers: &Headers) -> Result<(), RpcError> {
    match (era, &headers.protocol_version) {
        (Era::Stateless, _) => check_stateless(message, headers),
        (Era::Session, Some(version)) if !SESSION_VERSIONS.contains(&version.as_str()) => {
            let detail = "Bad Request: Unsupported protocol version";
            Err(RpcError::new(400, TRANSPORT, detail))
        }
        _ => Ok(()),
    }
}

fn check_stateless(message: &Message, headers: &Headers) -> Result<(), RpcError> {
    let invalid = |message: &str| Err(RpcError::new(400, INVALID_PARAMS, message));
    match message.kind {
        Kind::Response => {
            return Err(RpcError::new(400, INVALID_REQUEST, "this revision has no such responses"));
        }
        Kind::Notification | Kind::Request => {}
    }
    let is_request = message.kind == Kind::Request;
    if let Some(version) = version_of(message) {
        let Some(version) = version.as_str() else {
            return invalid("the protocol version in `_meta` must be a string");
        };
        agrees("MCP-Protocol-Version", headers.protocol_version.as_deref(), version, is_request)?;
        let meta = message.params.get("_meta");
        let capabilities = meta.and_then(|meta| meta.get(META_CAPABILITIES));
        if is_request && !matches!(capabilities, Some(Json::Object(_))) {
            return invalid(
                "`_meta` must have `io.modelcontextprotocol/clientCapabilities`, an object",
            );
        }
        if version != STATELESS_VERSION {
            let data = format!(
                "{{\"supported\":[\"{STATELESS_VERSION}\"],\"requested\":{}}}",
                quoted(version)
            );
            return Err(RpcError::new(400, UNSUPPORTED_VERSION, "Unsupported protocol version")
                .with_data(data));
        }
    } else if is_request && message.method == "initialize" {
        return Err(mismatch("MCP-Protocol-Version names a revision that has no `initialize`"));
    } else if is_request {
        return invalid("`_meta` must have `io.modelcontextprotocol/protocolVersion`");
    }
    agrees("Mcp-Method", headers.method.as_deref(), &message.method, is_request)?;
    if !is_request {
        return Ok(());
    }
    let named = match message.method.as_str() {
        "tools/call" | "prompts/get" => message.params.get("name"),
        "resources/read" => message.params.get("uri"),
        _ => None,
    };
    if let Some(Json::String(named)) = named {
        let header = headers.name.as_deref().map(decode).transpose()?;
        agrees("Mcp-Name", header.as_deref(), named, true)?;
    }
    Ok(())
}

/// The `Mcp-Param-*` headers of a call, decoded. No other request has any.
fn parameters(
    message: &Message,
    era: Era,
    headers: &Headers,
) -> Result<Vec<(String, String)>, RpcError> {
    let calls = message.kind == Kind::Request && message.method == "tools/call";
    if era == Era::Session || !calls {
        return Ok(Vec::new());
    }
    if headers.parameters.len() > MAX_PARAMETER_HEADERS {
        return Err(mismatch("there are too many Mcp-Param headers"));
    }
    headers.parameters.iter().map(|(name, value)| Ok((name.clone(), decode(value)?))).collect()
}

/// A header's text: what stands between the marks is base64 of UTF-8.
///
/// # Errors
///
/// The header is malformed.
pub fn decode(header: &str) -> Result<String, RpcError> {
    let header = header.trim_matches([' ', '\t']);
    let Some(inner) = header.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Ok(header.to_owned());
    };
    STANDARD
        .decode(inner)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch("a header's base64 cannot be read"))
}

fn agrees(name: &str, header: Option<&str>, body: &str, required: bool) -> Result<(), RpcError> {
    match header {
        Some(header) if header.trim_matches([' ', '\t']) == body => Ok(()),
        Some(_) => Err(mismatch(&format!("{name} is not what the body says"))),
        None if required => Err(mismatch(&format!("{name} is missing"))),
        None => Ok(()),
    }
}

fn mismatch(what: &str) -> RpcError {
    RpcError::new(400, HEADER_MISMATCH, format!("Header mismatch: {what}"))
}

impl Message {
    /// The id, if the message is to be answered under it.
    #[must_use]
    pub fn id_if_request(&self) -> Option<&str> {
        (self.kind == Kind::Request).then_some(self.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(version: &str, method: &str, name: &str, parameters: &[(&str, &str)]) -> Headers {
        let header = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Headers {
            protocol_version: header(version),
            method: header(method),
            name: header(name),
            parameters: parameters
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        }
    }

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

    /// A request of the stateless era; `$M` in the parameters is its envelope.
    fn request(method: &str, params: &str) -> String {
        let params = params.replace("$M", META);
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#)
    }

    fn outcome(body: &str, headers: &Headers) -> String {
        match receive(body.as_bytes(), headers) {
            Ok(received) => {
                let kinds: Vec<String> = received
                    .messages
                    .iter()
                    .map(|m| format!("{:?} {} {}", m.kind, m.id, m.method))
                    .collect();
                format!("{:?}: {}", received.era, kinds.join(", "))
            }
            Err((era, error)) => {
                let id = error.id.unwrap_or_default();
                format!("{era:?} {} {} {id}", error.status, error.code)
            }
        }
    }

    #[test]
    fn a_body_of_the_session_era_is_known_for_what_it_is() {
        for (body, version, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
                "",
                "Session: Request 1 tools/list",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"1","method":"ping","params":{}}"#,
                "2025-11-25",
                "Session: Request \"1\" ping",
            ),
            (
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                "2025-06-18",
                "Session: Notification  notifications/initialized",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "2025-06-18", "Session: Response 1 "),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "2024-11-05", "Session 400 -32000 1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, "x", "Session 400 -32000 1"),
            ("{", "", "Session 400 -32700 "),
            ("<html>", "", "Session 400 -32700 "),
            ("", "", "Session 400 -32700 "),
            ("\u{feff}{}", "", "Session 400 -32700 "),
            ("1", "", "Session 400 -32600 "),
            ("{}", "", "Session 400 -32600 "),
            (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, "", "Session 400 -32600 1"),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, "", "Session 400 -32600 "),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, "", "Session 400 -32600 "),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, "", "Session 400 -32600 "),
            (r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, "", "Session 400 -32600 "),
            (
                r#"{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}"#,
                "",
                "Session 400 -32600 ",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":5}"#, "", "Session 400 -32600 1"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, "", "Session 400 -32600 1"),
            (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, "", "Session 400 -32600 1"),
            (r#"{"jsonrpc":"2.0","result":{}}"#, "", "Session 400 -32600 "),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
                "",
                "Session 400 -32602 1",
            ),
            (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, "", "Session 400 -32600 "),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"arguments":{"x":1,"x":2}}}"#,
                "",
                "Session 400 -32600 1",
            ),
            (
                r#"{"jsonrpc":"2.0","id":"a","method":"b","params":{"x":9007199254740993}}"#,
                "",
                "Session 400 -32600 \"a\"",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"b","params":{"x":9007199254740993}}"#,
                "",
                "Session 400 -32600 ",
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{"x":9007199254740993}}"#,
                "",
                "Session 400 -32600 ",
            ),
        ] {
            assert_eq!(outcome(body, &headers(version, "", "", &[])), expected, "{body}");
        }
    }

    #[test]
    fn a_key_that_a_lenient_reader_takes_for_another_is_refused() {
        for (params, expected) in [
            (r#"{"name":"a","NAME":"b"}"#, 400),
            (r#"{"name":"a","Arguments":{}}"#, 400),
            (r#"{"name":"a","argument\u017f":{}}"#, 400),
            (r#"{"name":"a","name\u0000":"b"}"#, 400),
            (r#"{"name":"a","tas\u212a":{}}"#, 400),
            (r#"{"name":"a","_Meta":{}}"#, 400),
            (r#"{"_meta":{"IO.modelcontextprotocol/protocolVersion":"x"}}"#, 400),
            (r#"{"capabilities":{"Tasks":{}}}"#, 400),
            (r#"{"notifications":{"resourcesubscriptions":["a"]}}"#, 400),
            (r#"{"ref":{"type":"ref/prompt","Name":"b"}}"#, 400),
            (r#"{"arguments":{"list":[{"id":1,"ID":2}]}}"#, 400),
            (r#"{"arguments":{"k":1,"\u212a":2}}"#, 400),
            // What stands alone in the arguments is the tool's.
            (r#"{"name":"a","arguments":{"Name":"b","URI":1,"\u0130":1,"i":2}}"#, 200),
            (r#"{"clientInfo":{"Name":"b"},"other":1}"#, 200),
        ] {
            for (id, version) in [(r#""id":7,"#, ""), ("", "2025-11-25")] {
                let body = format!(r#"{{"jsonrpc":"2.0",{id}"method":"x","params":{params}}}"#);
                let found = receive(body.as_bytes(), &headers(version, "", "", &[]));
                let status = found.map_or_else(|(_, error)| error.status, |_| 200);
                assert_eq!(status, expected, "{body}");
            }
        }
        for extra in
            [r#""Method":"tools/call""#, r#""method\u0000":1"#, r#""paramſ":{}"#, r#""x":1"#]
        {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping",{extra}}}"#);
            assert_eq!(outcome(&body, &Headers::default()), "Session 400 -32600 ");
        }
        // What a client's user answered is not Gateward's to judge.
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"A":2}}"#;
        assert_eq!(outcome(answer, &Headers::default()), "Session: Response 1 ");
    }

    #[test]
    fn only_one_revision_has_batches() {
        let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","method":"notifications/progress"}]"#;
        for (body, version, expected) in [
            (batch, "", "Session: Request 1 ping, Notification  notifications/progress"),
            (batch, "2025-03-26", "Session: Request 1 ping, Notification  notifications/progress"),
            (batch, "2025-06-18", "Session 400 -32600 "),
            (batch, "2026-07-28", "Stateless 400 -32600 "),
            ("[]", "", "Session 400 -32600 "),
            ("[1]", "", "Session 400 -32600 "),
            (r#"[{"jsonrpc":"2.0","id":1,"method":5}]"#, "", "Session 400 -32600 "),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"initialize"}]"#, "", "Session 400 -32600 "),
            (
                r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":1,"method":"b"}]"#,
                "",
                "Session 400 -32600 ",
            ),
            (&format!("[{}]", request("tools/list", "{$M}")), "", "Session 400 -32600 "),
        ] {
            assert_eq!(outcome(body, &headers(version, "", "", &[])), expected, "{body}");
        }
        let many =
            format!("[{}]", vec![r#"{"jsonrpc":"2.0","method":"x"}"#; MAX_BATCH + 1].join(","));
        assert_eq!(outcome(&many, &headers("", "", "", &[])), "Session 400 -32600 ");
    }

    #[test]
    fn of_the_stateless_era_headers_and_body_agree() {
        const V: &str = STATELESS_VERSION;
        let call = r#"{"name":"t","arguments":{"region":"eu","n":42,"deep":[{"on":true}]},$M}"#;
        let other = META.replace(V, "2027-01-01");
        for (method, params, headers, expected) in [
            (
                "tools/list",
                "{$M}",
                headers(V, "tools/list", "", &[]),
                "Stateless: Request 7 tools/list",
            ),
            (
                "tools/list",
                "{$M}",
                headers(" 2026-07-28\t", "tools/list", "", &[]),
                "Stateless: Request 7 tools/list",
            ),
            ("tools/list", "{$M}", headers("", "tools/list", "", &[]), "Stateless 400 -32020 7"),
            (
                "tools/list",
                "{$M}",
                headers("2025-11-25", "tools/list", "", &[]),
                "Stateless 400 -32020 7",
            ),
            ("tools/list", "{$M}", headers(V, "", "", &[]), "Stateless 400 -32020 7"),
            ("tools/list", "{$M}", headers(V, "TOOLS/LIST", "", &[]), "Stateless 400 -32020 7"),
            ("tools/list", "{}", headers(V, "tools/list", "", &[]), "Stateless 400 -32602 7"),
            ("initialize", "{}", headers(V, "initialize", "", &[]), "Stateless 400 -32020 7"),
            (
                "tools/list",
                &format!("{{{other}}}"),
                headers("2027-01-01", "tools/list", "", &[]),
                "Stateless 400 -32022 7",
            ),
            (
                "tools/list",
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":1}}"#,
                headers(V, "tools/list", "", &[]),
                "Stateless 400 -32602 7",
            ),
            (
                "tools/list",
                r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
                headers(V, "tools/list", "", &[]),
                "Stateless 400 -32602 7",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "t", &[]),
                "Stateless: Request 7 tools/call",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "=?base64?dA==?=", &[]),
                "Stateless: Request 7 tools/call",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "=?base64?dA?=", &[]),
                "Stateless 400 -32020 7",
            ),
            ("tools/call", call, headers(V, "tools/call", "u", &[]), "Stateless 400 -32020 7"),
            ("tools/call", call, headers(V, "tools/call", "", &[]), "Stateless 400 -32020 7"),
            (
                "resources/read",
                r#"{"uri":"a://b",$M}"#,
                headers(V, "resources/read", "a://b", &[]),
                "Stateless: Request 7 resources/read",
            ),
            (
                "resources/read",
                r#"{"uri":"a://b",$M}"#,
                headers(V, "resources/read", "a://c", &[]),
                "Stateless 400 -32020 7",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "t", &[("region", "eu"), ("n", "42.0"), ("on", "true")]),
                "Stateless: Request 7 tools/call",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "t", &[("region", "=?base64?ZXU=?=")]),
                "Stateless: Request 7 tools/call",
            ),
            (
                "tools/call",
                call,
                // Whether it is the argument's value, the lane says, which knows the schema.
                headers(V, "tools/call", "t", &[("region", "us")]),
                "Stateless: Request 7 tools/call",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "t", &[("region", "eu"); MAX_PARAMETER_HEADERS + 1]),
                "Stateless 400 -32020 7",
            ),
            (
                "tools/call",
                call,
                headers(V, "tools/call", "t", &[("region", "=?base64?!?=")]),
                "Stateless 400 -32020 7",
            ),
        ] {
            assert_eq!(
                outcome(&request(method, params), &headers),
                expected,
                "{method} {headers:?}"
            );
        }
        let received = receive(
            request("tools/call", call).as_bytes(),
            &headers(V, "tools/call", "t", &[("region", "=?base64?ZXU=?="), ("n", " 42.0 ")]),
        );
        let parameters = received.unwrap().messages.remove(0).parameters;
        let expected = [("region", "eu"), ("n", "42.0")];
        assert_eq!(parameters, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let error = receive(
            request("x", &format!("{{{other}}}")).as_bytes(),
            &headers("2027-01-01", "x", "", &[]),
        );
        let data = error.unwrap_err().1.data.unwrap();
        assert_eq!(data, r#"{"supported":["2026-07-28"],"requested":"2027-01-01"}"#);
    }

    #[test]
    fn a_stateless_server_is_sent_no_responses() {
        let stateless = headers(STATELESS_VERSION, "", "", &[]);
        assert_eq!(
            outcome(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, &stateless),
            "Stateless 400 -32600 "
        );
        assert_eq!(
            outcome(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#, &stateless),
            "Stateless: Notification  notifications/x"
        );
        assert_eq!(outcome("{", &stateless), "Stateless 400 -32700 ");
    }
}
