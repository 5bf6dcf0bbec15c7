//! What a lane does with the warrant of a call.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::support::{Fault, Gate, START_MS, command, read_call, tool, with};
use gateward_core::approval::webhook::Message;
use gateward_core::approval::{Approval, ApprovalEvent};
use gateward_core::bounds::MAX_REQUEST_ID_BYTES;
use gateward_core::bucket::Rate;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::call::http_tool::Unresolved;
use gateward_core::credential::locator;
use gateward_core::decision::ReasonCode;
use gateward_core::gate::warrant::{ANY_TOLERANCE, credential, proof_name};
use gateward_core::lane::Lane;
use gateward_core::policy::PolicyEngine;
use gateward_core::registry::Warrants;
use gateward_core::trust::SourceTrust;
use gateward_core::warrant::chain::sha256;
use gateward_core::warrant::constraint::Arguments;
use gateward_core::warrant::mint::Secret;
use gateward_core::warrant::payload::{Payload, Powers, WarrantId};
use gateward_core::warrant::{
    Cache, Call, Carried, Judged, NeededApprovals, Presented, Refusal, text,
};
use gateward_policy_compiler::{SourceFile, Sources, compile};
use serde_json::{Value, json};

const ROOT: u8 = 1;
const AGENT: u8 = 2;
const WORKER: u8 = 3;

fn secret(number: u8) -> Secret {
    Secret::new([number; 32])
}

/// A warrant of the agent for every tool.
fn root() -> Payload {
    let now_s = START_MS / 1_000;
    Payload {
        id: WarrantId([1; 16]),
        powers: Powers::Execution(vec![("*".to_owned(), Arguments::default())]),
        holder: secret(AGENT).public(),
        issuer: secret(ROOT).public(),
        issued_at_s: now_s - 60,
        expires_at_s: now_s + 3_600,
        max_depth: 12,
        depth: 0,
        parent_hash: None,
        extensions: Vec::new(),
        gates: None,
        approvers: Vec::new(),
        min_approvals: None,
        clearance: Some(20),
    }
}

/// A chain of so many links, the last ones for the worker.
fn chain(links: u8) -> Vec<Payload> {
    let mut chain = vec![root()];
    for at in 1..links {
        let parent = chain.last().unwrap();
        let child = Payload {
            id: WarrantId([at + 1; 16]),
            holder: secret(WORKER).public(),
            issuer: parent.holder,
            depth: at,
            parent_hash: Some(sha256(&parent.write())),
            ..parent.clone()
        };
        chain.push(child);
    }
    chain
}

/// The call with a chain of so many links. The proof is of this time.
fn warranted(body: &Value, links: u8, at_s: u64) -> GateCommand {
    let mut command = unjudged(body, links, at_s);
    let call = &command.call;
    let judged = Call {
        server: &call.server,
        tool: &call.tool,
        input: &call.input,
        now_s: at_s,
        agent_key: None,
    };
    command.warrant.as_mut().unwrap().judge(&judged, ANY_TOLERANCE, &mut Cache::default());
    command
}

/// The same, left to the lane.
fn unjudged(body: &Value, links: u8, at_s: u64) -> GateCommand {
    let chain = chain(links);
    let issuers = [ROOT, AGENT].into_iter().chain(std::iter::repeat(WORKER));
    let stack: Vec<_> = chain.iter().zip(issuers).map(|(it, by)| secret(by).issue(it)).collect();
    let mut command = command(body);
    let call = &command.call;
    let holder = secret(if links == 1 { AGENT } else { WORKER });
    let id = chain.last().unwrap().id;
    let proof = holder.prove(id, &call.tool, &call.input, at_s);
    let presented =
        Presented { stack: text::join(&stack), proof: Some(proof.to_vec()), approvals: vec![] };
    let hash = sha256(&presented.stack);
    command.warrant = Some(Carried { hash, judged: Judged::Later(presented) });
    command
}

fn now_s() -> u64 {
    START_MS / 1_000
}

/// A lane of an agent with a key, whose tenant trusts the root. `writes`: whether the tool does.
fn gate(writes: bool) -> Gate {
    let mut gate = Gate::new();
    gate.records.tool = tool(writes, false);
    gate.agent_mut().public_key = Some(secret(AGENT).public());
    gate.records.warrants = trusted(
        json!([{"id": "r", "public_key": secret(ROOT).public(),
        "allowed_servers": null}]),
        json!([]),
    );
    gate
}

fn trusted(roots: Value, revoked: Value) -> Rc<Warrants> {
    Rc::new(serde_json::from_value(json!({"roots": roots, "revoked": revoked})).unwrap())
}

/// Status, and reason code or problem code.
fn outcome(gate: &Gate, command: &GateCommand) -> (u16, String) {
    let reply = gate.try_call(command).unwrap();
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    let code = body["reason_code"].as_str().or(body["code"].as_str()).unwrap_or_default();
    (reply.status, code.to_owned())
}

fn code(gate: &Gate, command: &GateCommand) -> String {
    outcome(gate, command).1
}

#[test]
fn a_warrant_must_be_trusted_and_the_agents() {
    type Change = fn(&mut Gate);
    let cases: [(&str, u8, Change, &str); 16] = [
        ("as it should be", 1, |_| {}, "policy_allow"),
        ("of a worker that nobody registered", 3, |_| {}, "policy_allow"),
        (
            "no root",
            1,
            |it| it.records.warrants = trusted(json!([]), json!([])),
            "warrant_untrusted",
        ),
        (
            "another root",
            1,
            |it| {
                let other =
                    json!([{"id": "r", "public_key": secret(9).public(), "allowed_servers": null}]);
                it.records.warrants = trusted(other, json!([]));
            },
            "warrant_untrusted",
        ),
        (
            "a root for other servers",
            1,
            |it| {
                let root = json!([{"id": "r", "public_key": secret(ROOT).public(), "allowed_servers": ["x*"]}]);
                it.records.warrants = trusted(root, json!([]));
            },
            "warrant_untrusted",
        ),
        (
            "an agent without a key",
            1,
            |it| it.agent_mut().public_key = None,
            "warrant_holder_unknown",
        ),
        (
            "another agent",
            2,
            |it| {
                it.agent_mut().public_key = Some(secret(WORKER).public());
            },
            "warrant_holder_unknown",
        ),
        ("the last link is revoked", 3, |it| revoke(it, 3), "warrant_revoked"),
        ("the first link is revoked", 3, |it| revoke(it, 1), "warrant_revoked"),
        ("another warrant is revoked", 3, |it| revoke(it, 9), "policy_allow"),
        (
            "its root's list revokes it",
            3,
            |it| revoke_by(it, 3, &json!(secret(ROOT).public())),
            "warrant_revoked",
        ),
        (
            "another root's list names it",
            3,
            |it| revoke_by(it, 3, &json!(secret(9).public())),
            "policy_allow",
        ),
        ("too many links", 9, |_| {}, "warrant_chain_broken"),
        (
            "more links are accepted",
            9,
            |it| {
                it.tenant_mut().settings.warrant_max_links = Some(9);
            },
            "policy_allow",
        ),
        ("enough clearance", 1, |it| it.tool_mut().min_clearance = Some(20), "policy_allow"),
        (
            "too little clearance",
            1,
            |it| it.tool_mut().min_clearance = Some(21),
            "warrant_clearance_missing",
        ),
    ];
    for (name, links, change, expected) in cases {
        let mut gate = gate(false);
        change(&mut gate);
        assert_eq!(code(&gate, &warranted(&read_call(), links, now_s())), expected, "{name}");
    }
}

fn revoke(gate: &mut Gate, number: u8) {
    revoke_by(gate, number, &Value::Null);
}

/// `by`: the key of the root whose list revokes it, or null.
fn revoke_by(gate: &mut Gate, number: u8, by: &Value) {
    let root = json!([{"id": "r", "public_key": secret(ROOT).public(), "allowed_servers": null}]);
    gate.records.warrants = trusted(root, json!([[hex::encode([number; 16]), by]]));
}

#[test]
fn tenant_agent_and_tool_can_need_a_warrant() {
    type Change = fn(&mut Gate);
    let cases: [(&str, Change, &str); 6] = [
        ("nobody", |_| {}, "policy_allow"),
        (
            "a clearance that each warrant has",
            |it| it.tool_mut().min_clearance = Some(0),
            "policy_allow",
        ),
        ("a clearance", |it| it.tool_mut().min_clearance = Some(1), "warrant_required"),
        (
            "the tenant",
            |it| it.tenant_mut().settings.warrant_required = Some(true),
            "warrant_required",
        ),
        ("the agent", |it| it.agent_mut().warrant_required = true, "warrant_required"),
        ("the tool", |it| it.tool_mut().warrant_required = true, "warrant_required"),
    ];
    for (name, change, expected) in cases {
        let mut gate = gate(false);
        change(&mut gate);
        assert_eq!(code(&gate, &command(&read_call())), expected, "{name}");
        assert_eq!(code(&gate, &warranted(&read_call(), 1, now_s())), "policy_allow", "{name}");
    }
}

#[test]
fn a_proof_is_good_once_for_what_changes_something() {
    let call = |request_id: &str| with(read_call(), json!({"request_id": request_id}));
    for (writes, reads_once, second) in [
        (true, None, "warrant_proof_used"),
        (false, None, "policy_allow"),
        (false, Some(true), "warrant_proof_used"),
    ] {
        let mut gate = gate(writes);
        gate.tenant_mut().settings.warrant_reads_once = reads_once;
        let first = warranted(&call("a"), 2, now_s());
        assert_eq!(code(&gate, &first), "policy_allow");
        assert_eq!(code(&gate, &first), "policy_allow", "the stored answer comes first");
        assert_eq!(code(&gate, &warranted(&call("b"), 2, now_s())), second);
        // It outlives the object, and a flush.
        gate.evict();
        gate.flush_all();
        assert_eq!(code(&gate, &warranted(&call("c"), 2, now_s())), second);
        // A proof of the next window is another one.
        assert_eq!(code(&gate, &warranted(&call("d"), 2, now_s() + 30)), "policy_allow");
    }
}

#[test]
fn a_refusal_says_when_the_next_window_begins_and_a_denied_call_uses_no_proof() {
    let mut gate = gate(true);
    gate.tool_mut().min_clearance = Some(21);
    assert_eq!(code(&gate, &warranted(&read_call(), 1, now_s())), "warrant_clearance_missing");
    gate.tool_mut().min_clearance = None;
    assert_eq!(code(&gate, &warranted(&read_call(), 1, now_s())), "policy_allow");
    let reply = gate.try_call(&warranted(&read_call(), 1, now_s())).unwrap();
    let next_ms = (now_s() - now_s() % 30 + 30) * 1_000;
    assert!(reply.body.contains(&gateward_core::id::rfc3339(next_ms)), "{}", reply.body);
}

#[test]
fn the_lanes_clock_decides_on_expiry_and_on_the_proofs_window() {
    for (after_s, expected) in [
        (89, "policy_allow"),
        // Windows begin each 30 s, and two past ones are accepted.
        (120, "warrant_proof_invalid"),
        (3_700, "warrant_expired"),
    ] {
        let gate = gate(false);
        gate.now_ms.set(START_MS - START_MS % 30_000 + after_s * 1_000);
        let judged_s = (START_MS - START_MS % 30_000) / 1_000;
        assert_eq!(code(&gate, &warranted(&read_call(), 1, judged_s)), expected, "{after_s}");
    }
    let mut gate = gate(false);
    gate.tenant_mut().settings.warrant_proof_windows = Some(2);
    gate.now_ms.set(START_MS + 61_000);
    assert_eq!(code(&gate, &warranted(&read_call(), 1, now_s())), "warrant_proof_invalid");
}

#[test]
fn a_warrant_belongs_to_the_request_id() {
    let gate = gate(false);
    let call = with(read_call(), json!({"request_id": "q"}));
    assert_eq!(code(&gate, &warranted(&call, 1, now_s())), "policy_allow");
    assert_eq!(
        outcome(&gate, &warranted(&call, 2, now_s())),
        (409, "request_id_conflict".to_owned())
    );
    assert_eq!(outcome(&gate, &command(&call)), (409, "request_id_conflict".to_owned()));
}

#[test]
fn the_receipt_names_the_warrant() {
    let gate = gate(false);
    let command = warranted(&read_call(), 3, now_s());
    gate.try_call(&command).unwrap();
    gate.flush_all();
    let receipt: String =
        gate.database.query_row("SELECT body FROM receipts", [], |row| row.get(0)).unwrap();
    let receipt: Value = serde_json::from_str(&receipt).unwrap();
    let hash = hex::encode(command.warrant.unwrap().hash);
    let expected = json!({"chain_hash": hash, "depth": 2, "id": hex::encode([3; 16]),
        "root": secret(ROOT).public()});
    assert_eq!(receipt["warrant"], expected);
}

/// One policy for each field, which matches only the value that it should have.
#[test]
fn policies_see_each_field_of_the_warrant() {
    let [root, issuer, holder] = [ROOT, AGENT, WORKER].map(|number| secret(number).public());
    let id = hex::encode([2; 16]);
    let fields = [
        ("present", " == true".to_owned(), " == false"),
        ("id", format!(" == \"{id}\""), " == \"\""),
        ("root", format!(" == \"{root}\""), " == \"\""),
        ("issuer", format!(" == \"{issuer}\""), " == \"\""),
        ("holder", format!(" == \"{holder}\""), " == \"\""),
        ("depth", " == 1".to_owned(), " == 0"),
        ("tools", ".contains(\"*\")".to_owned(), ".contains(\"*\") == false"),
        ("clearance", " == 20".to_owned(), " == 0"),
        ("expires_in_s", " == 3600".to_owned(), " == 0"),
    ];
    let policy = |id: &str, field: &str, says: &str| {
        let when = format!("context.warrant.{field}{says}");
        format!("@id(\"{id}-{field}\") permit (principal, action, resource) when {{ {when} }};\n")
    };
    let policies = fields.iter().map(|(field, with, without)| {
        [policy("with", field, with), policy("without", field, without)].concat()
    });
    let policies = SourceFile { path: "base/x.cedar".to_owned(), text: policies.collect() };
    let sources = Sources {
        schema: include_str!("../../../policies/schema.cedarschema").to_owned(),
        velocity: "{}".to_owned(),
        shield: Vec::new(),
        tools: Vec::new(),
        policies: vec![policies],
    };
    let compiled = compile(&sources).unwrap_or_else(|mistakes| panic!("{mistakes:?}")).leak();
    let gate = Gate { engine: Rc::new(PolicyEngine::new(compiled)), ..gate(false) };
    for (command, prefix) in
        [(warranted(&read_call(), 2, now_s()), "with"), (command(&read_call()), "without")]
    {
        let reply: Value = serde_json::from_str(&gate.try_call(&command).unwrap().body).unwrap();
        let matched: BTreeSet<String> =
            serde_json::from_value(reply["matched_policies"].clone()).unwrap();
        let expected = fields.iter().map(|(field, ..)| format!("base/x#{prefix}-{field}"));
        assert_eq!(matched, expected.collect(), "{reply}");
    }
}

#[test]
fn a_receipt_says_nothing_about_a_warrant_that_was_refused() {
    let mut gate = gate(false);
    revoke(&mut gate, 1);
    assert_eq!(code(&gate, &warranted(&read_call(), 1, now_s())), "warrant_revoked");
    gate.flush_all();
    let receipt: String =
        gate.database.query_row("SELECT body FROM receipts", [], |row| row.get(0)).unwrap();
    assert!(!receipt.contains("chain_hash"), "{receipt}");
}

#[test]
fn an_approval_names_the_warrant_of_the_call_that_waits() {
    let waits = with(read_call(), json!({"context": {"source_trust": "semi_trusted_customer"}}));
    let of_worker = json!({"id": hex::encode([3; 16]), "holder": secret(WORKER).public()});
    for (call, expected) in
        [(warranted(&waits, 3, now_s()), of_worker), (command(&waits), Value::Null)]
    {
        let gate = gate(true);
        let reply: Value = serde_json::from_str(&gate.try_call(&call).unwrap().body).unwrap();
        let id = reply["approval"]["approval_id"].as_str().unwrap();
        let held = gate.on_lane(|_, storage| Lane::approval(storage, id)).unwrap().unwrap();
        let view = serde_json::to_value(held.approval.view(&held.input, START_MS, false)).unwrap();
        assert_eq!(view["warrant"], expected);
        let told =
            Message::of(("acme", 0), (1, START_MS), ApprovalEvent::Requested, &held.approval);
        let told: Value = serde_json::from_str(&told.body).unwrap();
        assert_eq!(told["data"]["approval"]["warrant"], expected);
        // One that an older version stored.
        let mut stored = serde_json::to_value(&held.approval).unwrap();
        let member = stored.as_object_mut().unwrap().remove("warrant");
        assert_eq!(member.unwrap_or_default(), expected);
        let old: Approval = serde_json::from_value(stored).unwrap();
        assert_eq!(old, Approval { warrant: None, ..held.approval });
    }
}

#[test]
fn a_stored_answer_ends_with_the_warrant() {
    let call = with(read_call(), json!({"request_id": "q"}));
    for (after_s, revoked, expected) in
        [(60, 9, "policy_allow"), (60, 1, "call_denied"), (4_000, 9, "call_denied")]
    {
        let mut gate = gate(true);
        assert_eq!(code(&gate, &warranted(&call, 1, now_s())), "policy_allow");
        revoke(&mut gate, revoked);
        gate.now_ms.set(START_MS + after_s * 1_000);
        let again = warranted(&call, 1, now_s() + after_s);
        assert_eq!(code(&gate, &again), expected, "{after_s} {revoked}");
        gate.flush_all();
        let counted =
            "SELECT count(*) FROM audit_events WHERE kind LIKE 'warrant_%' AND source = 'coder'";
        assert_eq!(
            gate.count(counted),
            i64::from(expected == "call_denied"),
            "{after_s} {revoked}"
        );
    }
}

#[test]
fn a_canary_quarantines_whatever_the_warrant_says() {
    for is_warranted in [true, false] {
        let mut gate = gate(false);
        gate.records.tool = tool(false, true);
        gate.tool_mut().warrant_required = true;
        let call = match is_warranted {
            true => warranted(&read_call(), 1, now_s()),
            false => command(&read_call()),
        };
        assert_eq!(code(&gate, &call), "policy_quarantine", "{is_warranted}");
    }
}

/// The policies of the demo tenant remove `email` and `phone`. The verifier, the policies and the tool see the same
/// arguments, also those that no link constrains: the proof covers all of them.
#[test]
fn no_argument_of_a_call_with_a_warrant_is_removed() {
    let call = |contact: Value| {
        let call = json!({"tool_call": {"tool": "crm", "action": "get_customer", "resource": "c",
            "mutates_state": false, "parameters": {"n": null, "customer_id": "c", "contact": contact}},
            "context": {"source_trust": "trusted_internal_signed", "contains_sensitive_data": true}});
        with(read_call(), call)
    };
    let to_remove = call(json!({"email": "a@example.com"}));
    for (call, expected) in [
        (warranted(&to_remove, 1, now_s()), ["deny", "warrant_argument_refused"]),
        (command(&to_remove), ["redact", "policy_redact"]),
        (warranted(&call(json!({})), 1, now_s()), ["redact", "policy_redact"]),
    ] {
        let reply = gate(false).try_call(&call).unwrap().body;
        let reply: Value = serde_json::from_str(&reply).unwrap();
        assert_eq!([&reply["decision"], &reply["reason_code"]], expected, "{reply}");
    }
}

/// A proof that somebody read on the way is the holder's, whatever other callers of the agent send.
#[test]
fn neither_a_nonce_nor_another_holder_uses_up_a_proof() {
    let gate = gate(true);
    let call = warranted(&read_call(), 2, now_s());
    let claim = call.warrant.as_ref().and_then(Carried::claim).unwrap().clone();
    assert!(proof_name(&claim).len() > MAX_REQUEST_ID_BYTES, "no nonce is as long");
    let mut others = call.clone();
    if let Some(Carried { judged: Judged::Holds(claim), .. }) = &mut others.warrant {
        claim.holder = secret(9).public();
    }
    assert_eq!(code(&gate, &others), "policy_allow");
    let longest = &proof_name(&claim)[..MAX_REQUEST_ID_BYTES];
    for nonce in [longest, &format!("warrant proof {}", hex::encode(claim.proven.hash))] {
        let members = json!({"nonce": nonce, "timestamp": gateward_core::id::rfc3339(START_MS)});
        assert_eq!(code(&gate, &command(&with(read_call(), members))), "policy_allow", "{nonce}");
    }
    assert_eq!(code(&gate, &call), "policy_allow");
    assert_eq!(code(&gate, &call), "warrant_proof_used");
}

/// The call with a locator, and no credential.
fn located(body: &Value, links: u8, at_s: u64) -> GateCommand {
    GateCommand {
        located: true,
        key_id: locator::KEY_ID.to_owned(),
        secret_hash: secret(AGENT).public().0,
        ..warranted(body, links, at_s)
    }
}

/// A lane whose tenant accepts warrants without a credential. The cache puts the credential in place.
fn open(writes: bool, trust: Option<SourceTrust>) -> Gate {
    let mut gate = gate(writes);
    gate.tenant_mut().settings.warrant_alone_trust = trust;
    settle(&mut gate);
    gate
}

fn settle(gate: &mut Gate) {
    let records = &gate.records;
    let (agent, tenant) = (records.agent.as_deref(), records.tenant.as_deref());
    gate.records.credential = credential("coder", agent, tenant).map(Rc::new);
}

#[test]
fn a_warrant_alone_is_enough_where_the_tenant_says_so() {
    let trusted = Some(SourceTrust::TrustedInternalUnsigned);
    for (trust, links, expected) in [
        (trusted, 1, (200, "policy_allow")),
        (trusted, 3, (200, "policy_allow")),
        (trusted, 9, (401, "warrant_refused")),
        (None, 1, (401, "unauthorized")),
    ] {
        let (status, code) = outcome(&open(false, trust), &located(&read_call(), links, now_s()));
        assert_eq!((status, code.as_str()), expected, "{trust:?} {links}");
    }
    for writes in [true, false] {
        let gate = open(writes, trusted);
        let request = with(read_call(), json!({"request_id": "q"}));
        let call = located(&request, 3, now_s());
        let first = gate.try_call(&call).unwrap();
        assert_eq!(gate.try_call(&call).unwrap().body, first.body, "the stored answer");
        // Whoever read the call on the way has its proof, and is a stranger.
        let again = gate.try_call(&located(&read_call(), 3, now_s())).unwrap();
        assert_eq!((again.status, again.rate_headers.is_none()), (401, true), "{}", again.body);
        assert!(again.body.contains("valid for one call"), "{}", again.body);
        assert_eq!(code(&gate, &located(&read_call(), 3, now_s() + 30)), "policy_allow");
    }
}

/// A holder who is known, but may not make this call: a decision like that of every other caller.
#[test]
fn a_call_that_the_warrant_of_a_known_holder_does_not_carry_is_a_denial() {
    // It learns nothing about the tool: whether it is there, is a canary, or takes these arguments.
    let mut strict = tool(true, false);
    Rc::make_mut(strict.as_mut().unwrap()).input_schema = Some(r#"{"required":["x"]}"#.into());
    for tool in [tool(true, false), tool(true, true), strict, None] {
        let canary = tool.as_ref().map(|tool| tool.canary);
        let mut gate = open(true, Some(SourceTrust::TrustedInternalUnsigned));
        gate.records.tool = tool;
        let mut call = located(&read_call(), 3, now_s());
        if let Some(Carried { judged: Judged::Holds(claim), .. }) = &mut call.warrant {
            let reason = "It does not list the argument `x`.";
            claim.refusal = Some(Refusal::new(ReasonCode::WarrantArgumentRefused, reason));
        }
        assert_eq!(code(&gate, &call), "warrant_argument_refused", "no quarantine: {canary:?}");
        gate.flush_all();
        let receipt: String =
            gate.database.query_row("SELECT body FROM receipts", [], |row| row.get(0)).unwrap();
        assert!(receipt.contains(&hex::encode([3; 16])), "{receipt}");
        assert_eq!(outcome(&gate, &call).0, 401, "its proof is used up");
    }
}

/// Policies see `resource` too, and neither the links nor the proof cover it.
#[test]
fn the_resource_of_a_call_with_a_warrant_is_one_of_its_arguments() {
    let parameters = json!({"n": 1, "repo": "acme/shop", "more": {"repo": "acme/site"}});
    for (resource, expected) in [
        ("", "policy_allow"),
        ("acme/shop", "policy_allow"),
        ("acme", "warrant_argument_refused"),
        ("acme/site", "warrant_argument_refused"),
        ("1", "warrant_argument_refused"),
    ] {
        let members = json!({"resource": resource, "parameters": parameters});
        let call = with(read_call(), json!({"tool_call": members}));
        assert_eq!(code(&gate(false), &warranted(&call, 3, now_s())), expected, "{resource}");
        let open = open(false, Some(SourceTrust::TrustedInternalUnsigned));
        assert_eq!(code(&open, &located(&call, 3, now_s())), expected, "located: {resource}");
        assert_eq!(code(&gate(false), &command(&call)), "policy_allow", "{resource}");
    }
}

/// A tool with exact decimals reads such a number otherwise, and a tool that ignores case reads the second of two names.
#[test]
fn a_tool_reads_the_arguments_that_are_compared_with_the_warrant() {
    let clear = json!({"n": 50, "more": {"k": 1}});
    for (parameters, rounded, expected) in [
        (&clear, vec![], "policy_allow"),
        (&clear, vec![50.0], "warrant_argument_refused"),
        (&clear, vec![1.0], "warrant_argument_refused"),
        // In another part of the message.
        (&clear, vec![7.5], "policy_allow"),
        (&json!({"n": 50, "N": 5_000}), vec![], "warrant_argument_refused"),
        (&json!({"n": 50, "more": {"k": 1, "K": 2}}), vec![], "warrant_argument_refused"),
    ] {
        let body = with(read_call(), json!({"tool_call": {"parameters": parameters}}));
        let open = open(false, Some(SourceTrust::TrustedInternalUnsigned));
        for (lane, mut call, expected) in [
            (gate(false), warranted(&body, 3, now_s()), expected),
            (open, located(&body, 3, now_s()), expected),
            (gate(false), command(&body), "policy_allow"),
        ] {
            call.call.rounded = rounded.clone();
            assert_eq!(code(&lane, &call), expected, "{parameters} {rounded:?}");
        }
    }
}

#[test]
fn an_answer_names_the_approvals_that_the_warrant_asks_for() {
    let needed = NeededApprovals { request_hash: "ab".to_owned(), got: 1, need: 2 };
    let refusal = || Refusal::without_approvals(needed.clone(), 3);
    let mut with_credential = warranted(&read_call(), 3, now_s());
    with_credential.warrant.as_mut().unwrap().judged = Judged::Refused(refusal());
    let mut without = located(&read_call(), 3, now_s());
    if let Some(Carried { judged: Judged::Holds(claim), .. }) = &mut without.warrant {
        claim.refusal = Some(refusal());
    }
    let open = open(true, Some(SourceTrust::TrustedInternalUnsigned));
    for (lane, call) in [(gate(true), with_credential), (open, without)] {
        let body: Value = serde_json::from_str(&lane.try_call(&call).unwrap().body).unwrap();
        assert_eq!(body["reason_code"], "warrant_approval_missing");
        assert_eq!(body["warrant_approvals"], json!({"request_hash": "ab", "got": 1, "need": 2}));
    }
}

/// Such a caller is a stranger until its warrant holds: it is neither charged to the agent nor journalled. The audit and
/// metrics have the reason.
#[test]
fn a_warrant_that_does_not_hold_identifies_nobody() {
    type Change = fn(&mut Gate, &mut GateCommand);
    let cases: [(&str, Change, &str); 9] = [
        ("no warrant", |_, call| call.warrant = None, "warrant_required"),
        (
            "a refused one",
            |_, call| {
                let refusal = Refusal::new(ReasonCode::WarrantExpired, "It has expired.");
                call.warrant.as_mut().unwrap().judged = Judged::Refused(refusal);
            },
            "warrant_expired",
        ),
        (
            "one that was not judged",
            |_, call| {
                let presented = Presented { stack: vec![0x80], proof: None, approvals: vec![] };
                call.warrant.as_mut().unwrap().judged = Judged::Later(presented);
            },
            "warrant_malformed",
        ),
        ("revoked", |gate, _| revoke(gate, 2), "warrant_revoked"),
        (
            "an untrusted root",
            |gate, _| gate.records.warrants = trusted(json!([]), json!([])),
            "warrant_untrusted",
        ),
        (
            "a void locator",
            |_, call| call.secret_hash = secret(WORKER).public().0,
            "warrant_holder_unknown",
        ),
        (
            "a tenant that accepts no warrant alone",
            |gate, _| {
                gate.tenant_mut().settings.warrant_alone_trust = None;
            },
            "warrant_untrusted",
        ),
        (
            "an agent with another key",
            |gate, _| {
                gate.agent_mut().public_key = Some(secret(WORKER).public());
            },
            "warrant_holder_unknown",
        ),
        (
            "an agent without a key",
            |gate, _| gate.agent_mut().public_key = None,
            "warrant_holder_unknown",
        ),
    ];
    let stranger =
        gate(false).try_call(&GateCommand { secret_hash: [9; 32], ..command(&read_call()) });
    let stranger = stranger.unwrap().body;
    for (name, change, kind) in cases {
        let mut gate = open(false, Some(SourceTrust::Unknown));
        let mut call = located(&read_call(), 3, now_s());
        change(&mut gate, &mut call);
        settle(&mut gate);
        let reply = gate.try_call(&call).unwrap();
        assert_eq!(
            (reply.status, reply.rate_headers.is_none()),
            (401, true),
            "{name}: {}",
            reply.body
        );
        // Whether the agent has another key, or the tenant accepts no warrant alone, is not told.
        assert!(reply.body == stranger || reply.body.contains("warrant_refused"), "{}", reply.body);
        assert_eq!(gate.on_lane(|lane, _| Ok(lane.journal_rows())), Ok(0), "{name}");
        gate.flush_all();
        let events = "SELECT group_concat(kind) FROM audit_events WHERE source = '@warrant'";
        assert_eq!(gate.text(events), kind, "{name}");
        let metric = "SELECT labels FROM metric_counters WHERE metric = 'failed_authentications'";
        assert_eq!(gate.text(metric), json!([kind]).to_string(), "{name}");
    }
}

#[test]
fn a_used_proof_identifies_only_a_caller_that_repeats_its_request() {
    let gate = open(false, Some(SourceTrust::Unknown));
    let send = |members: serde_json::Value| {
        outcome(&gate, &located(&with(read_call(), members), 3, now_s())).0
    };
    assert_eq!(send(json!({"request_id": "r1"})), 200);
    assert_eq!(send(json!({"request_id": "r1"})), 200, "the stored answer");
    for members in
        [json!({}), json!({"request_id": "r2"}), json!({"request_id": "r1", "dry_run": true})]
    {
        assert_eq!(send(members.clone()), 401, "{members}");
    }
}

/// Neither links nor proof say that the call is a dry run. docs/warrants.md says what follows.
#[test]
fn the_proof_of_a_dry_run_is_good_for_the_call() {
    let gate = open(false, Some(SourceTrust::Unknown));
    let (dry, real) = (json!({"dry_run": true}), json!({}));
    for (members, expected) in [(&dry, 200), (&dry, 200), (&real, 200), (&dry, 401), (&real, 401)] {
        let call = located(&with(read_call(), members.clone()), 3, now_s());
        assert_eq!(outcome(&gate, &call).0, expected, "{members}");
    }
}

/// Who read a chain on the way can make the lane verify only so much with it.
#[test]
fn strangers_are_charged_before_their_warrants_are_verified() {
    let mut gate = open(false, Some(SourceTrust::Unknown));
    gate.config.default_rate = Rate::new(1_000, 1.0);
    let trusting = gate.records.clone();
    let send = |gate: &Gate, number: u32, is_holder: bool| {
        let call = with(read_call(), json!({"tool_call": {"parameters": {"n": number}}}));
        let mut command = GateCommand {
            located: true,
            key_id: locator::KEY_ID.to_owned(),
            secret_hash: secret(AGENT).public().0,
            ..unjudged(&call, 3, now_s())
        };
        if let Some(Carried { judged: Judged::Later(presented), .. }) = &mut command.warrant
            && !is_holder
        {
            presented.proof = Some(vec![1; 64]);
        }
        let now_ms = gate.now_ms.get();
        let charged = gate
            .on_lane(|lane, storage| lane.charge_stranger(storage, &command, &gate.records, now_ms))
            .unwrap();
        charged.map_or_else(
            |problem| (problem.code.status(), problem.retry_after_s),
            |()| (outcome(gate, &command).0, None),
        )
    };
    // Nothing has to be verified to refuse a root that nobody registered, so it costs nothing.
    gate.records.warrants = trusted(json!([]), json!([]));
    assert!((0..101).all(|number| send(&gate, number, true) == (401, None)));
    gate.records = trusting;
    assert!((0..101).all(|number| send(&gate, number, true) == (200, None)), "known callers");
    assert!((0..50).all(|number| send(&gate, number, false) == (401, None)));
    assert_eq!(send(&gate, 101, true), (200, None), "a row between");
    assert!((0..50).all(|number| send(&gate, number, false) == (401, None)));
    assert_eq!(send(&gate, 0, false), (429, Some(1)));
    assert_eq!(send(&gate, 102, true), (429, Some(1)), "nobody can tell that it is known");
    gate.now_ms.set(START_MS + 1_000);
    assert_eq!(send(&gate, 102, true), (200, None));
    gate.flush_all();
    let limited = "SELECT source FROM audit_events WHERE kind = 'rate_limited'";
    assert_eq!(gate.text(limited), "@warrant");
    let metric = "SELECT labels || count FROM metric_counters WHERE metric = 'limits_hit'";
    assert_eq!(gate.text(metric), r#"["stranger_rate"]2"#);
}

#[test]
fn a_locator_is_good_for_calls_only() {
    for purpose in [
        Purpose::Read,
        Purpose::Message { cost: 1 },
        Purpose::Filter(Vec::new()),
        Purpose::Ask,
        Purpose::Unroutable(Unresolved::Unmapped("x".to_owned())),
    ] {
        let gate = open(false, Some(SourceTrust::Unknown));
        let call = GateCommand {
            purpose: purpose.clone(),
            warrant: None,
            ..located(&read_call(), 1, now_s())
        };
        assert_eq!(outcome(&gate, &call).0, 401, "{purpose:?}");
    }
}

#[test]
fn a_caller_without_a_credential_states_no_more_trust_than_the_tenant_says() {
    for (trust, expected) in [
        (SourceTrust::TrustedInternalUnsigned, "trusted_internal_unsigned"),
        (SourceTrust::UntrustedExternal, "untrusted_external"),
    ] {
        let gate = open(false, Some(trust));
        let body = with(
            read_call(),
            json!({"context": {"source_trust": "trusted_internal_signed", "contains_sensitive_data": false}}),
        );
        let reply = gate.try_call(&located(&body, 2, now_s())).unwrap();
        let reply: Value = serde_json::from_str(&reply.body).unwrap();
        gate.flush_all();
        let receipt: String =
            gate.database.query_row("SELECT body FROM receipts", [], |row| row.get(0)).unwrap();
        let receipt: Value = serde_json::from_str(&receipt).unwrap();
        assert_eq!(
            (&receipt["trust"], &receipt["key_id"]),
            (&json!(expected), &json!("@warrant")),
            "{reply}"
        );
    }
}

/// Whatever storage does, an acknowledged write is not repeated with the same proof.
#[test]
fn a_proof_that_storage_may_not_hold_gets_no_answer() {
    for fault in [Fault::Failed, Fault::Lost] {
        for statement in 0..8 {
            let gate = gate(true);
            gate.try_call(&command(&read_call())).unwrap();
            gate.storage.fault.set(Some((statement, fault)));
            let first = gate.try_call(&warranted(&read_call(), 1, now_s()));
            gate.storage.fault.set(None);
            let second = code(&gate, &warranted(&read_call(), 1, now_s()));
            assert!(first.is_err() || second == "warrant_proof_used", "{fault:?} {statement}");
        }
    }
}
