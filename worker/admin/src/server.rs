//! Servers, which have tools.

use gateward_core::bounds::MAX_TOOLS;
use gateward_core::field::{Millis, Name, present};
use gateward_core::problem::Problem;
use gateward_core::registry::upstream::Upstream;
use gateward_core::registry::{
    ChangedKey, ServerKind, ServerStatus, ServerTrust, instructions_sha256,
};
use gateward_core::route::StateAction;
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Count, Loaded, Outcome, Write};
use crate::manifest::{Finding, ToolManifest};
use crate::manifest_difference::Difference;
use crate::precondition::check_match;
use crate::refusal::{limit_reached, name_taken};
use crate::resource::Resource;
use crate::shield::modes;
use crate::states::States;
use crate::upstream;

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
        event: &'static str,
    ) -> Result<Change, Problem> {
        self.revision = loaded.next_epoch();
        self.updated_at_ms = Millis(at.now_ms);
        let answer = Answer::of(&self.view(at.now_ms), Some(self.revision))?;
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
    event: &'static str,
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
        return Answer::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    let changes = before.map(|before| difference(&before.view(at.now_ms), &row.view(at.now_ms)));
    let server = row.server.clone();
    let manifest_changed = all_wait || difference_of_tools.changes();
    let event = if manifest_changed { "server_manifest_changed" } else { event };
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

/// Adds the members of [`ChangedServer`] to the answer.
fn with_findings(mut outcome: Outcome, source: ManifestSource<'_>) -> Outcome {
    let findings = |of: fn(&ToolManifest) -> &Vec<Finding>| {
        source.listing().map_or(json!([]), |listing| json!(of(listing)))
    };
    let answer = match &mut outcome {
        Outcome::Unchanged(answer) => answer,
        Outcome::Changed(change) => &mut change.answer,
        Outcome::NeedsApproval(_) => return outcome,
    };
    answer.body.insert("skipped_tools".to_owned(), findings(|listing| &listing.skipped));
    let unsatisfiable = findings(|listing| &listing.unsatisfiable);
    answer.body.insert("unsatisfiable_schemas".to_owned(), unsatisfiable);
    let instructions = source.listing().and_then(|listing| listing.instructions.as_deref());
    answer.body.insert("instructions".to_owned(), json!(instructions));
    outcome
}

/// Registers a server. If it exists, it is updated; its states stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerRequest {
    server: Name,
    kind: ServerKind,
    #[serde(default)]
    trust: ServerTrust,
    /// Where its traffic goes. A server of the kind `mcp` is then asked for its tools, which are
    /// registered with it.
    #[schema(value_type = Option<Upstream>)]
    upstream: Option<Box<RawValue>>,
    /// The server's tools, in the form of MCP's `tools/list` result. If given, the server is not
    /// asked.
    #[schema(value_type = Option<Object>)]
    manifest: Option<Box<RawValue>>,
    /// The shield's mode of each category of findings. If left out, a registered server keeps its modes; null leaves
    /// them to the tenant.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
    /// Whether the shield also reads what the server returns. If left out, a registered server keeps its value; of a
    /// new server it is false.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    inspects_results: Option<bool>,
}

/// [`ServerRequest`], with its parts parsed.
pub struct CreateServer {
    request: ServerRequest,
    upstream: Option<Upstream>,
    manifest: Option<ToolManifest>,
}

impl CreateServer {
    /// # Errors
    ///
    /// `invalid_field`.
    pub fn new(request: ServerRequest, local_targets: bool) -> Result<Self, Problem> {
        let given = request.upstream.as_deref();
        let upstream = given.map(|given| upstream::patched(None, given, local_targets));
        let manifest = request.manifest.as_deref().map(ToolManifest::of_manifest);
        Ok(Self { upstream: upstream.transpose()?, manifest: manifest.transpose()?, request })
    }

    /// The server as it is, and as it will be.
    fn row(&self, at: &At<'_>, loaded: &Loaded) -> Result<(Option<ServerRow>, ServerRow), Problem> {
        let (kind, trust) = (self.request.kind, self.request.trust);
        let before: Option<ServerRow> = loaded.record()?;
        upstream::check_kind(kind, self.upstream.as_ref())?;
        let upstream = self.upstream.clone();
        let row = match &before {
            Some(row) if row.deleted => return Err(name_taken("server", true)),
            Some(row) => ServerRow {
                kind,
                trust,
                upstream,
                shield: self.request.shield.unwrap_or(row.shield),
                inspects_results: self.request.inspects_results.unwrap_or(row.inspects_results),
                ..row.clone()
            },
            None => {
                if loaded.extra::<Count>()?.count >= MAX_SERVERS {
                    return Err(limit_reached("servers", MAX_SERVERS));
                }
                ServerRow {
                    server: self.request.server.to_string(),
                    kind,
                    trust,
                    states: States::PENDING,
                    manifest_sha256: None,
                    instructions_sha256: None,
                    upstream,
                    shield: self.request.shield.flatten(),
                    inspects_results: self.request.inspects_results.unwrap_or(false),
                    deleted: false,
                    revision: 0,
                    created_at_ms: Millis(at.now_ms),
                    updated_at_ms: Millis(at.now_ms),
                }
            }
        };
        Ok((before, row))
    }
}

impl Write for CreateServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.request.server, ManifestSource::new(self.manifest.as_ref(), at).listing())
    }

    fn discovers(&self, at: &At<'_>, loaded: &Loaded) -> Result<Option<Upstream>, Problem> {
        let (_, row) = self.row(at, loaded)?;
        let asks = row.lists_tools() && self.manifest.is_none();
        Ok(row.upstream.filter(|_| asks))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let (before, row) = self.row(at, loaded)?;
        let source = ManifestSource::new(self.manifest.as_ref(), at);
        let event = if before.is_none() { "server_created" } else { "server_changed" };
        let concluded = conclude(at, loaded, before.as_ref(), row, source, event)?;
        Ok(with_findings(concluded, source))
    }
}

/// A change of a server; members that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPatch {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = ServerKind, required = false)]
    kind: Option<ServerKind>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = ServerTrust, required = false)]
    trust: Option<ServerTrust>,
    /// A JSON Merge Patch (RFC 7396) of the upstream; null removes it. A server of the kind `mcp`
    /// is then asked for its tools, as when it is registered.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    upstream: Option<Option<Box<RawValue>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object, required = false)]
    manifest: Option<Box<RawValue>>,
    /// Replaces all modes; null leaves them to the tenant.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    inspects_results: Option<bool>,
}

/// [`ServerPatch`] of one server.
pub struct PatchServer {
    server: Name,
    patch: ServerPatch,
    manifest: Option<ToolManifest>,
    local_targets: bool,
}

impl PatchServer {
    /// # Errors
    ///
    /// `invalid_field`.
    pub fn new(server: Name, patch: ServerPatch, local_targets: bool) -> Result<Self, Problem> {
        let manifest = patch.manifest.as_deref().map(ToolManifest::of_manifest).transpose()?;
        Ok(Self { server, patch, manifest, local_targets })
    }

    /// The server as it is, and as it will be.
    fn row(&self, at: &At<'_>, loaded: &Loaded) -> Result<(ServerRow, ServerRow), Problem> {
        let before = existing(at, loaded)?;
        let mut row = before.clone();
        row.kind = self.patch.kind.unwrap_or(row.kind);
        row.trust = self.patch.trust.unwrap_or(row.trust);
        row.shield = self.patch.shield.unwrap_or(row.shield);
        row.inspects_results = self.patch.inspects_results.unwrap_or(row.inspects_results);
        if let Some(patch) = &self.patch.upstream {
            let known = row.upstream.as_ref();
            let patch = patch.as_deref();
            let after = patch.map(|patch| upstream::patched(known, patch, self.local_targets));
            row.upstream = after.transpose()?;
        }
        upstream::check_kind(row.kind, row.upstream.as_ref())?;
        Ok((before, row))
    }
}

impl Write for PatchServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, ManifestSource::new(self.manifest.as_ref(), at).listing())
    }

    fn discovers(&self, at: &At<'_>, loaded: &Loaded) -> Result<Option<Upstream>, Problem> {
        let (_, row) = self.row(at, loaded)?;
        // A change of the trust alone does not ask the server.
        let asks = (self.patch.upstream.is_some() || self.patch.kind.is_some())
            && row.lists_tools()
            && self.manifest.is_none();
        Ok(row.upstream.filter(|_| asks))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let (before, row) = self.row(at, loaded)?;
        let source = ManifestSource::new(self.manifest.as_ref(), at);
        let concluded = conclude(at, loaded, Some(&before), row, source, "server_changed")?;
        Ok(with_findings(concluded, source))
    }
}

/// [`StateAction`] on one server.
pub struct ActOnServer {
    pub server: Name,
    pub action: StateAction,
}

impl Write for ActOnServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let row = ServerRow { states: before.states.after(self.action), ..before.clone() };
        let event = match self.action {
            StateAction::Approve => "server_approved",
            StateAction::Disable => "server_disabled",
            StateAction::Quarantine => "server_quarantined",
            StateAction::Restore => "server_restored",
        };
        conclude(at, loaded, Some(&before), row, ManifestSource::None, event)
    }
}

/// Deletes a server. Its tools can no longer be called.
pub struct DeleteServer {
    pub server: Name,
}

impl Write for DeleteServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let mut row: ServerRow = loaded.record()?.ok_or_else(|| Problem::not_found("server"))?;
        if row.deleted {
            return Answer::of(&row.view(at.now_ms), None).map(Outcome::Unchanged);
        }
        check_match(at, row.revision)?;
        row.deleted = true;
        let values = vec![
            at.tenant.into(),
            row.server.as_str().into(),
            at.now_ms.into(),
            loaded.next_epoch().into(),
        ];
        let mut change = row.changed(at, loaded, "server_deleted")?;
        change.statements = vec![Statement::new(sql::DELETE_SERVER, values)];
        change.answer.revision = None;
        Ok(Outcome::Changed(change))
    }
}
