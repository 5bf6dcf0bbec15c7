//! Shows a decision to a person: the call, the decision, the reasons, and the outcome. Pure; `run`
//! reads the records.

use gateward_core::decision::Decision;
use serde_json::Value;

use crate::approval;
use crate::chain::{stored, verify_one};
use crate::provenance;
use crate::request::Request;
use crate::section::{field, one, printable_lines, row, section, text_section};
use crate::table::printable;

/// The id of the decision's own receipt. `None` if it has none.
pub fn receipt(decision: &Value) -> Option<Request> {
    let id = decision.pointer("/response/receipt/receipt_id")?.as_str()?;
    Some(Request::get(&["receipts", id]))
}

/// The approval that the decision requested, or that the call presented.
pub fn approval(decision: &Value) -> Option<Request> {
    let id = decision.pointer("/response/approval/approval_id")?.as_str()?;
    Some(Request::get(&["approvals", id]))
}

/// The page. `receipt` is the decision's receipt in the API's own text, and `approval` is the
/// record. Either is missing if the credential cannot read it.
pub fn shown(decision: &Value, receipt: Option<&str>, approval: Option<&Value>) -> String {
    let null = Value::Null;
    let response = decision.get("response").unwrap_or(&null);
    let body: Value = receipt
        .and_then(|receipt| serde_json::from_str::<Value>(receipt).ok())
        .and_then(|mut receipt| receipt.get_mut("body").map(Value::take))
        .unwrap_or_default();
    let [id, what, code] =
        ["decision_id", "decision", "reason_code"].map(|name| one(decision, name));
    let mut parts = vec![format!("{id}: {what} ({code})\n{}", one(response, "reason"))];
    parts.push(call(decision, response, &body));
    parts.push(trust(response, &body));
    let origins = response.get("provenance");
    parts.extend(provenance::origins(origins, approval.and_then(|it| arguments(it, &body))));
    parts.push(policies(decision, response));
    parts.extend(obligations(&body));
    parts.extend(approved(response, approval));
    parts.push(outcome(decision));
    parts.push(sealed(response, receipt));
    parts.join("\n\n")
}

fn call(decision: &Value, response: &Value, body: &Value) -> String {
    let call = format!("{}/{}", one(decision, "server"), one(decision, "tool"));
    let mut rows = vec![field(decision, "at"), field(decision, "agent"), row("call", call)];
    let names = ["resource", "user", "run", "key_id", "action_hash"];
    let known =
        |name: &&str| body.get(*name).and_then(Value::as_str).is_some_and(|it| !it.is_empty());
    rows.extend(names.into_iter().filter(known).map(|name| field(body, name)));
    if response.get("trace_id").is_some() {
        rows.push(field(response, "trace_id"));
    }
    section("The call", &rows)
}

/// The arguments of the call, while its approval has them. A call may present an approval for another call.
fn arguments<'a>(approval: &'a Value, body: &Value) -> Option<&'a Value> {
    let hash = body.get("action_hash").filter(|hash| hash.is_string())?;
    let of_call = |call: &&Value| call.get("action_hash") == Some(hash);
    let edited = approval.get("edited").filter(of_call);
    edited.or_else(|| Some(approval).filter(of_call))?.get("input").filter(|it| it.is_object())
}

/// The trust that the call claimed, the trust that counted, and why.
fn trust(response: &Value, body: &Value) -> String {
    let Some(trust) = response.get("trust") else {
        // Decisions from before claims were recorded.
        return section("Trust", &[row("effective", one(body, "trust"))]);
    };
    let why = match trust.get("lowered_by").and_then(Value::as_str) {
        None => "the claim counts",
        Some("credential") => "the credential's highest trust is lower than the claim",
        Some("signature") => "only a signed request can claim this",
        Some("taint") => "text of an untrusted server reached the agent",
        Some(_) => "lowered for a reason that this version of gateward does not know",
    };
    section(
        "Trust",
        &[row("claim", one(trust, "claimed")), field(trust, "effective"), row("why", why)],
    )
}

/// The policies that determined the decision, with their texts.
fn policies(decision: &Value, response: &Value) -> String {
    let list = decision.get("policies").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        return text_section("Policies", "no policy determined this decision");
    }
    let texts = list.iter().map(|policy| {
        let text = match policy.get("text").and_then(Value::as_str) {
            Some(text) => printable_lines(text),
            None => format!("its text is not known: bundle {} decided", one(response, "bundle")),
        };
        text_section(&one(policy, "policy_id"), &text)
    });
    text_section("Policies", &texts.collect::<Vec<_>>().join("\n"))
}

/// What must happen before the call passes, or what was removed from it.
fn obligations(body: &Value) -> Option<String> {
    let list = |name: &str| body.pointer(&format!("/obligations/{name}"))?.as_array();
    let groups = list("approver_groups").into_iter().flatten();
    let approvers = groups.map(|needed| {
        row(format!("approvals by `{}`", one(needed, "group")), one(needed, "quorum"))
    });
    let fields = list("redact_fields").into_iter().flatten().filter_map(Value::as_str);
    let removed = fields.map(|field| row("removed from the arguments", printable(field)));
    let rows: Vec<_> = approvers.chain(removed).collect();
    (!rows.is_empty()).then(|| section("Obligations: what the decision requires", &rows))
}

fn approved(response: &Value, approval: Option<&Value>) -> Option<String> {
    let known = response.get("approval").filter(|approval| approval.is_object())?;
    let Some(approval) = approval else {
        let names = ["approval_id", "approver_group", "status", "expires_at"];
        return Some(section(
            "Approval, as the answer had it",
            &names.map(|name| field(known, name)),
        ));
    };
    let rows = ["approval_id", "status", "expires_at", "used_by", "comment"];
    let present = |name: &&str| !approval.get(*name).is_none_or(Value::is_null);
    let rows: Vec<_> = rows.into_iter().filter(present).map(|name| field(approval, name)).collect();
    Some(format!("{}\n{}", section("Approval", &rows), indented(&approval::approvers(approval))))
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

fn outcome(decision: &Value) -> String {
    let Some(outcome) = decision.get("outcome").filter(|outcome| outcome.is_object()) else {
        let decided = decision.get("decision").and_then(Value::as_str).and_then(Decision::parse);
        let text = match decided.is_some_and(Decision::passes) {
            true => "Gateward did not forward the call, or it has not ended",
            false => "the call did not pass",
        };
        return text_section("Outcome", text);
    };
    let names = ["ending", "status", "bytes", "duration_ms", "at", "result_sha256", "receipt_id"];
    section("Outcome", &names.map(|name| field(outcome, name)))
}

fn sealed(response: &Value, receipt: Option<&str>) -> String {
    let null = Value::Null;
    let known = response.get("receipt").unwrap_or(&null);
    let names = ["receipt_id", "receipt_hash", "prev_receipt_hash"];
    let mut rows: Vec<_> = names.iter().map(|name| field(known, name)).collect();
    let verified = match receipt
        .map(|receipt| stored(receipt).map(|receipt| (verify_one(&receipt), receipt)))
    {
        None => "not verified: this credential cannot read it".to_owned(),
        Some(Err(failure)) => failure.to_string(),
        Some(Ok((Err(problem), _))) => format!("NOT VALID: {problem}"),
        Some(Ok((Ok(()), receipt))) if one(known, "receipt_hash") != receipt.receipt_hash => {
            "NOT VALID: it is not the receipt in the answer to the call".to_owned()
        }
        Some(Ok((Ok(()), _))) => {
            "valid: computed on this machine, and equal (`gateward receipts verify` checks the chain)".to_owned()
        }
    };
    rows.push(row("hash", verified));
    section("Receipt", &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn decision() -> Value {
        json!({
            "decision_id": "d1", "at": "T1", "agent": "coder", "server": "crm", "tool": "refund",
            "decision": "require_approval", "reason_code": "policy_require_approval",
            "response": {
                "reason": "A refund\nof more than 500.", "bundle": "b1",
                "trust": {"claimed": "trusted_internal_signed", "effective": "semi_trusted_customer",
                    "lowered_by": "credential"},
                "approval": {"approval_id": "appr_0_3", "approver_group": "finance",
                    "status": "pending", "expires_at": "T9", "action_hash": "aa"},
                "receipt": {"receipt_id": "rcpt_0_3", "receipt_hash": "hh", "prev_receipt_hash": "pp"},
            },
            "policies": [
                {"policy_id": "demo#refunds", "text": "@id(\"refunds\")\npermit (\u{1b}[2Jprincipal);"},
                {"policy_id": "demo#old", "text": null},
            ],
            "outcome": null,
        })
    }

    fn receipt() -> String {
        json!({
            "seq": 3, "receipt_hash": "hh", "prev_receipt_hash": "pp",
            "body": {"action_hash": "aa", "key_id": "k1", "resource": "", "run": "run-1", "user": "",
                "trust": "semi_trusted_customer", "obligations": {
                    "approver_groups": [{"group": "finance", "quorum": 2}],
                    "redact_fields": ["note"]}},
        })
        .to_string()
    }

    #[test]
    fn the_page_says_what_was_asked_decided_and_why() {
        let approval = json!({
            "approval_id": "appr_0_3", "status": "approved", "expires_at": "T9", "used_by": null,
            "comment": "ok", "approver_groups": [{"group": "finance", "quorum": 2}],
            "approvers": [{"administrator": "mara", "groups": ["finance"], "at": "T2"}],
        });
        let text = shown(&decision(), Some(&receipt()), Some(&approval));
        let expected = "\
d1: require_approval (policy_require_approval)
A refund\\nof more than 500.

The call
  at           T1
  agent        coder
  call         crm/refund
  run          run-1
  key_id       k1
  action_hash  aa

Trust
  claim      trusted_internal_signed
  effective  semi_trusted_customer
  why        the credential's highest trust is lower than the claim

Policies
  demo#refunds
    @id(\"refunds\")
    permit (\\u{1b}[2Jprincipal);
  demo#old
    its text is not known: bundle b1 decided

Obligations: what the decision requires
  approvals by `finance`      2
  removed from the arguments  note

Approval
  approval_id  appr_0_3
  status       approved
  expires_at   T9
  comment      ok
  Who must approve
    finance  1 of 2: mara (T2)

Outcome
  the call did not pass

Receipt
  receipt_id         rcpt_0_3
  receipt_hash       hh
  prev_receipt_hash  pp
  hash               NOT VALID: ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn what_a_credential_cannot_read_is_said_to_be_missing() {
        let text = shown(&decision(), None, None);
        for part in [
            "Approval, as the answer had it\n  approval_id     appr_0_3\n  approver_group  finance",
            "not verified: this credential cannot read it",
        ] {
            assert!(text.contains(part), "{part}\nis not in\n{text}");
        }
        assert!(!text.contains("Obligations"), "{text}");
    }

    #[test]
    fn where_destinations_come_from_is_shown_with_values_if_the_approval_is_for_this_call() {
        let mut decision = decision();
        decision["response"]["provenance"] = json!({
            "instruction_known": true, "lowest": "nowhere", "reach": "outside",
            "sinks": [{"level": "nowhere", "sink": "/to"}],
        });
        let of = |hash: &str, to: &str| json!({"action_hash": hash, "input": {"to": to}});
        let with = |edited: Value, mut asked: Value| {
            asked["edited"] = edited;
            Some(asked)
        };
        for (what, approval, expected) in [
            ("call that was asked for", with(Value::Null, of("aa", "ada")), "\"ada\"\n"),
            ("edited call", with(of("aa", "ada"), of("bb", "eve")), "\"ada\"\n"),
            ("another call", with(Value::Null, of("bb", "eve")), ""),
            ("closed approval", with(Value::Null, json!({"action_hash": "aa", "input": null})), ""),
            ("no approval", None, ""),
        ] {
            let text = shown(&decision, Some(&receipt()), approval.as_ref());
            let indent = if expected.is_empty() { "" } else { "           " };
            let expected = format!(
                "\n\nWhere its destinations come from\n  reaches  outside\n  /to      {expected}{indent}\
                 seen in no result; the instruction does not name it\n\nPolicies"
            );
            assert!(text.contains(&expected), "{what}: {text}");
        }
    }

    #[test]
    fn what_became_of_a_call_is_shown() {
        let mut allowed = decision();
        allowed["decision"] = json!("allow");
        assert!(
            shown(&allowed, None, None).contains("did not forward the call, or it has not ended")
        );
        allowed["outcome"] = json!({"ending": "timed_out", "status": 0, "bytes": 0,
            "duration_ms": 30000, "at": "T5", "result_sha256": "", "receipt_id": "rcpt_0_4"});
        let text = shown(&allowed, None, None);
        assert!(text.contains("Outcome\n  ending         timed_out\n  status         0"), "{text}");
    }
}
