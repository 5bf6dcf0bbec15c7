//! Capability warrants: signed, handed on, narrowed at each step, and proved at each call.
//!
//! A root key of the tenant signs "these tools, these arguments, until then, for this holder". The holder may sign
//! a narrower warrant for somebody else, without asking. The last holder signs each call. The format is Tenuo's;
//! docs/warrants.md describes it, and where this verifier is stricter than the reference implementation.
//!
//! [`judge`] is where a call is judged. [`mint`] makes warrants, for the command line and for tests.
//!
//! Out of scope: whether the root is trusted, revocations, and whether a proof was used (`gate/warrant.rs`).

pub mod approval;
pub mod bounds;
pub mod carried;
pub mod cbor;
pub mod chain;
pub mod constraint;
pub mod gate;
pub mod judge;
pub mod key;
pub mod mint;
pub mod payload;
pub mod proof;
pub mod refusal;
pub mod revocation;
pub mod text;

pub use carried::{Carried, Judged};
pub use judge::{
    Cache, Call, Claim, Presented, Tolerance, chain as chain_of, judge, keep as keep_chain, links,
};
pub use refusal::{NeededApprovals, Refusal};
