//! A velocity window of all agents of a tenant, in an object of its own.
//!
//! A lane asks for the count before it decides, and the window counts the call at once. So two lanes that ask at the
//! same time each see the other's call. If the call does not pass, the lane withdraws it. If the lane ends before
//! that, the call stays counted.

use serde::{Deserialize, Serialize};

use super::window::{Counted, PARTS_IN_ROW, SlidingWindow};
use crate::limit::Amount;

/// How long a call can be withdrawn: longer than a call takes to be decided.
const PROVISIONAL_MS: u64 = 15_000;

/// Calls of one key that can be withdrawn. With more, the oldest one can no longer be withdrawn.
const MAX_PROVISIONAL: usize = 32;

/// One key's window, and the calls in it that can still be withdrawn. Stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SharedWindow {
    window: SlidingWindow,
    /// In the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    provisional: Vec<Provisional>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Provisional {
    /// The call, as its lane names it.
    entry: String,
    at_ms: u64,
    amount: Option<Amount>,
}

/// A lane's request to count a call in the window of one key, and to return the count of the other calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountRequest {
    /// The window's name, and the hash of the call's key.
    pub window: String,
    pub key: u64,
    pub width_ms: u64,
    /// The call's number, if numbers are summed up.
    pub amount: Option<Amount>,
}

impl CountRequest {
    /// The name of the row in the object's storage.
    #[must_use]
    pub fn row(&self) -> String {
        row_name(&self.window, self.key)
    }
}

/// The name of a window's row.
#[must_use]
pub fn row_name(window: &str, key: u64) -> String {
    format!("{window}/{key:016x}")
}

impl SharedWindow {
    /// Counts the call `entry`, but only once, and returns the count of the other calls. If `entry` is `None`, it only
    /// returns the count.
    pub fn count_call(
        &mut self,
        entry: Option<&str>,
        request: &CountRequest,
        now_ms: u64,
    ) -> Counted {
        self.repair_clock(now_ms);
        let is_final = |it: &Provisional| it.at_ms.saturating_add(PROVISIONAL_MS) <= now_ms;
        while self.provisional.first().is_some_and(is_final) {
            self.keep_oldest(request.width_ms);
        }
        let mut counted = self.window.counted(now_ms, request.width_ms);
        let is_open = |it: &&Provisional| it.at_ms.saturating_add(request.width_ms) > now_ms;
        for other in self.provisional.iter().filter(is_open) {
            if Some(other.entry.as_str()) != entry {
                counted = counted.plus(other.amount);
            }
        }
        let Some(entry) = entry else { return counted };
        if !self.provisional.iter().any(|it| it.entry == entry) {
            if self.provisional.len() == MAX_PROVISIONAL {
                self.keep_oldest(request.width_ms);
            }
            let (entry, amount) = (entry.to_owned(), request.amount);
            self.provisional.push(Provisional { entry, at_ms: now_ms, amount });
        }
        counted
    }

    fn keep_oldest(&mut self, width_ms: u64) {
        let Provisional { at_ms, amount, .. } = self.provisional.remove(0);
        self.window.add(at_ms, width_ms, amount, PARTS_IN_ROW);
    }

    /// Withdraws a call. Returns whether the window still had it as one that can be withdrawn.
    pub fn withdraw(&mut self, entry: &str) -> bool {
        let before = self.provisional.len();
        self.provisional.retain(|it| it.entry != entry);
        self.provisional.len() < before
    }

    /// Whether it counts no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.window.is_empty() && self.provisional.is_empty()
    }

    fn repair_clock(&mut self, now_ms: u64) {
        self.window.repair_clock(now_ms);
        for it in &mut self.provisional {
            crate::clock::repair_time(&mut it.at_ms, now_ms);
        }
    }

    /// The time from which on nothing is left in it.
    #[must_use]
    pub fn ends_at_ms(&self, width_ms: u64) -> u64 {
        let last = self.provisional.last().map_or(0, |it| it.at_ms.saturating_add(width_ms));
        self.window.ends_at_ms(width_ms).max(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::clock::CLOCK_TOLERANCE_MS;

    const WIDTH_MS: u64 = 3_600_000;

    fn count_call(window: &mut SharedWindow, entry: Option<&str>, now_ms: u64) -> u64 {
        let request = CountRequest { window: "w".into(), key: 1, width_ms: WIDTH_MS, amount: None };
        window.count_call(entry, &request, now_ms).count
    }

    #[test]
    fn a_call_is_counted_for_others_and_once() {
        let mut window = SharedWindow::default();
        assert_eq!(count_call(&mut window, Some("a"), 0), 0);
        assert_eq!(
            count_call(&mut window, Some("b"), 0),
            1,
            "it sees the call that is not decided yet"
        );
        assert_eq!(count_call(&mut window, Some("b"), 1), 1, "the same call asks again");
        assert_eq!(count_call(&mut window, None, 1), 2, "a dry run");
        assert_eq!(count_call(&mut window, None, 2), 2, "a dry run leaves no trace");
        assert!(window.withdraw("a") && !window.withdraw("a"));
        assert_eq!(count_call(&mut window, None, 2), 1);
        assert_eq!(count_call(&mut window, None, WIDTH_MS), 0, "the window is over");
    }

    #[test]
    fn a_call_that_nobody_withdraws_in_time_stays_counted() {
        let mut window = SharedWindow::default();
        count_call(&mut window, Some("a"), 0);
        assert_eq!(count_call(&mut window, Some("b"), PROVISIONAL_MS), 1);
        assert!(!window.withdraw("a"), "too late");
        for call in 0..MAX_PROVISIONAL {
            count_call(&mut window, Some(&format!("c{call}")), PROVISIONAL_MS);
        }
        assert!(!window.withdraw("b"), "too many came after it");
        assert_eq!(count_call(&mut window, None, PROVISIONAL_MS), 2 + MAX_PROVISIONAL as u64);
        assert_eq!(window.ends_at_ms(WIDTH_MS), PROVISIONAL_MS + WIDTH_MS);
    }

    /// A call of the model.
    struct Called {
        at_ms: u64,
        was_withdrawn: bool,
        /// It has left the window, and does not come back with the clock.
        has_left: bool,
    }

    const SHORT_MS: u64 = 60_000;

    /// Marks the calls that have left the window by now, or by the time of any call.
    fn leave(model: &mut [Called], now_ms: u64) {
        let latest_ms = model.iter().map(|call| call.at_ms).fold(now_ms, u64::max);
        for call in model {
            call.has_left |= call.at_ms + SHORT_MS <= latest_ms;
        }
    }

    proptest! {
        /// Against a list of all calls: a window never counts too little, in whatever order calls come, are withdrawn
        /// and are stored, and whatever the clock does. It is exact while there are few calls, withdrawals come in
        /// time, and the clock does not jump.
        #[test]
        fn counts_are_exact_or_too_high(
            steps in prop::collection::vec((
                prop_oneof![40 => 0_i64..600, 1 => -200_000_i64..200_000],
                // After how many other calls the call is withdrawn. `None`: it passes, or the withdrawal is lost.
                prop_oneof![1 => Just(None), 1 => (0_usize..4).prop_map(Some), 1 => (0_usize..60).prop_map(Some)],
                any::<bool>(),
            ), 1..120),
        ) {
            let asked = CountRequest { window: "w".into(), key: 1, width_ms: SHORT_MS, amount: None };
            let (mut window, mut model) = (SharedWindow::default(), Vec::<Called>::new());
            let mut withdrawals = Vec::<(usize, usize)>::new();
            let (mut now_ms, mut is_exact) = (100_000_000_u64, true);
            for (number, (step_ms, withdrawn_after, is_stored)) in steps.into_iter().enumerate() {
                now_ms = now_ms.saturating_add_signed(step_ms);
                is_exact &= (0..600).contains(&step_ms) && number < MAX_PROVISIONAL;
                leave(&mut model, 0);
                if model.iter().any(|call| call.at_ms > now_ms + CLOCK_TOLERANCE_MS) {
                    model.iter_mut().for_each(|call| call.at_ms = now_ms.min(call.at_ms));
                }
                leave(&mut model, now_ms);
                let expected =
                    model.iter().filter(|call| !call.was_withdrawn && !call.has_left).count() as u64;
                let counted = window.count_call(Some(&number.to_string()), &asked, now_ms).count;
                prop_assert!(counted >= expected, "{number}: {counted} {expected}");
                if is_exact {
                    prop_assert_eq!(counted, expected);
                }
                model.push(Called { at_ms: now_ms, was_withdrawn: false, has_left: false });
                withdrawals.extend(withdrawn_after.map(|after| (number + after, number)));
                for (_, call) in withdrawals.extract_if(.., |(at, _)| *at <= number) {
                    // One that comes too late changes nothing: the call stays counted.
                    let is_in_time = window.withdraw(&call.to_string());
                    let is_late = now_ms - now_ms.min(model[call].at_ms) >= PROVISIONAL_MS;
                    prop_assert!(is_in_time || is_late || !is_exact, "{call} was not found");
                    model[call].was_withdrawn = is_in_time;
                }
                if is_stored {
                    let text = serde_json::to_string(&window).unwrap();
                    window = serde_json::from_str(&text).unwrap();
                }
                prop_assert!(window.provisional.len() <= MAX_PROVISIONAL);
            }
        }
    }

    #[test]
    fn the_stored_format_is_stable() {
        let mut window = SharedWindow::default();
        count_call(&mut window, Some("0.5.1"), 5);
        count_call(&mut window, Some("0.20005.2"), 20_005);
        let text = r#"{"window":{"slots":[[5,1]]},"provisional":[{"entry":"0.20005.2","at_ms":20005,"amount":null}]}"#;
        assert_eq!(serde_json::to_string(&window).unwrap(), text);
        assert_eq!(serde_json::from_str::<SharedWindow>(text).unwrap(), window);
    }
}
