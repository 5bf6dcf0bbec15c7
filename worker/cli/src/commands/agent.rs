use clap::{Args, Subcommand};
use gateward_core::policy::risk::RiskTier;
use serde_json::Value;

use crate::arguments::{AllowedTools, PageArguments, Revision, WarrantRequired, segment};
use crate::failure::Failure;
use crate::grant::{Change, Grant};
use crate::plan::{Plan, patch};
use crate::request::{Fields, Method, Request};
use crate::table::{ANY, Field};

pub const FIELDS: &[Field] = &[
    Field::column("agent"),
    Field::column("environment"),
    Field::column("status"),
    Field::column("risk_tier"),
    Field::column("groups"),
    Field::column("allowed_tools").null(ANY),
    Field::column("lane"),
    Field::detail("frozen"),
    Field::detail("quarantined"),
    Field::detail("revoked"),
    Field::detail("taint").null("none").nested(),
    Field::detail("registered_risk_tier"),
    Field::detail("public_key").null("none"),
    Field::detail("warrant_required"),
    Field::detail("warrant_locator").null("none"),
    Field::column("revision"),
    Field::detail("created_at"),
    Field::detail("updated_at"),
];

/// The programs that call tools
#[derive(Subcommand, Debug)]
pub enum Agent {
    /// Register an agent
    #[command(after_long_help = "\
Examples:
  gateward agent create coder --environment production
  gateward agent create reader --environment production --allowed-tool 'github/get_*'")]
    Create {
        /// The new agent's name. The name of a deleted agent cannot be used again
        agent: String,
        /// Where it runs; its calls must name the same
        #[arg(long)]
        environment: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// List agents
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show an agent
    Show(Name),
    /// Change an agent; options that are not given stay as they are
    #[command(after_long_help = "\
Examples:
  gateward agent update coder --risk-tier high
  gateward agent update coder --no-tools      # may call nothing
  gateward agent update coder --any-tool      # no restriction by tool")]
    Update {
        #[arg(value_parser = segment)]
        agent: String,
        /// Where it runs; its calls must name the same
        #[arg(long)]
        environment: Option<String>,
        #[command(flatten)]
        revision: Revision,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete an agent permanently; its name cannot be used again
    Delete(Changed),
    /// Deny all its calls until `unfreeze`
    Freeze(Changed),
    /// Undo `freeze` only
    Unfreeze(Changed),
    /// Deny all its calls permanently
    Revoke(Changed),
    /// Lift its quarantine, whether an administrator or its lane set it
    Restore(Changed),
    /// Deny all its calls until `restore`
    Quarantine(Changed),
    /// Lift the taint of the agent and of all its runs, which text of untrusted servers caused
    #[command(after_long_help = "\
A call to an untrusted server that is still in progress taints it again when it ends.

Example:
  gateward agent untaint coder")]
    Untaint(Changed),
    /// Add a glob to its allowed tools
    ///
    /// No other change is lost: if somebody else changes the agent meanwhile, the command tries
    /// again. It refuses an agent that may call any tool, because a first grant would take all
    /// others away. Restrict such an agent with `agent update --allowed-tool`.
    #[command(after_long_help = "\
Example:
  gateward agent grant coder 'github/*'")]
    Grant(Granted),
    /// Remove a glob from its allowed tools; without any glob it may call nothing
    Ungrant(Granted),
}

#[derive(Args, Debug)]
pub struct Name {
    #[arg(value_parser = segment)]
    agent: String,
}

#[derive(Args, Debug)]
pub struct Changed {
    #[arg(value_parser = segment)]
    agent: String,
    #[command(flatten)]
    revision: Revision,
}

#[derive(Args, Debug)]
pub struct Granted {
    #[arg(value_parser = segment)]
    agent: String,
    /// A glob that is compared with `server/tool`: `*` matches any characters, at most twice
    glob: String,
}

#[derive(Args, Debug)]
pub struct Settings {
    /// Its registered risk tier; denials can raise the tier. The default of `create` is `low`
    #[arg(long, value_parser = RiskTier::ALL.map(RiskTier::as_str))]
    risk_tier: Option<String>,
    #[command(flatten)]
    key: Key,
    #[command(flatten)]
    warrant: WarrantRequired,
    #[command(flatten)]
    tools: AllowedTools,
}

#[derive(Args, Debug)]
pub struct Key {
    /// Its own Ed25519 public key, to which warrants can be delegated: 64 lower-case hex digits
    #[arg(long, value_name = "HEX")]
    public_key: Option<String>,
    /// Remove its key
    #[arg(long, conflicts_with = "public_key")]
    no_public_key: bool,
}

impl Key {
    fn value(self) -> Option<Value> {
        if self.no_public_key { Some(Value::Null) } else { self.public_key.map(Value::from) }
    }
}

impl Settings {
    fn fields(self, environment: Option<String>) -> Fields {
        Fields::new()
            .with("environment", environment)
            .with("risk_tier", self.risk_tier)
            .with("public_key", self.key.value())
            .with("warrant_required", self.warrant.warrant_required)
            .with("allowed_tools", self.tools.value())
    }
}

impl Agent {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Create { agent, environment, settings } => Request::post(&["agents"])
                .body(settings.fields(Some(environment)).with("agent", Some(agent))),
            Self::List { page } => {
                return Ok(Plan::list(Request::get(&["agents"]), "agents", FIELDS, &page));
            }
            Self::Show(Name { agent }) => Request::get(&["agents", &agent]),
            Self::Update { agent, environment, settings, revision } => {
                patch(&["agents", &agent], settings.fields(environment), revision.if_match)?
            }
            Self::Delete(Changed { agent, revision }) => {
                Request::new(Method::Delete, &["agents", &agent]).if_match(revision.if_match)
            }
            Self::Freeze(changed) => changed.action("freeze"),
            Self::Unfreeze(changed) => changed.action("unfreeze"),
            Self::Revoke(changed) => changed.action("revoke"),
            Self::Restore(changed) => changed.action("restore"),
            Self::Quarantine(changed) => changed.action("quarantine"),
            Self::Untaint(changed) => changed.action("untaint"),
            Self::Grant(Granted { agent, glob }) => {
                return Ok(Plan::Grant(Grant { agent, glob, change: Change::Add }));
            }
            Self::Ungrant(Granted { agent, glob }) => {
                return Ok(Plan::Grant(Grant { agent, glob, change: Change::Remove }));
            }
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}

impl Changed {
    fn action(&self, action: &str) -> Request {
        Request::post(&["agents", &self.agent, action]).if_match(self.revision.if_match)
    }
}
