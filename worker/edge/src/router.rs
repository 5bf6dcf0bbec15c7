//! The route table: every path, its methods, its handler. What is not here does not exist.

use std::rc::Rc;

use gateward_core::problem::{Problem, ProblemCode};
use worker::worker_sys::web_sys::{self, Response};
use worker::{Context, Env, Result};

use crate::failed_authentications;
use crate::handlers::{authorize, decisions, health, receipts};
use crate::http::{self, Request};
use crate::settings::{Settings, settings};

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

pub async fn answer(request: web_sys::Request, env: Env, context: Context) -> Result<Response> {
    let request = Request::read(request);
    let request_id = request.id();
    let answered = match settings(&env) {
        Ok(settings) => {
            let app = App { env, settings, request_id: request_id.clone(), context };
            let answered = route(&request, &app).await;
            failed_authentications::write_closed(&app);
            answered
        }
        Err(problem) => Err(problem),
    };
    match answered {
        Ok(Answer::Json(body)) => http::Head::new(200, &request_id).with(&body),
        Ok(Answer::Whole(response)) => Ok(response),
        Err(problem) => http::problem(&problem, &request_id),
    }
}

async fn route(request: &Request, app: &App) -> Answered {
    let segments: Vec<&str> = request.path().split('/').skip(1).collect();
    let get = || allow(request, "GET");
    let post = || allow(request, "POST");
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
            decisions::read(request, app, id).await
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
            receipts::read(request, app, id).await
        }
        _ => Err(Problem::new(ProblemCode::NotFound, "there is no such path")),
    }
}

/// Refuses another method; the detail is the `Allow` header too.
fn allow(request: &Request, method: &str) -> std::result::Result<(), Problem> {
    if request.method == method {
        return Ok(());
    }
    Err(Problem::new(ProblemCode::MethodNotAllowed, method))
}
