//! Filters the messages of a server: responses, notifications and, in sessions, its own requests.

use std::borrow::Cow;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use gateward_core::call::claims::Claims;
use gateward_core::gate::proxy::{AnswerRules, InspectResults, Observe, Visibility};
use gateward_core::json::Json;
use gateward_core::json::raw::{self, RawObject};
use gateward_core::mcp::answer::{self, Incoming};
use gateward_core::mcp::error::{DENIED, INTERNAL_ERROR, RpcError};
use gateward_core::mcp::listing::Page;
use gateward_core::mcp::method::{self, Listed, ServerRule};
use gateward_core::mcp::review::{self, Asked};
use gateward_core::mcp::sse::{self, Splitter};
use gateward_core::mcp::{Era, denial, response};
use gateward_core::provenance::Observed;
use gateward_core::provenance::part::{Kind, Part};
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::Upstream;
use serde_json::value::RawValue;

use super::client::McpClient;
use super::discovered;
use super::marks::Marks;
use super::recheck::Recheck;
use super::refusal::{JSON, Refusal};
use crate::io;
use crate::upstream::hold::Hold;
use crate::upstream::passed::{self, Passed};
use crate::upstream::relay::{self, Inspect, UpstreamRequest};

/// Explanations show this in place of the method if an answer belongs to a request that is not known.
pub const UNKNOWN_REQUEST: &str = "lists";

/// The request that a server can make through an error.
const ELICITATION: &str = "elicitation/create";

/// A forwarded request that has no response yet.
pub struct Pending {
    pub id: String,
    pub method: String,
    claims: Rc<Claims>,
    pub listed: Option<Listed>,
    /// In which run the values of an answer without a decision are stored; `None` if no harness assigned one.
    pub observe: Option<Observe>,
    pub decided: Option<Rc<Passed>>,
}

impl Pending {
    pub fn new(
        id: &str,
        method: &str,
        claims: &Rc<Claims>,
        listed: Option<Listed>,
        observe: Option<Observe>,
        decided: Option<Rc<Passed>>,
    ) -> Self {
        let (id, method) = (id.to_owned(), method.to_owned());
        Self { id, method, claims: Rc::clone(claims), listed, observe, decided }
    }

    /// The name of the tool that was called. If no tool was called, the name of the method.
    pub fn tool(&self) -> &str {
        self.decided.as_ref().map_or(&self.method, |passed| &passed.command.call.tool)
    }

    /// Whether its response opens a session.
    pub fn opens_session(&self) -> bool {
        self.method == "initialize"
    }
}

/// One exchange with a server.
pub struct ResponseFilter {
    pub client: Rc<McpClient>,
    /// The claims of each message that was sent. A server does not say which of them its own request is about.
    claims: Vec<Rc<Claims>>,
    pub upstream: Rc<Upstream>,
    /// The runs of the messages, if the server is untrusted; otherwise none.
    pub(super) untrusted: Marks,
    /// The same, for what the shield finds.
    pub(super) found: Marks,
    /// How to inspect messages of the server that belong to no call.
    pub(super) inspect: Option<InspectResults>,
    /// The run for the values of answers to earlier requests; `None` if their values are not stored.
    observe: Option<Observe>,
    pending: Vec<Pending>,
    /// Gateward's own responses, to the refused messages of a batch.
    pub answers: Vec<String>,
    /// Whether this is a session's own stream. Responses on it belong to earlier requests.
    pub standalone: bool,
    recheck: Recheck,
    splitter: Splitter,
    /// Whether the client can resume the stream when it breaks off.
    resumable: bool,
}

impl ResponseFilter {
    pub fn new(
        client: Rc<McpClient>,
        mut claims: Vec<Rc<Claims>>,
        upstream: Rc<Upstream>,
        rules: Vec<AnswerRules>,
        pending: Vec<Pending>,
        answers: Vec<String>,
    ) -> Self {
        claims.dedup();
        let inspect = rules.iter().find_map(|rules| rules.inspect.clone());
        let observe = rules.iter().find_map(|rules| rules.observe.clone());
        let found = rules.iter().filter_map(|rules| Some(rules.inspect.as_ref()?.taints.clone()));
        let found = Marks::new(found.collect());
        let untrusted = Marks::new(rules.into_iter().filter_map(|rules| rules.untrusted).collect());
        // The decision of a call has just marked its run.
        if untrusted.runs.len() == 1 && pending.iter().any(|pending| pending.decided.is_some()) {
            untrusted.at_ms.set(io::now_ms());
        }
        Self {
            client,
            claims,
            upstream,
            untrusted,
            found,
            inspect,
            observe,
            pending,
            answers,
            standalone: false,
            recheck: Recheck::new(),
            splitter: Splitter::default(),
            resumable: false,
        }
    }

    /// Whether the agent may still get what the server sends: [`Recheck::pass`].
    pub async fn recheck(&self, id: Option<&str>) -> Result<(), Refusal> {
        self.recheck.pass(&self.client, &self.claims, id).await
    }

    /// The id of the request, if there is exactly one.
    pub fn only_id(&self) -> Option<String> {
        match self.pending.as_slice() {
            [one] => Some(one.id.clone()),
            _ => None,
        }
    }

    /// Whether every request has a response.
    pub fn is_done(&self) -> bool {
        self.pending.is_empty()
    }

    /// Filters a body that is not a stream. `None` when it does not answer the requests.
    pub async fn whole(&mut self, bytes: &[u8], status: u16, batch: bool) -> Option<String> {
        let text = std::str::from_utf8(bytes).ok()?;
        let items = if batch { raw::items(text) } else { None };
        let texts = items.map_or_else(
            || vec![text],
            |items| items.into_iter().map(RawValue::get).collect::<Vec<_>>(),
        );
        for text in texts {
            match answer::read(text)? {
                Incoming::Answer { id: None, message } if status >= 400 => {
                    // The error is about the HTTP request as a whole.
                    return Some(self.nameless(message).await);
                }
                Incoming::Answer { id: Some(id), message } => {
                    let at = self.pending.iter().position(|pending| pending.id == id)?;
                    let pending = self.pending.swap_remove(at);
                    let answer = self.settle(&pending, message).await;
                    self.answers.push(answer);
                }
                _ => return None,
            }
        }
        self.is_done().then(|| response::join(std::mem::take(&mut self.answers), batch))
    }

    /// The filtered response to a request.
    async fn settle(&self, pending: &Pending, message: RawObject) -> String {
        let message = match self.read(pending, message).await {
            Ok(message) => message,
            Err(instead) => return instead,
        };
        if message.get("error").is_some() {
            return self.failure(Some(&pending.id), message).await;
        }
        match self.result(pending, &message).await {
            Ok(result) => response::with_field(message, "result", &result),
            Err(error) => error.with_id(Some(&pending.id)).body(self.client.era),
        }
    }

    /// A filtered error that belongs to no request.
    async fn nameless(&self, mut message: RawObject) -> String {
        match self.may_pass_member("error", &mut message).await {
            true => self.failure(None, message).await,
            false => RpcError::upstream("the server's error is withheld")
                .with_id(None)
                .body(self.client.era),
        }
    }

    /// A filtered error.
    async fn failure(&self, id: Option<&str>, message: RawObject) -> String {
        let error = answer::error(&message);
        let read = error.and_then(|error| Some((answer::elicitations(&error)?, error)));
        let refuse = |error: RpcError| error.with_id(id).body(self.client.era);
        let Some((elicited, mut error)) = read else {
            return refuse(RpcError::upstream("the server's error cannot be read"));
        };
        for params in elicited {
            if !self.may_ask(ELICITATION, params).await {
                return refuse(may_not_ask(ELICITATION));
            }
        }
        if let Err(problem) = self.untrusted.mark(&self.client).await {
            return refuse(denial::problem(&problem, &self.client.app.request_id));
        }
        response::clean_error(&mut error);
        response::with_field(message, "error", &error)
    }

    /// Whether the server may send this request under the claims of every message.
    async fn may_ask(&self, method: &str, params: Json) -> bool {
        for claims in &self.claims {
            if !self.client.may_ask(claims, method, params.clone()).await {
                return false;
            }
        }
        true
    }

    async fn result(&self, pending: &Pending, message: &RawObject) -> Result<RawObject, RpcError> {
        let unreadable = || RpcError::upstream("the server's result cannot be read");
        let mut result = answer::result(message).ok_or_else(unreadable)?;
        let era = self.client.era;
        let pages = match pending.listed {
            Some(listed) => Page::read(listed, &result).map(|page| vec![page]),
            // The request is not known.
            None if pending.method.is_empty() => Page::all(&result),
            None => Some(Vec::new()),
        };
        let (mut seen, mut observed) = (Vec::new(), Observed::default());
        for page in pages.ok_or_else(unreadable)? {
            let nothing = Json::Object(Vec::new());
            let judged = self.client.visible(&pending.claims, page.candidates(), nothing).await;
            let request_id = &self.client.app.request_id;
            let mut visible =
                judged.map_err(|refused| denial::problem(&refused.problem, request_id))?;
            let attacks = self.inspect_items(&page, &mut visible).await?;
            discovered::register(&self.client, &page.unregistered(&visible));
            if let Some(observe) = &pending.observe {
                let key = &self.client.app.settings.config.value_key;
                observed.add(page.observe(&visible, key, observe.trusted && !attacks));
            }
            page.filter(&visible, era, &mut result);
            if attacks {
                response::forbid_caching(&mut result);
            }
            seen.extend(visible);
        }
        if let Some(observe) = pending.observe.as_ref().filter(|_| !observed.is_empty()) {
            let method = if pending.method.is_empty() { UNKNOWN_REQUEST } else { &pending.method };
            let (app, template) = (&self.client.app, &self.client.template);
            let stored = passed::observe_list(app, template, observe, method, observed).await;
            stored.map_err(|problem| denial::problem(&problem, &app.request_id))?;
        }
        if era == Era::Stateless {
            for (method, params) in answer::input_requests(&result).ok_or_else(unreadable)? {
                let may_ask = method::from_server(&method) == ServerRule::Decide
                    && self.client.may_ask(&pending.claims, &method, params).await;
                if !may_ask {
                    return Err(may_not_ask(&method));
                }
            }
        }
        if !self.untrusted.runs.is_empty() {
            review::name_as_registered(&mut result, &pending.method, self.client.server());
        }
        let decided = pending.decided.as_deref();
        let seal = self.client.seal(decided.map(|passed| &passed.command));
        let decision = decided.map(|passed| &passed.decision);
        response::finish_result(&pending.method, &mut result, decision, era, &seal)?;
        let asked = Asked { method: &pending.method, listed: pending.listed, visible: &seen };
        let pinned = self.untrusted.runs.first().and_then(|it| it.instructions_sha256.as_deref());
        // The decision of a call marked the agent, but that mark may have ended by now.
        if pending.decided.is_some() || review::is_unreviewed(&result, asked, pinned) {
            let failed = |problem| denial::problem(&problem, &self.client.app.request_id);
            self.untrusted.mark(&self.client).await.map_err(failed)?;
            if !self.untrusted.runs.is_empty() {
                response::forbid_caching(&mut result);
            }
        }
        Ok(result)
    }

    /// Has the shield inspect the items of a list. Returns whether one that stays taints; then the runs are marked.
    async fn inspect_items(&self, page: &Page, seen: &mut [Visibility]) -> Result<bool, RpcError> {
        let Some(rules) = &self.inspect else { return Ok(false) };
        let attacks = page.inspect(seen, |item| {
            let part = Part::new(Kind::Text, String::new(), Cow::Borrowed(item));
            let inspected = self.client.inspect(rules.server, &[part]);
            if inspected.withheld.is_some() {
                self.client.tell_withheld("an item of a list");
            }
            inspected
        });
        if attacks {
            let problem = |why| denial::problem(&why, &self.client.app.request_id);
            self.found.mark(&self.client).await.map_err(problem)?;
        }
        Ok(attacks)
    }

    /// Filters one message of a stream. `None` when it is not passed on.
    async fn message(&mut self, text: &str) -> Option<String> {
        match answer::read(text)? {
            Incoming::Answer { id: None, message } => Some(self.nameless(message).await),
            Incoming::Answer { id: Some(id), message } => {
                let at = self.pending.iter().position(|pending| pending.id == id);
                let pending = match at {
                    Some(at) => self.pending.swap_remove(at),
                    None if self.standalone => {
                        self.client.count_server_request();
                        self.resumed(id)?
                    }
                    None => return None,
                };
                Some(self.settle(&pending, message).await)
            }
            Incoming::Notification { method, params, mut message } => {
                let passes = method::from_server(&method) == ServerRule::Pass;
                (passes && self.may_pass(&params, &mut message).await).then(|| message.write())
            }
            Incoming::Request { id, method, params, mut message } => {
                if self.client.era == Era::Stateless {
                    return None;
                }
                let passes = match method::from_server(&method) {
                    ServerRule::Pass => {
                        !review::id_is_unreviewed(&id) && self.may_pass(&params, &mut message).await
                    }
                    ServerRule::Decide => {
                        self.may_ask(&method, params).await
                            && self.may_pass_member("params", &mut message).await
                    }
                    ServerRule::Refuse => {
                        self.client.count_server_request();
                        false
                    }
                };
                if !passes {
                    self.refuse(&id, &method);
                }
                passes.then(|| message.write())
            }
        }
    }

    /// Refuses a request of the server in the background. Otherwise the server would wait for a response.
    fn refuse(&self, id: &str, method: &str) {
        if self.client.server_asked_too_much() {
            return;
        }
        let body = response::refuse_request(
            id,
            method,
            "Gateward does not allow this request of the server",
        );
        let (client, upstream) = (Rc::clone(&self.client), Rc::clone(&self.upstream));
        Rc::clone(&client.app.context).wait_until(async move {
            let mut headers = relay::own_fields(&client.template, None);
            let mut field =
                |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
            field("content-type", JSON);
            field("accept", "application/json, text/event-stream");
            if let Some(session) = &client.session {
                field("mcp-session-id", session);
            }
            if let Some(version) = client.request.header("mcp-protocol-version") {
                field("mcp-protocol-version", version);
            }
            let Ok(url) = relay::address(&client.app, &upstream) else { return };
            let body = Some(body.as_bytes());
            let url = url.as_str();
            let request = UpstreamRequest { method: "POST", url, headers, body, decision: None };
            let tenant = &client.template.tenant;
            let hold = Hold::new(&client.app);
            let sent = relay::send(&client.app, hold, &client.request, tenant, &upstream, request);
            if let Ok(Ok(answer)) = sent.await {
                answer.refuse(Ending::Complete);
            }
        });
    }

    /// The request that a response on a resumed stream belongs to. Its method is not known.
    fn resumed(&self, id: String) -> Option<Pending> {
        let claims = Rc::clone(self.claims.first()?);
        let (method, observe) = (String::new(), self.observe.clone());
        Some(Pending { id, method, claims, listed: None, observe, decided: None })
    }

    /// Filters a whole event.
    async fn event(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let Some(event) = sse::Event::read(&bytes) else { return Vec::new() };
        self.resumable |= event.has_id();
        let Some(data) = event.data.as_deref().filter(|_| event.is_message()) else {
            // Pass on comments, which keep the connection alive, and events that have only an id.
            let empty = event.data.as_deref().is_none_or(str::is_empty);
            let rest = event.data.as_deref().filter(|_| empty);
            return if empty { event.with(rest).into_bytes() } else { Vec::new() };
        };
        let passed = match raw::items(data) {
            // Only one revision has batches. A client of another revision may ignore them.
            Some(items) => {
                let mut passed = Vec::new();
                for item in items {
                    passed.extend(self.message(item.get()).await);
                }
                (!passed.is_empty()).then(|| raw::array(&passed))
            }
            None => self.message(data).await,
        };
        match passed {
            Some(passed) => event.with(Some(&passed)).into_bytes(),
            None if event.has_id() => event.with(None).into_bytes(),
            None => Vec::new(),
        }
    }
}

fn may_not_ask(method: &str) -> RpcError {
    RpcError::in_band(DENIED, ["the server may not ask the client for ", method].concat())
}

impl Inspect for ResponseFilter {
    fn is_done(&self) -> bool {
        !self.standalone && self.pending.is_empty()
    }

    fn piece(&mut self, piece: Vec<u8>) -> LocalBoxFuture<'_, Result<Vec<u8>, ()>> {
        Box::pin(async move {
            self.recheck(None).await.map_err(drop)?;
            let mut out = Vec::new();
            for answer in std::mem::take(&mut self.answers) {
                out.extend(sse::message(&answer).into_bytes());
            }
            let max = self.upstream.max_result_bytes as usize;
            for event in self.splitter.push(&piece, max).ok_or(())? {
                out.extend(self.event(event).await);
                if self.client.server_asked_too_much() {
                    return Err(());
                }
            }
            Ok(out)
        })
    }

    /// Answers the open requests with an error, unless the client can resume the stream.
    fn end(&mut self, ending: Ending) -> Vec<u8> {
        let mut out = String::new();
        for answer in std::mem::take(&mut self.answers) {
            out.push_str(&sse::message(&answer));
        }
        if !self.resumable {
            for pending in std::mem::take(&mut self.pending) {
                let why = match ending {
                    Ending::TimedOut => "the server took too long",
                    Ending::TooLarge => "the server's response is too large",
                    _ => "the server's response broke off",
                };
                let error = RpcError::in_band(INTERNAL_ERROR, why).with_id(Some(&pending.id));
                out.push_str(&sse::message(&error.body(self.client.era)));
            }
        }
        out.into_bytes()
    }
}
