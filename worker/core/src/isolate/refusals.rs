//! Credentials that can never pass again: revoked or expired.
//!
//! A revoked credential never becomes active again, and an expiry never moves to a later time
//! (`admin/credential.rs`). So the refusal can be repeated without asking a lane. Refusals that can
//! be lifted, such as a freeze, a quarantine or a ban, are not stored here.

use std::collections::{HashMap, VecDeque};

use crate::problem::Problem;

/// Refusals, by the SHA-256 of the credential's secret. If it is full, the oldest is removed.
#[derive(Debug)]
pub struct TerminalRefusals {
    problems: HashMap<[u8; 32], Problem>,
    oldest: VecDeque<[u8; 32]>,
    max: usize,
}

impl TerminalRefusals {
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { problems: HashMap::new(), oldest: VecDeque::new(), max }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }

    #[must_use]
    pub fn get(&self, secret_hash: &[u8; 32]) -> Option<&Problem> {
        self.problems.get(secret_hash)
    }

    pub fn remember(&mut self, secret_hash: [u8; 32], problem: Problem) {
        if self.problems.insert(secret_hash, problem).is_some() {
            return;
        }
        self.oldest.push_back(secret_hash);
        if self.oldest.len() > self.max
            && let Some(oldest) = self.oldest.pop_front()
        {
            self.problems.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ProblemCode;

    #[test]
    fn the_oldest_refusal_makes_room() {
        let problem = Problem::new(ProblemCode::CredentialExpired, "the credential has expired");
        let mut refusals = TerminalRefusals::new(2);
        for hash in [1, 2, 1, 3] {
            refusals.remember([hash; 32], problem.clone());
        }
        let known = |hash| refusals.get(&[hash; 32]) == Some(&problem);
        assert_eq!([1, 2, 3].map(known), [false, true, true]);
    }
}
