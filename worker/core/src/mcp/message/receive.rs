//! A body: one message or a batch.
//!
//! The body says which era a message belongs to; the headers are checked against it. If several things
//! are wrong, the error is about the one that is checked first.

use super::headers::{self, Headers};
use super::parse::{Kind, Message};
use crate::json::raw::{RawObject, items};
use crate::json::{self, Json};
use crate::mcp::error::{INVALID_REQUEST, PARSE_ERROR, RpcError};
use crate::mcp::{BATCH_VERSION, Era};

/// Messages of one batch. Each costs a hop to the lane, and one HTTP request has a few dozen of them.
pub const MAX_BATCH: usize = 16;

/// Bytes of a message that is not a call: a model's answer of ten thousand words, or a subscription to a
/// thousand resources. A call may fill the whole body, since policies decide on its arguments.
pub const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// The contents of a POST.
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
/// The error, and the era in whose form it is sent.
pub fn receive(body: &[u8], headers: &Headers) -> Result<Received, (Era, RpcError)> {
    // An error about a body that cannot be read has the form of the era in the header.
    let header_era = headers::era_of_header(headers);
    let document = json::parse(body).map_err(|error| {
        let id = id_of_request(body);
        let is_json = error.ambiguous || id.is_some();
        let code = if is_json { INVALID_REQUEST } else { PARSE_ERROR };
        (header_era, RpcError::new(400, code, error.message).with_id(id.as_deref()))
    })?;
    // The JSON parser accepts UTF-8 only.
    let text = std::str::from_utf8(body).unwrap_or_default();
    match document {
        Json::Array(documents) => batch(documents, text, headers)
            .map(|messages| Received { era: Era::Session, batch: true, messages })
            .map_err(|error| (header_era, error)),
        document => {
            let message = Message::parse(document, text.to_owned());
            let mut message = message.map_err(|error| (header_era, error))?;
            let era = headers::era(&message, headers);
            let checked = headers::check(&message, era, headers)
                .and_then(|()| headers::parameters(&message, era, headers));
            message.parameters =
                checked.map_err(|error| (era, error.with_id(message.id_if_request())))?;
            Ok(Received { era, batch: false, messages: vec![message] })
        }
    }
}

/// The id of a request that was rejected before it became a [`Message`], for example because an argument
/// is a number out of range. `None` when the body is not one JSON-RPC request.
#[must_use]
pub fn id_of_request(body: &[u8]) -> Option<String> {
    let fields = RawObject::parse(std::str::from_utf8(body).ok()?)?;
    fields.text("method")?;
    let id = json::parse(fields.get("id")?.as_bytes()).ok()?;
    matches!(id, Json::String(_) | Json::Integer(_)).then(|| id.canonical())
}

/// A batch. Only one revision has batches, and all messages must belong to it.
fn batch(documents: Vec<Json>, text: &str, headers: &Headers) -> Result<Vec<Message>, RpcError> {
    let refuse = |message: &str| Err(RpcError::new(400, INVALID_REQUEST, message));
    if headers.protocol_version.as_ref().is_some_and(|version| version != BATCH_VERSION) {
        return refuse("this protocol revision has no batches");
    }
    if documents.is_empty() || documents.len() > MAX_BATCH {
        return refuse("a batch must have 1 to 16 messages");
    }
    let mut messages: Vec<Message> = Vec::new();
    for (document, text) in documents.into_iter().zip(items(text).unwrap_or_default()) {
        // The whole batch is rejected, so the error has no message's id.
        let message = Message::parse(document, text.get().to_owned());
        let message = message.map_err(|error| error.with_id(None))?;
        if message.method == "initialize" || message.version().is_some() {
            return refuse("a batch must not contain `initialize` or a stateless request");
        }
        let twice = |other: &Message| other.kind == message.kind && other.id == message.id;
        if message.kind == Kind::Request && messages.iter().any(twice) {
            return refuse("the requests of a batch must have different ids");
        }
        messages.push(message);
    }
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::MAX_PARAMETER_HEADERS;
    use crate::mcp::STATELESS_VERSION;

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

    /// A request of the stateless era; `$M` in the parameters stands for `_meta`.
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
                let id = error.id.as_ref().map_or("", |id| id.get());
                format!("{era:?} {} {} {id}", error.status, error.code)
            }
        }
    }

    #[test]
    fn a_body_of_the_session_era_is_classified_or_rejected() {
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
    fn a_key_that_differs_from_another_in_case_only_is_rejected() {
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
            // Keys inside of the arguments belong to the tool, as long as they do not collide.
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
        // The content of a response is not checked.
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
    fn in_the_stateless_era_headers_and_body_must_agree() {
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
                // The lane checks the value, since it knows the schema.
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
        assert_eq!(data.get(), r#"{"supported":["2026-07-28"],"requested":"2027-01-01"}"#);
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
