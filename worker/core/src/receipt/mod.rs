//! Receipts: the hash-chained record of a lane's decisions, and how long it is kept.

mod body;
mod chain;
pub mod retention;

pub use body::*;
pub use chain::ChainHead;
