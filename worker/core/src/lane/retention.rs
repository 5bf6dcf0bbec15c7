//! Which receipts may be deleted because of their age, what the lane stores about it, and when it does it next.
//!
//! INVARIANT (pruning hides nothing): a receipt is deleted only if it is the one that the lane sealed. Its age is the
//! time in its own body. The lane does not trust D1: its tree confirms the newest receipt that it looks at, and the
//! chain links all earlier ones to that one. The anchor is the number and the hash of the last deleted receipt. So the
//! anchor is as good a start of the chain as the lane's first receipt. A chain that was changed is not pruned, because
//! people must be able to look at it. The chain may lack only receipts that the lane knows as lost ([`super::lost`]).
//! For such a gap, the lane remembers the leaf of the receipt before it and the hash of the last lost receipt. The leaf
//! confirms the receipts before the gap. The first receipt after the gap links to the hash.

use super::lost::{Lost, still_lost};
use super::state::Lane;
use super::storage::{LaneSql, StorageError, meta, parse_head, set_meta, unreadable};
use crate::bounds::HEAD_LANE;
use crate::field::parse_time;
use crate::json::Json;
use crate::receipt::retention::MAX_PRUNED;
use crate::receipt::{self, Break, ChainHead, GENESIS, StoredReceipt};
use crate::tlog::{Edge, TILE_HEIGHT, TILE_WIDTH, leaf_hash};

const ANCHOR: &str = "anchor";
const NEXT_PRUNE: &str = "next_prune";

impl Lane {
    /// The last pruned receipt; number 0 and [`GENESIS`] if none was pruned.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn anchor(storage: &impl LaneSql) -> Result<ChainHead, StorageError> {
        match meta(storage, ANCHOR)? {
            Some(stored) => parse_head(&stored),
            None => Ok(ChainHead { seq: 0, hash: GENESIS.to_owned() }),
        }
    }

    /// The anchor after the next batch. `receipts` are the oldest in D1. The anchor is the last one whose time is before
    /// `cutoff_ms` and whose number is at most `through`; `None` if there is no such receipt.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, the first [`Break`] of the chain. Then nothing may be deleted.
    pub fn next_anchor(
        &self,
        storage: &impl LaneSql,
        receipts: &[StoredReceipt],
        through: u64,
        cutoff_ms: u64,
    ) -> Result<Result<Option<ChainHead>, Break>, StorageError> {
        let mut anchor = Self::anchor(storage)?;
        let known = receipts.partition_point(|it| it.seq <= through.min(self.tree.through()));
        let receipts = receipts.get(..known).unwrap_or_default();
        let lost = still_lost(Self::lost(storage)?, receipts);
        if let Some(lost) = lost.iter().find(|it| it.first == anchor.seq + 1) {
            anchor = lost.end();
        }
        // The next gap, if all receipts before it are there.
        let gap = lost.iter().find_map(|gap| {
            let before = receipts.get(..receipts.partition_point(|it| it.seq < gap.first))?;
            before.last().is_some_and(|last| last.seq + 1 == gap.first).then_some((gap, before))
        });
        let (gap, receipts) = gap.map_or((None, receipts), |(gap, before)| (Some(gap), before));
        if let Err(broken) = receipt::verify(receipts, anchor.seq + 1, Some(&anchor.hash)) {
            return Ok(Err(broken));
        }
        let confirmed = match self.confirmed(storage, receipts, gap)? {
            Ok(confirmed) => confirmed,
            Err(broken) => return Ok(Err(broken)),
        };
        let is_old = |it: &&StoredReceipt| sealed_ms(it).is_some_and(|at_ms| at_ms < cutoff_ms);
        let old = confirmed.iter().take(MAX_PRUNED as usize).take_while(is_old);
        let mut count = old.count();
        // Entries of the head log are read as bundles, so only whole bundles of it are deleted. One that lost entries is not
        // whole.
        let is_before_gap = gap.is_some() && count == receipts.len();
        if self.identity().is_some_and(|(_, lane)| *lane == HEAD_LANE) && !is_before_gap {
            let end = anchor.seq + count as u64;
            count = count.saturating_sub((end % TILE_WIDTH) as usize);
        }
        let last = count.checked_sub(1).and_then(|last| confirmed.get(last));
        Ok(Ok(last.map(|last| ChainHead { seq: last.seq, hash: last.receipt_hash.clone() })))
    }

    /// The consecutive receipts up to the newest one that the tree confirms. The tree confirms a receipt by
    /// its leaf. If the lane no longer keeps the leaf, the root of a full tile confirms all receipts of that
    /// tile. Receipts from before the tree began are confirmed by the chain alone. `gap`: the lost receipts
    /// that come next.
    fn confirmed<'r>(
        &self,
        storage: &impl LaneSql,
        receipts: &'r [StoredReceipt],
        gap: Option<&Lost>,
    ) -> Result<Result<&'r [StoredReceipt], Break>, StorageError> {
        let first = self.tree.first;
        let Some(size) = receipts.last().and_then(|last| (last.seq + 1).checked_sub(first)) else {
            return Ok(Ok(receipts));
        };
        let (count, width, node) = match size.checked_sub(1) {
            None => return Ok(Ok(receipts)),
            Some(index) => {
                match self.tree.node(storage, 0, index)?.or(gap.and_then(Lost::before)) {
                    Some(leaf) => (size, 1, Some(leaf)),
                    None => match (size / TILE_WIDTH).checked_sub(1) {
                        None => return Ok(Ok(&[])),
                        Some(tile) => {
                            let root = self.tree.node(storage, TILE_HEIGHT, tile)?;
                            ((tile + 1) * TILE_WIDTH, TILE_WIDTH, root)
                        }
                    },
                }
            }
        };
        let end = receipts.partition_point(|it| it.seq < first + count);
        let confirmed = receipts.get(..end).unwrap_or_default();
        let begin = end.checked_sub(width as usize);
        let Some(tail) = begin.and_then(|begin| confirmed.get(begin..)) else {
            return Ok(Ok(&[]));
        };
        let mut edge = Edge::default();
        for receipt in tail {
            edge.append(leaf_hash(receipt.body.as_bytes()), &mut |_, _, _| {});
        }
        if node == Some(edge.root()) {
            return Ok(Ok(confirmed));
        }
        let problem = "it is not what the lane sealed: somebody changed the chain".to_owned();
        Ok(Err(Break { seq: tail.first().map_or(0, |receipt| receipt.seq), problem }))
    }

    /// Stores the anchor. Receipts up to it may be deleted only afterwards: otherwise a receipt
    /// could be missing that the lane does not know as pruned.
    ///
    /// # Errors
    ///
    /// [`StorageError`]. Then nothing may be deleted.
    pub fn set_anchor(storage: &impl LaneSql, anchor: &ChainHead) -> Result<(), StorageError> {
        set_meta(storage, ANCHOR, format!("{}:{}", anchor.seq, anchor.hash))
    }

    /// When the lane prunes next; `None` before the first time.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn next_prune(storage: &impl LaneSql) -> Result<Option<u64>, StorageError> {
        let stored = meta(storage, NEXT_PRUNE)?;
        stored.map(|at| at.parse().map_err(|_| unreadable("when to prune"))).transpose()
    }

    /// # Errors
    ///
    /// [`StorageError`].
    pub fn set_next_prune(storage: &impl LaneSql, at_ms: u64) -> Result<(), StorageError> {
        set_meta(storage, NEXT_PRUNE, at_ms.to_string())
    }
}

/// The time at which a receipt was sealed.
fn sealed_ms(receipt: &StoredReceipt) -> Option<u64> {
    let body = receipt::read(&receipt.body).ok()?;
    body.get("time").and_then(Json::as_str).and_then(parse_time)
}
