//! Arguments that several commands share, and their form in a request's body.

use std::path::PathBuf;
use std::{fs, str::FromStr};

use clap::{ArgAction, Args};
use gateward_core::shield::{Category, Mode};
use gateward_core::trust::SourceTrust;
use serde_json::{Map, Number, Value, json};

use crate::request::Request;

/// The most rows that a list prints. They are held in memory to align the table: about 100 MB of
/// decisions.
pub const ROWS_MAX: u32 = 50_000;

/// A file's content becomes part of a request's body, which the worker limits to 256 KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024;

/// The options of every list.
#[derive(Args, Debug, Clone)]
pub struct PageArguments {
    /// Print at most this many rows (default 50000)
    #[arg(long, value_name = "ROWS", default_value_t = ROWS_MAX, hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(ROWS_MAX)))]
    pub limit: u32,
    /// Continue after an earlier list: its `next_cursor`
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// A range of time.
#[derive(Args, Debug, Clone)]
pub struct TimeArguments {
    /// Only from this time on, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only before this time, RFC 3339
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
}

/// The option of changes that prevents lost updates.
#[derive(Args, Debug, Clone, Copy)]
pub struct Revision {
    /// Change it only if it still has this revision, which `show` prints; otherwise the command
    /// fails with `precondition_failed`
    #[arg(long, value_name = "REVISION")]
    pub if_match: Option<u64>,
}

/// The option of changes that can remove the last administrator.
#[derive(Args, Debug, Clone, Copy)]
pub struct Last {
    /// Do it even if nobody is left who can change the tenant. Then only `bootstrap` can make
    /// another administrator
    #[arg(long)]
    yes: bool,
}

impl Last {
    pub fn parameter(self, request: Request) -> Request {
        request.parameter("last", self.yes.then_some("true"))
    }
}

/// The files for secrets that are shown once.
#[derive(Args, Debug, Clone)]
pub struct TokenOut {
    /// Write the new token to this file, which only you can read, instead of printing it. An
    /// existing file is never overwritten
    #[arg(long, value_name = "FILE")]
    pub token_out: Option<PathBuf>,
}

/// A list of tools, in one of three states.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Allowed tools, at most one of")]
pub struct AllowedTools {
    /// Allow only tools whose `server/tool` matches: `*` matches any characters, at most twice. Repeat
    /// it for more. The list replaces the one before
    #[arg(long = "allowed-tool", value_name = "GLOB", conflicts_with_all = ["no_tools", "any_tool"])]
    allowed_tools: Vec<String>,
    /// Allow no tool: the empty list
    #[arg(long, conflicts_with = "any_tool")]
    no_tools: bool,
    /// Allow any tool: no list. If none of the three options is given, `create` does this and
    /// `update` keeps the list
    #[arg(long)]
    any_tool: bool,
}

/// A list of servers, in one of three states.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Allowed servers, at most one of")]
pub struct AllowedServers {
    /// Allow only tools of servers whose names match; `*` as for tools. Repeat it for more
    #[arg(long = "allowed-server", value_name = "GLOB", conflicts_with_all = ["no_servers", "any_server"])]
    allowed_servers: Vec<String>,
    /// Allow no server: the empty list
    #[arg(long, conflicts_with = "any_server")]
    no_servers: bool,
    /// Allow any server: no list. This is the default of `create`
    #[arg(long)]
    any_server: bool,
}

/// A list of networks, in one of three states.
#[derive(Args, Debug, Clone, Default)]
#[command(next_help_heading = "Allowed networks, at most one of")]
pub struct AllowedNetworks {
    /// Allow only these networks: CIDR, IPv4 or IPv6, such as 192.0.2.0/24. Repeat it for more
    #[arg(long = "allowed-network", value_name = "CIDR", conflicts_with_all = ["no_networks", "any_network"])]
    allowed_networks: Vec<String>,
    /// Allow no network: the empty list
    #[arg(long, conflicts_with = "any_network")]
    no_networks: bool,
    /// Allow any network: no list. This is the default
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

/// Absent: not given. Null: no restriction. Empty: nothing is allowed.
fn restriction(items: &[String], none: bool, any: bool) -> Option<Value> {
    match (items, none, any) {
        ([], false, false) => None,
        ([], false, true) => Some(Value::Null),
        // Empty only with --no-tools, which clap allows only without items.
        (items, _, _) => Some(json!(items)),
    }
}

/// A limit: a number, or the default of the next level (null in the API).
#[derive(Debug, Clone, PartialEq)]
pub struct Limit(Option<Number>);

/// The text for [`Limit`]'s null, in options and tables.
pub const DEFAULT: &str = "default";

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == DEFAULT {
            return Ok(Self(None));
        }
        let number = text.parse().map_err(|_| format!("it must be a number or `{DEFAULT}`"))?;
        Ok(Self(Some(number)))
    }
}

impl From<Limit> for Value {
    fn from(limit: Limit) -> Self {
        limit.0.map_or(Value::Null, Value::Number)
    }
}

/// A setting that is true or false, or the default of the next level (null in the API).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switch(Option<bool>);

impl FromStr for Switch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == DEFAULT {
            return Ok(Self(None));
        }
        let value = text.parse();
        value
            .map(|value| Self(Some(value)))
            .map_err(|_| format!("it must be `true`, `false` or `{DEFAULT}`"))
    }
}

impl From<Switch> for Value {
    fn from(switch: Switch) -> Self {
        switch.0.map_or(Value::Null, Value::Bool)
    }
}

/// A source trust, or `default`.
#[derive(Debug, Clone, Copy)]
pub struct Trust(Option<SourceTrust>);

impl FromStr for Trust {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == DEFAULT {
            return Ok(Self(None));
        }
        let levels = SourceTrust::ALL.map(SourceTrust::as_str);
        SourceTrust::parse(text)
            .map(|level| Self(Some(level)))
            .ok_or_else(|| format!("it must be `{DEFAULT}`, or one of `{}`", levels.join("`, `")))
    }
}

impl From<Trust> for Value {
    fn from(trust: Trust) -> Self {
        trust.0.map_or(Value::Null, |trust| Value::from(trust.as_str()))
    }
}

/// The mode of each category of the shield's findings, or `default`.
#[derive(Debug, Clone, PartialEq)]
pub struct Modes(Option<Map<String, Value>>);

impl FromStr for Modes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == DEFAULT {
            return Ok(Self(None));
        }
        let mut modes = Map::new();
        for text in text.split(',') {
            let (category, mode) = text.split_once('=').ok_or_else(|| {
                format!("it must be `{DEFAULT}`, or `CATEGORY=MODE` with commas between them")
            })?;
            one_of("category", category, &Category::ALL.map(Category::as_str))?;
            one_of("mode", mode, &Mode::ALL.map(Mode::as_str))?;
            if modes.insert(category.to_owned(), mode.into()).is_some() {
                return Err(format!("it has `{category}` twice"));
            }
        }
        Ok(Self(Some(modes)))
    }
}

fn one_of(what: &str, text: &str, known: &[&str]) -> Result<(), String> {
    if known.contains(&text) {
        return Ok(());
    }
    Err(format!("`{text}` is no {what}: it must be one of `{}`", known.join("`, `")))
}

impl From<Modes> for Value {
    fn from(modes: Modes) -> Self {
        modes.0.map_or(Self::Null, Self::Object)
    }
}

/// How the shield treats what it finds.
#[derive(Args, Debug, Clone)]
pub struct Shield {
    /// How the shield treats each category of findings: `off`, `detect`, `redact` (only `secret` and
    /// `personal_data`) or `block`, such as `sql_injection=block,secret=redact`. The modes replace
    /// those before, and `default` removes them. A category without a mode has that of the tool's
    /// server, then that of the tenant, then `detect`
    #[arg(long, value_name = "CATEGORY=MODE,…")]
    pub shield: Option<Modes>,
}

/// Whether calls need a warrant.
#[derive(Args, Debug, Clone)]
pub struct WarrantRequired {
    /// Whether each call needs a warrant
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    pub warrant_required: Option<bool>,
}

/// A segment of a path. In URLs `.` and `..` have another meaning, even if they are encoded.
pub fn segment(text: &str) -> Result<String, String> {
    if text.is_empty() || text == "." || text == ".." {
        return Err("it must be a name".to_owned());
    }
    Ok(text.to_owned())
}

/// `server/tool`. The text after the first slash is the tool's name.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolId {
    pub server: String,
    pub tool: String,
}

impl FromStr for ToolId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (server, tool) = text.split_once('/').ok_or("a tool must be written `server/tool`")?;
        Ok(Self { server: segment(server)?, tool: segment(tool)? })
    }
}

/// Reads a JSON object from a file.
pub fn object(file: &str) -> Result<Value, String> {
    let length = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("the file has more than {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read(file).map_err(|error| error.to_string())?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    if value.is_object() { Ok(value) } else { Err("it must be a JSON object".to_owned()) }
}

/// `--canary`, `--canary=true` or `--canary=false`.
#[derive(Args, Debug, Clone)]
pub struct Canary {
    /// A tool that no legitimate agent calls. An agent that calls it is quarantined
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub canary: Option<bool>,
}
