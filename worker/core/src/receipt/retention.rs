//! How long records are kept.
//!
//! Out of scope: which receipts may be deleted ([`crate::lane`]), the deletion itself (`worker/edge`), and when it happens
//! (the lane's alarm).

use crate::bounds::HEAD_LANE;
use crate::clock::DAY_MS;
use crate::tlog::TILE_WIDTH;

/// Days that records are kept by default: a year, and a month to look back on it.
pub const DEFAULT_RETENTION_DAYS: u32 = 400;

/// Receipts, events or approvals that one batch deletes, each with its index entries: as many rows
/// as one flush writes.
pub const MAX_PRUNED: u32 = 500;

/// Receipts that one batch looks at: enough to contain a whole tile, wherever they begin.
pub const MAX_OLD_RECEIPTS: u32 = 2 * TILE_WIDTH as u32;

/// How long a lane waits after it has pruned everything that is due. Retention periods are whole
/// days, so once a day is enough.
pub const PRUNE_INTERVAL_MS: u64 = DAY_MS;

/// Records of a tenant from before this time may be deleted. At least those of a day are kept, whatever D1 says.
#[must_use]
pub fn cutoff_ms(retention_days: Option<u32>, now_ms: u64) -> u64 {
    let days = retention_days.unwrap_or(DEFAULT_RETENTION_DAYS).max(1);
    now_ms.saturating_sub(u64::from(days).saturating_mul(DAY_MS))
}

/// Days that receipts of a lane are kept. The head log lists the tenant's lanes and has no personal data. So it is kept for at
/// least the default period: with a shorter one, it could lose the entry of a lane.
#[must_use]
pub fn receipt_days(lane: u16, retention_days: Option<u32>) -> Option<u32> {
    match lane {
        HEAD_LANE => retention_days.map(|days| days.max(DEFAULT_RETENTION_DAYS)),
        _ => retention_days,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_counted_in_days_and_never_begins_before_time() {
        for (days, now_ms, expected) in [
            (Some(1), 3 * DAY_MS + 5, 2 * DAY_MS + 5),
            (Some(0), 3 * DAY_MS + 5, 2 * DAY_MS + 5),
            (None, 1_000 * DAY_MS, 600 * DAY_MS),
            (Some(36_500), 1_000, 0),
        ] {
            assert_eq!(cutoff_ms(days, now_ms), expected);
        }
    }
}
