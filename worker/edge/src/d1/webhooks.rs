//! The table `webhooks`.

use gateward_core::approval::webhook::Webhook;
use gateward_core::problem::Problem;
use gateward_core::sql::d1::WEBHOOK;
use worker::Env;

use super::read;

/// `None` if the tenant has none.
pub async fn of_tenant(env: &Env, tenant: &str) -> Result<Option<Webhook>, Problem> {
    let rows = read(env, WEBHOOK, &[tenant.into()]).await?;
    Ok(rows.into_iter().next())
}
