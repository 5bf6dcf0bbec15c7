//! A plan: calls that the harness foresees, with what their arguments may be.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Calls of a plan.
pub const MAX_PLANNED_CALLS: usize = 64;

/// One planned call. A value that it allows counts as stated only for this tool and this argument.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// `server/tool`.
    pub tool: String,
    /// The values that an argument may have, by JSON Pointer into the arguments.
    pub arguments: Vec<(String, Vec<Json>)>,
    /// The largest number that an argument may be, by JSON Pointer into the arguments; not negative.
    pub at_most: Vec<(String, f64)>,
    /// The tools, as `server/tool`, in whose trusted results the value of an argument may have been seen first, by JSON
    /// Pointer into the arguments. The agent chooses one value, and the next one is not planned: an injected text could
    /// choose it.
    pub from: Vec<(String, Vec<String>)>,
}
