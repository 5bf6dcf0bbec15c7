use clap::{ArgAction, Args, Subcommand};
use gateward_core::registry::{ServerKind, ServerTrust};
use serde_json::Value;

use crate::arguments::{DEFAULT, PageArguments, Revision, Shield, object, segment};
use crate::failure::Failure;
use crate::plan::{Plan, patch};
use crate::request::{Fields, Method, Request};
use crate::review::{Document, ServerReview, document};
use crate::table::Field;
use crate::upstream::UpstreamArguments;

pub const FIELDS: &[Field] = &[
    Field::column("server"),
    Field::column("kind"),
    Field::column("trust"),
    Field::column("status"),
    Field::detail("approved"),
    Field::detail("disabled"),
    Field::detail("quarantined"),
    Field::detail("manifest_sha256"),
    Field::detail("instructions_sha256").null("none"),
    Field::detail("upstream").null("none"),
    Field::detail("shield").null(DEFAULT),
    Field::detail("inspects_results"),
    Field::column("revision"),
    Field::detail("created_at"),
    Field::detail("updated_at"),
    // Present only if the tools were just listed.
    Field::detail("instructions").null("none"),
    Field::detail("skipped_tools").members(&["name", "why"]),
    Field::detail("unsatisfiable_schemas").members(&["name", "why"]),
];

/// Servers, to which tools belong: MCP servers, HTTP APIs, or only names
///
/// The kind `mcp` is a server that speaks MCP, and `http` is an HTTP API. Gateward forwards calls
/// to them if they have an upstream. The kind `named` is only a name under which tools are
/// registered: agents ask about calls of these tools, and make the calls themselves.
#[derive(Subcommand, Debug)]
pub enum Server {
    /// Register a server; it is pending until `approve`
    ///
    /// If the server exists, this updates its definition and keeps its states. An MCP server with a
    /// URL is asked for its tools; they are registered with it, and are pending too.
    #[command(after_long_help = "\
Examples:
  gateward server create github --kind mcp --upstream-url https://mcp.example.com/mcp \\
    --credential-binding UPSTREAM_GITHUB
  gateward server create tracker --kind http --upstream-url https://tracker.example.com/v2 \\
    --route 'GET /repos/{owner}/{repo}/issues=list_issues' \\
    --route 'POST /repos/{owner}/{repo}/issues=create_issue'
  gateward server create wiki --kind mcp --manifest tools-list.json
  gateward server approve github")]
    Create {
        /// The new server's name. The name of a deleted server cannot be used again
        server: String,
        /// Its kind. `named` is only a name; Gateward forwards nothing to it
        #[arg(long, value_parser = ServerKind::ALL.map(ServerKind::as_str))]
        kind: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// List servers
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a server
    Show {
        #[arg(value_parser = segment)]
        server: String,
    },
    /// Change a server; a different manifest quarantines it and makes its tools pending
    ///
    /// If an option of its upstream is given, an MCP server is asked for its tools. Tools whose
    /// definition changed are pending again.
    Update {
        #[arg(value_parser = segment)]
        server: String,
        #[arg(long, value_parser = ServerKind::ALL.map(ServerKind::as_str))]
        kind: Option<String>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        revision: Revision,
    },
    /// Delete a server and all its tools permanently; its name cannot be used again
    Delete(Changed),
    /// Review each tool that waits for approval: approve, edit or skip it
    ///
    /// Shows each new or changed tool with its annotations and what changed since its last
    /// approval. `egress` is proposed from its arguments and annotations; check the proposal. With
    /// `--json` the command asks nothing and prints a document in which every verdict is `skip`.
    /// Edit the document, and apply it with `--apply`. A tool that changed since the review is not
    /// approved, and the exit status is 1.
    #[command(after_long_help = "\
Examples:
  gateward server review github
  gateward --json server review github > review.json
  gateward server review github --apply review.json")]
    Review {
        #[arg(value_parser = segment)]
        server: String,
        /// A review that `--json` printed and a person edited
        #[arg(long, value_name = "FILE", value_parser = document)]
        apply: Option<Document>,
    },
    /// Approve the server, so that its approved tools can be called
    Approve(Changed),
    /// Deny all calls of its tools until `restore`
    Disable(Changed),
    /// Deny all calls of its tools because it may be dangerous, until `restore`
    Quarantine(Changed),
    /// Undo `disable` and `quarantine`; a pending server stays pending
    Restore(Changed),
}

#[derive(Args, Debug)]
pub struct Settings {
    /// Whether its answers are trusted. The default of `create` is `untrusted`: then a call of its
    /// tools taints the agent
    #[arg(long, value_parser = ServerTrust::ALL.map(ServerTrust::as_str))]
    trust: Option<String>,
    /// The server's list of tools: a file with a JSON object in the form of MCP's `tools/list`.
    /// With it, the server is not asked
    #[arg(long, value_name = "FILE", value_parser = object)]
    manifest: Option<Value>,
    #[command(flatten)]
    shield: Shield,
    /// Whether the shield also reads what the server returns. The default of `create` is `false`
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    inspects_results: Option<bool>,
    #[command(flatten)]
    upstream: Box<UpstreamArguments>,
}

#[derive(Args, Debug)]
pub struct Changed {
    #[arg(value_parser = segment)]
    server: String,
    #[command(flatten)]
    revision: Revision,
}

impl Settings {
    fn fields(self, kind: Option<String>) -> Fields {
        Fields::new()
            .with("kind", kind)
            .with("trust", self.trust)
            .with("manifest", self.manifest)
            .with("shield", self.shield.shield)
            .with("inspects_results", self.inspects_results)
            .with("upstream", self.upstream.value())
    }
}

impl Changed {
    fn action(&self, action: &str) -> Request {
        Request::post(&["servers", &self.server, action]).if_match(self.revision.if_match)
    }
}

impl Server {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Create { server, kind, settings } => {
                let request = Request::post(&["servers"])
                    .body(settings.fields(Some(kind)).with("server", Some(server)));
                return Ok(Plan::Register(request));
            }
            Self::List { page } => {
                return Ok(Plan::list(Request::get(&["servers"]), "servers", FIELDS, &page));
            }
            Self::Show { server } => Request::get(&["servers", &server]),
            Self::Update { server, kind, settings, revision } => {
                patch(&["servers", &server], settings.fields(kind), revision.if_match)?
            }
            Self::Delete(Changed { server, revision }) => {
                Request::new(Method::Delete, &["servers", &server]).if_match(revision.if_match)
            }
            Self::Review { server, apply } => {
                if let Some(document) = apply.as_ref().filter(|document| document.server != server)
                {
                    let other = &document.server;
                    return Err(Failure::Usage(format!("the review is for the server `{other}`")));
                }
                return Ok(Plan::ReviewServer(ServerReview { server, apply }));
            }
            Self::Approve(changed) => changed.action("approve"),
            Self::Disable(changed) => changed.action("disable"),
            Self::Quarantine(changed) => changed.action("quarantine"),
            Self::Restore(changed) => changed.action("restore"),
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}
