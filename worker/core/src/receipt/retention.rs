//! How long records are kept, and which receipts may be deleted.
//!
//! INVARIANT (pruning hides nothing): a receipt is deleted only after the chain was verified from
//! the last deleted receipt up to it. So the anchor, which is the number and the hash of the last
//! deleted receipt, is as good a start of the chain as the lane's first receipt. A chain that was
//! changed is not pruned: people must be able to look at it.
//!
//! Out of scope: the deletion itself (`worker/edge`), and when it happens (the lane's alarm).

use super::body::{self as receipt, Break, StoredReceipt};
use super::chain::ChainHead;
use crate::clock::DAY_MS;

/// Days that records are kept by default: a year, and a month to look back on it.
pub const DEFAULT_RETENTION_DAYS: u32 = 400;

/// Receipts, events or approvals that one batch deletes, each with its index entries: as many rows
/// as one flush writes.
pub const MAX_PRUNED: u32 = 500;

/// How long a lane waits after it has pruned everything that is due. Retention periods are whole
/// days, so once a day is enough.
pub const PRUNE_INTERVAL_MS: u64 = DAY_MS;

/// Records from before this time may be deleted.
#[must_use]
pub fn cutoff_ms(retention_days: Option<u32>, now_ms: u64) -> u64 {
    let days = retention_days.unwrap_or(DEFAULT_RETENTION_DAYS);
    now_ms.saturating_sub(u64::from(days).saturating_mul(DAY_MS))
}

/// The lane's next anchor: the last receipt after `anchor` that is from before `cutoff_ms`, with
/// all receipts between. Each receipt comes with its time. `None` if there is none.
///
/// # Errors
///
/// The first [`Break`]. Then nothing may be deleted.
pub fn next_anchor(
    anchor: &ChainHead,
    receipts: Vec<(u64, StoredReceipt)>,
    cutoff_ms: u64,
) -> Result<Option<ChainHead>, Break> {
    let old = receipts.into_iter().take_while(|(at_ms, _)| *at_ms < cutoff_ms);
    let old: Vec<StoredReceipt> = old.map(|(_, receipt)| receipt).collect();
    receipt::verify(&old, anchor.seq + 1, Some(&anchor.hash))?;
    Ok(old.last().map(|last| ChainHead { seq: last.seq, hash: last.receipt_hash.clone() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_counted_in_days_and_never_begins_before_time() {
        for (days, now_ms, expected) in [
            (Some(1), 3 * DAY_MS + 5, 2 * DAY_MS + 5),
            (None, 1_000 * DAY_MS, 600 * DAY_MS),
            (Some(36_500), 1_000, 0),
        ] {
            assert_eq!(cutoff_ms(days, now_ms), expected);
        }
    }
}
