//! The entries of the head: checkpoints of lanes, and the hashes of registry events.

use gateward_core::bounds::MAX_LANES;
use gateward_core::json::Json;
use gateward_core::receipt;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::members::Members;

/// The lane number of the head's bodies.
pub const HEAD_LANE: u16 = u16::MAX;

const _: () = assert!(MAX_LANES < HEAD_LANE, "the head must not have the number of a lane");

/// What a body of the head says.
#[derive(Debug)]
pub enum HeadBody {
    LaneCheckpoint(LaneCheckpoint),
    RegistryEvent(RegistryEvent),
}

/// A checkpoint that a lane sent.
#[derive(Debug)]
pub struct LaneCheckpoint {
    pub lane: u16,
    /// The lane's signed note.
    pub note: String,
    /// The number of the lane's receipt with index 0.
    pub first: u64,
    /// The last receipt that retention deleted; 0 if none.
    pub pruned_through: u64,
}

/// A change of the registry.
#[derive(Debug)]
pub struct RegistryEvent {
    pub epoch: u64,
    event_id: String,
    event_hash: String,
}

impl HeadBody {
    /// Reads a body whose place in the chain was verified. The error is a sentence.
    pub fn parse(body: Json) -> Result<Self, String> {
        let mut members = Members::of(body)?;
        // These were compared with the log.
        for name in ["lane", "prev_hash", "seq", "tenant"] {
            members.take(name)?;
        }
        members.time("time")?;
        members.number("version")?;
        let parsed = match members.text("kind")?.as_str() {
            "lane_checkpoint" => Self::LaneCheckpoint(LaneCheckpoint {
                lane: members
                    .number("of_lane")?
                    .try_into()
                    .ok()
                    .filter(|lane| *lane < MAX_LANES)
                    .ok_or_else(|| format!("`of_lane` must be a number below {MAX_LANES}"))?,
                note: members.text("checkpoint")?,
                first: members.number("first")?,
                pruned_through: members.number("pruned_through")?,
            }),
            "registry_event" => {
                let event_id = members.text("event_id")?;
                let epoch = event_id.strip_prefix("registry.");
                // A sign is not part of it.
                let epoch = epoch.filter(|it| !it.starts_with('+')).and_then(|it| it.parse().ok());
                let epoch = epoch.ok_or("`event_id` must be `registry.` and an epoch")?;
                let event_hash = members.hex_hash("event_hash")?;
                Self::RegistryEvent(RegistryEvent { epoch, event_id, event_hash })
            }
            other => return Err(format!("the head has no receipts of the kind `{other}`")),
        };
        members.end()?;
        Ok(parsed)
    }
}

/// The epochs of the registry events in the head.
#[derive(Debug, Default)]
pub struct Epochs {
    newest: Option<u64>,
    /// How many epochs between two registry events have none.
    pub skipped: u64,
    /// The first of them, and the head's receipt with the event after it.
    pub first_skipped: Option<(u64, u64)>,
}

impl Epochs {
    /// Takes the epoch of the next registry event. After a fault, the head can have an event twice.
    pub fn take(&mut self, epoch: u64, receipt: u64) {
        let newest = self.newest.unwrap_or(epoch);
        let skipped = epoch.saturating_sub(newest).saturating_sub(1);
        if skipped > 0 {
            self.skipped = self.skipped.saturating_add(skipped);
            self.first_skipped.get_or_insert((newest + 1, receipt));
        }
        self.newest = Some(newest.max(epoch));
    }
}

/// An audit event. Nothing else can be in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the form matters")]
struct AuditEvent {
    at_ms: u64,
    detail: IgnoredAny,
    event_id: String,
    kind: String,
    source: String,
}

impl RegistryEvent {
    /// Whether a text is the audit event that the head has the hash of. The error is a sentence.
    ///
    /// The hash is over the canonical form, so a text with this hash is in that form.
    pub fn check(&self, text: &str) -> Result<(), String> {
        if receipt::hash(text) != self.event_hash {
            return Err("the event does not have the hash that the head has".to_owned());
        }
        let event: AuditEvent = serde_json::from_str(text)
            .map_err(|error| format!("it is not an audit event: {error}"))?;
        if event.event_id != self.event_id {
            return Err("the event has another `event_id` than the head".to_owned());
        }
        Ok(())
    }
}
