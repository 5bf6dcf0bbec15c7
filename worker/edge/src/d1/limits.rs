//! The limits of an agent and of a credential, and those that lanes share.

use gateward_core::limit::{Limit, RequestRate};
use gateward_core::problem::Problem;
use gateward_core::registry::SharedLimit;
use gateward_core::sql::d1::{LIMITS_OF, SHARED_LIMITS};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wasm_bindgen::JsValue;

use super::read;
use crate::answer::internal;
use crate::app::App;

#[derive(Deserialize)]
struct LimitsRow {
    lane: u16,
    of_agent: String,
    of_requests: Option<String>,
    of_credential: String,
    first_key_id: Option<String>,
    shared: String,
    groups: String,
}

pub struct Found {
    pub lane: u16,
    pub of_agent: Vec<Limit>,
    /// The limit of the agent's requests.
    pub of_requests: Option<RequestRate>,
    pub of_credential: Vec<Limit>,
    /// The lane stores the credential's book under this key id. `None` if no credential was named.
    pub first_key_id: Option<String>,
    /// All limits that the tenant's lanes share.
    pub shared: Vec<SharedLimit>,
    /// The groups that the agent is a member of.
    pub groups: Vec<String>,
}

/// `None` if the agent does not exist, or if the credential is not the agent's.
pub async fn of(
    app: &App,
    tenant: &str,
    agent: &str,
    key_id: Option<&str>,
) -> Result<Option<Found>, Problem> {
    let key_id = key_id.map_or(JsValue::NULL, JsValue::from_str);
    let values = [tenant.into(), agent.into(), key_id];
    let rows: Vec<LimitsRow> = read(app, LIMITS_OF, &values).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    Ok(Some(Found {
        lane: row.lane,
        of_agent: parse(&row.of_agent)?,
        of_requests: row.of_requests.as_deref().map(parse).transpose()?,
        of_credential: parse(&row.of_credential)?,
        first_key_id: row.first_key_id,
        shared: parse(&row.shared)?,
        groups: parse(&row.groups)?,
    }))
}

#[derive(Deserialize)]
struct SharedRow {
    shared: String,
}

/// The limits that the tenant's lanes share.
pub async fn shared(app: &App, tenant: &str) -> Result<Vec<SharedLimit>, Problem> {
    let rows: Vec<SharedRow> = read(app, SHARED_LIMITS, &[tenant.into()]).await?;
    rows.first().map_or_else(|| Ok(Vec::new()), |row| parse(&row.shared))
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    serde_json::from_str(text).map_err(|_| internal("a limit cannot be read"))
}
