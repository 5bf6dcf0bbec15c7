//! A lane in memory: what it keeps, and how it starts from its storage.

use std::collections::{BTreeSet, HashMap};

use super::audit::AuditCounts;
use super::clock::Clock;
use super::day::Day;
use super::limits::Limits;
use super::runs::Runs;
use super::storage::{
    LaneSql, StorageError, Value, checkpointed_state, first_text, integer, meta, missing_rows,
    parse_head, parse_identity, parse_state, read_checkpoint, read_tallies, set_head, set_meta,
    unreadable, unsigned, write_count,
};
use super::tree::{Published, Tree, read_publication};
use super::windows::WindowCache;
use crate::bucket::Bucket;
use crate::gate::config::MAX_STORAGE_BYTES;
use crate::gate::{AgentState, CountedEvent};
use crate::metrics::{Series, Tallies};
use crate::receipt::{ChainHead, GENESIS};
use crate::sql::lane as sql;

/// Agents in memory. With more, those without a row after the state checkpoint are dropped, and
/// read again when they call. A state takes about 300 bytes.
const MAX_AGENTS: usize = 20_000;

/// Agents with a count of their own within a minute.
const MAX_COUNTED_AGENTS: usize = 1_024;

/// An agent in memory.
#[derive(Debug)]
pub(super) struct AgentInMemory {
    pub(super) state: AgentState,
    /// The sequence number of the agent's newest journal row since the lane has it in memory, else
    /// 0. Up to the state checkpoint, the agent's row in `agents` is as new.
    pub(super) journalled: u64,
    /// The rate limit of callers without a credential before they are identified ([`Lane::charge_stranger`]). In memory
    /// only: an attacker who gets the lane evicted gains little.
    pub(super) strangers: Option<Bucket>,
}

/// See [`crate::lane`].
#[derive(Debug)]
pub struct Lane {
    pub(super) identity: Option<(String, u16)>,
    pub(super) head: ChainHead,
    pub(super) journal_rows: u64,
    /// The sequence number of the newest state checkpoint.
    pub(super) checkpoint: u64,
    /// The latest time of any row, including deleted rows.
    pub(super) latest_ms: u64,
    pub(super) clock: Clock,
    pub(super) agents: HashMap<String, AgentInMemory>,
    pub(super) runs: Runs,
    pub(super) limits: Limits,
    pub(super) windows: WindowCache,
    /// How many approvals were open when they were last counted; `None` after a step of one.
    pub(super) approvals_open: Option<i64>,
    pub(super) counts: AuditCounts,
    /// The number of the next flush: higher than that of any before it, also before a restart.
    pub(super) flushes: u64,
    pub(super) tallies: Tallies,
    /// The series with names that D1 was told of since the lane is in memory.
    pub(super) told_series: BTreeSet<String>,
    /// Whether D1 has not confirmed the newest tallies, or has a report that was overtaken.
    pub(super) report_due: bool,
    /// Whether D1 has other receipts than the lane, as it answered to the last batch.
    pub(super) differs: bool,
    pub(super) day: Day,
    /// The receipts that D1 has, as a Merkle tree.
    pub(super) tree: Tree,
    /// The tree that D1 has a checkpoint of.
    pub(super) published: Option<Published>,
    /// Whether D1's checkpoint is of another tree. Then nothing is written.
    pub(super) stopped: bool,
    pub(super) storage_full: bool,
    /// Whether storage may hold something to flush that memory does not know. True after a start.
    pub(super) unsure: bool,
}

impl Lane {
    /// Rebuilds the lane from its storage.
    ///
    /// # Errors
    ///
    /// [`StorageError`], also if something stored cannot be read: a lane never starts from less
    /// than it acknowledged.
    pub fn start(storage: &impl LaneSql) -> Result<Self, StorageError> {
        let is_old = !storage.exec(sql::HAS_NO_BOOKS, &[])?.is_empty();
        let upgrade = if is_old { sql::ADD_BOOKS } else { &[] };
        for statement in upgrade.iter().chain(sql::SCHEMA) {
            storage.exec(statement, &[])?;
        }
        let identity = meta(storage, "identity")?.as_deref().map(parse_identity).transpose()?;
        let stored_head = match meta(storage, "head")? {
            Some(stored) => parse_head(&stored)?,
            None if identity.is_none() => ChainHead { seq: 0, hash: GENESIS.to_owned() },
            None => return Err(unreadable("the chain's head")),
        };
        let (first, last) = journal_extent(storage, flushed_through(storage)?)?;
        let rows = if last > 0 { last - first + 1 } else { 0 };
        if rows > 0 && (first > stored_head.seq + 1 || last < stored_head.seq) {
            return Err(missing_rows());
        }
        let head = if last > stored_head.seq { journal_head(storage, last)? } else { stored_head };
        let (checkpoint, latest_ms) = read_checkpoint(storage)?;
        let (agents, found) = journal_states(storage, checkpoint)?;
        let before = checkpoint.max(first.saturating_sub(1));
        if head.seq < checkpoint || found != last.saturating_sub(before) {
            return Err(missing_rows());
        }
        // A lane that is older than its tree begins it with the next receipt that goes to D1.
        let next = head.seq + 1 - rows;
        let mut tree = Tree::start(storage, next)?;
        if tree.through() + 1 < next {
            // A version without trees flushed rows meanwhile. If the old tree was published, the lane stops when it next
            // compares, until a person takes the checkpoint away.
            tree = Tree::begin_again(storage, next)?;
        }
        let (published, stopped) = read_publication(storage)?;
        // Each start counts from zero, so its counts need event ids of their own.
        let starts =
            meta(storage, "starts")?.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        set_meta(storage, "starts", (starts + 1).to_string())?;
        Ok(Self {
            identity,
            head,
            journal_rows: rows,
            checkpoint,
            latest_ms,
            clock: Clock::start(storage)?,
            agents,
            runs: Runs::default(),
            limits: Limits::start(storage, checkpoint)?,
            windows: WindowCache::default(),
            approvals_open: None,
            counts: AuditCounts::new(MAX_COUNTED_AGENTS, format!(".{starts}")),
            flushes: starts.saturating_mul(1 << 32),
            tallies: read_tallies(storage)?,
            told_series: BTreeSet::new(),
            // Tallies go with the next flush, which the rest of the storage may need.
            report_due: false,
            differs: false,
            day: Day::start(storage)?,
            tree,
            published,
            stopped,
            storage_full: storage.size_bytes() > MAX_STORAGE_BYTES,
            unsure: true,
        })
    }

    #[must_use]
    pub fn journal_rows(&self) -> u64 {
        self.journal_rows
    }

    #[must_use]
    pub fn head(&self) -> &ChainHead {
        &self.head
    }

    /// The tenant and the number of this lane; `None` before its first call.
    #[must_use]
    pub fn identity(&self) -> Option<&(String, u16)> {
        self.identity.as_ref()
    }

    /// Stores, once, the tenant and the number of this lane. An alarm does not bring them.
    ///
    /// # Errors
    ///
    /// [`StorageError`], also if this is the storage of another lane.
    pub fn adopt(
        &mut self,
        storage: &impl LaneSql,
        tenant: &str,
        lane: u16,
    ) -> Result<(), StorageError> {
        match &self.identity {
            Some((t, l)) if t == tenant && *l == lane => Ok(()),
            Some(_) => Err(StorageError("this Durable Object belongs to another lane".to_owned())),
            None => {
                // The head is written first: from now on, a lane without a head has lost it.
                set_head(storage, &self.head)?;
                set_meta(storage, "identity", format!("{tenant}/{lane}"))?;
                self.identity = Some((tenant.to_owned(), lane));
                Ok(())
            }
        }
    }

    /// Loads the agent's state into memory, unless it is there, and repairs times in it that lie in the future.
    pub(super) fn load_agent(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.check_clock(storage, now_ms)?;
        if !self.agents.contains_key(agent) {
            if self.agents.len() >= MAX_AGENTS {
                self.agents.retain(|_, agent| agent.journalled > self.checkpoint);
            }
            let state = checkpointed_state(storage, agent)?.unwrap_or_default();
            let in_memory = AgentInMemory { state, journalled: 0, strangers: None };
            self.agents.insert(agent.to_owned(), in_memory);
        }
        let in_memory = self.agents.get_mut(agent);
        if in_memory.is_some_and(|agent| agent.state.repair_clock(now_ms)) {
            self.count(storage, CountedEvent::ClockRepaired, agent, now_ms)?;
        }
        Ok(())
    }

    /// Counts one event in the audit.
    pub(super) fn count(
        &mut self,
        storage: &impl LaneSql,
        counted: CountedEvent,
        source: &str,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        if counted.is_event() {
            self.tally(Series::Event(counted.as_str()), 1);
        }
        match self.counts.record(counted.as_str(), source, now_ms) {
            Some(count) if !self.storage_full => write_count(storage, &count),
            _ => Ok(()),
        }
    }

    /// Counts what metrics show and no journal row has.
    pub fn tally(&mut self, series: Series<'_>, more: u64) {
        self.tallies.add(series, more);
    }
}

fn flushed_through(storage: &impl LaneSql) -> Result<u64, StorageError> {
    match storage.exec(sql::FLUSHED_THROUGH, &[])?.first().map(Vec::as_slice) {
        Some([Value::Integer(through)]) => unsigned(*through),
        _ => Err(unreadable("what was flushed")),
    }
}

/// The sequence numbers of the journal's first and last row after a number; 0 if it has none.
fn journal_extent(storage: &impl LaneSql, after: u64) -> Result<(u64, u64), StorageError> {
    let extent = storage.exec(sql::JOURNAL_EXTENT, &[integer(after)?])?;
    let numbers = extent.first().map(Vec::as_slice).unwrap_or_default();
    let [Value::Integer(first), Value::Integer(last)] = numbers else {
        return Err(unreadable("the journal's extent"));
    };
    Ok((unsigned(*first)?, unsigned(*last)?))
}

/// The head of a chain whose last receipt is the journal's last row.
fn journal_head(storage: &impl LaneSql, last: u64) -> Result<ChainHead, StorageError> {
    let hash = storage.exec(sql::JOURNAL_HASH, &[integer(last)?])?;
    let hash = first_text(&hash).ok_or_else(|| unreadable("the journal's last row"))?;
    Ok(ChainHead { seq: last, hash: hash.to_owned() })
}

/// The agents with rows after the state checkpoint, and the number of these rows.
fn journal_states(
    storage: &impl LaneSql,
    checkpoint: u64,
) -> Result<(HashMap<String, AgentInMemory>, u64), StorageError> {
    let (mut agents, mut found) = (HashMap::new(), 0);
    for row in storage.exec(sql::JOURNAL_STATES, &[integer(checkpoint)?])? {
        let [Value::Text(agent), Value::Text(state), Value::Integer(seq), Value::Integer(rows)] =
            row.as_slice()
        else {
            return Err(unreadable("an agent's journal row"));
        };
        let state = parse_state(state)?;
        let in_memory = AgentInMemory { state, journalled: unsigned(*seq)?, strangers: None };
        agents.insert(agent.clone(), in_memory);
        found += unsigned(*rows)?;
    }
    Ok((agents, found))
}
