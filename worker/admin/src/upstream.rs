//! Checks an upstream when it is registered. Stored upstreams are not checked again.

use gateward_core::call::headers::{MAX_HEADER_NAME_BYTES, is_forwardable, is_header_name};
use gateward_core::field::{ToolName, parse_within};
use gateward_core::merge_patch::merge_patch;
use gateward_core::name::OWN_PREFIX;
use gateward_core::problem::Problem;
use gateward_core::registry::ServerKind;
use gateward_core::registry::upstream::{
    CREDENTIAL_BINDING_PREFIX, HttpRoute, MAX_FORWARDED_HEADERS, MAX_MCP_RESULT_BYTES,
    MAX_RESULT_BYTES, MAX_ROUTE_PATH_BYTES, MAX_ROUTE_SEGMENTS, MAX_ROUTES, MAX_TIMEOUT_MS,
    MIN_RESULT_BYTES, MIN_TIMEOUT_MS, Upstream, UpstreamCredential,
};
use gateward_core::target::Target;
use serde_json::json;
use serde_json::value::RawValue;

/// The field that contains all others.
const FIELD: &str = "upstream";

/// Characters of a binding's name after its prefix.
const MAX_BINDING_SUFFIX: usize = 64;

/// Headers that cannot carry a credential: they route or frame the request, or identify another
/// party.
const NOT_CREDENTIAL_HEADERS: [&str; 5] =
    ["host", "content-length", "transfer-encoding", "connection", "cookie"];

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Why a server on a local network is refused.
macro_rules! no_local_targets {
    () => {
        "this worker calls no local networks, because its var `LOCAL_TARGETS` is not \"true\""
    };
}
const NO_LOCAL_TARGETS: &str = no_local_targets!();

fn refused(field: &str, must: &str) -> Problem {
    let field = if field.is_empty() { FIELD.to_owned() } else { [FIELD, field].join(".") };
    let detail = ["`", &field, "`: ", must].concat();
    Problem::field(field, detail)
}

/// The upstream after a JSON Merge Patch (RFC 7396) of the stored one, or of an empty one.
///
/// # Errors
///
/// `invalid_field` with the path of the invalid member.
pub fn patched(
    stored: Option<&Upstream>,
    patch: &RawValue,
    local_targets: bool,
) -> Result<Upstream, Problem> {
    let unreadable = |_| refused("", "must be an object");
    if !patch.get().starts_with('{') {
        return Err(refused("", "must be an object"));
    }
    let stored = stored.map_or_else(|| "{}".to_owned(), |stored| json!(stored).to_string());
    let merged = merge_patch(&stored, patch.get()).map_err(unreadable)?;
    let mut upstream: Upstream = parse_within(FIELD, &merged)?;
    check(&mut upstream, local_targets)?;
    Ok(upstream)
}

/// Checks it, and normalizes its address.
fn check(upstream: &mut Upstream, local_targets: bool) -> Result<(), Problem> {
    if upstream.local && !local_targets {
        return Err(refused("local", &format!("must be false: {NO_LOCAL_TARGETS}")));
    }
    let target = Target::parse(&upstream.url, upstream.local)
        .map_err(|must| refused("url", &(must + local_advice(upstream, local_targets))))?;
    target.as_str().clone_into(&mut upstream.url);
    for (field, value, least, most) in [
        ("first_byte_timeout_ms", upstream.first_byte_timeout_ms, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
        ("whole_timeout_ms", upstream.whole_timeout_ms, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
        ("idle_timeout_ms", upstream.idle_timeout_ms, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS),
        ("max_result_bytes", upstream.max_result_bytes, MIN_RESULT_BYTES, MAX_RESULT_BYTES),
    ] {
        if !(least..=most).contains(&value) {
            let must = format!("must be a whole number from {least} to {most}");
            return Err(refused(field, &must));
        }
    }
    upstream.credential.as_ref().map_or(Ok(()), check_credential)?;
    if upstream.routes.len() > MAX_ROUTES {
        return Err(refused("routes", &format!("must have at most {MAX_ROUTES} entries")));
    }
    check_forwarded(upstream)?;
    for (at, route) in upstream.routes.iter().enumerate() {
        check_route(route)
            .map_err(|(field, must)| refused(&format!("routes[{at}].{field}"), must))?;
        // Approvals, schemas and policies are about a tool, so a tool must be one method.
        let same_tool = |other: &&HttpRoute| other.tool == route.tool;
        let first = upstream.routes.iter().find(same_tool);
        if first.is_some_and(|first| first.method != route.method) {
            let must = "must be another tool: this one already has another method";
            return Err(refused(&format!("routes[{at}].tool"), must));
        }
    }
    Ok(())
}

/// How the address of a server on a local network can be accepted.
fn local_advice(upstream: &Upstream, local_targets: bool) -> &'static str {
    if upstream.local || Target::parse(&upstream.url, true).is_err() {
        ""
    } else if local_targets {
        "; a server on a local network needs `local: true` (`gateward`: `--local`)"
    } else {
        concat!("; `local: true` (`gateward`: `--local`) would not help: ", no_local_targets!())
    }
}

fn check_forwarded(upstream: &Upstream) -> Result<(), Problem> {
    let names = &upstream.forwarded_headers;
    if names.len() > MAX_FORWARDED_HEADERS {
        let must = format!("must have at most {MAX_FORWARDED_HEADERS} entries");
        return Err(refused("forwarded_headers", &must));
    }
    let credential = upstream.credential.as_ref().map(|credential| &credential.header);
    for (at, name) in names.iter().enumerate() {
        let must = if !is_header_name(name) || name.len() > MAX_HEADER_NAME_BYTES {
            "must be the name of a header, in lower case"
        } else if !is_forwardable(name) {
            "must be another header: this one is never forwarded"
        } else if Some(name) == credential {
            "must be another header: this one carries the server's credential"
        } else if names.iter().take(at).any(|before| before == name) {
            "must be listed once"
        } else {
            continue;
        };
        return Err(refused(&format!("forwarded_headers[{at}]"), must));
    }
    Ok(())
}

fn check_credential(credential: &UpstreamCredential) -> Result<(), Problem> {
    let suffix = credential.binding.strip_prefix(CREDENTIAL_BINDING_PREFIX).unwrap_or_default();
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if !(1..=MAX_BINDING_SUFFIX).contains(&suffix.len()) || !suffix.bytes().all(plain) {
        let must = "must be the name of a secret: `UPSTREAM_[A-Z0-9_]{1,64}`";
        return Err(refused("credential.binding", must));
    }
    let header = credential.header.as_str();
    if !is_header_name(header) {
        return Err(refused("credential.header", "must be the name of a header, in lower case"));
    }
    if NOT_CREDENTIAL_HEADERS.contains(&header) || header.starts_with(OWN_PREFIX) {
        return Err(refused("credential.header", "must be another header: this one is reserved"));
    }
    Ok(())
}

/// The error is the field and its rule.
fn check_route(route: &HttpRoute) -> Result<(), (&'static str, &'static str)> {
    if !METHODS.contains(&route.method.as_str()) {
        let must = "must be one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS";
        return Err(("method", must));
    }
    check_path(&route.path).map_err(|must| ("path", must))?;
    ToolName::parse(&route.tool).map(drop).map_err(|_| ("tool", "must be a tool's name"))
}

fn check_path(path: &str) -> Result<(), &'static str> {
    let Some(segments) = path.strip_prefix('/') else { return Err("must begin with `/`") };
    if path.len() > MAX_ROUTE_PATH_BYTES {
        return Err("must have at most 512 bytes");
    }
    if segments.split('/').count() > MAX_ROUTE_SEGMENTS {
        return Err("must have at most 24 segments");
    }
    // A request with one of these in a segment is refused.
    if path.contains(|c: char| c.is_control() || c == '\\') {
        return Err("must not have control characters or `\\`");
    }
    // It is compared with the decoded path, so an encoded one would never match.
    if path.contains(['%', '?', '#']) {
        return Err("must be a path that is not percent-encoded, without query and fragment");
    }
    let mut names: Vec<&str> = Vec::new();
    for segment in segments.split('/') {
        let name = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match name {
            Some(name) if !is_parameter(name) => {
                return Err("must have parameters that are named `[A-Za-z_][A-Za-z0-9_]*`");
            }
            Some(name) if names.contains(&name) => return Err("must name each parameter once"),
            Some(name) => names.push(name),
            None if segment.contains(['{', '}']) => {
                return Err("must have parameters that are whole segments: `/{name}/`");
            }
            // No client sends such a segment.
            None if segment == "." || segment == ".." => {
                return Err("must not have the segments `.` or `..`");
            }
            None => {}
        }
    }
    Ok(())
}

fn is_parameter(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.bytes().next().is_none_or(|byte| byte.is_ascii_digit())
}

/// Whether a server of this kind can have the upstream.
pub fn check_kind(kind: ServerKind, upstream: Option<&Upstream>) -> Result<(), Problem> {
    let Some(upstream) = upstream else { return Ok(()) };
    match kind {
        ServerKind::Named => Err(refused("", "must be null: this kind of server has none")),
        ServerKind::Mcp if !upstream.routes.is_empty() => {
            Err(refused("routes", "must be empty: only servers of the kind `http` have routes"))
        }
        ServerKind::Mcp if !upstream.forwarded_headers.is_empty() => {
            let must = "must be empty: for servers of the kind `mcp` the protocol defines what is forwarded";
            Err(refused("forwarded_headers", must))
        }
        ServerKind::Mcp if upstream.max_result_bytes > MAX_MCP_RESULT_BYTES => {
            let must =
                "must be at most 8388608: results of servers of the kind `mcp` are inspected";
            Err(refused("max_result_bytes", must))
        }
        ServerKind::Mcp if upstream.shared_cache => {
            let must = "must be false: answers of servers of the kind `mcp` are not stored";
            Err(refused("shared_cache", must))
        }
        // Paths are appended to it.
        ServerKind::Http if upstream.url.contains('?') => {
            Err(refused("url", "must not have a query, because paths are appended to it"))
        }
        ServerKind::Mcp | ServerKind::Http => Ok(()),
    }
}
