//! The Durable Object that is a lane: it fetches what the core needs, runs the core's
//! synchronous step, and flushes by alarm.
//!
//! Why it is correct: an object runs one event at a time between awaits. [`GateLane::step`] has
//! no await, so the registry cache it reads, the storage it reads and the row it writes belong to
//! one instant; the output gate holds the reply until that row is durable. Everything awaited
//! before it (a registry load) makes the step look at the cache anew.

use std::cell::{Cell, RefCell};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use gateward_core::admin::etag;
use gateward_core::approval::{ChangeCommand, DecideCommand};
use gateward_core::command::GateCommand;
use gateward_core::config::{Config, DATABASE_LOOK_MS};
use gateward_core::gate::{AgentCommand, ChainHead, OutcomeCommand, Reply, TaintCommand};
use gateward_core::lane::{Confirmed, DecideOutcome, Lane, StorageError};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{ChangedKey, EpochPush, RegistryCache, TenantRecord};
use gateward_core::retention::{self, MAX_PRUNED, PRUNE_INTERVAL_MS};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::durable::State;
use worker::worker_sys::DurableObjectState;
use worker::worker_sys::web_sys::{Request, Response, ResponseInit};
use worker::{Date, Delay, Env, Error, Result, console_error};

use crate::http::{self, Head};
use crate::lane_sql::ObjectSql;
use crate::settings::{Settings, settings};
use crate::{d1, lanes};

/// Loads that one call waits for: one for its records, one for the tool that a server's routes name,
/// one when the registry changed meanwhile, and one more for a change during that.
const MAX_LOADS: usize = 4;

/// How long one load may take: some fifty times what it does. A caller is told to try again rather
/// than left waiting.
const LOAD_LIMIT: Duration = Duration::from_secs(5);

/// Batches of one alarm; what is left has the next alarm at once, so that calls get their turn.
pub const MAX_BATCHES_PER_ALARM: usize = 8;

/// The longest pause between attempts while D1 fails.
const MAX_BACKOFF_MS: u64 = 60_000;

/// The pause after pruning failed: what is in its way is not mended sooner.
const PRUNE_RETRY_MS: u64 = 60 * 60 * 1_000;

/// Journal rows that one read returns.
const MAX_ROWS_READ: u32 = 500;

#[wasm_bindgen]
pub struct GateLane {
    state: State,
    pub(crate) env: Env,
    sql: ObjectSql,
    /// `None` until the first event, and after storage failed: then it is rebuilt.
    lane: RefCell<Option<Lane>>,
    registry: RefCell<RegistryCache>,
    alarm_is_set: Cell<bool>,
    failed_flushes: Cell<u32>,
    /// When the size of D1's database was looked at last, and whether it left room for records.
    database: Cell<(u64, bool)>,
}

// What the runtime calls. worker-rs has a macro for this; but its requests and answers are copies
// of the runtime's, made value by value, and cost more than the decision.
#[wasm_bindgen]
impl GateLane {
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        let state = State::from(state);
        Self {
            sql: ObjectSql(state.storage().sql()),
            state,
            env,
            lane: RefCell::default(),
            registry: RefCell::default(),
            alarm_is_set: Cell::new(false),
            failed_flushes: Cell::new(0),
            database: Cell::new((0, true)),
        }
    }

    pub async fn fetch(&self, request: Request) -> std::result::Result<Response, JsValue> {
        AssertUnwindSafe(self.answer(request)).await.map_err(JsValue::from)
    }

    /// Step 13.
    pub async fn alarm(&self) -> std::result::Result<(), JsValue> {
        AssertUnwindSafe(self.flush_due()).await.map_err(JsValue::from)
    }
}

/// How far an alarm came.
enum Progress {
    /// Nothing is left.
    Done,
    /// Counts of windows that are still open wait to be told.
    Waiting,
    /// Rows are left.
    More,
}

/// What went wrong, as the log gets it.
pub struct Failure(pub String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::RustError(failure.0)
    }
}

/// A sequence number of the worker's own making; anything else finds nothing.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or(0)
}

impl GateLane {
    async fn answer(&self, request: Request) -> Result<Response> {
        let url = request.url();
        let path = url.strip_prefix(lanes::ORIGIN).unwrap_or_default();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match segments.as_slice() {
            ["call"] => self.call(&http::bytes(&request).await?).await,
            ["outcome"] => self.record_outcome(&http::bytes(&request).await?).await,
            ["epoch"] => self.take_epoch(&http::bytes(&request).await?).await,
            ["decide"] => self.decide_approval(&http::bytes(&request).await?).await,
            ["change"] => self.settle_change(&http::bytes(&request).await?).await,
            ["approval", id] => {
                let held = self.with_lane(|_, storage| Lane::approval(storage, id))?;
                // Whoever polls keeps the lane going, should an alarm ever have been lost.
                if let Ok(settings) = settings(&self.env) {
                    self.arm_if_behind(&settings.config).await;
                }
                text(held.and_then(|held| serde_json::to_string(&held).ok()))
            }
            ["agent"] => self.carry_out(&http::bytes(&request).await?).await,
            ["taint"] => self.taint(&http::bytes(&request).await?).await,
            ["containment", agent] => {
                let tenant = http::bytes(&request).await?;
                self.containment(agent, &tenant)
            }
            ["head"] => {
                let head = |head: &ChainHead| format!("{}:{}", head.seq, head.hash);
                text(Some(self.with_lane(|lane, _| Ok(head(lane.head())))?))
            }
            ["anchor"] => {
                let anchor = self.with_lane(|_, storage| Lane::anchor(storage))?;
                text(Some(format!("{}:{}", anchor.seq, anchor.hash)))
            }
            ["row", seq] => text(self.with_lane(|_, storage| Lane::row(storage, number(seq)))?),
            ["rows", from] => {
                let rows = |storage: &_| Lane::rows(storage, number(from), MAX_ROWS_READ);
                text(Some(self.with_lane(|_, storage| rows(storage))?))
            }
            _ => text(None),
        }
    }

    /// Catches its own errors and re-arms as long as something is left.
    async fn flush_due(&self) -> Result<()> {
        // First of all, for the case that this run dies: the runtime tries an alarm that failed
        // only a few times.
        self.arm(MAX_BACKOFF_MS).await?;
        let Ok(settings) = settings(&self.env) else { return Ok(()) };
        let interval_ms = settings.config.flush_interval_ms;
        let mut pause_ms = self.flush_once(&settings).await;
        let told = {
            let mut telling = pin!(self.tell_webhook(&settings));
            loop {
                // A receiver that hangs holds up no flush.
                let pause = Duration::from_millis(pause_ms.unwrap_or(interval_ms));
                match select(telling.as_mut(), pin!(Delay::from(pause))).await {
                    Either::Left((told, _)) => break told,
                    Either::Right(_) => pause_ms = self.flush_once(&settings).await,
                }
            }
        };
        let prune_ms = self.prune_if_due(interval_ms).await?;
        let now_ms = Date::now().as_millis();
        let (expiry, delivery) = self.with_lane(|_, storage| {
            Ok((Lane::next_expiry(storage)?, Lane::next_delivery(storage)?))
        })?;
        let delivery = match told {
            Ok(()) => delivery,
            Err(Failure(error)) => {
                console_error!("the webhook was not told: {error}");
                Some(now_ms + MAX_BACKOFF_MS)
            }
        };
        // What was written while the webhook was told waits, too.
        let pause_ms = pause_ms.or(self.is_behind().then_some(interval_ms));
        // A call that arms from here on does so after this, and then rather sooner.
        self.alarm_is_set.set(pause_ms.is_some());
        let after = |at_ms: u64| at_ms.saturating_sub(now_ms);
        // A flush ends what has expired. Should the journal not take it, it is tried again, and not at
        // once.
        let flush_ms = pause_ms.or(expiry.map(|at_ms| after(at_ms).max(interval_ms)));
        match [flush_ms, delivery.map(after), prune_ms.map(after)].into_iter().flatten().min() {
            Some(next_ms) => self.state.storage().set_alarm(Duration::from_millis(next_ms)).await,
            None => self.state.storage().delete_alarm().await,
        }
    }

    /// Prunes what is past its time, if it is time to look; when to look again. `None` for a lane
    /// that was never called.
    async fn prune_if_due(&self, interval_ms: u64) -> std::result::Result<Option<u64>, Failure> {
        let now_ms = Date::now().as_millis();
        let (identity, due_ms, steady_ms) = self.with_lane(|lane, storage| {
            Ok((lane.identity().cloned(), Lane::next_prune(storage)?, lane.steady_ms()))
        })?;
        let Some((tenant, lane)) = identity else { return Ok(None) };
        let next_ms = match due_ms {
            Some(due_ms) if due_ms > now_ms => return Ok(Some(due_ms)),
            // A new lane has nothing yet.
            None => now_ms + PRUNE_INTERVAL_MS,
            Some(_) => match self.prune(&tenant, lane, steady_ms).await {
                Ok(true) => now_ms + interval_ms,
                Ok(false) => now_ms + PRUNE_INTERVAL_MS,
                Err(Failure(error)) => {
                    console_error!("nothing was pruned: {error}");
                    now_ms + PRUNE_RETRY_MS
                }
            },
        };
        self.with_lane(|_, storage| Lane::set_next_prune(storage, next_ms))?;
        Ok(Some(next_ms))
    }

    /// One batch, by a time that the clock has passed for an hour; whether there may be more.
    async fn prune(
        &self,
        tenant: &str,
        lane: u16,
        steady_ms: u64,
    ) -> std::result::Result<bool, Failure> {
        let days = d1::retention::retention_days(&self.env, tenant).await?;
        let cutoff_ms = retention::cutoff_ms(days, steady_ms);
        let mut anchor = self.with_lane(|_, storage| Lane::anchor(storage))?;
        let oldest = d1::retention::oldest(&self.env, tenant, lane, &anchor).await?;
        let full = oldest.len() >= MAX_PRUNED as usize;
        let next = retention::next_anchor(&anchor, oldest, cutoff_ms).map_err(|broken| {
            Failure(format!("receipt {} does not verify: {}", broken.seq, broken.problem))
        })?;
        let advanced = next.is_some();
        if let Some(next) = next {
            self.with_lane(|_, storage| Lane::set_anchor(storage, &next))?;
            anchor = next;
        }
        let untold_cutoff_ms = retention::cutoff_ms(None, steady_ms);
        let pruned =
            d1::retention::prune(&self.env, tenant, lane, &anchor, cutoff_ms, untold_cutoff_ms);
        Ok(pruned.await? || (advanced && full))
    }

    /// Flushes; after how long again, `None` when nothing is left.
    async fn flush_once(&self, settings: &Settings) -> Option<u64> {
        let interval_ms = settings.config.flush_interval_ms;
        let flushed = self.flush(settings).await;
        let failures =
            if flushed.is_ok() { 0 } else { self.failed_flushes.get().saturating_add(1) };
        self.failed_flushes.set(failures);
        match flushed {
            Ok(Progress::Done) => None,
            Ok(Progress::Waiting) => Some(interval_ms),
            Ok(Progress::More) => Some(0),
            Err(Failure(error)) => {
                let pause_ms =
                    interval_ms.saturating_mul(1 << failures.min(16)).min(MAX_BACKOFF_MS);
                console_error!("flush failed {failures} times, again in {pause_ms} ms: {error}");
                Some(pause_ms)
            }
        }
    }

    /// Runs on the lane, starting it first if need be. If storage fails, memory is dropped.
    pub fn with_lane<T>(
        &self,
        run: impl FnOnce(&mut Lane, &ObjectSql) -> std::result::Result<T, StorageError>,
    ) -> std::result::Result<T, Failure> {
        let mut held = self.lane.borrow_mut();
        let mut lane = match held.take() {
            Some(lane) => lane,
            None => Lane::start(&self.sql)?,
        };
        let result = run(&mut lane, &self.sql)?;
        *held = Some(lane);
        Ok(result)
    }

    /// News of a change: from here on nothing from before it is used.
    async fn take_epoch(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(push) = serde_json::from_slice::<EpochPush>(bytes) else { return status(400) };
        self.registry.borrow_mut().push(&push);
        // Written, so that an object that was superseded cannot answer.
        // The tenant's record says for how long its records are kept.
        let prunes = push.keys.contains(&ChangedKey::Tenant);
        let prunes = self.with_lane(|lane, storage| {
            Lane::note_epoch(storage, push.epoch)?;
            let prunes = prunes && lane.identity().is_some();
            if prunes {
                Lane::set_next_prune(storage, 0)?;
            }
            Ok(prunes)
        })?;
        if prunes
            && !self.alarm_is_set.get()
            && let Ok(settings) = settings(&self.env)
        {
            self.arm(settings.config.flush_interval_ms).await?;
        }
        status(204)
    }

    /// The lane's part of an administrator's command about an agent.
    async fn carry_out(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(command) = serde_json::from_slice::<AgentCommand>(bytes) else {
            return status(400);
        };
        let Ok(settings) = settings(&self.env) else { return status(503) };
        let now_ms = Date::now().as_millis();
        let done = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.carry_out(storage, &settings.config, &command, now_ms)
        })?;
        self.arm_if_behind(&settings.config).await;
        status(if done.is_ok() { 204 } else { 503 })
    }

    /// Text of an untrusted server is about to reach an agent.
    async fn taint(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(command) = serde_json::from_slice::<TaintCommand>(bytes) else {
            return status(lanes::OTHER_VERSION);
        };
        let Ok(settings) = settings(&self.env) else { return status(503) };
        let now_ms = Date::now().as_millis();
        let marked = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.taint(storage, &settings.config, &command, now_ms)
        })?;
        self.arm_if_behind(&settings.config).await;
        status(if marked.is_ok() { 204 } else { 503 })
    }

    /// An administrator's decision on an approval: its answer is what the administrator gets.
    async fn decide_approval(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(command) = serde_json::from_slice::<DecideCommand>(bytes) else {
            return status(lanes::OTHER_VERSION);
        };
        let request_id = command.http_request_id.as_str();
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return http::problem(&problem, request_id),
        };
        let now_ms = Date::now().as_millis();
        let epoch = self.registry.borrow().epoch();
        let decided = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.decide_approval(storage, &settings.config, &command, epoch, now_ms)
        });
        self.arm_if_behind(&settings.config).await;
        match decided {
            Ok(Ok(DecideOutcome::Done { body, revision })) => {
                Head::new(200, request_id).field("etag", etag(revision)).with(&body)
            }
            Ok(Ok(DecideOutcome::Outdated)) => status(lanes::OUTDATED),
            Ok(Err(problem)) => http::problem(&problem, request_id),
            Err(failure) => {
                console_error!("decision `{request_id}` failed: {}", failure.0);
                http::problem(&storage_failed(), request_id)
            }
        }
    }

    /// A registry change that waits for approval, or uses its approval up.
    async fn settle_change(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(command) = serde_json::from_slice::<ChangeCommand>(bytes) else {
            return status(lanes::OTHER_VERSION);
        };
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return http::problem(&problem, ""),
        };
        let now_ms = Date::now().as_millis();
        let settled = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.settle_change(storage, &settings.config, &command, now_ms)
        });
        self.arm_if_behind(&settings.config).await;
        match settled {
            Ok(Ok(approval_id)) => text(Some(approval_id)),
            Ok(Err(problem)) => http::problem(&problem, ""),
            Err(failure) => {
                console_error!("a change's approval failed: {}", failure.0);
                http::problem(&storage_failed(), "")
            }
        }
    }

    /// What became of a call that was forwarded.
    async fn record_outcome(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(command) = serde_json::from_slice::<OutcomeCommand>(bytes) else {
            return status(lanes::OTHER_VERSION);
        };
        let Ok(settings) = settings(&self.env) else { return status(503) };
        let now_ms = Date::now().as_millis();
        let recorded = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.record_outcome(storage, &settings.config, &command, now_ms)
        })?;
        self.arm_if_behind(&settings.config).await;
        status(if recorded.is_ok() { 204 } else { 503 })
    }

    /// How an agent stands in the lane, by the limits of its tenant's record.
    fn containment(&self, agent: &str, tenant: &[u8]) -> Result<Response> {
        let Ok(tenant) = serde_json::from_slice::<TenantRecord>(tenant) else { return status(400) };
        let now_ms = Date::now().as_millis();
        let held =
            self.with_lane(|lane, storage| lane.containment(storage, agent, &tenant, now_ms));
        text(serde_json::to_string(&held?).ok())
    }

    /// A call to decide: its answer is what the caller gets.
    async fn call(&self, bytes: &[u8]) -> Result<Response> {
        let Some(command) = GateCommand::decode(bytes) else {
            // The worker tells the caller: this version cannot even read who that is.
            return status(lanes::OTHER_VERSION);
        };
        let reply = match settings(&self.env) {
            Ok(settings) => self.decide(&settings, &command).await,
            Err(problem) => Err(problem),
        };
        match reply {
            Ok(reply) => respond(reply, &command.http_request_id),
            Err(problem) => http::problem(&problem, &command.http_request_id),
        }
    }

    async fn decide(
        &self,
        settings: &Settings,
        command: &GateCommand,
    ) -> std::result::Result<Reply, Problem> {
        for load in 0..=MAX_LOADS {
            let now_ms = Date::now().as_millis();
            let command = &*self.registry.borrow().routed(command);
            if let Some(reply) = self.step(settings, command, now_ms)? {
                self.arm_if_behind(&settings.config).await;
                return Ok(reply);
            }
            if load < MAX_LOADS {
                let load = self.load(command, now_ms);
                let limit = pin!(Delay::from(LOAD_LIMIT));
                let Either::Left((loaded, _)) = select(pin!(load), limit).await else {
                    let detail = "the registry does not answer in time; try again";
                    return Err(Problem::new(ProblemCode::RegistryUnavailable, detail));
                };
                loaded?;
            }
        }
        let detail = "the registry keeps changing; try again";
        Err(Problem::new(ProblemCode::RegistryUnavailable, detail))
    }

    /// Reads what the command needs and is not held.
    async fn load(&self, command: &GateCommand, now_ms: u64) -> std::result::Result<(), Problem> {
        let with_bans = self.registry.borrow().needs_bans();
        let loaded = d1::registry::load_records(&self.env, command, with_bans, now_ms).await?;
        self.registry.borrow_mut().accept(command, loaded, now_ms);
        if self.registry.borrow().needs_listing(command) {
            let server = &command.call.server;
            let listing = d1::registry::load_listing(&self.env, &command.tenant, server).await?;
            self.registry.borrow_mut().accept_listing(server, listing, now_ms);
        }
        Ok(())
    }

    /// Steps 6 to 12, without an await; `None` when registry records must be read first.
    fn step(
        &self,
        settings: &Settings,
        command: &GateCommand,
        now_ms: u64,
    ) -> std::result::Result<Option<Reply>, Problem> {
        let (config, engine) = (&settings.config, &settings.engine);
        let held = self.registry.borrow().records(command, now_ms, config.registry_ttl_ms);
        let Some((records, complete)) = held else { return Ok(None) };
        let reply = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            if !complete && lane.needs_tool(storage, config, command, &records, now_ms)? {
                return Ok(None);
            }
            lane.call(storage, engine, config, command, &records, now_ms).map(Some)
        });
        reply.map_err(|failure| {
            console_error!("call `{}` failed: {}", command.http_request_id, failure.0);
            storage_failed()
        })
    }

    /// Sees to it that what was written is flushed.
    async fn arm_if_behind(&self, config: &Config) {
        if !self.alarm_is_set.get()
            && self.is_behind()
            && let Err(error) = self.arm(config.flush_interval_ms).await
        {
            // What was written stands, and the next call arms again.
            console_error!("the alarm could not be set: {error}");
        }
    }

    fn is_behind(&self) -> bool {
        self.lane.borrow().as_ref().is_none_or(Lane::needs_flush)
    }

    async fn arm(&self, pause_ms: u64) -> Result<()> {
        self.state.storage().set_alarm(Duration::from_millis(pause_ms)).await?;
        self.alarm_is_set.set(true);
        Ok(())
    }

    /// Whether D1's database has room for more than administration. While it has none, rows stay in
    /// the journal, whose own bounds then refuse calls.
    async fn check_room(&self, config: &Config, now_ms: u64) -> std::result::Result<(), Failure> {
        let (looked_ms, had_room) = self.database.get();
        if had_room && now_ms < looked_ms + DATABASE_LOOK_MS {
            return Ok(());
        }
        let bytes = d1::flush::size_bytes(&self.env).await?;
        let has_room = bytes <= config.flush_until_bytes;
        self.database.set((now_ms, has_room));
        if has_room {
            return Ok(());
        }
        let most = config.flush_until_bytes;
        Err(Failure(format!("D1's database has {bytes} bytes; records wait from {most} on")))
    }

    async fn flush(&self, settings: &Settings) -> std::result::Result<Progress, Failure> {
        let identity = self.with_lane(|lane, _| Ok(lane.identity().cloned()))?;
        // A lane that was never called has nothing to flush.
        let Some((tenant, lane_number)) = identity else {
            return Ok(Progress::Done);
        };
        let now_ms = Date::now().as_millis();
        let expired = self
            .with_lane(|lane, storage| lane.expire_approvals(storage, &settings.config, now_ms));
        for _ in 0..MAX_BATCHES_PER_ALARM {
            let now_ms = Date::now().as_millis();
            let due = |lane: &mut Lane, storage: &ObjectSql| {
                lane.flush_batch(storage, &settings.config, now_ms)
            };
            let Some(batch) = self.with_lane(due)? else {
                // What is journalled was flushed all the same.
                expired?;
                return Ok(if self.is_behind() { Progress::Waiting } else { Progress::Done });
            };
            self.check_room(&settings.config, now_ms).await?;
            let flushed = d1::flush::flush(&self.env, &tenant, lane_number, &batch, now_ms).await?;
            self.registry.borrow_mut().confirm(flushed.epoch, now_ms);
            let confirmed = self.with_lane(|lane, storage| {
                lane.confirm_flushed(storage, &batch, &flushed.stored)
            })?;
            if let Confirmed::HashDiffers { seq } = confirmed {
                return Err(Failure(format!("receipt {seq} is not in D1 as it was journalled")));
            }
        }
        Ok(Progress::More)
    }
}

fn storage_failed() -> Problem {
    Problem::new(ProblemCode::LaneUnavailable, "the lane's storage failed; try again")
}

fn respond(reply: Reply, request_id: &str) -> Result<Response> {
    Head::new(reply.status, request_id)
        .rate_limit(reply.rate)
        .retry_after(reply.retry_after_s)
        .with(&reply.body)
}

/// For the worker, not for a caller.
fn text(text: Option<String>) -> Result<Response> {
    match text {
        Some(text) => Ok(Response::new_with_opt_str(Some(&text))?),
        None => status(404),
    }
}

fn status(status: u16) -> Result<Response> {
    let init = ResponseInit::new();
    init.set_status(status);
    Ok(Response::new_with_opt_str_and_init(None, &init)?)
}
