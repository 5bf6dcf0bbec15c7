//! The nonce of a signature in a lane: a signed request can be used once, for any purpose.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use crate::support::{self, Fault, Gate, START_MS, command, read_call, with};
use gateward_core::bounds::MAX_CLOCK_SKEW_MS;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::credential::signature::SignatureNonce;
use gateward_core::gate::NONCE_MS;
use rusqlite::params;
use serde_json::{Value, json};

/// A signed command with a nonce.
fn signed(body: &Value, nonce: &str) -> GateCommand {
    let nonce = SignatureNonce { nonce: nonce.to_owned(), created_ms: START_MS };
    GateCommand { signed: true, signature_nonce: Some(nonce), ..command(body) }
}

/// The same for another purpose, as proxies ask it.
fn asking(purpose: Purpose, nonce: &str) -> GateCommand {
    let mut command = signed(&read_call(), nonce);
    command.call.environment = None;
    GateCommand { purpose, ..command }
}

/// Status and code of a command's answer; no code for anything but a problem.
fn outcome(gate: &Gate, command: &GateCommand) -> (u16, String) {
    let reply = gate.try_call(command).unwrap();
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    (reply.status, body["code"].as_str().unwrap_or_default().to_owned())
}

/// A lane whose server is one that Gateward stands in front of.
fn gate() -> Gate {
    let mut gate = Gate::new();
    let server = json!({"kind": "mcp", "trust": "trusted", "status": "active",
        "upstream": {"url": "https://api.example.com/"}});
    gate.records.server = Some(serde_json::from_value(server).unwrap());
    gate
}

fn kept(gate: &Gate) -> i64 {
    let count = "SELECT count(*) FROM signature_nonces";
    gate.storage.connection.query_row(count, [], |row| row.get(0)).unwrap()
}

fn replayed() -> (u16, String) {
    (409, "nonce_replayed".to_owned())
}

#[test]
fn a_signed_request_is_good_once_also_if_it_journals_nothing() {
    let with_id = with(read_call(), json!({"request_id": "q"}));
    for (name, first, status) in [
        ("a call", signed(&read_call(), "n"), 200),
        ("a dry run", signed(&with(read_call(), json!({"dry_run": true})), "n"), 200),
        ("an answer that is kept", signed(&with_id, "n"), 200),
        ("a forwarded call", asking(Purpose::Forward, "n"), 200),
        ("a message that is no call", asking(Purpose::Message { cost: 1 }, "n"), 200),
        ("a listing", asking(Purpose::Filter(Vec::new()), "n"), 200),
        ("a malformed environment", asking(Purpose::Authorize, "n"), 403),
    ] {
        let gate = gate();
        // Make the request id have an answer already.
        gate.try_call(&command(&with_id)).unwrap();
        assert_eq!(outcome(&gate, &first).0, status, "{name}");
        assert_eq!(outcome(&gate, &first), replayed(), "{name}");
        // The used nonce survives an eviction and a flush.
        gate.evict();
        gate.flush_all();
        assert_eq!(outcome(&gate, &first), replayed(), "{name}");
        // The nonce belongs to the credential, whatever it signs.
        assert_eq!(outcome(&gate, &signed(&read_call(), "n")), replayed(), "{name}");
        assert_ne!(outcome(&gate, &signed(&read_call(), "m")), replayed(), "{name}");
    }
}

#[test]
fn a_request_over_the_rate_uses_up_its_nonce_and_a_replay_costs_no_request() {
    let mut gate = gate();
    gate.agent_mut().request_rate = support::rate(2, 0.001);
    assert_eq!(outcome(&gate, &signed(&read_call(), "a")).0, 200);
    for _ in 0..5 {
        assert_eq!(outcome(&gate, &signed(&read_call(), "a")), replayed());
    }
    assert_eq!(outcome(&gate, &signed(&read_call(), "b")).0, 200);
    assert_eq!(outcome(&gate, &signed(&read_call(), "c")).0, 429);
    assert_eq!(outcome(&gate, &signed(&read_call(), "c")), replayed());
}

#[test]
fn a_request_without_a_good_credential_uses_up_no_nonce() {
    let gate = gate();
    let mut stranger = signed(&read_call(), "n");
    stranger.secret_hash = [0; 32];
    assert_eq!(outcome(&gate, &stranger).0, 401);
    assert_eq!(kept(&gate), 0);
    assert_eq!(outcome(&gate, &signed(&read_call(), "n")).0, 200);
}

#[test]
fn a_nonce_is_kept_for_as_long_as_its_signature_is_good() {
    for (after_ms, code) in
        [(MAX_CLOCK_SKEW_MS, "nonce_replayed"), (MAX_CLOCK_SKEW_MS + 1, "timestamp_stale")]
    {
        let gate = gate();
        let request = asking(Purpose::Message { cost: 1 }, "n");
        assert_eq!(outcome(&gate, &request).0, 200);
        gate.now_ms.set(START_MS + after_ms);
        gate.flush_all();
        assert_eq!(outcome(&gate, &request), (409, code.to_owned()));
    }
    let gate = gate();
    gate.now_ms.set(START_MS - MAX_CLOCK_SKEW_MS - 1);
    assert_eq!(outcome(&gate, &signed(&read_call(), "n")).1, "timestamp_stale");
}

#[test]
fn a_replay_that_storage_cannot_rule_out_gets_no_answer() {
    for fault in [Fault::Failed, Fault::Lost] {
        for statement in 0..8 {
            let gate = gate();
            gate.try_call(&command(&read_call())).unwrap();
            gate.storage.fault.set(Some((statement, fault)));
            let first = gate.try_call(&asking(Purpose::Message { cost: 1 }, "n"));
            gate.storage.fault.set(None);
            let second = outcome(&gate, &asking(Purpose::Message { cost: 1 }, "n"));
            // An answer is sent only if the nonce was stored.
            assert!(first.is_err() || second == replayed(), "{fault:?} {statement}");
        }
    }
}

#[test]
fn nonces_of_a_lane_that_is_never_flushed_do_not_pile_up() {
    let gate = gate();
    let ask = |at_ms: u64, number: u64| {
        gate.now_ms.set(at_ms);
        let mut request = asking(Purpose::Message { cost: 1 }, &number.to_string());
        request.signature_nonce.as_mut().unwrap().created_ms = at_ms;
        assert_eq!(outcome(&gate, &request).0, 200);
    };
    const HOUR_MS: u64 = 3_600_000;
    const { assert!(NONCE_MS < HOUR_MS) };
    (0..50).for_each(|number| ask(START_MS, number));
    // By the time of an hour ago, they have expired after two hours.
    ask(START_MS + HOUR_MS, 50);
    (51..100).for_each(|number| ask(START_MS + 2 * HOUR_MS, number));
    assert_eq!(kept(&gate), 50);
}

#[test]
fn d1_takes_each_nonce_of_a_credential_once_and_forgets_old_ones() {
    use gateward_core::sql::d1::{FORGET_SIGNATURE_NONCES, USE_SIGNATURE_NONCE};
    let database = support::database();
    let first = |tenant: &str, key_id: &str, nonce: &str, at_ms: i64| {
        let mut insert = database.prepare(USE_SIGNATURE_NONCE).unwrap();
        insert.exists(params![tenant, key_id, nonce, at_ms]).unwrap()
    };
    for (tenant, key_id, nonce, at_ms, expected) in [
        ("t", "k", "n", 1, true),
        ("t", "k", "n", 2, false),
        ("t", "k", "m", 3, true),
        ("t", "l", "n", 4, true),
        ("u", "k", "n", 1, true),
    ] {
        assert_eq!(first(tenant, key_id, nonce, at_ms), expected, "{tenant} {key_id} {nonce}");
    }
    for expected in [1, 1, 0] {
        assert_eq!(
            database.execute(FORGET_SIGNATURE_NONCES, params!["t", 4, 1]).unwrap(),
            expected
        );
    }
    assert!(first("t", "k", "n", 5) && !first("t", "l", "n", 5) && !first("u", "k", "n", 5));
}
