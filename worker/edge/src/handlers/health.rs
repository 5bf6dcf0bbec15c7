//! `GET /healthz`, `/readyz` and `/version`: open to everyone, and telling no secret.

use gateward_core::records::{Health, Version};

use crate::http::json;
use crate::router::{Answer, Answered, App};
use crate::{d1, lanes};

/// The worker runs.
pub fn alive() -> Answered {
    json(&Health { status: "ok" }).map(Answer::Json)
}

/// D1 and a lane's storage answer, or 503 says which does not.
pub async fn ready(app: &App) -> Answered {
    d1::registry::ping(&app.env).await?;
    lanes::ready(&app.env).await?;
    json(&Health { status: "ready" }).map(Answer::Json)
}

/// What is deployed.
pub fn version(app: &App) -> Answered {
    let bundle = app.settings.engine.bundle();
    json(&Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: &app.settings.commit,
        bundle: bundle.digest,
        policies: bundle.policies.len(),
        tools: bundle.tools.len(),
    })
    .map(Answer::Json)
}
