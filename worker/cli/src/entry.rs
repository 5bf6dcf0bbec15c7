//! The command line as a whole: the options of every command, and what the process does with them.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, Parser};

use crate::client::Client;
use crate::commands::Command;
use crate::failure::Failure;
use crate::plan::{Bearer, Plan};
use crate::runner::Runner;
use crate::secret;
use crate::sign::Signer;

const HELP: &str = "\
The token is never an argument. It is read from --token-file, or from the environment variable
GATEWARD_TOKEN, or from the file that GATEWARD_TOKEN_FILE names, in this order. The signing key of a
signed credential is read in the same way: from --signing-key-file, GATEWARD_SIGNING_KEY, or the file
that GATEWARD_SIGNING_KEY_FILE names. If there is one, every request is signed.

Lists that restrict (allowed tools, servers, networks) have three states: not there, shown as
`any`, restricts nothing; with items, only these; empty, shown as `none`, leaves nothing.

Exit status:
  0  done, and every lane confirmed it
  1  refused or failed; one line on standard error says why: `gateward: <code>: <detail>`
  2  the command line is wrong
  3  committed, but not every lane confirmed it yet (a lane decides for a share of the agents)

Example:
  export GATEWARD_URL=https://gate.example.com GATEWARD_TOKEN_FILE=admin.token
  gateward agent create coder --environment production
  gateward credential create --agent coder --token-out coder.token
  gateward decisions follow --agent coder
  gateward approvals watch
  gateward receipts verify";

/// The heading of the options that every command has.
const EVERYWHERE: &str = "Options of every command";

/// Administers Gateward, the gate through which agents' tool calls pass
#[derive(Parser, Debug)]
#[command(name = "gateward", version, after_long_help = HELP)]
pub(crate) struct Arguments {
    /// The worker's address
    #[arg(
        long,
        global = true,
        env = "GATEWARD_URL",
        default_value = "http://127.0.0.1:8787",
        value_name = "URL",
        help_heading = EVERYWHERE
    )]
    url: String,
    /// Print the API's JSON instead of tables
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    /// The file with the token. Without it: GATEWARD_TOKEN, then GATEWARD_TOKEN_FILE
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    token_file: Option<PathBuf>,
    /// The file with the credential's signing key, if it has one. Without it: GATEWARD_SIGNING_KEY,
    /// then GATEWARD_SIGNING_KEY_FILE
    #[arg(long, global = true, value_name = "FILE", help_heading = EVERYWHERE)]
    signing_key_file: Option<PathBuf>,
    /// The approval of this change, if members of a protected group must approve it
    #[arg(long, global = true, value_name = "APPROVAL_ID", help_heading = EVERYWHERE)]
    approval: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command line as clap describes it: for the reference in `docs/cli.md`.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Carries out the process's arguments.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::try_parse()
        .unwrap_or_else(|error| with_whole_usage(error, std::env::args_os().skip(1)).exit());
    match run(arguments) {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            eprintln!("gateward: {failure}");
            failure.exit_code()
        }
    }
}

/// After a mistake, clap's usage line lists the options that were typed, or set in the environment,
/// as if they were required. This replaces it by the command's own usage line.
pub(crate) fn with_whole_usage(
    mut error: clap::Error,
    words: impl Iterator<Item = impl AsRef<OsStr>>,
) -> clap::Error {
    if error.get(ContextKind::Usage).is_some() {
        let mut command = Arguments::command();
        command.build();
        for word in words {
            if let Some(found) = command.find_subcommand(word.as_ref()) {
                command = found.clone();
            }
        }
        error.insert(ContextKind::Usage, ContextValue::StyledStr(command.render_usage()));
    }
    error
}

fn run(arguments: Arguments) -> Result<u8, Failure> {
    let Arguments { url, json, token_file, signing_key_file, approval, command } = arguments;
    let plan = match command.plan()? {
        // It needs no worker, so it needs no token either.
        Plan::Warrant(command) => return command.run(json),
        Plan::VerifyExport(command) => return command.run(json),
        plan => plan,
    };
    let bearer = match plan.bearer() {
        Bearer::Token => secret::token(token_file.as_deref())?,
        Bearer::BootstrapSecret(file) => secret::bootstrap_secret(file.as_deref())?,
    };
    // The bootstrap secret has no signing key.
    let signer = match plan.bearer() {
        Bearer::Token => secret::signing_key(signing_key_file.as_deref())?
            .map(|key| Signer::new(&bearer, &key))
            .transpose()?,
        Bearer::BootstrapSecret(_) => None,
    };
    Runner { client: Client::new(&url, bearer, signer, approval)?, json }.run(plan)
}
