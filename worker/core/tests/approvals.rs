//! The life of an approval in its lane, on real SQLite: each possible course, and random interleavings.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use crate::support::{self, Fault, Gate, START_MS, TENANT, command, read_call, tool, with};
use gateward_core::approval::{
    ApproverGroup, ChangeCommand, ChangeStep, DecideCommand, HeldApproval,
    MAX_APPROVAL_INPUT_BYTES, MAX_OPEN_APPROVALS, VerdictKind,
};
use gateward_core::field::parse_time;
use gateward_core::lane::{DecideOutcome, Lane, StorageError};
use gateward_core::policy::PolicyEngine;
use gateward_core::receipt::{self, GENESIS};
use gateward_core::registry::{EpochPush, ServerStatus};
use gateward_core::sql::d1;
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
use proptest::prelude::*;
use serde_json::{Value, json};

const MINUTE_MS: u64 = 60_000;
const OPEN_MS: u64 = 30 * MINUTE_MS;

/// A refund. More than 500 needs two people of `finance`.
fn refund(amount: u32, approval_id: Option<&str>) -> Value {
    let input = json!({"customer_id": "c", "amount": amount, "currency": "EUR"});
    let call = json!({
        "tool_call": {"tool": "crm", "action": "refund", "mutates_state": true},
        "approval_id": approval_id,
    });
    arguments(with(read_call(), call), input)
}

/// A call that a customer's text caused needs `security`.
fn customers(mut call: Value) -> Value {
    call["context"]["source_trust"] = json!("semi_trusted_customer");
    call
}

/// The call with only these arguments.
fn arguments(mut call: Value, input: Value) -> Value {
    call["tool_call"]["parameters"] = input;
    call
}

fn gate() -> Gate {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    gate.agent_mut().groups = vec!["support".to_owned()];
    gate
}

/// A person who decides: a name and its groups.
type Person = (&'static str, &'static [&'static str]);

const ADA: Person = ("ada", &["finance"]);
const BOB: Person = ("bob", &["finance", "other"]);
const SAM: Person = ("sam", &["security"]);
const PAT: Person = ("pat", &["finance", "security"]);
const EVE: Person = ("eve", &["other"]);
/// The name of the agent itself.
const CODER: Person = ("coder", &["finance", "security"]);

fn verdict(id: &str, person: Person, kind: VerdictKind, body: &Value) -> DecideCommand {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (verdict, comment, action_hash) = kind.read(body.as_bytes()).unwrap();
    DecideCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        approval_id: id.to_owned(),
        administrator: person.0.to_owned(),
        key_id: "ka".to_owned(),
        issued_by: None,
        http_request_id: "test".to_owned(),
        groups: person.1.iter().map(|group| (*group).to_owned()).collect(),
        epoch: 1,
        verdict,
        comment,
        action_hash,
        if_match: None,
    }
}

fn try_decide(gate: &Gate, command: &DecideCommand) -> Result<DecideOutcome, StorageError> {
    let now_ms = gate.now_ms.get();
    gate.on_lane(|lane, storage| {
        lane.adopt(storage, TENANT, 0)?;
        lane.decide_approval(storage, &gate.config, command, 1, now_ms)
    })
}

/// Status and the approval, or the problem's code.
fn decide(gate: &Gate, command: &DecideCommand) -> (u16, Value) {
    match try_decide(gate, command).unwrap() {
        DecideOutcome::Done { body, .. } => (200, serde_json::from_str(&body).unwrap()),
        DecideOutcome::Outdated => (425, Value::Null),
        DecideOutcome::Refused(problem) => (problem.code.status(), json!(problem.code.code())),
    }
}

fn approve(gate: &Gate, id: &str, person: Person) -> (u16, Value) {
    decide(gate, &verdict(id, person, VerdictKind::Approve, &Value::Null))
}

fn held(gate: &Gate, id: &str) -> HeldApproval {
    gate.on_lane(|_, storage| Lane::approval(storage, id)).unwrap().unwrap()
}

/// The approval that a call asks for.
fn asked(gate: &Gate, call: &Value) -> String {
    let (_, answer) = gate.call(call);
    assert_eq!(answer["decision"], "require_approval", "{answer}");
    answer["approval"]["approval_id"].as_str().unwrap().to_owned()
}

#[test]
fn metrics_count_the_steps_of_an_approval_and_the_time_to_decide() {
    let gate = gate();
    let approved = asked(&gate, &refund(900, None));
    let rejected = asked(&gate, &refund(901, None));
    gate.now_ms.set(gate.now_ms.get() + 10 * MINUTE_MS);
    approve(&gate, &approved, ADA);
    approve(&gate, &approved, BOB);
    decide(&gate, &verdict(&rejected, ADA, VerdictKind::Reject, &json!({"comment": "no"})));
    gate.flush_all();
    let counters = gate.counters();
    for (series, count) in [
        (r#"approvals ["approval_requested"] []"#, 2),
        (r#"approvals ["approval_endorsed"] []"#, 1),
        (r#"approvals ["approval_approved"] []"#, 1),
        (r#"approvals ["approval_rejected"] []"#, 1),
        (r#"approval_ms ["approval_approved",900000] []"#, 1),
        (r#"approval_ms ["approval_rejected",900000] []"#, 1),
    ] {
        assert_eq!(counters.get(series), Some(&count), "{series} {counters:#?}");
    }
}

/// An approval that two people have approved.
fn granted(gate: &Gate, amount: u32) -> String {
    let id = asked(gate, &refund(amount, None));
    assert_eq!(approve(gate, &id, ADA).1["status"], "pending");
    assert_eq!(approve(gate, &id, BOB).1["status"], "approved");
    id
}

fn expire(gate: &Gate) {
    let now_ms = gate.now_ms.get();
    let expired = gate.on_lane(|lane, storage| {
        lane.adopt(storage, TENANT, 0)?;
        lane.expire_approvals(storage, &gate.config, now_ms)
    });
    expired.unwrap();
}

fn outcome(gate: &Gate, call: &Value) -> (String, String) {
    let (_, answer) = gate.call(call);
    let text = |field: &str| answer[field].as_str().unwrap().to_owned();
    (text("decision"), text("reason_code"))
}

fn expect(gate: &Gate, call: &Value, decision: &str, code: &str) {
    assert_eq!(outcome(gate, call), (decision.to_owned(), code.to_owned()));
}

fn audited(gate: &Gate, kind: &str) -> i64 {
    gate.flush_all();
    gate.count(&format!("SELECT count(*) FROM audit_events WHERE kind = '{kind}'"))
}

#[test]
fn an_approved_call_passes_once() {
    let gate = gate();
    let id = granted(&gate, 600);
    expect(&gate, &refund(600, Some(&id)), "allow", "approval_granted");
    expect(&gate, &refund(600, Some(&id)), "deny", "approval_used");
    assert!(held(&gate, &id).approval.used_by.is_some());
}

#[test]
fn an_approved_call_uses_its_limit_when_it_is_made() {
    let mut gate = gate();
    gate.agent_mut().limits = support::daily(1);
    let ids = [granted(&gate, 600), granted(&gate, 601)];
    expect(&gate, &refund(600, Some(&ids[0])), "allow", "approval_granted");
    expect(&gate, &refund(601, Some(&ids[1])), "deny", "quota_exhausted");
    // The denial did not use the approval.
    gate.agent_mut().limits = support::daily(2);
    expect(&gate, &refund(601, Some(&ids[1])), "allow", "approval_granted");
}

#[test]
fn each_state_of_an_approval_has_its_answer_at_use() {
    type Make = fn(&Gate) -> String;
    let cases: [(&str, Make, &str); 8] = [
        ("approval_pending", |g| asked(g, &refund(600, None)), "require_approval"),
        (
            "approval_pending",
            |g| {
                let id = asked(g, &refund(600, None));
                approve(g, &id, ADA);
                id
            },
            "require_approval",
        ),
        ("approval_granted", |g| granted(g, 600), "allow"),
        ("approval_mismatch", |g| granted(g, 700), "deny"),
        ("approval_unknown", |_| "appr_0_77".to_owned(), "deny"),
        (
            "approval_rejected",
            |g| {
                let id = asked(g, &refund(600, None));
                decide(g, &verdict(&id, ADA, VerdictKind::Reject, &Value::Null));
                id
            },
            "deny",
        ),
        (
            "approval_cancelled",
            |g| {
                let id = granted(g, 600);
                decide(g, &verdict(&id, EVE, VerdictKind::Cancel, &Value::Null));
                id
            },
            "deny",
        ),
        (
            "approval_expired",
            |g| {
                let id = granted(g, 600);
                g.now_ms.set(g.now_ms.get() + OPEN_MS);
                id
            },
            "deny",
        ),
    ];
    for (code, make, decision) in cases {
        for evicted in [false, true] {
            let gate = gate();
            let id = make(&gate);
            if evicted {
                gate.flush_all();
                gate.evict();
            }
            expect(&gate, &refund(600, Some(&id)), decision, code);
        }
    }
}

#[test]
fn an_approval_is_its_agents_only() {
    let mut gate = gate();
    let id = granted(&gate, 600);
    gate.credential_mut().agent = Some("other".to_owned());
    let call = with(refund(600, Some(&id)), json!({"agent": {"id": "other"}}));
    expect(&gate, &call, "deny", "approval_unknown");
    assert_eq!(held(&gate, &id).approval.tampering, 0);
}

#[test]
fn who_decides_must_be_of_a_group_that_is_asked_and_not_the_agent() {
    let gate = gate();
    let id = asked(&gate, &refund(600, None));
    for (person, status) in [(EVE, 403), (CODER, 403), (SAM, 403), (ADA, 200)] {
        for kind in [VerdictKind::Approve, VerdictKind::Reject] {
            if status == 403 {
                let (refused, code) = decide(&gate, &verdict(&id, person, kind, &Value::Null));
                assert_eq!((refused, code), (403, json!("forbidden")), "{person:?}");
            }
        }
        if status == 200 {
            assert_eq!(approve(&gate, &id, person).0, 200);
        }
    }
    assert_eq!(approve(&gate, "appr_0_99", ADA), (404, json!("not_found")));
}

#[test]
fn the_same_person_twice_counts_once_and_is_told() {
    let gate = gate();
    let id = asked(&gate, &refund(600, None));
    let (_, first) = approve(&gate, &id, ADA);
    let (_, second) = approve(&gate, &id, ADA);
    assert_eq!(
        (&first["already_decided"], &second["already_decided"]),
        (&json!(false), &json!(true))
    );
    assert_eq!((&second["status"], &second["revision"]), (&json!("pending"), &first["revision"]));
    let (_, granted) = approve(&gate, &id, BOB);
    assert_eq!(granted["status"], "approved");
    assert_eq!(approve(&gate, &id, BOB).1["already_decided"], true);
    assert_eq!(approve(&gate, &id, PAT), (409, json!("state_conflict")));
    assert_eq!(audited(&gate, "approval_endorsed"), 1);
    assert_eq!(audited(&gate, "approval_approved"), 1);
}

#[test]
fn when_several_policies_ask_all_their_groups_must_approve() {
    let gate = gate();
    let id = asked(&gate, &customers(refund(600, None)));
    let groups = json!([{"group": "finance", "quorum": 2}, {"group": "security", "quorum": 1}]);
    let (_, first) = approve(&gate, &id, PAT);
    assert_eq!((&first["approver_groups"], &first["status"]), (&groups, &json!("pending")));
    assert_eq!(first["approvers"][0]["groups"], json!(["finance", "security"]));
    // This group already has enough approvals, so there are never more approvers than needed.
    assert_eq!(approve(&gate, &id, SAM), (409, json!("state_conflict")));
    assert_eq!(approve(&gate, &id, ADA).1["status"], "approved");
    expect(&gate, &customers(refund(600, Some(&id))), "allow", "approval_granted");
}

#[test]
fn at_use_the_policies_may_ask_for_more_than_there_is() {
    let gate = gate();
    let id = granted(&gate, 600);
    expect(&gate, &customers(refund(600, Some(&id))), "deny", "approval_insufficient");
    expect(&gate, &refund(600, Some(&id)), "allow", "approval_granted");
}

#[test]
fn at_use_everything_is_checked_again_and_what_is_denied_uses_nothing() {
    type Change = fn(&mut Gate);
    let cases: [(Change, &str); 5] = [
        (|g| g.agent_mut().groups.clear(), "policy_forbid"),
        (|g| g.records.server = support::server(ServerStatus::Disabled), "tool_inactive"),
        (|g| g.records.tenant = support::tenant("suspended"), "tenant_inactive"),
        (|g| g.agent_mut().limits = support::daily(0), "quota_exhausted"),
        (|g| g.credential_mut().scopes.clear(), "scope_missing"),
    ];
    for (change, code) in cases {
        let mut gate = gate();
        let id = granted(&gate, 600);
        change(&mut gate);
        expect(&gate, &refund(600, Some(&id)), "deny", code);
        assert_eq!(held(&gate, &id).approval.used_by, None, "{code}");
    }
}

#[test]
fn at_use_policies_see_who_approved_and_how_long_ago() {
    const POLICIES: &str = r#"
        @id("ask") @decision("require_approval") @approver_group("finance")
        permit (principal, action in Action::"write", resource);
        @id("stale")
        forbid (principal, action, resource)
        when { context.approval.granted && context.approval.age_s >= 60 };
        @id("never-by-ada-alone")
        forbid (principal, action, resource)
        when { context.approval.granted && context.approval.approvers == ["ada"] };
        @id("nobody-before")
        forbid (principal, action, resource)
        when { !context.approval.granted
          && (context.approval.age_s != 0 || context.approval.approvers != []) };
    "#;
    let policies = vec![SourceFile { path: "base/x.cedar".to_owned(), text: POLICIES.to_owned() }];
    let sources = Sources { policies, ..Sources::default() };
    for (person, wait_ms, decision, code) in [
        (BOB, 59_999, "allow", "approval_granted"),
        (BOB, 60_000, "deny", "policy_forbid"),
        (ADA, 0, "deny", "policy_forbid"),
    ] {
        let mut gate = gate();
        gate.engine = Rc::new(PolicyEngine::new(compile_unvalidated(&sources).unwrap().leak()));
        let id = asked(&gate, &read_call());
        gate.now_ms.set(gate.now_ms.get() + MINUTE_MS);
        assert_eq!(approve(&gate, &id, person).1["status"], "approved");
        gate.now_ms.set(gate.now_ms.get() + wait_ms);
        expect(&gate, &with(read_call(), json!({"approval_id": id})), decision, code);
    }
}

#[test]
fn another_call_consumes_nothing_is_audited_and_the_fifth_cancels() {
    let gate = gate();
    let id = granted(&gate, 600);
    let probe = with(refund(601, Some(&id)), json!({"dry_run": true}));
    expect(&gate, &probe, "deny", "approval_mismatch");
    for tried in 1..=5 {
        let status = held(&gate, &id).approval.status.as_str();
        assert_eq!(status, "approved", "before {tried}");
        expect(&gate, &refund(600 + tried, Some(&id)), "deny", "approval_mismatch");
        assert_eq!(audited(&gate, "approval_tampered"), i64::from(tried));
    }
    expect(&gate, &refund(600, Some(&id)), "deny", "approval_cancelled");
    // Even if the arguments do not match the tool.
    let id = granted(&gate, 600);
    let misfit = arguments(refund(600, Some(&id)), json!({"amount": "much"}));
    expect(&gate, &misfit, "deny", "approval_mismatch");
}

#[test]
fn tampering_is_noticed_whatever_else_denies_the_call() {
    type Change = fn(&mut Gate);
    let cases: [Change; 4] = [
        |g| g.records.tool = None,
        |g| g.agent_mut().allowed_tools = Some(Vec::new()),
        |g| g.agent_mut().limits = support::daily(0),
        |g| g.credential_mut().scopes.clear(),
    ];
    for (at, change) in cases.into_iter().enumerate() {
        let mut gate = gate();
        let id = granted(&gate, 600);
        change(&mut gate);
        gate.call(&refund(601, Some(&id)));
        assert_eq!(audited(&gate, "approval_tampered"), 1, "{at}");
    }
}

#[test]
fn a_lane_whose_storage_is_full_still_ends_approvals_and_so_empties_it() {
    let gate = gate();
    let ids: Vec<String> = (0..4).map(|_| asked(&gate, &refund(600, None))).collect();
    gate.storage.size_bytes.set(u64::MAX);
    gate.evict();
    assert_eq!(approve(&gate, &ids[0], ADA), (503, json!("journal_full")));
    for (id, kind) in [(&ids[0], VerdictKind::Reject), (&ids[1], VerdictKind::Cancel)] {
        assert_eq!(decide(&gate, &verdict(id, ADA, kind, &Value::Null)).0, 200);
    }
    gate.now_ms.set(gate.now_ms.get() + OPEN_MS);
    // Arguments of a closed approval are not shown, whether its end was written or not.
    let over = held(&gate, &ids[2]);
    let view = json!(over.approval.view(&over.input, gate.now_ms.get(), false));
    assert_eq!((&view["status"], &view["input"]), (&json!("expired"), &Value::Null));
    expire(&gate);
    let kept = "SELECT count(*) FROM approvals WHERE input IS NOT NULL";
    let kept: i64 = gate.storage.connection.query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, 0);
}

#[test]
fn a_row_that_older_code_journalled_is_flushed_and_its_approval_forgotten() {
    let gate = gate();
    let row = json!({
        "seq": 1, "at_ms": 5, "decision_id": "d", "agent": "coder", "server": "s", "tool": "t",
        "decision": "require_approval", "reason_code": "policy_require_approval", "response": "{}",
        "receipt": "{}", "receipt_hash": "0".repeat(64), "prev_receipt_hash": GENESIS,
        "approval": {"approval_id": "appr_0_1", "approver_group": "security", "quorum": 1,
            "action_hash": "0".repeat(64), "expires_at_ms": 6},
    });
    let rows = json!([row]).to_string();
    gate.database.execute(d1::FLUSH_ROWS, rusqlite::params![TENANT, 0, rows, None::<i64>]).unwrap();
    assert_eq!(gate.count("SELECT count(*) FROM receipts"), 1);
    assert_eq!(gate.count("SELECT count(*) FROM approvals"), 0);
    assert_eq!(gate.count("SELECT count(*) FROM approval_groups"), 0);
}

#[test]
fn a_trap_springs_whatever_approval_is_presented() {
    let mut gate = gate();
    gate.records.tool = tool(false, true);
    let call = with(read_call(), json!({"approval_id": "appr_0_1"}));
    expect(&gate, &call, "quarantine", "policy_quarantine");
}

#[test]
fn an_edited_call_alone_is_good_and_its_earlier_approvals_are_forgotten() {
    let gate = gate();
    let id = asked(&gate, &refund(600, None));
    approve(&gate, &id, ADA);
    let edit = json!({"edit": {"amount": 550}, "comment": "less"});
    let (_, edited) = decide(&gate, &verdict(&id, BOB, VerdictKind::Approve, &edit));
    assert_eq!(edited["status"], "pending");
    assert_eq!(edited["approvers"].as_array().unwrap().len(), 1);
    assert_eq!(edited["input"]["amount"], 600);
    assert_eq!(
        edited["edited"]["input"],
        json!({"amount": 550, "currency": "EUR", "customer_id": "c"})
    );
    let hash = hex::encode(command(&refund(550, None)).call.action_hash);
    assert_eq!(edited["edited"]["action_hash"], hash);
    // A decision that names another hash than the edited call's, or no hash, approves nothing.
    for body in [json!({"action_hash": edited["action_hash"]}), json!({})] {
        let unseen = decide(&gate, &verdict(&id, ADA, VerdictKind::Approve, &body));
        assert_eq!(unseen, (409, json!("state_conflict")));
    }
    let seen = json!({"action_hash": hash});
    let (_, granted) = decide(&gate, &verdict(&id, ADA, VerdictKind::Approve, &seen));
    assert_eq!(granted["status"], "approved");
    // The agent may not know of the edit, so this is not tampering.
    for _ in 0..6 {
        expect(&gate, &refund(600, Some(&id)), "deny", "approval_mismatch");
    }
    assert_eq!(audited(&gate, "approval_tampered"), 0);
    expect(&gate, &refund(550, Some(&id)), "allow", "approval_granted");
}

#[test]
fn an_edit_is_a_merge_patch_within_the_bounds() {
    // RFC 7396, appendix A, as far as tools can have such arguments.
    for (target, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        let gate = gate();
        let call = arguments(customers(read_call()), target.clone());
        let id = asked(&gate, &call);
        let edit = json!({"edit": patch});
        let (status, edited) = decide(&gate, &verdict(&id, SAM, VerdictKind::Approve, &edit));
        assert_eq!((status, &edited["edited"]["input"]), (200, &expected), "{target} {patch}");
    }
    let gate = gate();
    let id = asked(&gate, &refund(600, None));
    let large = "x".repeat(MAX_APPROVAL_INPUT_BYTES);
    let command = verdict(&id, ADA, VerdictKind::Approve, &json!({"edit": {"a": large}}));
    assert_eq!(decide(&gate, &command), (422, json!("invalid_field")));
    assert_eq!(held(&gate, &id).approval.revision, 1);
}

#[test]
fn a_decision_on_what_was_read_before_a_change_is_refused() {
    let gate = gate();
    let id = asked(&gate, &refund(600, None));
    for (tags, expected) in
        [("\"2\"", 412), ("\"0\", \"x\"", 412), ("\"7\", \"1\"", 200), ("*", 200)]
    {
        let mut command = verdict(&id, ADA, VerdictKind::Approve, &Value::Null);
        command.if_match = Some(tags.to_owned());
        assert_eq!(decide(&gate, &command).0, expected, "{tags}");
    }
    // A person who got no answer may repeat the decision. Another person may not decide on the old revision.
    for (person, kind, expected) in [
        (ADA, VerdictKind::Approve, 200),
        (BOB, VerdictKind::Approve, 412),
        (ADA, VerdictKind::Cancel, 412),
        // A person who may not decide does not learn the revision.
        (EVE, VerdictKind::Approve, 403),
    ] {
        let mut command = verdict(&id, person, kind, &Value::Null);
        command.if_match = Some("\"1\"".to_owned());
        assert_eq!(decide(&gate, &command).0, expected, "{person:?} {kind:?}");
    }
}

#[test]
fn a_decision_that_was_checked_at_an_older_epoch_is_refused_also_after_an_eviction() {
    let gate = gate();
    let id = asked(&gate, &refund(600, None));
    gate.on_lane(|_, storage| Lane::take_push(storage, &EpochPush::whole(5))).unwrap();
    // Late messages change nothing.
    gate.on_lane(|_, storage| Lane::take_push(storage, &EpochPush::whole(4))).unwrap();
    gate.evict();
    let mut command = verdict(&id, ADA, VerdictKind::Approve, &Value::Null);
    for (epoch, expected) in [(4, 425), (5, 200), (6, 200)] {
        command.epoch = epoch;
        assert_eq!(decide(&gate, &command).0, expected, "{epoch}");
    }
}

#[test]
fn what_is_closed_stays_closed_and_its_arguments_are_dropped() {
    type Close = fn(&Gate, &str);
    let cases: [(&str, Close); 4] = [
        ("rejected", |g, id| drop(decide(g, &verdict(id, ADA, VerdictKind::Reject, &Value::Null)))),
        ("cancelled", |g, id| {
            drop(decide(g, &verdict(id, ADA, VerdictKind::Cancel, &Value::Null)))
        }),
        ("expired", |g, _| {
            g.now_ms.set(g.now_ms.get() + OPEN_MS);
            expire(g);
        }),
        ("used", |g, id| {
            let edit = json!({"edit": {"amount": 550}});
            let (_, edited) = decide(g, &verdict(id, ADA, VerdictKind::Approve, &edit));
            let seen = json!({"action_hash": edited["edited"]["action_hash"]});
            decide(g, &verdict(id, BOB, VerdictKind::Approve, &seen));
            expect(g, &refund(550, Some(id)), "allow", "approval_granted");
        }),
    ];
    for (status, close) in cases {
        let gate = gate();
        let id = asked(&gate, &refund(600, None));
        assert!(held(&gate, &id).input.asked.is_some());
        close(&gate, &id);
        let closed = held(&gate, &id);
        assert_eq!((closed.approval.status.as_str(), &closed.input), (status, &Default::default()));
        for kind in [VerdictKind::Approve, VerdictKind::Reject, VerdictKind::Cancel] {
            let (refused, _) = decide(&gate, &verdict(&id, BOB, kind, &Value::Null));
            assert_eq!(refused, 409, "{status} {kind:?}");
        }
        gate.flush_all();
        let rows = gate.text("SELECT group_concat(record) FROM approvals");
        assert!(!rows.contains("customer_id"), "{rows}");
        assert_eq!(gate.text("SELECT status FROM approvals"), status);
    }
}

#[test]
fn expiry_is_an_event_of_the_lane() {
    let mut gate = gate();
    let first = asked(&gate, &refund(600, None));
    gate.tool_mut().approval_ttl_s = Some(90);
    let short = asked(&gate, &refund(700, None));
    let due = |gate: &Gate| gate.on_lane(|_, storage| Lane::next_expiry(storage)).unwrap();
    assert_eq!(due(&gate), Some(START_MS + 90_000));
    gate.now_ms.set(START_MS + 89_999);
    expire(&gate);
    assert_eq!(audited(&gate, "approval_expired"), 0);
    gate.now_ms.set(START_MS + 90_000);
    assert_eq!(approve(&gate, &short, ADA), (409, json!("state_conflict")));
    expire(&gate);
    assert_eq!(audited(&gate, "approval_expired"), 1);
    assert_eq!(held(&gate, &short).approval.status.as_str(), "expired");
    assert_eq!(due(&gate), Some(START_MS + OPEN_MS));
    decide(&gate, &verdict(&first, ADA, VerdictKind::Cancel, &Value::Null));
    assert_eq!(due(&gate), None);
}

#[test]
fn ten_thousand_approvals_wait_and_each_agent_has_its_bound() {
    let mut gate = gate();
    let agents = 10_000 / MAX_OPEN_APPROVALS;
    let mut last = String::new();
    for agent in 0..agents {
        let name = format!("agent-{agent}");
        gate.credential_mut().agent = Some(name.clone());
        let call = with(refund(600, None), json!({"agent": {"id": name}}));
        for _ in 0..MAX_OPEN_APPROVALS {
            last = asked(&gate, &call);
        }
        expect(&gate, &call, "deny", "approvals_exhausted");
    }
    gate.evict();
    let name = format!("agent-{}", agents - 1);
    let call = with(refund(600, None), json!({"agent": {"id": name}}));
    expect(&gate, &call, "deny", "approvals_exhausted");
    // When one is closed, there is space for another one.
    decide(&gate, &verdict(&last, ADA, VerdictKind::Reject, &Value::Null));
    asked(&gate, &call);
    gate.now_ms.set(gate.now_ms.get() + OPEN_MS);
    let open = "SELECT count(*) FROM approvals WHERE closed_at_ms IS NULL";
    let open = || -> i64 { gate.storage.connection.query_row(open, [], |row| row.get(0)).unwrap() };
    assert_eq!(open(), 10_000);
    while open() > 0 {
        expire(&gate);
    }
    asked(&gate, &call);
}

#[test]
fn arguments_too_large_to_read_are_not_asked_for() {
    let gate = gate();
    let large = |bytes: usize| {
        // `{"a":""}` takes the rest of the bytes.
        let input = json!({"a": "x".repeat(bytes - 8)});
        arguments(customers(read_call()), input)
    };
    asked(&gate, &large(MAX_APPROVAL_INPUT_BYTES));
    expect(&gate, &large(MAX_APPROVAL_INPUT_BYTES + 1), "deny", "approval_input_too_large");
}

#[test]
fn a_repeated_request_gets_its_stored_answer_and_uses_nothing_more() {
    let gate = gate();
    let (first, second) = (granted(&gate, 600), granted(&gate, 600));
    let request =
        |id: &str, request: &str| with(refund(600, Some(id)), json!({"request_id": request}));
    let answer = gate.call(&request(&first, "r1"));
    assert_eq!(gate.call(&request(&first, "r1")), answer);
    let (status, conflict) = gate.call(&request(&second, "r1"));
    assert_eq!((status, &conflict["code"]), (409, &json!("request_id_conflict")));
    expect(&gate, &request(&second, "r2"), "allow", "approval_granted");
}

#[test]
fn every_step_has_a_receipt_in_the_chain_and_a_use_is_written_with_its_decision() {
    let gate = gate();
    let id = granted(&gate, 600);
    gate.call(&refund(601, Some(&id)));
    gate.call(&refund(600, Some(&id)));
    gate.flush_all();
    let receipts = gate.receipts();
    assert_eq!(receipt::verify(&receipts, 1, Some(GENESIS)), Ok(()));
    let told: Vec<String> = receipts
        .iter()
        .map(|receipt| {
            let body: Value = serde_json::from_str(&receipt.body).unwrap();
            let what = if body["kind"] == "decision" { &body["decision"] } else { &body["change"] };
            assert_eq!(body["approval_id"], id.as_str());
            what.as_str().unwrap().to_owned()
        })
        .collect();
    let expected = [
        "require_approval",
        "approval_endorsed",
        "approval_approved",
        "deny",
        "approval_tampered",
        "allow",
        "approval_used",
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_use_that_breaks_anywhere_passes_once_or_not_at_all() {
    for fault in [Fault::Failed, Fault::Lost] {
        for at in 0..4 {
            let gate = gate();
            let id = granted(&gate, 600);
            gate.storage.fault.set(Some((at, fault)));
            let first = gate.try_call(&command(&refund(600, Some(&id))));
            gate.storage.fault.set(None);
            let (_, second) = outcome(&gate, &refund(600, Some(&id)));
            let used = fault == Fault::Lost && first.is_err();
            let expected = if used || first.is_ok() { "approval_used" } else { "approval_granted" };
            assert_eq!(second, expected, "{fault:?} {at}");
        }
    }
}

/// One thing that happens to a lane with approvals.
#[derive(Debug, Clone)]
enum Event {
    /// A call with one of a few amounts, and with one of the approvals or none.
    Call {
        amount: u32,
        approval: Option<usize>,
        dry_run: bool,
    },
    /// A person's decision on one of the approvals; an amount that it is edited to.
    Decide {
        approval: usize,
        person: usize,
        kind: u8,
        amount: Option<u32>,
    },
    Wait(u64),
    Expire,
    Evict,
    Flush(Option<Fault>),
    StorageFault(u32, Fault),
}

const PEOPLE: [Person; 4] = [ADA, BOB, PAT, EVE];
const AMOUNTS: [u32; 3] = [600, 700, 800];

fn event() -> impl Strategy<Value = Event> {
    let fault = || prop_oneof![Just(Fault::Failed), Just(Fault::Lost)];
    let amount = || prop::sample::select(AMOUNTS.to_vec());
    let call = (amount(), prop::option::weighted(0.7, 0usize..4), prop::bool::weighted(0.1));
    let decision = (0usize..4, 0..PEOPLE.len(), 0u8..12, prop::option::weighted(0.2, amount()));
    prop_oneof![
        6 => call.prop_map(|(amount, approval, dry_run)| Event::Call { amount, approval, dry_run }),
        8 => decision.prop_map(|(approval, person, kind, amount)| Event::Decide { approval, person, kind, amount }),
        1 => (0..OPEN_MS).prop_map(Event::Wait),
        1 => Just(Event::Expire),
        1 => Just(Event::Evict),
        1 => prop::option::of(fault()).prop_map(Event::Flush),
        1 => (0u32..6, fault()).prop_map(|(at, fault)| Event::StorageFault(at, fault)),
    ]
}

/// What the chain says about one approval so far.
#[derive(Debug, Default)]
struct Told {
    asked_at: String,
    /// Who approved which hash, since this hash has been the valid one.
    approvers: BTreeSet<String>,
    hash: String,
    closed: bool,
    used: u32,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Any interleaving of asking, approving, editing, rejecting, expiring, using, evictions,
    /// flushes and faults, judged by the chain alone: an approval is used at most once, only for
    /// the hash that two people approved, only while it is open, and by a decision that allows.
    #[test]
    fn an_approval_is_used_at_most_once_and_never_without_the_approvals_that_it_needs(
        events in prop::collection::vec(event(), 1..60),
    ) {
        let gate = gate();
        let mut ids: Vec<String> = Vec::new();
        let mut allowed = 0;
        for event in events {
            match event {
                Event::Wait(ms) => gate.now_ms.set(gate.now_ms.get() + ms),
                Event::Evict => gate.evict(),
                Event::Flush(fault) => drop(gate.flush(fault)),
                Event::StorageFault(at, fault) => gate.storage.fault.set(Some((at, fault))),
                Event::Expire => {
                    let now_ms = gate.now_ms.get();
                    drop(gate.on_lane(|lane, storage| lane.expire_approvals(storage, &gate.config, now_ms)));
                }
                Event::Call { amount, approval, dry_run } => {
                    let id = approval.and_then(|at| ids.get(at)).cloned();
                    let call = with(refund(amount, id.as_deref()), json!({"dry_run": dry_run}));
                    let Ok(reply) = gate.try_call(&command(&call)) else { continue };
                    let answer: Value = serde_json::from_str(&reply.body).unwrap();
                    let own = answer["approval"]["approval_id"].as_str();
                    if answer["reason_code"] == "policy_require_approval" && !dry_run {
                        ids.push(own.unwrap().to_owned());
                    }
                    if answer["decision"] == "allow" {
                        prop_assert!(id.is_some());
                        allowed += u32::from(!dry_run);
                    }
                }
                Event::Decide { approval, person, kind, amount } => {
                    let Some(id) = ids.get(approval) else { continue };
                    let read = gate.on_lane(|_, storage| Lane::approval(storage, id));
                    let Ok(Some(seen)) = read else { continue };
                    let hash = seen.approval.valid_hash();
                    let (kind, body) = match (kind, amount) {
                        (0, _) => (VerdictKind::Reject, Value::Null),
                        (1, _) => (VerdictKind::Cancel, Value::Null),
                        (2, None) => (VerdictKind::Approve, Value::Null),
                        (_, None) => (VerdictKind::Approve, json!({"action_hash": hash})),
                        (_, Some(amount)) => (
                            VerdictKind::Approve,
                            json!({"edit": {"amount": amount}, "action_hash": hash}),
                        ),
                    };
                    let _ = try_decide(&gate, &verdict(id, PEOPLE[person], kind, &body));
                }
            }
        }
        gate.storage.fault.set(None);
        gate.evict();
        gate.flush_all();
        let receipts = gate.receipts();
        prop_assert_eq!(receipt::verify(&receipts, 1, Some(GENESIS)), Ok(()));
        let bodies: Vec<Value> = receipts.iter().map(|r| serde_json::from_str(&r.body).unwrap()).collect();
        let mut told: HashMap<&str, Told> = HashMap::new();
        for (at, body) in bodies.iter().enumerate() {
            let text = |field: &str| body[field].as_str().unwrap();
            let approval = told.entry(text("approval_id")).or_default();
            match (text("kind"), body["decision"].as_str().or(body["change"].as_str()).unwrap()) {
                ("decision", "require_approval") if approval.asked_at.is_empty() => {
                    approval.asked_at = text("time").to_owned();
                    approval.hash = text("action_hash").to_owned();
                }
                ("decision", "allow") => {
                    prop_assert!(!approval.closed && approval.approvers.len() >= 2, "{:?}", approval);
                    prop_assert_eq!(&approval.hash, text("action_hash"));
                    let open_ms = |time: &str| parse_time(time).unwrap();
                    prop_assert!(open_ms(text("time")) < open_ms(&approval.asked_at) + OPEN_MS);
                    prop_assert_eq!(&bodies[at + 1]["change"], "approval_used");
                    prop_assert_eq!(&bodies[at + 1]["decision_id"], &body["decision_id"]);
                }
                ("decision", _) => {}
                (_, "approval_endorsed" | "approval_approved") => {
                    prop_assert!(!approval.closed);
                    if approval.hash != text("action_hash") {
                        approval.hash = text("action_hash").to_owned();
                        approval.approvers.clear();
                    }
                    let person = PEOPLE.iter().find(|person| person.0 == text("administrator")).unwrap();
                    prop_assert!(person.1.contains(&"finance"));
                    approval.approvers.insert(person.0.to_owned());
                }
                (_, "approval_used") => {
                    approval.used += 1;
                    approval.closed = true;
                }
                (_, "approval_tampered") => approval.closed = body["status"] == "cancelled",
                _ => {
                    prop_assert!(!approval.closed);
                    approval.closed = true;
                }
            }
        }
        prop_assert!(told.values().all(|approval| approval.used <= 1));
        // There can be more uses than answers only if a write was reported as failed.
        prop_assert!(told.values().map(|approval| approval.used).sum::<u32>() >= allowed);
        let state = gate.count("SELECT count(*) FROM approvals WHERE status IN ('pending', 'approved')");
        let open = told.values().filter(|approval| !approval.asked_at.is_empty() && !approval.closed);
        let open = open.count() as i64;
        prop_assert_eq!(state, open);
        let counted = "SELECT coalesce(sum(state->>'open_approvals'), 0) FROM agents";
        let counted: i64 = gate.storage.connection.query_row(counted, [], |row| row.get(0)).unwrap();
        prop_assert_eq!(counted, open);
    }
}

/// An administrator's step of a registry change.
fn change(gate: &Gate, hash: &str, step: ChangeStep) -> Result<String, String> {
    let command = ChangeCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        administrator: "eve".to_owned(),
        key_id: "ke".to_owned(),
        epoch: 1,
        action_hash: hash.to_owned(),
        step,
    };
    let now_ms = gate.now_ms.get();
    let settled = gate.on_lane(|lane, storage| {
        lane.adopt(storage, TENANT, 0)?;
        lane.settle_change(storage, &gate.config, &command, now_ms)
    });
    settled.unwrap().map_err(|problem| problem.code.code().to_owned())
}

/// Has a change wait for two people of `finance`.
fn ask_change(gate: &Gate) -> String {
    let step = ChangeStep::Ask {
        event: "group_member_added".to_owned(),
        resource: "puppet".to_owned(),
        input: r#"{"administrator":"eve"}"#.to_owned(),
        groups: vec![ApproverGroup { group: "finance".to_owned(), quorum: 2 }],
    };
    change(gate, &"a".repeat(64), step).unwrap()
}

fn use_change(gate: &Gate, id: &str, hash: &str) -> Result<String, String> {
    let step = ChangeStep::Use { approval_id: id.to_owned(), request_id: "r".to_owned() };
    change(gate, &hash.repeat(64), step)
}

#[test]
fn a_registry_change_is_approved_as_a_call_is_and_made_once() {
    let gate = gate();
    let id = ask_change(&gate);
    let shown = held(&gate, &id);
    assert_eq!(shown.approval.user_id, "eve");
    assert_eq!(shown.input.asked.as_deref(), Some(r#"{"administrator":"eve"}"#));
    let refused = Err("state_conflict".to_owned());
    assert_eq!(use_change(&gate, &id, "a"), refused, "nobody approved it");
    assert_eq!(approve(&gate, &id, EVE).0, 403, "who asks is not a member");
    let edit = verdict(&id, ADA, VerdictKind::Approve, &json!({"edit": {"administrator": "ada"}}));
    assert_eq!(decide(&gate, &edit), (422, json!("invalid_field")));
    assert_eq!(approve(&gate, &id, ADA).1["status"], "pending");
    assert_eq!(approve(&gate, &id, ADA).1["already_decided"], true, "one person counts once");
    assert_eq!(use_change(&gate, &id, "a"), refused, "one of two");
    gate.flush_all();
    gate.evict();
    let (_, approved) = approve(&gate, &id, BOB);
    assert_eq!(approved["status"], "approved");
    assert_eq!(approved["approvers"][0]["key_id"], "ka");
    assert_eq!(use_change(&gate, &id, "b"), refused, "another change");
    assert_eq!(use_change(&gate, &id, "a"), Ok(id.clone()));
    assert_eq!(use_change(&gate, &id, "a"), refused, "a second time");
    for kind in ["approval_requested", "approval_endorsed", "approval_approved", "approval_used"] {
        assert_eq!(audited(&gate, kind), 1, "{kind}");
    }
    let groups = "SELECT count(*) FROM approval_groups WHERE group_name = 'finance'";
    assert_eq!(gate.count(groups), 1, "lists find it by its group");
    assert_eq!(receipt::verify(&gate.receipts(), 1, Some(GENESIS)), Ok(()));
}

#[test]
fn an_approval_is_good_for_what_it_was_asked_for_and_for_no_other_kind() {
    let gate = gate();
    let call = granted(&gate, 600);
    let hash = held(&gate, &call).approval.action_hash;
    let step = ChangeStep::Use { approval_id: call, request_id: "r".to_owned() };
    assert_eq!(change(&gate, &hash, step), Err("state_conflict".to_owned()), "a call's");
    let id = ask_change(&gate);
    for person in [ADA, BOB] {
        approve(&gate, &id, person);
    }
    expect(&gate, &refund(600, Some(&id)), "deny", "approval_unknown");
    gate.now_ms.set(gate.now_ms.get() + 24 * 60 * MINUTE_MS);
    assert_eq!(use_change(&gate, &id, "a"), Err("state_conflict".to_owned()), "expired");
    assert_eq!(use_change(&gate, "appr_0_99", "a"), Err("not_found".to_owned()));
}

#[test]
fn changes_that_wait_are_bounded() {
    let gate = gate();
    let ids: Vec<String> = (0..MAX_OPEN_APPROVALS).map(|_| ask_change(&gate)).collect();
    let step = ChangeStep::Ask {
        event: "group_deleted".to_owned(),
        resource: String::new(),
        input: "{}".to_owned(),
        groups: Vec::new(),
    };
    assert_eq!(change(&gate, "", step), Err("limit_reached".to_owned()));
    let cancel = verdict(&ids[0], EVE, VerdictKind::Cancel, &Value::Null);
    assert_eq!(decide(&gate, &cancel).0, 200);
    ask_change(&gate);
}
