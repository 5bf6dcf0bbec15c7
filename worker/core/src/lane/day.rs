//! How much the lane has written down today.
//!
//! Rows cost nothing to count: they are the sequence numbers since the day began. Bytes are added up
//! in memory. What `meta` holds of them reaches to a sequence number, at least to the newest
//! checkpoint; a start adds what the journal holds beyond it.
//!
//! INVARIANT (the count is exact): rows leave the journal only after `meta` has their bytes, so a
//! start comes to the same numbers as the memory that was lost.

use super::audit::AuditCount;
use super::storage::{LaneSql, StorageError, Value, integer, meta, set_meta, unreadable, unsigned};
use crate::clock::{DAY_MS, repair_window};
use crate::gate::budget::{Budget, Written};
use crate::receipt::ChainHead;
use crate::sql::lane as sql;

const NAME: &str = "day";

/// The day that is counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Day {
    /// Counted from the Unix epoch; 0 before anything was written.
    day: u64,
    /// The newest sequence number of the day before.
    begins_after: u64,
    bytes: u64,
    /// Audit events of the day that are written.
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

    /// What was written on the day of `now_ms`. While time runs backwards within
    /// [`crate::clock::CLOCK_TOLERANCE_MS`], the later day counts.
    pub(super) fn written(&self, head: &ChainHead, now_ms: u64) -> Written {
        if now_ms / DAY_MS > self.day {
            return Written::default();
        }
        Written { rows: head.seq.saturating_sub(self.begins_after), bytes: self.bytes }
    }

    /// Counts for today if the day lies in the future, with what was counted for it. Returns whether it
    /// does.
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

    /// Begins the day of `now_ms`, if it is a new one, before its first row is written after `head`.
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

    /// Writes down the count, which reaches to `head`.
    pub(super) fn save(
        &self,
        storage: &impl LaneSql,
        head: &ChainHead,
    ) -> Result<(), StorageError> {
        let Self { day, begins_after, bytes, .. } = self;
        set_meta(storage, NAME, format!("{day}:{begins_after}:{bytes}:{}", head.seq))
    }

    /// The audit events that today's count calls for and that are not written. After a start they
    /// are told again, under the same ids.
    pub(super) fn untold(
        &mut self,
        budget: Budget,
        head: &ChainHead,
        now_ms: u64,
    ) -> Vec<AuditCount> {
        let day = now_ms / DAY_MS;
        let events = budget.events(self.written(head, now_ms));
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
