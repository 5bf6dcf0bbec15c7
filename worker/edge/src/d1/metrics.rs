//! The table `metric_counters`, and the reports of lanes.

use gateward_core::metrics::{
    MAX_RENDERED_SERIES, MAX_RENDERED_TENANTS, REPORT_MS, Scrape, Series,
};
use gateward_core::problem::Problem;
use gateward_core::sql::d1::{
    COUNT_METRIC, LANE_REPORTS, LANE_REPORTS_OF_ALL, METRICS, METRICS_OF_ALL,
};
use js_sys::Array;
use worker::{Env, Result};

use super::{number, query, read_all, rows, statement};
use crate::app::App;
use crate::limits::D1_BACKGROUND_MS;

/// Adds to series without names, each of a tenant or of none (an empty name), in one transaction.
pub async fn count<'a>(
    env: &Env,
    counts: impl Iterator<Item = (&'a str, Series<'a>, u64)>,
) -> Result<()> {
    let statements: Vec<Array> = counts
        .map(|(tenant, series, more)| {
            statement(COUNT_METRIC, &[tenant.into(), series.encode().into(), number(more)])
        })
        .collect();
    query(env, &statements, D1_BACKGROUND_MS).await.map(drop)
}

/// Reads the metrics of one tenant, or of all tenants, in one round trip.
pub async fn scrape(
    app: &App,
    tenant: Option<&str>,
    now_ms: u64,
) -> std::result::Result<Scrape, Problem> {
    // Reads one more of each than the answer shows, to find out whether something is left out.
    let (series, tenants) =
        (number(MAX_RENDERED_SERIES as u64 + 1), number(MAX_RENDERED_TENANTS as u64 + 1));
    let since = number(now_ms.saturating_sub(REPORT_MS));
    let statements = match tenant {
        Some(tenant) => [
            statement(METRICS, &[tenant.into(), series]),
            statement(LANE_REPORTS, &[tenant.into(), since]),
        ],
        None => [
            statement(METRICS_OF_ALL, &[series]),
            statement(LANE_REPORTS_OF_ALL, &[since, tenants]),
        ],
    };
    read_all(app, &statements, |answered| {
        let mut answered = answered.iter().map(Box::as_ref);
        Ok(Scrape { counters: rows(answered.next())?, lanes: rows(answered.next())? })
    })
    .await
}
