//! What an untrusted server leaves behind: whatever it answers may make the agent call something
//! else, so the rest of the run is trusted no more than the server is.
//!
//! It is set by the row of the call that may reach the server, so no later call overtakes it, and it
//! never rises while the run lasts. Calls without a run id share the agent's default run.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::trust::SourceTrust;

/// What a tainted run is trusted.
const TAINTED: SourceTrust = SourceTrust::UntrustedExternal;

/// How long a run is held to be tainted after its last call of an untrusted server. A run that is
/// quiet for a day is over.
pub const TAINT_MS: u64 = 24 * 60 * 60 * 1_000;

/// Tainted runs of an agent that are told apart. With more, all its runs are tainted: a taint is
/// never forgotten to make room. 16 take 600 bytes of a journal row.
pub const MAX_TAINTED_RUNS: usize = 16;

/// An agent's tainted runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    runs: Vec<TaintedRun>,
    /// When all runs were tainted last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all_at_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TaintedRun {
    /// The first 64 bits of SHA-256 over the run id, in hex: it is of any length, and two that fall
    /// together are both tainted.
    run: String,
    at_ms: u64,
}

fn key(run_id: &str) -> String {
    let hash = Sha256::digest(run_id);
    hex::encode(hash.get(..8).unwrap_or_default())
}

fn lasts(at_ms: u64, now_ms: u64) -> bool {
    now_ms.saturating_sub(at_ms) < TAINT_MS
}

impl Taint {
    pub(super) fn is_default(&self) -> bool {
        self.runs.is_empty() && self.all_at_ms.is_none()
    }

    /// The most that a call of the run is trusted at `now_ms`; `None` when it is not tainted.
    #[must_use]
    pub fn of(&self, run_id: &str, now_ms: u64) -> Option<SourceTrust> {
        // Nearly every agent has none, and then nothing is hashed.
        if self.is_default() {
            return None;
        }
        let run = key(run_id);
        let own = self.runs.iter().filter(|tainted| tainted.run == run).map(|t| t.at_ms);
        own.chain(self.all_at_ms).any(|at_ms| lasts(at_ms, now_ms)).then_some(TAINTED)
    }

    /// A call of the run may reach an untrusted server.
    pub fn add(&mut self, run_id: &str, now_ms: u64) {
        self.runs.retain(|tainted| lasts(tainted.at_ms, now_ms));
        self.all_at_ms = self.all_at_ms.filter(|at_ms| lasts(*at_ms, now_ms));
        let run = key(run_id);
        let has_room = self.runs.len() < MAX_TAINTED_RUNS;
        match self.runs.iter_mut().find(|tainted| tainted.run == run) {
            Some(tainted) => tainted.at_ms = tainted.at_ms.max(now_ms),
            None if has_room => {
                self.runs.push(TaintedRun { run, at_ms: now_ms });
            }
            None => self.all_at_ms = self.all_at_ms.max(Some(now_ms)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_tainted_until_a_day_after_its_last_call_of_an_untrusted_server() {
        let mut taint = Taint::default();
        taint.add("a", 1_000);
        taint.add("a", 5_000);
        // A clock that is set back shortens nothing.
        taint.add("a", 2_000);
        for (run, now_ms, expected) in [
            ("a", 5_000, Some(TAINTED)),
            ("a", 4_999 + TAINT_MS, Some(TAINTED)),
            ("a", 5_000 + TAINT_MS, None),
            ("b", 5_000, None),
            ("", 5_000, None),
        ] {
            assert_eq!(taint.of(run, now_ms), expected, "{run} {now_ms}");
        }
    }

    #[test]
    fn with_more_tainted_runs_than_are_told_apart_all_are() {
        let mut taint = Taint::default();
        for run in 0..MAX_TAINTED_RUNS {
            taint.add(&run.to_string(), 1_000);
        }
        assert_eq!(taint.of("another", 1_000), None);
        taint.add("another", 2_000);
        for run in ["another", "yet another", "0", ""] {
            assert_eq!(taint.of(run, 3_000), Some(TAINTED), "{run}");
        }
        // What is over makes room.
        taint.add("late", 1_000 + TAINT_MS);
        assert_eq!(taint.runs.len(), 1);
        assert_eq!(taint.of("yet another", 2_000 + TAINT_MS), None);
        assert_eq!(taint.of("late", 2_000 + TAINT_MS), Some(TAINTED));
    }
}
