//! A book: how much of the limits of one agent or one credential was used, or a lane's lease of one shared limit.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::definition::{Kind, Limit, REQUESTS, Unclear};
use super::lease::{self, Answer, Granted, Lease, Leased, Need, Returned};
use super::numbers::Numbers;
use super::reservation::{Ending, Reservation, Source, Take};
use super::rule::{Calendar, Rule};
use super::violation::Violation;
use super::window::{self, Local, OffsetS, Period, Window};
use crate::bucket::{Bucket, Rate};
use crate::clock::DAY_MS;
use crate::json::Json;

/// Which limits cover a call: those of reads, those of writes, or both if only its caller says that it writes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Covered {
    pub reads: bool,
    pub writes: bool,
}

/// A call, as far as limits read it.
#[derive(Debug, Clone, Copy)]
pub struct Usage<'a> {
    /// `server/tool`.
    pub tool: &'a str,
    pub covered: Covered,
    pub input: &'a Json,
    /// What the tool costs.
    pub cost: Amount,
    /// Whether Gateward forwards it, and so sees how it ends.
    pub forwarded: bool,
}

/// The time of a call.
#[derive(Debug, Clone, Copy)]
pub struct At {
    pub now_ms: u64,
    pub offset_s: OffsetS,
}

/// The limits of one subject, with its book.
#[derive(Debug, Clone, Default)]
pub struct Ledger<'a> {
    /// The book's name in the lane's storage.
    pub name: Rc<str>,
    pub limits: &'a [Rc<Limit>],
    pub book: Book,
    /// Present if the book holds the lease of one limit that lanes share.
    pub leased: Option<Leased>,
}

/// What a call takes of its limits, if it passes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checked {
    pub takes: Vec<Take>,
    /// What its lane must ask for before the call can be decided.
    pub needs: Vec<Need>,
}

/// What a call takes of one limit.
enum Taken {
    Nothing,
    Some(Take),
    NotHeld(Need),
}

/// The counters of one subject by [`Limit::counter`]; there are few. Stored as JSON: members are only added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Book {
    counters: Vec<(Rc<str>, Counter)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Counter {
    Rate(Bucket),
    /// Forwarded calls in progress.
    Open(u64),
    Sum(Sum),
    /// A part of a limit that lanes share.
    Lease(Lease),
}

/// What was used in the newest window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) window: Window,
    /// The window's number.
    pub(super) number: u64,
    /// When it was last used.
    at_ms: u64,
    /// Includes what is reserved.
    pub(super) used: Amount,
    pub(super) reserved: Amount,
}

/// What a step changes. It is written with the step's row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// Books by name.
    pub books: Vec<(String, Book)>,
    pub reservation: Option<Reservation>,
    /// The decision whose reservation ends.
    pub settles: Option<String>,
}

/// Checks all limits that cover a call, in the order of [`Kind::ALL`]. Changes nothing but the request rate.
///
/// # Errors
///
/// The first limit that the call violates.
pub fn check(
    ledgers: &mut [Ledger<'_>],
    usage: &Usage<'_>,
    at: At,
) -> Result<Checked, Box<Violation>> {
    let mut checked = Checked::default();
    let mut numbers = Numbers::new(usage.input);
    for kind in Kind::ALL {
        for ledger in &mut *ledgers {
            let covered = |limit: &&Rc<Limit>| {
                limit.kind == kind
                    && limit.covers(usage.tool, usage.covered.reads, usage.covered.writes)
            };
            for limit in ledger.limits.iter().filter(covered) {
                match ledger.book.check(limit, ledger.leased.as_ref(), usage, &mut numbers, at)? {
                    Taken::Nothing => {}
                    Taken::Some(take) => {
                        checked.takes.push(Take { book: Rc::clone(&ledger.name), ..take });
                    }
                    Taken::NotHeld(need) => checked.needs.push(need),
                }
            }
        }
    }
    Ok(checked)
}

/// Uses what [`check`] returned. `reserves`: the call is forwarded, and [`settle`] follows.
pub fn commit(ledgers: &mut [Ledger<'_>], takes: &[Take], reserves: bool, at: At) {
    for ledger in ledgers {
        for take in takes.iter().filter(|take| take.book == ledger.name) {
            ledger.book.commit(take, reserves, at);
        }
        ledger.book.forget_all_but(ledger.limits);
    }
}

/// Settles what a call took of one book.
pub fn settle((name, book): (&str, &mut Book), reservation: &Reservation, ending: Ending) {
    for take in reservation.takes.iter().filter(|take| &*take.book == name) {
        book.settle(take, reservation.forwarded, ending);
    }
}

impl Book {
    #[must_use]
    pub const fn new() -> Self {
        Self { counters: Vec::new() }
    }

    fn check<'a>(
        &mut self,
        limit: &'a Limit,
        leased: Option<&Leased>,
        usage: &Usage<'_>,
        numbers: &mut Numbers<'a>,
        at: At,
    ) -> Result<Taken, Box<Violation>> {
        let one = Amount::whole(1);
        let (amount, source) = match &limit.rule {
            Rule::Hours { days, hours, time_zone } => {
                let Some(local) = Local::at(time_zone, at.now_ms, at.offset_s) else {
                    return Err(Violation::unreadable(limit));
                };
                let times = (days.as_deref(), hours.as_deref());
                if window::is_open(local, times.0, times.1) {
                    return Ok(Taken::Nothing);
                }
                let opens_ms = window::opens_at(time_zone, at.now_ms, times, at.offset_s);
                let wait_ms = opens_ms.map(|opens_ms| opens_ms.saturating_sub(at.now_ms));
                let retry_after_s = wait_ms.map(|wait_ms| wait_ms.div_ceil(1_000));
                return Err(Box::new(Violation { retry_after_s, ..*Violation::exceeded(limit) }));
            }
            Rule::PerCall { max, measured } => {
                return match numbers.of(measured) {
                    None => Err(Violation::unreadable(limit)),
                    Some(amount) if amount <= *max => Ok(Taken::Nothing),
                    Some(amount) => Err(Box::new(Violation {
                        remaining: Some(*max),
                        requested: Some(amount),
                        ..*Violation::exceeded(limit)
                    })),
                };
            }
            Rule::Concurrency { .. } if !usage.forwarded => return Ok(Taken::Nothing),
            Rule::Concurrency { .. } => (one, Source::Progress),
            Rule::Rate(_) | Rule::Quota { .. } => (one, Source::Call),
            Rule::Amount { measured, .. } => match numbers.of(measured) {
                Some(amount) => (amount, Source::Argument),
                None => return Err(Violation::unreadable(limit)),
            },
            Rule::Budget { .. } => (usage.cost, Source::Cost),
        };
        if let Some(leased) = leased {
            return self.check_lease(limit, leased, (amount, source), at);
        }
        let number = match &limit.rule {
            Rule::Rate(rate) => {
                return self.charge(limit, *rate, at.now_ms).map(|()| Taken::Nothing);
            }
            Rule::Concurrency { max } => {
                self.check_open(limit, *max)?;
                None
            }
            rule => match rule.sum() {
                Some((max, calendar)) => {
                    Some(self.check_sum(limit, (max, amount), calendar, at)?)
                }
                None => None,
            },
        };
        Ok(Taken::Some(take(limit, number, amount, source)))
    }

    /// Whether the lane holds this amount of a shared limit for this call.
    fn check_lease(
        &mut self,
        limit: &Limit,
        leased: &Leased,
        (amount, source): (Amount, Source),
        at: At,
    ) -> Result<Taken, Box<Violation>> {
        let Some(need) = leased.need(limit, amount) else { return Ok(Taken::Nothing) };
        let max = need.terms.max();
        if let Some(Counter::Lease(lease)) = self.counter_mut(&limit.counter)
            && (leased.is_granted(lease.number, need.revision)
                || lease.holds(need.revision, at.now_ms))
            && amount <= lease.available().minus(leased.held_of(lease.number))
        {
            if limit.kind == Kind::Rate {
                lease.take(amount, false);
                return Ok(Taken::Nothing);
            }
            return Ok(Taken::Some(take(limit, Some(lease.number), amount, source)));
        }
        match leased.answer {
            _ if amount == Amount::ZERO => Ok(Taken::Nothing),
            // The amount is above the whole limit, so no counter could grant it, and none is asked.
            None if amount > max && limit.kind != Kind::Rate => Err(Box::new(Violation {
                requested: Some(amount),
                retry_after_s: None,
                shared: true,
                ..*Violation::exceeded(limit)
            })),
            None | Some(Answer::Granted { .. }) => Ok(Taken::NotHeld(need)),
            Some(Answer::Unavailable) => Err(Violation::unavailable(limit)),
            Some(Answer::Refused { left, retry_after_s }) => Err(Box::new(Violation {
                remaining: Some(left).filter(|_| limit.kind != Kind::Rate),
                requested: Some(amount).filter(|_| limit.kind != Kind::Rate),
                retry_after_s: retry_after_s.filter(|_| amount <= max),
                shared: true,
                ..*Violation::exceeded(limit)
            })),
        }
    }

    /// The lease in it; `None` if there is none.
    #[must_use]
    pub fn lease(&self, counter: &str) -> Option<&Lease> {
        match self.counter(counter) {
            Some(Counter::Lease(lease)) => Some(lease),
            _ => None,
        }
    }

    /// Takes a counter's answer.
    pub fn granted(&mut self, counter: &Rc<str>, revision: u64, answer: &Granted) {
        let lease = lease::granted(self.lease(counter).cloned(), revision, answer);
        self.set(counter, Counter::Lease(lease));
    }

    /// Takes what a counter granted in a window, in case its answer was lost.
    pub fn heard(&mut self, counter: &Rc<str>, number: u64, granted: Amount) {
        let lease = lease::heard(self.lease(counter).cloned(), number, granted);
        self.set(counter, Counter::Lease(lease));
    }

    /// Gives back all but `keep` of a lease; `None` if there is none.
    pub fn give_back(&mut self, counter: &str, keep: Amount) -> Option<Returned> {
        match self.counter_mut(counter) {
            Some(Counter::Lease(lease)) => Some(lease.give_back(keep)),
            _ => None,
        }
    }

    /// A book of an agent's requests, whose bucket is in the agent's state.
    #[must_use]
    pub fn of_requests(bucket: Bucket) -> Self {
        Self { counters: vec![(REQUESTS.into(), Counter::Rate(bucket))] }
    }

    /// A stored book; `None` if it cannot be read.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn counter(&self, name: &str) -> Option<&Counter> {
        self.counters.iter().find(|(id, _)| **id == *name).map(|(_, counter)| counter)
    }

    fn counter_mut(&mut self, name: &str) -> Option<&mut Counter> {
        self.counters.iter_mut().find(|(id, _)| **id == *name).map(|(_, counter)| counter)
    }

    fn set(&mut self, name: &Rc<str>, counter: Counter) {
        match self.counter_mut(name) {
            Some(known) => *known = counter,
            None => self.counters.push((Rc::clone(name), counter)),
        }
    }

    /// Forwarded calls in progress.
    pub(super) fn open(&self, limit: &Limit) -> u64 {
        match self.counter(&limit.counter) {
            Some(Counter::Open(open)) => *open,
            _ => 0,
        }
    }

    pub(super) fn bucket(&self, limit: &Limit, rate: Rate, now_ms: u64) -> Bucket {
        match self.counter(&limit.counter) {
            Some(Counter::Rate(bucket)) => *bucket,
            _ => Bucket::full(rate, now_ms),
        }
    }

    /// Takes one request from a bucket.
    fn charge(&mut self, limit: &Limit, rate: Rate, now_ms: u64) -> Result<(), Box<Violation>> {
        let mut bucket = self.bucket(limit, rate, now_ms);
        bucket.repair_clock(now_ms);
        let enough = bucket.charge(rate, now_ms, 1);
        self.set(&limit.counter, Counter::Rate(bucket));
        if enough {
            return Ok(());
        }
        let retry_after_s = Some(bucket.retry_after_s(rate, 1).max(1));
        Err(Box::new(Violation { retry_after_s, ..*Violation::exceeded(limit) }))
    }

    fn check_open(&self, limit: &Limit, max: u64) -> Result<(), Box<Violation>> {
        if self.open(limit) < max {
            return Ok(());
        }
        Err(Box::new(Violation {
            remaining: Some(Amount::ZERO),
            requested: Some(Amount::whole(1)),
            retry_after_s: Some(RETRY_CONCURRENCY_S).filter(|_| max > 0),
            ..*Violation::exceeded(limit)
        }))
    }

    /// Whether a window has space for an amount. Returns the number of the window that the amount counts in.
    fn check_sum(
        &mut self,
        limit: &Limit,
        (max, amount): (Amount, Amount),
        calendar: &Calendar,
        at: At,
    ) -> Result<u64, Box<Violation>> {
        let Some(period) = limit.period(calendar, at.now_ms, at.offset_s) else {
            return Err(Violation::unreadable(limit));
        };
        let (number, used) = match self.sum(limit, calendar.window, period, at.now_ms) {
            Some(sum) => (sum.number, sum.used),
            None => (period.number, Amount::ZERO),
        };
        if used.plus(amount) <= max {
            return Ok(number);
        }
        let wait_ms = period.ends_at_ms.saturating_sub(at.now_ms);
        Err(Box::new(Violation {
            remaining: Some(max.minus(used)),
            requested: Some(amount),
            // If the clock went back, the window that counts is a later one, and its end is not known.
            retry_after_s: Some(wait_ms.div_ceil(1_000))
                .filter(|_| amount <= max && number == period.number),
            ..*Violation::exceeded(limit)
        }))
    }

    /// What was used in the window of an instant; `None` if nothing was. If the stored window is later, the clock went
    /// back. Then the stored window is used, so that no window opens again. If it was last used more than
    /// [`MAX_AHEAD_MS`] after this instant, it is moved to this instant, because otherwise nobody could use the limit
    /// until then.
    fn sum(&mut self, limit: &Limit, window: Window, period: Period, now_ms: u64) -> Option<&Sum> {
        let Some(Counter::Sum(sum)) = self.counter_mut(&limit.counter) else { return None };
        if sum.window != window || sum.number < period.number {
            return None;
        }
        if sum.at_ms > now_ms.saturating_add(MAX_AHEAD_MS) {
            (sum.number, sum.at_ms) = (period.number, now_ms);
        }
        Some(sum)
    }

    fn commit(&mut self, take: &Take, reserves: bool, at: At) {
        let counter = self.counter_mut(&take.counter);
        let is_reserved = reserves && take.source != Source::Call;
        if let Some(Counter::Lease(lease)) = counter {
            lease.take(take.amount, is_reserved);
            return;
        }
        let (Some(window), Some(number)) = (take.window, take.number) else {
            match counter {
                Some(Counter::Open(open)) => *open += 1,
                _ => self.set(&take.counter, Counter::Open(1)),
            }
            return;
        };
        let reserved = if is_reserved { take.amount } else { Amount::ZERO };
        match counter {
            Some(Counter::Sum(sum)) if sum.window == window && sum.number == number => {
                sum.at_ms = sum.at_ms.max(at.now_ms);
                sum.used = sum.used.plus(take.amount);
                sum.reserved = sum.reserved.plus(reserved);
            }
            _ => {
                let sum = Sum { window, number, at_ms: at.now_ms, used: take.amount, reserved };
                self.set(&take.counter, Counter::Sum(sum));
            }
        }
    }

    fn settle(&mut self, take: &Take, reserved: bool, ending: Ending) {
        let kept = match (take.source, ending) {
            (Source::Call, _) => return,
            (Source::Progress, _) => Amount::ZERO,
            (Source::Argument, Ending::Succeeded(Some(actual))) => actual.min(take.amount),
            (_, Ending::Succeeded(_)) => take.amount,
            (_, Ending::Unclear) if take.unclear == Unclear::Keep => take.amount,
            (_, Ending::Unclear | Ending::Failed) => Amount::ZERO,
        };
        match self.counter_mut(&take.counter) {
            Some(Counter::Open(open)) if take.number.is_none() => *open = open.saturating_sub(1),
            // Nothing is given back to a window that is over.
            Some(Counter::Sum(sum))
                if take.window == Some(sum.window) && take.number == Some(sum.number) =>
            {
                if reserved {
                    sum.reserved = sum.reserved.minus(take.amount);
                }
                sum.used = sum.used.minus(take.amount.minus(kept));
            }
            Some(Counter::Lease(lease)) if take.number == Some(lease.number) => {
                lease.settle(take.amount, kept, reserved);
            }
            _ => {}
        }
    }

    /// If there are more counters than limits, drops the counters of limits that no longer exist, except for those
    /// that calls in progress use.
    fn forget_all_but(&mut self, limits: &[Rc<Limit>]) {
        if self.counters.len() <= limits.len() {
            return;
        }
        self.counters.retain(|(id, counter)| match counter {
            Counter::Open(open) if *open > 0 => true,
            Counter::Sum(sum) if sum.reserved > Amount::ZERO => true,
            Counter::Lease(lease) if lease.reserved > Amount::ZERO => true,
            _ => limits.iter().any(|limit| limit.counter == *id),
        });
    }
}

/// If a clock was ahead by at most this much, what was used meanwhile still counts. It is the length of the longest
/// window. So if a clock was a day ahead, two days share one daily limit.
pub(super) const MAX_AHEAD_MS: u64 = 31 * DAY_MS;

/// Seconds after which a caller may try again if too many calls were in progress: most calls end within a second.
pub(super) const RETRY_CONCURRENCY_S: u64 = 1;

fn take(limit: &Limit, number: Option<u64>, amount: Amount, source: Source) -> Take {
    Take {
        book: Rc::default(),
        counter: Rc::clone(&limit.counter),
        number,
        window: limit.rule.calendar().map(|calendar| calendar.window),
        amount,
        unclear: limit.unclear,
        source,
    }
}
