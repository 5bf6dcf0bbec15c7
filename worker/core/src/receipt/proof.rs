//! Proofs of a transparency log, as answers have them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The proof that an entry is in a tree (RFC 9162, section 2.1.3).
#[derive(Debug, Serialize, ToSchema)]
pub struct InclusionProof {
    pub log: String,
    /// The entry's index, from 0.
    pub index: u64,
    /// The size of the tree.
    pub size: u64,
    /// The hash of the entry, in base64.
    pub leaf_hash: String,
    /// Hashes in base64, from the leaf to the root.
    pub proof: Vec<String>,
}

/// The proof that a tree extends a smaller one (RFC 9162, section 2.1.4).
#[derive(Debug, Serialize, ToSchema)]
pub struct ConsistencyProof {
    pub log: String,
    /// The size of the smaller tree.
    pub from: u64,
    pub to: u64,
    /// Hashes in base64.
    pub proof: Vec<String>,
}

/// Events of a tenant's registry, in the order of their epochs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RegistryEvents {
    pub events: Vec<HashedEvent>,
    /// The epoch through which these are all. Continue after it, until it stays the same.
    pub through: u64,
}

/// An event of the registry, as head logs hash it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct HashedEvent {
    /// `registry.` and the epoch.
    pub event_id: String,
    /// The event in the form of RFC 8785, as text.
    pub event: String,
}

/// A checkpoint, and the proof that a decision's receipt is in its tree.
#[derive(Debug, Serialize, ToSchema)]
pub struct Logged {
    /// The signed note.
    pub checkpoint: String,
    pub inclusion: InclusionProof,
}
