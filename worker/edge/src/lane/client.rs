//! The worker's side of a hop: each function sends one request of the protocol
//! (`gateward_core::lane::protocol`) to one lane.

use std::borrow::Cow;

use futures_util::future::join;
use futures_util::{StreamExt as _, stream};
use gateward_admin::AgentInLane;
use gateward_core::approval::{ChangeCommand, DecideCommand, HeldApproval};
use gateward_core::bounds::HEAD_LANE;
use gateward_core::call::command::GateCommand;
use gateward_core::gate::head_log::LaneCheckpoint;
use gateward_core::gate::proxy::ProxyReply;
use gateward_core::gate::{
    AgentCommand, Containment, LaneAction, ListCommand, OutcomeCommand, TaintCommand,
};
use gateward_core::lane::protocol::{
    ChainEnds, DONE, LaneReply, LaneRequest, NO_MEMORY, OTHER_VERSION, OUTDATED, TERMINAL, refusal,
};
use gateward_core::limit::Violation;
use gateward_core::log::{Event, Line, of_json};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{EpochPush, PendingPushes, TenantRecord};
use gateward_core::trace::TraceId;
use js_sys::Uint8Array;
use serde::Deserialize;
use wasm_bindgen::{JsCast as _, JsValue};
use worker::Env;
use worker::worker_sys::web_sys::Response;

use super::refusals;
use crate::app::App;
use crate::http::RateFields;
use crate::limits::{EPOCH_PUSH_MS, LANE_MS};
use crate::wait::settled;
use crate::{io, log};

/// The object that `/readyz` asks. No tenant can have this name.
const READY_OBJECT: &str = "_ready/0";

/// Prefix of the object that pushes a tenant's epoch again to the lanes that did not confirm it; the
/// tenant follows. No lane has such a name.
const PUSHES_OBJECT: &str = "_pushes/";

/// The name of a lane's object.
pub fn object(tenant: &str, lane: u16) -> String {
    format!("{tenant}/{lane}")
}

/// Step 4. The lane's response is passed on to the caller. The command is encoded and sent before this
/// returns, so the caller may drop it while the lane decides.
pub fn call(
    env: &Env,
    command: &GateCommand,
) -> impl Future<Output = Result<Response, Problem>> + use<> {
    let name = object(&command.tenant, command.lane);
    let secret_hash = command.secret_hash;
    let asker = Asker::of(command);
    let answer = hop(env, &name, &LaneRequest::Call(Cow::Borrowed(command)), LANE_MS);
    async move {
        let response = answer.await.map_err(|why| asker.unavailable(why))?;
        match response.status() {
            NO_MEMORY => return Err(Problem::overloaded()),
            TERMINAL => {}
            _ => return Ok(response),
        }
        let problem = text(&response).await.and_then(|body| problem_of(&body));
        let problem = problem.map_err(|why| asker.unavailable(why))?;
        refusals::remember(secret_hash, problem.clone());
        Err(problem)
    }
}

/// The request that a call came with, for the log.
struct Asker {
    request_id: String,
    trace_id: Option<TraceId>,
}

impl Asker {
    fn of(command: &GateCommand) -> Self {
        Self { request_id: command.http_request_id.clone(), trace_id: command.trace_id }
    }

    fn unavailable(&self, why: String) -> Problem {
        let line = Line::new(Event::LaneUnavailable, why);
        logged(&Line { request_id: Some(&self.request_id), trace_id: self.trace_id, ..line })
    }
}

/// What a lane answers to a proxy.
pub struct LaneAnswer {
    pub reply: ProxyReply,
    pub rate: RateFields,
}

/// A lane's refusal to decide.
pub struct Refused {
    pub problem: Problem,
    pub rate: RateFields,
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { problem, rate: RateFields::default() }
    }
}

/// Step 4 of a proxy, which forwards the call or answers it. The command is sent before this returns.
pub fn judge(
    env: &Env,
    command: &GateCommand,
) -> impl Future<Output = Result<LaneAnswer, Refused>> + use<> {
    let name = object(&command.tenant, command.lane);
    let (asker, secret_hash) = (Asker::of(command), command.secret_hash);
    let request = LaneRequest::Call(Cow::Borrowed(command)).encode();
    let answered = io::answered(env, &name, &request, LANE_MS);
    async move {
        let answer = settled(answered).await;
        let judged = answer.map_err(failed).and_then(|answer| {
            let answer = String::from_utf8(Uint8Array::new(&answer).to_vec());
            judged(&answer.map_err(|_| "its answer is not text")?, secret_hash)
        });
        judged.map_err(|why| asker.unavailable(why))?
    }
}

/// Reads what `answered` in `io.js` returns. The outer error says why it is no answer.
fn judged(answer: &str, secret_hash: [u8; 32]) -> Result<Result<LaneAnswer, Refused>, String> {
    let mut parts = answer.splitn(5, '\n');
    let mut next = || parts.next().unwrap_or_default();
    let status = next().parse().unwrap_or(500);
    let rate = RateFields::read(next(), next());
    let (retry_after, body) = (next(), next());
    is_answer(status)?;
    if status == 200 {
        let reply = serde_json::from_str(body).map_err(unreadable)?;
        return Ok(Ok(LaneAnswer { reply, rate }));
    }
    if status == NO_MEMORY {
        return Ok(Err(Problem::overloaded().into()));
    }
    let problem = Problem { retry_after_s: retry_after.parse().ok(), ..problem_of(body)? };
    if status == TERMINAL {
        refusals::remember(secret_hash, problem.clone());
    }
    Ok(Err(Refused { problem, rate }))
}

/// The members of problem details that the worker reads.
#[derive(Deserialize)]
struct ReceivedProblem {
    code: String,
    detail: String,
    field: Option<String>,
    #[serde(default)]
    violated_limits: Vec<Violation>,
}

/// The problem in a lane's response.
fn problem_of(body: &str) -> Result<Problem, String> {
    let ReceivedProblem { code, detail, field, violated_limits } =
        serde_json::from_str(body).map_err(unreadable)?;
    let problem = refused(&code, detail)?;
    let violated_limit = violated_limits.into_iter().next().map(Box::new);
    Ok(Problem { field, violated_limit, ..problem })
}

fn refused(code: &str, detail: String) -> Result<Problem, String> {
    refusal(code, detail).ok_or_else(|| "it sent an unknown problem code".to_owned())
}

/// Applies an administrator's decision. `None` when the lane knows a newer epoch than the command's.
/// Otherwise the lane's response is passed on to the caller.
pub async fn decide_approval(
    app: &App,
    command: &DecideCommand,
) -> Result<Option<Response>, Problem> {
    let name = object(&command.tenant, command.lane);
    let request = LaneRequest::DecideApproval(Cow::Borrowed(command));
    let response = hop(&app.env, &name, &request, LANE_MS).await;
    let response = response.map_err(|why| unavailable_to(app, why))?;
    Ok(Some(response).filter(|response| response.status() != OUTDATED))
}

/// Records how a forwarded call ended.
pub async fn record_outcome(app: &App, outcome: OutcomeCommand) -> Result<(), Problem> {
    let name = object(&outcome.tenant, outcome.lane);
    confirm(app, &name, &LaneRequest::RecordOutcome(outcome), LANE_MS).await
}

/// Marks an agent as tainted before text of an untrusted server reaches it.
///
/// # Errors
///
/// The lane did not confirm the mark. The text must not be passed on.
pub async fn taint(app: &App, command: TaintCommand) -> Result<(), Problem> {
    let name = object(&command.tenant, command.lane);
    confirm(app, &name, &LaneRequest::Taint(command), LANE_MS).await
}

/// Stores the values of a list in its run, before the list reaches the agent.
///
/// # Errors
///
/// The lane did not confirm that it stored them. The list must not be passed on.
pub async fn observe_list(app: &App, command: ListCommand) -> Result<(), Problem> {
    let name = object(&command.tenant, command.lane);
    confirm(app, &name, &LaneRequest::ObserveList(command), LANE_MS).await
}

/// Asks an agent's lane to do its part of an administrator's command.
pub async fn carry_out(
    app: &App,
    tenant: &str,
    AgentInLane { agent, lane }: &AgentInLane,
    action: LaneAction,
    administrator: &str,
    epoch: u64,
) -> Result<(), Problem> {
    let command = AgentCommand {
        tenant: tenant.to_owned(),
        lane: *lane,
        agent: agent.clone(),
        action,
        administrator: administrator.to_owned(),
        epoch,
    };
    confirm(app, &object(tenant, *lane), &LaneRequest::CarryOut(command), LANE_MS).await
}

/// Opens the approval that a registry change waits for, or uses it. Returns the approval's id.
pub async fn settle_change(app: &App, command: ChangeCommand) -> Result<String, Problem> {
    let name = object(&command.tenant, command.lane);
    match ask(app, &name, &LaneRequest::SettleChange(command), LANE_MS).await? {
        LaneReply::ApprovalId(approval_id) => Ok(approval_id),
        LaneReply::Refused { code, detail } => {
            Err(refused(&code, detail).unwrap_or_else(|why| unavailable_to(app, why)))
        }
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// How many lanes are pushed to at once.
const CONCURRENT_PUSHES: usize = 32;

/// Pushes a change to every lane of the tenant, and returns the lanes that did not confirm it. An object
/// pushes again to these until they confirm, or until their copies are too old to be used.
///
/// The tenant's head log is told too. If this message is lost, the head log reads the change when a lane tells it of a
/// checkpoint.
pub async fn push(app: &App, tenant: &str, lanes: u16, push: &EpochPush) -> Vec<u16> {
    let env = &app.env;
    let pending = stream::iter(0..lanes)
        .map(|lane| async move { (!push_one(env, tenant, lane, push).await).then_some(lane) })
        .buffer_unordered(CONCURRENT_PUSHES)
        .filter_map(|lane| async move { lane })
        .collect();
    let (mut pending, ()): (Vec<u16>, ()) = join(pending, include_events(app, tenant)).await;
    pending.sort_unstable();
    if !pending.is_empty() {
        let pushes =
            PendingPushes { tenant: tenant.to_owned(), lanes: pending.clone(), epoch: push.epoch };
        let name = [PUSHES_OBJECT, tenant].concat();
        let kept = try_confirm(env, &name, &LaneRequest::KeepPushes(pushes), EPOCH_PUSH_MS).await;
        if let Err(why) = kept {
            let line = app.line(Event::ChangeNotPushed, format!("lanes {pending:?}: {why}"));
            log::write(&Line { tenant: Some(tenant), ..line });
        }
    }
    pending
}

/// Tells the tenant's head log that the registry changed.
async fn include_events(app: &App, tenant: &str) {
    if app.settings.log_keys.is_some() {
        let request = LaneRequest::IncludeEvents { tenant: tenant.to_owned() };
        let name = object(tenant, HEAD_LANE);
        let told = try_confirm(&app.env, &name, &request, EPOCH_PUSH_MS).await;
        if let Err(why) = told {
            let line = app.line(Event::HeadLogNotTold, why);
            log::write(&Line { tenant: Some(tenant), ..line });
        }
    }
}

/// Tells the tenant's head log of a checkpoint. The error says why it did not confirm that.
pub async fn keep_checkpoint(env: &Env, checkpoint: LaneCheckpoint) -> Result<(), String> {
    let name = object(&checkpoint.tenant, HEAD_LANE);
    try_confirm(env, &name, &LaneRequest::KeepCheckpoint(checkpoint), LANE_MS).await
}

/// Waits until a published checkpoint covers a receipt. Returns the newest receipt that one covers.
pub async fn await_checkpoint(
    app: &App,
    (tenant, lane): (&str, u16),
    seq: u64,
    wait_ms: u32,
) -> Result<u64, Problem> {
    let request = LaneRequest::AwaitCheckpoint { seq, wait_ms };
    match ask(app, &object(tenant, lane), &request, LANE_MS.saturating_add(wait_ms)).await? {
        LaneReply::PublishedThrough(through) => Ok(through),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// Pushes a change to one lane. Returns whether the lane confirmed it.
pub async fn push_one(env: &Env, tenant: &str, lane: u16, push: &EpochPush) -> bool {
    let request = LaneRequest::TakeEpoch(Cow::Borrowed(push));
    let taken = try_confirm(env, &object(tenant, lane), &request, EPOCH_PUSH_MS).await;
    if let Err(why) = &taken {
        log::write(&Line::new(Event::LaneUnavailable, why).in_lane(tenant, lane));
    }
    taken.is_ok()
}

/// An approval with its call's arguments; `None` when the lane no longer holds it.
pub async fn approval(
    app: &App,
    tenant: &str,
    lane: u16,
    approval_id: &str,
) -> Result<Option<HeldApproval>, Problem> {
    let request = LaneRequest::ReadApproval { approval_id: approval_id.to_owned() };
    match ask(app, &object(tenant, lane), &request, LANE_MS).await? {
        LaneReply::Approval(held) => Ok(held),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// What the lane decided about an agent, under the limits of its tenant's record.
pub async fn containment(
    app: &App,
    tenant: &str,
    lane: u16,
    agent: &str,
    record: TenantRecord,
) -> Result<Containment, Problem> {
    let request = LaneRequest::ReadContainment { agent: agent.to_owned(), tenant: record };
    match ask(app, &object(tenant, lane), &request, LANE_MS).await? {
        LaneReply::Containment(containment) => Ok(containment),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

pub async fn chain_ends(app: &App, tenant: &str, lane: u16) -> Result<ChainEnds, Problem> {
    chain_ends_of(app, &object(tenant, lane)).await
}

async fn chain_ends_of(app: &App, name: &str) -> Result<ChainEnds, Problem> {
    match ask(app, name, &LaneRequest::ReadChainEnds, LANE_MS).await? {
        LaneReply::ChainEnds(ends) => Ok(ends),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// The journal row `seq`; `None` when the journal does not hold it.
pub async fn row(app: &App, tenant: &str, lane: u16, seq: u64) -> Result<Option<String>, Problem> {
    match ask(app, &object(tenant, lane), &LaneRequest::ReadRow { seq }, LANE_MS).await? {
        LaneReply::Row(row) => Ok(row),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// The books with these names, as texts for [`gateward_core::limit::Book::parse`]; empty where nothing was used.
pub async fn books(
    app: &App,
    tenant: &str,
    lane: u16,
    names: Vec<String>,
) -> Result<Vec<String>, Problem> {
    match ask(app, &object(tenant, lane), &LaneRequest::ReadBooks { names }, LANE_MS).await? {
        LaneReply::Books(books) => Ok(books),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// A JSON array of the journal rows from `from` on.
pub async fn rows(app: &App, tenant: &str, lane: u16, from: u64) -> Result<String, Problem> {
    match ask(app, &object(tenant, lane), &LaneRequest::ReadRows { from }, LANE_MS).await? {
        LaneReply::Rows(rows) => Ok(rows),
        reply => Err(unavailable_to(app, unexpected(&reply))),
    }
}

/// Checks that a lane's storage answers.
pub async fn ready(app: &App) -> Result<(), Problem> {
    chain_ends_of(app, READY_OBJECT).await.map(drop)
}

/// A request of a caller who waits, which the lane confirms with [`LaneReply::Done`].
async fn confirm(
    app: &App,
    name: &str,
    request: &LaneRequest<'_>,
    limit_ms: u32,
) -> Result<(), Problem> {
    let confirmed = try_confirm(&app.env, name, request, limit_ms).await;
    confirmed.map_err(|why| unavailable_to(app, why))
}

/// A request of a caller who waits, which the lane answers with a [`LaneReply`].
pub async fn ask(
    app: &App,
    name: &str,
    request: &LaneRequest<'_>,
    limit_ms: u32,
) -> Result<LaneReply, Problem> {
    let answer = try_ask(&app.env, name, request, limit_ms).await;
    answer.map_err(|why| unavailable_to(app, why))
}

/// A request that the lane confirms. The error says why it did not, for the log.
async fn try_confirm(
    env: &Env,
    name: &str,
    request: &LaneRequest<'_>,
    limit_ms: u32,
) -> Result<(), String> {
    match try_ask(env, name, request, limit_ms).await? {
        LaneReply::Done => Ok(()),
        reply => Err(unexpected(&reply)),
    }
}

/// A request that the lane answers. The error says why there is no answer, for the log.
pub async fn try_ask(
    env: &Env,
    name: &str,
    request: &LaneRequest<'_>,
    limit_ms: u32,
) -> Result<LaneReply, String> {
    let response = hop(env, name, request, limit_ms).await?;
    if response.status() == DONE {
        return Ok(LaneReply::Done);
    }
    let bytes = settled(io::bytes(&response, limit_ms)).await.map_err(failed)?;
    LaneReply::decode(&Uint8Array::new(&bytes).to_vec()).map_err(|error| error.to_string())
}

/// Encodes and sends the request before this returns. The result waits for the response. An error says why there is none.
fn hop(
    env: &Env,
    name: &str,
    request: &LaneRequest<'_>,
    limit_ms: u32,
) -> impl Future<Output = Result<Response, String>> + use<> {
    let sent = io::post(env, name, &request.encode(), limit_ms);
    async move {
        let response: Response = settled(sent).await.map_err(failed)?.unchecked_into();
        is_answer(response.status())?;
        Ok(response)
    }
}

/// Fails with the reason if a response of this status is no answer.
fn is_answer(status: u16) -> Result<(), String> {
    match status {
        OTHER_VERSION => Err("it runs another version than the worker".to_owned()),
        500 => Err("it failed".to_owned()),
        _ => Ok(()),
    }
}

/// Why the runtime has no answer.
fn failed(error: JsValue) -> String {
    worker::Error::from(error).to_string()
}

/// The text of a lane's answer. An error says why there is none.
pub async fn text(response: &Response) -> Result<String, String> {
    let text = settled(io::text(response, LANE_MS)).await.map_err(failed)?;
    text.as_string().ok_or_else(|| "its answer is not text".to_owned())
}

/// What is wrong with a reply, for the log: it is a refusal where the caller is told only that the lane is unavailable, or
/// belongs to another operation.
pub fn unexpected(reply: &LaneReply) -> String {
    match reply {
        LaneReply::Refused { code, detail } => format!("{code}: {detail}"),
        _ => "its reply belongs to another request".to_owned(),
    }
}

/// Why a lane's answer is not the expected JSON.
fn unreadable(error: serde_json::Error) -> String {
    format!("its answer cannot be read: {}", of_json(&error))
}

/// The problem for a caller whose request the lane did not answer.
pub fn unavailable_to(app: &App, why: String) -> Problem {
    logged(&app.line(Event::LaneUnavailable, why))
}

/// Writes the line. The caller is told only that the lane is unavailable.
fn logged(line: &Line<'_>) -> Problem {
    log::write(line);
    Problem::new(ProblemCode::LaneUnavailable, "the lane cannot answer now; try again")
}
