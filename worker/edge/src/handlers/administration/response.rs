//! The response to an administrator.

use gateward_admin::AnswerBody;
use gateward_core::credential::locator;
use gateward_core::etag::etag;
use gateward_core::warrant::key::PublicKey;
use serde_json::{Map, Value as Json};

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::http::Head;

/// Builds the response. `tenant` is the tenant of the record. `pending_lanes` are the lanes that did not
/// confirm the change; if there are any, the status is 202. `replayed` means that the body is the answer that
/// was stored for an idempotency key.
pub fn respond(
    app: &App,
    tenant: &str,
    status: u16,
    AnswerBody { mut body, revision }: AnswerBody,
    pending_lanes: &[u16],
    replayed: bool,
) -> Answered {
    let status = if pending_lanes.is_empty() { status } else { 202 };
    if !pending_lanes.is_empty() {
        body.insert("pending_lanes".to_owned(), pending_lanes.into());
    }
    if let Some(locator) = locator_of(app, tenant, &body) {
        body.insert("warrant_locator".to_owned(), locator.into());
    }
    let mut head = Head::new(status, &app.request_id);
    if let Some(revision) = revision {
        head = head.field("etag", etag(revision));
    }
    if replayed {
        head = head.field("idempotency-replayed", "true");
    }
    whole(head.with(&Json::Object(body).to_string()))
}

/// The locator of the agent that an answer shows, if it is an agent with a key. Only the worker has the MAC key for it.
fn locator_of(app: &App, tenant: &str, body: &Map<String, Json>) -> Option<String> {
    let text = |name: &str| body.get(name).and_then(Json::as_str);
    let key: PublicKey = text("public_key")?.parse().ok()?;
    let lane = body.get("lane").and_then(Json::as_u64).and_then(|lane| lane.try_into().ok())?;
    Some(locator::issue(&app.settings.mac_keys, tenant, text("agent")?, lane, &key))
}
