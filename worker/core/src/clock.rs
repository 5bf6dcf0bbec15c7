//! Times that were stored by a clock that was ahead.
//!
//! Such a time would stop or mark an agent until the clock has caught up: for a day, if the clock was a
//! day ahead.
//!
//! INVARIANT (a repair hands nothing out): a repair moves a time or a day to now, and keeps what was
//! counted. While the clock was ahead, time itself did hand things out: each jump to a later day and
//! back lets an agent use its daily quota once more, and each jump ahead fills its bucket. A lane cannot
//! tell a jump ahead from a pause.

/// Milliseconds of a UTC day.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

/// How far in the future a stored time may lie without being repaired. The clocks of two machines that
/// run an object differ by milliseconds, so a larger difference means that a clock was wrong. A smaller
/// one is over after as many seconds.
pub const CLOCK_TOLERANCE_MS: u64 = 10_000;

/// Moves a time that lies in the future to now. Returns whether it did.
pub fn repair_time(at_ms: &mut u64, now_ms: u64) -> bool {
    repair_window(at_ms, 1, now_ms)
}

/// Moves the number of a window, or of a day, that lies in the future to the present one.
pub fn repair_window(window: &mut u64, width_ms: u64, now_ms: u64) -> bool {
    let repairs = window.saturating_mul(width_ms) > now_ms.saturating_add(CLOCK_TOLERANCE_MS);
    if repairs {
        *window = now_ms / width_ms;
    }
    repairs
}
