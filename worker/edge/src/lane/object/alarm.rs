//! Step 13. The alarm flushes journal rows to D1, sends messages to the webhook, pushes epochs again to
//! lanes that did not confirm them, and deletes records that are past their retention period, and windows of policies
//! that are over. An object that holds windows of a tenant has only the last of these tasks.
//!
//! INVARIANT (an alarm is never lost for good): a run sets the next alarm before it begins, and sets it
//! again however it ends. Memory holds when the next alarm is due. An event that finds it overdue sets
//! it again.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use gateward_core::gate::config::{Config, DATABASE_CHECK_MS};
use gateward_core::lane::{Confirmed, Lane, LogName, Report};
use gateward_core::log::Event;
use gateward_core::metrics::Series;
use gateward_core::receipt::retention::{self, MAX_OLD_RECEIPTS, PRUNE_INTERVAL_MS};
use gateward_core::registry::EpochPush;
use worker::Result;

use super::rewrite::Rewritten;
use super::state::{Failure, GateLane};
use crate::d1;
use crate::io;
use crate::lane::client;
use crate::lane::sql::ObjectSql;
use crate::settings::{Settings, settings};
use crate::wait::Pause;

/// Batches that one alarm flushes. If rows are left, the next alarm is due at once; calls run in between.
const MAX_BATCHES_PER_ALARM: usize = 8;

/// The longest pause between attempts while D1 fails.
const MAX_BACKOFF_MS: u64 = 60_000;

/// The pause after pruning failed: such failures need a person to fix them.
const PRUNE_RETRY_MS: u64 = 60 * 60 * 1_000;

/// What a flush left in the journal.
enum Progress {
    /// Nothing.
    Done,
    /// Counts of windows that are still open.
    Waiting,
    /// Rows.
    More,
    /// Rows, because D1 still lacks earlier ones.
    Behind,
}

impl GateLane {
    /// The next alarm is set, whatever fails.
    pub(super) async fn run_alarm(&self) -> Result<()> {
        // If storage fails, the flush fails too, and reports it.
        let due_ms = self.with_lane(|_, storage| Lane::alarm_due(storage)).ok().flatten();
        let overdue_ms = due_ms.map(|due_ms| io::now_ms().saturating_sub(due_ms));
        self.alarm_overdue_ms.set(overdue_ms.unwrap_or_default());
        // First, in case this run dies: the runtime retries a failed alarm only a few times. The time at which this run was
        // due stays stored until the run ends.
        self.set_alarm(MAX_BACKOFF_MS).await?;
        let Ok(settings) = settings(&self.env) else { return Ok(()) };
        let interval_ms = settings.config.flush_interval_ms;
        match self.run_once(&settings).await {
            Ok(next) => self.arm_next(next).await,
            Err(Failure(error)) => {
                self.log(Event::AlarmFailed, &format!("next run in {interval_ms} ms: {error}"));
                self.arm(interval_ms).await
            }
        }
    }

    /// One run. Returns when the next one is due.
    async fn run_once(&self, settings: &Settings) -> std::result::Result<Next, Failure> {
        self.include_new_events(settings).await;
        let (tasks, pause_ms) = self.run_tasks(settings).await;
        self.next_alarm(settings, tasks, pause_ms).await
    }

    /// Flushes, and runs the tasks that ask others. Goes on flushing while a webhook, a witness, a lane or D1 hangs.
    /// Returns also the pause until the next flush.
    async fn run_tasks(&self, settings: &Settings) -> (Tasks, Option<u64>) {
        let mut pause_ms = self.flush_once(settings).await;
        let mut tasks = pin!(async {
            let tasks = Tasks {
                told: self.send_to_webhook(settings).await,
                witnesses_due_ms: self.ask_witnesses(settings).await,
                pushed: self.push_again().await,
                head_due_ms: self.tell_head(settings).await,
            };
            if self.failed_flushes.get() > 0 {
                // If D1 does not take this either, metrics show it later. The log has the flush's error.
                let _ = self.report_failure().await;
            }
            tasks
        });
        loop {
            let pause = Pause::new(pause_ms.unwrap_or(settings.config.flush_interval_ms));
            match select(tasks.as_mut(), pause).await {
                Either::Left((ended, _)) => return (ended, pause_ms),
                Either::Right(_) => pause_ms = self.flush_once(settings).await,
            }
        }
    }

    /// Prunes if that is due, and returns when the next alarm is due.
    async fn next_alarm(
        &self,
        settings: &Settings,
        tasks: Tasks,
        pause_ms: Option<u64>,
    ) -> std::result::Result<Next, Failure> {
        let interval_ms = settings.config.flush_interval_ms;
        tasks.pushed?;
        let prune_at_ms = self.prune_if_due(settings).await?;
        let now_ms = io::now_ms();
        let (expiry, delivery, push, windows) = self.with_lane(|lane, storage| {
            let expiry = [Lane::next_expiry(storage)?, lane.next_reservation_end()];
            let expiry = expiry.into_iter().flatten().min();
            // In a lane too: a flush deletes them as well, but a lane without calls does not flush.
            let windows = lane.prune_windows(storage, now_ms)?;
            Ok((expiry, Lane::next_delivery(storage)?, Lane::next_push(storage)?, windows))
        })?;
        let delivery = match tasks.told {
            Ok(()) => delivery,
            Err(Failure(error)) => {
                self.log(Event::WebhookOutboxFailed, &error);
                Some(now_ms + MAX_BACKOFF_MS)
            }
        };
        // Rows may have been written while the webhook was called, and the head log's tree is not published while witnesses
        // are asked.
        let pause_ms = pause_ms.or(self.is_behind().then_some(interval_ms));
        let pause_ms = pause_ms.or_else(|| self.log_pause_ms(settings));
        let after = |at_ms: u64| at_ms.saturating_sub(now_ms);
        // A flush ends approvals and reservations. It can fail while the journal is full, so the next attempt waits
        // for at least the flush interval.
        let expiry_ms = expiry.map(|at_ms| after(at_ms).max(interval_ms));
        // A message that was given up has no row yet if the journal is full.
        let delivery_ms = delivery.map(|at_ms| if at_ms == 0 { interval_ms } else { after(at_ms) });
        let others = [expiry_ms, delivery_ms, push.map(after), prune_at_ms.map(after)];
        // Windows that are over do not shorten the pause of a flush that failed.
        let windows_ms = windows.map(|at_ms| after(at_ms).max(pause_ms.unwrap_or_default()));
        let others = others
            .into_iter()
            .chain([tasks.witnesses_due_ms, tasks.head_due_ms?].map(|at| at.map(after)))
            .chain([windows_ms]);
        Ok(Next { flush_ms: pause_ms, other_ms: others.flatten().min() })
    }

    /// Sets the next alarm. `alarm_due_ms` is set only if the alarm is for a flush. Otherwise it stays `None`, so the
    /// next call that writes a row replaces this alarm by an earlier one.
    async fn arm_next(&self, Next { flush_ms, other_ms }: Next) -> Result<()> {
        let next_ms = [flush_ms, other_ms].into_iter().flatten().min();
        // Before the await, so that a call meanwhile sets an alarm for its row.
        self.alarm_due_ms.set(None);
        match next_ms {
            Some(next_ms) if flush_ms.is_some() => self.arm(next_ms).await,
            Some(next_ms) => {
                self.keep_due(next_ms);
                self.state.storage().set_alarm(Duration::from_millis(next_ms)).await
            }
            None => self.state.storage().delete_alarm().await,
        }
    }

    /// Sets the alarm if journal rows wait and no alarm is due in time. Alarms can be lost, and the clock can
    /// be set.
    pub(super) async fn arm_if_behind(&self, config: &Config) {
        let now_ms = io::now_ms();
        let late_ms = config.flush_interval_ms;
        let is_set = self.alarm_due_ms.get().is_some_and(|due_ms| {
            (now_ms.saturating_sub(late_ms)..=now_ms + MAX_BACKOFF_MS + late_ms).contains(&due_ms)
        });
        if !is_set
            && self.is_behind()
            && let Err(error) = self.arm(config.flush_interval_ms).await
        {
            // The rows are durable, and the next event sets the alarm again.
            self.log(Event::AlarmNotSet, &error.to_string());
        }
    }

    /// D1 answers again, so flush now instead of after the pause.
    pub(super) async fn flush_soon(&self) {
        if self.failed_flushes.get() > 0
            && let Err(error) = self.arm(0).await
        {
            self.log(Event::AlarmNotSet, &error.to_string());
        }
    }

    /// Sets the alarm of an object that holds windows, unless one is due within this time. Memory does not hold it at
    /// first and after a run.
    pub(super) async fn arm_to_prune(&self, pause_ms: u64) -> Result<()> {
        if self.alarm_due_ms.get().is_none() {
            let set_ms = self.state.storage().get_alarm().await?;
            self.alarm_due_ms.set(set_ms.and_then(|at_ms| u64::try_from(at_ms).ok()));
        }
        let now_ms = io::now_ms();
        // Alarms can be lost.
        let in_time = now_ms.saturating_sub(MAX_BACKOFF_MS)..=now_ms + pause_ms;
        match self.alarm_due_ms.get().is_some_and(|due_ms| in_time.contains(&due_ms)) {
            true => Ok(()),
            false => self.arm(pause_ms).await,
        }
    }

    fn is_behind(&self) -> bool {
        // A lane that was never called has nothing to flush.
        let is_behind = |lane: &Lane| lane.identity().is_some() && lane.needs_flush();
        self.lane.borrow().as_ref().is_none_or(is_behind)
    }

    pub(super) async fn arm(&self, pause_ms: u64) -> Result<()> {
        self.keep_due(pause_ms);
        self.set_alarm(pause_ms).await
    }

    /// Stores when the alarm is due, in one transaction with the alarm.
    fn keep_due(&self, pause_ms: u64) {
        let due_ms = io::now_ms() + pause_ms;
        // If this write fails, only the metric about late alarms is wrong.
        let _ = self.with_lane(|_, storage| Lane::set_alarm_due(storage, due_ms));
    }

    async fn set_alarm(&self, pause_ms: u64) -> Result<()> {
        self.alarm_due_ms.set(Some(io::now_ms() + pause_ms));
        let set = self.state.storage().set_alarm(Duration::from_millis(pause_ms)).await;
        if set.is_err() {
            self.alarm_due_ms.set(None);
        }
        set
    }

    /// Pushes epochs again to lanes that did not confirm them.
    async fn push_again(&self) -> std::result::Result<(), Failure> {
        let now_ms = io::now_ms();
        let due = self.with_lane(|_, storage| Lane::due_pushes(storage, now_ms))?;
        let pushed = join_all(due.iter().map(|pending| async {
            let push = EpochPush::whole(pending.epoch);
            let taken = client::push_one(&self.env, &pending.tenant, pending.lane, &push).await;
            let now_ms = io::now_ms();
            self.with_lane(|_, storage| match taken {
                true => Lane::pushed(storage, pending),
                false => Lane::push_failed(storage, pending, now_ms),
            })
        }));
        pushed.await.into_iter().collect()
    }

    /// Prunes if pruning is due. Returns when it is next due; `None` for a lane that was never called.
    async fn prune_if_due(&self, settings: &Settings) -> std::result::Result<Option<u64>, Failure> {
        let interval_ms = settings.config.flush_interval_ms;
        let now_ms = io::now_ms();
        let (identity, due_ms, steady_ms) = self.with_lane(|lane, storage| {
            Ok((lane.identity().cloned(), Lane::next_prune(storage)?, lane.steady_ms()))
        })?;
        let Some((tenant, lane)) = identity else { return Ok(None) };
        let next_ms = match due_ms {
            Some(due_ms) if due_ms > now_ms => return Ok(Some(due_ms)),
            // A new lane has nothing to prune.
            None => now_ms + PRUNE_INTERVAL_MS,
            Some(_) => match self.prune(settings, &tenant, lane, steady_ms).await {
                Ok(true) => now_ms + interval_ms,
                Ok(false) => now_ms + PRUNE_INTERVAL_MS,
                Err(Failure(error)) => {
                    self.log(Event::PruneFailed, &error);
                    now_ms + PRUNE_RETRY_MS
                }
            },
        };
        self.with_lane(|_, storage| Lane::set_next_prune(storage, next_ms))?;
        Ok(Some(next_ms))
    }

    /// Prunes one batch, and returns whether there may be more. The cutoff is computed from `steady_ms`: a time that
    /// the clock passed an hour ago. Before it prunes, the lane asks D1 what D1 has. Otherwise a lane without calls
    /// would not notice that D1 was restored.
    async fn prune(
        &self,
        settings: &Settings,
        tenant: &str,
        lane_number: u16,
        steady_ms: u64,
    ) -> std::result::Result<bool, Failure> {
        if self.with_lane(|lane, _| Ok(lane.is_stopped()))? {
            // The rows stay, so that a person can look at them.
            return Err(Failure("the lane stopped".to_owned()));
        }
        self.ask_d1()?;
        self.flush(settings).await?;
        let days = d1::retention::retention_days(&self.env, tenant).await?;
        let cutoff_ms = retention::cutoff_ms(days, steady_ms);
        let mut anchor = self.with_lane(|_, storage| Lane::anchor(storage))?;
        let oldest = d1::retention::oldest(&self.env, tenant, lane_number, &anchor).await?;
        let full = oldest.len() >= MAX_OLD_RECEIPTS as usize;
        let next = self.with_lane(|lane, storage| {
            // Receipts that no checkpoint covers are not deleted.
            let through = settings.log_keys.as_ref().map(|_| lane.published_through());
            let old_ms =
                retention::cutoff_ms(retention::receipt_days(lane_number, days), steady_ms);
            lane.next_anchor(storage, &oldest, through.unwrap_or(u64::MAX), old_ms)
        })?;
        let next = next.map_err(|broken| {
            Failure(format!("receipt {} does not verify: {}", broken.seq, broken.problem))
        })?;
        let advanced = next.is_some();
        if let Some(next) = next {
            // Before the deletion: a receipt may be missing only if the head log lists it as deleted.
            self.tell_head_of(settings, next.seq).await?;
            self.with_lane(|_, storage| Lane::set_anchor(storage, &next))?;
            anchor = next;
        }
        let default_cutoff_ms = retention::cutoff_ms(None, steady_ms);
        let pruned = d1::retention::prune(
            &self.env,
            tenant,
            lane_number,
            &anchor,
            cutoff_ms,
            default_cutoff_ms,
        );
        Ok(pruned.await? || (advanced && full))
    }

    /// Flushes. Returns the pause until the next flush; `None` when nothing is left.
    async fn flush_once(&self, settings: &Settings) -> Option<u64> {
        let interval_ms = settings.config.flush_interval_ms;
        let flushed = self.flush(settings).await;
        let failures =
            if flushed.is_ok() { 0 } else { self.failed_flushes.get().saturating_add(1) };
        self.failed_flushes.set(failures);
        if flushed.is_err() {
            let tally = |lane: &mut Lane, _: &ObjectSql| {
                lane.tally(Series::FlushError, 1);
                Ok(())
            };
            // If storage failed too, this one is not counted.
            let _ = self.with_lane(tally);
        }
        match flushed {
            Ok(Progress::Done) => None,
            Ok(Progress::Waiting) => Some(interval_ms),
            Ok(Progress::More | Progress::Behind) => Some(0),
            Err(Failure(error)) => {
                let pause_ms =
                    interval_ms.saturating_mul(1 << failures.min(16)).min(MAX_BACKOFF_MS);
                let detail =
                    format!("failed {failures} times, next attempt in {pause_ms} ms: {error}");
                self.log(Event::FlushFailed, &detail);
                Some(pause_ms)
            }
        }
    }

    /// Sends the lane's report without rows after a flush failed: while D1 can be read, metrics must show that flushes fail.
    /// At most once in a run of the alarm, also if D1 is too large for rows.
    async fn report_failure(&self) -> std::result::Result<(), Failure> {
        let now_ms = io::now_ms();
        let (identity, mut batch) = self.with_lane(|lane, storage| {
            Ok((lane.identity().cloned(), lane.report_batch(storage, now_ms)?))
        })?;
        let Some((tenant, lane_number)) = identity else { return Ok(()) };
        self.complete(&mut batch.report);
        d1::flush::flush(&self.env, &tenant, lane_number, &batch).await?;
        Ok(())
    }

    /// Adds what the lane itself does not know.
    fn complete(&self, report: &mut Report) {
        report.epoch = self.registry.borrow().epoch();
        report.alarm_overdue_ms = self.alarm_overdue_ms.get();
    }

    /// Fails if D1's database is so large that its remaining space is needed for administration. Rows then
    /// stay in the journal. Once the journal is full, calls are refused.
    async fn check_database_size(
        &self,
        config: &Config,
        now_ms: u64,
    ) -> std::result::Result<(), Failure> {
        let (checked_ms, had_room) = self.database_size.get();
        let age_ms = now_ms.checked_sub(checked_ms);
        if had_room && age_ms.is_some_and(|age_ms| age_ms < DATABASE_CHECK_MS) {
            return Ok(());
        }
        let bytes = d1::flush::size_bytes(&self.env).await?;
        let has_room = bytes <= config.flush_until_bytes;
        self.database_size.set((now_ms, has_room));
        if has_room {
            return Ok(());
        }
        let most = config.flush_until_bytes;
        Err(Failure(format!("D1's database has {bytes} bytes; nothing is flushed above {most}")))
    }

    async fn flush(&self, settings: &Settings) -> std::result::Result<Progress, Failure> {
        self.compare_again_if_stopped().await?;
        let progress = self.flush_rows(settings).await?;
        if !matches!(progress, Progress::Behind) {
            self.publish(settings).await;
        }
        Ok(progress)
    }

    async fn flush_rows(&self, settings: &Settings) -> std::result::Result<Progress, Failure> {
        let identity = self.with_lane(|lane, _| Ok(lane.identity().cloned()))?;
        // A lane that was never called has nothing to flush.
        let Some((tenant, lane_number)) = identity else {
            return Ok(Progress::Done);
        };
        let now_ms = io::now_ms();
        let expired = self
            .with_lane(|lane, storage| lane.expire_approvals(storage, &settings.config, now_ms));
        let settled = self.with_lane(|lane, storage| lane.end_reservations(storage, now_ms));
        for _ in 0..MAX_BATCHES_PER_ALARM {
            let now_ms = io::now_ms();
            let due = |lane: &mut Lane, storage: &ObjectSql| {
                lane.flush_batch(storage, &settings.config, now_ms)
            };
            let Some(mut batch) = self.with_lane(due)? else {
                // Report these errors only after the flush.
                expired?;
                settled?;
                return Ok(if self.is_behind() { Progress::Waiting } else { Progress::Done });
            };
            self.complete(&mut batch.report);
            self.check_database_size(&settings.config, now_ms).await?;
            let mut flushed = d1::flush::flush(&self.env, &tenant, lane_number, &batch).await?;
            self.registry.borrow_mut().confirm(flushed.epoch, now_ms);
            let log = LogName { tenant: tenant.clone(), lane: lane_number };
            if let Some(before) = batch.missing_before(&flushed.stored) {
                match self.write_again(&log, before).await? {
                    Rewritten::Part => return Ok(Progress::Behind),
                    Rewritten::All => {}
                    Rewritten::Lost => batch.before = None,
                }
                self.with_lane(|lane, _| {
                    lane.forget_told();
                    Ok(())
                })?;
                batch.has_new_series = true;
                flushed = d1::flush::flush(&self.env, &tenant, lane_number, &batch).await?;
                // D1 was restored once more.
                if batch.missing_before(&flushed.stored).is_some() {
                    return Ok(Progress::Behind);
                }
            }
            let confirmed = self.with_lane(|lane, storage| {
                Lane::keep_records(storage, flushed.epoch, now_ms, &[])?;
                lane.confirm_flushed(storage, &batch, &flushed.stored)
            })?;
            if let Confirmed::HashDiffers { seq } = confirmed {
                return Err(Failure(format!("receipt {seq} is not in D1 as it was journalled")));
            }
            if settings.log_keys.is_some() {
                self.compare_published(&log, flushed.note.as_deref()).await?;
            }
        }
        Ok(Progress::More)
    }
}

/// How a run's tasks ended that ask others.
struct Tasks {
    /// Messages to the webhook.
    told: std::result::Result<(), Failure>,
    witnesses_due_ms: Option<u64>,
    /// Epochs that lanes had not confirmed.
    pushed: std::result::Result<(), Failure>,
    head_due_ms: std::result::Result<Option<u64>, Failure>,
}

/// When the next alarm is due, in milliseconds from now.
struct Next {
    /// The next flush, if there is something to flush.
    flush_ms: Option<u64>,
    /// The next of the other tasks.
    other_ms: Option<u64>,
}
