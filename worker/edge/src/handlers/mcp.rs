//! `/mcp/{server}`: a filtering reverse proxy for MCP servers, for both eras of the protocol.
//!
//! Each message is known for what it is (`gateward_core::mcp`), decided or admitted by the lane, and
//! forwarded as it came. Nothing goes on that was not: whatever cannot be read is answered here.

mod asker;
mod exchange;
mod fields;
mod response_filter;

use std::mem;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::{Either, select};
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::gate::proxy::{ProxyDecision, Untrusted};
use gateward_core::json::Json;
use gateward_core::mcp::error::{
    DENIED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError, TRANSPORT, as_event,
};
use gateward_core::mcp::message::{self, Headers, Kind, MAX_MESSAGE_BYTES, Message};
use gateward_core::mcp::method::{self, ClientRule};
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::sse::{self, EVENT_STREAM};
use gateward_core::mcp::{Era, action, answer as core, denial, forward, origin};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::upstream::Upstream;
use worker::Delay;

use self::asker::Asker;
use self::exchange::{Answer, Forwarded, PROBE_MS, exchange};
use self::fields::Fields;
use self::response_filter::{Decided, Pending, ResponseFilter};
use crate::authentication;
use crate::http::{AUTHENTICATE, Body, Head, Request};
use crate::lanes::{Judged, RateFields, Refused};
use crate::relay;
use crate::router::{Answered, App, whole};

/// Methods of the endpoint.
const METHODS: [&str; 3] = ["POST", "GET", "DELETE"];
const JSON: &str = "application/json";

/// How long after the upstream's own limit a stream ends whose answer never came: a trap in Wasm leaves
/// nobody to give it.
const TRAP_MARGIN_MS: u32 = 10_000;

/// A request that goes no further.
struct Refusal {
    status: u16,
    /// A JSON-RPC message; empty for none.
    body: String,
    rate: RateFields,
    retry_after_s: Option<u32>,
}

impl Refusal {
    fn new(era: Era, error: &RpcError) -> Self {
        let rate = RateFields::default();
        Self { status: error.http_status(era), body: error.body(era), rate, retry_after_s: None }
    }

    fn problem(app: &App, era: Era, id: Option<&str>, problem: &Problem) -> Self {
        let error = denial::problem(problem, &app.request_id).with_id(id);
        Self { retry_after_s: problem.retry_after_s, ..Self::new(era, &error) }
    }

    fn refused(app: &App, era: Era, id: Option<&str>, refused: Refused) -> Self {
        Self { rate: refused.rate, ..Self::problem(app, era, id, &refused.problem) }
    }

    fn respond(&self, app: &App, request: &Request, era: Era) -> Answered {
        let head = head(app, request, era, self.status);
        let mut head = head.retry_after(self.retry_after_s.map(u64::from));
        if self.status == 401 {
            head = head.field("www-authenticate", AUTHENTICATE);
        }
        whole(self.rate.add_to(head).with(&self.body))
    }
}

/// Of a JSON answer. One that refuses the HTTP method names the others of the era.
fn head(app: &App, request: &Request, era: Era, status: u16) -> Head {
    let head = Head::bare(status)
        .field("content-type", JSON)
        .field("cache-control", "no-store")
        .field("x-request-id", &app.request_id);
    if status != 405 {
        return head;
    }
    let served = METHODS.into_iter().filter(|method| *method == "POST" || era == Era::Session);
    let others: Vec<&str> = served.filter(|method| *method != request.method).collect();
    head.field("allow", others.join(", "))
}

pub async fn answer(request: &Rc<Request>, app: &App, server: &str) -> Answered {
    let fields = Fields(request.headers());
    let headers = fields.about_the_body();
    let era = message::era_of_header(&headers);
    let answered = if fields
        .get("origin")
        .is_some_and(|origin| !origin::is_allowed(origin, request.origin()))
    {
        let error = RpcError::new(403, INVALID_REQUEST, "requests of this origin are not served");
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

/// A message that goes on.
struct Forwardable {
    text: String,
    pending: Option<Pending>,
    upstream: Upstream,
    untrusted: Option<Untrusted>,
    decided: Option<Decided>,
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
    let (mut asker, Body { bytes, mut held }) = authenticate(request, app, server, fields).await?;
    let received =
        message::receive(&bytes, headers).map_err(|(era, error)| Refusal::new(era, &error))?;
    let era = received.era;
    asker.era = era;
    // An error that concerns all of a batch belongs to none of its messages.
    let id = match received.messages.as_slice() {
        [only] if !received.batch => only.id_if_request().map(str::to_owned),
        _ => None,
    };
    // The text as it came and as it goes on; and the arguments, of which the call has a copy.
    let parsed: usize = received.messages.iter().map(|message| message.params.heap_bytes()).sum();
    if !held.resize(2 * (bytes.len() + parsed)) {
        return Err(Refusal::problem(app, asker.era, id.as_deref(), &Problem::overloaded()));
    }
    drop(bytes);
    asker.open_session(fields.get("mcp-session-id"), id.as_deref())?;
    // All of it is read before any of it is decided.
    let mut stated = Vec::new();
    for message in &received.messages {
        stated.push(Rc::new(asker.stated(message, id.as_deref())?));
    }

    let (mut forwarded, mut answers, mut refused) = (Vec::new(), Vec::new(), None);
    for (message, stated) in received.messages.into_iter().zip(&stated) {
        let kind = message.kind;
        match judge(&asker, stated, message).await {
            Ok(go) => forwarded.push(go),
            Err(refusal) if !received.batch => {
                // Clients of the session revisions end their session when a notification gets an error.
                // Those over the agent's rate are dropped instead; the audit counts them.
                if kind != Kind::Notification || era != Era::Session || refusal.status != 429 {
                    return Err(refusal);
                }
                let head = refusal.rate.add_to(head(app, request, era, 202));
                return Ok(Answer::Message { head, body: String::new() });
            }
            Err(refusal) => {
                // Nobody is told what became of a notification in a batch.
                if kind == Kind::Request {
                    answers.push(refusal.body.clone());
                }
                refused = Some(refusal);
            }
        }
    }
    let Some(first) = forwarded.first() else {
        // All of a batch was refused.
        let refusal = refused.unwrap_or_else(|| {
            let error = RpcError::new(400, INVALID_REQUEST, "there is nothing to forward");
            Refusal::new(era, &error)
        });
        let body = core::together(&answers, true);
        let (status, body) =
            if answers.is_empty() { (refusal.status, refusal.body) } else { (200, body) };
        return Err(Refusal { status, body, ..refusal });
    };
    let upstream = Rc::new(first.upstream.clone());
    let untrusted = forwarded.iter().filter_map(|go| go.untrusted.clone()).collect();
    let mut sent = fields.forwarded(era, &first.removed);
    sent.push(("content-type".to_owned(), JSON.to_owned()));
    sent.push(("accept".to_owned(), [JSON, ", ", EVENT_STREAM].concat()));
    let texts: Vec<String> = forwarded.iter_mut().map(|go| mem::take(&mut go.text)).collect();
    let text = core::together(&texts, received.batch);
    drop(texts);
    let decided: Vec<Decided> = forwarded.iter().filter_map(|go| go.decided.clone()).collect();
    let mut rate = RateFields::default();
    let mut pending = Vec::new();
    for go in forwarded {
        rate = go.rate;
        pending.extend(go.pending);
    }
    let late_ms = upstream.whole_timeout_ms.saturating_add(TRAP_MARGIN_MS);
    // A client cannot cancel `initialize`, and its answer has the session in its head.
    let streams = fields.names(EVENT_STREAM) && !pending.iter().any(Pending::opens_session);
    let filter = ResponseFilter::new(Rc::new(asker), stated, upstream, untrusted, pending, answers);
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

/// How an answer begins that is streamed before it is there.
struct Early {
    head: Head,
    /// Of the request.
    id: String,
    /// When the stream ends though no answer came.
    late_ms: u32,
}

/// The answer as it is; or, once the client has waited for [`PROBE_MS`], a stream of events at once, in
/// which the answer comes later. The closing of that stream is noticed, and cancels the exchange.
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

/// Who sends a request that can be answered, and its body.
async fn authenticate(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields,
) -> Result<(Asker, Body), Refusal> {
    let era = message::era_of_header(&fields.about_the_body());
    let problem = |problem: Problem| Refusal::problem(app, era, None, &problem);
    let (token, agent, lane) = authentication::agent_token(request, app).map_err(problem)?;
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
    let admit =
        Claims::default().call((token.tenant, agent), (server, "", ""), Json::Object(Vec::new()));
    let purpose = Purpose::Message { cost: 1 };
    let command = authentication::command(request, app, &token, lane, signature, purpose, admit);
    Ok((Asker::new(app, request, command, era), body))
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
    let (mut asker, _) = authenticate(request, app, server, fields).await?;
    let stated = Claims::from_headers(|name| request.header(name)).map_err(problem)?;
    asker.open_session(fields.get("mcp-session-id"), None)?;
    if asker.session.is_none() {
        let detail = "Bad Request: Mcp-Session-Id header is required";
        return Err(Refusal::new(era, &RpcError::new(400, TRANSPORT, detail)));
    }
    let Admitted { upstream, untrusted, rate } =
        admitted(&asker, &stated, &request.method, 1, None).await?;
    let mut sent = fields.forwarded(era, &Removed::default());
    sent.push(("accept".to_owned(), EVENT_STREAM.to_owned()));
    let stated = vec![Rc::new(stated)];
    let (upstream, untrusted) = (Rc::new(upstream), Vec::from_iter(untrusted));
    let mut filter =
        ResponseFilter::new(Rc::new(asker), stated, upstream, untrusted, Vec::new(), Vec::new());
    filter.standalone = request.method == "GET";
    exchange(filter, false, sent, None, Vec::new(), rate).await
}

/// A message that calls no tool and may go on.
struct Admitted {
    upstream: Upstream,
    untrusted: Option<Untrusted>,
    rate: RateFields,
}

/// Steps 5 and on for a message that calls no tool; it is charged as so many requests.
async fn admitted(
    asker: &Asker,
    stated: &Claims,
    what: &str,
    cost: u32,
    id: Option<&str>,
) -> Result<Admitted, Refusal> {
    let purpose = Purpose::Message { cost };
    let command = asker.command(stated, purpose, (what, ""), Json::Object(Vec::new()));
    let refused = |refused| Refusal::refused(&asker.app, asker.era, id, refused);
    let Judged { reply, rate } = asker.judge(&command).await.map_err(refused)?;
    match (reply.decision, reply.upstream) {
        (None, Some(upstream)) => Ok(Admitted { upstream, untrusted: reply.untrusted, rate }),
        (Some(decision), _) => Err(denied(asker, &decision, what, id, rate)),
        (None, None) => Err(undecided(asker, id)),
    }
}

/// The answer to what is denied and is no call of a tool.
fn denied(
    asker: &Asker,
    decision: &ProxyDecision,
    what: &str,
    id: Option<&str>,
    rate: RateFields,
) -> Refusal {
    let what = [asker.server(), "/", what].concat();
    let error = denial::error(decision, &what).with_id(id);
    // A message that has no answer has a status alone.
    let status = if id.is_some() { error.status } else { 403 };
    Refusal { status, rate, ..Refusal::new(asker.era, &error) }
}

fn undecided(asker: &Asker, id: Option<&str>) -> Refusal {
    let problem = Problem::new(ProblemCode::LaneUnavailable, "the lane's answer makes no sense");
    Refusal::problem(&asker.app, asker.era, id, &problem)
}

/// What becomes of one message.
async fn judge(
    asker: &Asker,
    stated: &Rc<Claims>,
    message: Message,
) -> Result<Forwardable, Refusal> {
    let message = &message;
    let id = message.id_if_request();
    let refuse = |error: RpcError| Refusal::new(asker.era, &error.with_id(id));
    let rule = match message.kind {
        Kind::Response => {
            if asker.session.is_none() {
                let detail = "a response belongs to a session";
                return Err(refuse(RpcError::new(400, INVALID_REQUEST, detail)));
            }
            ClientRule::Pass
        }
        kind => {
            let is_notification = message.method.starts_with("notifications/");
            match method::from_client(&message.method, asker.era) {
                Some(ClientRule::Refuse(why)) => return Err(refuse(not_found(asker, kind, why))),
                None => return Err(refuse(not_found(asker, kind, "Method not found"))),
                Some(_) if is_notification != (kind == Kind::Notification) => {
                    let detail = "the method is not one of such messages";
                    return Err(refuse(RpcError::new(400, INVALID_REQUEST, detail)));
                }
                Some(rule) => rule,
            }
        }
    };
    if let ClientRule::Call | ClientRule::Action = rule {
        return decide(asker, stated, message, rule).await;
    }
    if message.text.len() > MAX_MESSAGE_BYTES {
        let detail = format!("a message that is no call has at most {MAX_MESSAGE_BYTES} bytes");
        return Err(refuse(RpcError::new(413, INVALID_REQUEST, &detail)));
    }
    let what = if message.method.is_empty() { "response" } else { &message.method };
    let candidates = match rule {
        ClientRule::Named => action::named(message).map_err(refuse)?,
        _ => Vec::new(),
    };
    // A subscription to many resources is as much work as many subscriptions.
    let cost = u32::try_from(candidates.len().max(1)).unwrap_or(u32::MAX);
    let Admitted { upstream, untrusted, rate } = admitted(asker, stated, what, cost, id).await?;
    if !candidates.is_empty() {
        let refused = |refused| Refusal::refused(&asker.app, asker.era, id, refused);
        let visible = asker.visible(stated, candidates).await.map_err(refused)?;
        if visible.iter().any(|seen| !seen.is_usable()) {
            let detail = "the agent may not use what this names";
            return Err(refuse(RpcError::in_band(DENIED, detail)));
        }
    }
    let mut removed = Removed::default();
    let text = forward::rewrite(message, &[], &asker.seal(), &mut removed).map_err(refuse)?;
    let listed = if let ClientRule::List(listed) = rule { Some(listed) } else { None };
    let pending = id.map(|id| Pending::new(id, &message.method, stated, listed, None));
    Ok(Forwardable { text, pending, upstream, untrusted, decided: None, removed, rate })
}

fn not_found(asker: &Asker, kind: Kind, why: &str) -> RpcError {
    let status = match (asker.era, kind) {
        (Era::Stateless, _) => 404,
        (Era::Session, Kind::Request) => 200,
        (Era::Session, _) => 400,
    };
    RpcError::new(status, METHOD_NOT_FOUND, why)
}

/// A call of a tool, or of what is authorized like one.
async fn decide(
    asker: &Asker,
    stated: &Rc<Claims>,
    message: &Message,
    rule: ClientRule,
) -> Result<Forwardable, Refusal> {
    let id = message.id_if_request();
    let refuse = |error: RpcError| Refusal::new(asker.era, &error.with_id(id));
    let asked = action::of(message).map_err(refuse)?;
    let what = [asker.server(), "/", &asked.tool].concat();
    // A state that is another's is refused before anything is decided of its call.
    forward::rewrite(message, &[], &asker.seal(), &mut Removed::default()).map_err(refuse)?;
    let mut command =
        asker.command(stated, Purpose::Forward, (&asked.tool, &asked.resource), asked.input);
    command.parameters = message.parameters.clone();
    let answers = message.params.get(forward::INPUT_RESPONSES).is_some();
    if answers && command.call.approval_id.is_some() {
        // People approved the call, and have not seen what is answered now.
        let detail = "an approval is for the call without `inputResponses`";
        return Err(refuse(RpcError::in_band(INVALID_PARAMS, detail)));
    }
    let refused = |refused| Refusal::refused(&asker.app, asker.era, id, refused);
    let Judged { reply, rate } = asker.judge(&command).await.map_err(refused)?;
    let Some(mut decision) = reply.decision else { return Err(undecided(asker, id)) };
    if !decision.decision.passes() {
        if rule == ClientRule::Action {
            return Err(denied(asker, &decision, &asked.tool, id, rate));
        }
        let id = id.unwrap_or("null");
        let (status, body) = denial::answer(&decision, &what, reply.denial, asker.era, id);
        return Err(Refusal { status, body, rate, retry_after_s: None });
    }
    let redacted = &decision.redacted_fields;
    if rule == ClientRule::Action && action::is_about(&command.call.input, redacted) {
        relay::record_outcome(&asker.app, &command, &decision, None, relay::not_sent());
        decision.reason = "What it is about would have to be redacted.".to_owned();
        return Err(denied(asker, &decision, &asked.tool, id, rate));
    }
    let Some(upstream) = reply.upstream else { return Err(undecided(asker, id)) };
    let mut removed = Removed::default();
    let text = forward::rewrite(message, &decision.redacted_fields, &asker.seal(), &mut removed);
    let text = text.map_err(refuse)?;
    let untrusted = reply.untrusted;
    // What becomes of the call is written down without its arguments.
    command.call.input = Json::Object(Vec::new());
    let decided: Decided = Rc::new((command, decision, untrusted.clone()));
    let let_through = Some(Rc::clone(&decided));
    let pending = id.map(|id| Pending::new(id, &message.method, stated, None, let_through));
    Ok(Forwardable { text, pending, upstream, untrusted, decided: Some(decided), removed, rate })
}
