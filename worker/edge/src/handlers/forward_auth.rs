//! `/v1/forward-auth`: what a gateway in front of an API asks before it lets a request pass.
//!
//! Fails closed: whatever is no `allow` is answered as a refusal. What becomes of the request
//! afterwards Gateward does not see, so there is no outcome.

use gateward_core::bounds::MAX_RESOURCE_BYTES;
use gateward_core::call::claims::Claims;
use gateward_core::call::command::Purpose;
use gateward_core::call::forward_auth::{self, Original, Question};
use gateward_core::decision::Decision;
use gateward_core::gate::proxy::ProxyDecision;
use gateward_core::json::Json;
use gateward_core::problem::{Problem, ProblemCode};

use crate::authentication;
use crate::http::{Head, Request};
use crate::lanes::{self, Judged, RateFields, Refused};
use crate::router::{Answered, App, whole};

pub async fn answer(
    request: &Request,
    app: &App,
    server: Option<&str>,
    rest: Option<&str>,
) -> Answered {
    let query = request.raw_query();
    let question = Question { method: &request.method, server, rest, query };
    let original = forward_auth::original(&question, |name| request.header(name));
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
        // Some gateways put a body of their own in place of this one.
        (None, Some(refusal)) => head.field("x-gateward-reason-code", refusal.code.code()),
        (None, None) => head,
    };
    let Some(refusal) = refusal else { return whole(head.with("{}")) };
    head = head.retry_after(refusal.retry_after_s.map(u64::from));
    whole(head.with(&refusal.to_json_as(status, &app.request_id)))
}

/// Who asked, and what was decided.
struct Judgement<'a> {
    tenant: &'a str,
    agent: &'a str,
    decision: ProxyDecision,
}

/// Steps 2 to 5 of the call that the original request is.
async fn judge<'a>(
    request: &'a Request,
    app: &App,
    original: Result<Original, Problem>,
) -> Result<(Judgement<'a>, RateFields), Refused> {
    let (token, agent, lane) = authentication::agent_token(request, app)?;
    let Original { server, request: asked, .. } = original?;
    let stated = Claims::from_headers(|name| request.header(name))?;
    // What the record says when no route fits; else the lane puts the tool's in their place.
    let (method, mut path) = (asked.method.clone(), asked.path.clone());
    path.truncate(path.floor_char_boundary(MAX_RESOURCE_BYTES));
    let target = (server.as_str(), method.as_str(), path.as_str());
    let call = stated.call((token.tenant, agent), target, Json::Object(Vec::new()));
    let purpose = Purpose::Route(asked);
    // The gateway sends a request of its own, which no caller signed.
    let command = authentication::command(request, app, &token, lane, None, purpose, call);
    let Judged { reply, rate } = lanes::judge(&app.env, &command).await?;
    let undecided = || Problem::new(ProblemCode::LaneUnavailable, "the lane did not decide");
    let decision = reply.decision.ok_or_else(undecided)?;
    Ok((Judgement { tenant: token.tenant, agent, decision }, rate))
}

/// Why the gateway must not let the request pass; `None` when it may.
fn refusal(decision: &ProxyDecision) -> Option<Problem> {
    let detail = match decision.decision {
        Decision::Allow => return None,
        Decision::Redact => {
            let fields = decision.redacted_fields.join("`, `");
            format!("{} A gateway cannot leave out `{fields}`.", decision.reason)
        }
        _ => decision.reason.clone(),
    };
    Some(Problem::new(ProblemCode::CallDenied, detail))
}
