//! Requests as handlers see them, responses, and the bounds on what is read.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::Display;
use std::net::IpAddr;

use gateward_core::bounds::MAX_BODY_BYTES;
use gateward_core::gate::proxy::ProxyDecision;
use gateward_core::isolate::memory::Held;
use gateward_core::limit::rate_headers::RateHeaders;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::trace::{TRACESTATE, TraceContext};
use js_sys::Uint8Array;
use serde::Serialize;
use url::form_urlencoded;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::Result;
use worker::worker_sys::web_sys::{self, Response};

use crate::answer::internal;
use crate::limits::BODY_MS;
use crate::wait::settled;
use crate::{io, memory};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = crypto, js_name = randomUUID)]
    pub fn random_uuid() -> String;

    #[wasm_bindgen(catch, js_namespace = crypto, js_name = getRandomValues)]
    fn random_values(into: &mut [u8]) -> std::result::Result<JsValue, JsValue>;
}

/// Cryptographically random bytes.
pub fn random<const LENGTH: usize>() -> std::result::Result<[u8; LENGTH], Problem> {
    let mut bytes = [0; LENGTH];
    let none = |_| internal("the runtime has no randomness");
    random_values(&mut bytes).map_err(none)?;
    Ok(bytes)
}

/// The `WWW-Authenticate` header of a 401 (RFC 6750).
pub const AUTHENTICATE: &str = "Bearer realm=\"gateward\"";

/// Bytes of a refused body that are read and dropped: 32 times the largest accepted body. The connection
/// of a sender that sends more is closed.
const MAX_DROPPED_BYTES: u32 = 8 * 1024 * 1024;

/// The longest `X-Request-Id` that a caller may set.
const MAX_HTTP_REQUEST_ID_BYTES: usize = 64;

/// Bytes of policy ids in a header. Ids that do not fit are only in the decision's record. nginx accepts
/// 4 KiB of headers in all.
const MAX_POLICIES_BYTES: usize = 1_024;

/// Headers that every call is asked for and few have. `describe` in `io.js` reads them in this order, because reading all
/// headers takes longer than the rest of it.
const OPTIONAL: [&str; 4] = ["prefer", "x-tenuo-warrant", "x-tenuo-pop", "x-tenuo-approvals"];

/// A request's body. Its memory is counted until this is dropped.
#[derive(Default)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub held: Held,
}

/// A request. An absent header is an empty string.
pub struct Request {
    pub method: String,
    url: String,
    pub authorization: String,
    content_type: String,
    /// The header's value; `0` when there is no body, empty when its length is not known.
    content_length: String,
    request_id: String,
    /// The connecting address, from the header of the platform in front.
    connecting_address: String,
    /// How the request is signed; empty if it is not: docs/signing.md.
    pub signature_input: String,
    traceparent: String,
    /// The values of [`OPTIONAL`].
    optional: [Option<String>; 4],
    raw: web_sys::Request,
    /// All headers, once something asked for one that is not above.
    fields: OnceCell<Vec<(String, String)>>,
    /// Whether the body was read or dropped.
    read: Cell<bool>,
    /// What a lane said about the rate of the agent that reads or reports.
    pub rate: RefCell<RateFields>,
}

impl Request {
    /// `address_header` is the header in which the platform in front puts the connecting address.
    pub fn read(raw: web_sys::Request, address_header: Option<&str>) -> Self {
        let described = io::describe(&raw, address_header.unwrap_or_default());
        let mut lines = described.split('\n').map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        let optional = |line: String| line.strip_prefix('=').map(str::to_owned);
        Self {
            method: next(),
            url: next(),
            authorization: next(),
            content_type: next(),
            content_length: next(),
            request_id: next(),
            connecting_address: next(),
            signature_input: next(),
            traceparent: next(),
            optional: OPTIONAL.map(|_| optional(next())),
            raw,
            fields: OnceCell::new(),
            read: Cell::new(false),
            rate: RefCell::default(),
        }
    }

    /// The caller's `X-Request-Id` if it is a plain token, else a new UUID.
    pub fn id(&self) -> String {
        let id = &self.request_id;
        let plain = (1..=MAX_HTTP_REQUEST_ID_BYTES).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if plain { id.clone() } else { random_uuid() }
    }

    /// The caller's trace; `None` if it sent none, or a malformed one.
    pub fn trace(&self) -> Option<TraceContext> {
        TraceContext::read(&self.traceparent, || self.header(TRACESTATE).map(str::to_owned))
    }

    /// The path as it was sent, from the first slash on. Dots and backslashes are not normalized.
    pub fn path(&self) -> &str {
        let (path, _) = self.path_and_query();
        path
    }

    /// The query's names and values, decoded.
    pub fn query(&self) -> form_urlencoded::Parse<'_> {
        form_urlencoded::parse(self.raw_query().as_bytes())
    }

    /// The query as it was sent, without the question mark.
    pub fn raw_query(&self) -> &str {
        let (_, query) = self.path_and_query();
        query
    }

    /// Scheme, host and port of the URL.
    pub fn origin(&self) -> &str {
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let host = rest.split('/').next().unwrap_or_default();
        self.url.get(..scheme.len() + 3 + host.len()).unwrap_or_default()
    }

    /// Path and query as they were sent.
    pub fn path_with_query(&self) -> &str {
        let after_scheme = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let whole = after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or("/");
        whole.split('#').next().unwrap_or_default()
    }

    fn path_and_query(&self) -> (&str, &str) {
        let whole = self.path_with_query();
        whole.split_once('?').unwrap_or((whole, ""))
    }

    /// The runtime's own request.
    pub fn raw(&self) -> &web_sys::Request {
        &self.raw
    }

    /// A header that is not a field of its own in this struct.
    pub fn header(&self, name: &str) -> Option<&str> {
        if let Some(at) = OPTIONAL.iter().position(|optional| *optional == name) {
            return self.optional.get(at)?.as_deref();
        }
        let (_, value) =
            self.headers().iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// All headers; names are in lower case. They are read from the runtime once.
    pub fn headers(&self) -> &[(String, String)] {
        self.fields.get_or_init(|| pairs(&io::headers(&self.raw)))
    }

    /// The connecting address. `None` when no header is trusted for it, or when its value is not one
    /// address.
    pub fn source_address(&self) -> Option<IpAddr> {
        self.connecting_address.parse().ok()
    }

    /// Step 1: a JSON body. Bytes above the bound are never held in memory.
    pub async fn json_body(&self) -> std::result::Result<Body, Problem> {
        self.require_json()?;
        self.body().await
    }

    pub fn require_json(&self) -> std::result::Result<(), Problem> {
        let media_type = self.content_type.split(';').next().unwrap_or_default().trim();
        if media_type.eq_ignore_ascii_case("application/json") {
            return Ok(());
        }
        let detail = "the body must have the content type `application/json`";
        Err(Problem::new(ProblemCode::UnsupportedMediaType, detail))
    }

    /// A body of any type, within the same bound. Its memory is counted before any of it is read.
    pub async fn body(&self) -> std::result::Result<Body, Problem> {
        let too_large = || {
            let detail = format!("the body has more than {MAX_BODY_BYTES} bytes");
            Problem::new(ProblemCode::BodyTooLarge, detail)
        };
        // The runtime enforces the declared length.
        let length: Option<usize> = self.content_length.parse().ok();
        match length {
            Some(0) => return Ok(Body::default()),
            Some(length) if length > MAX_BODY_BYTES => return Err(too_large()),
            _ => {}
        }
        let mut held = memory::hold_body(length.unwrap_or(MAX_BODY_BYTES))?;
        self.read.set(true);
        let bytes = if length.is_some() {
            let read = settled(Ok(io::body(&self.raw, BODY_MS))).await;
            Uint8Array::new(&read.map_err(|_| unreadable())?).to_vec()
        } else {
            self.read_at_most(MAX_BODY_BYTES).await?.ok_or_else(too_large)?
        };
        held.resize(memory::of_body(bytes.len()));
        Ok(Body { bytes, held })
    }

    /// Reads and drops a body that no handler has read, so that its sender gets the response. Most clients
    /// report a broken connection if it is closed while they still send.
    pub async fn drop_unread_body(&self) {
        if !self.read.replace(true) && self.content_length != "0" {
            // If the body breaks off, no sender waits for the response.
            let _ = self.read_at_most(0).await;
        }
    }

    /// `None`: the body is longer than the bound, and was read and dropped.
    async fn read_at_most(&self, max: usize) -> std::result::Result<Option<Vec<u8>>, Problem> {
        let read = io::read(&self.raw, max as u32, MAX_DROPPED_BYTES, BODY_MS);
        let read = settled(Ok(read)).await.map_err(|_| unreadable())?;
        Ok((!read.is_undefined()).then(|| Uint8Array::from(read).to_vec()))
    }
}

/// Reads names and values, each on its own line.
pub fn pairs(fields: &str) -> Vec<(String, String)> {
    let mut lines = fields.split('\n').map(str::to_owned);
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (lines.next(), lines.next()) {
        pairs.push((name, value));
    }
    pairs
}

fn unreadable() -> Problem {
    Problem::new(
        ProblemCode::MalformedRequest,
        "the body could not be read; send the request again",
    )
}

/// A response without its body.
pub struct Head {
    status: u16,
    /// Headers in the form of `io.js`: name, line break, value, line break.
    fields: String,
}

impl Head {
    /// The head of a JSON response.
    pub fn new(status: u16, request_id: &str) -> Self {
        let kind = if status < 400 { "application/json" } else { "application/problem+json" };
        let head = Self::of_type(status, kind, request_id);
        if status == 401 { head.field("www-authenticate", AUTHENTICATE) } else { head }
    }

    /// The head of a response of another type.
    pub fn of_type(status: u16, media_type: &str, request_id: &str) -> Self {
        let head = Self { status, fields: String::with_capacity(256) };
        let head = head.field("content-type", media_type).field("cache-control", "no-store");
        head.field("x-request-id", request_id)
    }

    /// A status without headers.
    pub fn bare(status: u16) -> Self {
        Self { status, fields: String::new() }
    }

    /// The head of problem details, with the headers that their status needs.
    pub fn of_problem(problem: &Problem, request_id: &str) -> Self {
        let head = Self::new(problem.code.status(), request_id);
        let head = head.retry_after(problem.retry_after_s.map(u64::from));
        match &problem.allow {
            Some(methods) => head.field("allow", methods),
            None => head,
        }
    }

    /// Adds the headers that describe a decision.
    pub fn decision(self, decision: &ProxyDecision) -> Self {
        let mut policies = String::new();
        for id in &decision.matched_policies {
            if policies.len() + id.len() >= MAX_POLICIES_BYTES {
                break;
            }
            policies.extend([if policies.is_empty() { "" } else { "," }, id]);
        }
        let head = self
            .field("x-gateward-decision", decision.decision.as_str())
            .field("x-gateward-decision-id", &decision.decision_id)
            .field("x-gateward-reason-code", decision.reason_code.code())
            .field("x-gateward-policies", policies);
        let head = match &decision.engine_mode {
            Some(mode) => head.field("x-gateward-engine-mode", mode),
            None => head,
        };
        match &decision.approval {
            Some(approval) => head.field("x-gateward-approval-id", &approval.approval_id),
            None => head,
        }
    }

    /// Adds a header. Neither name nor value may contain a line break.
    pub fn field(mut self, name: &str, value: impl Display) -> Self {
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        let _ = write!(self.fields, "{name}\n{value}\n");
        self
    }

    pub fn retry_after(self, seconds: Option<u64>) -> Self {
        match seconds {
            Some(seconds) => self.field("retry-after", seconds),
            None => self,
        }
    }

    pub fn rate_headers(self, headers: Option<&RateHeaders>) -> Self {
        match headers {
            Some(RateHeaders { policies, states }) => {
                let [policy, state] = RATE_FIELDS;
                self.field(policy, policies).field(state, states)
            }
            None => self,
        }
    }

    /// The status, and the headers in the form of `io.js` and `relay.js`.
    pub fn parts(self) -> (u16, String) {
        (self.status, self.fields)
    }

    pub fn with(self, body: &str) -> Result<Response> {
        Ok(io::respond(self.status, &self.fields, body)?)
    }

    pub fn with_bytes(self, body: &[u8]) -> Result<Response> {
        Ok(io::respond_bytes(self.status, &self.fields, body)?)
    }

    /// An answer with the API's description, which JavaScript holds.
    pub fn with_description(self) -> Result<Response> {
        Ok(io::description(&self.fields)?)
    }
}

/// The rate-limit headers that a lane sent. They are copied to the caller's response.
#[derive(Clone, Default)]
pub struct RateFields([Option<String>; 2]);

const RATE_FIELDS: [&str; 2] = ["ratelimit-policy", "ratelimit"];

impl RateFields {
    /// The values of `RateLimit-Policy` and `RateLimit`; empty if the lane sent none.
    pub fn read(policy: &str, state: &str) -> Self {
        Self([policy, state].map(|value| Some(value.to_owned()).filter(|value| !value.is_empty())))
    }

    pub fn add_to(&self, head: Head) -> Head {
        RATE_FIELDS.iter().zip(&self.0).fold(head, |head, (name, value)| match value {
            Some(value) => head.field(name, value),
            None => head,
        })
    }
}

/// A value as JSON text.
pub fn json<T: Serialize>(value: &T) -> std::result::Result<String, Problem> {
    serde_json::to_string(value).map_err(|_| internal("the response could not be written"))
}

/// A response of problem details.
pub fn problem(problem: &Problem, request_id: &str) -> Result<Response> {
    Head::of_problem(problem, request_id).with(&problem.to_json(request_id))
}
