//! A tool list that passed through a proxy: Gateward itself writes what is new or changed in it.

use gateward_core::field::Name;
use gateward_core::problem::Problem;
use gateward_core::registry::{ChangeEvent, ChangedKey};
use gateward_core::sql::administration::Statement;
use serde_json::json;

use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::manifest::ToolManifest;
use crate::resource::view;
use crate::server::{self, ServerRow};

/// A manifest that passed through a proxy. It needs to contain only tools that are new or changed.
/// Gateward itself makes the change.
pub struct ManifestSeen<'a> {
    pub server: Name,
    pub manifest: &'a ToolManifest,
}

impl Write for ManifestSeen<'_> {
    fn read(&self, at: &At<'_>) -> Statement {
        server::load(at, &self.server, Some(self.manifest))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let row: Option<ServerRow> = loaded.record()?;
        let row =
            row.filter(ServerRow::lists_tools).ok_or_else(|| Problem::not_found("MCP server"))?;
        let difference = self.manifest.difference(at, &loaded.extra()?, true)?;
        let answer = view(&row, at.now_ms)?;
        if difference.is_empty() {
            return Ok(Outcome::Unchanged(answer));
        }
        let statements = difference.save(at, &self.server, loaded.next_epoch())?;
        let mut change = Change::new(ChangeEvent::ServerManifestChanged, answer, statements);
        change.detail = json!({ "server": &*self.server });
        difference.describe(&mut change.detail);
        change.keys = vec![ChangedKey::Server(self.server.to_string())];
        Ok(Outcome::Changed(change))
    }
}
