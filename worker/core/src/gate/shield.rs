//! Step 9: what the shield finds in the call, and what the modes of the categories do about it.

use std::borrow::Cow;

use super::draft::Draft;
use super::facts::Facts;
use super::ruling::{Ruling, Tool};
use crate::bounds::MAX_RESOURCE_BYTES;
use crate::call::command::Purpose;
use crate::call::http_tool::named_segments;
use crate::decision::{Decision, ReasonCode};
use crate::policy::{PolicyEngine, Value, record};
use crate::provenance::Provenance;
use crate::shield::{Category, Finding, Mode, Modes, Redaction, Severity, Verdict};

thread_local! {
    /// What policies see if the shield found nothing.
    static NOTHING_FOUND: Value = value(&[], false);
}

/// The modes that hold for a call with these facts.
pub fn modes(facts: &Facts<'_>) -> Modes {
    let records = facts.records;
    let tool = records.tool.as_ref().and_then(|tool| tool.shield.as_ref());
    let server = records.server.as_ref().and_then(|server| server.shield.as_ref());
    let tenant = records.tenant.as_ref().and_then(|tenant| tenant.settings.shield.as_ref());
    Modes::resolve([tool, server, tenant])
}

/// The modes that hold for what belongs to no tool.
pub fn modes_of_server(facts: &Facts<'_>) -> Modes {
    let records = facts.records;
    let server = records.server.as_ref().and_then(|server| server.shield.as_ref());
    let tenant = records.tenant.as_ref().and_then(|tenant| tenant.settings.shield.as_ref());
    Modes::resolve([None, server, tenant])
}

/// Inspects what a call or another message sends to the server. Returns the denial if a category that is to be blocked was
/// found, or may be in a text that was not read to its end.
pub fn inspect_call(
    engine: &PolicyEngine,
    draft: &mut Draft<'_>,
    tool: Option<&Tool>,
) -> Option<Box<Ruling>> {
    let (command, facts) = (draft.command, draft.facts);
    draft.inspected = true;
    let modes = modes(facts);
    if modes.are_off() {
        return None;
    }
    let key = &facts.config.value_key;
    let call = &command.call;
    let texts = (call.resource.as_str(), &call.input, &command.beside);
    let roles = facts.records.tool.as_ref().and_then(|tool| tool.argument_roles.as_deref());
    let found = engine.shield().inspect(&command.tenant, key, texts, roles);
    let verdict = Verdict::new(modes, found);
    let blocked = verdict.blocked().or_else(|| verdict.unredactable());
    let denial = match blocked {
        Some(finding) => Some(denial(engine, tool, finding)),
        None => verdict.hides().then(|| unread(tool)),
    };
    draft.shield = verdict.noted();
    denial
}

fn denial(engine: &PolicyEngine, tool: Option<&Tool>, finding: &Finding) -> Box<Ruling> {
    let Finding { category, pointer, rule, .. } = finding;
    let sentence = engine.shield().sentence(rule);
    let place = if pointer.is_empty() { "the resource" } else { pointer };
    let mut ruling = Ruling::deny(ReasonCode::ShieldBlocked);
    ruling.reason = format!(
        "{} `{}` does not pass here, and the rule `{rule}` matches at `{place}`: {sentence}",
        ruling.reason,
        category.as_str(),
    );
    ruling.tool = tool.cloned();
    Box::new(ruling)
}

/// The denial of a call that was not read to its end.
fn unread(tool: Option<&Tool>) -> Box<Ruling> {
    let mut ruling = Ruling::deny(ReasonCode::ShieldBlocked);
    ruling
        .reason
        .push_str(" They could not be read to their end, and a category is to be blocked.");
    ruling.tool = tool.cloned();
    Box::new(ruling)
}

/// Makes an allowed call a redacted one if the shield found something that must be replaced. Denies it if it has a
/// warrant, because such a call cannot be redacted. Other rulings stay as they are.
pub fn apply_redaction(draft: &Draft<'_>, tool: &Tool, mut ruling: Ruling) -> Ruling {
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

/// The call's resource as it is stored: a marker replaces each text that the shield finds.
pub fn stored_resource<'a>(engine: &PolicyEngine, draft: &Draft<'a>) -> Cow<'a, str> {
    let command = draft.command;
    let resource = command.call.resource.as_str();
    if resource.is_empty() {
        return Cow::Borrowed(resource);
    }
    let categories = kept_out(draft);
    let redaction = redaction(engine, draft, &categories);
    if !redaction.is_needed() {
        return Cow::Borrowed(resource);
    }
    let route = match &command.purpose {
        Purpose::Routed(route) => route.as_str(),
        _ => "",
    };
    let mut read = redaction.texts();
    let mut mark =
        |text: &str, name: Option<&str>| read(text, name).unwrap_or_else(|| text.to_owned());
    // An address is found in a segment alone: in the whole path, it could be a user before a host.
    let segments = named_segments(resource, route).map(|(segment, name)| mark(segment, name));
    let segments = segments.collect::<Vec<_>>().join("/");
    let mut marked = mark(&segments, None);
    // Markers can be longer than what they replace.
    marked.truncate(marked.floor_char_boundary(MAX_RESOURCE_BYTES));
    Cow::Owned(marked)
}

/// The call's provenance as answers and records have it: with `*` in place of names in which the shield finds something.
pub fn stored_provenance(engine: &PolicyEngine, draft: &Draft<'_>) -> Option<Provenance> {
    let mut found = draft.provenance.clone()?;
    let categories = kept_out(draft);
    let redaction = redaction(engine, draft, &categories);
    if redaction.is_needed() {
        let mut read = redaction.texts();
        found = found.masked(&mut |name| read(name, None).is_some());
    }
    Some(found.bounded())
}

/// The categories that records must not have texts of. Empty if the shield inspected the call and found nothing.
fn kept_out(draft: &Draft<'_>) -> Vec<Category> {
    if draft.inspected && draft.shield.is_none() {
        return Vec::new();
    }
    let modes = modes(draft.facts);
    Category::ALL.into_iter().filter(|category| modes.of(*category) != Mode::Off).collect()
}

fn redaction<'r>(
    engine: &'r PolicyEngine,
    draft: &'r Draft<'_>,
    categories: &'r [Category],
) -> Redaction<'r> {
    Redaction { shield: engine.shield(), tenant: &draft.command.tenant, categories }
}

/// `context.shield`.
pub fn context(draft: &Draft<'_>) -> Value {
    match &draft.shield {
        None => NOTHING_FOUND.with(Value::clone),
        Some(noted) => value(&noted.findings, noted.truncated),
    }
}

fn value(findings: &[Finding], truncated: bool) -> Value {
    let categories = findings.iter().map(|finding| Value::from(finding.category.as_str()));
    let rules = findings.iter().map(|finding| Value::from(finding.rule.as_str()));
    let severity = findings.iter().map(|finding| finding.severity).max();
    record(vec![
        ("categories", Value::set(categories, None)),
        ("rules", Value::set(rules, None)),
        ("max_severity", Value::from(severity.map_or(0, Severity::rank))),
        ("truncated", Value::from(truncated)),
    ])
}
