//! How many rows and bytes a tenant may write in a UTC day, so that it cannot fill the database that it
//! shares with others.
//!
//! The tenant's bounds are split evenly over its lanes. Each lane counts what it wrote itself: the rows of its
//! journal, and the bytes of these rows and of the rows of runs. Only calls are denied when a bound is
//! reached. Outcomes of calls that were forwarded, decisions on approvals, and restores are still written.

use crate::registry::TenantRecord;

/// Rows that a tenant may write in a day by default: three a second, all day long. A row takes
/// about 2.4 KB in D1, so they take 0.6 GB of D1's 10 GB. A tenant that writes as many every day
/// shows up in the audit for 17 days before the database is full.
pub const DEFAULT_ROWS_PER_DAY: u32 = 250_000;

/// Bytes of journal rows that a tenant may write in a day by default: [`DEFAULT_ROWS_PER_DAY`]
/// ordinary rows of 2 KB. With its indexes, D1 takes about 1.2 times as much.
pub const DEFAULT_BYTES_PER_DAY: u32 = 500_000_000;

/// The percentage of a bound at which the audit warns.
const NEAR_PERCENT: u64 = 80;

/// What a lane has written in one UTC day.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    pub rows: u64,
    pub bytes: u64,
}

/// The bound that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    Rows,
    Bytes,
}

/// A lane's share of the rows and bytes that its tenant may write in a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DailyRows {
    rows: u64,
    bytes: u64,
}

impl DailyRows {
    /// Shares are rounded up, so together they exceed the tenant's bound by less than one row or byte
    /// per lane.
    #[must_use]
    pub fn of(tenant: Option<&TenantRecord>) -> Self {
        let lanes = tenant.and_then(|tenant| tenant.lanes).unwrap_or(1).max(1);
        let share = |own: Option<u32>, default| {
            u64::from(own.unwrap_or(default)).div_ceil(u64::from(lanes))
        };
        Self {
            rows: share(tenant.and_then(|tenant| tenant.rows_per_day), DEFAULT_ROWS_PER_DAY),
            bytes: share(tenant.and_then(|tenant| tenant.bytes_per_day), DEFAULT_BYTES_PER_DAY),
        }
    }

    /// The bound that `written` has reached.
    #[must_use]
    pub fn exhausted(self, written: Written) -> Option<Exhausted> {
        if written.rows >= self.rows {
            Some(Exhausted::Rows)
        } else if written.bytes >= self.bytes {
            Some(Exhausted::Bytes)
        } else {
            None
        }
    }

    /// The audit events that `written` causes. Each is written once a day.
    pub fn events(self, written: Written) -> impl Iterator<Item = &'static str> {
        let near =
            |used: u64, bound: u64| used.saturating_mul(100) >= bound.saturating_mul(NEAR_PERCENT);
        [
            (near(written.rows, self.rows), "tenant_rows_near_limit"),
            (written.rows >= self.rows, "tenant_rows_limit_reached"),
            (near(written.bytes, self.bytes), "tenant_bytes_near_limit"),
            (written.bytes >= self.bytes, "tenant_bytes_limit_reached"),
        ]
        .into_iter()
        .filter_map(|(holds, event)| holds.then_some(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_has_its_share_of_the_tenants_bounds() {
        let tenant = |lanes, rows, bytes| -> TenantRecord {
            let record = serde_json::json!({"status": "active", "epoch": 1, "lanes": lanes,
                "rows_per_day": rows, "bytes_per_day": bytes});
            serde_json::from_value(record).unwrap()
        };
        let defaults = (u64::from(DEFAULT_ROWS_PER_DAY), u64::from(DEFAULT_BYTES_PER_DAY));
        for (lanes, rows, bytes, expected) in [
            (None, None, None, defaults),
            (Some(1), Some(10), Some(1_000), (10, 1_000)),
            (Some(4), Some(10), Some(1_000), (3, 250)),
            (Some(4), Some(1), None, (1, defaults.1 / 4)),
        ] {
            let share = DailyRows::of(Some(&tenant(lanes, rows, bytes)));
            assert_eq!((share.rows, share.bytes), expected, "{lanes:?} {rows:?} {bytes:?}");
        }
    }

    #[test]
    fn the_audit_warns_at_80_percent_and_the_bound_ends_at_100() {
        let share = DailyRows { rows: 10, bytes: 100 };
        for (rows, bytes, exhausted, events) in [
            (0, 0, None, vec![]),
            (7, 79, None, vec![]),
            (8, 79, None, vec!["tenant_rows_near_limit"]),
            (0, 80, None, vec!["tenant_bytes_near_limit"]),
            (
                10,
                0,
                Some(Exhausted::Rows),
                vec!["tenant_rows_near_limit", "tenant_rows_limit_reached"],
            ),
            (
                9,
                100,
                Some(Exhausted::Bytes),
                vec![
                    "tenant_rows_near_limit",
                    "tenant_bytes_near_limit",
                    "tenant_bytes_limit_reached",
                ],
            ),
        ] {
            let written = Written { rows, bytes };
            assert_eq!(share.exhausted(written), exhausted, "{rows} {bytes}");
            assert_eq!(share.events(written).collect::<Vec<_>>(), events, "{rows} {bytes}");
        }
    }
}
