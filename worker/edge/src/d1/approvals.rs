//! The tables `approvals` and `approval_groups`.

use gateward_admin::api::approvals::ApprovalFilter;
use gateward_core::approval::Approval;
use gateward_core::problem::Problem;
use gateward_core::sql::d1::{
    APPROVAL, APPROVALS, APPROVALS_OF_AGENT, APPROVALS_OF_AGENT_AND_STATUS, APPROVALS_OF_GROUP,
    APPROVALS_OF_STATUS,
};
use serde::Deserialize;
use wasm_bindgen::JsValue;

use super::{number, read};
use crate::answer::internal;
use crate::app::App;

#[derive(Deserialize)]
struct ApprovalRow {
    record: String,
}

impl ApprovalRow {
    fn parse(self) -> Result<Approval, Problem> {
        serde_json::from_str(&self.record)
            .map_err(|_| internal("the approval's row cannot be read"))
    }
}

pub async fn by_id(app: &App, tenant: &str, id: &str) -> Result<Option<Approval>, Problem> {
    let rows: Vec<ApprovalRow> = read(app, APPROVAL, &[tenant.into(), id.into()]).await?;
    rows.into_iter().next().map(ApprovalRow::parse).transpose()
}

pub async fn list(
    app: &App,
    tenant: &str,
    filter: &ApprovalFilter,
) -> Result<Vec<Approval>, Problem> {
    let text = |value: &Option<String>| value.as_deref().map_or(JsValue::NULL, JsValue::from_str);
    let (before_ms, before_id) = &filter.before;
    let values = [
        tenant.into(),
        number(*before_ms),
        before_id.as_str().into(),
        number(u64::from(filter.limit)),
        text(&filter.agent),
        filter.status.map_or(JsValue::NULL, |status| status.as_str().into()),
        text(&filter.group),
        filter.ends_after_ms().map_or(JsValue::NULL, number),
    ];
    let statement = match filter {
        ApprovalFilter { agent: Some(_), status: Some(_), .. } => APPROVALS_OF_AGENT_AND_STATUS,
        ApprovalFilter { agent: Some(_), .. } => APPROVALS_OF_AGENT,
        // Few approvals are open, so a search for open ones uses the index by status. Many are closed, so a
        // search for closed ones in a group uses the index by group, which finds fewer rows.
        ApprovalFilter { group: Some(_), .. } if filter.ends_after_ms().is_none() => {
            APPROVALS_OF_GROUP
        }
        ApprovalFilter { status: Some(_), .. } => APPROVALS_OF_STATUS,
        _ => APPROVALS,
    };
    let rows: Vec<ApprovalRow> = read(app, statement, &values).await?;
    rows.into_iter().map(ApprovalRow::parse).collect()
}
