//! How the worker reaches a lane: one hop, by name.

use std::cell::RefCell;

use futures_util::{StreamExt as _, stream};
use gateward_core::admin::AgentInLane;
use gateward_core::approval::{ChangeCommand, DecideCommand, HeldApproval};
use gateward_core::call::command::GateCommand;
use gateward_core::gate::proxy::ProxyReply;
use gateward_core::gate::{AgentCommand, Containment, LaneAction, OutcomeCommand, TaintCommand};
use gateward_core::isolate::memory::Held;
use gateward_core::isolate::outage::LogThrottle;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{EpochPush, PendingPushes};
use js_sys::Uint8Array;
use js_sys::futures::JsFuture;
use serde::Deserialize;
use wasm_bindgen::{JsCast as _, JsValue};
use worker::worker_sys::web_sys::{Request, Response};
use worker::{Date, Env, console_error};

use crate::http::Head;
use crate::limits::{EPOCH_PUSH_MS, LANE_MS};
use crate::{io, memory, terminal_refusals};

/// The binding in wrangler.toml.
const BINDING: &str = "LANES";

/// An address for the runtime; it never leaves it.
pub const ORIGIN: &str = "https://lane";

/// How a lane answers a command of a version that it does not know: for minutes after a deploy it
/// may run older code than the worker (421 Misdirected Request; no caller sees it).
pub const OTHER_VERSION: u16 = 421;

/// How a lane answers a decision that was checked at an older epoch than it knows (425 Too Early; no
/// caller sees it).
pub const OUTDATED: u16 = 425;

/// How a lane answers a call whose credential is revoked or has expired, which is for good (410 Gone; the
/// caller gets the problem's own status).
pub const TERMINAL: u16 = 410;

/// How a lane answers a command that it has no memory for (507 Insufficient Storage; the caller gets a
/// 503).
pub const NO_MEMORY: u16 = 507;

/// The object that `/readyz` asks: a name that no tenant can have.
const READY_OBJECT: &str = "_ready/0";

/// Begins the name of the object that goes on telling a tenant's lanes of an epoch, which the tenant
/// ends. No lane has such a name.
const PUSHES_OBJECT: &str = "_pushes/";

/// Step 5. The lane's answer is the caller's, as it is. The command is sent at once: it need not be held
/// while the lane decides.
pub fn call(
    env: &Env,
    command: &GateCommand,
) -> impl Future<Output = std::result::Result<Response, Problem>> + use<> {
    let name = format!("{}/{}", command.tenant, command.lane);
    let secret_hash = command.secret_hash;
    let answer = hop(env, &name, "/call", Some(&command.encode()));
    async move {
        let response = answer.await?;
        if response.status() != TERMINAL {
            return Ok(response);
        }
        let problem = refusal(&text(&response).await?)?;
        terminal_refusals::remember(secret_hash, problem.clone());
        Err(problem)
    }
}

/// Reads a command in its lane; an error is the status to answer with. Its bytes are dropped once it is
/// decoded; what it holds then is measured, since a list of small objects takes many times its text.
pub async fn receive(
    request: &Request,
) -> std::result::Result<std::result::Result<(GateCommand, Held), u16>, JsValue> {
    let buffer = JsFuture::from(request.array_buffer()?).await?;
    let bytes = Uint8Array::new(&buffer);
    let Some(mut held) = memory::hold_command(bytes.length() as usize) else {
        return Ok(Err(NO_MEMORY));
    };
    // The worker tells the caller: this version cannot even read who that is.
    let Some(command) = GateCommand::decode(&bytes.to_vec()) else { return Ok(Err(OTHER_VERSION)) };
    let fits = held.resize(command.heap_bytes());
    Ok(if fits { Ok((command, held)) } else { Err(NO_MEMORY) })
}

/// What a lane says to a proxy.
pub struct Judged {
    pub reply: ProxyReply,
    pub rate: RateFields,
}

/// A lane's refusal to decide.
pub struct Refused {
    pub problem: Problem,
    pub rate: RateFields,
}

/// The headers in which the agent's rate is told, for whoever answers it.
#[derive(Default)]
pub struct RateFields([Option<String>; 2]);

const RATE_FIELDS: [&str; 2] = ["ratelimit-policy", "ratelimit"];

impl RateFields {
    pub fn add_to(&self, head: Head) -> Head {
        RATE_FIELDS.iter().zip(&self.0).fold(head, |head, (name, value)| match value {
            Some(value) => head.field(name, value),
            None => head,
        })
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { problem, rate: RateFields::default() }
    }
}

#[derive(Deserialize)]
struct ProblemBody {
    code: String,
    detail: String,
}

/// Step 5 of a proxy, which forwards or answers by itself. The command is sent at once.
pub fn judge(
    env: &Env,
    command: &GateCommand,
) -> impl Future<Output = std::result::Result<Judged, Refused>> + use<> {
    let answer = call(env, command);
    async move { judged(answer.await?).await }
}

async fn judged(response: Response) -> std::result::Result<Judged, Refused> {
    let header = |name: &str| response.headers().get(name).ok().flatten();
    let rate = RateFields(RATE_FIELDS.map(header));
    let body = text(&response).await?;
    if response.status() == 200 {
        let reply = serde_json::from_str(&body).map_err(unavailable)?;
        return Ok(Judged { reply, rate });
    }
    let mut problem = refusal(&body)?;
    problem.retry_after_s = header("retry-after").and_then(|seconds| seconds.parse().ok());
    Err(Refused { problem, rate })
}

/// The problem that a lane answers with.
fn refusal(body: &str) -> std::result::Result<Problem, Problem> {
    let body: ProblemBody = serde_json::from_str(body).map_err(unavailable)?;
    let code = ProblemCode::ALL.iter().copied().find(|code| code.code() == body.code);
    let code = code.ok_or_else(|| unavailable("it answers with a code of another version"))?;
    Ok(Problem::new(code, body.detail))
}

/// Tells a lane what became of a call that was forwarded.
pub async fn record_outcome(
    env: &Env,
    outcome: &OutcomeCommand,
) -> std::result::Result<(), Problem> {
    // Plain data always serializes; what were empty would be refused.
    let body = serde_json::to_vec(outcome).unwrap_or_default();
    let name = format!("{}/{}", outcome.tenant, outcome.lane);
    let response = hop(env, &name, "/outcome", Some(&body)).await?;
    if response.ok() { Ok(()) } else { Err(unavailable("it did not take an outcome")) }
}

/// The journal row `seq`, if it is still there.
pub async fn row(
    env: &Env,
    tenant: &str,
    lane: u16,
    seq: u64,
) -> std::result::Result<Option<String>, Problem> {
    let response = hop(env, &format!("{tenant}/{lane}"), &format!("/row/{seq}"), None).await?;
    if response.status() == 404 { Ok(None) } else { text(&response).await.map(Some) }
}

/// A JSON array of journal rows from `from` on.
pub async fn rows(
    env: &Env,
    tenant: &str,
    lane: u16,
    from: u64,
) -> std::result::Result<String, Problem> {
    let path = format!("/rows/{from}");
    text(&hop(env, &format!("{tenant}/{lane}"), &path, None).await?).await
}

/// Sequence number and hash of the lane's newest receipt.
pub async fn head(
    env: &Env,
    tenant: &str,
    lane: u16,
) -> std::result::Result<(u64, String), Problem> {
    link(env, tenant, lane, "/head").await
}

/// The same of the last receipt that was pruned: 0 when none was.
pub async fn anchor(
    env: &Env,
    tenant: &str,
    lane: u16,
) -> std::result::Result<(u64, String), Problem> {
    link(env, tenant, lane, "/anchor").await
}

async fn link(
    env: &Env,
    tenant: &str,
    lane: u16,
    path: &str,
) -> std::result::Result<(u64, String), Problem> {
    let response = hop(env, &format!("{tenant}/{lane}"), path, None).await?;
    let text = text(&response).await?;
    let link = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
    let (seq, hash) = link.ok_or_else(|| unavailable("its chain's end cannot be read"))?;
    Ok((seq, hash.to_owned()))
}

/// Lanes that are told of a change at once.
const CONCURRENT_PUSHES: usize = 32;

/// Tells every lane of the tenant; returns those that did not confirm. These are told again until they
/// do, or may no longer go on by what they hold.
pub async fn push(env: &Env, tenant: &str, lanes: u16, push: &EpochPush) -> Vec<u16> {
    let mut pending: Vec<u16> = stream::iter(0..lanes)
        .map(|lane| async move { (!push_one(env, tenant, lane, push).await).then_some(lane) })
        .buffer_unordered(CONCURRENT_PUSHES)
        .filter_map(|lane| async move { lane })
        .collect()
        .await;
    pending.sort_unstable();
    if !pending.is_empty() {
        let (tenant, lanes) = (tenant.to_owned(), pending.clone());
        let pushes = PendingPushes { tenant, lanes, epoch: push.epoch };
        let body = serde_json::to_vec(&pushes).unwrap_or_default();
        let name = [PUSHES_OBJECT, &pushes.tenant].concat();
        let kept = hop_within(env, &name, "/push-again", Some(&body), EPOCH_PUSH_MS).await;
        if !kept.is_ok_and(|response| response.ok()) {
            console_error!("lanes {pending:?} of `{}` are not told again", pushes.tenant);
        }
    }
    pending
}

/// Tells one lane; whether it confirmed.
pub async fn push_one(env: &Env, tenant: &str, lane: u16, push: &EpochPush) -> bool {
    // Plain data always serializes; what were empty would be refused, and the lane named.
    let body = serde_json::to_vec(push).unwrap_or_default();
    let name = format!("{tenant}/{lane}");
    let taken = hop_within(env, &name, "/epoch", Some(&body), EPOCH_PUSH_MS).await;
    taken.is_ok_and(|response| response.ok())
}

/// An approval with its call's arguments; `None` when the lane does not hold it any more.
pub async fn approval(
    env: &Env,
    tenant: &str,
    lane: u16,
    approval_id: &str,
) -> std::result::Result<Option<HeldApproval>, Problem> {
    let path = format!("/approval/{approval_id}");
    let response = hop(env, &format!("{tenant}/{lane}"), &path, None).await?;
    if response.status() == 404 {
        return Ok(None);
    }
    serde_json::from_str(&text(&response).await?).map(Some).map_err(unavailable)
}

/// An administrator's decision; `None` when the lane knows a newer epoch than the command's. Else
/// the lane's answer is the caller's, as it is.
pub async fn decide(
    env: &Env,
    command: &DecideCommand,
) -> std::result::Result<Option<Response>, Problem> {
    // Plain data always serializes; what were empty would be refused.
    let body = serde_json::to_vec(command).unwrap_or_default();
    let name = format!("{}/{}", command.tenant, command.lane);
    let response = hop(env, &name, "/decide", Some(&body)).await?;
    if response.status() == 404 && response.headers().get("content-type").ok().flatten().is_none() {
        return Err(unavailable("it runs a version that has no approvals"));
    }
    Ok(Some(response).filter(|response| response.status() != OUTDATED))
}

/// Has a registry change wait for approval, or uses its approval up. Returns the approval's id.
pub async fn settle_change(
    env: &Env,
    command: &ChangeCommand,
) -> std::result::Result<String, Problem> {
    // Plain data always serializes; an empty body would be refused.
    let body = serde_json::to_vec(command).unwrap_or_default();
    let name = format!("{}/{}", command.tenant, command.lane);
    let response = hop(env, &name, "/change", Some(&body)).await?;
    let answer = text(&response).await?;
    if response.status() == 200 { Ok(answer) } else { Err(refusal(&answer)?) }
}

/// Has an agent's lane carry out its part of an administrator's command.
pub async fn carry_out(
    env: &Env,
    tenant: &str,
    AgentInLane { agent, lane }: &AgentInLane,
    action: LaneAction,
    administrator: &str,
    epoch: u64,
) -> std::result::Result<(), Problem> {
    let command = AgentCommand {
        tenant: tenant.to_owned(),
        lane: *lane,
        agent: agent.clone(),
        action,
        administrator: administrator.to_owned(),
        epoch,
    };
    let body = serde_json::to_vec(&command).unwrap_or_default();
    let response = hop(env, &format!("{tenant}/{lane}"), "/agent", Some(&body)).await?;
    if response.ok() { Ok(()) } else { Err(unavailable("it did not carry out the command")) }
}

/// Marks an agent before text of an untrusted server reaches it. On an error the text must not be
/// passed on.
pub async fn taint(env: &Env, command: &TaintCommand) -> std::result::Result<(), Problem> {
    let body = serde_json::to_vec(command).unwrap_or_default();
    let name = format!("{}/{}", command.tenant, command.lane);
    let response = hop(env, &name, "/taint", Some(&body)).await?;
    if response.ok() { Ok(()) } else { Err(unavailable("it did not mark the agent")) }
}

/// What the lane decided about an agent; `tenant_record` says by which limits.
pub async fn containment(
    env: &Env,
    tenant: &str,
    lane: u16,
    agent: &str,
    tenant_record: &str,
) -> std::result::Result<Containment, Problem> {
    let path = format!("/containment/{agent}");
    let body = tenant_record.as_bytes();
    let response = hop(env, &format!("{tenant}/{lane}"), &path, Some(body)).await?;
    serde_json::from_str(&text(&response).await?).map_err(unavailable)
}

/// Whether a lane's storage answers.
pub async fn ready(env: &Env) -> std::result::Result<(), Problem> {
    hop(env, READY_OBJECT, "/head", None).await.map(drop)
}

thread_local! {
    static LOG: RefCell<LogThrottle> = RefCell::default();
}

/// Sends at once; the result waits for the answer, and borrows nothing.
fn hop(
    env: &Env,
    name: &str,
    path: &str,
    body: Option<&[u8]>,
) -> impl Future<Output = std::result::Result<Response, Problem>> + use<> {
    hop_within(env, name, path, body, LANE_MS)
}

fn hop_within(
    env: &Env,
    name: &str,
    path: &str,
    body: Option<&[u8]>,
    limit_ms: u32,
) -> impl Future<Output = std::result::Result<Response, Problem>> + use<> {
    let url = format!("{ORIGIN}{path}");
    let sent = match body {
        Some(body) => io::post(env, BINDING, name, &url, body, limit_ms),
        None => io::get(env, BINDING, name, &url, limit_ms),
    };
    async move {
        let response = async { JsFuture::from(sent?).await?.dyn_into() };
        answered(response.await)
    }
}

fn answered(
    response: std::result::Result<Response, JsValue>,
) -> std::result::Result<Response, Problem> {
    match response {
        Ok(response) if response.status() == NO_MEMORY => Err(Problem::overloaded()),
        Ok(response) if response.status() == OTHER_VERSION => {
            Err(unavailable("it runs another version than the worker"))
        }
        Ok(response) if response.status() == 500 => Err(unavailable("it failed")),
        Ok(response) => Ok(response),
        Err(error) => Err(unavailable(worker::Error::from(error))),
    }
}

async fn text(response: &Response) -> std::result::Result<String, Problem> {
    let text: std::result::Result<JsValue, JsValue> =
        async { JsFuture::from(io::text(response, LANE_MS)?).await }.await;
    let text = text.map_err(|error| unavailable(worker::Error::from(error)))?;
    text.as_string().ok_or_else(|| unavailable("its answer is no text"))
}

fn unavailable(error: impl std::fmt::Display) -> Problem {
    let line = LOG.with(|log| log.borrow_mut().line(Date::now().as_millis()));
    if let Some(left_out) = line {
        console_error!("lane unavailable: {error} ({left_out} lines like this one were left out)");
    }
    Problem::new(ProblemCode::LaneUnavailable, "the lane cannot answer now; try again")
}
