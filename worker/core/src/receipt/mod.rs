//! Receipts: the hash-chained record of what a lane decided, and for how long it is kept.

mod body;
mod chain;
pub mod retention;

pub use body::*;
pub use chain::ChainHead;
