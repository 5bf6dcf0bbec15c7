//! A plan: calls that the harness foresees, with what their arguments may be.

use serde::{Deserialize, Serialize};

use super::search::split_once;
use crate::json::Json;

/// Calls of a plan.
pub const MAX_PLANNED_CALLS: usize = 64;

/// One planned call. A value that it allows counts as stated only for this tool and this argument.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// `server/tool`.
    pub tool: String,
    /// The values that an argument may have, by JSON Pointer into the arguments. Its step `*` stands for each item of a list.
    pub arguments: Vec<(String, Vec<Json>)>,
    /// The largest number that an argument may be, by JSON Pointer into the arguments; not negative.
    pub at_most: Vec<(String, f64)>,
    /// The tools, as `server/tool`, in whose trusted results the value of an argument may have been seen first, by JSON
    /// Pointer into the arguments. The agent chooses one value, and the next one is not planned: an injected text could
    /// choose it.
    pub from: Vec<(String, Vec<String>)>,
}

/// The number that a value is. A text counts if every reader takes it for the same amount: `1.200` is none.
#[must_use]
pub fn number(value: &Json) -> Option<f64> {
    match value {
        Json::String(text) => {
            let (whole, cents) = split_once(text, '.').unwrap_or((text, "0"));
            let is_number = |digits: &str, most: usize| {
                (1..=most).contains(&digits.len())
                    && digits.bytes().all(|byte| byte.is_ascii_digit())
            };
            // Some readers take it for an octal number.
            let is_octal = whole.len() > 1 && whole.starts_with('0');
            let is_amount = is_number(whole, 12) && is_number(cents, 2) && !is_octal;
            is_amount.then(|| text.parse().ok()).flatten()
        }
        // Integers are within the range that a double holds exactly.
        Json::Integer(number) => Some(*number as f64),
        Json::Number(number) => Some(*number),
        _ => None,
    }
}
