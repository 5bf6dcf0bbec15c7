use std::path::PathBuf;

use clap::Args;
use gateward_core::id::rfc3339;
use gateward_core::warrant::payload::WarrantId;
use gateward_core::warrant::revocation::MAX_VERSION;
use gateward_core::warrant::text;

use super::input::now_s;
use crate::failure::Failure;
use crate::runner::print;
use crate::secret::warrant_key;

/// Sign a list of revocations with a root key, and print it
///
/// A list has all warrants that the root revoked so far. `gateward warrant-root revoke-list` sends it.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
Example:
  gateward warrant revoke --key root.key --version 2 tnu_wrt_0190f3a05b7c7d1e8f2a3b4c5d6e7f80 \\
    | gateward warrant-root revoke-list ci -")]
pub struct Revoke {
    /// The file with the root's secret key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The list's version: higher than that of the list before it
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(..=MAX_VERSION))]
    version: u64,
    /// The ids: 32 hex digits, alone or after `tnu_wrt_`, or UUIDs
    #[arg(required = true)]
    warrant_ids: Vec<WarrantId>,
}

impl Revoke {
    pub fn run(&self) -> Result<(), Failure> {
        let issued_at = rfc3339(now_s().saturating_mul(1_000));
        let list = warrant_key(&self.key)?.revoke(&self.warrant_ids, self.version, &issued_at);
        print(&text::encode(&list))
    }
}
