//! Receipts: the hash-chained record of a lane's decisions, and how long it is kept.

mod body;
mod chain;
mod head;
mod kind;
mod proof;
pub mod retention;

pub use body::*;
pub use chain::ChainHead;
pub use head::*;
pub use kind::ReceiptKind;
pub use proof::{ConsistencyProof, HashedEvent, InclusionProof, Logged, RegistryEvents};
