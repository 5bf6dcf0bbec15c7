//! The response to a call that is not forwarded.
//!
//! A client shows a tool's result to the model, but may hide a protocol error from it. So a denied call
//! gets a result, unless the server is registered with errors as the form of a denial. A call whose
//! arguments do not match the schema always gets a result, as the specification requires (SEP-1303):
//! the model can correct the arguments. Messages that do not call a tool get errors.

use serde::Serialize;

use super::error::{
    DENIED, HEADER_MISMATCH, INVALID_PARAMS, RpcError, WARRANT_APPROVAL, WARRANT_DENIED, own_code,
};
use super::jsonrpc;
use super::{Era, META_PREFIX};
use crate::decision::{Decision, ReasonCode};
use crate::gate::proxy::ProxyDecision;
use crate::json::raw::RawObject;
use crate::limit::{Amount, Kind, Violation};
use crate::problem::{Problem, ProblemCode};
use crate::registry::upstream::DenialForm;

/// The reason codes of arguments that the model can correct: they do not match the tool's schema, or are
/// ambiguous.
const INPUT_ERRORS: [ReasonCode; 2] = [ReasonCode::InputSchemaMismatch, ReasonCode::InputInvalid];

/// The advice on a limit that lets the call pass at a later time.
const AT_THE_TIME: &str = "Asking for approval would not help. Make the call again only at the time that is named, if \
                           one is.";

const CORRECT_THE_ARGUMENTS: &str =
    "Asking for approval would not help. Correct the arguments and make the call again.";

/// The result of a call, as the specification defines it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallToolResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<&'static str>,
    content: [TextContent; 1],
    is_error: bool,
    #[serde(rename = "_meta")]
    meta: RawObject,
}

#[derive(Serialize)]
struct TextContent {
    r#type: &'static str,
    text: String,
}

/// The response to a call of `what` that is not allowed: its HTTP status and body.
#[must_use]
pub fn answer(
    decision: &ProxyDecision,
    what: &str,
    form: DenialForm,
    era: Era,
    id: &str,
) -> (u16, String) {
    let reason_code = decision.reason_code;
    let as_registered = form == DenialForm::Error && !INPUT_ERRORS.contains(&reason_code);
    // A client that sends a warrant acts on the code of an error.
    if as_registered || reason_code == ReasonCode::HeaderMismatch || reason_code.is_about_warrant()
    {
        let error = error(decision, what);
        return (error.status, error.with_id(Some(id)).body(era));
    }
    let result = CallToolResult {
        result_type: (era == Era::Stateless).then_some("complete"),
        content: [TextContent { r#type: "text", text: text(decision, what) }],
        is_error: true,
        meta: meta(decision),
    };
    (200, jsonrpc::response(jsonrpc::id(id), &result))
}

/// The response to a call of `what` that ran, and whose result is withheld.
#[must_use]
pub fn withheld(decision: &ProxyDecision, what: &str, why: &str, era: Era, id: &str) -> String {
    let mut meta = meta(decision);
    meta.set(&[META_PREFIX, "result_blocked"].concat(), &true);
    let text = format!(
        "The call of {what} ran, but its result is withheld. {why} Repeating the call would run it again, and \
         asking for approval would not help."
    );
    let result = CallToolResult {
        result_type: (era == Era::Stateless).then_some("complete"),
        content: [TextContent { r#type: "text", text }],
        is_error: true,
        meta,
    };
    jsonrpc::response(jsonrpc::id(id), &result)
}

/// The response of [`answer`] as a JSON-RPC error.
#[must_use]
pub fn error(decision: &ProxyDecision, what: &str) -> RpcError {
    let error = match decision.reason_code {
        ReasonCode::HeaderMismatch => {
            let message = ["Header mismatch: ", &decision.reason].concat();
            RpcError::new(400, HEADER_MISMATCH, message)
        }
        code if INPUT_ERRORS.contains(&code) => {
            RpcError::in_band(INVALID_PARAMS, text(decision, what))
        }
        ReasonCode::WarrantApprovalMissing => {
            RpcError::in_band(WARRANT_APPROVAL, text(decision, what))
        }
        ReasonCode::WarrantMalformed => RpcError::in_band(INVALID_PARAMS, text(decision, what)),
        code if code.is_about_warrant() => RpcError::in_band(WARRANT_DENIED, text(decision, what)),
        _ => RpcError::in_band(DENIED, text(decision, what)),
    };
    let mut data = meta(decision);
    if let Some(approvals) = &decision.warrant_approvals {
        // Under the names that Tenuo's clients read. The counts are present only if there are approvals already: by
        // them, such clients tell the first request from a later one.
        data.set("request_hash", &approvals.request_hash);
        if approvals.got > 0 {
            data.set("got", &approvals.got);
            data.set("need", &approvals.need);
        }
    }
    error.with_data(&data)
}

/// The members of `_meta` that describe a decision.
#[must_use]
pub fn meta(decision: &ProxyDecision) -> RawObject {
    let own = |name: &str| [META_PREFIX, name].concat();
    let mut meta = RawObject::default();
    meta.set(&own("decision_id"), &decision.decision_id);
    meta.set(&own("decision"), &decision.decision);
    meta.set(&own("reason_code"), &decision.reason_code);
    meta.set(&own("policies"), &decision.matched_policies);
    if let Some(approval) = &decision.approval {
        meta.set(&own("approval_id"), &approval.approval_id);
        meta.set(&own("approval_expires_at"), &approval.expires_at);
    }
    if !decision.redacted_fields.is_empty() {
        meta.set(&own("redacted_fields"), &decision.redacted_fields);
    }
    if !decision.violated_limits.is_empty() {
        meta.set(&own("violated_limits"), &decision.violated_limits);
    }
    if let Some(mode) = &decision.engine_mode {
        meta.set(&own("engine_mode"), mode);
    }
    meta
}

/// Says what was denied, why, and what the model can do.
fn text(decision: &ProxyDecision, what: &str) -> String {
    let limit = decision.violated_limits.first();
    let used_up = || limit.is_some_and(|limit| limit.remaining == Some(Amount::ZERO));
    let advice = match (decision.decision, decision.reason_code) {
        (Decision::Quarantine, _) => {
            "The agent is now stopped: make no further calls, and tell the user.".to_owned()
        }
        (Decision::RequireApproval, _) | (_, ReasonCode::ApprovalPending) => {
            match &decision.approval {
                Some(approval) => format!(
                    "Approval {id} was requested; approvers have until {until} to decide. Once it is \
                 approved, make the same call again with `\"{META_PREFIX}approval_id\": \"{id}\"` in \
                 `_meta`. Until then, repeating the call does not help.",
                    id = approval.approval_id,
                    until = approval.expires_at,
                ),
                None => "It needs approval.".to_owned(),
            }
        }
        (
            _,
            ReasonCode::ApprovalUnknown
            | ReasonCode::ApprovalMismatch
            | ReasonCode::ApprovalInsufficient
            | ReasonCode::ApprovalExpired
            | ReasonCode::ApprovalUsed
            | ReasonCode::ApprovalCancelled,
        ) => "Make the call without an approval id to request another approval.".to_owned(),
        (_, ReasonCode::ApprovalsExhausted) => {
            "Use granted approvals or let open ones expire, then try again.".to_owned()
        }
        (
            _,
            ReasonCode::OutsideHours
            | ReasonCode::QuotaExhausted
            | ReasonCode::BudgetExhausted
            | ReasonCode::LimitUnavailable,
        ) => AT_THE_TIME.to_owned(),
        (_, ReasonCode::AmountExhausted) if used_up() => AT_THE_TIME.to_owned(),
        (_, ReasonCode::PerCallExceeded | ReasonCode::AmountExhausted) => {
            "Asking for approval would not help. A call with a number that is small enough can pass."
                .to_owned()
        }
        (_, ReasonCode::VelocityUnavailable) => {
            "Asking for approval would not help. Make the same call again a little later.".to_owned()
        }
        (_, ReasonCode::VelocityUnreadable) => CORRECT_THE_ARGUMENTS.to_owned(),
        // For the other kinds, this code means that the time zone is unknown.
        (_, ReasonCode::LimitUnreadable)
            if limit.is_some_and(|it| matches!(it.kind, Kind::PerCall | Kind::Amount)) =>
        {
            CORRECT_THE_ARGUMENTS.to_owned()
        }
        (
            _,
            ReasonCode::WarrantProofMissing
            | ReasonCode::WarrantProofInvalid
            | ReasonCode::WarrantProofUsed,
        ) => "The holder of the warrant must sign the call again.".to_owned(),
        (_, ReasonCode::WarrantApprovalMissing) => {
            "The approvers that the warrant names must sign the call.".to_owned()
        }
        (_, ReasonCode::WarrantRequired) => {
            "Asking for approval would not help. Make the call with a warrant.".to_owned()
        }
        (_, reason_code) if reason_code.is_about_warrant() => {
            "Asking for approval would not help. Only a call that the warrant names can pass; the issuer \
             of the warrant can issue another one."
                .to_owned()
        }
        (_, reason_code) if INPUT_ERRORS.contains(&reason_code) => {
            "Correct the arguments and make the call again.".to_owned()
        }
        _ => "Asking for approval would not help, and neither would repeating the call.".to_owned(),
    };
    let happened = if decision.decision == Decision::RequireApproval {
        "needs approval and"
    } else {
        "was denied and"
    };
    let reason = decision.reason.trim_end_matches('.');
    format!("The call of {what} {happened} did not run. {reason}. {advice}")
}

#[derive(Serialize)]
struct ProblemData<'a> {
    code: ProblemCode,
    request_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_s: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violated_limits: Option<[&'a Violation; 1]>,
}

/// A problem as a JSON-RPC error with the problem's status.
#[must_use]
pub fn problem(problem: &Problem, request_id: &str) -> RpcError {
    let (code, status) = (problem.code, problem.code.status());
    let limit = problem.violated_limit.as_deref();
    let title = match limit.map(|limit| limit.kind) {
        Some(Kind::Rate) => "Too many requests in a short time",
        Some(Kind::Concurrency) => "Too many calls at once",
        _ => code.title(),
    };
    let message = [title, ": ", &problem.detail].concat();
    let data = ProblemData {
        code,
        request_id,
        retry_after_s: problem.retry_after_s,
        violated_limits: limit.map(|limit| [limit]),
    };
    let number = match code {
        ProblemCode::WarrantRefused => WARRANT_DENIED,
        _ => own_code(status),
    };
    RpcError::new(status, number, message).with_data(&data)
}

#[cfg(test)]
mod tests;
