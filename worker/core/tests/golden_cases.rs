//! Golden cases: typical calls, and what is decided about each. `policies/cases/*.json` hold for the bundled
//! policies: when a policy is edited, they show what changed. Each recipe of the policy guide
//! (`docs/recipes/*.cedar`) has cases of its own, which hold when it is added to the demo tenant's policies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use gateward_core::call::command::GateCommand;
use gateward_core::gate::velocity::of_call;
use gateward_core::limit::Amount;
use gateward_core::policy::{CallEntities, PolicyRequest};
use gateward_core::velocity::Reach;
use gateward_core::velocity::shared::Look;
use gateward_policy_compiler::{SourceFile, compile, read_sources};
use serde_json::{Value, json};
use support::{Gate, read_call, with};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The case's call, decided by the whole gate.
fn decide(mut gate: Gate, case: &Value) -> Value {
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
    let windows = case["velocity"].as_object().into_iter().flatten();
    windows.for_each(|(name, earlier)| count_earlier(&gate, &command, name, earlier));
    serde_json::from_str(&gate.try_call(&command).unwrap().body).unwrap()
}

/// Counts earlier calls in one of the tenant's windows: as many, and of the sum, as the case says.
fn count_earlier(gate: &Gate, command: &GateCommand, name: &str, earlier: &Value) {
    let windows = of_call(&gate.engine, &gate.config.value_key, command, &gate.records);
    let window = windows.iter().find(|counting| counting.window.name == name).unwrap();
    assert_eq!(window.window.reach, Reach::Tenant, "{name}");
    let sum: Option<Amount> = earlier["sum"].as_str().map(|sum| sum.parse().unwrap());
    for call in 0..earlier["count"].as_u64().unwrap() {
        // The first call has the whole sum.
        let amount = sum.map(|sum| if call == 0 { sum } else { Amount::ZERO });
        gate.look(Some(&format!("earlier {call}")), &Look { amount, ..window.look() });
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The files of a directory that end in `.<extension>`, sorted.
fn files(directory: &str, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new(ROOT).join(directory)).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    paths.sort();
    paths
}

/// Each case of a file that `gate` decides otherwise, and how many cases there are.
fn wrong_cases(path: &Path, gate: impl Fn() -> Gate) -> (Vec<String>, usize) {
    let cases: Vec<Value> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let (answer, expect) = (decide(gate(), case), &case["expect"]);
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
                "{}: {}\n  expected {expected}\n  decided  {actual}",
                path.file_name().unwrap().to_string_lossy(),
                text(&case["name"])
            ));
        }
    }
    (wrong, cases.len())
}

#[test]
fn the_bundle_decides_every_golden_case_as_written() {
    let (mut count, mut wrong) = (0, Vec::new());
    for path in files("policies/cases", "json") {
        let (found, cases) = wrong_cases(&path, Gate::new);
        count += cases;
        wrong.extend(found);
    }
    assert!(
        count >= 20 && wrong.is_empty(),
        "{} of {count} cases:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// `support::Gate` checks that each request conforms to the schema. This shows that it notices one that does not.
#[test]
#[should_panic(expected = "context")]
fn a_request_that_lacks_the_context_of_the_schema_is_noticed() {
    let entities = CallEntities {
        tenant: "demo",
        agent: "demo/coder",
        groups: &[],
        tool: "notes/list",
        mutates: false,
        egress: false,
        canary: false,
        server: "demo/notes",
    };
    let text = |name, value: &str| (name, value.into());
    let request = PolicyRequest {
        entities,
        agent_attributes: vec![text("environment", "production"), text("risk_tier", "low")],
        server_attributes: vec![text("trust", "trusted"), text("kind", "mcp")],
        context: Vec::new(),
    };
    drop(support::engine(gateward_policies::bundle()).evaluate(request));
}

#[test]
fn each_recipe_of_the_policy_guide_decides_its_cases_as_written() {
    let mut sources = read_sources(&Path::new(ROOT).join("policies")).unwrap();
    let recipes = files("docs/recipes", "cedar");
    assert!(!recipes.is_empty(), "no recipes");
    for recipe in recipes {
        let name = recipe.file_stem().unwrap().to_string_lossy().into_owned();
        let path = format!("tenants/demo/{name}.cedar");
        let text = fs::read_to_string(&recipe).unwrap();
        sources.policies.push(SourceFile { path, text });
        let compiled = compile(&sources).unwrap_or_else(|mistakes| panic!("{name}: {mistakes:?}"));
        assert!(compiled.warnings().is_empty(), "{name}: {:?}", compiled.warnings());
        let bundle = compiled.leak();
        sources.policies.pop();
        let gate = || Gate { engine: support::engine(bundle), ..Gate::new() };
        let (wrong, cases) = wrong_cases(&recipe.with_extension("json"), gate);
        assert!(cases >= 2 && wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
