use clap::Args;
use gateward_core::warrant::chain::{Chain, Envelope, in_time, sha256};
use gateward_core::warrant::constraint::Work;
use gateward_core::warrant::payload::{Payload, Powers};
use serde_json::{Map, Value, json};

use super::form::written_arguments;
use super::input::{links, now_s, refused, stack};
use super::narrowing::{approvals, changes, gated, kind, time};
use crate::failure::Failure;
use crate::runner::print;
use crate::section::text_section;
use crate::table::{self, Field};

/// Digits of a key in the table. `--json` has all of them.
const KEY_DIGITS: usize = 16;

const LINKS: &[Field] = &[
    Field::column("depth"),
    Field::column("id"),
    Field::column("kind"),
    Field::column("issuer"),
    Field::column("holder"),
    Field::column("issued_at"),
    Field::column("expires_at"),
    Field::column("clearance").null("none"),
    Field::column("tools"),
];

const CHANGES: &[Field] = &[
    Field::column("tool").null("-"),
    Field::column("name").null("-"),
    Field::column("before").null("none"),
    Field::column("after").null("none"),
];

/// Show the links of a warrant, and what each narrows
///
/// Says whether the rules between the links and the signatures hold. If one does not, exits with 1 and says
/// which one at which link.
#[derive(Args, Debug, PartialEq)]
pub struct Inspect {
    /// The warrant or the chain: base64 or PEM, `@FILE`, or `-` for standard input
    #[arg(value_name = "STACK")]
    warrant: String,
}

impl Inspect {
    pub fn run(&self, json: bool) -> Result<(), Failure> {
        let stack = stack(&self.warrant)?;
        let envelopes = links(&stack)?;
        let verified = Chain::verify(&envelopes, sha256(&stack), &mut Work::default());
        let links = readable(&envelopes);
        if json {
            let refusal = verified.as_ref().err();
            let refusal = refusal.map(|it| json!({ "code": it.code.code(), "reason": it.reason }));
            let links = links.iter().enumerate().map(|(at, link)| {
                let mut record = record(link);
                let before = at.checked_sub(1).and_then(|at| links.get(at));
                record.insert("changes".to_owned(), differences(before, link));
                record
            });
            let links: Vec<_> = links.collect();
            let holds = verified.is_ok();
            print(&json!({ "holds": holds, "refusal": refusal, "links": links }).to_string())?;
        } else {
            print(&shown(&links))?;
        }
        verified.map_err(refused)?;
        if !json {
            print(&format!("\nRules and signatures hold.{}", out_of_time(&links)))?;
        }
        Ok(())
    }
}

/// The links up to the first that cannot be read. The refusal says which that is.
fn readable(envelopes: &[Envelope<'_>]) -> Vec<Payload> {
    envelopes.iter().map_while(|envelope| Payload::read(envelope.payload).ok()).collect()
}

fn differences(before: Option<&Payload>, link: &Payload) -> Value {
    let changes = before.map(|before| changes(before, link)).unwrap_or_default();
    Value::Array(changes.iter().map(|change| change.shown()).collect())
}

/// The links as a table, then what each narrows.
fn shown(links: &[Payload]) -> String {
    let mut parts = vec![table::list(LINKS, &links.iter().map(row).collect::<Vec<_>>())];
    for (at, (before, link)) in links.iter().zip(links.iter().skip(1)).enumerate() {
        let title = format!("Link {} against link {at}", at + 1);
        let text = match differences(Some(before), link) {
            Value::Array(rows) if !rows.is_empty() => table::list(CHANGES, &rows),
            _ => "the same tools, arguments, times and approvals".to_owned(),
        };
        parts.push(text_section(&title, &text));
    }
    parts.join("\n\n")
}

fn row(link: &Payload) -> Value {
    let key = |key: String| format!("{}…", key.get(..KEY_DIGITS).unwrap_or_default());
    let tools = match &link.powers {
        Powers::Execution(tools) => tools.iter().map(|(name, _)| name.clone()).collect(),
        Powers::Issuer(issuing) => issuing.tools.clone(),
    };
    json!({
        "depth": link.depth,
        "id": link.id.to_string(),
        "kind": kind(link),
        "issuer": key(link.issuer.to_string()),
        "holder": key(link.holder.to_string()),
        "issued_at": time(link.issued_at_s),
        "expires_at": time(link.expires_at_s),
        "clearance": link.clearance,
        "tools": tools,
    })
}

fn record(link: &Payload) -> Map<String, Value> {
    let members = json!({
        "depth": link.depth,
        "id": link.id.to_string(),
        "kind": kind(link),
        "issuer": link.issuer,
        "holder": link.holder,
        "issued_at": time(link.issued_at_s),
        "expires_at": time(link.expires_at_s),
        "max_depth": link.max_depth,
        "clearance": link.clearance,
        "approvals": approvals(link),
        "gates": gated(link),
    });
    let powers = match &link.powers {
        Powers::Execution(tools) => {
            let tools = tools.iter().map(|(name, it)| {
                let arguments = written_arguments(it);
                let tool = json!({ "arguments": arguments, "allow_unknown": it.allow_unknown });
                (name.clone(), tool)
            });
            json!({ "tools": Value::Object(tools.collect()) })
        }
        Powers::Issuer(issuing) => json!({
            "issuable_tools": issuing.tools,
            "max_issue_depth": issuing.max_depth,
            "bounds": issuing.bounds.as_ref().map(written_arguments),
        }),
    };
    let members = [members, powers].into_iter().filter_map(|it| match it {
        Value::Object(members) => Some(members),
        _ => None,
    });
    members.flatten().collect()
}

/// A link that is not valid now. That is no broken rule.
fn out_of_time(links: &[Payload]) -> String {
    let now_s = now_s();
    let late = links.iter().position(|link| in_time(link, now_s).is_err());
    late.map_or(String::new(), |at| {
        format!(" But link {at} is not valid now: it has expired, or was issued in the future.")
    })
}
