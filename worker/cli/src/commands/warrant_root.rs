use clap::{Args, Subcommand};
use gateward_core::registry::WarrantRootStatus;
use gateward_core::warrant::bounds::MAX_TEXT_BYTES;
use serde_json::Value;

use crate::arguments::{AllowedServers, PageArguments, Revision, segment};
use crate::failure::Failure;
use crate::plan::{Plan, patch};
use crate::request::{Fields, Method, Request};
use crate::table::{ANY, Field};
use crate::warrant::input::read;

const FIELDS: &[Field] = &[
    Field::column("root_id"),
    Field::column("status"),
    Field::column("public_key"),
    Field::column("allowed_servers").null(ANY),
    Field::column("description").null("none"),
    Field::detail("revocation_list_version").null("none"),
    Field::detail("created_by"),
    Field::column("revision"),
    Field::detail("created_at"),
    Field::detail("updated_at"),
];

/// Keys whose holders may sign warrants for calls of the tenant's agents
#[derive(Subcommand, Debug)]
pub enum WarrantRoot {
    /// Register a key; its warrants are accepted at once
    #[command(after_long_help = "\
Example:
  gateward warrant-root create ci --allowed-server 'github*' \\
    --public-key 29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7")]
    Create {
        #[arg(value_parser = segment)]
        root_id: String,
        /// The Ed25519 public key, 64 lower-case hex digits. It cannot be changed
        #[arg(long, value_name = "HEX")]
        public_key: String,
        /// What the key is for, for people who read it later
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        servers: AllowedServers,
    },
    /// List roots of warrants
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a root of warrants
    Show {
        #[arg(value_parser = segment)]
        root_id: String,
    },
    /// Change a root; options that are not given stay as they are
    #[command(after_long_help = "\
Example:
  gateward warrant-root update ci --status disabled")]
    Update {
        #[arg(value_parser = segment)]
        root_id: String,
        /// Warrants of a disabled root are denied
        #[arg(long, value_parser = WarrantRootStatus::ALL.map(WarrantRootStatus::as_str))]
        status: Option<String>,
        #[command(flatten)]
        description: Description,
        #[command(flatten)]
        servers: AllowedServers,
        #[command(flatten)]
        revision: Revision,
    },
    /// Revoke the warrants of a list that is signed with the root's key
    #[command(after_long_help = "\
Example:
  gateward warrant-root revoke-list ci @revoked.base64")]
    RevokeList {
        #[arg(value_parser = segment)]
        root_id: String,
        /// The signed list in base64; @FILE reads a file, - reads standard input
        list: String,
        #[command(flatten)]
        revision: Revision,
    },
    /// Delete a root; its warrants are denied from then on
    Delete {
        #[arg(value_parser = segment)]
        root_id: String,
        #[command(flatten)]
        revision: Revision,
    },
}

#[derive(Args, Debug)]
pub struct Description {
    /// What the key is for, for people who read it later
    #[arg(long)]
    description: Option<String>,
    /// Remove the description
    #[arg(long, conflicts_with = "description")]
    no_description: bool,
}

impl Description {
    fn value(self) -> Option<Value> {
        if self.no_description { Some(Value::Null) } else { self.description.map(Value::from) }
    }
}

impl WarrantRoot {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Create { root_id, public_key, description, servers } => {
                Request::post(&["warrant-roots"]).body(
                    Fields::new()
                        .with("root_id", Some(root_id))
                        .with("public_key", Some(public_key))
                        .with("description", description)
                        .with("allowed_servers", servers.value()),
                )
            }
            Self::List { page } => {
                let request = Request::get(&["warrant-roots"]);
                return Ok(Plan::list(request, "warrant_roots", FIELDS, &page));
            }
            Self::Show { root_id } => Request::get(&["warrant-roots", &root_id]),
            Self::Update { root_id, status, description, servers, revision } => {
                let fields = Fields::new()
                    .with("status", status)
                    .with("description", description.value())
                    .with("allowed_servers", servers.value());
                patch(&["warrant-roots", &root_id], fields, revision.if_match)?
            }
            Self::RevokeList { root_id, list, revision } => {
                let list = read(&list, MAX_TEXT_BYTES)?;
                Request::new(Method::Put, &["warrant-roots", &root_id, "revocation-list"])
                    .body(Fields::new().with("list", Some(list.trim())))
                    .if_match(revision.if_match)
            }
            Self::Delete { root_id, revision } => {
                let request = Request::new(Method::Delete, &["warrant-roots", &root_id]);
                request.if_match(revision.if_match)
            }
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}
