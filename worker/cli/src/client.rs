//! Sends requests: timeouts, bounds, and retries where a retry cannot do something twice.

use std::thread::sleep;
use std::time::Duration;

use gateward_core::credential::token;
use serde_json::{Value, from_str};
use ureq::http::{self, Uri};
use ureq::{Agent, Error, Proxy, Timeout};
use uuid::Uuid;

use crate::failure::Failure;
use crate::request::{Method, Request};
use crate::sign::{Signer, Unsigned};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit of one attempt. The worker answers within a few seconds, or with 503.
const WHOLE_TIMEOUT: Duration = Duration::from_secs(30);
/// A page of 200 decisions has about 300 KB. A page of 200 agents with long lists has a few MB.
const RESPONSE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Retries after the first attempt. With the waits below, this takes some seconds: long enough
/// while a worker is being deployed.
const RETRIES_MAX: u32 = 3;
/// The wait before the first retry. It is doubled before each further one.
const RETRY_WAIT: Duration = Duration::from_millis(250);
/// The longest wait because of a `Retry-After`.
const RETRY_AFTER_MAX_S: u64 = 10;

pub struct Client {
    agent: Agent,
    url: String,
    bearer: String,
    signer: Option<Signer>,
    /// The approval that the change uses.
    approval_id: Option<String>,
}

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub text: String,
    /// The same, as it was sent.
    pub bytes: Vec<u8>,
    /// Whether this is the repeated first answer, without its secrets.
    pub replayed: bool,
    retry_after: Option<u64>,
}

impl Response {
    /// The body, with objects sorted by key. Null if there is none.
    pub fn value(&self) -> Result<Value, Failure> {
        if self.text.trim().is_empty() {
            return Ok(Value::Null);
        }
        let mut value: Value =
            from_str(&self.text).map_err(|_| Failure::other("the answer is not JSON"))?;
        value.sort_all_objects();
        Ok(value)
    }
}

impl Client {
    /// `url` is the worker's URL, without a path of the API.
    pub fn new(
        url: &str,
        bearer: String,
        signer: Option<Signer>,
        approval_id: Option<String>,
    ) -> Result<Self, Failure> {
        let on_this_machine = checked(url).map_err(Failure::Other)?;
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // Do not follow redirects: the token must be sent only to this host.
            .max_redirects(0)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(WHOLE_TIMEOUT))
            .user_agent(concat!("gateward/", env!("CARGO_PKG_VERSION")));
        config = config.proxy(if on_this_machine { None } else { Proxy::try_from_env() });
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { agent: config.build().new_agent(), url, bearer, signer, approval_id })
    }

    /// The tenant of the token.
    pub fn tenant(&self) -> Result<&str, Failure> {
        let none = || Failure::other("the token is not a credential of Gateward");
        token::tenant_of(&self.bearer).ok_or_else(none)
    }

    /// The token and the headers that sign a request.
    pub fn sign(&self, request: &Unsigned<'_>) -> Result<Vec<(String, String)>, Failure> {
        let none = || {
            Failure::other(
                "no signing key: set GATEWARD_SIGNING_KEY or GATEWARD_SIGNING_KEY_FILE, or give \
                 --signing-key-file",
            )
        };
        let signer = self.signer.as_ref().ok_or_else(none)?;
        let mut headers = vec![("authorization".to_owned(), format!("Bearer {}", self.bearer))];
        headers.extend(signer.sign(request));
        Ok(headers)
    }

    /// The answer, if its status is a success.
    pub fn send(&self, request: &Request) -> Result<Response, Failure> {
        // All attempts use one key, so the worker carries out a POST once. Decisions on approvals
        // have no keys, but the required revision exists only once. Every other method may be
        // repeated.
        let key = (request.method == Method::Post).then(|| Uuid::new_v4().to_string());
        let mut tries = 0;
        loop {
            let result = self.try_once(request, key.as_deref());
            match wait_before_retry(&result, tries) {
                Some(wait) => sleep(wait),
                None => break self.success(result),
            }
            tries += 1;
        }
    }

    fn success(&self, result: Result<Response, Error>) -> Result<Response, Failure> {
        match result {
            Ok(answer) if (200..300).contains(&answer.status) => Ok(answer),
            Ok(answer) => Err(Failure::from_answer(answer.status, &answer.text)),
            Err(error) => Err(Failure::Other(format!("no answer from {}: {error}", self.url))),
        }
    }

    /// Each attempt has its own signature, because a signature is accepted once.
    fn try_once(&self, request: &Request, key: Option<&str>) -> Result<Response, Error> {
        let uri = format!("{}{}", self.url, request.target()).parse::<Uri>();
        let uri = uri.map_err(http::Error::from)?;
        let body = request.body.as_ref().map(Value::to_string);
        let mut headers = Vec::new();
        let mut header = |name: &str, value: String| headers.push((name.to_owned(), value));
        if let Some(key) = key {
            header("idempotency-key", key.to_owned());
        }
        if let Some(approval_id) = &self.approval_id {
            header("x-gateward-approval-id", approval_id.clone());
        }
        if let Some(revision) = request.if_match {
            header("if-match", format!("\"{revision}\""));
        }
        if body.is_some() {
            header("content-type", "application/json".to_owned());
        }
        if let Some(signer) = &self.signer {
            let unsigned = Unsigned {
                method: request.method.as_str(),
                path: uri.path(),
                query: uri.query().unwrap_or_default(),
                headers: &headers,
                body: body.as_deref().unwrap_or_default().as_bytes(),
            };
            headers.extend(signer.sign(&unsigned));
        }
        let mut builder = http::Request::builder()
            .method(request.method.as_str())
            .uri(uri)
            .header("authorization", format!("Bearer {}", self.bearer))
            .header("accept", "application/json, application/problem+json");
        for (name, value) in &headers {
            builder = builder.header(name, value);
        }
        let mut response = match body {
            Some(body) => self.agent.run(builder.body(body)?)?,
            None => self.agent.run(builder.body(())?)?,
        };
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let replayed = header("idempotency-replayed") == Some("true");
        let retry_after = header("retry-after").and_then(|value| value.parse().ok());
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(RESPONSE_BYTES_MAX);
        let bytes = body.read_to_vec()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(Response { status, text, bytes, replayed, retry_after })
    }
}

/// How long to wait before a retry. There is a retry after a broken or refused connection, and
/// after a 503 with `Retry-After`.
fn wait_before_retry(result: &Result<Response, Error>, tries: u32) -> Option<Duration> {
    if tries >= RETRIES_MAX {
        return None;
    }
    match result {
        Ok(Response { status: 503, retry_after: Some(seconds), .. }) => {
            Some(Duration::from_secs((*seconds).min(RETRY_AFTER_MAX_S)))
        }
        Ok(_) => None,
        // No retry after a timeout, because the user would wait several times as long.
        Err(Error::Timeout(Timeout::Global)) => None,
        Err(Error::Io(_) | Error::ConnectionFailed | Error::Timeout(_) | Error::Protocol(_)) => {
            Some(RETRY_WAIT * 2_u32.pow(tries))
        }
        Err(_) => None,
    }
}

/// Whether the URL's host is this machine. A token is sent to other hosts only over TLS.
fn checked(url: &str) -> Result<bool, String> {
    let parsed: Uri = url.parse().map_err(|_| format!("`{url}` is not a URL"))?;
    let host = parsed.host().ok_or_else(|| format!("`{url}` has no host"))?;
    if parsed.query().is_some() {
        return Err(format!("`{url}` must not have a query"));
    }
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    let local = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    match parsed.scheme_str() {
        Some("https") => Ok(local),
        Some("http") if local => Ok(local),
        Some("http") => Err(format!("`{url}` would send the token unprotected: use https")),
        _ => Err(format!("`{url}` must begin with https:// or http://")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leaves_this_machine_only_over_tls() {
        for (url, expected) in [
            ("http://127.0.0.1:8787", Some(true)),
            ("http://localhost/", Some(true)),
            ("http://[::1]:8787", Some(true)),
            ("https://gate.example.com", Some(false)),
            ("https://gate.example.com/base/", Some(false)),
            ("http://gate.example.com", None),
            ("http://127.0.0.1.example.com", None),
            ("http://localhost@example.com", None),
            ("ftp://localhost", None),
            ("localhost:8787", None),
            ("https://gate.example.com?x=1", None),
            ("", None),
        ] {
            assert_eq!(checked(url).ok(), expected, "{url}");
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again_and_only_so_often() {
        let answer = |status, retry_after| {
            let (text, bytes) = Default::default();
            Ok(Response { status, text, bytes, replayed: false, retry_after })
        };
        for (result, tries, expected_ms) in [
            (answer(503, Some(2)), 0, Some(2_000)),
            (answer(503, Some(3_600)), 2, Some(10_000)),
            (answer(503, Some(2)), 3, None),
            (answer(503, None), 0, None),
            (answer(500, Some(1)), 0, None),
            (answer(429, Some(1)), 0, None),
            (answer(201, None), 0, None),
            (Err(Error::ConnectionFailed), 0, Some(250)),
            (Err(Error::Timeout(Timeout::Connect)), 2, Some(1_000)),
            (Err(Error::ConnectionFailed), 3, None),
            (Err(Error::Timeout(Timeout::Global)), 0, None),
            (Err(Error::HostNotFound), 0, None),
        ] {
            let wait = wait_before_retry(&result, tries).map(|wait| wait.as_millis());
            assert_eq!(wait, expected_ms, "{result:?} after {tries}");
        }
    }
}
