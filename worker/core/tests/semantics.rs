//! What must hold for calls, on a lane with real SQLite. Each test is named for its rule.

use std::rc::Rc;

use crate::support::{self, Fault, Gate, command, read_call, server, tenant, tool, with};
use gateward_core::call::command::GateCommand;
use gateward_core::lane::StorageError;
use gateward_core::policy::PolicyEngine;
use gateward_core::policy::bundle::Risk;
use gateward_core::receipt;
use gateward_core::registry::{
    AgentStatus, CredentialStatus, ServerStatus, ServerTrust, TaintRule, ToolStatus,
};
use gateward_core::scope::Scope;
use gateward_core::trace::TraceId;
use gateward_core::trust::SourceTrust;
use serde_json::{Value, json};

fn write_call() -> Value {
    with(read_call(), json!({"tool_call": {"mutates_state": true}}))
}

#[test]
fn a_call_is_denied_or_refused_for_each_reason_that_the_registry_gives() {
    type Change = fn(&mut Gate);
    let cases: [(&str, Change, u16, &str); 17] = [
        ("nothing wrong", |_| {}, 200, "policy_allow"),
        ("no tenant", |g| g.records.tenant = None, 401, "unauthorized"),
        ("no agent", |g| g.records.agent = None, 401, "unauthorized"),
        ("no credential", |g| g.records.credential = None, 401, "unauthorized"),
        (
            "another secret",
            |g| g.credential_mut().secret_sha256 = "0".repeat(64),
            401,
            "unauthorized",
        ),
        (
            "another agent's credential",
            |g| g.credential_mut().agent = Some("support".into()),
            401,
            "unauthorized",
        ),
        ("an administrator's credential", |g| g.credential_mut().agent = None, 401, "unauthorized"),
        (
            "a revoked credential",
            |g| g.credential_mut().status = CredentialStatus::Revoked,
            401,
            "unauthorized",
        ),
        (
            "an expired credential",
            |g| g.credential_mut().expires_at_ms = Some(support::START_MS),
            401,
            "credential_expired",
        ),
        ("another lane", |g| g.agent_mut().lane = 1, 401, "unauthorized"),
        ("a suspended tenant", |g| g.records.tenant = tenant("suspended"), 200, "tenant_inactive"),
        ("no server", |g| g.records.server = None, 200, "server_unknown"),
        ("no tool", |g| g.records.tool = None, 200, "tool_unknown"),
        (
            "a disabled server",
            |g| g.records.server = server(ServerStatus::Disabled),
            200,
            "tool_inactive",
        ),
        ("a pending tool", |g| g.tool_mut().status = ToolStatus::Pending, 200, "tool_inactive"),
        ("no scope", |g| g.credential_mut().scopes = vec![Scope::ToolsWrite], 200, "scope_missing"),
        ("a used quota", |g| g.agent_mut().limits = support::daily(0), 200, "quota_exhausted"),
    ];
    for (name, change, status, code) in cases {
        let mut gate = Gate::new();
        change(&mut gate);
        let (actual_status, body) = gate.call(&read_call());
        let actual_code = if status == 200 { &body["reason_code"] } else { &body["code"] };
        assert_eq!((actual_status, actual_code.as_str().unwrap()), (status, code), "{name}");
        // Every denial has its receipt; a refusal has none.
        assert_eq!(gate.receipts().len(), usize::from(status == 200), "{name}");
    }
}

#[test]
fn only_what_nobody_can_lift_is_refused_for_good() {
    type Change = fn(&mut Gate);
    let cases: [(&str, Change, bool); 9] = [
        ("nothing wrong", |_| {}, false),
        ("a revoked credential", |g| g.credential_mut().status = CredentialStatus::Revoked, true),
        (
            "a revoked credential of a deleted agent",
            |g| {
                g.credential_mut().status = CredentialStatus::Revoked;
                g.records.agent = None;
            },
            true,
        ),
        (
            "an expired credential",
            |g| g.credential_mut().expires_at_ms = Some(support::START_MS),
            true,
        ),
        (
            "another secret, of a revoked credential",
            |g| {
                let credential = g.credential_mut();
                credential.status = CredentialStatus::Revoked;
                credential.secret_sha256 = "0".repeat(64);
            },
            false,
        ),
        ("a credential that is not registered yet", |g| g.records.credential = None, false),
        ("a frozen agent", |g| g.agent_mut().status = AgentStatus::Frozen, false),
        ("a quarantined agent", |g| g.agent_mut().status = AgentStatus::Quarantined, false),
        ("a suspended tenant", |g| g.records.tenant = tenant("suspended"), false),
    ];
    for (name, change, terminal) in cases {
        let mut gate = Gate::new();
        change(&mut gate);
        assert_eq!(gate.try_call(&command(&read_call())).unwrap().terminal, terminal, "{name}");
    }
}

#[test]
fn the_body_must_name_the_registered_environment() {
    let gate = Gate::new();
    let (status, body) =
        gate.call(&with(read_call(), json!({"agent": {"environment": "staging"}})));
    assert_eq!((status, body["code"].as_str()), (403, Some("environment_mismatch")));
}

#[test]
fn without_the_registry_a_call_goes_on_for_as_long_as_its_kind_may() {
    for (mutates, egress, risk, claim, expected_ms) in [
        (false, false, Risk::Low, false, 1_000),
        (false, false, Risk::Low, true, 2_000),
        (true, false, Risk::Low, false, 2_000),
        (false, true, Risk::Low, false, 2_000),
        (false, true, Risk::High, false, 3_000),
    ] {
        let mut gate = Gate::new();
        let tenant = gate.tenant_mut();
        tenant.settings.grace_read_s = Some(1);
        tenant.settings.grace_write_s = Some(2);
        tenant.settings.grace_high_risk_s = Some(3);
        let tool = gate.tool_mut();
        (tool.mutates, tool.egress, tool.risk) = (mutates, egress, risk);
        let grace_ms = gate.records.grace_ms(claim, 0);
        assert_eq!(grace_ms, expected_ms, "{mutates} {egress} {risk:?} {claim}");
    }
}

#[test]
fn an_egress_tool_needs_what_writes_need() {
    let mut gate = Gate::new();
    gate.tool_mut().egress = true;
    assert_eq!(gate.call(&read_call()).1["reason_code"], "policy_allow");
    let credential = gate.credential_mut();
    credential.scopes = serde_json::from_value(json!(["tools:read"])).unwrap();
    assert_eq!(gate.call(&read_call()).1["reason_code"], "scope_missing");
}

#[test]
fn the_registrys_word_on_a_tool_wins_and_a_caller_can_only_tighten_it() {
    let untrusted = json!({"context": {"source_trust": "untrusted_external"}});
    // Whether the registry says that the tool mutates, whether it says that the tool is egress, what the caller says,
    // and the decision.
    for (mutates, egress, claim, expected) in [
        (false, false, false, "allow"),
        (false, false, true, "deny"),
        (true, false, false, "deny"),
        (true, false, true, "deny"),
        (false, true, false, "deny"),
        (false, true, true, "deny"),
        (true, true, false, "deny"),
    ] {
        let mut gate = Gate::new();
        gate.records.tool = tool(mutates, false);
        gate.tool_mut().egress = egress;
        let claimed = json!({"tool_call": {"mutates_state": claim}});
        let (_, body) = gate.call(&with(with(read_call(), untrusted.clone()), claimed));
        assert_eq!(body["decision"], expected, "{mutates} {egress} {claim}");
    }
    let mut gate = Gate::new();
    let (_, low) = gate.call(&read_call());
    gate.tool_mut().egress = true;
    let (_, egress) = gate.call(&read_call());
    assert!(low["risk_score"].as_u64() < egress["risk_score"].as_u64());
    gate.tool_mut().risk = Risk::Critical;
    let (_, critical) = gate.call(&read_call());
    assert!(low["risk_score"].as_u64() < critical["risk_score"].as_u64());
    assert_eq!((&low["risk_level"], &critical["risk_level"]), (&json!("low"), &json!("critical")));
}

#[test]
fn a_claim_of_trust_never_counts_for_more_than_the_credential_allows() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    let most = |gate: &mut Gate, level: &str| {
        let level = serde_json::from_value(json!(level)).unwrap();
        gate.credential_mut().max_source_trust = level;
    };
    for (credential, claim, expected) in [
        ("trusted_internal_unsigned", "trusted_internal_signed", "allow"),
        ("semi_trusted_customer", "trusted_internal_signed", "require_approval"),
        ("unknown", "trusted_internal_signed", "deny"),
        ("trusted_internal_signed", "untrusted_external", "deny"),
        ("trusted_internal_signed", "TRUSTED", "deny"),
    ] {
        most(&mut gate, credential);
        let claim = json!({"context": {"source_trust": claim}});
        assert_eq!(gate.call(&with(read_call(), claim)).1["decision"], expected, "{credential}");
    }
}

#[test]
fn an_answer_says_what_was_claimed_what_counts_and_what_lowered_it() {
    for (highest, claim, expected) in [
        ("trusted_internal_unsigned", "trusted_internal_unsigned", json!(null)),
        ("trusted_internal_unsigned", "untrusted_external", json!(null)),
        ("semi_trusted_customer", "trusted_internal_unsigned", json!("credential")),
        ("unknown", "trusted_internal_signed", json!("credential")),
        ("trusted_internal_signed", "trusted_internal_signed", json!("signature")),
    ] {
        let mut gate = Gate::new();
        let highest: SourceTrust = serde_json::from_value(json!(highest)).unwrap();
        gate.credential_mut().max_source_trust = highest;
        let call = with(read_call(), json!({"context": {"source_trust": claim}}));
        let (_, answer) = gate.call(&call);
        assert_eq!(answer["trust"]["claimed"], claim);
        assert_eq!(answer["trust"]["lowered_by"], expected, "{highest:?} {claim}");
        let receipt: Value = serde_json::from_str(&gate.receipts()[0].body).unwrap();
        assert_eq!(answer["trust"]["effective"], receipt["trust"], "{highest:?} {claim}");
    }
}

#[test]
fn a_denial_that_the_credentials_highest_trust_causes_names_it() {
    for (highest, claim, mutates, decision, named) in [
        ("unknown", "trusted_internal_unsigned", true, "deny", true),
        ("untrusted_external", "trusted_internal_signed", true, "deny", true),
        // With the claim, a person could approve it.
        ("malicious_suspected", "semi_trusted_customer", true, "deny", true),
        // The claim itself is denied.
        ("unknown", "untrusted_external", true, "deny", false),
        ("trusted_internal_signed", "unknown", true, "deny", false),
        ("unknown", "trusted_internal_unsigned", false, "allow", false),
        ("semi_trusted_customer", "trusted_internal_signed", true, "require_approval", false),
    ] {
        let mut gate = Gate::new();
        gate.records.tool = tool(mutates, false);
        let level: SourceTrust = serde_json::from_value(json!(highest)).unwrap();
        gate.credential_mut().max_source_trust = level;
        let call = with(read_call(), json!({"context": {"source_trust": claim}}));
        let (_, answer) = gate.call(&call);
        assert_eq!(answer["decision"], decision, "{highest} {claim} {mutates}");
        let reason = answer["reason"].as_str().unwrap();
        let sentence = format!("The credential's highest trust is `{highest}`");
        assert_eq!(reason.contains(&sentence), named, "{highest} {claim} {mutates}: {reason}");
    }
    // If the call is denied in any case, the reason does not name the credential.
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    gate.tool_mut().tainted = TaintRule::Forbid;
    gate.credential_mut().max_source_trust = SourceTrust::Unknown;
    gate.server_mut().trust = ServerTrust::Untrusted;
    let reading = gate.records.tool.replace(tool(false, false).unwrap());
    gate.call(&read_call());
    gate.records.tool = reading;
    let (_, answer) = gate.call(&write_call());
    assert_eq!(answer["reason_code"], "policy_forbid");
    assert!(!answer["reason"].as_str().unwrap().contains("highest trust"), "{answer}");
}

#[test]
fn what_was_answered_and_hashed_is_in_d1_byte_for_byte() {
    let gate = Gate::new();
    let odd = "\"\\/\u{1}\n\u{7f}\u{2028}é\u{1f600} 1.0 1e3 \u{fffe}";
    let resource = json!({"tool_call": {"resource": odd}, "request_id": "once"});
    let reply = gate.try_call(&command(&with(read_call(), resource.clone()))).unwrap();
    let journalled = gate.receipts();
    gate.flush_all();
    let text = |query| gate.database.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("SELECT response FROM decisions"), reply.body);
    assert_eq!(gate.receipts(), journalled);
    assert_eq!(receipt::verify(&gate.receipts(), 1, Some(receipt::GENESIS)), Ok(()));
    let again = gate.try_call(&command(&with(read_call(), resource))).unwrap();
    assert_eq!(again.body, reply.body);
}

#[test]
fn a_decision_names_its_callers_trace_and_its_receipt_does_not() {
    let gate = Gate::new();
    let call = |trace: Option<u8>, changes: Value| {
        let trace_id = trace.and_then(|byte| TraceId::new([byte; 16]));
        let command = GateCommand { trace_id, ..command(&with(read_call(), changes)) };
        gate.try_call(&command).unwrap().body
    };
    let named = |body: &str| serde_json::from_str::<Value>(body).unwrap().get("trace_id").cloned();
    let once = json!({"request_id": "once"});
    let first = call(Some(0xab), once.clone());
    assert_eq!(named(&first), Some(json!("ab".repeat(16))));
    assert_eq!(call(Some(0xcd), once), first, "a repeated request id has its first answer");
    assert_eq!(named(&call(None, json!({}))), None, "a caller without a trace");
    assert_eq!(named(&call(Some(1), json!({"dry_run": true}))), Some(json!("01".repeat(16))));
    gate.flush_all();
    let stored = gate.text("SELECT response FROM decisions ORDER BY seq LIMIT 1");
    assert_eq!(stored, first);
    assert!(gate.receipts().iter().all(|receipt| !receipt.body.contains("trace_id")));
}

#[test]
fn a_replay_answers_the_same_also_after_eviction_and_after_flush_and_prune() {
    let gate = Gate::new();
    let call = with(read_call(), json!({"request_id": "r-1"}));
    let (_, first) = gate.call(&call);
    let again = |name: &str| {
        gate.now_ms.set(gate.now_ms.get() + 1_000);
        assert_eq!(gate.call(&call), (200, first.clone()), "{name}");
    };
    again("at once");
    gate.evict();
    again("after eviction");
    gate.flush_all();
    assert_eq!(gate.on_lane(|lane, _| Ok(lane.journal_rows())), Ok(0));
    again("after flush and prune");
    gate.evict();
    again("after both");
    assert_eq!(gate.receipts().len(), 1);
    let (status, body) =
        gate.call(&with(call.clone(), json!({"context": {"contains_sensitive_data": true}})));
    assert_eq!((status, body["code"].as_str()), (409, Some("request_id_conflict")));
    // The id is free again after a day, and an hour in which the clock stayed beyond that.
    for hours in [25, 1] {
        assert_eq!(gate.call(&call).1["decision_id"], first["decision_id"]);
        gate.now_ms.set(gate.now_ms.get() + hours * 3_600_000);
        gate.call(&read_call());
        gate.flush_all();
    }
    assert_ne!(gate.call(&call).1["decision_id"], first["decision_id"]);
}

#[test]
fn a_request_id_belongs_to_the_credential_that_made_the_call() {
    let gate = Gate::new();
    let call = with(read_call(), json!({"request_id": "r-1"}));
    gate.call(&call);
    let mut other = command(&call);
    other.key_id = "k2".to_owned();
    let reply = gate.try_call(&other).unwrap();
    assert!(reply.status == 409 && reply.body.contains("request_id_conflict"), "{}", reply.body);
}

#[test]
fn an_agent_that_is_stopped_or_over_its_rate_causes_no_read_of_a_tool() {
    type Change = fn(&mut Gate);
    let cases: [(&str, Change, bool); 4] = [
        ("an active agent", |_| {}, true),
        ("a frozen one", |g| g.agent_mut().status = AgentStatus::Frozen, false),
        ("another secret", |g| g.credential_mut().secret_sha256.clear(), false),
        (
            "one over its rate",
            |g| {
                g.agent_mut().request_rate = support::rate(1, 0.001);
                g.call(&read_call());
            },
            false,
        ),
    ];
    for (name, change, expected) in cases {
        let mut gate = Gate::new();
        change(&mut gate);
        (gate.records.server, gate.records.tool) = (None, None);
        let (command, now_ms) = (command(&read_call()), gate.now_ms.get());
        let needs = gate.on_lane(|lane, storage| {
            lane.needs_tool(storage, (&*gate.engine, &gate.config), &command, &gate.records, now_ms)
        });
        assert_eq!(needs, Ok(expected), "{name}");
        // Then the call is answered without one, and not as if the tool were unknown.
        let body = gate.try_call(&command).unwrap().body;
        assert_eq!(body.contains("server_unknown"), expected, "{name}: {body}");
    }
}

#[test]
fn what_is_written_down_of_arguments_that_do_not_fit_is_short_and_holds_no_value() {
    let gate = Gate::new();
    let secret = 4_111.111_11;
    for input in [
        json!({"x".repeat(100_000): 0.12345}),
        json!({"card": secret}),
        json!({"\u{e9}".repeat(50_000): [[[{"deep": secret}]]]}),
    ] {
        let mut call = read_call();
        call["tool_call"]["parameters"] = input;
        let (_, body) = gate.call(&call);
        assert_eq!(body["reason_code"], "input_invalid");
        assert!(body.to_string().len() < 2_000 && !body.to_string().contains("4111"), "{body}");
    }
}

#[test]
fn a_stopped_agent_is_denied_before_a_stored_answer_is_replayed_to_it() {
    for (status, code) in [
        (AgentStatus::Frozen, "agent_frozen"),
        (AgentStatus::Revoked, "agent_revoked"),
        (AgentStatus::Quarantined, "agent_quarantined"),
    ] {
        let mut gate = Gate::new();
        let call = with(read_call(), json!({"request_id": "r-1"}));
        assert_eq!(gate.call(&call).1["decision"], "allow");
        gate.agent_mut().status = status;
        let (_, body) = gate.call(&with(call, json!({"request_id": "r-1"})));
        assert_eq!((&body["decision"], body["reason_code"].as_str()), (&json!("deny"), Some(code)));
    }
}

#[test]
fn repeated_denials_of_a_stopped_agent_are_one_receipt_and_one_audit_row_with_a_count() {
    let mut gate = Gate::new();
    gate.agent_mut().status = AgentStatus::Frozen;
    let bodies: Vec<Value> = (0..6).map(|_| gate.call(&read_call()).1).collect();
    assert!(bodies.iter().all(|body| body["reason_code"] == "agent_frozen"));
    assert!(
        bodies[0]["receipt"].is_object()
            && bodies[1..].iter().all(|body| body["receipt"].is_null())
    );
    gate.now_ms.set(gate.now_ms.get() + 61_000);
    gate.flush_all();
    let count = "SELECT coalesce(max(count), 0) FROM audit_events WHERE kind = 'status_denied' AND source = 'coder'";
    assert_eq!((gate.count(count), gate.count("SELECT count(*) FROM receipts")), (5, 1));
    assert_eq!(gate.count("SELECT count(*) FROM audit_events WHERE kind = 'status_denied'"), 1);
    // The next window begins with a receipt again.
    assert!(gate.call(&read_call()).1["receipt"].is_object());
}

#[test]
fn everything_costs_one_request_and_a_rejection_says_when_to_come_back() {
    let mut gate = Gate::new();
    gate.agent_mut().request_rate = support::rate(4, 0.5);
    let replayed = with(read_call(), json!({"request_id": "r"}));
    let dry = with(read_call(), json!({"dry_run": true}));
    let denied = with(read_call(), json!({"tool_call": {"action": "gone"}}));
    for (call, remaining) in [(&replayed, 3), (&replayed, 2), (&dry, 1), (&denied, 0)] {
        let reply = gate.try_call(&command(call)).unwrap();
        let headers = reply.rate_headers.unwrap();
        let state = format!(r#""all-requests";r={remaining};t="#);
        assert_eq!((reply.status, headers.policies.as_str()), (200, r#""all-requests";q=4;w=8"#));
        assert!(headers.states.starts_with(&state), "{}", headers.states);
    }
    for _ in 0..3 {
        let reply = gate.try_call(&command(&read_call())).unwrap();
        assert_eq!((reply.status, reply.retry_after_s), (429, Some(2)));
    }
    gate.now_ms.set(gate.now_ms.get() + 2_000);
    assert_eq!(gate.call(&read_call()).0, 200);
    gate.now_ms.set(gate.now_ms.get() + 60_000);
    gate.flush_all();
    assert_eq!(gate.count("SELECT count FROM audit_events WHERE kind = 'rate_limited'"), 3);
}

#[test]
fn a_dry_run_decides_and_explains_and_leaves_nothing() {
    let mut gate = Gate::new();
    gate.agent_mut().limits = support::daily(1);
    let real = with(
        read_call(),
        json!({
            "request_id": "r-1", "nonce": "n-1", "timestamp": "2026-11-18T11:06:40Z",
        }),
    );
    let dry = with(real.clone(), json!({"dry_run": true}));
    for _ in 0..3 {
        let (_, body) = gate.call(&dry);
        assert_eq!(
            (&body["decision"], &body["dry_run"], &body["receipt"]),
            (&json!("allow"), &json!(true), &Value::Null)
        );
        assert_eq!(body["matched_policies"], json!(["base/provenance#reads-pass"]));
    }
    assert_eq!(gate.receipts().len(), 0);
    let (status, first) = gate.call(&real);
    assert_eq!((status, &first["decision"]), (200, &json!("allow")));
    // The quota is used up now. A dry run says so, and a replay is still answered.
    assert_eq!(
        gate.call(&with(dry, json!({"request_id": "x"}))).1["reason_code"],
        "quota_exhausted"
    );
    assert_eq!(gate.call(&real).1, first);
    // A dry run of a canary stops nobody.
    gate.agent_mut().limits.clear();
    gate.records.tool = tool(false, true);
    assert_eq!(gate.call(&with(read_call(), json!({"dry_run": true}))).1["decision"], "quarantine");
    gate.records.tool = tool(false, false);
    assert_eq!(gate.call(&read_call()).1["decision"], "allow");
}

#[test]
fn a_quarantine_holds_from_the_next_call_on_and_survives_eviction_flush_and_both() {
    let mut gate = Gate::new();
    gate.records.tool = tool(false, true);
    let (_, body) = gate.call(&read_call());
    assert_eq!(
        (&body["decision"], &body["reason_code"]),
        (&json!("quarantine"), &json!("policy_quarantine"))
    );
    gate.records.tool = tool(false, false);
    let denied = |name: &str| {
        assert_eq!(gate.call(&read_call()).1["reason_code"], "agent_quarantined", "{name}")
    };
    denied("next call");
    gate.evict();
    denied("after eviction");
    gate.flush_all();
    denied("after flush");
    gate.evict();
    denied("after flush and eviction");
    assert_eq!(gate.count("SELECT count(*) FROM agents WHERE status = 'quarantined'"), 1);
    // The lane decided this. D1 has only a copy for reading, so no record changed.
    assert_eq!(gate.count("SELECT lane_quarantined FROM agents WHERE agent = 'coder'"), 1);
    assert_eq!(gate.count("SELECT epoch FROM tenants"), 1);
}

#[test]
fn an_approval_is_pending_and_bound_to_the_calls_action_hash() {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    let call = with(write_call(), json!({"context": {"source_trust": "semi_trusted_customer"}}));
    let (_, body) = gate.call(&call);
    let approval = &body["approval"];
    assert_eq!(
        (&body["decision"], &approval["status"]),
        (&json!("require_approval"), &json!("pending"))
    );
    let hash = hex::encode(command(&call).call.action_hash);
    assert_eq!(approval["action_hash"], json!(hash));
    let other = with(call.clone(), json!({"tool_call": {"parameters": {"n": 2}}}));
    assert_ne!(gate.call(&other).1["approval"]["action_hash"], json!(hash));
    gate.flush_all();
    let query = format!(
        "SELECT count(*) FROM approvals WHERE status = 'pending' \
        AND record->>'action_hash' = '{hash}' \
        AND record->>'approver_groups' = '[{{\"group\":\"security\",\"quorum\":1}}]' \
        AND record->>'expires_at_ms' = created_at_ms + 1800000"
    );
    assert_eq!(gate.count(&query), 1);
    assert_eq!(gate.count("SELECT count(*) FROM approvals"), 2);
}

#[test]
fn a_nonce_counts_once_and_only_near_its_timestamp() {
    let gate = Gate::new();
    let call =
        |nonce: &str, time: &str| with(read_call(), json!({"nonce": nonce, "timestamp": time}));
    for (nonce, time, status, code) in [
        ("a", "2026-11-18T11:06:40Z", 200, ""),
        ("a", "2026-11-18T11:06:41Z", 409, "nonce_replayed"),
        ("b", "2026-11-18T11:01:39Z", 409, "timestamp_stale"),
        ("b", "2026-11-18T11:11:41Z", 409, "timestamp_stale"),
        ("b", "2026-11-18T12:11:40+01:00", 200, ""),
    ] {
        let (actual, body) = gate.call(&call(nonce, time));
        assert_eq!((actual, body["code"].as_str().unwrap_or("")), (status, code), "{nonce} {time}");
    }
    gate.flush_all();
    gate.evict();
    assert_eq!(gate.call(&call("a", "2026-11-18T11:06:40Z")).0, 409);
}

#[test]
fn arguments_that_do_not_fit_a_described_tool_are_denied_with_the_place() {
    let gate = {
        let mut gate = Gate::new();
        gate.records.tool = tool(true, false);
        gate
    };
    let merge = |input: Value| {
        let mut call = with(
            read_call(),
            json!({"tool_call": {"tool": "mcp:github", "action": "merge_pull_request"}}),
        );
        call["tool_call"]["parameters"] = input;
        gate.call(&call).1
    };
    for (input, expected) in [
        (json!({"repo": "a/b", "number": 1, "base": "dev"}), None),
        (
            json!({"repo": "a/b", "number": 1.5, "base": "dev"}),
            Some("`/number` must be of type integer (`type`)"),
        ),
        (
            json!({"repo": "a/b", "number": "1", "base": "dev"}),
            Some("`/number` must be of type integer (`type`)"),
        ),
        (json!({"repo": "a/b", "number": 1}), Some("the arguments must have `base` (`required`)")),
        (
            json!({"repo": null, "number": 1, "base": "dev"}),
            Some("the arguments must have `repo` (`required`)"),
        ),
    ] {
        let body = merge(input);
        match expected {
            None => assert_eq!(body["decision"], "allow"),
            Some(expected) => {
                let reason = format!("The arguments do not match the tool's schema: {expected}.");
                assert_eq!(
                    (&body["reason_code"], &body["reason"]),
                    (&json!("input_schema_mismatch"), &json!(reason))
                );
            }
        }
    }
    for (input, fits) in [
        (json!({"x": 0.1234}), true),
        (json!({"x": 0.12345}), false),
        (json!({"x": [null]}), false),
        (json!({"x": {"y": null, "z": [1, "a", {"b": true}]}}), true),
    ] {
        let mut call = read_call();
        call["tool_call"]["parameters"] = input.clone();
        assert_eq!(gate.call(&call).1["reason_code"] != "input_invalid", fits, "{input}");
    }
}

#[test]
fn a_journal_over_its_soft_bound_refuses_writes_and_over_its_hard_bound_everything() {
    let mut gate = Gate::new();
    gate.config.journal_soft_rows = 2;
    gate.config.journal_hard_rows = 3;
    let full = (503, "journal_full".to_owned());
    let outcome = |gate: &Gate, call: &Value| {
        let (status, body) = gate.call(call);
        (status, body["code"].as_str().unwrap_or("").to_owned())
    };
    let ok = (200, String::new());
    assert_eq!(outcome(&gate, &write_call()), ok);
    assert_eq!(outcome(&gate, &with(read_call(), json!({"request_id": "r"}))), ok);
    assert_eq!(outcome(&gate, &write_call()), full);
    assert_eq!(outcome(&gate, &read_call()), ok);
    assert_eq!(outcome(&gate, &read_call()), full);
    // A request that needs no row is still answered.
    assert_eq!(outcome(&gate, &with(read_call(), json!({"request_id": "r"}))), ok);
    assert_eq!(outcome(&gate, &with(write_call(), json!({"dry_run": true}))), ok);
    gate.flush_all();
    assert_eq!(outcome(&gate, &write_call()), ok);
    gate.storage.size_bytes.set(gateward_core::gate::config::MAX_STORAGE_BYTES + 1);
    gate.evict();
    assert_eq!(outcome(&gate, &read_call()), full);
    // Space is freed at the next alarm, although no row waits to be flushed.
    gate.flush_all();
    gate.storage.size_bytes.set(0);
    assert_eq!(outcome(&gate, &read_call()), full);
    assert!(gate.on_lane(|lane, _| Ok(lane.needs_flush())).unwrap());
    gate.flush_all();
    assert_eq!(outcome(&gate, &read_call()), ok);
}

#[test]
fn every_journalled_decision_has_a_decision_an_audit_event_and_a_receipt() {
    let mut gate = Gate::new();
    for at in 0..20 {
        gate.records.tool = if at % 3 == 0 { None } else { tool(at % 2 == 0, false) };
        gate.call(&with(
            read_call(),
            json!({"context": {"source_trust": "semi_trusted_customer"}}),
        ));
    }
    gate.flush_all();
    let joined = "SELECT count(*) FROM decisions d JOIN receipts r ON r.decision_id = d.decision_id AND r.seq = d.seq \
        JOIN audit_events a ON a.decision_id = d.decision_id WHERE a.kind = 'decision'";
    assert_eq!((gate.count(joined), gate.count("SELECT count(*) FROM decisions")), (20, 20));
}

/// Each write of a call: once it fails, and once its answer is lost. What was acknowledged is stored, and nothing
/// else.
#[test]
fn a_call_whose_row_may_or_may_not_be_written_is_never_half_done() {
    for fault in [Fault::Failed, Fault::Lost] {
        let gate = Gate::new();
        gate.call(&read_call());
        let call = with(read_call(), json!({"request_id": "r-1"}));
        gate.storage.fault.set(Some((0, fault)));
        assert_eq!(gate.try_call(&command(&call)), Err(StorageError("injected".to_owned())));
        let (_, answer) = gate.call(&call);
        assert_eq!(gate.receipts().len(), 2, "{fault:?}");
        assert_eq!(answer["receipt"]["seq"], 2, "{fault:?}");
        assert_eq!(gate.call(&call).1, answer, "{fault:?}");
    }
}

/// Each statement of a confirmed flush, and D1 itself: once it fails, and once its answer is lost.
#[test]
fn a_flush_that_breaks_anywhere_loses_nothing_and_writes_nothing_twice() {
    let mut steps = 0;
    for fault in [Fault::Failed, Fault::Lost] {
        for at in 0.. {
            let mut gate = Gate::new();
            gate.config.flush_batch_rows = 3;
            gate.agent_mut().limits = support::daily(4);
            let call = with(
                read_call(),
                json!({"request_id": "r-1", "nonce": "n", "timestamp": "2026-11-18T11:06:40Z"}),
            );
            let (_, first) = gate.call(&call);
            for _ in 0..4 {
                gate.call(&read_call());
            }
            assert!(gate.flush(Some(fault)).is_err());
            gate.storage.fault.set(Some((at, fault)));
            let broke = gate.flush(None).is_err();
            gate.storage.fault.set(None);
            gate.call(&read_call());
            assert_eq!(gate.call(&call).1, first);
            gate.flush_all();
            gate.evict();
            assert_eq!(gate.call(&call).1, first);
            assert_eq!(gate.call(&read_call()).1["reason_code"], "quota_exhausted");
            gateward_core::receipt::verify(
                &gate.receipts(),
                1,
                Some(gateward_core::receipt::GENESIS),
            )
            .unwrap();
            assert_eq!(gate.receipts().len(), 7);
            if !broke {
                break;
            }
            steps += 1;
        }
    }
    assert!(steps >= 12, "only {steps} statements were broken");
}

#[test]
fn a_receipt_that_d1_holds_otherwise_is_not_pruned() {
    let gate = Gate::new();
    gate.call(&read_call());
    gate.database
        .execute_batch(&format!(
            "INSERT INTO receipts VALUES ('demo', 0, 1, 'decision', 'x', 1, '{0}', '{0}', '{{}}')",
            "0".repeat(64)
        ))
        .unwrap();
    assert_eq!(gate.flush(None).unwrap_err(), "receipt 1 differs");
    assert_eq!(gate.on_lane(|lane, _| Ok(lane.journal_rows())), Ok(1));
}

#[test]
fn a_lane_does_not_start_from_less_than_it_acknowledged() {
    type Damage = &'static str;
    let cases: [(&str, Damage); 5] = [
        (
            "all is gone but the lane's name",
            "DELETE FROM journal; DELETE FROM meta WHERE name = 'head'",
        ),
        ("a row in the middle is gone", "DELETE FROM journal WHERE seq = 2"),
        ("the first rows are gone", "DELETE FROM journal WHERE seq < 3"),
        ("a state is not readable", "UPDATE journal SET state = '' WHERE seq = 3"),
        (
            "the head is not readable",
            "INSERT INTO meta VALUES ('head', 'x') ON CONFLICT DO UPDATE SET value = 'x'",
        ),
    ];
    for (name, damage) in cases {
        let gate = Gate::new();
        gate.on_lane(|lane, storage| lane.adopt(storage, "demo", 0)).unwrap();
        (0..3).for_each(|_| drop(gate.call(&read_call())));
        gate.evict();
        gate.storage.connection.execute_batch(damage).unwrap();
        assert!(gate.try_call(&command(&read_call())).is_err(), "{name}");
    }
}

#[test]
fn a_policy_that_errs_denies_and_is_named() {
    use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
    let policies = [
        ("base/ok.cedar", "@id(\"reads\") permit (principal, action, resource);"),
        (
            "base/bad.cedar",
            "@id(\"errs\") forbid (principal, action, resource) when { context.input.absent == 1 };",
        ),
    ];
    let sources = Sources {
        velocity: String::new(),
        shield: Vec::new(),
        schema: String::new(),
        tools: Vec::new(),
        policies: policies
            .map(|(path, text)| SourceFile { path: path.into(), text: text.into() })
            .into(),
    };
    let mut gate = Gate::new();
    gate.engine = Rc::new(PolicyEngine::new(compile_unvalidated(&sources).unwrap().leak()));
    let (_, body) = gate.call(&read_call());
    assert_eq!((&body["decision"], &body["reason_code"]), (&json!("deny"), &json!("policy_error")));
    assert_eq!(body["matched_policies"], json!(["base/bad#errs"]));
}

#[test]
fn the_stored_state_of_an_agent_keeps_its_format() {
    const STATE: &str = r#"{"revision":3,"bucket":{"micro":5000000,"at_ms":7},"quarantined":true,"status_denial":{"at_ms":9,"code":"agent_frozen"},"windows":[["calls_1m",{"slots":[[7,1],[2,3]]}]]}"#;
    let state: gateward_core::gate::AgentState = serde_json::from_str(STATE).unwrap();
    assert!(state.quarantined && state.revision == 3);
    assert_eq!(state.encode(), STATE);
    // A state of a version that counted in two windows of its own, and a daily quota.
    let older = STATE.replace("\"windows\":[[\"calls_1m\",{\"slots\":[[7,1],[2,3]]}]]",
        r#""quota_day":1,"quota_used":2,"calls":{"window":1,"current":2,"previous":3},"denials":{"window":1,"current":0,"previous":0}"#);
    assert!(
        older != STATE && serde_json::from_str::<gateward_core::gate::AgentState>(&older).is_ok()
    );
}
