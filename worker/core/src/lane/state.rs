//! A lane in memory: how it starts from its storage, and how it handles calls and events.

use std::collections::HashMap;

use super::audit::AuditCounts;
use super::clock::Clock;
use super::day::Day;
use super::limits::Limits;
use super::runs::Runs;
use super::storage::{
    LaneSql, StorageError, Value, approval, checkpoint, first_text, integer, meta, missing_rows,
    parse_head, parse_identity, parse_state, set_head, set_meta, snapshot, steps, stored_answer,
    tallies, unreadable, unsigned, write_count,
};
use super::tree::{Published, Tree, publication};
use super::windows::{self, Windows};
use crate::bucket::{Bucket, Rate};
use crate::call::command::{GateCommand, Purpose};
use crate::credential::locator;
use crate::gate::budget::Budget;
use crate::gate::config::{Config, MAX_STORAGE_BYTES};
use crate::gate::velocity;
use crate::gate::warrant;
use crate::gate::windows::{Looked, Windows as WindowFacts};
use crate::gate::{
    AgentCommand, AgentState, Books, Containment, Counted, EventFacts, Facts, JournalEntry,
    JournalSpace, NONCE_MS, Reply, TaintCommand, carry_out, decide, needs_tool, observed_run,
    scoped_key, taint,
};
use crate::limit::book::Writes;
use crate::limit::lease::{Answer, Need};
use crate::metrics::{Series, Tallies};
use crate::policy::PolicyEngine;
use crate::problem::{Problem, ProblemCode};
use crate::provenance::run::storage_name;
use crate::receipt::{ChainHead, GENESIS};
use crate::registry::{CallRecords, TenantRecord};
use crate::sql::lane as sql;
use crate::velocity::shared::Look;
use crate::warrant::Carried;

/// Agents in memory. With more, those without a row after the checkpoint are dropped, and read
/// again when they call. A state takes about 300 bytes.
const MAX_AGENTS: usize = 20_000;

/// Requests in a row for one agent, of callers without a credential, whose warrants a lane verifies although they may say
/// nothing about who calls. A caller who turns out to be known uses none, but holds one while its records are read: as
/// many may wait at once.
const STRANGERS: u32 = 100;

/// How many more it verifies each second. Each takes the lane about 1 ms.
const STRANGERS_PER_S: f64 = 2.0;

/// Agents with a count of their own within a minute.
const MAX_COUNTED_AGENTS: usize = 1_024;

/// Expired nonces of signatures that are deleted when one is written. More than one, so that they
/// do not pile up: a lane that journals nothing is never flushed.
const MAX_EXPIRED_SIGNATURE_NONCES: i64 = 2;

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Called {
    Decided(Reply),
    /// Nothing was written. The lane asks counters for this, and then calls again.
    NotLeased(Vec<Need>),
    /// The same for windows that lanes share, those that were not asked yet.
    NotCounted(Vec<Look>),
}

/// What other objects answered to a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers<'a> {
    /// The counters of shared limits, by the names of the books.
    pub leases: &'a [(String, Answer)],
    /// The tenant's windows; `None` if they were not asked.
    pub looked: Option<&'a Looked>,
}

/// An agent in memory.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) state: AgentState,
    /// The sequence number of the agent's newest journal row since the lane has it in memory, else
    /// 0. Up to the checkpoint, the agent's snapshot is as new.
    pub(super) journalled: u64,
    /// What callers are charged who may be strangers ([`Lane::admit`]). In memory only: who evicts the lane gets little.
    strangers: Option<Bucket>,
}

/// See [`crate::lane`].
#[derive(Debug)]
pub struct Lane {
    pub(super) identity: Option<(String, u16)>,
    pub(super) head: ChainHead,
    pub(super) journal_rows: u64,
    /// The sequence number of the newest checkpoint.
    pub(super) checkpoint: u64,
    /// The latest time of any row, including pruned rows.
    pub(super) latest_ms: u64,
    pub(super) clock: Clock,
    pub(super) agents: HashMap<String, Held>,
    pub(super) runs: Runs,
    pub(super) limits: Limits,
    pub(super) windows: Windows,
    /// How many approvals were open when they were last counted; `None` after a step of one.
    pub(super) approvals_open: Option<i64>,
    pub(super) counts: AuditCounts,
    /// The number of the next flush: higher than that of any before it, also before a restart.
    pub(super) flushes: u64,
    pub(super) tallies: Tallies,
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
        let [Value::Integer(first), Value::Integer(last)] = numbers else {
            return Err(unreadable("the journal's extent"));
        };
        let (first, last) = (unsigned(*first)?, unsigned(*last)?);
        let rows = if last > 0 { last - first + 1 } else { 0 };
        if rows > 0 && (first > head.seq + 1 || last < head.seq) {
            return Err(missing_rows());
        }
        if last > head.seq {
            let hash = storage.exec(sql::JOURNAL_HASH, &[integer(last)?])?;
            let hash = first_text(&hash).ok_or_else(|| unreadable("the journal's last row"))?;
            head = ChainHead { seq: last, hash: hash.to_owned() };
        }
        let (checkpoint, latest_ms) = checkpoint(storage)?;
        let (mut agents, mut found) = (HashMap::new(), 0);
        for row in storage.exec(sql::JOURNAL_STATES, &[integer(checkpoint)?])? {
            let [Value::Text(agent), Value::Text(state), Value::Integer(seq), Value::Integer(rows)] =
                row.as_slice()
            else {
                return Err(unreadable("an agent's journal row"));
            };
            let state = parse_state(state)?;
            let held = Held { state, journalled: unsigned(*seq)?, strangers: None };
            agents.insert(agent.clone(), held);
            found += unsigned(*rows)?;
        }
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
        let (published, stopped) = publication(storage)?;
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
            limits: Limits::start(storage)?,
            windows: Windows::default(),
            approvals_open: None,
            counts: AuditCounts::new(MAX_COUNTED_AGENTS, format!(".{starts}")),
            flushes: starts.saturating_mul(1 << 32),
            tallies: tallies(storage)?,
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

    /// Charges a caller without a credential before the lane verifies its warrant: somebody who read a chain that is
    /// still valid can send it with any proof. To be asked once for each request, before [`Self::needs_tool`] and
    /// [`Self::call`]. A caller who turns out to be known gets back what it was charged.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, the [`Problem`] for the caller.
    pub fn admit(
        &mut self,
        storage: &impl LaneSql,
        command: &GateCommand,
        records: &CallRecords,
        now_ms: u64,
    ) -> Result<Result<(), Problem>, StorageError> {
        if !warrant::may_be_known(command, records, now_ms) {
            return Ok(Ok(()));
        }
        self.hold(storage, &command.call.agent, now_ms)?;
        let Some(held) = self.agents.get_mut(&command.call.agent) else { return Ok(Ok(())) };
        let rate = Rate::new(STRANGERS, STRANGERS_PER_S);
        let bucket = held.strangers.get_or_insert_with(|| Bucket::full(rate, now_ms));
        bucket.repair_clock(now_ms);
        if bucket.charge(rate, now_ms, 1) {
            return Ok(Ok(()));
        }
        let retry_after_s = bucket.retry_after_s(rate, 1);
        self.count(storage, Counted::RateLimited, locator::KEY_ID, now_ms)?;
        self.tally(Series::LimitHit { kind: "stranger_rate", limit: "" }, 1);
        let detail = "too many calls without a credential had warrants that did not say who calls; try again";
        let mut problem = Problem::new(ProblemCode::RateLimited, detail);
        problem.retry_after_s = Some(u32::try_from(retry_after_s).unwrap_or(u32::MAX).max(1));
        Ok(Err(problem))
    }

    /// Steps 6 to 12 of a call. `records` were read at the current epoch. `answers`: to this call.
    ///
    /// # Errors
    ///
    /// [`StorageError`]. The caller answers 503 and starts the lane again.
    pub fn call(
        &mut self,
        storage: &impl LaneSql,
        (engine, config): (&PolicyEngine, &Config),
        command: &GateCommand,
        records: &CallRecords,
        answers: Answers<'_>,
        now_ms: u64,
    ) -> Result<Called, StorageError> {
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
        let signature_nonce = command.signature_nonce.as_ref();
        let signature_nonce =
            signature_nonce.map(|nonce| Value::Text(scoped_key(&command.key_id, &nonce.nonce)));
        let signature_nonce_used = match &signature_nonce {
            Some(key) => {
                !storage.exec(sql::SIGNATURE_NONCE_USED, std::slice::from_ref(key))?.is_empty()
            }
            None => false,
        };
        // A call that is over its agent's rate pays for no signature here. One that was charged already, because
        // windows had to be asked, is not asked again.
        let is_judged_here = warrant::is_judged_by_lane(command)
            && (answers.looked.is_some()
                || command.located
                || self.needs_tool(storage, (engine, config), command, records, now_ms)?);
        let judged = match is_judged_here {
            true => warrant::of_command(engine, command, records, now_ms),
            false => None,
        };
        let carried = judged.as_ref().or(command.warrant.as_ref());
        let proof = carried.and_then(Carried::claim).map(warrant::proof_name);
        let proof_used = match key(&proof) {
            Some(key) => !storage.exec(sql::NONCE_USED, &[Value::Text(key)])?.is_empty(),
            None => false,
        };
        let approval = match &call.approval_id {
            Some(id) => approval(storage, id)?.map(|held| held.approval),
            None => None,
        };
        self.hold(storage, &call.agent, now_ms)?;
        self.limits.make_space();
        self.limits.hold(storage, records, command)?;
        let countings = velocity::of_call(engine, &config.value_key, command, records);
        self.windows.hold(storage, &countings, now_ms)?;
        let settled = match &command.purpose {
            Purpose::Settle(reported) => {
                self.limits.reservations.get(&reported.decision_id).cloned()
            }
            _ => None,
        };
        let run = observed_run(command, records).map(|run| storage_name(&call.agent, run));
        if let Some(run) = &run {
            self.runs.hold(storage, run)?;
        }
        let fresh = AgentState::default();
        let facts = self.facts(config, command, records, now_ms, &fresh);
        let facts = Facts {
            stored,
            nonce_used,
            signature_nonce_used,
            warrant: carried,
            proof_used,
            approval: approval.as_ref(),
            run: run.as_deref().and_then(|run| self.runs.get(run)),
            books: self.limits.books(records, command, answers.leases),
            windows: WindowFacts {
                countings: &countings,
                rows: Some(self.windows.rows()),
                looked: answers.looked,
            },
            reservation: settled.as_ref(),
            ..facts
        };
        let mut step = decide(engine, &facts, command);
        if !step.needs.is_empty() {
            return Ok(Called::NotLeased(step.needs));
        }
        if !step.looks.is_empty() {
            // The request is charged now, so that a flood of calls does not look at windows.
            if let Some(held) = self.agents.get_mut(&call.agent) {
                held.state = step.agent;
            }
            return Ok(Called::NotCounted(step.looks));
        }
        let is_known = !step.counted.is_some_and(Counted::is_unknown_caller);
        if is_known
            && warrant::is_from_stranger(command)
            && let Some(held) = self.agents.get_mut(&call.agent)
            && let Some(bucket) = &mut held.strangers
        {
            bucket.give_back(1);
        }
        if let (Some(entry), Purpose::Settle(reported), Some(reservation)) =
            (&mut step.entry, &command.purpose, &settled)
        {
            let writes = self.limits.settled(storage, reservation, reported.ending())?;
            entry.limits = Some(Box::new(writes));
        }
        // Written before anything else, whatever the answer is: if a later write fails, the request
        // still cannot be used again.
        if let Some(key) = signature_nonce
            && is_known
        {
            let expired = integer(self.clock.expired_ms(NONCE_MS))?;
            let most = Value::Integer(MAX_EXPIRED_SIGNATURE_NONCES);
            storage.exec(sql::EXPIRE_SIGNATURE_NONCES, &[expired, most])?;
            storage.exec(sql::USE_SIGNATURE_NONCE, &[key, integer(now_ms)?])?;
        }
        if let (Some(run), Some(observation)) = (&run, &step.observation) {
            self.observe(storage, run, observation, now_ms)?;
        }
        match step.entry {
            Some(entry) => {
                self.journal(storage, entry, step.approval_entry, step.agent, now_ms)?;
            }
            None => {
                storage.exec(sql::TOUCH, &[])?;
                if let Some(held) = self.agents.get_mut(&call.agent) {
                    held.state = step.agent;
                }
                if let Some(charged) = step.charged {
                    self.limits.take(*charged);
                }
            }
        }
        if let Some(counted) = step.counted {
            // A caller with only a locator says nothing about the agent.
            let is_stranger = command.located && counted.is_unknown_caller();
            let source = if is_stranger { locator::KEY_ID } else { &call.agent };
            self.count(storage, counted, source, now_ms)?;
        }
        if let Some(refused) = &step.refused {
            self.tally(refused.series(), 1);
        }
        if !self.storage_full {
            let budget = Budget::of(records.tenant.as_ref());
            for count in self.day.untold(budget, &self.head, now_ms) {
                write_count(storage, &count)?;
                self.unsure = true;
            }
        }
        Ok(Called::Decided(step.reply))
    }

    /// Carries out an administrator's command about an agent. It takes effect from the next call
    /// on. A command that changes nothing writes nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`] for the administrator: the journal is full.
    pub fn carry_out(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &AgentCommand,
        now_ms: u64,
    ) -> Result<Result<(), Problem>, StorageError> {
        self.hold(storage, &command.agent, now_ms)?;
        let Some(held) = self.agents.get(&command.agent) else { return Ok(Ok(())) };
        let event = carry_out(&self.event_facts(config, &held.state, now_ms), command);
        self.write_event(storage, event, now_ms)
    }

    /// Marks an agent as tainted before text of an untrusted server reaches it.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`]: the journal is full. In both cases the text must
    /// not be passed on.
    pub fn taint(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &TaintCommand,
        now_ms: u64,
    ) -> Result<Result<(), Problem>, StorageError> {
        self.hold(storage, &command.agent, now_ms)?;
        let Some(held) = self.agents.get(&command.agent) else { return Ok(Ok(())) };
        let event = taint(&self.event_facts(config, &held.state, now_ms), command);
        self.write_event(storage, event, now_ms)
    }

    /// Writes an event of an agent, if there is one.
    pub(super) fn write_event(
        &mut self,
        storage: &impl LaneSql,
        event: Result<Option<(JournalEntry, AgentState)>, Problem>,
        now_ms: u64,
    ) -> Result<Result<(), Problem>, StorageError> {
        match event {
            Ok(Some((entry, state))) => self.journal(storage, entry, None, state, now_ms).map(Ok),
            // Touches the storage, so that an object that was replaced fails instead of answering
            // from an old state.
            Ok(None) => storage.exec(sql::TOUCH, &[]).map(|_| Ok(())),
            Err(problem) => Ok(Err(problem)),
        }
    }

    /// The agent's containment at `now_ms`.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn containment(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        tenant: &TenantRecord,
        now_ms: u64,
    ) -> Result<Containment, StorageError> {
        storage.exec(sql::TOUCH, &[])?;
        self.hold(storage, agent, now_ms)?;
        let held = self.agents.get(agent);
        let state = held.ok_or_else(|| unreadable("an agent's state"))?;
        Ok(Containment::of(&state.state, tenant, now_ms))
    }

    /// Whether the call gets as far as its tool, so that its record is needed.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn needs_tool(
        &mut self,
        storage: &impl LaneSql,
        (engine, config): (&PolicyEngine, &Config),
        command: &GateCommand,
        records: &CallRecords,
        now_ms: u64,
    ) -> Result<bool, StorageError> {
        self.hold(storage, &command.call.agent, now_ms)?;
        // Without a credential, the warrant says who calls.
        let carried = match &command.purpose {
            _ if !command.located => None,
            Purpose::Route(_) => {
                return Ok(warrant::may_identify(engine, command, records, now_ms));
            }
            _ => warrant::of_command(engine, command, records, now_ms),
        };
        let fresh = AgentState::default();
        let facts = self.facts(config, command, records, now_ms, &fresh);
        let facts = Facts { warrant: carried.as_ref(), ..facts };
        Ok(needs_tool(&facts, command))
    }

    /// The facts of a call, without those that storage holds about its request id, nonces and
    /// approval.
    fn facts<'a>(
        &'a self,
        config: &'a Config,
        command: &GateCommand,
        records: &'a CallRecords,
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
            latest_ms: self.latest_ms,
            stored: None,
            nonce_used: false,
            signature_nonce_used: false,
            warrant: None,
            proof_used: false,
            approval: None,
            run: None,
            books: Books::NONE,
            windows: WindowFacts::default(),
            reservation: None,
            journal_rows: self.journal_rows,
            storage_full: self.storage_full,
            written: self.day.written(&self.head, now_ms),
        }
    }

    /// The facts of an event; `state` is the agent's.
    pub(super) fn event_facts<'a>(
        &'a self,
        config: &'a Config,
        state: &'a AgentState,
        now_ms: u64,
    ) -> EventFacts<'a> {
        let (journal_rows, storage_full) = (self.journal_rows, self.storage_full);
        let space = JournalSpace { config, journal_rows, storage_full };
        EventFacts { space, head: &self.head, state, now_ms }
    }

    /// Writes one row, or two together, and then takes the state into memory.
    pub(super) fn journal(
        &mut self,
        storage: &impl LaneSql,
        entry: JournalEntry,
        next: Option<JournalEntry>,
        state: AgentState,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.check_not_stopped()?;
        let head = next.as_ref().map_or(&entry, |next| next).head.clone();
        let rows = 1 + u64::from(next.is_some());
        let bytes = entry.row.len() + next.as_ref().map_or(0, |next| next.row.len());
        self.day.begin(storage, &self.head, now_ms)?;
        if !entry.windows.is_empty() || entry.approval.is_some() || next.is_some() {
            let entries: Vec<_> = [Some(&entry), next.as_ref()].into_iter().flatten().collect();
            let steps = Value::Text(steps(&entries, now_ms));
            self.approvals_open = None;
            match entry.windows.is_empty() {
                true => storage.exec(sql::INSERT_STEPS, &[steps])?,
                false => storage.exec(sql::COUNT, &[steps, windows::rows(&entry.windows)])?,
            };
        } else {
            let text = |value: Option<String>| value.map_or(Value::Null, Value::Text);
            let mut values = vec![
                integer(entry.head.seq)?,
                integer(now_ms)?,
                Value::Text(entry.head.hash),
                Value::Text(entry.agent.clone()),
                Value::Text(entry.state),
                text(entry.request_key),
                Value::Text(entry.fingerprint),
                text(entry.nonce_key),
                Value::Text(entry.row),
            ];
            let mut statement = sql::INSERT;
            // Plain data always serializes.
            match entry.limits.as_deref() {
                None => {
                    if let Some(step) = entry.gives_up {
                        statement = sql::INSERT_DEAD_LETTER;
                        values.push(integer(step)?);
                    }
                }
                Some(Writes { books, reservation: None, settles: None }) if books.len() == 1 => {
                    statement = sql::INSERT_COUNTED;
                    values.extend(books.iter().flat_map(|(name, book)| {
                        let book = serde_json::to_string(book).unwrap_or_default();
                        [Value::Text(name.clone()), Value::Text(book)]
                    }));
                }
                Some(Writes { books, reservation, settles }) => {
                    statement = sql::INSERT_LIMITED;
                    let books = serde_json::to_string(books).unwrap_or_default();
                    let reservation = reservation.as_ref().map(serde_json::to_string);
                    values.push(Value::Text(books));
                    values.push(text(reservation.transpose().unwrap_or_default()));
                    values.push(text(settles.clone()));
                }
            }
            storage.exec(statement, &values)?;
        }
        if let Some(limits) = entry.limits {
            self.limits.take(*limits);
        }
        self.windows.take(entry.windows);
        let strangers = self.agents.get(&entry.agent).and_then(|held| held.strangers);
        self.agents.insert(entry.agent, Held { state, journalled: head.seq, strangers });
        self.head = head;
        self.latest_ms = self.latest_ms.max(now_ms);
        self.day.add(bytes);
        self.journal_rows += rows;
        self.checkpoint_if_due(storage)
    }

    /// Brings the agent's state into memory, and repairs times in it that lie in the future.
    pub(super) fn hold(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.look_at_clock(storage, now_ms)?;
        if !self.agents.contains_key(agent) {
            if self.agents.len() >= MAX_AGENTS {
                self.agents.retain(|_, held| held.journalled > self.checkpoint);
            }
            let state = snapshot(storage, agent)?.unwrap_or_default();
            let held = Held { state, journalled: 0, strangers: None };
            self.agents.insert(agent.to_owned(), held);
        }
        let held = self.agents.get_mut(agent);
        if held.is_some_and(|held| held.state.repair_clock(now_ms)) {
            self.count(storage, Counted::ClockRepaired, agent, now_ms)?;
        }
        Ok(())
    }

    /// Counts one event in the audit.
    pub(super) fn count(
        &mut self,
        storage: &impl LaneSql,
        counted: Counted,
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
        let texts: Option<Vec<&str>> = rows
            .iter()
            .map(|row| match row.as_slice() {
                [_, _, Value::Text(text), _] => Some(text.as_str()),
                _ => None,
            })
            .collect();
        Ok(format!("[{}]", texts.ok_or_else(|| unreadable("a journal row"))?.join(",")))
    }
}
