//! How text of untrusted servers affects an agent's later calls, on a lane with real SQLite.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use crate::support::{Fault, Gate, TENANT, command, read_call, tool, with};
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::gate::proxy::Untrusted;
use gateward_core::gate::{Effect, LaneAction, OutcomeCommand, TaintCommand};
use gateward_core::receipt;
use gateward_core::receipt::Ending;
use gateward_core::registry::{ServerTrust, TaintRule};
use gateward_core::taint::DEFAULT_TAINT_S;
use serde_json::{Value as Json, json};

const ALLOWED: &str = "allow trusted_internal_unsigned";
const HELD: &str = "require_approval untrusted_external";

/// A lane whose tool writes.
fn gate() -> Gate {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    gate
}

fn write(run: &str) -> Json {
    with(read_call(), json!({"tool_call": {"mutates_state": true}, "trace": {"run_id": run}}))
}

/// Decision and trust of a write in a run.
fn outcome(gate: &Gate, run: &str) -> String {
    let (_, answer) = gate.call(&write(run));
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}", text("decision"), text("root_trust_level"))
}

fn set_trust(gate: &mut Gate, trust: ServerTrust) {
    gate.server_mut().trust = trust;
}

/// Reads from an untrusted server in a run. Later calls go to a trusted server again.
fn read_untrusted(gate: &mut Gate, run: &str) {
    set_trust(gate, ServerTrust::Untrusted);
    let before = std::mem::replace(&mut gate.records.tool, tool(false, false));
    let (_, answer) = gate.call(&with(read_call(), json!({"trace": {"run_id": run}})));
    assert_eq!(answer["decision"], "allow");
    gate.records.tool = before;
    set_trust(gate, ServerTrust::Trusted);
}

fn be_harness(gate: &mut Gate) {
    gate.credential_mut().assigns_runs = true;
}

/// The attack: an agent reads a public page in one run and writes in another, or in none.
#[test]
fn an_agent_that_names_another_run_stays_tainted() {
    let mut gate = gate();
    assert_eq!(outcome(&gate, "r1"), ALLOWED);
    read_untrusted(&mut gate, "r1");
    for evicted in [false, true] {
        if evicted {
            gate.flush_all();
            gate.evict();
        }
        for run in ["r1", "r2", ""] {
            assert_eq!(outcome(&gate, run), HELD, "{run} evicted: {evicted}");
        }
    }
}

#[test]
fn an_agent_that_lies_about_everything_it_may_state_gets_nothing_written() {
    let mut gate = gate();
    read_untrusted(&mut gate, "r1");
    for lie in [
        json!({"context": {"source_trust": "trusted_internal_signed"}}),
        json!({"trace": {"run_id": "fresh", "root_trust_level": "trusted_internal_signed"}}),
        json!({"user": {"id": "root", "role": "administrator"}}),
        json!({"tool_call": {"mutates_state": false}}),
        json!({"request_id": "never-used"}),
        json!({"approval_id": "appr_0_1"}),
    ] {
        let (_, answer) = gate.call(&with(write("r2"), lie.clone()));
        assert_ne!(answer["decision"], "allow", "{lie}: {answer}");
    }
}

#[test]
fn a_call_that_does_not_reach_the_server_taints_nothing() {
    let mut gate = gate();
    set_trust(&mut gate, ServerTrust::Untrusted);
    for change in [
        json!({"dry_run": true}),
        json!({"context": {"source_trust": "unknown"}}),
        json!({"context": {"source_trust": "semi_trusted_customer"}}),
    ] {
        gate.call(&with(write(""), change));
    }
    set_trust(&mut gate, ServerTrust::Trusted);
    assert_eq!(outcome(&gate, ""), ALLOWED);
}

#[test]
fn only_the_runs_of_a_harness_are_told_apart() {
    let mut gate = gate();
    be_harness(&mut gate);
    read_untrusted(&mut gate, "r1");
    for (run, expected) in [("r1", HELD), ("r2", ALLOWED), ("", HELD)] {
        assert_eq!(outcome(&gate, run), expected, "{run}");
    }
    // Another credential of the same agent does not belong to a harness, so its calls may be of any run.
    gate.credential_mut().assigns_runs = false;
    assert_eq!(outcome(&gate, "r2"), HELD);
}

#[test]
fn what_is_stated_to_be_untrusted_is_denied_and_what_is_only_tainted_waits_for_a_person() {
    let mut gate = gate();
    read_untrusted(&mut gate, "");
    for (stated, expected, policy) in [
        ("trusted_internal_unsigned", "require_approval", "tainted-writes-need-known-destinations"),
        ("semi_trusted_customer", "require_approval", "customer-writes-need-approval"),
        ("untrusted_external", "deny", "untrusted-never-writes"),
        ("unknown", "deny", "untrusted-never-writes"),
    ] {
        let (_, answer) = gate.call(&with(write(""), json!({"context": {"source_trust": stated}})));
        assert_eq!(answer["decision"], expected, "{stated}");
        let policies = answer["matched_policies"].to_string();
        assert!(policies.contains(policy), "{stated}: {policies}");
    }
    gate.records.tool = tool(false, false);
    assert_eq!(gate.call(&read_call()).1["decision"], "allow", "reading goes on");
    gate.tool_mut().egress = true;
    assert_eq!(
        gate.call(&read_call()).1["decision"],
        "require_approval",
        "sending text out does not"
    );
}

#[test]
fn a_tools_registration_says_what_tainted_calls_of_it_need() {
    for (rule, mutates, clean, tainted) in [
        (TaintRule::Allow, true, "allow", "allow"),
        (TaintRule::RequireApproval, true, "allow", "require_approval"),
        (TaintRule::DenyUnknown, true, "allow", "deny"),
        (TaintRule::Forbid, true, "allow", "deny"),
        (TaintRule::RequireApproval, false, "allow", "allow"),
        (TaintRule::DenyUnknown, false, "allow", "allow"),
        (TaintRule::Forbid, false, "allow", "deny"),
    ] {
        let mut gate = gate();
        gate.records.tool = tool(mutates, false);
        gate.tool_mut().tainted = rule;
        let call = |gate: &Gate| {
            let body = with(write(""), json!({"tool_call": {"mutates_state": mutates}}));
            gate.call(&body).1["decision"].clone()
        };
        assert_eq!(call(&gate), clean, "{rule:?} {mutates}");
        read_untrusted(&mut gate, "");
        assert_eq!(call(&gate), tainted, "{rule:?} {mutates}");
    }
}

#[test]
fn taint_ends_after_the_tenants_period() {
    for (registered, period_s) in [(None, u64::from(DEFAULT_TAINT_S)), (Some(60), 60)] {
        let mut gate = gate();
        gate.tenant_mut().settings.taint_s = registered;
        read_untrusted(&mut gate, "");
        let start_ms = gate.now_ms.get();
        for (later_ms, expected) in [(period_s * 1_000 - 1, HELD), (period_s * 1_000, ALLOWED)] {
            gate.now_ms.set(start_ms + later_ms);
            assert_eq!(outcome(&gate, ""), expected, "{registered:?} {later_ms}");
        }
    }
}

#[test]
fn an_administrator_lifts_taint_once_and_nothing_that_came_after() {
    let mut gate = gate();
    read_untrusted(&mut gate, "");
    assert_eq!(gate.carry_out("coder", LaneAction::Untaint, 5), Ok(Ok(())));
    assert_eq!(outcome(&gate, ""), ALLOWED);
    gate.evict();
    assert_eq!(outcome(&gate, ""), ALLOWED, "evicted");
    read_untrusted(&mut gate, "");
    // The same command again, from a caller that got no answer.
    assert_eq!(gate.carry_out("coder", LaneAction::Untaint, 5), Ok(Ok(())));
    assert_eq!(outcome(&gate, ""), HELD);
    assert_eq!(gate.carry_out("coder", LaneAction::Untaint, 6), Ok(Ok(())));
    assert_eq!(outcome(&gate, ""), ALLOWED);
    // The same for a command that had nothing to lift.
    assert_eq!(gate.carry_out("coder", LaneAction::Untaint, 7), Ok(Ok(())));
    read_untrusted(&mut gate, "");
    assert_eq!(gate.carry_out("coder", LaneAction::Untaint, 7), Ok(Ok(())));
    assert_eq!(outcome(&gate, ""), HELD);
    gate.flush_all();
    assert_eq!(receipt::verify(&gate.receipts(), 1, Some(receipt::GENESIS)), Ok(()));
    let changes = "SELECT group_concat(body->>'change' || ' ' || (body->>'administrator')) \
        FROM receipts WHERE kind = 'registry'";
    assert_eq!(gate.text(changes), "agent_untainted ada,agent_untainted ada,agent_untainted ada");
    let events =
        "SELECT count(*) FROM audit_events WHERE kind = 'agent_untainted' AND source = 'ada'";
    assert_eq!(gate.count(events), 3);
}

fn answer_of(server: &str, bytes: u64, run: Option<&str>) -> OutcomeCommand {
    let period_ms = u64::from(DEFAULT_TAINT_S) * 1_000;
    let run = run.map(str::to_owned);
    OutcomeCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        agent: "coder".to_owned(),
        server: server.to_owned(),
        tool: "list".to_owned(),
        decision_id: "d".to_owned(),
        decision_hash: "h".repeat(64),
        status: 200,
        bytes,
        duration_ms: 1,
        result_sha256: String::new(),
        ending: Ending::Complete,
        effect: Effect::Succeeded,
        untrusted: Some(Untrusted { run, period_ms, instructions_sha256: None }),
        observed: None,
        found: None,
    }
}

#[test]
fn an_answer_that_ends_after_the_taint_was_lifted_taints_again() {
    for (bytes, run, expected) in [(1, None, HELD), (0, None, ALLOWED), (1, Some("r1"), HELD)] {
        let mut gate = gate();
        read_untrusted(&mut gate, "");
        assert_eq!(gate.carry_out("coder", LaneAction::Untaint, 5), Ok(Ok(())));
        assert_eq!(outcome(&gate, ""), ALLOWED);
        let (answer, now_ms) = (answer_of("web", bytes, run), gate.now_ms.get());
        let recorded = gate
            .on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &answer, now_ms));
        assert_eq!(recorded, Ok(Ok(())));
        assert_eq!(outcome(&gate, ""), expected, "{bytes} {run:?}");
    }
}

#[test]
fn text_that_answers_no_call_taints_with_one_row_a_minute() {
    let gate = gate();
    let taint = |server: &str, run: Option<&str>| {
        let command = TaintCommand {
            tenant: TENANT.to_owned(),
            lane: 0,
            agent: "coder".to_owned(),
            server: server.to_owned(),
            run: run.map(str::to_owned),
            period_ms: u64::from(DEFAULT_TAINT_S) * 1_000,
        };
        let now_ms = gate.now_ms.get();
        let done =
            gate.on_lane(|lane, storage| lane.taint(storage, &gate.config, &command, now_ms));
        assert_eq!(done, Ok(Ok(())));
        gate.receipts().len()
    };
    assert_eq!(taint("web", None), 1);
    assert_eq!(outcome(&gate, "any"), HELD);
    let rows = gate.receipts().len();
    assert_eq!((taint("web", None), taint("mail", None)), (rows, rows + 1));
    gate.now_ms.set(gate.now_ms.get() + 60_000);
    assert_eq!(taint("web", None), rows + 2);
    gate.flush_all();
    let events = "SELECT group_concat(source || ' ' || detail, ' ') FROM (SELECT * FROM audit_events \
        WHERE kind = 'agent_tainted' ORDER BY event_id)";
    let expected = r#"web {"server":"web"} mail {"server":"mail"} web {"server":"web"}"#;
    assert_eq!(gate.text(events), expected);
}

#[test]
fn taint_that_may_or_may_not_be_written_never_lets_text_pass_unmarked() {
    for fault in [Fault::Failed, Fault::Lost] {
        let gate = gate();
        outcome(&gate, "");
        let command = TaintCommand {
            tenant: TENANT.to_owned(),
            lane: 0,
            agent: "coder".to_owned(),
            server: "web".to_owned(),
            run: None,
            period_ms: 60_000,
        };
        let now_ms = gate.now_ms.get();
        gate.storage.fault.set(Some((0, fault)));
        let done =
            gate.on_lane(|lane, storage| lane.taint(storage, &gate.config, &command, now_ms));
        assert!(done.is_err(), "the worker must not pass the text on");
        gate.evict();
        let again =
            gate.on_lane(|lane, storage| lane.taint(storage, &gate.config, &command, now_ms));
        assert_eq!(again, Ok(Ok(())));
        assert_eq!(outcome(&gate, ""), HELD, "{fault:?}");
    }
}

/// What an answer says about taint.
fn explained(answer: &Json) -> (bool, bool) {
    let reason = answer["reason"].as_str().unwrap();
    (answer["taint"].is_object(), reason.contains("gateward agent untaint coder"))
}

#[test]
fn a_decision_that_taint_caused_says_where_it_comes_from_and_how_it_ends() {
    let mut gate = gate();
    let since = gateward_core::id::rfc3339(gate.now_ms.get());
    let ends_at =
        gateward_core::id::rfc3339(gate.now_ms.get() + u64::from(DEFAULT_TAINT_S) * 1_000);
    read_untrusted(&mut gate, "r1");
    let by = gate.receipts().last().unwrap().body.clone();
    let by: Json = serde_json::from_str(&by).unwrap();
    let by = by["decision_id"].as_str().unwrap();
    let (_, answer) = gate.call(&write("r2"));
    let taint = json!({
        "call": {"decision_id": by, "server": "notes", "tool": "list"}, "ends_at": ends_at,
        "last_at": since, "servers": ["notes"], "since": since,
    });
    assert_eq!(answer["taint"], taint);
    let expected = format!(
        "Untrusted text reached the agent, and it may have chosen a destination of \
         this call. A person must approve. Since {since} this agent may have read untrusted text of the server `notes`; \
         the latest call that may have returned it was `notes/list` (decision {by}). This taint ends at {ends_at} \
         if no more such text comes, or when an administrator runs `gateward agent untaint coder`. \
         `/n` was seen in no result; the run has no instruction."
    );
    assert_eq!(answer["reason"], expected);

    // The receipt, the approval and, once it is flushed, the audit say the same.
    let receipts = gate.receipts();
    let body: Json = serde_json::from_str(&receipts.last().unwrap().body).unwrap();
    assert_eq!(body["taint"], taint);
    assert_eq!(receipt::verify(&receipts, 1, Some(receipt::GENESIS)), Ok(()));
    gate.flush_all();
    let record: Json = serde_json::from_str(&gate.text("SELECT record FROM approvals")).unwrap();
    assert_eq!((&record["taint"], &record["reason"]), (&taint, &json!(expected)));
    let events = "SELECT json_group_array(json(detail)) FROM (SELECT detail FROM audit_events \
        WHERE kind = 'decision' ORDER BY event_id)";
    let events: Json = serde_json::from_str(&gate.text(events)).unwrap();
    assert_eq!((&events[0].get("taint"), &events[1]["taint"]), (&None, &taint));

    // While the approval is pending, it also has the call.
    let pending = with(write("r2"), json!({"approval_id": answer["approval"]["approval_id"]}));
    let (_, answer) = gate.call(&pending);
    assert_eq!(answer["reason_code"], "approval_pending");
    assert_eq!(explained(&answer), (true, true));
}

/// "Caused" means that the policies would have decided differently without taint.
#[test]
fn only_a_decision_that_would_have_been_another_without_taint_is_explained_by_it() {
    let stated = |trust: &str| json!({"context": {"source_trust": trust}});
    for (rule, mutates, change, decision, expected) in [
        (TaintRule::RequireApproval, true, json!({}), "require_approval", true),
        // Two policies ask for approval, and one of them because of taint.
        (
            TaintRule::RequireApproval,
            true,
            stated("semi_trusted_customer"),
            "require_approval",
            true,
        ),
        (TaintRule::Allow, true, stated("semi_trusted_customer"), "require_approval", false),
        (TaintRule::RequireApproval, true, stated("untrusted_external"), "deny", false),
        (TaintRule::DenyUnknown, true, json!({}), "deny", true),
        (TaintRule::DenyUnknown, false, json!({}), "allow", false),
        (TaintRule::Forbid, true, json!({}), "deny", true),
        (TaintRule::Forbid, false, json!({}), "deny", true),
        (TaintRule::RequireApproval, false, json!({}), "allow", false),
        (TaintRule::Allow, true, json!({}), "allow", false),
        (TaintRule::RequireApproval, true, json!({"approval_id": "appr_0_77"}), "deny", false),
        (TaintRule::RequireApproval, true, json!({"dry_run": true}), "require_approval", true),
    ] {
        for tainted in [true, false] {
            let mut gate = gate();
            if tainted {
                read_untrusted(&mut gate, "");
            }
            gate.records.tool = tool(mutates, false);
            gate.tool_mut().tainted = rule;
            let body = with(write(""), json!({"tool_call": {"mutates_state": mutates}}));
            let (_, answer) = gate.call(&with(body, change.clone()));
            let what = format!("{rule:?} {mutates} {change} {tainted}: {answer}");
            if tainted {
                assert_eq!(answer["decision"], decision, "{what}");
            }
            let expected = expected && tainted;
            assert_eq!(explained(&answer), (expected, expected), "{what}");
        }
    }
}

#[test]
fn a_run_of_a_harness_is_told_of_its_own_taint() {
    let mut gate = gate();
    be_harness(&mut gate);
    read_untrusted(&mut gate, "r1");
    let (_, answer) = gate.call(&write("r1"));
    let reason = answer["reason"].as_str().unwrap();
    assert!(reason.contains(" this run may have read untrusted text of"), "{reason}");
    assert_eq!(gate.call(&write("r2")).1["taint"], Json::Null);
}

/// A mark that the version before wrote names no call.
#[test]
fn a_mark_without_a_call_explains_a_decision_as_far_as_it_can() {
    let gate = gate();
    let untrusted = Untrusted { run: None, period_ms: 60_000, instructions_sha256: None };
    for (tool, call) in [("", Json::Null), ("list", json!("list"))] {
        let answer = OutcomeCommand {
            tool: tool.to_owned(),
            untrusted: Some(untrusted.clone()),
            ..answer_of("web", 1, None)
        };
        let now_ms = gate.now_ms.get();
        let recorded = gate
            .on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &answer, now_ms));
        assert_eq!(recorded, Ok(Ok(())));
        let (_, answer) = gate.call(&write(""));
        assert_eq!(explained(&answer), (true, true), "{answer}");
        assert_eq!(answer["taint"]["call"]["tool"], call);
        assert_eq!(answer["taint"]["servers"], json!(["web"]));
    }
}

/// The hash covers the user and the run only if a harness states them.
#[test]
fn an_approval_binds_user_and_run_only_where_a_harness_states_them() {
    let held = |gate: &Gate, user: &str, run: &str| {
        let body = with(
            write(run),
            json!({"user": {"id": user}, "context": {"source_trust": "semi_trusted_customer"}}),
        );
        let (_, answer) = gate.call(&body);
        answer["approval"]["action_hash"].as_str().unwrap().to_owned()
    };
    for (harness, same) in [(false, true), (true, false)] {
        let mut gate = gate();
        gate.credential_mut().assigns_runs = harness;
        let first = held(&gate, "ann", "r1");
        assert_eq!(held(&gate, "ann", "r1"), first);
        for (user, run) in [("ben", "r1"), ("ann", "r2"), ("", "")] {
            assert_eq!(held(&gate, user, run) == first, same, "{harness} {user} {run}");
        }
    }
}

#[test]
fn an_approval_of_an_http_request_binds_method_and_route() {
    let hash = |route: Option<(&str, &str)>| {
        let mut command: GateCommand = command(&write(""));
        command.purpose = Purpose::Forward;
        command.call.route = route.map(|(method, path)| (method.to_owned(), path.to_owned()));
        gateward_core::call::complete(&mut command.call, TENANT);
        command.call.action_hash
    };
    let post = hash(Some(("POST", "/a/{b}")));
    assert_eq!(hash(Some(("POST", "/a/{b}"))), post);
    for other in [None, Some(("DELETE", "/a/{b}")), Some(("POST", "/a/b"))] {
        assert_ne!(hash(other), post, "{other:?}");
    }
}
