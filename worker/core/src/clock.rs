//! Repairs of stored times that are in the future because a clock was ahead.
//!
//! Without a repair, such a time would stop or taint an agent until the clock catches up: for a day, if the
//! clock was a day ahead.
//!
//! INVARIANT (a repair grants nothing): a repair moves a time or a day to the present and keeps the counts.
//! A clock that jumps ahead does grant something: each jump to a later day and back gives a tenant its rows
//! of a day again, and each jump ahead refills an agent's bucket. A lane cannot distinguish a jump from a pause.

/// Milliseconds of a UTC day.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How far in the future a stored time may be without a repair. The clocks of the machines that run an
/// object differ by milliseconds, so a larger difference means that a clock was wrong. A smaller one ends
/// by itself within these seconds.
pub const CLOCK_TOLERANCE_MS: u64 = 10_000;

/// Moves a time that is in the future to now. Returns whether it did.
pub fn repair_time(at_ms: &mut u64, now_ms: u64) -> bool {
    repair_window(at_ms, 1, now_ms)
}

/// Moves the number of a window, or of a day, that is in the future to the present one. Returns whether it
/// did.
pub fn repair_window(window: &mut u64, width_ms: u64, now_ms: u64) -> bool {
    let repairs = window.saturating_mul(width_ms) > now_ms.saturating_add(CLOCK_TOLERANCE_MS);
    if repairs {
        *window = now_ms / width_ms;
    }
    repairs
}
