use clap::{ArgAction, Args, Subcommand};
use gateward_core::glob::{Glob, GlobError};
use gateward_core::policy::bundle::Risk;
use gateward_core::provenance::Reach;
use gateward_core::registry::TaintRule;
use serde_json::Value;

use crate::arguments::{
    Canary, DEFAULT, Limit, PageArguments, Revision, Shield, ToolId, WarrantRequired, object,
    segment,
};
use crate::failure::Failure;
use crate::plan::{Plan, patch};
use crate::request::{Fields, Request};
use crate::review::{Many, Review};
use crate::table::Field;

pub const FIELDS: &[Field] = &[
    Field::column("server"),
    Field::column("tool"),
    Field::column("status"),
    Field::column("mutates"),
    Field::column("egress"),
    Field::column("risk"),
    Field::column("canary"),
    Field::detail("approved"),
    Field::detail("disabled"),
    Field::detail("quarantined"),
    Field::detail("tainted"),
    Field::detail("approval_ttl_s").null(DEFAULT),
    Field::detail("cost").null(DEFAULT),
    Field::detail("warrant_required"),
    Field::detail("min_clearance").null("none"),
    Field::detail("shield").null(DEFAULT),
    Field::detail("input_schema").null("none"),
    Field::detail("argument_roles").null("every argument is a sink"),
    Field::detail("reach"),
    Field::detail("result_trust").null("as its server"),
    Field::detail("definition_sha256"),
    Field::detail("definition").null("none"),
    Field::detail("approved_definition").null("none"),
    Field::column("revision"),
    Field::detail("created_at"),
    Field::detail("updated_at"),
    // Present only if it was just registered or changed.
    Field::detail("unsatisfiable"),
];

/// Tools, which agents call; written `server/tool`
#[derive(Subcommand, Debug)]
pub enum Tool {
    /// Register a tool; it is pending until `approve`
    #[command(after_long_help = "\
Examples:
  gateward tool create github/merge_pull_request --mutates true --risk high --approval-ttl 3600
  gateward tool approve github/merge_pull_request")]
    Create {
        #[arg(value_name = "SERVER/TOOL")]
        id: ToolId,
        /// Whether it changes anything
        #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
        mutates: bool,
        #[command(flatten)]
        egress: Egress,
        #[arg(long, value_parser = Risk::ALL.map(Risk::as_str))]
        risk: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// List a server's tools
    List {
        #[arg(value_parser = segment)]
        server: String,
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a tool
    Show {
        #[arg(value_name = "SERVER/TOOL")]
        id: ToolId,
    },
    /// Change a tool; options that are not given stay as they are
    #[command(after_long_help = "\
Examples:
  gateward tool update github/merge_pull_request --risk critical
  gateward tool update mail/send_mail --role /to=sink --role /cc=sink --role /body=content
  gateward tool update mail/list_contacts --result-trust /contacts=trusted")]
    Update {
        #[arg(value_name = "SERVER/TOOL")]
        id: ToolId,
        /// Whether it changes anything
        #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
        mutates: Option<bool>,
        #[command(flatten)]
        egress: Egress,
        #[arg(long, value_parser = Risk::ALL.map(Risk::as_str))]
        risk: Option<String>,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        revision: Revision,
    },
    /// Approve a tool, so that it can be called if its server is approved too
    ///
    /// If the server has listed a definition of the tool, the command shows the difference to the
    /// definition that was approved last on standard error, and asks on the terminal. Without a
    /// terminal, give the hash of the definition that you reviewed. If the tool has another
    /// definition by now, it is not approved, and the command fails with `definition_changed`.
    ///
    /// With `*` in the tool's name, all pending tools of the server that match are approved without
    /// a question, each by the hash of its definition. These stay pending, and the exit status is
    /// 1: tools whose definition changed since their last approval and, with `--reads`, tools whose
    /// annotations say that they write. `gateward server review` shows them.
    #[command(after_long_help = "\
Examples:
  gateward tool approve github/merge_pull_request
  gateward tool approve 'github/list_*' --reads
  gateward --json tool show github/merge_pull_request > reviewed.json
  gateward tool approve github/merge_pull_request \\
    --definition-sha256 \"$(jq -r .definition_sha256 reviewed.json)\"")]
    Approve {
        #[command(flatten)]
        changed: Changed,
        /// Also register it as a tool that changes nothing. Its calls are reads, unless it is an
        /// egress tool, which its definition may suggest
        #[arg(long)]
        reads: bool,
        /// Approve the definition with this hash, without a question
        #[arg(long, value_name = "HASH")]
        definition_sha256: Option<String>,
    },
    /// Deny all calls of it until `restore`
    Disable(Changed),
    /// Deny all calls of it because it may be dangerous, until `restore`
    Quarantine(Changed),
    /// Undo `disable` and `quarantine`; a pending tool stays pending
    Restore(Changed),
}

#[derive(Args, Debug)]
pub struct Settings {
    #[command(flatten)]
    canary: Canary,
    #[command(flatten)]
    tainted: Tainted,
    #[command(flatten)]
    approval: ApprovalTime,
    #[command(flatten)]
    cost: Cost,
    #[command(flatten)]
    warrant: WarrantRequired,
    #[command(flatten)]
    clearance: Clearance,
    #[command(flatten)]
    shield: Shield,
    #[command(flatten)]
    schema: InputSchema,
    #[command(flatten)]
    provenance: Provenance,
}

impl Settings {
    fn fields(self, fields: Fields) -> Fields {
        let fields = fields
            .with("canary", self.canary.canary)
            .with("tainted", self.tainted.tainted)
            .with("approval_ttl_s", self.approval.approval_ttl_s)
            .with("cost", self.cost.value())
            .with("warrant_required", self.warrant.warrant_required)
            .with("min_clearance", self.clearance.value())
            .with("shield", self.shield.shield)
            .with("input_schema", self.schema.value());
        self.provenance.fields(fields)
    }
}

#[derive(Args, Debug)]
pub struct Tainted {
    /// What a tainted call of the tool needs: `allow` requires nothing more, `require_approval`
    /// holds a write back for approval unless the user or a trusted source named its destinations,
    /// `deny_unknown` denies such a write instead, `forbid` denies reads too. A call is tainted after text of an untrusted server reached its
    /// agent or run
    #[arg(long, value_name = "RULE", value_parser = TaintRule::ALL.map(TaintRule::as_str))]
    tainted: Option<String>,
}

#[derive(Args, Debug)]
pub struct Egress {
    /// Whether it sends text out, or fetches an address from its arguments. For policies, its calls
    /// are writes
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    egress: Option<bool>,
}

#[derive(Args, Debug)]
pub struct ApprovalTime {
    /// How many seconds an approval of a call is open: 60 to 604800, or `default` (half an hour)
    #[arg(long = "approval-ttl", value_name = "SECONDS")]
    approval_ttl_s: Option<Limit>,
}

#[derive(Args, Debug)]
pub struct Cost {
    /// What a call takes of a budget: a number, or `default` (1)
    #[arg(long, value_name = "NUMBER")]
    cost: Option<String>,
}

impl Cost {
    fn value(self) -> Option<Value> {
        self.cost.map(|cost| if cost == DEFAULT { Value::Null } else { cost.into() })
    }
}

#[derive(Args, Debug)]
pub struct Clearance {
    /// The least clearance that a warrant must have for it, 0 to 255
    #[arg(long, value_name = "LEVEL")]
    min_clearance: Option<u8>,
    /// Remove it: no clearance is needed
    #[arg(long, conflicts_with = "min_clearance")]
    no_min_clearance: bool,
}

impl Clearance {
    fn value(&self) -> Option<Value> {
        if self.no_min_clearance { Some(Value::Null) } else { self.min_clearance.map(Value::from) }
    }
}

#[derive(Args, Debug)]
pub struct InputSchema {
    /// The JSON Schema of its arguments: a file. Without it, a known schema is kept
    #[arg(long, value_name = "FILE", value_parser = object)]
    input_schema: Option<Value>,
    /// Remove the schema: its arguments may be anything
    #[arg(long, conflicts_with = "input_schema")]
    no_input_schema: bool,
}

impl InputSchema {
    fn value(self) -> Option<Value> {
        if self.no_input_schema { Some(Value::Null) } else { self.input_schema }
    }
}

/// Where destinations are in its arguments, whom it reaches, and which of its results can be trusted.
#[derive(Args, Debug)]
#[command(next_help_heading = "Provenance of values")]
pub struct Provenance {
    /// What an argument is for: a JSON Pointer, `=`, and `sink`, `detail` or `content`, such as
    /// `/to=sink`. `*` is every item of a list. Repeat it for more. The roles replace those before
    #[arg(long = "role", value_name = "POINTER=ROLE", value_parser = pair)]
    roles: Vec<(String, String)>,
    /// Remove the roles: every argument is a sink
    #[arg(long, conflicts_with = "roles")]
    no_roles: bool,
    /// Whom its calls reach. `by_sinks`: those that its sinks name, so nobody if a call has none
    #[arg(long, value_parser = Reach::ALL.map(Reach::as_str))]
    reach: Option<String>,
    /// Whether a part of its results is `trusted` or `untrusted`: a JSON Pointer, `=` and the level,
    /// such as `/contacts=trusted`, or `=trusted` for the whole result. Repeat it for more. The
    /// levels replace those before
    #[arg(long, value_name = "POINTER=LEVEL", value_parser = pair)]
    result_trust: Vec<(String, String)>,
    /// Remove the levels: its results are trusted if its server is
    #[arg(long, conflicts_with = "result_trust")]
    no_result_trust: bool,
}

impl Provenance {
    fn fields(self, fields: Fields) -> Fields {
        let object = |pairs: Vec<(String, String)>, none| match (pairs.is_empty(), none) {
            (_, true) => Some(Value::Null),
            (true, false) => None,
            (false, false) => {
                Some(pairs.into_iter().map(|(name, text)| (name, Value::from(text))).collect())
            }
        };
        fields
            .with("argument_roles", object(self.roles, self.no_roles))
            .with("reach", self.reach)
            .with("result_trust", object(self.result_trust, self.no_result_trust))
    }
}

/// A JSON Pointer, which may have a `=`, and a word.
fn pair(text: &str) -> Result<(String, String), String> {
    let (pointer, word) = text.rsplit_once('=').ok_or("it must be written `POINTER=WORD`")?;
    Ok((pointer.to_owned(), word.to_owned()))
}

#[derive(Args, Debug)]
pub struct Changed {
    #[arg(value_name = "SERVER/TOOL")]
    id: ToolId,
    #[command(flatten)]
    revision: Revision,
}

impl Changed {
    fn action(&self, action: &str) -> Request {
        let ToolId { server, tool } = &self.id;
        Request::post(&["servers", server, "tools", tool, action]).if_match(self.revision.if_match)
    }
}

/// The tools of one server that match `server/tool`.
fn many(id: &ToolId, reads: bool) -> Result<Many, Failure> {
    let ToolId { server, tool } = id;
    if server.contains('*') {
        return Err(Failure::Usage(
            "the server's name must not contain `*`: a glob is for the tools of one server"
                .to_owned(),
        ));
    }
    let glob: Glob = format!("{server}/{tool}")
        .parse()
        .map_err(|error: GlobError| Failure::Usage(format!("`{server}/{tool}`: {error}")))?;
    Ok(Many { server: server.clone(), glob, reads })
}

impl Tool {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Create { id: ToolId { server, tool }, mutates, egress, risk, settings } => {
                let fields = Fields::new()
                    .with("tool", Some(tool))
                    .with("mutates", Some(mutates))
                    .with("egress", egress.egress)
                    .with("risk", Some(risk));
                let fields = settings.fields(fields);
                Request::post(&["servers", &server, "tools"]).body(fields)
            }
            Self::List { server, page } => {
                let request = Request::get(&["servers", &server, "tools"]);
                return Ok(Plan::list(request, "tools", FIELDS, &page));
            }
            Self::Show { id: ToolId { server, tool } } => {
                Request::get(&["servers", &server, "tools", &tool])
            }
            Self::Update { id, mutates, egress, risk, settings, revision } => {
                let ToolId { server, tool } = id;
                let fields = Fields::new()
                    .with("mutates", mutates)
                    .with("egress", egress.egress)
                    .with("risk", risk);
                let fields = settings.fields(fields);
                patch(&["servers", &server, "tools", &tool], fields, revision.if_match)?
            }
            Self::Approve { changed: Changed { id, revision }, reads, definition_sha256 } => {
                let if_match = revision.if_match;
                if id.server.contains('*') || id.tool.contains('*') {
                    if definition_sha256.is_some() || if_match.is_some() {
                        let message =
                            "--definition-sha256 and --if-match can only be used for one tool";
                        return Err(Failure::Usage(message.to_owned()));
                    }
                    return many(&id, reads).map(Plan::ApproveTools);
                }
                let review = Review { id, if_match };
                if reads || definition_sha256.is_none() {
                    return Ok(Plan::ApproveTool { review, definition_sha256, reads });
                }
                review.approval(definition_sha256.as_deref(), None)
            }
            Self::Disable(changed) => changed.action("disable"),
            Self::Quarantine(changed) => changed.action("quarantine"),
            Self::Restore(changed) => changed.action("restore"),
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}
