//! Counts requests whose credential no lane could be asked about, in the isolate's memory, and
//! writes the counts to D1: a stranger can neither wake a lane nor cause a row per request.
//!
//! Each isolate adds what it counted, so the row of a source and window holds the sum.

use std::cell::RefCell;

use gateward_core::audit::{AuditCount, AuditCounts};
use worker::{Date, Request, console_error};

use crate::d1;
use crate::http::header;
use crate::router::App;

thread_local! {
    static COUNTS: RefCell<AuditCounts> = RefCell::default();
}

/// Counts one, under the address that connected.
pub fn count(request: &Request, app: &App) {
    let source = header(request, "cf-connecting-ip").unwrap_or_else(|| "unknown".to_owned());
    let now_ms = Date::now().as_millis();
    let count =
        COUNTS.with(|counts| counts.borrow_mut().record("authentication_failed", &source, now_ms));
    write(app, count.into_iter().collect());
}

/// Writes what windows that have closed still have to tell.
pub fn write_closed(app: &App) {
    let closed = COUNTS.with(|counts| {
        let mut counts = counts.borrow_mut();
        if counts.is_empty() { Vec::new() } else { counts.close(Date::now().as_millis()) }
    });
    write(app, closed);
}

/// After the answer left: nobody waits for it.
fn write(app: &App, counts: Vec<AuditCount>) {
    if counts.is_empty() {
        return;
    }
    let env = app.env.clone();
    app.context.wait_until(async move {
        for count in counts {
            if let Err(error) = d1::audit::count_failed_authentication(&env, &count).await {
                console_error!("audit count `{}` is lost: {error}", count.event_id);
            }
        }
    });
}
