//! `/http/{server}/{path}`: requests to an HTTP API. The server's routes say which tool a request calls, and
//! that call is decided.

use std::borrow::Cow;

use gateward_core::call::claims::Claims;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::call::headers::{self, Caches};
use gateward_core::call::http_tool::{self, HttpRequest};
use gateward_core::call::location::{self, Exchanged};
use gateward_core::credential::token::Token;
use gateward_core::decode::text;
use gateward_core::gate::inspection::{self, UNREDACTABLE};
use gateward_core::gate::proxy::InspectResults;
use gateward_core::json::{self, Json};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::provenance::part::Part;
use gateward_core::provenance::{ResultTrust, extract};
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::Upstream;
use gateward_core::shield::Redaction;

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::authentication;
use crate::http::{Body, Head, RateFields, Request};
use crate::io;
use crate::lane;
use crate::lane::client::{LaneAnswer, Refused};
use crate::upstream::hold::Hold;
use crate::upstream::passed::{self, Passed};
use crate::upstream::relay::{self, Done, Ended, Sent, UpstreamAnswer, UpstreamRequest, Watch};
use crate::warrants;

pub async fn forward(request: &Request, app: &App, server: &str, path: &str) -> Answered {
    let caller = authentication::caller_token(request, app)?;
    let body = request.body().await?;
    let mut command = command(request, app, caller, (server, path), &body.bytes)?;
    let hold = Hold::new(app);
    let judged = lane::client::judge(&app.env, &command);
    // Only the text is kept. It is parsed again if a field must be removed: the parsed form takes many times
    // as much memory.
    if let Purpose::Route(asked) = &mut command.purpose {
        asked.body = None;
    }
    command.call.rounded = Vec::new();
    command.warrant = None;
    command.beside = Json::Null;
    let LaneAnswer { mut reply, rate } = match judged.await {
        Ok(judged) => judged,
        Err(Refused { problem, rate }) => {
            let head = rate.add_to(Head::of_problem(&problem, &app.request_id));
            return whole(head.with(&problem.to_json(&app.request_id)));
        }
    };
    warrants::keep_chain(request, app, &command);
    // The outcome names the tool.
    command.call.tool = std::mem::take(&mut reply.tool);
    let Some(decision) = reply.decision.take() else { return Err(unfit()) };
    let passed = Passed::new(command, decision, std::mem::take(&mut reply.answer), None);
    let call = DecidedCall { request, app, passed, rate };
    if !call.passed.decision.decision.passes() {
        return call.refuse(&call.passed.decision.problem());
    }
    let Some(upstream) = reply.upstream.take() else { return Err(unfit()) };
    call.exchange(hold, body, &upstream, &reply.route).await
}

/// The command for the lane.
fn command(
    request: &Request,
    app: &App,
    (token, agent, lane): (Token<'_>, &str, u16),
    (server, path): (&str, &str),
    bytes: &[u8],
) -> Result<GateCommand, Problem> {
    if matches!(request.method.as_str(), "GET" | "HEAD") && !bytes.is_empty() {
        // The runtime would not forward it.
        let detail = "a request of this method must not have a body";
        return Err(Problem::new(ProblemCode::MalformedRequest, detail));
    }
    let signature = authentication::verify_signature(request, app, &token, bytes, true)?;
    let body = read_body(request, bytes)?;
    let claims = Claims::from_headers(|name| request.header(name).map(str::to_owned))?;
    let asked = HttpRequest {
        method: request.method.clone(),
        path: path.to_owned(),
        query: request.raw_query().to_owned(),
        body,
    };
    // The lane holds the routes, so it finds the tool.
    let mut call = claims.call((token.tenant, agent), (server, "", ""), Json::Object(Vec::new()));
    call.rounded = json::rounded(bytes);
    let purpose = Purpose::Route(asked);
    let mut command =
        authentication::command(request, app, &token, lane, signature, purpose, call)?;
    command.forwarded = true;
    command.beside = headers::beside(request.headers().to_vec());
    // The lane judges the warrant, because only the lane knows the tool.
    command.warrant = warrants::in_headers(request);
    authentication::identify(request, app, &command)?;
    Ok(command)
}

/// Statuses of responses without a body.
const NO_BODY: [u16; 3] = [204, 205, 304];

/// A call that its lane has decided.
struct DecidedCall<'a> {
    request: &'a Request,
    app: &'a App,
    passed: Passed,
    rate: RateFields,
}

impl DecidedCall<'_> {
    /// Sends the request, and turns the server's response into the caller's.
    async fn exchange(
        self,
        hold: Hold,
        Body { bytes, mut held }: Body,
        upstream: &Upstream,
        route: &str,
    ) -> Answered {
        let (url, body) = match self.prepare(bytes, upstream, route) {
            Ok(prepared) => prepared,
            Err(problem) => return self.not_sent(&problem),
        };
        let decided_at_ms = io::now_ms();
        let sent = self.send(hold, upstream, &url, &body);
        // From here on only the runtime holds the body, until it is sent.
        held.resize(body.len());
        drop(body);
        let answer = match sent.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(broken)) => {
                self.record(broken.ended());
                return self.refuse(&broken.problem());
            }
            Err(problem) => return self.not_sent(&problem),
        };
        drop(held);
        if let Err((problem, ending)) = self.check(&answer, upstream, decided_at_ms).await {
            self.record(answer.refuse(ending));
            return self.refuse(&problem);
        }
        let has_body = self.request.method != "HEAD" && !NO_BODY.contains(&answer.status);
        let addresses = Exchanged {
            sent: &url,
            base: &upstream.url,
            server: &self.passed.command.call.server,
            own_origin: self.request.origin(),
        };
        match &self.passed.rules.inspect {
            Some(rules) if has_body => self.inspect(answer, addresses, rules).await,
            _ => {
                let head = self.head(&answer, addresses, upstream.shared_cache, false);
                self.stream(answer, head)
            }
        }
    }

    /// The URL and the body to send. Redacted fields are removed from both.
    fn prepare(
        &self,
        bytes: Vec<u8>,
        upstream: &Upstream,
        route: &str,
    ) -> Result<(String, Vec<u8>), Problem> {
        let Purpose::Route(asked) = &self.passed.command.purpose else { return Err(unfit()) };
        let redacted = &self.passed.decision.redacted_fields;
        let redaction = Redaction {
            shield: self.app.settings.engine.shield(),
            tenant: &self.passed.command.tenant,
            categories: &self.passed.decision.shield.redacts,
        };
        if redacted.is_empty() && !redaction.is_needed() {
            return Ok((url(self.app, upstream, asked)?, bytes));
        }
        let mut asked = HttpRequest { body: read_body(self.request, &bytes)?, ..asked.clone() };
        if !http_tool::redact(&mut asked, route, redacted, redaction) {
            let detail = "a field that must be removed is part of the path";
            return Err(Problem::new(ProblemCode::CallDenied, detail));
        }
        let body = asked.body.take().map(|body| body.canonical()).unwrap_or_default();
        Ok((url(self.app, upstream, &asked)?, body.into_bytes()))
    }

    /// Sends the request before this returns.
    fn send(
        &self,
        hold: Hold,
        upstream: &Upstream,
        url: &str,
        body: &[u8],
    ) -> impl Future<Output = Sent> + use<> {
        let own = self.request.headers();
        let mut headers = headers::to_upstream(own.to_vec(), &upstream.forwarded_headers);
        if !body.is_empty() {
            // Without a charset: the body was read as UTF-8.
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        if self.passed.rules.inspect.is_some() {
            // Remove `Range`, so that the server returns the whole body. The shield could miss a text that is
            // split over two partial responses.
            headers.retain(|(name, _)| !headers::is_range_header(name));
        }
        headers.extend(relay::own_fields(&self.passed.command, Some(&self.passed.decision)));
        let body = Some(body).filter(|body| !body.is_empty());
        let (method, decision) = (self.request.method.as_str(), Some(&self.passed.decision));
        let request = UpstreamRequest { method, url, headers, body, decision };
        relay::send(self.app, hold, self.request, &self.passed.command.tenant, upstream, request)
    }

    /// Checks the head of the response, and marks the agent if need be. An error refuses the response.
    async fn check(
        &self,
        answer: &UpstreamAnswer,
        upstream: &Upstream,
        decided_at_ms: u64,
    ) -> Result<(), (Problem, Ending)> {
        let invalid = |detail| Problem::new(ProblemCode::UpstreamInvalid, detail);
        if !(200..600).contains(&answer.status) {
            let detail = "the server's response has a status that does not exist";
            return Err((invalid(detail), Ending::Refused));
        }
        // A HEAD response has a Content-Length but no body.
        let length = answer.header("content-length").filter(|_| self.request.method != "HEAD");
        let length = length.and_then(|length| length.parse::<u64>().ok());
        if length.is_some_and(|length| length > u64::from(upstream.max_result_bytes)) {
            return Err((invalid("the server's response is too large"), Ending::TooLarge));
        }
        // The decision marked the agent. If the response took long, that mark may have ended.
        let waited_ms = io::now_ms().saturating_sub(decided_at_ms);
        if let Some(untrusted) = &self.passed.rules.untrusted
            && waited_ms >= passed::MARK_INTERVAL_MS
        {
            let marked = passed::mark(self.app, &self.passed.command, untrusted).await;
            marked.map_err(|problem| (problem, Ending::Refused))?;
        }
        Ok(())
    }

    /// Streams the server's response to the caller, and records the outcome at its end.
    fn stream(self, answer: UpstreamAnswer, head: Head) -> Answered {
        let kind = answer.header("content-type").unwrap_or_default();
        let Self { app, passed, .. } = self;
        let app = app.clone();
        let watch = if passed.rules.observe.is_some() { Watch::Body } else { Watch::Nothing };
        let done: Done = Box::new(move |ended, body| {
            let readings = readings(&kind, &body);
            let parts: Vec<Part<'_>> = readings.iter().map(|text| Part::whole(text)).collect();
            let is_cut = !parts.is_empty() && ended.bytes > body.len() as u64;
            observe(&app, &passed, &parts, is_cut);
            passed::record_outcome(&app, &passed, ended)
        });
        whole(answer.stream(head, None, watch, Some(done)))
    }

    /// Reads the server's response to its end, and has the shield inspect it before the caller gets any of it.
    async fn inspect(
        &self,
        answer: UpstreamAnswer,
        addresses: Exchanged<'_>,
        rules: &InspectResults,
    ) -> Answered {
        let (app, passed) = (self.app, &self.passed);
        let (bytes, ended) = match answer.bytes().await {
            Ok(read) => read,
            Err(broken) => {
                self.record(broken.ended());
                return self.refuse(&broken.problem());
            }
        };
        let kind = answer.header("content-type").unwrap_or_default();
        let exact = text::exact(&bytes);
        let readings = readings(&kind, &bytes);
        let parts: Vec<Part<'_>> = readings.iter().map(|text| Part::whole(text)).collect();
        let settings = &app.settings;
        let (shield, key) = (settings.engine.shield(), &settings.config.value_key);
        let tenant = &passed.command.tenant;
        let mut inspected = inspection::inspect((shield, key), tenant, rules.modes, &parts);
        let redaction = Redaction { shield, tenant, categories: &inspected.redacts };
        let redacted = match redaction.is_needed() {
            true => exact.and_then(|text| redaction.answer_text(text)),
            false => None,
        };
        if redaction.is_needed() && redacted.is_none() {
            inspected.withhold(UNREDACTABLE);
        }
        passed.note(&inspected);
        if let Some(why) = inspected.withheld {
            self.record(ended);
            return self.refuse(&Problem::new(ProblemCode::ResultBlocked, why));
        }
        observe(app, passed, &parts, false);
        if inspected.taints
            && let Err(problem) = passed::mark(app, &passed.command, &rules.taints).await
        {
            self.record(Ended { ending: Ending::Refused, ..ended });
            return self.refuse(&problem);
        }
        if let Some(recorded) = passed::record_outcome(app, passed, ended)
            && let Err(problem) = recorded.await
        {
            return self.refuse(&problem);
        }
        // A shared cache would give the answer to other agents without tainting them.
        let head = self.head(&answer, addresses, false, redacted.is_some());
        whole(match redacted {
            Some(redacted) => head.with(&redacted),
            None => head.with_bytes(&bytes),
        })
    }

    /// The head of the server's response, for the caller. `changed`: Gateward changed the body.
    fn head(
        &self,
        answer: &UpstreamAnswer,
        addresses: Exchanged<'_>,
        shared_cache: bool,
        changed: bool,
    ) -> Head {
        let mut head = Head::bare(answer.status).decision(&self.passed.decision);
        let is_untrusted = self.passed.rules.untrusted.is_some() || self.passed.is_tainting();
        let caches = match (is_untrusted, shared_cache) {
            (true, _) => Caches::None,
            (false, true) => Caches::All,
            (false, false) => Caches::Own,
        };
        for (name, value) in headers::to_caller(answer.headers(), caches) {
            if changed && headers::describes_sent_bytes(&name) {
                continue;
            }
            let value = match location::is_address(&name) {
                true => addresses.to_caller(&value),
                false => Some(value),
            };
            if let Some(value) = value {
                head = head.field(&name, value);
            }
        }
        self.rate.add_to(head.field("x-request-id", &self.app.request_id))
    }

    fn record(&self, ended: Ended) {
        // No part of the answer reaches the agent.
        let _ = passed::record_outcome(self.app, &self.passed, ended);
    }

    fn not_sent(&self, problem: &Problem) -> Answered {
        self.record(relay::not_sent());
        self.refuse(problem)
    }

    fn refuse(&self, problem: &Problem) -> Answered {
        let head = Head::of_problem(problem, &self.app.request_id).decision(&self.passed.decision);
        whole(self.rate.add_to(head).with(&problem.to_json(&self.app.request_id)))
    }
}

/// The texts that a body of this media type may be. Nobody reads a picture as text.
fn readings<'b>(kind: &str, bytes: &'b [u8]) -> Vec<Cow<'b, str>> {
    match text::exact(bytes).is_none() && headers::is_media_type(kind) {
        true => Vec::new(),
        false => text::readings(bytes),
    }
}

/// Keeps the values of a response, if its run is observed. `is_cut`: the parts are only its beginning.
fn observe(app: &App, passed: &Passed, parts: &[Part<'_>], is_cut: bool) {
    let Some(observe) = &passed.rules.observe else { return };
    let (key, trust) = (&app.settings.config.value_key, observe.result_trust.as_ref());
    let trusted = observe.trusted && !passed.is_tainting();
    let mut found = extract::result(key, parts, trust, trusted);
    // A missing trusted value only counts as seen nowhere.
    found.incomplete |= is_cut && !ResultTrust::trusts_text(trust, trusted);
    *passed.observed.borrow_mut() = found;
}

/// A JSON body, or none. Other types are refused, since policies could not judge them.
fn read_body(request: &Request, bytes: &[u8]) -> Result<Option<Json>, Problem> {
    if bytes.is_empty() {
        return Ok(None);
    }
    request.require_json()?;
    Ok(Some(json::parse(bytes)?))
}

/// The URL: the request's path below the server's address.
fn url(app: &App, upstream: &Upstream, asked: &HttpRequest) -> Result<String, Problem> {
    let base = relay::address(app, upstream)?;
    let mut url =
        base.as_str().split('?').next().unwrap_or_default().trim_end_matches('/').to_owned();
    url.push_str(&asked.path);
    if !asked.query.is_empty() {
        url.push('?');
        url.push_str(&asked.query);
    }
    Ok(url)
}

fn unfit() -> Problem {
    Problem::new(
        ProblemCode::LaneUnavailable,
        "the lane's reply does not fit the request; try again",
    )
}
