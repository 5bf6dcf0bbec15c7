//! Steps 9 and 10: the tool as the registry knows it, and what the policies say of the call.

use super::containment;
use super::identity::Identity;
use super::{CALLS_WINDOW_MS, DENIALS_WINDOW_MS, Draft, Ruling};
use crate::approval::Approval;
use crate::bundle::Risk;
use crate::call::ToolCall;
use crate::command::GateCommand;
use crate::gate::outcome::ReasonCode;
use crate::glob::Glob;
use crate::input;
use crate::policy::{CallEntities, Evaluation, PolicyEngine, PolicyRequest, Value};
use crate::registry::{Records, ServerRecord};
use crate::scope::Scope;

/// A registered, active tool, with what holds for this call of it.
#[derive(Debug, Clone)]
pub struct Tool {
    pub server: ServerRecord,
    pub risk: Risk,
    /// The registry's word, or the caller's if that is stricter.
    pub mutates: bool,
    pub canary: bool,
}

/// Whether the agent and its credential may use the tool, if there is one.
pub fn is_granted(call: &ToolCall, identity: &Identity<'_>) -> bool {
    let (agent, credential) = (identity.agent, identity.credential);
    let any = |globs: &[Glob], text: &str| globs.iter().any(|glob| glob.matches(text));
    let servers = credential.allowed_servers.as_deref();
    let tools = [agent.allowed_tools.as_deref(), credential.allowed_tools.as_deref()];
    servers.is_none_or(|globs| any(globs, &call.server))
        && tools
            .into_iter()
            .flatten()
            .all(|globs| any(globs, &format!("{}/{}", call.server, call.tool)))
}

/// The tool must be granted, and the registry must know server and tool, and both must be active.
/// Grants come first, so that nobody learns what there is beyond them.
pub fn tool(
    engine: &PolicyEngine,
    command: &GateCommand,
    records: &Records,
    identity: &Identity<'_>,
) -> Result<Tool, Box<Ruling>> {
    let deny = |code| Err(Box::new(Ruling::deny(code)));
    if !is_granted(&command.call, identity) {
        return deny(ReasonCode::ToolNotGranted);
    }
    let (Some(server), Some(tool)) = (&records.server, &records.tool) else {
        return deny(ReasonCode::ToolUnknown);
    };
    if server.status != "active" || tool.status != "active" {
        return deny(ReasonCode::ToolInactive);
    }
    let call = &command.call;
    let described = engine.tool(&format!("{}/{}", call.server, call.tool));
    let resolved = Tool {
        server: server.clone(),
        risk: tool.risk,
        mutates: tool.mutates != 0 || call.mutates_state,
        // A trap stays a trap, whichever side laid it.
        canary: tool.canary != 0 || described.is_some_and(|tool| tool.canary),
    };
    let group = if resolved.mutates { "write" } else { "read" };
    let granted = &identity.credential.scopes;
    if !Scope::of_action_group(group).is_some_and(|scope| granted.contains(&scope)) {
        let mut ruling = Ruling::deny(ReasonCode::ScopeMissing);
        ruling.tool = Some(resolved);
        return Err(Box::new(ruling));
    }
    Ok(resolved)
}

/// Asks Cedar. Whatever keeps it from answering is a denial.
pub fn evaluate(
    engine: &PolicyEngine,
    draft: &Draft<'_>,
    identity: &Identity<'_>,
    tool: &Tool,
    approval: Option<&Approval>,
) -> Result<Evaluation, Box<Ruling>> {
    let (call, tenant) = (&draft.command.call, draft.command.tenant.as_str());
    let deny = |code, reason: String| {
        let mut ruling = Ruling::deny(code);
        ruling.reason = reason;
        ruling.tool = Some(tool.clone());
        Box::new(ruling)
    };
    let tool_id = format!("{}/{}", call.server, call.tool);
    let types = engine.tool(&tool_id).map(|tool| &tool.input);
    let input = match input::convert(&call.input, types) {
        Ok(input) => input,
        // A trap is sprung by being called, with whatever arguments.
        Err(_) if tool.canary => record([]),
        Err(error) => return Err(deny(ReasonCode::InputInvalid, error.to_string())),
    };

    let groups: Vec<String> =
        identity.agent.groups.iter().map(|group| format!("{tenant}/{group}")).collect();
    let text = |value: &str| Value::from(value);
    let long = |value: u32| Value::from(i64::from(value));
    let now_ms = draft.facts.now_ms;
    let findings = &call.findings;
    let risk_tier = containment::effective_tier(draft, identity.agent.risk_tier);
    let approvers = approval.into_iter().flat_map(|approval| &approval.approvers);
    let approved_at_ms = approval.and_then(|approval| approval.approved_at_ms);
    let age_ms = approved_at_ms.map_or(0, |at| now_ms.saturating_sub(at));
    let context = vec![
        ("source_trust", text(draft.effective_trust().as_str())),
        ("sensitive", Value::from(call.contains_sensitive_data)),
        ("resource", text(&call.resource)),
        ("input", input),
        (
            "shield",
            record([
                ("findings", Value::set(findings.names.iter().map(|name| text(name)), None)),
                ("score", long(u32::from(findings.score))),
            ]),
        ),
        (
            "velocity",
            record([
                ("calls_1m", long(draft.agent.calls.count(now_ms, CALLS_WINDOW_MS))),
                ("denials_10m", long(draft.agent.denials.count(now_ms, DENIALS_WINDOW_MS))),
            ]),
        ),
        (
            "approval",
            record([
                ("granted", Value::from(approval.is_some())),
                ("approvers", Value::set(approvers.map(|a| text(&a.administrator)), None)),
                ("age_s", long(u32::try_from(age_ms / 1_000).unwrap_or(u32::MAX))),
            ]),
        ),
        ("warrant", record([("present", Value::from(false))])),
        (
            "session",
            record([
                ("run_id", text(&call.run_id)),
                ("user_id", text(&call.user_id)),
                ("user_role", text(&call.user_role)),
            ]),
        ),
    ];
    let request = PolicyRequest {
        entities: CallEntities {
            tenant,
            agent: &format!("{tenant}/{}", call.agent),
            groups: &groups,
            tool: &tool_id,
            mutates: tool.mutates,
            canary: tool.canary,
            server: &format!("{tenant}/{}", call.server),
        },
        agent_attributes: vec![
            ("environment", text(&identity.agent.environment)),
            ("risk_tier", text(risk_tier.as_str())),
        ],
        server_attributes: vec![
            ("trust", text(&tool.server.trust)),
            ("kind", text(&tool.server.kind)),
        ],
        context,
    };
    engine.evaluate(request).map_err(|error| deny(ReasonCode::PolicyError, error.0))
}

/// A record of known fields.
fn record<const N: usize>(fields: [(&'static str, Value); N]) -> Value {
    Value::record(fields, None)
}
