//! Velocity: how often something happened lately, for policies.
//!
//! The bundle names windows (`policies/velocity.json`): which tools, what is counted, by which key, over which
//! time. Policies read them as `context.velocity.<name>`. A window that slides has neither a beginning nor an
//! end that a caller could wait for.
//!
//! INVARIANT (never too little): a count is exact while there are few calls, and otherwise at most too high.
//! What cannot be counted denies the call; it is never a count of zero.
//!
//! Out of scope: which calls are counted (`gate/velocity.rs`), and storage (`lane/windows.rs`).

pub mod definition;
mod key;
pub mod shared;
pub mod window;

pub use definition::{Counts, KeyPart, Reach, Window};
pub use key::{Caller, key_of};
pub use window::{Counted, SlidingWindow};
