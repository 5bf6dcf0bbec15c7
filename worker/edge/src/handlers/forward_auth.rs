//! `/v1/forward-auth`: a gateway in front of an API asks whether it may forward a request.
//!
//! Fails closed: every decision except `allow` becomes a refusal. The gateway forwards the request itself, so
//! no outcome is recorded.

use gateward_core::bounds::MAX_RESOURCE_BYTES;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::call::forward_auth::{self, Original, Question};
use gateward_core::decision::Decision;
use gateward_core::gate::proxy::ProxyDecision;
use gateward_core::json::Json;
use gateward_core::problem::{Problem, ProblemCode};

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::authentication;
use crate::http::{Head, RateFields, Request};
use crate::lane;
use crate::lane::client::{LaneAnswer, Refused};
use crate::warrants;

pub async fn answer(
    request: &Request,
    app: &App,
    server: Option<&str>,
    rest: Option<&str>,
) -> Answered {
    let query = request.raw_query();
    let question = Question { method: &request.method, server, rest, query };
    let original =
        forward_auth::original(&question, |name| request.header(name).map(str::to_owned));
    let limited = original.as_ref().map_or(403, |original| original.rate_limited_status);
    let (judgement, rate, refusal) = match judge(request, app, original).await {
        Ok((judgement, rate)) => {
            let refusal = refusal(&judgement.decision);
            (Some(judgement), rate, refusal)
        }
        Err(Refused { problem, rate }) => (None, rate, Some(problem)),
    };
    let status = refusal.as_ref().map_or(200, |it| forward_auth::status(it.code, limited));
    let mut head = rate.add_to(Head::new(status, &app.request_id));
    head = match (judgement, &refusal) {
        (Some(Judgement { tenant, agent, decision }), _) => head
            .field("x-gateward-tenant", tenant)
            .field("x-gateward-agent", agent)
            .decision(&decision),
        // Some gateways replace the body, so the reason code is also in a header.
        (None, Some(refusal)) => head.field("x-gateward-reason-code", refusal.code.code()),
        (None, None) => head,
    };
    let Some(refusal) = refusal else { return whole(head.with("{}")) };
    head = head.retry_after(refusal.retry_after_s.map(u64::from));
    whole(head.with(&refusal.to_json_as(status, &app.request_id)))
}

/// The decision, with the tenant and agent that it is about.
struct Judgement<'a> {
    tenant: &'a str,
    agent: &'a str,
    decision: ProxyDecision,
}

/// Steps 2 to 4, for the original request.
async fn judge<'a>(
    request: &'a Request,
    app: &App,
    original: Result<Original, Problem>,
) -> Result<(Judgement<'a>, RateFields), Refused> {
    let (token, agent, lane) = authentication::caller_token(request, app)?;
    let Original { server, request: asked, .. } = original?;
    let claims = Claims::from_headers(|name| request.header(name).map(str::to_owned))?;
    // If no route matches, the record names method and path in place of the tool.
    let (method, mut path) = (asked.method.clone(), asked.path.clone());
    path.truncate(path.floor_char_boundary(MAX_RESOURCE_BYTES));
    let target = (server.as_str(), method.as_str(), path.as_str());
    let call = claims.call((token.tenant, agent), target, Json::Object(Vec::new()));
    let purpose = Purpose::Route(asked);
    // The caller did not sign the gateway's request.
    let mut command = authentication::command(request, app, &token, lane, None, purpose, call)?;
    // The lane judges the warrant, because only the lane knows the tool.
    command.warrant = warrants::in_headers(request);
    authentication::identify(request, app, &command)?;
    let LaneAnswer { reply, rate } = lane::client::judge(&app.env, &command).await?;
    warrants::keep_chain(request, app, &command);
    let undecided =
        || Problem::new(ProblemCode::LaneUnavailable, "the lane did not decide; try again");
    let decision = reply.decision.ok_or_else(undecided)?;
    Ok((Judgement { tenant: token.tenant, agent, decision }, rate))
}

/// Why the gateway must not forward the request; `None` if it may.
fn refusal(decision: &ProxyDecision) -> Option<Problem> {
    match decision.decision {
        Decision::Allow => None,
        _ => Some(decision.problem()),
    }
}
