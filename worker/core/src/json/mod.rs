//! Bounded JSON: a document is read in one pass, into a value that has one canonical form.
//!
//! INVARIANT (one meaning): two documents with equal canonical bytes are equal values, so a digest of the
//! canonical form is a digest of what policies see. Therefore duplicate keys, and integers that a double
//! cannot represent, are rejected, and `1.0` and `1` are the same integer.
//!
//! The canonical form is RFC 8785 (JSON Canonicalization Scheme).

pub mod as_text;
mod canonical;
mod confusable;
mod number;
mod parse;
mod path;
mod pointer;
pub mod raw;
mod value;
mod write;

pub use canonical::write_string;
pub(crate) use confusable::folded;
pub use confusable::{Names, begins_folded, is_confusable, same_folded};
pub(crate) use number::decimal;
pub use number::rounded;
pub use parse::{JsonError, parse, parse_definition, utf8};
pub(crate) use path::{append_name, append_path};
pub use pointer::{MAX_POINTER_BYTES, is_pointer};
pub use value::{Json, MAX_INTEGER};
pub(crate) use value::{sort_fields, utf16_order};
pub use write::to_string;
