//! A transparency log: a Merkle tree over receipts, in the published formats that other tools read.
//!
//! | module | what | published as |
//! |---|---|---|
//! | [`tree`] | hashes, and the edge that grows | RFC 6962, section 2.1; RFC 9162, section 2.1.1 |
//! | [`proof`] | inclusion and consistency, made and verified | RFC 9162, sections 2.1.3 and 2.1.4 |
//! | [`tile`] | tiles, entry bundles and their paths | c2sp.org/tlog-tiles |
//! | [`note`] | signed notes and verifier keys | c2sp.org/signed-note |
//! | [`checkpoint`] | the text that a log signs | c2sp.org/tlog-checkpoint |
//! | [`witness`] | requests to witnesses, and their cosignatures | c2sp.org/tlog-witness, c2sp.org/tlog-cosignature |
//!
//! Whatever comes in is hostile: notes, keys, proofs, bundles, paths and answers are read in linear time, within the
//! bounds that each module names.
//!
//! Out of scope: which receipts are entries, what the logs are called, and where anything is stored.

pub mod checkpoint;
mod cosignature;
mod form;
mod key;
pub mod note;
pub mod proof;
pub mod tile;
pub mod tree;
pub mod witness;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use key::{COSIGNATURE, ED25519, MAX_NAME_BYTES, PUBLIC_BYTES};
pub use note::{KeyError, Note, NoteError, NoteSignature, Signer, VerifierKey, is_name};
pub use tile::{Layer, TILE_HEIGHT, TILE_WIDTH, TilePath};
pub use tree::{EMPTY_ROOT, Edge, HASH_BYTES, Hash, MAX_SIZE, leaf_hash, node_hash};
pub use witness::Cosignature;
