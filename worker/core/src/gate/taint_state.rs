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
//! run gets that taint only by the chance that [`MergedRuns`] names.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::clock::repair_time;
use crate::id;
use crate::taint::{Scope, TaintExplanation, TaintingCall};

/// Runs of an agent with a mark of their own. With more, the oldest run shares a mark with others, which expires like the
/// others. 16 marks take about 3 KB of a journal row.
pub const MAX_TAINTED_RUNS: usize = 16;

/// Marks that runs share. A mark takes in runs for half a period and lasts for a period after that, so no more than three
/// are in force at a time. Each takes less than 1 KB of a journal row.
const MAX_SHARED_MARKS: usize = 3;

/// Bytes of a set of runs, so that three hexadecimal digits name a bit.
const SET_BYTES: usize = 512;

/// Bits of each run in a set. A run's 16 hexadecimal digits name five.
const BITS_OF_A_RUN: usize = 5;

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

/// A mark that runs share. Which runs they are is a Bloom filter (Bloom, 1970): each of them is found in it. If 200 runs
/// share the mark, one other run in 2,000 is found in it too, and then has the same taint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MergedRuns {
    /// When the first run was added.
    from_ms: u64,
    #[serde(flatten)]
    mark: Mark,
    #[serde(with = "set")]
    runs: Vec<u8>,
}

impl MergedRuns {
    /// The bytes and bits of a run.
    fn bits(run: &str) -> impl Iterator<Item = (usize, u8)> {
        (0..BITS_OF_A_RUN).filter_map(move |at| {
            let digits = run.get(3 * at..3 * at + 3)?;
            let bit = usize::from_str_radix(digits, 16).ok()?;
            Some((bit / 8, 1_u8 << (bit % 8)))
        })
    }

    fn add(&mut self, run: &RunMark) {
        self.mark.merge(&run.mark);
        for (byte, bit) in Self::bits(&run.run) {
            if let Some(known) = self.runs.get_mut(byte) {
                *known |= bit;
            }
        }
    }

    fn may_have(&self, run: &str) -> bool {
        Self::bits(run).all(|(byte, bit)| self.runs.get(byte).is_some_and(|known| known & bit != 0))
    }
}

mod set {
    //! A set of runs as base64.

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(runs: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD_NO_PAD.encode(runs))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let runs = STANDARD_NO_PAD.decode(text).map_err(D::Error::custom)?;
        match runs.len() {
            super::SET_BYTES => Ok(runs),
            _ => Err(D::Error::custom("a set of runs has another length")),
        }
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
        let shares = move |set: &&MergedRuns| shares.as_ref().is_none_or(|own| set.may_have(own));
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
            let (mark, runs) = (run.mark.clone(), vec![0; SET_BYTES]);
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
        assert!(taint.add(Agent, "web", None, PERIOD_MS, 1_000));
        assert!(!taint.add(Agent, "web", None, PERIOD_MS, 5_000), "it was tainted before");
        // A clock that is set back shortens no mark.
        taint.add(Agent, "web", None, PERIOD_MS, 2_000);
        for (now_ms, expected) in [(5_000, "web"), (14_999, "web"), (15_000, "")] {
            assert_eq!(servers(&taint, Agent, now_ms), expected, "{now_ms}");
        }
        let found = taint.of(Agent, PERIOD_MS, 6_000).unwrap();
        assert_eq!((found.since_ms, found.at_ms), (1_000, 5_000));
        assert!(taint.add(Agent, "web", None, PERIOD_MS, 15_000), "what has ended begins anew");
        assert_eq!(taint.of(Agent, PERIOD_MS, 15_000).unwrap().since_ms, 15_000);
    }

    #[test]
    fn a_run_keeps_its_taint_to_itself_only_among_assigned_runs() {
        let mut taint = Taint::default();
        taint.add(Run("a"), "web", None, PERIOD_MS, 0);
        for (scope, expected) in [(Run("a"), "web"), (Run("b"), ""), (Agent, "web")] {
            assert_eq!(servers(&taint, scope, 1), expected, "{scope:?}");
        }
        taint.add(Agent, "mail", None, PERIOD_MS, 0);
        for (scope, expected) in [(Run("a"), "mail,web"), (Run("b"), "mail"), (Agent, "mail,web")] {
            assert_eq!(servers(&taint, scope, 1), expected, "{scope:?}");
        }
    }

    #[test]
    fn a_merged_run_stays_tainted_and_taints_no_run_that_begins_later() {
        let mut taint = Taint::default();
        for run in 0..MAX_TAINTED_RUNS as u64 {
            taint.add(Run(&run.to_string()), "web", None, PERIOD_MS, run);
        }
        taint.add(Run("another"), "mail", None, PERIOD_MS, 100);
        for (run, expected) in [("0", "web"), ("1", "web"), ("another", "mail"), ("new", "")] {
            assert_eq!(servers(&taint, Run(run), 101), expected, "{run}");
        }
        assert_eq!(servers(&taint, Agent, 101), "web,mail");
        assert_eq!(servers(&taint, Run("0"), PERIOD_MS - 1), "web");
        assert_eq!(servers(&taint, Run("0"), PERIOD_MS), "", "it ends like the rest");
        assert_eq!(servers(&taint, Run("another"), PERIOD_MS), "mail");
        // More text in a merged run.
        taint.add(Run("0"), "mail", None, PERIOD_MS, 200);
        assert_eq!(servers(&taint, Run("0"), PERIOD_MS + 1), "mail");
    }

    #[test]
    fn merged_runs_are_bounded_and_end() {
        let name = |run: u64| run.to_string();
        let mut taint = Taint::default();
        for run in 0..5_000_u64 {
            taint.add(Run(&name(run)), "web", None, PERIOD_MS, 10 * run);
            assert!(taint.merged.len() <= MAX_SHARED_MARKS);
        }
        assert!(serde_json::to_string(&taint).unwrap().len() < 5_000);
        let now_ms = 10 * 4_999;
        for run in 4_001..5_000 {
            assert_eq!(servers(&taint, Run(&name(run)), now_ms), "web", "{run}");
        }
        let tainted = |runs: std::ops::Range<u64>| {
            runs.filter(|run| !servers(&taint, Run(&name(*run)), now_ms).is_empty()).count()
        };
        // A mark lasts a period after the last of up to 500 runs that share it.
        assert!(tainted(0..3_000) < 300, "ended");
        assert!(tainted(10_000..11_000) < 100, "never tainted");
        assert_eq!(taint.of(Agent, PERIOD_MS, now_ms + PERIOD_MS), None);
        let mut taint = Taint::default();
        for run in 0..=MAX_TAINTED_RUNS as u64 {
            taint.add(Run(&name(run)), "web", None, PERIOD_MS, 1_000_000_000);
        }
        assert!(taint.repair_clock(1_000));
        assert_eq!((taint.merged[0].from_ms, taint.merged[0].mark.at_ms), (1_000, 1_000));
    }

    #[test]
    fn a_mark_names_the_newest_servers() {
        let mut taint = Taint::default();
        for server in ["a", "b", "c", "d", "a", "e"] {
            taint.add(Agent, server, None, PERIOD_MS, 1);
        }
        assert_eq!(servers(&taint, Agent, 2), "c,d,a,e");
    }

    #[test]
    fn a_young_mark_is_not_written_again() {
        let mut taint = Taint::default();
        taint.add(Run("a"), "web", None, PERIOD_MS, 1_000);
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
        // With a period of a minute, at most three seconds are lost.
        for (now_ms, expected) in [(3_999, true), (4_000, false)] {
            assert_eq!(taint.is_fresh(Run("a"), "web", 60_000, now_ms), expected, "{now_ms}");
        }
    }

    fn call(server: &str, tool: &str, decision_id: &str) -> Option<TaintingCall> {
        let [decision_id, server, tool] = [decision_id, server, tool].map(str::to_owned);
        Some(TaintingCall { decision_id, server, tool })
    }

    #[test]
    fn the_newest_call_explains_a_mark_whatever_came_between_and_in_whichever_order() {
        let mut taint = Taint::default();
        taint.add(Run("a"), "web", call("web", "get", "d1"), PERIOD_MS, 1_000);
        taint.add(Run("a"), "web", None, PERIOD_MS, 2_000);
        taint.add(Agent, "mail", call("mail", "read", "d3"), PERIOD_MS, 3_000);
        // The answer of an older call.
        taint.add(Agent, "mail", call("mail", "list", "d2"), PERIOD_MS, 4_000);
        for (scope, now_ms, since_ms, last_ms, servers, by) in [
            (Run("a"), 5_000, 1_000, 4_000, &["mail", "web"][..], call("mail", "read", "d3")),
            (Run("b"), 5_000, 3_000, 4_000, &["mail"], call("mail", "read", "d3")),
            (Agent, 12_000, 3_000, 4_000, &["mail"], call("mail", "read", "d3")),
        ] {
            let found = taint.explain(scope, PERIOD_MS, now_ms).unwrap();
            assert_eq!(found.servers, servers, "{scope:?}");
            assert_eq!(found.call, by, "{scope:?}");
            let times = [since_ms, last_ms, last_ms + PERIOD_MS].map(id::rfc3339);
            assert_eq!([found.since, found.last_at, found.ends_at], times, "{scope:?}");
        }
        assert_eq!(taint.explain(Agent, PERIOD_MS, 14_000), None, "all have ended");
    }

    #[test]
    fn an_explanation_names_servers_call_times_and_the_way_out() {
        let until = "This taint ends at 1970-01-01T00:00:11.000Z if no more such text comes, or when \
            an administrator runs `gateward agent untaint coder`.";
        let since = "Since 1970-01-01T00:00:01.000Z this";
        for (scope, servers, by, expected) in [
            (
                Agent,
                &["web"][..],
                call("web", "get", "d1"),
                "agent may have read untrusted text of the server `web`; the latest call that may have returned it was `web/get` (decision d1).",
            ),
            (Run("a"), &["web"], None, "run may have read untrusted text of the server `web`."),
            (
                Agent,
                &["web", "mail"],
                None,
                "agent may have read untrusted text of the servers `web`, `mail`.",
            ),
        ] {
            let mut taint = Taint::default();
            for server in servers {
                taint.add(scope, server, by.clone(), PERIOD_MS, 1_000);
            }
            let found = taint.explain(scope, PERIOD_MS, 1_000).unwrap();
            let expected = format!("{since} {expected} {until}");
            assert_eq!(found.sentences(scope, "coder"), expected);
        }
    }

    /// An agent's state outlives deploys.
    #[test]
    fn the_stored_form_stays() {
        let mut taint = Taint::default();
        taint.add(Agent, "mail", None, PERIOD_MS, 1);
        taint.add(Run("a"), "web", call("web", "get", "d1"), PERIOD_MS, 2);
        // The agent's mark as it was written before calls were recorded.
        let text = r#"{"agent":{"since_ms":1,"at_ms":1,"servers":["mail"]},"runs":[{"run":"ca978112ca1bbdca","since_ms":2,"at_ms":2,"servers":["web"],"call":{"decision_id":"d1","server":"web","tool":"get"}}]}"#;
        assert_eq!(serde_json::to_string(&taint).unwrap(), text);
        assert_eq!(serde_json::from_str::<Taint>(text).unwrap(), taint);
        for run in 1..=MAX_TAINTED_RUNS {
            taint.add(Run(&format!("r{run}")), "web", None, PERIOD_MS, 3);
        }
        let text = serde_json::to_string(&taint).unwrap();
        assert_eq!(serde_json::from_str::<Taint>(&text).unwrap(), taint);
        let merged = r#""merged":[{"from_ms":3,"since_ms":2,"at_ms":2,"servers":["web"],"call":{"decision_id":"d1","server":"web","tool":"get"},"runs":""#;
        assert!(text.contains(merged), "{text}");
        // Of the digits ca978112ca1bbdca, each three are the number of a bit.
        let runs = &taint.merged[0].runs;
        let is_set = |bit: &usize| runs[bit / 8] & (1 << (bit % 8)) != 0;
        let set: Vec<usize> = (0..8 * SET_BYTES).filter(is_set).collect();
        assert_eq!(set, [0x12c, 0x781, 0xa1b, 0xbdc, 0xca9]);
    }
}
