//! What a run saw is stored before it counts, and stays for a day.

use gateward_core::gate::{Effect, ListCommand, ObservedResult, OutcomeCommand};
use gateward_core::json;
use gateward_core::provenance::extract;
use gateward_core::provenance::part::Part;
use gateward_core::receipt::Ending;
use gateward_core::registry::ServerTrust;
use serde_json::{Value as Json, json as value};

use super::{EVIL, RENT, SHOP, decide, gate, in_run, instruct, pay, report, set_trust};
use crate::support::{Fault, Gate, TENANT};

/// What the list of a server says in a run.
fn list(gate: &Gate, run: &str, trusted: bool, text: &str) -> Result<(), String> {
    let item = json::parse(text.as_bytes()).unwrap();
    let values = extract::items(&gate.config.value_key, [&item], trusted);
    let command = ListCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        agent: "coder".to_owned(),
        server: "files".to_owned(),
        method: "resources/list".to_owned(),
        observed: ObservedResult { run: run.to_owned(), values },
    };
    let now_ms = gate.now_ms.get();
    let stored =
        gate.on_lane(|lane, storage| lane.observe_list(storage, &gate.config, &command, now_ms));
    match stored {
        Ok(Ok(())) => Ok(()),
        Ok(Err(problem)) => Err(problem.code.code().to_owned()),
        Err(error) => Err(error.0),
    }
}

#[test]
fn the_values_of_a_list_have_the_trust_of_its_server() {
    let item = |account: &str| format!(r#"{{"uri":"bank://{account}","name":"for {account}"}}"#);
    let mut gate = gate();
    let rows = |gate: &Gate, table: &str| -> i64 {
        let count = format!("SELECT count(*) FROM {table}");
        gate.storage.connection.query_row(&count, [], |row| row.get(0)).unwrap()
    };
    report(&mut gate, "r", ServerTrust::Untrusted, "x");
    let (journal, observations) = (rows(&gate, "journal"), rows(&gate, "observations"));
    for (trusted, account, written) in
        [(true, SHOP, 1), (false, EVIL, 1), (true, EVIL, 0), (false, SHOP, 0), (false, EVIL, 0)]
    {
        let before = rows(&gate, "observations");
        assert_eq!(list(&gate, "r", trusted, &item(account)), Ok(()));
        let found = rows(&gate, "observations") - before;
        assert_eq!(found, written, "{trusted} {account}");
        gate.evict();
    }
    // It has a row of the run, and none of the journal.
    assert_eq!(rows(&gate, "journal"), journal);
    assert_eq!(rows(&gate, "observations"), observations + 2);
    assert_eq!(pay(&gate, "r", value!({ "to": SHOP })), "allow trusted");
    let held = decide(&gate, &in_run("r", "pay", value!({ "to": EVIL })));
    assert_eq!(held["decision"], "require_approval");
    let origin = "first seen in the untrusted result of `files/resources/list` (result 3)";
    assert!(held["reason"].as_str().unwrap().contains(origin), "{held}");
    assert_eq!(pay(&gate, "another", value!({ "to": EVIL })), "allow nowhere");
}

#[test]
fn a_list_is_not_confirmed_if_its_values_are_not_stored() {
    let item = format!(r#"{{"uri":"bank://{EVIL}"}}"#);
    let gate = gate();
    for fault in [Fault::Failed, Fault::Lost] {
        // The lane is started before the fault: it writes then, too.
        pay(&gate, "another", value!({ "to": RENT }));
        gate.storage.fault.set(Some((0, fault)));
        assert_eq!(list(&gate, "r", false, &item), Err("injected".to_owned()), "{fault:?}");
    }
    // The agent asks for the list again.
    assert_eq!(list(&gate, "r", false, &item), Ok(()));
    let mut full = gate;
    full.config.journal_hard_rows = 0;
    assert_eq!(list(&full, "r", true, r#"{"uri":"bank://1"}"#), Err("journal_full".to_owned()));
}

#[test]
fn what_a_run_saw_and_was_told_is_on_record() {
    let mut gate = gate();
    instruct(&gate, "r", "Pay nobody.");
    report(&mut gate, "r", ServerTrust::Untrusted, EVIL);
    pay(&gate, "r", value!({ "to": EVIL }));
    gate.flush_all();
    let started = "SELECT detail FROM audit_events WHERE kind = 'run_started'";
    let detail: Json = serde_json::from_str(&gate.text(started)).unwrap();
    let hash = gate.config.value_key.verbatim("Pay nobody.");
    let hash = hex::encode(hash.to_be_bytes());
    assert_eq!(detail, value!({"run": "r", "instruction_hash": hash}));
    let body = "SELECT body FROM receipts WHERE kind = 'decision' ORDER BY seq DESC LIMIT 1";
    let body: Json = serde_json::from_str(&gate.text(body)).unwrap();
    assert_eq!(body["provenance"]["sinks"][0]["tool"], "bank/list");
    // Neither the instruction nor any value is stored.
    let stored = "SELECT group_concat(record) FROM observations";
    let stored: String = gate.storage.connection.query_row(stored, [], |row| row.get(0)).unwrap();
    assert!(!stored.contains(EVIL) && !stored.contains("nobody"), "{stored}");
}

/// A lane that has restarted between a result's record and the next call knows the result.
#[test]
fn an_acknowledged_observation_survives_a_kill() {
    let mut gate = gate();
    let key = gate.config.value_key;
    for (at, text) in [SHOP, EVIL].into_iter().enumerate() {
        let call = in_run("r", "list", value!({}));
        set_trust(&mut gate, ServerTrust::Trusted);
        let answer = decide(&gate, &call);
        let outcome = OutcomeCommand {
            tenant: TENANT.to_owned(),
            lane: 0,
            agent: call.call.agent.clone(),
            server: "bank".to_owned(),
            tool: "list".to_owned(),
            decision_id: answer["decision_id"].as_str().unwrap().to_owned(),
            decision_hash: "h".repeat(64),
            status: 200,
            bytes: 9,
            duration_ms: 1,
            result_sha256: String::new(),
            ending: Ending::Complete,
            effect: Effect::Succeeded,
            untrusted: None,
            observed: Some(ObservedResult {
                run: "r".to_owned(),
                values: extract::result(&key, &[Part::whole(text)], None, at == 0),
            }),
            found: None,
        };
        let now_ms = gate.now_ms.get();
        let done = gate
            .on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &outcome, now_ms));
        assert_eq!(done, Ok(Ok(())));
        gate.evict();
    }
    report(&mut gate, "r", ServerTrust::Untrusted, "x");
    gate.evict();
    assert_eq!(pay(&gate, "r", value!({ "to": SHOP })), "allow trusted");
    assert_eq!(pay(&gate, "r", value!({ "to": EVIL })), "require_approval untrusted");
}

#[test]
fn a_run_is_forgotten_as_a_whole_a_day_after_it_began() {
    let mut gate = gate();
    instruct(&gate, "r", &format!("Pay {RENT}."));
    let hour_ms = 60 * 60 * 1_000;
    for hours in 0..26 {
        report(&mut gate, "r", ServerTrust::Untrusted, &format!("result {hours}"));
        gate.now_ms.set(gate.now_ms.get() + hour_ms);
        gate.flush_all();
    }
    gate.on_lane(|lane, storage| lane.flush_batch(storage, &gate.config, gate.now_ms.get()))
        .unwrap();
    assert_eq!(pay(&gate, "r", value!({ "to": RENT })), "require_approval nowhere");
}
