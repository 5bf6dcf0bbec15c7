//! The messages that a lane keeps for a tenant's webhook.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

use crate::support::{self, Fault, Gate, START_MS, TENANT, read_call, tool, with};
use gateward_core::approval::{DecideCommand, Verdict};
use gateward_core::lane::{
    DecideOutcome, Delivery, Lane, MAX_ATTEMPTS, MAX_DELIVERIES, MAX_OUTBOX_ROWS, StorageError,
};
use gateward_core::receipt::{self, GENESIS};
use serde_json::{Value as Json, json};

/// A gate whose calls all wait for a member of `security`.
fn gate() -> Gate {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    gate.on_lane(|lane, storage| lane.adopt(storage, TENANT, 0)).unwrap();
    gate
}

fn call() -> Json {
    with(read_call(), json!({"context": {"source_trust": "semi_trusted_customer"}}))
}

/// Asks for an approval; its id.
fn ask(gate: &Gate) -> String {
    let (_, body) = gate.call(&call());
    assert_eq!(body["decision"], "require_approval");
    body["approval"]["approval_id"].as_str().unwrap().to_owned()
}

fn decide(gate: &Gate, approval_id: &str, verdict: Verdict) -> Result<(), StorageError> {
    let command = DecideCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        approval_id: approval_id.to_owned(),
        administrator: "mara".to_owned(),
        key_id: "k9".to_owned(),
        issued_by: None,
        http_request_id: "test".to_owned(),
        groups: vec!["security".to_owned()],
        epoch: 1,
        verdict,
        comment: None,
        action_hash: None,
        if_match: None,
    };
    let now_ms = gate.now_ms.get();
    let decided = gate.on_lane(|lane, storage| {
        lane.decide_approval(storage, &gate.config, &command, 1, now_ms)
    })?;
    assert!(matches!(decided, DecideOutcome::Done { .. }), "{decided:?}");
    Ok(())
}

fn use_up(gate: &Gate, approval_id: &str, parameters: Json) {
    let changes = json!({"approval_id": approval_id, "tool_call": {"parameters": parameters}});
    gate.call(&with(call(), changes));
}

fn due(gate: &Gate) -> Vec<Delivery> {
    let now_ms = gate.now_ms.get();
    gate.on_lane(|lane, storage| lane.due_deliveries(storage, now_ms)).unwrap()
}

fn next(gate: &Gate) -> Option<u64> {
    gate.on_lane(|_, storage| Lane::next_delivery(storage)).unwrap()
}

fn body(delivery: &Delivery) -> Json {
    serde_json::from_str(&delivery.message.body).unwrap()
}

/// The receiver takes all waiting messages.
fn take_all(gate: &Gate) -> Vec<Json> {
    let mut taken = Vec::new();
    loop {
        let deliveries = due(gate);
        if deliveries.is_empty() {
            return taken;
        }
        for delivery in &deliveries {
            taken.push(body(delivery));
            gate.on_lane(|_, storage| Lane::delivered(storage, delivery)).unwrap();
        }
    }
}

#[test]
fn every_step_of_an_approval_is_told_as_it_was_and_without_the_arguments() {
    let gate = gate();
    let id = ask(&gate);
    gate.now_ms.set(START_MS + 1_000);
    use_up(&gate, &id, json!({"n": "something else"}));
    decide(&gate, &id, Verdict::Approve { edit: Some(r#"{"n":"narrower"}"#.to_owned()) }).unwrap();
    gate.evict();
    use_up(&gate, &id, json!({"n": "narrower"}));
    // A day later: each message still describes the approval as it was at its step.
    gate.now_ms.set(START_MS + 86_400_000);
    let messages = due(&gate);
    assert_eq!(messages[0].message.id, "msg_demo_0_1");
    let told = take_all(&gate);
    let seen: Vec<_> = told
        .iter()
        .map(|told| {
            let approval = &told["data"]["approval"];
            let text = |value: &Json| value.as_str().unwrap().to_owned();
            assert_eq!(told["data"]["tenant"], TENANT);
            assert_eq!(text(&approval["approval_id"]), id);
            (text(&told["type"]), text(&approval["status"]), approval["revision"].as_u64().unwrap())
        })
        .collect();
    let step = |kind: &str, status: &str, revision| (kind.to_owned(), status.to_owned(), revision);
    assert_eq!(
        seen,
        [
            step("approval.requested", "pending", 1),
            step("approval.tampered", "pending", 2),
            step("approval.approved", "approved", 3),
            step("approval.used", "used", 4),
        ]
    );
    assert_eq!(told[0]["timestamp"], "2026-11-18T11:06:40.000Z");
    assert_eq!(told[1]["timestamp"], "2026-11-18T11:06:41.000Z");
    let all = json!(told).to_string();
    assert!(!all.contains("narrower") && !all.contains("something else"), "{all}");
    assert_eq!(next(&gate), None);
}

#[test]
fn a_message_is_the_same_at_every_attempt() {
    let gate = gate();
    ask(&gate);
    let first = due(&gate);
    gate.on_lane(|_, storage| Lane::delivery_failed(storage, &first[0], 503, START_MS)).unwrap();
    assert_eq!(due(&gate), []);
    assert_eq!(next(&gate), Some(START_MS + 5_000));
    gate.now_ms.set(START_MS + 5_000);
    gate.evict();
    let second = due(&gate);
    assert_eq!((second[0].attempts, &second[0].message), (1, &first[0].message));
}

/// Every journal row with an approval has a waiting message, and nothing else has one.
fn assert_whole(gate: &Gate, about: &str) {
    let seqs = |query: &str| -> String {
        let all = gate.storage.connection.query_row(query, [], |row| row.get::<_, Option<_>>(0));
        all.unwrap().unwrap_or_default()
    };
    assert_eq!(
        seqs("SELECT group_concat(seq ORDER BY seq) FROM webhook_outbox"),
        seqs(
            "SELECT group_concat(seq ORDER BY seq) FROM journal WHERE row->>'approval' IS NOT NULL"
        ),
        "{about}"
    );
}

#[test]
fn a_step_and_its_message_are_written_together_or_not_at_all() {
    let mut broken = 0;
    for fault in [Fault::Failed, Fault::Lost] {
        for at in 0.. {
            let gate = gate();
            gate.storage.fault.set(Some((at, fault)));
            let about = format!("{fault:?} {at}");
            let command = support::command(&call());
            let asked = gate.try_call(&command).is_ok();
            assert_whole(&gate, &about);
            if asked {
                let id = "appr_0_1";
                if decide(&gate, id, Verdict::Approve { edit: None }).is_ok() {
                    let again = with(call(), json!({"approval_id": id}));
                    drop(gate.try_call(&support::command(&again)));
                }
                assert_whole(&gate, &about);
            }
            if gate.storage.fault.take().is_some() {
                break;
            }
            broken += 1;
            gate.evict();
            assert!(gate.on_lane(|_, storage| Lane::next_delivery(storage)).is_ok());
            assert_whole(&gate, &about);
        }
    }
    assert!(broken >= 6, "only {broken} writes were broken");
}

/// Each write at the end of a delivery: once it fails, and once its answer is lost. The message is then sent again, or
/// never again.
#[test]
fn what_was_taken_is_told_again_only_when_that_could_not_be_written() {
    for (fault, again) in [(Fault::Failed, 1), (Fault::Lost, 0)] {
        let gate = gate();
        ask(&gate);
        let taken = due(&gate);
        gate.storage.fault.set(Some((0, fault)));
        assert!(gate.on_lane(|_, storage| Lane::delivered(storage, &taken[0])).is_err());
        assert_eq!(due(&gate).len(), again, "{fault:?}");
    }
    for (fault, attempts) in [(Fault::Failed, [0]), (Fault::Lost, [1])] {
        let gate = gate();
        ask(&gate);
        let failed = due(&gate);
        gate.storage.fault.set(Some((0, fault)));
        let noted = |storage: &_| Lane::delivery_failed(storage, &failed[0], 0, START_MS);
        assert!(gate.on_lane(|_, storage| noted(storage)).is_err());
        gate.now_ms.set(START_MS + 5_000);
        let due: Vec<u32> = due(&gate).iter().map(|due| due.attempts).collect();
        assert_eq!(due, attempts, "{fault:?}");
    }
}

/// Fails every due message until none is due.
fn exhaust(gate: &Gate) -> u32 {
    let mut attempts = 0;
    while let Some(at_ms) = next(gate).filter(|at_ms| *at_ms > 0) {
        gate.now_ms.set(at_ms.max(gate.now_ms.get()));
        let now_ms = gate.now_ms.get();
        let deliveries = due(gate);
        assert!(!deliveries.is_empty(), "it would never end");
        for delivery in deliveries {
            let failed = |storage: &_| Lane::delivery_failed(storage, &delivery, 503, now_ms);
            gate.on_lane(|_, storage| failed(storage)).unwrap();
            attempts += 1;
        }
    }
    attempts
}

fn bury(gate: &Gate) -> Result<(), StorageError> {
    let now_ms = gate.now_ms.get();
    gate.on_lane(|lane, storage| lane.write_dead_letters(storage, &gate.config, now_ms))
}

/// The steps whose messages became dead letters, in the order of their receipts.
fn buried(gate: &Gate) -> Vec<String> {
    let bodies = gate.receipts().into_iter().map(|receipt| receipt.body);
    let bodies = bodies.map(|body| serde_json::from_str::<Json>(&body).unwrap());
    let dead = bodies.filter(|body| body["kind"] == "dead_letter");
    dead.map(|body| body["message_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_never_taken_becomes_a_dead_letter_with_a_receipt_and_an_audit_event() {
    let gate = gate();
    let id = ask(&gate);
    let message = body(&due(&gate)[0]);
    bury(&gate).unwrap();
    assert_eq!(buried(&gate).len(), 0, "it may still be taken");
    assert_eq!(exhaust(&gate), MAX_ATTEMPTS);
    assert_eq!(next(&gate), Some(0), "it is to have a row at once");
    assert_eq!(due(&gate), []);
    bury(&gate).unwrap();
    bury(&gate).unwrap();
    assert_eq!(next(&gate), None);
    let receipts = gate.receipts();
    assert_eq!(receipt::verify(&receipts, 1, Some(GENESIS)), Ok(()));
    let letter: Json = serde_json::from_str(&receipts[1].body).unwrap();
    let decision: Json = serde_json::from_str(&receipts[0].body).unwrap();
    let expected = json!({
        "agent": "coder", "approval_id": id, "attempts": MAX_ATTEMPTS,
        "change": "approval_requested", "decision_id": decision["decision_id"],
        "kind": "dead_letter", "lane": 0, "last_status": 503, "message_id": "msg_demo_0_1",
        "prev_hash": receipts[0].receipt_hash, "seq": 2, "tenant": TENANT,
        "time": letter["time"], "version": 2,
    });
    assert_eq!(letter, expected);
    gate.flush_all();
    let event = gate.text(
        "SELECT json_object('event_id', event_id, 'lane', lane, 'source', source, 'detail', json(detail), \
           'of', decision_id = (SELECT decision_id FROM decisions)) \
         FROM audit_events WHERE kind = 'webhook_dead_lettered'",
    );
    let event: Json = serde_json::from_str(&event).unwrap();
    let detail = json!({
        "webhook_id": "msg_demo_0_1", "attempts": MAX_ATTEMPTS, "last_status": 503, "payload": message,
    });
    let expected = json!({
        "event_id": "0.2.webhook_dead_lettered", "lane": 0, "source": "webhook", "detail": detail, "of": 1,
    });
    assert_eq!(event, expected);
    assert_eq!(gate.count("SELECT count(*) FROM audit_events WHERE kind LIKE '%dead%'"), 1);
    assert_eq!(gate.count("SELECT count(*) FROM approvals"), 1);
    let counted = "SELECT sum(count) FROM metric_counters WHERE metric = 'dead_letters'";
    assert_eq!(gate.count(counted), 1);
    let left = "SELECT count(*) FROM webhook_failures";
    assert_eq!(gate.storage.connection.query_row(left, [], |row| row.get::<_, i64>(0)), Ok(0));
}

#[test]
fn a_dead_letter_is_neither_lost_nor_written_twice_whatever_fails() {
    for fault in [Fault::Failed, Fault::Lost] {
        for at in 0.. {
            let gate = gate();
            ask(&gate);
            exhaust(&gate);
            gate.storage.fault.set(Some((at, fault)));
            drop(bury(&gate));
            let was_hit = gate.storage.fault.take().is_none();
            gate.evict();
            bury(&gate).unwrap();
            assert_eq!(buried(&gate), ["msg_demo_0_1"], "{fault:?} {at}");
            assert_eq!(next(&gate), None);
            if !was_hit {
                break;
            }
        }
    }
}

#[test]
fn a_dead_letter_waits_while_the_journal_is_full_and_is_written_though_the_storage_is() {
    let mut gate = gate();
    ask(&gate);
    exhaust(&gate);
    let rows = std::mem::replace(&mut gate.config.journal_hard_rows, 1);
    bury(&gate).unwrap();
    assert_eq!((buried(&gate).len(), next(&gate)), (0, Some(0)));
    gate.config.journal_hard_rows = rows;
    gate.storage.size_bytes.set(u64::MAX);
    gate.evict();
    bury(&gate).unwrap();
    assert_eq!((buried(&gate).len(), next(&gate)), (1, None));
}

#[test]
fn a_batch_is_bounded_and_the_longest_due_come_first() {
    let gate = gate();
    for at in 0..6 {
        gate.now_ms.set(START_MS + at);
        ask(&gate);
    }
    let seqs = |deliveries: &[Delivery]| -> Vec<u64> {
        deliveries.iter().map(|delivery| delivery.seq).collect()
    };
    let first = due(&gate);
    assert_eq!(first.len() as i64, MAX_DELIVERIES);
    assert_eq!(seqs(&first), [1, 2, 3, 4]);
    for delivery in &first {
        let failed = |storage: &_| Lane::delivery_failed(storage, delivery, 503, START_MS + 5);
        gate.on_lane(|_, storage| failed(storage)).unwrap();
    }
    assert_eq!(seqs(&due(&gate)), [5, 6]);
    assert_eq!(next(&gate), Some(START_MS + 4));
}

#[test]
fn without_a_webhook_what_was_written_by_then_is_forgotten() {
    let gate = gate();
    ask(&gate);
    exhaust(&gate);
    ask(&gate);
    ask(&gate);
    gate.on_lane(|_, storage| Lane::forget_deliveries(storage, 2)).unwrap();
    bury(&gate).unwrap();
    assert_eq!((due(&gate)[0].seq, buried(&gate).len()), (3, 0));
}

#[test]
fn what_has_no_room_is_dead_lettered_the_oldest_first() {
    let gate = gate();
    ask(&gate);
    let copy = "INSERT INTO webhook_outbox SELECT value, at_ms, event, record, 0, due_at_ms \
        FROM webhook_outbox, generate WHERE seq = 1";
    let numbers = format!(
        "WITH RECURSIVE generate (value) AS (SELECT 2 UNION ALL SELECT value + 1 FROM generate \
         WHERE value < {})",
        MAX_OUTBOX_ROWS + 3
    );
    gate.storage.connection.execute(&format!("{numbers} {copy}"), []).unwrap();
    bury(&gate).unwrap();
    bury(&gate).unwrap();
    assert_eq!(buried(&gate), ["msg_demo_0_1", "msg_demo_0_2", "msg_demo_0_3"]);
    assert_eq!(due(&gate)[0].seq, 4);
}
