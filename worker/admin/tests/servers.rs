//! Servers behind Gateward: their addresses, the tools that they list, and how the registry changes
//! when they list other tools.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

mod support;

use gateward_admin::MIN_MANIFEST_INTERVAL_MS;
use gateward_admin::manifest::{MAX_DEFINITION_BYTES, MAX_DISCOVERED_TOOLS};
use gateward_core::json;
use gateward_core::problem::ProblemCode::{
    DefinitionChanged, InvalidField, NotFound, StateConflict, UpstreamUnreachable,
};
use gateward_core::registry::ChangedKey;
use gateward_core::registry::upstream::{
    MAX_FORWARDED_HEADERS, MAX_ROUTE_PATH_BYTES, MAX_ROUTE_SEGMENTS, MAX_ROUTES, Upstream,
};
use gateward_core::schema::{MAX_SCHEMA_BYTES, Schema, Schemas};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};
use support::registry::{Ask, Effect, Registry, get, patch, post};
use support::with;

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
fn an_upstream_is_shown_whole_and_its_address_is_written_in_one_way() {
    let registry = Registry::new();
    let given = json!({
        "url": "HTTPS://API.example.com:443/v1#top",
        "credential": {"binding": "UPSTREAM_GITHUB"},
        "max_result_bytes": 1024,
        "routes": [
            {"method": "GET", "path": "/repos/{owner}/{repo}/issues", "tool": "list_issues"},
            {"method": "DELETE", "path": "/", "tool": "Delete.all"},
        ],
    });
    let shown = json!({
        "url": "https://api.example.com/v1", "local": false,
        "credential": {"binding": "UPSTREAM_GITHUB", "header": "authorization"},
        "first_byte_timeout_ms": 30_000, "whole_timeout_ms": 600_000, "idle_timeout_ms": 120_000,
        "max_result_bytes": 1024, "denial": "result", "routes": given["routes"],
        "forwarded_headers": [], "shared_cache": false,
    });
    let created = registry.ask(&create("http", given)).unwrap();
    assert_eq!((created.status, &created.body["upstream"]), (201, &shown));
    let server = read(&registry, "/v1/servers/s");
    let only_then = json!({"skipped_tools": [], "unsatisfiable_schemas": [], "instructions": null});
    assert_eq!(with(server.clone(), only_then), created.body);
    assert_eq!(registry.list("/v1/servers"), [server]);
    // As lanes have it.
    let stored: Upstream = serde_json::from_value(shown.clone()).unwrap();
    let server = registry.load("a", "k", "s", "x").server.unwrap();
    assert_eq!(server.upstream.as_deref(), Some(&stored));
    // The same fields, as the API shows them.
    let again = registry.ask(&create("http", shown)).unwrap();
    assert_eq!(again.effect, Effect::Unchanged);
    assert_eq!(registry.discoveries.get(), 0, "nobody asks an HTTP API for its tools");
    // A definition without an upstream is of a server without an upstream.
    let named = registry.ask(&post("/v1/servers", json!({"server": "s", "kind": "named"})));
    assert_eq!(named.unwrap().body["upstream"], Json::Null);
}

#[test]
fn a_patch_of_an_upstream_changes_what_it_names_and_null_takes_away() {
    let registry = Registry::new();
    let given = json!({"url": "https://api.example.com/", "credential": {"binding": "UPSTREAM_A"}});
    registry.ask(&create("http", given)).unwrap();
    let change = |change: Json| {
        let answered = registry.ask(&patch("/v1/servers/s", json!({ "upstream": change })));
        answered.unwrap().body["upstream"].take()
    };
    let before = change(json!({"idle_timeout_ms": 10}));
    let credential = json!({"binding": "UPSTREAM_A", "header": "authorization"});
    assert_eq!(
        (&before["url"], &before["idle_timeout_ms"], &before["credential"]),
        (&json!("https://api.example.com/"), &json!(10), &credential)
    );
    let after = change(json!({"idle_timeout_ms": null, "credential": {"header": "x-api-key"}}));
    let credential = json!({"binding": "UPSTREAM_A", "header": "x-api-key"});
    assert_eq!((&after["idle_timeout_ms"], &after["credential"]), (&json!(120_000), &credential));
    assert_eq!(change(json!({"credential": null}))["credential"], Json::Null);
    let route = json!([{"method": "GET", "path": "/a", "tool": "a"}]);
    assert_eq!(change(json!({ "routes": route }))["routes"], route);
    assert_eq!(last_event(&registry)["detail"]["changes"]["upstream"]["routes"], route);
    assert_eq!(change(json!({"denial": "error"}))["denial"], "error");
    let forwarded = json!({"forwarded_headers": ["prefer", "x-api-version"], "shared_cache": true});
    let after = change(forwarded.clone());
    assert_eq!(with(after.clone(), forwarded), after);
    // A member that only one kind of server can have also keeps the kind from changing.
    for (kind, field) in [("mcp", "upstream.routes"), ("named", "upstream")] {
        let refused = registry.ask(&patch("/v1/servers/s", json!({ "kind": kind }))).unwrap_err();
        assert_eq!((refused.code, refused.field.as_deref()), (InvalidField, Some(field)));
    }
    let without_url = registry.ask(&patch("/v1/servers/s", json!({"upstream": {"url": null}})));
    assert_eq!(without_url.unwrap_err().field.as_deref(), Some("upstream.url"));
    assert_eq!(change(Json::Null), Json::Null);
    let anew = registry.ask(&patch("/v1/servers/s", json!({"upstream": {"local": false}})));
    assert_eq!(anew.unwrap_err().field.as_deref(), Some("upstream.url"));
}

#[test]
fn an_upstream_that_cannot_be_is_refused_by_the_path_of_its_field() {
    let upstream = |fields: Json| with(json!({"url": "https://example.com/"}), fields);
    let routes = |route: Json| {
        upstream(json!({"routes": [
            {"method": "GET", "path": "/", "tool": "first"},
            with(json!({"method": "GET", "path": "/", "tool": "x"}), route),
        ]}))
    };
    let path = |path: &str| ("http", routes(json!({ "path": path })), "upstream.routes[1].path");
    let many = json!(vec![json!({"method": "GET", "path": "/", "tool": "x"}); MAX_ROUTES + 1]);
    let header = |header: &str| {
        let credential = json!({"binding": "UPSTREAM_A", "header": header});
        ("mcp", upstream(json!({ "credential": credential })), "upstream.credential.header")
    };
    let binding = |binding: &str| {
        let credential = json!({ "binding": binding });
        ("http", upstream(json!({ "credential": credential })), "upstream.credential.binding")
    };
    let forwarded = |name: &str| {
        let credential = json!({"binding": "UPSTREAM_A", "header": "x-api-key"});
        let names = json!({"forwarded_headers": ["prefer", name], "credential": credential});
        ("http", upstream(names), "upstream.forwarded_headers[1]")
    };
    let many_names: Vec<String> = (0..=MAX_FORWARDED_HEADERS).map(|n| format!("x-{n}")).collect();
    let url = |url: &str| ("mcp", json!({ "url": url }), "upstream.url");
    let number = |field: &'static str, value: u64, path: &'static str| {
        ("mcp", upstream(json!({ field: value })), path)
    };
    let long_path = format!("/{}", "a".repeat(MAX_ROUTE_PATH_BYTES));
    let deep_path = "/a".repeat(MAX_ROUTE_SEGMENTS + 1);
    let long_binding = format!("UPSTREAM_{}", "A".repeat(65));
    let cases = [
        ("named", upstream(json!({})), "upstream"),
        ("mcp", json!("https://example.com/"), "upstream"),
        ("mcp", json!([]), "upstream"),
        ("mcp", json!({}), "upstream.url"),
        ("mcp", upstream(json!({"surplus": 1})), "upstream.surplus"),
        ("mcp", upstream(json!({"local": "yes"})), "upstream.local"),
        ("mcp", upstream(json!({"local": true})), "upstream.local"),
        ("mcp", upstream(json!({"denial": "silent"})), "upstream.denial"),
        ("mcp", upstream(json!({"routes": [{}]})), "upstream.routes[0].method"),
        ("mcp", routes(json!({})), "upstream.routes"),
        ("http", upstream(json!({ "routes": many })), "upstream.routes"),
        // An approval is for one tool: a tool that reads must not be the same tool as one that deletes.
        ("http", routes(json!({"method": "DELETE", "tool": "first"})), "upstream.routes[1].tool"),
        ("http", json!({"url": "https://example.com/?tenant=a"}), "upstream.url"),
        url("http://example.com/"),
        url("https://127.0.0.1/"),
        url("https://169.254.169.254/"),
        url("https://[fd00::1]/"),
        url("https://localhost/"),
        url("https://user:secret@example.com/"),
        url("mcp"),
        number("first_byte_timeout_ms", 9, "upstream.first_byte_timeout_ms"),
        number("whole_timeout_ms", 3_600_001, "upstream.whole_timeout_ms"),
        number("idle_timeout_ms", 0, "upstream.idle_timeout_ms"),
        number("idle_timeout_ms", 1 << 40, "upstream.idle_timeout_ms"),
        number("max_result_bytes", 1_023, "upstream.max_result_bytes"),
        number("max_result_bytes", 16_777_217, "upstream.max_result_bytes"),
        number("max_result_bytes", 8_388_609, "upstream.max_result_bytes"),
        binding("TOKEN_MAC_KEY"),
        binding("UPSTREAM_"),
        binding("UPSTREAM_a"),
        binding("upstream_A"),
        binding(&long_binding),
        header(""),
        header("Authorization"),
        header("x y"),
        header("x:"),
        header("host"),
        header("content-length"),
        header("transfer-encoding"),
        header("connection"),
        header("cookie"),
        header("x-gateward-agent"),
        forwarded(""),
        forwarded("Prefer"),
        forwarded("x y"),
        forwarded("x_y"),
        forwarded("prefer"),
        forwarded("x-api-key"),
        forwarded("authorization"),
        forwarded("cookie"),
        forwarded("transfer-encoding"),
        forwarded("x-forwarded-for"),
        forwarded("x-gateward-agent"),
        forwarded("x-http-method-override"),
        (
            "http",
            upstream(json!({ "forwarded_headers": many_names })),
            "upstream.forwarded_headers",
        ),
        ("mcp", upstream(json!({"forwarded_headers": ["prefer"]})), "upstream.forwarded_headers"),
        ("mcp", upstream(json!({"shared_cache": true})), "upstream.shared_cache"),
        ("http", routes(json!({"method": "get"})), "upstream.routes[1].method"),
        ("http", routes(json!({"method": "CONNECT"})), "upstream.routes[1].method"),
        ("http", routes(json!({"tool": "a b"})), "upstream.routes[1].tool"),
        ("http", routes(json!({"tool": ".."})), "upstream.routes[1].tool"),
        path(""),
        path("repos"),
        path("/a?b=c"),
        path("/a#b"),
        path("/a%20b"),
        path("/a\\b"),
        path("/a\u{1}b"),
        path("/{}"),
        path("/{1a}"),
        path("/{a-b}"),
        path("/x{a}"),
        path("/{a}x"),
        path("/{a}/{b}/{a}"),
        path("/a/../b"),
        path("/."),
        path(&long_path),
        path(&deep_path),
    ];
    for (kind, upstream, field) in cases {
        let registry = Registry::new();
        let refused = registry.ask(&create(kind, upstream.clone())).unwrap_err();
        let said = (refused.code, refused.field.as_deref());
        assert_eq!(said, (InvalidField, Some(field)), "{kind} {upstream}");
        assert!(refused.detail.contains(&format!("`{field}`")), "{}", refused.detail);
        assert_eq!((registry.commits.get(), registry.discoveries.get()), (0, 0), "{upstream}");
    }
    for path in ["/", "//", "/a/", "/{a}/b/{_B1}", "/ä b;v=1,2(3)~", "/a:b/@c"] {
        let given = routes(json!({ "path": path }));
        assert!(Registry::new().ask(&create("http", given)).is_ok(), "{path}");
    }
}

#[test]
fn a_local_upstream_needs_a_worker_that_calls_local_networks_and_must_be_said_to_be_one() {
    let url = "http://127.0.0.1:3001/";
    let answered = |url: &str, local_targets, local| {
        let registry = Registry::new();
        registry.local_targets.set(local_targets);
        registry.ask(&create("http", json!({"url": url, "local": local})))
    };
    assert!(answered(url, true, true).is_ok());
    for (url, local_targets, local, field, says) in [
        (url, true, false, "upstream.url", Some("needs `local: true` (`gateward`: `--local`)")),
        ("https://10.1.2.3/", true, false, "upstream.url", Some("`--local`")),
        (url, false, true, "upstream.local", Some("its var `LOCAL_TARGETS` is not \"true\"")),
        (url, false, false, "upstream.url", Some("(`gateward`: `--local`) would not help")),
        (url, false, false, "upstream.url", Some("its var `LOCAL_TARGETS` is not \"true\"")),
        // No server on a local network can have such an address either.
        ("ftp://127.0.0.1/", true, false, "upstream.url", None),
    ] {
        let problem = answered(url, local_targets, local).unwrap_err();
        assert_eq!(problem.field.as_deref(), Some(field), "{url} {local_targets} {local}");
        match says {
            Some(says) => assert!(problem.detail.contains(says), "{}", problem.detail),
            None => assert!(!problem.detail.contains("--local"), "{}", problem.detail),
        }
    }
}

#[test]
fn a_tools_schema_is_compiled_before_it_is_kept() {
    let registry = Registry::new();
    registry.ask(&post("/v1/servers", json!({"server": "s", "kind": "http"}))).unwrap();
    let make = |schema: Json| {
        let fields = json!({"tool": "x", "mutates": false, "risk": "low", "input_schema": schema});
        post("/v1/servers/s/tools", fields)
    };
    let change = |schema: Json| patch("/v1/servers/s/tools/x", json!({ "input_schema": schema }));
    let first = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let created = registry.ask(&make(first.clone())).unwrap();
    assert_eq!((&created.body["input_schema"], created.status), (&first, 201));
    assert_eq!(created.body["definition_sha256"], Json::Null);
    let record = registry.load("a", "k", "s", "x").tool.unwrap();
    let schema = record.input_schema.unwrap();
    let mut schemas = Schemas::default();
    let mut check = |input: &str| schemas.check(&schema, &json::parse(input.as_bytes()).unwrap());
    assert!(check(r#"{"n":1}"#).is_ok() && check(r#"{"n":"1"}"#).is_err());

    let large = json!({"description": "x".repeat(MAX_SCHEMA_BYTES)});
    for refused in [
        json!([]),
        json!(true),
        json!("{}"),
        json!({"type": "nothing"}),
        json!({"$ref": "https://example.com/schema.json"}),
        large,
    ] {
        for ask in [make(refused.clone()), change(refused.clone())] {
            let problem = registry.ask(&ask).unwrap_err();
            let said = (problem.code, problem.field.as_deref());
            assert_eq!(said, (InvalidField, Some("input_schema")), "{refused:.80}");
        }
    }
    // Fields that are left out stay.
    let again = json!({"tool": "x", "mutates": true, "risk": "low"});
    let again = registry.ask(&post("/v1/servers/s/tools", again)).unwrap();
    assert_eq!((&again.body["input_schema"], &again.body["mutates"]), (&first, &json!(true)));
    let other = registry.ask(&patch("/v1/servers/s/tools/x", json!({"risk": "high"}))).unwrap();
    assert_eq!(other.body["input_schema"], first);
    let none = registry.ask(&change(Json::Null)).unwrap();
    assert_eq!(none.body["input_schema"], Json::Null);
    assert!(registry.load("a", "k", "s", "x").tool.unwrap().input_schema.is_none());
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

/// A tool as a server writes it, with this schema for its argument `n`.
fn numbered(schema: &str) -> Json {
    let schema = format!(r#"{{"properties":{{"n":{schema}}}}}"#);
    json!(format!(r#"{{"name":"a","description":"","inputSchema":{schema}}}"#))
}

#[test]
fn a_number_that_no_argument_can_be_skips_no_tool_and_no_change_of_it_goes_unnoticed() {
    for (before, after) in [
        (r#"{"maximum":9223372036854775807}"#, r#"{"maximum":9223372036854775808}"#),
        (r#"{"maximum":1.79e308}"#, r#"{"maximum":1.797e308}"#),
        (r#"{"minimum":-99999999999999999999}"#, r#"{"minimum":-99999999999999999998}"#),
        (r#"{"default":9007199254740993}"#, r#"{"default":9007199254740992}"#),
        (r#"{"enum":[1,2,1e300]}"#, r#"{"enum":[1,2,1e301]}"#),
        (r#"{"multipleOf":0.1000000000000000055}"#, r#"{"multipleOf":0.1}"#),
        (
            r#"{"examples":[{"a":18446744073709551616}]}"#,
            r#"{"examples":[{"a":18446744073709551617}]}"#,
        ),
    ] {
        let registry = listed(&json!([numbered(before)]));
        approve(&registry, "a");
        let known = tool_of(&registry, "a")["definition_sha256"].take();
        let seen = registry.see("s", &json!([numbered(before)])).unwrap();
        assert_eq!(seen.effect, Effect::Unchanged, "{before}");
        assert!(registry.see("s", &json!([numbered(after)])).unwrap().changed(), "{before}");
        let a = tool_of(&registry, "a");
        assert_eq!(a["approved"], false, "{before}");
        assert_ne!(a["definition_sha256"], known, "{before}");
        // Lanes load exactly what was listed, with all digits.
        let loaded = registry.load_texts("a", "k", "s", "a").tool.unwrap().to_string();
        assert!(loaded.contains(&after.replace('"', r#"\""#)), "{loaded}");
    }
}

#[test]
fn a_bound_that_no_argument_can_meet_is_reported_and_its_tool_registered() {
    let why = |keyword: &str| format!("no argument can satisfy `{keyword}` at `/properties/n`");
    for (schema, keyword) in [
        (r#"{"maximum":9223372036854775807}"#, None),
        (r#"{"minimum":-1.79e308}"#, None),
        (r#"{"minimum":1.79e308}"#, Some("minimum")),
        (r#"{"exclusiveMaximum":-9223372036854775808}"#, Some("exclusiveMaximum")),
        (r#"{"const":1e300}"#, Some("const")),
        (r#"{"minLength":9007199254740991}"#, Some("minLength")),
    ] {
        let registry = Registry::new();
        registry.listing.replace(Some(json!({"tools": [numbered(schema)]})));
        let created = registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
        assert_eq!(created.body["skipped_tools"], json!([]), "{schema}");
        let found: Vec<Json> = keyword
            .map(|keyword| json!({"name": "a", "why": format!("its `inputSchema`: {}", why(keyword))}))
            .into_iter()
            .collect();
        assert_eq!(created.body["unsatisfiable_schemas"], json!(found), "{schema}");
        assert_eq!(tool_of(&registry, "a")["status"], "pending", "{schema}");
        // The same with a registration by hand.
        let of_argument: Json = serde_json::from_str(schema).unwrap();
        let given = json!({"tool": "b", "mutates": false, "risk": "low",
            "input_schema": {"properties": {"n": of_argument}}});
        let created = registry.ask(&post("/v1/servers/s/tools", given)).unwrap();
        let found: Vec<String> = keyword.map(why).into_iter().collect();
        assert_eq!(created.body["unsatisfiable"], json!(found), "{schema}");
        let text = tool_of(&registry, "b")["input_schema"].to_string();
        let input = json::parse(br#"{"n":1}"#).unwrap();
        let denied = Schemas::default().check(&text, &input).is_err();
        assert_eq!(denied, keyword.is_some_and(|keyword| keyword != "minLength"), "{schema}");
    }
}

/// What the tools of forty well-known servers had (docs/mcp.md) that Gateward once refused, or could
/// easily refuse.
#[test]
fn constructs_of_real_servers_are_taken() {
    let large_result = format!(r#"{{"type":"object","description":"{}"}}"#, "x".repeat(72_000));
    let field = |name: &str, json: &str| format!(r#""{name}":{json}"#);
    for (construct, fields) in [
        (
            "a schema of the result that makes the definition 77 kB",
            [field("inputSchema", "{}"), field("outputSchema", &large_result)].join(","),
        ),
        (
            "the largest safe integer as a bound",
            field(
                "inputSchema",
                r#"{"properties":{"n":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}}}"#,
            ),
        ),
        (
            "draft 07",
            field(
                "inputSchema",
                r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}"#,
            ),
        ),
        (
            "a date as a pattern of 300 bytes",
            field(
                "inputSchema",
                r#"{"properties":{"n":{"format":"date-time","pattern":"^(?:(?:\\d\\d[2468][048]|\\d\\d[13579][26]|\\d\\d0[48]|[02468][048]00|[13579][26]00)-02-29|\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|(?:02)-(?:0[1-9]|1\\d|2[0-8])))T(?:(?:[01]\\d|2[0-3]):[0-5]\\d(?::[0-5]\\d(?:\\.\\d+)?)?(?:Z|([+-]\\d{2}:\\d{2})))$"}}}"#,
            ),
        ),
        (
            "formats that nobody defined",
            field(
                "inputSchema",
                r#"{"properties":{"a":{"format":"int32"},"b":{"format":"json"},"c":{"format":"cidrv4"}}}"#,
            ),
        ),
        (
            "a reference to the schema itself",
            field("inputSchema", r##"{"properties":{"next":{"$ref":"#"}}}"##),
        ),
        ("no properties", field("inputSchema", r#"{"type":"object"}"#)),
    ] {
        let tool = json!(format!(r#"{{"name":"a",{fields}}}"#));
        let registry = Registry::new();
        registry.listing.replace(Some(json!({ "tools": [tool] })));
        let created = registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
        assert_eq!(created.body["skipped_tools"], json!([]), "{construct}");
        assert_eq!(created.body["unsatisfiable_schemas"], json!([]), "{construct}");
        let schema = tool_of(&registry, "a")["input_schema"].to_string();
        assert_eq!(Schema::compile(&schema).map(drop), Ok(()), "{construct}");
    }
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
fn egress_is_proposed_from_the_definition_and_a_change_of_it_lowers_nothing() {
    let fetch = |argument: &str| {
        json!({"name": "fetch", "annotations": {"readOnlyHint": true, "openWorldHint": false},
            "inputSchema": {"type": "object", "properties": {argument: {"type": "string"}}}})
    };
    let search = json!({"name": "search", "inputSchema": {"type": "object"}});
    let registry = listed(&json!([fetch("url"), search]));
    let egress = |name: &str| tool_of(&registry, name)["egress"].take();
    assert_eq!([egress("fetch"), egress("search")], [json!(true), json!(false)]);
    let set = |name: &str, egress: bool| {
        let path = format!("/v1/servers/s/tools/{name}");
        registry.ask(&patch(&path, json!({ "egress": egress }))).unwrap();
    };
    // Registering a tool again keeps its egress.
    let again = json!({"tool": "fetch", "mutates": false, "risk": "low"});
    registry.ask(&post("/v1/servers/s/tools", again)).unwrap();
    assert_eq!(egress("fetch"), true);
    let by_hand = json!({"tool": "by_hand", "mutates": false, "risk": "low"});
    registry.ask(&post("/v1/servers/s/tools", by_hand)).unwrap();
    assert_eq!(egress("by_hand"), false);

    // What an administrator set stays until the definition changes.
    set("fetch", false);
    set("search", true);
    let relist = |tools: Json| {
        registry.listing.replace(Some(json!({ "tools": tools })));
        registry.ask(&patch("/v1/servers/s", json!({"upstream": {}}))).unwrap();
    };
    let mut other = search.clone();
    other["description"] = json!("Searches.");
    let mut by_hand = fetch("url");
    by_hand["name"] = json!("by_hand");
    relist(json!([fetch("url"), other, by_hand]));
    assert_eq!([egress("fetch"), egress("search")], [json!(false), json!(true)]);
    assert_eq!(egress("by_hand"), false, "who registered it by hand has said it");
    relist(json!([fetch("target_url"), search]));
    assert_eq!([egress("fetch"), egress("search")], [json!(true), json!(true)]);
}

#[test]
fn roles_reach_and_risk_are_proposed_when_a_tool_is_new_and_stay_as_they_are_set() {
    let send = |description: &str, arguments: &[&str]| {
        let properties: Map<String, Json> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
        json!({"name": "send_mail", "description": description,
            "inputSchema": {"type": "object", "properties": properties}})
    };
    let delete = json!({"name": "delete_draft", "inputSchema": {"properties": {"id": {}}}});
    let registry = listed(&json!([send("", &["to", "body"]), delete]));
    let shown = |name: &str| {
        let mut tool = tool_of(&registry, name);
        ["argument_roles", "reach", "result_trust", "risk"].map(|field| tool[field].take())
    };
    let roles = json!({"/body": "content", "/to": "sink"});
    let null = Json::Null;
    assert_eq!(shown("send_mail"), [roles, json!("outside"), null.clone(), json!("medium")]);
    let id = json!({"/id": "sink"});
    assert_eq!(shown("delete_draft"), [id, json!("nobody"), null, json!("high")]);

    let set = json!({"argument_roles": {"/to": "sink", "/subject": "detail"}, "reach": "tenant",
        "result_trust": {"": "trusted"}, "risk": "low"});
    let answer = registry.ask(&patch("/v1/servers/s/tools/send_mail", set.clone())).unwrap();
    assert_eq!(answer.push.unwrap().keys, [ChangedKey::Tool("s/send_mail".to_owned())]);
    assert_eq!(last_event(&registry)["detail"]["changes"], set);
    let tools = json!({"tools": [send("Sends.", &["to", "cc"])]});
    registry.listing.replace(Some(tools));
    registry.ask(&patch("/v1/servers/s", json!({"upstream": {}}))).unwrap();
    let [roles, reach, trust, risk] = shown("send_mail");
    let now = json!({"argument_roles": roles, "reach": reach, "result_trust": trust, "risk": risk});
    assert_eq!(now, set, "the definition changed, and what an administrator set stays");
    assert_eq!(tool_of(&registry, "send_mail")["approved"], false);

    // Registering it again keeps members that are left out. Null removes them.
    let again = |fields: Json| {
        let tool = json!({"tool": "send_mail", "mutates": true, "risk": "low"});
        registry.ask(&post("/v1/servers/s/tools", with(tool, fields))).map(|_| ())
    };
    again(json!({})).unwrap();
    assert_eq!(shown("send_mail")[1], "tenant");
    again(json!({"argument_roles": null, "result_trust": null})).unwrap();
    let [roles, reach, trust, _] = shown("send_mail");
    assert_eq!([roles, reach, trust], [Json::Null, json!("tenant"), Json::Null]);

    for (field, value) in [
        ("argument_roles", json!({"to": "sink"})),
        ("argument_roles", json!({"": "sink"})),
        ("argument_roles", json!({"/to": "source"})),
        ("argument_roles", json!([])),
        ("reach", json!("everybody")),
        ("reach", Json::Null),
        ("result_trust", json!({"/a~": "trusted"})),
        ("result_trust", json!({"": "allowed"})),
    ] {
        let refused = again(json!({ (field): value })).unwrap_err();
        assert_eq!(refused.code, InvalidField, "{field} {value}");
        assert!(refused.field.unwrap().starts_with(field), "{field} {value}");
    }
}

#[test]
fn modes_of_the_shield_are_set_for_a_tenant_a_server_and_a_tool_and_null_takes_them_away() {
    let registry = listed(&json!([tool("search", "")]));
    let some = json!({"secret": "redact", "sql_injection": "block"});
    let server = || json!({"server": "s", "kind": "mcp", "upstream": {"url": URL}});
    let tool = || json!({"tool": "search", "mutates": false, "risk": "low"});
    for (path, list, registration, key) in [
        ("/v1/settings", "", None, ChangedKey::Tenant),
        ("/v1/servers/s", "/v1/servers", Some(server()), ChangedKey::Server("s".to_owned())),
        (
            "/v1/servers/s/tools/search",
            "/v1/servers/s/tools",
            Some(tool()),
            ChangedKey::Tool("s/search".to_owned()),
        ),
    ] {
        let shown = || read(&registry, path)["shield"].take();
        let set = |shield: Json| registry.ask(&patch(path, json!({ "shield": shield })));
        assert_eq!(shown(), Json::Null, "{path}");
        assert_eq!(set(some.clone()).unwrap().push.unwrap().keys, [key], "{path}");
        let detail = last_event(&registry)["detail"].take();
        let changes = if registration.is_some() { &detail["changes"] } else { &detail };
        assert_eq!((shown(), &changes["shield"]), (some.clone(), &some), "{path}");
        assert_eq!(set(some.clone()).unwrap().effect, Effect::Unchanged, "{path}");

        // A patch replaces all modes.
        set(json!({"secret": "off"})).unwrap();
        assert_eq!(shown(), json!({"secret": "off"}), "{path}");
        registry.ask(&patch(path, json!({}))).unwrap();
        assert_eq!(shown(), json!({"secret": "off"}), "{path}");
        for (shield, field) in [
            (json!({"sql_injection": "redact"}), "shield"),
            (json!({"sql": "off"}), "shield.sql"),
            (json!({"secret": "on"}), "shield.secret"),
            (json!(["off"]), "shield"),
        ] {
            let refused = set(shield).unwrap_err();
            let refused = (refused.code, refused.field.as_deref());
            assert_eq!(refused, (InvalidField, Some(field)), "{path}");
        }

        // Registering it again keeps members that are left out.
        if let Some(registration) = registration {
            let again = |shield: Json| {
                registry.ask(&post(list, with(registration.clone(), shield))).map(|_| ())
            };
            again(json!({})).unwrap();
            assert_eq!(shown(), json!({"secret": "off"}), "{path}");
            assert_eq!(again(json!({"shield": []})).unwrap_err().code, InvalidField, "{path}");
            again(json!({"shield": some})).unwrap();
            assert_eq!(shown(), some, "{path}");
        }
        set(Json::Null).unwrap();
        assert_eq!(shown(), Json::Null, "{path}");
    }
}

#[test]
fn a_server_whose_results_are_inspected_is_so_until_somebody_says_otherwise() {
    let registry = Registry::new();
    let create = |fields: Json| {
        let named = json!({"server": "s", "kind": "named"});
        registry.ask(&post("/v1/servers", with(named, fields))).unwrap().body["inspects_results"]
            .take()
    };
    let inspects = || registry.load("a", "k", "s", "x").server.unwrap().inspects_results;
    assert_eq!((create(json!({})), inspects()), (json!(false), false));
    let set =
        |value: Json| registry.ask(&patch("/v1/servers/s", json!({"inspects_results": value})));
    assert_eq!(set(json!(true)).unwrap().body["inspects_results"], true);
    assert!(inspects());
    assert_eq!((create(json!({})), inspects()), (json!(true), true));
    assert_eq!(create(json!({"inspects_results": false})), false);
    assert_eq!(set(Json::Null).unwrap_err().field.as_deref(), Some("inspects_results"));
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

/// For lists that real servers gave (`tests/schemas/collect.ts`): `GATEWARD_TOOL_LISTS` names the
/// directory. Prints what is not registered, or cannot be used.
#[test]
#[ignore = "it needs lists of tools that are not in the repository"]
fn tools_of_real_servers_register_and_their_schemas_compile() {
    let directory = std::env::var("GATEWARD_TOOL_LISTS").unwrap();
    let mut findings = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let pages = std::fs::read_to_string(&path).unwrap();
        let pages = pages.lines().map(|page| serde_json::from_str::<Json>(page).unwrap());
        let tools: Vec<Json> =
            pages.flat_map(|page| page["result"]["tools"].as_array().unwrap().clone()).collect();
        let registry = Registry::new();
        registry.listing.replace(Some(json!({ "tools": tools })));
        let created = registry.ask(&create("mcp", json!({"url": URL}))).unwrap();
        for finding in ["skipped_tools", "unsatisfiable_schemas"] {
            let found = created.body[finding].as_array().into_iter().flatten();
            findings.extend(found.map(|tool| format!("{path:?}: {finding}: {tool}")));
        }
        let mut registered = 0;
        for tool in &tools {
            let name = tool["name"].as_str().unwrap();
            let Ok(tool) = registry.ask(&get(&format!("/v1/servers/s/tools/{name}"))) else {
                continue;
            };
            registered += 1;
            if let Err(why) = Schema::compile(&tool.body["input_schema"].to_string()) {
                findings.push(format!("{path:?}: {name}: does not compile: {why}"));
            }
        }
        println!("{path:?}: {} of {} tools", registered, tools.len());
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}
