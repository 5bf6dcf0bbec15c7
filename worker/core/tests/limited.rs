//! Limits in the lane: what a decision, an outcome and an alarm write.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::rc::Rc;

use crate::limits::model::{BERLIN, CHANGES_MS, Call, DAY_MS, HOUR_MS, Model, zones};
use crate::support::{self, Fault, Gate, START_MS, TENANT, command, read_call, with};
use gateward_core::bucket::Rate;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::call::outcome::ReportedOutcome;
use gateward_core::gate::limits::{agent_book, credential_book, request_book};
use gateward_core::gate::{Effect, OutcomeCommand};
use gateward_core::lane::{Lane, LaneSql as _, Value};
use gateward_core::limit::book::At;
use gateward_core::limit::rate_headers::RateHeaders;
use gateward_core::limit::reservation::Ending as Settled;
use gateward_core::limit::window::utc_only;
use gateward_core::limit::{Amount, Book, Covers, Limit, RequestRate};
use gateward_core::receipt::Ending;
use gateward_core::registry::{ServerKind, SharedLimit};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn limit(id: &str, rule: Json) -> Rc<Limit> {
    serde_json::from_value(json!({"limit_id": id, "rule": rule})).map(Rc::new).unwrap()
}

fn amount(max: u64) -> Rc<Limit> {
    let rule = json!({"kind": "amount", "max": max.to_string(), "pointer": "/n", "window": "day"});
    limit("amount", rule)
}

/// A gate whose agent has these limits, in front of a server that answers within ten seconds.
fn gate(limits: Vec<Rc<Limit>>) -> Gate {
    let mut gate = Gate::new();
    gate.agent_mut().limits = limits;
    let server = json!({"kind": "mcp", "trust": "trusted", "status": "active", "upstream": {
        "url": "https://api.example.com/", "whole_timeout_ms": 10_000}});
    gate.records.server = Some(serde_json::from_value(server).unwrap());
    gate
}

fn asked(n: Json) -> GateCommand {
    command(&with(read_call(), json!({"tool_call": {"parameters": {"n": n}}})))
}

fn forwarded(n: u64) -> GateCommand {
    let mut command = asked(json!(n));
    command.call.environment = None;
    command.purpose = Purpose::Forward;
    command.forwarded = true;
    command
}

/// The status, and the decision or the problem.
fn answer(gate: &Gate, command: &GateCommand) -> (u16, Json) {
    let reply = gate.try_call(command).unwrap();
    let body: Json = serde_json::from_str(&reply.body).unwrap();
    let decision = body.get("decision").filter(|decision| decision.is_object()).cloned();
    (reply.status, decision.unwrap_or(body))
}

fn passes(gate: &Gate, command: &GateCommand) -> bool {
    answer(gate, command).1["decision"] == "allow"
}

fn outcome(decision: &Json, effect: Effect) -> OutcomeCommand {
    let text = |value: &Json| value.as_str().unwrap().to_owned();
    OutcomeCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        agent: "coder".to_owned(),
        server: "notes".to_owned(),
        tool: "list".to_owned(),
        decision_id: text(&decision["decision_id"]),
        decision_hash: text(&decision["receipt"]["receipt_hash"]),
        status: 200,
        bytes: 12,
        duration_ms: 34,
        result_sha256: "r".repeat(64),
        ending: Ending::Complete,
        effect,
        untrusted: None,
        observed: None,
        found: None,
    }
}

fn tell(gate: &Gate, decision: &Json, effect: Effect) {
    let (command, now_ms) = (outcome(decision, effect), gate.now_ms.get());
    let told =
        gate.on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &command, now_ms));
    assert_eq!(told, Ok(Ok(())));
}

const FAILED: &str = r#"{"outcome": "failed"}"#;

fn report(decision_id: &str, body: &str) -> GateCommand {
    let reported = ReportedOutcome::parse(decision_id.to_owned(), body.as_bytes()).unwrap();
    GateCommand { purpose: Purpose::ReportOutcome(reported), ..asked(json!(0)) }
}

fn reservations(gate: &Gate) -> usize {
    gate.storage.exec("SELECT 1 FROM reservations", &[]).unwrap().len()
}

#[test]
fn a_limit_denies_with_a_code_and_says_what_is_left() {
    let max = "5";
    for (rule, status, code) in [
        (json!({"kind": "hours", "hours": []}), 200, "outside_hours"),
        (json!({"kind": "per_call", "max": max, "pointer": "/n"}), 200, "per_call_exceeded"),
        (json!({"kind": "per_call", "max": max, "pointer": "/m"}), 200, "limit_unreadable"),
        (json!({"kind": "quota", "max": "0", "window": "week"}), 200, "quota_exhausted"),
        (
            json!({"kind": "amount", "max": max, "pointer": "/n", "window": "day"}),
            200,
            "amount_exhausted",
        ),
        (json!({"kind": "budget", "max": "0.5", "window": "month"}), 200, "budget_exhausted"),
        (json!({"kind": "concurrency", "max": "0"}), 429, "rate_limited"),
    ] {
        let gate = gate(vec![limit("l", rule)]);
        let (found, body) = answer(&gate, &forwarded(6));
        let given = body.get("reason_code").or(body.get("code"));
        assert_eq!((found, given), (status, Some(&json!(code))), "{body}");
        let [violated] = body["violated_limits"].as_array().unwrap().as_slice() else { panic!() };
        assert_eq!(violated["limit_id"], "l");
        let reason = body.get("reason").or(body.get("detail")).unwrap();
        assert!(reason.as_str().unwrap().contains("The limit `l`") || code == "limit_unreadable");
    }
    let night = limit("night", json!({"kind": "hours", "hours": ["00:00-06:00"]}));
    let (_, body) = answer(&gate(vec![night]), &asked(json!(1)));
    let reason = body["reason"].as_str().unwrap();
    // The clock shows 11:06:40.
    assert_eq!(body["violated_limits"][0]["retry_after_s"], 46_400);
    assert!(reason.ends_with("Try again at 2026-11-19T00:00:00.000Z, in 46400 s."), "{reason}");
    let gate = gate(vec![amount(10)]);
    assert!(passes(&gate, &asked(json!("7.5"))));
    let (_, body) = answer(&gate, &asked(json!(3)));
    let reason = body["reason"].as_str().unwrap();
    let expected =
        "The limit `amount` allows 10 per day; 2.5 is left, and this call needs 3. Try again at ";
    assert!(reason.starts_with(expected), "{reason}");
    assert_eq!(
        (&body["violated_limits"][0]["remaining"], &body["violated_limits"][0]["max"]),
        (&json!("2.5"), &json!("10"))
    );
    assert!(passes(&gate, &asked(json!(2.5))));
}

#[test]
fn an_answer_has_each_limit_with_a_number() {
    let rules = [
        ("h", json!({"kind": "hours", "hours": ["00:00-24:00"]})),
        ("p", json!({"kind": "per_call", "max": "9", "pointer": "/n"})),
        ("c", json!({"kind": "concurrency", "max": "3"})),
        ("q", json!({"kind": "quota", "max": "5", "window": "day"})),
        ("other", json!({"kind": "quota", "max": "5", "window": "day", "tools": ["mail/*"]})),
    ];
    let gate = gate(rules.into_iter().map(|(id, rule)| limit(id, rule)).collect());
    let reply = gate.try_call(&asked(json!(1))).unwrap();
    let RateHeaders { policies, states } = reply.rate_headers.unwrap();
    assert_eq!(policies, r#""agent";q=100000;w=1, "p";q=9, "c";q=3, "q";q=5;w=86400"#);
    assert_eq!(states, r#""agent";r=99999;t=1, "c";r=3, "q";r=4;t=46400"#);
}

#[test]
fn a_call_under_a_limit_of_requests_alone_writes_one_row_and_no_book() {
    let mut gate = gate(vec![]);
    gate.agent_mut().request_rate = support::rate(2, 0.001);
    assert!(passes(&gate, &asked(json!(1))));
    let rows = |statement| gate.storage.exec(statement, &[]).unwrap().len();
    assert_eq!((rows("SELECT 1 FROM journal"), rows("SELECT 1 FROM limit_books")), (1, 0));
}

#[test]
fn a_request_over_its_limit_names_the_limit() {
    let mut read = asked(json!(1));
    read.purpose = Purpose::Read;
    for (rate, named) in [(support::rate(1, 0.001), true), (None, false)] {
        let mut gate = gate(vec![]);
        gate.config.default_rate = Rate::new(1, 0.001);
        gate.agent_mut().request_rate = rate;
        assert!(passes(&gate, &asked(json!(1))));
        for request in [&asked(json!(1)), &forwarded(1), &read] {
            let reply = gate.try_call(request).unwrap();
            assert_eq!((reply.status, reply.retry_after_s), (429, Some(1_000)));
            let id = if named { "all-requests" } else { "agent" };
            let policies = reply.rate_headers.unwrap().policies;
            assert_eq!(policies, format!(r#""{id}";q=1;w=1000"#));
            let body: Json = serde_json::from_str(&reply.body).unwrap();
            let violated = json!([{
                "limit_id": id, "kind": "rate", "why": "exceeded",
                "max": "1", "window": null, "window_s": 1_000, "remaining": "0", "requested": "1",
                "retry_after_s": 1_000,
            }]);
            assert_eq!(body["violated_limits"], violated, "{body}");
        }
    }
}

#[test]
fn what_is_left_of_requests_is_read_from_the_agents_state() {
    let mut gate = gate(vec![]);
    let rate = support::rate(3, 0.001).unwrap();
    gate.agent_mut().request_rate = Some(Rc::clone(&rate));
    assert!(passes(&gate, &asked(json!(1))) && passes(&gate, &asked(json!(1))));
    let at = At { now_ms: gate.now_ms.get(), offset_s: utc_only };
    for evicted in [false, true] {
        if evicted {
            gate.evict();
        }
        let names = [request_book("coder"), request_book("support"), agent_book("coder")];
        let books = gate.on_lane(|lane, storage| lane.books(storage, &names, at.now_ms)).unwrap();
        let status = rate.status(&Book::parse(&books[0]).unwrap(), at);
        let expected = (Covers::Requests, Some(Amount::whole(1)));
        assert_eq!((status.covers, status.remaining), expected, "{evicted}");
        assert_eq!((books[1].as_str(), books[2].as_str()), ("", ""), "{evicted}");
    }
}

/// Otherwise each change of the limit would give its agent new requests.
#[test]
fn another_rate_refills_no_request() {
    let mut gate = gate(vec![]);
    let mut left = |rate: Option<Rc<RequestRate>>| {
        gate.agent_mut().request_rate = rate;
        let states = gate.try_call(&asked(json!(1))).unwrap().rate_headers.unwrap().states;
        states.split(';').nth(1).unwrap().to_owned()
    };
    assert_eq!(left(support::rate(5, 0.001)), "r=4");
    assert_eq!(left(support::rate(100, 0.001)), "r=3", "raised");
    assert_eq!(left(None), "r=2", "deleted");
    assert_eq!(left(support::rate(2, 0.001)), "r=1", "lowered");
    assert_eq!(left(support::rate(100, 0.001)), "r=0", "raised again");
}

#[test]
fn of_one_kind_the_agents_limits_come_first_and_shared_ones_last() {
    let quota = |id: &str| limit(id, json!({"kind": "quota", "max": "0", "window": "day"}));
    let shared = |id: &str| -> SharedLimit {
        let limit = json!({"limit_id": id, "rule": {"kind": "quota", "max": "0", "window": "day"}});
        let record = json!({"subject_kind": "tenant", "subject": "*", "limit": limit});
        serde_json::from_value(record).unwrap()
    };
    let mut gate = gate(vec![quota("z"), quota("y")]);
    gate.credential_mut().limits = vec![quota("x"), quota("w")];
    gate.tenant_mut().shared_limits = [shared("b"), shared("a")].into();
    let violated =
        |gate: &Gate| answer(gate, &asked(json!(1))).1["violated_limits"][0]["limit_id"].clone();
    assert_eq!(violated(&gate), "z");
    gate.agent_mut().limits.clear();
    assert_eq!(violated(&gate), "x");
    gate.credential_mut().limits.clear();
    assert_eq!(violated(&gate), "b");
}

#[test]
fn limits_of_the_credential_are_counted_by_credential() {
    let mut gate = gate(vec![]);
    gate.credential_mut().limits = vec![amount(5)];
    assert!(passes(&gate, &asked(json!(5))) && !passes(&gate, &asked(json!(1))));
    let mut other = asked(json!(5));
    other.key_id = "k2".to_owned();
    assert!(passes(&gate, &other));
}

#[test]
fn a_rotated_credential_counts_with_the_one_before() {
    let mut gate = gate(vec![]);
    gate.credential_mut().limits = vec![amount(5)];
    assert!(passes(&gate, &asked(json!(4))));
    gate.credential_mut().first_key_id = Some("k1".to_owned());
    let mut rotated = asked(json!(2));
    rotated.key_id = "k2".to_owned();
    gate.evict();
    assert!(!passes(&gate, &rotated));
}

#[test]
fn a_call_that_is_too_many_uses_its_rate() {
    let rate = limit("r", json!({"kind": "rate", "capacity": 2, "refill_per_s": 0.001}));
    let gate = gate(vec![rate, limit("c", json!({"kind": "concurrency", "max": "0"}))]);
    let mut dry = forwarded(1);
    dry.call.dry_run = true;
    let calls = [&dry, &dry, &dry, &forwarded(1), &forwarded(1), &forwarded(1)];
    let violated =
        calls.map(|call| answer(&gate, call).1["violated_limits"][0]["limit_id"].clone());
    assert_eq!(violated, ["c", "c", "c", "c", "c", "r"]);
    let violated = answer(&gate, &forwarded(1)).1["violated_limits"][0].clone();
    let found = ["max", "window_s", "remaining"].map(|name| violated[name].clone());
    assert_eq!(found, [json!("2"), json!(2_000), json!("0")]);
}

/// Attack: an agent uses its limits up, so that what it tries next does not quarantine it.
#[test]
fn a_canary_quarantines_whatever_is_left() {
    let mut gate = gate(vec![limit("h", json!({"kind": "hours", "hours": []}))]);
    gate.records.tool = support::tool(false, true);
    assert_eq!(answer(&gate, &asked(json!(1))).1["decision"], "quarantine");
}

/// Attack: an agent says that it writes, so that a limit of reads does not count its call.
#[test]
fn a_claimed_write_counts_for_limits_of_reads_too() {
    let rule =
        json!({"kind": "amount", "max": "5", "pointer": "/n", "window": "day", "access": "read"});
    let gate = gate(vec![limit("reads", rule)]);
    let claims =
        with(read_call(), json!({"tool_call": {"mutates_state": true, "parameters": {"n": 6}}}));
    assert_eq!(answer(&gate, &command(&claims)).1["reason_code"], "amount_exhausted");
}

/// Attack: an agent chooses how its call ends, so that its limit gets the amount back.
#[test]
fn an_ending_that_the_caller_can_choose_gives_nothing_back() {
    use Effect::{Failed, Succeeded, Unclear};
    for (ending, status, http, mcp) in [
        (Ending::Refused, 0, Failed, Failed),
        (Ending::Refused, 404, Failed, Failed),
        (Ending::Complete, 200, Succeeded, Unclear),
        (Ending::Complete, 409, Failed, Failed),
        (Ending::Complete, 406, Succeeded, Unclear),
        (Ending::Complete, 416, Succeeded, Unclear),
        (Ending::Complete, 500, Unclear, Unclear),
        (Ending::CallerGone, 0, Succeeded, Succeeded),
        (Ending::CallerGone, 409, Succeeded, Succeeded),
        (Ending::TooLarge, 200, Succeeded, Succeeded),
        (Ending::TimedOut, 0, Unclear, Unclear),
        (Ending::UpstreamFailed, 0, Unclear, Unclear),
    ] {
        assert_eq!(Effect::of_http(ending, status), http, "{ending:?} {status}");
        let of_mcp = |answer, in_session| Effect::of_mcp(ending, status, answer, in_session);
        assert_eq!(of_mcp(None, false), mcp, "{ending:?} {status}");
        // In a session, the status can be about another message of the batch, or about the session's end.
        let in_session = if mcp == Failed && status != 0 { Unclear } else { mcp };
        assert_eq!(of_mcp(None, true), in_session, "{ending:?} {status}");
        for era in [false, true] {
            assert_eq!(of_mcp(Some(Failed), era), Failed, "{ending:?} {status}");
        }
    }
}

/// Attack: an agent fills the lane's reservations, so that others' calls are refused.
#[test]
fn one_agents_reservations_leave_space_for_others() {
    let gate = gate(vec![amount(1_000_000)]);
    let mut held = 0;
    while answer(&gate, &forwarded(1)).0 == 200 {
        held += 1;
    }
    assert_eq!(held, gateward_core::gate::limits::MAX_RESERVATIONS_OF_AGENT);
    assert_eq!(reservations(&gate), held);
    // A call that takes nothing has no reservation.
    assert!(passes(&gate, &forwarded(0)));
    gate.evict();
    assert_eq!(answer(&gate, &forwarded(1)).0, 503);
}

#[test]
fn calls_whose_callers_report_nothing_block_no_forwarded_call() {
    let gate = gate(vec![amount(1_000_000)]);
    for _ in 0..=gateward_core::gate::limits::MAX_RESERVATIONS_OF_AGENT {
        assert!(passes(&gate, &asked(json!(1))));
    }
    assert_eq!(answer(&gate, &forwarded(1)).0, 200);
    assert_eq!(reservations(&gate), gateward_core::gate::limits::MAX_RESERVATIONS_OF_AGENT + 1);
}

#[test]
fn a_report_gives_back_once_what_the_call_did_not_spend() {
    let gate = gate(vec![amount(5)]);
    let decision = answer(&gate, &asked(json!(5))).1;
    let id = decision["decision_id"].as_str().unwrap().to_owned();
    let told = |body| answer(&gate, &report(&id, body)).0;
    assert!(!passes(&gate, &asked(json!(2))));
    assert_eq!(told(r#"{"outcome": "succeeded", "amount": "6"}"#), 422);
    assert_eq!(told(r#"{"outcome": "succeeded", "amount": "3"}"#), 200);
    assert_eq!(told(FAILED), 404);
    assert!(passes(&gate, &asked(json!(2))));
    assert!(!passes(&gate, &asked(json!(1))));
}

#[test]
fn a_number_that_no_double_holds_is_not_counted_as_another() {
    let gate = gate(vec![amount(9)]);
    let body = with(read_call(), json!({"tool_call": {"parameters": {"n": 1_000}}})).to_string();
    let calls = ["5", "5.00000000000000005", "4.0000000000000000"].map(|number| {
        let body = body.replace("1000", number);
        gateward_core::call::parse(body.as_bytes(), TENANT).unwrap().0
    });
    assert_eq!(calls[0].action_hash, calls[1].action_hash);
    assert_ne!(calls[0].fingerprint, calls[1].fingerprint);
    let decide = |call| answer(&gate, &GateCommand { call, ..asked(json!(0)) }).1;
    let codes = calls.map(|call| decide(call)["reason_code"].clone());
    assert_eq!(codes, ["policy_allow", "limit_unreadable", "policy_allow"]);
}

/// The alarm that ends reservations may be late, for example while D1 does not answer.
#[test]
fn a_report_after_a_day_gives_nothing_back() {
    let rule = json!({"kind": "amount", "max": "5", "pointer": "/n", "window": "month"});
    for (after_ms, status, left) in [(DAY_MS - 1, 200, "5"), (DAY_MS, 404, "0")] {
        let gate = gate(vec![limit("amount", rule.clone())]);
        let id = answer(&gate, &asked(json!(5))).1["decision_id"].as_str().unwrap().to_owned();
        gate.now_ms.set(gate.now_ms.get() + after_ms);
        assert_eq!(answer(&gate, &report(&id, FAILED)).0, status);
        let denial = answer(&gate, &asked(json!(6))).1;
        assert_eq!(denial["violated_limits"][0]["remaining"], left);
    }
}

/// A client repeats the request id after a failure, as idempotency keys are meant: the call counts again.
#[test]
fn a_request_whose_call_was_reported_failed_is_decided_anew() {
    let call = with(read_call(), json!({"request_id": "r", "tool_call": {"parameters": {"n": 5}}}));
    let call = command(&call);
    for flushed in [false, true] {
        let gate = gate(vec![amount(5)]);
        let first = answer(&gate, &call).1["decision_id"].as_str().unwrap().to_owned();
        if flushed {
            gate.flush_all();
        }
        assert_eq!(answer(&gate, &report(&first, FAILED)).0, 200);
        gate.evict();
        let again = answer(&gate, &call).1;
        assert_eq!(again["decision"], "allow");
        assert_ne!(again["decision_id"], first.as_str());
        assert!(!passes(&gate, &asked(json!(1))));
        assert_eq!(answer(&gate, &call).1["decision_id"], again["decision_id"]);
    }
}

/// Whatever write of the report fails, the amount is not given back while the stored answer still passes.
#[test]
fn a_report_of_which_a_write_fails_lets_no_request_pass_uncounted() {
    let call = with(read_call(), json!({"request_id": "r", "tool_call": {"parameters": {"n": 5}}}));
    let call = command(&call);
    for (after, fault) in (0..4).flat_map(|at| [(at, Fault::Failed), (at, Fault::Lost)]) {
        let limits = [amount(5)];
        let gate = gate(limits.to_vec());
        let id = answer(&gate, &call).1["decision_id"].as_str().unwrap().to_owned();
        gate.storage.fault.set(Some((after, fault)));
        let _ = gate.try_call(&report(&id, FAILED));
        gate.storage.fault.set(None);
        answer(&gate, &call);
        assert_eq!(stored(&gate, &limits), [5], "{after} {fault:?}");
    }
}

#[test]
fn a_limit_that_is_created_again_counts_anew() {
    let made = |at: u64| -> Rc<Limit> {
        let rule = json!({"kind": "amount", "max": "5", "pointer": "/n", "window": "day"});
        let stored = json!({"limit_id": "l", "created_at_ms": at, "rule": rule});
        serde_json::from_value(stored).map(Rc::new).unwrap()
    };
    let mut gate = gate(vec![made(1)]);
    assert!(passes(&gate, &asked(json!(5))) && !passes(&gate, &asked(json!(1))));
    gate.agent_mut().limits = vec![made(2)];
    assert!(passes(&gate, &asked(json!(5))) && !passes(&gate, &asked(json!(1))));
}

#[test]
fn a_gateway_that_asks_for_others_holds_no_place() {
    let gate = gate(vec![limit("c", json!({"kind": "concurrency", "max": "1"}))]);
    let mut asks = forwarded(1);
    asks.forwarded = false;
    assert!(passes(&gate, &asks) && passes(&gate, &asks));
    assert_eq!(reservations(&gate), 0);
}

/// Attack: a number in the path or the query of a request whose body Gateward does not see.
#[test]
fn of_a_request_whose_body_is_not_seen_no_number_counts() {
    let gate = gate(vec![amount(5)]);
    for (method, code) in [("GET", "policy_allow"), ("POST", "limit_unreadable")] {
        let mut asks = asked(json!(0));
        asks.call.route = Some((method.to_owned(), "/refunds".to_owned()));
        assert_eq!(answer(&gate, &asks).1["reason_code"], code, "{method}");
        asks.forwarded = true;
        assert_eq!(answer(&gate, &asks).1["reason_code"], "policy_allow", "{method}");
    }
}

/// The policies of the demo tenant remove `email` and `phone`.
#[test]
fn a_call_that_a_gateway_would_have_to_redact_is_denied_and_uses_nothing() {
    let mut gate = gate(vec![limit("q", json!({"kind": "quota", "max": "1", "window": "day"}))]);
    let server = gate.server_mut();
    server.kind = ServerKind::Http;
    server.shield = serde_json::from_value(json!({"personal_data": "redact"})).unwrap();
    let asks = |sensitive: bool, id: &str| {
        let call = json!({"tool_call": {"tool": "crm", "action": "get_customer"},
            "context": {"source_trust": "trusted_internal_signed", "contains_sensitive_data": sensitive}});
        let mut call = with(read_call(), call);
        call["tool_call"]["parameters"] = json!({"customer_id": id});
        let mut command = command(&call);
        command.call.environment = None;
        command.call.route = Some(("GET".to_owned(), "/customers/c1".to_owned()));
        command.purpose = Purpose::Routed("/customers/{customer_id}".to_owned());
        command
    };
    for (command, code, end) in [
        (asks(true, "c1"), "policy_redact", "A gateway cannot remove the fields `email`, `phone`."),
        (asks(false, "a@b.example"), "shield_redact", "A gateway cannot replace them."),
    ] {
        let (_, denial) = answer(&gate, &command);
        assert_eq!((&denial["decision"], &denial["reason_code"]), (&json!("deny"), &json!(code)));
        assert_eq!(denial["redacted_fields"], json!([]));
        assert!(denial["reason"].as_str().unwrap().ends_with(end), "{denial}");
    }
    assert!(passes(&gate, &asks(false, "c1")), "nothing was used");
    assert_eq!(answer(&gate, &asks(false, "c1")).1["reason_code"], "quota_exhausted");
    let forwarded = GateCommand { forwarded: true, ..asks(true, "c1") };
    gate.agent_mut().limits.clear();
    assert_eq!(answer(&gate, &forwarded).1["decision"], "redact");
}

#[test]
fn a_call_that_does_not_pass_uses_nothing() {
    let gate = gate(vec![amount(5)]);
    // The caller does not say that the call writes, so the policies hold the call back.
    let write = with(
        read_call(),
        json!({"tool_call": {"mutates_state": true, "parameters": {"n": 5}},
        "context": {"source_trust": "untrusted_external"}}),
    );
    let (_, held) = answer(&gate, &command(&write));
    assert_ne!(held["decision"], "allow");
    let dry = with(read_call(), json!({"dry_run": true, "tool_call": {"parameters": {"n": 5}}}));
    assert!(passes(&gate, &command(&dry)) && passes(&gate, &command(&dry)));
    assert!(passes(&gate, &asked(json!(5))));
}

#[test]
fn a_repeated_request_uses_its_limit_once() {
    let gate = gate(vec![amount(5)]);
    let call = with(read_call(), json!({"request_id": "r", "tool_call": {"parameters": {"n": 5}}}));
    for _ in 0..3 {
        assert!(passes(&gate, &command(&call)));
        gate.evict();
    }
    assert!(!passes(&gate, &asked(json!(1))));
}

#[test]
fn what_a_forwarded_call_holds_is_settled_by_its_outcome_also_after_an_eviction() {
    for (effect, free) in [(Effect::Succeeded, 0), (Effect::Unclear, 0), (Effect::Failed, 5)] {
        let gate = gate(vec![amount(5)]);
        let (_, decision) = answer(&gate, &forwarded(5));
        gate.evict();
        assert!(!passes(&gate, &forwarded(1)));
        tell(&gate, &decision, effect);
        gate.evict();
        assert_eq!(reservations(&gate), 0);
        assert_eq!(passes(&gate, &forwarded(5)), free == 5, "{effect:?}");
        // A second outcome settles nothing.
        tell(&gate, &decision, Effect::Failed);
        assert!(!passes(&gate, &forwarded(1)));
    }
}

#[test]
fn an_alarm_ends_what_has_no_outcome() {
    let concurrency = limit("c", json!({"kind": "concurrency", "max": "1"}));
    let gate = gate(vec![amount(5), concurrency]);
    assert!(passes(&gate, &forwarded(4)));
    let end = |gate: &Gate| {
        let now_ms = gate.now_ms.get();
        gate.on_lane(|lane, storage| {
            lane.end_reservations(storage, now_ms)?;
            Ok(lane.next_reservation_end())
        })
    };
    let ends_at_ms = gate.now_ms.get() + 70_000;
    assert_eq!(end(&gate), Ok(Some(ends_at_ms)));
    assert_eq!(answer(&gate, &forwarded(1)).0, 429);
    gate.now_ms.set(ends_at_ms);
    gate.evict();
    assert_eq!(end(&gate), Ok(None));
    assert_eq!(reservations(&gate), 0);
    // The amount stays used: nobody knows whether it was spent.
    assert!(!passes(&gate, &forwarded(2)) && passes(&gate, &forwarded(1)));
}

/// The clock was ahead for one call, the runtime ended before the outcome, and the clock is right again.
#[test]
fn a_call_under_a_clock_that_was_ahead_holds_its_place_for_about_an_hour() {
    for (ahead_ms, ends) in [(30 * 60_000, false), (62 * 60_000, true), (20 * HOUR_MS, true)] {
        let gate = gate(vec![amount(5), limit("c", json!({"kind": "concurrency", "max": "1"}))]);
        let now_ms = gate.now_ms.get();
        gate.now_ms.set(now_ms + ahead_ms);
        assert!(passes(&gate, &forwarded(4)));
        gate.evict();
        gate.now_ms.set(now_ms);
        gate.on_lane(|lane, storage| lane.end_reservations(storage, now_ms)).unwrap();
        assert_eq!(reservations(&gate), usize::from(!ends), "{ahead_ms}");
        let status = if ends { 200 } else { 429 };
        assert_eq!(answer(&gate, &forwarded(0)).0, status, "{ahead_ms}");
    }
}

#[test]
fn metrics_say_how_reservations_ended() {
    let gate = gate(vec![amount(100)]);
    for effect in [Effect::Succeeded, Effect::Failed, Effect::Unclear] {
        tell(&gate, &answer(&gate, &forwarded(1)).1, effect);
    }
    let decision = answer(&gate, &asked(json!(1))).1;
    let id = decision["decision_id"].as_str().unwrap().to_owned();
    assert_eq!(answer(&gate, &report(&id, FAILED)).0, 200);
    assert!(passes(&gate, &forwarded(1)) && passes(&gate, &asked(json!(1))));
    gate.now_ms.set(gate.now_ms.get() + DAY_MS);
    let now_ms = gate.now_ms.get();
    gate.on_lane(|lane, storage| lane.end_reservations(storage, now_ms)).unwrap();
    gate.flush_all();
    let counted = "SELECT group_concat(labels->>0 || count, ' ') FROM (SELECT labels, count \
         FROM metric_counters WHERE metric = 'reservations' ORDER BY labels)";
    assert_eq!(gate.text(counted), "expired2 opened6 returned2 settled1 unclear1");
}

#[test]
fn a_call_writes_a_fixed_number_of_rows() {
    let quota = || limit("q", json!({"kind": "quota", "max": "9", "window": "day"}));
    let all = || vec![amount(99), quota(), limit("c", json!({"kind": "concurrency", "max": "9"}))];
    let closed = || vec![limit("h", json!({"kind": "hours", "hours": []}))];
    for (of_agent, of_credential, command, rows) in [
        (vec![], vec![], forwarded(1), 1),
        (closed(), closed(), forwarded(1), 1),
        (vec![quota()], vec![], asked(json!(1)), 1),
        (vec![quota()], vec![quota()], asked(json!(1)), 1),
        (vec![amount(99)], vec![], asked(json!(1)), 2),
        (all(), vec![], forwarded(1), 2),
        (all(), all(), forwarded(1), 2),
    ] {
        let mut gate = gate(of_agent);
        gate.credential_mut().limits = of_credential;
        // The lane's first call writes its identity.
        gate.on_lane(|lane, storage| lane.adopt(storage, TENANT, 0)).unwrap();
        let tables = ["journal", "limit_books", "reservations", "replay", "agents"];
        let count = |gate: &Gate| -> usize {
            let rows =
                |table| gate.storage.exec(&format!("SELECT 1 FROM {table}"), &[]).unwrap().len();
            tables.into_iter().map(rows).sum()
        };
        for calls in 1..3 {
            gate.try_call(&command).unwrap();
            assert_eq!(count(&gate), calls * rows);
        }
    }
}

fn quota(max: u64) -> Rc<Limit> {
    limit("q", json!({"kind": "quota", "max": max.to_string(), "window": "day"}))
}

/// Each write of a flush and of an alarm fails once, or succeeds and is reported as failed. Before it, the journal has
/// the newest books; afterwards, `limit_books` has them.
#[test]
fn no_fault_at_a_write_of_a_flush_or_an_alarm_changes_what_was_used() {
    let limits = [amount(50), limit("c", json!({"kind": "concurrency", "max": "9"})), quota(9)];
    for (fault, alarms) in
        [Fault::Failed, Fault::Lost].iter().flat_map(|fault| [(*fault, false), (*fault, true)])
    {
        for after in 0.. {
            let [sum, at_once, calls] = limits.clone();
            let mut gate = gate(vec![sum, at_once]);
            gate.credential_mut().limits = vec![calls];
            assert!(passes(&gate, &forwarded(3)));
            gate.flush_all();
            assert!(passes(&gate, &forwarded(4)) && passes(&gate, &asked(json!(5))));
            if alarms {
                gate.now_ms.set(gate.now_ms.get() + 70_000);
            }
            let now_ms = gate.now_ms.get();
            let end = || gate.on_lane(|lane, storage| lane.end_reservations(storage, now_ms));
            gate.storage.fault.set(Some((after, fault)));
            let failed = if alarms { end().is_err() } else { gate.flush(None).is_err() };
            assert_eq!(failed, gate.storage.fault.take().is_none());
            let open = "SELECT 1 FROM reservations WHERE record->>'forwarded'";
            let open = gate.storage.exec(open, &[]).unwrap().len() as u64;
            let case = (fault, alarms, after);
            assert_eq!(stored(&gate, &limits), [12, open, 3], "{case:?}");
            // The lane goes on, from memory or after a start.
            end().unwrap();
            gate.flush_all();
            gate.evict();
            let open = if alarms { 0 } else { 2 };
            assert_eq!(stored(&gate, &limits), [12, open, 3], "{case:?}");
            assert!(!passes(&gate, &asked(json!(39))) && passes(&gate, &asked(json!(38))));
            if !failed {
                assert!(after > 5, "{case:?}");
                break;
            }
        }
    }
}

#[test]
fn what_is_flushed_to_d1_has_no_book() {
    let gate = gate(vec![amount(9)]);
    assert!(passes(&gate, &asked(json!(1))));
    let has_book = |text: &str| {
        assert!(text.contains("decision_id"), "{text}");
        text.contains(&*amount(9).counter)
    };
    let of_lane = |statement| match gate.storage.exec(statement, &[]).unwrap()[0].as_slice() {
        [Value::Text(text)] => has_book(text),
        _ => panic!(),
    };
    assert!(of_lane("SELECT row || books FROM journal"));
    let now_ms = gate.now_ms.get();
    let batch = gate.on_lane(|lane, storage| lane.flush_batch(storage, &gate.config, now_ms));
    assert!(!has_book(&batch.unwrap().unwrap().rows));
    gate.flush_all();
    // What the lane keeps in case that D1 is restored.
    assert!(!of_lane("SELECT row FROM journal"));
}

/// Books that only the journal has stay in memory, however many others are read.
#[test]
fn a_book_that_only_the_journal_has_is_not_dropped_from_memory() {
    let gate = gate(vec![quota(2)]);
    assert!(passes(&gate, &asked(json!(1))));
    let names: Vec<_> = (0..20_001).map(|agent| agent_book(&agent.to_string())).collect();
    let now_ms = gate.now_ms.get();
    gate.on_lane(|lane, storage| lane.books(storage, &names, now_ms)).unwrap();
    assert!(passes(&gate, &asked(json!(1))));
    assert!(!passes(&gate, &asked(json!(1))));
    gate.flush_all();
    gate.evict();
    assert!(!passes(&gate, &asked(json!(1))));
}

/// A start reads all of them.
#[test]
fn rows_after_the_state_checkpoint_have_a_bounded_number_of_bytes_of_books() {
    let limits = (0..32).map(|at| {
        let id = format!("{at:02}-{}", "x".repeat(60));
        limit(&id, json!({"kind": "quota", "max": "1000000", "window": "day"}))
    });
    let gate = gate(limits.collect());
    let of_rows = |gate: &Gate| {
        let bytes = "SELECT coalesce(sum(length(books)), 0), count(*) FROM journal WHERE seq > \
                     coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'checkpoint'), 0)";
        match gate.storage.exec(bytes, &[]).unwrap()[0][..] {
            [Value::Integer(bytes), Value::Integer(rows)] => (bytes, rows),
            _ => panic!("no sum"),
        }
    };
    let mut largest = (0, 0);
    for _ in 0..500 {
        assert!(passes(&gate, &asked(json!(1))));
        largest = largest.max(of_rows(&gate));
    }
    let (bytes, rows) = largest;
    assert!((1_000_000..2_100_000).contains(&bytes) && rows < 500, "{bytes} bytes in {rows} rows");
    gate.evict();
    assert!(passes(&gate, &asked(json!(1))));
}

#[test]
fn a_call_that_needs_nothing_passes_under_a_limit_that_was_lowered() {
    let mut gate = gate(vec![amount(100)]);
    assert!(passes(&gate, &asked(json!(50))));
    gate.agent_mut().limits = vec![amount(10)];
    assert!(!passes(&gate, &asked(json!(1))));
    assert!(passes(&gate, &asked(json!(0))));
}

/// The book of a lane that lost its memory is that of its last row.
#[test]
fn a_rate_loses_what_a_call_used_that_then_got_429() {
    let rate = |id: &str, capacity: u32| {
        limit(id, json!({"kind": "rate", "capacity": capacity, "refill_per_s": 0.001}))
    };
    let gate = gate(vec![rate("a-large", 3), rate("b-small", 1)]);
    assert!(passes(&gate, &asked(json!(1))));
    assert_eq!(answer(&gate, &asked(json!(1))).1["violated_limits"][0]["limit_id"], "b-small");
    assert_eq!(answer(&gate, &asked(json!(1))).1["violated_limits"][0]["limit_id"], "b-small");
    assert_eq!(answer(&gate, &asked(json!(1))).1["violated_limits"][0]["limit_id"], "a-large");
    gate.evict();
    assert_eq!(answer(&gate, &asked(json!(1))).1["violated_limits"][0]["limit_id"], "b-small");
}

#[test]
fn a_book_that_was_not_used_for_62_days_is_deleted() {
    let gate = gate(vec![quota(9)]);
    let books = |gate: &Gate| gate.storage.exec("SELECT 1 FROM limit_books", &[]).unwrap().len();
    assert!(passes(&gate, &asked(json!(1))));
    let first_ms = gate.now_ms.get();
    for (days, left) in [(0, 1), (61, 1), (62, 1), (63, 0)] {
        // The clock must have passed the time an hour ago.
        for after_ms in [0, HOUR_MS, 2 * HOUR_MS] {
            gate.now_ms.set(first_ms + days * DAY_MS + after_ms);
            gate.flush_all();
            let now_ms = gate.now_ms.get();
            gate.on_lane(|lane, storage| lane.end_reservations(storage, now_ms)).unwrap();
        }
        assert_eq!(books(&gate), left, "{days}");
    }
    // The row of a call brings it back.
    assert!(passes(&gate, &asked(json!(1))));
    gate.flush_all();
    assert_eq!(books(&gate), 1);
}

/// Makes a storage one of a version whose journal had no books.
const OLDER: &str = "
    INSERT INTO limit_books SELECT value->>0, at_ms / 86400000, value->>1 FROM journal, json_each(books);
    DROP VIEW steps; DROP VIEW limited_rows; DROP VIEW limit_steps; DROP TABLE counted_rows;
    CREATE VIEW counted_rows (seq, name, book) AS SELECT 0, '', '' WHERE false;
    CREATE VIEW limit_steps (day, books, reservation, settles) AS SELECT 0, '', '', '' WHERE false;
    CREATE VIEW limited_rows (seq, books, reservation, settles) AS SELECT 0, '', '', '' WHERE false;
    CREATE VIEW steps (seq, at_ms, receipt_hash, agent, state, request_key, fingerprint, nonce_key, row,
      input, edited_input, books, reservation, settles)
    AS SELECT 0, 0, '', '', '', '', '', '', '', '', '', '', '', '' WHERE false;
    ALTER TABLE journal DROP COLUMN books";

/// Each write of the upgrade fails once, or succeeds and is reported as failed.
#[test]
fn a_storage_of_a_version_whose_journal_had_no_books_is_upgraded() {
    let limits = [amount(50)];
    for (fault, after) in [Fault::Failed, Fault::Lost]
        .iter()
        .flat_map(|fault| (0..8).map(move |after| (*fault, after)))
    {
        let mut gate = gate(limits.to_vec());
        assert!(passes(&gate, &forwarded(3)));
        gate.evict();
        gate.storage.connection.execute_batch(OLDER).unwrap();
        gate.storage.fault.set(Some((after, fault)));
        assert!(gate.try_call(&asked(json!(1))).is_err());
        assert_eq!(stored(&gate, &limits), [3], "{fault:?} {after}");
        assert!(passes(&gate, &forwarded(4)) && passes(&gate, &asked(json!(5))));
        gate.records.tool = support::tool(true, false);
        let body = with(
            read_call(),
            json!({
                "tool_call": {"mutates_state": true, "parameters": {"n": 6}},
                "context": {"source_trust": "semi_trusted_customer"},
            }),
        );
        assert_eq!(answer(&gate, &command(&body)).1["decision"], "require_approval");
        for flushes in [false, true] {
            if flushes {
                gate.flush_all();
            }
            gate.evict();
            assert_eq!(stored(&gate, &limits), [12], "{fault:?} {after}");
        }
        assert_eq!(reservations(&gate), 3);
    }
}

/// It would not know what the rows after the last state checkpoint have.
#[test]
fn a_version_that_does_not_read_books_from_the_journal_does_not_start() {
    let gate = gate(vec![]);
    assert!(passes(&gate, &asked(json!(1))));
    let of_that_version =
        "CREATE VIEW IF NOT EXISTS counted_rows (seq, name, book) AS SELECT 0, '', '' WHERE false;
        CREATE TRIGGER IF NOT EXISTS write_counted_row INSTEAD OF INSERT ON counted_rows BEGIN
          INSERT INTO limit_books (name, day, record) VALUES (NEW.name, 0, NEW.book); END";
    let error = gate.storage.connection.execute_batch(of_that_version).unwrap_err();
    assert!(error.to_string().contains("INSTEAD OF"), "{error}");
}

#[derive(Debug, Clone)]
enum Event {
    Call {
        n: u64,
        forwarded: bool,
    },
    /// A call that asks, with one of a few request ids.
    Repeat {
        id: u64,
    },
    Outcome {
        which: usize,
        effect: Effect,
        /// Whether it is delivered again later.
        again: bool,
    },
    /// A report on a call that asked; how much it spent.
    Report {
        which: usize,
        spent: Option<u64>,
    },
    Alarm {
        after_ms: u64,
    },
    Clock {
        by_ms: i64,
    },
    Evict,
    Flush,
    Fault {
        after: u32,
        lost: bool,
    },
}

const HOUR: i64 = HOUR_MS.cast_signed();

fn event() -> impl Strategy<Value = Event> {
    let effect = prop::sample::select(&[Effect::Succeeded, Effect::Failed, Effect::Unclear][..]);
    prop_oneof![
        5 => (0..40_u64, any::<bool>()).prop_map(|(n, forwarded)| Event::Call { n, forwarded }),
        2 => (0..4_u64).prop_map(|id| Event::Repeat { id }),
        3 => (any::<usize>(), effect, prop::bool::weighted(0.2))
            .prop_map(|(which, effect, again)| Event::Outcome { which, effect, again }),
        2 => (any::<usize>(), prop::option::of(0..40_u64))
            .prop_map(|(which, spent)| Event::Report { which, spent }),
        1 => (0..90_000_u64).prop_map(|after_ms| Event::Alarm { after_ms }),
        1 => (-HOUR..3 * HOUR).prop_map(|by_ms| Event::Clock { by_ms }),
        1 => (-36 * HOUR..72 * HOUR).prop_map(|by_ms| Event::Clock { by_ms }),
        1 => Just(Event::Evict),
        1 => Just(Event::Flush),
        2 => (prop_oneof![2 => 0..3_u32, 1 => 3..12_u32], any::<bool>()).prop_map(|(after, lost)| Event::Fault { after, lost }),
    ]
}

/// The journal's rows from a sequence number on: decision, kind and what was decided.
fn rows(gate: &Gate) -> Vec<(String, Option<String>, Json)> {
    let rows = gate.storage.exec("SELECT row FROM journal ORDER BY seq", &[]).unwrap_or_default();
    let read = |row: Vec<Value>| {
        let [Value::Text(row)] = row.as_slice() else { panic!() };
        let row: Json = serde_json::from_str(row).unwrap();
        let text = |member: &str| row[member].as_str().map(str::to_owned);
        (text("decision_id").unwrap(), text("kind"), row["decision"].clone())
    };
    rows.into_iter().map(read).collect()
}

fn is_reserved(gate: &Gate, decision_id: &str) -> bool {
    let id = [Value::Text(decision_id.to_owned())];
    !gate.storage.exec("SELECT 1 FROM reservations WHERE decision_id = ?1", &id).unwrap().is_empty()
}

/// What a lane that starts from this storage knows about limits: how much is used, or how many calls are in progress.
fn stored(gate: &Gate, limits: &[Rc<Limit>]) -> Vec<u64> {
    let fault = gate.storage.fault.take();
    let names = [agent_book("coder"), credential_book("k1")];
    let books = Lane::start(&gate.storage).unwrap().books(&gate.storage, &names, START_MS).unwrap();
    gate.storage.fault.set(fault);
    let counters = |book: &String| serde_json::from_str::<Vec<(String, Json)>>(book).unwrap();
    let counters: Vec<_> =
        books.iter().filter(|book| !book.is_empty()).flat_map(counters).collect();
    let used = |limit: &Rc<Limit>| {
        let counter = counters.iter().find(|(counter, _)| **counter == *limit.counter);
        counter.map_or(0, |(_, counter)| match counter["open"].as_u64() {
            Some(open) => open,
            None => counter["sum"]["used"].as_str().unwrap().parse().unwrap(),
        })
    };
    limits.iter().map(used).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any write can fail, or succeed and be reported as failed. The lane can restart and the clock can jump at any
    /// time. The books always agree with the rows in the journal, and never exceed the limits.
    #[test]
    fn the_books_have_what_the_journal_has(
        change_ms in prop::sample::select(CHANGES_MS.to_vec()),
        events in prop::collection::vec(event(), 1..60),
    ) {
        let at_once = limit("at-once", json!({"kind": "concurrency", "max": "4"}));
        let calls = limit("calls", json!({"kind": "quota", "max": "12", "window": "day", "time_zone": BERLIN}));
        let sum = json!({"kind": "amount", "max": "100", "pointer": "/n", "window": "day"});
        let sum = limit("sum", sum);
        let cost = limit("cost", json!({"kind": "budget", "max": "9", "window": "hour", "time_zone": BERLIN}));
        let mut models = [&at_once, &calls, &sum, &cost].map(Model::new);
        let mut gate = gate(vec![at_once, calls, sum]);
        gate.credential_mut().limits = vec![cost];
        gate.config.offset_s = zones;
        let start_ms = change_ms - 2 * HOUR_MS;
        gate.now_ms.set(start_ms);
        gate.on_lane(|lane, storage| lane.adopt(storage, TENANT, 0)).unwrap();
        let mut known = 0;
        let (mut open, mut held): (Vec<Json>, Vec<String>) = (Vec::new(), Vec::new());
        // Calls that asked and passed, and those of them that were reported failed.
        let (mut told, mut failed): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::Call { .. } | Event::Repeat { .. } => {
                    let (n, forwards, command) = match event {
                        Event::Call { n, forwarded: true } => (n, true, forwarded(n)),
                        Event::Call { n, .. } => (n, false, asked(json!(n))),
                        Event::Repeat { id } => {
                            let changes = json!({"request_id": format!("r{id}"), "tool_call": {"parameters": {"n": id}}});
                            (id, false, command(&with(read_call(), changes)))
                        }
                        _ => continue,
                    };
                    let call = Call { amount: n, cost: 1, forwarded: forwards };
                    let is_repeat = command.call.request_id.is_some();
                    let has_fault = gate.storage.fault.get().is_some();
                    let reply = gate.try_call(&command);
                    gate.storage.fault.set(None);
                    let new = rows(&gate).split_off(known);
                    let passed = new.into_iter().find(|(_, _, decision)| decision == "allow");
                    let denies = models.iter().any(|model| model.denies(call, gate.now_ms.get()));
                    prop_assert!(passed.is_none() || !denies);
                    prop_assert!(has_fault || passed.is_some() || denies || is_repeat);
                    // An answer that is repeated is that of a call that still counts.
                    let body = reply.as_ref().map(|reply| serde_json::from_str::<Json>(&reply.body).unwrap());
                    if let (Ok(body), None) = (&body, &passed) {
                        let passes_again = body["decision"] == "allow";
                        prop_assert!(!passes_again || failed.iter().all(|id| body["decision_id"] != id.as_str()));
                    }
                    if let Some((id, ..)) = passed {
                        models.iter_mut().for_each(|model| model.take(&id, call, gate.now_ms.get()));
                        if forwards {
                            open.extend(body.ok().map(|body| body["decision"].clone()));
                            held.push(id);
                        } else {
                            told.push(id);
                        }
                    }
                }
                Event::Outcome { which, effect, again } if !open.is_empty() => {
                    let at = which % open.len();
                    let decision = if again { open[at].clone() } else { open.swap_remove(at) };
                    let id = decision["decision_id"].as_str().unwrap();
                    let fault = gate.storage.fault.take();
                    let reserved = is_reserved(&gate, id);
                    gate.storage.fault.set(fault);
                    let (command, now_ms) = (outcome(&decision, effect), gate.now_ms.get());
                    let _ = gate.on_lane(|lane, storage| {
                        lane.record_outcome(storage, &gate.config, &command, now_ms)
                    });
                    gate.storage.fault.set(None);
                    let written = rows(&gate).split_off(known).iter().any(|(of, kind, _)| of == id && kind.is_some());
                    prop_assert_eq!(is_reserved(&gate, id), reserved && !written);
                    if reserved && written {
                        models.iter_mut().for_each(|model| model.settle(id, effect.into()));
                    }
                }
                Event::Report { which, spent } if !told.is_empty() => {
                    let id = &told[which % told.len()];
                    let fault = gate.storage.fault.take();
                    let reserved = is_reserved(&gate, id);
                    gate.storage.fault.set(fault);
                    let body = spent.map_or(FAILED.to_owned(), |spent| {
                        format!(r#"{{"outcome": "succeeded", "amount": "{spent}"}}"#)
                    });
                    let _ = gate.try_call(&report(id, &body));
                    gate.storage.fault.set(None);
                    let written = rows(&gate).split_off(known).iter().any(|(of, ..)| of == id);
                    prop_assert_eq!(is_reserved(&gate, id), reserved && !written);
                    prop_assert!(reserved || !written);
                    if written {
                        let ending = spent.map_or(Settled::Failed, |spent| Settled::Succeeded(Some(Amount::whole(spent))));
                        models.iter_mut().for_each(|model| model.settle(id, ending));
                        failed.extend(spent.is_none().then(|| id.clone()));
                    }
                }
                Event::Outcome { .. } | Event::Report { .. } => {}
                Event::Alarm { after_ms } => {
                    gate.now_ms.set(gate.now_ms.get() + after_ms);
                    let now_ms = gate.now_ms.get();
                    let _ = gate.on_lane(|lane, storage| lane.end_reservations(storage, now_ms));
                    gate.storage.fault.set(None);
                    // Everything that it ended is unclear.
                    for id in held.iter().filter(|id| !is_reserved(&gate, id)) {
                        models.iter_mut().for_each(|model| model.settle(id, Settled::Unclear));
                    }
                }
                Event::Clock { by_ms } => {
                    // A window that is more than 31 days ahead is moved to the present.
                    let to_ms = gate.now_ms.get().saturating_add_signed(by_ms);
                    gate.now_ms.set(to_ms.clamp(start_ms, start_ms + 30 * DAY_MS));
                }
                Event::Evict => gate.evict(),
                Event::Flush => {
                    let _ = gate.flush(None);
                    gate.storage.fault.set(None);
                }
                Event::Fault { after, lost } => {
                    let fault = if lost { Fault::Lost } else { Fault::Failed };
                    gate.storage.fault.set(Some((after, fault)));
                    continue;
                }
            }
            known = rows(&gate).len();
            let limits = models.each_ref().map(|model| Rc::clone(&model.limit));
            prop_assert_eq!(stored(&gate, &limits), models.each_ref().map(Model::sum));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// In any period, no more calls pass than the bucket has at once and refills meanwhile, whatever is evicted or fails.
    #[test]
    fn a_rate_lets_no_more_pass_than_its_bucket_refills(
        events in prop::collection::vec((0..3_000_u64, any::<bool>(), 0..8_u32, any::<bool>()), 1..40),
    ) {
        let (capacity, refill_per_s) = (3, 0.5);
        let rate = json!({"kind": "rate", "capacity": capacity, "refill_per_s": refill_per_s});
        let gate = gate(vec![limit("r", rate)]);
        let mut passed = Vec::<u64>::new();
        for (wait_ms, evicts, after, lost) in events {
            let now_ms = gate.now_ms.get() + wait_ms;
            gate.now_ms.set(now_ms);
            if evicts {
                gate.evict();
            }
            let fault = if lost { Fault::Lost } else { Fault::Failed };
            gate.storage.fault.set(Some((after, fault)));
            let _ = gate.try_call(&asked(json!(1)));
            gate.storage.fault.set(None);
            let allowed = rows(&gate).iter().filter(|(_, _, decision)| decision == "allow").count();
            passed.resize(allowed, now_ms);
            for (at, from_ms) in passed.iter().enumerate() {
                let most = f64::from(capacity) + refill_per_s * (now_ms - from_ms) as f64 / 1_000.0;
                prop_assert!((passed.len() - at) as f64 <= most);
            }
        }
        gate.now_ms.set(gate.now_ms.get() + 2_000);
        prop_assert!(passes(&gate, &asked(json!(1))));
    }
}
