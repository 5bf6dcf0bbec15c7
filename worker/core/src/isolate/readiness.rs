//! How often `/readyz` may ask the database and a lane. Anybody can call `/readyz`, so its answer
//! is cached for a moment, and an isolate runs one check at a time.

use crate::problem::Problem;

/// How long an answer is cached. A load balancer asks every few seconds.
pub const FRESH_MS: u64 = 1_000;

/// The time limit of a check: longer than the shell's time limit of a hop to a lane. A check that takes
/// longer, or whose request was cancelled, has failed.
pub const CHECK_LIMIT_MS: u64 = 5_000;

/// The state of the checks in an isolate.
#[derive(Debug, Default)]
pub struct Readiness {
    last: Option<(u64, Result<(), Problem>)>,
    checking_since_ms: Option<u64>,
}

/// What a request should do.
#[derive(Debug, PartialEq, Eq)]
pub enum Ask {
    /// Answer with this result.
    Answer(Result<(), Problem>),
    /// Run the check, and report its result.
    Check,
    /// Ask again in a moment, because another request runs the check.
    Wait,
}

impl Readiness {
    pub fn ask(&mut self, now_ms: u64) -> Ask {
        if let Some((at_ms, result)) = &self.last
            && now_ms.saturating_sub(*at_ms) < FRESH_MS
        {
            return Ask::Answer(result.clone());
        }
        if self.checking_since_ms.is_some_and(|at| now_ms.saturating_sub(at) < CHECK_LIMIT_MS) {
            return Ask::Wait;
        }
        self.checking_since_ms = Some(now_ms);
        Ask::Check
    }

    pub fn checked(&mut self, now_ms: u64, result: Result<(), Problem>) {
        self.last = Some((now_ms, result));
        self.checking_since_ms = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ProblemCode;

    #[test]
    fn an_isolate_runs_one_check_at_a_time_and_keeps_what_it_found_for_a_moment() {
        let mut readiness = Readiness::default();
        assert_eq!(readiness.ask(10), Ask::Check);
        assert_eq!(readiness.ask(10), Ask::Wait);
        readiness.checked(50, Ok(()));
        assert_eq!(readiness.ask(49 + FRESH_MS), Ask::Answer(Ok(())));
        assert_eq!(readiness.ask(50 + FRESH_MS), Ask::Check);
        let problem = Problem::new(ProblemCode::RegistryUnavailable, "no");
        readiness.checked(2_000, Err(problem.clone()));
        assert_eq!(readiness.ask(2_001), Ask::Answer(Err(problem)));
        // A check whose request was cancelled blocks no other for longer than a check may take.
        assert_eq!(readiness.ask(4_000), Ask::Check);
        assert_eq!(readiness.ask(3_999 + CHECK_LIMIT_MS), Ask::Wait);
        assert_eq!(readiness.ask(4_000 + CHECK_LIMIT_MS), Ask::Check);
    }
}
