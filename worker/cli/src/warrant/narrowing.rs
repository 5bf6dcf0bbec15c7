//! What a link narrows against the link before it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use gateward_core::id::rfc3339;
use gateward_core::warrant::constraint::Arguments;
use gateward_core::warrant::gate::Gates;
use gateward_core::warrant::payload::{Payload, Powers};
use serde_json::{Value, json};

use super::form::{written, written_arguments};

/// The rest of a tool's arguments.
const OTHERS: &str = "(others)";
const ANY: &str = "any";
const REFUSED: &str = "refused";

/// Something that differs.
#[derive(Debug, PartialEq)]
pub struct Change {
    /// `None`: of the warrant itself.
    pub tool: Option<String>,
    /// The argument, or the member of the warrant. `None`: the tool as a whole.
    pub name: Option<String>,
    /// A constraint, or `"any"` or `"refused"`; or the value of the member.
    pub before: Value,
    pub after: Value,
}

impl Change {
    pub fn shown(&self) -> Value {
        let Self { tool, name, before, after } = self;
        json!({ "tool": tool, "name": name, "before": before, "after": after })
    }
}

/// All differences: of the tools, then of the warrant itself.
pub fn changes(parent: &Payload, child: &Payload) -> Vec<Change> {
    let mut changes = Vec::new();
    if let Powers::Execution(narrow) = &child.powers {
        for (tool, arguments) in narrow {
            match before(parent, tool) {
                Some(before) => of_tool(tool, &before, arguments, &mut changes),
                None => changes.push(whole(tool, REFUSED, "allowed")),
            }
        }
        if let Powers::Execution(wide) = &parent.powers {
            let dropped = wide.iter().filter(|(tool, _)| !narrow.iter().any(|(it, _)| it == tool));
            changes.extend(dropped.map(|(tool, _)| whole(tool, "allowed", REFUSED)));
        }
    }
    let members = members(parent).into_iter().zip(members(child));
    changes.extend(members.filter(|(before, after)| before != after).map(
        |((name, before), (_, after))| Change {
            tool: None,
            name: Some(name.to_owned()),
            before,
            after,
        },
    ));
    changes
}

/// What a link allows a child's tool: its own constraints, or the bounds of a link that issues.
fn before<'a>(parent: &'a Payload, tool: &str) -> Option<Cow<'a, Arguments>> {
    match &parent.powers {
        Powers::Execution(_) => parent.tool(tool).map(Cow::Borrowed),
        Powers::Issuer(issuing) => {
            let is_issuable = issuing.tools.iter().any(|name| name == tool || name == "*");
            let bounds = || issuing.bounds.as_ref().map_or_else(Cow::default, Cow::Borrowed);
            is_issuable.then(bounds)
        }
    }
}

fn whole(tool: &str, before: &str, after: &str) -> Change {
    Change { tool: Some(tool.to_owned()), name: None, before: json!(before), after: json!(after) }
}

fn of_tool(tool: &str, before: &Arguments, after: &Arguments, changes: &mut Vec<Change>) {
    let names = before.constraints.iter().chain(&after.constraints).map(|(name, _)| name.as_str());
    let names: BTreeSet<&str> = names.collect();
    for name in names.into_iter().map(Some).chain([None]) {
        let [before, after] = [before, after].map(|arguments| allowed(arguments, name));
        if before != after {
            let name = Some(name.unwrap_or(OTHERS).to_owned());
            changes.push(Change { tool: Some(tool.to_owned()), name, before, after });
        }
    }
}

/// What is allowed of an argument; `None`: of one without a constraint.
fn allowed(arguments: &Arguments, name: Option<&str>) -> Value {
    match name.and_then(|name| arguments.get(name)) {
        Some(constraint) => written(constraint),
        None if arguments.constraints.is_empty() || arguments.allow_unknown => json!(ANY),
        None => json!(REFUSED),
    }
}

/// Members of a warrant that have a bound in their parent.
fn members(link: &Payload) -> [(&'static str, Value); 9] {
    let issuing = match &link.powers {
        Powers::Execution(_) => None,
        Powers::Issuer(issuing) => Some(issuing),
    };
    [
        ("kind", json!(kind(link))),
        ("issuable_tools", json!(issuing.map(|it| &it.tools))),
        ("max_issue_depth", json!(issuing.and_then(|it| it.max_depth))),
        ("bounds", json!(issuing.and_then(|it| it.bounds.as_ref()).map(written_arguments))),
        ("max_depth", json!(link.max_depth)),
        ("expires_at", json!(time(link.expires_at_s))),
        ("clearance", json!(link.clearance)),
        ("approvals", approvals(link)),
        ("gates", json!(gated(link))),
    ]
}

pub fn kind(link: &Payload) -> &'static str {
    match link.powers {
        Powers::Execution(_) => "execution",
        Powers::Issuer(_) => "issuer",
    }
}

pub fn time(at_s: u64) -> String {
    rfc3339(at_s.saturating_mul(1000))
}

/// The approvers, and how many of them must approve.
pub fn approvals(link: &Payload) -> Value {
    match link.approvers.as_slice() {
        [] => Value::Null,
        approvers => json!({ "min": link.threshold(), "approvers": approvers }),
    }
}

/// The tools that need approvals.
pub fn gated(link: &Payload) -> Vec<&str> {
    link.gates.iter().flat_map(Gates::tools).collect()
}
