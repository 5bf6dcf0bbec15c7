//! A caller reports the outcome of a call that it asked about, so that its limits get back what it did not use.

use super::draft::{Draft, DraftResult, Stop};
use super::limits::first_key_id;
use super::{event, identity, meter};
use crate::call::command::Purpose;
use crate::credential::locator;
use crate::limit::reservation::Reservation;
use crate::problem::{Problem, ProblemCode};

/// Carries out a [`Purpose::ReportOutcome`]. The credential is checked and one request is charged. The lane settles the
/// reservation with the row.
pub fn judge(draft: &mut Draft<'_>) -> Result<DraftResult, Stop> {
    let (command, facts) = (draft.command, draft.facts);
    let identity = identity::verify(command, facts)?;
    meter::charge(draft)?;
    let stopped = identity::status(draft, &identity)?.is_some();
    let refuse = |problem| Err(Stop::Problem(problem, None));
    if command.run_credential {
        let detail =
            "a run credential only makes calls in its run; send the one that it was issued with";
        return refuse(Problem::new(ProblemCode::Forbidden, detail));
    }
    if stopped {
        return refuse(Problem::new(
            ProblemCode::Forbidden,
            "the agent is not active, or a ban applies; ask an administrator",
        ));
    }
    let Purpose::ReportOutcome(reported) = &command.purpose else {
        return refuse(Problem::not_found("decision"));
    };
    // Callers without a credential cannot settle: any credential of the agent does it for them.
    let own = |it: &&Reservation| {
        it.agent == command.call.agent
            && (it.credential == first_key_id(facts.records, &command.key_id)
                || it.credential == locator::KEY_ID)
    };
    // The alarm that ends reservations may be late.
    let is_open = |it: &&Reservation| !it.forwarded && facts.now_ms < it.ends_at_ms;
    let Some(reservation) = facts.reservation.filter(own).filter(is_open) else {
        let detail = "there is nothing to settle: the decision holds no amount and no budget, it was reported \
                      already, or its time is over";
        return refuse(Problem::new(ProblemCode::NotFound, detail));
    };
    let most = reservation.argument();
    if reported.amount.is_some_and(|amount| most.is_none_or(|most| amount > most)) {
        let detail = match most {
            Some(most) => format!("`amount`: must be at most {most}, the call's own number"),
            None => "`amount`: no limit reads a number of this call".to_owned(),
        };
        return refuse(Problem::field("amount", detail));
    }
    match event::outcome_reported(&draft.event_facts(), command, reported) {
        Ok(entry) => Ok(DraftResult::Recorded { entry: Some(Box::new(entry)), observation: None }),
        Err(problem) => refuse(problem),
    }
}
