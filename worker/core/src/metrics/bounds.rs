//! How many series and reports are kept and shown, and the label values that stand in for the rest.

use super::list::Metric;

/// What D1 keeps of one metric of a tenant. `ADD_SERIES` in `sql/d1/metrics.rs` has the numbers too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricBound {
    pub metric: Metric,
    /// Different names: servers with tools, credentials, limits or servers. Names beyond this bound are counted under
    /// [`OTHER`]. Names that D1 has keep their own series, whatever the other labels of a new series are: a server that
    /// begins to fail must not be counted under [`OTHER`].
    pub names_max: usize,
    /// Series with names. Without this bound, each name could have as many as there are values of the other labels.
    pub series_max: usize,
}

const fn bound(metric: Metric, names_max: usize, series_max: usize) -> MetricBound {
    MetricBound { metric, names_max, series_max }
}

/// The bounds of the metrics that have names. Prometheus's advice for a metric is a few hundred names at most.
///
/// - Decisions: a tool has about six pairs of a decision and a reason. There are more than sixty pairs, so the
///   bound of series is needed.
/// - Credentials: each has at most five decisions, so all its series fit.
/// - Limits: each has one kind, until it is replaced by a limit of another kind.
/// - Forwarded calls: each server has at most seven outcomes with ten buckets each, and usually about twenty of these.
///
/// A flush with a series that D1 does not have reads all series of its metric. So the bounds of series also bound what a
/// flush reads.
pub const BOUNDS: [MetricBound; 4] = [
    bound(Metric::Decisions, 300, 1_000),
    bound(Metric::CredentialDecisions, 200, 1_000),
    bound(Metric::LimitsHit, 300, 500),
    bound(Metric::ProxiedSeconds, 50, 1_500),
];

/// Days after its last count until a name is deleted, so that it makes room for another one. Longer than a quarter of a
/// year: a job that runs once a quarter keeps its series.
pub const UNCOUNTED_DAYS: u32 = 100;

/// A tenant's series without names, and those under [`OTHER`]: one for each combination of the other labels. There are
/// about 350.
const OTHER_SERIES: usize = 600;

/// Stored series that one answer shows. At about 150 bytes each, they take 1.5 MB. The series of one tenant always fit. If an operator's
/// answer would have more, it says so.
pub const MAX_RENDERED_SERIES: usize = 10_000;

/// Tenants whose lanes' reports one answer shows. Each has ten gauges.
pub const MAX_RENDERED_TENANTS: usize = 1_000;

const _: () = {
    let [decisions, credentials, limits, proxied] = BOUNDS;
    let named = decisions.series_max + credentials.series_max + limits.series_max;
    let named = named + proxied.series_max;
    assert!(named + OTHER_SERIES <= MAX_RENDERED_SERIES, "a tenant's own metrics always fit");
};

/// The most that one event adds to a histogram's sum: as long as the longest approval waits (`MAX_APPROVAL_S`). A longer
/// time is a clock that jumped, and D1's sums are 64-bit integers: a flush that exceeds one would fail for ever.
pub const MAX_OBSERVED_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The names of series beyond [`BOUNDS`]. No server and no limit can have this name. The
/// statements in `sql/d1/metrics.rs` have it too.
pub const OTHER: &str = "_other";

/// A server or tool that is not registered, or was not looked up because the call was denied before.
pub const UNKNOWN: &str = "unknown";

/// The value of the label `tenant` for what belongs to no tenant. No tenant can have this name.
pub const NO_TENANT: &str = "_none";

/// How long a lane's report counts. A lane with nothing to flush reports nothing, and what it said about its
/// lag would otherwise be shown for ever.
pub const REPORT_MS: u64 = 15 * 60_000;
