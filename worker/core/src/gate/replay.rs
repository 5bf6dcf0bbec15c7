//! Step 6: a repeated request gets the first answer again.
//!
//! A dry run neither sees stored answers nor stores one.

use super::draft::{Draft, Stop};
use super::step::CountedEvent;
use super::warrant;
use crate::bounds::MAX_CLOCK_SKEW_MS;
use crate::problem::{Problem, ProblemCode};
use crate::warrant::NeededApprovals;

/// How long a request id keeps its answer, at least. It is forgotten at the first flush after that.
pub const REPLAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How long a nonce is remembered: until its timestamp is stale for every allowed difference
/// between the clocks. The nonce of a signature is remembered as long.
pub const NONCE_MS: u64 = 2 * MAX_CLOCK_SKEW_MS;

pub fn check(draft: &Draft<'_>) -> Result<(), Stop> {
    let (call, facts) = (&draft.command.call, draft.facts);
    let problem = |code, detail: &str| Err(Stop::Problem(Problem::new(code, detail), None));
    if call.dry_run {
        return Ok(());
    }
    if let Some(stored) = &facts.stored {
        if stored.fingerprint == draft.command.fingerprint() {
            // If the warrant no longer carries the call, the stored answer is not returned. A proof that was used
            // before is accepted, because the call is the same.
            if draft.command.warrant.is_some()
                && let Err(refusal) = warrant::carries(draft.command, facts)
            {
                let approvals = refusal.approvals.as_deref();
                let problem = Problem {
                    warrant_approvals: approvals.and_then(NeededApprovals::to_json),
                    ..Problem::new(ProblemCode::CallDenied, &refusal.reason)
                };
                return Err(Stop::Problem(
                    problem,
                    Some(CountedEvent::WarrantLapsed(refusal.code)),
                ));
            }
            return Err(Stop::Stored(stored.response.clone()));
        }
        return problem(
            ProblemCode::RequestIdConflict,
            "`request_id` was used for a different call, or with another credential",
        );
    }
    let stale = call.timestamp_ms.is_some_and(|at| {
        i64::try_from(facts.now_ms).map_or(true, |now| now.abs_diff(at) > MAX_CLOCK_SKEW_MS)
    });
    if stale {
        return problem(
            ProblemCode::TimestampStale,
            "`timestamp` is more than 300 s before or after Gateward's clock",
        );
    }
    if facts.nonce_used {
        return problem(ProblemCode::NonceReplayed, "`nonce` was used before");
    }
    Ok(())
}
