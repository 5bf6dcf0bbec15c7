//! Velocity: how often something happened lately, for policies.
//!
//! The bundle defines velocity windows (`policies/velocity.json`). The windows of limits are something else: they follow
//! the calendar ([`crate::limit::window`]). The definition of a window says which tools' calls it
//! counts, by which key, and over how much time. Policies read a window as `context.velocity.<name>`. Windows slide:
//! each covers the time before now. So there is no moment at which a count starts again from zero, and a caller cannot
//! wait for one.
//!
//! INVARIANT (never too little): a count is exact while there are few calls. With more calls it can be too high, but
//! never too low. If a window cannot be read, the call is denied: the count is not taken as zero.
//!
//! Out of scope: which calls are counted (`gate/velocity.rs`), and storage (`lane/windows.rs`).

pub mod definition;
mod key;
pub mod shared;
pub mod window;

pub use definition::{Counts, KeyPart, Reach, Window};
pub use key::{Caller, key_of};
pub use window::{Counted, SlidingWindow};
