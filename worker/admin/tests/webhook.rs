//! A tenant's webhook, as administrators set it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use crate::support::registry::{Ask, Effect, Registry, delete, get};
use gateward_admin::api::openapi::document;
use gateward_core::problem::ProblemCode::{InvalidField, NotFound, PreconditionFailed};
use serde_json::{Value as Json, json};

const URL: &str = "https://hooks.example.com/gateward";

fn set(url: &str) -> Ask {
    Ask::new("PUT", "/v1/webhook", json!({ "url": url }))
}

#[test]
fn a_webhook_is_set_shown_without_its_secret_set_anew_and_deleted() {
    let registry = Registry::new();
    let refused = |ask: &Ask| registry.ask(ask).unwrap_err().code;
    assert_eq!(refused(&get("/v1/webhook")), NotFound);
    assert_eq!(refused(&delete("/v1/webhook")), NotFound);
    assert_eq!(refused(&set(URL).matching("*")), PreconditionFailed);

    let first = registry.ask(&set(URL)).unwrap();
    assert_eq!((first.status, first.effect), (201, Effect::Created));
    let secret = first.body["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"), "{secret}");
    let shown = registry.ask(&get("/v1/webhook")).unwrap();
    assert_eq!((shown.revision, &shown.body["url"]), (first.revision, &json!(URL)));
    assert_eq!(shown.body.get("secret"), None);
    let stored = format!("{:?}", registry.dump());
    assert!(!stored.contains(secret), "the secret is stored");

    let stale = set(URL).matching("\"1\"");
    assert_eq!(refused(&stale), PreconditionFailed);
    registry.wait(1);
    let tag = format!("\"{}\"", first.revision.unwrap());
    let second = registry.ask(&set("https://example.org/secret#x").matching(&tag)).unwrap();
    assert_eq!((second.status, second.effect), (200, Effect::Changed));
    assert_ne!(second.body["secret"], first.body["secret"]);
    assert_eq!(second.body["created_at"], first.body["created_at"]);
    assert_ne!(second.body["updated_at"], first.body["updated_at"]);
    assert_eq!(second.body["url"], "https://example.org/secret");

    assert_eq!(refused(&delete("/v1/webhook").matching(&tag)), PreconditionFailed);
    let deleted = registry.ask(&delete("/v1/webhook")).unwrap();
    assert_eq!(deleted.body["url"], "https://example.org/secret");
    assert_eq!(refused(&get("/v1/webhook")), NotFound);
    assert_eq!(registry.epoch(), 4, "each change raised it");

    let events = registry.list("/v1/audit-events");
    let seen: Vec<(&Json, &Json)> =
        events.iter().map(|event| (&event["kind"], &event["detail"])).collect();
    // The path of an address may be secret, so the audit does not have it.
    let none = json!({});
    let (org, com) =
        (json!({"origin": "https://example.org"}), json!({"origin": "https://hooks.example.com"}));
    let (set, deleted) = (json!("webhook_set"), json!("webhook_deleted"));
    let mut expected = vec![(&deleted, &none), (&set, &org), (&set, &com)];
    expected.sort_by_key(|(_, detail)| detail.to_string());
    let mut seen = seen;
    seen.sort_by_key(|(_, detail)| detail.to_string());
    assert_eq!(seen, expected);
}

#[test]
fn a_webhook_at_an_address_that_is_not_on_the_internet_is_refused_with_a_reason() {
    let registry = Registry::new();
    for (url, expected) in [
        ("http://example.com", "must begin with `https://`"),
        ("https://localhost/x", "a name of a local network"),
        ("https://169.254.169.254/latest/meta-data", "a link-local address"),
        ("https://u:p@example.com/", "a user or a password"),
    ] {
        let problem = registry.ask(&set(url)).unwrap_err();
        let named = (problem.code, problem.field.as_deref());
        assert_eq!(named, (InvalidField, Some("url")), "{url}");
        assert!(problem.detail.contains(expected), "{url}: {}", problem.detail);
    }
    let more = Ask::new("PUT", "/v1/webhook", json!({ "url": URL, "secret": "mine" }));
    assert_eq!(registry.ask(&more).unwrap_err().code, InvalidField);
    let described = serde_json::to_value(document()).unwrap();
    assert!(described["components"]["schemas"]["IssuedWebhook"].is_object());
}
