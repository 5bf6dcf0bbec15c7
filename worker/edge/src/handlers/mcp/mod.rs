//! `/mcp/{server}`: a filtering reverse proxy for MCP servers, for both eras of the protocol.
//!
//! The core classifies each message (`gateward_core::mcp`), and the lane decides it, or lets it pass. Only then is it
//! forwarded, unchanged. A message that cannot be parsed is answered here.

mod client;
mod exchange;
mod fields;
mod inspect;
mod marks;
mod refusal;
mod response_filter;

use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use gateward_core::call::claims::Claims;
use gateward_core::call::command::{GateCommand, INPUT_RESPONSES, Purpose};
use gateward_core::gate::proxy::{AnswerRules, ProxyDecision};
use gateward_core::json::{self, Json};
use gateward_core::mcp::error::{
    DENIED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError, TRANSPORT, as_event,
};
use gateward_core::mcp::message::{self, Headers, Kind, MAX_MESSAGE_BYTES, Message};
use gateward_core::mcp::method::{self, ClientRule};
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::sse::{self, EVENT_STREAM};
use gateward_core::mcp::{Era, action, denial, forward, origin, response};
use gateward_core::problem::Problem;
use gateward_core::registry::upstream::Upstream;
use worker::Delay;

use self::client::McpClient;
use self::exchange::{Answer, Forwarded, PROBE_MS, exchange};
use self::fields::Fields;
use self::refusal::{JSON, Refusal};
use self::response_filter::{Pending, ResponseFilter};
use crate::answer::{Answered, whole};
use crate::app::App;
use crate::authentication;
use crate::http::{Body, Head, RateFields, Request};
use crate::lane::client::Judged;
use crate::upstream::passed::{self, Passed};
use crate::upstream::relay;
use crate::warrants;

/// How long after the upstream's time limit a stream without a response is closed. This happens only after a
/// trap in Wasm.
const TRAP_MARGIN_MS: u32 = 10_000;

pub async fn answer(request: &Rc<Request>, app: &App, server: &str) -> Answered {
    let fields = Fields(request.headers());
    let headers = fields.about_the_body();
    let era = message::era_of_header(&headers);
    let answered =
        if fields.get("origin").is_some_and(|origin| !origin::is_allowed(origin, request.origin()))
        {
            let error =
                RpcError::new(403, INVALID_REQUEST, "requests from this origin are not allowed");
            Err(Refusal::new(era, &error))
        } else {
            match (request.method.as_str(), era) {
                ("POST", _) => post(request, app, server, &fields, &headers).await,
                ("GET" | "DELETE", Era::Session) => session(request, app, server, &fields).await,
                _ => Err(Refusal::new(era, &RpcError::new(405, TRANSPORT, "Method not allowed"))),
            }
        };
    match answered {
        Ok(Answer::Stream(response)) => whole(Ok(response)),
        Ok(Answer::Message { head, body }) => whole(head.with(&body)),
        Err(refusal) => refusal.respond(app, request, era),
    }
}

/// A message that is forwarded.
struct Forwardable {
    text: String,
    pending: Option<Pending>,
    upstream: Upstream,
    rules: AnswerRules,
    decided: Option<Rc<Passed>>,
    removed: Removed,
    rate: RateFields,
}

async fn post(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields,
    headers: &Headers,
) -> Result<Answer, Refusal> {
    let (mut client, Body { bytes, mut held }) = authenticate(request, app, server, fields).await?;
    let received =
        message::receive(&bytes, headers).map_err(|(era, error)| Refusal::new(era, &error))?;
    let era = received.era;
    client.era = era;
    client.continue_trace(&received.messages);
    // An error about a whole batch has no id.
    let id = match received.messages.as_slice() {
        [only] if !received.batch => only.id_if_request().map(str::to_owned),
        _ => None,
    };
    // Two copies of the text: received and forwarded. Two copies of the arguments: parsed and in the call.
    let parsed: usize = received.messages.iter().map(|message| message.params.heap_bytes()).sum();
    if !held.resize(2 * (bytes.len() + parsed)) {
        return Err(Refusal::problem(app, client.era, id.as_deref(), &Problem::overloaded()));
    }
    drop(bytes);
    client.open_session(fields.get("mcp-session-id"), id.as_deref())?;
    // The claims of all messages are read before any message is decided.
    let mut claims = Vec::new();
    for message in &received.messages {
        claims.push(Rc::new(client.claims(message, id.as_deref())?));
    }

    let (mut forwarded, answers) =
        judge_all(&client, received.messages, &claims, received.batch).await?;
    let Some(first) = forwarded.first() else {
        let error = RpcError::new(400, INVALID_REQUEST, "there is nothing to forward");
        return Err(Refusal::new(era, &error));
    };
    let upstream = Rc::new(first.upstream.clone());
    let rules = forwarded.iter().map(|go| go.rules.clone()).collect();
    let mut sent = fields.forwarded(era, &first.removed);
    sent.push(("content-type".to_owned(), JSON.to_owned()));
    sent.push(("accept".to_owned(), [JSON, ", ", EVENT_STREAM].concat()));
    let texts: Vec<String> = forwarded.iter_mut().map(|go| mem::take(&mut go.text)).collect();
    let text = response::join(texts, received.batch);
    let decided: Vec<Rc<Passed>> = forwarded.iter().filter_map(|go| go.decided.clone()).collect();
    let mut rate = RateFields::default();
    let mut pending = Vec::new();
    for go in forwarded {
        rate = go.rate;
        pending.extend(go.pending);
    }
    let late_ms = upstream.whole_timeout_ms.saturating_add(TRAP_MARGIN_MS);
    // `initialize` is not streamed early: a client cannot cancel it, and its response has the session id in
    // the head.
    let streams = fields.names(EVENT_STREAM) && !pending.iter().any(Pending::opens_session);
    let filter = ResponseFilter::new(Rc::new(client), claims, upstream, rules, pending, answers);
    let early = id.filter(|_| streams && !filter.is_done()).map(|id| {
        let head = rate.add_to(exchange::stream_head(app));
        Early { head, id, late_ms }
    });
    let forwarded = Some(Forwarded { text, held });
    let exchange = exchange(filter, received.batch, sent, forwarded, decided, rate);
    match early {
        Some(early) => streamed_if_late(early, exchange).await,
        None => exchange.await,
    }
}

/// Judges messages in order. Returns those to forward, and the answers to the refused requests of a batch. An
/// error when nothing is left to forward.
async fn judge_all(
    client: &McpClient,
    messages: Vec<Message>,
    claims: &[Rc<Claims>],
    batch: bool,
) -> Result<(Vec<Forwardable>, Vec<String>), Refusal> {
    let (mut forwarded, mut answers, mut refused) = (Vec::new(), Vec::new(), None);
    for (message, claims) in messages.into_iter().zip(claims) {
        let kind = message.kind;
        match judge(client, claims, message).await {
            Ok(go) => forwarded.push(go),
            Err(refusal) if !batch => {
                // Clients of the session revisions end their session when a notification gets an error. So
                // notifications over the agent's rate are dropped; the audit counts them.
                let dropped = kind == Kind::Notification && client.era == Era::Session;
                if dropped && refusal.status == 429 {
                    let body = String::new();
                    return Err(Refusal { status: 202, body, retry_after_s: None, ..refusal });
                }
                return Err(refusal);
            }
            Err(refusal) => {
                // A notification in a batch has no response.
                if kind == Kind::Request {
                    answers.push(refusal.body.clone());
                }
                refused = Some(refusal);
            }
        }
    }
    match refused {
        Some(refusal) if forwarded.is_empty() && answers.is_empty() => Err(refusal),
        Some(refusal) if forwarded.is_empty() => {
            Err(Refusal { status: 200, body: response::join(answers, true), ..refusal })
        }
        _ => Ok((forwarded, answers)),
    }
}

/// The start of a response that is streamed before its content exists.
struct Early {
    head: Head,
    /// The request's id.
    id: String,
    /// When the stream ends without content.
    late_ms: u32,
}

/// The response of the exchange. If that takes longer than [`PROBE_MS`], a stream of events starts without it.
/// When the client closes that stream, the exchange is cancelled.
async fn streamed_if_late(
    Early { head, id, late_ms }: Early,
    exchange: impl Future<Output = Result<Answer, Refusal>> + 'static,
) -> Result<Answer, Refusal> {
    let patience = Delay::from(Duration::from_millis(PROBE_MS.into()));
    let exchange = match select(Box::pin(exchange), pin!(patience)).await {
        Either::Left((answered, _)) => return answered,
        Either::Right(((), exchange)) => exchange,
    };
    let late = relay::late(head, PROBE_MS, late_ms, async move {
        let body = match exchange.await {
            Ok(Answer::Stream(response)) => return response.into(),
            Ok(Answer::Message { body, .. }) | Err(Refusal { body, .. }) => body,
        };
        sse::message(&as_event(body, &id)).into()
    });
    Ok(Answer::Stream(late))
}

/// Authenticates a request, and reads its body.
async fn authenticate(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields,
) -> Result<(McpClient, Body), Refusal> {
    let era = message::era_of_header(&fields.about_the_body());
    let problem = |problem: Problem| Refusal::problem(app, era, None, &problem);
    let (token, agent, lane) = authentication::caller_token(request, app).map_err(problem)?;
    let (wanted, detail): (&[&str], _) = match request.method.as_str() {
        "POST" => (
            &[JSON, EVENT_STREAM],
            "Not Acceptable: Client must accept both application/json and text/event-stream",
        ),
        "GET" => (&[EVENT_STREAM], "Not Acceptable: Client must accept text/event-stream"),
        _ => (&[], ""),
    };
    if !wanted.iter().all(|wanted| fields.accepts(wanted)) {
        return Err(Refusal::new(era, &RpcError::new(406, TRANSPORT, detail)));
    }
    let body = match request.method.as_str() {
        "POST" => request.json_body().await.map_err(problem)?,
        _ => Body::default(),
    };
    let signature = authentication::verify_signature(request, app, &token, &body.bytes, true);
    let signature = signature.map_err(|why| {
        let id = message::id_of_request(&body.bytes);
        Refusal::problem(app, era, id.as_deref(), &why)
    })?;
    let call =
        Claims::default().call((token.tenant, agent), (server, "", ""), Json::Object(Vec::new()));
    let purpose = Purpose::Message { cost: 1 };
    let command = authentication::command(request, app, &token, lane, signature, purpose, call);
    let command = command.map_err(problem)?;
    Ok((McpClient::new(app, request, command, era), body))
}

/// GET opens a session's stream, DELETE ends the session.
async fn session(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields,
) -> Result<Answer, Refusal> {
    let era = Era::Session;
    let problem = |problem: Problem| Refusal::problem(app, era, None, &problem);
    let (mut client, _) = authenticate(request, app, server, fields).await?;
    let claims = Claims::from_headers(|name| request.header(name));
    let claims = claims.and_then(|claims| client.in_assigned_run(claims)).map_err(problem)?;
    client.open_session(fields.get("mcp-session-id"), None)?;
    if client.session.is_none() {
        let detail = "Bad Request: Mcp-Session-Id header is required";
        return Err(Refusal::new(era, &RpcError::new(400, TRANSPORT, detail)));
    }
    let PassedMessage { upstream, rules, rate } =
        ask_lane(&client, &claims, (&request.method, Json::Null), 1, None).await?;
    let mut sent = fields.forwarded(era, &Removed::default());
    sent.push(("accept".to_owned(), EVENT_STREAM.to_owned()));
    let claims = vec![Rc::new(claims)];
    let (upstream, rules) = (Rc::new(upstream), vec![rules]);
    let mut filter =
        ResponseFilter::new(Rc::new(client), claims, upstream, rules, Vec::new(), Vec::new());
    filter.standalone = request.method == "GET";
    exchange(filter, false, sent, None, Vec::new(), rate).await
}

/// A message that calls no tool, and that the lane lets pass.
struct PassedMessage {
    upstream: Upstream,
    rules: AnswerRules,
    rate: RateFields,
}

/// Asks the lane whether a message that calls no tool may pass. `beside` is what the message says
/// ([`Message::beside`]). The message counts as `cost` requests of the agent's rate.
async fn ask_lane(
    client: &McpClient,
    claims: &Claims,
    (what, beside): (&str, Json),
    cost: u32,
    id: Option<&str>,
) -> Result<PassedMessage, Refusal> {
    let purpose = Purpose::Message { cost };
    let command = client.command(claims, purpose, (what, ""), Json::Object(Vec::new()));
    let command = GateCommand { beside, ..command };
    let refused = |refused| Refusal::refused(&client.app, client.era, id, refused);
    let Judged { reply, rate } = client.judge(&command).await.map_err(refused)?;
    match (reply.decision, reply.upstream) {
        (None, Some(upstream)) => Ok(PassedMessage { upstream, rules: reply.answer, rate }),
        (Some(decision), _) => Err(denied(client, &decision, what, id, rate)),
        (None, None) => Err(client.undecided(id)),
    }
}

/// The refusal of a denied message that calls no tool.
fn denied(
    client: &McpClient,
    decision: &ProxyDecision,
    what: &str,
    id: Option<&str>,
    rate: RateFields,
) -> Refusal {
    let what = [client.server(), "/", what].concat();
    let error = denial::error(decision, &what).with_id(id);
    // A message without an id has no response body, so its status says that it was denied.
    let status = if id.is_some() { error.status } else { 403 };
    Refusal { status, rate, ..Refusal::new(client.era, &error) }
}

/// Decides a message that calls a tool. Asks the lane whether any other message may pass.
async fn judge(
    client: &McpClient,
    claims: &Rc<Claims>,
    message: Message,
) -> Result<Forwardable, Refusal> {
    let message = &message;
    let id = message.id_if_request();
    let refuse = |error: RpcError| Refusal::new(client.era, &error.with_id(id));
    let rule = match message.kind {
        Kind::Response => {
            if client.session.is_none() {
                let detail = "a response needs a session";
                return Err(refuse(RpcError::new(400, INVALID_REQUEST, detail)));
            }
            ClientRule::Pass
        }
        kind => {
            let is_notification = message.method.starts_with("notifications/");
            match method::from_client(&message.method, client.era) {
                Some(ClientRule::Refuse(why)) => return Err(refuse(not_found(client, kind, why))),
                None => return Err(refuse(not_found(client, kind, "Method not found"))),
                Some(_) if is_notification != (kind == Kind::Notification) => {
                    let detail = "the method does not fit this kind of message";
                    return Err(refuse(RpcError::new(400, INVALID_REQUEST, detail)));
                }
                Some(rule) => rule,
            }
        }
    };
    if let ClientRule::Call | ClientRule::Action = rule {
        return decide(client, claims, message, rule).await;
    }
    if message.text.len() > MAX_MESSAGE_BYTES {
        let detail =
            format!("a message that calls no tool must have at most {MAX_MESSAGE_BYTES} bytes");
        return Err(refuse(RpcError::new(413, INVALID_REQUEST, &detail)));
    }
    let what = if message.method.is_empty() { "response" } else { &message.method };
    let candidates = match rule {
        ClientRule::Named => action::named(message).map_err(refuse)?,
        _ => Vec::new(),
    };
    // A subscription to many resources costs as much as many subscriptions.
    let cost = u32::try_from(candidates.len().max(1)).unwrap_or(u32::MAX);
    let PassedMessage { upstream, rules, rate } =
        ask_lane(client, claims, (what, message.beside(false)), cost, id).await?;
    if !candidates.is_empty() {
        let refused = |refused| Refusal::refused(&client.app, client.era, id, refused);
        let visible = client.visible(claims, candidates, action::said(message)).await;
        let visible = visible.map_err(refused)?;
        if visible.iter().any(|seen| !seen.is_usable()) {
            let detail = "the agent must not use an item that this names";
            return Err(refuse(RpcError::in_band(DENIED, detail)));
        }
    }
    let mut removed = Removed::default();
    let redaction = client.redaction(&[]);
    let text = forward::rewrite(message, &[], redaction, &client.seal(), &mut removed);
    let text = text.map_err(refuse)?;
    let (listed, observe) = match rule {
        ClientRule::List(listed) => (Some(listed), rules.observe.clone()),
        ClientRule::Named => (None, rules.observe.clone()),
        _ => (None, None),
    };
    let pending = id.map(|id| Pending::new(id, &message.method, claims, listed, observe, None));
    Ok(Forwardable { text, pending, upstream, rules, decided: None, removed, rate })
}

fn not_found(client: &McpClient, kind: Kind, why: &str) -> RpcError {
    let status = match (client.era, kind) {
        (Era::Stateless, _) => 404,
        (Era::Session, Kind::Request) => 200,
        (Era::Session, _) => 400,
    };
    RpcError::new(status, METHOD_NOT_FOUND, why)
}

/// Decides a call of a tool, or a message that is authorized like one.
async fn decide(
    client: &McpClient,
    claims: &Rc<Claims>,
    message: &Message,
    rule: ClientRule,
) -> Result<Forwardable, Refusal> {
    let id = message.id_if_request();
    let refuse = |error: RpcError| Refusal::new(client.era, &error.with_id(id));
    let asked = action::of(message).map_err(refuse)?;
    let what = [client.server(), "/", &asked.tool].concat();
    forward::check_state(message, &client.seal()).map_err(refuse)?;
    let mut command =
        client.command(claims, Purpose::Forward, (&asked.tool, &asked.resource), asked.input);
    command.forwarded = true;
    let answers = message.params.get(INPUT_RESPONSES).is_some();
    if answers && command.call.approval_id.is_some() {
        // The approvers have not seen these responses.
        let detail = "an approval cannot be used together with `inputResponses`";
        return Err(refuse(RpcError::in_band(INVALID_PARAMS, detail)));
    }
    let mut carried = client.warrant(message);
    if answers || message.params.get(forward::REQUEST_STATE).is_some() {
        let reason = "A call with a warrant must not have `inputResponses` or `requestState`: no proof covers them.";
        carried = carried.map(|carried| carried.refused(reason));
    }
    warrants::judge(&client.app, &mut command, carried);
    command.parameters = message.parameters.clone();
    command.call.rounded = json::rounded(message.text.as_bytes());
    command.beside = message.beside(true);
    let refused = |refused| Refusal::refused(&client.app, client.era, id, refused);
    if let Some(instruction) = action::instruction(message).map_err(refuse)? {
        client.send_instruction(claims, instruction).await.map_err(refused)?;
    }
    let Judged { reply, rate } = client.judge(&command).await.map_err(refused)?;
    let Some(decision) = reply.decision else { return Err(client.undecided(id)) };
    if !decision.decision.passes() {
        if rule == ClientRule::Action {
            return Err(denied(client, &decision, &asked.tool, id, rate));
        }
        let id = id.unwrap_or("null");
        let (status, body) = denial::answer(&decision, &what, reply.denial, client.era, id);
        return Err(Refusal { status, body, rate, retry_after_s: None });
    }
    let redacted = &decision.redacted_fields;
    // The name of a resource cannot be redacted: with a marker in it, it would name another resource.
    let changes =
        !decision.shield.redacts.is_empty() || action::identifies(&command.call.input, redacted);
    if rule == ClientRule::Action && changes {
        let passed = Passed::new(command, decision, AnswerRules::default());
        let _ = passed::record_outcome(&client.app, &passed, relay::not_sent());
        let mut decision = passed.decision;
        decision.reason = "The resource that it is about would have to be redacted.".to_owned();
        return Err(denied(client, &decision, &asked.tool, id, rate));
    }
    let Some(upstream) = reply.upstream else { return Err(client.undecided(id)) };
    let mut removed = Removed::default();
    let redaction = client.redaction(&decision.shield.redacts);
    let fields = &decision.redacted_fields;
    let text = forward::rewrite(message, fields, redaction, &client.seal(), &mut removed);
    let text = text.map_err(refuse)?;
    let rules = reply.answer;
    // The outcome is recorded without the arguments.
    command.call.input = Json::Object(Vec::new());
    command.call.rounded = Vec::new();
    command.beside = Json::Null;
    command.warrant = None;
    let decided = Rc::new(Passed::new(command, decision, rules.clone()));
    let let_through = Some(Rc::clone(&decided));
    let pending = id.map(|id| Pending::new(id, &message.method, claims, None, None, let_through));
    Ok(Forwardable { text, pending, upstream, rules, decided: Some(decided), removed, rate })
}
