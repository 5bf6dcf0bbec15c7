//! The headers that repeat what the body says, and the check that both agree.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::parse::{Kind, Message};
use crate::bounds::MAX_PARAMETER_HEADERS;
use crate::json::Json;
use crate::mcp::envelope::META_CAPABILITIES;
use crate::mcp::error::{
    HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, RpcError, TRANSPORT, UNSUPPORTED_VERSION,
};
use crate::mcp::{Era, SESSION_VERSIONS, STATELESS_VERSION};

/// The headers that say something about the body. An absent header is `None`.
#[derive(Debug, Default, Clone)]
pub struct Headers {
    pub protocol_version: Option<String>,
    pub method: Option<String>,
    pub name: Option<String>,
    /// The `Mcp-Param-*` headers: the rest of the name in lower case, and the value.
    pub parameters: Vec<(String, String)>,
}

/// The data of an error about the protocol revision.
#[derive(Serialize)]
struct UnsupportedVersion<'a> {
    supported: [&'static str; 1],
    requested: &'a str,
}

/// The era of the revision in the header. Revisions are dates: one that is not older than the stateless
/// revision belongs to the stateless era.
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

/// The era of a message: the body decides, else the header.
pub fn era(message: &Message, headers: &Headers) -> Era {
    if message.version().is_some() { Era::Stateless } else { era_of_header(headers) }
}

/// Whether the headers and `_meta` are as the era requires.
pub fn check(message: &Message, era: Era, headers: &Headers) -> Result<(), RpcError> {
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
    if message.kind == Kind::Response {
        let detail = "this protocol revision has no responses from clients";
        return Err(RpcError::new(400, INVALID_REQUEST, detail));
    }
    let is_request = message.kind == Kind::Request;
    if let Some(version) = message.version() {
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
            let data = UnsupportedVersion { supported: [STATELESS_VERSION], requested: version };
            return Err(RpcError::new(400, UNSUPPORTED_VERSION, "Unsupported protocol version")
                .with_data(&data));
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

/// The `Mcp-Param-*` headers of a call, decoded. Other messages have none.
pub fn parameters(
    message: &Message,
    era: Era,
    headers: &Headers,
) -> Result<Vec<(String, String)>, RpcError> {
    let calls = message.kind == Kind::Request && message.method == "tools/call";
    if era == Era::Session || !calls {
        return Ok(Vec::new());
    }
    if headers.parameters.len() > MAX_PARAMETER_HEADERS {
        let detail = format!("there must be at most {MAX_PARAMETER_HEADERS} Mcp-Param headers");
        return Err(mismatch(&detail));
    }
    headers.parameters.iter().map(|(name, value)| Ok((name.clone(), decode(value)?))).collect()
}

/// A header's value. In the form `=?base64?…?=`, it is base64 of UTF-8.
///
/// # Errors
///
/// The base64 or the UTF-8 is invalid.
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
        .ok_or_else(|| mismatch("a header's value is not valid base64 of UTF-8"))
}

fn agrees(name: &str, header: Option<&str>, body: &str, required: bool) -> Result<(), RpcError> {
    match header {
        Some(header) if header.trim_matches([' ', '\t']) == body => Ok(()),
        Some(_) => Err(mismatch(&format!("{name} differs from the body"))),
        None if required => Err(mismatch(&format!("{name} is missing"))),
        None => Ok(()),
    }
}

fn mismatch(what: &str) -> RpcError {
    RpcError::new(400, HEADER_MISMATCH, format!("Header mismatch: {what}"))
}
