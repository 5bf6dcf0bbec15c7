//! Audit events, as administrators read them.

use gateward_core::field::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use crate::resource::Resource;

/// An audit event in D1.
#[derive(Debug, Clone, Deserialize)]
pub struct EventRow {
    event_id: String,
    at_ms: Millis,
    kind: String,
    source: String,
    lane: Option<u16>,
    decision_id: Option<String>,
    count: u64,
    detail: Json,
}

/// An event: a decision, a change of the registry, or a count of rejections.
#[derive(Debug, Serialize, ToSchema)]
pub struct AuditEvent {
    event_id: String,
    #[schema(value_type = String, format = DateTime)]
    at: Millis,
    kind: String,
    /// Who caused it: an agent's or an administrator's name, or a network address.
    source: String,
    lane: Option<u16>,
    decision_id: Option<String>,
    /// How many identical events this counts.
    count: u64,
    #[schema(value_type = Object)]
    detail: Json,
}

impl Resource for EventRow {
    const SINGULAR: &'static str = "audit event";
    const PLURAL: &'static str = "audit_events";
    type View = AuditEvent;

    fn cursor(&self) -> String {
        format!("{}.{}", self.at_ms.0, self.event_id)
    }

    fn revision(&self) -> Option<u64> {
        None
    }

    fn view(&self, _: u64) -> AuditEvent {
        AuditEvent {
            event_id: self.event_id.clone(),
            at: self.at_ms,
            kind: self.kind.clone(),
            source: self.source.clone(),
            lane: self.lane,
            decision_id: self.decision_id.clone(),
            count: self.count,
            detail: self.detail.clone(),
        }
    }
}
