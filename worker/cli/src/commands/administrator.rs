use clap::Subcommand;

use crate::arguments::{Last, PageArguments, segment};
use crate::plan::Plan;
use crate::request::{Fields, Method, Request};
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("administrator"),
    Field::column("created_by"),
    Field::column("first"),
    Field::column("created_at"),
];

/// Administrators. Each is one person, with any number of credentials
#[derive(Subcommand, Debug)]
pub enum Administrator {
    /// Create an administrator, without credentials
    #[command(after_long_help = "\
Example:
  gateward administrator create mara
  gateward credential create --administrator mara --scope approvals:decide --token-out mara.token")]
    Create {
        /// The person's name. The name of a deleted administrator cannot be used again
        administrator: String,
    },
    /// List administrators
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show an administrator
    Show {
        #[arg(value_parser = segment)]
        administrator: String,
    },
    /// Delete an administrator permanently: revokes its credentials and removes it from all groups
    ///
    /// Deleting the last administrator who can change the tenant is refused without --yes.
    Delete {
        #[arg(value_parser = segment)]
        administrator: String,
        #[command(flatten)]
        last: Last,
    },
}

impl Administrator {
    pub fn plan(self) -> Plan {
        let request = match self {
            Self::Create { administrator } => Request::post(&["administrators"])
                .body(Fields::new().with("administrator", Some(administrator))),
            Self::List { page } => {
                let request = Request::get(&["administrators"]);
                return Plan::list(request, "administrators", FIELDS, &page);
            }
            Self::Show { administrator } => Request::get(&["administrators", &administrator]),
            Self::Delete { administrator, last } => {
                last.parameter(Request::new(Method::Delete, &["administrators", &administrator]))
            }
        };
        Plan::Send { request, fields: FIELDS }
    }
}
