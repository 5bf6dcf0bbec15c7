//! Discovers a server's tools, in both eras of MCP.
//!
//! Neither redirects nor references in schemas are followed.

use gateward_admin::manifest::{Discovered, MAX_DISCOVERED_TOOLS, MAX_LISTING_BYTES};
use gateward_core::json::raw::RawObject;
use gateward_core::mcp::answer::{self, Incoming};
use gateward_core::mcp::envelope::{META_CAPABILITIES, META_VERSION};
use gateward_core::mcp::jsonrpc;
use gateward_core::mcp::sse::{self, Event, Splitter};
use gateward_core::mcp::{SESSION_VERSIONS, STATELESS_VERSION};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::Upstream;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::app::App;
use crate::http::Request;
use crate::io;
use crate::limits::DISCOVERY_MS;
use crate::upstream::hold::Hold;
use crate::upstream::relay::{self, UpstreamAnswer, UpstreamRequest};

/// Pages of a list. A server that returns more is refused, since it may never end.
const MAX_PAGES: usize = 100;
/// Bytes of a response that are split into events at a time.
const PIECE_BYTES: usize = 64 * 1_024;
/// All capabilities of a client: some servers list only the tools that the client can use.
const CAPABILITIES: [&str; 3] = ["elicitation", "roots", "sampling"];

fn capabilities() -> RawObject {
    let mut capabilities = RawObject::default();
    for name in CAPABILITIES {
        capabilities.set(name, &RawObject::default());
    }
    capabilities
}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    version: &'static str,
}

/// Reads every page of `tools/list`, the instructions, and whether the server has resources and prompts.
pub async fn discover(
    app: &App,
    caller: &Request,
    tenant: &str,
    upstream: &Upstream,
) -> Result<Discovered, Problem> {
    let url = relay::address(app, upstream)?.as_str().to_owned();
    let ends_at_ms = io::now_ms() + u64::from(DISCOVERY_MS);
    let mut server = Server {
        app,
        caller,
        tenant,
        upstream,
        url,
        ends_at_ms,
        session: None,
        version: "",
        instructions: None,
    };
    let capabilities = server.begin().await?;
    let mut discovered = Discovered {
        tools: Vec::new(),
        resources: capabilities.get("resources").is_some(),
        prompts: capabilities.get("prompts").is_some(),
        instructions: server.instructions.take(),
    };
    let listed = match capabilities.get("tools") {
        Some(_) => server.list(&mut discovered.tools).await,
        None => Ok(()),
    };
    server.end().await;
    listed.map(|()| discovered)
}

/// A server whose tools are being discovered.
struct Server<'a> {
    app: &'a App,
    caller: &'a Request,
    tenant: &'a str,
    upstream: &'a Upstream,
    url: String,
    ends_at_ms: u64,
    session: Option<String>,
    /// The protocol revision; empty until it is known.
    version: &'static str,
    /// The server's instructions for models.
    instructions: Option<String>,
}

impl Server<'_> {
    /// Finds out the server's era, and returns its capabilities.
    async fn begin(&mut self) -> Result<RawObject, Problem> {
        self.version = STATELESS_VERSION;
        // Servers of the session era refuse this with various errors.
        if let Ok(answer) = self
            .send(
                "POST",
                "server/discover",
                &self.request("server/discover", &RawObject::default()),
            )
            .await?
            && let Ok(result) = read(answer).await
            && result
                .get("supportedVersions")
                .is_some_and(|known| known.contains(STATELESS_VERSION))
        {
            self.instructions = result.text("instructions");
            return Ok(result.object("capabilities").unwrap_or_default());
        }
        self.version = "";
        let newest = SESSION_VERSIONS.last().copied().unwrap_or_default();
        let mut params = RawObject::default();
        params.set("protocolVersion", newest);
        params.set("capabilities", &capabilities());
        params.set("clientInfo", &ClientInfo { name: "gateward", version: "1" });
        let answer = self.post("initialize", &params).await?;
        self.session = answer.header("mcp-session-id");
        let result = read(answer).await?;
        self.instructions = result.text("instructions");
        let spoken = result.text("protocolVersion").unwrap_or_default();
        self.version =
            SESSION_VERSIONS.into_iter().find(|known| *known == spoken).ok_or_else(|| {
                invalid("it does not support any revision of MCP that Gateward knows")
            })?;
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        if let Ok(answer) = self.send("POST", "", initialized).await? {
            answer.refuse(Ending::Complete);
        }
        Ok(result.object("capabilities").unwrap_or_default())
    }

    async fn list(&self, tools: &mut Vec<Box<RawValue>>) -> Result<(), Problem> {
        let (mut params, mut bytes) = (RawObject::default(), 0);
        for _ in 0..MAX_PAGES {
            let page = read(self.post("tools/list", &params).await?).await?;
            let listed = page.get("tools").unwrap_or_default();
            bytes += listed.len();
            let listed: Vec<Box<RawValue>> =
                serde_json::from_str(listed).map_err(|_| invalid("its list cannot be read"))?;
            tools.extend(listed);
            match page.get("nextCursor") {
                // One tool above the bound tells the core that some were left out.
                _ if tools.len() > MAX_DISCOVERED_TOOLS || bytes > MAX_LISTING_BYTES => {
                    return Ok(());
                }
                None | Some("null") => return Ok(()),
                Some(_) => {
                    let cursor = page.raw("nextCursor").unwrap_or(RawValue::NULL);
                    params.set_raw("cursor", cursor.to_owned());
                }
            }
        }
        Err(invalid("its list has no end"))
    }

    /// Ends the session, if there is one.
    async fn end(&self) {
        if self.session.is_some()
            && let Ok(Ok(answer)) = self.send("DELETE", "", "").await
        {
            answer.refuse(Ending::Complete);
        }
    }

    async fn post(&self, method: &str, params: &RawObject) -> Result<UpstreamAnswer, Problem> {
        self.send("POST", method, &self.request(method, params)).await?
    }

    /// A JSON-RPC request. Only one is in flight at a time, so all have the same id.
    fn request(&self, method: &str, params: &RawObject) -> String {
        if self.version != STATELESS_VERSION {
            return jsonrpc::request(1, method, params);
        }
        let mut meta = RawObject::default();
        meta.set(META_VERSION, STATELESS_VERSION);
        meta.set(META_CAPABILITIES, &capabilities());
        let mut params = params.clone();
        params.set("_meta", &meta);
        jsonrpc::request(1, method, &params)
    }

    /// Sends a message. The inner problem is an error status of the server.
    async fn send(
        &self,
        http_method: &str,
        method: &str,
        body: &str,
    ) -> Result<Result<UpstreamAnswer, Problem>, Problem> {
        let left_ms = self.ends_at_ms.saturating_sub(io::now_ms());
        let left_ms = u32::try_from(left_ms).unwrap_or_default();
        let bounded = Upstream {
            first_byte_timeout_ms: self.upstream.first_byte_timeout_ms.min(left_ms),
            whole_timeout_ms: self.upstream.whole_timeout_ms.min(left_ms),
            ..self.upstream.without_routes()
        };
        let mut headers = Vec::new();
        let mut field = |name: &str, value: &str| {
            if !value.is_empty() {
                headers.push((name.to_owned(), value.to_owned()));
            }
        };
        field("accept", "application/json, text/event-stream");
        field("accept-encoding", "identity");
        field("content-type", if body.is_empty() { "" } else { "application/json" });
        field("mcp-protocol-version", self.version);
        field("mcp-method", if self.version == STATELESS_VERSION { method } else { "" });
        field("mcp-session-id", self.session.as_deref().unwrap_or_default());
        let body = Some(body.as_bytes()).filter(|body| !body.is_empty());
        let request =
            UpstreamRequest { method: http_method, url: &self.url, headers, body, decision: None };
        let hold = Hold::new(self.app);
        let sent = relay::send(self.app, hold, self.caller, self.tenant, &bounded, request).await?;
        let answer = sent.map_err(|broken| broken.problem())?;
        if (200..300).contains(&answer.status) {
            return Ok(Ok(answer));
        }
        let detail = format!("the server answered {} to {method}", answer.status);
        answer.refuse(Ending::Refused);
        Ok(Err(Problem::new(ProblemCode::UpstreamInvalid, detail)))
    }
}

/// Reads the JSON-RPC result from a response.
async fn read(answer: UpstreamAnswer) -> Result<RawObject, Problem> {
    let kind = answer.header("content-type").unwrap_or_default();
    let (bytes, _) = answer.bytes().await.map_err(|broken| broken.problem())?;
    let result = |text: &str| match answer::read(text)? {
        Incoming::Answer { id: Some(id), message } if id == "1" => answer::result(&message),
        _ => None,
    };
    let found = if sse::is_stream(&kind) {
        // In pieces: a stream may consist of events of three bytes each.
        let mut splitter = Splitter::default();
        let mut events = bytes
            .chunks(PIECE_BYTES)
            .flat_map(|piece| splitter.push(piece, bytes.len()).unwrap_or_default());
        events.find_map(|event| result(Event::read(&event)?.data.as_deref()?))
    } else {
        std::str::from_utf8(&bytes).ok().and_then(result)
    };
    found.ok_or_else(|| invalid("its response is not an MCP result"))
}

fn invalid(why: &str) -> Problem {
    Problem::new(
        ProblemCode::UpstreamInvalid,
        ["the server cannot be asked for its tools: ", why].concat(),
    )
}
