use clap::{Args, Subcommand};
use gateward_core::registry::TenantStatus;
use serde_json::{Value, json};

use crate::arguments::{DEFAULT, Limit, PageArguments, Revision, TokenOut, segment};
use crate::failure::Failure;
use crate::plan::{Bearer, Issue, Plan, patch};
use crate::request::{Fields, Method, Request};
use crate::table::Field;

const FIELDS: &[Field] = &[
    Field::column("tenant"),
    Field::column("status"),
    Field::column("lanes"),
    Field::detail("rows_per_day").null(DEFAULT),
    Field::detail("bytes_per_day").null(DEFAULT),
    Field::detail("retention_days").null(DEFAULT),
    Field::detail("destinations").null("none").nested(),
    Field::column("revision"),
    Field::column("created_at"),
    Field::detail("updated_at"),
];

/// Tenants: organisations that are isolated from each other (scope tenants:admin)
#[derive(Subcommand, Debug)]
pub enum Tenant {
    /// Create a tenant and its first administrator
    ///
    /// The administrator gets all scopes except tenants:admin.
    #[command(after_long_help = "\
Example:
  gateward tenant create acme --lanes 4 --token-out acme-admin.token")]
    Create {
        /// The new tenant's name. The name of a deleted tenant cannot be used again
        tenant: String,
        /// Over how many lanes its agents are spread (default 1); you can add lanes later
        #[arg(long)]
        lanes: Option<u32>,
        /// The administrator's name (default `admin`)
        #[arg(long, value_name = "NAME")]
        administrator: Option<String>,
        #[command(flatten)]
        out: TokenOut,
    },
    /// List tenants
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a tenant
    Show {
        #[arg(value_parser = segment)]
        tenant: String,
    },
    /// Suspend or activate a tenant, add lanes, limit how much it may write and how long that is
    /// kept, or name its own destinations
    ///
    /// When the tenant reaches --rows-per-day or --bytes-per-day, all its calls are denied until
    /// the next UTC day.
    #[command(after_long_help = "\
Examples:
  gateward tenant update acme --status suspended
  gateward tenant update acme --rows-per-day 1000000 --retention-days 90
  gateward tenant update acme --own-domain acme.example --own-host intranet.acme.example")]
    Update {
        #[arg(value_parser = segment)]
        tenant: String,
        /// All calls of a suspended tenant are denied
        #[arg(long, value_parser = [TenantStatus::Active, TenantStatus::Suspended].map(TenantStatus::as_str))]
        status: Option<String>,
        /// The number of its lanes; it can only grow
        #[arg(long)]
        lanes: Option<u32>,
        /// Records that it may write in a UTC day, or `default`
        #[arg(long, value_name = "ROWS")]
        rows_per_day: Option<Limit>,
        /// Bytes of these records, or `default`
        #[arg(long, value_name = "BYTES")]
        bytes_per_day: Option<Limit>,
        /// Days after which decisions, receipts and audit events are deleted, or `default`
        #[arg(long, value_name = "DAYS")]
        retention_days: Option<Limit>,
        #[command(flatten)]
        destinations: OwnDestinations,
        #[command(flatten)]
        revision: Revision,
    },
    /// Delete a tenant permanently; its name cannot be used again
    Delete {
        #[arg(value_parser = segment)]
        tenant: String,
        #[command(flatten)]
        revision: Revision,
    },
}

/// Destinations that are the tenant's own. What is given replaces all that were there.
#[derive(Args, Debug)]
#[command(
    next_help_heading = "Its own destinations, which tainted runs may reach. They replace those before"
)]
pub struct OwnDestinations {
    /// An account number, such as an IBAN. Repeat it for more
    #[arg(long = "own-account", value_name = "ACCOUNT", conflicts_with = "no_destinations")]
    accounts: Vec<String>,
    /// A domain of mail addresses, without its subdomains. Repeat it for more
    #[arg(long = "own-domain", value_name = "DOMAIN", conflicts_with = "no_destinations")]
    domains: Vec<String>,
    /// A host of URLs. Repeat it for more
    #[arg(long = "own-host", value_name = "HOST", conflicts_with = "no_destinations")]
    hosts: Vec<String>,
    /// Remove all of them
    #[arg(long)]
    no_destinations: bool,
}

impl OwnDestinations {
    fn value(self) -> Option<Value> {
        let Self { accounts, domains, hosts, no_destinations } = self;
        match [&accounts, &domains, &hosts].iter().all(|list| list.is_empty()) {
            true => no_destinations.then_some(Value::Null),
            false => Some(json!({"accounts": accounts, "domains": domains, "hosts": hosts})),
        }
    }
}

impl Tenant {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Create { tenant, lanes, administrator, out } => {
                let fields = Fields::new()
                    .with("tenant", Some(tenant))
                    .with("lanes", lanes)
                    .with("administrator", administrator);
                return Ok(Plan::Issue(Issue {
                    request: Request::post(&["tenants"]).body(fields),
                    beside: Some(("tenant", FIELDS)),
                    bearer: Bearer::Token,
                    token_out: out.token_out,
                    signing_key_out: None,
                }));
            }
            Self::List { page } => {
                return Ok(Plan::list(Request::get(&["tenants"]), "tenants", FIELDS, &page));
            }
            Self::Show { tenant } => Request::get(&["tenants", &tenant]),
            Self::Update {
                tenant,
                status,
                lanes,
                rows_per_day,
                bytes_per_day,
                retention_days,
                destinations,
                revision,
            } => {
                let fields = Fields::new()
                    .with("status", status)
                    .with("lanes", lanes)
                    .with("rows_per_day", rows_per_day)
                    .with("bytes_per_day", bytes_per_day)
                    .with("retention_days", retention_days)
                    .with("destinations", destinations.value());
                patch(&["tenants", &tenant], fields, revision.if_match)?
            }
            Self::Delete { tenant, revision } => {
                Request::new(Method::Delete, &["tenants", &tenant]).if_match(revision.if_match)
            }
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}
