//! What a manifest changes in the registry: a new tool waits for approval, a changed one waits again,
//! and one that is no longer listed stays, since its name may come back with another definition.

use gateward_core::bounds::{MAX_SERVER_TOOLS, MAX_TOOLS};
use gateward_core::problem::Problem;
use gateward_core::sql::administration::{self as sql, Statement};
use serde::Deserialize;
use serde_json::{Value as Detail, json};
use std::collections::HashMap;

use crate::change::At;
use crate::manifest::{ListedTool, MAX_DISCOVERED_TOOLS, ToolManifest, Usability};
use crate::refusal::{internal, limit_reached};

/// A manifest that passes through a proxy is written at most this often, so that a server whose
/// listing always changes does not raise the tenant's epoch each time. A changed tool that is
/// approved is always written.
pub const MIN_MANIFEST_INTERVAL_MS: u64 = 60_000;

/// Bytes of a statement's value; D1 accepts 2 MB, and the value may exceed this bound by one
/// definition with its schema.
const MAX_VALUE_BYTES: usize = 1_000_000;

/// The registered tools, as far as a manifest's difference depends on them.
#[derive(Debug, Deserialize)]
pub(super) struct RegisteredTools {
    /// Tools of the tenant, if any are listed.
    tools: u64,
    /// Tools of the server, if any are listed.
    of_server: usize,
    /// When a definition that has not been approved since then was last written.
    changed_at_ms: u64,
    /// The registered tools that are listed.
    known: Vec<KnownTool>,
}

/// A listed tool as it is registered.
#[derive(Debug, Deserialize)]
pub(super) struct KnownTool {
    tool: String,
    definition_sha256: Option<String>,
    approved: bool,
}

impl ToolManifest {
    /// What has to be written. `passing`: the manifest passed through a proxy, and no administrator
    /// asked for it.
    pub(super) fn difference(
        &self,
        at: &At<'_>,
        registered: &RegisteredTools,
        passing: bool,
    ) -> Result<Difference<'_>, Problem> {
        let mut difference = Difference { passing, ..Difference::default() };
        let mut waits = passing && registered.changed_at_ms + MIN_MANIFEST_INTERVAL_MS > at.now_ms;
        let known: HashMap<&str, &KnownTool> =
            registered.known.iter().map(|known| (known.tool.as_str(), known)).collect();
        for tool in &self.tools {
            let Some(known) = known.get(tool.tool.as_str()) else {
                if tool.usability == Usability::Usable {
                    difference.new.push(tool);
                }
                continue;
            };
            if tool.definition_sha256.is_none() || known.definition_sha256 == tool.definition_sha256
            {
                continue;
            }
            waits &= !known.approved;
            if tool.usability == Usability::Unusable {
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
        // Limits only cut new tools. Changed tools are always written.
        let of_all = MAX_TOOLS.saturating_sub(registered.tools);
        let max_of_server = if passing { MAX_DISCOVERED_TOOLS } else { MAX_SERVER_TOOLS };
        let of_server = max_of_server.saturating_sub(registered.of_server);
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

/// What a manifest changes.
#[derive(Default)]
pub struct Difference<'a> {
    new: Vec<&'a ListedTool>,
    /// Tools whose definition changed.
    changed: Vec<&'a ListedTool>,
    /// Tools that were registered by hand and had no definition. They wait for approval too, unless
    /// an administrator asked the server.
    described: Vec<&'a ListedTool>,
    /// Registered tools whose new definition cannot be used.
    unusable: Vec<&'a ListedTool>,
    passing: bool,
}

impl Difference<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.new.is_empty() && self.described.is_empty() && !self.changes()
    }

    /// Whether a tool's definition changed.
    pub(super) fn changes(&self) -> bool {
        !self.changed.is_empty() || !self.unusable.is_empty()
    }

    /// For the audit: which tools are new, and which changed.
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

    /// The statements that write it.
    pub(super) fn save(
        &self,
        at: &At<'_>,
        server: &str,
        epoch: u64,
    ) -> Result<Vec<Statement>, Problem> {
        let usable: Vec<&ListedTool> =
            self.new.iter().chain(&self.changed).chain(&self.described).copied().collect();
        let asked = u64::from(!self.passing);
        let mut statements = Vec::new();
        for (sql, tools, last) in [
            (sql::SAVE_LISTED_TOOLS, &usable, Some(asked)),
            (sql::SAVE_UNUSABLE_TOOLS, &self.unusable, None),
        ] {
            let mut bytes = 0;
            // The next tool starts a new value if it would make this one too large.
            let together = |_: &&ListedTool, next: &&ListedTool| {
                bytes += next.bytes();
                let fits = bytes <= MAX_VALUE_BYTES;
                bytes = if fits { bytes } else { next.bytes() };
                fits
            };
            for tools in tools.chunk_by(together) {
                let unwritable = |_| internal("the tools could not be written");
                let rows = serde_json::to_string(tools).map_err(unwritable)?;
                let mut values = vec![at.tenant.into(), server.into(), rows.into()];
                values.extend([epoch.into(), at.now_ms.into()]);
                values.extend(last.map(Into::into));
                statements.push(Statement::new(sql, values));
            }
        }
        Ok(statements)
    }
}
