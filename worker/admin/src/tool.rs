//! Tools. What the registry says about a tool is binding; callers cannot weaken it.
//!
//! Here is the record, and how a change of it is written. The changes are in [`registration`] and
//! [`action`].

pub mod action;
pub mod registration;

use gateward_core::bounds::MAX_TOOLS;
use gateward_core::field::Millis;
use gateward_core::limit::Amount;
use gateward_core::policy::bundle::Risk;
use gateward_core::problem::Problem;
use gateward_core::provenance::{ArgumentRoles, Reach, ResultLevel, ResultTrust, Role};
use gateward_core::registry::{ChangeEvent, ChangedKey, TaintRule, ToolStatus};
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::audit_detail::{difference, with_changes};
use crate::change::{At, Change, Loaded, Outcome};
use crate::precondition::check_match;
use crate::resource::Resource;
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
                self.cost.map(|cost| cost.to_string()).into(),
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
    event: ChangeEvent,
) -> Result<Outcome, Problem> {
    if before == Some(&row) {
        return AnswerBody::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    row.revision = loaded.next_epoch();
    row.updated_at_ms = Millis(at.now_ms);
    let changes = before.map(|before| difference(&before.view(at.now_ms), &row.view(at.now_ms)));
    let answer = AnswerBody::of(&row.view(at.now_ms), Some(row.revision))?;
    let mut change = Change::new(event, answer, vec![row.save(at)]);
    change.created = before.is_none();
    change.detail = with_changes(json!({ "server": row.server, "tool": row.tool }), changes);
    change.keys = vec![ChangedKey::Tool(format!("{}/{}", row.server, row.tool))];
    Ok(Outcome::Changed(change))
}
