//! What is registered about servers and tools: what Gateward proposes, and what administrators set.

use gateward_core::problem::ProblemCode::InvalidField;
use gateward_core::registry::ChangedKey;
use serde_json::{Map, Value as Json, json};

use super::{URL, last_event, listed, read, tool, tool_of};
use crate::support::registry::{Effect, Registry, patch, post};
use crate::support::with;

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
fn a_tool_whose_name_only_reads_is_proposed_as_a_read_and_waits_for_approval() {
    let says = |reads: bool| {
        let annotations = json!({ "readOnlyHint": reads });
        json!({"name": "list_pages", "inputSchema": {}, "annotations": annotations})
    };
    for (definition, mutates) in [
        (tool("list_pages", ""), false),
        (tool("list_pages", "Searches the web."), true),
        (says(false), true),
        (says(true), false),
    ] {
        let shown = tool_of(&listed(&json!([definition])), "list_pages");
        let fields = ["mutates", "risk", "approved"].map(|field| shown[field].clone());
        assert_eq!(fields, [json!(mutates), json!("medium"), json!(false)], "{definition}");
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
