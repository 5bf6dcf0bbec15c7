//! Reads one log of the tenant, entry by entry, while it is written.

use gateward_admin::api::receipts::{ReceiptEnds, ReceiptLink};
use gateward_core::lane::{LogName, encode_hashes};
use gateward_core::receipt::{GENESIS, StoredReceipt};
use gateward_core::tlog::{Hash, TILE_WIDTH};
use serde_json::{Value, from_str, json};

use super::form::{broken, deleted, log_line, smaller};
use super::output::Output;
use crate::chain::{self, PAGE_ROWS_MAX, ReceiptPage, stored};
use crate::failure::Failure;
use crate::runner::Runner;

/// A log while it is written.
pub(super) struct Log {
    pub name: LogName,
    /// The number of the receipt with the index 0.
    pub first: u64,
    /// Entries that the log's newest checkpoint covers.
    pub size: u64,
    pub note: String,
    /// The index of the first entry in the export: all before were deleted because of their age.
    pub begin: u64,
    /// The index of the next entry.
    pub next: u64,
    /// Receipts that were read and not written yet, in order.
    read: std::vec::IntoIter<StoredReceipt>,
    waiting: Option<StoredReceipt>,
}

/// The next entry of a log.
pub(super) enum Entry {
    /// Its body.
    Body(String),
    /// Its row is lost. Its hash is in the tree.
    Lost(Hash),
}

impl Log {
    fn new(name: LogName, first: u64, (note, size): (String, u64), begin: u64, next: u64) -> Self {
        let read = Vec::new().into_iter();
        Self { name, first, size, note, begin, next, read, waiting: None }
    }

    /// The line of the next entry.
    pub fn line(&self, entry: &Entry) -> Value {
        let (log, index) = (self.name.to_string(), self.next);
        match entry {
            Entry::Body(body) => {
                json!({ "type": "entry", "log": log, "index": index, "body": body })
            }
            Entry::Lost(leaf) => {
                let leaf_hash = encode_hashes(&[*leaf]);
                json!({ "type": "missing", "log": log, "index": index, "leaf_hash": leaf_hash })
            }
        }
    }
}

impl Runner {
    /// Goes on with a log that an earlier run began.
    pub(super) fn continue_log(
        &self,
        output: &mut Output,
        name: LogName,
        (first, begin, next): (u64, u64, u64),
    ) -> Result<Log, Failure> {
        let checkpoint = self.checkpoint(&name)?;
        if checkpoint.1 < next {
            return Err(smaller(&name));
        }
        output.announce(next, checkpoint.1);
        Ok(Log::new(name, first, checkpoint, begin, next))
    }

    pub(super) fn begin_log(
        &self,
        output: &mut Output,
        name: LogName,
        first: u64,
    ) -> Result<Log, Failure> {
        let checkpoint = self.checkpoint(&name)?;
        let size = checkpoint.1;
        let pruned = self.pruned_through(name.lane)?.filter(|pruned| pruned.seq >= first);
        let begin = pruned.as_ref().map_or(0, |pruned| pruned.seq + 1 - first);
        if begin > size {
            return Err(Failure::Other(format!(
                "the checkpoint of `{name}` is older than receipts that were deleted because of their age: try again later"
            )));
        }
        let edge = self.edge(&name, begin, size)?;
        output.announce(begin, size);
        let mut log = Log::new(name, first, checkpoint, begin, begin);
        let prev_hash = match pruned {
            Some(pruned) => pruned.receipt_hash,
            None if first == 1 => GENESIS.to_owned(),
            // The lane is older than its log.
            None => {
                self.read_receipts(&mut log)?;
                log.waiting = log.read.next();
                let next = log.waiting.as_ref();
                next.map_or_else(|| GENESIS.to_owned(), |next| next.prev_receipt_hash.clone())
            }
        };
        output.line(&log_line(&log.name, first, begin, &edge, &prev_hash))?;
        Ok(log)
    }

    /// Reads the entry with the index `next`, which is below the size.
    pub(super) fn read_entry(&self, log: &mut Log) -> Result<Entry, Failure> {
        let seq = log.first + log.next;
        if log.waiting.is_none() {
            log.waiting = log.read.next();
        }
        if log.waiting.is_none() {
            self.read_receipts(log)?;
            log.waiting = log.read.next();
        }
        if let Some(receipt) = log.waiting.take_if(|receipt| receipt.seq == seq) {
            return Ok(Entry::Body(receipt.body));
        }
        if self.pruned_through(log.name.lane)?.is_some_and(|it| it.seq >= seq) {
            return Err(deleted(&log.name));
        }
        let tile = self.tile(&log.name, 0, log.next / TILE_WIDTH, log.size)?;
        let at = usize::try_from(log.next % TILE_WIDTH).unwrap_or_default();
        tile.get(at).map(|leaf| Entry::Lost(*leaf)).ok_or_else(|| broken("a tile"))
    }

    fn read_receipts(&self, log: &mut Log) -> Result<(), Failure> {
        let rows = u32::try_from(log.size - log.next).unwrap_or(u32::MAX);
        let receipts = self.receipts(log.name.lane, log.first + log.next, rows)?;
        log.read = receipts.into_iter();
        Ok(())
    }

    /// Receipts of a lane from a number on, in order: at most so many, and at most a page.
    pub(super) fn receipts(
        &self,
        lane: u16,
        from: u64,
        rows: u32,
    ) -> Result<Vec<StoredReceipt>, Failure> {
        let request = chain::page(lane, from, rows.clamp(1, PAGE_ROWS_MAX));
        let page = ReceiptPage::parse(&self.client.send(&request)?.text)?;
        page.receipts.iter().map(|receipt| stored(receipt.get())).collect()
    }

    /// The last receipt of a lane that was deleted because of its age.
    fn pruned_through(&self, lane: u16) -> Result<Option<ReceiptLink>, Failure> {
        let ends = self.client.send(&chain::ends(lane))?;
        let ends: ReceiptEnds = from_str(&ends.text).map_err(|_| broken("the ends of a chain"))?;
        Ok(ends.pruned_through)
    }
}
