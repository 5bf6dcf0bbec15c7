//! What a model is told when a call does not go on.
//!
//! A model reads a tool's result; an error of the protocol, its client may keep to itself. So a call
//! that is denied has a result, unless the server is registered to have errors. Arguments that do not
//! match have a result in any case: the specification says so (SEP-1303), since the model can correct
//! them. What is no call of a tool has no such results, and gets errors.

use super::error::{DENIED, HEADER_MISMATCH, INVALID_PARAMS, RpcError, own_code};
use super::raw::{RawObject, array, quoted};
use super::{Era, META_PREFIX};
use crate::decision::{Decision, ReasonCode};
use crate::gate::proxy::ProxyDecision;
use crate::problem::Problem;
use crate::registry::upstream::DenialForm;

/// The reason codes of arguments that can be corrected: they do not match the tool's schema, or cannot
/// be read in one way only.
const INPUT_ERRORS: [ReasonCode; 2] = [ReasonCode::InputSchemaMismatch, ReasonCode::InputInvalid];

/// The answer to a call of `what` that was decided and does not go on: its HTTP status and body.
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
    if as_registered || reason_code == ReasonCode::HeaderMismatch {
        let error = error(decision, what);
        return (error.status, error.with_id(Some(id)).body(era));
    }
    let mut result = RawObject::default();
    if era == Era::Stateless {
        result.set_text("resultType", "complete");
    }
    let text = quoted(&text(decision, what));
    result.set("content", ["[{\"type\":\"text\",\"text\":", &text, "}]"].concat());
    result.set("isError", "true");
    result.set("_meta", meta(decision).write());
    let body = ["{\"jsonrpc\":\"2.0\",\"id\":", id, ",\"result\":", &result.write(), "}"].concat();
    (200, body)
}

/// The same as a JSON-RPC error.
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
        _ => RpcError::in_band(DENIED, text(decision, what)),
    };
    error.with_data(meta(decision).write())
}

/// What stands in `_meta` about a decision.
#[must_use]
pub fn meta(decision: &ProxyDecision) -> RawObject {
    let mut meta = RawObject::default();
    let mut set = |key: &str, json: String| meta.set(&[META_PREFIX, key].concat(), json);
    set("decision_id", quoted(&decision.decision_id));
    set("decision", quoted(decision.decision.as_str()));
    set("reason_code", quoted(decision.reason_code.code()));
    let texts = |texts: &[String]| array(&texts.iter().map(|t| quoted(t)).collect::<Vec<_>>());
    set("policies", texts(&decision.matched_policies));
    if let Some(approval) = &decision.approval {
        set("approval_id", quoted(&approval.approval_id));
        set("approval_expires_at", quoted(&approval.expires_at));
    }
    if !decision.redacted_fields.is_empty() {
        set("redacted_fields", texts(&decision.redacted_fields));
    }
    if let Some(mode) = &decision.engine_mode {
        set("engine_mode", quoted(mode));
    }
    meta
}

/// What was denied, why, and what can be done about it.
fn text(decision: &ProxyDecision, what: &str) -> String {
    let advice = match (decision.decision, decision.reason_code) {
        (Decision::Quarantine, _) => {
            "The agent is stopped now: make no further calls, and tell the user.".to_owned()
        }
        (Decision::RequireApproval, _) | (_, ReasonCode::ApprovalPending) => {
            match &decision.approval {
                Some(approval) => format!(
                    "Approval {id} is asked for; people have until {until} to decide. Once it is approved, \
                 make the same call again with `\"{META_PREFIX}approval_id\": \"{id}\"` in `_meta`. \
                 Until then, repeating the call does not help.",
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
        ) => "Making the call without an approval id asks for another approval.".to_owned(),
        (_, ReasonCode::ApprovalsExhausted) => {
            "Use approvals that were granted, or let open ones expire, and try again.".to_owned()
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

/// A problem as a JSON-RPC error with the problem's status.
#[must_use]
pub fn problem(problem: &Problem, request_id: &str) -> RpcError {
    let (code, status, title) = (problem.code.code(), problem.code.status(), problem.code.title());
    let mut data = RawObject::default();
    data.set_text("code", code);
    data.set_text("request_id", request_id);
    if let Some(seconds) = problem.retry_after_s {
        data.set("retry_after_s", seconds.to_string());
    }
    let message = [title, ": ", &problem.detail].concat();
    RpcError::new(status, own_code(status), message).with_data(data.write())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::proxy::ProxyApproval;
    use crate::problem::ProblemCode;

    fn decision(decision: Decision, reason_code: ReasonCode, approval: bool) -> ProxyDecision {
        ProxyDecision {
            decision_id: "d1".to_owned(),
            decision,
            reason: "Because.".to_owned(),
            reason_code,
            matched_policies: vec!["p".to_owned(), "q".to_owned()],
            redacted_fields: Vec::new(),
            approval: approval.then(|| ProxyApproval {
                approval_id: "a1".to_owned(),
                expires_at: "2026-01-01T00:00:00Z".to_owned(),
            }),
            receipt: None,
            engine_mode: None,
        }
    }

    #[test]
    fn a_model_reads_what_was_denied_why_and_what_would_help() {
        for (what, code, approval, expected) in [
            (
                Decision::Deny,
                ReasonCode::PolicyForbid,
                false,
                "The call of s/t was denied and did not run. Because. Asking for approval would not help, and neither would repeating the call.",
            ),
            (
                Decision::Deny,
                ReasonCode::ApprovalUsed,
                true,
                "The call of s/t was denied and did not run. Because. Making the call without an approval id asks for another approval.",
            ),
            (
                Decision::RequireApproval,
                ReasonCode::PolicyRequireApproval,
                true,
                "The call of s/t needs approval and did not run. Because. Approval a1 is asked for; people have until 2026-01-01T00:00:00Z to decide. Once it is approved, make the same call again with `\"dev.gateward/approval_id\": \"a1\"` in `_meta`. Until then, repeating the call does not help.",
            ),
            (
                Decision::Quarantine,
                ReasonCode::PolicyQuarantine,
                false,
                "The call of s/t was denied and did not run. Because. The agent is stopped now: make no further calls, and tell the user.",
            ),
        ] {
            let decision = decision(what, code, approval);
            assert_eq!(text(&decision, "s/t"), expected);
            let unended = ProxyDecision { reason: "Because".to_owned(), ..decision };
            assert_eq!(text(&unended, "s/t"), expected);
        }
    }

    #[test]
    fn a_denial_has_the_form_that_the_server_is_registered_with() {
        let denied = decision(Decision::Deny, ReasonCode::PolicyForbid, false);
        let of = |form, era| {
            let (status, body) = answer(&denied, "s/t", form, era, "7");
            assert_eq!(status, 200);
            body
        };
        let meta = r#"{"dev.gateward/decision_id":"d1","dev.gateward/decision":"deny","dev.gateward/reason_code":"policy_forbid","dev.gateward/policies":["p","q"]}"#;
        let text = quoted(&super::text(&denied, "s/t"));
        let result = format!(
            r#""content":[{{"type":"text","text":{text}}}],"isError":true,"_meta":{meta}}}}}"#
        );
        assert_eq!(
            of(DenialForm::Result, Era::Session),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{{result}"#)
        );
        assert_eq!(
            of(DenialForm::Result, Era::Stateless),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"resultType":"complete",{result}"#)
        );
        assert_eq!(
            of(DenialForm::Error, Era::Session),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-31403,"message":{text},"data":{meta}}}}}"#
            )
        );
    }

    #[test]
    fn arguments_to_correct_are_a_result_and_a_header_to_correct_is_an_error() {
        let corrected = r#""isError":true"#;
        let header = r#""error":{"code":-32020,"message":"Header mismatch: Because.""#;
        for (reason_code, status, expected) in [
            (ReasonCode::InputSchemaMismatch, 200, corrected),
            (ReasonCode::InputInvalid, 200, corrected),
            (ReasonCode::HeaderMismatch, 400, header),
        ] {
            let mismatch = decision(Decision::Deny, reason_code, false);
            for form in [DenialForm::Result, DenialForm::Error] {
                for era in [Era::Session, Era::Stateless] {
                    let (found, body) = answer(&mismatch, "s/t", form, era, "7");
                    assert_eq!(found, status, "{reason_code:?}");
                    assert!(body.contains(expected), "{body}");
                    let advice = body.contains("Correct the arguments and make the call again.");
                    assert_eq!(advice, expected == corrected, "{body}");
                }
            }
        }
    }

    #[test]
    fn a_problem_keeps_its_status_and_says_when_to_try_again() {
        let error = super::problem(&Problem::new(ProblemCode::LaneUnavailable, "try again"), "r1");
        assert_eq!((error.status, error.code), (503, -31_503));
        assert_eq!(error.message, "The lane cannot answer: try again");
        assert_eq!(
            error.data.unwrap(),
            r#"{"code":"lane_unavailable","request_id":"r1","retry_after_s":2}"#
        );
    }
}
