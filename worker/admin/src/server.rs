//! Servers, which have tools.
//!
//! Here is the record, and how a change of it is written. The changes are in [`registration`] and
//! [`action`].

pub mod action;
pub mod registration;

use gateward_core::bounds::MAX_TOOLS;
use gateward_core::field::Millis;
use gateward_core::problem::Problem;
use gateward_core::registry::upstream::Upstream;
use gateward_core::registry::{
    ChangeEvent, ChangedKey, ServerKind, ServerStatus, ServerTrust, instructions_sha256,
};
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Loaded, Outcome};
use crate::manifest::{Finding, ToolManifest};
use crate::manifest_difference::Difference;
use crate::precondition::check_match;
use crate::resource::Resource;
use crate::states::States;

/// Servers of a tenant, deleted ones included: their names cannot be used again.
pub const MAX_SERVERS: u64 = 10_000;

/// A server in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerRow {
    server: String,
    kind: ServerKind,
    trust: ServerTrust,
    #[serde(flatten)]
    states: States,
    manifest_sha256: Option<String>,
    instructions_sha256: Option<String>,
    upstream: Option<Upstream>,
    shield: Option<Modes>,
    inspects_results: bool,
    deleted: bool,
    revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// A server.
#[derive(Debug, Serialize, ToSchema)]
pub struct Server {
    server: String,
    kind: ServerKind,
    trust: ServerTrust,
    /// The strictest of `quarantined`, `disabled` and not `approved`, else `active`.
    status: ServerStatus,
    approved: bool,
    disabled: bool,
    quarantined: bool,
    /// SHA-256 over the RFC 8785 form of the manifest, lower-case hex.
    manifest_sha256: Option<String>,
    /// SHA-256 of the instructions that the server gave when an administrator last asked it,
    /// lower-case hex. These do not taint; other instructions do.
    instructions_sha256: Option<String>,
    /// Its upstream. Null if Gateward forwards nothing to it.
    upstream: Option<Upstream>,
    /// The shield's mode of each category of findings, unless the tool has one. A category that is left out has the
    /// tenant's mode, as have all if it is null.
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Modes>,
    /// Whether the shield also reads what the server returns.
    inspects_results: bool,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

/// The answer to a registration or a change of a server.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only describes an answer")]
pub struct ChangedServer {
    #[serde(flatten)]
    server: Server,
    /// Tools that were listed but not registered; at most a hundred.
    skipped_tools: Vec<Finding>,
    /// Bounds in the tools' schemas that no argument can meet; at most a hundred. The tools are
    /// registered; a call to which such a bound applies is denied.
    unsatisfiable_schemas: Vec<Finding>,
    /// The server's instructions, whose hash is pinned now; null if it gave none or was not asked.
    instructions: Option<String>,
}

impl Resource for ServerRow {
    const SINGULAR: &'static str = "server";
    const PLURAL: &'static str = "servers";
    type View = Server;

    fn cursor(&self) -> String {
        self.server.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> Server {
        Server {
            server: self.server.clone(),
            kind: self.kind,
            trust: self.trust,
            status: match self.deleted {
                true => ServerStatus::Deleted,
                false => self.states.status().into(),
            },
            approved: self.states.approved,
            disabled: self.states.disabled,
            quarantined: self.states.quarantined,
            manifest_sha256: self.manifest_sha256.clone(),
            instructions_sha256: self.instructions_sha256.clone(),
            upstream: self.upstream.clone(),
            shield: self.shield,
            inspects_results: self.inspects_results,
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

impl ServerRow {
    fn save(&self, at: &At<'_>) -> Statement {
        let flag = |value: bool| Value::from(u64::from(value));
        Statement::new(
            sql::SAVE_SERVER,
            vec![
                at.tenant.into(),
                self.server.as_str().into(),
                self.kind.as_str().into(),
                self.trust.as_str().into(),
                flag(self.states.approved),
                flag(self.states.disabled),
                flag(self.states.quarantined),
                self.manifest_sha256.as_deref().into(),
                self.instructions_sha256.as_deref().into(),
                self.upstream.as_ref().map(|upstream| json!(upstream).to_string()).into(),
                self.revision.into(),
                self.created_at_ms.0.into(),
                self.updated_at_ms.0.into(),
                Value::json(self.shield.as_ref()),
                flag(self.inspects_results),
            ],
        )
    }

    /// Whether it exists and can be asked for its tools.
    pub(super) fn lists_tools(&self) -> bool {
        !self.deleted && self.kind == ServerKind::Mcp && self.upstream.is_some()
    }

    fn changed(
        mut self,
        at: &At<'_>,
        loaded: &Loaded,
        event: ChangeEvent,
    ) -> Result<Change, Problem> {
        self.revision = loaded.next_epoch();
        self.updated_at_ms = Millis(at.now_ms);
        let answer = AnswerBody::of(&self.view(at.now_ms), Some(self.revision))?;
        let mut change = Change::new(event, answer, vec![self.save(at)]);
        change.detail = json!({ "server": self.server });
        change.keys = vec![ChangedKey::Server(self.server)];
        Ok(change)
    }
}

/// Reads a server and its registered tools that are listed.
pub(super) fn load(at: &At<'_>, server: &str, listing: Option<&ToolManifest>) -> Statement {
    Statement::new(
        sql::LOAD_SERVER,
        vec![
            at.tenant.into(),
            server.into(),
            (MAX_SERVERS + 1).into(),
            listing.map(ToolManifest::names).into(),
            (MAX_TOOLS + 1).into(),
        ],
    )
}

fn existing(at: &At<'_>, loaded: &Loaded) -> Result<ServerRow, Problem> {
    let row: Option<ServerRow> = loaded.record()?;
    let row = row.filter(|row| !row.deleted).ok_or_else(|| Problem::not_found("server"))?;
    check_match(at, row.revision)?;
    Ok(row)
}

/// Where a request's manifest comes from.
#[derive(Clone, Copy)]
enum ManifestSource<'a> {
    None,
    Server(&'a ToolManifest),
    Administrator(&'a ToolManifest),
}

impl<'a> ManifestSource<'a> {
    fn new(manifest: Option<&'a ToolManifest>, at: &At<'a>) -> Self {
        match (manifest, at.discovered) {
            (Some(listing), _) => Self::Administrator(listing),
            (None, Some(listing)) => Self::Server(listing),
            (None, None) => Self::None,
        }
    }

    fn listing(self) -> Option<&'a ToolManifest> {
        match self {
            Self::None => None,
            Self::Server(listing) | Self::Administrator(listing) => Some(listing),
        }
    }
}

/// Makes the change. If the server itself lists a changed tool, that tool waits for approval. If an
/// administrator gives a changed manifest, the server is quarantined and all its tools wait.
fn conclude(
    at: &At<'_>,
    loaded: &Loaded,
    before: Option<&ServerRow>,
    mut row: ServerRow,
    source: ManifestSource<'_>,
    event: ChangeEvent,
) -> Result<Outcome, Problem> {
    let (mut difference_of_tools, mut all_wait) = (Difference::default(), false);
    if let Some(listing) = source.listing() {
        let hash = &listing.manifest_sha256;
        all_wait = matches!(source, ManifestSource::Administrator(_))
            && row.manifest_sha256.as_ref().is_some_and(|known| known != hash);
        row.manifest_sha256 = Some(hash.clone());
        if matches!(source, ManifestSource::Server(_)) {
            row.instructions_sha256 = listing.instructions.as_deref().map(instructions_sha256);
        }
        row.states.quarantined |= all_wait;
        difference_of_tools = listing.difference(at, &loaded.extra()?, false)?;
    }
    if before == Some(&row) && difference_of_tools.is_empty() {
        return AnswerBody::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    let changes = before.map(|before| difference(&before.view(at.now_ms), &row.view(at.now_ms)));
    let server = row.server.clone();
    let manifest_changed = all_wait || difference_of_tools.changes();
    let event = if manifest_changed { ChangeEvent::ServerManifestChanged } else { event };
    let mut change = row.changed(at, loaded, event)?;
    change.created = before.is_none();
    change.detail = with_changes(json!({ "server": server }), changes);
    difference_of_tools.describe(&mut change.detail);
    let epoch = loaded.next_epoch();
    if all_wait {
        let server = server.as_str();
        let values = vec![at.tenant.into(), server.into(), epoch.into(), at.now_ms.into()];
        change.statements.push(Statement::new(sql::UNAPPROVE_TOOLS, values));
    }
    change.statements.extend(difference_of_tools.save(at, &server, epoch)?);
    Ok(Outcome::Changed(change))
}
