//! Reads the values in a text or in JSON.

use super::{Observed, ResultTrust, ValueKey};
use crate::json::Json;
pub fn result(_: &ValueKey, _: &str, _: Option<&ResultTrust>, _: bool) -> Observed {
    Observed::default()
}
pub fn instruction(_: &ValueKey, _: &str) -> Vec<u64> {
    Vec::new()
}
pub fn arguments(_: &ValueKey, _: &Json) -> (Vec<u64>, bool) {
    (Vec::new(), false)
}
pub const MAX_READ_BYTES: usize = 1 << 20;
