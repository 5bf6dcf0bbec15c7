//! The lane that keeps a tenant's head log ([`HEAD_LANE`]). Its rows are checkpoints of the tenant's other lanes, and
//! events of its registry, each in the order in which it got them.

use super::state::Lane;
use super::storage::{LaneResult, LaneSql, StorageError, meta, set_meta, unreadable};
use super::tree::TreeHead;
use crate::bounds::HEAD_LANE;
use crate::gate::config::Config;
use crate::gate::head_log::{self, LaneCheckpoint};
use crate::gate::{AgentState, EventFacts, JournalEntry};
use crate::problem::{Problem, ProblemCode};
use crate::receipt::RegistryEvent;

/// The name in `meta` of an epoch: the log has the events of this epoch and of all epochs before it.
const EVENTS_THROUGH: &str = "events_through";

/// The name in `meta` of what the lane last told the head log.
const TOLD: &str = "told";

/// The prefix of the names in `meta` for the last message of each lane: the size of its tree, and the number
/// of the last receipt that it deleted.
const SAID_BY: &str = "said by lane ";

/// How often a lane tells the head log of a checkpoint. Lanes publish about once a second, and the head log would have an
/// entry for each.
pub const TELL_HEAD_MS: u64 = 30_000;

/// What a lane told its tenant's head log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    pub at_ms: u64,
    /// The newest receipt that the checkpoint covers.
    pub through: u64,
    /// The last receipt that was deleted because of its age.
    pub pruned_through: u64,
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(':')?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

impl Lane {
    /// Writes an entry for a checkpoint of another lane.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`]: the journal is full, or the lane had a larger tree before. The caller must not
    /// delete receipts then.
    pub fn keep_checkpoint(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        checkpoint: &LaneCheckpoint,
        now_ms: u64,
    ) -> LaneResult<()> {
        self.adopt(storage, &checkpoint.tenant, HEAD_LANE)?;
        let name = format!("{SAID_BY}{}", checkpoint.of_lane);
        let (size, pruned) = match meta(storage, &name)? {
            Some(said) => pair(&said).ok_or_else(|| unreadable("what a lane said"))?,
            None => (0, 0),
        };
        let tree = TreeHead::of_note(&checkpoint.note).filter(|tree| tree.size >= size);
        // Messages can arrive out of order. A smaller tree after a larger one would look like another
        // history.
        let Some(tree) = tree else {
            let what = "the head log has a later checkpoint of this lane";
            return Ok(Err(Problem::new(ProblemCode::StateConflict, what)));
        };
        // A lane reports `pruned_through` before it deletes. If it does not learn that the log has the entry, it
        // deletes nothing, and its later reports have a smaller number. So the larger number is kept.
        let pruned_through = checkpoint.pruned_through.max(pruned);
        let checkpoint = LaneCheckpoint { pruned_through, ..checkpoint.clone() };
        // Before the entry: if the lane stops between the two, no older message may follow the entry. The same message
        // may come again.
        set_meta(storage, &name, format!("{}:{pruned_through}", tree.size))?;
        self.write_entry(storage, config, now_ms, |facts| {
            head_log::lane_checkpoint(facts, &checkpoint)
        })
    }

    /// Writes an entry for each event, in the order of their epochs. The last of them is from the epoch `through`.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`]: the journal is full.
    pub fn include_events(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        tenant: &str,
        (events, through): (&[RegistryEvent], u64),
        now_ms: u64,
    ) -> LaneResult<()> {
        for event in events {
            let written = self.write_entry(storage, config, now_ms, |facts| {
                head_log::registry_event(facts, tenant, event)
            })?;
            if written.is_err() {
                return Ok(written);
            }
        }
        set_meta(storage, EVENTS_THROUGH, through.to_string()).map(Ok)
    }

    /// The epoch whose event is in the log, with all before it.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn events_through(storage: &impl LaneSql) -> Result<u64, StorageError> {
        let stored = meta(storage, EVENTS_THROUGH)?;
        let stored = stored.map(|text| text.parse().map_err(|_| unreadable("an epoch")));
        Ok(stored.transpose()?.unwrap_or(0))
    }

    /// What the lane last told the head log; `None` if it never did.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn told_head(storage: &impl LaneSql) -> Result<Option<Told>, StorageError> {
        let Some(stored) = meta(storage, TOLD)? else { return Ok(None) };
        let parts = stored.split_once(' ').and_then(|(at_ms, rest)| {
            let (through, pruned_through) = pair(rest)?;
            Some(Told { at_ms: at_ms.parse().ok()?, through, pruned_through })
        });
        parts.map(Some).ok_or_else(|| unreadable("what the head log was told"))
    }

    /// # Errors
    ///
    /// [`StorageError`].
    pub fn note_told_head(storage: &impl LaneSql, told: Told) -> Result<(), StorageError> {
        let Told { at_ms, through, pruned_through } = told;
        set_meta(storage, TOLD, format!("{at_ms} {through}:{pruned_through}"))
    }

    fn write_entry(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        now_ms: u64,
        entry: impl FnOnce(&EventFacts<'_>) -> Result<(JournalEntry, AgentState), Problem>,
    ) -> LaneResult<()> {
        self.check_clock(storage, now_ms)?;
        let state = AgentState::default();
        let entry = entry(&self.event_facts(config, &state, now_ms));
        self.write_event(storage, entry.map(Some), now_ms)
    }
}
