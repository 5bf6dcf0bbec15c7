//! How a tool is registered, and how its registration is changed.

use gateward_core::approval::{MAX_APPROVAL_S, MIN_APPROVAL_S};
use gateward_core::bounds::MAX_TOOLS;
use gateward_core::field::{Millis, Name, ToolName, Whole, present};
use gateward_core::json as bounded;
use gateward_core::limit::Amount;
use gateward_core::policy::bundle::Risk;
use gateward_core::problem::Problem;
use gateward_core::provenance::{ArgumentRoles, Reach, ResultLevel, ResultTrust, Role};
use gateward_core::registry::{ChangeEvent, TaintRule};
use gateward_core::schema::{self, Schema};
use gateward_core::shield::{Category, Mode, Modes};
use gateward_core::sql::administration::Statement;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use super::{ToolRow, conclude, context, existing, load};
use crate::change::{At, Loaded, Outcome, Write};
use crate::manifest;
use crate::refusal::limit_reached;
use crate::shield::modes;
use crate::states::States;

/// The schema in a request. Outer `None`: left out. Inner `None`: null.
fn schema(given: Option<&Option<Box<RawValue>>>) -> Result<Option<Option<Json>>, Problem> {
    let refuse = |must: String| Problem::field(SCHEMA, format!("`{SCHEMA}`: {must}"));
    let read = |text: &RawValue| {
        if !text.get().starts_with('{') {
            return Err(refuse(manifest::NOT_AN_OBJECT.to_owned()));
        }
        // An unusable schema is refused at once.
        Schema::compile(text.get()).map_err(refuse)?;
        let unreadable = |_| refuse("must be JSON".to_owned());
        serde_json::from_str(text.get()).map_err(unreadable)
    };
    given.map(|schema| schema.as_deref().map(read).transpose()).transpose()
}

/// The value in a request, or else the known value.
fn given<T: Clone>(request: &Option<Option<T>>, known: &Option<T>) -> Option<T> {
    request.as_ref().unwrap_or(known).clone()
}

/// Adds the members of [`super::ChangedTool`] to the answer.
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

/// The value in a request, or else the known value.
fn clearance(request: Option<Option<Clearance>>, known: Option<u8>) -> Option<u8> {
    // The bound of the type is that of a byte.
    request.map_or(known, |given| given.map(|given| u8::try_from(given.0).unwrap_or(u8::MAX)))
}

type ApprovalTime = Whole<MIN_APPROVAL_S, MAX_APPROVAL_S>;

/// [`ToolRequest`] for a server: a tool, and the change that registers it.
pub struct CreateTool {
    server: Name,
    tool: ToolName,
    patch: ToolPatch,
}

impl CreateTool {
    pub fn new(server: Name, request: ToolRequest) -> Self {
        let patch = ToolPatch {
            mutates: Some(request.mutates),
            egress: request.egress,
            risk: Some(request.risk),
            canary: Some(request.canary),
            tainted: Some(request.tainted),
            approval_ttl_s: Some(request.approval_ttl_s),
            input_schema: request.input_schema,
            argument_roles: request.argument_roles,
            reach: request.reach,
            result_trust: request.result_trust,
            cost: request.cost,
            warrant_required: request.warrant_required,
            min_clearance: request.min_clearance,
            shield: request.shield,
        };
        Self { server, tool: request.tool, patch }
    }

    /// A new tool, to which the request is then applied. A request always gives `mutates` and `risk`, so their values
    /// here are not used.
    fn new_row(&self, at: &At<'_>) -> ToolRow {
        ToolRow {
            server: self.server.to_string(),
            tool: self.tool.to_string(),
            states: States::PENDING,
            mutates: true,
            egress: false,
            risk: Risk::Critical,
            canary: false,
            tainted: TaintRule::default(),
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
        }
    }
}

impl Write for CreateTool {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.server, &self.tool)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let context = context(loaded)?;
        let before: Option<ToolRow> = loaded.record()?;
        if before.is_none() && context.count >= MAX_TOOLS {
            return Err(limit_reached("tools", MAX_TOOLS));
        }
        let row = self.patch.apply_to(before.clone().unwrap_or_else(|| self.new_row(at)))?;
        let event =
            if before.is_none() { ChangeEvent::ToolCreated } else { ChangeEvent::ToolChanged };
        let concluded = conclude(at, loaded, before.as_ref(), row, event)?;
        Ok(with_findings(concluded, self.patch.input_schema.as_ref()))
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

impl ToolPatch {
    /// The tool with the members that are given.
    fn apply_to(&self, tool: ToolRow) -> Result<ToolRow, Problem> {
        let input_schema = schema(self.input_schema.as_ref())?;
        Ok(ToolRow {
            mutates: self.mutates.unwrap_or(tool.mutates),
            egress: self.egress.unwrap_or(tool.egress),
            risk: self.risk.unwrap_or(tool.risk),
            canary: self.canary.unwrap_or(tool.canary),
            tainted: self.tainted.unwrap_or(tool.tainted),
            approval_ttl_s: match self.approval_ttl_s {
                Some(value) => value.map(|s| s.0),
                None => tool.approval_ttl_s,
            },
            input_schema: input_schema.unwrap_or_else(|| tool.input_schema.clone()),
            argument_roles: given(&self.argument_roles, &tool.argument_roles),
            reach: self.reach.unwrap_or(tool.reach),
            result_trust: given(&self.result_trust, &tool.result_trust),
            cost: given(&self.cost, &tool.cost),
            warrant_required: self.warrant_required.unwrap_or(tool.warrant_required),
            min_clearance: clearance(self.min_clearance, tool.min_clearance),
            shield: self.shield.unwrap_or(tool.shield),
            ..tool
        })
    }
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
        let row = self.patch.apply_to(before.clone())?;
        let concluded = conclude(at, loaded, Some(&before), row, ChangeEvent::ToolChanged)?;
        Ok(with_findings(concluded, self.patch.input_schema.as_ref()))
    }
}
