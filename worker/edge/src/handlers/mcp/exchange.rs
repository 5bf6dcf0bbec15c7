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
use worker::worker_sys::web_sys::Response;

use super::client::McpClient;
use super::refusal::{self, Refusal};
use super::response_filter::ResponseFilter;
use crate::app::App;
use crate::http::{Head, RateFields};
use crate::upstream::passed::{self, Passed};
use crate::upstream::relay::{
    self, Done, Ended, Inspect, Recorded, UpstreamAnswer, UpstreamRequest, Watch,
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
pub enum Answer {
    /// A JSON text; may be empty.
    Message { head: Head, body: String },
    /// A stream of events that the server sends.
    Stream(Response),
}

/// Sends a request to the server, and turns its response into the client's.
pub async fn exchange(
    mut filter: ResponseFilter,
    batch: bool,
    mut fields: Vec<(String, String)>,
    body: Option<Forwarded>,
    decided: Vec<Rc<Passed>>,
    rate: RateFields,
) -> Result<Answer, Refusal> {
    let client = Rc::clone(&filter.client);
    let (app, era) = (&client.app, client.era);
    let id = filter.only_id();
    let problem = |problem: &Problem| Refusal {
        rate: rate.clone(),
        ..Refusal::problem(app, era, id.as_deref(), problem)
    };
    if let Some(session) = &client.session {
        fields.push(("mcp-session-id".to_owned(), session.clone()));
    }
    let first = decided.first().cloned();
    let decision = first.as_ref().map(|passed| &passed.decision);
    fields.extend(relay::own_fields(&client.template, decision));
    let recording = app.clone();
    let observes = decided.iter().any(|passed| passed.rules.observe.is_some());
    let outcome = move |ended: Ended| {
        let recorded = decided
            .iter()
            .filter_map(|passed| passed::record_outcome(&recording, passed, ended.clone()));
        let recorded: Vec<_> = recorded.collect();
        (!recorded.is_empty())
            .then(|| try_join_all(recorded).map_ok(drop).boxed_local() as Recorded)
    };
    let not_sent = |why: Problem| {
        drop(outcome(relay::not_sent()));
        problem(&why)
    };
    let http_method = client.request.method.as_str();
    let upstream = Rc::clone(&filter.upstream);
    let url = relay::address(app, &upstream).map_err(not_sent)?;
    let (text, mut held) = body.map_or_else(Default::default, |body| (body.text, body.held));
    let body = Some(text.as_bytes()).filter(|text| !text.is_empty());
    let request =
        UpstreamRequest { method: http_method, url: url.as_str(), headers: fields, body, decision };
    let sent = relay::send(app, &client.request, &client.template.tenant, &upstream, request);
    // From here on only the runtime holds the text, until it is sent.
    held.resize(text.len());
    drop(text);
    let sent = sent.await;
    drop(held);
    let answer = match sent.map_err(not_sent)? {
        Ok(answer) => answer,
        Err(broken) => {
            drop(outcome(broken.ended()));
            return Err(problem(&broken.problem()));
        }
    };
    let status = answer.status;
    let kind = answer.header("content-type").unwrap_or_default();
    let succeeded = (200..300).contains(&status);
    let session = sealed_session(&client, &answer);
    let head = |status| refusal::head(app, &client.request, era, status);
    let with_session = |head: Head| match &session {
        Some(session) => head.field("mcp-session-id", session),
        None => head,
    };
    if succeeded && sse::is_stream(&kind) && (filter.standalone || !filter.is_done()) {
        let head = rate.add_to(with_session(stream_head(app)));
        // A session's own stream stays open as long as the session, so it needs fewer comments.
        let keep_alive_ms = if filter.standalone { KEEP_ALIVE_MS } else { PROBE_MS };
        let inspect: Box<dyn Inspect> = Box::new(filter);
        let watch = if observes { Watch::LastPiece } else { Watch::Nothing };
        let done: Done = Box::new(move |ended, _| outcome(ended));
        let streamed = answer.stream(head, Some((inspect, keep_alive_ms)), watch, Some(done));
        return match streamed {
            Ok(response) => Ok(Answer::Stream(response)),
            Err(_) => Err(client.undecided(id.as_deref())),
        };
    }
    if succeeded && filter.is_done() && !filter.standalone {
        drop(outcome(answer.refuse(Ending::Complete)));
        let answers = std::mem::take(&mut filter.answers);
        let (status, body) = match answers.is_empty() {
            true if http_method == "DELETE" => (200, String::new()),
            true => (202, String::new()),
            false => (200, response::join(answers, batch)),
        };
        return Ok(Answer::Message { head: rate.add_to(with_session(head(status))), body });
    }
    let (bytes, ended) = match answer.bytes().await {
        Ok(read) => read,
        Err(broken) => {
            drop(outcome(broken.ended()));
            return Err(problem(&broken.problem()));
        }
    };
    let refused = refused_status(status, client.session.is_some());
    let settled = match refused {
        Some(_) if matches!(status, 300..=399 | 401 | 402 | 403 | 407) => None,
        _ => filter.whole(&bytes, status, batch).await,
    };
    match settled {
        Some(body) => {
            if let Some(recorded) = outcome(ended) {
                recorded.await.map_err(|why| problem(&why))?;
            }
            let status = if succeeded { 200 } else { status_of_answer(era, status, &body) };
            Ok(Answer::Message { head: rate.add_to(with_session(head(status))), body })
        }
        None => {
            drop(outcome(Ended { ending: Ending::Refused, ..ended }));
            let error = refused.unwrap_or_else(|| {
                RpcError::upstream("the server's response does not answer the request")
            });
            Err(Refusal { rate, ..Refusal::new(era, &error.with_id(id.as_deref())) })
        }
    }
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
    (client.era == Era::Session && is_id).then(|| client.seal().seal(Handle::Session, &id))
}
