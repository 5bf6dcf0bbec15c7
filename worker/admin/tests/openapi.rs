//! The API's description is true of the route table, whole, and the one that is committed.

#![allow(clippy::unwrap_used, reason = "tests only")]

use std::collections::BTreeSet;

use gateward_admin::api::openapi::document;
use gateward_admin::api::request::{Asked, RANDOM_BYTES, Request};
use gateward_core::credential::token::MacKeys;
use gateward_core::limit::window::utc_only;
use gateward_core::problem::ProblemCode;
use gateward_core::route::{Access, ROUTES};
use serde_json::{Value, json};

const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

fn described() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// Path, method and operation.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    paths
        .iter()
        .flat_map(|(path, item)| {
            let operations = item.as_object().unwrap().iter();
            operations.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
        })
        .filter(|(_, method, _)| METHODS.contains(method))
        .collect()
}

/// A parameter or what it refers to.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => value,
    }
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if let Some(reference) = object.get("$ref").and_then(Value::as_str) {
                found.insert(reference.to_owned());
            }
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn the_committed_description_is_the_one_that_the_code_gives() {
    let expected = format!("{}\n", document().to_pretty_json().unwrap());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    assert!(
        std::fs::read_to_string(file).unwrap_or_default() == expected,
        "write it anew: cargo run -p gateward-admin --example openapi > docs/openapi.json"
    );
}

#[test]
fn it_names_its_format_and_the_crates_version() {
    let document = described();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let document = described();
    let routes: BTreeSet<(String, String)> = ROUTES
        .iter()
        .map(|route| (route.path.to_owned(), route.method.to_ascii_lowercase()))
        .collect();
    let described: BTreeSet<(String, String)> = operations(&document)
        .into_iter()
        .map(|(path, method, _)| (path.to_owned(), method.to_owned()))
        .collect();
    assert_eq!(described, routes);
}

#[test]
fn every_operation_has_what_its_route_needs() {
    let document = described();
    for route in ROUTES {
        let name = format!("{} {}", route.method, route.path);
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        let expected = match route.access {
            Access::Open => json!([]),
            Access::Bootstrap => json!([{ "bootstrap": [] }]),
            Access::Call => json!([{ "agent": [] }]),
            Access::Reader(scope) => json!([{ "agent": [] }, { "administrator": [scope] }]),
            Access::Administrator(scope) => json!([{ "administrator": [scope] }]),
            Access::Log => json!([{ "administrator": ["audit:read"] }, {}]),
        };
        assert_eq!(operation["security"], expected, "{name}");
        for requirement in expected.as_array().unwrap() {
            for scheme in requirement.as_object().unwrap().keys() {
                assert!(document["components"]["securitySchemes"][scheme].is_object(), "{scheme}");
            }
        }
        let refused = operation["responses"]["401"].is_object();
        assert_eq!(refused, route.access != Access::Open, "{name}");
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let of_path: Vec<&str> = parameters
            .iter()
            .map(|parameter| resolved(&document, parameter))
            .filter(|parameter| parameter["in"] == "path" && parameter["required"] == true)
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let template: Vec<&str> = route
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .collect();
        assert_eq!(of_path, template, "{name}");
        let tag = &operation["tags"][0];
        let mut tags = document["tags"].as_array().unwrap().iter();
        assert!(tags.any(|known| known["name"] == *tag), "{name}: {tag}");
    }
}

#[test]
fn an_operation_of_the_administration_takes_a_body_if_it_is_described_with_one() {
    let document = described();
    let keys = MacKeys::new("a MAC key of this test, long enough for one", None).unwrap();
    for route in ROUTES {
        let request = |body: &'static [u8]| Request {
            operation: route.operation,
            tenant: "",
            parameters: &[],
            query: &[],
            body,
            keys: &keys,
            random: [0; RANDOM_BYTES],
            local_targets: false,
            offset_s: utc_only,
        };
        if matches!(request(b"").asked(), Ok(Asked::Other)) {
            continue;
        }
        let name = format!("{} {}", route.method, route.path);
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        let body = &operation["requestBody"];
        assert_eq!(request(b"{}").takes_body(), body.is_object(), "{name}");
        assert_eq!(request(b"").takes_body(), body["required"] == true, "{name}");
    }
}

#[test]
fn operation_ids_are_unique_and_in_one_style() {
    let document = described();
    let mut seen = BTreeSet::new();
    for (path, method, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(seen.insert(id.to_owned()), "{id} twice");
        assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{id}");
        let summary = operation["summary"].as_str().unwrap();
        assert!(summary.ends_with('.'), "{method} {path}: {summary}");
    }
}

#[test]
fn every_reference_leads_to_something_and_every_component_is_referred_to() {
    let document = described();
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    for reference in &found {
        assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
    }
    for kind in ["schemas", "responses", "parameters", "headers"] {
        for name in document["components"][kind].as_object().unwrap().keys() {
            let reference = format!("#/components/{kind}/{name}");
            assert!(found.contains(&reference), "{reference} is not used");
        }
    }
}

/// What only the paths that take every method answer, which OpenAPI cannot describe.
const OF_PROXIES: [ProblemCode; 3] = [
    ProblemCode::OriginalRequestUnknown,
    ProblemCode::OriginalRequestConflict,
    ProblemCode::ResultBlocked,
];

#[test]
fn every_problem_of_a_described_route_can_occur() {
    let document = described();
    let responses = document["components"]["responses"].as_object().unwrap();
    let described: BTreeSet<&str> = responses.keys().flat_map(|name| name.split('.')).collect();
    let expected: BTreeSet<&str> = ProblemCode::ALL
        .iter()
        .copied()
        .filter(|code| *code != ProblemCode::MethodNotAllowed && !OF_PROXIES.contains(code))
        .map(ProblemCode::code)
        .collect();
    assert_eq!(described, expected);
}
