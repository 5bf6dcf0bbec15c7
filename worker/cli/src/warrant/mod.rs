//! Warrants, made and read on this machine: without a worker, and without a credential.
//!
//! [`form`] is how tools and constraints are written. Rules and signatures are the core's
//! (`gateward_core::warrant`): what is accepted here, the worker accepts. Out of scope: what only the worker
//! knows, which [`verify`] lists.

mod attenuate;
mod form;
pub mod input;
mod inspect;
mod issue;
mod key;
mod narrowing;
mod prove;
mod revoke;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;

/// Warrants: signed by a root key, narrowed by each holder, proved at each call (needs no worker)
///
/// A warrant says which tools its holder may call with which arguments, and until when. The holder can
/// sign a narrower one for somebody else, and signs each call. Secret keys are read from files.
#[derive(Subcommand, Debug, PartialEq)]
pub enum Warrant {
    Key(key::Key),
    Public(key::Public),
    Issue(issue::Issue),
    Attenuate(attenuate::Attenuate),
    Inspect(inspect::Inspect),
    Prove(prove::Prove),
    Verify(verify::Verify),
    Revoke(revoke::Revoke),
}

impl Warrant {
    /// The exit status.
    pub fn run(&self, json: bool) -> Result<u8, Failure> {
        match self {
            Self::Key(command) => command.run(),
            Self::Public(command) => command.run(),
            Self::Issue(command) => command.run(),
            Self::Attenuate(command) => command.run(),
            Self::Inspect(command) => command.run(json),
            Self::Prove(command) => command.run(),
            Self::Verify(command) => command.run(json),
            Self::Revoke(command) => command.run(),
        }
        .map(|()| 0)
    }
}
