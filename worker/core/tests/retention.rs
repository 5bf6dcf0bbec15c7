//! The records of a tenant are bounded for each day, and kept for as long as is registered.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::rc::Rc;

use crate::support::{Gate, START_MS, TENANT, command, read_call, with};
use gateward_core::bounds::HEAD_LANE;
use gateward_core::call::command::Purpose;
use gateward_core::clock::DAY_MS;
use gateward_core::gate::head_log::LaneCheckpoint;
use gateward_core::gate::{Effect, OutcomeCommand};
use gateward_core::lane::{Lane, LogKeys, LogName, TreeHead};
use gateward_core::metrics::UNCOUNTED_DAYS;
use gateward_core::receipt::Ending;
use gateward_core::receipt::retention::{MAX_OLD_RECEIPTS, MAX_PRUNED};
use gateward_core::receipt::{self, Break, StoredReceipt};
use gateward_core::registry::{AgentStatus, TenantRecord};
use gateward_core::sql::d1;
use rusqlite::params;
use serde_json::{Value, json};

/// A tenant of one lane with bounds.
fn bounded(rows: Option<u32>, bytes: Option<u32>) -> Option<Rc<TenantRecord>> {
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
    // Earlier answers are repeated, and neither an eviction nor a flush resets the bound.
    assert_eq!(gate.call(&with(read_call(), json!({"request_id": "r"}))).1, first);
    for between in [Gate::evict as fn(&Gate), Gate::flush_all, Gate::evict] {
        between(&gate);
        assert_eq!(reasons(&gate, 1), ["tenant_rows_exhausted"]);
    }
    // A request id that was refused because of the bound has no answer. It gets one the next day.
    let late = with(read_call(), json!({"request_id": "late"}));
    assert_eq!(gate.call(&late).1["reason_code"], "tenant_rows_exhausted");
    gate.now_ms.set((gate.now_ms.get() / DAY_MS + 1) * DAY_MS);
    assert_eq!(gate.call(&late).1["reason_code"], "policy_allow");
    // If the clock goes back, the bound is not reset.
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
    // How many calls pass before the bound, without and with events that could make the lane forget.
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
    gate.agent_mut().status = AgentStatus::Frozen;
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
        tool: "list_issues".to_owned(),
        decision_id: text("/decision_id"),
        decision_hash: text("/receipt/receipt_hash"),
        status: 200,
        bytes: 1,
        duration_ms: 1,
        result_sha256: String::new(),
        ending: Ending::Complete,
        effect: Effect::Succeeded,
        untrusted: None,
        observed: None,
        found: None,
    };
    let now_ms = gate.now_ms.get();
    let recorded = gate
        .on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &outcome, now_ms))
        .unwrap();
    assert_eq!(recorded, Ok(()));
    assert_eq!(gate.receipts().len(), 4);
    // Requests of servers, and requests that call nothing, are denied like calls.
    for purpose in [Purpose::Ask, Purpose::Message { cost: 1 }] {
        let mut asked = command(&read_call());
        asked.call.environment = None;
        asked.purpose = purpose;
        let body = gate.try_call(&asked).unwrap().body;
        assert!(body.contains("tenant_rows_exhausted"), "{body}");
    }
}

/// One batch of pruning, as `worker/edge` does it. Returns the anchor, or what is wrong with the chain.
fn prune(gate: &Gate, cutoff_ms: u64) -> Result<u64, Break> {
    let anchor = gate.on_lane(|_, storage| Lane::anchor(storage)).unwrap();
    let mut oldest = gate.database.prepare(d1::OLD_RECEIPTS).unwrap();
    let oldest: Vec<StoredReceipt> = oldest
        .query_map(params![TENANT, gate.number, anchor.seq as i64, MAX_OLD_RECEIPTS], |row| {
            Ok(StoredReceipt {
                seq: row.get::<_, i64>(0)? as u64,
                receipt_hash: row.get(1)?,
                prev_receipt_hash: row.get(2)?,
                body: row.get(3)?,
            })
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let next = gate
        .on_lane(|lane, storage| lane.next_anchor(storage, &oldest, u64::MAX, cutoff_ms))
        .unwrap()?;
    if let Some(next) = &next {
        gate.on_lane(|_, storage| Lane::set_anchor(storage, next)).unwrap();
    }
    let anchor = next.unwrap_or(anchor);
    let through = params![TENANT, gate.number, anchor.seq as i64];
    let saved = params![TENANT, gate.number, anchor.seq as i64, anchor.hash];
    let old = params![TENANT, cutoff_ms as i64, MAX_PRUNED];
    gate.database.execute(d1::PRUNE_LEAVES, through).unwrap();
    gate.database.execute(d1::SAVE_ANCHOR, saved).unwrap();
    gate.database.execute(d1::PRUNE_DECISIONS, through).unwrap();
    gate.database.execute(d1::PRUNE_RECEIPTS, through).unwrap();
    gate.database.execute(d1::PRUNE_APPROVAL_GROUPS, old).unwrap();
    for (statement, tenant) in
        [(d1::PRUNE_APPROVALS, TENANT), (d1::PRUNE_EVENTS, TENANT), (d1::PRUNE_EVENTS, "")]
    {
        let mut statement = gate.database.prepare(statement).unwrap();
        let old = params![tenant, cutoff_ms as i64, MAX_PRUNED];
        assert!(statement.query(old).unwrap().mapped(|_| Ok(())).count() <= MAX_PRUNED as usize);
    }
    gate.database.execute(d1::PRUNE_SERIES, params![TENANT, UNCOUNTED_DAYS]).unwrap();
    Ok(anchor.seq)
}

/// Calls on two days, flushed; the second day's beginning.
fn two_days(gate: &Gate) -> u64 {
    (0..5).for_each(|_| drop(gate.call(&read_call())));
    gate.now_ms.set(gate.now_ms.get() + DAY_MS);
    (0..3).for_each(|_| drop(gate.call(&read_call())));
    gate.flush_all();
    gate.now_ms.get()
}

#[test]
fn what_is_left_of_a_pruned_chain_verifies_from_its_anchor() {
    let gate = Gate::new();
    let second_day = two_days(&gate);
    assert_eq!(prune(&gate, second_day - DAY_MS), Ok(0));
    assert_eq!(prune(&gate, second_day), Ok(5));
    let anchor = gate.on_lane(|_, storage| Lane::anchor(storage)).unwrap();
    let receipts = gate.receipts();
    assert_eq!(receipts.iter().map(|receipt| receipt.seq).collect::<Vec<_>>(), [6, 7, 8]);
    assert_eq!(receipt::verify(&receipts, 6, Some(&anchor.hash)), Ok(()));
    assert_eq!(gate.text("SELECT receipt_hash FROM receipt_anchors WHERE seq = 5"), anchor.hash);
    for (table, left) in [("decisions", 3), ("audit_events", 3)] {
        assert_eq!(gate.count(&format!("SELECT count(*) FROM {table}")), left, "{table}");
    }
    // Repeating it is a no-op, and the lane goes on.
    assert_eq!(prune(&gate, second_day), Ok(5));
    gate.evict();
    assert_eq!(gate.call(&read_call()).1["receipt"]["seq"], 9);
    gate.flush_all();
    assert_eq!(prune(&gate, u64::from(u32::MAX) * 1_000_000), Ok(9));
}

#[test]
fn a_chain_that_was_changed_is_not_pruned() {
    for change in [
        "UPDATE receipts SET body = replace(body, 'allow', 'denyy') WHERE seq = 2",
        "DELETE FROM receipts WHERE seq = 2",
        "DELETE FROM receipts WHERE seq = 1",
    ] {
        let gate = Gate::new();
        let second_day = two_days(&gate);
        gate.database.execute(change, []).unwrap();
        let left = gate.count("SELECT count(*) FROM receipts");
        assert!(prune(&gate, second_day).is_err(), "{change}");
        assert_eq!(gate.count("SELECT count(*) FROM receipts"), left, "{change}");
    }
}

/// Seals the stored chain again after a change, as far as no key is needed.
fn seal_again(gate: &Gate) {
    let mut previous: Option<String> = None;
    for receipt in gate.receipts() {
        let body = match &previous {
            Some(previous) => receipt.body.replace(&receipt.prev_receipt_hash, previous),
            None => receipt.body.clone(),
        };
        let link = previous.unwrap_or(receipt.prev_receipt_hash);
        let hash = receipt::hash(&body);
        let row = params![receipt.seq as i64, body, hash, link];
        let set = "UPDATE receipts SET body = ?2, receipt_hash = ?3, prev_receipt_hash = ?4 WHERE seq = ?1";
        gate.database.execute(set, row).unwrap();
        previous = Some(hash);
    }
}

/// The lane keeps the leaves of its newest million receipts only.
fn forget_leaves(gate: &Gate) {
    gate.storage.connection.execute("UPDATE tiles SET leaves = NULL", []).unwrap();
}

#[test]
fn a_chain_that_was_changed_and_sealed_again_is_not_pruned() {
    for (calls, forgets) in [(5, false), (300, false), (300, true)] {
        let gate = Gate::new();
        (0..calls).for_each(|_| drop(with_rate(&gate)));
        gate.flush_all();
        let cutoff_ms = gate.now_ms.get() + 1;
        if forgets {
            forget_leaves(&gate);
        }
        gate.database
            .execute("UPDATE receipts SET body = replace(body, 'allow', 'denyy') WHERE seq = 2", [])
            .unwrap();
        seal_again(&gate);
        assert!(
            receipt::verify(&gate.receipts(), 1, None).is_ok(),
            "the forgery is as good as it gets"
        );
        let broken = prune(&gate, cutoff_ms).unwrap_err();
        assert!(broken.problem.contains("not what the lane sealed"), "{broken:?}");
        assert_eq!(gate.receipts().len(), calls);
    }
}

/// D1 is restored to when it had so many receipts, and the lane no longer has those up to `forgotten`.
fn lose(gate: &Gate, restored: u64, forgotten: u64) {
    let delete = "DELETE FROM receipts WHERE seq > ?1";
    gate.database.execute(delete, [restored as i64]).unwrap();
    let forget = "DELETE FROM journal WHERE seq <= ?1";
    gate.storage.connection.execute(forget, [forgotten as i64]).unwrap();
    with_rate(gate);
    gate.flush_all();
}

/// Prunes until nothing more is old enough. Returns the anchor.
fn prune_all(gate: &Gate, cutoff_ms: u64) -> Result<u64, Break> {
    let mut anchor = 0;
    loop {
        let next = prune(gate, cutoff_ms)?;
        if next == anchor {
            return Ok(anchor);
        }
        anchor = next;
    }
}

#[test]
fn lost_receipts_do_not_keep_what_is_around_them_from_being_pruned() {
    for (restored, forgotten) in [(300, 340), (0, 20), (599, 600), (256, 512)] {
        for forgets in [false, true] {
            let gate = Gate::new();
            (0..600).for_each(|_| drop(with_rate(&gate)));
            gate.flush_all();
            lose(&gate, restored, forgotten);
            (0..600).for_each(|_| drop(with_rate(&gate)));
            gate.flush_all();
            assert_eq!(gate.receipts().len() as u64, 1_201 - (forgotten - restored));
            if forgets {
                forget_leaves(&gate);
            }
            let in_gap_ms = START_MS + (restored + 1) * 1_000;
            assert_eq!(prune_all(&gate, in_gap_ms), Ok(restored), "{restored} {forgets}");
            // As soon as what comes after the gap is old.
            let after_gap_ms = START_MS + (forgotten + 2) * 1_000;
            assert_eq!(prune_all(&gate, after_gap_ms), Ok(forgotten + 1), "{restored} {forgets}");
            assert_eq!(prune_all(&gate, gate.now_ms.get() + 1), Ok(1_201), "{restored} {forgets}");
            gate.evict();
            assert_eq!(with_rate(&gate)["receipt"]["seq"], 1_202);
        }
    }
}

#[test]
fn a_gap_that_the_lane_knows_hides_no_change_of_the_chain() {
    let change = "UPDATE receipts SET body = replace(body, 'allow', 'denyy') WHERE seq = ?1";
    let remove = "DELETE FROM receipts WHERE seq = ?1";
    for (statement, seq) in [(change, 2), (change, 10), (change, 21), (remove, 10), (remove, 21)] {
        let gate = Gate::new();
        (0..40).for_each(|_| drop(with_rate(&gate)));
        gate.flush_all();
        lose(&gate, 10, 20);
        assert_eq!(gate.database.execute(statement, [seq]).unwrap(), 1);
        seal_again(&gate);
        let broken = prune_all(&gate, gate.now_ms.get() + 1).unwrap_err();
        assert!((1..=21).contains(&broken.seq), "{seq}: {broken:?}");
        assert!(gate.count("SELECT count(*) FROM receipts WHERE seq >= 11") >= 20, "{seq}");
    }
}

#[test]
fn if_another_backup_has_receipts_that_were_lost_they_are_pruned_like_others() {
    let gate = Gate::new();
    (0..40).for_each(|_| drop(with_rate(&gate)));
    gate.flush_all();
    let keep = "CREATE TEMP TABLE backup AS SELECT * FROM receipts WHERE seq <= 20";
    gate.database.execute(keep, []).unwrap();
    lose(&gate, 10, 20);
    gate.database.execute("INSERT OR IGNORE INTO receipts SELECT * FROM backup", []).unwrap();
    assert_eq!(prune_all(&gate, gate.now_ms.get() + 1), Ok(41));
}

#[test]
fn a_receipt_is_as_old_as_its_body_says() {
    let gate = Gate::new();
    let second_day = two_days(&gate);
    gate.database.execute("UPDATE receipts SET at_ms = 0", []).unwrap();
    assert_eq!(prune(&gate, second_day), Ok(5));
}

#[test]
fn all_that_is_old_is_pruned_whether_or_not_the_lane_keeps_its_leaves() {
    for forgets in [false, true] {
        let gate = Gate::new();
        (0..1_100).for_each(|_| drop(with_rate(&gate)));
        gate.flush_all();
        let cutoff_ms = gate.now_ms.get() + 1;
        // Somewhere within a tile.
        assert_eq!(prune(&gate, START_MS + 100 * 1_000), Ok(99));
        if forgets {
            forget_leaves(&gate);
        }
        let mut anchor = 0;
        loop {
            let next = prune(&gate, cutoff_ms).unwrap();
            if next == anchor {
                break;
            }
            anchor = next;
        }
        assert_eq!(anchor, 1_100, "{forgets}");
    }
}

#[test]
fn the_head_log_is_pruned_in_whole_bundles() {
    let mut gate = Gate::new();
    gate.number = HEAD_LANE;
    let checkpoint = |size| LaneCheckpoint {
        tenant: TENANT.to_owned(),
        of_lane: 0,
        note: note(size),
        first: 1,
        pruned_through: 0,
    };
    for size in 1..=600 {
        let now_ms = gate.now_ms.get();
        let kept = gate.on_lane(|lane, storage| {
            lane.keep_checkpoint(storage, &gate.config, &checkpoint(size), now_ms)
        });
        kept.unwrap().unwrap();
    }
    gate.flush_all();
    let cutoff_ms = gate.now_ms.get() + 1;
    assert_eq!(prune(&gate, cutoff_ms), Ok(256));
    assert_eq!(prune(&gate, cutoff_ms), Ok(512));
    assert_eq!(prune(&gate, cutoff_ms), Ok(512));
}

#[test]
fn the_head_log_is_pruned_around_lost_entries() {
    let mut gate = Gate::new();
    gate.number = HEAD_LANE;
    let tell = |gate: &Gate, size| {
        let checkpoint = LaneCheckpoint {
            tenant: TENANT.to_owned(),
            of_lane: 0,
            note: note(size),
            first: 1,
            pruned_through: 0,
        };
        let now_ms = gate.now_ms.get();
        let kept = gate.on_lane(|lane, storage| {
            lane.keep_checkpoint(storage, &gate.config, &checkpoint, now_ms)
        });
        kept.unwrap().unwrap();
        gate.flush_all();
    };
    (1..=300).for_each(|size| tell(&gate, size));
    let delete = "DELETE FROM receipts WHERE seq > 280";
    gate.database.execute(delete, []).unwrap();
    gate.storage.connection.execute("DELETE FROM journal WHERE seq <= 290", []).unwrap();
    (301..=600).for_each(|size| tell(&gate, size));
    assert_eq!(*gate.told_lost.borrow(), [(281, 290)]);
    assert_eq!(prune_all(&gate, gate.now_ms.get() + 1), Ok(512));
}

#[test]
fn the_head_log_takes_no_smaller_tree_and_forgets_nothing_that_it_knows_as_deleted() {
    let mut gate = Gate::new();
    gate.number = HEAD_LANE;
    // A lane tells the head log what it is about to delete. If it does not learn that its message arrived, it sends a
    // lower number from then on.
    for (size, pruned_through, taken) in
        [(5, 0, true), (4, 0, false), (5, 2, true), (5, 1, true), (4, 3, false), (9, 1, true)]
    {
        let checkpoint = LaneCheckpoint {
            tenant: TENANT.to_owned(),
            of_lane: 0,
            note: note(size),
            first: 1,
            pruned_through,
        };
        let now_ms = gate.now_ms.get();
        let kept = gate.on_lane(|lane, storage| {
            lane.keep_checkpoint(storage, &gate.config, &checkpoint, now_ms)
        });
        assert_eq!(kept.unwrap().is_ok(), taken, "{size} {pruned_through}");
    }
    let pruned = |receipt: &StoredReceipt| -> Value {
        serde_json::from_str::<Value>(&receipt.body).unwrap()["pruned_through"].clone()
    };
    assert_eq!(gate.receipts().iter().map(pruned).collect::<Vec<_>>(), [0, 2, 2, 2]);
}

/// A note of some tree of this size.
fn note(size: u64) -> String {
    let keys = LogKeys::read(|name| match name {
        "LOG_KEY" => Some("01".repeat(32)),
        "LOG_ORIGIN" => Some("gateward.example".to_owned()),
        _ => None,
    });
    let log = LogName { tenant: TENANT.to_owned(), lane: 0 };
    keys.unwrap().unwrap().sign(&log, TreeHead { size, root: [7; 32] })
}

/// A call, a second after the one before, so that no rate limits it.
fn with_rate(gate: &Gate) -> Value {
    gate.now_ms.set(gate.now_ms.get() + 1_000);
    gate.call(&read_call()).1
}

#[test]
fn events_that_are_locks_and_approvals_that_may_be_open_are_kept() {
    let gate = Gate::new();
    gate.database
        .execute_batch(
            "UPDATE tenants SET epoch = 3;
             INSERT INTO audit_events (tenant, event_id, at_ms, kind, source, detail) VALUES
               ('demo', 'registry.2', 1, 'agent_created', 'ada', '{}'),
               ('demo', 'registry.3', 2, 'agent_changed', 'ada', '{}'),
               ('demo', '0.7.webhook_dead_lettered', 2, 'webhook_dead_lettered', 'webhook', '{}'),
               ('demo', 'registry.1', 9, 'agent_created', 'ada', '{}'),
               ('', 'bootstrap.0', 1, 'bootstrapped', 'bootstrap', '{}'),
               ('', 'authentication_failed:x:0', 1, 'authentication_failed', 'x', '{}'),
               ('other', 'registry.1', 1, 'agent_created', 'ada', '{}');
             INSERT INTO approvals (tenant, approval_id, agent, status, created_at_ms, expires_at_ms,
               revision, record) VALUES
               ('demo', 'a', 'coder', 'used', 1, 2, 1, '{\"approver_groups\":[{\"group\":\"g\"},{\"group\":\"h\"}]}'),
               ('demo', 'b', 'coder', 'pending', 1, 9, 1, '{\"approver_groups\":[{\"group\":\"g\"}]}');",
        )
        .unwrap();
    gate.call(&read_call());
    assert_eq!(prune(&gate, 5), Ok(0));
    let left = "SELECT group_concat(tenant || '/' || event_id, ' ') FROM (SELECT tenant, event_id \
         FROM audit_events ORDER BY tenant, event_id)";
    assert_eq!(gate.text(left), "/bootstrap.0 demo/registry.1 demo/registry.3 other/registry.1");
    assert_eq!(gate.text("SELECT group_concat(approval_id) FROM approvals"), "b");
    assert_eq!(
        gate.text("SELECT group_concat(group_name || approval_id) FROM approval_groups"),
        "gb"
    );
}
