//! `GET /v1/decisions` and `/v1/decisions/{id}`.

use gateward_admin::api::decisions::{
    CallOutcome, DecidingPolicy, DecisionDetail, DecisionPage, DecisionView,
};
use gateward_admin::api::page::{DEFAULT_PAGE, FlushedThrough, MAX_PAGE};
use gateward_core::decision::Decision;
use gateward_core::field::parse_time;
use gateward_core::id::{decision_position, first_decision_id_at, rfc3339};
use gateward_core::name::is_name;
use gateward_core::problem::{Problem, ProblemCode};
use serde_json::value::RawValue;

use crate::answer::{Answer, Answered, internal};
use crate::app::App;
use crate::authentication::Caller;
use crate::d1;
use crate::d1::decisions::{DecisionRow, Filter};
use crate::handlers::parameters::{malformed, page_limit};
use crate::http::{Request, json};
use crate::lane;

/// Sorts after every decision id.
const AFTER_ALL_IDS: &str = "g";

fn view(row: DecisionRow) -> Result<DecisionView, Problem> {
    let unreadable = |_| internal("the decision's row cannot be read");
    Ok(DecisionView {
        decision_id: row.decision_id,
        lane: row.lane,
        seq: row.seq,
        at: rfc3339(row.at_ms),
        agent: row.agent,
        server: row.server,
        tool: row.tool,
        decision: row.decision,
        reason_code: row.reason_code,
        response: RawValue::from_string(row.response).map_err(unreadable)?,
    })
}

/// Newest first; `agent`, `decision`, `from`, `to` (RFC 3339), `limit`, `cursor`.
pub async fn list(request: &Request, app: &App, caller: &Caller) -> Answered {
    let mut filter = Filter {
        agent: caller.agent.clone(),
        decision: None,
        from_id: String::new(),
        before_id: AFTER_ALL_IDS.to_owned(),
        limit: DEFAULT_PAGE,
    };
    for (name, value) in request.query() {
        let time = || {
            let time = parse_time(&value).ok_or_else(|| malformed(&name, "an RFC 3339 time"))?;
            Ok::<_, Problem>(first_decision_id_at(time))
        };
        match name.as_ref() {
            "agent" if !is_name(&value) => return Err(malformed("agent", "an agent's name")),
            "agent" if !caller.sees(&value) => {
                let detail = "an agent's credential reads only its own decisions";
                return Err(Problem::new(ProblemCode::Forbidden, detail));
            }
            "agent" => filter.agent = Some(value.into_owned()),
            "decision" => {
                let decision = Decision::parse(&value).ok_or_else(|| {
                    let names = Decision::ALL.map(Decision::as_str).join(", ");
                    malformed("decision", &format!("one of {names}"))
                })?;
                filter.decision = Some(decision);
            }
            "from" => filter.from_id = time()?,
            "to" => filter.before_id = filter.before_id.min(time()?),
            "cursor" if decision_position(&value).is_some() => {
                filter.before_id = filter.before_id.min(value.into_owned());
            }
            "cursor" => return Err(malformed("cursor", "the `next_cursor` of a page")),
            "limit" => filter.limit = page_limit(&value, MAX_PAGE)?,
            _ => return Err(malformed(&name, "left out: this parameter does not exist")),
        }
    }
    // Read first, so that `flushed_through` never claims rows that the list does not contain.
    let flushes = d1::decisions::flushes(app, &caller.tenant).await?;
    let rows = d1::decisions::list(app, &caller.tenant, &filter).await?;
    let full = rows.len() == filter.limit as usize;
    let next_cursor = rows.last().filter(|_| full).map(|row| row.decision_id.clone());
    let flushed_through = flushes
        .into_iter()
        .map(|row| FlushedThrough { lane: row.lane, seq: row.seq, at: rfc3339(row.flushed_at_ms) })
        .collect();
    let decisions = rows.into_iter().map(view).collect::<Result<_, _>>()?;
    json(&DecisionPage { decisions, next_cursor, flushed_through }).map(Answer::Json)
}

/// One decision, flushed or not.
pub async fn read(app: &App, caller: &Caller, id: &str) -> Answered {
    let not_found = || Problem::not_found("decision");
    let (lane, seq) = decision_position(id).ok_or_else(not_found)?;
    if lane >= caller.lanes || seq == 0 {
        return Err(not_found());
    }
    let mut found = d1::decisions::by_id(app, &caller.tenant, id).await?;
    if found.is_none() {
        let row = lane::client::row(app, &caller.tenant, lane, seq).await?;
        found = row.and_then(|row| DecisionRow::from_journal(&row, lane));
    }
    if found.is_none() {
        // It may have been flushed between the two reads.
        found = d1::decisions::by_id(app, &caller.tenant, id).await?;
    }
    let row = found.filter(|row| row.decision_id == id && caller.sees(&row.agent));
    let row = row.ok_or_else(not_found)?;
    // An agent sees only a policy's reason, and knows the outcome of its own call.
    let explained = caller.agent.is_none();
    let policies = DecidingPolicy::of(&row.response, app.settings.engine.bundle(), explained);
    let outcome = match explained && row.decision.passes() {
        true => outcome(app, caller, &row).await?,
        false => None,
    };
    json(&DecisionDetail { decision: view(row)?, policies, outcome }).map(Answer::Json)
}

/// The outcome of the decision's call, from D1 or from the lane's first unflushed rows.
async fn outcome(
    app: &App,
    caller: &Caller,
    decision: &DecisionRow,
) -> Result<Option<CallOutcome>, Problem> {
    let (tenant, id) = (&caller.tenant, &decision.decision_id);
    let mut receipt = d1::receipts::outcome(app, tenant, id).await?;
    if receipt.is_none() {
        let rows = lane::client::rows(app, tenant, decision.lane, decision.seq + 1).await?;
        receipt = d1::receipts::outcome_in_journal(&rows, id)?;
    }
    if receipt.is_none() {
        // It may have been flushed between the two reads.
        receipt = d1::receipts::outcome(app, tenant, id).await?;
    }
    Ok(receipt.and_then(|receipt| CallOutcome::of_receipt(&receipt)))
}
