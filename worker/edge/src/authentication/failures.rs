//! Counts requests with an invalid credential, and requests with a locator and no valid warrant. The isolate counts in
//! memory, and writes the counts to D1. So unauthenticated requests wake no lane, and do not write a row each.
//!
//! Each isolate adds its counts, so the row of a source and window holds their sum.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use gateward_core::decision::ReasonCode;
use gateward_core::gate::CountedEvent;
use gateward_core::lane::audit::{AuditCount, AuditCounts};
use gateward_core::log::{Event, Line};
use gateward_core::metrics::Series;
use gateward_core::problem::ProblemCode;

use crate::app::App;
use crate::d1;
use crate::http::Request;
use crate::io;
use crate::log;

/// Addresses that are counted separately within a minute, for each reason. Unauthenticated requests write at most this
/// many rows a minute, and one more for each reason. Rows of metrics are in addition.
const MAX_COUNTED_ADDRESSES: usize = 64;

/// Pairs of a tenant and a reason that are counted separately for metrics between two writes. Failures of other pairs
/// are counted for no tenant.
const MAX_COUNTED_PAIRS: usize = 64;

thread_local! {
    // Rows of different isolates are added up, so the event ids need no scope.
    static COUNTS: RefCell<AuditCounts> =
        RefCell::new(AuditCounts::new(MAX_COUNTED_ADDRESSES, String::new()));
    /// For metrics: failures that are not written yet, by tenant and code. They are written with the counts.
    static FAILURES: RefCell<BTreeMap<(String, &'static str), u64>> =
        const { RefCell::new(BTreeMap::new()) };
}

/// Counts one failure of the connecting address, and of the tenant and the reason. The tenant is known if the token's MAC
/// is right, whatever is wrong with the credential.
pub fn count(request: &Request, app: &App, tenant: Option<&str>, reason: ProblemCode) {
    record(request, app, tenant, (CountedEvent::AuthenticationFailed.as_str(), reason.code()));
}

/// The same for a caller without a credential.
pub fn count_warrant(request: &Request, app: &App, tenant: &str, reason: ReasonCode) {
    record(
        request,
        app,
        Some(tenant),
        (CountedEvent::WarrantRefused(reason).as_str(), reason.code()),
    );
}

fn record(
    request: &Request,
    app: &App,
    tenant: Option<&str>,
    (kind, reason): (&'static str, &'static str),
) {
    let mut pair = (tenant.unwrap_or_default().to_owned(), reason);
    FAILURES.with_borrow_mut(|failures| {
        if failures.len() >= MAX_COUNTED_PAIRS && !failures.contains_key(&pair) {
            pair.0.clear();
        }
        *failures.entry(pair).or_default() += 1;
    });
    let source = request.source_address().map_or("unknown".to_owned(), network);
    let now_ms = io::now_ms();
    let count = COUNTS.with_borrow_mut(|counts| counts.record(kind, &source, now_ms));
    write(app, count.into_iter().collect());
}

/// An IPv4 address as it is. For an IPv6 address, its /64 network: a subscriber usually gets a whole /64.
fn network(address: IpAddr) -> String {
    match address {
        IpAddr::V6(address) => {
            format!("{}/64", Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)))
        }
        IpAddr::V4(address) => address.to_string(),
    }
}

/// Writes the counts of windows that have closed.
pub fn write_closed(app: &App) {
    let closed = COUNTS.with(|counts| {
        let mut counts = counts.borrow_mut();
        if counts.is_empty() { Vec::new() } else { counts.close(io::now_ms()) }
    });
    write(app, closed);
}

/// Writes after the response was sent, so no caller waits for it.
fn write(app: &App, counts: Vec<AuditCount>) {
    if counts.is_empty() {
        return;
    }
    let failures = FAILURES.take();
    let env = app.env.clone();
    app.context.wait_until(async move {
        for count in counts {
            if let Err(error) = d1::audit::count_failed_authentication(&env, &count).await {
                let detail = format!("`{}`: {error}", count.event_id);
                log::write(&Line::new(Event::AuditCountLost, detail));
            }
        }
        if failures.is_empty() {
            return;
        }
        let series = failures.iter().map(|((tenant, reason), count)| {
            (tenant.as_str(), Series::FailedAuthentication(reason), *count)
        });
        if let Err(error) = d1::metrics::count(&env, series).await {
            let count: u64 = failures.values().sum();
            let detail = format!("{count} failed authentications: {error}");
            log::write(&Line::new(Event::MetricsUnavailable, detail));
        }
    });
}
