//! What the lane stores about pruned receipts, and when it prunes next.

use super::state::Lane;
use super::storage::{LaneSql, StorageError, meta, parse_head, set_meta, unreadable};
use crate::receipt::ChainHead;
use crate::receipt::GENESIS;

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
