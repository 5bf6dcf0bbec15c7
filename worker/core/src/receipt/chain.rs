//! The end of a lane's chain of receipts.

use serde::{Deserialize, Serialize};

/// The newest receipt of a lane's chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainHead {
    pub seq: u64,
    pub hash: String,
}
