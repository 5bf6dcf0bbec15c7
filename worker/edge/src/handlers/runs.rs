//! Reports of callers about runs and calls: `POST /v1/runs`, `POST /v1/runs/{run}/observations` and
//! `POST /v1/decisions/{id}/outcome`. The lane checks that the caller of the first two is a harness.

use gateward_admin::api::runs::{IssuedRun, Recorded};
use gateward_core::call::ToolCall;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::call::outcome::ReportedOutcome;
use gateward_core::call::run::{self, NewRun, Report};
use gateward_core::credential::run_token;
use gateward_core::credential::token::{FixedRun, Token};
use gateward_core::field::Label;
use gateward_core::id::rfc3339;
use gateward_core::json::Json;
use gateward_core::problem::{Problem, ProblemCode};

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::authentication;
use crate::http::{Body, Head, Request, json, random_uuid};
use crate::io;
use crate::lane;
use crate::lane::client::LaneAnswer;

/// How many times more memory a body takes than its text: the text, its parts, what is sent to the lane, and
/// the message to the lane.
const BODY_FACTOR: usize = 4;

/// What a caller reports: the start of a run or a result (only a harness), or the outcome of a call.
pub enum CallerReport {
    /// A run starts, or its instruction is added to. The answer has a run credential.
    Start,
    /// A result that the caller got without Gateward, in this run.
    Result(String),
    /// The outcome of the call of this decision.
    Outcome(String),
}

/// The purpose of the command for the lane, and the answer if the lane records the report.
struct Recording {
    purpose: Purpose,
    call: ToolCall,
    status: u16,
    answer: String,
}

/// Sends the report to the lane. One function for all kinds of reports, because each one would be a state machine
/// of its own in the Wasm.
pub async fn record(request: &Request, app: &App, report: CallerReport) -> Answered {
    let (token, agent, lane) = unconfined_token(request, app)?;
    let Body { bytes, mut held } = request.json_body().await?;
    let signature = authentication::verify_signature(request, app, &token, &bytes, true)?;
    if !held.resize(BODY_FACTOR * bytes.len()) {
        return Err(Problem::overloaded());
    }
    let Recording { purpose, call, status, answer } = read(app, &token, agent, report, &bytes)?;
    let command = authentication::command(request, app, &token, lane, signature, purpose, call)?;
    if !held.resize(BODY_FACTOR * bytes.len() + command.heap_bytes()) {
        return Err(Problem::overloaded());
    }
    drop(bytes);
    let judged = lane::client::judge(&app.env, &command);
    drop(command);
    let LaneAnswer { rate, .. } = judged.await.map_err(|refused| {
        *request.rate.borrow_mut() = refused.rate;
        refused.problem
    })?;
    whole(rate.add_to(Head::new(status, &app.request_id)).with(&answer))
}

fn read(
    app: &App,
    token: &Token<'_>,
    agent: &str,
    report: CallerReport,
    body: &[u8],
) -> Result<Recording, Problem> {
    let of = (token.tenant, agent);
    match report {
        CallerReport::Start => {
            let NewRun { run_id, start, expires_in_s } = run::parse_start(body)?;
            let run_id = run_id.unwrap_or_else(random_uuid);
            let expires_at_s = io::now_ms() / 1_000 + u64::from(expires_in_s);
            let run = FixedRun { run_id: run_id.clone(), expires_at_s };
            let credential = run_token::issue(&app.settings.mac_keys, token, &run);
            let credential = credential.ok_or_else(run_credential_refused)?;
            let call = of_run(&run_id, of, ("", ""))?;
            let expires_at = rfc3339(expires_at_s * 1_000);
            let answer = json(&IssuedRun { run_id, credential, expires_at })?;
            Ok(Recording { purpose: Purpose::StartRun(start), call, status: 201, answer })
        }
        CallerReport::Result(run_id) => {
            let Report { server, tool, result } = run::parse_report(body)?;
            let call = of_run(&run_id, of, (&server, &tool))?;
            let answer = json(&Recorded { recorded: true })?;
            Ok(Recording { purpose: Purpose::ReportResult(result), call, status: 200, answer })
        }
        CallerReport::Outcome(decision_id) => {
            let reported = ReportedOutcome::parse(decision_id, body)?;
            let call = Claims::default().call(of, ("", "", ""), Json::Object(Vec::new()));
            let answer = json(&Recorded { recorded: true })?;
            Ok(Recording { purpose: Purpose::ReportOutcome(reported), call, status: 200, answer })
        }
    }
}

/// The token of an agent that is not confined to a run. Only the lane knows whether it is a harness's.
fn unconfined_token<'a>(
    request: &'a Request,
    app: &App,
) -> Result<(Token<'a>, &'a str, u16), Problem> {
    let (token, agent, lane) = authentication::agent_token(request, app)?;
    match token.run {
        None => Ok((token, agent, lane)),
        Some(_) => Err(run_credential_refused()),
    }
}

fn run_credential_refused() -> Problem {
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
