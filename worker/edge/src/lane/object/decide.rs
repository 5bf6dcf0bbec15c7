//! Deciding a call: load the records that it needs, then run the core's synchronous step.
//!
//! Records are loaded from D1 when the lane does not hold them, or when their epoch was not confirmed in
//! time. Calls that need the same load share it. While D1 does not answer, the lane decides on the
//! records that it holds in memory or storage. The tenant registers for how long, and each decision says
//! so.

use std::rc::Rc;

use futures_util::future::join;
use gateward_core::call::command::GateCommand;
use gateward_core::gate::Reply;
use gateward_core::lane::{self, CallResult, Lane};
use gateward_core::limit::lease::Need;
use gateward_core::log::{Event, of_json};
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::registry::{self, CallRecords};
use gateward_core::velocity::shared::CountRequest;

use super::leases::{Answers, MAX_ASKS};
use super::state::{GateLane, storage_failed};
use super::windows::AskedWindows;
use crate::io;
use crate::limits::{D1_READ_MS, DECIDE_MS, REGISTRY_CONFIRM_MS};
use crate::settings::Settings;
use crate::{d1, log};

/// Loads that one call may wait for: its records, the tool that a server's routes name, its records again
/// if the registry changed, and once more if it changed again.
const MAX_LOADS: usize = 4;

/// How often one call may ask windows: once, and again if the registry was changed meanwhile. A third time would
/// take longer than a caller waits.
const MAX_WINDOW_ASKS: usize = 2;

/// The result of a step.
enum Stepped {
    Decided(Reply),
    /// Records must be loaded first.
    NotLoaded,
    /// Parts of shared limits must be leased first. The number is that of the tenant's lanes.
    NotLeased(Vec<Need>, u16),
    /// Windows of the tenant must be asked first.
    NotCounted(Vec<CountRequest>),
}

impl GateLane {
    pub(super) async fn decide(
        &self,
        settings: &Settings,
        command: &GateCommand,
    ) -> Result<Reply, Problem> {
        let mut windows = AskedWindows::default();
        let decided = self.decide_in_time(settings, command, &mut windows).await;
        let counted_in = decided.as_ref().map_or(&[][..], |reply| &reply.counted_in);
        self.withdraw(command, &windows, counted_in);
        decided
    }

    /// Adds the windows that it asks to `windows`.
    async fn decide_in_time(
        &self,
        settings: &Settings,
        command: &GateCommand,
        windows: &mut AskedWindows,
    ) -> Result<Reply, Problem> {
        let ttl_ms = settings.config.registry_ttl_ms;
        let (mut loads, mut asks, mut window_asks) = (0, 0, 0);
        let mut answers = Answers::new(self);
        let mut charged = false;
        let last_ms = io::now_ms() + u64::from(DECIDE_MS);
        loop {
            let now_ms = io::now_ms();
            in_time(now_ms, last_ms)?;
            let command = &*self.registry.borrow().routed(command);
            let held = self.registry.borrow().records(command, now_ms, ttl_ms);
            match self.step(settings, command, held, (&answers, windows), &mut charged, now_ms)? {
                Stepped::Decided(reply) => return Ok(reply),
                Stepped::NotCounted(asked) if window_asks < MAX_WINDOW_ASKS => {
                    window_asks += 1;
                    self.ask_windows(command, asked, windows).await;
                    continue;
                }
                // Once more, so that a call that does not get all its parts is denied.
                Stepped::NotLeased(needs, lanes) if asks <= MAX_ASKS => {
                    asks += 1;
                    answers.ask(command, lanes, needs).await;
                    continue;
                }
                Stepped::NotLoaded if loads < MAX_LOADS => loads += 1,
                Stepped::NotCounted(_) | Stepped::NotLeased(..) | Stepped::NotLoaded => {
                    let detail = "the registry keeps changing; try again";
                    return Err(Problem::new(ProblemCode::RegistryUnavailable, detail));
                }
            }
            if let Err(problem) = self.load(command, now_ms, ttl_ms).await {
                // A record that cannot be parsed stops the call. While D1 is away, the call may be decided on
                // the records that the lane holds.
                if !self.database.borrow().is_away() {
                    return Err(problem);
                }
                let told = (&mut answers, windows);
                let reply =
                    self.decide_unconfirmed(settings, command, told, &mut charged, last_ms).await?;
                return reply.ok_or(problem);
            }
        }
    }

    /// Decides while D1 does not answer. `None` when the lane lacks a record, or held it for too long.
    async fn decide_unconfirmed(
        &self,
        settings: &Settings,
        command: &GateCommand,
        (answers, windows): (&mut Answers<'_>, &mut AskedWindows),
        charged: &mut bool,
        last_ms: u64,
    ) -> Result<Option<Reply>, Problem> {
        self.restore(command)?;
        let routed = &*self.registry.borrow().routed(command);
        // Now that the routes are restored, the tool of an HTTP request is known.
        self.restore(routed)?;
        let ttl_ms = settings.config.registry_ttl_ms;
        for _ in 0..=MAX_ASKS + 1 + MAX_WINDOW_ASKS {
            let now_ms = io::now_ms();
            in_time(now_ms, last_ms)?;
            let held = self.registry.borrow().unconfirmed(routed, now_ms, ttl_ms);
            match self.step(settings, routed, held, (answers, windows), charged, now_ms)? {
                Stepped::Decided(reply) => return Ok(Some(reply)),
                Stepped::NotCounted(asked) => self.ask_windows(routed, asked, windows).await,
                Stepped::NotLoaded => return Ok(None),
                Stepped::NotLeased(needs, lanes) => answers.ask(routed, lanes, needs).await,
            }
        }
        Ok(None)
    }

    /// Loads records from storage that memory does not hold.
    fn restore(&self, command: &GateCommand) -> Result<(), Problem> {
        let stored = self.with_lane(|_, storage| {
            // Read here, since `with_lane` may have started the lane and set the stored epoch.
            let epoch = self.registry.borrow().epoch();
            Lane::stored_records(storage, epoch, command)
        });
        let stored = stored.map_err(|failure| {
            let detail = format!("stored records cannot be read: {}", failure.0);
            log::write(&log::line(Event::LaneStorageFailed, command, detail));
            storage_failed()
        })?;
        let restored = self.registry.borrow_mut().restore(stored);
        restored.map_err(|error| unreadable(command, &error))
    }

    /// Loads the records that the command lacks from D1, or waits for another call that loads them.
    async fn load(&self, command: &GateCommand, now_ms: u64, ttl_ms: u64) -> Result<(), Problem> {
        let can_go_on = self.registry.borrow().unconfirmed(command, now_ms, ttl_ms);
        let can_go_on = can_go_on.is_some_and(|(_, complete)| complete);
        if !self.database.borrow_mut().of(can_go_on).may_ask(now_ms) {
            return Err(d1::unavailable());
        }
        let key = format!("{:?}", lane::needed(command));
        let flight = Rc::clone(self.loads.borrow_mut().entry(key.clone()).or_default());
        let Some(mut ended) = flight.try_lock() else {
            let ended = flight.lock().await;
            return ended.clone().map_or(Ok(()), Err);
        };
        let loaded = self.load_alone(command, now_ms, can_go_on).await;
        *ended = loaded.clone().err();
        self.loads.borrow_mut().remove(&key);
        loaded
    }

    async fn load_alone(
        &self,
        command: &GateCommand,
        now_ms: u64,
        can_go_on: bool,
    ) -> Result<(), Problem> {
        let (with_lists, with_listing) = {
            let registry = self.registry.borrow();
            (registry.needs_lists(), registry.needs_listing(command))
        };
        let limit_ms = if can_go_on { REGISTRY_CONFIRM_MS } else { D1_READ_MS };
        let listing = async {
            match with_listing {
                true => d1::registry::load_listing(&self.env, command, limit_ms).await.map(Some),
                false => Ok(None),
            }
        };
        let records = d1::registry::load_records(&self.env, command, with_lists, now_ms, limit_ms);
        let (records, listing) = join(records, listing).await;
        let (records, listing) = match records.and_then(|records| Ok((records, listing?))) {
            Ok(loaded) => loaded,
            Err(problem) => {
                self.database.borrow_mut().of(can_go_on).failed(io::now_ms());
                return Err(problem);
            }
        };
        if self.database.borrow_mut().answered() {
            self.flush_soon().await;
        }
        let loaded = records.parse().map_err(|error| unreadable(command, &error))?;
        let epoch = loaded.tenant.as_ref().map_or(0, |tenant| tenant.epoch);
        if self.registry.borrow_mut().accept(command, loaded, now_ms) {
            self.keep(command, epoch, now_ms, &lane::stored(command, records))?;
        }
        if let Some(listing) = listing {
            let record = lane::stored_listing(command, &listing);
            let epoch = listing.epoch;
            let server = &command.call.server;
            if self.registry.borrow_mut().accept_listing(server, listing, now_ms) {
                self.keep(command, epoch, now_ms, &[record])?;
            }
        }
        Ok(())
    }

    fn keep(
        &self,
        command: &GateCommand,
        epoch: u64,
        asked_at_ms: u64,
        records: &[registry::StoredRecord],
    ) -> Result<(), Problem> {
        let kept =
            self.with_lane(|_, storage| Lane::keep_records(storage, epoch, asked_at_ms, records));
        kept.map_err(|failure| {
            let detail = format!("records cannot be stored: {}", failure.0);
            log::write(&log::line(Event::LaneStorageFailed, command, detail));
            storage_failed()
        })
    }

    /// Steps 5 to 12, without an await. `charged`: whether the call went through
    /// [`Lane::charge_stranger`].
    fn step(
        &self,
        settings: &Settings,
        command: &GateCommand,
        held: Option<(CallRecords, bool)>,
        (answers, windows): (&Answers<'_>, &AskedWindows),
        charged: &mut bool,
        now_ms: u64,
    ) -> Result<Stepped, Problem> {
        let (config, engine) = (&settings.config, &settings.engine);
        let Some((records, complete)) = held else { return Ok(Stepped::NotLoaded) };
        let answers = lane::Answers { leases: answers.as_slice(), windows: windows.answers() };
        let stepped = self.with_lane(|lane, storage| {
            lane.adopt(storage, &command.tenant, command.lane)?;
            if !*charged
                && let Err(problem) = lane.charge_stranger(storage, command, &records, now_ms)?
            {
                return Ok(Err(problem));
            }
            *charged = true;
            // A call that asked other objects got as far as its tool.
            if !complete
                && (answers.were_asked()
                    || lane.needs_tool(storage, (engine, config), command, &records, now_ms)?)
            {
                return Ok(Ok(Stepped::NotLoaded));
            }
            let called =
                lane.call(storage, (engine, config), command, &records, answers, now_ms)?;
            Ok(Ok(match called {
                CallResult::Decided(reply) => Stepped::Decided(reply),
                CallResult::NotCounted(requests) => Stepped::NotCounted(requests),
                CallResult::NotLeased(needs) => {
                    let lanes = records.tenant.as_ref().and_then(|tenant| tenant.lanes);
                    Stepped::NotLeased(needs, lanes.unwrap_or(1))
                }
            }))
        });
        stepped.unwrap_or_else(|failure| {
            log::write(&log::line(Event::LaneStorageFailed, command, failure.0));
            Err(storage_failed())
        })
    }
}

/// Fails if the caller may have gone meanwhile.
fn in_time(now_ms: u64, last_ms: u64) -> Result<(), Problem> {
    let detail = "the lane's answer took too long, so nothing was decided; try again";
    (now_ms < last_ms)
        .then_some(())
        .ok_or_else(|| Problem::new(ProblemCode::LaneUnavailable, detail))
}

fn unreadable(command: &GateCommand, error: &serde_json::Error) -> Problem {
    d1::registry::unreadable(command, of_json(error))
}
