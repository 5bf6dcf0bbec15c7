//! The windows that policies read: what is counted, when, and for whom.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use std::rc::Rc;

use crate::support::{self, Fault, Gate, START_MS, Storage, TENANT, read_call, records, with};
use gateward_core::approval::{DecideCommand, VerdictKind};
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::clock::CLOCK_TOLERANCE_MS;
use gateward_core::gate::windows::WindowAnswers;
use gateward_core::lane::{Answers, CallResult, DecideOutcome, Lane, PRUNE_WINDOWS_MS};
use gateward_core::policy::PolicyEngine;
use gateward_core::velocity::shared::CountRequest;
use gateward_policy_compiler::{SourceFile, Sources, compile};
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../../../policies/schema.cedarschema");

const WINDOWS: &str = r#"{
  "own": { "tools": ["notes/*"], "window_s": 60, "reach": "agent" },
  "denied": { "tools": ["*"], "counts": "denied", "window_s": 60, "reach": "agent" },
  "item": { "tools": ["notes/*"], "key": ["/n"], "sum": "/amount", "window_s": 3600, "reach": "agent" },
  "shared": { "tools": ["notes/*"], "key": ["/customer"], "sum": "/amount", "window_s": 3600, "reach": "tenant" },
  "mail": { "tools": ["mail/*"], "key": ["/customer"], "window_s": 3600, "reach": "tenant" },
  "user": { "tools": ["users/*"], "key": ["user"], "window_s": 3600, "reach": "tenant" }
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
    Gate { engine: Rc::new(engine()), ..Gate::new() }
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
    assert_eq!((stored(&gate.storage), stored(&gate.windows.borrow())), (0, 0));
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
    // A call that waits for approval is not counted: the count is still two.
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

/// The rows of windows in a storage.
fn stored(storage: &Storage) -> i64 {
    storage.connection.query_row("SELECT count(*) FROM windows", [], |row| row.get(0)).unwrap()
}

#[test]
fn a_call_that_is_denied_leaves_no_row() {
    let gate = gate();
    for n in 0..3 {
        let change = json!({"context": {"source_trust": "unknown"}});
        let denied = with(call(arguments(json!({"n": n, "customer": n}))), change);
        assert_eq!(gate.call(&denied).1["reason"], "claimed");
    }
    assert_eq!(stored(&gate.windows.borrow()), 0);
    passes(&gate, json!({}));
    let denied = with(call(arguments(json!({}))), json!({"context": {"source_trust": "unknown"}}));
    assert_eq!(gate.call(&denied).1["reason"], "claimed");
    assert_eq!((stored(&gate.windows.borrow()), in_window(&gate, json!({}))), (1, 1));
}

#[test]
fn a_withdrawal_says_whether_it_found_the_call() {
    let gate = gate();
    let CallResult::NotCounted(requests) = step(&gate, &command(&arguments(json!({}))), None)
    else {
        panic!("the window is asked")
    };
    let request = &requests[0];
    let withdraw = |entry: &str| Lane::withdraw(&*gate.windows.borrow(), entry, request).unwrap();
    assert!(!withdraw("0"), "it was never counted");
    for call in 0..33 {
        gate.count_call(Some(&call.to_string()), request).unwrap();
    }
    assert!(!withdraw("0"), "32 calls came after it");
    assert!(withdraw("32") && !withdraw("32"));
    assert_eq!(gate.count_call(None, request).unwrap().count, 32);
}

#[test]
fn windows_that_are_over_are_deleted() {
    let gate = gate();
    for n in 0..3 {
        passes(&gate, json!({"n": n, "customer": n}));
    }
    assert_eq!(stored(&gate.storage), 3);
    for _ in 0..8 {
        gate.now_ms.set(gate.now_ms.get() + 3_600_000);
        passes(&gate, json!({"n": 9, "customer": 9}));
        gate.flush_all();
    }
    assert_eq!(stored(&gate.storage), 1);
}

/// Rows of windows that are over.
const MANY: &str = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2500) \
     INSERT INTO windows SELECT 'w/' || n, 1, '{\"window\":{\"slots\":[]}}' FROM n";

#[test]
fn the_alarm_of_an_idle_lane_deletes_all_windows_that_are_over() {
    let gate = gate();
    passes(&gate, json!({}));
    gate.flush_all();
    gate.storage.connection.execute(MANY, []).unwrap();
    gate.evict();
    // The lane gets no calls, so it flushes nothing. Its alarm runs until nothing is due at once.
    let alarm = |at_ms: u64| {
        gate.on_lane(|lane, storage| lane.prune_windows(storage, at_ms)).unwrap().unwrap()
    };
    let mut at_ms = START_MS + 3_600_000;
    assert_eq!(alarm(START_MS), at_ms, "the clock may have jumped");
    let mut left = Vec::new();
    loop {
        let next_ms = alarm(at_ms);
        left.push(stored(&gate.storage));
        if next_ms > at_ms {
            break;
        }
        at_ms = next_ms + 1;
    }
    assert_eq!(left, [1501, 501, 1]);
}

#[test]
fn a_flush_deletes_as_many_windows_as_were_written_since_the_last_one() {
    let gate = gate();
    // The lane starts, so it has its tables.
    gate.on_lane(|_, _| Ok(())).unwrap();
    gate.storage.connection.execute(MANY, []).unwrap();
    let flush = |at_ms: u64| {
        gate.now_ms.set(at_ms);
        gate.on_lane(|lane, storage| lane.flush_batch(storage, &gate.config, at_ms).map(drop))
            .unwrap();
        stored(&gate.storage)
    };
    assert_eq!(flush(START_MS), 2_500, "the clock may have jumped");
    // One window for each call, more than a flush deletes otherwise.
    let mut now_ms = START_MS + 3_600_000;
    for n in 0..1_200 {
        // The windows of the agent's and of the tenant's calls must not stop them.
        now_ms += 61_000;
        gate.now_ms.set(now_ms);
        passes(&gate, json!({"n": n, "customer": n}));
    }
    assert_eq!(flush(now_ms), 2_500 + 1_200 - 1_200);
}

#[test]
fn the_alarm_of_a_tenants_windows_deletes_those_that_are_over_and_then_is_not_set_again() {
    let gate = gate();
    for n in 0..3 {
        passes(&gate, json!({"n": n, "customer": n}));
    }
    let alarm = |at_ms: u64| {
        let windows = gate.windows.borrow();
        // The object was evicted since the last alarm.
        let mut object = Lane::start(&*windows).unwrap();
        let next_ms = object.prune_windows(&*windows, at_ms).unwrap();
        let left = "SELECT count(*) FROM windows";
        let left: i64 = windows.connection.query_row(left, [], |row| row.get(0)).unwrap();
        (next_ms, left)
    };
    let end_ms = START_MS + 3_600_000;
    let first_ms = end_ms + PRUNE_WINDOWS_MS;
    let (next_ms, left) = alarm(first_ms);
    assert_eq!((next_ms, left), (Some(first_ms + 3_600_000), 3), "the clock may have jumped");
    assert_eq!(alarm(first_ms + 3_600_000), (None, 0));
    // Another window, which ends much later.
    gate.now_ms.set(first_ms);
    passes(&gate, json!({"n": 9, "customer": 9}));
    let (next_ms, left) = alarm(first_ms + 3_600_000);
    assert!(next_ms.is_some_and(|at_ms| at_ms >= first_ms + 2 * 3_600_000), "{next_ms:?}");
    assert_eq!(left, 1);
}

#[test]
fn one_alarm_deletes_a_bounded_number_of_windows_and_the_next_one_is_due_at_once() {
    let gate = gate();
    passes(&gate, json!({}));
    let windows = gate.windows.borrow();
    windows.connection.execute(MANY, []).unwrap();
    let mut object = Lane::start(&*windows).unwrap();
    let mut left = Vec::new();
    for (at_ms, again) in [
        (START_MS, false),
        (START_MS + 3_600_000, true),
        (START_MS + 3_600_001, true),
        (START_MS + 3_600_002, false),
    ] {
        let next_ms = object.prune_windows(&*windows, at_ms).unwrap();
        assert_eq!(next_ms == Some(at_ms), again, "{at_ms} {next_ms:?}");
        let count = "SELECT count(*) FROM windows";
        left.push(windows.connection.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap());
    }
    assert_eq!(left, [2501, 1501, 501, 1]);
}

#[test]
fn another_agent_has_windows_of_its_own() {
    let gate = gate();
    for n in 0..5 {
        passes(&gate, json!({"n": n, "customer": n}));
    }
    let mut records = records();
    Rc::make_mut(records.credential.as_mut().unwrap()).agent = Some("support".to_owned());
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
    // The two calls have left the window. The call that waits was never in it.
    passes(&gate, json!({}));
    passes(&gate, json!({}));
    assert_eq!(decide(&gate, json!({})).0, "require_approval");
}

#[test]
fn a_flood_of_calls_is_charged_before_it_asks_windows() {
    let mut gate = gate();
    gate.agent_mut().request_rate = support::rate(1, 0.001);
    let command = command(&arguments(json!({})));
    // Two calls at once: neither has an answer of the window yet.
    assert!(matches!(step(&gate, &command, None), CallResult::NotCounted(_)));
    let CallResult::Decided(reply) = step(&gate, &command, None) else {
        panic!("the second call asks")
    };
    assert_eq!(reply.status, 429);
}

/// One step of a call, with what windows answered so far.
fn step(gate: &Gate, command: &GateCommand, windows: Option<&WindowAnswers>) -> CallResult {
    let (parts, now_ms) = ((&*gate.engine, &gate.config), gate.now_ms.get());
    let answers = Answers { windows, ..Answers::default() };
    let called = gate.on_lane(|lane, storage| {
        lane.call(storage, parts, command, &gate.records, answers, now_ms)
    });
    called.unwrap()
}

#[test]
fn a_window_whose_key_the_registry_changed_is_asked_again_and_the_other_one_forgets() {
    let mut gate = gate();
    let users = with(call(arguments(json!({}))), json!({"tool_call": {"tool": "users"}}));
    let mut command = support::command(&users);
    command.call.user_id = "ann".to_owned();
    let answer = |gate: &Gate, requests: &[CountRequest]| -> Vec<_> {
        requests
            .iter()
            .map(|request| (request.row(), gate.count_call(Some("0.1"), request)))
            .collect()
    };
    let CallResult::NotCounted(before) = step(&gate, &command, None) else { panic!("it asks") };
    let mut answers = answer(&gate, &before);
    // From now on, the credential is a harness's, so its claim about the user counts.
    gate.credential_mut().assigns_runs = true;
    let CallResult::NotCounted(after) = step(&gate, &command, Some(&answers)) else {
        panic!("it asks the user's window")
    };
    assert_ne!(before, after);
    answers.extend(answer(&gate, &after));
    let CallResult::Decided(reply) = step(&gate, &command, Some(&answers)) else {
        panic!("everything is known")
    };
    assert!(reply.body.contains("policy_allow"), "{}", reply.body);
    assert_eq!(reply.counted_in, [after[0].row()]);
}

/// The count of other calls in the tenant's window of a customer.
fn in_window(gate: &Gate, change: Value) -> u64 {
    let CallResult::NotCounted(requests) = step(gate, &command(&arguments(change)), None) else {
        panic!("the window is asked")
    };
    gate.count_call(None, &requests[0]).unwrap().count
}

#[test]
fn a_window_of_the_tenant_and_a_shared_limit_count_what_passes_both() {
    let mut one = gate();
    let two = other(&one);
    let limit = json!({"limit_id": "l", "rule": {"kind": "quota", "max": "2", "window": "day"}});
    let limit = json!({"subject_kind": "tenant", "subject": "*", "limit": limit});
    one.tenant_mut().shared_limits = [serde_json::from_value(limit).unwrap()].into();
    passes(&one, json!({}));
    passes(&two, json!({}));
    assert_eq!(decide(&one, json!({})).0, "require_approval");
    // A call that the window held back used nothing of the limit.
    passes(&one, json!({"customer": "d"}));
    let (_, body) = one.call(&call(arguments(json!({"customer": "e"}))));
    assert_eq!(body["reason_code"], "quota_exhausted");
    // A call that the limit denied is in no window.
    assert_eq!(
        ["c", "d", "e"].map(|customer| in_window(&two, json!({"customer": customer}))),
        [2, 1, 0]
    );
}

#[test]
fn what_a_server_asks_reads_windows_and_counts_in_none() {
    let mut gate = gate();
    let server = json!({"kind": "mcp", "trust": "trusted", "status": "active",
        "upstream": {"url": "https://api.example.com/"}});
    gate.records.server = Some(serde_json::from_value(server).unwrap());
    let mut asked = command(&arguments(json!({})));
    asked.purpose = Purpose::Ask;
    asked.call.environment = None;
    let answer = |gate: &Gate| -> String {
        let body: Value = serde_json::from_str(&gate.try_call(&asked).unwrap().body).unwrap();
        body["decision"]["reason_code"].as_str().unwrap().to_owned()
    };
    for _ in 0..8 {
        assert_eq!(answer(&gate), "policy_allow");
    }
    assert_eq!(in_window(&gate, json!({})), 0);
    for _ in 0..2 {
        passes(&gate, json!({}));
    }
    assert_eq!(answer(&gate), "policy_allow", "it is no third call");
    let CallResult::NotCounted(requests) = step(&gate, &command(&arguments(json!({}))), None)
    else {
        panic!("the window is asked")
    };
    gate.count_call(Some("another"), &requests[0]).unwrap();
    assert_eq!(answer(&gate), "policy_require_approval");
}

#[test]
fn what_a_window_answered_is_good_if_d1_is_away_since() {
    let mut gate = gate();
    let command = command(&arguments(json!({})));
    let CallResult::NotCounted(requests) = step(&gate, &command, None) else { panic!("it asks") };
    let answers = [(requests[0].row(), gate.count_call(Some("0.1"), &requests[0]))];
    gate.records.confirmed = false;
    let CallResult::Decided(reply) = step(&gate, &command, Some(&answers)) else {
        panic!("everything is known")
    };
    assert!(reply.body.contains("degraded"), "{}", reply.body);
    assert_eq!(reply.counted_in, [requests[0].row()]);
}

#[test]
fn the_call_that_uses_an_approval_counts_once() {
    let gate = gate();
    passes(&gate, json!({}));
    passes(&gate, json!({}));
    let (_, held) = gate.call(&call(arguments(json!({}))));
    let id = held["approval"]["approval_id"].as_str().unwrap();
    let (verdict, comment, action_hash) = VerdictKind::Approve.read(b"").unwrap();
    let decision = DecideCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        approval_id: id.to_owned(),
        administrator: "ada".to_owned(),
        key_id: "ka".to_owned(),
        issued_by: None,
        http_request_id: "test".to_owned(),
        groups: vec!["finance".to_owned()],
        epoch: 1,
        verdict,
        comment,
        action_hash,
        if_match: None,
    };
    let now_ms = gate.now_ms.get();
    let decided = gate
        .on_lane(|lane, storage| lane.decide_approval(storage, &gate.config, &decision, 1, now_ms));
    assert!(matches!(decided, Ok(DecideOutcome::Done { .. })), "{decided:?}");
    assert_eq!(in_window(&gate, json!({})), 2);
    let uses = with(call(arguments(json!({}))), json!({"approval_id": id}));
    assert_eq!(gate.call(&uses).1["reason_code"], "approval_granted");
    assert_eq!(in_window(&gate, json!({})), 3);
    assert_eq!(gate.call(&uses).1["decision"], "deny", "it is used up");
    assert_eq!(in_window(&gate, json!({})), 3);
}

#[test]
fn a_window_whose_storage_fails_denies_the_call_and_does_not_count_it() {
    for fault in [Fault::Failed, Fault::Lost] {
        let gate = gate();
        passes(&gate, json!({}));
        gate.windows.borrow().fault.set(Some((0, fault)));
        let (_, body) = gate.call(&call(arguments(json!({}))));
        assert_eq!(body["reason_code"], "velocity_unavailable", "{fault:?}");
        assert_eq!(in_window(&gate, json!({})), 1, "{fault:?}");
    }
}

#[test]
fn a_withdrawal_that_fails_leaves_the_count_too_high() {
    for (fault, counted) in [(Fault::Failed, 2), (Fault::Lost, 1)] {
        let gate = gate();
        passes(&gate, json!({}));
        // The count is the first write.
        gate.windows.borrow().fault.set(Some((1, fault)));
        let denied =
            with(call(arguments(json!({}))), json!({"context": {"source_trust": "unknown"}}));
        assert_eq!(gate.call(&denied).1["reason"], "claimed");
        assert_eq!(in_window(&gate, json!({})), counted, "{fault:?}");
    }
}

#[test]
fn a_clock_that_was_ahead_makes_no_window_forget_or_last_for_longer() {
    for ahead_ms in [4_000, 20_000, 3_600_000, 400 * 24 * 3_600_000] {
        let gate = gate();
        gate.now_ms.set(START_MS + ahead_ms);
        passes(&gate, json!({"amount": 50}));
        passes(&gate, json!({"amount": 49}));
        gate.now_ms.set(START_MS);
        gate.evict();
        assert_eq!(in_window(&gate, json!({})), 2, "{ahead_ms}");
        // The agent's window denies the call, and the call repairs the tenant's window.
        assert_eq!(decide(&gate, json!({"amount": 2})).1, "item", "{ahead_ms}");
        gate.now_ms.set(START_MS + CLOCK_TOLERANCE_MS + 3_600_000);
        assert_eq!(in_window(&gate, json!({})), 0, "{ahead_ms}");
        passes(&gate, json!({"amount": 100}));
    }
}
