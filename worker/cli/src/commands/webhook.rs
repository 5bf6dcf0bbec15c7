use clap::Subcommand;

use crate::arguments::Revision;
use crate::plan::Plan;
use crate::request::{Fields, Method, Request};
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("url"),
    Field::column("revision"),
    Field::detail("created_at"),
    Field::detail("updated_at"),
    // Present only if it was just set.
    Field::detail("secret"),
];

/// The webhook: the URL to which messages about approvals are sent
#[derive(Subcommand, Debug)]
pub enum Webhook {
    /// Set the URL; the secret that verifies its messages is shown once
    ///
    /// Each `set` makes a new secret. To replace a secret, set the same URL again.
    #[command(after_long_help = "\
Examples:
  gateward webhook set https://hooks.example.com/gateward
  (umask 077; gateward --json webhook set https://hooks.example.com/gateward \\
    | jq -r .secret > webhook.secret)")]
    Set {
        /// The URL: https, on the internet
        #[arg(value_name = "URL")]
        address: String,
        #[command(flatten)]
        revision: Revision,
    },
    /// Show the URL; never the secret
    Show,
    /// Delete the webhook: no messages are sent any more
    Delete {
        #[command(flatten)]
        revision: Revision,
    },
}

impl Webhook {
    pub fn plan(self) -> Plan {
        const PATH: &[&str] = &["webhook"];
        let request = match self {
            Self::Set { address, revision } => Request::new(Method::Put, PATH)
                .body(Fields::new().with("url", Some(address)))
                .if_match(revision.if_match),
            Self::Show => Request::get(PATH),
            Self::Delete { revision } => {
                Request::new(Method::Delete, PATH).if_match(revision.if_match)
            }
        };
        Plan::Send { request, fields: FIELDS }
    }
}
