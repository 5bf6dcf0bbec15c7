//! Receipts that D1 lost for good: it was restored to an earlier time, and the lane no longer had them.
//!
//! The lane remembers which receipts are lost. So it does not ask D1 for them again, and reports each range once. It
//! can also delete the receipts after a lost range when they are old: a gap that the lane knows is not a change of the
//! chain.

use serde::{Deserialize, Serialize};

use super::state::Lane;
use super::storage::{LaneSql, StorageError, first_text, integer, meta, set_meta, unreadable};
use super::tree::{decode_hashes, encode_hashes};
use crate::json;
use crate::receipt::{ChainHead, StoredReceipt};
use crate::sql::lane as sql;
use crate::tlog::Hash;

/// The name in `meta` under which they are kept.
const LOST: &str = "lost";

/// Ranges that a lane remembers: each is the work of another restore of D1. With more, the oldest stay, and retention stops
/// at the first that the lane does not know.
const MAX_LOST: usize = 64;

/// Receipts that follow each other, and that D1 lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lost {
    pub first: u64,
    pub last: u64,
    /// The leaf of the receipt before them, in base64; empty if the lane did not have it when they were lost.
    before: String,
    /// The hash of the last of them.
    hash: String,
}

impl Lost {
    /// The leaf of the receipt before them.
    pub fn before(&self) -> Option<Hash> {
        decode_hashes(&self.before)?.first().copied()
    }

    /// The last of them, as a link of the chain.
    pub fn end(&self) -> ChainHead {
        ChainHead { seq: self.last, hash: self.hash.clone() }
    }

    pub fn has(&self, seq: u64) -> bool {
        (self.first..=self.last).contains(&seq)
    }
}

impl Lane {
    /// Ranges of lost receipts, oldest first.
    pub(super) fn lost(storage: &impl LaneSql) -> Result<Vec<Lost>, StorageError> {
        let Some(stored) = meta(storage, LOST)? else { return Ok(Vec::new()) };
        serde_json::from_str(&stored).map_err(|_| unreadable("which receipts are lost"))
    }

    /// Remembers that the receipts from `first` to `last` are lost. The lane still has all receipts after
    /// them. Returns false if the lane knew this already.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn note_lost(
        &self,
        storage: &impl LaneSql,
        first: u64,
        last: u64,
    ) -> Result<bool, StorageError> {
        let mut all = Self::lost(storage)?;
        if all.iter().any(|it| (it.first, it.last) == (first, last)) {
            return Ok(false);
        }
        let index = (first - 1).checked_sub(self.tree.first);
        let leaf = index.map(|index| self.tree.node(storage, 0, index)).transpose()?.flatten();
        let hash = match last == self.head.seq {
            true => self.head.hash.clone(),
            false => hash_before(storage, last + 1)?,
        };
        let before = leaf.map(|leaf| encode_hashes(&[leaf])).unwrap_or_default();
        // D1 was restored to a time before `first`, so it also lost every later receipt: ranges after `first` are part
        // of the new range. Ranges up to the anchor were deleted because of their age.
        let anchor = Self::anchor(storage)?.seq;
        all.retain(|it| it.last < first && it.last > anchor);
        if all.len() < MAX_LOST {
            all.push(Lost { first, last, before, hash });
        }
        // Plain data always serializes. An empty text could not be read.
        set_meta(storage, LOST, json::to_string(&all))?;
        Ok(true)
    }

    /// The receipt, if D1 must have it: it was neither deleted because of its age nor lost.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn expected_in_d1(storage: &impl LaneSql, seq: u64) -> Result<Option<u64>, StorageError> {
        let is_gone = seq <= Self::anchor(storage)?.seq
            || Self::lost(storage)?.iter().any(|lost| lost.has(seq));
        Ok((!is_gone).then_some(seq))
    }
}

/// The hash of the receipt before this one, which the lane still has.
fn hash_before(storage: &impl LaneSql, seq: u64) -> Result<String, StorageError> {
    let rows = storage.exec(sql::HASH_BEFORE, &[integer(seq)?])?;
    first_text(&rows).map(str::to_owned).ok_or_else(|| unreadable("a kept row"))
}

/// The ranges that D1 still lacks. A range is left out if D1 has one of its receipts again: D1 may have been
/// restored from another backup.
pub(super) fn still_lost(mut lost: Vec<Lost>, receipts: &[StoredReceipt]) -> Vec<Lost> {
    lost.retain(|lost| !receipts.iter().any(|receipt| lost.has(receipt.seq)));
    lost
}
