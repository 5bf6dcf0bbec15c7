//! The level of a value, as a whole and in parts.

use super::Level;

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    pub level: Level,
    /// The position of the source that had it first.
    pub source: Option<u32>,
}

/// Looks up a value by its hash.
pub trait Known {
    fn get(&self, hash: u64) -> Option<Found>;
}

use super::{Destinations, ValueKey};
use crate::json::Json;
pub fn sink(_: &ValueKey, _: &Json, _: &Destinations, _: &dyn Known) -> Option<Found> {
    None
}
pub fn links(_: &ValueKey, _: &Json, _: &Destinations, _: &dyn Known) -> Option<Found> {
    None
}
pub fn hashes(_: &ValueKey, _: &Json) -> Vec<u64> {
    Vec::new()
}
pub fn planned(_: &ValueKey, _: &str, _: &str, _: &Json) -> u64 {
    0
}
