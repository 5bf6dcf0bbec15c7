//! Shows an approval to a person, and makes the decision on exactly what was shown. Pure; `run`
//! reads, shows and sends.

use serde_json::Value;

use crate::failure::Failure;
use crate::provenance;
use crate::request::{Fields, Request};
use crate::section::{field, one, printable_lines, row, section};
use crate::table::beside;

#[derive(Debug, PartialEq)]
pub enum Verdict {
    Approve { edit: Option<Value> },
    Reject,
    Cancel,
}

#[derive(Debug, PartialEq)]
pub struct Decide {
    pub approval_id: String,
    pub verdict: Verdict,
    pub comment: Option<String>,
    /// Overrides the revision that is read.
    pub revision: Option<u64>,
}

impl Decide {
    pub fn read(&self) -> Request {
        Request::get(&["approvals", &self.approval_id])
    }

    /// The decision on the approval as it was read. If it has changed since, the decision is
    /// refused.
    pub fn request(&self, approval: &Value) -> Result<Request, Failure> {
        let unreadable = || Failure::other("the answer is not an approval");
        let read = approval.get("revision").and_then(Value::as_u64).ok_or_else(unreadable)?;
        let mut fields = Fields::new().with("comment", self.comment.as_deref());
        let action = match &self.verdict {
            Verdict::Approve { .. } if is_edited(approval) && self.revision.is_none() => {
                // Nobody has seen the edited call yet.
                let id = &self.approval_id;
                let advice = format!(
                    "look at it with `gateward approvals show {id}`, then pass its revision with `--if-match`"
                );
                return Err(Failure::Usage(format!("the call was edited: {advice}")));
            }
            Verdict::Approve { edit } => {
                let hash = good_hash(approval).ok_or_else(unreadable)?;
                fields = fields.with("action_hash", Some(hash)).with("edit", edit.clone());
                "approve"
            }
            Verdict::Reject => "reject",
            Verdict::Cancel => "cancel",
        };
        let request = Request::post(&["approvals", &self.approval_id, action]).body(fields);
        Ok(request.if_match(Some(self.revision.unwrap_or(read))))
    }
}

/// The hash of the valid call: the edited one, if an approver edited it.
fn good_hash(approval: &Value) -> Option<&str> {
    let edited = approval.pointer("/edited/action_hash");
    edited.or_else(|| approval.get("action_hash"))?.as_str()
}

/// Everything that a person needs to decide.
pub fn shown(approval: &Value) -> String {
    let of_edited = |name| one(approval.get("edited").unwrap_or(&Value::Null), name);
    let call = format!("{}/{}", one(approval, "server"), one(approval, "tool"));
    let mut what = vec![row("call", call), field(approval, "resource")];
    what.push(field(approval, "action_hash"));
    if is_edited(approval) {
        what.push(row("edited by", of_edited("by")));
        what.push(row("edited action_hash", of_edited("action_hash")));
    }
    let mut who =
        ["agent", "user_id", "run_id", "source_trust"].map(|name| field(approval, name)).to_vec();
    if let Some(warrant) = approval.get("warrant").filter(|warrant| warrant.is_object()) {
        who.extend(
            [("warrant", "id"), ("holder", "holder")].map(|(name, of)| row(name, one(warrant, of))),
        );
    }
    let mut parts = vec![
        title(approval),
        section("Who asks", &who),
        section("What", &what),
        arguments(approval),
    ];
    // Of the call that was asked for, whether or not it was edited.
    parts.extend(provenance::origins(approval.get("provenance"), approval.get("input")));
    parts.push(section("Why", &why(approval)));
    parts.push(approvers(approval));
    parts.push(section("History", &times(approval)));
    parts.join("\n\n")
}

/// What the policies say and, if the call waits because of taint, the source of the taint.
fn why(approval: &Value) -> Vec<(String, String)> {
    let mut rows = ["reason", "matched_policies"].map(|name| field(approval, name)).to_vec();
    let Some(taint) = approval.get("taint").filter(|taint| taint.is_object()) else { return rows };
    rows.push(row("tainted by", one(taint, "servers")));
    rows.push(row("tainted since", one(taint, "since")));
    if let Some(call) = taint.get("call") {
        let [server, tool, decision_id] =
            ["server", "tool", "decision_id"].map(|name| one(call, name));
        rows.push(row("latest call there", format!("{server}/{tool}, decision {decision_id}")));
    }
    rows.push(row("taint ends at", one(taint, "ends_at")));
    rows
}

/// The result of a decision, with the arguments if the decision edited them.
pub fn decided(approval: &Value, edited: bool) -> String {
    let mut title = title(approval);
    if approval.get("already_decided").and_then(Value::as_bool) == Some(true) {
        title.push_str("; you had decided this before, and it counts once");
    }
    let mut parts = vec![title];
    if edited {
        parts.push(arguments(approval));
    }
    parts.push(approvers(approval));
    parts.push(section("History", &times(approval)));
    parts.join("\n\n")
}

fn title(approval: &Value) -> String {
    let [id, status, revision] =
        ["approval_id", "status", "revision"].map(|name| one(approval, name));
    format!("{id}: {status}, revision {revision}")
}

/// The arguments, and next to them the edited ones, if an approver edited them.
fn arguments(approval: &Value) -> String {
    let asked = ("Arguments".to_owned(), indented(approval.get("input")));
    if !is_edited(approval) {
        return beside(&[asked]);
    }
    let edited = indented(approval.pointer("/edited/input"));
    beside(&[asked, ("Edited arguments (only these are valid)".to_owned(), edited)])
}

fn is_edited(approval: &Value) -> bool {
    approval.get("edited").is_some_and(Value::is_object)
}

fn indented(input: Option<&Value>) -> String {
    match input {
        None | Some(Value::Null) => "deleted, because the approval is closed".to_owned(),
        Some(input) => printable_lines(&format!("{input:#}")),
    }
}

/// For each group that must approve: how many have approved, how many must, and who.
pub fn approvers(approval: &Value) -> String {
    let list = |name| approval.get(name).and_then(Value::as_array).into_iter().flatten();
    let rows = list("approver_groups").map(|needed| {
        let group = needed.get("group");
        let of_group = |approver: &&Value| {
            let groups = approver.get("groups").and_then(Value::as_array);
            groups.into_iter().flatten().any(|one| Some(one) == group)
        };
        let people = list("approvers").filter(of_group).map(|one_of_them| {
            let [name, at] = ["administrator", "at"].map(|name| one(one_of_them, name));
            format!("{name} ({at})")
        });
        let people: Vec<_> = people.collect();
        let mut text = format!("{} of {}", people.len(), one(needed, "quorum"));
        if !people.is_empty() {
            text.push_str(": ");
            text.push_str(&people.join(", "));
        }
        row(one(needed, "group"), text)
    });
    section("Who must approve", &rows.collect::<Vec<_>>())
}

/// When it was requested, when it expires, and what happened to it so far.
fn times(approval: &Value) -> Vec<(String, String)> {
    let mut rows = vec![field(approval, "created_at"), field(approval, "expires_at")];
    for name in ["approved_at", "closed_at", "closed_by", "used_by", "comment"] {
        if approval.get(name).is_some_and(Value::is_string) {
            rows.push(field(approval, name));
        }
    }
    if approval.get("tampering").and_then(Value::as_u64).is_some_and(|count| count > 0) {
        rows.push(row("used with another call", one(approval, "tampering")));
    }
    rows.push(field(approval, "decision_id"));
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pending() -> Value {
        json!({
            "approval_id": "appr_0_3", "status": "pending", "revision": 1, "decision_id": "d1",
            "agent": "coder", "server": "crm", "tool": "refund", "resource": "", "user_id": "u7",
            "run_id": "run-1", "source_trust": "semi_trusted_customer",
            "reason": "A refund of more than 500.", "matched_policies": ["a#b", "c#d"],
            "approver_groups": [{"group": "finance", "quorum": 2}, {"group": "security", "quorum": 1}],
            "approvers": [{"administrator": "mara", "groups": ["finance"], "at": "T2"}],
            "action_hash": "aa", "input": {"amount": 700, "to": "ad\u{202e}a"}, "edited": null,
            "closed_by": null, "comment": null, "tampering": 0, "used_by": null,
            "created_at": "T1", "expires_at": "T9", "approved_at": null, "closed_at": null,
            "already_decided": false,
        })
    }

    fn edited() -> Value {
        let mut approval = pending();
        approval["edited"] =
            json!({"action_hash": "bb", "by": "mara", "input": {"amount": 500, "to": "ada"}});
        approval["tampering"] = json!(2);
        approval["comment"] = json!("half\nof it");
        approval
    }

    #[test]
    fn all_that_a_decision_needs_is_shown() {
        let expected = "\
appr_0_3: pending, revision 1

Who asks
  agent         coder
  user_id       u7
  run_id        run-1
  source_trust  semi_trusted_customer

What
  call         crm/refund
  resource     -
  action_hash  aa

Arguments
{
  \"amount\": 700,
  \"to\": \"ad\\u{202e}a\"
}

Why
  reason            A refund of more than 500.
  matched_policies  a#b, c#d

Who must approve
  finance   1 of 2: mara (T2)
  security  0 of 1

History
  created_at   T1
  expires_at   T9
  decision_id  d1";
        assert_eq!(shown(&pending()), expected);
    }

    #[test]
    fn an_approver_sees_that_a_call_waits_because_of_taint_and_where_it_comes_from() {
        let mut approval = pending();
        approval["taint"] = json!({
            "call": {"decision_id": "d0", "server": "web", "tool": "get"}, "ends_at": "T8",
            "last_at": "T0", "servers": ["mail", "web"], "since": "T0",
        });
        let expected = "
  tainted by         mail, web
  tainted since      T0
  latest call there  web/get, decision d0
  taint ends at      T8
";
        assert!(shown(&approval).contains(expected), "{}", shown(&approval));
        approval["taint"].as_object_mut().unwrap().remove("call");
        assert!(!shown(&approval).contains("latest call"));
    }

    #[test]
    fn an_approver_sees_where_the_destinations_come_from() {
        let mut approval = edited();
        approval["provenance"] = json!({
            "instruction_known": true, "lowest": "untrusted", "reach": "outside",
            "sinks": [{"call": 1, "decision_id": "d0", "level": "untrusted", "sink": "/to",
                "tool": "mail/read"}],
        });
        let expected = "
Where its destinations come from
  reaches  outside
  /to      \"ad\\u{202e}a\"
           first seen in the untrusted result of `mail/read` (result 1, decision d0); the instruction does not name it
           gateward decisions show d0

Why
";
        assert!(shown(&approval).contains(expected), "{}", shown(&approval));
        approval["provenance"] = Value::Null;
        assert!(!shown(&approval).contains("destinations"));
    }

    #[test]
    fn an_approver_sees_whose_warrant_it_is() {
        let mut approval = pending();
        approval["warrant"] = json!({"id": "0f", "holder": "29\u{202e}"});
        let expected = "
  source_trust  semi_trusted_customer
  warrant       0f
  holder        29\\u{202e}

What
";
        assert!(shown(&approval).contains(expected), "{}", shown(&approval));
        // An older worker has no such member.
        approval["warrant"] = Value::Null;
        assert_eq!(shown(&approval), shown(&pending()));
    }

    #[test]
    fn edited_arguments_stand_beside_those_that_were_asked_for() {
        let text = shown(&edited());
        for expected in [
            "  edited by           mara\n  edited action_hash  bb",
            "Arguments              Edited arguments (only these are valid)
{                      {
  \"amount\": 700,         \"amount\": 500,
  \"to\": \"ad\\u{202e}a\"    \"to\": \"ada\"
}                      }",
            "  comment                 half\\nof it\n  used with another call  2",
        ] {
            assert!(text.contains(expected), "{expected}\nis not in\n{text}");
        }
    }

    #[test]
    fn arguments_that_are_gone_are_said_to_be() {
        let mut approval = pending();
        approval["input"] = Value::Null;
        assert!(shown(&approval).contains("Arguments\ndeleted, because the approval is closed\n"));
    }

    #[test]
    fn a_decision_is_on_what_was_read_and_nothing_else() {
        let approve = |edit| Verdict::Approve { edit };
        let patch = json!({"amount": 1});
        for (verdict, approval, revision, action, body, if_match) in [
            (approve(None), pending(), None, "approve", json!({"action_hash": "aa"}), 1),
            (approve(None), edited(), Some(1), "approve", json!({"action_hash": "bb"}), 1),
            (
                approve(Some(patch.clone())),
                pending(),
                None,
                "approve",
                json!({"action_hash": "aa", "edit": patch}),
                1,
            ),
            // The revision that `show` printed takes precedence over the one that is read now.
            (approve(None), pending(), Some(0), "approve", json!({"action_hash": "aa"}), 0),
            (Verdict::Reject, pending(), None, "reject", json!({}), 1),
            (Verdict::Cancel, edited(), None, "cancel", json!({}), 1),
        ] {
            let approval_id = "appr_0_3".to_owned();
            let decide = Decide { approval_id, verdict, comment: None, revision };
            let request = decide.request(&approval).unwrap();
            assert_eq!(request.target(), format!("/v1/approvals/appr_0_3/{action}"));
            assert_eq!((request.body, request.if_match), (Some(body), Some(if_match)));
        }
    }

    #[test]
    fn an_edited_call_is_approved_by_who_names_the_revision_that_was_seen() {
        let verdict = Verdict::Approve { edit: None };
        let (approval_id, comment) = ("appr_0_3".to_owned(), None);
        let decide = Decide { approval_id, verdict, comment, revision: None };
        let Err(Failure::Usage(message)) = decide.request(&edited()) else { panic!("it passes") };
        assert!(message.contains("--if-match"), "{message}");
    }

    #[test]
    fn the_same_decision_twice_is_said_to_count_once() {
        let mut approval = pending();
        assert!(!decided(&approval, false).contains("counts once"));
        approval["already_decided"] = json!(true);
        assert!(decided(&approval, false).starts_with("appr_0_3: pending, revision 1; you had"));
    }
}
