//! What is written down of a tenant is bounded by the day, and kept for as long as is registered.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use gateward_core::budget::DAY_MS;
use gateward_core::command::Purpose;
use gateward_core::gate::{Ending, OutcomeCommand};
use gateward_core::registry::{AgentStatus, TenantRecord};
use serde_json::{Value, json};
use support::{Gate, TENANT, command, read_call, with};

/// A tenant of one lane with bounds.
fn bounded(rows: Option<u32>, bytes: Option<u32>) -> Option<TenantRecord> {
    let record = json!({"status": "active", "epoch": 1, "lanes": 1,
        "rows_per_day": rows, "bytes_per_day": bytes});
    serde_json::from_value(record).unwrap()
}

fn reasons(gate: &Gate, calls: usize) -> Vec<String> {
    let reason = |_| gate.call(&read_call()).1["reason_code"].as_str().unwrap().to_owned();
    (0..calls).map(reason).collect()
}

#[test]
fn beyond_its_rows_of_a_day_a_tenants_calls_are_denied_and_counted_until_the_next_day() {
    let mut gate = Gate::new();
    gate.records.tenant = bounded(Some(5), None);
    let first = gate.call(&with(read_call(), json!({"request_id": "r"}))).1;
    assert_eq!(
        reasons(&gate, 6)[3..],
        ["policy_allow", "tenant_rows_exhausted", "tenant_rows_exhausted"]
    );
    let (status, denied) = gate.call(&read_call());
    assert_eq!(
        (status, &denied["decision"], &denied["receipt"]),
        (200, &json!("deny"), &Value::Null)
    );
    assert_eq!(gate.receipts().len(), 5);
    // What was answered before is answered again, and neither eviction nor flush opens the bound.
    assert_eq!(gate.call(&with(read_call(), json!({"request_id": "r"}))).1, first);
    for between in [Gate::evict as fn(&Gate), Gate::flush_all, Gate::evict] {
        between(&gate);
        assert_eq!(reasons(&gate, 1), ["tenant_rows_exhausted"]);
    }
    // A request id that met the bound has no answer: tomorrow it gets one.
    let late = with(read_call(), json!({"request_id": "late"}));
    assert_eq!(gate.call(&late).1["reason_code"], "tenant_rows_exhausted");
    gate.now_ms.set((gate.now_ms.get() / DAY_MS + 1) * DAY_MS);
    assert_eq!(gate.call(&late).1["reason_code"], "policy_allow");
    // Time that runs backwards opens nothing.
    assert_eq!(reasons(&gate, 5)[3..], ["policy_allow", "tenant_rows_exhausted"]);
    gate.now_ms.set(gate.now_ms.get() - 1);
    assert_eq!(reasons(&gate, 1), ["tenant_rows_exhausted"]);
}

#[test]
fn the_audit_says_once_a_day_that_a_bound_is_near_and_that_it_is_reached() {
    let mut gate = Gate::new();
    gate.records.tenant = bounded(Some(10), None);
    let told = |gate: &Gate| {
        gate.flush_all();
        let kinds = "SELECT coalesce(group_concat(kind || count, ' '), '') FROM (SELECT kind, count FROM \
             audit_events WHERE kind LIKE 'tenant_%limit%' ORDER BY event_id)";
        gate.text(kinds)
    };
    reasons(&gate, 7);
    assert_eq!(told(&gate), "");
    reasons(&gate, 1);
    assert_eq!(told(&gate), "tenant_rows_near_limit1");
    reasons(&gate, 5);
    gate.evict();
    reasons(&gate, 5);
    assert_eq!(told(&gate), "tenant_rows_limit_reached1 tenant_rows_near_limit1");
    gate.now_ms.set(gate.now_ms.get() + DAY_MS);
    reasons(&gate, 12);
    gate.now_ms.set(gate.now_ms.get() + 60_000);
    gate.flush_all();
    let days = "SELECT count(*) FROM audit_events WHERE kind = 'tenant_rows_limit_reached'";
    assert_eq!(gate.count(days), 2);
    let denied = "SELECT sum(count) FROM audit_events WHERE kind = 'tenant_rows_exhausted' AND source = 'coder'";
    assert!(gate.count(denied) >= 2);
}

#[test]
fn bytes_are_counted_exactly_through_evictions_and_flushes() {
    // How many calls pass before the bound, without and with what could make the lane forget.
    let passed = |between: fn(&Gate)| {
        let mut gate = Gate::new();
        gate.records.tenant = bounded(None, Some(20_000));
        for calls in 0..100 {
            let reason = reasons(&gate, 1).remove(0);
            if reason != "policy_allow" {
                assert_eq!(reason, "tenant_bytes_exhausted");
                return calls;
            }
            between(&gate);
        }
        panic!("the bound never came");
    };
    let plain = passed(|_| {});
    assert!((5..30).contains(&plain), "{plain}");
    assert_eq!(passed(Gate::evict), plain);
    assert_eq!(passed(Gate::flush_all), plain);
    let both = |gate: &Gate| {
        gate.flush(None).unwrap();
        gate.evict();
    };
    assert_eq!(passed(both), plain);
}

#[test]
fn a_stopped_agent_writes_no_row_beyond_its_tenants_bound() {
    let mut gate = Gate::new();
    gate.records.tenant = bounded(Some(1), None);
    gate.call(&read_call());
    gate.records.agent.as_mut().unwrap().status = AgentStatus::Frozen;
    for _ in 0..3 {
        gate.now_ms.set(gate.now_ms.get() + 61_000);
        assert_eq!(reasons(&gate, 1), ["agent_frozen"]);
    }
    assert_eq!(gate.receipts().len(), 1);
}

#[test]
fn what_ends_something_is_written_down_beyond_the_bound() {
    let mut gate = Gate::new();
    gate.records.tenant = bounded(Some(2), None);
    let (_, allowed) = gate.call(&read_call());
    gate.quarantine();
    gate.evict();
    assert_eq!(reasons(&gate, 1), ["agent_quarantined"]);
    assert_eq!(gate.restore("coder"), Ok(Ok(())));
    assert_eq!(reasons(&gate, 1), ["tenant_rows_exhausted"]);
    let text = |pointer: &str| allowed.pointer(pointer).unwrap().as_str().unwrap().to_owned();
    let outcome = OutcomeCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        agent: "coder".to_owned(),
        server: "notes".to_owned(),
        decision_id: text("/decision_id"),
        decision_hash: text("/receipt/receipt_hash"),
        status: 200,
        bytes: 1,
        duration_ms: 1,
        result_sha256: String::new(),
        ending: Ending::Complete,
    };
    let now_ms = gate.now_ms.get();
    let recorded = gate
        .on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &outcome, now_ms))
        .unwrap();
    assert_eq!(recorded, Ok(()));
    assert_eq!(gate.receipts().len(), 4);
    // What servers ask, and requests that call nothing, are denied like calls.
    for purpose in [Purpose::Ask, Purpose::Admit] {
        let mut asked = command(&read_call());
        asked.call.environment.clear();
        asked.purpose = purpose;
        let body = gate.try_call(&asked).unwrap().body;
        assert!(body.contains("tenant_rows_exhausted"), "{body}");
    }
}
