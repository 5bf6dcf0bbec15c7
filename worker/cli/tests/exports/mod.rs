//! Exports for tests: true ones of a long random history, and the same after somebody tampered with them.

#![allow(dead_code, reason = "each test and example uses a part")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

pub mod body;
pub mod history;
pub mod keys;
pub mod line;
pub mod tamper;
pub mod tampering;
