//! Forwarding: a request of the worker's own to a server's upstream, and its answer on its way to
//! the caller.
//!
//! Nothing is sent twice. An answer that is passed on is not held: pieces go out as they come, and
//! bodies that nobody looks into never enter Wasm's memory (`relay.js`).

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use gateward_core::call::command::GateCommand;
use gateward_core::gate::proxy::{ProxyDecision, Untrusted};
use gateward_core::gate::{OutcomeCommand, TaintCommand};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::{CREDENTIAL_BINDING_PREFIX, Upstream};
use gateward_core::target::Target;
use js_sys::Uint8Array;
use js_sys::futures::{JsFuture, future_to_promise};
use sha2::{Digest as _, Sha256};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::web_sys::{self, Response};
use worker::{Date, Env, Result, console_error};

use crate::http::{Head, Request, pairs};
use crate::lanes;
use crate::router::App;

#[wasm_bindgen(module = "/src/relay.js")]
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
    /// Below the server's own address, as [`address`] makes it.
    pub url: &'a str,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Option<&'a [u8]>,
}

/// Keeps the request's context until it is dropped, though the caller goes: else nobody could write
/// down what became of the exchange.
struct Hold(Option<js_sys::Function>);

impl Hold {
    fn new(app: &App) -> Self {
        let mut settle = None;
        let settled = js_sys::Promise::new(&mut |resolve, _| settle = Some(resolve));
        app.context.wait_until(async move {
            // It is only ever resolved.
            let _ = JsFuture::from(settled).await;
        });
        Self(settle)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(settle) = &self.0 {
            // Settling a promise cannot fail.
            let _ = settle.call0(&JsValue::UNDEFINED);
        }
    }
}

/// An upstream's answer, of which the head is there.
pub struct UpstreamAnswer {
    hold: Hold,
    exchange: Exchange,
    pub status: u16,
    started_at_ms: u64,
    max_result_bytes: u32,
    idle_timeout_ms: u32,
}

/// Why there is no answer, or no more of it.
pub struct Broken {
    ended: Ended,
    _hold: Option<Hold>,
}

impl Broken {
    /// What the caller is told.
    pub fn problem(&self) -> Problem {
        let (code, detail) = match self.ended.ending {
            Ending::TimedOut => (ProblemCode::UpstreamTimeout, "the server took too long"),
            Ending::TooLarge => (ProblemCode::UpstreamInvalid, "the server's answer is too large"),
            _ => (ProblemCode::UpstreamUnreachable, "the server did not answer"),
        };
        Problem::new(code, detail)
    }

    pub fn ended(&self) -> Ended {
        self.ended.clone()
    }
}

/// The outcome of a call that was allowed and then not sent.
pub fn not_sent() -> Ended {
    ended(Date::now().as_millis(), Ending::Refused, 0, 0, String::new())
}

/// What is known of an answer when it has ended.
#[derive(Clone)]
pub struct Ended {
    pub ending: Ending,
    pub status: u16,
    pub bytes: u64,
    pub duration_ms: u64,
    /// Lower-case hex; empty when nothing came.
    pub sha256: String,
}

fn ended(started_at_ms: u64, ending: Ending, status: u16, bytes: u64, sha256: String) -> Ended {
    let duration_ms = Date::now().as_millis().saturating_sub(started_at_ms);
    Ended { ending, status, bytes, duration_ms, sha256 }
}

/// Looks into an answer that is passed on piece by piece.
pub trait Inspect {
    /// What goes out for a piece that came in: nothing, it, or something else. An error ends the
    /// answer as refused.
    fn piece(&mut self, piece: Vec<u8>) -> LocalBoxFuture<'_, std::result::Result<Vec<u8>, ()>>;

    /// What goes out last. Not asked when the caller is gone.
    fn end(&mut self, ending: Ending) -> Vec<u8>;
}

/// What happens when an answer has ended.
pub type Done = Box<dyn FnOnce(Ended)>;

/// The upstream's address, checked again: it was registered by the rules and settings of then.
pub fn address(app: &App, upstream: &Upstream) -> std::result::Result<Target, Problem> {
    let local = upstream.local && app.settings.local_targets;
    Target::parse(&upstream.url, local).map_err(|must| {
        console_error!("an upstream's address {must}");
        Problem::new(ProblemCode::UpstreamForbidden, "the server is not where it may be")
    })
}

type Sent = std::result::Result<std::result::Result<UpstreamAnswer, Broken>, Problem>;

/// Sends a request at once, with the server's own credential; the result waits for the answer's head,
/// and borrows nothing.
pub fn send(
    app: &App,
    caller: &Request,
    tenant: &str,
    upstream: &Upstream,
    request: UpstreamRequest<'_>,
) -> impl Future<Output = Sent> + use<> {
    let begun = begin(app, caller, tenant, upstream, request);
    async move {
        match begun {
            Ok(begun) => Ok(begun.answer().await),
            Err(problem) => Err(problem),
        }
    }
}

/// An exchange whose answer is not there yet.
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
    caller: &Request,
    tenant: &str,
    upstream: &Upstream,
    request: UpstreamRequest<'_>,
) -> std::result::Result<Begun, Problem> {
    let mut fields = String::new();
    let mut field = |name: &str, value: &str| fields.extend([name, "\n", value, "\n"]);
    // A caller must not stand before the credential with one of its own.
    let own = upstream.credential.as_ref().map(|credential| credential.header.as_str());
    for (name, value) in request.headers.iter().filter(|(name, _)| own != Some(name.as_str())) {
        field(name, value);
    }
    if let Some(credential) = &upstream.credential {
        let origin = address(app, upstream)?.origin();
        let value = credential_value(&app.env, &credential.binding, tenant, &origin)?;
        field(&credential.header, &value);
    }
    let started_at_ms = Date::now().as_millis();
    let hold = Hold::new(app);
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

impl Begun {
    async fn answer(self) -> std::result::Result<UpstreamAnswer, Broken> {
        let Self { hold, exchange, status, started_at_ms, max_result_bytes, idle_timeout_ms } =
            self;
        match JsFuture::from(status).await {
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

/// What Gateward says to an upstream in its own name.
pub fn own_fields(
    command: &GateCommand,
    decision: Option<&ProxyDecision>,
) -> Vec<(String, String)> {
    let decided =
        decision.map(|decision| ("x-gateward-decision-id", decision.decision_id.as_str()));
    [
        ("x-gateward-tenant", command.tenant.as_str()),
        ("x-gateward-agent", command.call.agent.as_str()),
        // Bodies are passed on as they are read.
        ("accept-encoding", "identity"),
    ]
    .into_iter()
    .chain(decided)
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect()
}

/// A credential is sent for the tenant and to the origin that stand before it, so that whoever may
/// change the registry cannot have it sent elsewhere.
fn credential_value(
    env: &Env,
    binding: &str,
    tenant: &str,
    origin: &str,
) -> std::result::Result<String, Problem> {
    let refuse = |why: &str| {
        console_error!("upstream credential `{binding}`: {why}");
        Problem::new(ProblemCode::Misconfigured, "the server's credential is not set up")
    };
    if !binding.starts_with(CREDENTIAL_BINDING_PREFIX) {
        return Err(refuse("no name of an upstream credential"));
    }
    let text = js_sys::Reflect::get(env, &binding.into()).ok().and_then(|value| value.as_string());
    let text = text.ok_or_else(|| refuse("there is no such secret"))?;
    let mut parts = text.splitn(3, ' ');
    if parts.next() != Some(tenant) || parts.next() != Some(origin) {
        return Err(refuse("it is of another tenant or for another origin"));
    }
    let value = parts.next().unwrap_or_default();
    if value.is_empty() || value.contains(['\r', '\n', '\0']) {
        return Err(refuse("it has no value that a header can have"));
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

    /// Nothing more of it is wanted.
    pub fn refuse(self, why: Ending) -> Ended {
        self.exchange.drop();
        ended(self.started_at_ms, why, self.status, 0, String::new())
    }

    /// The whole body, and what is known at its end.
    pub async fn bytes(&self) -> std::result::Result<(Vec<u8>, Ended), Broken> {
        let read = self.exchange.bytes(self.max_result_bytes, self.idle_timeout_ms);
        match JsFuture::from(read).await {
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

    /// An answer of this body, as it comes. What inspects it is of events, and a comment goes out after
    /// each time of so many milliseconds without one.
    pub fn stream(
        self,
        head: Head,
        inspect: Option<(Box<dyn Inspect>, u32)>,
        done: Option<Done>,
    ) -> Result<Response> {
        let (inspect, keep_alive_ms) = inspect.unzip();
        let (status, started_at_ms) = (self.status, self.started_at_ms);
        let tap = Tap { inspect, done, status, started_at_ms, _hold: self.hold };
        let (status, fields) = head.parts();
        let (max, idle) = (self.max_result_bytes, self.idle_timeout_ms);
        Ok(self.exchange.stream(status, &fields, max, idle, tap, keep_alive_ms)?)
    }
}

/// The head of a stream of events at once, and later as its body what `answer` gives: events as text, or
/// a [`Response`] that is such a stream. Until then a comment goes out every `every_ms`; after `limit_ms`
/// the stream ends without an answer.
pub fn late(
    head: Head,
    every_ms: u32,
    limit_ms: u32,
    answer: impl Future<Output = JsValue> + 'static,
) -> Response {
    let (_, fields) = head.parts();
    late_response(&fields, every_ms, limit_ms, future_to_promise(async move { Ok(answer.await) }))
}

/// What `relay.js` tells of a stream.
#[wasm_bindgen]
pub struct Tap {
    inspect: Option<Box<dyn Inspect>>,
    done: Option<Done>,
    status: u16,
    started_at_ms: u64,
    _hold: Hold,
}

#[wasm_bindgen]
impl Tap {
    pub async fn piece(&mut self, piece: Vec<u8>) -> std::result::Result<Vec<u8>, JsValue> {
        let Some(inspect) = &mut self.inspect else { return Ok(piece) };
        inspect.piece(piece).await.map_err(|()| JsValue::from_str(Ending::Refused.as_str()))
    }

    pub fn end(&mut self, why: &str, bytes: f64, sha256: String) -> Vec<u8> {
        let ending = named(why);
        if let Some(done) = self.done.take() {
            done(ended(self.started_at_ms, ending, self.status, bytes as u64, sha256));
        }
        self.inspect.as_mut().map(|inspect| inspect.end(ending)).unwrap_or_default()
    }
}

fn ending(thrown: &JsValue) -> Ending {
    thrown.as_string().map_or(Ending::UpstreamFailed, |name| named(&name))
}

fn named(name: &str) -> Ending {
    [Ending::Complete, Ending::CallerGone, Ending::TimedOut, Ending::TooLarge, Ending::Refused]
        .into_iter()
        .find(|ending| ending.as_str() == name)
        .unwrap_or(Ending::UpstreamFailed)
}

/// Text of an untrusted server marks its agent anew when the last mark is older than this: a server
/// that sends a thousand notifications then costs a hop a second.
pub const MARK_INTERVAL_MS: u64 = 1_000;

/// Marks the agent before text of an untrusted server reaches it.
///
/// # Errors
///
/// The lane did not take the mark: the text must not be passed on.
pub async fn mark(app: &App, command: &GateCommand, untrusted: &Untrusted) -> Result<(), Problem> {
    let command = TaintCommand {
        tenant: command.tenant.clone(),
        lane: command.lane,
        agent: command.call.agent.clone(),
        server: command.call.server.clone(),
        run: untrusted.run.clone(),
        period_ms: untrusted.period_ms,
    };
    lanes::taint(&app.env, &command).await
}

/// Has the lane write down what became of a forwarded call, without waiting for it.
pub fn record_outcome(
    app: &App,
    command: &GateCommand,
    decision: &ProxyDecision,
    untrusted: Option<&Untrusted>,
    ended: Ended,
) {
    let Some(receipt) = &decision.receipt else { return };
    let outcome = OutcomeCommand {
        tenant: command.tenant.clone(),
        lane: command.lane,
        agent: command.call.agent.clone(),
        server: command.call.server.clone(),
        tool: command.call.tool.clone(),
        decision_id: decision.decision_id.clone(),
        decision_hash: receipt.receipt_hash.clone(),
        status: ended.status,
        bytes: ended.bytes,
        duration_ms: ended.duration_ms,
        result_sha256: ended.sha256,
        ending: ended.ending,
        untrusted: untrusted.cloned(),
    };
    let env = app.env.clone();
    Rc::clone(&app.context).wait_until(async move {
        if let Err(problem) = lanes::record_outcome(&env, &outcome).await {
            console_error!("outcome of `{}`: {}", outcome.decision_id, problem.detail);
        }
    });
}
