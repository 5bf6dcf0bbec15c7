//! The nouns of the command line. Each turns its arguments into a [`Plan`], without any I/O.

mod administrator;
mod agent;
mod approvals;
mod audit;
mod ban;
mod bootstrap;
mod credential;
mod decisions;
mod group;
mod limit;
mod receipts;
mod server;
mod settings;
mod sign;
mod tenant;
mod tool;
mod warrant_revocation;
mod warrant_root;
mod webhook;

use clap::Subcommand;

use crate::export::Export;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::verify::VerifyExport;
use crate::warrant::Warrant;

pub use agent::FIELDS as AGENT;
pub use approvals::FIELDS as APPROVAL;
pub use credential::FIELDS as CREDENTIAL;
pub use decisions::FIELDS as DECISION;
pub use receipts::FIELDS as RECEIPT;
pub use server::FIELDS as SERVER;
pub use tool::FIELDS as TOOL;

#[derive(Subcommand, Debug)]
pub enum Command {
    Bootstrap(bootstrap::Bootstrap),
    #[command(subcommand)]
    Tenant(tenant::Tenant),
    #[command(subcommand)]
    Settings(settings::Settings),
    #[command(subcommand)]
    Agent(agent::Agent),
    #[command(subcommand)]
    Administrator(administrator::Administrator),
    #[command(subcommand)]
    Credential(credential::Credential),
    #[command(subcommand)]
    Group(group::Group),
    #[command(subcommand)]
    Server(server::Server),
    #[command(subcommand)]
    Tool(tool::Tool),
    #[command(subcommand)]
    Ban(ban::Ban),
    #[command(subcommand)]
    Limit(limit::Limit),
    #[command(subcommand)]
    Warrant(Warrant),
    #[command(subcommand)]
    WarrantRoot(warrant_root::WarrantRoot),
    #[command(subcommand)]
    WarrantRevocation(warrant_revocation::WarrantRevocation),
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    #[command(subcommand)]
    Webhook(webhook::Webhook),
    #[command(subcommand)]
    Audit(audit::Audit),
    #[command(subcommand)]
    Decisions(decisions::Decisions),
    #[command(subcommand)]
    Receipts(receipts::Receipts),
    Sign(sign::Sign),
    Export(Export),
    Verify(VerifyExport),
}

impl Command {
    /// The plan of the command. Nothing is done yet.
    pub fn plan(self) -> Result<Plan, Failure> {
        match self {
            Self::Bootstrap(command) => Ok(command.plan()),
            Self::Tenant(command) => command.plan(),
            Self::Settings(command) => command.plan(),
            Self::Agent(command) => command.plan(),
            Self::Administrator(command) => Ok(command.plan()),
            Self::Credential(command) => Ok(command.plan()),
            Self::Group(command) => Ok(command.plan()),
            Self::Server(command) => command.plan(),
            Self::Tool(command) => command.plan(),
            Self::Ban(command) => Ok(command.plan()),
            Self::Limit(command) => command.plan(),
            Self::Warrant(command) => Ok(Plan::Warrant(command)),
            Self::WarrantRoot(command) => command.plan(),
            Self::WarrantRevocation(command) => Ok(command.plan()),
            Self::Approvals(command) => Ok(command.plan()),
            Self::Webhook(command) => Ok(command.plan()),
            Self::Audit(command) => Ok(command.plan()),
            Self::Decisions(command) => Ok(command.plan()),
            Self::Receipts(command) => Ok(command.plan()),
            Self::Sign(command) => command.plan(),
            Self::Export(command) => Ok(Plan::Export(command)),
            Self::Verify(command) => Ok(Plan::VerifyExport(command)),
        }
    }
}

#[cfg(test)]
mod tests;
