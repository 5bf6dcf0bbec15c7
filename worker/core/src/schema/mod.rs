//! A tool's JSON Schema: the arguments are checked against it before policies are evaluated.
//!
//! The schemas come from untrusted servers. Therefore:
//!
//! - When a server lists a tool, its schema is only checked against bounds ([`check`]). It is compiled when
//!   a call needs it, after all other checks of the tool ([`Schemas`]).
//! - The cost of compiling is bounded beforehand ([`cost`]), and so is the cost of applying the schema
//!   ([`applications`]).
//! - External references are never fetched.
//! - Patterns are matched without backtracking, and the work of matching is bounded ([`Schema::check`]).
//! - Error messages never contain argument values.

mod applications;
mod cache;
mod compiled;
pub mod cost;
mod mismatch;
mod names;
mod numbers;
pub mod patterns;

pub use cache::{MAX_CACHED_BYTES, Misfit, Schemas};
pub use compiled::{MAX_SCHEMA_BYTES, Schema, check, unsatisfiable};
pub(crate) use mismatch::{MISMATCH, quote, quoted, shortened};
