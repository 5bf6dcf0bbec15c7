use clap::{Args, Subcommand};
use gateward_core::limit::{Access, Covers, Day, Kind, Unclear, Window};
use gateward_core::registry::{EACH, SubjectKind};
use serde_json::{Value, json};

use crate::arguments::{PageArguments, Revision, segment};
use crate::failure::Failure;
use crate::plan::{Plan, patch};
use crate::request::{Fields, Method, Request};
use crate::table::{ANY, Field};

const FIELDS: &[Field] = &[
    Field::column("limit_id"),
    Field::column("subject_kind"),
    Field::column("subject"),
    Field::column("kind").part(&["/rule/kind"]),
    Field::column("max").part(&["/rule/max", "/rule/capacity"]),
    Field::column("window").part(&["/rule/window"]),
    Field::column("tools").part(&["/rule/tools"]).null(ANY),
    Field::detail("covers"),
    Field::detail("access").part(&["/rule/access"]).null(ANY),
    Field::detail("refill_per_s").part(&["/rule/refill_per_s"]),
    Field::detail("pointer").part(&["/rule/pointer"]),
    Field::detail("currency").part(&["/rule/currency/is"]),
    Field::detail("time_zone").part(&["/rule/time_zone"]),
    Field::detail("days").part(&["/rule/days"]),
    Field::detail("hours").part(&["/rule/hours"]),
    Field::detail("unclear").part(&["/rule/unclear"]),
    Field::detail("created_by"),
    Field::detail("revision"),
    Field::detail("created_at"),
    Field::detail("updated_at"),
];

/// How often, how much and when calls are allowed
#[derive(Subcommand, Debug)]
pub enum Limit {
    /// Limit the calls of an agent, a credential, the tenant, a group, a tool, a server or a user
    #[command(after_long_help = "\
Examples:
  gateward limit create refunds --agent billing --kind amount --max 1000 --pointer /amount --window day \\
    --currency EUR --currency-pointer /currency --tool payments/refund --time-zone Europe/Berlin
  gateward limit create office-hours --agent '*' --kind hours --day mon --day fri --hours 09:00-17:30
  gateward limit create three-at-once --credential k1 --kind concurrency --max 3
  gateward limit create all-mails --tenant-wide --kind quota --max 5000 --window hour --tool 'mail/*'
  gateward limit create each-user --user '*' --kind rate --capacity 20 --refill-per-s 2
  gateward limit create all-requests --agent coder --covers requests --kind rate --capacity 100 --refill-per-s 10")]
    Create {
        #[arg(value_parser = segment)]
        limit_id: String,
        #[command(flatten)]
        subject: Subject,
        #[arg(long, value_parser = Kind::ALL.map(Kind::as_str))]
        kind: String,
        /// Calls of tools, or all requests of the agent; `requests` is only for --kind rate (default: calls)
        #[arg(long, value_parser = Covers::ALL.map(Covers::as_str))]
        covers: Option<String>,
        #[command(flatten)]
        rule: RuleArguments,
    },
    /// List limits
    List {
        #[command(flatten)]
        page: PageArguments,
    },
    /// Show a limit
    Show {
        #[arg(value_parser = segment)]
        limit_id: String,
    },
    /// Show what is used of limits
    ///
    /// In the bars, `#` is used, `=` is held by calls in progress, and `.` is left.
    Status {
        /// Whose limits; an agent's credential shows those of its own agent if this is left out
        #[arg(long)]
        agent: Option<String>,
        /// The key id of a credential: its limits too
        #[arg(long, value_name = "KEY_ID")]
        credential: Option<String>,
        /// Everything that is counted under this shared limit
        #[arg(long, value_name = "LIMIT_ID", conflicts_with_all = ["agent", "credential"])]
        limit: Option<String>,
        /// Only this group, tool, server or user
        #[arg(long, requires = "limit")]
        subject: Option<String>,
    },
    /// Change a limit; what was used stays used
    Update {
        #[arg(value_parser = segment)]
        limit_id: String,
        #[command(flatten)]
        rule: RuleArguments,
        #[command(flatten)]
        revision: Revision,
    },
    /// Delete a limit, with what was used of it
    Delete {
        #[arg(value_parser = segment)]
        limit_id: String,
    },
}

/// Whose calls are counted.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Subject {
    /// The agent, or `*`: each agent on its own
    #[arg(long)]
    agent: Option<String>,
    /// The key id of a credential, or `*`: each credential on its own
    #[arg(long, value_name = "KEY_ID")]
    credential: Option<String>,
    /// All calls of the tenant together
    #[arg(long)]
    tenant_wide: bool,
    /// A group of agents together, or `*`: each group on its own
    #[arg(long)]
    group: Option<String>,
    /// A glob of `server/tool`: each tool on its own, for all agents together
    #[arg(long, value_name = "GLOB")]
    each_tool: Option<String>,
    /// A glob of servers: each server on its own, for all agents together
    #[arg(long, value_name = "GLOB")]
    each_server: Option<String>,
    /// A user that a harness states, or `*`: each user on their own, for all agents together
    #[arg(long)]
    user: Option<String>,
}

impl Subject {
    fn named(self) -> (SubjectKind, Option<String>) {
        let tenant = self.tenant_wide.then(|| EACH.to_owned());
        let subjects = [
            (SubjectKind::Agent, self.agent),
            (SubjectKind::Credential, self.credential),
            (SubjectKind::Tenant, tenant),
            (SubjectKind::Group, self.group),
            (SubjectKind::Tool, self.each_tool),
            (SubjectKind::Server, self.each_server),
            (SubjectKind::User, self.user),
        ];
        let named = subjects.into_iter().find(|(_, subject)| subject.is_some());
        named.unwrap_or((SubjectKind::Tenant, None))
    }
}

#[derive(Args, Debug)]
pub struct RuleArguments {
    /// Only calls that read, or only calls that write
    #[arg(long, value_parser = Access::ALL.map(Access::as_str))]
    access: Option<String>,
    /// A glob of `server/tool`; can be repeated (default: all tools)
    #[arg(long, value_name = "GLOB")]
    tool: Vec<String>,
    /// rate: calls (or requests) at once
    #[arg(long, value_name = "CALLS")]
    capacity: Option<u32>,
    /// rate: calls (or requests) per second after that
    #[arg(long, value_name = "CALLS")]
    refill_per_s: Option<f64>,
    /// The bound of every kind but hours and rate
    #[arg(long, value_name = "NUMBER")]
    max: Option<String>,
    /// per_call, amount: the JSON Pointer of the number in the arguments; calls without it are denied
    #[arg(long)]
    pointer: Option<String>,
    /// per_call, amount: calls in another currency are denied
    #[arg(long, requires = "currency_pointer")]
    currency: Option<String>,
    /// The JSON Pointer of the currency in the arguments
    #[arg(long, value_name = "POINTER", requires = "currency")]
    currency_pointer: Option<String>,
    /// quota, amount, budget
    #[arg(long, value_parser = Window::ALL.map(Window::as_str))]
    window: Option<String>,
    /// A name of the IANA database, such as `Europe/Berlin` (default: UTC)
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// hours: a day of the week; can be repeated (default: every day)
    #[arg(long, value_parser = Day::ALL.map(Day::as_str))]
    day: Vec<String>,
    /// hours: a part of the day, `HH:MM-HH:MM`; can be repeated (default: all day)
    #[arg(long, value_name = "HOURS")]
    hours: Vec<String>,
    /// amount, budget: what becomes of a reservation if nobody knows how the call ended (default: keep)
    #[arg(long, value_parser = Unclear::ALL.map(Unclear::as_str))]
    unclear: Option<String>,
}

impl RuleArguments {
    fn fields(self, fields: Fields) -> Fields {
        let list = |list: Vec<String>| Some(list).filter(|list| !list.is_empty());
        let currency = self.currency.zip(self.currency_pointer);
        let currency = currency.map(|(is, pointer)| json!({ "pointer": pointer, "is": is }));
        fields
            .with("access", self.access)
            .with("tools", list(self.tool))
            .with("capacity", self.capacity)
            .with("refill_per_s", self.refill_per_s)
            .with("max", self.max)
            .with("pointer", self.pointer)
            .with("currency", currency)
            .with("window", self.window)
            .with("time_zone", self.time_zone)
            .with("days", list(self.day))
            .with("hours", list(self.hours))
            .with("unclear", self.unclear)
    }
}

impl Limit {
    pub fn plan(self) -> Result<Plan, Failure> {
        let request = match self {
            Self::Create { limit_id, subject, kind, covers, rule } => {
                let (subject_kind, subject) = subject.named();
                let rule = rule.fields(Fields::new().with("kind", Some(kind)));
                let fields = Fields::new()
                    .with("limit_id", Some(limit_id))
                    .with("subject_kind", Some(subject_kind.as_str()))
                    .with("subject", subject)
                    .with("covers", covers)
                    .with("rule", Some(Value::from(rule)));
                Request::post(&["limits"]).body(fields)
            }
            Self::List { page } => {
                return Ok(Plan::list(Request::get(&["limits"]), "limits", FIELDS, &page));
            }
            Self::Show { limit_id } => Request::get(&["limits", &limit_id]),
            Self::Status { agent, credential, limit, subject } => {
                let request = Request::get(&["limits", "status"])
                    .parameter("agent", agent.as_deref())
                    .parameter("credential", credential.as_deref())
                    .parameter("limit", limit.as_deref())
                    .parameter("subject", subject.as_deref());
                return Ok(Plan::ShowLimits(request));
            }
            Self::Update { limit_id, rule, revision } => {
                let rule = rule.fields(Fields::new());
                let rule = Some(Value::from(rule)).filter(|rule| *rule != json!({}));
                let fields = Fields::new().with("rule", rule);
                patch(&["limits", &limit_id], fields, revision.if_match)?
            }
            Self::Delete { limit_id } => Request::new(Method::Delete, &["limits", &limit_id]),
        };
        Ok(Plan::Send { request, fields: FIELDS })
    }
}
