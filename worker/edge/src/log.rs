//! Writes the log. The core defines the lines (`gateward_core::log`).
//!
//! `entry.js` writes two of the events itself, because after a trap this module cannot run.

#![expect(clippy::disallowed_macros, reason = "the one place that writes to the log")]

use std::cell::RefCell;

use crate::io;
use gateward_core::call::command::GateCommand;
use gateward_core::isolate::outage::LogThrottle;
use gateward_core::log::{Event, Level, Line};
use worker::{console_error, console_log, console_warn};

thread_local! {
    /// The state of each event about an outage that was logged before.
    static OUTAGES: RefCell<Vec<(Event, LogThrottle)>> = const { RefCell::new(Vec::new()) };
}

/// The line of an event while a lane serves the command.
pub fn line(event: Event, command: &GateCommand, detail: String) -> Line<'_> {
    let line = Line::new(event, detail);
    Line {
        request_id: Some(&command.http_request_id),
        trace_id: command.trace_id,
        ..line.in_lane(&command.tenant, command.lane)
    }
}

/// Writes the line. One exception: for each event about an outage, at most one line is written in a second.
pub fn write(line: &Line<'_>) {
    let now_ms = io::now_ms();
    let left_out = if line.event.is_outage() { left_out(line.event, now_ms) } else { Some(0) };
    let text = match left_out {
        None => return,
        Some(0) => line.json(now_ms),
        Some(count) => {
            let detail = format!("{} ({count} similar lines were left out)", line.detail);
            Line { detail, ..*line }.json(now_ms)
        }
    };
    match line.event.level() {
        Level::Error => console_error!("{text}"),
        Level::Warn => console_warn!("{text}"),
        Level::Info => console_log!("{text}"),
    }
}

/// How many lines of an event were left out since the last one; `None` if this one is left out too.
fn left_out(event: Event, now_ms: u64) -> Option<u64> {
    OUTAGES.with_borrow_mut(|outages| match outages.iter_mut().find(|it| it.0 == event) {
        Some((_, throttle)) => throttle.line(now_ms),
        None => {
            let mut throttle = LogThrottle::default();
            let line = throttle.line(now_ms);
            outages.push((event, throttle));
            line
        }
    })
}
