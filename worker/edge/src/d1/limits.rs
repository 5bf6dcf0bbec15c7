//! The limits of an agent and of a credential.

use gateward_core::limit::Limit;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::sql::d1::LIMITS_OF;
use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::Env;

use super::read;

#[derive(Deserialize)]
struct Row {
    lane: u16,
    of_agent: String,
    of_credential: String,
    first_key_id: Option<String>,
}

pub struct Found {
    pub lane: u16,
    pub of_agent: Vec<Limit>,
    pub of_credential: Vec<Limit>,
    /// The credential whose book counts.
    pub first_key_id: Option<String>,
}

/// `None` if there is no such agent, or if the credential is not the agent's.
pub async fn of(
    env: &Env,
    tenant: &str,
    agent: &str,
    key_id: Option<&str>,
) -> Result<Option<Found>, Problem> {
    let key_id = key_id.map_or(JsValue::NULL, JsValue::from_str);
    let values = [tenant.into(), agent.into(), key_id];
    let rows: Vec<Row> = read(env, LIMITS_OF, &values).await?;
    let Some(row) = rows.into_iter().next() else { return Ok(None) };
    let limits = |text: &str| -> Result<Vec<Limit>, Problem> {
        serde_json::from_str(text)
            .map_err(|_| Problem::new(ProblemCode::Internal, "a limit cannot be read"))
    };
    let (of_agent, of_credential) = (limits(&row.of_agent)?, limits(&row.of_credential)?);
    let first_key_id = row.first_key_id;
    Ok(Some(Found { lane: row.lane, of_agent, of_credential, first_key_id }))
}
