//! What the limits of an agent cost: finding those that cover a call, reading the call's number, checking every kind of
//! limit, and using them.
//!
//! INVARIANT (open): no limit is used up and no state grows, however many runs there are.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use gateward_core::gate::limits::agent_book;
use gateward_core::json::{self, Json};
use gateward_core::limit::book::At;
use gateward_core::limit::status::status;
use gateward_core::limit::usage::{self, Covered, Ledger, Usage, Use};
use gateward_core::limit::window::utc_only;
use gateward_core::limit::{Amount, Currency, Kind, Limit, Measured};
use serde_json::json;

use crate::decide::NOW_MS;
use crate::operation::{GATEWARD, Operation};

const TOOL: &str = "bank/send_money";
const COVERED: Covered = Covered { reads: false, writes: true };
/// Concurrency counts only calls that are forwarded.
const FORWARDED: bool = true;

/// The largest whole amount. Billions of runs use a small part of it.
const MAX: &str = "999999999999999999";

/// Fewer calls than the rate allows, which is 1,000 in a millisecond. A power of two: to divide by it takes no time.
pub const RUNS_PER_MS: u64 = 512;

pub fn operations() -> Vec<Operation> {
    vec![
        Operation::new("limits_check_and_commit", GATEWARD, || {
            let mut ledgers = ledgers_of(|_| true);
            let uses = uses(&ledgers, &payment());
            call(&mut ledgers, &uses, NOW_MS);
            assert_counted(&ledgers, 5);
            let state = RefCell::new((ledgers, 0_u64));
            move || {
                let (ledgers, runs) = &mut *state.borrow_mut();
                *runs += 1;
                call(ledgers, black_box(&uses), NOW_MS + *runs / RUNS_PER_MS);
            }
        }),
        Operation::new("limits_check_without_rate", GATEWARD, || {
            let mut ledgers = ledgers_of(|limit| limit.kind != Kind::Rate);
            let uses = uses(&ledgers, &payment());
            // A book that has counted before, as most books have.
            call(&mut ledgers, &uses, NOW_MS);
            assert_counted(&ledgers, 4);
            let ledgers = RefCell::new(ledgers);
            move || {
                let ledgers = &mut *ledgers.borrow_mut();
                call(ledgers, black_box(&uses), black_box(NOW_MS));
            }
        }),
        Operation::new("limits_select", GATEWARD, || {
            let (ledgers, input) = (ledgers_of(|_| true), payment());
            assert_eq!(uses(&ledgers, &input).len(), Kind::ALL.len());
            move || uses(&ledgers, black_box(&input))
        }),
        Operation::new("limits_extract", GATEWARD, || {
            let currency = Currency { pointer: "/currency".to_owned(), is: "EUR".to_owned() };
            let measured = Measured { pointer: "/amount".to_owned(), currency: Some(currency) };
            let (input, expected): (_, Amount) = (payment(), "129.95".parse().unwrap());
            assert_eq!(measured.read(&input, &[]), Some(expected));
            move || measured.read(black_box(&input), &[])
        }),
    ]
}

/// What a call uses of the limits that cover it.
pub fn uses<'a>(ledgers: &[Ledger<'a>], input: &Json) -> Vec<Use<'a>> {
    let cost = Amount::whole(1);
    let rounded = &[];
    let usage = Usage { tool: TOOL, covered: COVERED, input, rounded, cost, forwarded: FORWARDED };
    usage::uses(ledgers, &usage)
}

/// Checks the limits and uses them. It panics if a limit stops the call.
pub fn call(ledgers: &mut [Ledger<'_>], uses: &[Use<'_>], now_ms: u64) {
    let needs = usage::apply(ledgers, uses, FORWARDED, at(now_ms)).unwrap();
    assert!(needs.is_empty());
}

/// The runtime, which has the other time zones, is not asked.
fn at(now_ms: u64) -> At {
    At { now_ms, offset_s: utc_only }
}

/// Arguments of usual size.
fn payment() -> Json {
    let text = json!({
        "account": "DE89370400440532013000",
        "amount": 129.95,
        "currency": "EUR",
        "execute_on": "2026-11-20",
        "recipient": "Example Supplies GmbH",
        "reference": "Invoice 2026-1187",
    })
    .to_string();
    json::parse(text.as_bytes()).unwrap()
}

/// An agent with one limit of each kind that `has` accepts, and an empty book.
pub fn ledgers_of(has: impl Fn(&Rc<Limit>) -> bool) -> [Ledger<'static>; 1] {
    let days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let euros = json!({"pointer": "/currency", "is": "EUR"});
    let rules = [
        json!({"kind": "hours", "days": days, "hours": ["00:00-24:00"]}),
        json!({"kind": "per_call", "max": "1000", "pointer": "/amount", "currency": euros}),
        json!({"kind": "rate", "capacity": 1_000_000, "refill_per_s": 1_000_000}),
        json!({"kind": "concurrency", "max": MAX}),
        json!({"kind": "quota", "max": MAX, "window": "day"}),
        json!({"kind": "amount", "max": MAX, "window": "month", "pointer": "/amount", "currency": euros}),
        json!({"kind": "budget", "max": MAX, "window": "month"}),
    ];
    let limits = rules.iter().map(|rule| json!({"limit_id": rule["kind"], "rule": rule}));
    let mut limits: Vec<Rc<Limit>> = serde_json::from_value(limits.collect()).unwrap();
    let kinds: Vec<Kind> = limits.iter().map(|limit| limit.kind).collect();
    assert_eq!(kinds, Kind::ALL);
    limits.retain(has);
    [Ledger { name: agent_book("coder").into(), limits: limits.leak(), ..Ledger::default() }]
}

/// This many limits count calls, and each has counted one.
fn assert_counted(ledgers: &[Ledger<'_>], limits: usize) {
    let Ledger { limits: all, book, .. } = &ledgers[0];
    let states = all.iter().map(|limit| status(book, limit, at(NOW_MS)));
    let counts: Vec<_> = states.filter(|state| state.remaining.is_some()).collect();
    assert_eq!(counts.len(), limits);
    assert!(counts.iter().all(|state| state.remaining < state.max));
}
