//! What the core's tests have, and the registry as the worker serves it.

#![allow(dead_code, reason = "the tests of each crate use a part of this")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

pub mod model;
pub mod registry;

#[path = "../../../core/tests/support/mod.rs"]
mod lane;

pub use lane::*;
