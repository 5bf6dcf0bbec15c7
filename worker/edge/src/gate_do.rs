//! The Durable Object that is a lane: it fetches what the core needs, runs the core's
//! synchronous step, and flushes by alarm.
//!
//! Deciding is in `decide`, the alarm in `alarm`.
//!
//! Why it is correct: an object runs one event at a time between awaits. `GateLane::step` has
//! no await, so the registry cache it reads, the storage it reads and the row it writes belong to
//! one instant; the output gate holds the reply until that row is durable. Everything awaited
//! before it (a registry load) makes the step look at the cache anew.

mod alarm;
mod decide;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;

use gateward_core::approval::{ChangeCommand, DecideCommand};
use gateward_core::etag::etag;
use gateward_core::gate::{AgentCommand, OutcomeCommand, Reply, TaintCommand};
use gateward_core::lane::{DecideOutcome, Lane, PUSH_AGAIN_MS, StorageError};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::receipt::ChainHead;
use gateward_core::registry::{ChangedKey, EpochPush, PendingPushes, RegistryCache, TenantRecord};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::durable::State;
use worker::worker_sys::DurableObjectState;
use worker::worker_sys::web_sys::{Request, Response, ResponseInit};
use worker::{Date, Env, Error, Result, console_error};

use crate::http::{self, Head};
use crate::lane_sql::ObjectSql;
use crate::lanes;
use crate::settings::settings;

pub use self::alarm::MAX_BATCHES_PER_ALARM;
use self::decide::{Database, Flight};

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
    /// Whether D1 answers loads.
    database: RefCell<Database>,
    /// Loads under way, by what they bring.
    loads: RefCell<HashMap<String, Flight>>,
    /// When the alarm is due that flushes; `None` when none is set.
    alarm_due_ms: Cell<Option<u64>>,
    failed_flushes: Cell<u32>,
    /// When the size of D1's database was looked at last, and whether it left room for records.
    database_size: Cell<(u64, bool)>,
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
            database: RefCell::default(),
            loads: RefCell::default(),
            alarm_due_ms: Cell::new(None),
            failed_flushes: Cell::new(0),
            database_size: Cell::new((0, true)),
        }
    }

    pub async fn fetch(&self, request: Request) -> std::result::Result<Response, JsValue> {
        AssertUnwindSafe(self.answer(request)).await.map_err(JsValue::from)
    }

    /// Step 13.
    pub async fn alarm(&self) -> std::result::Result<(), JsValue> {
        AssertUnwindSafe(self.run_alarm()).await.map_err(JsValue::from)
    }
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
    /// Every event, whatever it asks, sees to it that the alarm is set.
    async fn answer(&self, request: Request) -> Result<Response> {
        let answered = self.dispatch(request).await;
        if let Ok(settings) = settings(&self.env) {
            self.arm_if_behind(&settings.config).await;
        }
        answered
    }

    async fn dispatch(&self, request: Request) -> Result<Response> {
        let url = request.url();
        let path = url.strip_prefix(lanes::ORIGIN).unwrap_or_default();
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        match segments.as_slice() {
            ["call"] => self.call(&request).await,
            ["outcome"] => self.record_outcome(&http::bytes(&request).await?).await,
            ["epoch"] => self.take_epoch(&http::bytes(&request).await?).await,
            ["push-again"] => self.take_pending(&http::bytes(&request).await?).await,
            ["decide"] => self.decide_approval(&http::bytes(&request).await?).await,
            ["change"] => self.settle_change(&http::bytes(&request).await?).await,
            ["approval", id] => {
                let held = self.with_lane(|_, storage| Lane::approval(storage, id))?;
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

    /// Runs on the lane, starting it first if need be. If storage fails, memory is dropped.
    pub fn with_lane<T>(
        &self,
        run: impl FnOnce(&mut Lane, &ObjectSql) -> std::result::Result<T, StorageError>,
    ) -> std::result::Result<T, Failure> {
        let mut held = self.lane.borrow_mut();
        let mut lane = match held.take() {
            Some(lane) => lane,
            None => {
                let lane = Lane::start(&self.sql)?;
                let (epoch, confirmed_at_ms) = Lane::stored_registry(&self.sql)?;
                self.registry.borrow_mut().resume(epoch, confirmed_at_ms);
                lane
            }
        };
        let result = run(&mut lane, &self.sql)?;
        *held = Some(lane);
        Ok(result)
    }

    /// News of a change: from here on nothing from before it is used.
    async fn take_epoch(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(push) = serde_json::from_slice::<EpochPush>(bytes) else { return status(400) };
        // Started first: it may hold records of the epoch that the push begins at.
        let started = self.with_lane(|_, _| Ok(()));
        self.registry.borrow_mut().push(&push);
        started?;
        // The tenant's record says for how long its records are kept.
        let prunes = push.keys.contains(&ChangedKey::Tenant);
        let prunes = self.with_lane(|lane, storage| {
            Lane::take_push(storage, &push)?;
            let prunes = prunes && lane.identity().is_some();
            if prunes {
                Lane::set_next_prune(storage, 0)?;
            }
            Ok(prunes)
        })?;
        if prunes && let Ok(settings) = settings(&self.env) {
            self.arm(settings.config.flush_interval_ms).await?;
        }
        status(204)
    }

    /// Lanes that did not take an epoch: this object goes on telling them.
    async fn take_pending(&self, bytes: &[u8]) -> Result<Response> {
        let Ok(pending) = serde_json::from_slice::<PendingPushes>(bytes) else {
            return status(lanes::OTHER_VERSION);
        };
        let now_ms = Date::now().as_millis();
        self.with_lane(|_, storage| Lane::keep_pushes(storage, &pending, now_ms))?;
        self.arm(PUSH_AGAIN_MS).await?;
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
    async fn call(&self, request: &Request) -> Result<Response> {
        let (command, _held) = match lanes::receive(request).await? {
            Ok(received) => received,
            Err(refused) => return status(refused),
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
}

fn storage_failed() -> Problem {
    Problem::new(ProblemCode::LaneUnavailable, "the lane's storage failed; try again")
}

fn respond(reply: Reply, request_id: &str) -> Result<Response> {
    let status = if reply.terminal { lanes::TERMINAL } else { reply.status };
    Head::new(status, request_id)
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
