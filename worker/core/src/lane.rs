//! A lane: the state of a share of a tenant's agents, kept by one object in one total order.
//!
//! INVARIANT (written first): memory takes a new state only after the row that carries it was
//! written. Every method that writes returns an error when storage fails, and then the caller
//! must drop the lane and [`Lane::start`] anew: memory may be behind storage, never ahead.
//!
//! INVARIANT (no await inside): every method is synchronous, so in a Durable Object nothing
//! else runs while one does, and writes made in one become durable together.
//!
//! State rebuilt at a start: the chain's head from `meta` and the journal's last row; an agent's
//! state from whichever of its snapshot (`agents`) and its last journal row has the higher
//! revision. So each statement of [`Lane::confirm_flushed`] may be the last that succeeds.
//!
//! Out of scope: talking to D1 (`worker/edge`), deciding ([`crate::gate`]).

use std::collections::HashMap;

use crate::audit::{AuditCount, AuditCounts};
use crate::command::GateCommand;
use crate::config::Config;
use crate::gate::{
    AgentState, ChainHead, Facts, JournalEntry, NONCE_MS, REPLAY_MS, Reply, StoredAnswer, decide,
    encode_state, needs_tool, scoped_key,
};
use crate::policy::PolicyEngine;
use crate::receipt::GENESIS;
use crate::registry::Records;
use crate::sql::lane as sql;

/// A value that SQLite takes or gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Integer(i64),
    Text(String),
}

/// Storage failed; what is known of it, for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageError(pub String);

impl std::fmt::Display for StorageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "lane storage: {}", self.0)
    }
}

impl std::error::Error for StorageError {}

/// The lane's own SQLite. A statement runs whole or not at all.
pub trait LaneSql {
    /// Runs one statement and returns its rows.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; an absent row is no error.
    fn exec(&self, statement: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StorageError>;

    /// Bytes that the database takes.
    fn size_bytes(&self) -> u64;
}

/// Bytes of storage from which nothing more is taken: a Durable Object holds 10 GB, and the rest
/// lets the flush and its bookkeeping go on.
pub const MAX_STORAGE_BYTES: u64 = 8_000_000_000;

/// Bytes of one flush: D1 takes strings of up to 2 MB.
const MAX_FLUSH_BYTES: usize = 1_500_000;

/// Agents held in memory; beyond it those that need no snapshot are dropped and read again when
/// they call. A state is some 300 bytes.
const MAX_AGENTS: usize = 20_000;

/// Agents whose rejections are told apart within a minute.
const MAX_COUNTED_AGENTS: usize = 1_024;

/// Audit counts in one flush.
const MAX_FLUSH_COUNTS: i64 = 500;

/// Replay and nonce rows deleted at one flush: twice what a flush of the largest batch adds.
const MAX_EXPIRED_ROWS: i64 = 4_000;

/// An agent in memory.
#[derive(Debug)]
struct Held {
    state: AgentState,
    /// Sequence number of the agent's newest journal row; 0 when its snapshot is as new.
    journalled: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Lane {
    identity: Option<(String, u16)>,
    head: ChainHead,
    journal_rows: u64,
    agents: HashMap<String, Held>,
    counts: AuditCounts,
    storage_full: bool,
    /// Something may wait that memory does not know of: so after a start.
    unsure: bool,
}

/// Journal rows on their way to D1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushBatch {
    /// A JSON array of journal rows; `[]` when only counts are due.
    pub rows: String,
    /// First and last sequence number, when there are rows.
    pub range: Option<(u64, u64)>,
    /// Sequence number and hash of each row's receipt.
    pub hashes: Vec<(u64, String)>,
    /// A JSON array of audit counts.
    pub counts: String,
    /// Event id and count of each, to know what may be dropped.
    pub count_keys: Vec<(String, i64)>,
}

/// What became of a batch that D1 was said to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// D1 has it, and the journal no longer.
    Pruned,
    /// D1 holds something else under this sequence number, or nothing. The rows stay.
    HashDiffers { seq: u64 },
}

impl Lane {
    /// Rebuilds the lane from what is stored.
    ///
    /// # Errors
    ///
    /// [`StorageError`], also when what is stored cannot be read: a lane never starts from less
    /// than it acknowledged.
    pub fn start(storage: &impl LaneSql) -> Result<Self, StorageError> {
        for statement in sql::SCHEMA {
            storage.exec(statement, &[])?;
        }
        let identity = meta(storage, "identity")?.as_deref().map(parse_identity).transpose()?;
        let mut head = match meta(storage, "head")? {
            Some(stored) => parse_head(&stored)?,
            None if identity.is_none() => ChainHead { seq: 0, hash: GENESIS.to_owned() },
            None => return Err(unreadable("the chain's head")),
        };
        let extent = storage.exec(sql::JOURNAL_EXTENT, &[])?;
        let numbers = extent.first().map(Vec::as_slice).unwrap_or_default();
        let [Value::Integer(rows), Value::Integer(first), Value::Integer(last)] = numbers else {
            return Err(unreadable("the journal's extent"));
        };
        let (rows, first, last) = (unsigned(*rows)?, unsigned(*first)?, unsigned(*last)?);
        if rows > 0 && (last - first + 1 != rows || first > head.seq + 1 || last < head.seq) {
            return Err(unreadable("the journal: rows are missing"));
        }
        if last > head.seq {
            let hash = storage.exec(sql::JOURNAL_HASH, &[integer(last)?])?;
            let hash = first_text(&hash).ok_or_else(|| unreadable("the journal's last row"))?;
            head = ChainHead { seq: last, hash: hash.to_owned() };
        }
        let mut agents = HashMap::new();
        for row in storage.exec(sql::JOURNAL_STATES, &[])? {
            let [Value::Text(agent), Value::Text(state), Value::Integer(seq)] = row.as_slice()
            else {
                return Err(unreadable("an agent's journal row"));
            };
            let mut held = Held { state: parse_state(state)?, journalled: unsigned(*seq)? };
            if let Some(snapshot) = snapshot(storage, agent)?
                && snapshot.revision > held.state.revision
            {
                held = Held { state: snapshot, journalled: 0 };
            }
            agents.insert(agent.clone(), held);
        }
        // Counts begin anew, so what they write must not meet what an earlier start wrote.
        let starts =
            meta(storage, "starts")?.and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        set_meta(storage, "starts", (starts + 1).to_string())?;
        Ok(Self {
            identity,
            head,
            journal_rows: rows,
            agents,
            counts: AuditCounts::new(MAX_COUNTED_AGENTS, format!(".{starts}")),
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

    /// Which tenant's lane this is; `None` before its first call.
    #[must_use]
    pub fn identity(&self) -> Option<&(String, u16)> {
        self.identity.as_ref()
    }

    /// Writes down, once, which tenant's lane this is: an alarm brings no name.
    ///
    /// # Errors
    ///
    /// [`StorageError`], also when this is another lane's storage.
    pub fn adopt(
        &mut self,
        storage: &impl LaneSql,
        tenant: &str,
        lane: u16,
    ) -> Result<(), StorageError> {
        match &self.identity {
            Some((t, l)) if t == tenant && *l == lane => Ok(()),
            Some(_) => Err(StorageError("this is another lane's object".to_owned())),
            None => {
                // The head first: from here on a lane without one has lost it.
                set_head(storage, &self.head)?;
                set_meta(storage, "identity", format!("{tenant}/{lane}"))?;
                self.identity = Some((tenant.to_owned(), lane));
                Ok(())
            }
        }
    }

    /// Steps 6 to 12 of a call, whose registry records the caller read at the current epoch.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; the caller answers 503 and starts the lane anew.
    pub fn call(
        &mut self,
        storage: &impl LaneSql,
        engine: &PolicyEngine,
        config: &Config,
        command: &GateCommand,
        records: &Records,
        now_ms: u64,
    ) -> Result<Reply, StorageError> {
        let call = &command.call;
        let key =
            |value: &Option<String>| value.as_ref().map(|value| scoped_key(&call.agent, value));
        let stored = match key(&call.request_id) {
            Some(key) => stored_answer(storage, key)?,
            None => None,
        };
        let nonce_used = match key(&call.nonce) {
            Some(key) => !storage.exec(sql::NONCE_USED, &[Value::Text(key)])?.is_empty(),
            None => false,
        };
        self.hold(storage, &call.agent)?;
        let fresh = AgentState::default();
        let facts = self.facts(config, command, records, now_ms, &fresh);
        let step = decide(engine, &Facts { stored, nonce_used, ..facts }, command);
        match step.entry {
            Some(entry) => {
                self.journal(storage, entry, step.agent, now_ms)?;
            }
            None => {
                storage.exec(sql::TOUCH, &[])?;
                if let Some(held) = self.agents.get_mut(&call.agent) {
                    held.state = step.agent;
                }
            }
        }
        if let Some(rejection) = step.rejection
            && let Some(count) = self.counts.record(rejection.as_str(), &call.agent, now_ms)
            && !self.storage_full
        {
            write_count(storage, &count)?;
        }
        Ok(step.reply)
    }

    /// Whether the call comes as far as its tool, so that the registry must be asked for one.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn needs_tool(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &GateCommand,
        records: &Records,
        now_ms: u64,
    ) -> Result<bool, StorageError> {
        self.hold(storage, &command.call.agent)?;
        let fresh = AgentState::default();
        let facts = self.facts(config, command, records, now_ms, &fresh);
        Ok(needs_tool(&facts, command))
    }

    /// What a decision depends on, but for what storage holds of request id and nonce.
    fn facts<'a>(
        &'a self,
        config: &'a Config,
        command: &GateCommand,
        records: &'a Records,
        now_ms: u64,
        fresh: &'a AgentState,
    ) -> Facts<'a> {
        let held = self.agents.get(&command.call.agent);
        Facts {
            now_ms,
            config,
            records,
            agent: held.map_or(fresh, |held| &held.state),
            head: &self.head,
            stored: None,
            nonce_used: false,
            journal_rows: self.journal_rows,
            storage_full: self.storage_full,
        }
    }

    /// Writes the row, then takes the state.
    fn journal(
        &mut self,
        storage: &impl LaneSql,
        entry: JournalEntry,
        state: AgentState,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let text = |value: Option<String>| value.map_or(Value::Null, Value::Text);
        storage.exec(
            sql::INSERT,
            &[
                integer(entry.head.seq)?,
                integer(now_ms)?,
                Value::Text(entry.head.hash.clone()),
                Value::Text(entry.agent.clone()),
                Value::Text(entry.state),
                text(entry.request_key),
                Value::Text(entry.fingerprint),
                text(entry.nonce_key),
                Value::Text(entry.row),
            ],
        )?;
        self.agents.insert(entry.agent, Held { state, journalled: entry.head.seq });
        self.head = entry.head;
        self.journal_rows += 1;
        Ok(())
    }

    /// Brings the agent's state into memory.
    fn hold(&mut self, storage: &impl LaneSql, agent: &str) -> Result<(), StorageError> {
        if self.agents.contains_key(agent) {
            return Ok(());
        }
        if self.agents.len() >= MAX_AGENTS {
            self.agents.retain(|_, held| held.journalled > 0);
        }
        let state = snapshot(storage, agent)?.unwrap_or_default();
        self.agents.insert(agent.to_owned(), Held { state, journalled: 0 });
        Ok(())
    }

    /// The next rows to copy to D1; `None` when nothing is due.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn flush_batch(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        now_ms: u64,
    ) -> Result<Option<FlushBatch>, StorageError> {
        for count in self.counts.close(now_ms) {
            write_count(storage, &count)?;
        }
        self.expire(storage, now_ms)?;
        let limit = Value::Integer(i64::from(config.flush_batch_rows));
        let mut rows = String::from("[");
        let mut hashes: Vec<(u64, String)> = Vec::new();
        for row in storage.exec(sql::ROWS, &[Value::Integer(0), limit])? {
            let [Value::Integer(seq), Value::Text(hash), Value::Text(text)] = row.as_slice() else {
                return Err(unreadable("a journal row"));
            };
            if !hashes.is_empty() {
                if rows.len() + text.len() > MAX_FLUSH_BYTES {
                    break;
                }
                rows.push(',');
            }
            rows.push_str(text);
            hashes.push((unsigned(*seq)?, hash.clone()));
        }
        rows.push(']');
        let mut counts = Vec::new();
        let mut count_keys = Vec::new();
        for row in storage.exec(sql::COUNTS, &[Value::Integer(MAX_FLUSH_COUNTS)])? {
            let [Value::Text(event_id), Value::Integer(count), Value::Text(json)] = row.as_slice()
            else {
                return Err(unreadable("an audit count"));
            };
            count_keys.push((event_id.clone(), *count));
            counts.push(json.clone());
        }
        let range =
            hashes.first().zip(hashes.last()).map(|((first, _), (last, _))| (*first, *last));
        let due = range.is_some() || !count_keys.is_empty();
        self.unsure = due;
        let counts = format!("[{}]", counts.join(","));
        Ok(due.then_some(FlushBatch { rows, range, hashes, counts, count_keys }))
    }

    /// Whether there is, or soon will be, something to flush or to expire.
    #[must_use]
    pub fn needs_flush(&self) -> bool {
        self.unsure || self.journal_rows > 0 || self.storage_full || !self.counts.is_empty()
    }

    /// D1 has the batch; `stored` is what it holds of the batch's receipts, in order. Prunes.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: nothing was pruned that D1 does not hold as it was journalled.
    pub fn confirm_flushed(
        &mut self,
        storage: &impl LaneSql,
        batch: &FlushBatch,
        stored: &[(u64, String)],
    ) -> Result<Confirmed, StorageError> {
        for (event_id, count) in &batch.count_keys {
            let key = [Value::Text(event_id.clone()), Value::Integer(*count)];
            storage.exec(sql::DROP_COUNT, &key)?;
        }
        let Some((_, last)) = batch.range else { return Ok(Confirmed::Pruned) };
        for (at, journalled) in batch.hashes.iter().enumerate() {
            if stored.get(at) != Some(journalled) {
                return Ok(Confirmed::HashDiffers { seq: journalled.0 });
            }
        }
        let through = integer(last)?;
        storage.exec(sql::KEEP_REPLAYS, std::slice::from_ref(&through))?;
        storage.exec(sql::KEEP_NONCES, std::slice::from_ref(&through))?;
        for (agent, held) in &mut self.agents {
            if (1..=last).contains(&held.journalled) {
                let values = [Value::Text(agent.clone()), Value::Text(encode_state(&held.state))];
                storage.exec(sql::SET_AGENT, &values)?;
                held.journalled = 0;
            }
        }
        set_head(storage, &self.head)?;
        storage.exec(sql::PRUNE, &[through])?;
        self.journal_rows = self.journal_rows.saturating_sub(batch.hashes.len() as u64);
        Ok(Confirmed::Pruned)
    }

    /// Deletes answers and nonces that are past their time, a bounded number at once.
    fn expire(&mut self, storage: &impl LaneSql, now_ms: u64) -> Result<(), StorageError> {
        for (statement, kept_ms) in
            [(sql::EXPIRE_REPLAYS, REPLAY_MS), (sql::EXPIRE_NONCES, NONCE_MS)]
        {
            let before = integer(now_ms.saturating_sub(kept_ms))?;
            storage.exec(statement, &[before, Value::Integer(MAX_EXPIRED_ROWS)])?;
        }
        self.storage_full = storage.size_bytes() > MAX_STORAGE_BYTES;
        Ok(())
    }

    /// A journal row that was not flushed yet.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn row(storage: &impl LaneSql, seq: u64) -> Result<Option<String>, StorageError> {
        let rows = storage.exec(sql::ROW, &[integer(seq)?])?;
        Ok(first_text(&rows).map(str::to_owned))
    }

    /// Up to `limit` journal rows from `from` on, as a JSON array.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn rows(storage: &impl LaneSql, from: u64, limit: u32) -> Result<String, StorageError> {
        let rows = storage.exec(sql::ROWS, &[integer(from)?, Value::Integer(i64::from(limit))])?;
        let texts: Vec<&str> = rows
            .iter()
            .filter_map(|row| match row.as_slice() {
                [_, _, Value::Text(text)] => Some(text.as_str()),
                _ => None,
            })
            .collect();
        Ok(format!("[{}]", texts.join(",")))
    }
}

fn write_count(storage: &impl LaneSql, count: &AuditCount) -> Result<(), StorageError> {
    let values = [
        Value::Text(count.event_id.clone()),
        integer(count.at_ms)?,
        Value::Text(count.kind.to_owned()),
        Value::Text(count.source.clone()),
        integer(count.count)?,
    ];
    storage.exec(sql::SET_COUNT, &values).map(drop)
}

fn stored_answer(
    storage: &impl LaneSql,
    key: String,
) -> Result<Option<StoredAnswer>, StorageError> {
    let rows = storage.exec(sql::STORED_ANSWER, &[Value::Text(key)])?;
    match rows.first().map(Vec::as_slice) {
        None => Ok(None),
        Some([Value::Text(fingerprint), Value::Text(response)]) => {
            Ok(Some(StoredAnswer { fingerprint: fingerprint.clone(), response: response.clone() }))
        }
        Some(_) => Err(unreadable("a stored answer")),
    }
}

fn meta(storage: &impl LaneSql, name: &str) -> Result<Option<String>, StorageError> {
    let rows = storage.exec(sql::META, &[Value::Text(name.to_owned())])?;
    Ok(first_text(&rows).map(str::to_owned))
}

fn set_meta(storage: &impl LaneSql, name: &str, value: String) -> Result<(), StorageError> {
    storage.exec(sql::SET_META, &[Value::Text(name.to_owned()), Value::Text(value)]).map(drop)
}

fn set_head(storage: &impl LaneSql, head: &ChainHead) -> Result<(), StorageError> {
    set_meta(storage, "head", format!("{}:{}", head.seq, head.hash))
}

fn snapshot(storage: &impl LaneSql, agent: &str) -> Result<Option<AgentState>, StorageError> {
    let rows = storage.exec(sql::AGENT_STATE, &[Value::Text(agent.to_owned())])?;
    first_text(&rows).map(parse_state).transpose()
}

fn parse_state(text: &str) -> Result<AgentState, StorageError> {
    serde_json::from_str(text).map_err(|_| unreadable("an agent's state"))
}

fn parse_identity(text: &str) -> Result<(String, u16), StorageError> {
    let parts = text.split_once('/').and_then(|(t, lane)| Some((t.to_owned(), lane.parse().ok()?)));
    parts.ok_or_else(|| unreadable("the lane's identity"))
}

fn parse_head(text: &str) -> Result<ChainHead, StorageError> {
    let parts = text.split_once(':').and_then(|(seq, hash)| Some((seq.parse().ok()?, hash)));
    let (seq, hash) = parts.ok_or_else(|| unreadable("the chain's head"))?;
    Ok(ChainHead { seq, hash: hash.to_owned() })
}

fn first_text(rows: &[Vec<Value>]) -> Option<&str> {
    match rows.first()?.first()? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn unreadable(what: &str) -> StorageError {
    StorageError(format!("{what} cannot be read"))
}

/// SQLite's integers are signed.
fn integer(value: u64) -> Result<Value, StorageError> {
    i64::try_from(value).map(Value::Integer).map_err(|_| unreadable("a number above 2^63"))
}

fn unsigned(value: i64) -> Result<u64, StorageError> {
    u64::try_from(value).map_err(|_| unreadable("a number below zero"))
}
