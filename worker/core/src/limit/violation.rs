//! Why a limit stops a call.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::amount::Amount;
use super::definition::Kind;
use super::record::Limit;
use super::rule::Rule;
use super::window::{OffsetS, Window};
use crate::bounds::RETRY_AFTER_UNAVAILABLE_S;
use crate::bucket::{Rate, RateStatus};
use crate::id::rfc3339;
use crate::text_enum::text_enum;

/// The limit that a call violates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ViolatedLimit)]
pub struct Violation {
    pub limit_id: String,
    pub kind: Kind,
    /// Why: `exceeded`, `unreadable` if the call does not have the number that the limit needs, or `unavailable` if
    /// the limit's counter did not answer, or the call counts for too many shared limits.
    pub why: Why,
    /// The limit's bound; null for `hours`. Of a `rate`: its capacity.
    pub max: Option<Amount>,
    pub window: Option<Window>,
    /// Seconds in which an empty bucket fills; null for other kinds than `rate`.
    pub window_s: Option<u64>,
    /// What is left; null for `hours`, and if it is not known.
    pub remaining: Option<Amount>,
    /// What the call needs; null if it cannot be read.
    pub requested: Option<Amount>,
    /// Seconds after which the same call may pass; null if it never does.
    pub retry_after_s: Option<u64>,
    /// Whether lanes share what is used up, so that other agents may have used it. Callers do not see this.
    #[serde(skip)]
    pub shared: bool,
}

text_enum! {
    /// Why a limit stops a call.
    Why {
        Exceeded = "exceeded",
        Unreadable = "unreadable",
        Unavailable = "unavailable",
    }
}

impl Violation {
    pub(super) fn exceeded(limit: &Limit) -> Box<Self> {
        let rate = match limit.rule {
            Rule::Rate(rate) => Some(rate),
            _ => None,
        };
        Box::new(Self {
            limit_id: limit.limit_id.clone(),
            kind: limit.kind,
            why: Why::Exceeded,
            max: limit.rule.max(),
            window: limit.rule.calendar().map(|calendar| calendar.window),
            window_s: rate.map(Rate::window_s),
            // A call takes one, and no whole one is left.
            remaining: rate.map(|_| Amount::ZERO),
            requested: None,
            retry_after_s: None,
            shared: false,
        })
    }

    /// The call needs `requested`, and only `remaining` is left.
    #[cold]
    pub(super) fn above(
        limit: &Limit,
        remaining: Amount,
        requested: Amount,
        retry_after_s: Option<u64>,
    ) -> Box<Self> {
        let (remaining, requested) = (Some(remaining), Some(requested));
        Box::new(Self { remaining, requested, retry_after_s, ..*Self::exceeded(limit) })
    }

    /// The bucket of a limit of the kind `rate` has too little.
    #[cold]
    pub(super) fn too_soon(limit: &Limit, retry_after_s: u64) -> Box<Self> {
        let retry_after_s = Some(retry_after_s.max(1));
        Box::new(Self { retry_after_s, ..*Self::exceeded(limit) })
    }

    /// A limit of the kind `hours` does not allow calls now.
    #[cold]
    pub(super) fn closed(limit: &Limit, now_ms: u64, offset_s: OffsetS) -> Box<Self> {
        let opens_ms = limit.opens_at(now_ms, offset_s);
        let retry_after_s = opens_ms.map(|it| it.saturating_sub(now_ms).div_ceil(1_000));
        Box::new(Self { retry_after_s, ..*Self::exceeded(limit) })
    }

    #[cold]
    pub(super) fn unreadable(limit: &Limit) -> Box<Self> {
        Box::new(Self { why: Why::Unreadable, ..*Self::exceeded(limit) })
    }

    pub(super) fn unavailable(limit: &Limit) -> Box<Self> {
        let retry_after_s = Some(RETRY_AFTER_UNAVAILABLE_S.into());
        let (why, remaining) = (Why::Unavailable, None);
        Box::new(Self { why, remaining, retry_after_s, shared: true, ..*Self::exceeded(limit) })
    }

    /// The call counts for too many shared limits, and this is the first that is too many.
    pub(crate) fn too_many_counts(limit: &Limit) -> Box<Self> {
        Box::new(Self { retry_after_s: None, shared: false, ..*Self::unavailable(limit) })
    }

    /// A request of an agent needs more than is left of its request rate. `limit_id`: the limit that sets the rate.
    pub(crate) fn of_requests(limit_id: &str, status: RateStatus, cost: u32, wait_s: u64) -> Self {
        Self {
            limit_id: limit_id.to_owned(),
            kind: Kind::Rate,
            why: Why::Exceeded,
            max: Some(Amount::whole(status.limit.into())),
            window: None,
            window_s: Some(status.window_s),
            remaining: Some(Amount::whole(status.remaining.into())),
            requested: Some(Amount::whole(cost.into())),
            retry_after_s: Some(wait_s),
            shared: false,
        }
    }

    /// What a model or a person can act on.
    #[must_use]
    pub fn sentence(&self, now_ms: u64) -> String {
        let Self { limit_id, max, requested, .. } = self;
        if self.why == Why::Unreadable {
            return match self.kind {
                Kind::PerCall | Kind::Amount => format!(
                    "The limit `{limit_id}` needs a number in the arguments, zero or larger, in its currency if it \
                     names one. A number with more than 15 digits must be a string."
                ),
                _ => format!("The time zone of the limit `{limit_id}` is unknown."),
            };
        }
        let wait = self.retry_after_s.map(|wait_s| {
            let at = rfc3339(now_ms + wait_s * 1_000);
            format!(" Try again at {at}, in {wait_s} s.")
        });
        let wait = wait.unwrap_or_default();
        if self.why == Why::Unavailable {
            return format!("The counter of the limit `{limit_id}` does not answer.{wait}");
        }
        let number = |amount: &Option<Amount>| amount.unwrap_or_default().to_string();
        let (max, requested) = (number(max), number(requested));
        let left = self.remaining.map_or_else(String::new, |left| format!("; {left} is left"));
        let mut text = match self.kind {
            Kind::Hours => format!("The limit `{limit_id}` does not allow calls at this time."),
            Kind::PerCall => format!(
                "The limit `{limit_id}` allows at most {max} in one call, and this call has {requested}."
            ),
            Kind::Rate => format!("The limit `{limit_id}` allows no call so soon."),
            Kind::Concurrency => {
                format!(
                    "The limit `{limit_id}` allows {max} calls at once, and so many are in progress."
                )
            }
            Kind::Quota | Kind::Amount | Kind::Budget => {
                let window = self.window.map_or("", Window::as_str);
                format!(
                    "The limit `{limit_id}` allows {max} per {window}{left}, and this call needs {requested}."
                )
            }
        };
        text.push_str(&wait);
        text
    }
}
