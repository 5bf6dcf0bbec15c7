//! Tools. What the registry says about a tool is binding; callers cannot weaken it.

use gateward_core::approval::{MAX_APPROVAL_S, MIN_APPROVAL_S};
use gateward_core::bounds::MAX_TOOLS;
use gateward_core::field::{Millis, Name, ToolName, Whole, present};
use gateward_core::json as bounded;
use gateward_core::limit::Amount;
use gateward_core::policy::bundle::Risk;
use gateward_core::problem::{Problem, ProblemCode};
use gateward_core::provenance::{ArgumentRoles, Reach, ResultLevel, ResultTrust, Role};
use gateward_core::registry::{ChangedKey, TaintRule, ToolStatus};
use gateward_core::route::StateAction;
use gateward_core::schema::{self, Schema};
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use crate::answer::Answer;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::manifest;
use crate::precondition::check_match;
use crate::refusal::{conflict, limit_reached};
use crate::resource::Resource;
use crate::shield::modes;
use crate::states::States;

/// A tool in D1.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolRow {
    server: String,
    tool: String,
    #[serde(flatten)]
    states: States,
    mutates: bool,
    egress: bool,
    risk: Risk,
    canary: bool,
    tainted: TaintRule,
    approval_ttl_s: Option<u32>,
    input_schema: Option<Json>,
    argument_roles: Option<ArgumentRoles>,
    reach: Reach,
    result_trust: Option<ResultTrust>,
    cost: Option<Amount>,
    warrant_required: bool,
    min_clearance: Option<u8>,
    shield: Option<Modes>,
    definition_sha256: Option<String>,
    revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct Tool {
    server: String,
    tool: String,
    /// The strictest of `quarantined`, `disabled` and not `approved`, else `active`. A tool of a
    /// server that is not active cannot be called either.
    status: ToolStatus,
    approved: bool,
    disabled: bool,
    quarantined: bool,
    /// Whether calling it changes something.
    mutates: bool,
    /// Whether calling it sends text out or fetches an address that the caller gives. For policies
    /// such a call is a write, also if the tool does not mutate.
    egress: bool,
    risk: Risk,
    /// Whether it is a trap that no legitimate agent calls.
    canary: bool,
    /// What a tainted call of it needs.
    tainted: TaintRule,
    /// Seconds for which an approval of its calls is open; null means 1,800.
    approval_ttl_s: Option<u32>,
    /// The JSON Schema that its arguments must match; null if none is known.
    #[schema(value_type = Option<Object>)]
    input_schema: Option<Json>,
    /// What its arguments are for, by JSON Pointer; `*` is every item of an array. An argument
    /// without a role is a sink. Null: every argument is.
    #[schema(value_type = Option<BTreeMap<String, Role>>)]
    argument_roles: Option<ArgumentRoles>,
    /// Whom its calls reach.
    reach: Reach,
    /// Which parts of its results an attacker cannot have written, by JSON Pointer; the empty
    /// pointer is the whole result. What no pointer names has the trust of the server, as has
    /// everything if it is null.
    #[schema(value_type = Option<BTreeMap<String, ResultLevel>>)]
    result_trust: Option<ResultTrust>,
    /// What a call of it takes of a budget; null means 1.
    cost: Option<Amount>,
    /// Whether each call of it needs a warrant.
    warrant_required: bool,
    /// The least clearance that a warrant must have for it; null if none is needed.
    min_clearance: Option<u8>,
    /// The shield's mode of each category of findings. A category that is left out has the server's mode, as have all
    /// if it is null.
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Modes>,
    /// SHA-256 over the RFC 8785 form of the tool's definition, lower-case hex; null if the server
    /// has not listed it. Numbers that no double holds exactly keep their text.
    definition_sha256: Option<String>,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

/// The answer to a registration or a change of a tool.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only describes an answer")]
pub struct ChangedTool {
    #[serde(flatten)]
    tool: Tool,
    /// Bounds in the request's schema that no argument can meet: a call to which one applies is
    /// denied.
    unsatisfiable: Vec<String>,
}

impl Resource for ToolRow {
    const SINGULAR: &'static str = "tool";
    const PLURAL: &'static str = "tools";
    type View = Tool;

    fn cursor(&self) -> String {
        self.tool.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> Tool {
        Tool {
            server: self.server.clone(),
            tool: self.tool.clone(),
            status: self.states.status(),
            approved: self.states.approved,
            disabled: self.states.disabled,
            quarantined: self.states.quarantined,
            mutates: self.mutates,
            egress: self.egress,
            risk: self.risk,
            canary: self.canary,
            tainted: self.tainted,
            approval_ttl_s: self.approval_ttl_s,
            input_schema: self.input_schema.clone(),
            argument_roles: self.argument_roles.clone(),
            reach: self.reach,
            result_trust: self.result_trust.clone(),
            cost: self.cost,
            warrant_required: self.warrant_required,
            min_clearance: self.min_clearance,
            shield: self.shield,
            definition_sha256: self.definition_sha256.clone(),
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

/// A tool in D1, with its definitions.
#[derive(Debug, Deserialize)]
pub struct ToolDetailRow {
    #[serde(flatten)]
    tool: ToolRow,
    definition: Option<Json>,
    approved_definition: Option<Json>,
}

/// A tool with its definitions. Its server wrote them, so a program that shows them to people must
/// escape control characters and those that hide or reorder text.
#[derive(Debug, Serialize, ToSchema)]
pub struct ToolDetail {
    #[serde(flatten)]
    tool: Tool,
    /// The definition whose hash is `definition_sha256`; null if the server has listed none, or one
    /// that cannot be used.
    #[schema(value_type = Option<Object>)]
    definition: Option<Json>,
    /// The definition that was approved last; null when none was.
    #[schema(value_type = Option<Object>)]
    approved_definition: Option<Json>,
}

impl Resource for ToolDetailRow {
    const SINGULAR: &'static str = ToolRow::SINGULAR;
    const PLURAL: &'static str = ToolRow::PLURAL;
    type View = ToolDetail;

    fn cursor(&self) -> String {
        self.tool.cursor()
    }

    fn revision(&self) -> Option<u64> {
        self.tool.revision()
    }

    fn view(&self, now_ms: u64) -> ToolDetail {
        ToolDetail {
            tool: self.tool.view(now_ms),
            definition: self.definition.clone(),
            approved_definition: self.approved_definition.clone(),
        }
    }
}

impl ToolRow {
    fn save(&self, at: &At<'_>) -> Statement {
        let flag = |value: bool| Value::from(u64::from(value));
        Statement::new(
            sql::SAVE_TOOL,
            vec![
                at.tenant.into(),
                self.server.as_str().into(),
                self.tool.as_str().into(),
                flag(self.mutates),
                flag(self.egress),
                self.risk.as_str().into(),
                flag(self.canary),
                self.tainted.as_str().into(),
                flag(self.states.approved),
                flag(self.states.disabled),
                flag(self.states.quarantined),
                self.approval_ttl_s.map(u64::from).into(),
                self.input_schema.as_ref().map(Json::to_string).into(),
                self.definition_sha256.as_deref().into(),
                self.revision.into(),
                self.created_at_ms.0.into(),
                self.updated_at_ms.0.into(),
                Value::json(self.argument_roles.as_ref()),
                self.reach.as_str().into(),
                Value::json(self.result_trust.as_ref()),
                self.cost.map(String::from).into(),
                flag(self.warrant_required),
                self.min_clearance.map(u64::from).into(),
                Value::json(self.shield.as_ref()),
            ],
        )
    }
}

fn load(at: &At<'_>, server: &str, tool: &str) -> Statement {
    Statement::new(
        sql::LOAD_TOOL,
        vec![at.tenant.into(), server.into(), tool.into(), (MAX_TOOLS + 1).into()],
    )
}

#[derive(Deserialize)]
struct ToolContext {
    /// Whether its server exists.
    server: bool,
    /// Whether its definition is stored; only a usable one is.
    has_definition: bool,
    count: u64,
}

fn context(loaded: &Loaded) -> Result<ToolContext, Problem> {
    let context: ToolContext = loaded.extra()?;
    if context.server { Ok(context) } else { Err(Problem::not_found("server")) }
}

fn existing(at: &At<'_>, loaded: &Loaded) -> Result<ToolRow, Problem> {
    context(loaded)?;
    let row: ToolRow = loaded.record()?.ok_or_else(|| Problem::not_found("tool"))?;
    check_match(at, row.revision)?;
    Ok(row)
}

fn conclude(
    at: &At<'_>,
    loaded: &Loaded,
    before: Option<&ToolRow>,
    mut row: ToolRow,
    event: &'static str,
) -> Result<Outcome, Problem> {
    if before == Some(&row) {
        return Answer::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    row.revision = loaded.next_epoch();
    row.updated_at_ms = Millis(at.now_ms);
    let changes = before.map(|before| difference(&before.view(at.now_ms), &row.view(at.now_ms)));
    let answer = Answer::of(&row.view(at.now_ms), Some(row.revision))?;
    let mut change = Change::new(event, answer, vec![row.save(at)]);
    change.created = before.is_none();
    change.detail = with_changes(json!({ "server": row.server, "tool": row.tool }), changes);
    change.keys = vec![ChangedKey::Tool(format!("{}/{}", row.server, row.tool))];
    Ok(Outcome::Changed(change))
}

/// The schema that a request gives, if it gives one.
fn schema(given: Option<&Option<Box<RawValue>>>) -> Result<Option<Option<Json>>, Problem> {
    let refuse = |must: String| Problem::field(SCHEMA, format!("`{SCHEMA}`: {must}"));
    let read = |text: &RawValue| {
        if !text.get().starts_with('{') {
            return Err(refuse(manifest::NO_OBJECT.to_owned()));
        }
        // An unusable schema is refused at once.
        Schema::compile(text.get()).map_err(refuse)?;
        let unreadable = |_| refuse("must be JSON".to_owned());
        serde_json::from_str(text.get()).map_err(unreadable)
    };
    given.map(|schema| schema.as_deref().map(read).transpose()).transpose()
}

/// What a request gives, or else what is known.
fn given<T: Clone>(request: &Option<Option<T>>, known: &Option<T>) -> Option<T> {
    request.as_ref().unwrap_or(known).clone()
}

/// Adds the members of [`ChangedTool`] to the answer.
fn with_findings(mut outcome: Outcome, given: Option<&Option<Box<RawValue>>>) -> Outcome {
    let given = given.and_then(Option::as_deref);
    let schema = given.and_then(|text| bounded::parse_definition(text.get().as_bytes()).ok());
    let found = schema.as_ref().map(schema::unsatisfiable).unwrap_or_default();
    let answer = match &mut outcome {
        Outcome::Unchanged(answer) => answer,
        Outcome::Changed(change) => &mut change.answer,
        Outcome::NeedsApproval(_) => return outcome,
    };
    answer.body.insert("unsatisfiable".to_owned(), json!(found));
    outcome
}

const SCHEMA: &str = "input_schema";

/// Registers a tool. If it exists, it is updated; its states stay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolRequest {
    tool: ToolName,
    mutates: bool,
    /// Whether calling it sends text out or fetches an address that the caller gives. If left out,
    /// a registered tool keeps its value; a new tool has none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    egress: Option<bool>,
    risk: Risk,
    #[serde(default)]
    canary: bool,
    /// What a tainted call of it needs; `require_approval` when left out.
    #[serde(default)]
    tainted: TaintRule,
    /// Seconds; 1,800 if left out.
    #[serde(default)]
    #[schema(value_type = Option<u32>, minimum = 60, maximum = 604_800)]
    approval_ttl_s: Option<ApprovalTime>,
    /// The JSON Schema that its arguments must match. If left out, a registered tool keeps its
    /// schema; null removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    input_schema: Option<Option<Box<RawValue>>>,
    /// What its arguments are for, by JSON Pointer. If left out, a registered tool keeps its roles;
    /// null makes every argument a sink.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<BTreeMap<String, Role>>)]
    argument_roles: Option<Option<ArgumentRoles>>,
    /// Whom its calls reach. If left out, a registered tool keeps its reach; a new tool has
    /// `outside`.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Reach, required = false)]
    reach: Option<Reach>,
    /// Which parts of its results are trusted, by JSON Pointer. If left out, a registered tool
    /// keeps them; null leaves it to the server's trust.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<BTreeMap<String, ResultLevel>>)]
    result_trust: Option<Option<ResultTrust>>,
    /// What a call of it takes of a budget, as a decimal number in a string. If left out, a registered tool keeps
    /// its cost; null means 1.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Amount>)]
    cost: Option<Option<Amount>>,
    /// Whether each call of it needs a warrant. If left out, a registered tool keeps its value; a new tool needs none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    warrant_required: Option<bool>,
    /// The least clearance that a warrant must have for it. If left out, a registered tool keeps it; null means that
    /// none is needed.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 255)]
    min_clearance: Option<Option<Clearance>>,
    /// The shield's mode of each category of findings. If left out, a registered tool keeps its modes; null leaves them
    /// to the server.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
}

type Clearance = Whole<0, 255>;

/// What a request gives, or else what is known.
fn clearance(request: Option<Option<Clearance>>, known: Option<u8>) -> Option<u8> {
    // The bound of the type is that of a byte.
    request.map_or(known, |given| given.map(|given| u8::try_from(given.0).unwrap_or(u8::MAX)))
}

type ApprovalTime = Whole<MIN_APPROVAL_S, MAX_APPROVAL_S>;

/// [`ToolRequest`] for a server.
pub struct CreateTool {
    pub server: Name,
    pub request: ToolRequest,
}

impl Write for CreateTool {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, &self.request.tool)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let context = context(loaded)?;
        let before: Option<ToolRow> = loaded.record()?;
        if before.is_none() && context.count >= MAX_TOOLS {
            return Err(limit_reached("tools", MAX_TOOLS));
        }
        let request = &self.request;
        let fresh = || ToolRow {
            server: self.server.to_string(),
            tool: request.tool.to_string(),
            states: States::PENDING,
            mutates: request.mutates,
            egress: false,
            risk: request.risk,
            canary: request.canary,
            tainted: request.tainted,
            approval_ttl_s: None,
            input_schema: None,
            argument_roles: None,
            reach: Reach::default(),
            result_trust: None,
            cost: None,
            warrant_required: false,
            min_clearance: None,
            shield: None,
            definition_sha256: None,
            revision: 0,
            created_at_ms: Millis(at.now_ms),
            updated_at_ms: Millis(at.now_ms),
        };
        let known = before.clone().unwrap_or_else(fresh);
        let input_schema = schema(request.input_schema.as_ref())?;
        let row = ToolRow {
            mutates: request.mutates,
            egress: request.egress.unwrap_or(known.egress),
            risk: request.risk,
            canary: request.canary,
            tainted: request.tainted,
            approval_ttl_s: request.approval_ttl_s.map(|s| s.0),
            input_schema: input_schema.unwrap_or_else(|| known.input_schema.clone()),
            argument_roles: given(&request.argument_roles, &known.argument_roles),
            reach: request.reach.unwrap_or(known.reach),
            result_trust: given(&request.result_trust, &known.result_trust),
            cost: given(&request.cost, &known.cost),
            warrant_required: request.warrant_required.unwrap_or(known.warrant_required),
            min_clearance: clearance(request.min_clearance, known.min_clearance),
            shield: request.shield.unwrap_or(known.shield),
            ..known
        };
        let event = if before.is_none() { "tool_created" } else { "tool_changed" };
        let concluded = conclude(at, loaded, before.as_ref(), row, event)?;
        Ok(with_findings(concluded, request.input_schema.as_ref()))
    }
}

/// A change of a tool; members that are left out stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolPatch {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    mutates: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    egress: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Risk, required = false)]
    risk: Option<Risk>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    canary: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = TaintRule, required = false)]
    tainted: Option<TaintRule>,
    /// Null clears it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 60, maximum = 604_800)]
    approval_ttl_s: Option<Option<ApprovalTime>>,
    /// Null removes it.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    input_schema: Option<Option<Box<RawValue>>>,
    /// Replaces all roles; null makes every argument a sink.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<BTreeMap<String, Role>>)]
    argument_roles: Option<Option<ArgumentRoles>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Reach, required = false)]
    reach: Option<Reach>,
    /// Replaces all levels; null leaves it to the server's trust.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<BTreeMap<String, ResultLevel>>)]
    result_trust: Option<Option<ResultTrust>>,
    /// Null means 1.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Amount>)]
    cost: Option<Option<Amount>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    warrant_required: Option<bool>,
    /// Null means that none is needed.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 255)]
    min_clearance: Option<Option<Clearance>>,
    /// Replaces all modes; null leaves them to the server.
    #[serde(default, deserialize_with = "modes")]
    #[schema(value_type = Option<BTreeMap<Category, Mode>>)]
    shield: Option<Option<Modes>>,
}

/// [`ToolPatch`] of one tool.
pub struct PatchTool {
    pub server: Name,
    pub tool: ToolName,
    pub patch: ToolPatch,
}

impl Write for PatchTool {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, &self.tool)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let row = ToolRow {
            mutates: self.patch.mutates.unwrap_or(before.mutates),
            egress: self.patch.egress.unwrap_or(before.egress),
            risk: self.patch.risk.unwrap_or(before.risk),
            canary: self.patch.canary.unwrap_or(before.canary),
            tainted: self.patch.tainted.unwrap_or(before.tainted),
            approval_ttl_s: match self.patch.approval_ttl_s {
                Some(value) => value.map(|s| s.0),
                None => before.approval_ttl_s,
            },
            input_schema: schema(self.patch.input_schema.as_ref())?
                .unwrap_or_else(|| before.input_schema.clone()),
            argument_roles: given(&self.patch.argument_roles, &before.argument_roles),
            reach: self.patch.reach.unwrap_or(before.reach),
            result_trust: given(&self.patch.result_trust, &before.result_trust),
            cost: given(&self.patch.cost, &before.cost),
            warrant_required: self.patch.warrant_required.unwrap_or(before.warrant_required),
            min_clearance: clearance(self.patch.min_clearance, before.min_clearance),
            shield: self.patch.shield.unwrap_or(before.shield),
            ..before.clone()
        };
        let concluded = conclude(at, loaded, Some(&before), row, "tool_changed")?;
        Ok(with_findings(concluded, self.patch.input_schema.as_ref()))
    }
}

/// An approval of a tool, with the reviewer's findings. It is one change, so the tool is never
/// callable with other values. Members that are left out stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApproveTool {
    /// The `definition_sha256` of the definition that was reviewed. Required if the tool has one;
    /// if it differs from the tool's current one, the tool is not approved.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = String, required = false)]
    definition_sha256: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    mutates: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    egress: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Risk, required = false)]
    risk: Option<Risk>,
}

impl ApproveTool {
    /// Whether the reviewed definition is the current one.
    fn check(&self, tool: &ToolRow, has_definition: bool) -> Result<(), Problem> {
        match (&self.definition_sha256, &tool.definition_sha256) {
            (None, None) => Ok(()),
            (None, Some(_)) => Err(Problem::field(
                DEFINITION_SHA256,
                format!(
                    "`{DEFINITION_SHA256}`: must be the hash of the definition that you reviewed"
                ),
            )),
            (reviewed, known) if reviewed != known => Err(Problem::new(
                ProblemCode::DefinitionChanged,
                "the tool's definition is not the one that you reviewed: review it again",
            )),
            _ if !has_definition => {
                Err(conflict("the definition that the server lists cannot be used"))
            }
            _ => Ok(()),
        }
    }
}

const DEFINITION_SHA256: &str = "definition_sha256";

/// [`StateAction`] on one tool.
pub struct ActOnTool {
    pub server: Name,
    pub tool: ToolName,
    pub action: StateAction,
    /// The body of an approval.
    pub approval: ApproveTool,
}

impl Write for ActOnTool {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, &self.tool)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        let approves = self.action == StateAction::Approve;
        if approves {
            self.approval.check(&before, context(loaded)?.has_definition)?;
        }
        // Only an approval has these members.
        let ApproveTool { mutates, egress, risk, .. } = self.approval;
        let row = ToolRow {
            states: before.states.after(self.action),
            mutates: mutates.unwrap_or(before.mutates),
            egress: egress.unwrap_or(before.egress),
            risk: risk.unwrap_or(before.risk),
            ..before.clone()
        };
        let event = match self.action {
            StateAction::Approve => "tool_approved",
            StateAction::Disable => "tool_disabled",
            StateAction::Quarantine => "tool_quarantined",
            StateAction::Restore => "tool_restored",
        };
        let mut outcome = conclude(at, loaded, Some(&before), row, event)?;
        if let Outcome::Changed(change) = &mut outcome
            && approves
        {
            if let (Json::Object(detail), Some(reviewed)) =
                (&mut change.detail, &self.approval.definition_sha256)
            {
                detail.insert(DEFINITION_SHA256.to_owned(), json!(reviewed));
            }
            let values = vec![at.tenant.into(), (&*self.server).into(), (&*self.tool).into()];
            change.statements.push(Statement::new(sql::KEEP_APPROVED_DEFINITION, values));
        }
        Ok(outcome)
    }
}
