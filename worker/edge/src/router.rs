//! Finds the handler of a request. The routes and the access that each needs are a table of the core
//! (`route.rs`). A path that is not in it returns 404.

use std::rc::Rc;

use gateward_core::log::{Event, Line};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::route::{self, Access, Found, Operation, Proxied};
use percent_encoding::percent_decode_str;
use worker::worker_sys::web_sys::{self, Response};
use worker::{Context, Env, Result};

use crate::answer::{Answer, Answered, internal, whole};
use crate::app::App;
use crate::authentication::failures;
use crate::authentication::{authenticate, use_nonce, verify_mac};
use crate::handlers::runs::CallerReport;
use crate::handlers::{
    administration, approvals, authorize, decisions, forward_auth, health, http_tools, limits,
    logs, mcp, metrics, receipts, runs,
};
use crate::http::{self, Body, Head, Request};
use crate::log;
use crate::settings::settings;

/// How many times more memory a parsed body of an administrator takes than its text. A list of small
/// objects takes about this much.
const PARSED_BODY_FACTOR: usize = 8;

pub async fn answer(request: web_sys::Request, env: Env, context: Context) -> Result<Response> {
    let settings = settings(&env);
    let address_header = match &settings {
        Ok(settings) => settings.connecting_address_header.as_deref(),
        Err(_) => None,
    };
    let request = Rc::new(Request::read(request, address_header));
    let request_id = request.id();
    let answered = match settings {
        Ok(settings) => {
            let context = Rc::new(context);
            let trace = request.trace().map(Rc::new);
            let app = App { env, settings, request_id: request_id.clone(), trace, context };
            let answered = handle(&request, &app).await;
            request.drop_unread_body().await;
            failures::write_closed(&app);
            answered
        }
        Err(problem) => Err(problem),
    };
    let responded = match answered {
        Ok(Answer::Json(body)) => {
            request.rate.borrow().add_to(Head::new(200, &request_id)).with(&body)
        }
        Ok(Answer::Whole(response)) => Ok(response),
        Err(problem) if problem.code == ProblemCode::RateLimited => {
            let head = Head::of_problem(&problem, &request_id);
            request.rate.borrow().add_to(head).with(&problem.to_json(&request_id))
        }
        Err(problem) => http::problem(&problem, &request_id),
    };
    responded.or_else(|error| {
        let line = Line::new(Event::ResponseFailed, error);
        log::write(&Line { request_id: Some(&request_id), ..line });
        http::problem(&internal("the response could not be written"), &request_id)
    })
}

async fn handle(request: &Rc<Request>, app: &App) -> Answered {
    match route::proxied(request.path()) {
        Some(Proxied::Mcp { server }) => return mcp::answer(request, app, server).await,
        Some(Proxied::Http { server, rest }) => {
            return http_tools::forward(request, app, server, rest).await;
        }
        Some(Proxied::ForwardAuth { server, rest }) => {
            return forward_auth::answer(request, app, server, rest).await;
        }
        None => {}
    }
    let (route, parameters) = match route::find(&request.method, request.path()) {
        Found::Route(route, parameters) => (route, parameters),
        Found::OtherMethods(methods) => return Err(Problem::method_not_allowed(methods)),
        Found::Nothing => return Err(not_found()),
    };
    match route.access {
        Access::Call => {
            let parameter = decoded(parameters)?.into_iter().next().unwrap_or_default();
            let report = match route.operation {
                Operation::Authorize => return authorize::authorize(request, app).await,
                Operation::StartRun => CallerReport::Start,
                Operation::ReportResult => CallerReport::Result(parameter),
                Operation::ReportOutcome => CallerReport::Outcome(parameter),
                _ => return Err(not_found()),
            };
            return runs::record(request, app, report).await;
        }
        Access::Open => {
            return match route.operation {
                Operation::Health => health::alive(),
                Operation::Ready => health::ready(app).await,
                Operation::Version => health::version(app),
                Operation::Description => whole(Head::new(200, &app.request_id).with_description()),
                _ => Err(not_found()),
            };
        }
        Access::Log => {
            let parameters = decoded(parameters)?;
            let mut parameters = parameters.iter().map(String::as_str);
            let (log, tile) = (parameters.next(), parameters.next());
            let (log, tile) = (log.unwrap_or_default(), tile.unwrap_or_default());
            return logs::answer(request, app, route, log, tile).await;
        }
        Access::Bootstrap | Access::Reader(_) | Access::Administrator(_) => {}
    }
    // The MAC is verified before the body is read.
    verify_mac(request, app, route.access)?;
    let Body { bytes: body, mut held } =
        if route.method == "GET" { Body::default() } else { request.body().await? };
    let caller = authenticate(request, app, route, &body).await?;
    if !held.resize(PARSED_BODY_FACTOR * body.len()) {
        return Err(Problem::overloaded());
    }
    use_nonce(request, app, &caller).await?;
    let parameters = decoded(parameters)?;
    let first = parameters.first().map_or("", String::as_str);
    match route.operation {
        Operation::ListDecisions => decisions::list(request, app, &caller).await,
        Operation::ReadLimitStates => limits::status(request, app, &caller).await,
        Operation::ReadMetrics => metrics::scrape(app, &caller).await,
        Operation::ReadDecision => decisions::read(app, &caller, first).await,
        Operation::ListReceipts => receipts::list(request, app, &caller).await,
        Operation::ReadReceiptEnds => receipts::ends(request, app, &caller).await,
        Operation::ListRegistryEvents => logs::registry_events(request, app, &caller).await,
        Operation::ListApprovals => approvals::list(request, app, &caller).await,
        Operation::ReadApproval => approvals::read(request, app, &caller, first).await,
        Operation::DecideApproval(kind) => {
            approvals::decide(request, app, caller, (route, kind), first, &body).await
        }
        Operation::ReadReceipt => receipts::read(app, &caller, first).await,
        Operation::VerifyReceipts => receipts::verify(request, app, &caller, &body).await,
        // It answers 404 if the operation is not one of the administration.
        _ => administration::answer(request, app, &caller, route, &parameters, &body).await,
    }
}

/// The parameters of a path, decoded.
fn decoded(parameters: Vec<&str>) -> std::result::Result<Vec<String>, Problem> {
    parameters
        .into_iter()
        .map(|text| percent_decode_str(text).decode_utf8().map(|text| text.into_owned()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|_| not_found())
}

fn not_found() -> Problem {
    Problem::new(ProblemCode::NotFound, "this path does not exist")
}
