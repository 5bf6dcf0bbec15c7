//! How many series and reports are kept and shown, and the label values that stand in for the rest.

/// Series with names that D1 keeps for one metric of a tenant. Prometheus's advice for a metric is a few hundred; a
/// thousand covers a tenant with some hundred tools. `FLUSH_METRICS` in `sql/d1.rs` has the number too.
pub const MAX_SERIES_OF_METRIC: usize = 1_000;

/// Stored series that one answer shows. At about 150 bytes each, they take 1.5 MB. The series of one tenant fit into
/// it several times. If an operator's answer would have more, it says so.
pub const MAX_RENDERED_SERIES: usize = 10_000;

/// Tenants whose lanes' reports one answer shows. Each has ten gauges.
pub const MAX_RENDERED_TENANTS: usize = 1_000;

const _: () = assert!(
    MAX_RENDERED_SERIES > 2 * 4 * MAX_SERIES_OF_METRIC,
    "a tenant's four metrics with names always fit"
);

/// The most that one event adds to a histogram's sum: as long as the longest approval waits (`MAX_APPROVAL_S`). A longer
/// time is a clock that jumped, and D1's sums are 64-bit integers: a flush that exceeds one would fail for ever.
pub const MAX_OBSERVED_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The names of series beyond [`MAX_SERIES_OF_METRIC`]. No server and no limit can have this name. `FLUSH_METRICS` in
/// `sql/d1.rs` has it too.
pub const OTHER: &str = "_other";

/// A server or tool that is not registered, or was not looked up because the call was denied before.
pub const UNKNOWN: &str = "unknown";

/// The value of the label `tenant` for what belongs to no tenant. No tenant can have this name.
pub const NO_TENANT: &str = "_none";

/// How long a lane's report counts. A lane with nothing to flush reports nothing, and what it said about its
/// lag would otherwise be shown for ever.
pub const REPORT_MS: u64 = 15 * 60_000;
