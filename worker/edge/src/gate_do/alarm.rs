//! Step 13, by alarm: journal rows go to D1, messages to the webhook, epochs to lanes that did not take
//! them, and what is past its time goes.
//!
//! INVARIANT (an alarm is never lost for good): a run sets the next alarm before it begins, and however
//! it ends. Memory keeps when the next one is due, and every event sets it anew that finds it overdue.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use gateward_core::gate::config::{Config, DATABASE_LOOK_MS};
use gateward_core::lane::{Confirmed, Lane};
use gateward_core::receipt::retention::{self, MAX_PRUNED, PRUNE_INTERVAL_MS};
use gateward_core::registry::EpochPush;
use worker::{Date, Delay, Result, console_error};

use super::{Failure, GateLane};
use crate::lane_sql::ObjectSql;
use crate::settings::{Settings, settings};
use crate::{d1, lanes};

/// Batches of one alarm; what is left has the next alarm at once, so that calls get their turn.
pub const MAX_BATCHES_PER_ALARM: usize = 8;

/// The longest pause between attempts while D1 fails.
const MAX_BACKOFF_MS: u64 = 60_000;

/// The pause after pruning failed: what is in its way is not mended sooner.
const PRUNE_RETRY_MS: u64 = 60 * 60 * 1_000;

/// How far an alarm came.
enum Progress {
    /// Nothing is left.
    Done,
    /// Counts of windows that are still open wait to be told.
    Waiting,
    /// Rows are left.
    More,
}

impl GateLane {
    /// Whatever fails, the next alarm is set.
    pub(super) async fn run_alarm(&self) -> Result<()> {
        // First of all, for the case that this run dies: the runtime tries an alarm that failed
        // only a few times.
        self.arm(MAX_BACKOFF_MS).await?;
        let Ok(settings) = settings(&self.env) else { return Ok(()) };
        let interval_ms = settings.config.flush_interval_ms;
        match self.flush_due(&settings).await {
            Ok(next) => self.arm_next(next).await,
            Err(Failure(error)) => {
                console_error!("the alarm's run failed, again in {interval_ms} ms: {error}");
                self.arm(interval_ms).await
            }
        }
    }

    /// One run; when what is next is due.
    async fn flush_due(&self, settings: &Settings) -> std::result::Result<Next, Failure> {
        let interval_ms = settings.config.flush_interval_ms;
        let mut pause_ms = self.flush_once(settings).await;
        let (told, pushed) = {
            let both = async {
                let told = self.tell_webhook(settings).await;
                (told, self.push_again().await)
            };
            let mut both = pin!(both);
            loop {
                // A receiver or a lane that hangs holds up no flush.
                let pause = Duration::from_millis(pause_ms.unwrap_or(interval_ms));
                match select(both.as_mut(), pin!(Delay::from(pause))).await {
                    Either::Left((ended, _)) => break ended,
                    Either::Right(_) => pause_ms = self.flush_once(settings).await,
                }
            }
        };
        pushed?;
        let prune_at_ms = self.prune_if_due(interval_ms).await?;
        let now_ms = Date::now().as_millis();
        let (expiry, delivery, push) = self.with_lane(|_, storage| {
            let expiry = Lane::next_expiry(storage)?;
            Ok((expiry, Lane::next_delivery(storage)?, Lane::next_push(storage)?))
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
        let after = |at_ms: u64| at_ms.saturating_sub(now_ms);
        // A flush ends what has expired. Should the journal not take it, it is tried again, and not at
        // once.
        let expiry_ms = expiry.map(|at_ms| after(at_ms).max(interval_ms));
        let others = [expiry_ms, delivery.map(after), push.map(after), prune_at_ms.map(after)];
        Ok(Next { flush_ms: pause_ms, other_ms: others.into_iter().flatten().min() })
    }

    /// Sets the next alarm. A call that comes while one is set that is no flush's sets its own after it,
    /// and then sooner.
    async fn arm_next(&self, Next { flush_ms, other_ms }: Next) -> Result<()> {
        let next_ms = [flush_ms, other_ms].into_iter().flatten().min();
        if let (Some(next_ms), Some(_)) = (next_ms, flush_ms) {
            return self.arm(next_ms).await;
        }
        self.alarm_due_ms.set(None);
        match next_ms {
            Some(next_ms) => self.state.storage().set_alarm(Duration::from_millis(next_ms)).await,
            None => self.state.storage().delete_alarm().await,
        }
    }

    /// Sees to it that what was written is flushed, also when an alarm was lost or the clock was set.
    pub(super) async fn arm_if_behind(&self, config: &Config) {
        let now_ms = Date::now().as_millis();
        let late_ms = config.flush_interval_ms;
        let is_set = self.alarm_due_ms.get().is_some_and(|due_ms| {
            (now_ms.saturating_sub(late_ms)..=now_ms + MAX_BACKOFF_MS + late_ms).contains(&due_ms)
        });
        if !is_set
            && self.is_behind()
            && let Err(error) = self.arm(config.flush_interval_ms).await
        {
            // What was written stands, and the next event arms again.
            console_error!("the alarm could not be set: {error}");
        }
    }

    /// D1 answers again: what waits for a pause to end is flushed now.
    pub(super) async fn flush_soon(&self) {
        if self.failed_flushes.get() > 0
            && let Err(error) = self.arm(0).await
        {
            console_error!("the alarm could not be set: {error}");
        }
    }

    fn is_behind(&self) -> bool {
        // One that was never called has nothing.
        let is_behind = |lane: &Lane| lane.identity().is_some() && lane.needs_flush();
        self.lane.borrow().as_ref().is_none_or(is_behind)
    }

    pub(super) async fn arm(&self, pause_ms: u64) -> Result<()> {
        self.alarm_due_ms.set(Some(Date::now().as_millis() + pause_ms));
        let set = self.state.storage().set_alarm(Duration::from_millis(pause_ms)).await;
        if set.is_err() {
            self.alarm_due_ms.set(None);
        }
        set
    }

    /// Tells lanes of epochs that they did not take before.
    async fn push_again(&self) -> std::result::Result<(), Failure> {
        let now_ms = Date::now().as_millis();
        let due = self.with_lane(|_, storage| Lane::due_pushes(storage, now_ms))?;
        let pushed = join_all(due.iter().map(|pending| async {
            let push = EpochPush::whole(pending.epoch);
            let taken = lanes::push_one(&self.env, &pending.tenant, pending.lane, &push).await;
            let now_ms = Date::now().as_millis();
            self.with_lane(|_, storage| match taken {
                true => Lane::pushed(storage, pending),
                false => Lane::push_failed(storage, pending, now_ms),
            })
        }));
        pushed.await.into_iter().collect()
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

    /// Whether D1's database has room for more than administration. While it has none, rows stay in
    /// the journal, whose own bounds then refuse calls.
    async fn check_room(&self, config: &Config, now_ms: u64) -> std::result::Result<(), Failure> {
        let (looked_ms, had_room) = self.database_size.get();
        let age_ms = now_ms.checked_sub(looked_ms);
        if had_room && age_ms.is_some_and(|age_ms| age_ms < DATABASE_LOOK_MS) {
            return Ok(());
        }
        let bytes = d1::flush::size_bytes(&self.env).await?;
        let has_room = bytes <= config.flush_until_bytes;
        self.database_size.set((now_ms, has_room));
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
                Lane::keep_records(storage, flushed.epoch, now_ms, &[])?;
                lane.confirm_flushed(storage, &batch, &flushed.stored)
            })?;
            if let Confirmed::HashDiffers { seq } = confirmed {
                return Err(Failure(format!("receipt {seq} is not in D1 as it was journalled")));
            }
        }
        Ok(Progress::More)
    }
}

/// When what is next is due, in milliseconds from now.
struct Next {
    /// The next flush, if there is something to flush.
    flush_ms: Option<u64>,
    /// Anything else.
    other_ms: Option<u64>,
}
