//! `GET /v1/limits/status`.

use futures_util::future::try_join_all;
use gateward_admin::api::limits::{LimitStates, SharedLimitState};
use gateward_core::field::Label;
use gateward_core::gate::limits::{agent_book, credential_book, request_book};
use gateward_core::limit::book::At;
use gateward_core::limit::lease::Terms;
use gateward_core::limit::pool::Pool;
use gateward_core::limit::status::{Status, status as status_of};
use gateward_core::limit::{Book, Limit};
use gateward_core::name::is_name;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{EACH, SharedLimit, SubjectKind};

use crate::answer::{Answer, Answered, internal};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1;
use crate::handlers::parameters::malformed;
use crate::http::{Request, json};
use crate::io;
use crate::lane;
use crate::time_zones::offset_s;

/// The state of an agent's limits (parameters `agent`, `credential`), or of one shared limit (parameters `limit`,
/// `subject`).
pub async fn status(request: &Request, app: &App, caller: &Caller) -> Answered {
    let (mut agent, mut credential) = (caller.agent.clone(), None);
    let (mut limit, mut subject) = (None, None);
    if agent.is_some() {
        credential = Some(caller.key_id.clone());
    }
    for (name, value) in request.query() {
        match name.as_ref() {
            "agent" | "credential" | "limit" if !is_name(&value) => {
                return Err(malformed(&name, "a name"));
            }
            "agent" if !caller.sees(&value) => {
                let detail = "an agent's credential reads only its own limits";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            "agent" => agent = Some(value.into_owned()),
            "credential" => credential = Some(value.into_owned()),
            "limit" | "subject" if caller.agent.is_some() => {
                let detail = "an agent's credential does not read what others used";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            "limit" => limit = Some(value.into_owned()),
            "subject" => {
                let problem = |expected: String| {
                    Problem::new(ProblemCode::MalformedRequest, format!("`subject` {expected}"))
                };
                subject = Some(Label::parse(&value).map_err(problem)?);
            }
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    let states = match (limit, agent) {
        (Some(_), Some(_)) => return Err(malformed("limit", "left out, or `agent`")),
        (Some(limit), None) => of_limit(app, caller, &limit, subject).await?,
        (None, _) if subject.is_some() => return Err(malformed("subject", "used with `limit`")),
        (None, Some(agent)) => of_agent(app, caller, agent, credential.as_deref()).await?,
        (None, None) => return Err(malformed("agent", "an agent's name")),
    };
    json(&states).map(Answer::Json)
}

async fn of_agent(
    app: &App,
    caller: &Caller,
    agent: String,
    credential: Option<&str>,
) -> Result<LimitStates, Problem> {
    let found = d1::limits::of(app, &caller.tenant, &agent, credential).await?;
    let found = found.ok_or_else(|| Problem::not_found("agent or credential"))?;
    let of_credential = found.first_key_id.as_deref().map(credential_book);
    let mut names = vec![agent_book(&agent), request_book(&agent)];
    names.extend(of_credential);
    let books = lane::client::books(app, &caller.tenant, found.lane, names).await?;
    let at = now();
    let book = |book: usize| {
        let text = books.get(book).filter(|text| !text.is_empty());
        let book = text.map_or_else(|| Some(Book::default()), |text| Book::parse(text));
        book.ok_or_else(unreadable)
    };
    let states = |limits: &[Limit], book: &Book| -> Vec<Status> {
        limits.iter().map(|limit| status_of(book, limit, at)).collect()
    };
    let mut of_agent = Vec::new();
    if let Some(rate) = &found.of_requests {
        of_agent.push(rate.status(&book(1)?, at));
    }
    of_agent.extend(states(&found.of_agent, &book(0)?));
    let asked = found.shared.iter().filter_map(|shared| {
        let is_own = |group: &&String| shared.counts(group);
        let subjects: Vec<String> = match shared.subject_kind {
            SubjectKind::Tenant => vec![EACH.to_owned()],
            SubjectKind::Group => found.groups.iter().filter(is_own).cloned().collect(),
            _ => Vec::new(),
        };
        (!subjects.is_empty()).then(|| of_shared(app, &caller.tenant, shared, subjects))
    });
    Ok(LimitStates {
        of_agent,
        of_credential: states(&found.of_credential, &book(2)?),
        shared: try_join_all(asked).await?.into_iter().flatten().collect(),
        agent: Some(agent),
    })
}

async fn of_limit(
    app: &App,
    caller: &Caller,
    limit: &str,
    subject: Option<Label>,
) -> Result<LimitStates, Problem> {
    let shared = d1::limits::shared(app, &caller.tenant).await?;
    let found = shared.iter().find(|shared| shared.limit.limit_id == limit);
    let found = found.ok_or_else(|| Problem::not_found("limit of several agents"))?;
    let subjects = match (subject, found.subject_kind) {
        (Some(subject), _) if found.counts(&subject) => vec![subject.to_string()],
        (Some(_), _) => return Err(Problem::not_found("subject of the limit")),
        (None, SubjectKind::Tenant) => vec![EACH.to_owned()],
        (None, _) => Vec::new(),
    };
    let shared = of_shared(app, &caller.tenant, found, subjects).await?;
    Ok(LimitStates { shared, ..LimitStates::default() })
}

/// The states of a shared limit for the named subjects. If no subject is named: for the first subjects that have a
/// count.
async fn of_shared(
    app: &App,
    tenant: &str,
    SharedLimit { subject_kind, limit, .. }: &SharedLimit,
    subjects: Vec<String>,
) -> Result<Vec<SharedLimitState>, Problem> {
    let at = now();
    let state = |subject: String, state: Status| SharedLimitState {
        subject_kind: *subject_kind,
        subject,
        state,
    };
    if Terms::of(&limit.rule).is_none() {
        let unused = |subject| state(subject, status_of(&Book::new(), limit, at));
        return Ok(subjects.into_iter().map(unused).collect());
    }
    let pools = lane::shared_counts::pools(app, tenant, &limit.counter, subjects.clone()).await?;
    let unused = subjects.iter().filter(|subject| !pools.iter().any(|(name, _)| name == *subject));
    let unused = unused.map(|subject| Ok((subject.clone(), Pool::default())));
    let used = pools
        .iter()
        .map(|(subject, text)| Ok((subject.clone(), Pool::parse(text).ok_or_else(unreadable)?)));
    let read = |found: Result<(String, Pool), Problem>| {
        let (subject, pool) = found?;
        Ok(state(subject, pool.status(limit, at)))
    };
    used.chain(unused).map(read).collect()
}

fn now() -> At {
    At { now_ms: io::now_ms(), offset_s }
}

fn unreadable() -> Problem {
    internal("what was used of a limit cannot be read")
}
