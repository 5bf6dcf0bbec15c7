//! A book: how much of the limits of one agent or one credential was used, or a lane's lease of one shared limit.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::definition::{Kind, Unclear};
use super::lease::{self, Answer, Granted, Lease, Leased, Need, Returned};
use super::record::Limit;
use super::reservation::{Ending, Reservation, Source, Take};
use super::rule::Calendar;
use super::violation::Violation;
use super::window::{OffsetS, Period, Window};
use crate::bucket::{Bucket, Rate};
use crate::clock::DAY_MS;

/// The time of a call.
#[derive(Debug, Clone, Copy)]
pub struct At {
    pub now_ms: u64,
    pub offset_s: OffsetS,
}

/// The counter of an agent's requests.
pub(super) const REQUESTS: &str = "requests";

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

impl Sum {
    fn add(&mut self, amount: Amount, reserves: bool, now_ms: u64) {
        self.at_ms = self.at_ms.max(now_ms);
        self.used = self.used.plus(amount);
        if reserves {
            self.reserved = self.reserved.plus(amount);
        }
    }
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

    /// Whether the lane holds this amount of a shared limit for this call. If not, adds what it must ask for to
    /// `needs`.
    // It is not inlined. In the loop over a call's limits, it would take the registers of the usual kinds of limits.
    #[inline(never)]
    pub(super) fn check_lease(
        &mut self,
        limit: &Limit,
        leased: &Leased,
        amount: Amount,
        at: At,
        needs: &mut Vec<Need>,
    ) -> Result<(), Box<Violation>> {
        let Some(need) = leased.need(limit, amount) else { return Ok(()) };
        let max = need.terms.max();
        if let Some(Counter::Lease(lease)) = self.counter_of(limit)
            && (leased.is_granted(lease.number, need.revision)
                || lease.holds(need.revision, at.now_ms))
            && amount <= lease.available().minus(leased.held_of(lease.number))
        {
            if limit.kind == Kind::Rate {
                lease.take(amount, false);
            }
            return Ok(());
        }
        match leased.answer {
            _ if amount == Amount::ZERO => Ok(()),
            // The amount is above the whole limit, so no counter could grant it, and none is asked.
            None if amount > max && limit.kind != Kind::Rate => Err(Box::new(Violation {
                requested: Some(amount),
                retry_after_s: None,
                shared: true,
                ..*Violation::exceeded(limit)
            })),
            None | Some(Answer::Granted { .. }) => {
                needs.push(need);
                Ok(())
            }
            Some(Answer::Unavailable) => Err(Violation::unavailable(limit)),
            Some(Answer::Refused { left, retry_after_s }) => Err(Box::new(Violation {
                remaining: Some(left),
                requested: Some(amount).filter(|_| limit.kind != Kind::Rate),
                retry_after_s: retry_after_s.filter(|_| amount <= max),
                shared: true,
                ..*Violation::exceeded(limit)
            })),
        }
    }

    // It is not inlined, like `check_lease`.
    #[inline(never)]
    pub(super) fn use_lease(&mut self, limit: &Limit, amount: Amount, reserves: bool) {
        if let Some(Counter::Lease(lease)) = self.counter_of(limit) {
            lease.take(amount, reserves);
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

    /// Gives back all but `keep` of a lease. Returns `None` if the book has no lease.
    pub fn give_back(&mut self, counter: &str, keep: Amount) -> Option<Returned> {
        match self.counter_mut(counter) {
            Some(Counter::Lease(lease)) => Some(lease.give_back(keep)),
            _ => None,
        }
    }

    /// A book of an agent's requests ([`super::RequestRate`]), whose bucket is in the agent's state.
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

    /// The counter of a limit. Mostly it is where it was the last time.
    fn counter_of(&mut self, limit: &Limit) -> Option<&mut Counter> {
        // It is looked up twice, because a counter that is returned borrows the book until the end of this function.
        match self.known_counter(limit).is_some() {
            true => self.known_counter(limit),
            false => self.find_counter(limit),
        }
    }

    /// The counter of a limit if it is where it was the last time.
    fn known_counter(&mut self, limit: &Limit) -> Option<&mut Counter> {
        let (name, counter) = self.counters.get_mut(limit.place.get())?;
        Rc::ptr_eq(name, &limit.counter).then_some(counter)
    }

    #[cold]
    fn find_counter(&mut self, limit: &Limit) -> Option<&mut Counter> {
        let place = self.counters.iter().position(|(name, _)| *name == limit.counter)?;
        let (name, counter) = self.counters.get_mut(place)?;
        // A book that was read from storage has a copy of the name.
        *name = Rc::clone(&limit.counter);
        limit.place.set(place);
        Some(counter)
    }

    /// The number of a counter's window or lease; `None` for calls in progress.
    pub(super) fn number(&self, counter: &str) -> Option<u64> {
        match self.counter(counter)? {
            Counter::Sum(sum) => Some(sum.number),
            Counter::Lease(lease) => Some(lease.number),
            Counter::Open(_) | Counter::Rate(_) => None,
        }
    }

    #[cold]
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

    pub(super) fn bucket(&self, counter: &str, rate: Rate, now_ms: u64) -> Bucket {
        match self.counter(counter) {
            Some(Counter::Rate(bucket)) => *bucket,
            _ => Bucket::full(rate, now_ms),
        }
    }

    /// Takes one request from a bucket.
    pub(super) fn charge(
        &mut self,
        limit: &Limit,
        rate: Rate,
        now_ms: u64,
    ) -> Result<(), Box<Violation>> {
        match self.counter_of(limit) {
            Some(Counter::Rate(bucket)) => {
                bucket.repair_clock(now_ms);
                charge(bucket, limit, rate, now_ms)
            }
            _ => self.charge_first(limit, rate, now_ms),
        }
    }

    #[cold]
    fn charge_first(
        &mut self,
        limit: &Limit,
        rate: Rate,
        now_ms: u64,
    ) -> Result<(), Box<Violation>> {
        let mut bucket = Bucket::full(rate, now_ms);
        let charged = charge(&mut bucket, limit, rate, now_ms);
        self.set(&limit.counter, Counter::Rate(bucket));
        charged
    }

    /// Whether one more call may be in progress.
    pub(super) fn check_open(&mut self, limit: &Limit, max: u64) -> Result<(), Box<Violation>> {
        let open = match self.counter_of(limit) {
            Some(Counter::Open(open)) => *open,
            _ => 0,
        };
        if open < max {
            return Ok(());
        }
        let retry_after_s = Some(RETRY_CONCURRENCY_S).filter(|_| max > 0);
        Err(Violation::above(limit, Amount::ZERO, Amount::whole(1), retry_after_s))
    }

    /// One more call is in progress.
    pub(super) fn open_one(&mut self, limit: &Limit) {
        match self.counter_of(limit) {
            Some(Counter::Open(open)) => *open += 1,
            _ => self.set(&limit.counter, Counter::Open(1)),
        }
    }

    /// Whether a window has space for an amount.
    pub(super) fn check_sum(
        &mut self,
        limit: &Limit,
        (max, amount): (Amount, Amount),
        calendar: &Calendar,
        at: At,
    ) -> Result<(), Box<Violation>> {
        match self.known_sum(limit, at.now_ms) {
            Some(sum) if sum.used.plus(amount) <= max => Ok(()),
            _ => self.find_and_check_sum(limit, (max, amount), calendar, at),
        }
    }

    #[cold]
    fn find_and_check_sum(
        &mut self,
        limit: &Limit,
        (max, amount): (Amount, Amount),
        calendar: &Calendar,
        at: At,
    ) -> Result<(), Box<Violation>> {
        let Some(period) = limit.period(calendar, at.now_ms, at.offset_s) else {
            return Err(Violation::unreadable(limit));
        };
        let (number, used) = match self.sum(limit, period, at.now_ms) {
            Some(sum) => (sum.number, sum.used),
            None => (period.number, Amount::ZERO),
        };
        if used.plus(amount) <= max {
            return Ok(());
        }
        let wait_ms = period.ends_at_ms.saturating_sub(at.now_ms);
        // If the clock went back, the window that counts is a later one, and its end is not known.
        let retry_after_s =
            Some(wait_ms.div_ceil(1_000)).filter(|_| amount <= max && number == period.number);
        Err(Violation::above(limit, max.minus(used), amount, retry_after_s))
    }

    /// Adds to what was used in a window.
    pub(super) fn add(
        &mut self,
        limit: &Limit,
        (amount, reserves): (Amount, bool),
        calendar: &Calendar,
        at: At,
    ) {
        match self.known_sum(limit, at.now_ms) {
            Some(sum) => sum.add(amount, reserves, at.now_ms),
            None => self.find_and_add(limit, (amount, reserves), calendar, at),
        }
    }

    #[cold]
    fn find_and_add(
        &mut self,
        limit: &Limit,
        (amount, reserves): (Amount, bool),
        calendar: &Calendar,
        at: At,
    ) {
        let Some(period) = limit.period(calendar, at.now_ms, at.offset_s) else { return };
        match self.sum(limit, period, at.now_ms) {
            Some(sum) => sum.add(amount, reserves, at.now_ms),
            None => {
                let sum = Sum {
                    window: calendar.window,
                    number: period.number,
                    at_ms: at.now_ms,
                    used: amount,
                    reserved: if reserves { amount } else { Amount::ZERO },
                };
                self.set(&limit.counter, Counter::Sum(sum));
            }
        }
    }

    /// What was used in the window of an instant, in the usual case: the limit knows the window, and the counter is for
    /// this window and where it was the last time. The clock did not go back then, except within the window, which is
    /// no longer than [`MAX_AHEAD_MS`] and the hour that daylight saving can add.
    // Callers leave all else to a cold function, so that the loop over a call's limits makes no call. In Wasm, a value
    // that is needed after a call is stored and loaded again, even if the call is not made.
    fn known_sum(&mut self, limit: &Limit, now_ms: u64) -> Option<&mut Sum> {
        let period = limit.known_period(now_ms)?;
        match self.known_counter(limit)? {
            Counter::Sum(sum) if sum.number == period.number => Some(sum),
            _ => None,
        }
    }

    /// What was used in the window of an instant; `None` if nothing was. If the stored window is later, the clock went
    /// back. Then the stored window is used, so that no window opens again. If it was last used more than
    /// [`MAX_AHEAD_MS`] after this instant, it is moved to this instant, because otherwise nobody could use the limit
    /// until then.
    fn sum(&mut self, limit: &Limit, period: Period, now_ms: u64) -> Option<&mut Sum> {
        let Some(Counter::Sum(sum)) = self.counter_of(limit) else { return None };
        if sum.number < period.number {
            return None;
        }
        if sum.at_ms > now_ms.saturating_add(MAX_AHEAD_MS) {
            (sum.number, sum.at_ms) = (period.number, now_ms);
        }
        Some(sum)
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
    pub(super) fn forget_all_but(&mut self, limits: &[Rc<Limit>]) {
        if self.counters.len() > limits.len() {
            self.forget(limits);
        }
    }

    #[cold]
    fn forget(&mut self, limits: &[Rc<Limit>]) {
        self.counters.retain(|(id, counter)| match counter {
            Counter::Open(open) if *open > 0 => true,
            Counter::Sum(sum) if sum.reserved > Amount::ZERO => true,
            Counter::Lease(lease) if lease.reserved > Amount::ZERO => true,
            _ => limits.iter().any(|limit| limit.counter == *id),
        });
    }
}

/// Takes one request from a bucket.
#[inline]
fn charge(
    bucket: &mut Bucket,
    limit: &Limit,
    rate: Rate,
    now_ms: u64,
) -> Result<(), Box<Violation>> {
    match bucket.charge(rate, now_ms, 1) {
        true => Ok(()),
        false => Err(Violation::too_soon(limit, bucket.retry_after_s(rate, 1))),
    }
}

/// If a clock was ahead by at most this much, what was used meanwhile still counts. It is the length of the longest
/// window. So if a clock was a day ahead, two days share one daily limit.
pub(super) const MAX_AHEAD_MS: u64 = 31 * DAY_MS;

/// Seconds after which a caller may try again if too many calls were in progress: most calls end within a second.
pub(super) const RETRY_CONCURRENCY_S: u64 = 1;
