//! The end of a lane's chain of receipts.

/// The newest receipt of a lane's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    pub seq: u64,
    pub hash: String,
}
