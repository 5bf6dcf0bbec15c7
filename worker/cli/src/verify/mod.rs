//! Verifies an export of receipts on this machine: without a worker, and without a network.
//!
//! | module | what |
//! |---|---|
//! | [`command`] | the command line, files and standard output |
//! | [`pass`] | one pass over the lines |
//! | [`read`] | lines of bounded length |
//! | [`line`], [`members`] | a line's form |
//! | [`verifier`] | the order of the lines, and what is known after each |
//! | [`log`] | one log: the chain of its receipts, and the tree over them |
//! | [`head`], [`lane`] | what the head says about lanes and the registry |
//! | [`identity`] | names, origins and keys |
//! | [`signatures`] | the signatures in the head, on other threads |
//! | [`fault`], [`report`] | what was found |
//!
//! Signatures, trees and notes are the core's (`gateward_core::tlog`). An export is hostile: its author may have
//! written to the database, but does not have the key. Out of scope: how an export is made (`gateward export`).

mod command;
mod fault;
mod head;
mod identity;
mod lane;
pub(crate) mod line;
mod log;
mod members;
mod pass;
pub(crate) mod read;
mod report;
mod signatures;
mod verifier;

pub use command::VerifyExport;
pub use fault::{Fault, Kind};
pub use identity::{Cosignature, Trust};
pub use pass::verify;
pub use read::LINE_BYTES_MAX;
pub use report::{Note, Report, Verified};
