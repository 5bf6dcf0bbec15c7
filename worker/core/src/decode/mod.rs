//! Decodings: other forms in which a text may carry a value. If an agent sends a value in one of these forms, some
//! program behind a tool decodes it.
//!
//! INVARIANT (linear): each function reads its text once, and what it returns is no longer than the text,
//! except for [`binary::inflate`], which has a bound of its own.

pub mod binary;
pub mod escapes;
pub mod letters;
pub mod text;
