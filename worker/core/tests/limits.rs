//! What limits allow, over random histories.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::rc::Rc;

use gateward_core::json::{self, Json};
use gateward_core::limit::book::{self, At, Covered, Ledger, Usage};
use gateward_core::limit::reservation::{Ending, Reservation, Take};
use gateward_core::limit::status::status;
use gateward_core::limit::window::utc_only;
use gateward_core::limit::{Amount, Book, Kind, Limit, Violation};
use proptest::prelude::*;
use serde_json::json;

const START_MS: u64 = 1_800_000_000_000;
const MINUTE_MS: u64 = 60_000;
const WRITE: Covered = Covered { reads: false, writes: true };
const DAY_MS: u64 = 1_440 * MINUTE_MS;

fn limit(id: &str, definition: serde_json::Value) -> Rc<Limit> {
    serde_json::from_value(json!({"limit_id": id, "rule": definition})).map(Rc::new).unwrap()
}

fn whole(number: u64) -> Amount {
    Amount::whole(number)
}

fn input(amount: u64) -> Json {
    json::parse(format!(r#"{{"amount":{amount},"currency":"EUR"}}"#).as_bytes()).unwrap()
}

fn at(now_ms: u64) -> At {
    At { now_ms, offset_s: utc_only }
}

/// A book, and calls of one tool.
struct Desk {
    limits: Vec<Rc<Limit>>,
    book: Book,
}

impl Desk {
    fn new(limits: Vec<Rc<Limit>>) -> Self {
        Self { limits, book: Book::default() }
    }

    fn ledger(&mut self) -> Ledger<'_> {
        let book = std::mem::take(&mut self.book);
        Ledger { name: "agent/bot".into(), limits: &self.limits, book, leased: None }
    }

    /// What a call takes, if no limit denies it. `passes`: what the steps after the limits say.
    fn call(
        &mut self,
        input: &Json,
        (forwarded, passes): (bool, bool),
        now_ms: u64,
    ) -> Result<Vec<Take>, Box<Violation>> {
        let usage = Usage { tool: "bank/refund", covered: WRITE, input, cost: whole(3), forwarded };
        let mut ledgers = [self.ledger()];
        let checked = book::check(&mut ledgers, &usage, at(now_ms)).map(|checked| checked.takes);
        if let (Ok(takes), true) = (&checked, passes) {
            book::commit(&mut ledgers, takes, forwarded, at(now_ms));
        }
        let [Ledger { book, .. }] = ledgers;
        self.book = book;
        checked
    }

    fn settle(&mut self, takes: &[Take], reserved: bool, ending: Ending) {
        let reservation = Reservation {
            decision_id: String::new(),
            ends_at_ms: 0,
            agent: "bot".to_owned(),
            credential: "k1".to_owned(),
            forwarded: reserved,
            takes: takes.to_vec(),
        };
        book::settle(("agent/bot", &mut self.book), &reservation, ending);
    }

    fn used(&self, id: &str, now_ms: u64) -> u64 {
        let limit = self.limits.iter().find(|limit| limit.limit_id == id).unwrap();
        let status = status(&self.book, limit, at(now_ms));
        let left = status.remaining.unwrap().as_whole().unwrap();
        status.max.unwrap().as_whole().unwrap() - left
    }

    fn restart(&mut self) {
        let stored = serde_json::to_string(&self.book).unwrap();
        self.book = serde_json::from_str(&stored).unwrap();
    }
}

fn daily_amount(max: &str) -> Rc<Limit> {
    let definition = json!({"kind": "amount", "max": max, "pointer": "/amount", "window": "day"});
    limit("refunds", definition)
}

#[test]
fn the_first_limit_that_a_call_violates_decides_in_a_fixed_order() {
    let definitions = [
        ("hours", json!({"kind": "hours", "days": []})),
        ("per_call", json!({"kind": "per_call", "max": "0", "pointer": "/amount"})),
        ("rate", json!({"kind": "rate", "capacity": 1, "refill_per_s": 0.001})),
        ("concurrency", json!({"kind": "concurrency", "max": "0"})),
        ("quota", json!({"kind": "quota", "max": "0", "window": "day"})),
        ("amount", json!({"kind": "amount", "max": "0", "pointer": "/amount", "window": "day"})),
        ("budget", json!({"kind": "budget", "max": "0", "window": "day"})),
    ];
    let mut limits: Vec<_> =
        definitions.into_iter().map(|(id, definition)| limit(id, definition)).collect();
    // Whatever order the records have.
    limits.reverse();
    while let Some(expected) = Kind::ALL.get(7 - limits.len()) {
        let mut desk = Desk::new(limits.clone());
        if *expected == Kind::Rate {
            desk.call(&input(1), (true, true), START_MS).unwrap_err();
        }
        let found = desk.call(&input(1), (true, true), START_MS).unwrap_err();
        assert_eq!((found.kind, found.limit_id.as_str()), (*expected, expected.as_str()));
        limits.pop();
    }
    let mut desk = Desk::new(Vec::new());
    assert_eq!(desk.call(&input(1), (true, true), START_MS), Ok(Vec::new()));
}

#[test]
fn a_call_that_a_later_step_denies_uses_nothing_but_its_rate() {
    let rate = json!({"kind": "rate", "capacity": 2, "refill_per_s": 0.001});
    let quota = json!({"kind": "quota", "max": "5", "window": "day"});
    let mut desk = Desk::new(vec![limit("rate", rate), limit("quota", quota), daily_amount("9")]);
    for _ in 0..2 {
        desk.call(&input(1), (false, false), START_MS).unwrap();
    }
    assert_eq!((desk.used("quota", START_MS), desk.used("refunds", START_MS)), (0, 0));
    let found = desk.call(&input(1), (false, false), START_MS).unwrap_err();
    assert_eq!((found.kind, found.retry_after_s), (Kind::Rate, Some(1_000)));
}

#[test]
fn a_number_that_cannot_be_read_denies() {
    let euros = json!({"kind": "amount", "max": "9", "pointer": "/amount", "window": "day",
                       "currency": {"pointer": "/currency", "is": "EUR"}});
    let nowhere = json!({"kind": "quota", "max": "9", "window": "day", "time_zone": "Mars/Base"});
    for (what, limits, text, expected) in [
        ("number", vec![daily_amount("9")], r#"{"amount":9}"#, None),
        ("text of digits", vec![daily_amount("9")], r#"{"amount":"8.99"}"#, None),
        ("nothing", vec![daily_amount("9")], r#"{}"#, Some("unreadable")),
        ("null", vec![daily_amount("9")], r#"{"amount":null}"#, Some("unreadable")),
        ("negative", vec![daily_amount("9")], r#"{"amount":-1}"#, Some("unreadable")),
        ("list", vec![daily_amount("9")], r#"{"amount":[1]}"#, Some("unreadable")),
        ("too many digits", vec![daily_amount("9")], r#"{"amount":1e-10}"#, Some("unreadable")),
        (
            "more than is left",
            vec![daily_amount("9")],
            r#"{"amount":9.000000001}"#,
            Some("exceeded"),
        ),
        ("its currency", vec![limit("e", euros.clone())], r#"{"amount":1,"currency":"EUR"}"#, None),
        (
            "another currency",
            vec![limit("e", euros.clone())],
            r#"{"amount":1,"currency":"USD"}"#,
            Some("unreadable"),
        ),
        ("no currency", vec![limit("e", euros)], r#"{"amount":1}"#, Some("unreadable")),
        ("unknown time zone", vec![limit("z", nowhere)], r#"{}"#, Some("unreadable")),
    ] {
        let call = json::parse(text.as_bytes()).unwrap();
        let found = Desk::new(limits).call(&call, (false, true), START_MS);
        assert_eq!(found.err().map(|found| found.why.as_str()), expected, "{what}");
    }
}

#[test]
fn a_changed_limit_applies_to_the_next_call_and_does_not_wrap() {
    let mut desk = Desk::new(vec![daily_amount("100")]);
    desk.call(&input(80), (false, true), START_MS).unwrap();
    desk.limits = vec![daily_amount("50")];
    let found = desk.call(&input(1), (false, true), START_MS).unwrap_err();
    assert_eq!((found.remaining, found.max), (Some(Amount::ZERO), Some(whole(50))));
    desk.limits = vec![daily_amount("81")];
    desk.call(&input(1), (false, true), START_MS).unwrap();
    desk.call(&input(1), (false, true), START_MS).unwrap_err();
}

#[test]
fn a_clock_that_goes_back_reopens_no_window() {
    let quota = json!({"kind": "quota", "max": "2", "window": "minute"});
    let mut desk = Desk::new(vec![limit("quota", quota)]);
    let next = START_MS + MINUTE_MS;
    let mut passes = |now_ms| desk.call(&input(1), (false, true), now_ms).is_ok();
    let times = [next, next - 1, next - 5_000, next, next + 1];
    assert_eq!(times.map(&mut passes), [true, true, false, false, false]);
    // A clock that was a day ahead: its window lasts until it is over.
    let ahead = next + DAY_MS;
    let times = [ahead, next, next, next + MINUTE_MS, ahead + MINUTE_MS];
    assert_eq!(times.map(&mut passes), [true, true, false, false, true]);
    // A year ahead: what was used then counts now.
    let times = [ahead + 365 * DAY_MS, ahead, ahead, ahead + MINUTE_MS];
    assert_eq!(times.map(&mut passes), [true, true, false, true]);
}

#[test]
fn calls_in_progress_count_until_they_are_settled() {
    let concurrency = json!({"kind": "concurrency", "max": "2"});
    let mut desk = Desk::new(vec![limit("at-once", concurrency)]);
    let one = desk.call(&input(1), (true, true), START_MS).unwrap();
    desk.call(&input(1), (true, true), START_MS).unwrap();
    let found = desk.call(&input(1), (true, true), START_MS).unwrap_err();
    assert_eq!((found.kind, found.retry_after_s), (Kind::Concurrency, Some(1)));
    assert_eq!(
        desk.call(&input(1), (false, true), START_MS),
        Ok(Vec::new()),
        "nobody sees its end"
    );
    desk.settle(&one, true, Ending::Unclear);
    desk.restart();
    desk.call(&input(1), (true, true), START_MS).unwrap();
    desk.call(&input(1), (true, true), START_MS).unwrap_err();
}

#[test]
fn what_is_settled_is_kept_or_given_back() {
    let unclear = |unclear: &str| {
        let definition = json!({"kind": "amount", "max": "100", "pointer": "/amount", "window": "day",
                                "unclear": unclear});
        limit("refunds", definition)
    };
    for (limit, ending, kept) in [
        (daily_amount("100"), Ending::Succeeded(None), 60),
        (daily_amount("100"), Ending::Succeeded(Some(whole(45))), 45),
        (daily_amount("100"), Ending::Succeeded(Some(whole(61))), 60),
        (daily_amount("100"), Ending::Failed, 0),
        (daily_amount("100"), Ending::Unclear, 60),
        (unclear("return"), Ending::Unclear, 0),
    ] {
        for forwarded in [true, false] {
            let mut desk = Desk::new(vec![Rc::clone(&limit)]);
            let takes = desk.call(&input(60), (forwarded, true), START_MS).unwrap();
            assert_eq!(desk.used("refunds", START_MS), 60);
            desk.settle(&takes, forwarded, ending);
            assert_eq!(desk.used("refunds", START_MS), kept, "{ending:?}");
            let next_day = START_MS + DAY_MS;
            desk.call(&input(100), (forwarded, true), next_day).unwrap();
            desk.settle(&takes, forwarded, Ending::Failed);
            assert_eq!(desk.used("refunds", next_day), 100, "of another window");
        }
    }
}

#[derive(Debug, Clone)]
enum Event {
    Call {
        amount: u64,
        forwarded: bool,
        passes: bool,
    },
    /// Which of the calls in progress, and how it ends.
    Settle {
        which: usize,
        ending: Ending,
    },
    Clock {
        by_ms: i64,
    },
    Restart,
}

fn event() -> impl Strategy<Value = Event> {
    let ending = prop_oneof![
        (0..60_u64).prop_map(|actual| Ending::Succeeded(Some(whole(actual)))),
        Just(Ending::Succeeded(None)),
        Just(Ending::Failed),
        Just(Ending::Unclear),
    ];
    prop_oneof![
        5 => (0..60_u64, any::<bool>(), prop::bool::weighted(0.9))
            .prop_map(|(amount, forwarded, passes)| Event::Call { amount, forwarded, passes }),
        4 => (any::<usize>(), ending).prop_map(|(which, ending)| Event::Settle { which, ending }),
        2 => (-8_000..40_000_i64).prop_map(|by_ms| Event::Clock { by_ms }),
        1 => Just(Event::Restart),
    ]
}

/// One window as a list of what each call holds of it.
#[derive(Default)]
struct Model {
    minute: u64,
    held: Vec<(usize, u64)>,
}

impl Model {
    fn sum(&self) -> u64 {
        self.held.iter().map(|(_, amount)| amount).sum()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever happens, the book has what the model has, and never more than the limit.
    #[test]
    fn a_book_equals_its_model(events in prop::collection::vec(event(), 1..120)) {
        const MAX: u64 = 100;
        let definition = json!({"kind": "amount", "max": "100", "pointer": "/amount", "window": "minute"});
        let mut desk = Desk::new(vec![limit("refunds", definition)]);
        let (mut model, mut now_ms) = (Model::default(), START_MS);
        let mut open: Vec<(usize, Vec<Take>, bool)> = Vec::new();
        for (id, event) in events.into_iter().enumerate() {
            match event {
                Event::Call { amount, forwarded, passes } => {
                    let minute = now_ms / MINUTE_MS;
                    let used = if minute > model.minute { 0 } else { model.sum() };
                    let called = desk.call(&input(amount), (forwarded, passes), now_ms);
                    prop_assert_eq!(called.is_ok(), used + amount <= MAX);
                    if let (Ok(takes), true) = (called, passes) {
                        if minute > model.minute {
                            model = Model { minute, held: Vec::new() };
                        }
                        model.held.push((id, amount));
                        open.push((id, takes, forwarded));
                    }
                }
                Event::Settle { which, ending } if !open.is_empty() => {
                    let (id, takes, forwarded) = open.swap_remove(which % open.len());
                    desk.settle(&takes, forwarded, ending);
                    for (of, amount) in &mut model.held {
                        if *of == id {
                            *amount = match ending {
                                Ending::Succeeded(Some(actual)) => actual.as_whole().unwrap().min(*amount),
                                Ending::Succeeded(None) | Ending::Unclear => *amount,
                                Ending::Failed => 0,
                            };
                        }
                    }
                }
                Event::Settle { .. } => {}
                Event::Clock { by_ms } => now_ms = now_ms.saturating_add_signed(by_ms),
                Event::Restart => desk.restart(),
            }
            let used = if now_ms / MINUTE_MS > model.minute { 0 } else { model.sum() };
            prop_assert_eq!(desk.used("refunds", now_ms), used);
            prop_assert!(used <= MAX);
        }
    }
}
