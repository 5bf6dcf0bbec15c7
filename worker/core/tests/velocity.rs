//! The windows that policies read: what is counted, when, and for whom.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

mod support;

use std::rc::Rc;

use gateward_core::call::command::GateCommand;
use gateward_core::lane::{Answers, Called};
use gateward_core::policy::PolicyEngine;
use gateward_policy_compiler::{SourceFile, Sources, compile};
use serde_json::{Value, json};
use support::{Fault, Gate, read_call, records, with};

const SCHEMA: &str = include_str!("../../../policies/schema.cedarschema");

const WINDOWS: &str = r#"{
  "own": { "tools": ["notes/*"], "window_s": 60, "reach": "agent" },
  "denied": { "tools": ["*"], "counts": "denied", "window_s": 60, "reach": "agent" },
  "item": { "tools": ["notes/*"], "key": ["/n"], "sum": "/amount", "window_s": 3600, "reach": "agent" },
  "shared": { "tools": ["notes/*"], "key": ["/customer"], "sum": "/amount", "window_s": 3600, "reach": "tenant" },
  "mail": { "tools": ["mail/*"], "key": ["/customer"], "window_s": 3600, "reach": "tenant" }
}"#;

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("own") @reason("own") forbid (principal, action, resource)
when { context.velocity has own && context.velocity.own.count > 5 };
@id("denied") @reason("denied") forbid (principal, action, resource)
when { context.velocity.denied.count >= 4 };
@id("item") @reason("item") forbid (principal, action, resource)
when { context.velocity has item && context.velocity.item.sum.greaterThan(decimal("100.0")) };
@id("shared") @decision("require_approval") @approver_group("finance") @reason("shared")
permit (principal, action, resource)
when { context.velocity has shared && context.velocity.shared.count >= 3 };
@id("claimed") @reason("claimed") forbid (principal, action, resource)
when { context.source_trust == "unknown" };
"#;

fn engine() -> PolicyEngine {
    let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
    let compiled = compile(&Sources {
        schema: SCHEMA.to_owned(),
        velocity: WINDOWS.to_owned(),
        shield: Vec::new(),
        tools: Vec::new(),
        policies: vec![file("base/x.cedar", POLICIES)],
    });
    PolicyEngine::new(compiled.unwrap_or_else(|mistakes| panic!("{mistakes:?}")).leak())
}

fn gate() -> Gate {
    Gate { engine: engine(), ..Gate::new() }
}

fn call(parameters: Value) -> Value {
    with(read_call(), json!({"tool_call": {"parameters": parameters}}))
}

/// A call's arguments, changed.
fn arguments(change: Value) -> Value {
    with(json!({"n": 1, "amount": 1, "customer": "c"}), change)
}

fn decide(gate: &Gate, change: Value) -> (String, String) {
    let (status, body) = gate.call(&call(arguments(change)));
    assert_eq!(status, 200, "{body}");
    (body["decision"].as_str().unwrap().to_owned(), body["reason"].as_str().unwrap().to_owned())
}

#[track_caller]
fn passes(gate: &Gate, change: Value) {
    assert_eq!(decide(gate, change).0, "allow");
}

#[test]
fn calls_that_pass_are_counted_and_leave_after_the_window() {
    let gate = gate();
    for n in 0..5 {
        passes(&gate, json!({"n": n, "customer": n}));
    }
    let denied = ("deny".to_owned(), "own".to_owned());
    assert_eq!(decide(&gate, json!({"n": 6, "customer": 6})), denied);
    assert_eq!(decide(&gate, json!({"n": 7, "customer": 7})), denied, "a denial is not counted");
    gate.evict();
    assert_eq!(decide(&gate, json!({"n": 8, "customer": 8})), denied, "after a restart");
    gate.now_ms.set(gate.now_ms.get() + 60_000);
    passes(&gate, json!({"n": 9, "customer": 9}));
}

#[test]
fn denials_are_counted_by_a_window_of_denials() {
    let gate = gate();
    let unknown =
        || with(call(arguments(json!({}))), json!({"context": {"source_trust": "unknown"}}));
    for _ in 0..4 {
        assert_eq!(gate.call(&unknown()).1["reason"], "claimed");
    }
    assert_eq!(decide(&gate, json!({})).1, "denied");
}

#[test]
fn sums_are_exact_and_of_one_key() {
    let gate = gate();
    passes(&gate, json!({"amount": 99.9, "customer": 1}));
    passes(&gate, json!({"n": 2, "amount": 100, "customer": 2}));
    passes(&gate, json!({"amount": "0.1", "customer": 3}));
    gate.evict();
    assert_eq!(decide(&gate, json!({"amount": 0.001, "customer": 4})).1, "item");
    for (amount, what) in [(json!(-1), "negative"), (json!("x"), "text"), (json!(null), "absent")] {
        let (_, body) =
            gate.call(&call(arguments(json!({"n": 5, "amount": amount, "customer": 5}))));
        assert_eq!(body["reason_code"], "velocity_unreadable", "{what}");
    }
}

#[test]
fn a_dry_run_reads_and_leaves_no_trace() {
    let gate = gate();
    for n in 0..20 {
        let dry = with(call(arguments(json!({"n": n}))), json!({"dry_run": true}));
        assert_eq!(gate.call(&dry).1["decision"], "allow", "{n}");
    }
    passes(&gate, json!({}));
    passes(&gate, json!({}));
    let dry = with(call(arguments(json!({}))), json!({"dry_run": true}));
    assert_eq!(gate.call(&dry).1["decision"], "require_approval");
}

/// A second lane of the tenant, whose agents share its windows.
fn other(gate: &Gate) -> Gate {
    Gate { number: 1, windows: Rc::clone(&gate.windows), ..self::gate() }
}

#[test]
fn lanes_share_a_window_of_the_tenant() {
    let one = gate();
    let two = other(&one);
    passes(&one, json!({}));
    passes(&two, json!({}));
    for gate in [&one, &two] {
        assert_eq!(decide(gate, json!({})).0, "require_approval");
        passes(gate, json!({"customer": format!("other {}", gate.number)}));
    }
    // What waits for approval is not counted: the count is still two.
    one.now_ms.set(one.now_ms.get() + 3_600_000);
    passes(&one, json!({}));
}

#[test]
fn a_repeated_request_id_is_counted_once() {
    let gate = gate();
    let same = with(call(arguments(json!({}))), json!({"request_id": "r-1"}));
    for _ in 0..5 {
        assert_eq!(gate.call(&same).1["decision"], "allow");
    }
    passes(&gate, json!({}));
    assert_eq!(decide(&gate, json!({})).0, "require_approval");
}

#[test]
fn a_window_that_does_not_answer_denies_and_is_not_asked_for_other_tools() {
    let gate = gate();
    gate.windows_away.set(true);
    let (_, body) = gate.call(&call(arguments(json!({}))));
    assert_eq!(body["reason_code"], "velocity_unavailable");
    let other = with(call(arguments(json!({}))), json!({"tool_call": {"tool": "files"}}));
    assert_eq!(gate.call(&other).1["decision"], "allow");
}

#[test]
fn no_argument_is_stored() {
    let gate = gate();
    passes(&gate, json!({"n": "account-4711", "customer": "customer-0815"}));
    let journal = gate.storage.connection.query_row(
        "SELECT group_concat(row || state) FROM journal",
        [],
        |row| row.get(0),
    );
    let journal: String = journal.unwrap();
    assert!(!journal.contains("4711") && !journal.contains("0815"), "{journal}");
    let windows = gate.windows.borrow();
    for storage in [&gate.storage, &*windows] {
        let all: String = storage
            .connection
            .query_row("SELECT group_concat(name || record) FROM windows", [], |row| row.get(0))
            .unwrap();
        assert!(all.contains('/') && !all.contains("4711") && !all.contains("0815"), "{all}");
    }
}

#[test]
fn a_window_is_written_with_its_decision_or_not_at_all() {
    for fault in [Fault::Failed, Fault::Lost] {
        for write in 0..2 {
            let gate = gate();
            passes(&gate, json!({"amount": 60, "customer": 1}));
            gate.storage.fault.set(Some((write, fault)));
            let failed = gate.try_call(&command(&arguments(json!({"amount": 30, "customer": 2}))));
            assert_eq!(failed.is_err(), write == 0, "the row and the window are one statement");
            gate.storage.fault.set(None);
            gate.evict();
            let rows = gate.receipts().len() as u64 - 1;
            let (decision, reason) = decide(&gate, json!({"amount": 20, "customer": 3}));
            let expected = if rows == 1 { "item" } else { "allow" };
            assert!(
                decision == expected || reason == expected,
                "{fault:?} {write}: {rows} rows, {decision} {reason}"
            );
        }
    }
}

fn command(parameters: &Value) -> GateCommand {
    support::command(&call(parameters.clone()))
}

#[test]
fn windows_that_are_over_are_deleted() {
    let gate = gate();
    for n in 0..3 {
        passes(&gate, json!({"n": n, "customer": n}));
    }
    let stored = |gate: &Gate| -> i64 {
        gate.storage
            .connection
            .query_row("SELECT count(*) FROM windows", [], |row| row.get(0))
            .unwrap()
    };
    assert_eq!(stored(&gate), 3);
    for _ in 0..8 {
        gate.now_ms.set(gate.now_ms.get() + 3_600_000);
        passes(&gate, json!({"n": 9, "customer": 9}));
        gate.flush_all();
    }
    assert_eq!(stored(&gate), 1);
    let shared = gate.windows.borrow();
    let left: i64 =
        shared.connection.query_row("SELECT count(*) FROM windows", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 1);
}

#[test]
fn another_agent_has_windows_of_its_own() {
    let gate = gate();
    for n in 0..5 {
        passes(&gate, json!({"n": n, "customer": n}));
    }
    let mut records = records();
    records.credential.as_mut().unwrap().agent = Some("support".to_owned());
    let gate = Gate { records, ..gate };
    let call =
        with(call(arguments(json!({"n": 0, "customer": 9}))), json!({"agent": {"id": "support"}}));
    assert_eq!(gate.call(&call).1["decision"], "allow");
}

#[test]
fn a_gateway_that_shows_no_body_gives_neither_key_nor_number() {
    let gate = gate();
    let mut blind = command(&arguments(json!({})));
    blind.call.route = Some(("POST".to_owned(), "/refund".to_owned()));
    let body = gate.try_call(&blind).unwrap().body;
    assert!(body.contains("velocity_unreadable"), "{body}");
    blind.call.route = Some(("GET".to_owned(), "/refund".to_owned()));
    let body = gate.try_call(&blind).unwrap().body;
    assert!(body.contains("policy_allow"), "{body}");
}

#[test]
fn a_call_that_waits_for_approval_is_not_counted() {
    let gate = gate();
    passes(&gate, json!({}));
    passes(&gate, json!({}));
    let (_, held) = gate.call(&call(arguments(json!({}))));
    assert_eq!(held["decision"], "require_approval");
    gate.now_ms.set(gate.now_ms.get() + 3_600_000);
    // The two have left the window, and the one that waits was never in it.
    passes(&gate, json!({}));
    passes(&gate, json!({}));
    assert_eq!(decide(&gate, json!({})).0, "require_approval");
}

#[test]
fn a_flood_of_calls_is_charged_before_it_looks() {
    let mut gate = gate();
    gate.records.agent.as_mut().unwrap().rate_capacity = Some(1);
    gate.records.agent.as_mut().unwrap().rate_refill_per_s = Some(0.001);
    let command = command(&arguments(json!({})));
    // Two calls at once: neither has an answer of the window yet.
    let step = || {
        let (parts, now_ms) = ((&gate.engine, &gate.config), gate.now_ms.get());
        let answers = Answers::default();
        gate.on_lane(|lane, storage| {
            lane.call(storage, parts, &command, &gate.records, answers, now_ms)
        })
    };
    assert!(matches!(step().unwrap(), Called::NotCounted(_)));
    let Called::Decided(reply) = step().unwrap() else { panic!("the second call looks") };
    assert_eq!(reply.status, 429);
}
