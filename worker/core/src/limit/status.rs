//! What is left of limits.

use serde::Serialize;
use utoipa::ToSchema;

use super::amount::Amount;
use super::book::{At, Book, Counter, REQUESTS};
use super::definition::{Covers, Kind};
use super::lease::{Lease, Terms};
use super::record::{Limit, RequestRate};
use super::rule::Rule;
use super::usage::{Covered, Ledger};
use super::window::Window;
use crate::bucket::{Bucket, Rate};

/// The state of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = LimitState)]
pub struct Status {
    pub limit_id: String,
    /// Calls of tools, or all requests of the agent.
    pub covers: Covers,
    pub kind: Kind,
    pub window: Option<Window>,
    /// The bound; null for `hours`.
    pub max: Option<Amount>,
    /// What is left; null for `hours` and `per_call`.
    pub remaining: Option<Amount>,
    /// What calls in progress hold of it; it is not left. Null for a shared limit.
    pub reserved: Option<Amount>,
    /// Seconds until the window ends, or until the bucket is full; null if there is neither.
    pub reset_s: Option<u64>,
    /// Seconds of the window, or in which an empty bucket fills.
    #[serde(skip)]
    pub window_s: Option<u64>,
}

/// The states of the limits that cover calls of a tool, except for limits without a number.
#[must_use]
pub fn statuses(
    ledgers: &[Ledger<'_>],
    tool: &str,
    Covered { reads, writes }: Covered,
    at: At,
) -> Vec<Status> {
    let of_ledger = |ledger: &Ledger<'_>| {
        let covered = ledger.limits.iter().filter(|limit| limit.covers(tool, reads, writes));
        let states = covered.map(|limit| {
            let mut status = status(&ledger.book, limit, at);
            let lasts = |lease: &Lease| at.now_ms < lease.ends_at_ms;
            if ledger.leased.is_some() && !ledger.book.lease(&limit.counter).is_some_and(lasts) {
                // Without a lease that lasts, the lane does not know what is left.
                status.remaining = None;
            }
            status
        });
        states.filter(|status| status.max.is_some()).collect::<Vec<_>>()
    };
    ledgers.iter().flat_map(of_ledger).collect()
}

/// The state of a limit.
#[must_use]
pub fn status(book: &Book, limit: &Limit, at: At) -> Status {
    let mut status = Status {
        limit_id: limit.limit_id.clone(),
        covers: Covers::Calls,
        kind: limit.kind,
        window: limit.rule.calendar().map(|calendar| calendar.window),
        max: limit.rule.max(),
        remaining: None,
        reserved: None,
        reset_s: None,
        window_s: None,
    };
    if let Some(lease) = book.lease(&limit.counter) {
        status.max = Terms::of(&limit.rule).map(|terms| terms.max());
        status.remaining = Some(lease.left());
        status.reserved = Some(lease.reserved);
        // The lease of a rate ends long before the counter's bucket is full.
        let ends_with_window = !matches!(limit.kind, Kind::Concurrency | Kind::Rate);
        let wait_ms = lease.ends_at_ms.saturating_sub(at.now_ms);
        status.reset_s = Some(wait_ms.div_ceil(1_000)).filter(|_| ends_with_window);
        status.window_s = match &limit.rule {
            Rule::Rate(rate) => Some(rate.window_s()),
            rule => rule.calendar().map(|calendar| calendar.window.longest_s()),
        };
        return status;
    }
    match &limit.rule {
        Rule::Hours { .. } | Rule::PerCall { .. } => {}
        Rule::Rate(rate) => {
            let bucket = book.bucket(&limit.counter, *rate, at.now_ms);
            return of_bucket((&limit.limit_id, Covers::Calls), *rate, bucket, at.now_ms);
        }
        Rule::Concurrency { max } => {
            let open = book.open(limit);
            status.remaining = Some(Amount::whole(max.saturating_sub(open)));
            status.reserved = Some(Amount::whole(open));
        }
        Rule::Quota { max, calendar }
        | Rule::Amount { max, calendar, .. }
        | Rule::Budget { max, calendar } => {
            let period = limit.period(calendar, at.now_ms, at.offset_s);
            let sum = match (period, book.counter(&limit.counter)) {
                (Some(period), Some(Counter::Sum(sum))) if sum.number >= period.number => {
                    (sum.used, sum.reserved)
                }
                _ => (Amount::ZERO, Amount::ZERO),
            };
            status.remaining = Some(max.minus(sum.0));
            status.reserved = Some(sum.1);
            let ends_at_ms = period.map(|period| period.ends_at_ms);
            status.reset_s = ends_at_ms.map(|end| end.saturating_sub(at.now_ms).div_ceil(1_000));
            status.window_s = Some(calendar.window.longest_s());
        }
    }
    status
}

impl RequestRate {
    /// The state of the limit, by a [`Book::of_requests`].
    #[must_use]
    pub fn status(&self, book: &Book, at: At) -> Status {
        let bucket = book.bucket(REQUESTS, self.rate, at.now_ms);
        of_bucket((&self.limit_id, Covers::Requests), self.rate, bucket, at.now_ms)
    }
}

/// The state of a limit of the kind `rate`.
fn of_bucket(
    (limit_id, covers): (&str, Covers),
    rate: Rate,
    mut bucket: Bucket,
    now_ms: u64,
) -> Status {
    bucket.charge(rate, now_ms, 0);
    let state = bucket.status(rate);
    Status {
        limit_id: limit_id.to_owned(),
        covers,
        kind: Kind::Rate,
        window: None,
        max: Some(Amount::whole(state.limit.into())),
        remaining: Some(Amount::whole(state.remaining.into())),
        reserved: None,
        reset_s: Some(state.reset_s),
        window_s: Some(state.window_s),
    }
}
