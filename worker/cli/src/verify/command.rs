use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use clap::Args;
use gateward_core::tlog::VerifierKey;

use super::identity::Trust;
use super::pass::verify;
use crate::failure::Failure;
use crate::runner::print;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 256 * 1024;

/// Verify an export of receipts with the log's public key (needs no worker)
///
/// Reads an export of `gateward export` once, without a network, and checks everything in it: the form and the order
/// of the lines, each receipt's canonical form, number, lane and tenant, its link to the receipt before, the Merkle
/// tree of each log, the signature and the root of each checkpoint in the head, the last checkpoint of each log, that
/// no lane is missing, that retention deleted what is left out, and the hash of each registry event. Stops at the first
/// fault, says where it is, and exits with 1. Lost rows do not stop it: the tree has their hashes.
#[derive(Args, Debug, PartialEq)]
#[command(after_long_help = "\
What it cannot detect:
  What the holder of the key did. The holder can sign another log, and show each reader a different
  one. A witness cosigns only what extends everything that it cosigned before: with `--witness`, it
  is possible only between two cosigned checkpoints.
  An older state of the whole database, put back with its checkpoints, if nobody kept a later one.
  Keep the size and the root of the head: it never becomes smaller. A cosignature rules it out up to
  the time of the cosignature.
  The removal of what the head does not have yet: a lane's newest receipts, or a new lane.
  The deletion of the head's own oldest receipts, and of a lane that only they name: nothing else
  records them.
  The removal of the text of a registry change. Its hash stays.
  Whether a registry change is missing that the head never got. Epochs between two registry changes
  that have none are reported. They are no fault: the operator skips epochs when the database was
  restored.
  What was never recorded, and whether the record is true.

Examples:
  gateward verify acme.ndjson --key \"$(cat acme.vkey)\"
  zcat acme.ndjson.gz | gateward --json verify - --key \"$(cat acme.vkey)\" --witness \"$(cat w1.vkey)\"")]
pub struct VerifyExport {
    /// The export: a file, or `-` for standard input
    export: PathBuf,
    /// The key of the tenant's head: a verifier key (C2SP signed-note). After a rotation of the key, repeat it for
    /// each key that signed a checkpoint in the export. The keys of the lanes follow from it
    #[arg(long = "key", value_name = "VKEY", required = true, value_parser = vkey)]
    keys: Vec<VerifierKey>,
    /// The key of a witness, which must have cosigned the head's last checkpoint. Repeat it for more
    #[arg(long = "witness", value_name = "VKEY", value_parser = vkey)]
    witnesses: Vec<VerifierKey>,
}

fn vkey(text: &str) -> Result<VerifierKey, String> {
    VerifierKey::parse(text).map_err(|error| error.to_string())
}

impl VerifyExport {
    /// The exit status.
    pub fn run(&self, json: bool) -> Result<u8, Failure> {
        let trust =
            Trust::new(self.keys.clone(), self.witnesses.clone()).map_err(Failure::Usage)?;
        let name = self.export.display();
        let unreadable = |error: io::Error| Failure::Other(format!("{name}: {error}"));
        let input: Box<dyn BufRead> = match self.export.to_str() {
            Some("-") => Box::new(BufReader::with_capacity(BUFFER_BYTES, io::stdin())),
            _ => {
                let file = File::open(&self.export).map_err(unreadable)?;
                Box::new(BufReader::with_capacity(BUFFER_BYTES, file))
            }
        };
        let report = verify(input, &trust).map_err(unreadable)?;
        if json {
            let text = serde_json::to_string(&report);
            print(&text.map_err(|error| Failure::Other(error.to_string()))?)?;
        } else {
            print(&report.shown())?;
        }
        match report.verified {
            true => Ok(0),
            false => Err(Failure::other("the export does not verify")),
        }
    }
}
