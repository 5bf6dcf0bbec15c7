//! What a server says its tools are, and what that does to them in the registry: what is new waits
//! for approval, what is not as it was waits again, and what is gone stays, since its name may come
//! back as something else.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Detail, json};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::server::{self, Around, ServerRow};
use super::tool::MAX_TOOLS;
use super::{At, Change, Loaded, Outcome, Write, limit_reached, view};
use crate::admin::egress;
use crate::bounds::{MAX_SERVER_TOOLS, MAX_TOOL_BYTES};
use crate::field::{Name, ToolName};
use crate::json::{self, Json};
use crate::mcp::action::{ACTIONS, PROMPTS_GET, RESOURCES_READ};
use crate::mcp::envelope::{self, ITEM};
use crate::problem::Problem;
use crate::registry::ChangedKey;
use crate::registry::definition_sha256;
use crate::schema;
use crate::sql::administration::{self as sql, Statement};

/// Tools that a server registers by listing them: more than any model is given.
pub const MAX_DISCOVERED_TOOLS: usize = 1_000;

/// Bytes of one tool's definition. The largest of forty well-known servers has 77 kB, nearly all of it
/// the schema of the result (docs/mcp.md).
pub const MAX_DEFINITION_BYTES: usize = 128 * 1024;

/// Bytes of a server's instructions that can be pinned: a person reads them before they are.
pub const MAX_INSTRUCTIONS_BYTES: usize = 16 * 1024;

/// Bytes of all definitions together. The isolate has 128 MB and holds them some six times over:
/// as they came, as values, in canonical form twice, compiled, and in what is written.
pub const MAX_LISTING_BYTES: usize = 4 * 1024 * 1024;

/// What a server says in passing is written at most this often, so that one which says something
/// else at each listing does not raise the tenant's epoch each time. Only a tool that is approved and
/// not as it was never waits.
pub const MIN_MANIFEST_INTERVAL_MS: u64 = 60_000;

/// What the patterns of all tools of a listing may cost, as `core/schema/cost.rs` counts it: to find out
/// what they cost takes that long at each listing, before it is known whether anything is written.
/// Two hundred tools with a dozen ordinary patterns each cost less.
pub const MAX_LISTING_PATTERN_COST: usize = 300_000;

/// Tools that an answer names in one list of findings: who reads more has seen enough.
const MAX_FINDINGS: usize = 100;

/// Bytes of a statement's value; D1 takes 2 MB, and one more definition may stand beyond it, with its
/// schema.
const MAX_VALUE_BYTES: usize = 1_000_000;

/// What a server answered when it was asked for its tools.
#[derive(Debug)]
pub struct Discovered {
    /// Of all pages, in their order.
    pub tools: Vec<Box<RawValue>>,
    /// Whether it has resources.
    pub resources: bool,
    /// Whether it has prompts.
    pub prompts: bool,
    /// What it tells models about itself.
    pub instructions: Option<String>,
}

/// What a server says its tools are, read. Nothing of it is compiled.
#[derive(Debug)]
pub struct Listing {
    /// SHA-256 over the canonical form of the manifest.
    pub(super) manifest_sha256: String,
    tools: Vec<ListedTool>,
    /// Where each tool is among them.
    places: HashMap<String, usize>,
    /// How many of them are good for any use.
    usable: usize,
    /// What the patterns that follow may cost.
    patterns_left: usize,
    pub(super) skipped: Vec<Finding>,
    pub(super) unsatisfiable: Vec<Finding>,
    /// What the server tells models about itself; only if it is short enough to be pinned.
    pub(super) instructions: Option<String>,
}

/// A tool as it is written when it is new. All texts of it are JSON as they are.
#[derive(Debug)]
struct ListedTool {
    tool: String,
    mutates: bool,
    /// What its definition suggests.
    egress: bool,
    risk: &'static str,
    input_schema: Option<String>,
    /// In canonical form; `None` if it cannot be used.
    definition: Option<String>,
    /// `None` of an action, of which no server says anything.
    definition_sha256: Option<String>,
    good_for: Use,
}

/// What a listed tool is good for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Use {
    Any,
    /// It is not registered, but if it is known already, it is known as listed.
    IfKnown,
    /// Its definition cannot be used: if it is known, it waits for approval.
    Nothing,
}

/// What was found out about a listed tool.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Finding {
    /// Its name, or its place in the list when it has none that can be shown.
    name: String,
    why: String,
}

/// What is known of a tool that is listed.
#[derive(Debug, Deserialize)]
pub struct Known {
    tool: String,
    definition_sha256: Option<String>,
    approved: bool,
}

/// What a tool's schema must be, whoever gives it.
pub(super) const NO_OBJECT: &str = "must be an object";

impl Listing {
    /// Reads what a server listed.
    #[must_use]
    pub fn of_server(discovered: &Discovered) -> Self {
        let mut listing = Self::empty();
        let mut bytes = 0;
        let mut canonical = String::from(r#"{"tools":["#);
        for (at, text) in discovered.tools.iter().enumerate() {
            bytes += text.get().len();
            let definition = match json::parse_definition(text.get().as_bytes()) {
                Ok(definition) if bytes <= MAX_LISTING_BYTES => definition,
                found => {
                    let too_large = || "the definitions before it are too large".to_owned();
                    let why = found.map_or_else(|error| error.message, |_| too_large());
                    // Of what can be read in two ways, a name will do.
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
                    risk: "low",
                    input_schema: None,
                    definition: None,
                    definition_sha256: None,
                    good_for: Use::Any,
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
            && envelope::mistaken(ITEM, members.iter().map(|(name, _)| name.as_str())).is_some()
        {
            let why = "a field of it can be taken for another".to_owned();
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

    /// A definition that cannot be used. Its tool is known by a hash that no definition has, so that
    /// it stays one that is not as it was.
    fn refuse(&mut self, at: usize, name: Option<&str>, text: &str, why: String) {
        self.skip(name.unwrap_or(&place(at)), why);
        if let Some(name) = name.filter(|name| is_own_name(name).is_ok()) {
            self.push(ListedTool {
                tool: name.to_owned(),
                mutates: true,
                egress: false,
                risk: "medium",
                input_schema: None,
                definition: None,
                definition_sha256: Some(hash_of_unusable(text)),
                good_for: Use::Nothing,
            });
        }
    }

    fn push(&mut self, mut tool: ListedTool) {
        if self.tools.len() >= MAX_SERVER_TOOLS {
            return self.skip(&tool.tool, "too many tools stand before it".to_owned());
        }
        let place = self.places.get(&tool.tool);
        if let Some(first) = place.and_then(|place| self.tools.get_mut(*place)) {
            if first.good_for != Use::Nothing && first.definition_sha256 != tool.definition_sha256 {
                let hash = first.definition_sha256.as_deref().unwrap_or_default();
                first.definition_sha256 = Some(hash_of_unusable(hash));
                self.usable -= usize::from(first.good_for == Use::Any);
                first.good_for = Use::Nothing;
            }
            return self.skip(&tool.tool, "it stands twice".to_owned());
        }
        if tool.good_for == Use::Any && self.usable == MAX_DISCOVERED_TOOLS {
            tool.good_for = Use::IfKnown;
            let why = format!("{MAX_DISCOVERED_TOOLS} tools stand before it");
            self.skip(&tool.tool, why);
        }
        self.usable += usize::from(tool.good_for == Use::Any);
        self.places.insert(tool.tool.clone(), self.tools.len());
        self.tools.push(tool);
    }

    /// A JSON array of the tools' names.
    pub(super) fn names(&self) -> String {
        json!(self.tools.iter().map(|tool| &tool.tool).collect::<Vec<_>>()).to_string()
    }

    /// What is to be written of it. In `passing`, nobody asked the server to say it.
    pub(super) fn difference(
        &self,
        at: &At<'_>,
        around: &Around,
        passing: bool,
    ) -> Result<Difference<'_>, Problem> {
        let mut difference = Difference { passing, ..Difference::default() };
        let mut waits = passing && around.changed_at_ms + MIN_MANIFEST_INTERVAL_MS > at.now_ms;
        let known: HashMap<&str, &Known> =
            around.known.iter().map(|known| (known.tool.as_str(), known)).collect();
        for tool in &self.tools {
            let Some(known) = known.get(tool.tool.as_str()) else {
                if tool.good_for == Use::Any {
                    difference.new.push(tool);
                }
                continue;
            };
            if tool.definition_sha256.is_none() || known.definition_sha256 == tool.definition_sha256
            {
                continue;
            }
            waits &= !known.approved;
            if tool.good_for == Use::Nothing {
                difference.unusable.push(tool);
            } else if known.definition_sha256.is_none() {
                difference.described.push(tool);
            } else {
                difference.changed.push(tool);
            }
        }
        if waits {
            return Ok(Difference::default());
        }
        // Limits cut what is new; they never keep what is not as it was from being written.
        let of_all = MAX_TOOLS.saturating_sub(around.tools);
        let max_of_server = if passing { MAX_DISCOVERED_TOOLS } else { MAX_SERVER_TOOLS };
        let of_server = max_of_server.saturating_sub(around.of_server);
        let new = difference.new.len();
        if !passing && !difference.changes() {
            if new as u64 > of_all {
                return Err(limit_reached("tools", MAX_TOOLS));
            }
            if new > of_server {
                return Err(limit_reached("tools of the server", MAX_SERVER_TOOLS as u64));
            }
        }
        difference.new.truncate(of_server.min(of_all as usize));
        Ok(difference)
    }
}

/// What is listed as a tool of a name, of which this is the canonical form.
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
            return Err(refuse(NO_OBJECT));
        }
        schema::check(schema, patterns_left).map_err(|error| refuse(&error))?;
    }
    let reads = definition.get("annotations").and_then(|given| given.get("readOnlyHint"));
    Ok(ListedTool {
        tool: name.to_owned(),
        mutates: reads != Some(&Json::Bool(true)),
        egress: !egress::signs(definition).is_empty(),
        risk: "medium",
        input_schema,
        definition: Some(canonical.to_owned()),
        definition_sha256: Some(hex::encode(Sha256::digest(canonical))),
        good_for: Use::Any,
    })
}

/// Whether a tool of a server can have this name.
fn is_own_name(name: &str) -> Result<(), String> {
    ToolName::parse(name).map_err(|must| format!("its name {must}"))?;
    match ACTIONS.contains(&name) {
        true => Err("its name is that of an action of MCP".to_owned()),
        false => Ok(()),
    }
}

/// No definition begins so.
fn hash_of_unusable(text: &str) -> String {
    hex::encode(Sha256::digest(["unusable:", text].concat()))
}

fn place(at: usize) -> String {
    format!("tools[{at}]")
}

/// What a listing changes.
#[derive(Default)]
pub struct Difference<'a> {
    new: Vec<&'a ListedTool>,
    /// Those that are not as they were.
    changed: Vec<&'a ListedTool>,
    /// Those that were registered by hand before the server said anything of them. They wait for
    /// approval too, but where an administrator asked the server.
    described: Vec<&'a ListedTool>,
    /// Those that are known, and of which the server now says what cannot be used.
    unusable: Vec<&'a ListedTool>,
    passing: bool,
}

impl Difference<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.described.is_empty() && !self.changes()
    }

    /// Whether a tool is not as it was.
    pub(super) fn changes(&self) -> bool {
        !self.changed.is_empty() || !self.unusable.is_empty()
    }

    /// For the audit: which tools are new, and which are not as they were.
    pub(super) fn describe(&self, detail: &mut Detail) {
        let fields = [
            ("new_tools", &self.new),
            ("changed_tools", &self.changed),
            ("unusable_tools", &self.unusable),
        ];
        for (field, tools) in fields {
            if !tools.is_empty() {
                let names = tools.iter().map(|tool| tool.tool.as_str()).collect::<Vec<_>>();
                detail[field] = json!(names);
            }
        }
    }

    pub(super) fn save(&self, at: &At<'_>, server: &str, epoch: u64) -> Vec<Statement> {
        let mut statements = Vec::new();
        let usable = self.new.iter().chain(&self.changed).chain(&self.described);
        let mut write = |sql, tools: &mut dyn Iterator<Item = &&ListedTool>, asked: Option<u64>| {
            let mut tools = tools.peekable();
            while tools.peek().is_some() {
                let mut rows = String::from("[");
                while rows.len() <= MAX_VALUE_BYTES
                    && let Some(tool) = tools.next()
                {
                    if rows.len() > 1 {
                        rows.push(',');
                    }
                    tool.write(&mut rows);
                }
                rows.push(']');
                let mut values = vec![at.tenant.into(), server.into(), rows.into()];
                values.extend([epoch.into(), at.now_ms.into()]);
                values.extend(asked.map(Into::into));
                statements.push(Statement::new(sql, values));
            }
        };
        write(sql::SAVE_LISTED_TOOLS, &mut usable.into_iter(), Some((!self.passing).into()));
        write(sql::SAVE_UNUSABLE_TOOLS, &mut self.unusable.iter(), None);
        statements
    }
}

impl ListedTool {
    /// As an object; neither a name nor a hash has anything to escape.
    fn write(&self, out: &mut String) {
        for part in [r#"{"tool":""#, &self.tool, r#"","risk":""#, self.risk] {
            out.push_str(part);
        }
        out.push_str(if self.mutates { r#"","mutates":1"# } else { r#"","mutates":0"# });
        out.push_str(if self.egress { r#","egress":1"# } else { r#","egress":0"# });
        if let Some(schema) = &self.input_schema {
            out.push_str(r#","input_schema":"#);
            out.push_str(schema);
        }
        if let Some(definition) = &self.definition {
            out.push_str(r#","definition":"#);
            out.push_str(definition);
        }
        if let Some(hash) = &self.definition_sha256 {
            for part in [r#","definition_sha256":""#, hash, "\""] {
                out.push_str(part);
            }
        }
        out.push('}');
    }
}

/// A listing that passed through, of which only what is not registered, or not as it is listed,
/// needs to be in it. Gateward itself makes the change.
pub struct ManifestSeen<'a> {
    pub server: Name,
    pub listing: &'a Listing,
}

impl Write for ManifestSeen<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        server::load(at, &self.server, Some(self.listing))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let row: Option<ServerRow> = loaded.record()?;
        let row =
            row.filter(ServerRow::lists_tools).ok_or_else(|| Problem::not_found("MCP server"))?;
        let difference = self.listing.difference(at, &loaded.extra()?, true)?;
        let answer = view(&row, at.now_ms)?;
        if difference.is_empty() {
            return Ok(Outcome::Unchanged(answer));
        }
        let statements = difference.save(at, &self.server, loaded.next_epoch());
        let mut change = Change::new("server_manifest_changed", answer, statements);
        change.detail = json!({ "server": &*self.server });
        difference.describe(&mut change.detail);
        change.keys = vec![ChangedKey::Server(self.server.to_string())];
        Ok(Outcome::Changed(change))
    }
}
