//! The administration's routes. The core says what to read and decides what changes. The worker commits
//! the change and pushes it to every lane of the tenant before it answers.

pub mod change;
mod response;

use gateward_admin::agent::AgentRow;
use gateward_admin::api::request::{self as asking, Asked, RANDOM_BYTES};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::route::Route;

use self::change::ChangeRequest;
use self::response::respond;
use crate::answer::{Answer, Answered};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1::administration::records;
use crate::http::{Request, json, random};
use crate::io;
use crate::lane;
use crate::time_zones::offset_s;

pub async fn answer(
    request: &Request,
    app: &App,
    caller: &Caller,
    route: &Route,
    parameters: &[String],
    body: &[u8],
) -> Answered {
    let query: Vec<(String, String)> =
        request.query().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
    let asked = asking::Request {
        operation: route.operation,
        tenant: &caller.tenant,
        parameters,
        query: &query,
        body,
        keys: &app.settings.mac_keys,
        random: random::<RANDOM_BYTES>()?,
        local_targets: app.settings.local_targets,
        offset_s,
    };
    if asked.takes_body() {
        request.require_json()?;
    } else if !body.is_empty() {
        let detail = "this request must not have a body";
        return Err(Problem::new(ProblemCode::MalformedRequest, detail));
    }
    let now_ms = io::now_ms();
    match asked.asked()? {
        Asked::Write { tenant, write } => {
            ChangeRequest { request, app, caller, tenant: &tenant, write: &*write, body }
                .make()
                .await
        }
        Asked::One { statement, view } => {
            let rows = records(app, &statement).await?;
            let row = rows.first().map(|row| row.record.as_str());
            respond(app, &caller.tenant, 200, view(row, now_ms)?, &[], false)
        }
        Asked::Agent(statement) => {
            let rows = records(app, &statement).await?;
            let row = rows.into_iter().next().ok_or_else(|| Problem::not_found("agent"))?;
            let mut agent: AgentRow = gateward_admin::read_record(&row.record)?;
            let record = gateward_admin::read_record(&row.extra.unwrap_or_default())?;
            let tenant = &caller.tenant;
            let held =
                lane::client::containment(app, tenant, agent.lane, &agent.agent, record).await?;
            (agent.lane_quarantined, agent.risk_steps) = (held.quarantined, held.risk_steps);
            agent.taint = held.taint;
            respond(app, tenant, 200, gateward_admin::view(&agent, now_ms)?, &[], false)
        }
        Asked::Page { within, statement, limit, view } => {
            if let Some((what, within)) = within
                && records(app, &within).await?.is_empty()
            {
                return Err(Problem::not_found(what));
            }
            let rows = records(app, &statement).await?;
            let rows: Vec<String> = rows.into_iter().map(|row| row.record).collect();
            json(&view(&rows, limit, now_ms)?).map(Answer::Json)
        }
        Asked::Other => Err(Problem::new(ProblemCode::NotFound, "there is no such path")),
    }
}
