//! `POST /v1/authorize`: steps 1 to 4 of a call; the lane does the rest.

use crate::answer::{Answer, Answered};
use crate::app::App;
use crate::authentication;
use crate::handlers::logs;
use crate::http::{Body, Request};
use crate::lane;
use crate::warrants;
use gateward_core::call;
use gateward_core::call::command::Purpose;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::warrant::Carried;

pub async fn authorize(request: &Request, app: &App) -> Answered {
    let (token, agent, lane) = authentication::caller_token(request, app)?;
    let Body { bytes, held: _held } = request.json_body().await?;
    let signature = authentication::verify_signature(request, app, &token, &bytes, true)?;
    let (call, in_body) = call::parse(&bytes, token.tenant)?;
    drop(bytes);
    let mut carried = Carried::only(warrants::in_headers(request), in_body);
    if call.nonce.is_some() {
        let reason =
            "A call with a warrant must not have a `nonce`: each proof is valid for one call.";
        carried = carried.map(|carried| carried.refused(reason));
    }
    if call.agent != agent {
        let detail = "`agent.id` must be the agent of the credential";
        return Err(Problem::new(ProblemCode::AgentMismatch, detail));
    }
    let purpose = Purpose::Authorize;
    let mut command =
        authentication::command(request, app, &token, lane, signature, purpose, call)?;
    warrants::judge(app, &mut command, carried);
    authentication::identify(request, app, &command)?;
    let wait_s = logs::preferred_wait_s(request);
    let answer = lane::client::call(&app.env, &command);
    drop(command);
    let answer = answer.await?;
    Ok(Answer::Whole(match wait_s {
        None => answer,
        Some(wait_s) => logs::with_checkpoint(app, token.tenant, answer, wait_s).await?,
    }))
}
