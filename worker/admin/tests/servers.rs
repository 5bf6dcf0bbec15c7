//! Servers behind Gateward: their addresses, the tools that they list, and how the registry changes
//! when they list other tools.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

mod listings;
mod properties;
mod schemas;
mod upstreams;

use crate::support::registry::{Ask, Effect, Registry, get, patch, post};
use crate::support::with;
use gateward_admin::MIN_MANIFEST_INTERVAL_MS;
use gateward_admin::manifest::MAX_DEFINITION_BYTES;
use gateward_core::json;
use gateward_core::problem::ProblemCode::{
    DefinitionChanged, InvalidField, StateConflict, UpstreamUnreachable,
};
use gateward_core::registry::ChangedKey;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

const URL: &str = "https://tools.example.com/mcp";

fn hash(value: &Json) -> Json {
    let canonical = json::parse(value.to_string().as_bytes()).unwrap().canonical();
    json!(hex::encode(Sha256::digest(canonical)))
}

fn create(kind: &str, upstream: Json) -> Ask {
    post("/v1/servers", json!({"server": "s", "kind": kind, "upstream": upstream}))
}

fn tool(name: &str, description: &str) -> Json {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// A registry with the MCP server `s`, which lists these tools.
fn listed(tools: &Json) -> Registry {
    let registry = Registry::new();
    registry.listing.replace(Some(json!({ "tools": tools })));
    registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
    registry
}

fn read(registry: &Registry, path: &str) -> Json {
    registry.ask(&get(path)).unwrap().body
}

fn tool_of(registry: &Registry, name: &str) -> Json {
    read(registry, &format!("/v1/servers/s/tools/{}", name.replace('/', "%2F")))
}

fn approve(registry: &Registry, name: &str) {
    let hash = tool_of(registry, name)["definition_sha256"].take();
    let body = if hash.is_null() { hash } else { json!({"definition_sha256": hash}) };
    registry.ask(&approval(name, body)).unwrap();
}

fn approval(name: &str, body: Json) -> Ask {
    post(&format!("/v1/servers/s/tools/{}/approve", name.replace('/', "%2F")), body)
}

fn last_event(registry: &Registry) -> Json {
    let id = json!(format!("registry.{}", registry.epoch()));
    let events = registry.list("/v1/audit-events");
    events.into_iter().find(|event| event["event_id"] == id).unwrap()
}

#[test]
fn registering_a_server_registers_what_it_lists_in_one_commit_and_all_of_it_waits() {
    let registry = Registry::new();
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let search = json!({
        "name": "search", "inputSchema": schema, "annotations": {"readOnlyHint": true},
    });
    let write = json!({"name": "pages/Write.v1", "annotations": {"readOnlyHint": "true"}});
    let tools = json!([search, write]);
    registry.listing.replace(Some(json!({"tools": tools, "resources": true, "prompts": true})));
    let created = registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
    let discovered = (created.status, registry.commits.get(), registry.discoveries.get());
    assert_eq!(discovered, (201, 1, 1));
    assert_eq!(created.body["manifest_sha256"], hash(&json!({ "tools": tools })));
    assert_eq!(created.body["skipped_tools"], json!([]));
    assert_eq!(created.push.unwrap().keys, [ChangedKey::Server("s".to_owned())]);

    let shown: Vec<_> = registry
        .list("/v1/servers/s/tools")
        .into_iter()
        .map(|mut tool| {
            let fields =
                ["status", "mutates", "risk", "egress", "input_schema", "definition_sha256"];
            (tool["tool"].take(), fields.map(|field| tool[field].take()))
        })
        .collect();
    let (no, yes, null, pending) = (json!(false), json!(true), Json::Null, json!("pending"));
    let expected = |mutates: &Json, risk: &str, schema: &Json, hash: &Json| {
        [pending.clone(), mutates.clone(), json!(risk), no.clone(), schema.clone(), hash.clone()]
    };
    assert_eq!(
        shown,
        [
            (json!("pages/Write.v1"), expected(&yes, "medium", &null, &hash(&write))),
            (json!("prompts/get"), expected(&no, "low", &null, &null)),
            (json!("resources/read"), expected(&no, "low", &null, &null)),
            (json!("search"), expected(&no, "medium", &schema, &hash(&search))),
        ]
    );
    let event = last_event(&registry);
    let names = json!(["search", "pages/Write.v1", "resources/read", "prompts/get"]);
    assert_eq!(
        (&event["kind"], &event["source"], &event["detail"]),
        (&json!("server_created"), &json!("ada"), &json!({"server": "s", "new_tools": names}))
    );
}

#[test]
fn a_tool_that_cannot_be_registered_is_left_out_and_named() {
    let registry = Registry::new();
    let large = tool("large", &"x".repeat(MAX_DEFINITION_BYTES));
    let with_schema = |name: &str, schema: Json| json!({"name": name, "inputSchema": schema});
    let mut deep = json!({});
    for _ in 0..40 {
        deep = json!({ "properties": deep });
    }
    let tools = json!([
        tool("good", ""),
        tool("", ""),
        tool("with space", ""),
        tool(&"x".repeat(200), ""),
        tool("..", ""),
        tool("good", "the second"),
        tool("resources/read", ""),
        with_schema("reaches", json!({"$ref": "http://169.254.169.254/schema.json"})),
        with_schema("bomb", json!({"pattern": r"^(?:a{0,200}){0,200}$"})),
        with_schema("no_object", json!(true)),
        with_schema("deep", deep),
        large,
        "a text",
        {"name": 7},
        tool("last", ""),
    ]);
    registry.listing.replace(Some(json!({ "tools": tools })));
    let created = registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
    let skipped = created.body["skipped_tools"].as_array().unwrap();
    let names: Vec<&str> = skipped.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let clipped = "x".repeat(128);
    let expected = [
        "",
        "with space",
        &clipped,
        "..",
        "good",
        "resources/read",
        "reaches",
        "bomb",
        "no_object",
        "deep",
        "large",
        "tools[12]",
        "tools[13]",
    ];
    assert_eq!(names, expected);
    for tool in skipped {
        assert!(!tool["why"].as_str().unwrap().is_empty());
    }
    let registered = registry.list("/v1/servers/s/tools");
    let registered: Vec<&Json> = registered.iter().map(|tool| &tool["tool"]).collect();
    assert_eq!(registered, ["last"], "which of two `good` it is, nobody knows");
}

#[test]
fn a_server_that_cannot_be_asked_is_not_registered_but_with_a_manifest_it_is() {
    let registry = Registry::new();
    let ask = create("mcp", json!({"url": URL}));
    assert_eq!(registry.ask(&ask).unwrap_err().code, UpstreamUnreachable);
    assert_eq!((registry.epoch(), registry.commits.get()), (1, 0));
    let manifest = json!({"tools": [tool("search", "")], "nextCursor": null});
    let ask =
        Ask { body: with(ask.body, json!({ "manifest": manifest })), ..create("mcp", json!(0)) };
    let created = registry.ask(&ask).unwrap();
    assert_eq!(created.body["manifest_sha256"], hash(&manifest));
    assert_eq!(registry.discoveries.get(), 1, "it was not asked again");
    let search = tool_of(&registry, "search");
    let definition = hash(&manifest["tools"][0]);
    assert_eq!((&search["status"], &search["definition_sha256"]), (&json!("pending"), &definition));
}

#[test]
fn only_what_says_where_a_server_is_asks_it_for_its_tools() {
    let registry = listed(&json!([]));
    let asked = |ask: Ask| {
        let before = registry.discoveries.get();
        registry.ask(&ask).unwrap();
        registry.discoveries.get() - before
    };
    let change = |fields: Json| patch("/v1/servers/s", fields);
    assert_eq!(asked(change(json!({"trust": "trusted"}))), 0);
    assert_eq!(asked(post("/v1/servers/s/approve", Json::Null)), 0);
    assert_eq!(asked(change(json!({"upstream": {}}))), 1, "an empty change asks anew");
    assert_eq!(asked(change(json!({"kind": "http"}))), 0);
    assert_eq!(asked(change(json!({"upstream": {"idle_timeout_ms": 10}}))), 0);
    assert_eq!(asked(change(json!({"kind": "mcp"}))), 1);
    assert_eq!(asked(change(json!({"upstream": {}, "manifest": {}}))), 0);
    assert_eq!(asked(create("mcp", json!({"url": URL}))), 1);
    assert_eq!(asked(change(json!({"upstream": null}))), 0);
    assert_eq!(asked(change(json!({"upstream": null, "kind": "named"}))), 0);
}

#[test]
fn what_a_server_says_otherwise_waits_again_and_the_rest_stays() {
    let registry = listed(&json!([tool("same", ""), tool("other", ""), tool("gone", "")]));
    let by_hand = |name: &str, schema: Json| {
        let fields =
            json!({"tool": name, "mutates": false, "risk": "high", "input_schema": schema});
        registry.ask(&post("/v1/servers/s/tools", fields)).unwrap();
    };
    let own = json!({"type": "object", "maxProperties": 1});
    by_hand("plain", Json::Null);
    by_hand("own", own.clone());
    for name in ["same", "other", "gone", "plain", "own"] {
        approve(&registry, name);
    }
    registry.ask(&patch("/v1/servers/s/tools/other", json!({"mutates": false}))).unwrap();
    let before = registry.list("/v1/servers/s/tools");
    let of = |tools: &[Json], name: &str| {
        tools.iter().find(|tool| tool["tool"] == name).cloned().unwrap_or_default()
    };
    let tools = json!([
        tool("own", ""),
        tool("plain", ""),
        tool("same", ""),
        tool("other", "changed"),
        tool("new", ""),
    ]);
    registry.listing.replace(Some(json!({ "tools": tools })));
    let changed = registry.ask(&patch("/v1/servers/s", json!({"upstream": {}}))).unwrap();
    assert_eq!(changed.body["manifest_sha256"], hash(&json!({ "tools": tools })));
    assert_eq!(changed.body["quarantined"], false);
    let after = registry.list("/v1/servers/s/tools");
    for name in ["same", "gone"] {
        assert_eq!(of(&after, name), of(&before, name), "{name}");
    }
    let shown = |name: &str| {
        let mut tool = of(&after, name);
        ["status", "mutates", "risk", "input_schema", "definition_sha256"]
            .map(|field| tool[field].take())
    };
    let schema = json!({"type": "object"});
    let (active, pending) = (json!("active"), json!("pending"));
    for (name, expected) in [
        // What administrators registered about a tool takes precedence.
        ("other", [&pending, &json!(false), &json!("medium"), &schema, &hash(&tools[3])]),
        ("new", [&pending, &json!(true), &json!("medium"), &schema, &hash(&tools[4])]),
        ("plain", [&active, &json!(false), &json!("high"), &schema, &hash(&tools[1])]),
        ("own", [&active, &json!(false), &json!("high"), &own, &hash(&tools[0])]),
    ] {
        assert_eq!(shown(name), expected.map(Clone::clone), "{name}");
    }
    let event = last_event(&registry);
    let detail = &event["detail"];
    assert_eq!(
        (&event["kind"], &detail["changed_tools"], &detail["new_tools"]),
        (&json!("server_manifest_changed"), &json!(["other"]), &json!(["new"]))
    );
    let again = registry.ask(&patch("/v1/servers/s", json!({"upstream": {}}))).unwrap();
    assert_eq!(again.effect, Effect::Unchanged);
}

#[test]
fn a_manifest_by_hand_that_is_not_as_it_was_makes_everything_wait() {
    let registry = Registry::new();
    let manifest = |description: &str| json!({"tools": [tool("a", ""), tool("b", description)]});
    let fields = json!({"server": "s", "kind": "named", "manifest": manifest("")});
    registry.ask(&post("/v1/servers", fields)).unwrap();
    approve(&registry, "a");
    approve(&registry, "b");
    let fields = json!({"manifest": manifest("changed")});
    let changed = registry.ask(&patch("/v1/servers/s", fields)).unwrap();
    assert_eq!(changed.body["quarantined"], true);
    let names = json!(["b"]);
    let event = last_event(&registry);
    assert_eq!(
        (&event["kind"], &event["detail"]["changed_tools"]),
        (&json!("server_manifest_changed"), &names)
    );
    for name in ["a", "b"] {
        assert_eq!(tool_of(&registry, name)["approved"], false, "{name}");
    }
}

#[test]
fn an_approval_is_for_the_definition_that_was_reviewed_and_for_no_other() {
    let (first, second) = (tool("a", "first"), tool("a", "second"));
    let registry = listed(&json!([first]));
    let by_hand = json!({"tool": "by_hand", "mutates": false, "risk": "low"});
    registry.ask(&post("/v1/servers/s/tools", by_hand)).unwrap();
    let reviewed = |definition: &Json| json!({"definition_sha256": hash(definition)});
    let shown = |name: &str| {
        let mut tool = tool_of(&registry, name);
        ["approved", "definition", "approved_definition"].map(|field| tool[field].take())
    };
    assert_eq!(shown("a"), [json!(false), first.clone(), Json::Null]);
    let refused = |name: &str, body: Json| {
        let problem = registry.ask(&approval(name, body)).unwrap_err();
        assert_eq!(tool_of(&registry, name)["approved"], false);
        problem.code
    };
    // The approval names no hash, or the hash of another definition.
    assert_eq!(refused("a", Json::Null), InvalidField);
    assert_eq!(refused("a", json!({})), InvalidField);
    assert_eq!(refused("a", json!({"definition_sha256": null})), InvalidField);
    assert_eq!(refused("a", reviewed(&second)), DefinitionChanged);
    assert_eq!(refused("by_hand", reviewed(&first)), DefinitionChanged);
    registry.ask(&approval("by_hand", Json::Null)).unwrap();
    assert_eq!(shown("by_hand"), [json!(true), Json::Null, Json::Null]);
    registry.ask(&approval("a", reviewed(&first))).unwrap();
    assert_eq!(shown("a"), [json!(true), first.clone(), first.clone()]);

    // The server lists another definition between the review and the approval.
    assert!(registry.see("s", &json!([second])).unwrap().changed());
    assert_eq!(shown("a"), [json!(false), second.clone(), first.clone()]);
    assert_eq!(refused("a", reviewed(&first)), DefinitionChanged);
    registry.ask(&approval("a", reviewed(&second))).unwrap();
    assert_eq!(shown("a"), [json!(true), second.clone(), second.clone()]);

    // It lists another definition between the check of the approval and its commit.
    registry.wait(MIN_MANIFEST_INTERVAL_MS / 1_000);
    assert!(registry.see("s", &json!([first])).unwrap().changed());
    registry.listing.replace(Some(json!({ "tools": [second] })));
    registry.between.replace(Some(patch("/v1/servers/s", json!({"upstream": {}}))));
    assert_eq!(refused("a", reviewed(&first)), DefinitionChanged);

    // Nobody can have reviewed a definition that cannot be used.
    let unusable = json!({"name": "a", "inputSchema": []});
    registry.wait(MIN_MANIFEST_INTERVAL_MS / 1_000);
    assert!(registry.see("s", &json!([unusable])).unwrap().changed());
    assert_eq!(shown("a"), [json!(false), Json::Null, second]);
    let hash = tool_of(&registry, "a")["definition_sha256"].take();
    assert_eq!(refused("a", json!({"definition_sha256": hash})), StateConflict);
}

#[test]
fn an_approval_says_what_the_tool_is_in_the_same_change() {
    let registry = listed(&json!([tool("a", ""), tool("b", "")]));
    let hash = hash(&tool("a", ""));
    let body = json!({"definition_sha256": hash, "mutates": false, "egress": true, "risk": "low"});
    let epoch = registry.epoch();
    registry.ask(&approval("a", body.clone())).unwrap();
    assert_eq!(registry.epoch(), epoch + 1);
    let shown = tool_of(&registry, "a");
    let fields = ["status", "mutates", "egress", "risk"].map(|field| shown[field].clone());
    assert_eq!(fields, [json!("active"), json!(false), json!(true), json!("low")]);
    let event = last_event(&registry);
    assert_eq!(event["kind"], "tool_approved");
    let changes = json!({"approved": true, "status": "active", "mutates": false, "egress": true,
        "risk": "low"});
    assert_eq!(event["detail"]["changes"], changes);
    assert_eq!(registry.ask(&approval("a", body)).unwrap().effect, Effect::Unchanged);

    // If the approval is refused, none of its members are stored.
    let other = json!({"definition_sha256": "0".repeat(64), "mutates": false, "egress": true});
    assert_eq!(registry.ask(&approval("b", other)).unwrap_err().code, DefinitionChanged);
    assert_eq!(tool_of(&registry, "b")["mutates"], true);
    let nothing = json!({"definition_sha256": hash, "risk": null});
    assert_eq!(registry.ask(&approval("b", nothing)).unwrap_err().code, InvalidField);
}

#[test]
fn a_list_of_tools_leaves_definitions_out() {
    let registry = listed(&json!([tool("a", "")]));
    let tools = registry.list("/v1/servers/s/tools");
    assert!(tools.iter().all(|tool| tool.get("definition").is_none()), "{tools:?}");
}
