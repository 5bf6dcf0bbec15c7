//! Metrics: which there are, what a journal row adds to them, and how they are written for Prometheus.
//!
//! A row carries the series that it adds to ([`series`]), and a decision's row the rest of what its own series need
//! ([`decision`]). The flush groups the rows of a batch by series ([`rows`]) and adds them up in D1, and a scrape reads the
//! sums from there ([`render`]). What has no row is tallied in the lane ([`tally`]), and the lane's totals go with its flush.
//!
//! INVARIANT (counted once): a row's series are added in the transaction that writes its receipt, and only if the lane
//! was not flushed as far before. A tally is a total of the lane. D1 adds only the part of it that it has not added
//! yet. So a batch that is repeated changes nothing.
//!
//! INVARIANT (bounded labels): the values of a label are a closed list, or names that an administrator registered.
//! D1 keeps a bounded number of names for each metric of a tenant ([`BOUNDS`]). Names beyond this bound are counted under
//! [`OTHER`].
//!
//! Out of scope: the SQL (`sql/d1/metrics.rs`), and reading D1 (`worker/edge`).

mod bounds;
mod decision;
mod list;
mod render;
mod rows;
mod series;
mod tally;

pub use bounds::{
    BOUNDS, MAX_RENDERED_SERIES, MAX_RENDERED_TENANTS, MetricBound, NO_TENANT, OTHER, REPORT_MS,
    UNCOUNTED_DAYS, UNKNOWN,
};
pub use decision::{CountedDecision, KeyHash, ShownNames};
pub use list::{Definition, Kind, Metric};
pub use render::{CONTENT_TYPE, CounterRow, LaneRow, Scrape};
pub use rows::{BatchMetrics, RowMembers, RowsByMembers, named};
pub use series::{Ended, ReservationEvent, Series};
pub use tally::Tallies;
