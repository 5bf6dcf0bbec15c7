//! Rate limits: token buckets and sliding windows.
//!
//! All arithmetic is exact: it uses integers in millionths of a token, and a refill in thousandths of a token
//! per second. A clock that runs backwards refills nothing.

use serde::{Deserialize, Serialize};

use crate::clock::repair_window;

/// Millionths in one token.
const MICRO: u64 = 1_000_000;

/// The largest capacity of a bucket, so that no product overflows.
pub const MAX_CAPACITY: u32 = 1_000_000;
/// The fastest refill in tokens per second.
pub const MAX_REFILL_PER_S: f64 = 1_000_000.0;

/// A bucket's capacity and its refill.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    capacity: u32,
    refill_milli_per_s: u64,
}

impl Rate {
    /// Values out of range are clamped: at least one token, and at least one per 1,000 s.
    #[must_use]
    pub fn new(capacity: u32, refill_per_s: f64) -> Self {
        // Rounded down, so that no bucket gives more than its refill. Some products, such as that of 1.001, are a little
        // less than whole.
        let refill = (refill_per_s.clamp(0.001, MAX_REFILL_PER_S) * 1_000.0 + 1e-6).floor();
        Self {
            capacity: capacity.clamp(1, MAX_CAPACITY),
            refill_milli_per_s: (refill as u64).max(1),
        }
    }

    #[must_use]
    pub const fn capacity(self) -> u32 {
        self.capacity
    }

    /// Whole tokens per second, rounded down.
    #[must_use]
    pub const fn refill_per_s(self) -> u64 {
        self.refill_milli_per_s / 1_000
    }

    /// Seconds until an empty bucket is full, rounded up: the `w` of `RateLimit-Policy`.
    #[must_use]
    pub fn window_s(self) -> u64 {
        self.seconds_for(u64::from(self.capacity) * MICRO)
    }

    fn seconds_for(self, micro: u64) -> u64 {
        micro.div_ceil(self.refill_milli_per_s * 1_000)
    }
}

/// One agent's bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    micro: u64,
    at_ms: u64,
}

/// The state of a bucket for response headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStatus {
    pub limit: u32,
    pub window_s: u64,
    pub remaining: u32,
    /// Seconds until the bucket is full again.
    pub reset_s: u64,
    /// Seconds until one token is available; 0 if one is.
    pub retry_after_s: u64,
}

impl Bucket {
    #[must_use]
    pub fn full(rate: Rate, now_ms: u64) -> Self {
        Self { micro: u64::from(rate.capacity) * MICRO, at_ms: now_ms }
    }

    /// Refills, then takes these tokens. Returns false and takes nothing when there are fewer.
    pub fn charge(&mut self, rate: Rate, now_ms: u64, tokens: u32) -> bool {
        let elapsed_ms = now_ms.saturating_sub(self.at_ms);
        let full = u64::from(rate.capacity) * MICRO;
        // With 64 leading zeros in both factors together, the product is below 2^64. With fewer, it is at least 2^63,
        // which is more than any bucket holds. Wasm has no instruction for a saturating product.
        let zeros = elapsed_ms.leading_zeros() + rate.refill_milli_per_s.leading_zeros();
        let refill = if zeros < u64::BITS { full } else { elapsed_ms * rate.refill_milli_per_s };
        self.micro = self.micro.saturating_add(refill).min(full);
        self.at_ms = self.at_ms.max(now_ms);
        let left = self.micro.checked_sub(u64::from(tokens) * MICRO);
        self.micro = left.unwrap_or(self.micro);
        left.is_some()
    }

    /// Puts back tokens that were charged too early. They can exceed the capacity until the next charge, which reduces
    /// them to the capacity.
    pub fn give_back(&mut self, tokens: u32) {
        self.micro = self.micro.saturating_add(u64::from(tokens) * MICRO);
    }

    /// If the last charge is in the future, lets the refill start now. The tokens stay.
    pub fn repair_clock(&mut self, now_ms: u64) -> bool {
        repair_window(&mut self.at_ms, 1, now_ms)
    }

    /// Seconds until this many tokens are available; 0 if they are.
    #[must_use]
    pub fn retry_after_s(&self, rate: Rate, tokens: u32) -> u64 {
        rate.seconds_for((u64::from(tokens) * MICRO).saturating_sub(self.micro))
    }

    #[must_use]
    pub fn status(&self, rate: Rate) -> RateStatus {
        let full = u64::from(rate.capacity) * MICRO;
        RateStatus {
            limit: rate.capacity,
            window_s: rate.window_s(),
            remaining: u32::try_from(self.micro / MICRO).unwrap_or(rate.capacity),
            reset_s: rate.seconds_for(full.saturating_sub(self.micro)),
            retry_after_s: self.retry_after_s(rate, 1),
        }
    }
}

/// An approximate count of the events in the last `width_ms`: the count of the current window, and a share of
/// the previous one's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlidingCount {
    window: u64,
    current: u32,
    previous: u32,
}

impl SlidingCount {
    fn advance(&mut self, now_ms: u64, width_ms: u64) {
        let window = now_ms / width_ms;
        if window > self.window {
            self.previous = if window == self.window + 1 { self.current } else { 0 };
            self.current = 0;
            self.window = window;
        }
    }

    /// If the window is in the future, moves it to the present. The counts stay.
    pub fn repair_clock(&mut self, now_ms: u64, width_ms: u64) -> bool {
        repair_window(&mut self.window, width_ms, now_ms)
    }

    pub fn add(&mut self, now_ms: u64, width_ms: u64) {
        self.advance(now_ms, width_ms);
        self.current = self.current.saturating_add(1);
    }

    #[must_use]
    pub fn count(mut self, now_ms: u64, width_ms: u64) -> u32 {
        self.advance(now_ms, width_ms);
        let left_ms = width_ms - now_ms % width_ms;
        let share = u64::from(self.previous) * left_ms / width_ms;
        self.current.saturating_add(u32::try_from(share).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_window_forgets_events_after_two_widths() {
        let mut count = SlidingCount::default();
        (0..10).for_each(|_| count.add(1_000, 1_000));
        let seen: Vec<u32> = [1_999, 2_000, 2_500, 3_000].map(|now| count.count(now, 1_000)).into();
        assert_eq!(seen, [10, 10, 5, 0]);
    }

    #[test]
    fn a_refill_is_rounded_down_to_thousandths() {
        for (refill_per_s, window_s) in [
            (0.0015, 60_000),
            (0.001, 60_000),
            (0.0019, 60_000),
            (1.0 / 60.0, 3_750),
            (1.001, 60),
            (0.0, 60_000),
        ] {
            assert_eq!(Rate::new(60, refill_per_s).window_s(), window_s, "{refill_per_s}");
        }
        for thousandths in 1..100_000_u32 {
            let rate = Rate::new(1, f64::from(thousandths) / 1_000.0);
            assert_eq!(rate.refill_milli_per_s, u64::from(thousandths));
        }
    }

    proptest! {
        /// Whatever the order of the times, a bucket gives at most its capacity plus the refill.
        #[test]
        fn a_bucket_never_gives_more_than_its_bound(
            capacity in 1u32..50,
            refill in 0.01f64..100.0,
            times in prop::collection::vec(0u64..120_000, 1..400),
        ) {
            let rate = Rate::new(capacity, refill);
            let mut bucket = Bucket::full(rate, 0);
            let taken = times.iter().filter(|now| bucket.charge(rate, **now, 1)).count() as f64;
            let latest = times.iter().max().copied().unwrap_or(0) as f64;
            let refilled = latest / 1_000.0 * refill;
            prop_assert!(taken <= f64::from(capacity) + refilled + 1e-6);
        }
    }
}
