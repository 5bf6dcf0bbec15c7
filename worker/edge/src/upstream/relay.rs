//! Sends a request to a server's upstream, and streams the response to the caller.
//!
//! A request is never sent twice. A response is not buffered: pieces are passed on as they arrive. Bodies
//! that are not inspected never enter Wasm's memory (`relay.js`).

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use gateward_core::call::command::GateCommand;
use gateward_core::gate::proxy::ProxyDecision;
use gateward_core::log::{Event, Line};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::provenance::part::MAX_READ_BYTES;
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::{CREDENTIAL_BINDING_PREFIX, Upstream};
use gateward_core::target::Target;
use gateward_core::trace::{SpanId, TraceContext};
use js_sys::Uint8Array;
use js_sys::futures::future_to_promise;
use sha2::{Digest as _, Sha256};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Result;
use worker::worker_sys::web_sys::{self, Response};

use super::hold::Hold;
use crate::app::App;
use crate::http::{self, Head, Request, pairs};
use crate::io;
use crate::log;
use crate::wait::settled;

#[wasm_bindgen(module = "/src/upstream/relay.js")]
extern "C" {
    type Exchange;

    #[wasm_bindgen(constructor)]
    fn new() -> Exchange;

    #[wasm_bindgen(method)]
    fn begin(
        this: &Exchange,
        caller: &web_sys::Request,
        url: &str,
        method: &str,
        fields: &str,
        body: Option<&[u8]>,
        first_byte_ms: u32,
        whole_ms: u32,
    ) -> js_sys::Promise;

    #[wasm_bindgen(method)]
    fn header(this: &Exchange, name: &str) -> Option<String>;

    #[wasm_bindgen(method)]
    fn headers(this: &Exchange) -> String;

    #[wasm_bindgen(method)]
    fn drop(this: &Exchange);

    #[wasm_bindgen(method)]
    fn bytes(this: &Exchange, max_bytes: u32, idle_ms: u32) -> js_sys::Promise;

    #[wasm_bindgen(method, catch)]
    fn stream(
        this: &Exchange,
        status: u16,
        fields: &str,
        max_bytes: u32,
        idle_ms: u32,
        tap: Tap,
        keep_alive_ms: Option<u32>,
        holds: bool,
        collects: u32,
    ) -> std::result::Result<Response, JsValue>;

    #[wasm_bindgen(js_name = late)]
    fn late_response(
        fields: &str,
        every_ms: u32,
        limit_ms: u32,
        answer: js_sys::Promise,
    ) -> Response;
}

/// A request to an upstream.
pub struct UpstreamRequest<'a> {
    pub method: &'a str,
    /// Starts with the server's registered address, as [`address`] returns it.
    pub url: &'a str,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Option<&'a [u8]>,
    /// The decision that lets it pass, if it needed one. Its id names Gateward's span of the trace.
    pub decision: Option<&'a ProxyDecision>,
}

/// An upstream's response whose head has arrived.
pub struct UpstreamAnswer {
    hold: Hold,
    exchange: Exchange,
    pub status: u16,
    started_at_ms: u64,
    max_result_bytes: u32,
    idle_timeout_ms: u32,
}

/// An exchange that ended without a whole response.
pub struct Broken {
    ended: Ended,
    _hold: Option<Hold>,
}

impl Broken {
    /// The problem for the caller.
    pub fn problem(&self) -> Problem {
        let (code, detail) = match self.ended.ending {
            Ending::TimedOut => (ProblemCode::UpstreamTimeout, "the server took too long"),
            Ending::TooLarge => {
                (ProblemCode::UpstreamInvalid, "the server's response is too large")
            }
            _ => (ProblemCode::UpstreamUnreachable, "the server did not answer"),
        };
        Problem::new(code, detail)
    }

    pub fn ended(&self) -> Ended {
        self.ended.clone()
    }
}

/// The outcome of a call that was allowed but not sent.
pub fn not_sent() -> Ended {
    ended(io::now_ms(), Ending::Refused, 0, 0, String::new())
}

/// How an exchange ended.
#[derive(Clone)]
pub struct Ended {
    pub ending: Ending,
    pub status: u16,
    pub bytes: u64,
    pub duration_ms: u64,
    /// Of the body, in lower-case hex; empty when none arrived.
    pub sha256: String,
}

fn ended(started_at_ms: u64, ending: Ending, status: u16, bytes: u64, sha256: String) -> Ended {
    let duration_ms = io::now_ms().saturating_sub(started_at_ms);
    Ended { ending, status, bytes, duration_ms, sha256 }
}

/// Inspects a response that is streamed to the caller.
pub trait Inspect {
    /// Returns the bytes to pass on in place of a piece; may be empty. An error ends the response as
    /// refused.
    fn piece(&mut self, piece: Vec<u8>) -> LocalBoxFuture<'_, std::result::Result<Vec<u8>, ()>>;

    /// Returns the last bytes to pass on. Not called when the caller has disconnected.
    fn end(&mut self, ending: Ending) -> Vec<u8>;

    /// Whether nothing relevant can follow, so that the response ends here.
    fn is_done(&self) -> bool;
}

/// How much of a streamed response is observed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Pieces are passed on as they arrive.
    Nothing,
    /// The last piece waits until the outcome is recorded.
    LastPiece,
    /// The same, and the body is collected up to [`MAX_READ_BYTES`].
    Body,
}

/// Called when a response has ended, with the collected bytes. If it returns a promise, the last piece of the response
/// waits for the promise.
pub type Done = Box<dyn FnOnce(Ended, Vec<u8>) -> Option<Recorded>>;

/// Resolves when it is known whether the lane has stored the outcome.
pub type Recorded = LocalBoxFuture<'static, Result<(), Problem>>;

/// Checks the upstream's address again: the rules or settings may have changed since it was registered.
pub fn address(app: &App, upstream: &Upstream) -> std::result::Result<Target, Problem> {
    let local = upstream.local && app.settings.local_targets;
    Target::parse(&upstream.url, local).map_err(|must| {
        log::write(&app.line(Event::UpstreamAddressRefused, format!("it {must}")));
        let detail = "the server's address is not allowed; the worker's log says why";
        Problem::new(ProblemCode::UpstreamForbidden, detail)
    })
}

/// The result of sending a request. The inner error is an exchange that broke off, the outer one is a
/// request that was not sent.
pub type Sent = std::result::Result<std::result::Result<UpstreamAnswer, Broken>, Problem>;

/// Sends a request with the server's credential before this returns. The result waits for the head of the
/// response, and borrows nothing. Nothing is sent if the caller has disconnected.
pub fn send(
    app: &App,
    hold: Hold,
    caller: &Request,
    tenant: &str,
    upstream: &Upstream,
    request: UpstreamRequest<'_>,
) -> impl Future<Output = Sent> + use<> {
    let begun = begin(app, hold, caller, tenant, upstream, request);
    async move {
        match begun {
            Ok(begun) => Ok(begun.answer().await),
            Err(problem) => Err(problem),
        }
    }
}

/// An exchange that waits for the head of its response.
struct Begun {
    hold: Hold,
    exchange: Exchange,
    status: js_sys::Promise,
    started_at_ms: u64,
    max_result_bytes: u32,
    idle_timeout_ms: u32,
}

fn begin(
    app: &App,
    hold: Hold,
    caller: &Request,
    tenant: &str,
    upstream: &Upstream,
    request: UpstreamRequest<'_>,
) -> std::result::Result<Begun, Problem> {
    let mut fields = String::new();
    let mut field = |name: &str, value: &str| fields.extend([name, "\n", value, "\n"]);
    // A caller must not replace the server's credential with a header of its own.
    let own = upstream.credential.as_ref().map(|credential| credential.header.as_str());
    let trace = trace_headers(app, request.decision);
    let headers = request.headers.iter().chain(&trace);
    for (name, value) in headers.filter(|(name, _)| own != Some(name.as_str())) {
        field(name, value);
    }
    if let Some(credential) = &upstream.credential {
        let origin = address(app, upstream)?.origin();
        let value = credential_value(app, &credential.binding, tenant, &origin)?;
        field(&credential.header, &value);
    }
    let started_at_ms = io::now_ms();
    let exchange = Exchange::new();
    let status = exchange.begin(
        caller.raw(),
        request.url,
        request.method,
        &fields,
        request.body,
        upstream.first_byte_timeout_ms,
        upstream.whole_timeout_ms,
    );
    Ok(Begun {
        hold,
        exchange,
        status,
        started_at_ms,
        max_result_bytes: upstream.max_result_bytes,
        idle_timeout_ms: upstream.idle_timeout_ms,
    })
}

/// The headers that continue the caller's trace, or begin one. Empty if the runtime has no randomness: a trace is not
/// worth a failed call.
fn trace_headers(app: &App, decision: Option<&ProxyDecision>) -> Vec<(String, String)> {
    let begun = || TraceContext::begin(http::random().ok()?).map(Rc::new);
    let span = decision.and_then(|decision| SpanId::of_decision(&decision.decision_id));
    let span = span.or_else(|| SpanId::new(http::random().ok()?));
    let headers = app.trace.clone().or_else(begun).zip(span);
    headers.map(|(trace, span)| trace.headers(span)).unwrap_or_default()
}

impl Begun {
    async fn answer(self) -> std::result::Result<UpstreamAnswer, Broken> {
        let Self { hold, exchange, status, started_at_ms, max_result_bytes, idle_timeout_ms } =
            self;
        match settled(Ok(status)).await {
            Ok(status) => Ok(UpstreamAnswer {
                hold,
                exchange,
                status: status.as_f64().unwrap_or_default() as u16,
                started_at_ms,
                max_result_bytes,
                idle_timeout_ms,
            }),
            Err(why) => {
                let ended = ended(started_at_ms, ending(&why), 0, 0, String::new());
                Err(Broken { ended, _hold: Some(hold) })
            }
        }
    }
}

/// The headers that Gateward itself sends to an upstream.
pub fn own_fields(
    command: &GateCommand,
    decision: Option<&ProxyDecision>,
) -> Vec<(String, String)> {
    let decided =
        decision.map(|decision| ("x-gateward-decision-id", decision.decision_id.as_str()));
    [
        ("x-gateward-tenant", command.tenant.as_str()),
        ("x-gateward-agent", command.call.agent.as_str()),
        // Bodies are inspected and passed on without decompression.
        ("accept-encoding", "identity"),
    ]
    .into_iter()
    .chain(decided)
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

/// Reads an upstream credential from its secret. The secret starts with the tenant and the origin that it
/// is for, so a change of the registry cannot send it elsewhere.
fn credential_value(
    app: &App,
    binding: &str,
    tenant: &str,
    origin: &str,
) -> std::result::Result<String, Problem> {
    let refuse = |why: &str| {
        let line = app.line(Event::UpstreamCredentialUnusable, format!("`{binding}`: {why}"));
        log::write(&Line { tenant: Some(tenant), ..line });
        let detail = "the server's credential is not set up; the worker's log says why";
        Problem::new(ProblemCode::Misconfigured, detail)
    };
    if !binding.starts_with(CREDENTIAL_BINDING_PREFIX) {
        return Err(refuse("this is not the name of an upstream credential"));
    }
    let text =
        js_sys::Reflect::get(&app.env, &binding.into()).ok().and_then(|value| value.as_string());
    let text = text.ok_or_else(|| refuse("the secret does not exist"))?;
    let mut parts = text.splitn(3, ' ');
    if parts.next() != Some(tenant) || parts.next() != Some(origin) {
        return Err(refuse("it is for another tenant or origin"));
    }
    let value = parts.next().unwrap_or_default();
    if value.is_empty() || value.contains(['\r', '\n', '\0']) {
        return Err(refuse("its value is empty or contains a line break"));
    }
    Ok(value.to_owned())
}

impl UpstreamAnswer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<String> {
        self.exchange.header(name)
    }

    /// All headers, names in lower case.
    pub fn headers(&self) -> Vec<(String, String)> {
        pairs(&self.exchange.headers())
    }

    /// Cancels the rest of the response.
    pub fn refuse(self, why: Ending) -> Ended {
        self.exchange.drop();
        ended(self.started_at_ms, why, self.status, 0, String::new())
    }

    /// Reads the whole body.
    pub async fn bytes(&self) -> std::result::Result<(Vec<u8>, Ended), Broken> {
        let read = self.exchange.bytes(self.max_result_bytes, self.idle_timeout_ms);
        match settled(Ok(read)).await {
            Ok(bytes) => {
                let bytes = Uint8Array::from(bytes).to_vec();
                let hash = hex::encode(Sha256::digest(&bytes));
                let length = bytes.len() as u64;
                let ended = ended(self.started_at_ms, Ending::Complete, self.status, length, hash);
                Ok((bytes, ended))
            }
            Err(why) => {
                let why = ending(&why);
                let ended = ended(self.started_at_ms, why, self.status, 0, String::new());
                Err(Broken { ended, _hold: None })
            }
        }
    }

    /// A response that streams this body. With an `inspect`, the body is a stream of events, and a comment is
    /// sent after so many milliseconds without an event.
    pub fn stream(
        self,
        head: Head,
        inspect: Option<(Box<dyn Inspect>, u32)>,
        watch: Watch,
        done: Option<Done>,
    ) -> Result<Response> {
        let (inspect, keep_alive_ms) = inspect.unzip();
        let (status, started_at_ms) = (self.status, self.started_at_ms);
        let collected = Vec::new();
        let tap = Tap { inspect, done, collected, status, started_at_ms, _hold: self.hold };
        let (status, fields) = head.parts();
        let (max, idle) = (self.max_result_bytes, self.idle_timeout_ms);
        let collects = if watch == Watch::Body { MAX_READ_BYTES as u32 } else { 0 };
        let holds = watch != Watch::Nothing;
        let exchange = self.exchange;
        Ok(exchange.stream(status, &fields, max, idle, tap, keep_alive_ms, holds, collects)?)
    }
}

/// A response that starts a stream of events before its content exists. `answer` is that content: events as
/// text, or a [`Response`] whose body is a stream of events. Until it is ready, a comment is sent every
/// `every_ms`. After `limit_ms` the stream ends without it.
pub fn late(
    head: Head,
    every_ms: u32,
    limit_ms: u32,
    answer: impl Future<Output = JsValue> + 'static,
) -> Response {
    let (_, fields) = head.parts();
    late_response(&fields, every_ms, limit_ms, future_to_promise(async move { Ok(answer.await) }))
}

/// Called by `relay.js` for each piece and at the end of a stream.
#[wasm_bindgen]
pub struct Tap {
    inspect: Option<Box<dyn Inspect>>,
    done: Option<Done>,
    collected: Vec<u8>,
    status: u16,
    started_at_ms: u64,
    _hold: Hold,
}

#[wasm_bindgen]
impl Tap {
    /// Keeps a copy of a piece.
    pub fn collect(&mut self, piece: &[u8]) {
        self.collected.extend_from_slice(piece);
    }

    pub fn is_done(&self) -> bool {
        self.inspect.as_ref().is_some_and(|inspect| inspect.is_done())
    }

    pub async fn piece(&mut self, piece: Vec<u8>) -> std::result::Result<Vec<u8>, JsValue> {
        let Some(inspect) = &mut self.inspect else { return Ok(piece) };
        inspect.piece(piece).await.map_err(|()| JsValue::from_str(Ending::Refused.as_str()))
    }

    /// Returns the last bytes to pass on. Fails if the values of the response could not be recorded: then its
    /// last piece must not be passed on.
    pub async fn end(
        &mut self,
        why: String,
        bytes: f64,
        sha256: String,
    ) -> std::result::Result<Vec<u8>, JsValue> {
        let ending = named(&why);
        if let Some(done) = self.done.take() {
            let ended = ended(self.started_at_ms, ending, self.status, bytes as u64, sha256);
            if let Some(recorded) = done(ended, std::mem::take(&mut self.collected)) {
                let refused = JsValue::from_str(Ending::Refused.as_str());
                recorded.await.map_err(|_| refused)?;
            }
        }
        Ok(self.inspect.as_mut().map(|inspect| inspect.end(ending)).unwrap_or_default())
    }
}

fn ending(thrown: &JsValue) -> Ending {
    thrown.as_string().map_or(Ending::UpstreamFailed, |name| named(&name))
}

fn named(name: &str) -> Ending {
    Ending::parse(name).unwrap_or(Ending::UpstreamFailed)
}
