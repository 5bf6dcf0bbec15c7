//! `approvals` and `approval_groups`.

use gateward_core::approval::Approval;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::sql::d1::{
    APPROVAL, APPROVALS, APPROVALS_OF_AGENT, APPROVALS_OF_AGENT_AND_STATUS, APPROVALS_OF_GROUP,
    APPROVALS_OF_STATUS,
};
use serde::Deserialize;
use wasm_bindgen::JsValue;
use worker::Env;

use super::{number, read};

#[derive(Deserialize)]
struct Row {
    record: String,
}

impl Row {
    fn parse(self) -> Result<Approval, Problem> {
        serde_json::from_str(&self.record)
            .map_err(|_| Problem::new(ProblemCode::Internal, "the approval's row cannot be read"))
    }
}

/// Which approvals: those made before `before`, a time and an id.
pub struct Filter {
    pub agent: Option<String>,
    pub status: Option<String>,
    pub group: Option<String>,
    pub before: (u64, String),
    /// Only those that end after this time.
    pub ends_after_ms: Option<u64>,
    pub limit: u32,
}

pub async fn by_id(env: &Env, tenant: &str, id: &str) -> Result<Option<Approval>, Problem> {
    let rows: Vec<Row> = read(env, APPROVAL, &[tenant.into(), id.into()]).await?;
    rows.into_iter().next().map(Row::parse).transpose()
}

pub async fn list(env: &Env, tenant: &str, filter: &Filter) -> Result<Vec<Approval>, Problem> {
    let text = |value: &Option<String>| value.as_deref().map_or(JsValue::NULL, JsValue::from_str);
    let (before_ms, before_id) = &filter.before;
    let values = [
        tenant.into(),
        number(*before_ms),
        before_id.as_str().into(),
        number(u64::from(filter.limit)),
        text(&filter.agent),
        text(&filter.status),
        text(&filter.group),
        filter.ends_after_ms.map_or(JsValue::NULL, number),
    ];
    let statement = match filter {
        Filter { agent: Some(_), status: Some(_), .. } => APPROVALS_OF_AGENT_AND_STATUS,
        Filter { agent: Some(_), .. } => APPROVALS_OF_AGENT,
        // Open ones are few; closed ones of one group are fewer than all of them.
        Filter { group: Some(_), ends_after_ms: None, .. } => APPROVALS_OF_GROUP,
        Filter { status: Some(_), .. } => APPROVALS_OF_STATUS,
        _ => APPROVALS,
    };
    let rows: Vec<Row> = read(env, statement, &values).await?;
    rows.into_iter().map(Row::parse).collect()
}
