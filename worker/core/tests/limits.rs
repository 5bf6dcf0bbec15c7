//! What limits allow, over random histories.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod model;

use std::rc::Rc;

use gateward_core::json::{self, Json};
use gateward_core::limit::book::{self, At};
use gateward_core::limit::reservation::{Ending, Reservation, Take};
use gateward_core::limit::status::status;
use gateward_core::limit::usage::{self, Covered, Ledger, Usage};
use gateward_core::limit::{Amount, Book, Kind, Limit, Violation};
use model::{BERLIN, CHANGES_MS, Call, DAY_MS, HOUR_MS, MINUTE_MS, Model, zones};
use proptest::prelude::*;
use serde_json::json;

const START_MS: u64 = 1_800_000_000_000;
const WRITE: Covered = Covered { reads: false, writes: true };
/// What the tool costs.
const COST: u64 = 3;

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
    At { now_ms, offset_s: zones }
}

const BOOKS: [&str; 2] = ["agent/bot", "credential/k1"];

/// The books of an agent and of its credential, and calls of one tool.
#[derive(Default)]
struct Desk {
    limits: Vec<Rc<Limit>>,
    of_credential: Vec<Rc<Limit>>,
    books: [Book; 2],
    /// The numbers of the calls that a double does not hold exactly.
    rounded: Vec<f64>,
}

impl Desk {
    fn new(limits: Vec<Rc<Limit>>) -> Self {
        Self { limits, ..Self::default() }
    }

    /// What the outcome of a call can change, if no limit denies it. `passes`: what the steps after the limits say.
    fn call(
        &mut self,
        input: &Json,
        (forwarded, passes): (bool, bool),
        now_ms: u64,
    ) -> Result<Vec<Take>, Box<Violation>> {
        let cost = whole(COST);
        let rounded = &self.rounded;
        let usage = Usage { tool: "bank/refund", covered: WRITE, input, rounded, cost, forwarded };
        let [of_agent, of_credential] = &self.books;
        let [agent, credential] = BOOKS.map(Rc::from);
        let mut ledgers = [
            Ledger::new(agent, &self.limits, of_agent, None),
            Ledger::new(credential, &self.of_credential, of_credential, None),
        ];
        let uses = usage::uses(&ledgers, &usage);
        let checked = usage::apply(&mut ledgers, &uses, forwarded, at(now_ms));
        if checked.is_err() || !passes {
            usage::revert(&mut ledgers);
        }
        let takes = usage::takes(&ledgers, &uses, forwarded);
        self.books = ledgers.map(|ledger| ledger.book);
        checked.map(|_| takes)
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
        for (name, book) in BOOKS.into_iter().zip(&mut self.books) {
            book::settle((name, book), &reservation, ending);
        }
    }

    fn used(&self, id: &str, now_ms: u64) -> u64 {
        let mut limits = [&self.limits, &self.of_credential].into_iter().zip(&self.books);
        let of_book = |(limits, book): (&Vec<Rc<Limit>>, _)| {
            let limit = limits.iter().find(|limit| limit.limit_id == id)?;
            Some(status(book, limit, at(now_ms)))
        };
        let status = limits.find_map(of_book).unwrap();
        let left = status.remaining.unwrap().as_whole().unwrap();
        status.max.unwrap().as_whole().unwrap() - left
    }

    fn restart(&mut self) {
        let stored = serde_json::to_string(&self.books).unwrap();
        self.books = serde_json::from_str(&stored).unwrap();
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
            "no double holds it",
            vec![daily_amount("9")],
            r#"{"amount":8.00000000000000005}"#,
            Some("unreadable"),
        ),
        (
            "nor this one",
            vec![daily_amount("9")],
            r#"{"amount":0.1000000000000000055}"#,
            Some("unreadable"),
        ),
        (
            "no double holds another number",
            vec![daily_amount("9")],
            r#"{"amount":8.9,"at":52.1000000000000000055}"#,
            None,
        ),
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
        let mut desk = Desk { rounded: json::rounded(text.as_bytes()), ..Desk::new(limits) };
        let found = desk.call(&call, (false, true), START_MS);
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
    // The clock was a year ahead: what was used then counts now.
    let times = [ahead + 365 * DAY_MS, ahead, ahead, ahead + MINUTE_MS];
    assert_eq!(times.map(&mut passes), [true, true, false, true]);
    // The window of now is another one after a denied call, too.
    let year = ahead + 730 * DAY_MS;
    let times = [year, year, ahead + 2 * MINUTE_MS, ahead + 3 * MINUTE_MS];
    assert_eq!(times.map(&mut passes), [true, true, false, true]);
}

#[test]
fn calls_are_denied_from_the_minute_on_at_which_hours_end() {
    let office = json!({"kind": "hours", "hours": ["09:00-17:00"], "time_zone": BERLIN});
    let mut desk = Desk::new(vec![limit("office", office)]);
    // It is winter.
    let ends_ms = START_MS - START_MS % DAY_MS + 16 * HOUR_MS;
    let mut passes = |now_ms| desk.call(&input(1), (true, true), now_ms).is_ok();
    let times = [ends_ms - MINUTE_MS, ends_ms - 1, ends_ms, ends_ms - 1, ends_ms + MINUTE_MS];
    assert_eq!(times.map(&mut passes), [true, true, false, true, false]);
    let begins_ms = ends_ms - 8 * HOUR_MS;
    assert_eq!([begins_ms - 1, begins_ms, begins_ms - 1].map(&mut passes), [false, true, false]);
}

#[test]
fn a_limit_finds_its_counter_in_each_book() {
    let quota = || json!({"kind": "quota", "max": "2", "window": "day"});
    let (first, both) = (limit("first", quota()), limit("both", quota()));
    // In the second book, the counter of `both` has another place.
    let mut desks = [vec![first, Rc::clone(&both)], vec![both]].map(Desk::new);
    for (desk, expected) in [(0, true), (1, true), (0, true), (1, true), (0, false), (1, false)] {
        let called = desks[desk].call(&input(1), (false, true), START_MS);
        assert_eq!(called.is_ok(), expected, "{desk}");
        desks[desk].restart();
    }
    // A counter is forgotten, and the others move.
    desks[0].limits.remove(0);
    desks[0].call(&input(1), (false, true), START_MS).unwrap_err();
    desks[0].call(&input(1), (false, true), START_MS + DAY_MS).unwrap();
    desks[0].call(&input(1), (false, true), START_MS + DAY_MS).unwrap();
    desks[0].call(&input(1), (false, true), START_MS + DAY_MS).unwrap_err();
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

const HOUR: i64 = HOUR_MS.cast_signed();

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
        1 => (-HOUR..3 * HOUR).prop_map(|by_ms| Event::Clock { by_ms }),
        1 => (-36 * HOUR..72 * HOUR).prop_map(|by_ms| Event::Clock { by_ms }),
        1 => Just(Event::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// In random histories, also near the nights in which clocks change: the first limit that lacks something denies
    /// the call. The books agree with the models, and never exceed the limits.
    #[test]
    fn books_equal_their_models(
        change_ms in prop::sample::select(CHANGES_MS.to_vec()),
        events in prop::collection::vec(event(), 1..120),
    ) {
        let at_once = limit("at-once", json!({"kind": "concurrency", "max": "4"}));
        let calls = json!({"kind": "quota", "max": "15", "window": "day", "time_zone": BERLIN});
        let calls = limit("calls", calls);
        let refunds = json!({"kind": "amount", "max": "100", "pointer": "/amount", "window": "minute"});
        let refunds = limit("refunds", refunds);
        let cost = json!({"kind": "budget", "max": "30", "window": "hour", "time_zone": BERLIN});
        let cost = limit("cost", cost);
        let of_credential = json!({"kind": "amount", "max": "250", "pointer": "/amount", "window": "day",
                                   "time_zone": BERLIN});
        let of_credential = limit("of-credential", of_credential);
        // In the order in which they are checked.
        let mut models = [&at_once, &calls, &refunds, &of_credential, &cost].map(Model::new);
        let mut desk = Desk::new(vec![refunds, cost, calls, at_once]);
        desk.of_credential = vec![of_credential];
        let start_ms = change_ms - 2 * HOUR_MS;
        let mut now_ms = start_ms;
        let mut open: Vec<(String, Vec<Take>, bool)> = Vec::new();
        for (id, event) in events.into_iter().enumerate() {
            match event {
                Event::Call { amount, forwarded, passes } => {
                    let call = Call { amount, cost: COST, forwarded };
                    let denies = models.iter().find(|model| model.denies(call, now_ms));
                    let expected = denies.map(|model| model.limit.limit_id.clone());
                    let called = desk.call(&input(amount), (forwarded, passes), now_ms);
                    let violated = called.as_ref().err().map(|found| found.limit_id.clone());
                    prop_assert_eq!(violated, expected);
                    if let (Ok(takes), true) = (called, passes) {
                        let id = id.to_string();
                        models.iter_mut().for_each(|model| model.take(&id, call, now_ms));
                        open.push((id, takes, forwarded));
                    }
                }
                Event::Settle { which, ending } if !open.is_empty() => {
                    let (id, takes, forwarded) = open.swap_remove(which % open.len());
                    desk.settle(&takes, forwarded, ending);
                    models.iter_mut().for_each(|model| model.settle(&id, ending));
                }
                Event::Settle { .. } => {}
                Event::Clock { by_ms } => {
                    // A window that is more than 31 days ahead is moved to the present.
                    let to_ms = now_ms.saturating_add_signed(by_ms);
                    now_ms = to_ms.clamp(start_ms, start_ms + 30 * DAY_MS);
                }
                Event::Restart => desk.restart(),
            }
            for model in &models {
                let used = model.used(now_ms);
                prop_assert_eq!(desk.used(&model.limit.limit_id, now_ms), used);
                prop_assert!(used <= model.max());
            }
        }
    }
}
