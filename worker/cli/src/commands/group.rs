use clap::{Args, Subcommand};

use crate::arguments::{PageArguments, segment};
use crate::plan::Plan;
use crate::request::{Fields, Method, Request};
use crate::table::Field;

const FIELDS: &[Field] =
    &[Field::column("group"), Field::column("protected"), Field::column("created_at")];

const MEMBER_FIELDS: &[Field] =
    &[Field::detail("group"), Field::column("kind"), Field::column("member")];

/// Groups of agents and administrators, which policies and approvals name
#[derive(Subcommand, Debug)]
pub enum Group {
    /// Create a group
    Create {
        /// The new group's name. The name of a deleted group cannot be used again
        group: String,
    },
    /// List groups
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a group
    Show {
        #[arg(value_parser = segment)]
        group: String,
    },
    /// Delete a group permanently; its name cannot be used again
    Delete {
        #[arg(value_parser = segment)]
        group: String,
    },
    /// Protect a group: its members must then approve each new member
    Protect {
        #[arg(value_parser = segment)]
        group: String,
    },
    /// End the protection of a group; its members must approve this
    Unprotect {
        #[arg(value_parser = segment)]
        group: String,
    },
    /// List a group's members
    Members {
        #[arg(value_parser = segment)]
        group: String,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Add a member; a no-op if it is a member already
    #[command(after_long_help = "\
Examples:
  gateward group add engineering --agent coder
  gateward group add release-managers --administrator mara")]
    Add(Membership),
    /// Remove a member; a no-op if it is not a member
    Remove(Membership),
}

#[derive(Args, Debug)]
pub struct Membership {
    #[arg(value_parser = segment)]
    group: String,
    #[command(flatten)]
    member: Member,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Member {
    /// An agent
    #[arg(long, value_name = "AGENT", value_parser = segment)]
    agent: Option<String>,
    /// An administrator
    #[arg(long, value_name = "NAME", value_parser = segment)]
    administrator: Option<String>,
}

impl Group {
    pub fn plan(self) -> Plan {
        let request = match self {
            Self::Create { group } => {
                Request::post(&["groups"]).body(Fields::new().with("group", Some(group)))
            }
            Self::List { page } => {
                return Plan::list(Request::get(&["groups"]), "groups", FIELDS, &page);
            }
            Self::Show { group } => Request::get(&["groups", &group]),
            Self::Delete { group } => Request::new(Method::Delete, &["groups", &group]),
            Self::Protect { group } => Request::post(&["groups", &group, "protect"]),
            Self::Unprotect { group } => Request::post(&["groups", &group, "unprotect"]),
            Self::Members { group, page } => {
                let request = Request::get(&["groups", &group, "members"]);
                return Plan::list(request, "members", MEMBER_FIELDS, &page);
            }
            Self::Add(membership) => return membership.plan(Method::Put),
            Self::Remove(membership) => return membership.plan(Method::Delete),
        };
        Plan::Send { request, fields: FIELDS }
    }
}

impl Membership {
    fn plan(self, method: Method) -> Plan {
        // clap makes sure that exactly one of them is given.
        let (kind, member) = match self.member {
            Member { agent: Some(agent), .. } => ("agents", agent),
            Member { administrator, .. } => ("administrators", administrator.unwrap_or_default()),
        };
        let request = Request::new(method, &["groups", &self.group, "members", kind, &member]);
        Plan::Send { request, fields: MEMBER_FIELDS }
    }
}
