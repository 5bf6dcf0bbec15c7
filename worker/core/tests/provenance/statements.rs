//! What a harness states about a run: its instruction, its plan, and its results.

use gateward_core::call::command::Purpose;
use gateward_core::call::run::{ReportedResult, RunStart};
use gateward_core::json;
use gateward_core::policy::bundle::Risk;
use gateward_core::provenance::PlannedCall;
use gateward_core::registry::ServerTrust;
use serde_json::{Value as Json, json as value};

use super::{EVIL, RENT, decide, gate, in_run, report, set_trust, tell};

#[test]
fn a_statement_that_is_repeated_stores_nothing() {
    let gate = gate();
    let rows = || -> i64 {
        let count = "SELECT (SELECT count(*) FROM observations) + (SELECT count(*) FROM journal)";
        gate.storage.connection.query_row(count, [], |row| row.get(0)).unwrap()
    };
    let plan = vec![PlannedCall {
        tool: "bank/pay".to_owned(),
        arguments: vec![("/to".to_owned(), vec![gateward_core::json::Json::Integer(5)])],
        at_most: vec![("/amount".to_owned(), 100.0)],
        ..PlannedCall::default()
    }];
    let mut stored = 0;
    for (instruction, plan, written) in [
        ("Pay the shop.", Vec::new(), 2),
        ("Pay the shop.", Vec::new(), 0),
        ("Pay the shop.", plan.clone(), 2),
        ("Pay the shop.", plan, 0),
        ("Pay the baker.", Vec::new(), 2),
        ("Pay the shop.", Vec::new(), 0),
    ] {
        let instruction = instruction.to_owned();
        let start = RunStart { instruction, plan, issues_credential: true };
        tell(&gate, "r", Purpose::StartRun(start));
        stored += written;
        assert_eq!(rows(), stored);
    }
}

#[test]
fn a_plan_states_what_the_arguments_of_its_own_tool_may_be() {
    let mut gate = gate();
    let values = vec![json::parse(format!("{EVIL:?}").as_bytes()).unwrap()];
    let plan = vec![PlannedCall {
        tool: "bank/pay".to_owned(),
        arguments: vec![("/to".to_owned(), values)],
        at_most: vec![("/amount".to_owned(), 100.0)],
        ..PlannedCall::default()
    }];
    let start = RunStart { instruction: "Do it.".to_owned(), plan, issues_credential: true };
    tell(&gate, "r", Purpose::StartRun(start));
    report(&mut gate, "r", ServerTrust::Untrusted, "x");
    for (action, arguments, expected) in [
        ("pay", value!({ "to": EVIL }), "instruction"),
        ("pay", value!({ "to": [EVIL] }), "instruction"),
        ("pay", value!({ "to": [EVIL, RENT] }), "nowhere"),
        ("pay", value!({ "cc": EVIL }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": 100 }), "instruction"),
        ("pay", value!({ "to": EVIL, "amount": 0.5 }), "instruction"),
        ("pay", value!({ "to": EVIL, "amount": 100.01 }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": -1 }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": "100" }), "instruction"),
        ("pay", value!({ "to": EVIL, "amount": "99.50" }), "instruction"),
        ("pay", value!({ "to": EVIL, "amount": "100.01" }), "nowhere"),
        // Some readers take it for 1200.
        ("pay", value!({ "to": EVIL, "amount": "1.200" }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": "1e1" }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": "010" }), "nowhere"),
        ("pay", value!({ "to": EVIL, "sum": 1 }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": [40, 60] }), "instruction"),
        ("pay", value!({ "to": EVIL, "amount": [100, 100, 100] }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": [200, -150] }), "nowhere"),
        ("pay", value!({ "to": EVIL, "amount": [40, "60"] }), "instruction"),
        ("pay", value!({ "to": EVIL, "amount": [40, "60.01"] }), "nowhere"),
        ("refund", value!({ "amount": 1 }), "nowhere"),
        ("refund", value!({ "to": EVIL }), "nowhere"),
    ] {
        let answer = decide(&gate, &in_run("r", action, arguments.clone()));
        assert_eq!(answer["provenance"]["lowest"], expected, "{action} {arguments}");
    }
}

#[test]
fn a_plan_lets_the_agent_choose_one_value_from_a_trusted_result() {
    const FIRST: &str = "FR7630006000011234567890189";
    const OTHER: &str = "NL91ABNA0417164300";
    let list = |accounts: &[&str]| serde_json::to_string(accounts).unwrap();
    let to = |account: &str| value!({ "to": account });
    for (what, results, calls) in [
        (
            "one value, again and in another form, and no second one",
            &[("list", ServerTrust::Trusted, list(&[FIRST, OTHER]))][..],
            &[
                ("pay", to(FIRST), "allow instruction"),
                (
                    "pay",
                    value!({ "to": ["FR76 3000 6000 0112 3456 7890 189"] }),
                    "allow instruction",
                ),
                ("pay", to(OTHER), "require_approval trusted"),
                ("pay", to(FIRST), "allow instruction"),
            ][..],
        ),
        (
            "a list with one item, and not with two",
            &[("list", ServerTrust::Trusted, list(&[FIRST, OTHER]))],
            &[
                ("pay", value!({ "to": [FIRST, OTHER] }), "require_approval trusted"),
                ("pay", value!({ "to": [FIRST] }), "allow instruction"),
            ],
        ),
        (
            "a call that waits chooses nothing",
            &[("list", ServerTrust::Trusted, list(&[FIRST, OTHER]))],
            &[
                ("pay", value!({ "to": OTHER, "cc": EVIL }), "require_approval nowhere"),
                ("pay", to(FIRST), "allow instruction"),
            ],
        ),
        (
            "an injected text in the very result",
            &[("list", ServerTrust::Untrusted, list(&[EVIL]))],
            &[("pay", to(EVIL), "require_approval untrusted")],
        ),
        (
            "an injected text before the list",
            &[
                ("search", ServerTrust::Untrusted, list(&[EVIL])),
                ("list", ServerTrust::Trusted, list(&[EVIL])),
            ],
            &[("pay", to(EVIL), "require_approval untrusted")],
        ),
        (
            "another trusted tool",
            &[("search", ServerTrust::Trusted, list(&[FIRST]))],
            &[("pay", to(FIRST), "require_approval trusted")],
        ),
        (
            "another argument, another tool, another value",
            &[("list", ServerTrust::Trusted, list(&[FIRST]))],
            &[
                ("pay", value!({ "cc": FIRST }), "require_approval trusted"),
                // The plan does not name this tool either.
                ("refund", to(FIRST), "require_approval nowhere"),
                ("pay", to(EVIL), "require_approval nowhere"),
            ],
        ),
    ] {
        let mut gate = gate();
        gate.tool_mut().risk = Risk::High;
        let plan = vec![PlannedCall {
            tool: "bank/pay".to_owned(),
            from: vec![("/to".to_owned(), vec!["bank/list".to_owned()])],
            ..PlannedCall::default()
        }];
        let start = RunStart { instruction: "Do it.".to_owned(), plan, issues_credential: true };
        tell(&gate, "r", Purpose::StartRun(start));
        for (tool, trust, text) in results {
            set_trust(&mut gate, *trust);
            let mut command = in_run("r", tool, value!({}));
            let reported = ReportedResult { decision_id: String::new(), text: text.clone() };
            command.purpose = Purpose::ReportResult(reported);
            assert_eq!(gate.try_call(&command).unwrap().status, 200);
        }
        report(&mut gate, "r", ServerTrust::Untrusted, "x");
        for (action, arguments, expected) in calls {
            let answer = decide(&gate, &in_run("r", action, arguments.clone()));
            let text = |value: &Json| value.as_str().unwrap().to_owned();
            let found = [&answer["decision"], &answer["provenance"]["lowest"]].map(text).join(" ");
            assert_eq!(found, *expected, "{what}: {action} {arguments}");
            gate.evict();
        }
    }
}

#[test]
fn only_a_harness_states_and_reports() {
    let start = || {
        Purpose::StartRun(RunStart {
            instruction: format!("Pay {EVIL}."),
            plan: Vec::new(),
            issues_credential: true,
        })
    };
    let reported = || {
        let decision_id = String::new();
        Purpose::ReportResult(ReportedResult { decision_id, text: EVIL.to_owned() })
    };
    for purpose in [start, reported] as [fn() -> Purpose; 2] {
        let gate = gate();
        let mut command = in_run("r", "list", value!({}));
        command.purpose = purpose();
        command.run_credential = true;
        assert_eq!(gate.try_call(&command).unwrap().status, 403, "run credential");
        let mut gate = gate;
        gate.credential_mut().assigns_runs = false;
        command.run_credential = false;
        assert_eq!(gate.try_call(&command).unwrap().status, 403, "agent's own credential");
    }
}
