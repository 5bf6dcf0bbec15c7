//! Arguments that several commands share, and what they become in a body.

use std::path::PathBuf;
use std::{fs, str::FromStr};

use clap::{ArgAction, Args};
use serde_json::{Number, Value, json};

use crate::request::{Fields, Request};

/// The most that a list prints. It is held in memory, to align a table: some 100 MB of decisions.
pub const ROWS_MAX: u32 = 50_000;

/// What a file holds becomes a part of a request's body, which the worker bounds to 256 KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// What every list takes.
#[derive(Args, Debug, Clone)]
pub struct PageArguments {
    /// Print at most this many rows, 50000 unless given
    #[arg(long, value_name = "ROWS", default_value_t = ROWS_MAX, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_MAX)))]
    pub limit: u32,
    /// Go on behind an earlier list: its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// A bound on time.
#[derive(Args, Debug, Clone)]
pub struct TimeArguments {
    /// Only from this time on, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only before this time, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
}

/// What changes take against lost updates.
#[derive(Args, Debug, Clone, Copy)]
pub struct Revision {
    /// Change it only if this is still its revision, as `show` printed it; else the command fails
    /// with `precondition_failed`
    #[arg(long, value_name = "REVISION")]
    pub if_match: Option<u64>,
}

/// What can lose the last administrator.
#[derive(Args, Debug, Clone, Copy)]
pub struct Last {
    /// Do it also if nobody is left then who can change the tenant; only `bootstrap` makes another
    #[arg(long)]
    yes: bool,
}

impl Last {
    pub fn parameter(self, request: Request) -> Request {
        request.parameter("last", self.yes.then_some("true"))
    }
}

/// Where secrets that are shown once go.
#[derive(Args, Debug, Clone)]
pub struct TokenOut {
    /// Write the new token to this file, readable by you alone, instead of printing it; a file
    /// that exists is never overwritten
    #[arg(long, value_name = "FILE")]
    pub token_out: Option<PathBuf>,
}

/// Which tools: one of three states.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Allowed tools, at most one of")]
pub struct AllowedTools {
    /// Only tools that match: `*` is any run of characters, `?` one, against `server/tool`.
    /// Repeat it for more. The list takes the place of the one before
    #[arg(long = "allowed-tool", value_name = "GLOB", conflicts_with_all = ["no_tools", "any_tool"])]
    allowed_tools: Vec<String>,
    /// No tool at all: the empty list
    #[arg(long, conflicts_with = "any_tool")]
    no_tools: bool,
    /// Any tool: no list. `create` does that when none of the three is given; `update` then
    /// leaves the list as it is
    #[arg(long)]
    any_tool: bool,
}

/// Which servers: one of three states.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Allowed servers, at most one of")]
pub struct AllowedServers {
    /// Only tools of servers whose names match; `*` and `?` as for tools. Repeat it for more
    #[arg(long = "allowed-server", value_name = "GLOB", conflicts_with_all = ["no_servers", "any_server"])]
    allowed_servers: Vec<String>,
    /// No server at all: the empty list
    #[arg(long, conflicts_with = "any_server")]
    no_servers: bool,
    /// Any server: no list, as when none of the three is given
    #[arg(long)]
    any_server: bool,
}

/// From which networks: one of three states.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Allowed networks, at most one of")]
pub struct AllowedNetworks {
    /// Only from these addresses: CIDR, IPv4 or IPv6, as 192.0.2.0/24. Repeat it for more
    #[arg(long = "allowed-network", value_name = "CIDR", conflicts_with_all = ["no_networks", "any_network"])]
    allowed_networks: Vec<String>,
    /// From nowhere: the empty list
    #[arg(long, conflicts_with = "any_network")]
    no_networks: bool,
    /// From anywhere: no list, as when none of the three is given
    #[arg(long)]
    any_network: bool,
}

impl AllowedTools {
    pub fn value(&self) -> Option<Value> {
        restriction(&self.allowed_tools, self.no_tools, self.any_tool)
    }
}

impl AllowedServers {
    pub fn value(&self) -> Option<Value> {
        restriction(&self.allowed_servers, self.no_servers, self.any_server)
    }
}

impl AllowedNetworks {
    pub fn value(&self) -> Option<Value> {
        restriction(&self.allowed_networks, self.no_networks, self.any_network)
    }
}

/// Absent: not said. Null: nothing is restricted. Empty: nothing is left.
fn restriction(items: &[String], none: bool, any: bool) -> Option<Value> {
    match (items, none, any) {
        ([], false, false) => None,
        ([], false, true) => Some(Value::Null),
        // Empty only by --no-tools; clap lets no items stand beside it.
        (items, _, _) => Some(json!(items)),
    }
}

/// A limit: a number, or the default of whoever is above (null in the API).
#[derive(Debug, Clone, PartialEq)]
pub struct Limit(Option<Number>);

/// How [`Limit`]'s null is written and shown.
pub const DEFAULT: &str = "default";

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == DEFAULT {
            return Ok(Self(None));
        }
        let number = text.parse().map_err(|_| format!("neither a number nor `{DEFAULT}`"))?;
        Ok(Self(Some(number)))
    }
}

impl From<Limit> for Value {
    fn from(limit: Limit) -> Self {
        limit.0.map_or(Value::Null, Value::Number)
    }
}

/// How fast and how much an agent may call.
#[derive(Args, Debug, Clone)]
pub struct RateArguments {
    /// Requests that may come at once, or `default`
    #[arg(long, value_name = "REQUESTS")]
    pub rate_capacity: Option<Limit>,
    /// Requests that come back each second, or `default`
    #[arg(long, value_name = "REQUESTS")]
    pub rate_refill_per_s: Option<Limit>,
    /// Allowed calls a day, or `default`
    #[arg(long, value_name = "CALLS")]
    pub quota_per_day: Option<Limit>,
}

impl RateArguments {
    pub fn fields(self, fields: Fields) -> Fields {
        fields
            .with("rate_capacity", self.rate_capacity)
            .with("rate_refill_per_s", self.rate_refill_per_s)
            .with("quota_per_day", self.quota_per_day)
    }
}

/// A part of a path. URLs take `.` and `..` for something else, however they are encoded.
pub fn segment(text: &str) -> Result<String, String> {
    if text.is_empty() || text == "." || text == ".." {
        return Err("not a name".to_owned());
    }
    Ok(text.to_owned())
}

/// `server/tool`; what follows the first slash is the tool's name.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolId {
    pub server: String,
    pub tool: String,
}

impl FromStr for ToolId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (server, tool) = text.split_once('/').ok_or("a tool is named `server/tool`")?;
        Ok(Self { server: segment(server)?, tool: segment(tool)? })
    }
}

/// Reads a JSON object from a file.
pub fn object(file: &str) -> Result<Value, String> {
    let length = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("larger than {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read(file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("not a JSON object".to_owned()) }
}

/// `--canary`, `--canary=true` or `--canary=false`.
#[derive(Args, Debug, Clone)]
pub struct Canary {
    /// A tool that nothing honest calls: whoever does is quarantined
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub canary: Option<bool>,
}
