//! Writes the log of a lane.

use gateward_admin::api::receipts::{ReceiptEnds, ReceiptLink};
use gateward_core::lane::{LogName, encode_hashes};
use gateward_core::receipt::{GENESIS, StoredReceipt};
use gateward_core::tlog::TILE_WIDTH;
use serde_json::{from_str, json};

use super::form::{broken, deleted, log_line, smaller};
use super::output::{BegunLane, Output};
use crate::chain::{self, PAGE_ROWS_MAX, ReceiptPage, stored};
use crate::failure::Failure;
use crate::runner::Runner;

/// A lane's log while it is written.
pub(super) struct LaneLog {
    pub name: LogName,
    first: u64,
    /// Entries that the lane's newest checkpoint covers.
    pub size: u64,
    pub note: String,
    /// The index of the first entry in the export: all before were deleted because of their age.
    begin: u64,
    /// The last deleted receipt, as the newest entry of the head log says.
    pub pruned_through: u64,
    /// The index of the next entry.
    next: u64,
    /// Receipts that were read and not written yet, in order.
    read: std::vec::IntoIter<StoredReceipt>,
    waiting: Option<StoredReceipt>,
}

impl LaneLog {
    /// Whether the head log says that what comes before the export was deleted because of its age.
    pub fn is_deletion_recorded(&self) -> bool {
        self.begin == 0 || self.pruned_through >= self.first + self.begin - 1
    }
}

impl Runner {
    /// Goes on with a lane's log that an earlier run began.
    pub(super) fn continue_lane(
        &self,
        output: &mut Output,
        tenant: &str,
        begun: &BegunLane,
    ) -> Result<LaneLog, Failure> {
        let name = LogName { tenant: tenant.to_owned(), lane: begun.lane };
        let (note, size) = self.checkpoint(&name)?;
        let &BegunLane { first, begin, pruned_through, next, .. } = begun;
        if size < next {
            return Err(smaller(&name));
        }
        output.announce(next, size);
        let read = Vec::new().into_iter();
        Ok(LaneLog { name, first, size, note, begin, pruned_through, next, read, waiting: None })
    }

    pub(super) fn begin_lane(
        &self,
        output: &mut Output,
        name: LogName,
        first: u64,
    ) -> Result<LaneLog, Failure> {
        let (note, size) = self.checkpoint(&name)?;
        let pruned = self.pruned_through(name.lane)?.filter(|pruned| pruned.seq >= first);
        let begin = pruned.as_ref().map_or(0, |pruned| pruned.seq + 1 - first).min(size);
        let edge = self.edge(&name, begin, size)?;
        output.announce(begin, size);
        let mut lane = LaneLog {
            name,
            first,
            size,
            note,
            begin,
            pruned_through: 0,
            next: begin,
            read: Vec::new().into_iter(),
            waiting: None,
        };
        let prev_hash = match pruned {
            Some(pruned) => pruned.receipt_hash,
            None if first == 1 => GENESIS.to_owned(),
            // The lane is older than its log.
            None => {
                self.read_receipts(&mut lane)?;
                let next = lane.read.next();
                let prev_hash = next.as_ref().map(|receipt| receipt.prev_receipt_hash.clone());
                lane.waiting = next;
                prev_hash.unwrap_or_else(|| GENESIS.to_owned())
            }
        };
        output.line(&log_line(&lane.name, first, begin, &edge, &prev_hash))?;
        Ok(lane)
    }

    /// Writes a lane's entries below `size`.
    pub(super) fn write_through(
        &self,
        output: &mut Output,
        lane: &mut LaneLog,
        size: u64,
    ) -> Result<(), Failure> {
        let log = lane.name.to_string();
        while lane.next < size.min(lane.size) {
            let (index, seq) = (lane.next, lane.first + lane.next);
            if lane.waiting.is_none() {
                lane.waiting = lane.read.next();
            }
            if lane.waiting.is_none() {
                self.read_receipts(lane)?;
                lane.waiting = lane.read.next();
            }
            let line = match lane.waiting.take_if(|receipt| receipt.seq == seq) {
                Some(receipt) => {
                    json!({ "type": "entry", "log": log, "index": index, "body": receipt.body })
                }
                None if self.pruned_through(lane.name.lane)?.is_some_and(|it| it.seq >= seq) => {
                    return Err(deleted(&log));
                }
                // The row is lost. Its hash is in the tree.
                None => {
                    let tile = self.tile(&lane.name, 0, index / TILE_WIDTH, lane.size)?;
                    let at = usize::try_from(index % TILE_WIDTH).unwrap_or_default();
                    let leaf = tile.get(at).ok_or_else(|| broken("a tile"))?;
                    let leaf_hash = encode_hashes(&[*leaf]);
                    json!({ "type": "missing", "log": log, "index": index, "leaf_hash": leaf_hash })
                }
            };
            output.entry(&line)?;
            lane.next += 1;
        }
        Ok(())
    }

    fn read_receipts(&self, lane: &mut LaneLog) -> Result<(), Failure> {
        let left = u32::try_from(lane.size - lane.next).unwrap_or(u32::MAX);
        let from = lane.first + lane.next;
        let request = chain::page(lane.name.lane, from, left.clamp(1, PAGE_ROWS_MAX));
        let page = ReceiptPage::parse(&self.client.send(&request)?.text)?;
        let receipts: Result<Vec<_>, _> =
            page.receipts.iter().map(|receipt| stored(receipt.get())).collect();
        lane.read = receipts?.into_iter();
        Ok(())
    }

    /// The last receipt of a lane that was deleted because of its age.
    fn pruned_through(&self, lane: u16) -> Result<Option<ReceiptLink>, Failure> {
        let ends = self.client.send(&chain::ends(lane))?;
        let ends: ReceiptEnds = from_str(&ends.text).map_err(|_| broken("the ends of a chain"))?;
        Ok(ends.pruned_through)
    }
}
