//! `GET /v1/limits/status`, and `POST /v1/decisions/{id}/outcome`.

use gateward_core::api::limits::LimitStates;
use gateward_core::api::runs::Recorded;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::call::outcome::ReportedOutcome;
use gateward_core::gate::limits::{agent_book, credential_book};
use gateward_core::json::Json;
use gateward_core::limit::Limit;
use gateward_core::limit::book::{At, Status};
use gateward_core::name::is_name;
use gateward_core::problem::{Problem, ProblemCode};
use worker::Date;

use crate::answer::{Answer, Answered, whole};
use crate::app::App;
use crate::authentication::{self, Caller};
use crate::d1;
use crate::handlers::parameters::malformed;
use crate::http::{Body, Head, Request, json};
use crate::lane;
use crate::lane::client::Judged;
use crate::time_zones::offset_s;

/// What is left of an agent's limits: `agent`, `credential`.
pub async fn status(request: &Request, app: &App, caller: &Caller) -> Answered {
    let (mut agent, mut credential) = (caller.agent.clone(), None);
    if agent.is_some() {
        credential = Some(caller.key_id.clone());
    }
    for (name, value) in request.query() {
        match name.as_ref() {
            "agent" | "credential" if !is_name(&value) => {
                return Err(malformed(&name, "a name"));
            }
            "agent" if !caller.sees(&value) => {
                let detail = "an agent's credential reads only its own limits";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            "agent" => agent = Some(value.into_owned()),
            "credential" => credential = Some(value.into_owned()),
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    let agent = agent.ok_or_else(|| malformed("agent", "an agent's name"))?;
    let found = d1::limits::of(&app.env, &caller.tenant, &agent, credential.as_deref()).await?;
    let found = found.ok_or_else(|| Problem::not_found("agent or credential"))?;
    let names: Vec<String> = [Some(agent_book(&agent)), credential.as_deref().map(credential_book)]
        .into_iter()
        .flatten()
        .collect();
    let books = lane::client::books(&app.env, &caller.tenant, found.lane, names).await?;
    let at = At { now_ms: Date::now().as_millis(), offset_s };
    let states = |limits: &[Limit], book: usize| -> Vec<Status> {
        let book = books.get(book).cloned().unwrap_or_default();
        limits.iter().map(|limit| book.status(limit, at)).collect()
    };
    let (of_agent, of_credential) = (states(&found.of_agent, 0), states(&found.of_credential, 1));
    json(&LimitStates { agent, of_agent, of_credential }).map(Answer::Json)
}

/// Records what became of a call that the caller asked about.
pub async fn report(request: &Request, app: &App, decision_id: String) -> Answered {
    let (token, agent, lane) = authentication::agent_token(request, app)?;
    let Body { bytes, held: _held } = request.json_body().await?;
    let signature = authentication::verify_signature(request, app, &token, &bytes, true)?;
    let reported = ReportedOutcome::parse(decision_id, &bytes)?;
    let call =
        Claims::default().call((token.tenant, agent), ("", "", ""), Json::Object(Vec::new()));
    let purpose = Purpose::Settle(reported);
    let command = authentication::command(request, app, &token, lane, signature, purpose, call)?;
    let judged = lane::client::judge(&app.env, &command).await;
    let Judged { rate, .. } = judged.map_err(|refused| refused.problem)?;
    let body = json(&Recorded { recorded: true })?;
    whole(rate.add_to(Head::new(200, &app.request_id)).with(&body))
}
