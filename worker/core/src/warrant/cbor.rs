//! The part of CBOR (RFC 8949) that warrants use.
//!
//! INVARIANT (no trust in lengths): a declared length never allocates. Each item of an array or a map takes at
//! least one byte of the input, so work and memory are linear in the input.
//!
//! Heads must have their shortest form, and lengths must be definite: one value has one encoding. Tags do not
//! occur. Numbers are read in every width, because writers choose the shortest.

mod item;
mod reader;
mod writer;

pub use item::Malformed;
pub use reader::Reader;
pub use writer::{Writer, sorted};

#[cfg(test)]
mod tests;
