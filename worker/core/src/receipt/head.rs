//! The receipts of a tenant's head log: what its lanes signed, and what changed in its registry.

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};
use utoipa::openapi::Object;

use super::kind::{ReceiptKind, only};
use crate::json;

fn lane_checkpoint_kind() -> Object {
    only(ReceiptKind::LaneCheckpoint)
}

fn registry_event_kind() -> Object {
    only(ReceiptKind::RegistryEvent)
}

/// The receipt of a checkpoint that a lane of the tenant signed.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = LaneCheckpointReceiptBody)]
pub struct LaneCheckpointBody<'a> {
    /// The lane's checkpoint: a signed note, as in <https://c2sp.org/tlog-checkpoint>.
    pub checkpoint: &'a str,
    /// The number of the receipt that is the first entry of the lane's log.
    pub first: u64,
    #[schema(schema_with = lane_checkpoint_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    /// The lane that signed.
    pub of_lane: u16,
    pub prev_hash: &'a str,
    /// The last receipt of that lane that was deleted because of its age; 0 if none was.
    pub pruned_through: u64,
    pub seq: u64,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub version: u8,
}

/// The receipt of an audit event of the registry.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = RegistryEventReceiptBody)]
pub struct RegistryEventBody<'a> {
    /// SHA-256 of the event in its canonical form, in lower-case hex.
    pub event_hash: &'a str,
    /// `registry.` and the epoch that the change began.
    pub event_id: &'a str,
    #[schema(schema_with = registry_event_kind)]
    pub kind: ReceiptKind,
    pub lane: u16,
    pub prev_hash: &'a str,
    pub seq: u64,
    pub tenant: &'a str,
    #[schema(format = DateTime)]
    pub time: &'a str,
    pub version: u8,
}

/// An audit event of the registry.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
pub struct RegistryEvent {
    pub at_ms: u64,
    /// A JSON object, as text.
    pub detail: String,
    pub event_id: String,
    pub kind: String,
    pub source: String,
}

/// The members of an event in the order of RFC 8785.
#[derive(Serialize)]
struct Canonical<'a> {
    at_ms: u64,
    detail: &'a RawValue,
    event_id: &'a str,
    kind: &'a str,
    source: &'a str,
}

impl RegistryEvent {
    /// The event in the form of RFC 8785: an object with the members `at_ms`, `detail`, `event_id`, `kind` and
    /// `source`. A detail that is not JSON is a string.
    #[must_use]
    pub fn canonical(&self) -> String {
        let Self { at_ms, detail, event_id, kind, source } = self;
        let detail = match json::parse(detail.as_bytes()) {
            Ok(detail) => RawValue::from_string(detail.canonical()),
            Err(_) => to_raw_value(detail),
        };
        // Both are JSON, and plain data always serializes.
        let detail = &*detail.unwrap_or_else(|_| RawValue::NULL.to_owned());
        json::to_string(&Canonical { at_ms: *at_ms, detail, event_id, kind, source })
    }

    /// SHA-256 of the canonical form, in lower-case hex.
    #[must_use]
    pub fn hash(&self) -> String {
        hex::encode(Sha256::digest(self.canonical().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::HEAD_LANE;
    use crate::receipt::{BODY_VERSION, Body, GENESIS, seal};

    #[test]
    fn the_bodies_are_canonical_as_written_and_their_formats_are_unchanged() {
        let (checkpoint, _) = seal(&Body::LaneCheckpoint(LaneCheckpointBody {
            checkpoint: "o\n1\nr\n\n— o s\n",
            first: 1,
            kind: ReceiptKind::LaneCheckpoint,
            lane: HEAD_LANE,
            of_lane: 3,
            prev_hash: GENESIS,
            pruned_through: 0,
            seq: 7,
            tenant: "t",
            time: "2026-01-01T00:00:00.000Z",
            version: BODY_VERSION,
        }));
        let (event, _) = seal(&Body::RegistryEvent(RegistryEventBody {
            event_hash: "h",
            event_id: "registry.4",
            kind: ReceiptKind::RegistryEvent,
            lane: HEAD_LANE,
            prev_hash: GENESIS,
            seq: 8,
            tenant: "t",
            time: "2026-01-01T00:00:00.000Z",
            version: BODY_VERSION,
        }));
        let pinned = [
            r#"{"checkpoint":"o\n1\nr\n\n— o s\n","first":1,"kind":"lane_checkpoint","lane":65535,"of_lane":3,"prev_hash":"GENESIS","pruned_through":0,"seq":7,"tenant":"t","time":"2026-01-01T00:00:00.000Z","version":2}"#,
            r#"{"event_hash":"h","event_id":"registry.4","kind":"registry_event","lane":65535,"prev_hash":"GENESIS","seq":8,"tenant":"t","time":"2026-01-01T00:00:00.000Z","version":2}"#,
        ];
        for (text, pinned) in [checkpoint, event].iter().zip(pinned) {
            assert_eq!(json::parse(text.as_bytes()).unwrap().canonical(), *text);
            assert_eq!(*text, pinned.replace("GENESIS", GENESIS));
        }
    }

    #[test]
    fn an_event_is_hashed_in_its_canonical_form() {
        for (detail, expected) in
            [(r#"{"b":1, "a":"é\u000a"}"#, r#"{"a":"é\n","b":1}"#), ("no JSON\"", r#""no JSON\"""#)]
        {
            let event = RegistryEvent {
                at_ms: 5,
                detail: detail.to_owned(),
                event_id: "registry.4".to_owned(),
                kind: "agent_created".to_owned(),
                source: "ada".to_owned(),
            };
            let canonical = event.canonical();
            assert!(
                canonical.starts_with(&format!(r#"{{"at_ms":5,"detail":{expected},"event_id""#))
            );
            assert_eq!(json::parse(canonical.as_bytes()).unwrap().canonical(), canonical);
        }
    }
}
