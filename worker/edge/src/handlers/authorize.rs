//! `POST /v1/authorize`: steps 1 to 5 of a call; the lane does the rest.

use crate::http::Request;
use crate::router::{Answer, Answered, App};
use crate::{authentication, lanes};
use gateward_core::call;
use gateward_core::command::GateCommand;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::token::{self, Holder};

pub async fn authorize(request: &Request, app: &App) -> Answered {
    let token = authentication::token(request, app)?;
    let Holder::Agent { agent, lane } = token.holder else {
        let detail = "calls need an agent's credential; this is an administrator's";
        return Err(Problem::new(ProblemCode::Forbidden, detail));
    };
    let body = request.json_body().await?;
    let signed = authentication::verify_signature(request, app, &token, &body)?;
    let call = call::parse(&body, token.tenant)?;
    if call.agent != agent {
        let detail = "`agent.id` is not the agent whose credential this is";
        return Err(Problem::new(ProblemCode::AgentMismatch, detail));
    }
    let command = GateCommand {
        tenant: token.tenant.to_owned(),
        lane,
        key_id: token.key_id.to_owned(),
        secret_hash: token::secret_hash(token.secret),
        http_request_id: app.request_id.clone(),
        source_address: request.source_address(),
        signed,
        call,
    };
    lanes::call(&app.env, &command).await.map(Answer::Whole)
}
