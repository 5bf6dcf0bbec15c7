use std::path::PathBuf;

use clap::Args;

use super::{Bearer, Issue, Plan};
use crate::arguments::TokenOut;
use crate::request::{Fields, Request};

/// Make the first tenant and its administrator, with the worker's bootstrap secret
///
/// The secret is what the worker's binding BOOTSTRAP_SECRET holds. It is read from --secret-file
/// or from the environment variable GATEWARD_BOOTSTRAP_SECRET; it is never an argument. The
/// administrator gets every scope.
///
/// It also recovers a tenant that has lost its last administrator. If an administrator who may make
/// tenants exists elsewhere, the new one gets every scope but tenants:admin. While that one exists and
/// the tenant has an administrator, this fails with `already_bootstrapped`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  gateward bootstrap --tenant acme --secret-file bootstrap.secret --token-out admin.token
  export GATEWARD_TOKEN_FILE=admin.token")]
pub struct Bootstrap {
    /// The tenant that the administrator belongs to
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// The administrator's name, `admin` unless given
    #[arg(long, value_name = "NAME")]
    administrator: Option<String>,
    /// The file that holds the bootstrap secret
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    #[command(flatten)]
    out: TokenOut,
}

impl Bootstrap {
    pub fn plan(self) -> Plan {
        let fields = Fields::new()
            .with("tenant", Some(self.tenant))
            .with("administrator", self.administrator);
        Plan::Issue(Issue {
            request: Request::post(&["bootstrap"]).body(fields),
            beside: None,
            bearer: Bearer::BootstrapSecret(self.secret_file),
            token_out: self.out.token_out,
            signing_key_out: None,
        })
    }
}
