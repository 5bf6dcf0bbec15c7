//! Servers: where tools are.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::field::{Millis, Name, present};
use super::sql::{self, Statement, Value};
use super::{
    Answer, At, Change, Loaded, Outcome, Record, Room, Write, check_match, difference,
    limit_reached, name_taken, not_found, with_changes,
};
use crate::json::{self, Json};
use crate::problem::Problem;
use crate::registry::ChangedKey;

/// Servers of a tenant, deleted ones included, since their names stay taken.
pub const MAX_SERVERS: u64 = 10_000;

/// What a server is.
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
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl Record for ServerRow {
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
                self.revision.into(),
                self.created_at_ms.0.into(),
                self.updated_at_ms.0.into(),
            ],
        )
    }

    /// Takes the hash of a manifest; one that is not as it was makes everything wait for a person.
    /// Returns whether it changed.
    fn take_manifest(&mut self, hash: String) -> bool {
        let changed = self.manifest_sha256.as_ref().is_some_and(|known| *known != hash);
        self.manifest_sha256 = Some(hash);
        self.states.quarantined |= changed;
        changed
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

fn load(at: &At<'_>, server: &str) -> Statement {
    Statement::new(
        sql::LOAD_SERVER,
        vec![at.tenant.into(), server.into(), (MAX_SERVERS + 1).into()],
    )
}

fn existing(at: &At<'_>, loaded: &Loaded) -> Result<ServerRow, Problem> {
    let row: Option<ServerRow> = loaded.record()?;
    let row = row.filter(|row| !row.deleted).ok_or_else(not_found)?;
    check_match(at, row.revision)?;
    Ok(row)
}

/// Concludes a write; `manifest_changed` when its tools must wait for approval.
fn conclude(
    at: &At<'_>,
    loaded: &Loaded,
    before: Option<&ServerRow>,
    row: ServerRow,
    manifest_changed: bool,
    event: &'static str,
) -> Result<Outcome, Problem> {
    if before == Some(&row) {
        return Answer::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    let changes = before.map(|before| difference(&before.view(at.now_ms), &row.view(at.now_ms)));
    let server = row.server.clone();
    let event = if manifest_changed { "server_manifest_changed" } else { event };
    let mut change = row.changed(at, loaded, event)?;
    change.created = before.is_none();
    change.detail = with_changes(json!({ "server": server }), changes);
    if manifest_changed {
        change.statements.push(Statement::new(
            sql::UNAPPROVE_TOOLS,
            vec![at.tenant.into(), server.into(), loaded.next_epoch().into(), at.now_ms.into()],
        ));
    }
    Ok(Outcome::Changed(change))
}

/// SHA-256 over the RFC 8785 form.
fn manifest_hash(manifest: &RawValue) -> Result<String, Problem> {
    let refuse = |must: String| Problem::field("manifest", format!("`manifest`: {must}"));
    let manifest = json::parse(manifest.get().as_bytes()).map_err(|e| refuse(e.message))?;
    if !matches!(manifest, Json::Object(_)) {
        return Err(refuse("must be an object, as MCP's `tools/list` answers".to_owned()));
    }
    let mut text = String::new();
    manifest.write_canonical(&mut text);
    Ok(hex::encode(Sha256::digest(text.as_bytes())))
}

/// Registers a server, or an existing one again: that updates what is said of it, and lifts
/// nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateServer {
    server: Name,
    kind: ServerKind,
    #[serde(default)]
    trust: ServerTrust,
    /// What the server says its tools are, as MCP's `tools/list` answers.
    #[schema(value_type = Option<Object>)]
    manifest: Option<Box<RawValue>>,
}

impl Write for CreateServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before: Option<ServerRow> = loaded.record()?;
        let mut row = match &before {
            Some(row) if row.deleted => return Err(name_taken("server", true)),
            Some(row) => ServerRow { kind: self.kind, trust: self.trust, ..row.clone() },
            None => {
                if loaded.extra::<Room>()?.count >= MAX_SERVERS {
                    return Err(limit_reached("servers", MAX_SERVERS));
                }
                ServerRow {
                    server: self.server.to_string(),
                    kind: self.kind,
                    trust: self.trust,
                    states: States::PENDING,
                    manifest_sha256: None,
                    deleted: false,
                    revision: 0,
                    created_at_ms: Millis(at.now_ms),
                    updated_at_ms: Millis(at.now_ms),
                }
            }
        };
        let manifest = self.manifest.as_deref().map(manifest_hash).transpose()?;
        let changed = manifest.is_some_and(|hash| row.take_manifest(hash));
        let event = if before.is_none() { "server_created" } else { "server_changed" };
        conclude(at, loaded, before.as_ref(), row, changed, event)
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
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Object, required = false)]
    manifest: Option<Box<RawValue>>,
}

/// [`ServerPatch`] of one server.
pub struct PatchServer {
    pub server: Name,
    pub patch: ServerPatch,
}

impl Write for PatchServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let mut row = before.clone();
        row.kind = self.patch.kind.unwrap_or(row.kind);
        row.trust = self.patch.trust.unwrap_or(row.trust);
        let manifest = self.patch.manifest.as_deref().map(manifest_hash).transpose()?;
        let changed = manifest.is_some_and(|hash| row.take_manifest(hash));
        conclude(at, loaded, Some(&before), row, changed, "server_changed")
    }
}

/// [`StateAction`] on one server.
pub struct ActOnServer {
    pub server: Name,
    pub action: StateAction,
}

impl Write for ActOnServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server)
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
        conclude(at, loaded, Some(&before), row, false, event)
    }
}

/// Deletes a server; none of its tools can be called any more.
pub struct DeleteServer {
    pub server: Name,
}

impl Write for DeleteServer {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let mut row: ServerRow = loaded.record()?.ok_or_else(not_found)?;
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
