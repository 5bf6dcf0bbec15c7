//! If a listing hides a tool, every call of the tool is denied, whatever the call says and whatever the agent has
//! read.
//!
//! Policies are generated, in addition to the bundled ones, so that conditions combine trust, taint
//! and arguments in every way.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use crate::support::{Gate, START_MS, command, read_call, records, tool, with};
use gateward_core::call::command::{Candidate, Purpose};
use gateward_core::gate::Books;
use gateward_core::gate::windows::Windows;
use gateward_core::gate::{AgentState, Facts, decide};
use gateward_core::policy::PolicyEngine;
use gateward_core::provenance::Destinations;
use gateward_core::receipt::ChainHead;
use gateward_core::registry::{CallRecords, ListedTool, TaintRule, ToolStatus};
use gateward_core::taint::Scope;
use gateward_core::trust::SourceTrust;
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as Cases, TestRunner};
use serde_json::{Value as Json, json};

/// Sets of policies; each is listed once and then called [`CALLS_PER_LIST`] times.
const SETS: u32 = 2_000;
/// The processors of a small machine. Each thread takes a part of the sets.
const THREADS: u32 = 2;
const CALLS_PER_LIST: usize = 24;

fn trust() -> impl Strategy<Value = SourceTrust> {
    select(SourceTrust::ALL.to_vec())
}

fn condition() -> impl Strategy<Value = String> {
    let levels = || prop::collection::vec(trust(), 0..=4);
    let contains = |field: &'static str| {
        move |levels: Vec<SourceTrust>| {
            let levels: Vec<_> =
                levels.iter().map(|level| format!("{:?}", level.as_str())).collect();
            format!("[{}].contains(context.{field})", levels.join(", "))
        }
    };
    let leaf = prop_oneof![
        4 => levels().prop_map(contains("stated_trust")),
        4 => levels().prop_map(contains("source_trust")),
        1 => Just("context.taint.tainted".to_owned()),
        1 => Just("context.taint.tool == \"forbid\"".to_owned()),
        1 => Just("context.sensitive".to_owned()),
        1 => Just("context.input has n && context.input.n == 1".to_owned()),
        1 => Just("context.resource == \"\"".to_owned()),
        1 => Just("context.stated_trust == context.source_trust".to_owned()),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) || ({b})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

fn policy() -> impl Strategy<Value = String> {
    let effect = prop_oneof![
        3 => Just("permit"),
        3 => Just("forbid"),
        2 => Just("@decision(\"require_approval\") @approver_group(\"security\") permit"),
    ];
    let action =
        select(vec!["action", "action in Action::\"write\"", "action in Action::\"read\""]);
    let clause = select(vec!["when", "unless"]);
    (effect, action, clause, condition()).prop_map(|(effect, action, clause, condition)| {
        format!("{effect} (principal, {action}, resource) {clause} {{ {condition} }};")
    })
}

/// What a caller may say, and what it may have read.
#[derive(Debug, Clone)]
struct Claim {
    trust: SourceTrust,
    sensitive: bool,
    input: Json,
    resource: &'static str,
    tainted: bool,
    rule: TaintRule,
}

fn claim() -> impl Strategy<Value = Claim> {
    let inputs = vec![json!({}), json!({"n": 1}), json!({"n": 2, "m": ["x"]})];
    let rules = TaintRule::ALL.to_vec();
    let resource = select(vec!["", "acme/shop"]);
    (trust(), any::<bool>(), select(inputs), resource, any::<bool>(), select(rules)).prop_map(
        |(trust, sensitive, input, resource, tainted, rule)| Claim {
            trust,
            sensitive,
            input,
            resource,
            tainted,
            rule,
        },
    )
}

fn facts<'a>(
    gate: &'a Gate,
    records: &'a CallRecords,
    agent: &'a AgentState,
    head: &'a ChainHead,
) -> Facts<'a> {
    Facts {
        now_ms: START_MS,
        config: &gate.config,
        records,
        agent,
        head,
        latest_ms: 0,
        stored: None,
        nonce_used: false,
        signature_nonce_used: false,
        warrant: None,
        proof_used: false,
        approval: None,
        run: None,
        books: Books::NONE,
        windows: Windows::default(),
        reservation: None,
        journal_rows: 0,
        storage_full: false,
        written: Default::default(),
    }
}

/// An agent that has read text of an untrusted server.
fn tainted() -> AgentState {
    let mut agent = AgentState::default();
    agent.taint.add(Scope::Agent, "web", None, 60_000, START_MS);
    agent
}

/// A granted tool of a server behind Gateward, and a credential of this trust.
fn listed(mutates: bool, highest: SourceTrust, signed: bool) -> CallRecords {
    let mut records = records();
    let server = json!({"kind": "mcp", "trust": "trusted", "status": "active",
        "upstream": {"url": "https://api.example.com/"}});
    records.server = serde_json::from_value(server).unwrap();
    records.tool = tool(mutates, false);
    let credential = Rc::make_mut(records.credential.as_mut().unwrap());
    (credential.max_source_trust, credential.signed) = (highest, signed);
    let tool = ListedTool {
        tool: "list".to_owned(),
        status: ToolStatus::Active,
        mutates,
        canary: false,
        egress: false,
        definition_sha256: Some("d".repeat(64)),
    };
    records.listing = Rc::new([(tool.tool.clone(), tool)].into());
    records
}

/// Whether the listing of a signed or unsigned request shows the tool.
fn is_shown(gate: &Gate, engine: &PolicyEngine, records: &CallRecords, signed: bool) -> bool {
    is_shown_to(&AgentState::default(), gate, engine, records, signed)
}

fn is_shown_to(
    agent: &AgentState,
    gate: &Gate,
    engine: &PolicyEngine,
    records: &CallRecords,
    signed: bool,
) -> bool {
    let mut asking = command(&read_call());
    asking.signed = signed;
    asking.purpose = Purpose::Filter(vec![Candidate {
        tool: "list".to_owned(),
        input: None,
        resource: None,
        definition_sha256: Some("d".repeat(64)),
    }]);
    asking.call.environment = None;
    let head = ChainHead { seq: 0, hash: String::new() };
    let step = decide(engine, &facts(gate, records, agent, &head), &asking);
    let body: Json = serde_json::from_str(&step.reply.body).unwrap();
    let seen = body["visible"][0].as_str();
    assert!(matches!(seen, Some("Visible" | "Hidden")), "{body}");
    seen == Some("Visible")
}

fn decision(
    gate: &Gate,
    engine: &PolicyEngine,
    records: &CallRecords,
    signed: bool,
    claim: &Claim,
) -> Json {
    let body = with(
        read_call(),
        json!({
            "tool_call": {"mutates_state": false, "parameters": null, "resource": claim.resource},
            "context": {"source_trust": claim.trust.as_str(), "contains_sensitive_data": claim.sensitive},
        }),
    );
    let body = with(body, json!({"tool_call": {"parameters": claim.input}}));
    let mut asked = command(&body);
    asked.signed = signed;
    asked.purpose = Purpose::Forward;
    asked.call.environment = None;
    let mut records = records.clone();
    Rc::make_mut(records.tool.as_mut().unwrap()).tainted = claim.rule;
    let agent = if claim.tainted { tainted() } else { AgentState::default() };
    let head = ChainHead { seq: 0, hash: String::new() };
    let step = decide(engine, &facts(gate, &records, &agent, &head), &asked);
    let body: Json = serde_json::from_str(&step.reply.body).unwrap();
    body["decision"]["decision"].clone()
}

#[test]
fn whatever_a_list_hides_is_denied_whatever_its_call_says() {
    let met = [const { AtomicU32::new(0) }; 3];
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| list_and_decide(&met));
        }
    });
    let what = [
        "hidden",
        "hidden because of the credential's highest trust",
        "shown though they can only be approved",
    ];
    for (what, met) in what.into_iter().zip(met) {
        let met = met.into_inner();
        assert!(met > SETS / 100, "only {met} lists were {what}");
    }
}

/// Lists tools under random policies, and decides random calls of them.
fn list_and_decide([hidden, hidden_by_trust, shown_for_approval]: &[AtomicU32; 3]) {
    let gate = Gate::new();
    let policies = prop::collection::vec(policy(), 1..=4);
    let claims = prop::collection::vec(claim(), CALLS_PER_LIST);
    let cases = (policies, claims, trust(), any::<bool>(), any::<bool>());
    let config = Cases { cases: SETS / THREADS, failure_persistence: None, ..Cases::default() };
    let result =
        TestRunner::new(config).run(&cases, |(policies, claims, highest, mutates, signed)| {
            let policies = policies.iter().enumerate();
            let text: String =
                policies.map(|(n, text)| format!("@id(\"p{n}\") {text}\n")).collect();
            let file = SourceFile { path: "base/x.cedar".to_owned(), text };
            let sources = Sources { policies: vec![file], ..Sources::default() };
            let engine = PolicyEngine::new(compile_unvalidated(&sources).unwrap().leak());
            let records = listed(mutates, highest, signed);
            let shown = is_shown(&gate, &engine, &records, signed);
            let decided: Vec<Json> = claims
                .iter()
                .map(|claim| decision(&gate, &engine, &records, signed, claim))
                .collect();
            if shown {
                let held = decided.iter().any(|decision| decision == "require_approval");
                let passes = decided.iter().any(|decision| decision == "allow");
                shown_for_approval.fetch_add(u32::from(held && !passes), Relaxed);
                return Ok(());
            }
            for (decision, claim) in decided.iter().zip(&claims) {
                prop_assert!(
                    decision == "deny" || decision == "quarantine",
                    "{decision} {claim:?}"
                );
            }
            hidden.fetch_add(1, Relaxed);
            let trusted = listed(mutates, SourceTrust::TrustedInternalSigned, true);
            let by_trust = is_shown(&gate, &engine, &trusted, true);
            hidden_by_trust.fetch_add(u32::from(by_trust), Relaxed);
            Ok(())
        });
    result.map_err(|error| error.to_string()).unwrap();
}

/// The bundled policies: writes that are stated to be untrusted are forbidden, and those of a
/// customer wait for approval.
#[test]
fn a_credential_that_cannot_claim_enough_trust_is_not_shown_writes() {
    use SourceTrust::*;
    let gate = Gate::new();
    for (highest, read, write) in [
        (TrustedInternalSigned, true, true),
        (TrustedInternalUnsigned, true, true),
        (SemiTrustedCustomer, true, true),
        (UntrustedExternal, true, false),
        (MaliciousSuspected, true, false),
        (Unknown, true, false),
    ] {
        for (mutates, expected) in [(false, read), (true, write)] {
            for signed in [false, true] {
                let records = listed(mutates, highest, signed);
                let shown = is_shown(&gate, &gate.engine, &records, signed);
                assert_eq!(shown, expected, "{highest:?} {mutates} {signed}");
            }
        }
    }
}

/// A subscription to a URI sends the URI to the server, as reading it does.
#[test]
fn a_tainted_message_says_to_a_tool_with_egress_only_what_is_known() {
    let mut gate = Gate::new();
    gate.tenant_mut().destinations = Some(Rc::new(Destinations {
        hosts: vec!["docs.example".to_owned()],
        ..Destinations::default()
    }));
    let usable = |egress: bool, agent: &AgentState, said: Json| {
        let mut records = listed(false, SourceTrust::TrustedInternalUnsigned, false);
        records.tenant.clone_from(&gate.records.tenant);
        let mut tool = records.listing["list"].clone();
        tool.egress = egress;
        records.listing = Rc::new([(tool.tool.clone(), tool)].into());
        let asking = with(read_call(), json!({"tool_call": {"parameters": null}}));
        let mut asking = command(&with(asking, json!({"tool_call": {"parameters": said}})));
        let candidate = Candidate {
            tool: "list".to_owned(),
            input: None,
            resource: None,
            definition_sha256: None,
        };
        asking.purpose = Purpose::Filter(vec![candidate]);
        asking.call.environment = None;
        let head = ChainHead { seq: 0, hash: String::new() };
        let step = decide(&gate.engine, &facts(&gate, &records, agent, &head), &asking);
        let body: Json = serde_json::from_str(&step.reply.body).unwrap();
        body["visible"][0] == "Visible"
    };
    let (clean, tainted) = (AgentState::default(), tainted());
    let unknown = || json!({"uri": "https://evil.example/?k=secret"});
    for (egress, agent, said, expected) in [
        (true, &tainted, unknown(), false),
        (true, &tainted, json!({"argument": {"name": "x", "value": "secret"}}), false),
        (true, &tainted, json!({"uri": "https://docs.example/a"}), true),
        (true, &tainted, json!({}), true),
        (false, &tainted, unknown(), true),
        (true, &clean, unknown(), true),
    ] {
        let is_tainted = agent.taint != clean.taint;
        assert_eq!(usable(egress, agent, said.clone()), expected, "{egress} {is_tainted} {said}");
    }
}

/// Taint ends, but clients keep a list for longer.
#[test]
fn taint_that_is_in_force_hides_nothing() {
    let gate = Gate::new();
    let text = "@id(\"p\") permit (principal, action, resource) unless { context.taint.tainted };";
    let file = SourceFile { path: "base/x.cedar".to_owned(), text: text.to_owned() };
    let sources = Sources { policies: vec![file], ..Sources::default() };
    let engine = PolicyEngine::new(compile_unvalidated(&sources).unwrap().leak());
    let records = listed(true, SourceTrust::TrustedInternalUnsigned, false);
    assert!(is_shown_to(&tainted(), &gate, &engine, &records, false));
}
