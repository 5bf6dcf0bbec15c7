//! `GET /healthz`, `/readyz` and `/version`: open to everyone, and telling no secret.

use std::cell::RefCell;
use std::time::Duration;

use futures_util::future::join;
use gateward_core::api::health::{Health, Version};
use gateward_core::isolate::readiness::{Ask, Readiness};
use gateward_core::problem::Problem;
use worker::{Date, Delay};

use crate::http::json;
use crate::router::{Answer, Answered, App};
use crate::{d1, lanes};

/// The worker runs.
pub fn alive() -> Answered {
    json(&Health { status: "ok" }).map(Answer::Json)
}

/// How long a request waits before it looks again at the check that another request runs. Requests
/// cannot wait for each other's promises.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

thread_local! {
    static READINESS: RefCell<Readiness> = RefCell::default();
}

/// D1 and a lane's storage answer, or 503 says which does not; as of a moment ago.
pub async fn ready(app: &App) -> Answered {
    loop {
        let asked = READINESS.with(|state| state.borrow_mut().ask(Date::now().as_millis()));
        match asked {
            Ask::Answer(result) => {
                return result.and_then(|()| json(&Health { status: "ready" })).map(Answer::Json);
            }
            Ask::Wait => Delay::from(LOOK_AGAIN).await,
            Ask::Check => {
                let result = check(app).await;
                let now_ms = Date::now().as_millis();
                READINESS.with(|state| state.borrow_mut().checked(now_ms, result));
            }
        }
    }
}

/// Takes no longer than a hop to a lane may: less than `CHECK_LIMIT_MS`.
async fn check(app: &App) -> Result<(), Problem> {
    let (database, lane) = join(d1::registry::ping(&app.env), lanes::ready(&app.env)).await;
    database.and(lane)
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
