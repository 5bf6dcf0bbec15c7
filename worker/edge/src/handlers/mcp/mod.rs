//! `/mcp/{server}`: a filtering reverse proxy for MCP servers, for both eras of the protocol.
//!
//! The core classifies each message (`gateward_core::mcp`), and the lane decides it, or lets it pass. Only then is it
//! forwarded, unchanged. A message that cannot be parsed is answered here.

mod ask;
mod client;
mod discovered;
mod exchange;
mod fields;
mod inspect;
mod judge;
mod marks;
mod recheck;
mod refusal;
mod response_filter;

use std::mem;
use std::pin::pin;
use std::rc::Rc;

use futures_util::future::{Either, select};
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::isolate::memory::Held;
use gateward_core::json::Json;
use gateward_core::mcp::error::{INVALID_REQUEST, RpcError, TRANSPORT, as_event};
use gateward_core::mcp::message::{self, Headers, Received};
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::sse::{self, EVENT_STREAM};
use gateward_core::mcp::{Era, origin, response};
use gateward_core::problem::Problem;

use self::ask::{PassedMessage, ask_lane};
use self::client::McpClient;
use self::exchange::{Forwarded, McpResponse, PROBE_MS, exchange};
use self::fields::Fields;
use self::judge::judge_all;
use self::refusal::{JSON, Refusal};
use self::response_filter::{Pending, ResponseFilter};
use crate::answer::{Answered, whole};
use crate::app::App;
use crate::authentication;
use crate::http::{Body, Head, RateFields, Request};
use crate::upstream::hold::Hold;
use crate::upstream::passed::Passed;
use crate::upstream::relay;
use crate::wait::Pause;

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
        Ok(McpResponse::Stream(response)) => whole(Ok(response)),
        Ok(McpResponse::Message { head, body }) => whole(head.with(&body)),
        Err(refusal) => refusal.respond(app, request, era),
    }
}

/// The messages of a POST, and who sends them.
struct Posted {
    client: McpClient,
    received: Received,
    /// The id of the only message, if that is a request. An error about a whole batch has no id.
    id: Option<String>,
    /// The memory that the messages take.
    held: Held,
}

async fn post(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields<'_>,
    headers: &Headers,
) -> Result<McpResponse, Refusal> {
    let Posted { client, received, id, held } =
        receive(request, app, server, fields, headers).await?;
    let era = received.era;
    // The claims of all messages are read before any message is decided.
    let mut claims = Vec::new();
    for message in &received.messages {
        claims.push(Rc::new(client.claims(message, id.as_deref())?));
    }

    let hold = Hold::new(app);
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
    let exchange = exchange(hold, filter, received.batch, sent, forwarded, decided, rate);
    match early {
        Some(early) => streamed_if_late(early, exchange).await,
        None => exchange.await,
    }
}

/// Authenticates a POST, and reads its messages.
async fn receive(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields<'_>,
    headers: &Headers,
) -> Result<Posted, Refusal> {
    let (mut client, Body { bytes, mut held }) = authenticate(request, app, server, fields).await?;
    let received =
        message::receive(&bytes, headers).map_err(|(era, error)| Refusal::new(era, &error))?;
    client.era = received.era;
    client.in_batch = received.batch;
    client.continue_trace(&received.messages);
    let id = match received.messages.as_slice() {
        [only] if !received.batch => only.id_if_request().map(str::to_owned),
        _ => None,
    };
    // Two copies of the text: received and forwarded. Two copies of the arguments: parsed and in the call.
    let parsed: usize = received.messages.iter().map(|message| message.params.heap_bytes()).sum();
    if !held.resize(2 * (bytes.len() + parsed)) {
        return Err(Refusal::problem(app, client.era, id.as_deref(), &Problem::overloaded()));
    }
    client.open_session(fields.get("mcp-session-id"), id.as_deref())?;
    Ok(Posted { client, received, id, held })
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
    exchange: impl Future<Output = Result<McpResponse, Refusal>> + 'static,
) -> Result<McpResponse, Refusal> {
    let patience = Pause::new(PROBE_MS.into());
    let exchange = match select(Box::pin(exchange), pin!(patience)).await {
        Either::Left((answered, _)) => return answered,
        Either::Right(((), exchange)) => exchange,
    };
    let late = relay::late(head, PROBE_MS, late_ms, async move {
        let body = match exchange.await {
            Ok(McpResponse::Stream(response)) => return response.into(),
            Ok(McpResponse::Message { body, .. }) | Err(Refusal { body, .. }) => body,
        };
        sse::message(&as_event(body, &id)).into()
    });
    Ok(McpResponse::Stream(late))
}

/// Authenticates a request, and reads its body.
async fn authenticate(
    request: &Rc<Request>,
    app: &App,
    server: &str,
    fields: &Fields<'_>,
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
    fields: &Fields<'_>,
) -> Result<McpResponse, Refusal> {
    let era = Era::Session;
    let problem = |problem: Problem| Refusal::problem(app, era, None, &problem);
    let (mut client, _) = authenticate(request, app, server, fields).await?;
    let claims = Claims::from_headers(|name| request.header(name).map(str::to_owned));
    let claims = claims.and_then(|claims| client.in_assigned_run(claims)).map_err(problem)?;
    if !fields.names_session_version() {
        let detail = "Bad Request: Unsupported protocol version";
        return Err(Refusal::new(era, &RpcError::new(400, TRANSPORT, detail)));
    }
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
    exchange(Hold::new(app), filter, false, sent, None, Vec::new(), rate).await
}
