//! A pool: how much of one shared limit a counter object granted to lanes.
//!
//! INVARIANT (never more): in one window, what the lanes were granted and did not give back is at most the limit's
//! bound at the time of the last grant. If a clock that was at most 31 days ahead goes back, no window opens again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::book::{At, Book, MAX_AHEAD_MS, RETRY_CONCURRENCY_S};
use super::lease::{Ask, Granted, Returned, Terms};
use super::record::Limit;
use super::status::{Status, status};
use super::window;
use crate::bucket::{Bucket, Rate};
use crate::json;

/// How long a lane may use the tokens that it was granted. A call that waited for its token may use it later, when its
/// other limits were granted. So in any period, at most as many calls pass as the bucket allows in a period that is
/// longer by this, or by the time for which such calls wait.
const TOKEN_MS: u64 = 1_000;

/// Stored as JSON: members are only added.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Pool {
    /// The window's number.
    number: u64,
    /// When something was last granted.
    at_ms: u64,
    /// What was granted to lanes that are no longer in `shares`.
    spent: Amount,
    /// The newest revision of the limit that a lane has sent.
    #[serde(default)]
    revision: u64,
    /// By lane.
    shares: BTreeMap<u16, Share>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bucket: Option<Bucket>,
}

/// What one lane got in this window, and what it gave back. Both only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Share {
    granted: Amount,
    returned: Amount,
}

impl Pool {
    /// Reads a stored pool; `None` if it cannot be read.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The pool as it is stored.
    #[must_use]
    pub fn as_json(&self) -> String {
        // Plain data always serializes.
        json::to_string(self)
    }

    /// Grants the request, up to what is left, and lends a part of the remainder in advance. The second value says
    /// whether the lane got everything that it asked for. `None`: the limit's time zone is unknown.
    pub fn grant(&mut self, terms: &Terms, ask: &Ask, at: At) -> Option<(Granted, bool)> {
        match terms {
            Terms::Tokens(rate) => Some(self.grant_tokens(*rate, ask, at.now_ms)),
            Terms::Slots { max } => Some(self.grant_share(*max, ask, None)),
            Terms::Sum { max, calendar } => {
                let window = calendar.window;
                let period = window::period(window, &calendar.time_zone, at.now_ms, at.offset_s)?;
                self.turn_to(period.number, at.now_ms);
                // The end is that of the present window, even if the clock was ahead: then the lane asks again before
                // the window ends.
                let ends_at_ms = period.ends_at_ms;
                // If the clock went back, the window that counts is a later one, and its end is not known.
                let ends_in_s = (ends_at_ms - at.now_ms).div_ceil(1_000);
                let ends_in_s = (self.number == period.number).then_some(ends_in_s);
                Some(self.grant_share(*max, ask, Some((ends_at_ms, ends_in_s))))
            }
        }
    }

    /// Begins the window with this number if it is a new one. If the pool's window is later than that, it goes on,
    /// unless it is very far ahead: then it is moved to now, with everything that was granted.
    fn turn_to(&mut self, number: u64, now_ms: u64) {
        if self.number < number {
            *self = Self { number, revision: self.revision, ..Self::default() };
        } else if self.at_ms > now_ms.saturating_add(MAX_AHEAD_MS) {
            let spent = self.spent.plus(self.outstanding());
            *self = Self { number, spent, revision: self.revision, ..Self::default() };
            self.at_ms = now_ms;
        }
        self.at_ms = self.at_ms.max(now_ms);
    }

    fn outstanding(&self) -> Amount {
        let held = self.shares.values().map(|share| share.granted.minus(share.returned));
        held.fold(Amount::ZERO, Amount::plus)
    }

    /// What is left of a bound.
    #[must_use]
    pub fn left(&self, max: Amount) -> Amount {
        max.minus(self.spent).minus(self.outstanding())
    }

    fn share(&mut self, lane: u16) -> &mut Share {
        self.shares.entry(lane).or_default()
    }

    /// Whether the lane does not know the newest bound. It gets nothing then.
    fn is_outdated(&mut self, ask: &Ask) -> bool {
        let outdated = ask.revision < self.revision;
        self.revision = self.revision.max(ask.revision);
        outdated
    }

    fn grant_share(
        &mut self,
        max: Amount,
        ask: &Ask,
        window: Option<(u64, Option<u64>)>,
    ) -> (Granted, bool) {
        let same = ask.number == self.number;
        let share = self.share(ask.lane);
        // A lane that lost its lease no longer knows everything that it gave back.
        let forgot = ask.returned < share.returned;
        let known = if same { ask.granted.max(share.returned) } else { Amount::ZERO };
        let free = if same && !forgot { ask.free } else { Amount::ZERO };
        if same {
            share.returned = share.returned.max(ask.returned);
            // The lane's lease proves that this was granted, even if this record was lost.
            share.granted = share.granted.max(ask.granted);
        }
        // What was granted to the lane in answers that it did not get.
        let unheard = share.granted.minus(known);
        // What is neither used nor granted to another lane.
        let others = self.outstanding().minus(unheard).minus(free);
        let rest = max.minus(self.spent).minus(others);
        let outdated = self.is_outdated(ask);
        let mut fits = Amount::ZERO;
        for need in ask.needs.iter().filter(|_| !outdated) {
            if fits.plus(*need) <= rest {
                fits = fits.plus(*need);
            }
        }
        let all = ask.needs.iter().copied().fold(Amount::ZERO, Amount::plus);
        let mut in_advance = match window {
            // In advance, all lanes together get at most half of what is left. A lane whose calls do not fit
            // gets nothing in advance. Otherwise it could collect the amounts that calls of other lanes need.
            Some(_) if !outdated && fits == all => {
                let rest = rest.minus(fits.max(free));
                let share = Amount::whole(rest.floor() / (2 * u64::from(ask.lanes.max(1))));
                share.minus(free.minus(fits))
            }
            _ => Amount::ZERO,
        };
        // The sum of a lane's grants only grows, also by what the lane gave back. It must stay an amount that can be
        // stored.
        let needed = known.plus(fits.minus(free));
        if needed.plus(in_advance) > Amount::LARGEST {
            in_advance = Amount::ZERO;
        }
        if needed > Amount::LARGEST {
            fits = Amount::ZERO;
        }
        let share = self.share(ask.lane);
        let target = known.plus(fits.minus(free)).plus(in_advance);
        share.granted = share.granted.max(target);
        let Share { granted, returned } = *share;
        let answer = Granted {
            number: self.number,
            ends_at_ms: window.map_or(u64::MAX, |(ends_at_ms, _)| ends_at_ms),
            granted,
            returned,
            // The part of an earlier grant that the bound no longer allows: the lane did not get that answer, and the
            // bound was lowered meanwhile.
            back: granted.minus(target),
            left: self.left(max),
            overdrawn: outdated || self.spent.plus(self.outstanding()) > max,
            retry_after_s: match window {
                Some((_, ends_in_s)) => ends_in_s,
                None => Some(RETRY_CONCURRENCY_S),
            },
        };
        (answer, fits == all)
    }

    /// Tokens that no call waits for are used within [`TOKEN_MS`], or lost. The pool keeps no sums of them: it adds to
    /// those that the lane knows, and tokens in an answer that the lane does not get are lost, too.
    fn grant_tokens(&mut self, rate: Rate, ask: &Ask, now_ms: u64) -> (Granted, bool) {
        let mut bucket = self.bucket.unwrap_or_else(|| Bucket::full(rate, now_ms));
        bucket.repair_clock(now_ms);
        let outdated = self.is_outdated(ask);
        let may_take = |_: &&Amount| !outdated && bucket.charge(rate, now_ms, 1);
        let enough = ask.needs.iter().take_while(may_take).count();
        let rest = u64::from(bucket.status(rate).remaining).min(rate.refill_per_s());
        let in_advance = if outdated { 0 } else { rest / (2 * u64::from(ask.lanes.max(1))) };
        let in_advance = u32::try_from(in_advance).unwrap_or_default();
        let in_advance =
            if !outdated && bucket.charge(rate, now_ms, in_advance) { in_advance } else { 0 };
        self.at_ms = self.at_ms.max(now_ms);
        self.bucket = Some(bucket);
        let answer = Granted {
            number: ask.number,
            ends_at_ms: now_ms + TOKEN_MS,
            granted: ask.granted.plus(Amount::whole(enough as u64 + u64::from(in_advance))),
            returned: ask.returned,
            back: Amount::ZERO,
            left: Amount::whole(bucket.status(rate).remaining.into()),
            overdrawn: outdated,
            retry_after_s: Some(bucket.retry_after_s(rate, 1).max(1)),
        };
        (answer, enough == ask.needs.len())
    }

    /// The state of a limit. What lanes hold counts as used.
    #[must_use]
    pub fn status(&self, limit: &Limit, at: At) -> Status {
        // What calls in progress hold is only in the lanes.
        let mut status = Status { reserved: None, ..status(&Book::new(), limit, at) };
        let Some(terms) = Terms::of(&limit.rule) else { return status };
        match (&terms, self.bucket) {
            (Terms::Tokens(rate), Some(mut bucket)) => {
                bucket.charge(*rate, at.now_ms, 0);
                let state = bucket.status(*rate);
                status.remaining = Some(Amount::whole(state.remaining.into()));
                status.reset_s = Some(state.reset_s);
            }
            (Terms::Sum { calendar, .. }, _) => {
                let period =
                    window::period(calendar.window, &calendar.time_zone, at.now_ms, at.offset_s);
                if period.is_some_and(|period| self.number >= period.number) {
                    status.remaining = Some(self.left(terms.max()));
                }
                if period.is_some_and(|period| self.number > period.number) {
                    status.reset_s = None;
                }
            }
            (Terms::Slots { .. }, _) => status.remaining = Some(self.left(terms.max())),
            (Terms::Tokens(_), None) => {}
        }
        status
    }

    /// The window's number, and the lanes that may have something to give back, each with the sum of its grants. The
    /// lane `but` is left out.
    #[must_use]
    pub fn holders(&self, but: u16) -> (u64, Vec<(u16, Amount)>) {
        let holds =
            |(lane, share): &(&u16, &Share)| **lane != but && share.granted > share.returned;
        let holders = self.shares.iter().filter(holds);
        (self.number, holders.map(|(lane, share)| (*lane, share.granted)).collect())
    }

    /// A lane gave something back.
    pub fn take_back(&mut self, lane: u16, returned: &Returned) {
        if returned.number == self.number {
            let share = self.share(lane);
            share.returned = share.returned.max(returned.returned);
        }
    }
}
