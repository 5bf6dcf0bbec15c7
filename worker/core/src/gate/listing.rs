//! Requests that call no tool: whether they may reach the server, and which items of a list the
//! agent could use.
//!
//! A listed tool is hidden if no call of it could pass: it is not active, not granted, not covered
//! by the credential's scopes, or forbidden whatever the rest of the call is. A call may claim any
//! trust up to the credential's highest, so a tool is forbidden only if it is forbidden for each of
//! them. A tool that needs approval is not forbidden.
//!
//! Present taint hides no item of a list, because clients keep lists for longer than taint may last. But it refuses a
//! message that names items, such as a subscription, if using them sends text out and what the message says is unknown.
//! Otherwise a secret in a URI would leave without the call that policies hold back.

use super::draft::{Draft, DraftResult, Stop};
use super::identity::Identity;
use super::proxy::Visibility;
use super::ruling::Ruling;
use super::{caller, provenance, resolve, shield};
use crate::call::command::{Candidate, Purpose};
use crate::decision::ReasonCode;
use crate::policy::input;
use crate::policy::{CallEntities, Fields, PolicyEngine, PolicyRequest, Value};
use crate::registry::{ListedTool, ToolStatus};
use crate::taint::TAINTED_TRUST;
use crate::trust::SourceTrust;

/// The attributes of a call's context that are not known for a list.
const UNKNOWN: [&str; 10] = [
    "taint",
    "provenance",
    "destinations",
    "tool_risk",
    "sensitive",
    "shield",
    "velocity",
    "approval",
    "warrant",
    "session",
];

/// Steps 5 to 9 for a request that calls no tool. Returns the visibility of each candidate, in
/// order.
pub fn judge(engine: &PolicyEngine, draft: &mut Draft<'_>) -> Result<DraftResult, Stop> {
    let command = draft.command;
    let (identity, denial) = caller::check(draft)?;
    if let Some(denial) = denial.or_else(|| refused(draft, &identity)) {
        draft.check_space(&denial)?;
        return Ok(DraftResult::Ruling(denial));
    }
    let Purpose::Filter(candidates) = &command.purpose else {
        let Some(denial) = shield::inspect_call(engine, draft, None) else {
            return Ok(DraftResult::Passed(Vec::new()));
        };
        draft.check_space(&denial)?;
        return Ok(DraftResult::Ruling(*denial));
    };
    let trust = possible_trust(draft.highest_claim());
    let says_unknown = provenance::says_unknown(draft);
    let asked = Asked { engine, draft, identity: &identity, trust: &trust, says_unknown };
    let visible = candidates.iter().map(|item| visibility(&asked, item));
    Ok(DraftResult::Passed(visible.collect()))
}

/// The denial if the agent may not send the server anything.
fn refused(draft: &Draft<'_>, identity: &Identity<'_>) -> Option<Ruling> {
    let command = draft.command;
    if !resolve::is_granted(draft, identity) {
        return Some(Ruling::deny(ReasonCode::ToolNotGranted));
    }
    match resolve::active_server(draft.facts.records) {
        Err(code) => Some(Ruling::deny(code)),
        Ok(server) if !resolve::is_proxied_as_asked(command, server) => {
            Some(Ruling::deny(ReasonCode::UpstreamMissing))
        }
        Ok(_) => None,
    }
}

/// The trust attributes of each call that the credential can make, with taint and without. The most
/// trusted come first, because most tools can be called with them.
fn possible_trust(highest: SourceTrust) -> Vec<Fields> {
    let possible = SourceTrust::ALL.into_iter().filter(|stated| stated.lowest(highest) == *stated);
    let cases = possible.flat_map(|stated| {
        let mut effective = vec![stated, stated.lowest(TAINTED_TRUST)];
        effective.dedup();
        effective.into_iter().map(move |effective| {
            vec![
                ("source_trust", Value::from(effective.as_str())),
                ("stated_trust", Value::from(stated.as_str())),
            ]
        })
    });
    cases.collect()
}

/// What is the same for each candidate.
struct Asked<'a, 'd> {
    engine: &'a PolicyEngine,
    draft: &'a Draft<'d>,
    identity: &'a Identity<'d>,
    trust: &'a [Fields],
    /// Whether nothing that sends text out may be used.
    says_unknown: bool,
}

fn visibility(asked: &Asked<'_, '_>, candidate: &Candidate) -> Visibility {
    let records = asked.draft.facts.records;
    let Some(listed) = records.listing.get(&candidate.tool) else { return Visibility::Unknown };
    let differs = |known: &String| candidate.definition_sha256.as_ref().is_some_and(|d| d != known);
    // A tool that was registered by hand has no definition to compare with.
    if listed.definition_sha256.as_ref().is_some_and(differs) {
        return Visibility::Changed;
    }
    match could_pass(asked, candidate, listed) {
        Some(true) if listed.definition_sha256.is_some() => Visibility::Visible,
        Some(true) => Visibility::Unreviewed,
        _ => Visibility::Hidden,
    }
}

/// `None` if it cannot be evaluated; the tool is hidden then.
fn could_pass(asked: &Asked<'_, '_>, candidate: &Candidate, listed: &ListedTool) -> Option<bool> {
    let Asked { engine, draft, identity, trust, says_unknown } = *asked;
    let (command, server) = (draft.command, draft.facts.records.server.as_ref()?);
    let (tenant, server_name) = (command.tenant.as_str(), command.call.server.as_str());
    let tool_id = format!("{server_name}/{}", candidate.tool);
    let described = engine.tool(&tool_id);
    let egress = listed.egress || described.is_some_and(|tool| tool.egress);
    let writes = listed.mutates || egress;
    if listed.status != ToolStatus::Active
        || !resolve::is_tool_granted(&tool_id, identity)
        || !resolve::has_scope(identity, writes)
        || (egress && says_unknown)
    {
        return Some(false);
    }
    let mut context = Vec::new();
    let mut unknown = UNKNOWN.to_vec();
    match &candidate.input {
        Some(known) => {
            let known = input::convert(known, described.map(|tool| &tool.input)).ok()?;
            context.push(("input", known));
        }
        None => unknown.push("input"),
    }
    match &candidate.resource {
        Some(known) => context.push(("resource", Value::from(known.as_str()))),
        None => unknown.push("resource"),
    }
    let request = PolicyRequest {
        entities: CallEntities {
            tenant,
            agent: &resolve::of_tenant(tenant, &command.call.agent),
            groups: &resolve::groups(tenant, identity),
            tool: &tool_id,
            mutates: writes,
            egress,
            canary: listed.canary || described.is_some_and(|tool| tool.canary),
            server: &resolve::of_tenant(tenant, server_name),
        },
        agent_attributes: resolve::agent_attributes(draft, identity),
        server_attributes: resolve::server_attributes(server),
        context,
    };
    engine.could_permit(request, trust, &unknown).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is known for a list: both trusts in each case, and the others if the item has them.
    const KNOWN: [&str; 4] = ["source_trust", "stated_trust", "input", "resource"];

    #[test]
    fn an_attribute_of_the_context_that_is_not_known_for_a_list_is_named() {
        let schema = include_str!("../../../../policies/schema.cedarschema");
        let (_, context) = schema.split_once("type CallContext = {").unwrap();
        let (context, _) = context.split_once("\n};").unwrap();
        // Members of an attribute are indented further.
        let attributes = context.lines().filter_map(|line| {
            let (name, _) = line.strip_prefix("  ")?.split_once(':')?;
            name.chars().all(|it| it == '_' || it.is_ascii_lowercase()).then_some(name)
        });
        let mut attributes: Vec<&str> = attributes.collect();
        let mut named = [UNKNOWN.as_slice(), KNOWN.as_slice()].concat();
        attributes.sort_unstable();
        named.sort_unstable();
        assert_eq!(named, attributes);
    }
}
