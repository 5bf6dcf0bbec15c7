//! Where a server is: what an upstream can be, and how it is shown and changed.

use gateward_core::problem::ProblemCode::InvalidField;
use gateward_core::registry::upstream::{
    MAX_FORWARDED_HEADERS, MAX_ROUTE_PATH_BYTES, MAX_ROUTE_SEGMENTS, MAX_ROUTES, Upstream,
};
use serde_json::{Value as Json, json};

use super::{create, last_event, read};
use crate::support::registry::{Effect, Registry, patch, post};
use crate::support::with;

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
