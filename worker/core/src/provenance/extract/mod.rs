//! Reads the values in a text or in JSON, as keyed hashes of their normal forms.
//!
//! INVARIANT (one reading): trusted and untrusted results are read in the same way, so a value that a trusted
//! result gives is also found in the same untrusted text.
//!
//! INVARIANT (linear): each byte is read a bounded number of times, and each value has a bounded length.

mod delimited;
mod excluded;
mod instruction;
pub(super) mod money;
pub(super) mod rights;
mod scan;
mod text;
mod tree;
mod words;

pub(super) use delimited::delimited;
pub use instruction::{MAX_INSTRUCTION_BYTES, MAX_INSTRUCTION_VALUES, instruction};
pub(super) use money::{counted, money};
pub(super) use rights::{is_access, right};
pub use scan::each_link;
pub use text::text;
pub use tree::{arguments, items, result};
