//! What an untrusted server leaves behind: its text may make the agent call something else.
//!
//! Taint belongs to the agent. Only where a harness assigned the run (a credential registered with
//! `assigns_runs`) does it belong to that run: any other caller chooses its own run, so what it says
//! about runs separates nothing.
//!
//! INVARIANT (written first): a mark is a part of the agent's state, and the journal row that carries
//! it is durable before the server's text can reach the agent. So no later call overtakes it.
//!
//! A mark ends after the tenant's taint period, or when an administrator lifts it. Nothing that an
//! agent sends ends it earlier.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::clock::repair_time;
use crate::trust::SourceTrust;

/// The most that a tainted call is trusted.
pub const TAINTED_TRUST: SourceTrust = SourceTrust::UntrustedExternal;

/// How long a mark lasts after the last text of an untrusted server, unless the tenant registered
/// another period: an agent's context seldom outlives a day.
pub const DEFAULT_TAINT_S: u32 = 24 * 60 * 60;

/// Runs of an agent that are told apart. Beyond them the oldest run's mark is merged into a mark that
/// all runs share, which expires like the rest. 16 marks take about 1 KB of a journal row.
pub const MAX_TAINTED_RUNS: usize = 16;

/// Servers that a mark names; the newest are kept. They explain the mark to people and policies, and
/// the mark holds without them.
pub const MAX_TAINTING_SERVERS: usize = 4;

/// A mark that is younger than this is not written again for text that is no answer to a call: a
/// server that sends a notification each second then costs one journal row a minute.
pub const MARK_INTERVAL_MS: u64 = 60_000;

/// In a short period a mark is written anew this often, so that taint ends at most so much too early.
const MARKS_OF_A_PERIOD: u64 = 20;

/// Whose calls a mark concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All calls of the agent.
    Agent,
    /// The calls of a run that a harness assigned.
    Run(&'a str),
}

/// When text of untrusted servers came, and of which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// When it began.
    since_ms: u64,
    /// When text came last.
    at_ms: u64,
    /// The newest last.
    servers: Vec<String>,
}

impl Mark {
    fn lasts(&self, period_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) < period_ms
    }

    /// Takes another mark in: both concern the same calls from now on.
    fn merge(&mut self, other: &Self) {
        self.since_ms = self.since_ms.min(other.since_ms);
        self.at_ms = self.at_ms.max(other.at_ms);
        for server in &other.servers {
            self.servers.retain(|known| known != server);
            self.servers.push(server.clone());
        }
        let excess = self.servers.len().saturating_sub(MAX_TAINTING_SERVERS);
        self.servers.drain(..excess);
    }
}

/// A run's mark. The run is the first 64 bits of SHA-256 over its id, in hex: ids are of any length,
/// and two runs whose hashes are equal are both tainted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunMark {
    run: String,
    #[serde(flatten)]
    mark: Mark,
}

/// An agent's marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// Concerns every call: text that came in no assigned run, and the marks of runs that could no
    /// longer be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Mark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunMark>,
}

/// The taint of one call, as policies and people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tainted {
    pub since_ms: u64,
    /// When the last text came.
    pub at_ms: u64,
    /// The newest last; at most [`MAX_TAINTING_SERVERS`].
    pub servers: Vec<String>,
}

fn key(run_id: &str) -> String {
    let hash = Sha256::digest(run_id);
    hex::encode(hash.get(..8).unwrap_or_default())
}

impl Taint {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// The taint of a call at `now_ms`; `None` when it is not tainted. A call in no assigned run may
    /// belong to any of them, so it has the taint of all.
    #[must_use]
    pub fn of(&self, scope: Scope<'_>, period_ms: u64, now_ms: u64) -> Option<Tainted> {
        // Most agents have no mark, and then nothing is hashed.
        if self.is_default() {
            return None;
        }
        let own = match scope {
            Scope::Agent => None,
            Scope::Run(run_id) => Some(key(run_id)),
        };
        let runs = self.runs.iter().filter(|run| own.as_ref().is_none_or(|own| *own == run.run));
        let marks = self.agent.iter().chain(runs.map(|run| &run.mark));
        let mut lasting = marks.filter(|mark| mark.lasts(period_ms, now_ms));
        let mut found = lasting.next()?.clone();
        lasting.for_each(|mark| found.merge(mark));
        let Mark { since_ms, at_ms, servers } = found;
        Some(Tainted { since_ms, at_ms, servers })
    }

    /// Text of `server` may reach a call of this scope. Returns whether the calls of the scope were
    /// free of taint before.
    pub fn add(&mut self, scope: Scope<'_>, server: &str, period_ms: u64, now_ms: u64) -> bool {
        self.runs.retain(|run| run.mark.lasts(period_ms, now_ms));
        self.agent.take_if(|mark| !mark.lasts(period_ms, now_ms));
        let fresh = self.of(scope, period_ms, now_ms).is_none();
        let new = Mark { since_ms: now_ms, at_ms: now_ms, servers: vec![server.to_owned()] };
        let Scope::Run(run_id) = scope else {
            self.mark_agent(&new);
            return fresh;
        };
        let run = key(run_id);
        if let Some(known) = self.runs.iter_mut().find(|known| known.run == run) {
            known.mark.merge(&new);
            return fresh;
        }
        if self.runs.len() >= MAX_TAINTED_RUNS {
            let oldest = self.runs.iter().enumerate().min_by_key(|(_, run)| run.mark.at_ms);
            if let Some((at, _)) = oldest {
                let merged = self.runs.swap_remove(at);
                self.mark_agent(&merged.mark);
            }
        }
        self.runs.push(RunMark { run, mark: new });
        fresh
    }

    /// A mark in the future lasts for the period from now on: none ends earlier for it.
    pub(super) fn repair_clock(&mut self, now_ms: u64) -> bool {
        let marks = self.agent.iter_mut().chain(self.runs.iter_mut().map(|run| &mut run.mark));
        marks.fold(false, |repaired, mark| {
            let moves = repair_time(&mut mark.at_ms, now_ms);
            if moves {
                mark.since_ms = mark.since_ms.min(now_ms);
            }
            repaired | moves
        })
    }

    fn mark_agent(&mut self, mark: &Mark) {
        match &mut self.agent {
            Some(known) => known.merge(mark),
            None => self.agent = Some(mark.clone()),
        }
    }

    /// Whether a mark of this scope by this server is younger than [`MARK_INTERVAL_MS`], or than a
    /// small part of a shorter period.
    #[must_use]
    pub fn is_fresh(&self, scope: Scope<'_>, server: &str, period_ms: u64, now_ms: u64) -> bool {
        let interval_ms = MARK_INTERVAL_MS.min(period_ms / MARKS_OF_A_PERIOD);
        let young = |mark: &Mark| {
            mark.lasts(interval_ms, now_ms) && mark.servers.iter().any(|known| known == server)
        };
        let own = match scope {
            Scope::Agent => None,
            Scope::Run(run_id) => Some(key(run_id)),
        };
        self.agent.as_ref().is_some_and(young)
            || own.is_some_and(|own| self.runs.iter().any(|run| run.run == own && young(&run.mark)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Scope::{Agent, Run};

    const PERIOD_MS: u64 = 10_000;

    /// The servers that taint a call, separated by commas.
    fn servers(taint: &Taint, scope: Scope<'_>, now_ms: u64) -> String {
        taint.of(scope, PERIOD_MS, now_ms).map_or(String::new(), |found| found.servers.join(","))
    }

    #[test]
    fn taint_lasts_for_the_period_after_the_last_text() {
        let mut taint = Taint::default();
        assert!(taint.add(Agent, "web", PERIOD_MS, 1_000));
        assert!(!taint.add(Agent, "web", PERIOD_MS, 5_000), "it was tainted before");
        // A clock that is set back shortens nothing.
        taint.add(Agent, "web", PERIOD_MS, 2_000);
        for (now_ms, expected) in [(5_000, "web"), (14_999, "web"), (15_000, "")] {
            assert_eq!(servers(&taint, Agent, now_ms), expected, "{now_ms}");
        }
        let found = taint.of(Agent, PERIOD_MS, 6_000).unwrap();
        assert_eq!((found.since_ms, found.at_ms), (1_000, 5_000));
        assert!(taint.add(Agent, "web", PERIOD_MS, 15_000), "what has ended begins anew");
        assert_eq!(taint.of(Agent, PERIOD_MS, 15_000).unwrap().since_ms, 15_000);
    }

    #[test]
    fn a_run_keeps_its_taint_to_itself_only_among_assigned_runs() {
        let mut taint = Taint::default();
        taint.add(Run("a"), "web", PERIOD_MS, 0);
        for (scope, expected) in [(Run("a"), "web"), (Run("b"), ""), (Agent, "web")] {
            assert_eq!(servers(&taint, scope, 1), expected, "{scope:?}");
        }
        taint.add(Agent, "mail", PERIOD_MS, 0);
        for (scope, expected) in [(Run("a"), "mail,web"), (Run("b"), "mail"), (Agent, "mail,web")] {
            assert_eq!(servers(&taint, scope, 1), expected, "{scope:?}");
        }
    }

    #[test]
    fn more_runs_than_are_told_apart_taint_all_until_the_oldest_would_have_ended() {
        let mut taint = Taint::default();
        for run in 0..MAX_TAINTED_RUNS as u64 {
            taint.add(Run(&run.to_string()), "web", PERIOD_MS, run);
        }
        assert_eq!(servers(&taint, Run("another"), 100), "");
        taint.add(Run("another"), "mail", PERIOD_MS, 100);
        // The oldest run's mark concerns every run now.
        assert_eq!(servers(&taint, Run("never seen"), 101), "web");
        assert_eq!(servers(&taint, Run("never seen"), PERIOD_MS - 1), "web");
        assert_eq!(servers(&taint, Run("never seen"), PERIOD_MS), "", "it ends like the rest");
        assert_eq!(servers(&taint, Run("another"), PERIOD_MS), "mail");
    }

    #[test]
    fn a_mark_names_the_newest_servers() {
        let mut taint = Taint::default();
        for server in ["a", "b", "c", "d", "a", "e"] {
            taint.add(Agent, server, PERIOD_MS, 1);
        }
        assert_eq!(servers(&taint, Agent, 2), "c,d,a,e");
    }

    #[test]
    fn a_young_mark_is_not_written_again() {
        let mut taint = Taint::default();
        taint.add(Run("a"), "web", PERIOD_MS, 1_000);
        for (scope, server, now_ms, expected) in [
            (Run("a"), "web", 1_001, true),
            (Run("a"), "mail", 1_001, false),
            (Run("b"), "web", 1_001, false),
            (Agent, "web", 1_001, false),
            (Run("a"), "web", 1_000 + MARK_INTERVAL_MS, false),
        ] {
            let fresh = taint.is_fresh(scope, server, 86_400_000, now_ms);
            assert_eq!(fresh, expected, "{scope:?} {server}");
        }
        // Of a period of a minute, three seconds at most are lost.
        for (now_ms, expected) in [(3_999, true), (4_000, false)] {
            assert_eq!(taint.is_fresh(Run("a"), "web", 60_000, now_ms), expected, "{now_ms}");
        }
    }

    /// An agent's state outlives deploys.
    #[test]
    fn the_stored_form_stays() {
        let mut taint = Taint::default();
        taint.add(Agent, "mail", PERIOD_MS, 1);
        taint.add(Run("a"), "web", PERIOD_MS, 2);
        let text = r#"{"agent":{"since_ms":1,"at_ms":1,"servers":["mail"]},"runs":[{"run":"ca978112ca1bbdca","since_ms":2,"at_ms":2,"servers":["web"]}]}"#;
        assert_eq!(serde_json::to_string(&taint).unwrap(), text);
        assert_eq!(serde_json::from_str::<Taint>(text).unwrap(), taint);
    }
}
