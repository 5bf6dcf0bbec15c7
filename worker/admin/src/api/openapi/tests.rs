//! The description is true of the code.

use gateward_core::approval::ApprovalEvent;
use gateward_core::call;
use gateward_core::decision::Decision;
use gateward_core::decision::ReasonCode;
use gateward_core::problem::ProblemCode;
use gateward_core::receipt::{AgentEvent, Ending};
use gateward_core::route::ROUTES;
use gateward_core::scope::Scope;
use gateward_core::trust::SourceTrust;
use gateward_core::warrant::{Carried, Judged};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

use super::document;
use super::operations::entry;

/// A body with every field.
fn whole_call() -> Value {
    json!({
        "agent": { "id": "coder", "environment": "production" },
        "tool_call": {
            "tool": "mcp:github", "action": "get_issue", "parameters": { "number": 1 },
            "mutates_state": false, "resource": "gateward/gateward",
        },
        "context": { "source_trust": "untrusted_external", "contains_sensitive_data": false },
        "user": { "id": "u", "role": "r" },
        "trace": {
            "run_id": "r", "trace_id": "t", "parent_run_id": "p", "root_trust_level": "unknown",
        },
        "request_id": "1", "approval_id": "appr_0_1", "nonce": "n",
        "timestamp": "2026-10-01T12:00:00Z", "dry_run": true,
        "warrant": { "warrant": "gA", "signature": "AA", "approvals": ["oA"] },
    })
}

/// The described fields as JSON pointers, with whether each is required.
fn fields(schema: &Value, components: &Value, path: &str, found: &mut Vec<(String, bool)>) {
    let variants = schema["oneOf"].as_array().into_iter().flatten().chain([schema]);
    for variant in variants {
        if let Some(name) = variant["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap();
            fields(&components[name], components, path, found);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}/{name}");
        let required = schema["required"].as_array().is_some_and(|r| r.contains(&json!(name)));
        fields(field, components, &path, found);
        found.push((path, required));
    }
}

/// Why a call is refused. A warrant that cannot be read does not stop the parsing: the refusal counts as one of warrants.
fn refusal(call: &Value) -> Option<String> {
    match call::parse(call.to_string().as_bytes(), "acme") {
        Err(problem) => Some(problem.detail),
        Ok((_, Some(Carried { judged: Judged::Refused(refusal), .. }))) => Some(refusal.reason),
        Ok(_) => None,
    }
}

#[test]
fn a_call_is_parsed_as_it_is_described() {
    let document = serde_json::to_value(document()).unwrap();
    let components = &document["components"]["schemas"];
    let mut described = Vec::new();
    fields(&components["AuthorizeRequest"], components, "", &mut described);
    let whole = whole_call();
    assert_eq!(refusal(&whole), None);
    for (path, _) in &described {
        assert!(whole.pointer(path).is_some(), "{path} is not in the whole call");
    }
    for (path, required) in described {
        let within = path.strip_prefix("/warrant/").unwrap_or(&path);
        let name = within.trim_start_matches('/').replace('/', ".");
        let mut mistyped = whole.clone();
        let slot = mistyped.pointer_mut(&path).unwrap();
        *slot = if slot.is_array() { json!({}) } else { json!([]) };
        let why = refusal(&mistyped).unwrap();
        assert!(why.contains(&format!("`{name}`")), "{path}: {why}");

        let mut without = whole.clone();
        without["nonce"] = Value::Null;
        *without.pointer_mut(&path).unwrap() = Value::Null;
        assert_eq!(refusal(&without).is_some(), required, "{path}");
    }
}

#[test]
fn described_values_are_those_that_are_written() {
    fn values<T: ToSchema>() -> Vec<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        serde_json::from_value(schema["enum"].clone()).unwrap()
    }
    // The derives list every variant, so these lists cannot lack one.
    let codes = |codes: &[ProblemCode]| codes.iter().map(|code| code.code()).collect::<Vec<_>>();
    assert_eq!(values::<ProblemCode>(), codes(ProblemCode::ALL));
    let codes = |codes: &[ReasonCode]| codes.iter().map(|code| code.code()).collect::<Vec<_>>();
    assert_eq!(values::<ReasonCode>(), codes(ReasonCode::ALL));
    assert_eq!(values::<Decision>(), Decision::ALL.map(Decision::as_str));
    assert_eq!(values::<Scope>(), Scope::ALL.map(Scope::as_str));
    assert_eq!(values::<SourceTrust>(), SourceTrust::ALL.map(SourceTrust::as_str));
    let steps = [
        ApprovalEvent::Requested,
        ApprovalEvent::Endorsed,
        ApprovalEvent::Approved,
        ApprovalEvent::Rejected,
        ApprovalEvent::Cancelled,
        ApprovalEvent::Expired,
        ApprovalEvent::Used,
        ApprovalEvent::Tampered,
    ];
    assert_eq!(values::<ApprovalEvent>(), steps.map(ApprovalEvent::as_str));
    let events = [
        AgentEvent::Restored,
        AgentEvent::Untainted,
        AgentEvent::Tainted,
        AgentEvent::RunStarted,
        AgentEvent::OutcomeReported,
    ];
    assert_eq!(values::<AgentEvent>(), events.map(AgentEvent::as_str));
    let endings = [
        Ending::Complete,
        Ending::CallerGone,
        Ending::UpstreamFailed,
        Ending::TimedOut,
        Ending::TooLarge,
        Ending::Refused,
    ];
    assert_eq!(values::<Ending>(), endings.map(Ending::as_str));
}

#[test]
fn no_two_types_have_the_same_name_in_the_document() {
    let mut seen = BTreeMap::new();
    for route in ROUTES {
        for (name, schema) in entry(route.operation).schemas {
            let schema = serde_json::to_value(schema).unwrap();
            let first = seen.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*first, schema, "{name}");
        }
    }
}
