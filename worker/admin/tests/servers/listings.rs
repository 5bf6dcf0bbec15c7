//! Lists of tools that pass through, and the bounds of all lists.

use gateward_admin::MIN_MANIFEST_INTERVAL_MS;
use gateward_admin::manifest::{MAX_DEFINITION_BYTES, MAX_DISCOVERED_TOOLS};
use gateward_core::problem::ProblemCode::NotFound;
use gateward_core::registry::ChangedKey;
use serde_json::{Value as Json, json};

use super::{URL, approve, create, hash, last_event, listed, read, tool, tool_of};
use crate::support::registry::{Ask, Effect, Registry, patch, post};

#[test]
fn a_listing_that_passes_through_registers_what_it_brings() {
    let registry = listed(&json!([tool("a", ""), tool("b", "")]));
    approve(&registry, "a");
    let server = read(&registry, "/v1/servers/s");
    let epoch = registry.epoch();
    let same = registry.see("s", &json!([tool("a", "")])).unwrap();
    assert_eq!((same.effect, registry.epoch()), (Effect::Unchanged, epoch));

    let seen = registry.see("s", &json!([tool("a", "changed"), tool("c", "")])).unwrap();
    assert_eq!((seen.effect, registry.epoch()), (Effect::Changed, epoch + 1));
    assert_eq!(seen.push.unwrap().keys, [ChangedKey::Server("s".to_owned())]);
    let a = tool_of(&registry, "a");
    assert_eq!(
        (&a["approved"], &a["definition_sha256"]),
        (&json!(false), &hash(&tool("a", "changed")))
    );
    assert_eq!(tool_of(&registry, "c")["status"], "pending");
    assert_eq!(read(&registry, "/v1/servers/s"), server);
    let event = last_event(&registry);
    assert_eq!(
        (&event["kind"], &event["source"], &event["detail"]),
        (
            &json!("server_manifest_changed"),
            &json!("gateward"),
            &json!({"server": "s", "new_tools": ["c"], "changed_tools": ["a"]})
        )
    );
}

#[test]
fn a_server_that_changes_at_every_listing_is_written_down_once_a_minute() {
    let registry = listed(&json!([tool("a", "0"), tool("b", "0")]));
    approve(&registry, "b");
    let see = |name: &str, description: &str| {
        registry.see("s", &json!([tool(name, description)])).unwrap().effect
    };
    assert_eq!(see("a", "1"), Effect::Unchanged, "it waits already");
    assert_eq!(see("b", "1"), Effect::Changed, "what is approved never waits");
    assert_eq!(see("b", "2"), Effect::Unchanged);
    registry.wait(MIN_MANIFEST_INTERVAL_MS / 1_000 - 1);
    assert_eq!(see("b", "2"), Effect::Unchanged);
    registry.wait(1);
    assert_eq!(see("b", "3"), Effect::Changed);
    assert_eq!(see("b", "4"), Effect::Unchanged);
    assert_eq!(tool_of(&registry, "b")["definition_sha256"], hash(&tool("b", "3")));
}

#[test]
fn new_tools_are_written_down_once_a_minute_too() {
    let registry = listed(&json!([]));
    let see = |name: &str| registry.see("s", &json!([tool(name, "")])).unwrap().effect;
    assert_eq!(see("a"), Effect::Changed);
    assert_eq!(see("b"), Effect::Unchanged);
    registry.wait(MIN_MANIFEST_INTERVAL_MS / 1_000);
    assert_eq!(see("b"), Effect::Changed);
    assert_eq!(tool_of(&registry, "b")["status"], "pending");
}

#[test]
fn a_tool_that_becomes_unusable_waits_and_stays_as_it_is_not() {
    let unusable = [
        json!({"name": "a", "inputSchema": {"pattern": r"^(?:a{0,200}){0,200}$"}}),
        json!({"name": "a", "inputSchema": {"$ref": "https://example.com/"}}),
        tool("a", &"x".repeat(MAX_DEFINITION_BYTES)),
        json!(r#"{"name":"a","description":"1","description":"2"}"#),
    ];
    let twice = vec![tool("a", ""), tool("a", "the second")];
    for tools in unusable.map(|one| vec![one]).into_iter().chain([twice]) {
        for passing in [true, false] {
            let registry = listed(&json!([tool("a", "")]));
            approve(&registry, "a");
            let tools = json!(tools);
            if passing {
                assert!(registry.see("s", &tools).unwrap().changed());
                assert_eq!(registry.see("s", &tools).unwrap().effect, Effect::Unchanged);
            } else {
                registry.listing.replace(Some(json!({ "tools": tools })));
                let changed = registry.ask(&patch("/v1/servers/s", json!({"upstream": {}})));
                assert_eq!(changed.unwrap().body["skipped_tools"][0]["name"], "a");
            }
            let a = tool_of(&registry, "a");
            assert_eq!(
                (&a["approved"], &a["input_schema"]),
                (&json!(false), &json!({"type": "object"}))
            );
            let readable = |tool: &&Json| tool.is_object();
            let mut hashes = tools.as_array().unwrap().iter().filter(readable).map(hash);
            assert!(hashes.all(|hash| hash != a["definition_sha256"]));
            assert_eq!(last_event(&registry)["detail"]["unusable_tools"], json!(["a"]));
        }
    }
}

#[test]
fn a_schema_for_a_tool_of_an_administrator_waits_if_nobody_asked_for_it() {
    let registry = listed(&json!([]));
    let fields = json!({"tool": "a", "mutates": false, "risk": "high"});
    registry.ask(&post("/v1/servers/s/tools", fields)).unwrap();
    approve(&registry, "a");
    assert!(registry.see("s", &json!([tool("a", "")])).unwrap().changed());
    assert_eq!(tool_of(&registry, "a")["approved"], false);
}

#[test]
fn limits_cut_new_tools_and_not_those_that_changed() {
    let new = |from: usize| {
        (from..from + MAX_DISCOVERED_TOOLS)
            .map(|at| tool(&format!("t{at}"), ""))
            .collect::<Vec<_>>()
    };
    for passing in [true, false] {
        let registry = listed(&json!([tool("a", "")]));
        approve(&registry, "a");
        let tools = json!([new(0), vec![tool("a", "changed")]].concat());
        if passing {
            registry.see("s", &tools).unwrap();
        } else {
            registry.listing.replace(Some(json!({ "tools": tools })));
            registry.ask(&patch("/v1/servers/s", json!({"upstream": {}}))).unwrap();
        }
        let a = tool_of(&registry, "a");
        assert_eq!(
            (&a["approved"], &a["definition_sha256"]),
            (&json!(false), &hash(&tool("a", "changed")))
        );
    }
}

#[test]
fn what_passes_through_registers_no_more_tools_than_a_server_may_list() {
    let many = |from: usize, count: usize| -> Json {
        (from..from + count).map(|at| tool(&format!("t{at}"), "")).collect()
    };
    let registry = listed(&many(0, MAX_DISCOVERED_TOOLS + 1));
    let count = || -> i64 {
        registry.database.query_row("SELECT count(*) FROM tools", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(), MAX_DISCOVERED_TOOLS as i64);
    let epoch = registry.epoch();
    assert_eq!(registry.see("s", &many(5_000, 3)).unwrap().effect, Effect::Unchanged);
    assert_eq!((count(), registry.epoch()), (MAX_DISCOVERED_TOOLS as i64, epoch));
}

#[test]
fn large_definitions_are_written_in_statements_that_d1_takes() {
    let description = "x".repeat(60_000);
    let schema = |name: &str| json!({"title": name, "description": description});
    let names: Vec<String> = (0..50).map(|at| format!("t{at}")).collect();
    let listed_tool = |name: &String| json!({"name": name, "inputSchema": schema(name)});
    let tools: Json = names.iter().map(listed_tool).collect();
    let registry = listed(&tools);
    assert_eq!(registry.commits.get(), 1);
    for name in &names {
        assert_eq!(tool_of(&registry, name)["input_schema"], schema(name), "{name}");
    }
}

/// Regression: one listing with patterns that are expensive to compile blocked the isolate for 24 s and took 515 MB.
#[test]
fn a_listing_compiles_no_pattern_and_looks_at_a_bounded_number_of_them() {
    let bomb = |at| json!({"name": format!("t{at}"), "inputSchema": {"pattern": r"^(?:a{0,200}){0,200}$"}});
    let plain = |name: &str| json!({"name": name, "inputSchema": {"pattern": "^[a-z]+$"}});
    let tools: Vec<Json> = (0..200).map(bomb).chain([plain("z"), tool("zz", "")]).collect();
    let registry = Registry::new();
    registry.listing.replace(Some(json!({ "tools": tools })));
    let created = registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
    let skipped = created.body["skipped_tools"].as_array().unwrap();
    let why = |at: usize| skipped[at]["why"].as_str().unwrap_or_default();
    assert!(
        why(0).contains("compiled form is too large") && why(99).contains("before it"),
        "{skipped:?}"
    );
    let names = registry.list("/v1/servers/s/tools");
    assert_eq!(names.iter().map(|tool| &tool["tool"]).collect::<Vec<_>>(), [&json!("zz")]);
    let few = json!([bomb(0), plain("z")]);
    assert_eq!(tool_of(&listed(&few), "z")["status"], "pending");
}

#[test]
fn a_listing_of_a_server_that_has_none_changes_nothing() {
    let registry = Registry::new();
    let tools = json!([tool("a", "")]);
    assert_eq!(registry.see("s", &tools).unwrap_err().code, NotFound, "not there");
    registry.ask(&create("http", json!({"url": URL}))).unwrap();
    assert_eq!(registry.see("s", &tools).unwrap_err().code, NotFound, "no MCP server");
    registry.ask(&patch("/v1/servers/s", json!({"kind": "mcp", "upstream": null}))).unwrap();
    assert_eq!(registry.see("s", &tools).unwrap_err().code, NotFound, "no upstream");
    registry.listing.replace(Some(json!({"tools": []})));
    registry.ask(&patch("/v1/servers/s", json!({"upstream": {"url": URL}}))).unwrap();
    assert!(registry.see("s", &tools).unwrap().changed());
    registry.ask(&Ask::new("DELETE", "/v1/servers/s", Json::Null)).unwrap();
    assert_eq!(registry.see("s", &tools).unwrap_err().code, NotFound, "deleted");
}
