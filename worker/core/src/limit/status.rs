//! What is left of limits.

use serde::Serialize;
use utoipa::ToSchema;

use super::amount::Amount;
use super::book::{At, Book, Counter, REQUESTS};
use super::definition::{Covers, Kind};
use super::record::{Limit, RequestRate};
use super::rule::Rule;
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
}

/// What is left of a limit, as [`Status`] has it.
#[derive(Default)]
pub(super) struct Left {
    pub(super) remaining: Option<Amount>,
    pub(super) reserved: Option<Amount>,
    pub(super) reset_s: Option<u64>,
}

/// The state of a limit.
#[must_use]
pub fn status(book: &Book, limit: &Limit, at: At) -> Status {
    let Left { remaining, reserved, reset_s } = left(book, limit, at);
    Status {
        limit_id: limit.limit_id.clone(),
        covers: Covers::Calls,
        kind: limit.kind,
        window: limit.rule.calendar().map(|calendar| calendar.window),
        max: limit.rule.max(),
        remaining,
        reserved,
        reset_s,
    }
}

/// What is left of a limit.
pub(super) fn left(book: &Book, limit: &Limit, at: At) -> Left {
    let reset_s = |ends_at_ms: u64| Some(ends_at_ms.saturating_sub(at.now_ms).div_ceil(1_000));
    match (&limit.rule, book.counter_of(limit)) {
        (Rule::Hours { .. } | Rule::PerCall { .. }, _) => Left::default(),
        (rule, Some(Counter::Lease(lease))) => Left {
            remaining: Some(lease.left()),
            reserved: Some(lease.reserved),
            // The lease of a rate ends long before the counter's bucket is full.
            reset_s: rule
                .calendar()
                .and_then(|calendar| limit.period(calendar, at.now_ms, at.offset_s))
                .filter(|period| lease.number <= period.number)
                .and_then(|_| reset_s(lease.ends_at_ms)),
        },
        (Rule::Rate(rate), counter) => {
            let bucket = match counter {
                Some(Counter::Rate(bucket)) => *bucket,
                _ => Bucket::full(*rate, at.now_ms),
            };
            of_bucket(*rate, bucket, at.now_ms)
        }
        (Rule::Concurrency { max }, counter) => {
            let open = match counter {
                Some(Counter::Open(open)) => *open,
                _ => 0,
            };
            Left {
                remaining: Some(Amount::whole(max.saturating_sub(open))),
                reserved: Some(Amount::whole(open)),
                reset_s: None,
            }
        }
        (
            Rule::Quota { max, calendar }
            | Rule::Amount { max, calendar, .. }
            | Rule::Budget { max, calendar },
            counter,
        ) => {
            let period = limit.period(calendar, at.now_ms, at.offset_s);
            let sum = match (period, counter) {
                (Some(period), Some(Counter::Sum(sum))) if sum.number >= period.number => Some(sum),
                _ => None,
            };
            let (used, reserved) =
                sum.map_or((Amount::ZERO, Amount::ZERO), |sum| (sum.used, sum.reserved));
            // If the clock went back, the window that counts is a later one, and its end is not known.
            let period = period.filter(|period| sum.is_none_or(|sum| sum.number == period.number));
            Left {
                remaining: Some(max.minus(used)),
                reserved: Some(reserved),
                reset_s: period.and_then(|period| reset_s(period.ends_at_ms)),
            }
        }
    }
}

impl RequestRate {
    /// The state of the limit, by a [`Book::of_requests`].
    #[must_use]
    pub fn status(&self, book: &Book, at: At) -> Status {
        let bucket = match book.counter(REQUESTS) {
            Some(Counter::Rate(bucket)) => *bucket,
            _ => Bucket::full(self.rate, at.now_ms),
        };
        let Left { remaining, reserved, reset_s } = of_bucket(self.rate, bucket, at.now_ms);
        Status {
            limit_id: self.limit_id.clone(),
            covers: Covers::Requests,
            kind: Kind::Rate,
            window: None,
            max: Some(Amount::whole(self.rate.capacity().into())),
            remaining,
            reserved,
            reset_s,
        }
    }
}

/// What is left of a limit of the kind `rate`.
fn of_bucket(rate: Rate, mut bucket: Bucket, now_ms: u64) -> Left {
    bucket.charge(rate, now_ms, 0);
    let state = bucket.status(rate);
    Left {
        remaining: Some(Amount::whole(state.remaining.into())),
        reserved: None,
        reset_s: Some(state.reset_s),
    }
}
