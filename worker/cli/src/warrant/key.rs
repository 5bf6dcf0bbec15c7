use std::path::PathBuf;

use clap::Args;
use gateward_core::warrant::key::KEY_BYTES;
use gateward_core::warrant::mint::Secret;

use crate::failure::Failure;
use crate::runner::print;
use crate::secret::{SecretFile, warrant_key};

/// Make a secret key, and print its public key
///
/// The public key of a root is registered with `gateward warrant-root create`, and that of an agent
/// with `gateward agent update --public-key`. A holder between them needs no registration.
#[derive(Args, Debug, PartialEq)]
pub struct Key {
    /// Write the secret key to this file, which only you can read. An existing file is never
    /// overwritten
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl Key {
    pub fn run(&self) -> Result<(), Failure> {
        let file = SecretFile::create(self.out.clone())?;
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Failure::Other(format!("the system has no random bytes: {error}")))?;
        file.write(&hex::encode(bytes))?;
        print(&Secret::new(bytes).public().to_string())
    }
}

/// Print the public key of a secret key
#[derive(Args, Debug, PartialEq)]
pub struct Public {
    /// The file with the secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl Public {
    pub fn run(&self) -> Result<(), Failure> {
        print(&warrant_key(&self.key)?.public().to_string())
    }
}
