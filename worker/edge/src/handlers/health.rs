//! `GET /healthz`, `/readyz` and `/version`: they need no credential, and return no secret.

use std::cell::RefCell;

use futures_util::future::join;
use gateward_admin::api::health::{Health, Version};
use gateward_core::isolate::readiness::{Ask, Readiness};
use gateward_core::problem::Problem;

use crate::answer::{Answer, Answered};
use crate::app::App;
use crate::d1;
use crate::http::json;
use crate::io;
use crate::lane;
use crate::wait::Pause;

/// Answers whenever the worker runs.
pub fn alive() -> Answered {
    json(&Health { status: "ok" }).map(Answer::Json)
}

/// How often a request polls the check that another request runs. Requests cannot await each other's
/// promises.
const POLL_MS: u64 = 50;

thread_local! {
    static READINESS: RefCell<Readiness> = RefCell::default();
}

/// Whether D1 and a lane's storage answer. If not, a 503 names the one that does not. The result is cached
/// for a moment.
pub async fn ready(app: &App) -> Answered {
    loop {
        let asked = READINESS.with(|state| state.borrow_mut().ask(io::now_ms()));
        match asked {
            Ask::Answer(result) => {
                return result.and_then(|()| json(&Health { status: "ready" })).map(Answer::Json);
            }
            Ask::Wait => Pause::new(POLL_MS).await,
            Ask::Check => {
                let result = check(app).await;
                let now_ms = io::now_ms();
                READINESS.with(|state| state.borrow_mut().checked(now_ms, result));
            }
        }
    }
}

/// Takes at most as long as a hop to a lane, which is less than `CHECK_LIMIT_MS`.
async fn check(app: &App) -> Result<(), Problem> {
    let (database, lane) = join(d1::registry::ping(app), lane::client::ready(app)).await;
    database.and(lane)
}

/// The deployed version.
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
