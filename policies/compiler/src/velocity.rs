//! Reads `velocity.json`: the windows that policies read as `context.velocity.<name>`.

use std::collections::BTreeMap;

use gateward_core::glob::Glob;
use gateward_core::velocity::definition::{
    MAX_KEY_PARTS, MAX_WINDOW_S, MAX_WINDOWS, MAX_WINDOWS_OF_AGENTS, MAX_WINDOWS_OF_TENANTS,
};
use gateward_core::velocity::{Counts, Reach};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bounds::MAX_FIELD_BYTES;
use crate::error::PolicyError;
use crate::json_keys::{JsonKeys, escape};
use crate::sources::{SourceFile, VELOCITY_PATH};
use crate::tools::{ArgumentType, RecordType, Tool};

/// As [`gateward_core::velocity::Window`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    pub name: String,
    /// The name, and the start of SHA-256 of the definition.
    pub id: String,
    pub tools: Vec<Glob>,
    pub counts: Counts,
    pub sum: Option<String>,
    pub key: Vec<KeyPart>,
    pub window_s: u64,
    pub reach: Reach,
}

/// As [`gateward_core::velocity::KeyPart`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPart {
    Agent,
    User,
    Run,
    Argument(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    tools: Vec<String>,
    #[serde(default = "passed")]
    counts: Counts,
    sum: Option<String>,
    #[serde(default)]
    key: Vec<String>,
    window_s: u64,
    reach: Reach,
}

const fn passed() -> Counts {
    Counts::Passed
}

/// Returns the windows, sorted by name, and adds every mistake to `errors`. Without a text there are none.
pub(crate) fn read(text: &str, tools: &[Tool], errors: &mut Vec<PolicyError>) -> Vec<Window> {
    if text.is_empty() {
        return Vec::new();
    }
    let file = &SourceFile { path: VELOCITY_PATH.to_owned(), text: text.to_owned() };
    let end = file.text.len();
    let document: BTreeMap<String, Value> = match serde_json::from_str(text) {
        Ok(document) => document,
        Err(error) => {
            let before = text.lines().take(error.line().saturating_sub(1));
            let start: usize = before.map(|line| line.len() + 1).sum();
            errors.push(PolicyError::at(file, start..end, format!("{error}, in")));
            return Vec::new();
        }
    };
    let keys = JsonKeys::of(text);
    for (_, offset) in &keys.repeated {
        errors.push(PolicyError::at(file, *offset..end, "an object has this key twice:"));
    }
    let mut windows = Vec::new();
    for (name, source) in document {
        match window(&name, source, tools) {
            Ok(window) => windows.push(window),
            Err((field, message)) => {
                let offset = keys.offset(&format!("/{}/{field}", escape(&name)));
                let message = format!("window `{name}`: {message}, at");
                errors.push(PolicyError::at(file, offset..end, message));
            }
        }
    }
    let of_agents = windows.iter().filter(|window| window.is_of_agent()).count();
    let of_tenants = windows.iter().filter(|window| window.reach == Reach::Tenant).count();
    for (what, found, most) in [
        ("windows", windows.len(), MAX_WINDOWS),
        ("windows whose key is only the agent", of_agents, MAX_WINDOWS_OF_AGENTS),
        ("windows of the reach `tenant`", of_tenants, MAX_WINDOWS_OF_TENANTS),
    ] {
        if found > most {
            let message = format!("there can be at most {most} {what}, not");
            errors.push(PolicyError::of_file(VELOCITY_PATH, message, &found.to_string()));
        }
    }
    windows
}

/// Digits of a definition's hash: enough to tell the versions of one window apart.
const ID_DIGITS: usize = 8;

/// A field, and what is wrong with it.
type Wrong = (&'static str, String);

fn window(name: &str, source: Value, tools: &[Tool]) -> Result<Window, Wrong> {
    let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && name.len() <= MAX_FIELD_BYTES;
    if !is_name {
        return Err(("", "a name must be of `[a-z0-9_]` and begin with a letter".to_owned()));
    }
    // Members are sorted, so the same definition has the same text.
    let digest = hex::encode(Sha256::digest(source.to_string()));
    let id = format!("{name}.{}", digest.get(..ID_DIGITS).unwrap_or_default());
    let source: Source = serde_json::from_value(source).map_err(|error| ("", error.to_string()))?;
    if !(1..=MAX_WINDOW_S).contains(&source.window_s) {
        return Err(("window_s", format!("`window_s` must be from 1 to {MAX_WINDOW_S}")));
    }
    if source.tools.is_empty() {
        return Err(("tools", "`tools` must have a glob".to_owned()));
    }
    let globs: Result<Vec<Glob>, _> = source.tools.iter().map(|text| text.parse()).collect();
    let globs =
        globs.map_err(|_| ("tools", format!("each of `tools` must be {}", Glob::EXPECTED)))?;
    if source.key.len() > MAX_KEY_PARTS {
        return Err(("key", format!("`key` can have at most {MAX_KEY_PARTS} parts")));
    }
    let key = source.key.iter().map(|part| key_part(part)).collect::<Result<Vec<_>, _>>()?;
    let window = Window {
        name: name.to_owned(),
        id,
        tools: globs,
        counts: source.counts,
        sum: source.sum,
        key,
        window_s: source.window_s,
        reach: source.reach,
    };
    if window.counts != Counts::Passed && (!window.is_of_agent() || window.sum.is_some()) {
        let message = "only calls that passed can be summed up, or counted by more than the agent";
        return Err(("counts", message.to_owned()));
    }
    window.check_arguments(tools)?;
    Ok(window)
}

fn key_part(text: &str) -> Result<KeyPart, Wrong> {
    match text {
        "agent" => Ok(KeyPart::Agent),
        "user" => Ok(KeyPart::User),
        "run" => Ok(KeyPart::Run),
        _ if text.starts_with('/') => Ok(KeyPart::Argument(text.to_owned())),
        _ => {
            let message =
                "each of `key` must be `agent`, `user`, `run` or a JSON Pointer such as `/id`";
            Err(("key", message.to_owned()))
        }
    }
}

impl Window {
    /// As [`gateward_core::velocity::Window::is_of_agent`].
    fn is_of_agent(&self) -> bool {
        self.reach == Reach::Agent && self.key.iter().all(|part| *part == KeyPart::Agent)
    }

    /// Whether it counts calls of a tool.
    pub(crate) fn covers(&self, tool: &str) -> bool {
        self.tools.iter().any(|glob| glob.matches(tool))
    }

    /// Whether it counts the calls of every tool.
    pub(crate) fn covers_all(&self) -> bool {
        self.tools.iter().any(|glob| matches!(glob.as_str(), "*" | "**" | "*/*"))
    }

    /// Its type in the schema.
    pub(crate) fn type_json(&self, required: bool) -> Value {
        let mut attributes = json!({ "count": { "type": "Long" } });
        if self.sum.is_some()
            && let Some(attributes) = attributes.as_object_mut()
        {
            attributes.insert("sum".to_owned(), json!({ "type": "Extension", "name": "decimal" }));
        }
        json!({ "type": "Record", "attributes": attributes, "required": required })
    }

    /// Each described tool that it covers must have the arguments that it names.
    fn check_arguments(&self, tools: &[Tool]) -> Result<(), Wrong> {
        for tool in tools.iter().filter(|tool| self.covers(&tool.id)) {
            for part in &self.key {
                let KeyPart::Argument(pointer) = part else { continue };
                if argument(&tool.input, pointer).is_none() {
                    return Err(("key", lacks(tool, pointer)));
                }
            }
            let Some(pointer) = &self.sum else { continue };
            match argument(&tool.input, pointer) {
                None => return Err(("sum", lacks(tool, pointer))),
                Some(Found::Unknown)
                | Some(Found::Known(
                    ArgumentType::Long | ArgumentType::Decimal | ArgumentType::String,
                )) => {}
                Some(Found::Known(_)) => {
                    let message = format!("`{pointer}` of the tool `{}` is not a number", tool.id);
                    return Err(("sum", message));
                }
            }
        }
        Ok(())
    }
}

fn lacks(tool: &Tool, pointer: &str) -> String {
    format!("the tool `{}` has no argument `{pointer}`", tool.id)
}

enum Found<'a> {
    Known(&'a ArgumentType),
    /// The description does not say.
    Unknown,
}

/// The argument that a pointer leads to; `None` if a call of the tool cannot have it.
fn argument<'a>(record: &'a RecordType, pointer: &str) -> Option<Found<'a>> {
    let mut record = record;
    let mut names = pointer.split('/').skip(1).peekable();
    while let Some(name) = names.next() {
        let name = name.replace("~1", "/").replace("~0", "~");
        let Some(field) = record.fields.iter().find(|field| field.name == name) else {
            return record.open.then_some(Found::Unknown);
        };
        match &field.kind {
            kind if names.peek().is_none() => return Some(Found::Known(kind)),
            ArgumentType::Record(inner) => record = inner,
            ArgumentType::Set(_) => return Some(Found::Unknown),
            _ => return None,
        }
    }
    None
}
