//! Who may start a run and report results, and what a run credential does.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{self, Gate, command, read_call};
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::call::run::{ReportedResult, RunStart};
use gateward_core::registry::{AgentStatus, CredentialStatus, ServerTrust};
use serde_json::{Value as Json, json};

fn start(issues_credential: bool) -> Purpose {
    Purpose::StartRun(RunStart {
        instruction: "pay".to_owned(),
        plan: Vec::new(),
        issues_credential,
    })
}

fn report() -> Purpose {
    Purpose::ReportResult(ReportedResult { decision_id: String::new(), text: "text".to_owned() })
}

/// A command of a harness about the run `r`.
fn asking(purpose: Purpose) -> GateCommand {
    let mut command = command(&read_call());
    if matches!(purpose, Purpose::StartRun(_)) {
        (command.call.server, command.call.tool) = (String::new(), String::new());
    }
    command.call.environment = None;
    command.call.run_id = "r".to_owned();
    command.purpose = purpose;
    command
}

fn code(gate: &Gate, command: &GateCommand) -> (u16, Json) {
    let reply = gate.try_call(command).unwrap();
    let body: Json = serde_json::from_str(&reply.body).unwrap();
    (reply.status, body.get("code").cloned().unwrap_or_default())
}

#[test]
fn only_the_harness_itself_starts_runs_and_reports_results() {
    type Change = fn(&mut Gate, &mut GateCommand);
    let cases: [(&str, Change, u16, &str); 7] = [
        ("a harness", |_, _| {}, 200, ""),
        (
            "an agent that is not one",
            |gate, _| gate.credential_mut().assigns_runs = false,
            403,
            "forbidden",
        ),
        ("a run credential of one", |_, command| command.run_credential = true, 403, "forbidden"),
        (
            "a revoked one",
            |gate, _| {
                gate.credential_mut().status = CredentialStatus::Revoked;
            },
            401,
            "unauthorized",
        ),
        (
            "one with another secret",
            |_, command| command.secret_hash = [0; 32],
            401,
            "unauthorized",
        ),
        (
            "a frozen agent's",
            |gate, _| gate.agent_mut().status = AgentStatus::Frozen,
            403,
            "forbidden",
        ),
        (
            "one over its rate",
            |gate, _| {
                gate.agent_mut().request_rate = support::rate(1, 0.001);
                gate.try_call(&asking(Purpose::Read)).unwrap();
            },
            429,
            "rate_limited",
        ),
    ];
    for (name, change, status, expected) in cases {
        for purpose in [start(true), start(false), report()] {
            let mut gate = Gate::new();
            gate.credential_mut().assigns_runs = true;
            let mut command = asking(purpose);
            change(&mut gate, &mut command);
            let expected = Some(expected).filter(|code| !code.is_empty());
            let answered = code(&gate, &command);
            assert_eq!(answered, (status, json!(expected)), "{name}: {:?}", command.purpose);
            // Only a start of a run has a receipt.
            let starts = matches!(command.purpose, Purpose::StartRun(_)) && status == 200;
            assert_eq!(gate.receipts().len(), usize::from(starts), "{name}");
        }
    }
}

/// An agent with a run credential has no key to sign with.
#[test]
fn a_credential_that_signs_issues_no_run_credentials() {
    for (purpose, status) in [(start(true), 403), (start(false), 200), (report(), 200)] {
        let mut gate = Gate::new();
        let credential = gate.credential_mut();
        (credential.assigns_runs, credential.signed) = (true, true);
        let mut command = asking(purpose);
        command.signed = true;
        assert_eq!(code(&gate, &command).0, status, "{:?}", command.purpose);
    }
}

/// An agent that has only run credentials cannot choose the run with less taint.
#[test]
fn a_call_with_a_run_credential_belongs_to_its_run() {
    let mut gate = Gate::new();
    gate.credential_mut().assigns_runs = true;
    gate.server_mut().trust = ServerTrust::Untrusted;
    let tainted = |gate: &Gate, run: &str| {
        let mut call = command(&read_call());
        call.run_credential = true;
        call.call = call.call.in_run(run).unwrap();
        call.purpose = Purpose::Authorize;
        let reply = gate.try_call(&call).unwrap();
        let body: Json = serde_json::from_str(&reply.body).unwrap();
        body["trust"]["lowered_by"].clone()
    };
    let first = tainted(&gate, "r");
    let second = tainted(&gate, "r");
    assert_ne!(first, json!("taint"));
    assert_eq!(second, json!("taint"), "the first call read an untrusted server");
    assert_eq!(tainted(&gate, "s"), first, "another run is clean");
}
