//! Every path of the worker, its methods, and what each needs. A path that is not here returns 404.
//! The table has no default: every route names its access.

use self::Access::{Administrator, Bootstrap, Call, Log, Open, Reader};
use crate::approval::VerdictKind;
use crate::name::is_name;
use crate::scope::Scope;

/// The authentication that a request needs before its handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    Open,
    /// The bootstrap secret.
    Bootstrap,
    /// An agent's credential. The lane checks the rest: the scope, which depends on the tool, or whether the
    /// credential is a harness's.
    Call,
    /// An agent's credential for its own records, or an administrator's with the scope.
    Reader(Scope),
    /// An administrator's credential with the scope.
    Administrator(Scope),
    /// An administrator's credential with the scope `audit:read`; nothing if the tenant's logs are public.
    Log,
}

/// An action on an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAction {
    Freeze,
    Unfreeze,
    Quarantine,
    Restore,
    Untaint,
    Revoke,
}

/// An action on a server or a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateAction {
    Approve,
    Disable,
    Quarantine,
    Restore,
}

/// The operation of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Health,
    Ready,
    Version,
    Description,
    ReadMetrics,
    Bootstrap,
    Authorize,
    StartRun,
    ReportResult,
    ListDecisions,
    ReadDecision,
    ReportOutcome,
    ListReceipts,
    ReadReceiptEnds,
    VerifyReceipts,
    ReadReceipt,
    ReadLogKeys,
    ReadCheckpoint,
    ReadTile,
    ReadInclusion,
    ReadConsistency,
    ListRegistryEvents,
    ListApprovals,
    ReadApproval,
    DecideApproval(VerdictKind),
    ListAuditEvents,
    ListTenants,
    CreateTenant,
    ReadTenant,
    PatchTenant,
    DeleteTenant,
    ReadSettings,
    PatchSettings,
    ReadLimitStates,
    ListLimits,
    CreateLimit,
    ReadLimit,
    PatchLimit,
    DeleteLimit,
    ReadWebhook,
    SetWebhook,
    DeleteWebhook,
    ListAgents,
    CreateAgent,
    ReadAgent,
    PatchAgent,
    DeleteAgent,
    ActOnAgent(AgentAction),
    ListGroups,
    CreateGroup,
    ReadGroup,
    DeleteGroup,
    ProtectGroup,
    UnprotectGroup,
    ListMembers,
    AddMember,
    RemoveMember,
    ListAdministrators,
    CreateAdministrator,
    ReadAdministrator,
    DeleteAdministrator,
    ListCredentials,
    CreateCredential,
    ReadCredential,
    RotateCredential,
    RevokeCredential,
    ListServers,
    CreateServer,
    ReadServer,
    PatchServer,
    DeleteServer,
    ActOnServer(StateAction),
    ListTools,
    CreateTool,
    ReadTool,
    PatchTool,
    ActOnTool(StateAction),
    ListBans,
    CreateBan,
    ReadBan,
    DeleteBan,
    ListWarrantRoots,
    CreateWarrantRoot,
    ReadWarrantRoot,
    PatchWarrantRoot,
    DeleteWarrantRoot,
    TakeRevocationList,
    ListWarrantRevocations,
    RevokeWarrant,
    ReadWarrantRevocation,
}

/// A method on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    pub method: &'static str,
    /// With parameters as OpenAPI has them: `/v1/agents/{agent}`.
    pub path: &'static str,
    pub access: Access,
    pub operation: Operation,
}

const fn route(
    method: &'static str,
    path: &'static str,
    access: Access,
    operation: Operation,
) -> Route {
    Route { method, path, access, operation }
}

const READ: Access = Administrator(Scope::RegistryRead);
const WRITE: Access = Administrator(Scope::RegistryWrite);
const AUDIT: Access = Administrator(Scope::AuditRead);
const APPROVE: Access = Administrator(Scope::ApprovalsDecide);
const TENANTS: Access = Administrator(Scope::TenantsAdmin);

/// The route table. If two paths match, the first counts.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    route("POST",   "/v1/authorize", Call, Operation::Authorize),
    route("POST",   "/v1/runs", Call, Operation::StartRun),
    route("POST",   "/v1/runs/{run}/observations", Call, Operation::ReportResult),
    route("GET",    "/healthz", Open, Operation::Health),
    route("GET",    "/readyz", Open, Operation::Ready),
    route("GET",    "/version", Open, Operation::Version),
    route("GET",    "/openapi.json", Open, Operation::Description),
    route("GET",    "/metrics", Administrator(Scope::MetricsRead), Operation::ReadMetrics),
    route("POST",   "/v1/bootstrap", Bootstrap, Operation::Bootstrap),
    route("POST",   "/v1/decisions/{decision_id}/outcome", Call, Operation::ReportOutcome),
    route("GET",    "/v1/decisions", Reader(Scope::AuditRead), Operation::ListDecisions),
    route("GET",    "/v1/decisions/{decision_id}", Reader(Scope::AuditRead), Operation::ReadDecision),
    route("GET",    "/v1/receipts", AUDIT, Operation::ListReceipts),
    route("GET",    "/v1/receipts/ends", AUDIT, Operation::ReadReceiptEnds),
    route("POST",   "/v1/receipts/verify", AUDIT, Operation::VerifyReceipts),
    route("GET",    "/v1/receipts/{receipt_id}", AUDIT, Operation::ReadReceipt),
    route("GET",    "/v1/log/{log}/keys", Log, Operation::ReadLogKeys),
    route("GET",    "/v1/log/{log}/checkpoint", Log, Operation::ReadCheckpoint),
    route("GET",    "/v1/log/{log}/tile/{tile}", Log, Operation::ReadTile),
    route("GET",    "/v1/log/{log}/inclusion", Log, Operation::ReadInclusion),
    route("GET",    "/v1/log/{log}/consistency", Log, Operation::ReadConsistency),
    route("GET",    "/v1/registry-events", AUDIT, Operation::ListRegistryEvents),
    route("GET",    "/v1/approvals", Reader(Scope::ApprovalsDecide), Operation::ListApprovals),
    route("GET",    "/v1/approvals/{approval_id}", Reader(Scope::ApprovalsDecide), Operation::ReadApproval),
    route("POST",   "/v1/approvals/{approval_id}/approve", APPROVE, Operation::DecideApproval(VerdictKind::Approve)),
    route("POST",   "/v1/approvals/{approval_id}/reject", APPROVE, Operation::DecideApproval(VerdictKind::Reject)),
    route("POST",   "/v1/approvals/{approval_id}/cancel", APPROVE, Operation::DecideApproval(VerdictKind::Cancel)),
    route("GET",    "/v1/audit-events", AUDIT, Operation::ListAuditEvents),
    route("GET",    "/v1/tenants", TENANTS, Operation::ListTenants),
    route("POST",   "/v1/tenants", TENANTS, Operation::CreateTenant),
    route("GET",    "/v1/tenants/{tenant}", TENANTS, Operation::ReadTenant),
    route("PATCH",  "/v1/tenants/{tenant}", TENANTS, Operation::PatchTenant),
    route("DELETE", "/v1/tenants/{tenant}", TENANTS, Operation::DeleteTenant),
    route("GET",    "/v1/settings", READ, Operation::ReadSettings),
    route("PATCH",  "/v1/settings", WRITE, Operation::PatchSettings),
    route("GET",    "/v1/limits", READ, Operation::ListLimits),
    route("POST",   "/v1/limits", WRITE, Operation::CreateLimit),
    // Before the limits by id: no limit has this id.
    route("GET",    "/v1/limits/status", Reader(Scope::RegistryRead), Operation::ReadLimitStates),
    route("GET",    "/v1/limits/{limit_id}", READ, Operation::ReadLimit),
    route("PATCH",  "/v1/limits/{limit_id}", WRITE, Operation::PatchLimit),
    route("DELETE", "/v1/limits/{limit_id}", WRITE, Operation::DeleteLimit),
    route("GET",    "/v1/webhook", READ, Operation::ReadWebhook),
    route("PUT",    "/v1/webhook", WRITE, Operation::SetWebhook),
    route("DELETE", "/v1/webhook", WRITE, Operation::DeleteWebhook),
    route("GET",    "/v1/agents", READ, Operation::ListAgents),
    route("POST",   "/v1/agents", WRITE, Operation::CreateAgent),
    route("GET",    "/v1/agents/{agent}", READ, Operation::ReadAgent),
    route("PATCH",  "/v1/agents/{agent}", WRITE, Operation::PatchAgent),
    route("DELETE", "/v1/agents/{agent}", WRITE, Operation::DeleteAgent),
    route("POST",   "/v1/agents/{agent}/freeze", WRITE, Operation::ActOnAgent(AgentAction::Freeze)),
    route("POST",   "/v1/agents/{agent}/unfreeze", WRITE, Operation::ActOnAgent(AgentAction::Unfreeze)),
    route("POST",   "/v1/agents/{agent}/quarantine", WRITE, Operation::ActOnAgent(AgentAction::Quarantine)),
    route("POST",   "/v1/agents/{agent}/restore", WRITE, Operation::ActOnAgent(AgentAction::Restore)),
    route("POST",   "/v1/agents/{agent}/untaint", WRITE, Operation::ActOnAgent(AgentAction::Untaint)),
    route("POST",   "/v1/agents/{agent}/revoke", WRITE, Operation::ActOnAgent(AgentAction::Revoke)),
    route("GET",    "/v1/groups", READ, Operation::ListGroups),
    route("POST",   "/v1/groups", WRITE, Operation::CreateGroup),
    route("GET",    "/v1/groups/{group}", READ, Operation::ReadGroup),
    route("DELETE", "/v1/groups/{group}", WRITE, Operation::DeleteGroup),
    route("POST",   "/v1/groups/{group}/protect", WRITE, Operation::ProtectGroup),
    route("POST",   "/v1/groups/{group}/unprotect", WRITE, Operation::UnprotectGroup),
    route("GET",    "/v1/groups/{group}/members", READ, Operation::ListMembers),
    route("PUT",    "/v1/groups/{group}/members/{kind}/{member}", WRITE, Operation::AddMember),
    route("DELETE", "/v1/groups/{group}/members/{kind}/{member}", WRITE, Operation::RemoveMember),
    route("GET",    "/v1/administrators", READ, Operation::ListAdministrators),
    route("POST",   "/v1/administrators", WRITE, Operation::CreateAdministrator),
    route("GET",    "/v1/administrators/{administrator}", READ, Operation::ReadAdministrator),
    route("DELETE", "/v1/administrators/{administrator}", WRITE, Operation::DeleteAdministrator),
    route("GET",    "/v1/credentials", READ, Operation::ListCredentials),
    route("POST",   "/v1/credentials", WRITE, Operation::CreateCredential),
    route("GET",    "/v1/credentials/{key_id}", READ, Operation::ReadCredential),
    route("POST",   "/v1/credentials/{key_id}/rotate", WRITE, Operation::RotateCredential),
    route("POST",   "/v1/credentials/{key_id}/revoke", WRITE, Operation::RevokeCredential),
    route("GET",    "/v1/servers", READ, Operation::ListServers),
    route("POST",   "/v1/servers", WRITE, Operation::CreateServer),
    route("GET",    "/v1/servers/{server}", READ, Operation::ReadServer),
    route("PATCH",  "/v1/servers/{server}", WRITE, Operation::PatchServer),
    route("DELETE", "/v1/servers/{server}", WRITE, Operation::DeleteServer),
    route("POST",   "/v1/servers/{server}/approve", WRITE, Operation::ActOnServer(StateAction::Approve)),
    route("POST",   "/v1/servers/{server}/disable", WRITE, Operation::ActOnServer(StateAction::Disable)),
    route("POST",   "/v1/servers/{server}/quarantine", WRITE, Operation::ActOnServer(StateAction::Quarantine)),
    route("POST",   "/v1/servers/{server}/restore", WRITE, Operation::ActOnServer(StateAction::Restore)),
    route("GET",    "/v1/servers/{server}/tools", READ, Operation::ListTools),
    route("POST",   "/v1/servers/{server}/tools", WRITE, Operation::CreateTool),
    route("GET",    "/v1/servers/{server}/tools/{tool}", READ, Operation::ReadTool),
    route("PATCH",  "/v1/servers/{server}/tools/{tool}", WRITE, Operation::PatchTool),
    route("POST",   "/v1/servers/{server}/tools/{tool}/approve", WRITE, Operation::ActOnTool(StateAction::Approve)),
    route("POST",   "/v1/servers/{server}/tools/{tool}/disable", WRITE, Operation::ActOnTool(StateAction::Disable)),
    route("POST",   "/v1/servers/{server}/tools/{tool}/quarantine", WRITE, Operation::ActOnTool(StateAction::Quarantine)),
    route("POST",   "/v1/servers/{server}/tools/{tool}/restore", WRITE, Operation::ActOnTool(StateAction::Restore)),
    route("GET",    "/v1/bans", READ, Operation::ListBans),
    route("POST",   "/v1/bans", WRITE, Operation::CreateBan),
    route("GET",    "/v1/bans/{ban_id}", READ, Operation::ReadBan),
    route("DELETE", "/v1/bans/{ban_id}", WRITE, Operation::DeleteBan),
    route("GET",    "/v1/warrant-roots", READ, Operation::ListWarrantRoots),
    route("POST",   "/v1/warrant-roots", WRITE, Operation::CreateWarrantRoot),
    route("GET",    "/v1/warrant-roots/{root_id}", READ, Operation::ReadWarrantRoot),
    route("PATCH",  "/v1/warrant-roots/{root_id}", WRITE, Operation::PatchWarrantRoot),
    route("DELETE", "/v1/warrant-roots/{root_id}", WRITE, Operation::DeleteWarrantRoot),
    route("PUT",    "/v1/warrant-roots/{root_id}/revocation-list", WRITE, Operation::TakeRevocationList),
    route("GET",    "/v1/warrant-revocations", READ, Operation::ListWarrantRevocations),
    route("POST",   "/v1/warrant-revocations", WRITE, Operation::RevokeWarrant),
    route("GET",    "/v1/warrant-revocations/{warrant_id}", READ, Operation::ReadWarrantRevocation),
];

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<'a> {
    /// The route, and the parameters from the path, in order.
    Route(&'static Route, Vec<&'a str>),
    /// The path exists; these are its methods, separated by commas.
    OtherMethods(String),
    Nothing,
}

/// Finds the route of a request; `path` begins with a slash. HEAD finds the route of GET.
#[must_use]
pub fn find<'a>(method: &str, path: &'a str) -> Found<'a> {
    let fitting = ROUTES.iter().find_map(|route| Some((route.path, parameters(route.path, path)?)));
    let Some((template, parameters)) = fitting else { return Found::Nothing };
    let of_path = || ROUTES.iter().filter(|route| route.path == template);
    let served = if method == "HEAD" { "GET" } else { method };
    match of_path().find(|route| route.method == served) {
        Some(route) => Found::Route(route, parameters),
        None => {
            let methods = of_path().map(|route| match route.method {
                "GET" => "GET, HEAD",
                method => method,
            });
            Found::OtherMethods(methods.collect::<Vec<_>>().join(", "))
        }
    }
}

const FORWARD_AUTH: &str = "/v1/forward-auth";

/// A path that accepts every method: the upstream defines what a method means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proxied<'a> {
    /// `/mcp/{server}`
    Mcp { server: &'a str },
    /// `/http/{server}/{path}`; `rest` begins with a slash.
    Http { server: &'a str, rest: &'a str },
    /// `/v1/forward-auth`, then the server, then the original path, which begins with a slash.
    ForwardAuth { server: Option<&'a str>, rest: Option<&'a str> },
}

/// The proxy that `path` names. Looked up before [`find`]; needs an agent's credential.
#[must_use]
pub fn proxied(path: &str) -> Option<Proxied<'_>> {
    if path == FORWARD_AUTH {
        return Some(Proxied::ForwardAuth { server: None, rest: None });
    }
    let after = |prefix| {
        let path = path.strip_prefix(prefix)?.strip_prefix('/')?;
        let (server, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        is_name(server).then_some((server, Some(rest).filter(|rest| !rest.is_empty())))
    };
    if let Some((server, None)) = after("/mcp") {
        return Some(Proxied::Mcp { server });
    }
    if let Some((server, Some(rest))) = after("/http") {
        return Some(Proxied::Http { server, rest });
    }
    let (server, rest) = after(FORWARD_AUTH)?;
    Some(Proxied::ForwardAuth { server: Some(server), rest })
}

/// The parameter of a log's tiles: what is left of the path, slashes included.
const TILE: &str = "/{tile}";

/// The parameters of `path` if it matches the template.
fn parameters<'a>(template: &str, path: &'a str) -> Option<Vec<&'a str>> {
    if let Some(begin) = template.strip_suffix(TILE).filter(|begin| begin.ends_with("/tile")) {
        let at = path.find("/tile/")? + "/tile".len();
        let mut found = parameters(begin, path.get(..at)?)?;
        found.push(path.get(at + 1..)?);
        return Some(found);
    }
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for part in template.split('/') {
        let segment = segments.next()?;
        if part.starts_with('{') && !segment.is_empty() {
            found.push(segment);
        } else if part != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_finds_its_route() {
        let operation = |method, path| match find(method, path) {
            Found::Route(route, parameters) => Some((route.operation, parameters)),
            _ => None,
        };
        for (method, path, expected) in [
            ("POST", "/v1/authorize", Some((Operation::Authorize, vec![]))),
            ("GET", "/v1/agents/a", Some((Operation::ReadAgent, vec!["a"]))),
            ("POST", "/v1/receipts/verify", Some((Operation::VerifyReceipts, vec![]))),
            ("GET", "/v1/receipts/rcpt_0_1", Some((Operation::ReadReceipt, vec!["rcpt_0_1"]))),
            (
                "PATCH",
                "/v1/servers/s/tools/a%2Fb",
                Some((Operation::PatchTool, vec!["s", "a%2Fb"])),
            ),
            (
                "GET",
                "/v1/log/acme.head/tile/entries/x001/234.p/5",
                Some((Operation::ReadTile, vec!["acme.head", "entries/x001/234.p/5"])),
            ),
            ("GET", "/v1/log/acme.head/tile/", Some((Operation::ReadTile, vec!["acme.head", ""]))),
            ("GET", "/v1/log/acme.head/tile", None),
            ("HEAD", "/v1/agents/a", Some((Operation::ReadAgent, vec!["a"]))),
            ("HEAD", "/healthz", Some((Operation::Health, vec![]))),
            ("HEAD", "/v1/authorize", None),
            ("HEAD", "/v1/receipts/verify", None),
            ("GET", "/v1/agents/a/", None),
            ("GET", "/v1/agents/", None),
            ("GET", "/v1", None),
            ("GET", "/", None),
        ] {
            assert_eq!(operation(method, path), expected, "{method} {path}");
        }
        assert_eq!(find("GET", "/v1/receipts/verify"), Found::OtherMethods("POST".to_owned()));
        assert_eq!(
            find("PUT", "/v1/agents/a"),
            Found::OtherMethods("GET, HEAD, PATCH, DELETE".to_owned())
        );
    }

    #[test]
    fn a_path_of_a_proxy_names_its_server() {
        let forward_auth = |server, rest| Some(Proxied::ForwardAuth { server, rest });
        for (path, expected) in [
            ("/mcp/crm", Some(Proxied::Mcp { server: "crm" })),
            ("/mcp/crm/", None),
            ("/mcp/", None),
            ("/mcp", None),
            ("/mcp/CRM", None),
            ("/mcp/c%72m", None),
            ("/http/crm/", Some(Proxied::Http { server: "crm", rest: "/" })),
            ("/http/crm//a%2Fb/", Some(Proxied::Http { server: "crm", rest: "//a%2Fb/" })),
            ("/http/crm", None),
            ("/http//a", None),
            ("/v1/forward-auth", forward_auth(None, None)),
            ("/v1/forward-auth/crm", forward_auth(Some("crm"), None)),
            ("/v1/forward-auth/crm/", forward_auth(Some("crm"), Some("/"))),
            ("/v1/forward-auth/crm/a/b", forward_auth(Some("crm"), Some("/a/b"))),
            ("/v1/forward-auth/", None),
            ("/v1/forward-auth//a", None),
            ("/v1/forward-authcrm", None),
            ("/v1/authorize", None),
            ("/", None),
        ] {
            assert_eq!(proxied(path), expected, "{path}");
        }
        let shadowed = |route: &&Route| proxied(route.path).is_some();
        assert_eq!(ROUTES.iter().find(shadowed), None);
    }

    #[test]
    fn no_route_is_there_twice_and_only_four_are_open() {
        let mut seen = std::collections::HashSet::new();
        assert!(ROUTES.iter().all(|route| seen.insert((route.method, route.path))));
        let open: Vec<&str> =
            ROUTES.iter().filter(|r| r.access == Access::Open).map(|r| r.path).collect();
        assert_eq!(open, ["/healthz", "/readyz", "/version", "/openapi.json"]);
    }

    #[test]
    fn what_changes_the_registry_needs_the_scope_to_write_it() {
        for route in ROUTES {
            let writes = route.method != "GET" && route.operation != Operation::VerifyReceipts;
            let expected = match route.path {
                path if path.starts_with("/v1/tenants") => Administrator(Scope::TenantsAdmin),
                path if writes && path.starts_with("/v1/approvals") => APPROVE,
                "/v1/authorize"
                | "/v1/decisions/{decision_id}/outcome"
                | "/v1/runs"
                | "/v1/runs/{run}/observations" => Call,
                "/v1/bootstrap" => Bootstrap,
                _ if writes => Administrator(Scope::RegistryWrite),
                _ => continue,
            };
            assert_eq!(route.access, expected, "{} {}", route.method, route.path);
        }
    }
}
