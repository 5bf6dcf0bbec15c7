//! Schemas of tools: which ones are kept, and what is told about the others.

use gateward_core::json;
use gateward_core::problem::ProblemCode::InvalidField;
use gateward_core::schema::{MAX_SCHEMA_BYTES, Schema, Schemas};
use serde_json::{Value as Json, json};

use super::{URL, approve, create, listed, tool_of};
use crate::support::registry::{Effect, Registry, get, patch, post};

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
    let schema = record.input_schema.as_deref().unwrap();
    let mut schemas = Schemas::default();
    let mut check = |input: &str| schemas.check(schema, &json::parse(input.as_bytes()).unwrap());
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
