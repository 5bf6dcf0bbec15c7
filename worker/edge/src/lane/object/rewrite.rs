//! Rows that a restored D1 lacks: the lane writes again those that it keeps.

use gateward_core::lane::{Lane, LogName};
use gateward_core::log::Event;

use super::state::{Failure, GateLane};
use crate::d1::logs;

/// Statements that one comparison spends on writing rows again. Few, so that new rows do not wait long: a run of the alarm
/// compares after each of its batches. A run may send 1,000 statements to D1.
const MAX_REWRITES: usize = 10;

/// What D1 has after rows were written again.
pub(super) enum Rewritten {
    /// More are to be written.
    Part,
    /// Everything that the lane still had, the last row too.
    All,
    /// The same, but the lane no longer had the last row.
    Lost,
}

impl GateLane {
    /// Writes the rows up to `through` again, if a restored D1 lacks them. Each call writes a bounded number
    /// of rows. Logs which receipts are lost.
    ///
    /// D1 was restored to an earlier time, so it lacks the newest rows. The rows are written in order. So if
    /// a write fails, the newest receipt in D1 shows where to continue.
    pub(super) async fn write_again(
        &self,
        log: &LogName,
        through: u64,
    ) -> Result<Rewritten, Failure> {
        let from = logs::last_receipt(&self.env, log, through).await? + 1;
        let (anchor, first) = self.with_lane(|lane, storage| {
            Ok((Lane::anchor(storage)?.seq, lane.first_kept(storage, from)?))
        })?;
        let from = from.max(anchor + 1);
        let lost = through.min(first - 1);
        if from <= lost && self.with_lane(|lane, storage| lane.note_lost(storage, from, lost))? {
            self.log(Event::ReceiptsLost, &format!("receipts {from} to {lost}"));
        }
        let mut next = first;
        for _ in 0..MAX_REWRITES {
            let rows = self.with_lane(|lane, storage| lane.kept_rows(storage, next))?;
            let Some(rows) = rows else { break };
            logs::write_rows(&self.env, log, &rows.rows).await?;
            next = rows.range.1 + 1;
        }
        if next > first {
            self.log(Event::LogRestored, &format!("receipts {first} to {}", next - 1));
        }
        Ok(match next > through {
            false => Rewritten::Part,
            true if first > through => Rewritten::Lost,
            true => Rewritten::All,
        })
    }
}
