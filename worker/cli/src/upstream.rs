//! The options of a server's upstream.

use std::str::FromStr;

use clap::{ArgAction, Args};
use gateward_core::registry::upstream::DenialForm;
use serde_json::{Value, json};

use crate::arguments::Limit;
use crate::request::Fields;

/// If an option is not given, `create` uses its default and `update` keeps the value.
#[derive(Args, Debug)]
#[command(next_help_heading = "Upstream")]
pub struct UpstreamArguments {
    /// Where Gateward forwards calls: an MCP server's endpoint, or the URL to which an HTTP API's
    /// paths are appended
    #[arg(long, value_name = "URL")]
    upstream_url: Option<String>,
    /// Remove the upstream: Gateward forwards nothing to the server, as if it were created without
    /// a URL
    #[arg(long, conflicts_with_all = ["upstream_url", "local", "credential_binding",
        "credential_header", "no_credential", "first_byte_timeout_ms", "whole_timeout_ms",
        "idle_timeout_ms", "max_result_bytes", "denial", "routes", "no_routes", "forwarded_headers",
        "no_forwarded_headers", "shared_cache", "discover"])]
    no_upstream: bool,
    /// The server is on a local network. Only a worker for development calls it
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    local: Option<bool>,
    /// The credential that the server gets in place of the agent's token: the name of a secret of
    /// the worker, `UPSTREAM_…`
    #[arg(long, value_name = "NAME")]
    credential_binding: Option<String>,
    /// The header for the secret (default `authorization`)
    #[arg(long, value_name = "HEADER")]
    credential_header: Option<String>,
    /// Send the server no secret
    #[arg(long, conflicts_with_all = ["credential_binding", "credential_header"])]
    no_credential: bool,
    /// How long the server may take to begin an answer: 10 to 3600000, or `default` (30000)
    #[arg(long, value_name = "MILLISECONDS")]
    first_byte_timeout_ms: Option<Limit>,
    /// How long a whole answer may take: 10 to 3600000, or `default` (600000)
    #[arg(long, value_name = "MILLISECONDS")]
    whole_timeout_ms: Option<Limit>,
    /// How long a stream may be silent: 10 to 3600000, or `default` (120000)
    #[arg(long, value_name = "MILLISECONDS")]
    idle_timeout_ms: Option<Limit>,
    /// How large an answer may be: 1024 to 16777216 (MCP: 8388608), or `default` (4194304)
    #[arg(long, value_name = "BYTES")]
    max_result_bytes: Option<Limit>,
    /// How an MCP client is told that a call is denied: a tool result, which models read, or a
    /// JSON-RPC error. The default of `create` is `result`
    #[arg(long, value_parser = DenialForm::ALL.map(DenialForm::as_str))]
    denial: Option<String>,
    /// A route of an HTTP API, from a request to a tool: 'GET /repos/{owner}/issues=list_issues'.
    /// Repeat it for more; the first route that matches counts. The routes replace the ones before
    #[arg(long = "route", value_name = "METHOD PATH=TOOL", conflicts_with = "no_routes")]
    routes: Vec<Route>,
    /// Remove all routes: no request calls a tool
    #[arg(long)]
    no_routes: bool,
    /// A header of the caller that is forwarded to the HTTP API, besides those that every API gets.
    /// Repeat it for more; the headers replace the ones before
    #[arg(long = "forwarded-header", value_name = "NAME", conflicts_with = "no_forwarded_headers")]
    forwarded_headers: Vec<String>,
    /// Forward no other headers of callers than those that every HTTP API gets
    #[arg(long)]
    no_forwarded_headers: bool,
    /// Let shared caches store the HTTP API's answers if its `Cache-Control` allows it. Otherwise
    /// every answer is `private`
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    shared_cache: Option<bool>,
    /// Ask an MCP server for its tools. Every other option of this section does this too
    #[arg(long)]
    discover: bool,
}

/// A route: a request that calls a tool.
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
        parts.ok_or_else(|| "a route must be written `METHOD PATH=TOOL`".to_owned())
    }
}

impl UpstreamArguments {
    /// Absent: not given. Null: removed.
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
