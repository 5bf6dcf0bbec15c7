//! Steps 9 and 10: the tool as the registry knows it, and what the policies say of the call.

use cedar_policy::RestrictedExpression;

use super::identity::Identity;
use super::{CALLS_WINDOW_MS, DENIALS_WINDOW_MS, Draft, Ruling};
use crate::bundle::Risk;
use crate::command::GateCommand;
use crate::gate::outcome::ReasonCode;
use crate::input;
use crate::policy::{Evaluation, PolicyEngine, PolicyError, PolicyRequest, SliceKeys};
use crate::registry::{Records, ServerRecord};

/// A registered, active tool, with what holds for this call of it.
#[derive(Debug, Clone)]
pub struct Tool {
    pub server: ServerRecord,
    pub risk: Risk,
    /// The registry's word, or the caller's if that is stricter.
    pub mutates: bool,
    pub canary: bool,
}

/// The registry must know server and tool, and both must be active.
pub fn tool(
    engine: &PolicyEngine,
    command: &GateCommand,
    records: &Records,
    identity: &Identity<'_>,
) -> Result<Tool, Box<Ruling>> {
    let deny = |code| Err(Box::new(Ruling::deny(code)));
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
    let scope = if resolved.mutates { "tools:write" } else { "tools:read" };
    if !identity.credential.scopes.iter().any(|granted| granted == scope) {
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
    let input = input::convert(&call.input, types)
        .map_err(|e| deny(ReasonCode::InputInvalid, e.to_string()))?;

    let agent_id = format!("{tenant}/{}", call.agent);
    let server_id = format!("{tenant}/{}", call.server);
    let group_ids: Vec<String> =
        identity.agent.groups.iter().map(|group| format!("{tenant}/{group}")).collect();
    let mut principal = vec![("Agent", agent_id.as_str()), ("Tenant", tenant)];
    principal.extend(group_ids.iter().map(|id| ("Group", id.as_str())));
    let kind = if tool.mutates { "write" } else { "read" };
    let mut action = vec![("Action", tool_id.as_str()), ("Action", kind), ("Action", "call")];
    if tool.canary {
        action.push(("Action", "canary"));
    }
    let resource = [("Server", server_id.as_str()), ("Tenant", tenant)];

    let text = |value: &str| RestrictedExpression::new_string(value.to_owned());
    let long = |value: u32| RestrictedExpression::new_long(i64::from(value));
    let field = |name: &str, value| (name.to_owned(), value);
    let record = |fields: Vec<(String, RestrictedExpression)>| {
        RestrictedExpression::new_record(fields)
            .map_err(|e| deny(ReasonCode::PolicyError, e.to_string()))
    };
    let now_ms = draft.facts.now_ms;
    let findings = &call.findings;
    let context = vec![
        field("source_trust", text(draft.effective_trust().as_str())),
        field("sensitive", RestrictedExpression::new_bool(call.contains_sensitive_data)),
        field("resource", text(&call.resource)),
        field("input", input),
        field(
            "shield",
            record(vec![
                field(
                    "findings",
                    RestrictedExpression::new_set(findings.names.iter().map(|n| text(n))),
                ),
                field("score", long(u32::from(findings.score))),
            ])?,
        ),
        field(
            "velocity",
            record(vec![
                field("calls_1m", long(draft.agent.calls.count(now_ms, CALLS_WINDOW_MS))),
                field("denials_10m", long(draft.agent.denials.count(now_ms, DENIALS_WINDOW_MS))),
            ])?,
        ),
        field(
            "approval",
            record(vec![
                field("granted", RestrictedExpression::new_bool(false)),
                field("approvers", RestrictedExpression::new_set([])),
                field("age_s", long(0)),
            ])?,
        ),
        field("warrant", record(vec![field("present", RestrictedExpression::new_bool(false))])?),
        field(
            "session",
            record(vec![
                field("run_id", text(&call.run_id)),
                field("user_id", text(&call.user_id)),
                field("user_role", text(&call.user_role)),
            ])?,
        ),
    ];
    let request = PolicyRequest {
        keys: SliceKeys {
            tenant,
            principal: &principal,
            principal_type: "Agent",
            action: &action,
            resource: &resource,
            resource_type: "Server",
        },
        principal_attributes: vec![
            field("environment", text(&identity.agent.environment)),
            field("risk_tier", text(&identity.agent.risk_tier)),
        ],
        resource_attributes: vec![
            field("trust", text(&tool.server.trust)),
            field("kind", text(&tool.server.kind)),
        ],
        context,
    };
    engine.evaluate(request).map_err(|error| match error {
        // Cedar's own words may quote arguments, which are not to be written down.
        PolicyError::Context(_) => {
            deny(ReasonCode::InputInvalid, "The arguments do not form a Cedar context.".to_owned())
        }
        PolicyError::Bundle(problem) => deny(ReasonCode::PolicyError, problem),
    })
}
