//! What a record has of a call in which the shield found something, and what the name of a field tells.

use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::call::http_tool::{self, HttpRequest};
use gateward_core::policy::PolicyEngine;
use gateward_core::registry::{ServerKind, ServerTrust};
use gateward_core::shield::{Category, Redaction};
use serde_json::{Value as Json, json};

use super::{gate, modes, proxying};
use crate::support::{Gate, command, read_call, tool, with};

/// The receipt of the last decision.
fn receipt(gate: &Gate) -> Json {
    serde_json::from_str(&gate.receipts().last().unwrap().body).unwrap()
}

#[test]
fn no_receipt_has_the_part_of_a_resource_in_which_something_was_found() {
    let off = r#"{"personal_data":"off"}"#;
    let (mail, marked) = ("bob@corp.example", "[redacted:mail-address]");
    for (modes_of_tenant, resource, expected) in [
        ("{}", mail, marked.to_owned()),
        // In the whole path it could be a user before a host.
        ("{}", "/users/bob@corp.example/x", ["/users/", marked, "/x"].concat()),
        ("{}", "acme/shop", "acme/shop".to_owned()),
        (off, mail, mail.to_owned()),
        // Markers are longer, and a receipt has a bound.
        (
            "{}",
            &"a@b.cd/".repeat(290),
            [marked, "/"].concat().repeat(86).split_at(2_048).0.to_owned(),
        ),
    ] {
        for granted in [true, false] {
            let mut gate = gate();
            gate.tenant_mut().settings.shield = modes(modes_of_tenant);
            // Without a grant, the call is denied before the shield reads it.
            gate.agent_mut().allowed_tools = (!granted).then(Vec::new);
            let parameters = json!({"resource": resource, "parameters": {"mail": mail}});
            let asked = command(&with(read_call(), json!({"tool_call": parameters})));
            gate.try_call(&asked).unwrap();
            let receipt = receipt(&gate);
            let passes = receipt["decision"] == "allow";
            assert_eq!((passes, receipt["resource"].as_str()), (granted, Some(&*expected)));
            assert_eq!(receipt["action_hash"], hex::encode(asked.call.action_hash), "as sent");
        }
    }
}

#[test]
fn no_receipt_has_a_value_that_the_name_of_a_paths_parameter_tells() {
    for (route, expected) in [
        ("/people/{ssn}/mails", "/people/[redacted:social-security-number]/mails"),
        ("/people/{room}/mails", "/people/078-05-1120/mails"),
    ] {
        let mut gate = proxying("{}");
        gate.records.tool = tool(false, false);
        gate.server_mut().kind = ServerKind::Http;
        let name = route.split(['{', '}']).nth(1).unwrap();
        let value =
            json!({"resource": "/people/078-05-1120/mails", "parameters": {name: "078-05-1120"}});
        let call = command(&with(read_call(), json!({"tool_call": value})));
        let routed = GateCommand { purpose: Purpose::Routed(route.to_owned()), ..call };
        gate.try_call(&routed).unwrap();
        let receipt = receipt(&gate);
        assert_eq!(
            (&receipt["decision"], &receipt["resource"]),
            (&json!("allow"), &json!(expected))
        );
    }
}

#[test]
fn no_place_of_a_destination_has_a_name_in_which_something_was_found() {
    let mut gate = gate();
    gate.credential_mut().assigns_runs = true;
    let in_run = |call: Json| with(with(read_call(), call), json!({"trace": {"run_id": "r"}}));
    gate.records.tool = tool(false, false);
    gate.server_mut().trust = ServerTrust::Untrusted;
    assert_eq!(gate.call(&in_run(json!({}))).1["decision"], "allow");
    gate.records.tool = tool(true, false);
    gate.server_mut().trust = ServerTrust::Trusted;
    for (name, expected) in [("bob@corp.example", "/*"), ("owner", "/owner")] {
        let parameters = json!({"mutates_state": true, "parameters": {name: "mallory"}});
        let (_, answer) = gate.call(&in_run(json!({"tool_call": parameters})));
        let reason = answer["reason"].as_str().unwrap();
        assert_eq!(answer["decision"], "require_approval", "{answer}");
        assert!(reason.contains(&format!("`{expected}` was seen in no result")), "{reason}");
        let receipt = receipt(&gate);
        for record in [&answer, &receipt] {
            let sinks = record["provenance"]["sinks"].as_array().unwrap();
            assert!(sinks.iter().any(|it| it["sink"] == expected), "{record}");
            assert!(!record.to_string().contains("bob@"), "{record}");
        }
    }
}

#[test]
fn the_name_of_a_field_tells_what_is_redacted_in_a_path_and_a_query() {
    let engine = PolicyEngine::new(gateward_policies::bundle());
    let categories = [Category::Secret, Category::PersonalData];
    let redaction = Redaction { shield: engine.shield(), tenant: "t", categories: &categories };
    for (route, query, expected) in [
        ("/a/{room}", "b=1", Some("b=1")),
        ("/a/{ssn}", "b=1", None),
        (
            "/a/{room}",
            "password=kV7-xQ2.mZ9rT4w&b=1",
            Some("password=%5Bredacted%3Aassigned-secret%5D&b=1"),
        ),
        ("/a/{room}", "note=kV7-xQ2.mZ9rT4w", Some("note=kV7-xQ2.mZ9rT4w")),
    ] {
        let mut request = HttpRequest {
            method: "GET".to_owned(),
            path: "/a/078-05-1120".to_owned(),
            query: query.to_owned(),
            body: None,
        };
        let done = http_tool::redact(&mut request, route, &[], redaction);
        assert_eq!(done.then_some(request.query.as_str()), expected, "{route} {query}");
    }
}
