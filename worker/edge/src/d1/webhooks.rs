//! The table `webhooks`, and dead letters.

use gateward_core::approval::webhook::Webhook;
use gateward_core::lane::DeadLetters;
use gateward_core::problem::Problem;
use gateward_core::sql::d1::{WEBHOOK, WRITE_DEAD_LETTERS};
use worker::{Env, Result};

use super::{number, query, read, statement};
use crate::limits::D1_BACKGROUND_MS;

/// `None` if the tenant has none.
pub async fn of_tenant(env: &Env, tenant: &str) -> std::result::Result<Option<Webhook>, Problem> {
    let rows = read(env, WEBHOOK, &[tenant.into()]).await?;
    Ok(rows.into_iter().next())
}

/// Writes dead letters as audit events. Writing one again is a no-op.
pub async fn write_dead_letters(
    env: &Env,
    tenant: &str,
    lane: u16,
    dead: &DeadLetters,
    now_ms: u64,
) -> Result<()> {
    let values = [tenant.into(), number(lane.into()), dead.rows.as_str().into(), number(now_ms)];
    let letters = statement(WRITE_DEAD_LETTERS, &values);
    query(env, &[letters], D1_BACKGROUND_MS).await.map(drop)
}
