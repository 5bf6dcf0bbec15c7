//! `POST /v1/runs` and `POST /v1/runs/{run}/observations`: what a harness states about a run. The lane checks
//! that the caller is one.

use gateward_core::api::runs::{IssuedRun, Recorded};
use gateward_core::call::ToolCall;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::call::run::{self, NewRun, Report};
use gateward_core::credential::run_token;
use gateward_core::credential::token::{FixedRun, Token};
use gateward_core::field::Label;
use gateward_core::id::rfc3339;
use gateward_core::json::Json;
use gateward_core::problem::{Problem, ProblemCode};
use worker::Date;

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::authentication;
use crate::http::{Body, Head, Request, json, random_uuid};
use crate::lane;
use crate::lane::client::{Judged, Refused};

/// How many times more memory a body takes than its text: the text, its parts, what is sent to the lane, and
/// the message to the lane.
const BODY_FACTOR: usize = 4;

/// Starts a run, or adds to its instruction. Answers with a run credential.
pub async fn start(request: &Request, app: &App) -> Answered {
    let (token, agent, lane) = harness(request, app)?;
    let Body { bytes, mut held } = request.json_body().await?;
    let signature = authentication::verify_signature(request, app, &token, &bytes, true)?;
    let NewRun { run_id, start, expires_in_s } = run::parse_start(&bytes)?;
    if !held.resize(BODY_FACTOR * bytes.len() + start.heap_bytes()) {
        return Err(Problem::overloaded());
    }
    drop(bytes);
    let run_id = run_id.unwrap_or_else(random_uuid);
    let expires_at_s = Date::now().as_millis() / 1_000 + u64::from(expires_in_s);
    let run = FixedRun { run_id: run_id.clone(), expires_at_s };
    let credential = run_token::issue(&app.settings.mac_keys, &token, &run);
    let credential = credential.ok_or_else(not_a_harness)?;
    let call = of_run(&run_id, (token.tenant, agent), ("", ""))?;
    let purpose = Purpose::StartRun(start);
    let command = authentication::command(request, app, &token, lane, signature, purpose, call)?;
    let judged = lane::client::judge(&app.env, &command);
    drop(command);
    let expires_at = rfc3339(expires_at_s * 1_000);
    respond(app, judged.await, 201, &json(&IssuedRun { run_id, credential, expires_at })?)
}

/// Records a result that the caller got without Gateward.
pub async fn report(request: &Request, app: &App, run_id: String) -> Answered {
    let (token, agent, lane) = harness(request, app)?;
    let Body { bytes, mut held } = request.json_body().await?;
    let signature = authentication::verify_signature(request, app, &token, &bytes, true)?;
    if !held.resize(BODY_FACTOR * bytes.len()) {
        return Err(Problem::overloaded());
    }
    let Report { server, tool, result } = run::parse_report(&bytes)?;
    drop(bytes);
    let call = of_run(&run_id, (token.tenant, agent), (&server, &tool))?;
    let purpose = Purpose::Report(result);
    let command = authentication::command(request, app, &token, lane, signature, purpose, call)?;
    let judged = lane::client::judge(&app.env, &command);
    drop(command);
    respond(app, judged.await, 200, &json(&Recorded { recorded: true })?)
}

/// The token of an agent that is not confined to a run. Only the lane knows whether it is a harness's.
fn harness<'a>(request: &'a Request, app: &App) -> Result<(Token<'a>, &'a str, u16), Problem> {
    let (token, agent, lane) = authentication::agent_token(request, app)?;
    match token.run {
        None => Ok((token, agent, lane)),
        Some(_) => Err(not_a_harness()),
    }
}

fn not_a_harness() -> Problem {
    let detail = "a run credential only makes calls in its run; send the harness's own";
    Problem::new(ProblemCode::Forbidden, detail)
}

/// A call that names only who acts in which run, and the tool of a result.
fn of_run(
    run_id: &str,
    of: (&str, &str),
    (server, tool): (&str, &str),
) -> Result<ToolCall, Problem> {
    Label::parse(run_id).map_err(|must| Problem::field("run", format!("`run` {must}")))?;
    let claims = Claims::default().in_run(run_id)?;
    Ok(claims.call(of, (server, tool, ""), Json::Object(Vec::new())))
}

/// The answer, unless the lane refused.
fn respond(app: &App, judged: Result<Judged, Refused>, status: u16, body: &str) -> Answered {
    let Judged { rate, .. } = judged.map_err(|refused| refused.problem)?;
    whole(rate.add_to(Head::new(status, &app.request_id)).with(body))
}
