//! The values of one run: which values were stated, which were seen, and where each was seen first.
//!
//! A run's values are the sum of its observations, in order. An observation is one stored row. It holds only
//! what it changed, so applying the rows again gives the same values.
//!
//! INVARIANT (no raising): [`RunValues::apply`] gives a level to a value that has none. Only a statement
//! changes the level of a value that has one.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::blob;
use super::key::{AlreadyHashed, Hashes};
use super::lookup::{Found, Known};
use super::sinks::MAX_SINKS;
use super::{Level, Observed};

use crate::json;

/// Trusted values of a run: as many as a long task reads from lists. More are not kept.
pub const MAX_TRUSTED_VALUES: usize = 10_000;

/// Stated values of a run: an instruction, a plan and what approvers approved. More are not kept.
pub const MAX_STATED_VALUES: usize = 10_000;

/// Values of a run that no result may raise: first seen in an untrusted result, or sent by the agent. With
/// more, no later result raises anything.
pub const MAX_MARKED_VALUES: usize = 36_000;

/// Places of the hash table of a full run, which takes about a megabyte. A table has at most seven values in eight places.
const MAX_PLACES: usize = 65_536;
const _: () =
    assert!(MAX_TRUSTED_VALUES + MAX_STATED_VALUES + MAX_MARKED_VALUES <= MAX_PLACES / 8 * 7);

/// Results of a run with values of their own. Later ones are not kept.
pub const MAX_RESULTS: usize = 2_000;

/// Stored rows of a run: more than the calls and results of a task. With more, no later result raises anything.
pub const MAX_OBSERVATIONS: usize = 4_000;

/// How long a run's values are kept after its first observation. Longer tasks get a new run.
pub const RUN_MS: u64 = 24 * 60 * 60 * 1_000;

/// The call whose result brought values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The decision that allowed it; empty if the harness named none.
    pub decision_id: String,
    /// `server/tool`.
    pub tool: String,
}

/// One stored row of a run. Persisted: members are only added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The fingerprint of the key of its hashes.
    pub key: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Named by the instruction, or approved by a person.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob")]
    pub stated: Vec<u64>,
    /// [`super::lookup::planned`] hashes, and those of [`super::lookup::from`] and [`super::lookup::chosen`].
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob")]
    pub planned: Vec<u64>,
    /// [`super::lookup::limited`] hashes, each with the largest number that the plan allows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_most: Vec<(u64, f64)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob")]
    pub trusted: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob")]
    pub untrusted: Vec<u64>,
    /// Arguments of a call that passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "blob")]
    pub sent: Vec<u64>,
    /// From now on no result raises anything, because marks are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closed: bool,
}

/// The values of a run, in memory.
#[derive(Debug, Clone, Default)]
pub struct RunValues {
    /// The key of all hashes; `None` before the first observation.
    key: Option<u32>,
    values: HashMap<u64, Value, BuildHasherDefault<AlreadyHashed>>,
    planned: Hashes,
    /// Sorted by the hash.
    at_most: Vec<(u64, f64)>,
    sources: Vec<Source>,
    rows: usize,
    stated: usize,
    trusted: usize,
    marked: usize,
    closed: bool,
    /// Whether the run has an instruction, a plan or an approved call.
    instructed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Value {
    level: Level,
    /// The position of its source; `u16::MAX` if it has none.
    source: u16,
}

const NO_SOURCE: u16 = u16::MAX;
const _: () = assert!(MAX_RESULTS < NO_SOURCE as usize, "every source has a position");

impl Known for RunValues {
    fn get(&self, hash: u64) -> Option<Found> {
        let value = self.value(hash)?;
        let source = (value.source != NO_SOURCE).then(|| u32::from(value.source));
        Some(Found { level: value.level, source })
    }
}

impl Known for Option<&RunValues> {
    fn get(&self, hash: u64) -> Option<Found> {
        (*self)?.get(hash)
    }
}

impl RunValues {
    #[must_use]
    pub fn is_instructed(&self) -> bool {
        self.instructed
    }

    /// Whether the run has a plan that states values or where they come from.
    #[must_use]
    pub fn has_plan(&self) -> bool {
        !self.planned.is_empty() || !self.at_most.is_empty()
    }

    /// Whether another row and the choices of one call still fit in, so that the agent makes each choice once.
    #[must_use]
    pub fn holds_choices(&self) -> bool {
        self.rows + 2 <= MAX_OBSERVATIONS && self.planned.len() + 2 * MAX_SINKS <= MAX_STATED_VALUES
    }

    /// Whether the plan has this hash: of [`super::lookup::planned`], or of another function there.
    #[must_use]
    pub fn is_planned(&self, hash: u64) -> bool {
        self.planned.contains(&hash)
    }

    /// Whether the plan allows this number for the argument with this [`super::lookup::limited`] hash.
    #[must_use]
    pub fn is_within(&self, hash: u64, number: f64) -> bool {
        let limit = self.limit(hash).ok().and_then(|at| self.at_most.get(at));
        number >= 0.0 && limit.is_some_and(|(_, most)| number <= *most)
    }

    /// The place of a limit, or where it belongs.
    fn limit(&self, hash: u64) -> Result<usize, usize> {
        self.at_most.binary_search_by_key(&hash, |(known, _)| *known)
    }

    /// The result at a position, and its number from 1.
    #[must_use]
    pub fn source(&self, position: u32) -> Option<(&Source, u32)> {
        Some((self.sources.get(usize::try_from(position).ok()?)?, position + 1))
    }

    /// How many values it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len() + self.planned.len() + self.at_most.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a stored observation.
    pub fn apply(&mut self, observation: &Observation) {
        let Observation { key, source, stated, planned, at_most, trusted, untrusted, sent, closed } =
            observation;
        if self.key.replace(*key).is_some_and(|known| known != *key) {
            // The earlier hashes cannot be compared with later ones, so the marks no longer protect anything.
            *self = Self { key: Some(*key), closed: true, ..Self::default() };
        }
        self.rows += 1;
        self.closed |= closed;
        let position = match source {
            Some(source) if self.sources.len() < MAX_RESULTS => {
                self.sources.push(source.clone());
                (self.sources.len() - 1) as u16
            }
            _ => NO_SOURCE,
        };
        self.instructed |= !(stated.is_empty() && planned.is_empty() && at_most.is_empty());
        let room = MAX_STATED_VALUES.saturating_sub(self.planned.len());
        self.planned.extend(planned.iter().take(room));
        let room = MAX_STATED_VALUES.saturating_sub(self.at_most.len());
        for (hash, most) in at_most.iter().take(room) {
            let at = self.limit(*hash).unwrap_or_else(|at| {
                self.at_most.insert(at, (*hash, *most));
                at
            });
            if let Some((_, known)) = self.at_most.get_mut(at) {
                *known = known.max(*most);
            }
        }
        for hash in stated {
            self.state(*hash);
        }
        for hash in trusted {
            self.trust(*hash, position);
        }
        for hash in untrusted {
            self.mark(*hash, Level::Untrusted, position);
        }
        for hash in sent {
            self.mark(*hash, Level::Nowhere, NO_SOURCE);
        }
    }

    // Inlined into each caller, a search of a hash table takes much more code.
    #[inline(never)]
    fn value(&self, hash: u64) -> Option<Value> {
        self.values.get(&hash).copied()
    }

    fn is_stated(&self, hash: u64) -> bool {
        self.value(hash).is_some_and(|value| value.level == Level::Instruction)
    }

    fn state(&mut self, hash: u64) {
        if self.stated < MAX_STATED_VALUES {
            let value = Value { level: Level::Instruction, source: NO_SOURCE };
            let before = self.values.insert(hash, value);
            self.stated += usize::from(before.is_none_or(|before| before != value));
        }
    }

    fn mark(&mut self, hash: u64, level: Level, source: u16) {
        if self.value(hash).is_some() {
            return;
        }
        if self.marked >= MAX_MARKED_VALUES {
            self.closed = true;
            return;
        }
        self.marked += 1;
        self.values.insert(hash, Value { level, source });
    }

    fn trust(&mut self, hash: u64, source: u16) {
        if !self.closed && self.trusted < MAX_TRUSTED_VALUES && self.value(hash).is_none() {
            self.trusted += 1;
            self.values.insert(hash, Value { level: Level::Trusted, source });
        }
    }

    /// What a result adds to the run; `None` if it adds nothing.
    #[must_use]
    pub fn of_result(&self, observed: &Observed, source: Source) -> Option<Observation> {
        let other_key = self.key.is_some_and(|key| key != observed.key);
        let fresh = |hashes: &[u64]| {
            let mut fresh = hashes.to_vec();
            fresh.retain(|hash| other_key || self.value(*hash).is_none());
            fresh
        };
        let mut observation = Observation {
            key: observed.key,
            source: Some(source),
            untrusted: fresh(&observed.untrusted),
            ..Observation::default()
        };
        // Values that are missing may have been untrusted ones.
        observation.closed = !self.closed && observed.incomplete;
        let room = if self.closed || observation.closed {
            0
        } else {
            MAX_TRUSTED_VALUES.saturating_sub(self.trusted)
        };
        observation.trusted = fresh(&observed.trusted);
        observation.trusted.truncate(room);
        let room = MAX_MARKED_VALUES.saturating_sub(self.marked);
        if observation.untrusted.len() > room {
            observation.untrusted.truncate(room);
            observation.trusted.clear();
            observation.closed = true;
        }
        self.bounded(observation)
    }

    /// What the arguments of a call that passes add to the run: the values that were not known before. `stated`: what an
    /// approver approved, and what the agent chose as the plan allows.
    #[must_use]
    pub fn of_call(
        &self,
        key: u32,
        sent: (Vec<u64>, bool),
        (stated, planned): (Vec<u64>, Vec<u64>),
    ) -> Option<Observation> {
        let (mut sent, incomplete) = sent;
        sent.retain(|hash| self.value(*hash).is_none());
        let room = MAX_MARKED_VALUES.saturating_sub(self.marked);
        let closed = !self.closed && (incomplete || sent.len() > room);
        sent.truncate(room);
        self.bounded(Observation { key, stated, planned, sent, closed, ..Observation::default() })
    }

    /// What an instruction and a plan add to the run; `None` if the run has all of it.
    #[must_use]
    pub fn of_statement(
        &self,
        key: u32,
        mut stated: Vec<u64>,
        (mut planned, mut at_most): (Vec<u64>, Vec<(u64, f64)>),
    ) -> Option<Observation> {
        if self.key == Some(key) {
            stated.retain(|hash| !self.is_stated(*hash));
            planned.retain(|hash| !self.is_planned(*hash));
            at_most.retain(|(hash, most)| !self.is_within(*hash, *most));
        }
        self.bounded(Observation { key, stated, planned, at_most, ..Observation::default() })
    }

    /// The observation if it changes something. The last row that a run has space for closes it.
    fn bounded(&self, observation: Observation) -> Option<Observation> {
        let observation = match MAX_OBSERVATIONS.saturating_sub(self.rows) {
            0 => return None,
            1 => Observation { key: observation.key, closed: true, ..Observation::default() },
            _ => observation,
        };
        observation.changes().then_some(observation)
    }
}

impl Observation {
    fn changes(&self) -> bool {
        let lists = [&self.stated, &self.planned, &self.trusted, &self.untrusted, &self.sent];
        let has_values = lists.into_iter().any(|list| !list.is_empty());
        self.closed || has_values || !self.at_most.is_empty()
    }

    /// As it is stored.
    #[must_use]
    pub fn encode(&self) -> String {
        // Plain data always serializes. An empty row could not be read, and the run would stop.
        json::to_string(self)
    }
}

/// The name under which a run's observations are stored. Agents have names without `/`, and run ids can be
/// long.
#[must_use]
pub fn storage_name(agent: &str, run_id: &str) -> String {
    let hash = Sha256::digest(run_id);
    format!("{agent}/{}", hex::encode(hash.get(..16).unwrap_or_default()))
}
