use clap::Subcommand;

use crate::arguments::{PageArguments, segment};
use crate::plan::Plan;
use crate::request::{Fields, Request};
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("warrant_id"),
    Field::detail("root_key").null("all roots"),
    Field::column("reason"),
    Field::column("revoked_by"),
    Field::column("revoked_at"),
    Field::column("expires_at"),
];

/// Warrants that are revoked before they expire
#[derive(Subcommand, Debug)]
pub enum WarrantRevocation {
    /// Revoke a warrant, and all warrants that were delegated from it; this cannot be undone
    #[command(after_long_help = "\
Example:
  gateward warrant-revocation create tnu_wrt_0190f3a05b7c7d1e8f2a3b4c5d6e7f80 --reason 'laptop was stolen'")]
    Create {
        /// 32 hex digits, alone or after `tnu_wrt_`, or a UUID with dashes
        #[arg(value_parser = segment)]
        warrant_id: String,
        /// The reason, for people who read it later
        #[arg(long)]
        reason: Option<String>,
    },
    /// List revocations
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show the revocation of a warrant
    Show {
        #[arg(value_parser = segment)]
        warrant_id: String,
    },
}

impl WarrantRevocation {
    pub fn plan(self) -> Plan {
        const PATH: &str = "warrant-revocations";
        let request = match self {
            Self::Create { warrant_id, reason } => Request::post(&[PATH])
                .body(Fields::new().with("warrant_id", Some(warrant_id)).with("reason", reason)),
            Self::List { page } => {
                return Plan::list(Request::get(&[PATH]), "warrant_revocations", FIELDS, &page);
            }
            Self::Show { warrant_id } => Request::get(&[PATH, &warrant_id]),
        };
        Plan::Send { request, fields: FIELDS }
    }
}
