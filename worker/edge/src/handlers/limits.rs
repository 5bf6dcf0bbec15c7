//! `GET /v1/limits/status`.

use gateward_core::api::limits::LimitStates;
use gateward_core::gate::limits::{agent_book, credential_book};
use gateward_core::limit::book::{At, Status};
use gateward_core::limit::{Book, Limit};
use gateward_core::name::is_name;
use gateward_core::problem::{Problem, ProblemCode};
use worker::Date;

use crate::answer::{Answer, Answered};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1;
use crate::handlers::parameters::malformed;
use crate::http::{Request, json};
use crate::lane;
use crate::time_zones::offset_s;

/// What is left of an agent's limits: `agent`, `credential`.
pub async fn status(request: &Request, app: &App, caller: &Caller) -> Answered {
    let (mut agent, mut credential) = (caller.agent.clone(), None);
    if agent.is_some() {
        credential = Some(caller.key_id.clone());
    }
    for (name, value) in request.query() {
        match name.as_ref() {
            "agent" | "credential" if !is_name(&value) => {
                return Err(malformed(&name, "a name"));
            }
            "agent" if !caller.sees(&value) => {
                let detail = "an agent's credential reads only its own limits";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            "agent" => agent = Some(value.into_owned()),
            "credential" => credential = Some(value.into_owned()),
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    let agent = agent.ok_or_else(|| malformed("agent", "an agent's name"))?;
    let found = d1::limits::of(&app.env, &caller.tenant, &agent, credential.as_deref()).await?;
    let found = found.ok_or_else(|| Problem::not_found("agent or credential"))?;
    let names: Vec<String> =
        [Some(agent_book(&agent)), found.first_key_id.as_deref().map(credential_book)]
            .into_iter()
            .flatten()
            .collect();
    let books = lane::client::books(&app.env, &caller.tenant, found.lane, names).await?;
    let at = At { now_ms: Date::now().as_millis(), offset_s };
    let states = |limits: &[Limit], book: usize| -> Result<Vec<Status>, Problem> {
        let text = books.get(book).filter(|text| !text.is_empty());
        let unreadable = || Problem::new(ProblemCode::Internal, "a book of limits cannot be read");
        let book = text.map_or_else(|| Some(Book::default()), |text| Book::parse(text));
        let book = book.ok_or_else(unreadable)?;
        Ok(limits.iter().map(|limit| book.status(limit, at)).collect())
    };
    let of_agent = states(&found.of_agent, 0)?;
    let of_credential = states(&found.of_credential, 1)?;
    json(&LimitStates { agent, of_agent, of_credential }).map(Answer::Json)
}
