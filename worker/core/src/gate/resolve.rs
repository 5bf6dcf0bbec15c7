//! Steps 8 and 10: the tool as the registry has it, and what the policies say about the call.

use std::rc::Rc;

use super::containment;
use super::draft::Draft;
use super::identity::Identity;
use super::provenance;
use super::ruling::{Ruling, Tool};
use super::shield;
use super::taint_state::Tainted;
use super::trust::Origin;
use super::warrant;
use super::windows::WindowCount;
use crate::approval::Approval;
use crate::call::command::{GateCommand, Purpose};
use crate::call::http_tool::Unresolved;
use crate::call::parameters;
use crate::decision::ReasonCode;
use crate::glob::Glob;
use crate::policy::{
    CallEntities, Evaluation, Fields, PolicyEngine, PolicyRequest, Value, decimal, input, record,
};
use crate::registry::{
    CallRecords, ServerKind, ServerRecord, ServerStatus, TaintRule, ToolRegistration, ToolStatus,
};
use crate::schema::{Misfit, Schema};
use crate::scope::Scope;

thread_local! {
    /// What policies see of a call that is not tainted, by its tool's rule.
    static UNTAINTED: [Value; TaintRule::ALL.len()] = TaintRule::ALL.map(|rule| taint(None, rule, 0));
    /// What policies see of a call that nobody approved.
    static NOT_APPROVED: Value = approved(None, 0);
    /// What policies see of a call without run and user.
    static NO_SESSION: Value = session(["", "", ""]);
}

/// Whether the lists of the agent and its credential allow the server, and the tool if it is known.
/// If the tool is not known, the lists must be able to match one of the server's tools. An agent
/// without such a grant can neither send anything to the server nor get anything from it.
pub fn is_granted(draft: &Draft<'_>, identity: &Identity<'_>) -> bool {
    let (command, call) = (draft.command, &draft.command.call);
    let servers = identity.credential.allowed_servers.as_deref();
    if !servers.is_none_or(|globs| globs.iter().any(|glob| glob.matches(&call.server))) {
        return false;
    }
    match command.purpose {
        Purpose::Authorize
        | Purpose::Forward
        | Purpose::Ask
        | Purpose::Routed(_)
        | Purpose::ReportResult(_) => is_tool_granted(&draft.tool_id, identity),
        Purpose::Message { .. }
        | Purpose::Filter(_)
        | Purpose::Route(_)
        | Purpose::Unroutable(_) => can_be_granted_a_tool(&call.server, identity),
        // These name no server.
        Purpose::Read | Purpose::StartRun(_) | Purpose::ReportOutcome(_) => false,
    }
}

/// Whether the grants of the agent and of its credential can match a tool of the server: one glob
/// of each must match, and the two must be able to match the same tool. The second check is
/// approximate, because it must be cheap.
fn can_be_granted_a_tool(server: &str, identity: &Identity<'_>) -> bool {
    fn of_server<'a>(globs: &'a [Glob], prefix: &'a str) -> impl Iterator<Item = &'a Glob> {
        globs.iter().filter(move |glob| glob.can_match_within(prefix))
    }
    let prefix = [server, "/"].concat();
    match (&identity.agent.allowed_tools, &identity.credential.allowed_tools) {
        (None, None) => true,
        (Some(globs), None) | (None, Some(globs)) => of_server(globs, &prefix).next().is_some(),
        (Some(of_agent), Some(of_credential)) => {
            let of_credential: Vec<&Glob> = of_server(of_credential, &prefix).collect();
            let overlaps = |glob: &Glob| of_credential.iter().any(|other| glob.may_overlap(other));
            of_server(of_agent, &prefix).any(overlaps)
        }
    }
}

/// Whether the tool globs of the agent and its credential match `server/tool`.
pub fn is_tool_granted(tool_id: &str, identity: &Identity<'_>) -> bool {
    let lists = [&identity.agent.allowed_tools, &identity.credential.allowed_tools];
    let matches = |globs: &Vec<Glob>| globs.iter().any(|glob| glob.matches(tool_id));
    lists.into_iter().flatten().all(matches)
}

/// The server must be registered and active.
pub fn active_server(records: &CallRecords) -> Result<&Rc<ServerRecord>, ReasonCode> {
    match &records.server {
        None => Err(ReasonCode::ServerUnknown),
        Some(server) if server.status != ServerStatus::Active => Err(ReasonCode::ToolInactive),
        Some(server) => Ok(server),
    }
}

/// Whether Gateward is in front of the server in the way that the request came: an MCP server as
/// MCP, an API by its routes.
pub fn is_proxied_as_asked(command: &GateCommand, server: &ServerRecord) -> bool {
    let kind = match command.purpose {
        Purpose::Authorize | Purpose::ReportResult(_) => return true,
        Purpose::Route(_) | Purpose::Routed(_) | Purpose::Unroutable(_) => ServerKind::Http,
        Purpose::Forward | Purpose::Ask | Purpose::Message { .. } | Purpose::Filter(_) => {
            ServerKind::Mcp
        }
        Purpose::Read | Purpose::StartRun(_) | Purpose::ReportOutcome(_) => return false,
    };
    server.kind == kind && server.upstream.is_some()
}

/// Step 8: checks the grant, then the server, the tool, and the arguments. Grants come first, so
/// that a caller learns nothing about tools beyond them.
pub fn registered_tool(
    engine: &PolicyEngine,
    draft: &Draft<'_>,
    identity: &Identity<'_>,
) -> Result<Tool, Box<Ruling>> {
    let (server, tool) = active_tool(draft, identity)?;
    let command = draft.command;
    let described = engine.tool(&draft.tool_id);
    // The registry or the policies' tool description can mark it; either is enough.
    let egress = tool.egress || described.is_some_and(|tool| tool.egress);
    let mut resolved = Tool {
        server: Rc::clone(server),
        risk: tool.risk,
        writes: tool.mutates || egress || command.call.mutates_state,
        egress,
        // The same holds for a canary.
        canary: tool.canary || described.is_some_and(|tool| tool.canary),
        tainted: tool.tainted,
        schema: None,
    };
    let refused = if !has_scope(identity, resolved.writes) {
        Some((ReasonCode::ScopeMissing, None))
    } else if resolved.canary {
        // A canary quarantines whatever its arguments are.
        None
    } else {
        match check_arguments(engine, tool, command) {
            Ok(schema) => {
                resolved.schema = schema;
                None
            }
            Err(misfit) => Some(misfit),
        }
    };
    let Some((code, reason)) = refused else { return Ok(resolved) };
    let mut ruling = Ruling::deny(code);
    ruling.reason = reason.unwrap_or(ruling.reason);
    ruling.tool = Some(resolved);
    Err(Box::new(ruling))
}

/// The records of the call's server and tool, if the agent may use them and both are active.
fn active_tool<'a>(
    draft: &Draft<'a>,
    identity: &Identity<'_>,
) -> Result<(&'a Rc<ServerRecord>, &'a ToolRegistration), Box<Ruling>> {
    let (command, records) = (draft.command, draft.facts.records);
    let deny = |code| Err(Box::new(Ruling::deny(code)));
    if !is_granted(draft, identity) {
        return deny(ReasonCode::ToolNotGranted);
    }
    let server = match active_server(records) {
        Ok(server) => server,
        Err(code) => return deny(code),
    };
    if !is_proxied_as_asked(command, server) {
        return deny(ReasonCode::UpstreamMissing);
    }
    if let Purpose::Unroutable(unresolved) = &command.purpose {
        let (code, why) = match unresolved {
            Unresolved::Unmapped(why) => (ReasonCode::RouteUnmapped, why),
            Unresolved::InputInvalid(why) => (ReasonCode::InputInvalid, why),
        };
        return Err(Box::new(Ruling { reason: why.clone(), ..Ruling::deny(code) }));
    }
    let Some(tool) = &records.tool else { return deny(ReasonCode::ToolUnknown) };
    match tool.status {
        ToolStatus::Active => Ok((server, tool)),
        _ => deny(ReasonCode::ToolInactive),
    }
}

/// Checks the call's arguments, and the headers that mirror them, against the tool's schema, and returns it. A schema is
/// compiled only here, after every other check on the tool passed.
fn check_arguments(
    engine: &PolicyEngine,
    tool: &ToolRegistration,
    command: &GateCommand,
) -> Result<Option<Rc<Schema>>, (ReasonCode, Option<String>)> {
    let input = &command.call.input;
    let check = |text: &str| engine.schemas().borrow_mut().check(text, input);
    let schema =
        tool.input_schema.as_deref().map(check).transpose().map_err(|misfit| match misfit {
            Misfit::Arguments(why) => (ReasonCode::InputSchemaMismatch, Some(why)),
            Misfit::Schema(why) => (ReasonCode::SchemaUnusable, Some(why)),
        })?;
    if let Some(schema) = &schema {
        schema.check_names(input).map_err(|why| (ReasonCode::InputInvalid, Some(why)))?;
    }
    parameters::check(schema.as_deref(), &command.parameters, input)
        .map_err(|why| (ReasonCode::HeaderMismatch, Some(why)))?;
    Ok(schema)
}

/// Whether the credential has the scope to read, or to write.
pub fn has_scope(identity: &Identity<'_>, writes: bool) -> bool {
    let group = if writes { "write" } else { "read" };
    let scopes = &identity.credential.scopes;
    Scope::of_action_group(group).is_some_and(|scope| scopes.contains(&scope))
}

/// Step 10: evaluates the policies for the call with this trust. An error is a denial.
pub fn evaluate(
    engine: &PolicyEngine,
    draft: &Draft<'_>,
    identity: &Identity<'_>,
    tool: &Tool,
    approval: Option<&Approval>,
    origin: Origin<'_>,
) -> Result<Evaluation, Box<Ruling>> {
    let (call, tenant) = (&draft.command.call, draft.command.tenant.as_str());
    let deny = |code, reason: String| {
        let mut ruling = Ruling::deny(code);
        ruling.reason = reason;
        ruling.tool = Some(tool.clone());
        Box::new(ruling)
    };
    let types = engine.tool(&draft.tool_id).map(|tool| &tool.input);
    let input = match input::convert(&call.input, types) {
        Ok(input) => input,
        // A canary quarantines whatever its arguments are.
        Err(_) if tool.canary => record(vec![]),
        Err(error) => {
            let code = match error.is_mismatch() {
                true => ReasonCode::InputSchemaMismatch,
                false => ReasonCode::InputInvalid,
            };
            return Err(deny(code, error.to_string()));
        }
    };

    let groups = groups(tenant, identity);
    let request = PolicyRequest {
        entities: CallEntities {
            tenant,
            agent: &of_tenant(tenant, &call.agent),
            groups: &groups,
            tool: &draft.tool_id,
            mutates: tool.writes,
            egress: tool.egress,
            canary: tool.canary,
            server: &of_tenant(tenant, &call.server),
        },
        agent_attributes: agent_attributes(draft, identity),
        server_attributes: server_attributes(&tool.server),
        context: context(draft, tool, approval, origin, input),
    };
    engine.evaluate(request).map_err(|error| deny(ReasonCode::PolicyError, error.0))
}

/// The call's `context`. `input`: its arguments. An attribute that is not known for a list is also in `UNKNOWN` of
/// `listing.rs`.
fn context(
    draft: &Draft<'_>,
    tool: &Tool,
    approval: Option<&Approval>,
    origin: Origin<'_>,
    input: Value,
) -> Fields {
    let call = &draft.command.call;
    let now_ms = draft.facts.now_ms;
    let untainted = match origin.tainted {
        None => UNTAINTED.with(|by_rule| by_rule.get(tool.tainted as usize).cloned()),
        Some(_) => None,
    };
    let approval = match approval {
        None => NOT_APPROVED.with(Value::clone),
        given => approved(given, now_ms),
    };
    let session = match [call.run_id.as_str(), &call.user_id, &call.user_role] {
        ["", "", ""] => NO_SESSION.with(Value::clone),
        named => session(named),
    };
    let [provenance, destinations] = provenance::context(draft);
    vec![
        ("source_trust", Value::from(origin.effective().as_str())),
        ("stated_trust", Value::from(origin.stated.as_str())),
        ("taint", untainted.unwrap_or_else(|| taint(origin.tainted, tool.tainted, now_ms))),
        ("tool_risk", Value::from(tool.risk.as_str())),
        ("sensitive", Value::from(call.contains_sensitive_data)),
        ("resource", Value::from(call.resource.as_str())),
        ("input", input),
        ("shield", shield::context(draft)),
        ("velocity", velocity(draft)),
        ("approval", approval),
        ("warrant", warrant::context(draft)),
        ("session", session),
        ("provenance", provenance),
        ("destinations", destinations),
    ]
}

fn taint(tainted: Option<&Tainted>, rule: TaintRule, now_ms: u64) -> Value {
    let servers = tainted.into_iter().flat_map(|tainted| &tainted.servers);
    record(vec![
        ("tainted", Value::from(tainted.is_some())),
        ("servers", Value::set(servers.map(|server| Value::from(server.as_str())), None)),
        ("age_s", age_s(tainted.map(|tainted| tainted.at_ms), now_ms)),
        ("tool", Value::from(rule.as_str())),
    ])
}

fn approved(approval: Option<&Approval>, now_ms: u64) -> Value {
    let approvers = approval.into_iter().flat_map(|approval| &approval.approvers);
    let names = approvers.map(|approver| Value::from(approver.administrator.as_str()));
    record(vec![
        ("granted", Value::from(approval.is_some())),
        ("approvers", Value::set(names, None)),
        ("age_s", age_s(approval.and_then(|approval| approval.approved_at_ms), now_ms)),
    ])
}

fn session([run_id, user_id, user_role]: [&str; 3]) -> Value {
    record(vec![
        ("run_id", Value::from(run_id)),
        ("user_id", Value::from(user_id)),
        ("user_role", Value::from(user_role)),
    ])
}

/// The seconds since then; 0 if it never was.
fn age_s(at_ms: Option<u64>, now_ms: u64) -> Value {
    let age_ms = at_ms.map_or(0, |at_ms| now_ms.saturating_sub(at_ms));
    Value::from(i64::from(u32::try_from(age_ms / 1_000).unwrap_or(u32::MAX)))
}

/// The windows that count the call.
fn velocity(draft: &Draft<'_>) -> Value {
    let windows = draft.window_counts.iter().map(|WindowCount { window, counted }| {
        let count = Value::from(i64::try_from(counted.count).unwrap_or(i64::MAX));
        let mut counts = vec![("count", count)];
        counts.extend(window.sum.map(|_| ("sum", decimal::of_amount(counted.sum))));
        (window.name, record(counts))
    });
    record(windows.collect())
}

pub fn agent_attributes(draft: &Draft<'_>, identity: &Identity<'_>) -> Fields {
    let risk_tier = containment::effective_tier(draft, identity.agent.risk_tier);
    vec![
        ("environment", Value::from(&*identity.agent.environment)),
        ("risk_tier", Value::from(risk_tier.as_str())),
    ]
}

pub fn server_attributes(server: &ServerRecord) -> Fields {
    vec![("trust", Value::from(server.trust.as_str())), ("kind", Value::from(server.kind.as_str()))]
}

/// The agent's groups, as Cedar names them.
pub fn groups(tenant: &str, identity: &Identity<'_>) -> Vec<String> {
    identity.agent.groups.iter().map(|group| of_tenant(tenant, group)).collect()
}

/// An agent, a group or a server of the tenant, as Cedar names it.
pub fn of_tenant(tenant: &str, name: &str) -> String {
    [tenant, "/", name].concat()
}
