//! Shows a tool's definition to a person for review, and approves exactly that definition.
//!
//! `definition` shows what changed, `registration` is what an approval sets for a tool, `document` is a
//! review as a file, `session` asks the questions of a review on a terminal, and `send` sends the
//! approvals. Everything except the last two is pure.
//!
//! INVARIANT (as reviewed): an approval names the hash of the definition that was read, and the
//! revision of the record. If the tool has changed since, it is not approved.

mod definition;
mod document;
mod registration;
mod send;
mod session;
mod summary;

pub use definition::{Review, shown};
pub use document::{Document, read as document};
pub use registration::Registration;
pub use send::{Many, ServerReview};
