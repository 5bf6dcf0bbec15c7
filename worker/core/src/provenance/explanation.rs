//! The provenance of one call, as callers, approvers and receipts see it.

use serde::{Deserialize, Serialize};

use super::{Level, Reach};

/// Sinks that an explanation names: those of the lowest levels come first.
pub const MAX_EXPLAINED_SINKS: usize = 16;

/// Where the destinations of a call came from. It holds no values. Fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Provenance {
    /// Whether the run has an instruction.
    pub instruction_known: bool,
    /// The lowest level among the sinks; `nowhere` if there are none.
    pub lowest: Level,
    /// Whom the call reaches.
    pub reach: Reach,
    /// The lowest first; at most 16.
    pub sinks: Vec<SinkOrigin>,
}

/// Where the value of one sink came from. Fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SinkOrigin {
    /// The number of that call among the run's results, from 1; absent if no result has the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u32)]
    pub call: Option<u32>,
    /// The decision on the call whose result first had the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub decision_id: Option<String>,
    pub level: Level,
    /// A JSON Pointer to the argument. `#links` after it: a link or address inside of a content.
    pub sink: String,
    /// The tool of that call, as `server/tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub tool: Option<String>,
}
