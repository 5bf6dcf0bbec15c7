//! The taint of an agent: text of an untrusted server may have reached it, and may make it call
//! something else.
//!
//! Taint belongs to the agent. It belongs to a run only if a harness assigned the run (a credential
//! registered with `assigns_runs`). Any other caller chooses its own run ids, so they separate
//! nothing.
//!
//! INVARIANT (written first): a mark is part of the agent's state. The journal row that holds it is
//! durable before the server's text can reach the agent, so no later call comes before the mark.
//!
//! A mark ends after the tenant's taint period, or when an administrator lifts it. Nothing that an
//! agent sends ends it earlier.
//!
//! INVARIANT (merged runs): a run that was tainted stays tainted when its mark is merged with those of others. Another
//! run gets that taint only by the chance that [`RunSet`] names.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::taint_set::RunSet;
use crate::clock::repair_time;
use crate::id;
use crate::taint::{Scope, TaintExplanation, TaintingCall};

/// Runs of an agent with a mark of their own. With more, the oldest run shares a mark with others, which expires like the
/// others. 16 marks take about 3 KB of a journal row.
pub const MAX_TAINTED_RUNS: usize = 16;

/// Marks that runs share. A mark takes in runs for half a period and lasts for a period after that, so no more than three
/// are in force at a time. Each takes less than 1 KB of a journal row.
const MAX_SHARED_MARKS: usize = 3;

/// Servers that a mark names; the newest are kept. They only explain the mark to people and
/// policies.
pub const MAX_TAINTING_SERVERS: usize = 4;

/// A mark younger than this is not written again for text that belongs to no call. So a server that
/// sends a notification each second costs one journal row a minute.
pub const MARK_INTERVAL_MS: u64 = 60_000;

/// A shorter period is divided by this, so that taint never ends more than a twentieth of its
/// period too early.
const MARKS_OF_A_PERIOD: u64 = 20;

/// When text of untrusted servers arrived, and from which servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    /// When the taint began.
    since_ms: u64,
    /// When text arrived last.
    at_ms: u64,
    /// The newest last.
    servers: Vec<String>,
    /// The newest call that brought text. `None` if no call did, or if the mark was written by a
    /// version that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<TaintingCall>,
}

impl Mark {
    fn lasts(&self, period_ms: u64, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) < period_ms
    }

    /// Merges another mark into this one. Both concern the same calls from now on.
    fn merge(&mut self, other: &Self) {
        self.merge_text(other);
        if self.call < other.call {
            self.call.clone_from(&other.call);
        }
    }

    /// The same without the call.
    fn merge_text(&mut self, other: &Self) {
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

/// A run's mark. The run is stored as the first 64 bits of SHA-256 over its id, in hex, because ids
/// can be long. Two runs with the same hash are both tainted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RunMark {
    run: String,
    #[serde(flatten)]
    mark: Mark,
}

/// A mark that runs share. A run that is found in the [`RunSet`] by chance has the same taint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MergedRuns {
    /// When the first run was added.
    from_ms: u64,
    #[serde(flatten)]
    mark: Mark,
    runs: RunSet,
}

impl MergedRuns {
    fn add(&mut self, run: &RunMark) {
        self.mark.merge(&run.mark);
        self.runs.insert(&run.run);
    }
}

/// An agent's marks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// Concerns every call: text that arrived in no assigned run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<Mark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<RunMark>,
    /// The marks of runs that have none of their own any more; the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    merged: Vec<MergedRuns>,
}

/// The taint of one call, as policies see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tainted {
    pub since_ms: u64,
    /// When the last text arrived.
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

    /// The taint of a call at `now_ms`; `None` if it has none. A call in no assigned run may belong
    /// to any run, so it has the taint of all of them.
    #[must_use]
    pub fn of(&self, scope: Scope<'_>, period_ms: u64, now_ms: u64) -> Option<Tainted> {
        // Most agents have no mark. Then no run id is hashed.
        if self.is_default() {
            return None;
        }
        let mut lasting = self.lasting(scope, period_ms, now_ms);
        let first = lasting.next()?;
        // Policies do not see the call.
        let mut found = Mark { servers: first.servers.clone(), call: None, ..*first };
        lasting.for_each(|mark| found.merge_text(mark));
        let Mark { since_ms, at_ms, servers, .. } = found;
        Some(Tainted { since_ms, at_ms, servers })
    }

    /// The taint of a call, explained for people.
    #[must_use]
    pub fn explain(
        &self,
        scope: Scope<'_>,
        period_ms: u64,
        now_ms: u64,
    ) -> Option<TaintExplanation> {
        let Tainted { since_ms, at_ms, servers } = self.of(scope, period_ms, now_ms)?;
        let calls = self.lasting(scope, period_ms, now_ms).filter_map(|mark| mark.call.as_ref());
        Some(TaintExplanation {
            call: calls.max().cloned(),
            ends_at: id::rfc3339(at_ms.saturating_add(period_ms)),
            last_at: id::rfc3339(at_ms),
            servers,
            since: id::rfc3339(since_ms),
        })
    }

    /// The marks that concern a call of this scope and have not ended.
    fn lasting(
        &self,
        scope: Scope<'_>,
        period_ms: u64,
        now_ms: u64,
    ) -> impl Iterator<Item = &Mark> {
        let own = match scope {
            Scope::Agent => None,
            Scope::Run(run_id) => Some(key(run_id)),
        };
        let shares = own.clone();
        let shares =
            move |set: &&MergedRuns| shares.as_ref().is_none_or(|own| set.runs.may_have(own));
        let is_own = move |run: &&RunMark| own.as_ref().is_none_or(|own| *own == run.run);
        let shared = self.merged.iter().filter(shares).map(|set| &set.mark);
        let of_runs = self.runs.iter().filter(is_own).map(|run| &run.mark);
        let marks = self.agent.iter().chain(shared).chain(of_runs);
        marks.filter(move |mark| mark.lasts(period_ms, now_ms))
    }

    /// Marks a scope, because text of `server` may reach it. `call` is the call that brings the
    /// text, if one does. Returns whether the scope had no taint before.
    pub fn add(
        &mut self,
        scope: Scope<'_>,
        server: &str,
        call: Option<TaintingCall>,
        period_ms: u64,
        now_ms: u64,
    ) -> bool {
        self.runs.retain(|run| run.mark.lasts(period_ms, now_ms));
        self.merged.retain(|set| set.mark.lasts(period_ms, now_ms));
        self.agent.take_if(|mark| !mark.lasts(period_ms, now_ms));
        let fresh = self.of(scope, period_ms, now_ms).is_none();
        let servers = vec![server.to_owned()];
        let new = Mark { since_ms: now_ms, at_ms: now_ms, servers, call };
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
                let oldest = self.runs.swap_remove(at);
                self.merge(&oldest, period_ms, now_ms);
            }
        }
        self.runs.push(RunMark { run, mark: new });
        fresh
    }

    /// A mark in the future lasts for its whole period from now on, so that no mark ends early.
    pub(super) fn repair_clock(&mut self, now_ms: u64) -> bool {
        let mut repaired = false;
        for set in &mut self.merged {
            repaired |= repair_time(&mut set.from_ms, now_ms);
        }
        let shared = self.merged.iter_mut().map(|set| &mut set.mark);
        let of_runs = self.runs.iter_mut().map(|run| &mut run.mark);
        let marks = self.agent.iter_mut().chain(shared).chain(of_runs);
        marks.fold(repaired, |repaired, mark| {
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

    /// Adds a run to those that share the newest mark, or a new one.
    fn merge(&mut self, run: &RunMark, period_ms: u64, now_ms: u64) {
        let is_old = |set: &MergedRuns| now_ms.saturating_sub(set.from_ms) >= period_ms / 2;
        if self.merged.len() < MAX_SHARED_MARKS && self.merged.last().is_none_or(is_old) {
            let (mark, runs) = (run.mark.clone(), RunSet::empty());
            self.merged.push(MergedRuns { from_ms: now_ms, mark, runs });
        }
        if let Some(newest) = self.merged.last_mut() {
            newest.add(run);
        }
    }

    /// Whether this server's mark in this scope is younger than [`MARK_INTERVAL_MS`], or than a
    /// part of a short period.
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
mod tests;
