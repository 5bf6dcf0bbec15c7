//! Answers, and the bounds on what is read.

use gateward_core::bounds::MAX_BODY_BYTES;
use gateward_core::bucket::RateStatus;
use gateward_core::problem::{Problem, ProblemCode};
use serde::Serialize;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::{Headers, Request, Response, Result};

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = crypto, js_name = randomUUID)]
    fn random_uuid() -> String;
}

/// What a 401 asks for (RFC 6750).
pub const AUTHENTICATE: &str = "Bearer realm=\"gateward\"";

/// The longest request id that is taken over from a caller.
const MAX_HTTP_REQUEST_ID_BYTES: usize = 64;

/// The caller's `X-Request-Id` if it is a plain token, else a new UUID.
pub fn request_id(request: &Request) -> String {
    let plain = |id: &String| {
        (1..=MAX_HTTP_REQUEST_ID_BYTES).contains(&id.len())
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    header(request, "x-request-id").filter(plain).unwrap_or_else(random_uuid)
}

pub fn header(request: &Request, name: &str) -> Option<String> {
    request.headers().get(name).ok().flatten()
}

/// A JSON answer; its body was serialized already.
pub fn json_text(body: String, status: u16, request_id: &str) -> Result<Response> {
    let headers = Headers::new();
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    headers.set("content-type", kind)?;
    headers.set("cache-control", "no-store")?;
    headers.set("x-request-id", request_id)?;
    Ok(Response::builder().with_status(status).with_headers(headers).fixed(body.into_bytes()))
}

/// A value as JSON.
pub fn json<T: Serialize>(value: &T) -> std::result::Result<String, Problem> {
    serde_json::to_string(value)
        .map_err(|_| Problem::new(ProblemCode::Internal, "the answer could not be written"))
}

/// Problem details, with the headers that their status asks for.
pub fn problem(problem: &Problem, request_id: &str) -> Result<Response> {
    let response = json_text(problem.to_json(request_id), problem.code.status(), request_id)?;
    if let Some(seconds) = problem.retry_after_s {
        response.headers().set("retry-after", &seconds.to_string())?;
    }
    if problem.code.status() == 401 {
        response.headers().set("www-authenticate", AUTHENTICATE)?;
    }
    Ok(response)
}

/// `RateLimit-Policy` and `RateLimit`, as draft-ietf-httpapi-ratelimit-headers-10 has them.
pub fn set_rate_limit(headers: &Headers, rate: RateStatus) -> Result<()> {
    let policy = format!("\"agent\";q={};w={}", rate.limit, rate.window_s);
    headers.set("ratelimit-policy", &policy)?;
    headers.set("ratelimit", &format!("\"agent\";r={};t={}", rate.remaining, rate.reset_s))
}

/// Step 1: a JSON body within its bound; more than that is never held in memory.
pub async fn json_body(request: &mut Request) -> std::result::Result<Vec<u8>, Problem> {
    let content_type = header(request, "content-type").unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/json") {
        let detail = "the body must have the content type `application/json`";
        return Err(Problem::new(ProblemCode::UnsupportedMediaType, detail));
    }
    let too_large = || {
        let detail = format!("the body has more than {MAX_BODY_BYTES} bytes");
        Problem::new(ProblemCode::BodyTooLarge, detail)
    };
    let unreadable = |_| Problem::new(ProblemCode::MalformedRequest, "the body could not be read");
    let length = header(request, "content-length").and_then(|text| text.parse::<usize>().ok());
    match length {
        Some(length) if length > MAX_BODY_BYTES => Err(too_large()),
        // The runtime holds a body to its declared length.
        Some(_) => request.bytes().await.map_err(unreadable),
        None => {
            let mut stream = request.stream().map_err(unreadable)?;
            let mut body = Vec::new();
            while let Some(chunk) = futures_util::StreamExt::next(&mut stream).await {
                body.extend_from_slice(&chunk.map_err(unreadable)?);
                if body.len() > MAX_BODY_BYTES {
                    return Err(too_large());
                }
            }
            Ok(body)
        }
    }
}
