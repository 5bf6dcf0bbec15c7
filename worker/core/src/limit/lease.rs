//! A lane's part of a limit that the lanes of a tenant share.
//!
//! A counter object ([`super::pool`]) grants parts of the limit to lanes. What it granted to a lane and what the
//! lane gave back are two sums that only grow, and both sides tell each other the sums and not the differences.
//! So a message that is lost, repeated or late changes nothing.
//!
//! INVARIANT (never more): a lane uses at most what it was granted and did not give back. It stores what it gives back
//! before it tells the counter.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::record::Limit;
use super::rule::{Calendar, Rule};
use crate::bucket::Rate;

/// What a counter must know of a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Terms {
    /// Calls in progress.
    Slots { max: Amount },
    /// Calls by a token bucket.
    Tokens(Rate),
    /// A sum over a window.
    Sum { max: Amount, calendar: Calendar },
}

impl Terms {
    /// `None` for kinds of limits that are not used up.
    #[must_use]
    pub fn of(rule: &Rule) -> Option<Self> {
        match rule {
            Rule::Hours { .. } | Rule::PerCall { .. } => None,
            Rule::Rate(rate) => Some(Self::Tokens(*rate)),
            Rule::Concurrency { max } => Some(Self::Slots { max: Amount::whole(*max) }),
            Rule::Quota { max, calendar }
            | Rule::Amount { max, calendar, .. }
            | Rule::Budget { max, calendar } => {
                Some(Self::Sum { max: *max, calendar: calendar.clone() })
            }
        }
    }

    /// The bound.
    #[must_use]
    pub fn max(&self) -> Amount {
        match self {
            Self::Slots { max } | Self::Sum { max, .. } => *max,
            Self::Tokens(rate) => Amount::whole(rate.capacity().into()),
        }
    }
}

/// What a lane holds of a limit in one window, or what it holds of calls in progress. Stored as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lease {
    /// The counter's number of the window.
    pub number: u64,
    /// When the window ends, by the counter's clock.
    pub ends_at_ms: u64,
    /// All that was ever granted.
    granted: Amount,
    /// All that was ever given back.
    returned: Amount,
    /// Includes what is reserved.
    used: Amount,
    pub(super) reserved: Amount,
    /// The revision of the limit when it was granted. `None`: the last answer was `overdrawn`, or the lane knows of the
    /// grant only by [`heard`]. If this is not the limit's present revision, the lane gives the lease back before it
    /// uses it. Only a call that waited may use what was granted to it.
    revision: Option<u64>,
    /// What the counter had left after that grant.
    left: Amount,
}

/// A lane asks a counter for parts of a limit, one for each call that waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    pub lane: u16,
    /// How many lanes the tenant has.
    pub lanes: u16,
    /// The limit's revision that the lane knows.
    pub revision: u64,
    /// The window whose lease the lane has, and the sums of it.
    pub number: u64,
    pub granted: Amount,
    pub returned: Amount,
    /// The part of that which no call uses and no call waits for.
    pub free: Amount,
    /// First come, first served. At most [`MAX_WAITING`].
    pub needs: Vec<Amount>,
}

/// Calls of a lane that share one request. Further calls wait for the next request.
pub const MAX_WAITING: usize = 1_000;

/// A counter's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    pub number: u64,
    pub ends_at_ms: u64,
    /// All that the lane was ever granted in this window.
    pub granted: Amount,
    /// All that it ever gave back in this window, as the counter knows.
    pub returned: Amount,
    /// What the lane must also give back, at once.
    pub back: Amount,
    /// What the counter has left.
    pub left: Amount,
    /// Whether the lanes hold more than the bound, or the lane asked with an old revision of the limit. Then what one
    /// call gives back is not available to the next call.
    pub overdrawn: bool,
    /// Seconds after which there may be more; `None` if this is not known.
    pub retry_after_s: Option<u64>,
}

/// A lane gave back what it did not use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    pub number: u64,
    /// All that it ever gave back in this window.
    pub returned: Amount,
}

impl Lease {
    /// The part of the lease that is not used.
    #[must_use]
    pub fn available(&self) -> Amount {
        self.granted.minus(self.returned).minus(self.used)
    }

    /// Whether the lease is for this revision of the limit, and its window is not over.
    #[must_use]
    pub fn holds(&self, revision: u64, now_ms: u64) -> bool {
        self.revision == Some(revision) && now_ms < self.ends_at_ms
    }

    /// What may be left of the limit: the unused part of the lease, and what the counter had left when it last
    /// answered.
    #[must_use]
    pub fn left(&self) -> Amount {
        self.available().plus(self.left)
    }

    pub(super) fn take(&mut self, amount: Amount, reserved: bool) {
        self.used = self.used.plus(amount);
        if reserved {
            self.reserved = self.reserved.plus(amount);
        }
    }

    /// A call that took `amount` ended, and `kept` of it stays used.
    pub(super) fn settle(&mut self, amount: Amount, kept: Amount, reserved: bool) {
        if reserved {
            self.reserved = self.reserved.minus(amount);
        }
        self.used = self.used.minus(amount.minus(kept));
    }

    /// Gives back all but `keep`.
    pub fn give_back(&mut self, keep: Amount) -> Returned {
        self.returned = self.returned.plus(self.available().minus(keep));
        Returned { number: self.number, returned: self.returned }
    }
}

/// The lease of a limit after its counter said what it granted in a window. A message about an older window is
/// ignored.
#[must_use]
pub fn heard(lease: Option<Lease>, number: u64, granted: Amount) -> Lease {
    match lease {
        Some(lease) if lease.number > number => lease,
        Some(lease) if lease.number == number => {
            Lease { granted: lease.granted.max(granted), ..lease }
        }
        _ => Lease { granted, ..none(number) },
    }
}

const fn none(number: u64) -> Lease {
    Lease {
        number,
        ends_at_ms: 0,
        granted: Amount::ZERO,
        returned: Amount::ZERO,
        used: Amount::ZERO,
        reserved: Amount::ZERO,
        revision: None,
        left: Amount::ZERO,
    }
}

/// The lease of a limit after an answer of its counter.
#[must_use]
pub fn granted(lease: Option<Lease>, revision: u64, answer: &Granted) -> Lease {
    let known = lease.filter(|lease| lease.number == answer.number);
    let lease = known.unwrap_or(none(answer.number));
    Lease {
        ends_at_ms: answer.ends_at_ms,
        granted: lease.granted.max(answer.granted),
        returned: lease.returned.max(answer.returned).plus(answer.back),
        revision: Some(revision).filter(|_| !answer.overdrawn),
        left: answer.left,
        ..lease
    }
}

/// The request of a lane that has this lease, and that holds the part `held` of it for calls that waited.
#[must_use]
pub fn ask(
    lease: Option<&Lease>,
    held: Amount,
    (lane, lanes): (u16, u16),
    revision: u64,
    needs: Vec<Amount>,
) -> Ask {
    let none = (0, Amount::ZERO, Amount::ZERO, Amount::ZERO);
    let (number, granted, returned, free) = lease.map_or(none, |lease| {
        (lease.number, lease.granted, lease.returned, lease.available().minus(held))
    });
    Ask { lane, lanes, revision, number, granted, returned, free, needs }
}

/// A part of a shared limit that a call needs and its lane does not have.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    /// [`Limit::counter`]: the counter object.
    pub counter: Rc<str>,
    /// The subject whose count it is.
    pub subject: String,
    pub terms: Terms,
    /// The revision of the limit.
    pub revision: u64,
    pub amount: Amount,
}

impl Need {
    /// The name of the lease's book in the lane.
    #[must_use]
    pub fn book(&self) -> String {
        book_name(&self.counter, &self.subject)
    }
}

/// The name of a lease's book.
#[must_use]
pub fn book_name(counter: &str, subject: &str) -> String {
    ["lease/", counter, "/", subject].concat()
}

/// The answer to a call that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The lane holds this amount for the call. The amount is part of the lease with this number, which was granted
    /// for this revision of the limit.
    Granted {
        amount: Amount,
        number: u64,
        revision: u64,
    },
    Refused {
        left: Amount,
        retry_after_s: Option<u64>,
    },
    /// The counter did not answer in time.
    Unavailable,
}

/// What a step knows about the lease of one limit.
#[derive(Debug, Clone)]
pub struct Leased {
    pub subject: String,
    /// The number of a lease, and the part of it that the lane holds for other calls that wait.
    pub held: (u64, Amount),
    /// What the counter answered to this call; `None` if it was not asked.
    pub answer: Option<Answer>,
}

impl Leased {
    /// Whether the call was granted what it needs from this lease, for this revision of the limit.
    pub(super) fn is_granted(&self, number: u64, revision: u64) -> bool {
        matches!(self.answer, Some(Answer::Granted { number: of, revision: under, .. })
            if of == number && under == revision)
    }

    /// The part of the lease with this number that the lane holds for other calls.
    pub(super) fn held_of(&self, number: u64) -> Amount {
        if self.held.0 == number { self.held.1 } else { Amount::ZERO }
    }

    pub(super) fn need(&self, limit: &Limit, amount: Amount) -> Option<Need> {
        let terms = Terms::of(&limit.rule)?;
        let (counter, subject) = (Rc::clone(&limit.counter), self.subject.clone());
        Some(Need { counter, subject, terms, revision: limit.revision, amount })
    }
}
