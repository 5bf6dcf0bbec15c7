//! The time zones of the runtime, which has the IANA database.

use crate::io;

/// Seconds that local time in `zone` is ahead of UTC: see [`gateward_core::limit::OffsetS`].
pub fn offset_s(zone: &str, at_ms: u64) -> Option<i32> {
    if zone == "UTC" {
        return Some(0);
    }
    // `NaN` if the zone is unknown.
    let offset_s = io::offset_s(zone, at_ms as f64);
    offset_s.is_finite().then_some(offset_s as i32)
}
