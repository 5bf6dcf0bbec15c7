//! A lane whose clock jumps, on real SQLite: no effect lasts longer than the jump.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::HashMap;

use crate::support::{self, Gate, START_MS, read_call, server, tool, with};
use gateward_core::clock::CLOCK_TOLERANCE_MS;
use gateward_core::clock::DAY_MS;
use gateward_core::gate::REPLAY_MS;
use gateward_core::lane::Lane;
use gateward_core::receipt::{self, GENESIS};
use gateward_core::registry::{AgentStatus, ServerStatus, ServerTrust};
use gateward_core::taint::DEFAULT_TAINT_S;
use proptest::prelude::*;
use serde_json::{Value, json};

const HOUR_MS: u64 = 3_600_000;

fn at(gate: &Gate, now_ms: u64) {
    gate.now_ms.set(now_ms);
}

fn reason(gate: &Gate) -> String {
    let (status, body) = gate.call(&read_call());
    let field = if status == 200 { "reason_code" } else { "code" };
    body[field].as_str().unwrap().to_owned()
}

/// How often the audit recorded a repair for this source.
fn repairs(gate: &Gate, source: &str) -> i64 {
    gate.flush_all();
    at(gate, gate.now_ms.get() + 2 * 60_000);
    gate.flush_all();
    gate.count(&format!(
        "SELECT coalesce(sum(count), 0) FROM audit_events \
         WHERE kind = 'clock_repaired' AND source = '{source}'"
    ))
}

/// A number that a query on the lane's storage gives.
fn stored(gate: &Gate, query: &str) -> i64 {
    gate.storage.connection.query_row(query, [], |row| row.get(0)).unwrap()
}

#[test]
fn a_clock_that_was_ahead_refuses_nobody_for_longer_than_its_window_and_is_counted_once() {
    for ahead_ms in [20_000, HOUR_MS, DAY_MS, 400 * DAY_MS] {
        let mut gate = Gate::new();
        gate.agent_mut().request_rate = support::rate(2, 0.5);
        assert_eq!(reason(&gate), "policy_allow");
        at(&gate, START_MS + ahead_ms);
        let reasons: Vec<String> = (0..3).map(|_| reason(&gate)).collect();
        assert_eq!(reasons, ["policy_allow", "policy_allow", "rate_limited"]);
        // The clock goes back. Nothing is granted at once, and one window later everything is normal again.
        at(&gate, START_MS + 1_000);
        assert_eq!(reason(&gate), "rate_limited");
        at(&gate, START_MS + 5_000);
        let reasons: Vec<String> = (0..3).map(|_| reason(&gate)).collect();
        assert_eq!(reasons, ["policy_allow", "policy_allow", "rate_limited"], "{ahead_ms}");
        gate.evict();
        assert_eq!(repairs(&gate, "coder"), 1, "{ahead_ms}");
    }
}

#[test]
fn a_day_that_lies_in_the_future_becomes_today_with_what_was_used_of_it() {
    let mut gate = Gate::new();
    let tenant = json!({"status": "active", "epoch": 1, "lanes": 1, "rows_per_day": 3});
    gate.records.tenant = serde_json::from_value(tenant).unwrap();
    at(&gate, START_MS + 30 * DAY_MS);
    (0..2).for_each(|_| assert_eq!(reason(&gate), "policy_allow"));
    for evicts in [false, true] {
        if evicts {
            gate.evict();
        }
        at(&gate, START_MS);
        let expected = if evicts { "tenant_rows_exhausted" } else { "policy_allow" };
        assert_eq!(reason(&gate), expected, "{evicts}");
    }
    // The next day has a new budget, a month before the clock would have caught up.
    at(&gate, START_MS + DAY_MS);
    assert_eq!(reason(&gate), "policy_allow");
    assert!(repairs(&gate, "lane") >= 1);
}

#[test]
fn a_status_denial_of_a_clock_that_was_ahead_hides_others_for_a_minute() {
    let mut gate = Gate::new();
    at(&gate, START_MS + 40 * DAY_MS);
    gate.agent_mut().status = AgentStatus::Frozen;
    assert!(gate.call(&read_call()).1["receipt"].is_object());
    at(&gate, START_MS);
    // A repeat within the minute has no receipt; the next one has.
    for (later_ms, journalled) in [(0, false), (59_000, false), (60_000, true)] {
        at(&gate, START_MS + later_ms);
        assert_eq!(gate.call(&read_call()).1["receipt"].is_object(), journalled, "{later_ms}");
    }
}

#[test]
fn taint_of_a_clock_that_was_ahead_lasts_for_its_period_from_then_on() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    let write = with(read_call(), json!({"tool_call": {"mutates_state": true}}));
    let held = |gate: &Gate| gate.call(&write).1["decision"] == "require_approval";
    assert!(!held(&gate));
    at(&gate, START_MS + 40 * DAY_MS);
    gate.records.server = server(ServerStatus::Active);
    gate.server_mut().trust = ServerTrust::Untrusted;
    gate.records.tool = tool(false, false);
    assert_eq!(gate.call(&read_call()).1["decision"], "allow");
    gate.server_mut().trust = ServerTrust::Trusted;
    gate.records.tool = tool(true, false);
    let period_ms = u64::from(DEFAULT_TAINT_S) * 1_000;
    for (later_ms, expected) in [(0, true), (period_ms - 1, true), (period_ms, false)] {
        at(&gate, START_MS + later_ms);
        assert_eq!(held(&gate), expected, "{later_ms}");
        gate.flush_all();
        gate.evict();
    }
}

#[test]
fn an_approval_that_was_asked_for_in_the_future_has_expired() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    let call = with(
        read_call(),
        json!({"tool_call": {"mutates_state": true}, "context": {"source_trust": "semi_trusted_customer"}}),
    );
    gate.on_lane(|lane, storage| lane.adopt(storage, "demo", 0)).unwrap();
    for ahead_ms in [20_000, 3 * HOUR_MS, 30 * DAY_MS] {
        at(&gate, START_MS + ahead_ms);
        let (_, asked) = gate.call(&call);
        let id = asked["approval"]["approval_id"].as_str().unwrap().to_owned();
        at(&gate, START_MS);
        let used = with(call.clone(), json!({"approval_id": id}));
        assert_eq!(gate.call(&used).1["reason_code"], "approval_expired", "{ahead_ms}");
        let expire = |gate: &Gate| {
            let now_ms = gate.now_ms.get();
            gate.on_lane(|lane, storage| lane.expire_approvals(storage, &gate.config, now_ms))
                .unwrap();
        };
        expire(&gate);
        let held = gate.on_lane(|_, storage| Lane::approval(storage, &id)).unwrap().unwrap();
        // It is written as soon as the lane notices. After a jump of an hour the lane notices at once, otherwise at
        // the approval's time.
        assert!(held.approval.closed_at_ms.is_some() || ahead_ms < HOUR_MS, "{ahead_ms}");
        at(&gate, START_MS + HOUR_MS);
        expire(&gate);
        let open = stored(&gate, "SELECT count(*) FROM approvals WHERE closed_at_ms IS NULL");
        assert_eq!(open, 0, "{ahead_ms}");
        gate.evict();
    }
}

#[test]
fn what_is_due_at_a_time_in_the_future_is_due_at_once_when_the_clock_is_back() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    let call = with(
        read_call(),
        json!({"tool_call": {"mutates_state": true}, "context": {"source_trust": "semi_trusted_customer"}}),
    );
    let ahead_ms = START_MS + 30 * DAY_MS;
    at(&gate, ahead_ms);
    gate.call(&call);
    gate.on_lane(|_, storage| Lane::set_next_prune(storage, ahead_ms + DAY_MS)).unwrap();
    gate.evict();
    at(&gate, START_MS);
    gate.flush_all();
    let due = |gate: &Gate| {
        gate.on_lane(|_, storage| Ok((Lane::next_prune(storage)?, Lane::next_delivery(storage)?)))
    };
    assert_eq!(due(&gate), Ok((Some(START_MS), Some(START_MS))));
    assert_eq!(repairs(&gate, "lane"), 1);
    // Pruning that is due within its normal time is not changed.
    gate.on_lane(|_, storage| Lane::set_next_prune(storage, START_MS + 20 * HOUR_MS)).unwrap();
    at(&gate, START_MS - HOUR_MS);
    gate.flush_all();
    assert_eq!(due(&gate).unwrap().0, Some(START_MS + 20 * HOUR_MS));
}

#[test]
fn ids_go_on_from_the_newest_across_restarts_and_prunes_and_receipts_say_what_the_clock_says() {
    let gate = Gate::new();
    let mut ids = Vec::new();
    let mut times = Vec::new();
    for now_ms in [START_MS, START_MS + 400 * DAY_MS, START_MS, START_MS - DAY_MS, START_MS + 5] {
        at(&gate, now_ms);
        ids.push(gate.call(&read_call()).1["decision_id"].as_str().unwrap().to_owned());
        times.push(gateward_core::id::rfc3339(now_ms));
        gate.flush_all();
        gate.evict();
    }
    assert!(ids.is_sorted() && ids[1] < ids[2], "{ids:?}");
    let told: Vec<String> = gate
        .receipts()
        .iter()
        .map(|receipt| {
            serde_json::from_str::<Value>(&receipt.body).unwrap()["time"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(told, times);
}

#[test]
fn answers_are_forgotten_once_the_clock_has_passed_their_day_for_an_hour() {
    let gate = Gate::new();
    let call = |gate: &Gate, id: &str| gate.call(&with(read_call(), json!({"request_id": id}))).1;
    let kept = |gate: &Gate| {
        gate.flush_all();
        stored(gate, "SELECT count(*) FROM replay")
    };
    let first = call(&gate, "r");
    assert_eq!(kept(&gate), 1);
    // A jump ahead, with an answer, and back within the hour.
    for minutes in [0, 30, 59] {
        at(&gate, START_MS + 40 * DAY_MS + minutes * 60_000);
        call(&gate, &format!("ahead-{minutes}"));
        assert_eq!(kept(&gate), 2 + i64::try_from(minutes / 29).unwrap(), "{minutes}");
        gate.evict();
    }
    at(&gate, START_MS + HOUR_MS);
    assert_eq!(call(&gate, "r"), first);
    assert_eq!(kept(&gate), 4);
    // Answers with a time in the future are also deleted a day after the clock came back.
    for (hours, left) in [(13, 4), (24, 4), (25, 4), (26, 3), (27, 0)] {
        at(&gate, START_MS + hours * HOUR_MS);
        assert_eq!(kept(&gate), left, "{hours}");
    }
}

/// What happens in a generated history.
#[derive(Debug, Clone)]
enum Event {
    /// Time goes on.
    Wait(u64),
    /// The clock is set to differ from the true time by this much.
    Jump(i64),
    Call(Option<u8>),
    Flush,
    Evict,
}

fn event() -> impl Strategy<Value = Event> {
    const YEAR_MS: i64 = 365 * DAY_MS as i64;
    let day_ms = DAY_MS as i64;
    prop_oneof![
        2 => (0..3 * HOUR_MS).prop_map(Event::Wait),
        1 => (0..100_000u64).prop_map(Event::Wait),
        1 => (-2 * day_ms..2 * day_ms).prop_map(Event::Jump),
        1 => (-YEAR_MS..YEAR_MS).prop_map(Event::Jump),
        2 => Just(Event::Jump(0)),
        6 => prop::option::of(0..5u8).prop_map(Event::Call),
        2 => Just(Event::Flush),
        1 => Just(Event::Evict),
    ]
}

const CAPACITY: u32 = 6;
const REFILL_PER_S: f64 = 0.5;
const WINDOW_MS: u64 = 12_000;

fn limited() -> Gate {
    let mut gate = Gate::new();
    gate.agent_mut().request_rate = support::rate(CAPACITY, REFILL_PER_S);
    let tenant = json!({"status": "active", "epoch": 1, "lanes": 1, "rows_per_day": 500});
    gate.records.tenant = serde_json::from_value(tenant).unwrap();
    gate
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Random jumps. Ids increase and receipts verify. Once the clock is right, an agent waits for at most its window.
    #[test]
    fn no_jump_outlasts_itself(events in prop::collection::vec(event(), 1..60)) {
        let gate = limited();
        let mut true_ms = START_MS + 1_000 * DAY_MS;
        let mut offset_ms = 0i64;
        for event in events {
            match event {
                Event::Wait(ms) => true_ms += ms,
                Event::Jump(ms) => offset_ms = ms,
                Event::Flush => gate.flush_all(),
                Event::Evict => gate.evict(),
                Event::Call(request) => {
                    let id = request.map(|id| format!("r{id}"));
                    let (status, _) = gate.call(&with(read_call(), json!({"request_id": id})));
                    prop_assert!(status == 200 || status == 429, "{}", status);
                }
            }
            at(&gate, true_ms.checked_add_signed(offset_ms).unwrap());
        }
        // The clock is right again, from here on.
        at(&gate, true_ms);
        gate.call(&read_call());
        let later_ms = true_ms + WINDOW_MS + CLOCK_TOLERANCE_MS;
        at(&gate, later_ms);
        for _ in 0..CAPACITY {
            let (status, body) = gate.call(&read_call());
            prop_assert_eq!((status, &body["code"]), (200, &Value::Null));
            prop_assert_ne!(&body["reason_code"], "tenant_rows_exhausted");
        }
        at(&gate, later_ms + DAY_MS);
        prop_assert_eq!(reason(&gate), "policy_allow");
        gate.flush_all();
        let receipts = gate.receipts();
        prop_assert_eq!(receipt::verify(&receipts, 1, Some(GENESIS)), Ok(()));
        let bodies: Vec<Value> = receipts.iter().map(|r| serde_json::from_str(&r.body).unwrap()).collect();
        let ids: Vec<&str> = bodies.iter().map(|body| body["decision_id"].as_str().unwrap()).collect();
        prop_assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", ids);
    }

    /// The clock is ahead for less than an hour each time, and the lane sees the right time in between. Then every
    /// answer is repeated for a day.
    #[test]
    fn answers_replay_for_a_day_through_jumps_ahead(
        jumps in prop::collection::vec(
            (0..9 * HOUR_MS, 0..400 * DAY_MS, prop::collection::vec(0..HOUR_MS, 1..5), any::<bool>()),
            1..12,
        ),
    ) {
        let gate = Gate::new();
        let mut true_ms = START_MS;
        let mut answers: HashMap<String, (u64, Value)> = HashMap::new();
        let visit = |answers: &mut HashMap<String, (u64, Value)>, true_ms: u64, ahead_ms: u64| {
            at(&gate, true_ms + ahead_ms);
            answers.retain(|_, (at_ms, _)| *at_ms + REPLAY_MS > true_ms);
            let id = format!("r{true_ms}-{ahead_ms}");
            let call = |id: &str| gate.call(&with(read_call(), json!({"request_id": id}))).1;
            let answer = call(&id);
            answers.insert(id, (true_ms, answer));
            gate.flush_all();
            for (id, (_, answer)) in &*answers {
                assert_eq!(&call(id), answer, "{id}");
            }
        };
        for (pause_ms, ahead_ms, mut moments, evicts) in jumps {
            true_ms += pause_ms;
            visit(&mut answers, true_ms, 0);
            moments.sort_unstable();
            for moment in &moments {
                visit(&mut answers, true_ms + moment, ahead_ms);
                if evicts {
                    gate.evict();
                }
            }
            true_ms += HOUR_MS;
            visit(&mut answers, true_ms, 0);
        }
    }
}
