use super::*;
use crate::gate::proxy::ProxyApproval;
use crate::limit::violation::Why;
use crate::warrant::NeededApprovals;
use serde_json::{Value, json};

fn decision(decision: Decision, reason_code: ReasonCode, approval: bool) -> ProxyDecision {
    ProxyDecision {
        decision_id: "d1".to_owned(),
        decision,
        reason: "Because.".to_owned(),
        reason_code,
        matched_policies: vec!["p".to_owned(), "q".to_owned()],
        redacted_fields: Vec::new(),
        shield: Default::default(),
        violated_limits: Vec::new(),
        warrant_approvals: None,
        approval: approval.then(|| ProxyApproval {
            approval_id: "a1".to_owned(),
            expires_at: "2026-01-01T00:00:00Z".to_owned(),
        }),
        receipt: None,
        engine_mode: None,
    }
}

#[test]
fn a_denial_tells_the_model_what_was_denied_why_and_what_to_do() {
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
            "The call of s/t was denied and did not run. Because. Make the call without an approval id to request another approval.",
        ),
        (
            Decision::RequireApproval,
            ReasonCode::PolicyRequireApproval,
            true,
            "The call of s/t needs approval and did not run. Because. Approval a1 was requested; approvers have until 2026-01-01T00:00:00Z to decide. Once it is approved, make the same call again with `\"dev.gateward/approval_id\": \"a1\"` in `_meta`. Until then, repeating the call does not help.",
        ),
        (
            Decision::Deny,
            ReasonCode::QuotaExhausted,
            false,
            "The call of s/t was denied and did not run. Because. Asking for approval would not help. Make the call again only at the time that is named, if one is.",
        ),
        (
            Decision::Deny,
            ReasonCode::VelocityUnavailable,
            false,
            "The call of s/t was denied and did not run. Because. Asking for approval would not help. Make the same call again a little later.",
        ),
        (
            Decision::Deny,
            ReasonCode::VelocityUnreadable,
            false,
            "The call of s/t was denied and did not run. Because. Asking for approval would not help. Correct the arguments and make the call again.",
        ),
        (
            Decision::Deny,
            ReasonCode::AmountExhausted,
            false,
            "The call of s/t was denied and did not run. Because. Asking for approval would not help. A call with a number that is small enough can pass.",
        ),
        (
            Decision::Deny,
            ReasonCode::WarrantArgumentRefused,
            false,
            "The call of s/t was denied and did not run. Because. Asking for approval would not help. Only a call that the warrant names can pass; the issuer of the warrant can issue another one.",
        ),
        (
            Decision::Deny,
            ReasonCode::WarrantApprovalMissing,
            false,
            "The call of s/t was denied and did not run. Because. The approvers that the warrant names must sign the call.",
        ),
        (
            Decision::Deny,
            ReasonCode::WarrantRequired,
            false,
            "The call of s/t was denied and did not run. Because. Asking for approval would not help. Make the call with a warrant.",
        ),
        (
            Decision::Deny,
            ReasonCode::WarrantProofUsed,
            false,
            "The call of s/t was denied and did not run. Because. The holder of the warrant must sign the call again.",
        ),
        (
            Decision::Quarantine,
            ReasonCode::PolicyQuarantine,
            false,
            "The call of s/t was denied and did not run. Because. The agent is now stopped: make no further calls, and tell the user.",
        ),
    ] {
        let decision = decision(what, code, approval);
        assert_eq!(text(&decision, "s/t"), expected);
        let unended = ProxyDecision { reason: "Because".to_owned(), ..decision };
        assert_eq!(text(&unended, "s/t"), expected);
    }
}

fn violation(kind: Kind, remaining: Option<u64>) -> Violation {
    Violation {
        limit_id: "l".to_owned(),
        kind,
        why: Why::Exceeded,
        max: Some(Amount::whole(9)),
        window: None,
        window_s: None,
        remaining: remaining.map(Amount::whole),
        requested: None,
        retry_after_s: None,
        shared: false,
    }
}

/// The JSON of `violation(Kind::Amount, Some(0))`. Its members have the order that `/v1/authorize` has.
const OF_AMOUNT: &str = r#"[{"limit_id":"l","kind":"amount","why":"exceeded","max":"9","window":null,"window_s":null,"remaining":"0","requested":null,"retry_after_s":null}]"#;

#[test]
fn what_can_pass_depends_on_the_limit() {
    for (code, limit, expected) in [
        (
            ReasonCode::AmountExhausted,
            violation(Kind::Amount, Some(3)),
            "A call with a number that is small enough can pass.",
        ),
        (
            ReasonCode::AmountExhausted,
            violation(Kind::Amount, Some(0)),
            "Make the call again only at the time that is named, if one is.",
        ),
        (
            ReasonCode::LimitUnreadable,
            violation(Kind::PerCall, None),
            "Correct the arguments and make the call again.",
        ),
        (
            ReasonCode::LimitUnreadable,
            violation(Kind::Quota, None),
            "Asking for approval would not help, and neither would repeating the call.",
        ),
    ] {
        let violated_limits = vec![limit];
        let denied = ProxyDecision { violated_limits, ..decision(Decision::Deny, code, false) };
        let text = text(&denied, "s/t");
        assert!(text.ends_with(expected), "{text}");
    }
}

#[test]
fn a_refusal_because_of_a_limit_names_the_kind_and_has_the_limit() {
    for (kind, title) in [
        (Kind::Rate, "Too many requests in a short time: try again"),
        (Kind::Concurrency, "Too many calls at once: try again"),
    ] {
        let limit = violation(kind, None);
        let problem = Problem {
            violated_limit: Some(Box::new(limit.clone())),
            ..Problem::new(ProblemCode::RateLimited, "try again")
        };
        let error = super::problem(&problem, "r1");
        assert_eq!((error.status, error.code), (429, -31_429));
        assert_eq!(error.message, title);
        let data: Value = serde_json::from_str(error.data.unwrap().get()).unwrap();
        assert_eq!(data["violated_limits"], json!([limit]));
    }
}

#[test]
fn a_limits_denial_has_the_limit() {
    let denied = ProxyDecision {
        violated_limits: vec![violation(Kind::Amount, Some(0))],
        ..decision(Decision::Deny, ReasonCode::AmountExhausted, false)
    };
    let (_, body) = answer(&denied, "s/t", DenialForm::Result, Era::Stateless, "7");
    let member = format!(r#""dev.gateward/violated_limits":{OF_AMOUNT}"#);
    assert!(body.contains(&member), "{body}");
    let problem = denied.problem().to_json("r1");
    assert!(problem.contains(&format!(r#""violated_limits":{OF_AMOUNT}"#)), "{problem}");
    let read: Vec<Violation> = serde_json::from_str(OF_AMOUNT).unwrap();
    assert_eq!(read, denied.violated_limits);
}

#[test]
fn a_denial_for_want_of_approvals_has_the_request_hash_and_the_counts() {
    for (got, counts) in [(0, [Value::Null, Value::Null]), (1, [json!(1), json!(2)])] {
        let needed = NeededApprovals { request_hash: "ab".to_owned(), got, need: 2 };
        let denied = ProxyDecision {
            warrant_approvals: Some(needed),
            ..decision(Decision::Deny, ReasonCode::WarrantApprovalMissing, false)
        };
        let (status, body) = answer(&denied, "s/t", DenialForm::Result, Era::Stateless, "7");
        let body: Value = serde_json::from_str(&body).unwrap();
        let (code, data) = (&body["error"]["code"], &body["error"]["data"]);
        assert_eq!((status, code, &data["request_hash"]), (200, &json!(-32_002), &json!("ab")));
        assert_eq!([&data["got"], &data["need"]], counts.each_ref());
        assert_eq!(data["dev.gateward/reason_code"], "warrant_approval_missing");
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
    let text = serde_json::to_string(&super::text(&denied, "s/t")).unwrap();
    let result =
        format!(r#""content":[{{"type":"text","text":{text}}}],"isError":true,"_meta":{meta}}}}}"#);
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
fn wrong_arguments_are_a_result_and_a_wrong_header_is_an_error() {
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
fn a_problem_keeps_its_status_and_retry_time() {
    let error = super::problem(&Problem::new(ProblemCode::LaneUnavailable, "try again"), "r1");
    assert_eq!((error.status, error.code), (503, -31_503));
    assert_eq!(error.message, "The lane is unavailable: try again");
    assert_eq!(
        error.data.unwrap().get(),
        r#"{"code":"lane_unavailable","request_id":"r1","retry_after_s":2}"#
    );
}
