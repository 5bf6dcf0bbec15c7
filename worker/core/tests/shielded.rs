//! What the shield's findings do to calls, on a lane with real SQLite.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod support;

use gateward_core::json::{self, Json as Value};
use gateward_core::policy::PolicyEngine;
use gateward_core::shield::{Category, Modes, Redaction};
use serde_json::{Value as Json, json};
use support::{Gate, read_call, tool, with};

const INJECTION: &str = "1' UNION SELECT password FROM users--";
const CARD: &str = "card 4111 1111 1111 1111 please";

fn modes(text: &str) -> Option<Modes> {
    serde_json::from_str(text).unwrap()
}

fn gate() -> Gate {
    let mut gate = Gate::new();
    gate.records.tool = tool(true, false);
    gate
}

fn write(text: &str) -> Json {
    let call = json!({"tool_call": {"mutates_state": true, "parameters": {"a": [{"note": text}]}}});
    with(read_call(), call)
}

fn outcome(gate: &Gate, text: &str) -> (String, Json) {
    let (_, answer) = gate.call(&write(text));
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    (format!("{} {}", text("decision"), text("reason_code")), answer)
}

#[test]
fn a_finding_is_noted_and_denies_only_where_a_mode_says_so() {
    for (tenant, server, tool, expected, noted) in [
        ("{}", "{}", "{}", "allow policy_allow", true),
        (r#"{"sql_injection":"block"}"#, "{}", "{}", "deny shield_blocked", true),
        ("{}", r#"{"sql_injection":"block"}"#, "{}", "deny shield_blocked", true),
        (
            r#"{"sql_injection":"block"}"#,
            "{}",
            r#"{"sql_injection":"off"}"#,
            "allow policy_allow",
            false,
        ),
        (r#"{"secret":"block"}"#, "{}", "{}", "allow policy_allow", true),
    ] {
        let mut gate = gate();
        gate.records.tenant.as_mut().unwrap().settings.shield = modes(tenant);
        gate.records.server.as_mut().unwrap().shield = modes(server);
        gate.records.tool.as_mut().unwrap().shield = modes(tool);
        let (outcome, answer) = outcome(&gate, INJECTION);
        assert_eq!(outcome, expected, "{tenant} {server} {tool}");
        let found = &answer["shield"]["findings"][0];
        assert_eq!(found["pointer"].as_str(), noted.then_some("/a/0/note"), "{answer}");
        if noted {
            assert_eq!(found["category"], "sql_injection");
            assert_eq!(found["digest"].as_str().unwrap().len(), 16);
        }
    }
}

#[test]
fn neither_answer_nor_journal_holds_what_matched() {
    let mut gate = gate();
    gate.records.tenant.as_mut().unwrap().settings.shield = modes(r#"{"sql_injection":"block"}"#);
    let (_, answer) = outcome(&gate, INJECTION);
    assert!(!answer.to_string().to_uppercase().contains("UNION SELECT"), "{answer}");
    assert!(answer["reason"].as_str().unwrap().contains("`/a/0/note`"), "{answer}");
    let alike = outcome(&gate, INJECTION).1;
    let digest = |answer: &Json| answer["shield"]["findings"][0]["digest"].clone();
    assert_eq!(digest(&answer), digest(&alike));
}

#[test]
fn secrets_and_personal_data_are_redacted_where_a_mode_says_so() {
    let mut gate = gate();
    gate.records.server.as_mut().unwrap().shield = modes(r#"{"personal_data":"redact"}"#);
    let (outcome, answer) = outcome(&gate, CARD);
    assert_eq!(outcome, "redact shield_redact");
    assert_eq!(answer["shield"]["redacts"], json!(["personal_data"]));

    let engine = PolicyEngine::new(gateward_policies::bundle());
    let redaction =
        Redaction { shield: engine.shield(), tenant: "t", categories: &[Category::PersonalData] };
    for (text, expected) in [
        (r#"{"a":"card 4111 1111 1111 1111 please"}"#, r#"{"a":"card [redacted:card] please"}"#),
        (r#"{"b@c.example":1}"#, r#"{"[redacted:mail-address]#0":1}"#),
        (
            r#"["a@b.example, c@d.example"]"#,
            r#"["[redacted:mail-address], [redacted:mail-address]"]"#,
        ),
        (r#"["4111%201111%201111%201111"]"#, r#"["[redacted:card]"]"#),
        (r#"{"card":4111111111111111}"#, r#"{"card":"[redacted:card-number]"}"#),
        (r#"["Größe é, card 4111 1111 1111 1111"]"#, r#"["Größe é, card [redacted:card]"]"#),
        (r#"["a@b.example, c&#64;d.example"]"#, r#"["[redacted:mail-address]"]"#),
        (r#"["nothing"]"#, r#"["nothing"]"#),
    ] {
        let mut value: Value = json::parse(text.as_bytes()).unwrap();
        redaction.value(&mut value, &mut Vec::new());
        assert_eq!(value.canonical(), expected);
    }
}

#[test]
fn many_findings_hide_none_that_a_mode_is_for() {
    let mut gate = gate();
    gate.records.tool = tool(false, false);
    let modes = modes(r#"{"sql_injection":"block","personal_data":"redact"}"#);
    gate.records.tenant.as_mut().unwrap().settings.shield = modes;
    let secrets = vec!["http://169.254.169.254/latest/meta-data/"; 40];
    let read = |last: &str| {
        let parameters = json!({"a": secrets, "b": last});
        gate.call(&with(read_call(), json!({"tool_call": {"parameters": parameters}}))).1
    };
    let redacted = read("to a@b.example");
    assert_eq!(redacted["decision"], "redact");
    assert_eq!(redacted["shield"]["truncated"], true);
    assert_eq!(redacted["shield"]["findings"].as_array().unwrap().len(), 16);
    assert_eq!(read(INJECTION)["reason_code"], "shield_blocked");
}

#[test]
fn a_write_that_cannot_be_read_to_its_end_is_forbidden() {
    // A gzip header without data.
    let damaged = "H4sIAAAAAAAAAwAAAAAAAAAAAAAAAA==";
    let mut gate = gate();
    let (outcome, answer) = outcome(&gate, damaged);
    assert_eq!(outcome, "deny policy_forbid", "{answer}");
    assert_eq!(answer["matched_policies"], json!(["base/shield#unread-writes-are-forbidden"]));
    gate.records.tool = tool(false, false);
    let read = json!({"tool_call": {"parameters": {"note": damaged}}});
    assert_eq!(gate.call(&with(read_call(), read)).1["decision"], "allow");
}
