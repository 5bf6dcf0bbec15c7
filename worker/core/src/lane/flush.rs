//! Step 13: copies journal rows to D1. The journal keeps them for a while after that ([`super::publish`]).
//!
//! INVARIANT (any statement may be the last): if [`Lane::confirm_flushed`] stops after any of its
//! statements, a lane that starts from the storage is complete. The order is: delete the audit counts; copy answers
//! and nonces; write state checkpoint and head; append to the tree; take the keys of answers and nonces off the rows; note
//! that D1 has them; delete rows that are old enough.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::state::Lane;
use super::storage::LaneSql;
use super::storage::{
    StorageError, TALLIES, Value, integer, meta, missing_rows, set_head, set_meta, unreadable,
    unsigned, write_count,
};
use crate::gate::config::Config;
use crate::gate::{NONCE_MS, REPLAY_MS, split_metrics};
use crate::json;
use crate::metrics::{BatchMetrics, RowMembers, RowsByMembers, Tallies};
use crate::sql::lane as sql;
use crate::tlog::{Hash, leaf_hash};

/// Bytes of one flush: D1 takes strings of up to 2 MB.
pub(super) const MAX_FLUSH_BYTES: usize = 1_500_000;

/// Audit counts in one flush.
const MAX_FLUSH_COUNTS: i64 = 500;

/// Replay and nonce rows that one flush deletes: twice what a flush of the largest batch adds.
const MAX_EXPIRED_ROWS: i64 = 4_000;

/// Series with names that a lane remembers to have told D1 of, some 100 bytes each. With more, it begins anew, and D1 looks
/// again at the next flush. D1 keeps at most 4,000 of a tenant.
const MAX_TOLD_SERIES: usize = 4_000;

/// The name in `meta` under which the lane keeps when its alarm is due.
const ALARM_DUE: &str = "alarm_due";

/// Journal rows on their way to D1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlushBatch {
    /// A JSON array of journal rows; `[]` if only counts are due.
    pub rows: String,
    /// The first and the last sequence number, if there are rows.
    pub range: Option<(u64, u64)>,
    /// The receipt before them, which D1 took earlier. `None` if there is none, or if it was deleted because of its age or
    /// lost.
    pub before: Option<u64>,
    /// The sequence number and the hash of each row's receipt.
    pub hashes: Vec<(u64, String)>,
    /// The sequence number of each row, and the leaf of its receipt in the lane's tree.
    pub leaves: Vec<(u64, Hash)>,
    /// A JSON array of audit counts.
    pub counts: String,
    /// Each count's event id and value, so that exactly these are deleted.
    pub count_keys: Vec<(String, i64)>,
    /// What the rows add to metrics.
    pub metrics: BatchMetrics,
    /// Whether D1 may lack some of the series with names, so that it must look whether it has room for them.
    pub has_new_series: bool,
    /// The last sequence number that D1 has after the batch; `None` if the batch only has a report.
    pub through: Option<u64>,
    /// What the lane reports about itself.
    pub report: Report,
}

/// The members of a stored row that a flush reads. What metrics need is read as JSON text, so that a row whose metrics
/// cannot be read is flushed all the same.
#[derive(Deserialize)]
struct StoredRow<'a> {
    #[serde(borrow)]
    receipt: Cow<'a, str>,
    #[serde(borrow)]
    counted: Option<&'a RawValue>,
    #[serde(borrow)]
    decision: Option<&'a RawValue>,
    #[serde(borrow)]
    reason_code: Option<&'a RawValue>,
    #[serde(borrow)]
    server: Option<&'a RawValue>,
    #[serde(borrow)]
    tool: Option<&'a RawValue>,
}

impl<'a> StoredRow<'a> {
    fn members(&self, series: &'a str) -> RowMembers<'a> {
        let Some(counted) = self.counted else {
            return RowMembers { series, ..RowMembers::default() };
        };
        let text = |member: Option<&'a RawValue>| member.map_or("", RawValue::get);
        RowMembers {
            counted: counted.get(),
            decision: text(self.decision),
            reason_code: text(self.reason_code),
            server: text(self.server),
            tool: text(self.tool),
            series,
        }
    }
}

/// The rows of a batch, with the members that a [`FlushBatch`] has of them.
struct OldestRows {
    rows: String,
    hashes: Vec<(u64, String)>,
    leaves: Vec<(u64, Hash)>,
    metrics: BatchMetrics,
    /// The time of the oldest row, or now if there is none.
    at_ms: u64,
}

/// The audit counts of a batch: a JSON array, and each count's event id and value.
fn audit_counts(storage: &impl LaneSql) -> Result<(String, Vec<(String, i64)>), StorageError> {
    let mut counts = Vec::new();
    let mut keys = Vec::new();
    for row in storage.exec(sql::COUNTS, &[Value::Integer(MAX_FLUSH_COUNTS)])? {
        let [Value::Text(event_id), Value::Integer(count), Value::Text(json)] = row.as_slice()
        else {
            return Err(unreadable("an audit count"));
        };
        keys.push((event_id.clone(), *count));
        counts.push(json.clone());
    }
    Ok((format!("[{}]", counts.join(",")), keys))
}

/// A lane's state at a flush, for metrics. D1 keeps the newest as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Goes up with each report of the lane.
    pub number: u64,
    /// When it was made.
    pub at_ms: u64,
    /// Rows that this flush leaves in the journal: all of them while D1 has other receipts than the lane, or if the flush
    /// failed.
    pub journal_rows: u64,
    /// Age of the oldest row in the journal when the flush began.
    pub journal_age_ms: u64,
    pub approvals_open: i64,
    pub reservations_open: usize,
    /// The epoch of the lane's cache; 0 if it has none.
    pub epoch: u64,
    /// How late the alarm ran.
    pub alarm_overdue_ms: u64,
    /// What the lane counted without rows.
    pub totals: Tallies,
}

impl Report {
    #[must_use]
    pub fn encode(&self) -> String {
        // Plain data always serializes. D1 refuses an empty text, and nothing is lost.
        json::to_string(self)
    }
}

impl FlushBatch {
    /// The first and the last receipt whose hashes D1 must return; 0 if there are none.
    #[must_use]
    pub fn expected(&self) -> (u64, u64) {
        let last = self.range.map(|(_, last)| last).or(self.before);
        let first = self.before.or(self.range.map(|(first, _)| first));
        (first.unwrap_or(0), last.unwrap_or(0))
    }

    /// The receipt before the batch if it is not in `stored`: then D1 was restored to an earlier time.
    #[must_use]
    pub fn missing_before(&self, stored: &[(u64, String)]) -> Option<u64> {
        self.before.filter(|before| stored.first().is_none_or(|(first, _)| first != before))
    }
}

/// The result of confirming a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confirmed {
    /// D1 has the batch.
    InD1,
    /// D1 has another receipt under this sequence number, or none. The rows will be flushed again.
    HashDiffers { seq: u64 },
}

impl Lane {
    /// The next rows to copy to D1; `None` if nothing is due.
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
        self.check_clock(storage, now_ms)?;
        for count in self.counts.close(now_ms) {
            write_count(storage, &count)?;
        }
        self.expire(storage, now_ms)?;
        let steady_ms = self.steady_ms();
        self.runs.expire(storage, steady_ms)?;
        self.windows.expire(storage, steady_ms)?;
        self.store_totals(storage)?;
        let OldestRows { rows, hashes, leaves, mut metrics, at_ms: oldest_ms } =
            self.oldest_rows(storage, config, now_ms)?;
        let (counts, count_keys) = audit_counts(storage)?;
        let range =
            hashes.first().zip(hashes.last()).map(|((first, _), (last, _))| (*first, *last));
        let before = Self::expected_in_d1(storage, self.flushed_through())?;
        let due = range.is_some() || !count_keys.is_empty() || self.report_due;
        let left = self.journal_rows.saturating_sub(hashes.len() as u64);
        self.unsure = due;
        let report = self.report(storage, left, oldest_ms, now_ms)?;
        metrics.named.extend(self.tallies.named());
        let has_new_series = !metrics.named.is_subset(&self.told_series);
        Ok(due.then(|| FlushBatch {
            rows,
            range,
            before,
            hashes,
            leaves,
            counts,
            count_keys,
            metrics,
            has_new_series,
            through: Some(self.head.seq.saturating_sub(left)),
            report,
        }))
    }

    /// The oldest rows of the journal, as many as one flush takes.
    fn oldest_rows(
        &self,
        storage: &impl LaneSql,
        config: &Config,
        now_ms: u64,
    ) -> Result<OldestRows, StorageError> {
        let limit = Value::Integer(i64::from(config.flush_batch_rows));
        let mut rows = String::with_capacity(MAX_FLUSH_BYTES);
        let mut metrics = RowsByMembers::default();
        let mut oldest_ms = now_ms;
        rows.push('[');
        let mut hashes: Vec<(u64, String)> = Vec::new();
        let mut leaves = Vec::new();
        // A start counts only the rows after the state checkpoint.
        let first = self.flushed_through() + 1;
        let stored = storage.exec(sql::ROWS, &[integer(first)?, limit])?;
        for (row, next) in stored.iter().zip(first..) {
            let [Value::Integer(seq), Value::Text(hash), Value::Text(text), Value::Integer(at_ms)] =
                row.as_slice()
            else {
                return Err(unreadable("a journal row"));
            };
            if unsigned(*seq)? != next {
                return Err(missing_rows());
            }
            if !hashes.is_empty() {
                if rows.len() + text.len() > MAX_FLUSH_BYTES {
                    break;
                }
                rows.push(',');
            }
            let (row, series) = split_metrics(text);
            rows.extend([row, "}"]);
            let stored: StoredRow<'_> =
                serde_json::from_str(text).map_err(|_| unreadable("a row's receipt"))?;
            metrics.add(next, stored.members(series));
            oldest_ms = oldest_ms.min(unsigned(*at_ms)?);
            hashes.push((next, hash.clone()));
            leaves.push((next, leaf_hash(stored.receipt.as_bytes())));
        }
        rows.push(']');
        Ok(OldestRows { rows, hashes, leaves, metrics: metrics.metrics(), at_ms: oldest_ms })
    }

    /// A batch that only has the report of a lane whose flush failed. D1 may take it all the same: then metrics show that
    /// flushes fail, and how much waits. It needs no confirmation: the next flush has a newer report.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn report_batch(
        &mut self,
        storage: &impl LaneSql,
        now_ms: u64,
    ) -> Result<FlushBatch, StorageError> {
        self.store_totals(storage)?;
        let first = integer(self.flushed_through() + 1)?;
        let oldest = storage.exec(sql::ROWS, &[first, Value::Integer(1)])?;
        let oldest_ms = match oldest.first().map(Vec::as_slice) {
            None => now_ms,
            Some([_, _, _, Value::Integer(at_ms)]) => unsigned(*at_ms)?,
            Some(_) => return Err(unreadable("a journal row")),
        };
        let report = self.report(storage, self.journal_rows, oldest_ms, now_ms)?;
        let mut metrics = BatchMetrics::default();
        metrics.named.extend(self.tallies.named());
        let has_new_series = !metrics.named.is_subset(&self.told_series);
        Ok(FlushBatch {
            rows: "[]".to_owned(),
            range: None,
            before: None,
            hashes: Vec::new(),
            leaves: Vec::new(),
            counts: "[]".to_owned(),
            count_keys: Vec::new(),
            metrics,
            has_new_series,
            through: None,
            report,
        })
    }

    /// Stores the totals that the next report has. D1 must not know higher ones than a lane that starts again.
    fn store_totals(&mut self, storage: &impl LaneSql) -> Result<(), StorageError> {
        if let Some(totals) = self.tallies.store() {
            set_meta(storage, TALLIES, totals)?;
            self.report_due = true;
        }
        Ok(())
    }

    /// A report of a flush that leaves so many rows in the journal. The object knows the rest.
    fn report(
        &mut self,
        storage: &impl LaneSql,
        left: u64,
        oldest_ms: u64,
        now_ms: u64,
    ) -> Result<Report, StorageError> {
        self.flushes += 1;
        let approvals_open = match self.approvals_open {
            Some(open) => open,
            None => {
                let rows = storage.exec(sql::OPEN_APPROVALS, &[])?;
                let Some([Value::Integer(open)]) = rows.first().map(Vec::as_slice) else {
                    return Err(unreadable("the number of open approvals"));
                };
                *self.approvals_open.insert(*open)
            }
        };
        Ok(Report {
            number: self.flushes,
            at_ms: now_ms,
            journal_rows: if self.differs { self.journal_rows } else { left },
            journal_age_ms: now_ms.saturating_sub(oldest_ms),
            approvals_open,
            reservations_open: self.limits.reservations.len(),
            epoch: 0,
            alarm_overdue_ms: 0,
            totals: self.tallies.clone(),
        })
    }

    /// Whether anything must be flushed or expired, now or soon.
    #[must_use]
    pub fn needs_flush(&self) -> bool {
        self.unsure
            || self.stopped
            || self.journal_rows > 0
            || self.storage_full
            || !self.counts.is_empty()
            || self.tallies.changed()
            || self.report_due
    }

    /// Makes the next flush ask D1 what it has, also if there is nothing to copy, and tell D1 of all its series again: D1
    /// deletes series that were not counted for long.
    pub fn ask_d1(&mut self) {
        self.report_due = true;
        self.forget_told();
    }

    /// The newest receipt that D1 took for certain.
    #[must_use]
    pub fn flushed_through(&self) -> u64 {
        self.head.seq.saturating_sub(self.journal_rows)
    }

    /// Notes that D1 has a batch. `stored` is what D1 holds of [`FlushBatch::expected`], in order.
    ///
    /// # Errors
    ///
    /// [`StorageError`]: then every row that is not in D1 is still in the journal.
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
        self.report_due = false;
        self.note_told(batch);
        let Some((first, last)) = batch.range else { return Ok(Confirmed::InD1) };
        let mut stored = stored.iter().skip_while(|(seq, _)| *seq < first);
        for journalled in &batch.hashes {
            if stored.next() != Some(journalled) {
                // This batch's report assumed a confirmation (`Report::journal_rows`). The next report must not.
                self.differs = true;
                self.forget_told();
                return Ok(Confirmed::HashDiffers { seq: journalled.0 });
            }
        }
        // If `differs` was set, this batch's report still counted these rows as journal rows. So another report
        // follows.
        self.report_due = std::mem::take(&mut self.differs);
        let rows = [integer(first)?, integer(last)?];
        storage.exec(sql::KEEP_REPLAYS, &rows)?;
        storage.exec(sql::KEEP_NONCES, &rows)?;
        if self.checkpoint < last {
            self.take_checkpoint(storage, batch.report.at_ms)?;
        }
        set_head(storage, &self.head)?;
        self.tree.append(storage, &batch.leaves)?;
        storage.exec(sql::DROP_KEYS, &rows)?;
        Self::note_flushed(storage, last, batch.report.at_ms)?;
        self.journal_rows = self.journal_rows.saturating_sub(batch.hashes.len() as u64);
        // Only now that D1 has shown that it has them.
        self.forget_flushed(storage, batch.hashes.len())?;
        Ok(Confirmed::InD1)
    }

    /// Makes the next flush tell D1 of all its series again: D1 was restored, and may lack any of them.
    pub fn forget_told(&mut self) {
        self.told_series.clear();
    }

    /// Remembers the series that D1 was told of.
    fn note_told(&mut self, batch: &FlushBatch) {
        if !batch.has_new_series {
            return;
        }
        if self.told_series.len() > MAX_TOLD_SERIES {
            self.told_series.clear();
        }
        self.told_series.extend(batch.metrics.named.iter().cloned());
    }

    /// When the lane's alarm is due, as [`Lane::set_alarm_due`] stored it. Memory does not survive the object's end, and
    /// an alarm that is late because of it would look punctual.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn alarm_due(storage: &impl LaneSql) -> Result<Option<u64>, StorageError> {
        let stored = meta(storage, ALARM_DUE)?;
        stored.map(|at| at.parse().map_err(|_| unreadable("when the alarm is due"))).transpose()
    }

    /// # Errors
    ///
    /// [`StorageError`].
    pub fn set_alarm_due(storage: &impl LaneSql, at_ms: u64) -> Result<(), StorageError> {
        set_meta(storage, ALARM_DUE, at_ms.to_string())
    }

    /// Deletes expired answers and nonces, a bounded number at a time.
    fn expire(&mut self, storage: &impl LaneSql, now_ms: u64) -> Result<(), StorageError> {
        let (most, now) = (Value::Integer(MAX_EXPIRED_ROWS), integer(now_ms)?);
        for (statement, kept_ms) in
            [(sql::EXPIRE_REPLAYS, REPLAY_MS), (sql::EXPIRE_NONCES, NONCE_MS)]
        {
            let before = integer(self.clock.expired_ms(kept_ms))?;
            let through = integer(self.clock.expired_seq(kept_ms))?;
            storage.exec(statement, &[before, most.clone(), through, now.clone()])?;
        }
        let before = integer(self.clock.expired_ms(REPLAY_MS))?;
        storage.exec(sql::FORGET_APPROVALS, &[before, most])?;
        self.check_storage_size(storage);
        Ok(())
    }
}
