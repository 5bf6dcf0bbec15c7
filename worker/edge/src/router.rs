//! The route table: every path, its methods, its handler. What is not here does not exist.

use std::rc::Rc;

use gateward_core::problem::{Problem, ProblemCode};
use worker::{Context, Env, Method, Request, Response, Result};

use crate::handlers::{authorize, decisions, health, receipts};
use crate::settings::{Settings, settings};
use crate::{failed_authentications, http};

/// What every handler gets.
pub struct App {
    pub env: Env,
    pub settings: Rc<Settings>,
    pub request_id: String,
    pub context: Context,
}

/// What every handler gives: an answer's body, a whole answer, or a problem.
pub enum Answer {
    Json(String),
    Whole(Response),
}

pub type Answered = std::result::Result<Answer, Problem>;

pub async fn answer(request: Request, env: Env, context: Context) -> Result<Response> {
    let request_id = http::request_id(&request);
    let answered = match settings(&env) {
        Ok(settings) => {
            let app = App { env, settings, request_id: request_id.clone(), context };
            let answered = route(request, &app).await;
            failed_authentications::write_closed(&app);
            answered
        }
        Err(problem) => Err(problem),
    };
    match answered {
        Ok(Answer::Json(body)) => http::json_text(body, 200, &request_id),
        Ok(Answer::Whole(response)) => Ok(response),
        Err(problem) => {
            let response = http::problem(&problem, &request_id)?;
            if let ProblemCode::MethodNotAllowed = problem.code {
                response.headers().set("allow", &problem.detail)?;
            }
            Ok(response)
        }
    }
}

async fn route(request: Request, app: &App) -> Answered {
    let path = request.path();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let get = || allow(&request, Method::Get);
    let post = || allow(&request, Method::Post);
    match segments.as_slice() {
        ["healthz"] => get().and_then(|()| health::alive()),
        ["version"] => get().and_then(|()| health::version(app)),
        ["readyz"] => {
            get()?;
            health::ready(app).await
        }
        ["v1", "authorize"] => {
            post()?;
            authorize::authorize(request, app).await
        }
        ["v1", "decisions"] => {
            get()?;
            decisions::list(request, app).await
        }
        ["v1", "decisions", id] => {
            get()?;
            decisions::read(&request, app, id).await
        }
        ["v1", "receipts"] => {
            get()?;
            receipts::list(request, app).await
        }
        ["v1", "receipts", "verify"] => {
            post()?;
            receipts::verify(request, app).await
        }
        ["v1", "receipts", id] => {
            get()?;
            receipts::read(&request, app, id).await
        }
        _ => Err(Problem::new(ProblemCode::NotFound, "there is no such path")),
    }
}

/// Refuses another method; the detail is the `Allow` header too.
fn allow(request: &Request, method: Method) -> std::result::Result<(), Problem> {
    if request.method() == method {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::MethodNotAllowed, method.to_string()))
}
