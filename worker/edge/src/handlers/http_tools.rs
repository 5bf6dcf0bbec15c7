//! `/http/{server}/{path}`: requests for an HTTP API, each decided as the call of the tool that the
//! server's routes say it is.

use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::call::headers;
use gateward_core::call::http_tool::{self, HttpRequest};
use gateward_core::json::{self, Json};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::Ending;
use gateward_core::registry::upstream::Upstream;
use worker::Date;

use crate::authentication;
use crate::http::{Body, Head, Request};
use crate::lanes::{self, Judged, Refused};
use crate::relay::{self, Done, UpstreamRequest};
use crate::router::{Answered, App, whole};

pub async fn forward(request: &Request, app: &App, server: &str, path: &str) -> Answered {
    let (token, agent, lane) = authentication::agent_token(request, app)?;
    let Body { bytes, mut held } = request.body().await?;
    if matches!(request.method.as_str(), "GET" | "HEAD") && !bytes.is_empty() {
        // The runtime sends none on.
        let detail = "a request of this method must not have a body";
        return Err(Problem::new(ProblemCode::MalformedRequest, detail));
    }
    let signature = authentication::verify_signature(request, app, &token, &bytes, true)?;
    let body = read_body(request, &bytes)?;
    let stated = Claims::from_headers(|name| request.header(name))?;
    let asked = HttpRequest {
        method: request.method.clone(),
        path: path.to_owned(),
        query: request.raw_query().to_owned(),
        body,
    };
    // The lane knows the routes, and with them the tool.
    let call = stated.call((token.tenant, agent), (server, "", ""), Json::Object(Vec::new()));
    let purpose = Purpose::Route(asked);
    let mut command = authentication::command(request, app, &token, lane, signature, purpose, call);
    let judged = lanes::judge(&app.env, &command);
    // The text is kept, and read again if a field must be left out: parsed, it takes many times as much.
    if let Purpose::Route(asked) = &mut command.purpose {
        asked.body = None;
    }
    let Judged { mut reply, rate } = match judged.await {
        Ok(judged) => judged,
        Err(Refused { problem, rate }) => {
            let head = rate.add_to(Head::of_problem(&problem, &app.request_id));
            return whole(head.with(&problem.to_json(&app.request_id)));
        }
    };
    // The outcome names it.
    command.call.tool = std::mem::take(&mut reply.tool);
    let Some(decision) = reply.decision.take() else { return Err(unreadable()) };
    let refuse = |problem: Problem| {
        let head = Head::of_problem(&problem, &app.request_id).decision(&decision);
        whole(rate.add_to(head).with(&problem.to_json(&app.request_id)))
    };
    if !decision.decision.passes() {
        return refuse(Problem::new(ProblemCode::CallDenied, &decision.reason));
    }
    let Some(upstream) = reply.upstream.take() else { return Err(unreadable()) };
    let untrusted = reply.untrusted.as_ref();
    let not_sent = |problem| {
        relay::record_outcome(app, &command, &decision, untrusted, relay::not_sent());
        refuse(problem)
    };
    let redacted = &decision.redacted_fields;
    let mut asked = match &command.purpose {
        Purpose::Route(asked) => asked.clone(),
        _ => return not_sent(unreadable()),
    };
    let body = if redacted.is_empty() {
        bytes
    } else {
        asked.body = match read_body(request, &bytes) {
            Ok(body) => body,
            Err(problem) => return not_sent(problem),
        };
        if !http_tool::redact(&mut asked, &reply.route, redacted) {
            let detail = "a field that must be left out is part of the path";
            return not_sent(Problem::new(ProblemCode::CallDenied, detail));
        }
        asked.body.take().map(|body| body.canonical()).unwrap_or_default().into_bytes()
    };
    let url = match url(app, &upstream, &asked) {
        Ok(url) => url,
        Err(problem) => return not_sent(problem),
    };
    let mut fields = headers::to_upstream(request.headers(), &upstream.forwarded_headers);
    if !body.is_empty() {
        // Without a character set: the body is UTF-8, as it was read.
        fields.push(("content-type".to_owned(), "application/json".to_owned()));
    }
    fields.extend(relay::own_fields(&command, Some(&decision)));
    let decided_at_ms = Date::now().as_millis();
    let sent = relay::send(
        app,
        request,
        &command.tenant,
        &upstream,
        UpstreamRequest {
            method: &request.method,
            url: &url,
            headers: fields,
            body: Some(body.as_slice()).filter(|body| !body.is_empty()),
        },
    );
    // From here on only the runtime holds it, until it is sent.
    held.resize(body.len());
    drop(body);
    let answer = match sent.await {
        Ok(Ok(answer)) => answer,
        Ok(Err(broken)) => {
            relay::record_outcome(app, &command, &decision, untrusted, broken.ended());
            return refuse(broken.problem());
        }
        Err(problem) => return not_sent(problem),
    };
    drop(held);
    if !(200..600).contains(&answer.status) {
        relay::record_outcome(app, &command, &decision, untrusted, answer.refuse(Ending::Refused));
        let detail = "the server's answer has a status that there is not";
        return refuse(Problem::new(ProblemCode::UpstreamInvalid, detail));
    }
    // A HEAD response has a Content-Length but no body.
    let length = answer.header("content-length").filter(|_| request.method != "HEAD");
    let length = length.and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > u64::from(upstream.max_result_bytes)) {
        relay::record_outcome(app, &command, &decision, untrusted, answer.refuse(Ending::TooLarge));
        let detail = "the server's answer is too large";
        return refuse(Problem::new(ProblemCode::UpstreamInvalid, detail));
    }
    // The decision marked the agent; what comes later may come after that mark has ended.
    let waited_ms = Date::now().as_millis().saturating_sub(decided_at_ms);
    if let Some(untrusted) = untrusted
        && waited_ms >= relay::MARK_INTERVAL_MS
        && let Err(problem) = relay::mark(app, &command, untrusted).await
    {
        let ended = answer.refuse(Ending::Refused);
        relay::record_outcome(app, &command, &decision, Some(untrusted), ended);
        return refuse(problem);
    }
    let mut head = Head::bare(answer.status).decision(&decision);
    for (name, value) in headers::to_caller(answer.headers(), upstream.shared_cache) {
        head = head.field(&name, value);
    }
    head = rate.add_to(head.field("x-request-id", &app.request_id));
    let app = app.clone();
    let done: Done = Box::new(move |ended| {
        relay::record_outcome(&app, &command, &decision, reply.untrusted.as_ref(), ended);
    });
    whole(answer.stream(head, None, Some(done)))
}

/// A JSON body, or none: policies judge what the API will take, and read nothing else.
fn read_body(request: &Request, bytes: &[u8]) -> Result<Option<Json>, Problem> {
    if bytes.is_empty() {
        return Ok(None);
    }
    request.require_json()?;
    Ok(Some(json::parse(bytes)?))
}

/// Where the request goes: the path below the server's own.
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

fn unreadable() -> Problem {
    Problem::new(ProblemCode::LaneUnavailable, "the lane's answer makes no sense")
}
