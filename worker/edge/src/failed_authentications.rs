//! Counts requests whose credential no lane could be asked about, in the isolate's memory, and
//! writes the counts to D1: a stranger can neither wake a lane nor cause a row per request.
//!
//! Each isolate adds what it counted, so the row of a source and window holds the sum.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv6Addr};

use gateward_core::lane::audit::{AuditCount, AuditCounts};
use worker::{Date, console_error};

use crate::d1;
use crate::http::Request;
use crate::router::App;

/// Addresses that are told apart within a minute: a stranger causes at most as many rows.
const MAX_COUNTED_ADDRESSES: usize = 64;

thread_local! {
    // What isolates write is added up, so they need no scopes.
    static COUNTS: RefCell<AuditCounts> =
        RefCell::new(AuditCounts::new(MAX_COUNTED_ADDRESSES, String::new()));
}

/// Counts one, under the address that connected.
pub fn count(request: &Request, app: &App) {
    let source = request.source_address().map_or("unknown".to_owned(), network);
    let now_ms = Date::now().as_millis();
    let count =
        COUNTS.with(|counts| counts.borrow_mut().record("authentication_failed", &source, now_ms));
    write(app, count.into_iter().collect());
}

/// The address, or of an IPv6 address its /64, which is one subscriber's.
fn network(address: IpAddr) -> String {
    match address {
        IpAddr::V6(address) => {
            format!("{}/64", Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        IpAddr::V4(address) => address.to_string(),
    }
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
