//! Golden cases: typical calls, and what is decided about each. `policies/cases/*.json` hold for the bundled
//! policies: when a policy is edited, they show what changed. Each recipe of the policy guide
//! (`docs/recipes/*.cedar`) has cases of its own, which hold when it is added to the demo tenant's policies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::support::{self, Gate, read_call, with};
use gateward_core::call::command::GateCommand;
use gateward_core::gate::AgentState;
use gateward_core::gate::velocity::of_call;
use gateward_core::gate::windows::hour;
use gateward_core::limit::Amount;
use gateward_core::policy::{CallEntities, PolicyEngine, PolicyRequest};
use gateward_core::velocity::shared::CountRequest;
use gateward_core::velocity::window::PARTS_IN_ROW;
use gateward_core::velocity::{Reach, SlidingWindow};
use gateward_policy_compiler::{SourceFile, compile, read_sources};
use serde_json::{Value, json};

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
            "lane": 0, "status": "active", "allowed_tools": null,
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
    let mut agent = AgentState::default();
    // Makes the lane's tables.
    gate.on_lane(|_, _| Ok(())).unwrap();
    windows.for_each(|(name, earlier)| count_earlier(&gate, &command, &mut agent, name, earlier));
    let snapshot = (&command.call.agent, agent.encode());
    gate.storage.connection.execute("INSERT INTO agents VALUES (?1, ?2)", snapshot).unwrap();
    serde_json::from_str(&gate.try_call(&command).unwrap().body).unwrap()
}

/// Counts earlier calls in a window, with the number and the sum that the case gives. The window is where the gate
/// reads it: in the agent's state, in the lane, or in an object of the tenant.
fn count_earlier(
    gate: &Gate,
    command: &GateCommand,
    agent: &mut AgentState,
    name: &str,
    earlier: &Value,
) {
    let windows = of_call(&gate.engine, &gate.config.value_key, command, &gate.records);
    let counting = windows.iter().find(|counting| counting.window.name == name).unwrap();
    let (now_ms, width_ms) = (gate.now_ms.get(), counting.window.width_ms);
    let sum: Option<Amount> = earlier["sum"].as_str().map(|sum| sum.parse().unwrap());
    let mut window = SlidingWindow::default();
    for call in 0..earlier["count"].as_u64().unwrap() {
        // The first call has the whole sum.
        let amount = sum.map(|sum| if call == 0 { sum } else { Amount::ZERO });
        match counting.window.reach {
            Reach::Agent => window.add(now_ms, width_ms, amount, PARTS_IN_ROW),
            Reach::Tenant => {
                let request = CountRequest { amount, ..counting.count_request() };
                gate.count_call(Some(&format!("earlier {call}")), &request).unwrap();
            }
        }
    }
    let record = serde_json::to_string(&window).unwrap();
    match (counting.window.reach, counting.row()) {
        (Reach::Tenant, _) => {}
        (Reach::Agent, None) => agent.windows.push((counting.window.id.into(), window)),
        (Reach::Agent, Some(row)) => {
            let end = hour(window.ends_at_ms(width_ms)) as i64;
            let insert = "INSERT INTO windows VALUES (?1, ?2, ?3)";
            gate.storage.connection.execute(insert, (row, end, record)).unwrap();
        }
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

/// Each case of a file that `gate` decides differently, and the number of cases.
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
        let engine = Rc::new(support::engine(bundle));
        let gate = || Gate { engine: Rc::clone(&engine), ..Gate::new() };
        let (wrong, cases) = wrong_cases(&recipe.with_extension("json"), gate);
        assert!(cases >= 2 && wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn a_case_sets_windows_wherever_they_are_kept() {
    let mut sources = read_sources(&Path::new(ROOT).join("policies")).unwrap();
    let of_agent = json!({"to_customer": {"tools": ["crm/refund"], "sum": "/amount", "key": ["/customer_id"],
        "window_s": 60, "reach": "agent"}});
    let windows = with(serde_json::from_str(&sources.velocity).unwrap(), of_agent);
    sources.velocity = windows.to_string();
    let policy = r#"@id("all") @reason("As the case says, and this call.")
        forbid (principal, action == Action::"crm/refund", resource)
        when {
          context.velocity.calls_1m.count == 8 && context.velocity.refunds_to_customer.count == 2 &&
          context.velocity.to_customer.count == 4 && context.velocity.to_customer.sum == decimal("50.5")
        };"#;
    let path = "tenants/demo/windows.cedar".to_owned();
    sources.policies.push(SourceFile { path, text: policy.to_owned() });
    let compiled = compile(&sources).unwrap_or_else(|mistakes| panic!("{mistakes:?}"));
    let gate = Gate { engine: Rc::new(PolicyEngine::new(compiled.leak())), ..Gate::new() };
    let case = json!({
        "tenant": "demo",
        "agent": {"name": "support", "environment": "production", "risk_tier": "low", "groups": ["support"]},
        "server": {"name": "crm", "trust": "trusted", "kind": "mcp"},
        "tool": {"name": "refund"},
        "resource": "",
        "source_trust": "trusted_internal_signed",
        "sensitive": false,
        "input": {"customer_id": "c-1", "amount": 20, "currency": "EUR"},
        "velocity": {
            "calls_1m": {"count": 7},
            "refunds_to_customer": {"count": 1},
            "to_customer": {"count": 3, "sum": "30.5"},
        },
    });
    let answer = decide(gate, &case);
    assert_eq!(answer["matched_policies"], json!(["tenants/demo/windows#all"]), "{answer}");
}
