//! A tool manifest: the tools that a server lists, or that an administrator lists for it.

use gateward_core::bounds::{MAX_SERVER_TOOLS, MAX_TOOL_BYTES};
use gateward_core::field::{ToolName, flag};
use gateward_core::json::{self, Json};
use gateward_core::mcp::action::{METHOD_TOOLS, PROMPTS_GET, RESOURCES_READ};
use gateward_core::mcp::envelope::{self, ITEM};
use gateward_core::policy::bundle::Risk;
use gateward_core::problem::Problem;
use gateward_core::provenance::{ArgumentRoles, Reach};
use gateward_core::registry::definition_sha256;
use gateward_core::schema;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Value as Detail, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use utoipa::ToSchema;

use crate::{egress, roles};

/// Tools that a server registers by listing them: more than any model is given.
pub const MAX_DISCOVERED_TOOLS: usize = 1_000;

/// Bytes of one tool's definition. The largest of forty well-known servers has 77 kB, nearly all of it
/// the schema of the result (docs/mcp.md).
pub const MAX_DEFINITION_BYTES: usize = 128 * 1024;

/// Bytes of a server's instructions that can be pinned: a person reads them first.
pub const MAX_INSTRUCTIONS_BYTES: usize = 16 * 1024;

/// Bytes of all definitions together. The isolate has 128 MB and holds about six copies: as
/// received, parsed, canonical (twice), compiled, and in the statements.
pub const MAX_LISTING_BYTES: usize = 4 * 1024 * 1024;

/// Cost of the patterns of all tools of a manifest, as `schema/cost.rs` counts it. Checking a
/// listing takes this long each time, before it is known whether anything must be written. Two
/// hundred tools with a dozen ordinary patterns each cost less.
pub const MAX_LISTING_PATTERN_COST: usize = 300_000;

/// Tools that an answer names in one list of findings; more would not help the reader.
const MAX_FINDINGS: usize = 100;

/// A server's answers when it was asked for its tools.
#[derive(Debug)]
pub struct Discovered {
    /// The tools of all pages, in order.
    pub tools: Vec<Box<RawValue>>,
    /// Whether it has resources.
    pub resources: bool,
    /// Whether it has prompts.
    pub prompts: bool,
    /// Its instructions for models.
    pub instructions: Option<String>,
}

/// A tool manifest, parsed. No schema is compiled.
#[derive(Debug)]
pub struct ToolManifest {
    /// SHA-256 over the canonical form of the manifest.
    pub(super) manifest_sha256: String,
    pub(super) tools: Vec<ListedTool>,
    /// The position of each tool in the list.
    places: HashMap<String, usize>,
    /// How many of them are usable.
    usable: usize,
    /// What is left of the patterns' cost limit.
    patterns_left: usize,
    pub(super) skipped: Vec<Finding>,
    pub(super) unsatisfiable: Vec<Finding>,
    /// The server's instructions, if they are short enough to be pinned.
    pub(super) instructions: Option<String>,
}

/// A listed tool, as it is written to D1 when it is new.
#[derive(Debug, Serialize)]
pub(super) struct ListedTool {
    pub tool: String,
    pub risk: Risk,
    #[serde(with = "flag")]
    pub mutates: bool,
    /// Whether its definition suggests egress.
    #[serde(with = "flag")]
    pub egress: bool,
    /// Canonical JSON.
    #[serde(serialize_with = "raw", skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<String>,
    /// What its definition suggests; `None` if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_roles: Option<ArgumentRoles>,
    pub reach: Reach,
    /// Canonical JSON; `None` if it cannot be used.
    #[serde(serialize_with = "raw", skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// `None` for an action of MCP, which has no definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition_sha256: Option<String>,
    #[serde(skip)]
    pub usability: Usability,
}

/// Writes a text that is JSON as it is.
fn raw<S: Serializer>(json: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    let raw = json.as_deref().map(serde_json::from_str::<&RawValue>);
    raw.transpose().map_err(S::Error::custom)?.serialize(serializer)
}

impl ListedTool {
    /// About how many bytes it has as JSON.
    pub fn bytes(&self) -> usize {
        let texts = [&self.input_schema, &self.definition];
        let roles = self.argument_roles.iter().flat_map(|roles| &roles.0);
        MAX_OTHER_BYTES
            + texts.into_iter().flatten().map(String::len).sum::<usize>()
            + roles.map(|(pointer, _)| MAX_ROLE_BYTES + pointer.len()).sum::<usize>()
    }
}

/// The JSON of a listed tool, without its schema, definition and roles, has fewer bytes: its name, a hash and five
/// short members.
const MAX_OTHER_BYTES: usize = 512;

/// A role with the punctuation around it and its pointer.
const MAX_ROLE_BYTES: usize = 16;

/// What a listed tool can be used for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Usability {
    /// It is registered when it is new.
    Usable,
    /// It is not registered if it is new. If it is registered, its definition is updated.
    UsableIfRegistered,
    /// Its definition cannot be used. If it is registered, it waits for approval.
    Unusable,
}

/// A finding about a listed tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Finding {
    /// Its name, or its position in the list if it has no name.
    name: String,
    why: String,
}

/// The rules for a tool's schema, for servers and administrators.
pub(super) const NOT_AN_OBJECT: &str = "must be an object";

impl ToolManifest {
    /// Reads the tools that a server listed.
    #[must_use]
    pub fn of_server(discovered: &Discovered) -> Self {
        let mut listing = Self::empty();
        let mut bytes = 0;
        // Written here, one definition after another: all definitions together, parsed, take many times the memory of
        // their text.
        let mut canonical = String::from(r#"{"tools":["#);
        for (at, text) in discovered.tools.iter().enumerate() {
            bytes += text.get().len();
            let definition = match json::parse_definition(text.get().as_bytes()) {
                Ok(definition) if bytes <= MAX_LISTING_BYTES => definition,
                found => {
                    let too_large =
                        || "the definitions of the tools before it are too large".to_owned();
                    let why = found.map_or_else(|error| error.message, |_| too_large());
                    // The definition is ambiguous: only its name is used.
                    let read: Detail = serde_json::from_str(text.get()).unwrap_or_default();
                    let name = read.get("name").and_then(Detail::as_str);
                    listing.refuse(at, name, text.get(), why);
                    continue;
                }
            };
            if !canonical.ends_with('[') {
                canonical.push(',');
            }
            definition.write_canonical(&mut canonical);
            listing.take(at, &definition);
        }
        canonical.push_str("]}");
        listing.manifest_sha256 = hex::encode(Sha256::digest(canonical));
        let short = |text: &&String| text.len() <= MAX_INSTRUCTIONS_BYTES;
        listing.instructions = discovered.instructions.as_ref().filter(short).cloned();
        for (tool, there) in
            [(RESOURCES_READ, discovered.resources), (PROMPTS_GET, discovered.prompts)]
        {
            if there {
                listing.tools.push(ListedTool {
                    tool: tool.to_owned(),
                    mutates: false,
                    egress: false,
                    risk: Risk::Low,
                    input_schema: None,
                    argument_roles: None,
                    reach: Reach::default(),
                    definition: None,
                    definition_sha256: None,
                    usability: Usability::Usable,
                });
            }
        }
        listing
    }

    /// Reads a manifest that an administrator gave.
    pub(super) fn of_manifest(manifest: &RawValue) -> Result<Self, Problem> {
        let refuse = |must: String| Problem::field("manifest", format!("`manifest`: {must}"));
        let manifest =
            json::parse_definition(manifest.get().as_bytes()).map_err(|e| refuse(e.message))?;
        if !matches!(manifest, Json::Object(_)) {
            return Err(refuse("must be an object, as MCP's `tools/list` answers".to_owned()));
        }
        let mut listing = Self::empty();
        if let Some(Json::Array(tools)) = manifest.get("tools") {
            tools.iter().enumerate().for_each(|(at, tool)| listing.take(at, tool));
        }
        listing.manifest_sha256 = definition_sha256(&manifest);
        Ok(listing)
    }

    fn empty() -> Self {
        Self {
            manifest_sha256: String::new(),
            tools: Vec::new(),
            places: HashMap::new(),
            usable: 0,
            patterns_left: MAX_LISTING_PATTERN_COST,
            skipped: Vec::new(),
            unsatisfiable: Vec::new(),
            instructions: None,
        }
    }

    fn skip(&mut self, name: &str, why: String) {
        if self.skipped.len() < MAX_FINDINGS {
            let name = name.chars().take(MAX_TOOL_BYTES).collect();
            self.skipped.push(Finding { name, why });
        }
    }

    fn take(&mut self, at: usize, definition: &Json) {
        let name = definition.get("name").and_then(Json::as_str);
        let canonical = definition.canonical();
        if let Json::Object(members) = definition
            && envelope::confusable(ITEM, members.iter().map(|(name, _)| name.as_str())).is_some()
        {
            let why = "one of its members can be mistaken for another".to_owned();
            return self.refuse(at, name, &canonical, why);
        }
        match listed(definition, name, &canonical, &mut self.patterns_left) {
            Ok(tool) => {
                let schema = definition.get("inputSchema");
                let found = schema.map(schema::unsatisfiable).unwrap_or_default();
                let room = MAX_FINDINGS.saturating_sub(self.unsatisfiable.len());
                let finding = |why| Finding {
                    name: tool.tool.clone(),
                    why: format!("its `inputSchema`: {why}"),
                };
                self.unsatisfiable.extend(found.into_iter().take(room).map(finding));
                self.push(tool);
            }
            Err(why) => self.refuse(at, name, &canonical, why),
        }
    }

    /// Adds a tool whose definition cannot be used. Its hash is one that no definition has, so a
    /// registered tool counts as changed.
    fn refuse(&mut self, at: usize, name: Option<&str>, text: &str, why: String) {
        self.skip(name.unwrap_or(&place(at)), why);
        if let Some(name) = name.filter(|name| is_own_name(name).is_ok()) {
            self.push(ListedTool {
                tool: name.to_owned(),
                mutates: true,
                egress: false,
                risk: Risk::Medium,
                input_schema: None,
                argument_roles: None,
                reach: Reach::default(),
                definition: None,
                definition_sha256: Some(hash_of_unusable(text)),
                usability: Usability::Unusable,
            });
        }
    }

    fn push(&mut self, mut tool: ListedTool) {
        if self.tools.len() >= MAX_SERVER_TOOLS {
            return self.skip(&tool.tool, "too many tools are listed before it".to_owned());
        }
        let place = self.places.get(&tool.tool);
        if let Some(first) = place.and_then(|place| self.tools.get_mut(*place)) {
            if first.usability != Usability::Unusable
                && first.definition_sha256 != tool.definition_sha256
            {
                let hash = first.definition_sha256.as_deref().unwrap_or_default();
                first.definition_sha256 = Some(hash_of_unusable(hash));
                self.usable -= usize::from(first.usability == Usability::Usable);
                first.usability = Usability::Unusable;
            }
            return self.skip(&tool.tool, "it is listed twice".to_owned());
        }
        if tool.usability == Usability::Usable && self.usable == MAX_DISCOVERED_TOOLS {
            tool.usability = Usability::UsableIfRegistered;
            let why = format!("{MAX_DISCOVERED_TOOLS} tools are listed before it");
            self.skip(&tool.tool, why);
        }
        self.usable += usize::from(tool.usability == Usability::Usable);
        self.places.insert(tool.tool.clone(), self.tools.len());
        self.tools.push(tool);
    }

    /// A JSON array of the tools' names.
    pub(super) fn names(&self) -> String {
        json!(self.tools.iter().map(|tool| &tool.tool).collect::<Vec<_>>()).to_string()
    }
}

/// A listed tool from its definition, whose canonical form is given.
fn listed(
    definition: &Json,
    name: Option<&str>,
    canonical: &str,
    patterns_left: &mut usize,
) -> Result<ListedTool, String> {
    let name = name.ok_or("it has no name")?;
    is_own_name(name)?;
    if canonical.len() > MAX_DEFINITION_BYTES {
        return Err(format!("it has more than {MAX_DEFINITION_BYTES} bytes"));
    }
    let input_schema = definition.get("inputSchema").map(Json::canonical);
    if let Some(schema) = &input_schema {
        let refuse = |must: &str| format!("its `inputSchema`: {must}");
        if !schema.starts_with('{') {
            return Err(refuse(NOT_AN_OBJECT));
        }
        schema::check(schema, patterns_left).map_err(|error| refuse(&error))?;
    }
    let (argument_roles, reach) = roles::derive(definition);
    let (risk, mutates) = roles::risk(definition);
    Ok(ListedTool {
        tool: name.to_owned(),
        mutates,
        egress: !egress::signs(definition).is_empty(),
        risk,
        input_schema,
        argument_roles: Some(argument_roles),
        reach,
        definition: Some(canonical.to_owned()),
        definition_sha256: Some(hex::encode(Sha256::digest(canonical))),
        usability: Usability::Usable,
    })
}

/// Whether a tool of a server can have this name.
fn is_own_name(name: &str) -> Result<(), String> {
    ToolName::parse(name).map_err(|must| format!("its name {must}"))?;
    match METHOD_TOOLS.contains(&name) {
        true => Err("its name is reserved for an action of MCP".to_owned()),
        false => Ok(()),
    }
}

/// A hash that no definition has: none starts with `unusable:`.
fn hash_of_unusable(text: &str) -> String {
    hex::encode(Sha256::digest(["unusable:", text].concat()))
}

fn place(at: usize) -> String {
    format!("tools[{at}]")
}
