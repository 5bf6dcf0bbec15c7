//! Servers: where tools are.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::manifest::{Difference, Finding, Known, Listing};
use super::tool::MAX_TOOLS;
use super::{
    Answer, At, Change, Loaded, Outcome, Record, Write, check_match, difference, limit_reached,
    name_taken, upstream, with_changes,
};
use crate::field::{Millis, Name, present};
use crate::problem::Problem;
use crate::registry::ChangedKey;
use crate::registry::instructions_sha256;
use crate::registry::upstream::Upstream;
use crate::sql::administration::{self as sql, Statement, Value};

/// Servers of a tenant, deleted ones included, since their names stay taken.
pub const MAX_SERVERS: u64 = 10_000;

/// What a server is. Gateward forwards to `mcp` and `http` servers that have an upstream. A `named` one is
/// a name for tools that are called without Gateward, whose callers ask `/v1/authorize` first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    Mcp,
    Http,
    Named,
}

/// Whether what a server answers is believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerTrust {
    Trusted,
    #[default]
    Untrusted,
}

/// What administrators did to a server or a tool. Each is undone by its own opposite:
/// `restore` lifts what disabled or quarantined, never what is pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct States {
    pub approved: bool,
    pub disabled: bool,
    pub quarantined: bool,
}

/// What can be done to a server or a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAction {
    Approve,
    Disable,
    Quarantine,
    Restore,
}

impl States {
    /// What is new waits for approval.
    pub const PENDING: Self = Self { approved: false, disabled: false, quarantined: false };

    #[must_use]
    pub fn after(self, action: StateAction) -> Self {
        match action {
            StateAction::Approve => Self { approved: true, ..self },
            StateAction::Disable => Self { disabled: true, ..self },
            StateAction::Quarantine => Self { quarantined: true, ..self },
            StateAction::Restore => Self { disabled: false, quarantined: false, ..self },
        }
    }

    /// The strictest of them.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            Self { quarantined: true, .. } => "quarantined",
            Self { disabled: true, .. } => "disabled",
            Self { approved: false, .. } => "pending",
            _ => "active",
        }
    }
}

/// How a server or a tool stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only describes the values of a field")]
pub enum Status {
    Active,
    Pending,
    Disabled,
    Quarantined,
}

/// How a server or a tool stands.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[allow(dead_code, reason = "only describes the values of a field")]
pub enum ServerStatus {
    Active,
    Pending,
    Disabled,
    Quarantined,
    Deleted,
}

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
    #[schema(value_type = ServerStatus)]
    status: &'static str,
    approved: bool,
    disabled: bool,
    quarantined: bool,
    /// SHA-256 over the RFC 8785 form of the manifest, lower-case hex.
    manifest_sha256: Option<String>,
    /// SHA-256 of the instructions that the server gave when an administrator last asked it,
    /// lower-case hex. These do not taint; others do.
    instructions_sha256: Option<String>,
    /// Where its traffic goes; null when Gateward forwards nothing.
    upstream: Option<Upstream>,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

/// A server as it was registered or changed.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only describes an answer")]
pub struct ChangedServer {
    #[serde(flatten)]
    server: Server,
    /// Tools that were listed and were not registered, the first hundred of them.
    skipped_tools: Vec<Finding>,
    /// Bounds in the tools' schemas that no argument can meet, the first hundred of them. The tools
    /// are registered; a call that such a bound applies to is denied.
    unsatisfiable_schemas: Vec<Finding>,
    /// The instructions that the server gave, whose hash is pinned now; null when it gave none, or
    /// was not asked.
    instructions: Option<String>,
}

impl Record for ServerRow {
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
            status: if self.deleted { "deleted" } else { self.states.status() },
            approved: self.states.approved,
            disabled: self.states.disabled,
            quarantined: self.states.quarantined,
            manifest_sha256: self.manifest_sha256.clone(),
            instructions_sha256: self.instructions_sha256.clone(),
            upstream: self.upstream.clone(),
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

impl ServerRow {
    fn save(&self, at: &At<'_>) -> Statement {
        let flag = |value: bool| Value::from(u64::from(value));
        let kind = match self.kind {
            ServerKind::Mcp => "mcp",
            ServerKind::Http => "http",
            ServerKind::Named => "named",
        };
        let trust = match self.trust {
            ServerTrust::Trusted => "trusted",
            ServerTrust::Untrusted => "untrusted",
        };
        Statement::new(
            sql::SAVE_SERVER,
            vec![
                at.tenant.into(),
                self.server.as_str().into(),
                kind.into(),
                trust.into(),
                flag(self.states.approved),
                flag(self.states.disabled),
                flag(self.states.quarantined),
                self.manifest_sha256.as_deref().into(),
                self.instructions_sha256.as_deref().into(),
                self.upstream.as_ref().map(|upstream| json!(upstream).to_string()).into(),
                self.revision.into(),
                self.created_at_ms.0.into(),
                self.updated_at_ms.0.into(),
            ],
        )
    }

    /// Whether it is there and can be asked for its tools.
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

/// What else there is.
#[derive(Deserialize)]
pub struct Around {
    /// Servers of the tenant.
    count: u64,
    /// Tools of the tenant, if any are listed.
    pub(super) tools: u64,
    /// Tools of the server, likewise.
    pub(super) of_server: usize,
    /// When what the server says was last written and is not approved since.
    pub(super) changed_at_ms: u64,
    /// Those that are listed.
    pub(super) known: Vec<Known>,
}

/// Reads a server, and what is known of the tools that it lists.
pub(super) fn load(at: &At<'_>, server: &str, listing: Option<&Listing>) -> Statement {
    Statement::new(
        sql::LOAD_SERVER,
        vec![
            at.tenant.into(),
            server.into(),
            (MAX_SERVERS + 1).into(),
            listing.map(Listing::names).into(),
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

/// What a request says a server's tools are: the server's own word, or a manifest that an
/// administrator gives.
#[derive(Clone, Copy)]
enum Said<'a> {
    Nothing,
    ByServer(&'a Listing),
    ByAdministrator(&'a Listing),
}

impl<'a> Said<'a> {
    fn new(manifest: Option<&'a Listing>, at: &At<'a>) -> Self {
        match (manifest, at.discovered) {
            (Some(listing), _) => Self::ByAdministrator(listing),
            (None, Some(listing)) => Self::ByServer(listing),
            (None, None) => Self::Nothing,
        }
    }

    fn listing(self) -> Option<&'a Listing> {
        match self {
            Self::Nothing => None,
            Self::ByServer(listing) | Self::ByAdministrator(listing) => Some(listing),
        }
    }
}

/// Concludes a write. Where the server itself says that a tool is not as it was, the tool waits for
/// approval; where an administrator says that the manifest is not, they all do, and so does the
/// server.
fn conclude(
    at: &At<'_>,
    loaded: &Loaded,
    before: Option<&ServerRow>,
    mut row: ServerRow,
    said: Said<'_>,
    event: &'static str,
) -> Result<Outcome, Problem> {
    let (mut difference_of_tools, mut all_wait) = (Difference::default(), false);
    if let Some(listing) = said.listing() {
        let hash = &listing.manifest_sha256;
        all_wait = matches!(said, Said::ByAdministrator(_))
            && row.manifest_sha256.as_ref().is_some_and(|known| known != hash);
        row.manifest_sha256 = Some(hash.clone());
        if matches!(said, Said::ByServer(_)) {
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
    change.statements.extend(difference_of_tools.save(at, &server, epoch));
    Ok(Outcome::Changed(change))
}

/// An answer as [`ChangedServer`] has it.
fn with_findings(mut outcome: Outcome, said: Said<'_>) -> Outcome {
    let findings = |of: fn(&Listing) -> &Vec<Finding>| {
        said.listing().map_or(json!([]), |listing| json!(of(listing)))
    };
    let answer = match &mut outcome {
        Outcome::Unchanged(answer) => answer,
        Outcome::Changed(change) => &mut change.answer,
        Outcome::Held(_) => return outcome,
    };
    answer.body.insert("skipped_tools".to_owned(), findings(|listing| &listing.skipped));
    let unsatisfiable = findings(|listing| &listing.unsatisfiable);
    answer.body.insert("unsatisfiable_schemas".to_owned(), unsatisfiable);
    let instructions = said.listing().and_then(|listing| listing.instructions.as_deref());
    answer.body.insert("instructions".to_owned(), json!(instructions));
    outcome
}

/// Registers a server, or an existing one again: that updates what is said of it, and lifts
/// nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerRequest {
    server: Name,
    kind: ServerKind,
    #[serde(default)]
    trust: ServerTrust,
    /// Where its traffic goes. A server of the kind `mcp` is then asked for its tools, and those
    /// that it lists are registered with it.
    #[schema(value_type = Option<Upstream>)]
    upstream: Option<Box<RawValue>>,
    /// What the server says its tools are, as MCP's `tools/list` answers; then it is not asked.
    #[schema(value_type = Option<Object>)]
    manifest: Option<Box<RawValue>>,
}

/// [`ServerRequest`], read whole.
pub struct CreateServer {
    request: ServerRequest,
    upstream: Option<Upstream>,
    manifest: Option<Listing>,
}

impl CreateServer {
    /// # Errors
    ///
    /// `invalid_field`.
    pub fn new(request: ServerRequest, local_targets: bool) -> Result<Self, Problem> {
        let given = request.upstream.as_deref();
        let upstream = given.map(|given| upstream::patched(None, given, local_targets));
        let manifest = request.manifest.as_deref().map(Listing::of_manifest);
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
            Some(row) => ServerRow { kind, trust, upstream, ..row.clone() },
            None => {
                if loaded.extra::<Around>()?.count >= MAX_SERVERS {
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
        load(at, &self.request.server, Said::new(self.manifest.as_ref(), at).listing())
    }

    fn discovers(&self, at: &At<'_>, loaded: &Loaded) -> Result<Option<Upstream>, Problem> {
        let (_, row) = self.row(at, loaded)?;
        let asks = row.lists_tools() && self.manifest.is_none();
        Ok(row.upstream.filter(|_| asks))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let (before, row) = self.row(at, loaded)?;
        let said = Said::new(self.manifest.as_ref(), at);
        let event = if before.is_none() { "server_created" } else { "server_changed" };
        let concluded = conclude(at, loaded, before.as_ref(), row, said, event)?;
        Ok(with_findings(concluded, said))
    }
}

/// A change of a server; what is left out stays.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPatch {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = ServerKind, required = false)]
    kind: Option<ServerKind>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = ServerTrust, required = false)]
    trust: Option<ServerTrust>,
    /// A JSON Merge Patch (RFC 7396) of the upstream; null takes it away. A server of the kind
    /// `mcp` is then asked for its tools, as when it is registered.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    upstream: Option<Option<Box<RawValue>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object, required = false)]
    manifest: Option<Box<RawValue>>,
}

/// [`ServerPatch`] of one server.
pub struct PatchServer {
    server: Name,
    patch: ServerPatch,
    manifest: Option<Listing>,
    local_targets: bool,
}

impl PatchServer {
    /// # Errors
    ///
    /// `invalid_field`.
    pub fn new(server: Name, patch: ServerPatch, local_targets: bool) -> Result<Self, Problem> {
        let manifest = patch.manifest.as_deref().map(Listing::of_manifest).transpose()?;
        Ok(Self { server, patch, manifest, local_targets })
    }

    /// The server as it is, and as it will be.
    fn row(&self, at: &At<'_>, loaded: &Loaded) -> Result<(ServerRow, ServerRow), Problem> {
        let before = existing(at, loaded)?;
        let mut row = before.clone();
        row.kind = self.patch.kind.unwrap_or(row.kind);
        row.trust = self.patch.trust.unwrap_or(row.trust);
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
        load(at, &self.server, Said::new(self.manifest.as_ref(), at).listing())
    }

    fn discovers(&self, at: &At<'_>, loaded: &Loaded) -> Result<Option<Upstream>, Problem> {
        let (_, row) = self.row(at, loaded)?;
        // Whoever changes only its trust does not wait for it.
        let asks = (self.patch.upstream.is_some() || self.patch.kind.is_some())
            && row.lists_tools()
            && self.manifest.is_none();
        Ok(row.upstream.filter(|_| asks))
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let (before, row) = self.row(at, loaded)?;
        let said = Said::new(self.manifest.as_ref(), at);
        let concluded = conclude(at, loaded, Some(&before), row, said, "server_changed")?;
        Ok(with_findings(concluded, said))
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
        conclude(at, loaded, Some(&before), row, Said::Nothing, event)
    }
}

/// Deletes a server; none of its tools can be called any more.
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
