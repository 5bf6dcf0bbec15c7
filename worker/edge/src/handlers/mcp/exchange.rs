//! One request to a server, and the response that the client gets.

use std::rc::Rc;

use futures_util::future::try_join_all;
use futures_util::{FutureExt as _, TryFutureExt as _};
use gateward_core::isolate::memory::Held;
use gateward_core::mcp::error::{RpcError, SESSION_NOT_FOUND, TRANSPORT, status_of_answer};
use gateward_core::mcp::seal::Handle;
use gateward_core::mcp::sse::{self, EVENT_STREAM};
use gateward_core::mcp::{Era, response};
use gateward_core::problem::Problem;
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::Upstream;
use worker::worker_sys::web_sys::Response;

use super::client::McpClient;
use super::refusal::{self, Refusal};
use super::response_filter::ResponseFilter;
use crate::app::App;
use crate::http::{Head, RateFields};
use crate::upstream::hold::Hold;
use crate::upstream::passed::{self, Passed};
use crate::upstream::relay::{
    self, Broken, Done, Ended, Inspect, Recorded, Sent, UpstreamAnswer, UpstreamRequest, Watch,
};

/// How often a comment is sent on the idle stream of a session, so that no intermediary closes it.
const KEEP_ALIVE_MS: u32 = 15_000;

/// How often a comment is sent while a client waits for a response. The runtime notices an orderly closed
/// connection only when it writes to it, and a disconnect must cancel the server's request within a
/// second.
pub const PROBE_MS: u32 = 500;

/// Bytes of a server's session id. The specification sets no bound; real ids are far shorter.
const MAX_SESSION_BYTES: usize = 1_024;

/// The text to forward, and the memory that is counted for it.
pub struct Forwarded {
    pub text: String,
    pub held: Held,
}

/// The response to an HTTP request.
pub enum McpResponse {
    /// A JSON text; may be empty.
    Message { head: Head, body: String },
    /// A stream of events that the server sends.
    Stream(Response),
}

/// Sends a request to the server, and turns its response into the client's.
pub async fn exchange(
    hold: Hold,
    filter: ResponseFilter,
    batch: bool,
    fields: Vec<(String, String)>,
    body: Option<Forwarded>,
    decided: Vec<Rc<Passed>>,
    rate: RateFields,
) -> Result<McpResponse, Refusal> {
    let (client, id) = (Rc::clone(&filter.client), filter.only_id());
    let mut exchange = Exchange { client, id, decided, rate, session: None };
    let (sent, held) = match exchange.send(hold, &filter.upstream, fields, body) {
        Ok(sending) => sending,
        Err(problem) => return Err(exchange.not_sent(&problem)),
    };
    let sent = sent.await;
    drop(held);
    let answer = match sent {
        Ok(Ok(answer)) => answer,
        Ok(Err(broken)) => return Err(exchange.broken(&broken)),
        Err(problem) => return Err(exchange.not_sent(&problem)),
    };
    exchange.session = sealed_session(&exchange.client, &answer);
    let kind = answer.header("content-type").unwrap_or_default();
    let succeeded = is_success(answer.status);
    if succeeded && sse::is_stream(&kind) && (filter.standalone || !filter.is_done()) {
        return exchange.stream(filter, answer);
    }
    if succeeded && filter.is_done() && !filter.standalone {
        return Ok(exchange.done(filter.answers, batch, answer));
    }
    exchange.whole(filter, batch, answer).await
}

/// A request to the server, until the client has its response.
struct Exchange {
    client: Rc<McpClient>,
    /// The id of the request, if there is exactly one.
    id: Option<String>,
    /// The calls of the request that were decided.
    decided: Vec<Rc<Passed>>,
    rate: RateFields,
    /// The server's session id, sealed for the client. Set when the response arrives.
    session: Option<String>,
}

impl Exchange {
    /// Sends the request before this returns. The text's memory counts until the result's second part is dropped.
    fn send(
        &self,
        hold: Hold,
        upstream: &Upstream,
        mut fields: Vec<(String, String)>,
        body: Option<Forwarded>,
    ) -> Result<(impl Future<Output = Sent> + use<>, Held), Problem> {
        let McpClient { app, request: caller, template, session, .. } = &*self.client;
        if let Some(session) = session {
            fields.push(("mcp-session-id".to_owned(), session.clone()));
        }
        let decision = self.decided.first().map(|passed| &passed.decision);
        fields.extend(relay::own_fields(template, decision));
        let url = relay::address(app, upstream)?;
        let (text, mut held) = body.map_or_else(Default::default, |body| (body.text, body.held));
        let body = Some(text.as_bytes()).filter(|text| !text.is_empty());
        let (method, url) = (caller.method.as_str(), url.as_str());
        let request = UpstreamRequest { method, url, headers: fields, body, decision };
        let sent = relay::send(app, hold, caller, &template.tenant, upstream, request);
        // From here on only the runtime holds the text, until it is sent.
        held.resize(text.len());
        Ok((sent, held))
    }

    /// Records how the calls ended.
    fn record(&self, ended: Ended) -> Option<Recorded> {
        record(&self.client.app, &self.decided, ended)
    }

    /// The client's stream of the server's events. The outcome is recorded at its end.
    fn stream(
        self,
        filter: ResponseFilter,
        answer: UpstreamAnswer,
    ) -> Result<McpResponse, Refusal> {
        let app = self.client.app.clone();
        let head = self.with_fields(stream_head(&app));
        // A session's own stream stays open as long as the session, so it needs fewer comments.
        let keep_alive_ms = if filter.standalone { KEEP_ALIVE_MS } else { PROBE_MS };
        let inspect: Box<dyn Inspect> = Box::new(filter);
        let Self { client, id, decided, .. } = self;
        let observes = decided.iter().any(|passed| passed.rules.observe.is_some());
        let watch = if observes { Watch::LastPiece } else { Watch::Nothing };
        let done: Done = Box::new(move |ended, _| record(&app, &decided, ended));
        match answer.stream(head, Some((inspect, keep_alive_ms)), watch, Some(done)) {
            Ok(response) => Ok(McpResponse::Stream(response)),
            Err(_) => Err(client.undecided(id.as_deref())),
        }
    }

    /// The response when no request waits for the server: Gateward's own `answers`.
    fn done(&self, answers: Vec<String>, batch: bool, answer: UpstreamAnswer) -> McpResponse {
        drop(self.record(answer.refuse(Ending::Complete)));
        match answers.is_empty() {
            true if self.client.request.method == "DELETE" => self.message(200, String::new()),
            true => self.message(202, String::new()),
            false => self.message(200, response::join(answers, batch)),
        }
    }

    /// Reads the server's response to its end and filters it. The client gets it when the values of the calls are
    /// recorded.
    async fn whole(
        &self,
        mut filter: ResponseFilter,
        batch: bool,
        answer: UpstreamAnswer,
    ) -> Result<McpResponse, Refusal> {
        let (bytes, ended) = match answer.bytes().await {
            Ok(read) => read,
            Err(broken) => return Err(self.broken(&broken)),
        };
        if let Err(refusal) = filter.recheck(self.id.as_deref()).await {
            drop(self.record(Ended { ending: Ending::Refused, ..ended }));
            return Err(refusal);
        }
        let (era, status) = (self.client.era, answer.status);
        let refused = refused_status(status, self.client.session.is_some());
        let settled = match refused {
            Some(_) if matches!(status, 300..=399 | 401 | 402 | 403 | 407) => None,
            _ => filter.whole(&bytes, status, batch).await,
        };
        let Some(body) = settled else {
            drop(self.record(Ended { ending: Ending::Refused, ..ended }));
            let error = refused.unwrap_or_else(|| {
                RpcError::upstream("the server's response does not answer the request")
            });
            let refusal = Refusal::new(era, &error.with_id(self.id.as_deref()));
            return Err(Refusal { rate: self.rate.clone(), ..refusal });
        };
        if let Some(recorded) = self.record(ended) {
            recorded.await.map_err(|why| self.refuse(&why))?;
        }
        let status = if is_success(status) { 200 } else { status_of_answer(era, status, &body) };
        Ok(self.message(status, body))
    }

    fn message(&self, status: u16, body: String) -> McpResponse {
        let McpClient { app, request, era, .. } = &*self.client;
        let head = refusal::head(app, request, *era, status);
        McpResponse::Message { head: self.with_fields(head), body }
    }

    /// Adds the session and the rate limits to the head of a response.
    fn with_fields(&self, head: Head) -> Head {
        self.rate.add_to(match &self.session {
            Some(session) => head.field("mcp-session-id", session),
            None => head,
        })
    }

    fn not_sent(&self, problem: &Problem) -> Refusal {
        drop(self.record(relay::not_sent()));
        self.refuse(problem)
    }

    fn broken(&self, broken: &Broken) -> Refusal {
        drop(self.record(broken.ended()));
        self.refuse(&broken.problem())
    }

    fn refuse(&self, problem: &Problem) -> Refusal {
        let McpClient { app, era, .. } = &*self.client;
        let refusal = Refusal::problem(app, *era, self.id.as_deref(), problem);
        Refusal { rate: self.rate.clone(), ..refusal }
    }
}

/// Records how calls ended. If it returns a promise, the response must wait for it.
fn record(app: &App, decided: &[Rc<Passed>], ended: Ended) -> Option<Recorded> {
    let recorded =
        decided.iter().filter_map(|passed| passed::record_outcome(app, passed, ended.clone()));
    let recorded: Vec<_> = recorded.collect();
    (!recorded.is_empty()).then(|| try_join_all(recorded).map_ok(drop).boxed_local() as Recorded)
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// The head of a stream of events.
pub fn stream_head(app: &App) -> Head {
    Head::bare(200)
        .field("content-type", EVENT_STREAM)
        .field("cache-control", "no-store, no-transform")
        .field("x-accel-buffering", "no")
        .field("x-request-id", &app.request_id)
}

/// The error that replaces an upstream's refusal whose body is not JSON-RPC. Statuses that have a meaning in
/// the protocol are kept.
fn refused_status(status: u16, in_session: bool) -> Option<RpcError> {
    let error = |status, code, text: &str| Some(RpcError::new(status, code, text));
    match status {
        200..=299 => None,
        404 if in_session => error(404, SESSION_NOT_FOUND, "Session not found"),
        400 | 404 | 405 | 406 | 415 => error(status, TRANSPORT, "the server refused the request"),
        _ => Some(RpcError::upstream("the server answered with an error status")),
    }
}

/// The server's session id, sealed for the client.
fn sealed_session(client: &McpClient, answer: &UpstreamAnswer) -> Option<String> {
    let id = answer.header("mcp-session-id")?;
    let is_id = id.len() <= MAX_SESSION_BYTES && id.bytes().all(|byte| byte.is_ascii_graphic());
    (client.era == Era::Session && is_id).then(|| client.seal(None).seal(Handle::Session, &id))
}
