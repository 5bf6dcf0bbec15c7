//! A server's upstream: where Gateward forwards its traffic, and the bounds.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::text_enum::text_enum;

/// How long an upstream may take until the head of its answer, connecting included.
pub const DEFAULT_FIRST_BYTE_TIMEOUT_MS: u32 = 30_000;
/// How long a whole answer may take: enough for a long-running tool.
pub const DEFAULT_WHOLE_TIMEOUT_MS: u32 = 600_000;
/// How long a stream may be silent.
pub const DEFAULT_IDLE_TIMEOUT_MS: u32 = 120_000;
/// The longest of these timeouts: an hour.
pub const MAX_TIMEOUT_MS: u32 = 3_600_000;
/// The least.
pub const MIN_TIMEOUT_MS: u32 = 10;
/// Bytes of a result: far more than a model can read.
pub const DEFAULT_MAX_RESULT_BYTES: u32 = 4 * 1024 * 1024;
/// The largest limit: an answer that is inspected is held in the isolate's 128 MB.
pub const MAX_RESULT_BYTES: u32 = 16 * 1024 * 1024;
/// The same for a server that speaks MCP: a result is inspected without a pause, at about 6 ms a
/// MiB.
pub const MAX_MCP_RESULT_BYTES: u32 = 8 * 1024 * 1024;
/// The smallest limit: the text of an error.
pub const MIN_RESULT_BYTES: u32 = 1_024;
/// Routes of a server: each is tried for every request.
pub const MAX_ROUTES: usize = 256;
/// Bytes of a route's path.
pub const MAX_ROUTE_PATH_BYTES: usize = 512;
/// Segments of a route's path: twice as many as the deepest APIs have. Each is compared for every
/// request.
pub const MAX_ROUTE_SEGMENTS: usize = 24;
/// Headers that are registered to be forwarded: each is compared with each of a request's.
pub const MAX_FORWARDED_HEADERS: usize = 32;
/// The prefix of bindings that hold upstream credentials, so that no other secret can be named.
pub const CREDENTIAL_BINDING_PREFIX: &str = "UPSTREAM_";

/// The upstream of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// MCP: the endpoint. HTTP: what paths are appended to.
    pub url: String,
    /// Whether it may be on a local network. Accepted only if the worker's var `LOCAL_TARGETS` is
    /// "true".
    #[serde(default)]
    pub local: bool,
    /// The credential that replaces the agent's token; null for none.
    #[serde(default)]
    pub credential: Option<UpstreamCredential>,
    /// Until the answer's head, in milliseconds; connecting is part of it.
    #[serde(default = "first_byte_timeout_ms")]
    #[schema(minimum = 10, maximum = 3_600_000)]
    pub first_byte_timeout_ms: u32,
    /// Until the answer's end, in milliseconds.
    #[serde(default = "whole_timeout_ms")]
    #[schema(minimum = 10, maximum = 3_600_000)]
    pub whole_timeout_ms: u32,
    /// Between two pieces of a stream, in milliseconds.
    #[serde(default = "idle_timeout_ms")]
    #[schema(minimum = 10, maximum = 3_600_000)]
    pub idle_timeout_ms: u32,
    /// Bytes of one answer.
    #[serde(default = "max_result_bytes")]
    #[schema(minimum = 1_024, maximum = 16_777_216)]
    pub max_result_bytes: u32,
    /// MCP: how a denied call is answered.
    #[serde(default)]
    pub denial: DenialForm,
    /// HTTP: which request calls which tool. The first route that matches counts.
    #[serde(default)]
    pub routes: Vec<HttpRoute>,
    /// HTTP: additional headers of callers that are forwarded. Names in lower case.
    #[serde(default)]
    #[schema(max_items = 32)]
    pub forwarded_headers: Vec<String>,
    /// HTTP: whether shared caches may store answers, if the API's `Cache-Control` allows it.
    /// Otherwise every answer is `private`.
    #[serde(default)]
    pub shared_cache: bool,
}

impl Upstream {
    /// A copy without the routes. A proxy does not need them, because the lane finds the tool.
    #[must_use]
    pub fn without_routes(&self) -> Self {
        Self {
            url: self.url.clone(),
            credential: self.credential.clone(),
            routes: Vec::new(),
            forwarded_headers: self.forwarded_headers.clone(),
            ..*self
        }
    }
}

/// The name of a secret of the worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamCredential {
    /// A secret of the worker whose name begins with `UPSTREAM_`. Its text is `<tenant> <origin>
    /// <header value>`: it is only sent for this tenant and to this origin.
    pub binding: String,
    /// The header that carries it.
    #[serde(default = "credential_header")]
    pub header: String,
}

text_enum! {
    /// How a call that is denied is answered.
    #[derive(Default)]
    DenialForm {
        /// A tool result with `isError`, which models read.
        #[default]
        Result = "result",
        /// A JSON-RPC error.
        Error = "error",
    }
}

/// A request that calls a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRoute {
    /// Upper case.
    pub method: String,
    /// Segments, not percent-encoded; `{name}` matches any one: `/repos/{owner}/{repo}/issues`.
    pub path: String,
    pub tool: String,
}

fn first_byte_timeout_ms() -> u32 {
    DEFAULT_FIRST_BYTE_TIMEOUT_MS
}

fn whole_timeout_ms() -> u32 {
    DEFAULT_WHOLE_TIMEOUT_MS
}

fn idle_timeout_ms() -> u32 {
    DEFAULT_IDLE_TIMEOUT_MS
}

fn max_result_bytes() -> u32 {
    DEFAULT_MAX_RESULT_BYTES
}

fn credential_header() -> String {
    "authorization".to_owned()
}
