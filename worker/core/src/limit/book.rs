//! A book: how much of the limits of one agent or one credential was used, or a lane's lease of one shared limit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
use crate::json;

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
    pub books: Vec<(Rc<str>, Book)>,
    pub reservation: Option<Reservation>,
    /// The decision whose reservation ends.
    pub settles: Option<String>,
}

/// Books by name, as a JSON array of names and books.
// Functions that are generic in the lane's storage are compiled with the worker's shell, and so is generic code that they call.
// This function is compiled once.
#[must_use]
pub fn as_json(books: &[(Rc<str>, Book)]) -> String {
    // Plain data always serializes.
    json::to_string(books)
}

/// Bytes of a counter in JSON, without its name, or of an empty book with its name. Most have fewer.
const COUNTER_BYTES: usize = 160;

/// Adds the books in a text of [`as_json`] that `books` does not have. Returns `None` if the text cannot be read.
pub fn add_older(books: &mut HashMap<Rc<str>, Book>, text: &str) -> Option<()> {
    let stored: Vec<(Rc<str>, &RawValue)> = serde_json::from_str(text).ok()?;
    for (name, book) in stored {
        if let Entry::Vacant(older) = books.entry(name) {
            older.insert(Book::parse(book.get())?);
        }
    }
    Some(())
}

/// Settles what a call took of one book.
pub fn settle((name, book): (&str, &mut Book), reservation: &Reservation, ending: Ending) {
    for take in reservation.takes.iter().filter(|take| &*take.book == name) {
        book.settle(take, reservation.forwarded, ending);
    }
}

impl Default for &Book {
    fn default() -> Self {
        const EMPTY: &Book = &Book::new();
        EMPTY
    }
}

impl Book {
    /// About how many bytes it has as JSON.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let of = |(name, _): &(Rc<str>, Counter)| name.len() + COUNTER_BYTES;
        COUNTER_BYTES + self.counters.iter().map(of).sum::<usize>()
    }

    #[must_use]
    pub const fn new() -> Self {
        Self { counters: Vec::new() }
    }

    /// Takes this amount of a shared limit if the lane holds it for this call. If not, adds what the lane must ask for
    /// to `needs`.
    // It is not inlined. In the loop over a call's limits, it would take the registers of the usual kinds of limits.
    #[inline(never)]
    pub(super) fn take_lease(
        &mut self,
        limit: &Limit,
        leased: &Leased,
        (amount, reserves): (Amount, bool),
        at: At,
        needs: &mut Vec<Need>,
    ) -> Result<(), Box<Violation>> {
        let Some(need) = leased.need(limit, amount) else { return Ok(()) };
        let max = need.terms.max();
        if let Some(Counter::Lease(lease)) = self.find_counter(limit)
            && (leased.is_granted(lease.number, need.revision)
                || lease.holds(need.revision, at.now_ms))
            && amount <= lease.available().minus(leased.held_of(lease.number))
        {
            lease.take(amount, reserves);
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

    /// The counter of a limit. Mostly it is where it was the last time.
    pub(super) fn counter_of(&self, limit: &Limit) -> Option<&Counter> {
        match self.counters.get(limit.place.get()) {
            Some((name, counter)) if Rc::ptr_eq(name, &limit.counter) => Some(counter),
            _ => self.counter(&limit.counter),
        }
    }

    fn counter_mut(&mut self, name: &str) -> Option<&mut Counter> {
        self.counters.iter_mut().find(|(id, _)| **id == *name).map(|(_, counter)| counter)
    }

    /// The counter of a limit if it is where it was the last time.
    fn known_counter(&mut self, limit: &Limit) -> Option<&mut Counter> {
        let (name, counter) = self.counters.get_mut(limit.place.get())?;
        Rc::ptr_eq(name, &limit.counter).then_some(counter)
    }

    /// The counter of a limit. Mostly it is where it was the last time, so that callers look there first.
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

    /// Takes one request from a bucket, if it has one.
    pub(super) fn charge(
        &mut self,
        limit: &Limit,
        rate: Rate,
        now_ms: u64,
    ) -> Result<(), Box<Violation>> {
        match self.known_counter(limit) {
            Some(Counter::Rate(bucket)) => charge(bucket, limit, rate, now_ms),
            _ => self.find_and_charge(limit, rate, now_ms),
        }
    }

    #[cold]
    fn find_and_charge(
        &mut self,
        limit: &Limit,
        rate: Rate,
        now_ms: u64,
    ) -> Result<(), Box<Violation>> {
        if let Some(Counter::Rate(bucket)) = self.find_counter(limit) {
            return charge(bucket, limit, rate, now_ms);
        }
        let mut bucket = Bucket::full(rate, now_ms);
        let charged = charge(&mut bucket, limit, rate, now_ms);
        self.set(&limit.counter, Counter::Rate(bucket));
        charged
    }

    /// Adds a call in progress, if one more is allowed.
    pub(super) fn open_one(&mut self, limit: &Limit, max: u64) -> Result<(), Box<Violation>> {
        match self.known_counter(limit) {
            Some(Counter::Open(open)) if *open < max => {
                *open += 1;
                Ok(())
            }
            _ => self.find_and_open(limit, max),
        }
    }

    #[cold]
    fn find_and_open(&mut self, limit: &Limit, max: u64) -> Result<(), Box<Violation>> {
        let open = match self.find_counter(limit) {
            Some(Counter::Open(open)) => *open,
            _ => 0,
        };
        if open < max {
            self.set(&limit.counter, Counter::Open(open + 1));
            return Ok(());
        }
        let retry_after_s = Some(RETRY_CONCURRENCY_S).filter(|_| max > 0);
        Err(Violation::above(limit, Amount::ZERO, Amount::whole(1), retry_after_s))
    }

    /// Adds an amount to what was used in a window, if the window has space for it.
    pub(super) fn add(
        &mut self,
        limit: &Limit,
        max: Amount,
        (amount, reserves): (Amount, bool),
        calendar: &Calendar,
        at: At,
    ) -> Result<(), Box<Violation>> {
        match self.known_sum(limit, at.now_ms) {
            Some(sum) if sum.used.plus(amount) <= max => {
                sum.add(amount, reserves, at.now_ms);
                Ok(())
            }
            _ => self.find_and_add(limit, max, (amount, reserves), calendar, at),
        }
    }

    #[cold]
    fn find_and_add(
        &mut self,
        limit: &Limit,
        max: Amount,
        (amount, reserves): (Amount, bool),
        calendar: &Calendar,
        at: At,
    ) -> Result<(), Box<Violation>> {
        let Some(period) = limit.period(calendar, at.now_ms, at.offset_s) else {
            return Err(Violation::unreadable(limit));
        };
        let (number, used) = match self.sum(limit, period, at.now_ms) {
            // A call that needs nothing passes, also if the limit was lowered below what is used.
            Some(sum) if amount == Amount::ZERO || sum.used.plus(amount) <= max => {
                sum.add(amount, reserves, at.now_ms);
                return Ok(());
            }
            Some(sum) => (sum.number, sum.used),
            None if amount <= max => {
                let sum = Sum {
                    window: calendar.window,
                    number: period.number,
                    at_ms: at.now_ms,
                    used: amount,
                    reserved: if reserves { amount } else { Amount::ZERO },
                };
                self.set(&limit.counter, Counter::Sum(sum));
                return Ok(());
            }
            None => (period.number, Amount::ZERO),
        };
        let wait_ms = period.ends_at_ms.saturating_sub(at.now_ms);
        // If the clock went back, the window that counts is a later one, and its end is not known.
        let retry_after_s =
            Some(wait_ms.div_ceil(1_000)).filter(|_| amount <= max && number == period.number);
        Err(Violation::above(limit, max.minus(used), amount, retry_after_s))
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
        let Some(Counter::Sum(sum)) = self.find_counter(limit) else { return None };
        if sum.number < period.number {
            return None;
        }
        if sum.at_ms > now_ms.saturating_add(MAX_AHEAD_MS) {
            (sum.number, sum.at_ms) = (period.number, now_ms);
        }
        Some(sum)
    }

    /// Puts everything back as it is in `stored`, except buckets and leases of `limits` of the kind `rate`. A window
    /// that was moved because the clock went back stays moved.
    #[cold]
    pub(super) fn revert(&mut self, stored: &Self, limits: &[Rc<Limit>]) {
        let used = std::mem::replace(self, stored.clone());
        for (name, counter) in &mut self.counters {
            if let (Counter::Sum(sum), Some(Counter::Sum(moved))) = (counter, used.counter(name))
                && moved.number < sum.number
            {
                (sum.number, sum.at_ms) = (moved.number, moved.at_ms);
            }
        }
        for limit in limits.iter().filter(|limit| limit.kind == Kind::Rate) {
            if let Some(counter) = used.counter(&limit.counter) {
                self.set(&limit.counter, counter.clone());
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

/// Takes one request from a bucket, if it has one.
#[inline]
fn charge(
    bucket: &mut Bucket,
    limit: &Limit,
    rate: Rate,
    now_ms: u64,
) -> Result<(), Box<Violation>> {
    bucket.repair_clock(now_ms);
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
