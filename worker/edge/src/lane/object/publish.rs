//! The lane's transparency log: it publishes checkpoints, and tells the tenant's head log of them. All of it is part of
//! the alarm.

use gateward_core::bounds::HEAD_LANE;
use gateward_core::gate::head_log::LaneCheckpoint;
use gateward_core::lane::protocol::LaneReply;
use gateward_core::lane::{Lane, LogName, Standing, TELL_HEAD_MS, TileCursor, Told};
use gateward_core::log::Event;

use super::rewrite::Rewritten;
use super::state::{Failure, GateLane};
use crate::d1::logs;
use crate::io;
use crate::lane::client;
use crate::limits::D1_BACKGROUND_MS;
use crate::settings::{Settings, settings};
use crate::wait::Pause;

/// How often a waiting request checks whether its checkpoint is published.
const POLL_MS: u64 = 100;

/// Requests of a lane that may wait for a checkpoint at the same time: with more, looking would delay decisions.
const MAX_WAITING: u32 = 64;

/// The pause after publishing failed, or after reading the registry's changes did.
const RETRY_MS: u64 = 10_000;

/// Reads of the registry's changes in one run, of some 100 epochs each.
const MAX_EVENT_READS: usize = 10;

/// What is left of a pause of at most `most_ms` that ends at `until_ms`. 0 if more than `most_ms` would be
/// left, because then the clock was set back.
pub(super) fn left_ms(until_ms: u64, most_ms: u64) -> u64 {
    let left_ms = until_ms.saturating_sub(io::now_ms());
    if left_ms > most_ms { 0 } else { left_ms }
}

impl GateLane {
    /// Writes a lane's checkpoint into the head log.
    pub(super) fn keep_checkpoint(
        &self,
        checkpoint: &LaneCheckpoint,
    ) -> Result<LaneReply, Failure> {
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return Ok(problem.into()),
        };
        let now_ms = io::now_ms();
        let kept = self.with_lane(|lane, storage| {
            lane.keep_checkpoint(storage, &settings.config, checkpoint, now_ms)
        })?;
        Ok(kept.map_or_else(LaneReply::from, |()| LaneReply::Done))
    }

    /// Makes the alarm write the changes of the tenant's registry into the head log.
    pub(super) async fn include_events(&self, tenant: &str) -> Result<LaneReply, Failure> {
        let settings = match settings(&self.env) {
            Ok(settings) => settings,
            Err(problem) => return Ok(problem.into()),
        };
        self.with_lane(|lane, storage| lane.adopt(storage, tenant, HEAD_LANE))?;
        // A run of the alarm may be under way, and may have read the changes before this one.
        self.events_due.set(Some(io::now_ms()));
        self.arm(settings.config.flush_interval_ms).await?;
        Ok(LaneReply::Done)
    }

    /// Waits until a published checkpoint covers a receipt, but no longer than `wait_ms`.
    pub(super) async fn await_checkpoint(
        &self,
        seq: u64,
        wait_ms: u32,
    ) -> Result<LaneReply, Failure> {
        let until_ms = io::now_ms() + u64::from(wait_ms);
        let may_wait = self.waiting.get() < MAX_WAITING;
        self.waiting.set(self.waiting.get() + 1);
        let answer = loop {
            let known = self.with_lane(|lane, _| Ok((lane.published_through(), lane.is_stopped())));
            match known {
                Ok((through, stopped)) if through < seq && may_wait && !stopped => {
                    if io::now_ms() >= until_ms {
                        break Ok(LaneReply::PublishedThrough(through));
                    }
                }
                known => break known.map(|(through, _)| LaneReply::PublishedThrough(through)),
            }
            Pause::new(POLL_MS).await;
        };
        self.waiting.set(self.waiting.get() - 1);
        answer
    }

    pub(super) fn log_name(&self) -> Result<Option<LogName>, Failure> {
        let identity = self.with_lane(|lane, _| Ok(lane.identity().cloned()))?;
        Ok(identity.map(|(tenant, lane)| LogName { tenant, lane }))
    }

    /// Compares the checkpoint that D1 gave back with the lane's tree. After a restore of D1, writes again what the lane
    /// still has.
    pub(super) async fn compare_published(
        &self,
        log: &LogName,
        note: Option<&str>,
    ) -> Result<(), Failure> {
        let settings = settings(&self.env).map_err(|problem| Failure(problem.detail))?;
        let origin = settings.log_keys.as_ref().map(|keys| keys.origin(log)).unwrap_or_default();
        let standing =
            self.with_lane(|lane, storage| lane.compare_published(storage, note, &origin))?;
        let is_same = standing == Standing::Same;
        self.compared.replace(is_same.then(|| note.map(str::to_owned)));
        match standing {
            Standing::Same => Ok(()),
            Standing::Other { is_new } => {
                if is_new {
                    self.log(Event::LogStopped, note.unwrap_or("D1 has no checkpoint"));
                }
                Ok(())
            }
            Standing::Restored => {
                let through = self.with_lane(|lane, _| Ok(lane.flushed_through()))?;
                // Until all is there, the lane knows a larger tree than D1 has, and looks again.
                if !matches!(self.write_again(log, through).await?, Rewritten::Part) {
                    self.with_lane(|lane, storage| lane.note_published(storage, note))?;
                }
                Ok(())
            }
        }
    }

    /// Compares D1's checkpoint again if the lane stopped: a person may have repaired it, and nothing is flushed meanwhile.
    pub(super) async fn compare_again_if_stopped(&self) -> Result<(), Failure> {
        let stopped = self.with_lane(|lane, _| Ok(lane.is_stopped()))?;
        let Some(log) = self.log_name()?.filter(|_| stopped) else { return Ok(()) };
        self.compare_with_d1(&log).await
    }

    async fn compare_with_d1(&self, log: &LogName) -> Result<(), Failure> {
        let stored = logs::checkpoint(&self.env, log).await?;
        self.compare_published(log, stored.as_ref().map(|stored| stored.note.as_str())).await
    }

    /// Makes the next flush ask D1 what it has.
    pub(super) fn ask_d1(&self) -> Result<(), Failure> {
        self.with_lane(|lane, _| {
            lane.ask_d1();
            Ok(())
        })
    }

    /// Signs a checkpoint and writes it to D1, if the tree has grown. If that fails, flushing goes on.
    pub(super) async fn publish(&self, settings: &Settings) {
        if left_ms(self.publish_after_ms.get(), RETRY_MS) > 0 {
            return;
        }
        if let Err(Failure(why)) = self.publish_now(settings).await {
            self.log(Event::LogNotPublished, &why);
            self.publish_after_ms.set(io::now_ms() + RETRY_MS);
        }
    }

    async fn publish_now(&self, settings: &Settings) -> Result<(), Failure> {
        let Some(keys) = &settings.log_keys else { return Ok(()) };
        let Some(log) = self.log_name()? else { return Ok(()) };
        if self.is_witnessing.get() || !self.with_lane(|lane, _| Ok(lane.has_unpublished()))? {
            return Ok(());
        }
        if self.compared.borrow().is_none() {
            self.compare_with_d1(&log).await?;
        }
        // The lane stopped, or it is writing rows again.
        let Some(read) = self.compared.borrow().clone() else { return Ok(()) };
        let origin = read.as_ref().and_then(|note| note.lines().next());
        if let Some(origin) = origin.filter(|origin| *origin != keys.origin(&log)) {
            return Err(Failure(format!(
                "D1's checkpoint is of `{origin}`, and `LOG_ORIGIN` makes `{}`",
                keys.origin(&log)
            )));
        }
        let (known, unpublished) = self.with_lane(|lane, storage| {
            Ok((lane.published().map_or(0, |tree| tree.size), lane.unpublished(storage)?))
        })?;
        let Some(unpublished) = unpublished else { return Ok(()) };
        let mut cursor = TileCursor::between(known, unpublished.tree.size);
        let mut next_tiles =
            || self.with_lane(|lane, storage| lane.next_tiles(storage, &mut cursor));
        let mut tiles = next_tiles()?;
        while let Some(more) = next_tiles()? {
            logs::write_tiles(&self.env, &log, &tiles.replace(more).unwrap_or_default()).await?;
        }
        let note = keys.sign(&log, unpublished.tree);
        let what = (&unpublished, note.as_str(), read.as_deref());
        // Until D1 answers, the lane does not know which checkpoint D1 has.
        self.compared.replace(None);
        if !logs::publish(&self.env, &log, tiles.as_deref(), what).await? {
            self.ask_d1()?;
            let why = "D1 has another checkpoint than the lane read, or lacks its last receipt";
            return Err(Failure(why.to_owned()));
        }
        self.with_lane(|lane, storage| lane.note_published(storage, Some(&note)))?;
        self.compared.replace(Some(Some(note)));
        Ok(())
    }

    /// The pause until the next flush, if a checkpoint or an entry of the head log waits for it.
    pub(super) fn log_pause_ms(&self, settings: &Settings) -> Option<u64> {
        settings.log_keys.as_ref()?;
        let waits =
            |lane: &Lane| lane.identity().is_some() && !lane.is_stopped() && lane.has_unpublished();
        let waits = self.lane.borrow().as_ref().is_some_and(waits);
        let publish_ms = waits.then(|| left_ms(self.publish_after_ms.get(), RETRY_MS));
        let events_ms = self.events_due.get().map(|due_ms| left_ms(due_ms, RETRY_MS));
        let pause_ms = [publish_ms, events_ms].into_iter().flatten().min()?;
        Some(settings.config.flush_interval_ms.max(pause_ms))
    }

    /// Tells the tenant's head log of the newest checkpoint, if it was not told for a while. Returns when the next one is
    /// due.
    pub(super) async fn tell_head(&self, settings: &Settings) -> Result<Option<u64>, Failure> {
        if settings.log_keys.is_none() || self.log_name()?.is_none_or(|log| log.lane == HEAD_LANE) {
            return Ok(None);
        }
        // The checkpoint of a lane that has stopped may be wrong.
        if self.with_lane(|lane, _| Ok(lane.is_stopped()))? {
            return Ok(None);
        }
        let told = self.with_lane(|_, storage| Lane::told_head(storage))?.unwrap_or_default();
        let through = self.with_lane(|lane, _| Ok(lane.published_through()))?;
        let pruned = self.with_lane(|_, storage| Lane::anchor(storage))?.seq;
        // Receipts can be deleted without a new checkpoint, while there was no key.
        if through == 0 || (through <= told.through && pruned <= told.pruned_through) {
            return Ok(None);
        }
        let now_ms = io::now_ms();
        let due_ms = told.at_ms.saturating_add(TELL_HEAD_MS);
        // A clock that was set back must not keep it waiting.
        if due_ms > now_ms && told.at_ms <= now_ms {
            return Ok(Some(due_ms));
        }
        match self.tell_head_of(settings, pruned).await {
            Ok(()) => Ok(None),
            Err(Failure(why)) => {
                self.log(Event::HeadLogNotTold, &why);
                Ok(Some(now_ms + TELL_HEAD_MS))
            }
        }
    }

    /// Tells the tenant's head log of the newest checkpoint, and which receipts are deleted because of their age.
    pub(super) async fn tell_head_of(
        &self,
        settings: &Settings,
        pruned_through: u64,
    ) -> Result<(), Failure> {
        let Some(keys) = &settings.log_keys else { return Ok(()) };
        let Some(log) = self.log_name()?.filter(|log| log.lane != HEAD_LANE) else { return Ok(()) };
        let (published, through, first) = self.with_lane(|lane, _| {
            Ok((lane.published(), lane.published_through(), lane.first_leaf()))
        })?;
        let Some(tree) = published else { return Ok(()) };
        let checkpoint = LaneCheckpoint {
            tenant: log.tenant.clone(),
            of_lane: log.lane,
            note: keys.sign(&log, tree),
            first,
            pruned_through,
        };
        client::keep_checkpoint(&self.env, checkpoint).await?;
        let told = Told { at_ms: io::now_ms(), through, pruned_through };
        self.with_lane(|_, storage| Lane::note_told_head(storage, told))
    }

    /// Writes the changes of the tenant's registry into the head log, if this lane keeps it. What fails is tried again after
    /// a pause.
    pub(super) async fn include_new_events(&self, settings: &Settings) {
        if self.events_due.get().is_some_and(|due_ms| left_ms(due_ms, RETRY_MS) > 0) {
            return;
        }
        // Before D1 is read, so that a change that comes meanwhile sets it again.
        self.events_due.set(None);
        let pause_ms = match self.include_events_now(settings).await {
            Ok(true) => return,
            Ok(false) => 0,
            Err(Failure(why)) => {
                self.log(Event::HeadLogNotTold, &why);
                RETRY_MS
            }
        };
        self.events_due.set(Some(io::now_ms() + pause_ms));
    }

    /// Returns whether all events were read.
    async fn include_events_now(&self, settings: &Settings) -> Result<bool, Failure> {
        let Some(log) = self.log_name()?.filter(|log| log.lane == HEAD_LANE) else {
            return Ok(true);
        };
        for _ in 0..MAX_EVENT_READS {
            let after = self.with_lane(|_, storage| Lane::events_through(storage))?;
            let (events, through, epoch) =
                logs::registry_events(&self.env, &log.tenant, after, D1_BACKGROUND_MS).await?;
            if epoch < after {
                return Err(Failure(format!(
                    "the registry is at the epoch {epoch}, and its changes were read through {after}: raise the epoch"
                )));
            }
            if through == after {
                return Ok(true);
            }
            let now_ms = io::now_ms();
            let included = self.with_lane(|lane, storage| {
                lane.include_events(
                    storage,
                    &settings.config,
                    &log.tenant,
                    (&events, through),
                    now_ms,
                )
            })?;
            included.map_err(|problem| Failure(problem.detail))?;
        }
        Ok(false)
    }
}
