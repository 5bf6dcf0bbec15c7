//! How a lane handles a call: what it reads for the decision, and what it writes after it.

use super::state::Lane;
use super::storage::{
    LaneResult, LaneSql, StorageError, Value, forget_answer, integer, read_approval, stored_answer,
    write_count,
};
use crate::approval::Approval;
use crate::bucket::{Bucket, Rate};
use crate::call::command::{GateCommand, Purpose};
use crate::call::outcome::ReportedOutcome;
use crate::credential::locator;
use crate::gate::config::Config;
use crate::gate::daily_rows::DailyRows;
use crate::gate::velocity;
use crate::gate::warrant;
use crate::gate::windows::{Counting, WindowAnswers, Windows};
use crate::gate::{
    AgentState, Books, CountedEvent, Facts, JournalEntry, NONCE_MS, Reply, Step, StoredAnswer,
    decide, needs_tool, observed_run, scoped_key,
};
use crate::limit::lease::{Answer, Need};
use crate::limit::reservation::{Ending, Reservation};
use crate::metrics::Series;
use crate::policy::PolicyEngine;
use crate::problem::{Problem, ProblemCode};
use crate::provenance::run::storage_name;
use crate::registry::CallRecords;
use crate::sql::lane as sql;
use crate::velocity::shared::CountRequest;
use crate::warrant::Carried;

/// How many requests in a row a lane admits for one agent from callers without a credential, before it knows who they
/// are. To learn that, it must verify their warrants' signatures. A caller whom the warrant identifies gets its charge
/// back once its records are read. So this is also the number of such callers that can wait at the same time.
const STRANGER_BURST: u32 = 100;

/// How many more such requests the lane admits each second. Verifying the warrant of each takes some 1 ms, and at most the
/// time of a call's steps (`warrant/constraint/work.rs`).
const STRANGERS_PER_S: f64 = 2.0;

/// Expired nonces of signatures that are deleted when one is written. More than one, so that they
/// do not pile up: a lane that journals nothing is never flushed.
const MAX_EXPIRED_SIGNATURE_NONCES: i64 = 2;

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallResult {
    Decided(Reply),
    /// Nothing was written. The lane asks counters for this, and then calls again.
    NotLeased(Vec<Need>),
    /// The same for windows that lanes share, those that were not asked yet.
    NotCounted(Vec<CountRequest>),
}

/// What other objects answered to a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answers<'a> {
    /// The counters of shared limits, by the names of the books.
    pub leases: &'a [(String, Answer)],
    /// The tenant's windows; `None` if they were not asked.
    pub windows: Option<&'a WindowAnswers>,
}

impl Answers<'_> {
    /// Whether other objects were asked. Before that, the call got as far as its tool, and was charged.
    #[must_use]
    pub const fn were_asked(&self) -> bool {
        self.windows.is_some() || !self.leases.is_empty()
    }
}

/// What the lane reads for one call.
struct CallFacts {
    stored: Option<StoredAnswer>,
    nonce_used: bool,
    /// The stored name of the nonce of the request's signature.
    signature_nonce: Option<Value>,
    signature_nonce_used: bool,
    /// The warrant, if the lane judged it.
    judged: Option<Carried>,
    proof_used: bool,
    approval: Option<Approval>,
    countings: Vec<Counting>,
    /// The reservation of the call whose outcome is reported.
    reservation: Option<Reservation>,
    /// The stored name of the call's run.
    run: Option<String>,
}

impl Lane {
    /// Charges a caller without a credential before the lane verifies its warrant: somebody who read a chain
    /// that is still valid can send it with any proof. Call this once for each request, before
    /// [`Self::needs_tool`] and [`Self::call`]. If the warrant identifies the caller, the charge is given
    /// back.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, the [`Problem`] for the caller.
    pub fn charge_stranger(
        &mut self,
        storage: &impl LaneSql,
        command: &GateCommand,
        records: &CallRecords,
        now_ms: u64,
    ) -> LaneResult<()> {
        let rate = Rate::new(STRANGER_BURST, STRANGERS_PER_S);
        let wait_s = match warrant::may_be_known(command, records, now_ms) {
            true => {
                self.load_agent(storage, &command.call.agent, now_ms)?;
                self.agents.get_mut(&command.call.agent).and_then(|agent| {
                    let bucket = agent.strangers.get_or_insert_with(|| Bucket::full(rate, now_ms));
                    bucket.repair_clock(now_ms);
                    let is_charged = bucket.charge(rate, now_ms, 1);
                    (!is_charged).then(|| bucket.retry_after_s(rate, 1))
                })
            }
            false => None,
        };
        let Some(wait_s) = wait_s else { return Ok(Ok(())) };
        self.count(storage, CountedEvent::RateLimited, locator::KEY_ID, now_ms)?;
        self.tally(Series::LimitHit { kind: "stranger_rate", limit: "" }, 1);
        let detail = "too many calls without a credential had warrants that did not say who calls; try again";
        let mut problem = Problem::new(ProblemCode::RateLimited, detail);
        problem.retry_after_s = Some(u32::try_from(wait_s).unwrap_or(u32::MAX).max(1));
        Ok(Err(problem))
    }

    /// Steps 5 to 12 of a call. `records` were read at the current epoch. `answers`: to this call.
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
    ) -> Result<CallResult, StorageError> {
        let agent = command.call.agent.as_str();
        let were_asked = answers.were_asked();
        let found =
            self.read_facts(storage, (engine, config), command, records, were_asked, now_ms)?;
        let mut step = self.decide((engine, config), command, records, answers, &found, now_ms);
        if !step.needs.is_empty() || !step.count_requests.is_empty() {
            return Ok(self.charge_and_ask(agent, step));
        }
        let is_known = !step.counted.is_some_and(CountedEvent::is_unknown_caller);
        if is_known {
            self.give_back_to_stranger(command);
        }
        if let (Some(entry), Purpose::ReportOutcome(reported), Some(reservation)) =
            (&mut step.entry, &command.purpose, &found.reservation)
        {
            self.settle_reported(storage, reported, reservation, entry)?;
        }
        if is_known && let Some(key) = found.signature_nonce {
            self.use_signature_nonce(storage, key, now_ms)?;
        }
        if let (Some(run), Some(observation)) = (&found.run, &step.observation) {
            self.observe(storage, run, observation, now_ms)?;
        }
        match step.entry {
            Some(entry) => {
                self.journal(storage, entry, step.approval_entry, step.agent, now_ms)?;
            }
            None => {
                storage.exec(sql::TOUCH, &[])?;
                if let Some(in_memory) = self.agents.get_mut(agent) {
                    in_memory.state = step.agent;
                }
                if let Some(charged) = step.charged {
                    self.limits.take(*charged);
                }
            }
        }
        if let Some(counted) = step.counted {
            // A caller that has only a locator may be anybody, so it is not counted under the agent's name.
            let is_stranger = command.located && counted.is_unknown_caller();
            let source = if is_stranger { locator::KEY_ID } else { agent };
            self.count(storage, counted, source, now_ms)?;
        }
        if let Some(refused) = &step.refused {
            self.tally(refused.series(), 1);
        }
        self.count_daily_rows(storage, records, now_ms)?;
        Ok(CallResult::Decided(step.reply))
    }

    /// Reads what is stored for a call, and loads into memory what its decision needs. `were_asked`: whether other objects
    /// were asked before.
    fn read_facts(
        &mut self,
        storage: &impl LaneSql,
        (engine, config): (&PolicyEngine, &Config),
        command: &GateCommand,
        records: &CallRecords,
        were_asked: bool,
        now_ms: u64,
    ) -> Result<CallFacts, StorageError> {
        let call = &command.call;
        let key =
            |value: &Option<String>| value.as_ref().map(|value| scoped_key(&call.agent, value));
        let stored = match key(&call.request_id) {
            Some(key) => stored_answer(storage, key)?,
            None => None,
        };
        let nonce_used =
            has_row(storage, sql::NONCE_USED, key(&call.nonce).map(Value::Text).as_ref())?;
        let signature_nonce = command.signature_nonce.as_ref();
        let signature_nonce =
            signature_nonce.map(|nonce| Value::Text(scoped_key(&command.key_id, &nonce.nonce)));
        let signature_nonce_used =
            has_row(storage, sql::SIGNATURE_NONCE_USED, signature_nonce.as_ref())?;
        let judged =
            self.judge_warrant(storage, (engine, config), command, records, were_asked, now_ms)?;
        let carried = judged.as_ref().or(command.warrant.as_ref());
        let proof = carried.and_then(Carried::claim).map(warrant::proof_name);
        let proof_used = has_row(storage, sql::NONCE_USED, key(&proof).map(Value::Text).as_ref())?;
        let approval = match &call.approval_id {
            Some(id) => read_approval(storage, id)?.map(|held| held.approval),
            None => None,
        };
        self.load_agent(storage, &call.agent, now_ms)?;
        self.limits.make_space();
        self.limits.load(storage, records, command)?;
        let countings = velocity::of_call(engine, &config.value_key, command, records);
        self.windows.load(storage, &countings, now_ms)?;
        let reservation = match &command.purpose {
            Purpose::ReportOutcome(reported) => {
                self.limits.reservations.get(&reported.decision_id).cloned()
            }
            _ => None,
        };
        let run = observed_run(command, records).map(|run| storage_name(&call.agent, run));
        if let Some(run) = &run {
            self.runs.load(storage, run)?;
        }
        Ok(CallFacts {
            stored,
            nonce_used,
            signature_nonce,
            signature_nonce_used,
            judged,
            proof_used,
            approval,
            countings,
            reservation,
            run,
        })
    }

    /// The call's warrant, if the lane judges it. No signature is verified for a call that is over its agent's rate. If
    /// counters or windows were asked before, the call was charged then, and the rate is not checked again. A caller
    /// without a credential was charged by [`Self::charge_stranger`].
    fn judge_warrant(
        &mut self,
        storage: &impl LaneSql,
        (engine, config): (&PolicyEngine, &Config),
        command: &GateCommand,
        records: &CallRecords,
        were_asked: bool,
        now_ms: u64,
    ) -> Result<Option<Carried>, StorageError> {
        let is_judged_here = warrant::is_judged_by_lane(command)
            && (were_asked
                || command.located
                || self.needs_tool(storage, (engine, config), command, records, now_ms)?);
        Ok(match is_judged_here {
            true => warrant::of_command(engine, command, records, now_ms),
            false => None,
        })
    }

    /// Decides the call by what was read for it.
    fn decide(
        &self,
        (engine, config): (&PolicyEngine, &Config),
        command: &GateCommand,
        records: &CallRecords,
        answers: Answers<'_>,
        found: &CallFacts,
        now_ms: u64,
    ) -> Step {
        let fresh = AgentState::default();
        let facts = self.facts(config, command, records, now_ms, &fresh);
        let facts = Facts {
            stored: found.stored.clone(),
            nonce_used: found.nonce_used,
            signature_nonce_used: found.signature_nonce_used,
            warrant: found.judged.as_ref().or(command.warrant.as_ref()),
            proof_used: found.proof_used,
            approval: found.approval.as_ref(),
            run: found.run.as_deref().and_then(|run| self.runs.get(run)),
            books: self.limits.books(records, command, answers.leases),
            windows: Windows {
                countings: &found.countings,
                rows: Some(self.windows.rows()),
                answers: answers.windows,
            },
            reservation: found.reservation.as_ref(),
            ..facts
        };
        decide(engine, &facts, command)
    }

    /// Ends a call that needs answers of other objects. Its request is charged now, so that a flood of calls neither
    /// leases more than the agent's rate allows, nor asks windows.
    fn charge_and_ask(&mut self, agent: &str, step: Step) -> CallResult {
        if let Some(in_memory) = self.agents.get_mut(agent) {
            in_memory.state = step.agent;
        }
        match step.needs.is_empty() {
            false => CallResult::NotLeased(step.needs),
            true => CallResult::NotCounted(step.count_requests),
        }
    }

    /// Gives the charge of [`Self::charge_stranger`] back, because the warrant identifies the caller.
    fn give_back_to_stranger(&mut self, command: &GateCommand) {
        if warrant::is_from_stranger(command)
            && let Some(agent) = self.agents.get_mut(&command.call.agent)
            && let Some(bucket) = &mut agent.strangers
        {
            bucket.give_back(1);
        }
    }

    /// Adds to the row of a reported outcome that the call's reservation ends.
    fn settle_reported(
        &mut self,
        storage: &impl LaneSql,
        reported: &ReportedOutcome,
        reservation: &Reservation,
        entry: &mut JournalEntry,
    ) -> Result<(), StorageError> {
        let ending = reported.ending();
        if ending == Ending::Failed {
            // Before the amount is given back: the stored `allow` must not pass again without it.
            forget_answer(storage, &reported.decision_id)?;
        }
        let writes = self.limits.writes_to_settle(storage, reservation, ending)?;
        entry.limits = Some(Box::new(writes));
        Ok(())
    }

    /// Written before the call's row, whatever the answer is: if a later write fails, the request still cannot be used
    /// again.
    fn use_signature_nonce(
        &self,
        storage: &impl LaneSql,
        key: Value,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let expired = integer(self.clock.expired_ms(NONCE_MS))?;
        let most = Value::Integer(MAX_EXPIRED_SIGNATURE_NONCES);
        storage.exec(sql::EXPIRE_SIGNATURE_NONCES, &[expired, most])?;
        storage.exec(sql::USE_SIGNATURE_NONCE, &[key, integer(now_ms)?]).map(drop)
    }

    /// Writes the audit events of the tenant's daily bound that are not written yet.
    fn count_daily_rows(
        &mut self,
        storage: &impl LaneSql,
        records: &CallRecords,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        if self.storage_full {
            return Ok(());
        }
        let daily_rows = DailyRows::of(records.tenant.as_deref());
        for count in self.day.untold(daily_rows, &self.head, now_ms) {
            write_count(storage, &count)?;
            self.unsure = true;
        }
        Ok(())
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
        self.load_agent(storage, &command.call.agent, now_ms)?;
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

    /// The facts of a call that the lane has in memory anyway. Facts that must be looked up for the call are
    /// left empty: stored answer, nonces, warrant, proof, approval, run, limits, windows and reservation.
    fn facts<'a>(
        &'a self,
        config: &'a Config,
        command: &GateCommand,
        records: &'a CallRecords,
        now_ms: u64,
        fresh: &'a AgentState,
    ) -> Facts<'a> {
        let agent = self.agents.get(&command.call.agent);
        Facts {
            now_ms,
            config,
            records,
            agent: agent.map_or(fresh, |agent| &agent.state),
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
            windows: Windows::default(),
            reservation: None,
            journal_rows: self.journal_rows,
            storage_full: self.storage_full,
            written: self.day.written(&self.head, now_ms),
        }
    }
}

/// Whether the statement finds a row with this key.
fn has_row(
    storage: &impl LaneSql,
    statement: &str,
    key: Option<&Value>,
) -> Result<bool, StorageError> {
    match key {
        Some(key) => Ok(!storage.exec(statement, std::slice::from_ref(key))?.is_empty()),
        None => Ok(false),
    }
}
