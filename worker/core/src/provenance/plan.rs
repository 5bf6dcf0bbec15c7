//! A plan: calls that the harness foresees, with the values of their arguments.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Calls of a plan.
pub const MAX_PLANNED_CALLS: usize = 64;

/// One foreseen call. Its values count as stated for this tool and this argument, and for no other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// `server/tool`.
    pub tool: String,
    /// The values that an argument may have, by JSON Pointer into the arguments.
    pub arguments: Vec<(String, Vec<Json>)>,
}
