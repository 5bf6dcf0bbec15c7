//! Step 9: what the shield finds in the call, and what the modes of its categories make of it.

use super::draft::Draft;
use super::ruling::{Ruling, Tool};
use crate::decision::{Decision, ReasonCode};
use crate::policy::{PolicyEngine, Value};
use crate::registry::CallRecords;
use crate::shield::{Category, Finding, MAX_FINDINGS, Mode, Modes, Noted, Severity};

/// Findings of this severity and above are denied in the mode `block`.
const BLOCKED_FROM: Severity = Severity::High;

/// The mode of a category for a call with these records.
fn mode(records: &CallRecords, category: Category) -> Mode {
    let tool = records.tool.as_ref().and_then(|tool| tool.shield.as_ref());
    let server = records.server.as_ref().and_then(|server| server.shield.as_ref());
    let tenant = records.tenant.as_ref().and_then(|tenant| tenant.settings.shield.as_ref());
    Modes::resolve([tool, server, tenant], category)
}

/// Inspects the call's arguments and resource. Returns the denial if a category that is to be blocked was found.
pub fn look(engine: &PolicyEngine, draft: &mut Draft<'_>, tool: &Tool) -> Option<Box<Ruling>> {
    let (command, facts) = (draft.command, draft.facts);
    let of = |category| mode(facts.records, category);
    if Category::ALL.into_iter().all(|category| of(category) == Mode::Off) {
        return None;
    }
    let key = &facts.config.value_key;
    let call = &command.call;
    let found = engine.shield().inspect(&command.tenant, key, &call.resource, &call.input);
    let mut noted = Noted { truncated: found.truncated, ..Noted::default() };
    for finding in found.list {
        let category = finding.category;
        let mode = of(category);
        if mode == Mode::Redact && !noted.redacts.contains(&category) {
            noted.redacts.push(category);
        }
        if mode != Mode::Off {
            noted.findings.push(finding);
        }
    }
    let blocks = |finding: &&Finding| match of(finding.category) {
        Mode::Block => finding.severity >= BLOCKED_FROM,
        // A resource with a marker in it would be another one.
        Mode::Redact => finding.pointer.is_empty(),
        Mode::Off | Mode::Detect => false,
    };
    let denial = noted.findings.iter().find(blocks).map(|finding| denial(engine, tool, finding));
    // What is not told was counted above.
    noted.truncated |= noted.findings.len() > MAX_FINDINGS;
    noted.findings.truncate(MAX_FINDINGS);
    draft.shield = (!noted.is_empty()).then_some(noted);
    denial
}

fn denial(engine: &PolicyEngine, tool: &Tool, finding: &Finding) -> Box<Ruling> {
    let Finding { category, pointer, rule, .. } = finding;
    let sentence = engine.shield().sentence(rule);
    let place = if pointer.is_empty() { "the resource" } else { pointer };
    let mut ruling = Ruling::deny(ReasonCode::ShieldBlocked);
    ruling.reason = format!(
        "{} `{}` does not pass here, and the rule `{rule}` matches at `{place}`: {sentence}",
        ruling.reason,
        category.as_str(),
    );
    ruling.tool = Some(tool.clone());
    Box::new(ruling)
}

/// A ruling that lets the call pass, with what must be redacted in it.
pub fn bound(draft: &Draft<'_>, tool: &Tool, mut ruling: Ruling) -> Ruling {
    let redacts = draft.shield.as_ref().is_some_and(|noted| !noted.redacts.is_empty());
    if !redacts || !ruling.decision.passes() {
        return ruling;
    }
    if draft.warranted.is_some() {
        // The tool would see other arguments than were compared with the warrant.
        let mut denial = Ruling::deny(ReasonCode::ShieldBlocked);
        denial.reason.push_str(" A call with a warrant cannot be redacted.");
        denial.tool = Some(tool.clone());
        return denial;
    }
    if ruling.decision == Decision::Allow {
        ruling.decision = Decision::Redact;
        ruling.reason_code = ReasonCode::ShieldRedact;
        ReasonCode::ShieldRedact.sentence().clone_into(&mut ruling.reason);
    }
    ruling
}

/// `context.shield`.
pub fn context(draft: &Draft<'_>) -> Value {
    let findings = draft.shield.as_ref().map_or(&[][..], |noted| &noted.findings);
    let categories = findings.iter().map(|finding| Value::from(finding.category.as_str()));
    let rules = findings.iter().map(|finding| Value::from(finding.rule.as_str()));
    let severity = findings.iter().map(|finding| finding.severity).max();
    let truncated = draft.shield.as_ref().is_some_and(|noted| noted.truncated);
    let fields = [
        ("categories", Value::set(categories, None)),
        ("rules", Value::set(rules, None)),
        ("max_severity", Value::from(severity.map_or(0, Severity::rank))),
        ("truncated", Value::from(truncated)),
    ];
    Value::record(fields, None)
}
