//! Runs as the harness states them: the user's instruction, a plan, and results that the agent got without
//! Gateward.
//!
//! Out of scope: what the lane keeps of them, which is hashes only (`provenance`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::bounds::{MAX_BODY_BYTES, MAX_REQUEST_ID_BYTES};
use crate::field::{Label, Name, ToolName, Whole, parse as parse_fields};
use crate::json::{self, Json};
use crate::mcp::raw::RawObject;
use crate::name::{is_name, is_tool_name};
use crate::problem::{Problem, ProblemCode};
use crate::provenance::PlannedCall;
use crate::provenance::plan::MAX_PLANNED_CALLS;

/// Bytes of an instruction: several pages of text. What a user pastes in addition is not an instruction.
pub const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

/// Arguments of one planned call: more than a tool has whose calls can be foreseen.
pub const MAX_PLANNED_ARGUMENTS: usize = 32;

/// Values of one argument of a planned call.
pub const MAX_PLANNED_VALUES: usize = 32;

/// Bytes of a JSON Pointer to an argument: several nested names.
pub const MAX_POINTER_BYTES: usize = 256;

/// Seconds that a run credential is valid: from a minute to a day. A longer run asks for another one.
pub const MIN_RUN_CREDENTIAL_S: u32 = 60;
pub const MAX_RUN_CREDENTIAL_S: u32 = 86_400;
const DEFAULT_RUN_CREDENTIAL_S: u32 = 3_600;

/// What the user asked for in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    pub instruction: String,
    pub plan: Vec<PlannedCall>,
}

impl RunStart {
    /// Bytes of memory that it has allocated, about.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let values = self.plan.iter().flat_map(|call| &call.arguments);
        let values = values.map(|(pointer, values)| {
            pointer.capacity() + values.iter().map(Json::heap_bytes).sum::<usize>()
        });
        self.instruction.capacity() + values.sum::<usize>()
    }
}

/// A result that the caller got without Gateward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedResult {
    /// The decision on the call; empty if the caller does not know it.
    pub decision_id: String,
    /// A text, or JSON as it was received.
    pub text: String,
}

/// The body of `POST /v1/runs`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartRun)]
pub struct StartRequest {
    /// The run. If it is left out, Gateward chooses a UUID. Repeating a run adds to its instruction.
    #[serde(default)]
    #[schema(value_type = Label, required = false)]
    run_id: Option<Label>,
    /// What the user asked for, in the user's words. At most 16 KiB. It is not stored.
    #[schema(min_length = 1, max_length = 16384)]
    instruction: String,
    /// Calls that the harness foresees.
    #[serde(default)]
    #[schema(max_items = 64)]
    plan: Vec<PlannedRequest>,
    /// Seconds until the run credential expires.
    #[serde(default)]
    #[schema(value_type = u32, minimum = 60, maximum = 86400, default = 3600, required = false)]
    expires_in_s: Option<Whole<MIN_RUN_CREDENTIAL_S, MAX_RUN_CREDENTIAL_S>>,
}

/// A call that the harness foresees.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PlannedCall)]
struct PlannedRequest {
    /// `server/tool`.
    tool: String,
    /// For a JSON Pointer into the arguments, the values that the argument may have: one, or an array of
    /// them.
    #[serde(default)]
    #[schema(value_type = Object)]
    arguments: BTreeMap<String, Box<RawValue>>,
}

/// A run that is to be started.
#[derive(Debug, PartialEq)]
pub struct NewRun {
    /// `None` if Gateward chooses it.
    pub run_id: Option<String>,
    pub start: RunStart,
    pub expires_in_s: u32,
}

/// Reads the body of `POST /v1/runs`.
///
/// # Errors
///
/// `body_too_large`, `malformed_request`, `input_invalid` or `invalid_field`.
pub fn parse_start(body: &[u8]) -> Result<NewRun, Problem> {
    within_bound(body)?;
    let request: StartRequest = parse_fields(body)?;
    if request.plan.len() > MAX_PLANNED_CALLS {
        let detail = format!("`plan` must have at most {MAX_PLANNED_CALLS} calls");
        return Err(Problem::field("plan", detail));
    }
    let plan = request.plan.into_iter().enumerate().map(|(at, call)| planned(at, call));
    Ok(NewRun {
        run_id: request.run_id.map(|run| run.to_string()),
        start: RunStart {
            instruction: instruction(request.instruction)?,
            plan: plan.collect::<Result<_, _>>()?,
        },
        expires_in_s: request.expires_in_s.map_or(DEFAULT_RUN_CREDENTIAL_S, |Whole(s)| s),
    })
}

/// Checks the length of an instruction.
///
/// # Errors
///
/// `invalid_field`.
pub fn instruction(text: String) -> Result<String, Problem> {
    if (1..=MAX_INSTRUCTION_BYTES).contains(&text.len()) {
        return Ok(text);
    }
    let detail = format!("`instruction` must have 1 to {MAX_INSTRUCTION_BYTES} bytes");
    Err(Problem::field("instruction", detail))
}

fn planned(at: usize, call: PlannedRequest) -> Result<PlannedCall, Problem> {
    let refuse = |field: &str, must: &str| {
        let field = format!("plan[{at}].{field}");
        let detail = format!("`{field}` must {must}");
        Err(Problem::field(field, detail))
    };
    let (server, tool) = call.tool.split_once('/').unwrap_or_default();
    if !is_name(server) || !is_tool_name(tool) {
        return refuse("tool", "be `server/tool`");
    }
    if call.arguments.len() > MAX_PLANNED_ARGUMENTS {
        return refuse("arguments", &format!("have at most {MAX_PLANNED_ARGUMENTS} pointers"));
    }
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (pointer, values) in call.arguments {
        if !pointer.starts_with('/') || pointer.len() > MAX_POINTER_BYTES {
            let must = format!("have JSON Pointers of at most {MAX_POINTER_BYTES} bytes as keys");
            return refuse("arguments", &must);
        }
        // A number that JSON readers understand differently is not a value that a call can have.
        let values = match json::parse(values.get().as_bytes())? {
            Json::Array(values) => values,
            value => vec![value],
        };
        if values.len() > MAX_PLANNED_VALUES {
            return refuse("arguments", &format!("have at most {MAX_PLANNED_VALUES} values each"));
        }
        arguments.push((pointer, values));
    }
    Ok(PlannedCall { tool: call.tool, arguments })
}

/// A result that is reported, with the tool that it is of.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub server: String,
    pub tool: String,
    pub result: ReportedResult,
}

/// The body of `POST /v1/runs/{run}/observations`.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `parse_report` reads")]
#[schema(as = ReportResult)]
pub struct ReportRequest {
    #[schema(value_type = Name)]
    server: (),
    #[schema(value_type = ToolName)]
    tool: (),
    /// The decision on the call.
    #[schema(max_length = 128)]
    decision_id: Option<String>,
    /// The result: a text, or any JSON.
    #[schema(value_type = Object)]
    result: (),
}

/// Reads the body of `POST /v1/runs/{run}/observations`. The result keeps its bytes: it may have numbers
/// that arguments must not have.
///
/// # Errors
///
/// `body_too_large`, `malformed_request` or `invalid_field`.
pub fn parse_report(body: &[u8]) -> Result<Report, Problem> {
    within_bound(body)?;
    let body = std::str::from_utf8(body).ok().and_then(RawObject::parse).ok_or_else(|| {
        let detail = "the body must be a JSON object without duplicate keys";
        Problem::new(ProblemCode::MalformedRequest, detail)
    })?;
    let known = ["server", "tool", "decision_id", "result"];
    if let Some(other) = body.names().find(|name| !known.contains(name)) {
        let detail = "it must be `server`, `tool`, `decision_id` or `result`";
        return Err(Problem::field(
            other.chars().take(MAX_POINTER_BYTES).collect::<String>(),
            detail,
        ));
    }
    let text = |name: &str, is_valid: fn(&str) -> bool, must: &str| {
        let text = body.text(name).filter(|text| is_valid(text));
        text.ok_or_else(|| Problem::field(name, format!("`{name}` must be {must}")))
    };
    let server = text("server", is_name, "a server's name")?;
    let tool = text("tool", is_tool_name, "a tool's name")?;
    let decision_id = match body.get("decision_id") {
        None | Some("null") => String::new(),
        Some(_) => text("decision_id", |id| id.len() <= MAX_REQUEST_ID_BYTES, "a decision's id")?,
    };
    let result = body.get("result");
    let result = result.ok_or_else(|| Problem::field("result", "`result` must be present"))?;
    let text = body.text("result").unwrap_or_else(|| result.to_owned());
    Ok(Report { server, tool, result: ReportedResult { decision_id, text } })
}

fn within_bound(body: &[u8]) -> Result<(), Problem> {
    if body.len() <= MAX_BODY_BYTES {
        return Ok(());
    }
    let detail = format!("the body must have at most {MAX_BODY_BYTES} bytes");
    Err(Problem::new(ProblemCode::BodyTooLarge, detail))
}
