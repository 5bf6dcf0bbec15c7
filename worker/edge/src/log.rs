//! Writes the log. What a line says is the core's (`gateward_core::log`).
//!
//! `entry.js` writes two of the events itself: after a trap, nothing of this module can run.

#![expect(clippy::disallowed_macros, reason = "the one place that writes to the log")]

use gateward_core::log::{Level, Line};
use worker::{Date, console_error, console_log, console_warn};

pub fn write(line: &Line<'_>) {
    let text = line.json(Date::now().as_millis());
    match line.event.level() {
        Level::Error => console_error!("{text}"),
        Level::Warn => console_warn!("{text}"),
        Level::Info => console_log!("{text}"),
    }
}
