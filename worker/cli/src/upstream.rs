//! Where a server's traffic goes, as options.

use std::str::FromStr;

use clap::{ArgAction, Args};
use serde_json::{Value, json};

use crate::arguments::Limit;
use crate::request::Fields;

/// `create` takes the defaults for what is not given, `update` leaves it as it is.
#[derive(Args, Debug)]
#[command(next_help_heading = "Upstream")]
pub struct UpstreamArguments {
    /// Where its traffic goes: an MCP server's endpoint, or what an HTTP API's paths are appended
    /// to
    #[arg(long, value_name = "URL")]
    upstream_url: Option<String>,
    /// Its traffic goes nowhere through Gateward, as when a server is created without a URL
    #[arg(long, conflicts_with_all = ["upstream_url", "local", "credential_binding",
        "credential_header", "no_credential", "first_byte_timeout_ms", "whole_timeout_ms",
        "idle_timeout_ms", "max_result_bytes", "denial", "routes", "no_routes", "forwarded_headers",
        "no_forwarded_headers", "shared_cache", "discover"])]
    no_upstream: bool,
    /// It is on a local network, which only a worker for development calls
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    local: Option<bool>,
    /// What it gets in place of the agent's token: a secret of the worker, `UPSTREAM_…`
    #[arg(long, value_name = "NAME")]
    credential_binding: Option<String>,
    /// The header that the secret is sent in, `authorization` unless given
    #[arg(long, value_name = "HEADER")]
    credential_header: Option<String>,
    /// It gets no secret
    #[arg(long, conflicts_with_all = ["credential_binding", "credential_header"])]
    no_credential: bool,
    /// How long it may take to begin an answer, 10 to 3600000; or `default`, 30000
    #[arg(long, value_name = "MILLISECONDS")]
    first_byte_timeout_ms: Option<Limit>,
    /// How long an answer may take as a whole, 10 to 3600000; or `default`, 600000
    #[arg(long, value_name = "MILLISECONDS")]
    whole_timeout_ms: Option<Limit>,
    /// How long a stream may be silent, 10 to 3600000; or `default`, 120000
    #[arg(long, value_name = "MILLISECONDS")]
    idle_timeout_ms: Option<Limit>,
    /// How large an answer may be, 1024 to 16777216 (of MCP 8388608); or `default`, 4194304
    #[arg(long, value_name = "BYTES")]
    max_result_bytes: Option<Limit>,
    /// How an MCP client is told that a call is denied: by a tool result, which models read, or by
    /// a JSON-RPC error. `create` takes `result` unless given
    #[arg(long, value_parser = ["result", "error"])]
    denial: Option<String>,
    /// Which request of an HTTP API calls which tool: 'GET /repos/{owner}/issues=list_issues'.
    /// Repeat it for more; of two that fit, the first counts. They take the place of those before
    #[arg(long = "route", value_name = "METHOD PATH=TOOL", conflicts_with = "no_routes")]
    routes: Vec<Route>,
    /// No request calls any tool
    #[arg(long)]
    no_routes: bool,
    /// A caller's header that goes to an HTTP API, besides those that go to every one. Repeat it for
    /// more; they take the place of those before
    #[arg(long = "forwarded-header", value_name = "NAME", conflicts_with = "no_forwarded_headers")]
    forwarded_headers: Vec<String>,
    /// No other headers of callers than those that go to every HTTP API
    #[arg(long)]
    no_forwarded_headers: bool,
    /// Shared caches may store an HTTP API's answers where its `Cache-Control` lets them; else every
    /// answer is `private`
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    shared_cache: Option<bool>,
    /// Ask an MCP server for its tools, as every other option here does too
    #[arg(long)]
    discover: bool,
}

/// A request that calls a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    method: String,
    path: String,
    tool: String,
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once(' ').and_then(|(method, rest)| {
            let (path, tool) = rest.rsplit_once('=')?;
            Some(Self { method: method.to_owned(), path: path.to_owned(), tool: tool.to_owned() })
        });
        parts.ok_or_else(|| "a route is written `METHOD PATH=TOOL`".to_owned())
    }
}

impl UpstreamArguments {
    /// Absent: nothing was said. Null: none.
    pub fn value(self) -> Option<Value> {
        if self.no_upstream {
            return Some(Value::Null);
        }
        let credential = Fields::new()
            .with("binding", self.credential_binding)
            .with("header", self.credential_header);
        let credential = match (self.no_credential, credential.is_empty()) {
            (true, _) => Some(Value::Null),
            (false, true) => None,
            (false, false) => Some(credential.into()),
        };
        let routes: Vec<Value> = self.routes.into_iter().map(Value::from).collect();
        let forwarded = self.forwarded_headers;
        let says_forwarded = self.no_forwarded_headers || !forwarded.is_empty();
        let fields = Fields::new()
            .with("url", self.upstream_url)
            .with("local", self.local)
            .with("credential", credential)
            .with("first_byte_timeout_ms", self.first_byte_timeout_ms)
            .with("whole_timeout_ms", self.whole_timeout_ms)
            .with("idle_timeout_ms", self.idle_timeout_ms)
            .with("max_result_bytes", self.max_result_bytes)
            .with("denial", self.denial)
            .with("routes", (self.no_routes || !routes.is_empty()).then_some(routes))
            .with("forwarded_headers", says_forwarded.then_some(forwarded))
            .with("shared_cache", self.shared_cache);
        (self.discover || !fields.is_empty()).then(|| fields.into())
    }
}

impl From<Route> for Value {
    fn from(Route { method, path, tool }: Route) -> Self {
        json!({ "method": method, "path": path, "tool": tool })
    }
}
