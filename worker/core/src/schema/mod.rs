//! A tool's JSON Schema: what its arguments must be before policies are asked.
//!
//! The schemas come from servers that nobody vouches for. So nothing is compiled because a server said
//! it: a listing is only held against bounds ([`check`]), and a schema is compiled when a call needs
//! it, after everything else about the tool is known to be in order ([`Schemas`]). What compiling
//! takes is bounded before it is done ([`cost`]), and so is what applying a schema takes
//! ([`applications`]). What schemas refer to elsewhere is never fetched; patterns are matched in linear
//! time, by an engine that knows no backtracking; and a message never quotes an argument.

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
pub(crate) use mismatch::{MISMATCH, quoted};
