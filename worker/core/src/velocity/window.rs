//! A sliding window of velocity: the calls that were counted in a period that ends now.
//!
//! It holds slots in the order of time. While there are few calls, each has a slot of its own. When there are too
//! many, neighbours are merged that are in the same part of the window, and the slot keeps the later time. So a count
//! is exact up to a number of calls. With more calls, a call can count too long, by at most one part of the window. No
//! call counts for too short a time.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::clock::CLOCK_TOLERANCE_MS;
use crate::limit::Amount;

/// Parts of a window in an agent's state, which every row of the agent repeats.
pub const PARTS_IN_STATE: usize = 8;

/// Parts of a window that has a row of its own.
pub const PARTS_IN_ROW: usize = 32;

/// What a window holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    pub count: u64,
    pub sum: Amount,
}

impl Counted {
    #[must_use]
    pub fn plus(self, amount: Option<Amount>) -> Self {
        let amount = amount.unwrap_or(Amount::ZERO);
        Self { count: self.count + 1, sum: bounded(self.sum.plus(amount)) }
    }
}

/// Calls that were counted, merged. Stored as JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlidingWindow {
    /// The time of the last call of each slot, and how many calls it has.
    #[serde(serialize_with = "as_differences", deserialize_with = "of_differences")]
    slots: Vec<(u64, u64)>,
    /// The sum of each slot; empty if nothing is summed up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sums: Vec<Amount>,
}

impl SlidingWindow {
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Vec::new(), sums: Vec::new() }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// What is in the window at this time. The window's own time never goes back.
    #[must_use]
    pub fn counted(&self, now_ms: u64, width_ms: u64) -> Counted {
        let now_ms = self.latest_ms(now_ms);
        let mut counted = Counted::default();
        for (at, (last_ms, count)) in self.slots.iter().enumerate() {
            if last_ms.saturating_add(width_ms) > now_ms {
                counted.count += count;
                let sum = self.sums.get(at).copied().unwrap_or_default();
                counted.sum = bounded(counted.sum.plus(sum));
            }
        }
        counted
    }

    /// Counts a call, with its number if numbers are summed up, and drops what has left the window. If there are
    /// more than `parts` slots, merges them.
    pub fn add(&mut self, now_ms: u64, width_ms: u64, amount: Option<Amount>, parts: usize) {
        let now_ms = self.latest_ms(now_ms);
        let is_over = |(last_ms, _): &&(u64, u64)| last_ms.saturating_add(width_ms) <= now_ms;
        let over = self.slots.iter().take_while(is_over).count();
        self.slots.drain(..over);
        self.sums.drain(..over.min(self.sums.len()));
        self.slots.push((now_ms, 1));
        if let Some(amount) = amount {
            self.sums.push(amount);
        }
        // The period of a window overlaps at most `parts + 1` parts, because the parts begin at fixed times.
        if self.slots.len() > parts + 1 {
            self.merge((width_ms / parts as u64).max(1));
        }
    }

    /// Now, or the time of the last call if the clock went back since.
    fn latest_ms(&self, now_ms: u64) -> u64 {
        self.slots.last().map_or(now_ms, |(last_ms, _)| now_ms.max(*last_ms))
    }

    fn merge(&mut self, part_ms: u64) {
        let mut merged = Self::default();
        for (at, (last_ms, count)) in self.slots.iter().enumerate() {
            let sum = self.sums.get(at);
            match merged.slots.last_mut() {
                Some((before_ms, so_far)) if *before_ms / part_ms == last_ms / part_ms => {
                    (*before_ms, *so_far) = (*last_ms, so_far.saturating_add(*count));
                    if let Some((so_far, sum)) = merged.sums.last_mut().zip(sum) {
                        *so_far = bounded(so_far.plus(*sum));
                    }
                }
                _ => {
                    merged.slots.push((*last_ms, *count));
                    merged.sums.extend(sum);
                }
            }
        }
        *self = merged;
    }

    /// Moves calls of a clock that was ahead to now, so that they leave the window. Returns whether there were any.
    pub fn repair_clock(&mut self, now_ms: u64) -> bool {
        let limit_ms = now_ms.saturating_add(CLOCK_TOLERANCE_MS);
        let is_ahead = self.slots.last().is_some_and(|(last_ms, _)| *last_ms > limit_ms);
        if is_ahead {
            // All of them, so that slots stay in order.
            self.slots.iter_mut().for_each(|(last_ms, _)| *last_ms = now_ms.min(*last_ms));
        }
        is_ahead
    }

    /// When the last call has left the window.
    #[must_use]
    pub fn ends_at_ms(&self, width_ms: u64) -> u64 {
        self.slots.last().map_or(0, |(last_ms, _)| last_ms.saturating_add(width_ms))
    }
}

/// A sum as it is stored: a larger one stays at the bound.
fn bounded(sum: Amount) -> Amount {
    sum.min(Amount::LARGEST)
}

/// Each time as its difference to the one before, which is a short number.
fn as_differences<S: Serializer>(slots: &[(u64, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut before_ms = 0;
    serializer.collect_seq(slots.iter().map(|(last_ms, count)| {
        let difference = last_ms.saturating_sub(before_ms);
        before_ms = *last_ms;
        (difference, *count)
    }))
}

fn of_differences<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u64, u64)>, D::Error> {
    let mut slots = Vec::<(u64, u64)>::deserialize(deserializer)?;
    let mut before_ms = 0_u64;
    for (last_ms, _) in &mut slots {
        *last_ms = last_ms.saturating_add(before_ms);
        before_ms = *last_ms;
    }
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WIDTH_MS: u64 = 60_000;

    #[test]
    fn a_call_leaves_the_window_after_its_width() {
        let mut window = SlidingWindow::default();
        for (now_ms, amount) in [(1_000, 5), (2_000, 7), (2_000, 1)] {
            window.add(now_ms, WIDTH_MS, Some(Amount::whole(amount)), PARTS_IN_ROW);
        }
        for (now_ms, count, sum) in
            [(2_000, 3, 13), (60_999, 3, 13), (61_000, 2, 8), (61_999, 2, 8), (62_000, 0, 0)]
        {
            let expected = Counted { count, sum: Amount::whole(sum) };
            assert_eq!(window.counted(now_ms, WIDTH_MS), expected, "{now_ms}");
        }
        assert_eq!(window.ends_at_ms(WIDTH_MS), 62_000);
    }

    #[test]
    fn the_stored_format_is_stable() {
        let mut window = SlidingWindow::default();
        window.add(1_795_000_000_000, WIDTH_MS, None, PARTS_IN_STATE);
        window.add(1_795_000_005_023, WIDTH_MS, None, PARTS_IN_STATE);
        let text = r#"{"slots":[[1795000000000,1],[5023,1]]}"#;
        assert_eq!(serde_json::to_string(&window).unwrap(), text);
        assert_eq!(serde_json::from_str::<SlidingWindow>(text).unwrap(), window);
        let mut summed = SlidingWindow::default();
        summed.add(1_795_000_000_000, WIDTH_MS, "12.5".parse().ok(), PARTS_IN_ROW);
        let text = r#"{"slots":[[1795000000000,1]],"sums":["12.5"]}"#;
        assert_eq!(serde_json::to_string(&summed).unwrap(), text);
        assert_eq!(serde_json::from_str::<SlidingWindow>(text).unwrap(), summed);
    }

    #[test]
    fn the_largest_sum_can_be_read_again() {
        let mut window = SlidingWindow::default();
        for now_ms in 0..100 {
            window.add(now_ms, WIDTH_MS, Some(Amount::LARGEST), PARTS_IN_STATE);
        }
        let counted = window.counted(100, WIDTH_MS).plus(Some(Amount::LARGEST));
        assert_eq!(counted, Counted { count: 101, sum: Amount::LARGEST });
        let text = serde_json::to_string(&(window.clone(), counted)).unwrap();
        let read: (SlidingWindow, Counted) = serde_json::from_str(&text).unwrap();
        assert_eq!(read, (window, counted));
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_counts_until_they_leave() {
        let mut window = SlidingWindow::default();
        window.add(10 * WIDTH_MS, WIDTH_MS, None, PARTS_IN_ROW);
        assert_eq!(window.counted(0, WIDTH_MS).count, 1, "before the repair");
        assert!(window.repair_clock(1_000) && !window.repair_clock(1_000));
        let counts = [1_000, WIDTH_MS + 999, WIDTH_MS + 1_000]
            .map(|now| window.counted(now, WIDTH_MS).count);
        assert_eq!(counts, [1, 1, 0]);
    }

    proptest! {
        /// Against a list of all calls: exact while there are few, and otherwise between the window's count and that
        /// of a window which is longer by a part. This holds even if the window is stored and read at any time, and if
        /// the clock goes back or jumps. A call that has left the window does not come back with the clock.
        #[test]
        fn counts_are_exact_or_a_little_high(
            steps in prop::collection::vec((
                prop_oneof![9 => -3_000_i64..12_000, 1 => -200_000_i64..200_000],
                0_u64..100,
                any::<bool>(),
            ), 1..300),
            parts in 2_usize..40,
        ) {
            let (mut window, mut model) = (SlidingWindow::default(), Vec::<(u64, u64, bool)>::new());
            let mut now_ms = 100_000_000_u64;
            for (step_ms, amount, stores) in steps {
                now_ms = now_ms.saturating_add_signed(step_ms);
                window.repair_clock(now_ms);
                if model.last().is_some_and(|(at_ms, ..)| *at_ms > now_ms + CLOCK_TOLERANCE_MS) {
                    model.iter_mut().for_each(|(at_ms, ..)| *at_ms = now_ms.min(*at_ms));
                }
                window.add(now_ms, WIDTH_MS, Some(Amount::whole(amount)), parts);
                let latest_ms = model.last().map_or(now_ms, |(at_ms, ..)| now_ms.max(*at_ms));
                for (at_ms, _, has_left) in &mut model {
                    *has_left |= *at_ms + WIDTH_MS <= latest_ms;
                }
                model.push((latest_ms, amount, false));
                if stores {
                    let text = serde_json::to_string(&window).unwrap();
                    window = serde_json::from_str(&text).unwrap();
                }
                let add = |(count, sum), (_, amount, _): &(u64, u64, bool)| (count + 1, sum + amount);
                let longer_ms = WIDTH_MS + WIDTH_MS / parts as u64;
                let low = model.iter().filter(|(_, _, has_left)| !has_left).fold((0, 0), add);
                let high = model.iter().filter(|(at_ms, ..)| at_ms + longer_ms > latest_ms);
                let high = high.fold((0, 0), add);
                let counted = window.counted(now_ms, WIDTH_MS);
                let sum = counted.sum.floor();
                prop_assert!(low.0 <= counted.count && counted.count <= high.0, "{counted:?} {low:?} {high:?}");
                prop_assert!(low.1 <= sum && sum <= high.1, "{counted:?} {low:?} {high:?}");
                prop_assert!(window.slots.len() <= parts + 1);
                prop_assert_eq!(window.slots.len(), window.sums.len());
                if model.len() <= parts {
                    prop_assert_eq!((counted.count, sum), low);
                }
            }
        }
    }
}
