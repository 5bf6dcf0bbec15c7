use std::path::PathBuf;

use clap::{Args, Subcommand};
use gateward_core::scope::Scope;
use gateward_core::trust::SourceTrust;

use crate::arguments::{
    AllowedNetworks, AllowedServers, AllowedTools, Last, PageArguments, Revision, TokenOut, segment,
};
use crate::plan::Plan;
use crate::request::{Fields, Request};
use crate::table::{ANY, Field};

pub const FIELDS: &[Field] = &[
    Field::column("key_id"),
    Field::column("kind"),
    Field::column("agent"),
    Field::column("administrator"),
    Field::column("status"),
    Field::column("scopes"),
    Field::column("expires_at").null("never"),
    Field::detail("max_source_trust"),
    Field::detail("allowed_servers").null(ANY),
    Field::detail("allowed_tools").null(ANY),
    Field::detail("allowed_networks").null(ANY),
    Field::detail("signed"),
    Field::detail("assigns_runs"),
    Field::detail("issued_by"),
    Field::detail("issuer_key_id"),
    Field::detail("revision"),
    Field::detail("created_at"),
];

/// The tokens with which agents and administrators authenticate
#[derive(Subcommand, Debug)]
pub enum Credential {
    /// Issue a credential; its token is shown once
    #[command(after_long_help = "\
Examples:
  gateward credential create --agent coder --max-source-trust trusted_internal_unsigned \\
    --allowed-server github --token-out coder.token
  gateward credential create --administrator mara --scope registry:read --scope audit:read \\
    --allowed-network 192.0.2.0/24 --token-out mara.token")]
    Create(Box<Create>),
    /// List credentials
    List {
        /// Only credentials of this agent
        #[arg(long, value_name = "AGENT")]
        agent: Option<String>,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a credential; never its secrets
    Show {
        #[arg(value_parser = segment)]
        key_id: String,
    },
    /// Issue another credential with the same attributes; the old one stays valid for a while
    #[command(after_long_help = "\
Example:
  gateward credential rotate k3f9 --overlap-s 3600 --token-out coder.token.new")]
    Rotate {
        #[arg(value_parser = segment)]
        key_id: String,
        /// How many seconds the old one stays valid: 0 to 2592000 (default: a day)
        #[arg(long, value_name = "SECONDS")]
        overlap_s: Option<u64>,
        #[command(flatten)]
        secrets: Secrets,
        #[command(flatten)]
        revision: Revision,
    },
    /// Revoke a credential permanently
    ///
    /// Revoking the last credential that can change the tenant is refused without --yes.
    Revoke {
        #[arg(value_parser = segment)]
        key_id: String,
        #[command(flatten)]
        last: Last,
        #[command(flatten)]
        revision: Revision,
    },
}

#[derive(Args, Debug)]
pub struct Create {
    #[command(flatten)]
    holder: Holder,
    /// A scope of the credential; repeat it for more. Default for agents: tools:read and
    /// tools:write. Required for administrators
    #[arg(long = "scope", value_name = "SCOPE", value_parser = Scope::ALL.map(Scope::as_str))]
    scopes: Vec<String>,
    /// When it expires, RFC 3339 (default: never)
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// Its highest trust: its calls count as no more trusted than this (default `unknown`). With
    /// the base policies, calls that count as `unknown` can read but not write
    #[arg(long, value_name = "TRUST", value_parser = SourceTrust::ALL.map(SourceTrust::as_str))]
    max_source_trust: Option<String>,
    /// It belongs to a harness: the program that drives the agent and assigns its runs, not the
    /// model. Taint and approvals are then limited to the run
    #[arg(long)]
    assigns_runs: bool,
    /// Its requests must be signed; only signed calls can claim trusted_internal_signed. The
    /// signing key is shown once
    #[arg(long)]
    signed: bool,
    #[command(flatten)]
    secrets: Secrets,
    #[command(flatten)]
    servers: AllowedServers,
    #[command(flatten)]
    tools: AllowedTools,
    #[command(flatten)]
    networks: AllowedNetworks,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Holder {
    /// The agent of the credential
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The administrator of the credential
    #[arg(long, value_name = "NAME")]
    administrator: Option<String>,
}

#[derive(Args, Debug)]
pub struct Secrets {
    #[command(flatten)]
    token: TokenOut,
    /// Write the signing key of a signed credential to this file, in the same way
    #[arg(long, value_name = "FILE")]
    signing_key_out: Option<PathBuf>,
}

impl Credential {
    pub fn plan(self) -> Plan {
        let request = match self {
            Self::Create(create) => return create.plan(),
            Self::List { agent, page } => {
                let request = Request::get(&["credentials"]).parameter("agent", agent.as_deref());
                return Plan::list(request, "credentials", FIELDS, &page);
            }
            Self::Show { key_id } => Request::get(&["credentials", &key_id]),
            Self::Rotate { key_id, overlap_s, secrets, revision } => {
                let request = Request::post(&["credentials", &key_id, "rotate"])
                    .body(Fields::new().with("overlap_s", overlap_s))
                    .if_match(revision.if_match);
                return Plan::issue(request, secrets.token, secrets.signing_key_out);
            }
            Self::Revoke { key_id, last, revision } => {
                let request = Request::post(&["credentials", &key_id, "revoke"]);
                last.parameter(request).if_match(revision.if_match)
            }
        };
        Plan::Send { request, fields: FIELDS }
    }
}

impl Create {
    fn plan(self) -> Plan {
        let kind = if self.holder.agent.is_some() { "agent" } else { "administrator" };
        let fields = Fields::new()
            .with("kind", Some(kind))
            .with("agent", self.holder.agent)
            .with("administrator", self.holder.administrator)
            .with("scopes", (!self.scopes.is_empty()).then_some(self.scopes))
            .with("expires_at", self.expires_at)
            .with("max_source_trust", self.max_source_trust)
            .with("signed", self.signed.then_some(true))
            .with("assigns_runs", self.assigns_runs.then_some(true))
            .with("allowed_servers", self.servers.value())
            .with("allowed_tools", self.tools.value())
            .with("allowed_networks", self.networks.value());
        let request = Request::post(&["credentials"]).body(fields);
        Plan::issue(request, self.secrets.token, self.secrets.signing_key_out)
    }
}
