use std::path::PathBuf;

use clap::Args;

use crate::arguments::TokenOut;
use crate::plan::{Bearer, Issue, Plan};
use crate::request::{Fields, Request};

/// Create the first tenant and its administrator, with the worker's bootstrap secret
///
/// The secret is the value of the worker's binding BOOTSTRAP_SECRET. It is read from --secret-file
/// or from the environment variable GATEWARD_BOOTSTRAP_SECRET; it is never an argument. The
/// administrator gets every scope.
///
/// The command also recovers a tenant that has lost its last administrator. If an operator (an
/// administrator with the scope tenants:admin) exists in another tenant, the new administrator gets
/// every scope except tenants:admin. If an operator exists and the tenant has an administrator, the
/// command fails with `already_bootstrapped`.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  gateward bootstrap --tenant acme --secret-file bootstrap.secret --token-out admin.token
  export GATEWARD_TOKEN_FILE=admin.token")]
pub struct Bootstrap {
    /// The administrator's tenant
    #[arg(long, value_name = "TENANT")]
    tenant: String,
    /// The administrator's name (default `admin`)
    #[arg(long, value_name = "NAME")]
    administrator: Option<String>,
    /// The file with the bootstrap secret
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
