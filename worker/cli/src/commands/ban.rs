use clap::Subcommand;
use gateward_core::registry::BanKind;

use crate::arguments::{PageArguments, segment};
use crate::plan::Plan;
use crate::request::{Fields, Method, Request};
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("ban_id"),
    Field::column("kind"),
    Field::column("subject"),
    Field::column("reason"),
    Field::column("expires_at").null("never"),
    Field::column("created_by"),
    Field::detail("created_at"),
];

/// Agents, users, runs and networks whose calls are all denied
#[derive(Subcommand, Debug)]
pub enum Ban {
    /// Ban an agent, a user, a run or a network
    #[command(after_long_help = "\
Examples:
  gateward ban create run run-81 --reason 'followed an injected instruction'
  gateward ban create source_address 192.0.2.0/24 --expires-at 2027-01-01T00:00:00Z")]
    Create {
        #[arg(value_parser = BanKind::ALL.map(BanKind::as_str))]
        kind: String,
        /// An agent's name, the id of a user or run as calls state it, or a network (CIDR)
        subject: String,
        /// The reason, for people who read it later
        #[arg(long)]
        reason: Option<String>,
        /// When the ban ends, RFC 3339 (default: never)
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
    },
    /// List bans
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a ban
    Show {
        #[arg(value_parser = segment)]
        ban_id: String,
    },
    /// Lift a ban
    Delete {
        #[arg(value_parser = segment)]
        ban_id: String,
    },
}

impl Ban {
    pub fn plan(self) -> Plan {
        let request = match self {
            Self::Create { kind, subject, reason, expires_at } => Request::post(&["bans"]).body(
                Fields::new()
                    .with("kind", Some(kind))
                    .with("subject", Some(subject))
                    .with("reason", reason)
                    .with("expires_at", expires_at),
            ),
            Self::List { page } => {
                return Plan::list(Request::get(&["bans"]), "bans", FIELDS, &page);
            }
            Self::Show { ban_id } => Request::get(&["bans", &ban_id]),
            Self::Delete { ban_id } => Request::new(Method::Delete, &["bans", &ban_id]),
        };
        Plan::Send { request, fields: FIELDS }
    }
}
