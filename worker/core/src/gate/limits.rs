//! The limits of a call: checked once the tool is known, used if the call passes.

use std::rc::Rc;

use super::draft::{Draft, Stop};
use super::facts::Facts;
use super::replay::REPLAY_MS;
use super::ruling::{Ruling, Tool};
use super::shared_limits;
use super::step::CountedEvent;
use crate::call::command::{GateCommand, Purpose};
use crate::decision::ReasonCode;
use crate::limit::book::{At, Writes};
use crate::limit::reservation::Reservation;
use crate::limit::usage::{self, Covered, Ledger, Usage};
use crate::limit::violation::{Violation, Why};
use crate::limit::{Amount, Kind, Limit};
use crate::problem::{Problem, ProblemCode};
use crate::registry::CallRecords;

/// Reservations of a lane: of forwarded calls that hold a part of a limit, and of calls whose callers may still report
/// an outcome. More calls than this cannot be in progress at once. A reservation takes about 300 bytes.
pub const MAX_RESERVATIONS: usize = 5_000;

/// Reservations of one agent, so that it leaves space for other agents: at most this many for forwarded calls, and as many
/// for calls of `/v1/authorize`.
pub const MAX_RESERVATIONS_OF_AGENT: usize = 500;

/// How long after its time limit a forwarded call's outcome may arrive. Then the call counts as unclear.
pub const OUTCOME_MARGIN_MS: u64 = 60_000;

/// How long a caller that asked may report an outcome: a day, as long as answers are kept.
const REPORT_MS: u64 = REPLAY_MS;

/// The name of an agent's book.
#[must_use]
pub fn agent_book(agent: &str) -> String {
    ["agent/", agent].concat()
}

/// The name of a credential's book.
#[must_use]
pub fn credential_book(key_id: &str) -> String {
    ["credential/", key_id].concat()
}

/// The name by which a lane is asked for the bucket of an agent's requests. The bucket is in the agent's state, and not
/// in a stored book.
#[must_use]
pub fn request_book(agent: &str) -> String {
    ["requests/", agent].concat()
}

/// The agent of a [`request_book`]; `None` if this is the name of a stored book.
#[must_use]
pub fn agent_of_requests(name: &str) -> Option<&str> {
    name.strip_prefix("requests/")
}

/// Checks and uses the limits that cover the call. Returns the denial if it violates one. If the call does not pass,
/// [`revert`] must follow.
///
/// # Errors
///
/// 429: the call violates a limit of the kind `rate` or `concurrency`. 503 `overloaded`: a forwarded call needs a
/// reservation, and its agent or its lane has no space for another one.
pub fn check(draft: &mut Draft<'_>, tool: &Tool) -> Result<Option<Ruling>, Stop> {
    let (facts, call) = (draft.facts, &draft.command.call);
    let reads = facts.records.tool.as_ref().is_some_and(|tool| !tool.writes());
    draft.covered = Covered { reads, writes: tool.writes };
    draft.ledgers = ledgers(facts, draft.command, draft.covered);
    // A request of a server to its client is not the agent's own call. Calling a canary quarantines, whatever is
    // left of limits.
    if draft.ledgers.is_empty() || draft.command.purpose == Purpose::Ask || tool.canary {
        draft.ledgers.clear();
        return Ok(None);
    }
    let counts = |ledger: &&Ledger<'_>| {
        ledger.leased.is_some() && ledger.limits.iter().any(|it| shared_limits::is_counted(it))
    };
    if let Some(more) = draft.ledgers.iter().filter(counts).nth(shared_limits::MAX_SHARED_OF_CALL) {
        let mut ruling = Ruling::deny(ReasonCode::LimitUnavailable);
        ruling.reason = format!(
            "The call counts for more than {} shared limits, since its agent is in so many groups.",
            shared_limits::MAX_SHARED_OF_CALL
        );
        ruling.violation = more.limits.first().map(|limit| Violation::too_many_counts(limit));
        ruling.tool = Some(tool.clone());
        return Ok(Some(ruling));
    }
    let cost = facts.records.tool.as_ref().and_then(|tool| tool.cost);
    let forwarded = draft.command.forwarded;
    let usage = Usage {
        tool: &draft.tool_id,
        covered: draft.covered,
        input: draft.command.counted_input(),
        rounded: &call.rounded,
        cost: cost.unwrap_or(Amount::whole(1)),
        forwarded,
    };
    let uses = usage::uses(&draft.ledgers, &usage);
    let violation = match usage::apply(&mut draft.ledgers, &uses, forwarded, at(facts)) {
        // If the lane has no space for a reservation of an asked call, its caller cannot report an outcome, and
        // nothing is given back. That is safe, so only forwarded calls are refused.
        Ok(_)
            if forwarded
                && !facts.books.space.forwarded
                && uses.iter().any(|it| it.is_open(true)) =>
        {
            let detail = "too many calls of this agent, or of its lane, are in progress";
            return Err(Stop::Problem(Problem::new(ProblemCode::Overloaded, detail), None));
        }
        Ok(needs) => {
            draft.uses = uses;
            // A dry run does not take anything away from other lanes.
            draft.needs = if call.dry_run { Vec::new() } else { needs };
            return Ok(None);
        }
        Err(violation) => violation,
    };
    let reason = violation.sentence(facts.now_ms);
    let reason_code = match (violation.why, violation.kind) {
        (Why::Unreadable, _) => ReasonCode::LimitUnreadable,
        (Why::Unavailable, _) => ReasonCode::LimitUnavailable,
        (_, Kind::Hours) => ReasonCode::OutsideHours,
        (_, Kind::PerCall) => ReasonCode::PerCallExceeded,
        (_, Kind::Quota) => ReasonCode::QuotaExhausted,
        (_, Kind::Amount) => ReasonCode::AmountExhausted,
        (_, Kind::Budget) => ReasonCode::BudgetExhausted,
        (_, Kind::Rate | Kind::Concurrency) => return Err(too_many(violation, reason)),
    };
    let mut ruling = Ruling::deny(reason_code);
    ruling.reason = reason;
    ruling.violation = Some(violation);
    ruling.tool = Some(tool.clone());
    Ok(Some(ruling))
}

fn too_many(violation: Box<Violation>, reason: String) -> Stop {
    let mut problem = Problem::new(ProblemCode::RateLimited, reason);
    let retry_after_s = violation.retry_after_s;
    problem.retry_after_s = retry_after_s.map(|s| u32::try_from(s).unwrap_or(u32::MAX));
    problem.violated_limit = Some(violation);
    Stop::Problem(problem, Some(CountedEvent::RateLimited))
}

fn ledgers<'a>(facts: &'a Facts<'_>, command: &GateCommand, covered: Covered) -> Vec<Ledger<'a>> {
    let own = own_limits(facts.records, command).into_iter();
    let of_own = |(own, book): (Option<(String, _)>, _)| {
        own.map(|(name, limits)| Ledger::new(name.into(), limits, book, None))
    };
    let mut ledgers: Vec<_> =
        own.zip([facts.books.agent, facts.books.credential]).filter_map(of_own).collect();
    let Some(leases) = facts.books.leases else { return ledgers };
    for shared in shared_limits::of_call(facts.records, command, covered) {
        let name = shared.book();
        let stored = leases.books.get(&*name).unwrap_or_default();
        let leased = Some(leases.waits.of(&name, &shared.subject));
        let limits = std::slice::from_ref(shared.limit);
        ledgers.push(Ledger::new(name.into(), limits, stored, leased));
    }
    ledgers
}

/// The limits of one subject, with the name of their book.
type OwnLimits<'a> = (String, &'a [Rc<Limit>]);

/// The limits of a call's agent, and those of its credential; `None` if there are none.
pub fn own_limits<'a>(
    records: &'a CallRecords,
    command: &GateCommand,
) -> [Option<OwnLimits<'a>>; 2] {
    let agent = records.agent.as_ref().filter(|it| !it.limits.is_empty());
    let credential = records.credential.as_ref().filter(|it| !it.limits.is_empty());
    [
        agent.map(|it| (agent_book(&command.call.agent), it.limits.as_slice())),
        credential.map(|it| {
            (credential_book(first_key_id(records, &command.key_id)), it.limits.as_slice())
        }),
    ]
}

/// The first of the credentials that were rotated into the call's own.
pub fn first_key_id<'a>(records: &'a CallRecords, key_id: &'a str) -> &'a str {
    let credential = records.credential.as_ref();
    credential.and_then(|it| it.first_key_id.as_deref()).unwrap_or(key_id)
}

fn at(facts: &Facts<'_>) -> At {
    At { now_ms: facts.now_ms, offset_s: facts.config.offset_s }
}

/// Undoes what [`check`] used, except request rates, because the call does not pass.
pub fn revert(draft: &mut Draft<'_>) {
    usage::revert(&mut draft.ledgers);
}

/// What the call changes, for the decision's row; `None` if nothing.
pub fn writes(draft: &Draft<'_>, passes: bool, decision_id: &str) -> Option<Box<Writes>> {
    let facts = draft.facts;
    let changed = draft.ledgers.iter().filter(|ledger| ledger.book != *ledger.stored);
    let books: Vec<_> =
        changed.map(|ledger| (Rc::clone(&ledger.name), ledger.book.clone())).collect();
    if books.is_empty() {
        return None;
    }
    let forwarded = draft.command.forwarded;
    let server = facts.records.server.as_ref();
    let upstream = server.and_then(|server| server.upstream.as_deref());
    let wait_ms = match upstream.filter(|_| forwarded) {
        Some(upstream) => u64::from(upstream.whole_timeout_ms) + OUTCOME_MARGIN_MS,
        None => REPORT_MS,
    };
    let space = facts.books.space;
    let has_space = if forwarded { space.forwarded } else { space.asked };
    let takes = match passes && has_space {
        true => usage::takes(&draft.ledgers, &draft.uses, forwarded),
        false => Vec::new(),
    };
    let reservation = (!takes.is_empty()).then(|| Reservation {
        decision_id: decision_id.to_owned(),
        ends_at_ms: facts.now_ms.saturating_add(wait_ms),
        agent: draft.command.call.agent.clone(),
        credential: first_key_id(facts.records, &draft.command.key_id).to_owned(),
        forwarded,
        takes,
    });
    Some(Box::new(Writes { books, reservation, settles: None }))
}
