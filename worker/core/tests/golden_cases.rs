//! `policies/cases/*.json`: what the bundled policies say of typical calls. When a policy is
//! edited, these show what changed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

mod support;

use serde_json::{Value, json};
use support::{Gate, read_call, with};

/// The case's call, decided by the whole gate.
fn decide(case: &Value) -> Value {
    let mut gate = Gate::new();
    let described = gate.engine.tool(&format!(
        "{}/{}",
        text(&case["server"]["name"]),
        text(&case["tool"]["name"])
    ));
    let described = described.map_or(
        json!({}),
        |tool| json!({"mutates": tool.mutates, "risk": tool.risk, "egress": tool.egress, "canary": tool.canary}),
    );
    let tool = with(described, case["tool"].clone());
    let flag = |field: &str| u8::from(tool[field].as_bool().unwrap_or(false));
    let mut records = json!({
        "tenant": {"status": "active", "epoch": 1},
        "agent": {
            "lane": 0, "status": "active", "allowed_tools": null, "rate_capacity": null, "rate_refill_per_s": null,
            "quota_per_day": null,
        },
        "credential": {
            "agent": case["agent"]["name"],
            "secret_sha256": gate.records.credential.as_ref().unwrap().secret_sha256,
            "scopes": ["tools:read", "tools:write"],
            "max_source_trust": "trusted_internal_signed", "status": "active", "expires_at_ms": null,
            "allowed_servers": null, "allowed_tools": null, "allowed_networks": null, "signed": true,
            "assigns_runs": false,
        },
        "server": {"status": "active"},
        "tool": {"status": "active", "mutates": flag("mutates"), "egress": flag("egress"), "canary": flag("canary"), "risk": tool["risk"], "tainted": "require_approval"},
    });
    records["agent"] = with(records["agent"].clone(), case["agent"].clone());
    records["server"] = with(records["server"].clone(), case["server"].clone());
    gate.records = support::records_of(records);
    let call = with(
        read_call(),
        json!({
            "agent": {"id": case["agent"]["name"], "environment": case["agent"]["environment"]},
            "tool_call": {
                "tool": case["server"]["name"], "action": case["tool"]["name"],
                "resource": case["resource"],
            },
            "context": {"source_trust": case["source_trust"], "contains_sensitive_data": case["sensitive"]},
        }),
    );
    let mut call = call;
    call["tool_call"]["parameters"] = case["input"].clone();
    let mut command = support::command(&call);
    command.signed = true;
    text(&case["tenant"]).clone_into(&mut command.tenant);
    serde_json::from_str(&gate.try_call(&command).unwrap().body).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

#[test]
fn the_bundle_decides_every_golden_case_as_written() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies/cases");
    let (mut cases, mut wrong) = (0, Vec::new());
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let file: Vec<Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for case in file {
            cases += 1;
            let (answer, expect) = (decide(&case), &case["expect"]);
            let groups = answer["approval"]["approver_group"].as_str().unwrap_or("");
            let groups: Vec<&str> = groups.split(',').filter(|group| !group.is_empty()).collect();
            let actual = json!({
                "decision": answer["decision"],
                "reason_code": answer["reason_code"],
                "policies": answer["matched_policies"],
                "redacted_fields": answer["redacted_fields"],
                "approver_groups": groups,
            });
            let defaults = json!({"redacted_fields": [], "approver_groups": []});
            let expected = with(defaults, expect.clone());
            if actual != expected {
                wrong.push(format!(
                    "{}\n  expected {expected}\n  decided  {actual}",
                    text(&case["name"])
                ));
            }
        }
    }
    assert!(
        cases >= 20 && wrong.is_empty(),
        "{} of {cases} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
