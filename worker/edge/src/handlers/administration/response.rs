//! The response to an administrator.

use gateward_admin::Answer as Body;
use gateward_core::etag::etag;
use serde_json::Value as Json;

use crate::answer::{Answered, whole};
use crate::app::App;
use crate::http::Head;

/// `pending_lanes` are the lanes that did not confirm the change; if there are any, the status is 202.
/// `replayed` says that the body is the stored one of an idempotency key.
pub fn respond(
    app: &App,
    status: u16,
    Body { mut body, revision }: Body,
    pending_lanes: &[u16],
    replayed: bool,
) -> Answered {
    let status = if pending_lanes.is_empty() { status } else { 202 };
    if !pending_lanes.is_empty() {
        body.insert("pending_lanes".to_owned(), pending_lanes.into());
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
