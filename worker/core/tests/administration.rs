//! How administrators' records affect calls, and what a lane itself decides about an agent. Each
//! test is named for what must hold.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use crate::support::{self, Fault, Gate, bans, command, read_call, server, tool, with};
use gateward_core::call::command::GateCommand;
use gateward_core::gate::Containment;
use gateward_core::lane::StorageError;
use gateward_core::policy::risk::RiskTier;
use gateward_core::problem::ProblemCode;
use gateward_core::receipt::{self, GENESIS};
use gateward_core::registry::{AgentStatus, ServerStatus};
use serde_json::{Value, json};

fn write_call() -> Value {
    with(read_call(), json!({"tool_call": {"mutates_state": true}}))
}

/// Status and code of a command's answer.
fn outcome(gate: &Gate, command: &GateCommand) -> (u16, String) {
    let reply = gate.try_call(command).unwrap();
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    let code = if reply.status == 200 { &body["reason_code"] } else { &body["code"] };
    (reply.status, code.as_str().unwrap().to_owned())
}

#[test]
fn a_credential_is_used_signed_and_from_its_networks_or_not_at_all() {
    // Whether the credential has a signing key; its networks; whether the request was signed, and
    // from which address it came.
    for (signs, networks, signed, address, status, code) in [
        (false, Value::Null, false, None, 200, "policy_allow"),
        (true, Value::Null, true, None, 200, "policy_allow"),
        (true, Value::Null, false, None, 401, "signature_required"),
        (false, Value::Null, true, None, 200, "policy_allow"),
        (false, json!(["10.0.0.0/8"]), false, Some("10.9.9.9"), 200, "policy_allow"),
        (false, json!(["10.0.0.0/8"]), false, Some("::ffff:10.9.9.9"), 200, "policy_allow"),
        (false, json!(["10.0.0.0/8"]), false, Some("11.0.0.1"), 403, "source_address_forbidden"),
        (false, json!(["10.0.0.0/8"]), false, None, 403, "source_address_forbidden"),
        (false, json!([]), false, Some("10.9.9.9"), 403, "source_address_forbidden"),
        (false, json!(["10.0.0.0/8", "::1"]), false, Some("::1"), 200, "policy_allow"),
    ] {
        let mut gate = Gate::new();
        let credential = gate.credential_mut();
        credential.signed = signs;
        credential.allowed_networks = serde_json::from_value(networks.clone()).unwrap();
        let mut command = command(&read_call());
        command.signed = signed;
        command.source_address = address.map(|address| address.parse().unwrap());
        let expected = (status, code.to_owned());
        assert_eq!(outcome(&gate, &command), expected, "{signs} {networks} {signed} {address:?}");
        gate.now_ms.set(gate.now_ms.get() + 60_000);
        gate.flush_all();
        let counted = "SELECT count(*) FROM audit_events WHERE kind = 'authentication_failed'";
        assert_eq!(gate.count(counted), i64::from(status != 200));
    }
}

#[test]
fn only_a_signed_request_of_a_signing_credential_is_trusted_as_signed() {
    for (most, signs, signed, expected) in [
        ("trusted_internal_signed", true, true, "trusted_internal_signed"),
        ("trusted_internal_signed", false, true, "trusted_internal_unsigned"),
        ("trusted_internal_signed", false, false, "trusted_internal_unsigned"),
        ("trusted_internal_unsigned", true, true, "trusted_internal_unsigned"),
        ("unknown", true, true, "unknown"),
    ] {
        let mut gate = Gate::new();
        let credential = gate.credential_mut();
        credential.signed = signs;
        credential.max_source_trust = serde_json::from_value(json!(most)).unwrap();
        let mut command = command(&with(
            read_call(),
            json!({
                "context": {"source_trust": "trusted_internal_signed"},
                "trace": {"root_trust_level": "trusted_internal_signed"},
            }),
        ));
        command.signed = signed;
        let reply = gate.try_call(&command).unwrap();
        let body: Value = serde_json::from_str(&reply.body).unwrap();
        assert_eq!(body["root_trust_level"], expected, "{most} {signs} {signed}");
        let receipt: Value = serde_json::from_str(&gate.receipts()[0].body).unwrap();
        assert_eq!(receipt["trust"], expected, "{most} {signs} {signed}");
    }
}

#[test]
fn what_is_banned_is_denied_until_the_ban_expires() {
    let until = support::START_MS + 10;
    for (kind, subject, code) in [
        ("agent", "coder", "agent_banned"),
        ("user", "u", "user_banned"),
        ("run", "r", "run_banned"),
        ("source_address", "192.0.2.0/24", "source_address_banned"),
        ("agent", "support", "policy_allow"),
        ("user", "coder", "policy_allow"),
        ("source_address", "192.0.3.0/24", "policy_allow"),
    ] {
        let mut gate = Gate::new();
        let call = with(
            read_call(),
            json!({"user": {"id": "u"}, "trace": {"run_id": "r"}, "request_id": "q"}),
        );
        let mut command = command(&call);
        command.source_address = Some([192, 0, 2, 7].into());
        assert_eq!(outcome(&gate, &command).1, "policy_allow");
        gate.records.bans =
            bans(json!([{"kind": kind, "subject": subject, "expires_at_ms": until}]));
        // Even if the request id already has an answer.
        assert_eq!(outcome(&gate, &command), (200, code.to_owned()), "{kind} {subject}");
        assert_eq!(outcome(&gate, &command), (200, code.to_owned()), "{kind} {subject}");
        // A repeat is counted and not journalled, and a replay writes no row either.
        let rows = if code == "policy_allow" { 1 } else { 2 };
        assert_eq!(gate.receipts().len(), rows, "{kind} {subject}");
        gate.now_ms.set(until);
        assert_eq!(outcome(&gate, &command).1, "policy_allow", "{kind} {subject}");
    }
    let mut gate = Gate::new();
    gate.records.bans = bans(json!([{"kind": "agent", "subject": "coder", "expires_at_ms": null}]));
    gate.agent_mut().status = AgentStatus::Frozen;
    assert_eq!(outcome(&gate, &command(&read_call())).1, "agent_frozen", "the stricter is told");
}

#[test]
fn a_tool_beyond_the_grants_is_denied_and_nothing_is_told_of_it() {
    type List = Option<&'static [&'static str]>;
    // The agent's tools; the credential's servers and tools; whether `notes/list` is granted.
    let cases: [(List, List, List, bool); 12] = [
        (None, None, None, true),
        (Some(&["notes/*"]), Some(&["notes"]), Some(&["*/list"]), true),
        (Some(&["crm/*", "notes/list"]), None, None, true),
        (Some(&["notes"]), None, None, false),
        (Some(&[]), None, None, false),
        (Some(&["crm/*"]), None, None, false),
        (None, Some(&[]), None, false),
        (None, Some(&["note"]), None, false),
        (None, Some(&["note*"]), None, true),
        (None, None, Some(&[]), false),
        (None, None, Some(&["notes/get*"]), false),
        (Some(&["notes/*"]), Some(&["notes"]), Some(&["crm/*"]), false),
    ];
    for (tools, servers, of_credential, granted) in cases {
        let mut gate = Gate::new();
        let globs = |list: List| {
            list.map(|list| list.iter().map(|glob| glob.parse().unwrap()).collect::<Vec<_>>())
        };
        gate.agent_mut().allowed_tools = globs(tools);
        let credential = gate.credential_mut();
        (credential.allowed_servers, credential.allowed_tools) =
            (globs(servers), globs(of_credential));
        let what = format!("{tools:?} {servers:?} {of_credential:?}");
        let code = |gate: &Gate| gate.call(&read_call()).1["reason_code"].clone();
        let expected = |code: &str| json!(if granted { code } else { "tool_not_granted" });
        assert_eq!(code(&gate), expected("policy_allow"), "{what}");
        gate.records.server = server(ServerStatus::Quarantined);
        assert_eq!(code(&gate), expected("tool_inactive"), "{what}");
        gate.credential_mut().scopes = Vec::new();
        gate.records.server = server(ServerStatus::Active);
        assert_eq!(code(&gate), expected("scope_missing"), "{what}");
        (gate.records.server, gate.records.tool) = (None, None);
        assert_eq!(code(&gate), expected("server_unknown"), "{what}");
        let needs = gate.on_lane(|lane, storage| {
            let (call, now_ms) = (command(&read_call()), gate.now_ms.get());
            lane.needs_tool(storage, (&*gate.engine, &gate.config), &call, &gate.records, now_ms)
        });
        assert_eq!(needs, Ok(granted), "{what}: no tool is read for a call that may not have it");
    }
}

#[test]
fn the_workers_rate_holds_unless_a_limit_sets_it() {
    for (rate, policies) in
        [(None, r#""agent";q=100000;w=1"#), (support::rate(2, 0.5), r#""all-requests";q=2;w=4"#)]
    {
        let mut gate = Gate::new();
        gate.agent_mut().request_rate = rate;
        let reply = gate.try_call(&command(&read_call())).unwrap();
        assert_eq!(reply.rate_headers.unwrap().policies, policies);
    }
}

/// More than two denials within 100 s raise the tier by a step. Each 600 s without a denial lower it by a step.
fn watched() -> Gate {
    let mut gate = Gate::new();
    let tenant = gate.tenant_mut();
    tenant.settings.risk_denials = Some(2);
    (tenant.settings.risk_window_s, tenant.settings.risk_quiet_s) = (Some(100), Some(600));
    gate
}

fn deny(gate: &Gate, times: usize) {
    let denied = with(
        read_call(),
        json!({"tool_call": {"mutates_state": true}, "context": {"source_trust": ""}}),
    );
    for _ in 0..times {
        assert_eq!(gate.call(&denied).1["decision"], "deny");
    }
}

fn contained(gate: &Gate) -> Containment {
    let (tenant, now_ms) = (gate.records.tenant.as_ref().unwrap(), gate.now_ms.get());
    gate.on_lane(|lane, storage| lane.containment(storage, "coder", tenant, now_ms)).unwrap()
}

#[test]
fn denials_raise_an_agents_risk_tier_quiet_lowers_it_and_policies_see_it() {
    let gate = watched();
    let wait = |seconds: u64| gate.now_ms.set(gate.now_ms.get() + seconds * 1_000);
    let writes = || gate.call(&write_call()).1["decision"].clone();
    deny(&gate, 2);
    assert_eq!(contained(&gate).risk_steps, 0);
    deny(&gate, 1);
    assert_eq!((contained(&gate).risk_steps, writes()), (1, json!("allow")), "medium");
    deny(&gate, 3);
    assert_eq!((contained(&gate).risk_steps, writes()), (2, json!("require_approval")), "high");
    deny(&gate, 9);
    assert_eq!(contained(&gate).risk_steps, 2, "the highest tier is the last");
    gate.evict();
    assert_eq!((contained(&gate).risk_steps, writes()), (2, json!("require_approval")), "evicted");
    gate.flush_all();
    gate.evict();
    assert_eq!((contained(&gate).risk_steps, writes()), (2, json!("require_approval")), "flushed");
    let tier = "SELECT risk_steps FROM agents WHERE agent = 'coder'";
    assert_eq!(gate.count(tier), 2);
    wait(600);
    // A dry run sees the new tier. The event is written with the first call that is journalled.
    let dry = with(write_call(), json!({"dry_run": true}));
    assert_eq!(
        (contained(&gate).risk_steps, gate.call(&dry).1["decision"].clone()),
        (1, json!("allow"))
    );
    assert_eq!((contained(&gate).risk_steps, writes()), (1, json!("allow")));
    wait(600);
    assert_eq!((contained(&gate).risk_steps, writes()), (0, json!("allow")));
    gate.flush_all();
    assert_eq!(gate.count(tier), 0);
    let events = gate.text(
        "SELECT group_concat(kind || ' ' || source || ' ' || detail, '; ') FROM (SELECT * FROM \
         audit_events WHERE kind LIKE 'risk%' ORDER BY at_ms, kind DESC, detail)",
    );
    assert_eq!(
        events,
        r#"risk_tier_raised coder {"from":"low","to":"medium"}; "#.to_owned()
            + r#"risk_tier_raised coder {"from":"medium","to":"high"}; "#
            + r#"risk_tier_lowered coder {"from":"high","to":"medium"}; "#
            + r#"risk_tier_lowered coder {"from":"medium","to":"low"}"#
    );
    let decisions = "SELECT count(*) FROM audit_events e JOIN decisions d USING (tenant, decision_id) \
        WHERE e.kind LIKE 'risk%'";
    assert_eq!(gate.count(decisions), 4);
}

#[test]
fn a_tier_that_is_registered_high_stays_and_is_raised_no_further() {
    let mut gate = watched();
    gate.agent_mut().risk_tier = RiskTier::High;
    deny(&gate, 30);
    assert_eq!(contained(&gate).risk_steps, 0);
    gate.flush_all();
    assert_eq!(gate.count("SELECT count(*) FROM audit_events WHERE kind LIKE 'risk%'"), 0);
}

#[test]
fn a_row_of_a_call_that_changes_nothing_about_its_agent_says_nothing_of_it() {
    let gate = watched();
    gate.call(&read_call());
    let row = gate.on_lane(|lane, storage| lane.row(storage, 1)).unwrap();
    assert!(!row.unwrap().contains("containment"));
    let state: String = gate
        .storage
        .connection
        .query_row("SELECT state FROM journal", [], |row| row.get(0))
        .unwrap();
    assert!(!state.contains("risk") && !state.contains("quarantined_by"), "{state}");
}

#[test]
fn restore_lifts_the_lanes_quarantine_and_nothing_else() {
    let mut gate = Gate::new();
    let by = gate.quarantine()["decision_id"].clone();
    assert_eq!(contained(&gate), Containment { quarantined: true, risk_steps: 0, taint: None });
    gate.flush_all();
    assert_eq!(gate.text("SELECT status FROM agents WHERE agent = 'coder'"), "quarantined");
    assert_eq!(gate.call(&read_call()).1["reason_code"], "agent_quarantined");

    assert_eq!(gate.restore("support"), Ok(Ok(())), "another agent");
    assert_eq!(gate.receipts().len(), 2);
    assert_eq!(gate.restore("coder"), Ok(Ok(())));
    assert_eq!(gate.restore("coder"), Ok(Ok(())), "again");
    assert_eq!(contained(&gate), Containment { quarantined: false, risk_steps: 0, taint: None });
    let receipts = gate.receipts();
    assert_eq!(receipts.len(), 3);
    let body: Value = serde_json::from_str(&receipts[2].body).unwrap();
    assert_eq!(
        (
            &body["kind"],
            &body["administrator"],
            &body["agent"],
            &body["decision_id"],
            &body["epoch"]
        ),
        (&json!("registry"), &json!("ada"), &json!("coder"), &by, &json!(9))
    );
    assert_eq!(gate.call(&read_call()).1["decision"], "allow", "from the next call on");
    gate.evict();
    assert_eq!(gate.call(&read_call()).1["decision"], "allow", "after eviction");
    gate.flush_all();
    gate.evict();
    assert_eq!(gate.call(&read_call()).1["decision"], "allow", "after flush and eviction");
    assert_eq!(receipt::verify(&gate.receipts(), 1, Some(GENESIS)), Ok(()));

    assert_eq!(gate.text("SELECT status FROM agents WHERE agent = 'coder'"), "active");
    assert_eq!(gate.count("SELECT count(*) FROM receipts WHERE kind = 'registry' AND seq = 3"), 1);
    assert_eq!(gate.count("SELECT count(*) FROM decisions WHERE seq = 3"), 0);
    let event = "SELECT source || ' ' || detail FROM audit_events WHERE kind = 'agent_restored'";
    assert_eq!(gate.text(event), format!(r#"ada {{"decision_id":{by}}}"#));

    // If another quarantine follows within the minute, its first denial is journalled.
    gate.quarantine();
    assert!(gate.call(&read_call()).1["receipt"].is_object());
    assert_eq!(gate.restore("coder"), Ok(Ok(())));
    // A quarantine by an administrator is in the registry, and stays.
    gate.agent_mut().status = AgentStatus::Quarantined;
    assert_eq!(gate.restore("coder"), Ok(Ok(())));
    assert_eq!(gate.call(&read_call()).1["reason_code"], "agent_quarantined");
}

#[test]
fn a_full_journal_refuses_to_restore_and_the_agent_stays_stopped() {
    let mut gate = Gate::new();
    gate.quarantine();
    (gate.config.journal_soft_rows, gate.config.journal_hard_rows) = (1, 1);
    let refused = gate.restore("coder").unwrap().unwrap_err();
    assert_eq!(refused.code, ProblemCode::JournalFull);
    assert!(contained(&gate).quarantined);
    gate.flush_all();
    assert_eq!(gate.restore("coder"), Ok(Ok(())));
    assert!(!contained(&gate).quarantined);
}

/// Each write from a restore to the end of its flush: once it fails, and once its answer is lost.
#[test]
fn a_restore_that_breaks_anywhere_is_done_once_or_not_at_all() {
    let mut steps = 0;
    for fault in [Fault::Failed, Fault::Lost] {
        for at in 0.. {
            let mut gate = Gate::new();
            gate.config.flush_batch_rows = 3;
            let replayed = with(read_call(), json!({"request_id": "r-1"}));
            let (_, first) = gate.call(&replayed);
            gate.quarantine();
            gate.storage.fault.set(Some((at, fault)));
            let restored = gate.restore("coder");
            if restored.is_err() {
                assert_eq!(restored, Err(StorageError("injected".to_owned())));
                // What was not acknowledged happened completely or not at all.
                let quarantined = contained(&gate).quarantined;
                assert_eq!(quarantined, fault == Fault::Failed, "{at}");
                assert_eq!(gate.receipts().len(), if quarantined { 2 } else { 3 });
                assert_eq!(gate.restore("coder"), Ok(Ok(())));
            }
            let flushed = gate.flush(None);
            gate.storage.fault.set(None);
            assert!(!contained(&gate).quarantined, "{fault:?} {at}");
            assert_eq!(gate.call(&replayed).1, first);
            drop(gate.flush(Some(fault)));
            gate.evict();
            assert!(!contained(&gate).quarantined, "{fault:?} {at}");
            gate.call(&read_call());
            gate.flush_all();
            gate.evict();
            assert_eq!(gate.call(&replayed).1, first);
            assert_eq!(gate.call(&read_call()).1["decision"], "allow");
            gate.flush_all();
            let receipts = gate.receipts();
            assert_eq!(receipt::verify(&receipts, 1, Some(GENESIS)), Ok(()));
            assert_eq!(receipts.len(), 5, "{fault:?} {at}");
            assert_eq!(gate.count("SELECT count(*) FROM receipts WHERE kind = 'registry'"), 1);
            assert_eq!(gate.count("SELECT count(*) FROM decisions"), 4);
            let events = "SELECT count(*) FROM audit_events WHERE kind = 'agent_restored'";
            assert_eq!(gate.count(events), 1);
            assert_eq!(gate.count("SELECT lane_quarantined FROM agents WHERE agent = 'coder'"), 0);
            if restored.is_ok() && flushed.is_ok() {
                break;
            }
            steps += 1;
        }
    }
    assert!(steps >= 12, "only {steps} statements were broken");
}

/// States that were stored before risk tiers existed can be read. The format of the risk state is pinned.
#[test]
fn the_state_of_a_watched_and_quarantined_agent_keeps_its_format() {
    let mut gate = watched();
    gate.quarantine();
    let state: String = gate
        .storage
        .connection
        .query_row("SELECT state FROM journal", [], |row| row.get(0))
        .unwrap();
    let read: Value = serde_json::from_str(&state).unwrap();
    let kept = json!({
        "steps": 0, "since_ms": support::START_MS, "window_ms": 100_000,
        "denials": {"window": 17_950_000, "current": 1, "previous": 0},
    });
    assert_eq!(read["risk"], kept);
    assert_eq!(read["quarantined"], true);
    assert_eq!(read["quarantined_by"]["decision_id"].as_str().map(str::len), Some(36));
    assert_eq!(read["quarantined_by"]["epoch"], 1);
    let state: gateward_core::gate::AgentState = serde_json::from_str(&state).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state.encode()).unwrap(), read);
}

#[test]
fn a_call_needs_the_scope_of_its_action_group() {
    let mut gate = Gate::new();
    gate.credential_mut().scopes = vec!["tools:read".parse().unwrap()];
    assert_eq!(gate.call(&read_call()).1["decision"], "allow");
    assert_eq!(gate.call(&write_call()).1["reason_code"], "scope_missing");
    gate.records.tool = tool(true, false);
    assert_eq!(gate.call(&read_call()).1["reason_code"], "scope_missing");
}
