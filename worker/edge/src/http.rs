//! Requests as handlers see them, answers, and the bounds on what is read.

use std::fmt::Display;
use std::net::IpAddr;

use futures_util::StreamExt as _;
use gateward_core::bounds::MAX_BODY_BYTES;
use gateward_core::bucket::RateStatus;
use gateward_core::problem::{Problem, ProblemCode};
use js_sys::Uint8Array;
use js_sys::futures::JsFuture;
use serde::Serialize;
use url::form_urlencoded;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::worker_sys::web_sys::{self, Response};
use worker::{ByteStream, Result};

use crate::io;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = crypto, js_name = randomUUID)]
    fn random_uuid() -> String;

    #[wasm_bindgen(catch, js_namespace = crypto, js_name = getRandomValues)]
    fn random_values(into: &mut [u8]) -> std::result::Result<JsValue, JsValue>;
}

/// Random bytes that nobody can guess.
pub fn random<const LENGTH: usize>() -> std::result::Result<[u8; LENGTH], Problem> {
    let mut bytes = [0; LENGTH];
    let none = |_| Problem::new(ProblemCode::Internal, "there is no randomness");
    random_values(&mut bytes).map_err(none)?;
    Ok(bytes)
}

/// What a 401 asks for (RFC 6750).
const AUTHENTICATE: &str = "Bearer realm=\"gateward\"";

/// The longest request id that is taken over from a caller.
const MAX_HTTP_REQUEST_ID_BYTES: usize = 64;

/// A request; a header that is absent is empty.
pub struct Request {
    pub method: String,
    url: String,
    pub authorization: String,
    content_type: String,
    content_length: String,
    request_id: String,
    /// The address that connected, as Cloudflare or the local runtime says.
    connecting_address: String,
    pub signature: String,
    raw: web_sys::Request,
}

impl Request {
    pub fn read(raw: web_sys::Request) -> Self {
        let described = io::describe(&raw);
        let mut lines = described.split('\n').map(str::to_owned);
        let mut next = || lines.next().unwrap_or_default();
        Self {
            method: next(),
            url: next(),
            authorization: next(),
            content_type: next(),
            content_length: next(),
            request_id: next(),
            connecting_address: next(),
            signature: next(),
            raw,
        }
    }

    /// The caller's `X-Request-Id` if it is a plain token, else a new UUID.
    pub fn id(&self) -> String {
        let id = &self.request_id;
        let plain = (1..=MAX_HTTP_REQUEST_ID_BYTES).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if plain { id.clone() } else { random_uuid() }
    }

    /// From the first slash on. The runtime serializes URLs as WHATWG has it: there is a path, and
    /// `?` and `#` in it are escaped.
    pub fn path(&self) -> &str {
        let (path, _) = self.path_and_query();
        path
    }

    /// The query's names and values, decoded.
    pub fn query(&self) -> form_urlencoded::Parse<'_> {
        let (_, query) = self.path_and_query();
        form_urlencoded::parse(query.as_bytes())
    }

    fn path_and_query(&self) -> (&str, &str) {
        let after_scheme = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let whole = after_scheme.find('/').and_then(|at| after_scheme.get(at..)).unwrap_or("/");
        let whole = whole.split('#').next().unwrap_or_default();
        whole.split_once('?').unwrap_or((whole, ""))
    }

    /// A header that few handlers look at.
    pub fn header(&self, name: &str) -> Option<String> {
        self.raw.headers().get(name).ok().flatten()
    }

    /// `None` when the runtime does not say, or says what is no address.
    pub fn source_address(&self) -> Option<IpAddr> {
        self.connecting_address.parse().ok()
    }

    /// Step 1: a JSON body within its bound; more than that is never held in memory.
    pub async fn json_body(&self) -> std::result::Result<Vec<u8>, Problem> {
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

    /// A body of any type, within the same bound.
    pub async fn body(&self) -> std::result::Result<Vec<u8>, Problem> {
        let too_large = || {
            let detail = format!("the body has more than {MAX_BODY_BYTES} bytes");
            Problem::new(ProblemCode::BodyTooLarge, detail)
        };
        match self.content_length.parse::<usize>() {
            Ok(length) if length > MAX_BODY_BYTES => Err(too_large()),
            // The runtime holds a body to its declared length.
            Ok(_) => bytes(&self.raw).await.map_err(|_| unreadable()),
            Err(_) => {
                let Some(stream) = self.raw.body() else { return Ok(Vec::new()) };
                let mut stream = ByteStream::from(stream);
                let mut body = Vec::new();
                while let Some(chunk) = stream.next().await {
                    body.extend_from_slice(&chunk.map_err(|_| unreadable())?);
                    if body.len() > MAX_BODY_BYTES {
                        return Err(too_large());
                    }
                }
                Ok(body)
            }
        }
    }
}

fn unreadable() -> Problem {
    Problem::new(ProblemCode::MalformedRequest, "the body could not be read")
}

/// A body of known length, whole.
pub async fn bytes(request: &web_sys::Request) -> std::result::Result<Vec<u8>, JsValue> {
    let buffer = JsFuture::from(request.array_buffer()?).await?;
    Ok(Uint8Array::new(&buffer).to_vec())
}

/// An answer but for its body.
pub struct Head {
    status: u16,
    /// As `io.js` takes them.
    fields: String,
}

impl Head {
    /// A JSON answer.
    pub fn new(status: u16, request_id: &str) -> Self {
        let kind = if status < 400 { "application/json" } else { "application/problem+json" };
        let head = Self { status, fields: String::with_capacity(256) };
        let head = head.field("content-type", kind).field("cache-control", "no-store");
        let head = head.field("x-request-id", request_id);
        if status == 401 { head.field("www-authenticate", AUTHENTICATE) } else { head }
    }

    /// Neither name nor value may hold a line break.
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

    /// `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-10 has them.
    pub fn rate_limit(self, rate: Option<RateStatus>) -> Self {
        let Some(rate) = rate else { return self };
        self.field(
            "ratelimit-policy",
            format_args!("\"agent\";q={};w={}", rate.limit, rate.window_s),
        )
        .field("ratelimit", format_args!("\"agent\";r={};t={}", rate.remaining, rate.reset_s))
    }

    pub fn with(self, body: &str) -> Result<Response> {
        Ok(io::respond(self.status, &self.fields, body)?)
    }
}

/// A value as JSON.
pub fn json<T: Serialize>(value: &T) -> std::result::Result<String, Problem> {
    serde_json::to_string(value)
        .map_err(|_| Problem::new(ProblemCode::Internal, "the answer could not be written"))
}

/// Problem details, with the headers that their status asks for.
pub fn problem(problem: &Problem, request_id: &str) -> Result<Response> {
    let mut head = Head::new(problem.code.status(), request_id);
    head = head.retry_after(problem.retry_after_s.map(u64::from));
    if let ProblemCode::MethodNotAllowed = problem.code {
        head = head.field("allow", &problem.detail);
    }
    head.with(&problem.to_json(request_id))
}
