//! Runs as the harness states them: the user's instruction, a plan, and results that the agent got without
//! Gateward.
//!
//! Out of scope: what the lane keeps of them, which is hashes only (`provenance`).

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::bounds::{MAX_BODY_BYTES, MAX_REQUEST_ID_BYTES};
use crate::field::{Label, Name, ToolName, Whole, parse as parse_fields, parse_within};
use crate::json::{self, Json};
use crate::name::{is_name, is_tool_name};
use crate::problem::{Problem, ProblemCode};
use crate::provenance::PlannedCall;
use crate::provenance::plan::MAX_PLANNED_CALLS;

/// Bytes of an instruction: several pages of text. What a user pastes in addition is not an instruction.
pub const MAX_INSTRUCTION_BYTES: usize = 16 * 1024;

/// Arguments of one planned call. A tool whose calls can be planned has fewer.
pub const MAX_PLANNED_ARGUMENTS: usize = 32;

/// Values of one argument of a planned call.
pub const MAX_PLANNED_VALUES: usize = 32;

/// Tools from whose results one argument of a planned call may come.
pub const MAX_PLANNED_TOOLS: usize = 8;

/// Bytes of a JSON Pointer to an argument: several nested names.
pub const MAX_POINTER_BYTES: usize = 256;

/// Seconds that a run credential is valid: from a minute to a day. A longer run needs another one.
pub const MIN_RUN_CREDENTIAL_S: u32 = 60;
pub const MAX_RUN_CREDENTIAL_S: u32 = 86_400;
const DEFAULT_RUN_CREDENTIAL_S: u32 = 3_600;

/// Checks the claims of a caller with a run credential: run, user and the user's role, empty if there is no
/// claim. The credential fixes the run. It names no user, and only a harness's claims about users count.
///
/// # Errors
///
/// `malformed_request`: the caller claims another run, or a user.
pub fn fix(run: &str, [run_id, user_id, user_role]: [&str; 3]) -> Result<(), Problem> {
    let detail = if !run_id.is_empty() && run_id != run {
        "the run credential is for another run; leave the run id out"
    } else if !user_id.is_empty() || !user_role.is_empty() {
        "with a run credential, leave the user and the user's role out"
    } else {
        return Ok(());
    };
    Err(Problem::new(ProblemCode::MalformedRequest, detail))
}

/// What the user asked for in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStart {
    pub instruction: String,
    pub plan: Vec<PlannedCall>,
    /// Whether the caller gets a run credential for an agent.
    pub issues_credential: bool,
}

impl RunStart {
    /// Bytes of memory that it has allocated, about.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let values = self.plan.iter().flat_map(|call| &call.arguments);
        let values = values.map(|(pointer, values)| {
            pointer.capacity() + values.iter().map(Json::heap_bytes).sum::<usize>()
        });
        let from = self.plan.iter().flat_map(|call| &call.from);
        let from = from.map(|(pointer, tools)| {
            pointer.capacity() + tools.iter().map(String::capacity).sum::<usize>()
        });
        self.instruction.capacity() + values.sum::<usize>() + from.sum::<usize>()
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
    /// For a JSON Pointer into the arguments, the largest number that the argument may be. Not negative.
    #[serde(default)]
    at_most: BTreeMap<String, f64>,
    /// For a JSON Pointer into the arguments, the tools as `server/tool` from whose trusted results the agent may choose
    /// one value.
    #[serde(default)]
    from: BTreeMap<String, Vec<String>>,
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
            issues_credential: true,
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
    let is_tool = |text: &String| {
        let (server, tool) = text.split_once('/').unwrap_or_default();
        is_name(server) && is_tool_name(tool)
    };
    if !is_tool(&call.tool) {
        return refuse("tool", "be `server/tool`");
    }
    let names = [
        ("arguments", call.arguments.keys().collect::<Vec<_>>()),
        ("at_most", call.at_most.keys().collect()),
        ("from", call.from.keys().collect()),
    ];
    for (field, pointers) in names {
        if pointers.len() > MAX_PLANNED_ARGUMENTS {
            return refuse(field, &format!("have at most {MAX_PLANNED_ARGUMENTS} pointers"));
        }
        let is_pointer = |text: &&String| text.starts_with('/') && text.len() <= MAX_POINTER_BYTES;
        if !pointers.iter().all(is_pointer) {
            let must = format!("have JSON Pointers of at most {MAX_POINTER_BYTES} bytes as keys");
            return refuse(field, &must);
        }
    }
    if call.at_most.values().any(|most| *most < 0.0) {
        return refuse("at_most", "have no negative numbers");
    }
    if call.from.values().any(|tools| tools.len() > MAX_PLANNED_TOOLS || !tools.iter().all(is_tool))
    {
        let must = format!("have at most {MAX_PLANNED_TOOLS} tools each, as `server/tool`");
        return refuse("from", &must);
    }
    let mut arguments = Vec::with_capacity(call.arguments.len());
    for (pointer, values) in call.arguments {
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
    let (at_most, from) = (call.at_most.into_iter().collect(), call.from.into_iter().collect());
    Ok(PlannedCall { tool: call.tool, arguments, at_most, from })
}

/// A reported result, with the tool that returned it.
#[derive(Debug, PartialEq, Eq)]
pub struct Report {
    pub server: String,
    pub tool: String,
    pub result: ReportedResult,
}

/// The body of `POST /v1/runs/{run}/observations`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReportResult)]
pub struct ReportRequest {
    server: Name,
    tool: ToolName,
    /// The decision on the call.
    #[serde(default)]
    #[schema(value_type = String, max_length = 128, required = false)]
    decision_id: Option<String>,
    /// The result: a text, or any JSON.
    #[schema(value_type = serde_json::Value)]
    result: Box<RawValue>,
}

/// Reads the body of `POST /v1/runs/{run}/observations`. The result keeps its bytes: it may have numbers
/// that arguments must not have.
///
/// # Errors
///
/// `body_too_large`, `malformed_request` or `invalid_field`.
pub fn parse_report(body: &[u8]) -> Result<Report, Problem> {
    within_bound(body)?;
    let body = json::utf8(body)?;
    serde_json::from_str::<IgnoredAny>(body).map_err(|error| {
        let detail = format!("the body is not JSON: {error}");
        Problem::new(ProblemCode::MalformedRequest, detail)
    })?;
    let request: ReportRequest = parse_within("", body)?;
    let decision_id = request.decision_id.unwrap_or_default();
    if decision_id.len() > MAX_REQUEST_ID_BYTES {
        return Err(Problem::field("decision_id", "`decision_id` must be a decision's id"));
    }
    let result = request.result.get();
    let text = serde_json::from_str(result).unwrap_or_else(|_| result.to_owned());
    Ok(Report {
        server: request.server.to_string(),
        tool: request.tool.to_string(),
        result: ReportedResult { decision_id, text },
    })
}

fn within_bound(body: &[u8]) -> Result<(), Problem> {
    if body.len() <= MAX_BODY_BYTES {
        return Ok(());
    }
    let detail = format!("the body must have at most {MAX_BODY_BYTES} bytes");
    Err(Problem::new(ProblemCode::BodyTooLarge, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(result: Result<impl Sized, Problem>) -> String {
        match result {
            Ok(_) => "ok".to_owned(),
            Err(problem) => match problem.field {
                Some(field) => field,
                None => problem.code.code().to_owned(),
            },
        }
    }

    #[test]
    fn the_start_of_a_run_is_read() {
        let body = br#"{"run_id":"r","instruction":"pay","expires_in_s":60,"plan":[
            {"tool":"bank/pay","arguments":{"/to":["a",5],"/amount":10},"at_most":{"/amount":12.5},
            "from":{"/iban":["bank/list"]}},{"tool":"bank/list"}]}"#;
        let text = |text: &str| Json::String(text.to_owned());
        let pay = vec![
            ("/amount".to_owned(), vec![Json::Integer(10)]),
            ("/to".to_owned(), vec![text("a"), Json::Integer(5)]),
        ];
        let expected = NewRun {
            run_id: Some("r".to_owned()),
            start: RunStart {
                instruction: "pay".to_owned(),
                plan: vec![
                    PlannedCall {
                        tool: "bank/pay".to_owned(),
                        arguments: pay,
                        at_most: vec![("/amount".to_owned(), 12.5)],
                        from: vec![("/iban".to_owned(), vec!["bank/list".to_owned()])],
                    },
                    PlannedCall { tool: "bank/list".to_owned(), ..PlannedCall::default() },
                ],
                issues_credential: true,
            },
            expires_in_s: 60,
        };
        assert_eq!(parse_start(body), Ok(expected));
        let shortest = parse_start(br#"{"instruction":"pay"}"#).unwrap();
        assert_eq!((shortest.run_id, shortest.expires_in_s), (None, 3_600));
    }

    #[test]
    fn a_start_that_is_not_valid_names_the_field() {
        let long = "x".repeat(MAX_INSTRUCTION_BYTES + 1);
        let calls = |calls: usize| {
            let plan = vec![r#"{"tool":"s/t"}"#; calls].join(",");
            format!(r#"{{"instruction":"i","plan":[{plan}]}}"#)
        };
        let arguments = |count: usize| {
            let arguments: Vec<String> = (0..count).map(|at| format!(r#""/{at}":1"#)).collect();
            format!(
                r#"{{"instruction":"i","plan":[{{"tool":"s/t","arguments":{{{}}}}}]}}"#,
                arguments.join(",")
            )
        };
        let values = |count: usize| {
            let values = vec!["1"; count].join(",");
            format!(
                r#"{{"instruction":"i","plan":[{{"tool":"s/t","arguments":{{"/a":[{values}]}}}}]}}"#
            )
        };
        let pointer = |pointer: &str| {
            format!(
                r#"{{"instruction":"i","plan":[{{"tool":"s/t","arguments":{{"{pointer}":1}}}}]}}"#
            )
        };
        let from = |pointer: &str, count: usize, tool: &str| {
            let tools = vec![format!("{tool:?}"); count].join(",");
            format!(
                r#"{{"instruction":"i","plan":[{{"tool":"s/t","from":{{"{pointer}":[{tools}]}}}}]}}"#
            )
        };
        let most = |pointer: &str, most: &str| {
            format!(
                r#"{{"instruction":"i","plan":[{{"tool":"s/t","at_most":{{"{pointer}":{most}}}}}]}}"#
            )
        };
        for (body, expected) in [
            ("{".to_owned(), "malformed_request"),
            ("{}".to_owned(), "instruction"),
            (r#"{"instruction":""}"#.to_owned(), "instruction"),
            (r#"{"instruction":5}"#.to_owned(), "instruction"),
            (format!(r#"{{"instruction":"{}"}}"#, &long[1..]), "ok"),
            (format!(r#"{{"instruction":"{long}"}}"#), "instruction"),
            (r#"{"instruction":"i","run_id":""}"#.to_owned(), "run_id"),
            (r#"{"instruction":"i","run_id":null}"#.to_owned(), "ok"),
            (r#"{"instruction":"i","expires_in_s":59}"#.to_owned(), "expires_in_s"),
            (r#"{"instruction":"i","expires_in_s":86401}"#.to_owned(), "expires_in_s"),
            (r#"{"instruction":"i","other":1}"#.to_owned(), "other"),
            (r#"{"instruction":"i","instruction":"j"}"#.to_owned(), "input_invalid"),
            (r#"{"instruction":"i","plan":[{"tool":"t"}]}"#.to_owned(), "plan[0].tool"),
            (calls(MAX_PLANNED_CALLS), "ok"),
            (calls(MAX_PLANNED_CALLS + 1), "plan"),
            (arguments(MAX_PLANNED_ARGUMENTS), "ok"),
            (arguments(MAX_PLANNED_ARGUMENTS + 1), "plan[0].arguments"),
            (values(MAX_PLANNED_VALUES), "ok"),
            (values(MAX_PLANNED_VALUES + 1), "plan[0].arguments"),
            (most("/a", "0"), "ok"),
            (most("/a", "-1"), "plan[0].at_most"),
            (most("a", "1"), "plan[0].at_most"),
            (most("/a", "1e999"), "malformed_request"),
            (most("/a", r#""1""#), "plan[0].at_most./a"),
            (from("/a", MAX_PLANNED_TOOLS, "s/t"), "ok"),
            (from("/a", MAX_PLANNED_TOOLS + 1, "s/t"), "plan[0].from"),
            (from("/a", 1, "t"), "plan[0].from"),
            (from("a", 1, "s/t"), "plan[0].from"),
            (pointer(""), "plan[0].arguments"),
            (pointer("a"), "plan[0].arguments"),
            (pointer(&format!("/{}", "a".repeat(MAX_POINTER_BYTES))), "plan[0].arguments"),
            (" ".repeat(MAX_BODY_BYTES + 1), "body_too_large"),
        ] {
            let shown: String = body.chars().take(80).collect();
            assert_eq!(code(parse_start(body.as_bytes())), expected, "{shown}");
        }
    }

    #[test]
    fn a_reported_result_keeps_its_bytes() {
        for (body, expected) in [
            (r#"{"server":"s","tool":"t","result":"a\nb"}"#, Ok(("", "a\nb"))),
            (
                r#"{"server":"s","tool":"t","decision_id":"d","result":{"n": 12345678901234567890}}"#,
                Ok(("d", r#"{"n": 12345678901234567890}"#)),
            ),
            (r#"{"server":"s","tool":"t","decision_id":null,"result":null}"#, Ok(("", "null"))),
            (r#"{"server":"s","tool":"t"}"#, Err("result")),
            (r#"{"server":"S","tool":"t","result":1}"#, Err("server")),
            (r#"{"server":"s","tool":"","result":1}"#, Err("tool")),
            (r#"{"server":"s","tool":"t","decision_id":5,"result":1}"#, Err("decision_id")),
            (r#"{"server":"s","tool":"t","result":1,"x":1}"#, Err("x")),
            (r#"{"server":"s","tool":"t","result":1,"result":2}"#, Err(".")),
            ("{", Err("malformed_request")),
            ("[]", Err(".")),
        ] {
            let report = parse_report(body.as_bytes());
            let expected = expected.map(|(decision_id, text)| Report {
                server: "s".to_owned(),
                tool: "t".to_owned(),
                result: ReportedResult {
                    decision_id: decision_id.to_owned(),
                    text: text.to_owned(),
                },
            });
            match expected {
                Ok(expected) => assert_eq!(report, Ok(expected), "{body}"),
                Err(expected) => assert_eq!(code(report), expected, "{body}"),
            }
        }
    }

    #[test]
    fn a_run_credential_fixes_the_run_and_names_no_user() {
        for (claims, expected) in [
            (["", "", ""], "ok"),
            (["r", "", ""], "ok"),
            (["s", "", ""], "malformed_request"),
            (["r", "u", ""], "malformed_request"),
            (["", "", "v"], "malformed_request"),
        ] {
            assert_eq!(code(fix("r", claims)), expected, "{claims:?}");
        }
    }
}
