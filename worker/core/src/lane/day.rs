//! How much the lane has written today.
//!
//! Rows need no counter: they are the sequence numbers since the day began. Bytes are added up in
//! memory. `meta` has their sum up to a sequence number, at least up to the newest state
//! checkpoint; a start adds the bytes of the journal's rows after it.
//!
//! INVARIANT (the count is exact): a row leaves the journal only after `meta` has its bytes, so a
//! start computes the numbers that the lost memory had.

use super::audit::AuditCount;
use super::storage::{LaneSql, StorageError, Value, integer, meta, set_meta, unreadable, unsigned};
use crate::clock::{DAY_MS, repair_window};
use crate::gate::daily_rows::{DailyRows, Written};
use crate::receipt::ChainHead;
use crate::sql::lane as sql;

const NAME: &str = "day";

/// The day that is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Day {
    /// Days since the Unix epoch; 0 before the first row.
    day: u64,
    /// The last sequence number of the day before.
    begins_after: u64,
    bytes: u64,
    /// The day's audit events that were written.
    told: Vec<&'static str>,
}

impl Day {
    pub(super) fn start(storage: &impl LaneSql) -> Result<Self, StorageError> {
        let Some(stored) = meta(storage, NAME)? else { return Ok(Self::default()) };
        let numbers: Option<Vec<u64>> = stored.split(':').map(|text| text.parse().ok()).collect();
        let Some([day, begins_after, bytes, through]) = numbers.as_deref() else {
            return Err(unreadable("what was written today"));
        };
        let beyond = storage.exec(sql::JOURNAL_BYTES, &[integer(*through)?])?;
        let Some([Value::Integer(beyond)]) = beyond.first().map(Vec::as_slice) else {
            return Err(unreadable("what was written today"));
        };
        let bytes = bytes + unsigned(*beyond)?;
        Ok(Self { day: *day, begins_after: *begins_after, bytes, told: Vec::new() })
    }

    /// What was written on the day of `now_ms`. If the clock goes back by less than
    /// [`crate::clock::CLOCK_TOLERANCE_MS`], the later day counts.
    pub(super) fn written(&self, head: &ChainHead, now_ms: u64) -> Written {
        if now_ms / DAY_MS > self.day {
            return Written::default();
        }
        Written { rows: head.seq.saturating_sub(self.begins_after), bytes: self.bytes }
    }

    /// Moves a day in the future to today, with its count. Returns whether it did.
    pub(super) fn repair_clock(
        &mut self,
        storage: &impl LaneSql,
        head: &ChainHead,
        now_ms: u64,
    ) -> Result<bool, StorageError> {
        let repaired = repair_window(&mut self.day, DAY_MS, now_ms);
        if repaired {
            self.save(storage, head)?;
        }
        Ok(repaired)
    }

    /// Starts the day of `now_ms`, if it is a new one. Call it before the day's first row is
    /// written after `head`.
    pub(super) fn begin(
        &mut self,
        storage: &impl LaneSql,
        head: &ChainHead,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        if now_ms / DAY_MS <= self.day {
            return Ok(());
        }
        *self = Self { day: now_ms / DAY_MS, begins_after: head.seq, bytes: 0, told: Vec::new() };
        self.save(storage, head)
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Stores the count up to `head`.
    pub(super) fn save(
        &self,
        storage: &impl LaneSql,
        head: &ChainHead,
    ) -> Result<(), StorageError> {
        let Self { day, begins_after, bytes, .. } = self;
        set_meta(storage, NAME, format!("{day}:{begins_after}:{bytes}:{}", head.seq))
    }

    /// The audit events that today's count causes and that were not written. After a start they are
    /// written again, with the same ids.
    pub(super) fn untold(
        &mut self,
        daily_rows: DailyRows,
        head: &ChainHead,
        now_ms: u64,
    ) -> Vec<AuditCount> {
        let day = now_ms / DAY_MS;
        let events = daily_rows.events(self.written(head, now_ms));
        let untold: Vec<&'static str> = events.filter(|event| !self.told.contains(event)).collect();
        self.told.extend(&untold);
        let count = |kind: &'static str| AuditCount {
            event_id: format!("{kind}:{day}"),
            kind,
            source: "lane".to_owned(),
            at_ms: now_ms,
            count: 1,
            added: 1,
        };
        untold.into_iter().map(count).collect()
    }
}
