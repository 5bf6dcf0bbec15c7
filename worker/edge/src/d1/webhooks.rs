//! The table `webhooks`.

use gateward_core::approval::webhook::Webhook;
use gateward_core::sql::d1::WEBHOOK;
use worker::{Env, Result};

use super::read_within;
use crate::limits::D1_READ_MS;

/// `None` if the tenant has none.
pub async fn of_tenant(env: &Env, tenant: &str) -> Result<Option<Webhook>> {
    let rows = read_within(env, WEBHOOK, &[tenant.into()], D1_READ_MS).await?;
    Ok(rows.into_iter().next())
}
