//! The Durable Object that is a lane. It loads the registry records that a call needs, runs the core's
//! synchronous step, and flushes by alarm.
//!
//! `state` is what it holds, `decide` decides calls, `leases` gets parts of shared limits, `windows` asks the
//! windows of the tenant, `alarm` flushes, `webhook` sends messages. The objects that count shared limits, that hold
//! windows, and that push epochs again, are of the same class.
//!
//! Why it is correct: an object runs one event at a time between awaits. `GateLane::step` has no await,
//! so the registry cache and the storage that it reads and the row that it writes belong to one instant.
//! The runtime's output gate holds the response until that row is durable. A registry load awaits before
//! the step, and the step reads the cache anew after it.

mod alarm;
mod decide;
mod leases;
mod loads;
mod publish;
mod queue;
mod rewrite;
mod state;
mod webhook;
mod windows;
mod witness;

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use gateward_core::approval::{ChangeCommand, DecideCommand};
use gateward_core::call::command::GateCommand;
use gateward_core::etag::etag;
use gateward_core::gate::{AgentCommand, ListCommand, OutcomeCommand, Reply, TaintCommand};
use gateward_core::isolate::memory::Held;
use gateward_core::lane::protocol::{
    ChainEnds, DONE, LaneReply, LaneRequest, NO_MEMORY, OTHER_VERSION, OUTDATED, TERMINAL,
};
use gateward_core::lane::{DecideOutcome, Lane, LaneResult, PUSH_AGAIN_MS};
use gateward_core::log::{Event, Line};
use gateward_core::registry::{ChangedKey, EpochPush, PendingPushes};
use js_sys::Uint8Array;
use js_sys::futures::future_to_promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;
use worker::durable::State;
use worker::worker_sys::DurableObjectState;
use worker::worker_sys::web_sys::{Response, ResponseInit};
use worker::{Env, Result};

use self::state::{Failure, GateLane, storage_failed};
use super::sql::ObjectSql;
use crate::http::{self, Head};
use crate::io;
use crate::settings::{Settings, settings};
use crate::{log, memory};

/// Journal rows that one read returns.
const MAX_ROWS_READ: u32 = 500;

// What the runtime calls. worker-rs has a macro for this, but it copies requests and responses value by
// value, which costs more than a decision.
#[wasm_bindgen(js_name = GateLane)]
pub struct LaneObject(Rc<GateLane>);

#[wasm_bindgen(js_class = GateLane)]
impl LaneObject {
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, env: Env) -> Self {
        Self(Rc::new(GateLane::of(State::from(state), env)))
    }

    /// A response, or a promise of one. `body` is the request's: `entry.js` reads it, because an await costs less there.
    pub fn fetch(&self, body: Uint8Array) -> std::result::Result<JsValue, JsValue> {
        let lane = Rc::clone(&self.0);
        at_once(async move { lane.answer(body).await })
    }

    /// Step 13.
    pub async fn alarm(&self) -> std::result::Result<(), JsValue> {
        AssertUnwindSafe(self.0.run_alarm()).await.map_err(JsValue::from)
    }
}

/// Runs an event up to its first wait. Most decisions wait for nothing, and so need neither a promise nor a task. What is
/// waited for is polled again with the waker of its task: see [`crate::wait`].
fn at_once(
    answer: impl Future<Output = Result<Response>> + 'static,
) -> std::result::Result<JsValue, JsValue> {
    let mut answer = Box::pin(answer);
    match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer.map(JsValue::from).map_err(JsValue::from),
        Poll::Pending => Ok(future_to_promise(AssertUnwindSafe(async move {
            answer.await.map(JsValue::from).map_err(JsValue::from)
        }))
        .into()),
    }
}

/// Decodes a request. An error is the status of the response. The bytes are dropped once they are
/// decoded; the decoded call is measured, since a list of small objects takes many times its text.
fn receive(bytes: &Uint8Array) -> std::result::Result<(LaneRequest<'static>, Held), u16> {
    let mut held = match memory::hold_command(bytes.length() as usize) {
        Some(held) => held,
        None if bytes.get_index(1) == LaneRequest::CALL_TAG => return Err(NO_MEMORY),
        // Only calls are refused: a flood of calls must not keep an administrator from stopping it.
        None => Held::default(),
    };
    let Ok(decoded) = LaneRequest::decode(&bytes.to_vec()) else { return Err(OTHER_VERSION) };
    if let LaneRequest::Call(command) = &decoded
        && !held.resize(command.heap_bytes())
    {
        return Err(NO_MEMORY);
    }
    Ok((decoded, held))
}

impl GateLane {
    /// Handles a request. Afterwards, the alarm is set if the journal holds rows.
    async fn answer(&self, body: Uint8Array) -> Result<Response> {
        let answered = self.dispatch(body).await;
        if let Ok(settings) = settings(&self.env) {
            self.arm_if_behind(&settings.config).await;
        }
        answered
    }

    async fn dispatch(&self, body: Uint8Array) -> Result<Response> {
        let received = receive(&body);
        drop(body);
        let (request, _held) = match received {
            Ok(received) => received,
            Err(refused) => return status(refused),
        };
        let reply = match request {
            LaneRequest::Call(command) => return self.call(&command).await,
            LaneRequest::DecideApproval(command) => return self.decide_approval(&command),
            LaneRequest::RecordOutcome(command) => self.record_outcome(&command)?,
            LaneRequest::Taint(command) => self.taint(&command)?,
            LaneRequest::ObserveList(command) => self.observe_list(&command)?,
            LaneRequest::CarryOut(command) => self.carry_out(&command)?,
            LaneRequest::SettleChange(command) => self.settle_change(&command),
            LaneRequest::TakeEpoch(push) => self.take_epoch(&push).await?,
            LaneRequest::KeepPushes(pending) => self.keep_pushes(&pending).await?,
            LaneRequest::ReadApproval { approval_id } => {
                let read = |storage: &ObjectSql| Lane::approval(storage, &approval_id);
                LaneReply::Approval(self.with_lane(|_, storage| read(storage))?)
            }
            LaneRequest::ReadContainment { agent, tenant } => {
                let now_ms = io::now_ms();
                let read = |lane: &mut Lane, storage: &ObjectSql| {
                    lane.containment(storage, &agent, &tenant, now_ms)
                };
                LaneReply::Containment(self.with_lane(read)?)
            }
            LaneRequest::ReadChainEnds => {
                LaneReply::ChainEnds(self.with_lane(|lane, storage| {
                    let head = lane.head().clone();
                    Ok(ChainEnds { head, pruned_through: Lane::anchor(storage)? })
                })?)
            }
            LaneRequest::ReadRow { seq } => {
                LaneReply::Row(self.with_lane(|lane, storage| lane.row(storage, seq))?)
            }
            LaneRequest::ReadBooks { names } => {
                let now_ms = io::now_ms();
                let read =
                    |lane: &mut Lane, storage: &ObjectSql| lane.books(storage, &names, now_ms);
                LaneReply::Books(self.with_lane(read)?)
            }
            LaneRequest::Lease(command) => self.grant(&command).await?,
            LaneRequest::GiveBack { counter, subject, number, granted } => {
                self.give_back((&counter, &subject), (number, granted))?
            }
            LaneRequest::ReadPools { subjects } => {
                LaneReply::Pools(self.with_lane(|_, storage| Lane::pools(storage, &subjects))?)
            }
            LaneRequest::CountCall { entry, request } => {
                self.answer_count(&entry, &request).await?
            }
            LaneRequest::Withdraw { entry, request } => self.answer_withdraw(&entry, &request)?,
            LaneRequest::KeepCheckpoint(checkpoint) => self.keep_checkpoint(&checkpoint)?,
            LaneRequest::IncludeEvents { tenant } => self.include_events(&tenant).await?,
            LaneRequest::AwaitCheckpoint { seq, wait_ms } => {
                self.await_checkpoint(seq, wait_ms).await?
            }
            LaneRequest::ReadRows { from } => {
                let rows =
                    |lane: &mut Lane, storage: &ObjectSql| lane.rows(storage, from, MAX_ROWS_READ);
                LaneReply::Rows(self.with_lane(rows)?)
            }
        };
        if reply == LaneReply::Done {
            return status(DONE);
        }
        let bytes = Uint8Array::from(reply.encode().as_slice());
        Ok(Response::new_with_opt_js_u8_array(Some(&bytes))?)
    }

    /// Decides a call. The worker passes the response on to the caller.
    async fn call(&self, command: &GateCommand) -> Result<Response> {
        let reply = match settings(&self.env) {
            Ok(settings) => self.decide(&settings, command).await,
            Err(problem) => Err(problem),
        };
        match reply {
            Ok(reply) => respond(reply, &command.http_request_id),
            Err(problem) => http::problem(&problem, &command.http_request_id),
        }
    }

    /// Applies a decision to an approval. The worker passes the response on to the administrator.
    fn decide_approval(&self, command: &DecideCommand) -> Result<Response> {
        let request_id = command.http_request_id.as_str();
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return http::problem(&problem, request_id),
        };
        let now_ms = io::now_ms();
        let epoch = self.registry.borrow().epoch();
        let decided = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.decide_approval(storage, &settings.config, command, epoch, now_ms)
        });
        match decided {
            Ok(DecideOutcome::Done { body, revision }) => {
                Head::new(200, request_id).field("etag", etag(revision)).with(&body)
            }
            Ok(DecideOutcome::Outdated) => status(OUTDATED),
            Ok(DecideOutcome::Refused(problem)) => http::problem(&problem, request_id),
            Err(failure) => {
                let detail = format!("a decision on an approval failed: {}", failure.0);
                let line = Line::new(Event::LaneStorageFailed, detail);
                log::write(&Line {
                    request_id: Some(request_id),
                    ..line.in_lane(&command.tenant, command.lane)
                });
                http::problem(&storage_failed(), request_id)
            }
        }
    }

    fn record_outcome(&self, command: &OutcomeCommand) -> std::result::Result<LaneReply, Failure> {
        self.run((&command.tenant, command.lane), |lane, storage, settings, now_ms| {
            lane.record_outcome(storage, &settings.config, command, now_ms)
        })
    }

    fn taint(&self, command: &TaintCommand) -> std::result::Result<LaneReply, Failure> {
        self.run((&command.tenant, command.lane), |lane, storage, settings, now_ms| {
            lane.taint(storage, &settings.config, command, now_ms)
        })
    }

    fn observe_list(&self, command: &ListCommand) -> std::result::Result<LaneReply, Failure> {
        self.run((&command.tenant, command.lane), |lane, storage, settings, now_ms| {
            lane.observe_list(storage, &settings.config, command, now_ms)
        })
    }

    fn carry_out(&self, command: &AgentCommand) -> std::result::Result<LaneReply, Failure> {
        self.run((&command.tenant, command.lane), |lane, storage, settings, now_ms| {
            lane.carry_out(storage, &settings.config, command, now_ms)
        })
    }

    /// Runs a command whose reply is [`LaneReply::Done`].
    fn run(
        &self,
        (tenant, number): (&str, u16),
        command: impl FnOnce(&mut Lane, &ObjectSql, &Settings, u64) -> LaneResult<()>,
    ) -> std::result::Result<LaneReply, Failure> {
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return Ok(problem.into()),
        };
        let now_ms = io::now_ms();
        let done = self.with_lane(|lane, storage| {
            lane.adopt(storage, tenant, number)?;
            command(lane, storage, &settings, now_ms)
        })?;
        Ok(done.map_or_else(LaneReply::from, |()| LaneReply::Done))
    }

    /// Opens the approval of a registry change, or uses it.
    fn settle_change(&self, command: &ChangeCommand) -> LaneReply {
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return problem.into(),
        };
        let now_ms = io::now_ms();
        let settled = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            lane.settle_change(storage, &settings.config, command, now_ms)
        });
        match settled {
            Ok(settled) => settled.map_or_else(LaneReply::from, LaneReply::ApprovalId),
            Err(failure) => {
                let detail = format!("the approval of a registry change failed: {}", failure.0);
                let line = Line::new(Event::LaneStorageFailed, detail);
                log::write(&line.in_lane(&command.tenant, command.lane));
                storage_failed().into()
            }
        }
    }

    /// Applies a push: no record that the change replaced is used after this.
    async fn take_epoch(&self, push: &EpochPush) -> std::result::Result<LaneReply, Failure> {
        // Start the lane first: its storage may hold records of the epoch that the push begins at.
        let started = self.with_lane(|_, _| Ok(()));
        self.registry.borrow_mut().push(push);
        started?;
        // The tenant's record holds the retention period, so a change of it makes pruning due.
        let names_tenant = push.keys.contains(&ChangedKey::Tenant);
        let prunes = self.with_lane(|lane, storage| {
            Lane::take_push(storage, push)?;
            let prunes = names_tenant && lane.identity().is_some();
            if prunes {
                Lane::set_next_prune(storage, 0)?;
            }
            Ok(prunes)
        })?;
        if prunes && let Ok(settings) = settings(&self.env) {
            self.arm(settings.config.flush_interval_ms).await?;
        }
        Ok(LaneReply::Done)
    }

    /// Stores the lanes that did not confirm an epoch. The alarm pushes it to them again.
    async fn keep_pushes(
        &self,
        pending: &PendingPushes,
    ) -> std::result::Result<LaneReply, Failure> {
        let now_ms = io::now_ms();
        self.with_lane(|_, storage| Lane::keep_pushes(storage, pending, now_ms))?;
        self.arm(PUSH_AGAIN_MS).await?;
        Ok(LaneReply::Done)
    }
}

fn respond(reply: Reply, request_id: &str) -> Result<Response> {
    let status = if reply.terminal { TERMINAL } else { reply.status };
    Head::new(status, request_id)
        .rate_headers(reply.rate_headers.as_ref())
        .retry_after(reply.retry_after_s)
        .with(&reply.body)
}

/// A response without a body, for the worker.
fn status(status: u16) -> Result<Response> {
    let init = ResponseInit::new();
    init.set_status(status);
    Ok(Response::new_with_opt_str_and_init(None, &init)?)
}
