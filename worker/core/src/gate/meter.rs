//! Steps 5 and 6: the request rate, which every request uses, and the tenant's daily bound of rows and bytes.

use super::daily_rows::{DailyRows, Exhausted};
use super::draft::{Draft, Stop};
use super::facts::Facts;
use super::ruling::Ruling;
use super::step::CountedEvent;
use crate::bucket::Bucket;
use crate::call::command::Purpose;
use crate::decision::ReasonCode;
use crate::limit::{DEFAULT_RATE, Violation};
use crate::problem::{Problem, ProblemCode};

/// Charges the agent's bucket for the request, whatever is decided later.
pub fn charge(draft: &mut Draft<'_>) -> Result<(), Stop> {
    let leases = draft.facts.books.leases;
    let asked_counters = leases.is_some_and(|leases| !leases.waits.answers.is_empty());
    if asked_counters || draft.facts.windows.answers.is_some() {
        // Charged before the lane asked.
        draft.charged = true;
        return Ok(());
    }
    let now_ms = draft.facts.now_ms;
    let mut bucket = draft.agent.bucket.unwrap_or_else(|| Bucket::full(draft.rate, now_ms));
    let cost = match draft.command.purpose {
        Purpose::Message { cost } => cost,
        _ => 1,
    };
    let enough = bucket.charge(draft.rate, now_ms, cost);
    draft.agent.bucket = Some(bucket);
    draft.agent.revision += 1;
    draft.charged = true;
    if enough {
        return Ok(());
    }
    let status = bucket.status(draft.rate);
    let (limit, window_s) = (status.limit, status.window_s);
    let detail = match cost {
        1 => format!("the agent has used its {limit} requests per {window_s} s"),
        _ => format!(
            "this request counts as {cost} of the agent's {limit} requests per {window_s} s"
        ),
    };
    let mut problem = Problem::new(ProblemCode::RateLimited, detail);
    let retry_after_s = bucket.retry_after_s(draft.rate, cost).max(1);
    problem.retry_after_s = Some(u32::try_from(retry_after_s).unwrap_or(u32::MAX));
    let limit_id = draft.request_limit.map_or(DEFAULT_RATE, |it| it.limit_id.as_str());
    let violation = Violation::of_requests(limit_id, status, cost, retry_after_s);
    problem.violated_limit = Some(Box::new(violation));
    Err(Stop::Problem(problem, Some(CountedEvent::RateLimited)))
}

/// The denial of every call of a tenant that has reached its daily bound. It is counted and not
/// journalled, and the request id can be used again the next day.
pub fn deny_at_daily_bound(facts: &Facts<'_>) -> Option<Ruling> {
    let exhausted = DailyRows::of(facts.records.tenant.as_deref()).exhausted(facts.written)?;
    let mut ruling = Ruling::deny(match exhausted {
        Exhausted::Rows => ReasonCode::TenantRowsExhausted,
        Exhausted::Bytes => ReasonCode::TenantBytesExhausted,
    });
    ruling.denies_caller = true;
    ruling.counted_only = true;
    Some(ruling)
}
