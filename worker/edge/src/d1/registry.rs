//! Reads of the registry's tables.

use gateward_core::bounds::MAX_SERVER_TOOLS;
use gateward_core::call::command::GateCommand;
use gateward_core::log::{Event, of_json};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{
    AgentStatus, CredentialKind, CredentialStatus, ListedTool, LoadedListing, LoadedTexts,
    TenantStatus,
};
use gateward_core::sql::d1::{LOAD_LISTING, LOAD_READER, LOAD_RECORDS, PING};
use serde::Deserialize;
use worker::{Env, Error};

use super::{number, read, read_within, unavailable};
use crate::app::App;
use crate::log;

/// The credential of a request that is not a call, with its tenant and agent.
#[derive(Deserialize)]
pub struct ReaderRow {
    pub kind: CredentialKind,
    pub agent: Option<String>,
    pub administrator: Option<String>,
    pub secret_sha256: String,
    /// A JSON array.
    pub scopes: String,
    pub status: CredentialStatus,
    pub expires_at_ms: Option<u64>,
    /// A JSON array.
    pub allowed_networks: Option<String>,
    /// SQLite's boolean: 0 or 1.
    pub signed: u8,
    pub issued_by: Option<String>,
    pub tenant_status: TenantStatus,
    pub lanes: u16,
    pub epoch: u64,
    /// A JSON array.
    pub groups: String,
    pub agent_status: Option<AgentStatus>,
}

/// All records that `command` needs, as of one epoch. The tenant's lists, bans and warrants, are read only if
/// `with_lists`.
pub async fn load_records(
    env: &Env,
    command: &GateCommand,
    with_lists: bool,
    now_ms: u64,
    limit_ms: u32,
) -> Result<LoadedTexts, Problem> {
    let call = &command.call;
    let values = [
        command.tenant.as_str().into(),
        call.agent.as_str().into(),
        command.key_id.as_str().into(),
        call.server.as_str().into(),
        call.tool.as_str().into(),
        number(with_lists.into()),
        number(now_ms),
    ];
    let rows = read_within(env, LOAD_RECORDS, &values, limit_ms).await;
    let rows: Vec<LoadedTexts> = rows.map_err(|error| failed(command, error))?;
    rows.into_iter().next().ok_or_else(|| unreadable(command, "no row"))
}

#[derive(Deserialize)]
struct ListingRow {
    epoch: u64,
    tools: Option<String>,
}

/// All tools of the command's server.
pub async fn load_listing(
    env: &Env,
    command: &GateCommand,
    limit_ms: u32,
) -> Result<LoadedListing, Problem> {
    let values = [command.tenant.as_str().into(), command.call.server.as_str().into()];
    let rows = read_within(env, LOAD_LISTING, &values, limit_ms).await;
    let rows: Vec<ListingRow> = rows.map_err(|error| failed(command, error))?;
    let Some(row) = rows.into_iter().next() else {
        return Ok(LoadedListing { epoch: 0, tools: Vec::new() });
    };
    let tools = row.tools.as_deref().map_or(Ok(Vec::new()), serde_json::from_str);
    let tools: Vec<ListedTool> = tools.map_err(|error| unreadable(command, of_json(&error)))?;
    if tools.len() > MAX_SERVER_TOOLS {
        return Err(unreadable(command, "the server has too many tools"));
    }
    Ok(LoadedListing { epoch: row.epoch, tools })
}

/// Logs a load that D1 did not answer.
fn failed(command: &GateCommand, error: Error) -> Problem {
    log::write(&log::line(Event::DatabaseFailed, command, error.to_string()));
    unavailable()
}

pub fn unreadable(command: &GateCommand, why: impl Into<String>) -> Problem {
    log::write(&log::line(Event::RegistryUnreadable, command, why.into()));
    Problem::new(
        ProblemCode::RegistryUnavailable,
        "the registry cannot be read; the worker's log says why",
    )
}

pub async fn load_reader(
    app: &App,
    tenant: &str,
    key_id: &str,
) -> Result<Option<ReaderRow>, Problem> {
    let rows = read(app, LOAD_READER, &[tenant.into(), key_id.into()]).await?;
    Ok(rows.into_iter().next())
}

/// Checks that D1 answers and has the schema.
pub async fn ping(app: &App) -> Result<(), Problem> {
    read::<serde::de::IgnoredAny>(app, PING, &[]).await.map(drop)
}
