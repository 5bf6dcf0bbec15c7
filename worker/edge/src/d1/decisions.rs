//! The tables `decisions` and `lane_flushes`.

use gateward_core::decision::Decision;
use gateward_core::problem::Problem;
use gateward_core::sql::d1::{
    DECISION, DECISIONS, DECISIONS_OF_AGENT, DECISIONS_OF_AGENT_AND_OUTCOME, DECISIONS_OF_OUTCOME,
    FLUSHES,
};
use serde::Deserialize;
use wasm_bindgen::JsValue;

use super::{number, read};
use crate::app::App;

/// A stored decision. A journal row has the same fields except the lane.
#[derive(Deserialize)]
pub struct DecisionRow {
    pub decision_id: String,
    #[serde(default)]
    pub lane: u16,
    pub seq: u64,
    pub at_ms: u64,
    pub agent: String,
    pub server: String,
    pub tool: String,
    pub decision: Decision,
    // Text, because rows of older versions may have codes that no longer exist.
    pub reason_code: String,
    pub response: String,
}

impl DecisionRow {
    pub fn from_journal(row: &str, lane: u16) -> Option<Self> {
        let row: Self = serde_json::from_str(row).ok()?;
        Some(Self { lane, ..row })
    }
}

#[derive(Deserialize)]
pub struct FlushRow {
    pub lane: u16,
    pub seq: u64,
    pub flushed_at_ms: u64,
}

/// Selects decisions: ids from `from_id` on, and before `before_id`.
pub struct Filter {
    pub agent: Option<String>,
    pub decision: Option<Decision>,
    pub from_id: String,
    pub before_id: String,
    pub limit: u32,
}

pub async fn by_id(app: &App, tenant: &str, id: &str) -> Result<Option<DecisionRow>, Problem> {
    let rows = read(app, DECISION, &[tenant.into(), id.into()]).await?;
    Ok(rows.into_iter().next())
}

pub async fn list(app: &App, tenant: &str, filter: &Filter) -> Result<Vec<DecisionRow>, Problem> {
    let mut values = vec![
        tenant.into(),
        filter.from_id.as_str().into(),
        filter.before_id.as_str().into(),
        number(u64::from(filter.limit)),
    ];
    values.extend(filter.agent.as_deref().map(JsValue::from_str));
    values.extend(filter.decision.map(|decision| decision.as_str().into()));
    let statement = match (&filter.agent, &filter.decision) {
        (None, None) => DECISIONS,
        (Some(_), None) => DECISIONS_OF_AGENT,
        (None, Some(_)) => DECISIONS_OF_OUTCOME,
        (Some(_), Some(_)) => DECISIONS_OF_AGENT_AND_OUTCOME,
    };
    read(app, statement, &values).await
}

pub async fn flushes(app: &App, tenant: &str) -> Result<Vec<FlushRow>, Problem> {
    read(app, FLUSHES, &[tenant.into()]).await
}
