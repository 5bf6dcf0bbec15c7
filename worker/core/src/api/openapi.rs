//! The API described, from the types and the route table. `docs/openapi.json` is this document,
//! written by `cargo run -p gateward-core --example openapi`; the worker serves that file.

use std::collections::BTreeMap;

use serde_json::json;
use utoipa::ToSchema;
use utoipa::openapi::header::Header;
use utoipa::openapi::path::{HttpMethod, Operation as Described, Parameter, ParameterIn};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::Tag;
use utoipa::openapi::{
    AllOf, Array, Components, Content, Info, KnownFormat, Object, OpenApi, Paths, Ref, RefOr,
    Required, Response, Schema, SchemaFormat, Type,
};

use self::ProblemCode::{
    AgentMismatch, AlreadyBootstrapped, ApprovalRequired, BodyTooLarge, CredentialExpired,
    DefinitionChanged, EnvironmentMismatch, Forbidden, IdempotencyKeyReused, InputInvalid,
    Internal, InvalidField, JournalFull, LaneUnavailable, LastAdministrator, LimitReached,
    MalformedRequest, Misconfigured, NameTaken, NonceReplayed, NotFound, Overloaded,
    PreconditionFailed, RateLimited, RegistryUnavailable, RequestIdConflict, SignatureInvalid,
    SignatureRequired, SourceAddressForbidden, StateConflict, TimestampStale, Unauthorized,
    UnsupportedMediaType, UpstreamForbidden, UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable,
};
use crate::admin::administrator::{Administrator, AdministratorRow, CreateAdministrator};
use crate::admin::agent::{Agent, AgentAction, AgentPatch, AgentRow, CreateAgent};
use crate::admin::audit::EventRow;
use crate::admin::ban::{Ban, BanRequest, BanRow};
use crate::admin::credential::{
    CreateCredential, Credential, CredentialRow, IssuedCredential, RotateRequest,
};
use crate::admin::group::{CreateGroup, Group, GroupRow, Member};
use crate::admin::limits::{LimitsView, PatchLimits};
use crate::admin::server::{
    ChangedServer, Server, ServerPatch, ServerRequest, ServerRow, StateAction,
};
use crate::admin::tenant::{
    BootstrapRequest, CreatedTenant, PatchTenant, Tenant, TenantRequest, TenantRow,
};
use crate::admin::tool::{
    ApproveTool, ChangedTool, Tool, ToolDetail, ToolPatch, ToolRequest, ToolRow,
};
use crate::admin::webhook::{IssuedWebhook, Webhook, WebhookRequest};
use crate::admin::{MAX_IDEMPOTENCY_KEY_BYTES, Record};
use crate::api::approvals::ApprovalPage;
use crate::api::decisions::{DecisionDetail, DecisionPage};
use crate::api::health::{Health, Version};
use crate::api::page::{DEFAULT_PAGE, MAX_PAGE};
use crate::api::receipts::{
    DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE, ReceiptEnds, ReceiptPage, ReceiptView, Verification,
    VerifyRequest,
};
use crate::api::route::{Access, Operation, ROUTES, Route};
use crate::approval::{ApprovalStatus, ApprovalView, ApproveRequest, CloseRequest, VerdictKind};
use crate::decision::Decision;
use crate::field::{Name, ToolName};
use crate::gate::Response as AuthorizeResponse;
use crate::problem::{Body as ProblemBody, ProblemCode};
use crate::trust::SourceTrust;

const INFO: &str = "What a policy gate for agents' tool calls answers. Every answer has an \
    `X-Request-Id`: the caller's own, if it was 1 to 64 of `[A-Za-z0-9._-]`, else a UUID. Times \
    are RFC 3339 in UTC with milliseconds. Where a list is absent or null, it restricts nothing; \
    an empty list allows nothing.";

/// What the operations are about.
const TAGS: [(&str, &str); 16] = [
    ("worker", "What runs, and whether it works."),
    ("calls", "Whether a tool may be called."),
    ("decisions", "What was decided."),
    ("receipts", "The hash-chained record of what was decided."),
    ("approvals", "Calls that wait for people."),
    ("audit events", "What happened, calls and changes of the registry alike."),
    ("tenants", "Who uses this worker, each apart from the others."),
    ("limits", "What holds for agents without limits of their own."),
    ("webhook", "Who is told what becomes of approvals."),
    ("agents", "Who calls tools."),
    ("groups", "Agents, which policies see, and administrators, who approve."),
    (
        "administrators",
        "Who administers and approves: persons, each with any number of credentials.",
    ),
    ("credentials", "What agents and administrators authenticate with."),
    ("servers", "Where tools are."),
    ("tools", "What agents call."),
    ("bans", "Who gets nothing done."),
];

/// What any request with an agent's or administrator's credential can come to.
const CREDENTIAL: [ProblemCode; 9] = [
    Unauthorized,
    CredentialExpired,
    SignatureInvalid,
    SignatureRequired,
    Forbidden,
    SourceAddressForbidden,
    NonceReplayed,
    TimestampStale,
    RegistryUnavailable,
];

/// What stands in requests and in answers alike: requests may leave out what has a default.
const IN_REQUESTS: [&str; 2] = ["Upstream", "UpstreamCredential"];

/// What asking a server for its tools can come to.
const DISCOVERY: [ProblemCode; 4] =
    [UpstreamForbidden, UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable];

/// What any request but a GET can come to: its body is read, also where none may be.
const BODY: [ProblemCode; 3] = [MalformedRequest, BodyTooLarge, Overloaded];

/// What the lane answers to a call after it has charged the agent's rate.
const CHARGED: [ProblemCode; 4] =
    [EnvironmentMismatch, RequestIdConflict, RateLimited, JournalFull];

/// The API as OpenAPI 3.1 has it.
#[must_use]
pub fn document() -> OpenApi {
    let mut components = Components::new();
    let mut paths = Paths::new();
    for (name, parameter) in headers_of_requests() {
        components.parameters.insert(name.to_owned(), parameter.into());
    }
    for (name, header) in headers_of_answers() {
        components.headers.insert(name.to_owned(), header.into());
    }
    for (name, scheme) in security_schemes() {
        components.security_schemes.insert(name.to_owned(), scheme.into());
    }
    for route in ROUTES {
        let Some(method) = method(route.method) else { continue };
        let mut entry = entry(route.operation);
        components.schemas.append(&mut entry.schemas);
        let operation = entry.describe(route, &mut components);
        paths.add_path_operation(route.path, vec![method], operation);
    }
    let mut described = Entry::new("", "", "");
    described.register::<ProblemBody<'_>>();
    described.register::<PendingLanes>();
    components.schemas.append(&mut described.schemas);
    let tags = TAGS.map(|(name, about)| Tag::builder().name(name).description(Some(about)).build());
    let info = Info::builder()
        .title("Gateward")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(INFO));
    OpenApi::builder().info(info).tags(Some(tags)).paths(paths).components(Some(components)).build()
}

fn method(name: &str) -> Option<HttpMethod> {
    match name {
        "GET" => Some(HttpMethod::Get),
        "POST" => Some(HttpMethod::Post),
        "PUT" => Some(HttpMethod::Put),
        "PATCH" => Some(HttpMethod::Patch),
        "DELETE" => Some(HttpMethod::Delete),
        _ => None,
    }
}

/// Every operation: a new one does not compile before it is described here.
fn entry(operation: Operation) -> Entry {
    match operation {
        Operation::Health => {
            Entry::new("worker", "check_health", "Says that the worker runs.").answers::<Health>()
        }
        Operation::Ready => {
            Entry::new("worker", "check_readiness", "Says that D1 and a lane's storage answer.")
                .answers::<Health>()
                .refuses(&[RegistryUnavailable, LaneUnavailable])
        }
        Operation::Version => {
            Entry::new("worker", "read_version", "Says what is deployed.").answers::<Version<'_>>()
        }
        Operation::Description => Entry::new("worker", "read_openapi", "Gives this document.")
            .answers_with(Object::with_type(Type::Object).into()),
        Operation::Bootstrap => Entry::new(
            "tenants",
            "bootstrap",
            "Makes the first operator, and its tenant if there is none of the name; or gives a tenant \
             without an administrator another one.",
        )
        .takes::<BootstrapRequest>()
        .writes::<IssuedCredential>(&CREATED)
        .tagged()
        .refuses(&[AlreadyBootstrapped, NameTaken]),
        Operation::Authorize => {
            Entry::new("calls", "authorize", "Asks whether a tool may be called.")
                .takes_with::<AuthorizeRequest>(Required::True)
                .answers::<AuthorizeResponse<'_>>()
                .refuses(&[
                    AgentMismatch,
                    EnvironmentMismatch,
                    RequestIdConflict,
                    RateLimited,
                    JournalFull,
                    LaneUnavailable,
                ])
        }
        Operation::ListDecisions => Entry::new(
            "decisions",
            "list_decisions",
            "Lists decisions, newest first; an agent sees its own.",
        )
        .filtered("agent", reference::<Name>(), "Only this agent's.")
        .filtered("decision", reference::<Decision>(), "Only those that came to this.")
        .within_times()
        .in_pages()
        .answers::<DecisionPage>(),
        Operation::ReadDecision => {
            Entry::new("decisions", "read_decision", "Gives a decision as soon as it was answered.")
                .answers::<DecisionDetail>()
                .refuses(&[LaneUnavailable])
        }
        Operation::ReadReceiptEnds => Entry::new(
            "receipts",
            "read_receipt_ends",
            "Says where the receipts of a lane begin and end, as the lane holds it.",
        )
        .with(lane())
        .answers::<ReceiptEnds>()
        .refuses(&[NotFound, LaneUnavailable]),
        Operation::ListReceipts => {
            let from = Object::builder()
                .schema_type(Type::Integer)
                .minimum(Some(1))
                .default(Some(json!(1)));
            Entry::new("receipts", "list_receipts", "Lists the receipts of a lane in order.")
                .with(lane())
                .filtered("from", from.into(), "The first one's sequence number.")
                .with(limit(DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE))
                .answers::<ReceiptPage>()
                .refuses(&[NotFound, LaneUnavailable])
        }
        Operation::VerifyReceipts => {
            Entry::new("receipts", "verify_receipts", "Checks receipts as they are stored.")
                .takes_with::<VerifyRequest>(Required::True)
                .answers::<Verification>()
                .refuses(&[NotFound, LaneUnavailable])
        }
        Operation::ReadReceipt => Entry::new(
            "receipts",
            "read_receipt",
            "Gives a receipt as soon as its decision was answered.",
        )
        .answers::<ReceiptView>()
        .refuses(&[LaneUnavailable]),
        Operation::ListApprovals => Entry::new(
            "approvals",
            "list_approvals",
            "Lists approvals without arguments, newest first; an agent sees its own.",
        )
        .filtered("status", reference::<ApprovalStatus>(), "Only those that stand so.")
        .filtered("group", reference::<Name>(), "Only those that ask this group.")
        .filtered("agent", reference::<Name>(), "Only this agent's.")
        .in_pages()
        .answers::<ApprovalPage<'_>>(),
        Operation::ReadApproval => Entry::new(
            "approvals",
            "read_approval",
            "Gives an approval with the call's arguments while it is open; an agent may poll its own.",
        )
        .answers::<ApprovalView<'_>>()
        .tagged()
        .polled()
        .refuses(&[LaneUnavailable]),
        Operation::DecideApproval(kind) => {
            let (id, summary) = match kind {
                VerdictKind::Approve => (
                    "approve_approval",
                    "Approves a call, or a narrower one, for the groups that the caller is in.",
                ),
                VerdictKind::Reject => ("reject_approval", "Rejects a call, for good."),
                VerdictKind::Cancel => {
                    ("cancel_approval", "Takes an open approval back, granted or not, for good.")
                }
            };
            let entry = Entry::new("approvals", id, summary);
            let entry = match kind {
                VerdictKind::Approve => entry.takes_with::<ApproveRequest>(Required::False),
                _ => entry.takes_with::<CloseRequest>(Required::False),
            };
            entry.answers::<ApprovalView<'_>>().tagged().matching().refuses(&[
                InvalidField,
                StateConflict,
                JournalFull,
                LaneUnavailable,
            ])
        }
        Operation::ListAuditEvents => {
            let text = || Object::with_type(Type::String).into();
            Entry::new("audit events", "list_audit_events", "Lists audit events, newest first.")
                .filtered("kind", text(), "Only those of this kind.")
                .within_times()
                .page::<EventRow>()
        }
        Operation::ListTenants => {
            Entry::new("tenants", "list_tenants", "Lists tenants.").page::<TenantRow>()
        }
        Operation::CreateTenant => Entry::new(
            "tenants",
            "create_tenant",
            "Creates a tenant and its first administrator's credential.",
        )
        .takes::<TenantRequest>()
        .writes::<CreatedTenant>(&CREATED)
        .tagged()
        .refuses(&[NameTaken, LimitReached]),
        Operation::ReadTenant => {
            Entry::new("tenants", "read_tenant", "Gives a tenant.").answers::<Tenant>().tagged()
        }
        Operation::PatchTenant => {
            Entry::new("tenants", "patch_tenant", "Suspends a tenant, or gives it more lanes.")
                .takes::<PatchTenant>()
                .writes::<Tenant>(&DONE)
                .tagged()
                .matching()
        }
        Operation::DeleteTenant => Entry::new(
            "tenants",
            "delete_tenant",
            "Deletes a tenant: nothing of it can authenticate or be called any more.",
        )
        .writes::<Tenant>(&DONE)
        .matching()
        .refuses(&[StateConflict]),
        Operation::ReadLimits => Entry::new("limits", "read_limits", "Gives the tenant's limits.")
            .answers::<LimitsView>()
            .tagged(),
        Operation::PatchLimits => {
            Entry::new("limits", "patch_limits", "Changes the tenant's limits.")
                .takes::<PatchLimits>()
                .writes::<LimitsView>(&DONE)
                .tagged()
                .matching()
        }
        Operation::ReadWebhook => {
            Entry::new("webhook", "read_webhook", "Gives the tenant's webhook without its secret.")
                .answers::<Webhook>()
                .tagged()
                .refuses(&[NotFound])
        }
        Operation::SetWebhook => Entry::new(
            "webhook",
            "set_webhook",
            "Sets the tenant's webhook; its new secret is shown this once.",
        )
        .takes::<WebhookRequest>()
        .writes::<IssuedWebhook>(&CREATED_OR_DONE)
        .tagged()
        .matching(),
        Operation::DeleteWebhook => {
            Entry::new("webhook", "delete_webhook", "Deletes the webhook: nothing is told any more.")
                .writes::<Webhook>(&DONE)
                .matching()
                .refuses(&[NotFound])
        }
        Operation::ListAgents => {
            Entry::new("agents", "list_agents", "Lists agents.").page::<AgentRow>()
        }
        Operation::CreateAgent => Entry::new("agents", "create_agent", "Creates an agent.")
            .takes::<CreateAgent>()
            .writes::<Agent>(&CREATED)
            .tagged()
            .refuses(&[NameTaken, LimitReached]),
        Operation::ReadAgent => Entry::new("agents", "read_agent", "Gives an agent.")
            .answers::<Agent>()
            .tagged()
            .refuses(&[LaneUnavailable]),
        Operation::PatchAgent => Entry::new("agents", "patch_agent", "Changes an agent.")
            .takes::<AgentPatch>()
            .writes::<Agent>(&DONE)
            .tagged()
            .matching(),
        Operation::DeleteAgent => Entry::new(
            "agents",
            "delete_agent",
            "Deletes an agent and ends its credentials; its name is not given again.",
        )
        .writes::<Agent>(&DONE)
        .matching(),
        Operation::ActOnAgent(action) => {
            let revoked = &[StateConflict];
            let (id, summary, refused): (_, _, &[ProblemCode]) = match action {
                AgentAction::Freeze => {
                    ("freeze_agent", "Freezes an agent: its calls are denied.", revoked)
                }
                AgentAction::Unfreeze => {
                    ("unfreeze_agent", "Undoes a freeze, and nothing else.", revoked)
                }
                AgentAction::Quarantine => {
                    ("quarantine_agent", "Quarantines an agent: its calls are denied.", revoked)
                }
                AgentAction::Restore => (
                    "restore_agent",
                    "Undoes a quarantine, its lane's own included.",
                    &[StateConflict, LaneUnavailable],
                ),
                AgentAction::Untaint => (
                    "untaint_agent",
                    "Lifts the taint of an agent and of all its runs.",
                    &[StateConflict, LaneUnavailable],
                ),
                AgentAction::Revoke => ("revoke_agent", "Revokes an agent, for good.", &[]),
            };
            let entry = Entry::new("agents", id, summary).writes::<Agent>(&DONE);
            let entry = entry.tagged().matching();
            entry.refuses(refused)
        }
        Operation::ListGroups => {
            Entry::new("groups", "list_groups", "Lists groups.").page::<GroupRow>()
        }
        Operation::CreateGroup => Entry::new("groups", "create_group", "Creates a group.")
            .takes::<CreateGroup>()
            .writes::<Group>(&CREATED)
            .refuses(&[NameTaken, LimitReached]),
        Operation::ReadGroup => {
            Entry::new("groups", "read_group", "Gives a group.").answers::<Group>()
        }
        Operation::DeleteGroup => Entry::new(
            "groups",
            "delete_group",
            "Deletes a group: nobody is in it any more, and its name is not given again.",
        )
        .writes::<Group>(&DONE)
        .unrevised()
        .guarded(),
        Operation::ProtectGroup => Entry::new(
            "groups",
            "protect_group",
            "Protects a group: its members must approve who else becomes a member.",
        )
        .writes::<Group>(&DONE)
        .unrevised()
        .refuses(&[StateConflict]),
        Operation::UnprotectGroup => {
            Entry::new("groups", "unprotect_group", "Ends the protection of a group.")
                .writes::<Group>(&DONE)
                .unrevised()
                .guarded()
        }
        Operation::ListMembers => {
            Entry::new("groups", "list_members", "Lists who is in a group.").page::<Member>()
        }
        Operation::AddMember => {
            Entry::new("groups", "add_member", "Puts an agent or administrator into a group.")
                .writes::<Member>(&DONE)
                .refuses(&[LimitReached])
                .unrevised()
                .guarded()
        }
        Operation::RemoveMember => {
            Entry::new("groups", "remove_member", "Takes an agent or administrator out of a group.")
                .writes::<Member>(&DONE)
                .unrevised()
                .guarded()
        }
        Operation::ListAdministrators => {
            Entry::new("administrators", "list_administrators", "Lists administrators.")
                .page::<AdministratorRow>()
        }
        Operation::CreateAdministrator => Entry::new(
            "administrators",
            "create_administrator",
            "Creates an administrator, who is one person, without credentials.",
        )
        .takes::<CreateAdministrator>()
        .writes::<Administrator>(&CREATED)
        .refuses(&[NameTaken, LimitReached]),
        Operation::ReadAdministrator => {
            Entry::new("administrators", "read_administrator", "Gives an administrator.")
                .answers::<Administrator>()
        }
        Operation::DeleteAdministrator => Entry::new(
            "administrators",
            "delete_administrator",
            "Deletes an administrator: its credentials are revoked and it leaves all groups.",
        )
        .last()
        .writes::<Administrator>(&DONE)
        .unrevised()
        .guarded(),
        Operation::ListCredentials => {
            Entry::new("credentials", "list_credentials", "Lists credentials without secrets.")
                .filtered("agent", reference::<Name>(), "Only this agent's.")
                .page::<CredentialRow>()
        }
        Operation::CreateCredential => Entry::new(
            "credentials",
            "create_credential",
            "Creates a credential; its secrets are shown this once.",
        )
        .takes::<CreateCredential>()
        .writes::<IssuedCredential>(&CREATED)
        .tagged()
        .refuses(&[StateConflict, LimitReached])
        .guarded(),
        Operation::ReadCredential => {
            Entry::new("credentials", "read_credential", "Gives a credential without secrets.")
                .answers::<Credential>()
                .tagged()
        }
        Operation::RotateCredential => Entry::new(
            "credentials",
            "rotate_credential",
            "Creates a credential like an old one, which ends after an overlap.",
        )
        .takes_with::<RotateRequest>(Required::False)
        .writes::<IssuedCredential>(&CREATED)
        .tagged()
        .matching()
        .refuses(&[InvalidField, StateConflict, LimitReached]),
        Operation::RevokeCredential => Entry::new(
            "credentials",
            "revoke_credential",
            "Ends a credential at once and for good.",
        )
        .last()
        .writes::<Credential>(&DONE)
        .tagged()
        .matching(),
        Operation::ListServers => {
            Entry::new("servers", "list_servers", "Lists servers.").page::<ServerRow>()
        }
        Operation::CreateServer => Entry::new(
            "servers",
            "create_server",
            "Registers a server, or an existing one again, which lifts nothing.",
        )
        .takes::<ServerRequest>()
        .refuses(&DISCOVERY)
        .writes::<ChangedServer>(&CREATED_OR_DONE)
        .tagged()
        .refuses(&[NameTaken, LimitReached]),
        Operation::ReadServer => {
            Entry::new("servers", "read_server", "Gives a server.").answers::<Server>().tagged()
        }
        Operation::PatchServer => Entry::new(
            "servers",
            "patch_server",
            "Changes a server; another manifest quarantines it and its tools wait for approval.",
        )
        .takes::<ServerPatch>()
        .refuses(&DISCOVERY)
        .writes::<ChangedServer>(&DONE)
        .tagged()
        .matching(),
        Operation::DeleteServer => Entry::new(
            "servers",
            "delete_server",
            "Deletes a server: none of its tools can be called, and its name is not given again.",
        )
        .writes::<Server>(&DONE)
        .matching(),
        Operation::ActOnServer(action) => {
            let (id, summary) = match action {
                StateAction::Approve => {
                    ("approve_server", "Approves a server: its approved tools can be called.")
                }
                StateAction::Disable => {
                    ("disable_server", "Disables a server: none of its tools can be called.")
                }
                StateAction::Quarantine => {
                    ("quarantine_server", "Quarantines a server: none of its tools can be called.")
                }
                StateAction::Restore => {
                    ("restore_server", "Undoes disabling and quarantine, and approves nothing.")
                }
            };
            Entry::new("servers", id, summary).writes::<Server>(&DONE).tagged().matching()
        }
        Operation::ListTools => {
            Entry::new("tools", "list_tools", "Lists a server's tools.").page::<ToolRow>()
        }
        Operation::CreateTool => Entry::new(
            "tools",
            "create_tool",
            "Registers a tool, or an existing one again, which lifts nothing.",
        )
        .takes::<ToolRequest>()
        .writes::<ChangedTool>(&CREATED_OR_DONE)
        .tagged()
        .refuses(&[LimitReached]),
        Operation::ReadTool => {
            Entry::new("tools", "read_tool", "Gives a tool with its definitions.")
                .answers::<ToolDetail>()
                .tagged()
        }
        Operation::PatchTool => {
            Entry::new("tools", "patch_tool", "Changes what is said of a tool.")
                .takes::<ToolPatch>()
                .writes::<ChangedTool>(&DONE)
                .tagged()
                .matching()
        }
        Operation::ActOnTool(action) => {
            let (id, summary) = match action {
                StateAction::Approve => (
                    "approve_tool",
                    "Approves a tool as it was reviewed: it can be called.",
                ),
                StateAction::Disable => ("disable_tool", "Disables a tool: it cannot be called."),
                StateAction::Quarantine => {
                    ("quarantine_tool", "Quarantines a tool: it cannot be called.")
                }
                StateAction::Restore => {
                    ("restore_tool", "Undoes disabling and quarantine, and approves nothing.")
                }
            };
            let entry = Entry::new("tools", id, summary);
            let entry = match action {
                StateAction::Approve => entry.takes_with::<ApproveTool>(Required::False).refuses(&[
                    InvalidField,
                    StateConflict,
                    DefinitionChanged,
                ]),
                _ => entry,
            };
            entry.writes::<Tool>(&DONE).tagged().matching()
        }
        Operation::ListBans => Entry::new("bans", "list_bans", "Lists bans.").page::<BanRow>(),
        Operation::CreateBan => {
            Entry::new("bans", "create_ban", "Bans an agent, a user, a run or a network.")
                .takes::<BanRequest>()
                .writes::<Ban>(&CREATED)
                .refuses(&[LimitReached])
        }
        Operation::ReadBan => Entry::new("bans", "read_ban", "Gives a ban.").answers::<Ban>(),
        Operation::DeleteBan => {
            Entry::new("bans", "delete_ban", "Lifts a ban.").writes::<Ban>(&DONE).unrevised()
        }
    }
}

/// A status of success and when it is given.
type Success = (&'static str, &'static str);

const ANSWERED: Success = ("200", "The answer.");
const DONE: [Success; 1] = [("200", "It is done, and every lane goes by it.")];
const CREATED: [Success; 1] = [("201", "It is created, and every lane goes by it.")];
const CREATED_OR_DONE: [Success; 2] =
    [("200", "It was there and is updated; every lane goes by it."), CREATED[0]];
const PENDING: Success =
    ("202", "It is stored, but not all lanes go by it yet; they will when they next look.");

/// An operation as it is being described.
struct Entry {
    tag: &'static str,
    id: &'static str,
    summary: &'static str,
    query: Vec<Parameter>,
    body: Option<RequestBody>,
    successes: Vec<Success>,
    answer: RefOr<Schema>,
    writes: bool,
    tagged: bool,
    matching: bool,
    guarded: bool,
    polled: bool,
    problems: Vec<ProblemCode>,
    schemas: BTreeMap<String, RefOr<Schema>>,
}

impl Entry {
    fn new(tag: &'static str, id: &'static str, summary: &'static str) -> Self {
        Self {
            tag,
            id,
            summary,
            query: Vec::new(),
            body: None,
            successes: Vec::new(),
            answer: Schema::default().into(),
            writes: false,
            tagged: false,
            matching: false,
            guarded: false,
            polled: false,
            problems: vec![Misconfigured, Internal],
            schemas: BTreeMap::new(),
        }
    }

    /// Takes a type and what it refers to into the components.
    fn register<T: ToSchema>(&mut self) -> Vec<String> {
        let mut schemas = Vec::new();
        T::schemas(&mut schemas);
        schemas.push((T::name().into_owned(), T::schema()));
        let names = schemas.iter().map(|(name, _)| name.clone()).collect();
        self.schemas.extend(schemas);
        names
    }

    /// A body whose fields are checked, each by its name.
    fn takes<T: ToSchema>(self) -> Self {
        self.takes_with::<T>(Required::True).refuses(&[InvalidField])
    }

    fn takes_with<T: ToSchema>(mut self, required: Required) -> Self {
        self.register::<T>();
        let content = Content::new(Some(reference::<T>()));
        let body = RequestBody::builder().content("application/json", content);
        self.body = Some(body.required(Some(required)).build());
        self.refuses(&[InputInvalid, UnsupportedMediaType])
    }

    fn answers<T: ToSchema>(mut self) -> Self {
        // Answers leave no field out.
        for name in self.register::<T>() {
            if !IN_REQUESTS.contains(&name.as_str()) {
                self.schemas.get_mut(&name).into_iter().for_each(require_all);
            }
        }
        self.answers_with(reference::<T>())
    }

    fn answers_with(mut self, schema: RefOr<Schema>) -> Self {
        self.answer = schema;
        self.successes = vec![ANSWERED];
        self
    }

    /// A change of the registry that answers with what it changed.
    fn writes<T: ToSchema>(self, successes: &[Success]) -> Self {
        let mut entry = self.answers::<T>();
        entry.successes = successes.to_vec();
        entry.writes = true;
        entry
    }

    /// A page of records.
    fn page<R: Record>(self) -> Self
    where
        R::View: ToSchema,
    {
        let entry = self.in_pages().answers::<R::View>();
        let cursor = Object::builder()
            .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
            .description(Some("Where the next page begins; null on the last."));
        let page = Object::builder()
            .property(R::PLURAL, Array::new(reference::<R::View>()))
            .property("next_cursor", cursor)
            .required(R::PLURAL)
            .required("next_cursor");
        entry.answers_with(page.into())
    }

    fn in_pages(self) -> Self {
        let text = Object::with_type(Type::String).into();
        self.with(limit(DEFAULT_PAGE, MAX_PAGE)).filtered(
            "cursor",
            text,
            "The `next_cursor` of the page before.",
        )
    }

    /// It can lose the last administrator, if that is said to be meant.
    fn last(self) -> Self {
        let about = "Whether it may leave the tenant without an administrator who has \
            `registry:write`, or the worker without one who has `tenants:admin`.";
        self.filtered("last", Object::with_type(Type::Boolean).into(), about)
            .refuses(&[LastAdministrator])
    }

    fn within_times(self) -> Self {
        self.filtered("from", time(), "Only those from this time on.").filtered(
            "to",
            time(),
            "Only those before this time.",
        )
    }

    fn filtered(self, name: &str, schema: RefOr<Schema>, about: &str) -> Self {
        self.with(query(name, schema, about))
    }

    fn with(mut self, parameter: Parameter) -> Self {
        self.query.push(parameter);
        self.refuses(&[MalformedRequest])
    }

    /// The answer carries the record's revision as an `ETag`.
    fn tagged(mut self) -> Self {
        self.tagged = true;
        self
    }

    /// The answer says when to ask again.
    fn polled(mut self) -> Self {
        self.polled = true;
        self
    }

    /// `If-Match` is honoured.
    fn matching(mut self) -> Self {
        self.matching = true;
        self.refuses(&[PreconditionFailed])
    }

    /// The record has no revision: `If-Match` fails unless it is `*`.
    fn unrevised(self) -> Self {
        self.refuses(&[PreconditionFailed])
    }

    /// Members of a protected group may have to approve it.
    fn guarded(mut self) -> Self {
        self.guarded = true;
        self.refuses(&[ApprovalRequired, StateConflict, LimitReached, JournalFull, LaneUnavailable])
    }

    fn refuses(mut self, problems: &[ProblemCode]) -> Self {
        self.problems.extend_from_slice(problems);
        self
    }

    /// The operation, with what follows from its route; puts shared answers into the components.
    fn describe(mut self, route: &Route, components: &mut Components) -> Described {
        let security = match route.access {
            Access::Open => vec![],
            Access::Bootstrap => vec![requirement("bootstrap", None)],
            Access::Call => vec![requirement("agent", None)],
            Access::Reader(scope) => {
                vec![requirement("agent", None), requirement("administrator", Some(scope.as_str()))]
            }
            Access::Administrator(scope) => {
                vec![requirement("administrator", Some(scope.as_str()))]
            }
        };
        let mut operation = Described::builder()
            .operation_id(Some(self.id))
            .summary(Some(self.summary))
            .tag(self.tag)
            .request_body(self.body)
            .securities(Some(security));
        for name in route.path.split(['{', '}']).skip(1).step_by(2) {
            if let Some(described) = path_parameter(name) {
                components.parameters.insert(name.to_owned(), described.into());
                operation = operation.parameter_ref(parameter(name));
            }
        }
        for parameter in self.query {
            operation = operation.parameter(parameter);
        }
        if route.path.contains('{') {
            self.problems.push(NotFound);
        }
        // Of the others the whole id is looked up, whatever it is.
        if route.path.contains('{') && !["approvals", "decisions", "receipts"].contains(&self.tag) {
            self.problems.push(InvalidField);
        }
        if route.method != "GET" {
            self.problems.extend(BODY);
        }
        let idempotent = self.writes && route.method == "POST";
        if idempotent {
            operation = operation.parameter_ref(parameter("Idempotency-Key"));
            self.problems.push(IdempotencyKeyReused);
        }
        if self.matching {
            operation = operation.parameter_ref(parameter("If-Match"));
        }
        if self.guarded {
            operation = operation.parameter_ref(parameter("X-Gateward-Approval-Id"));
        }
        match route.access {
            Access::Open => {}
            Access::Bootstrap => self.problems.extend([Unauthorized, RegistryUnavailable]),
            Access::Call | Access::Reader(_) | Access::Administrator(_) => {
                for name in ["Signature-Input", "Signature", "Content-Digest"] {
                    operation = operation.parameter_ref(parameter(name));
                }
                self.problems.extend(CREDENTIAL);
            }
        }
        if let Access::Reader(_) = route.access {
            // An agent's read costs one request of its rate, which its lane charges.
            self.problems.extend([RateLimited, LaneUnavailable]);
        }
        let mut headers = Vec::new();
        if self.tagged {
            headers.push("ETag");
        }
        if self.polled {
            headers.push("Retry-After");
        }
        if idempotent {
            headers.push("Idempotency-Replayed");
        }
        if route.access == Access::Call {
            headers.extend(["RateLimit-Policy", "RateLimit"]);
        }
        let answer = |(status, about): Success, schema: RefOr<Schema>| {
            let content = Content::new(Some(schema));
            let response =
                Response::builder().description(about).content("application/json", content);
            (status, with_headers(response, &headers))
        };
        for success in self.successes {
            let (status, response) = answer(success, self.answer.clone());
            operation = operation.response(status, response);
        }
        if self.writes {
            let both = AllOf::builder().item(self.answer).item(reference::<PendingLanes>());
            let (status, response) = answer(PENDING, both.into());
            operation = operation.response(status, response);
        }
        let mut problems: BTreeMap<u16, Vec<ProblemCode>> = BTreeMap::new();
        for code in ProblemCode::ALL.iter().copied().filter(|code| self.problems.contains(code)) {
            problems.entry(code.status()).or_default().push(code);
        }
        for (status, codes) in problems {
            let names: Vec<&str> = codes.iter().map(|code| code.code()).collect();
            let name = names.join(".");
            let response = || problem(status, &codes);
            components.responses.entry(name.clone()).or_insert_with(|| response().into());
            operation = operation.response(status.to_string(), Ref::from_response_name(name));
        }
        operation.build()
    }
}

/// An answer of this status with one of these codes.
fn problem(status: u16, codes: &[ProblemCode]) -> Response {
    let about: Vec<String> =
        codes.iter().map(|code| format!("`{}`: {}.", code.code(), code.title())).collect();
    let mut headers = match status {
        401 => vec!["WWW-Authenticate"],
        429 | 503 => vec!["Retry-After"],
        _ => vec![],
    };
    if codes.iter().any(|code| CHARGED.contains(code)) {
        headers.extend(["RateLimit-Policy", "RateLimit"]);
    }
    let content = Content::new(Some(reference::<ProblemBody<'_>>()));
    let response = Response::builder()
        .description(about.join(" "))
        .content("application/problem+json", content);
    with_headers(response, &headers)
}

fn with_headers(response: utoipa::openapi::ResponseBuilder, names: &[&str]) -> Response {
    let reference = |name| Ref::new(format!("#/components/headers/{name}"));
    names
        .iter()
        .fold(response, |response, name| response.header_ref(*name, reference(name)))
        .build()
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

/// Makes every field of an object required, but for those that an answer may leave out: these are
/// neither required by their type nor nullable.
fn require_all(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            let nullable = object.properties.iter().filter(|(_, field)| is_nullable(field));
            object.required.extend(nullable.map(|(name, _)| name.clone()));
            object.required.sort();
            object.required.dedup();
        }
        RefOr::T(Schema::AllOf(all)) => all.items.iter_mut().for_each(require_all),
        _ => {}
    }
}

fn is_nullable(schema: &RefOr<Schema>) -> bool {
    let has_null = |schema_type: &SchemaType| match schema_type {
        SchemaType::Type(one) => *one == Type::Null,
        SchemaType::Array(types) => types.contains(&Type::Null),
        SchemaType::AnyValue => false,
    };
    match schema {
        RefOr::T(Schema::Object(object)) => has_null(&object.schema_type),
        RefOr::T(Schema::Array(array)) => has_null(&array.schema_type),
        RefOr::T(Schema::OneOf(one)) => one.items.iter().any(is_nullable),
        _ => false,
    }
}

fn time() -> RefOr<Schema> {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    Object::builder().schema_type(Type::String).format(Some(format)).into()
}

fn limit(default: u32, most: u32) -> Parameter {
    let schema = Object::builder()
        .schema_type(Type::Integer)
        .minimum(Some(1))
        .maximum(Some(most))
        .default(Some(json!(default)));
    query("limit", schema.into(), "How many a page has at most.")
}

fn lane() -> Parameter {
    let mut lane = query("lane", Object::with_type(Type::Integer).into(), "The lane.");
    lane.required = Required::True;
    lane
}

fn query(name: &str, schema: RefOr<Schema>, about: &str) -> Parameter {
    optional(ParameterIn::Query, name, schema, about)
}

fn optional(place: ParameterIn, name: &str, schema: RefOr<Schema>, about: &str) -> Parameter {
    Parameter::builder()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .schema(Some(schema))
        .description(Some(about))
        .build()
}

/// `None` when it is not known: a test finds it missing.
fn path_parameter(name: &str) -> Option<Parameter> {
    let pattern =
        |pattern: &str| Object::builder().schema_type(Type::String).pattern(Some(pattern)).into();
    let (schema, about) = match name {
        "tenant" => (reference::<Name>(), "The tenant's name."),
        "agent" => (reference::<Name>(), "The agent's name."),
        "group" => (reference::<Name>(), "The group's name."),
        "member" => (reference::<Name>(), "The agent's or the administrator's name."),
        "administrator" => (reference::<Name>(), "The administrator's name."),
        "key_id" => (reference::<Name>(), "The credential's key id."),
        "server" => (reference::<Name>(), "The server's name."),
        "ban_id" => (reference::<Name>(), "The ban's id."),
        "tool" => (reference::<ToolName>(), "The tool's name, percent-encoded."),
        "kind" => (pattern("^(agents|administrators)$"), "What the member is."),
        "decision_id" => (pattern("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"), "A UUIDv7."),
        "approval_id" => (pattern("^appr_[0-9]+_[0-9]+$"), "The approval's id."),
        "receipt_id" => (pattern("^rcpt_[0-9]+_[0-9]+$"), "The receipt's id."),
        _ => return None,
    };
    let mut parameter = optional(ParameterIn::Path, name, schema, about);
    parameter.required = Required::True;
    Some(parameter)
}

fn parameter(name: &str) -> Ref {
    Ref::new(format!("#/components/parameters/{name}"))
}

fn headers_of_requests() -> [(&'static str, Parameter); 6] {
    let header = |name, schema, about| (name, optional(ParameterIn::Header, name, schema, about));
    let key = format!("^[!-~]{{1,{MAX_IDEMPOTENCY_KEY_BYTES}}}$");
    let text = || Object::builder().schema_type(Type::String);
    [
        header(
            "Idempotency-Key",
            text().pattern(Some(key)).into(),
            "The same request again with the same key, within 24 hours, changes nothing and gets \
             the first answer without its secrets.",
        ),
        header(
            "If-Match",
            text().into(),
            "The `ETag` of what was read: if it was changed since, nothing is done.",
        ),
        header(
            "X-Gateward-Approval-Id",
            text().pattern(Some("^appr_[0-9]+_[0-9]+$")).into(),
            "The approval of this change, where members of a protected group must approve it.",
        ),
        header(
            "Signature-Input",
            text().into(),
            "What the request's signature covers (RFC 9421): `@method`, `@path`, `@query`, every \
             `X-Gateward-*` and `Mcp-*` header, `Idempotency-Key`, `If-Match`, and with a body \
             `Content-Digest`; with `created`, `keyid` and, unless it is a GET, `nonce`. Needed if \
             the credential is `signed`.",
        ),
        header(
            "Signature",
            text().into(),
            "The signature: HMAC-SHA-256 under the credential's `signing_key` as text.",
        ),
        header(
            "Content-Digest",
            text().into(),
            "`sha-256` of the body (RFC 9530). Needed if the request is signed and has a body.",
        ),
    ]
}

const RATE_LIMIT: &str = "draft-ietf-httpapi-ratelimit-headers-10. A problem has it only if the request \
    was charged to the agent's rate by a call.";

const RETRY_AFTER: &str = "Seconds after which trying again makes sense. An approval has it only while \
    it is pending.";

fn headers_of_answers() -> [(&'static str, Header); 6] {
    let header = |name, kind, about: &str| {
        let schema: RefOr<Schema> = Object::with_type(kind).into();
        (name, Header::builder().schema(Some(schema)).description(Some(about)).build())
    };
    [
        header("ETag", Type::String, "The record's revision, quoted. A repeated answer has none."),
        header("Idempotency-Replayed", Type::String, "`true`; only if the answer is repeated."),
        header("RateLimit", Type::String, RATE_LIMIT),
        header("RateLimit-Policy", Type::String, RATE_LIMIT),
        header("Retry-After", Type::Integer, RETRY_AFTER),
        header("WWW-Authenticate", Type::String, "RFC 6750"),
    ]
}

fn security_schemes() -> [(&'static str, SecurityScheme); 3] {
    let bearer = |name, format: &str, about: &str| {
        let scheme = Http::builder().scheme(HttpAuthScheme::Bearer).bearer_format(format);
        (name, SecurityScheme::Http(scheme.description(Some(about)).build()))
    };
    [
        bearer(
            "agent",
            "gw_<tenant>.<agent>.<lane>.<key>.<secret>.<mac>",
            "An agent's credential. Calls need `tools:read` or `tools:write`, as the tool does.",
        ),
        bearer(
            "administrator",
            "gwa_<tenant>.<key>.<secret>.<mac>",
            "An administrator's credential; each operation names the scope that it needs.",
        ),
        bearer("bootstrap", "text", "The worker's secret `BOOTSTRAP_SECRET`."),
    ]
}

fn requirement(scheme: &str, scope: Option<&str>) -> SecurityRequirement {
    SecurityRequirement::new(scheme, scope)
}

/// What an answer has besides when not all lanes confirmed a change.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what the worker adds to an answer")]
struct PendingLanes {
    /// The lanes that did not confirm it.
    pending_lanes: Vec<u16>,
}

/// A tool call. Unknown fields are ignored, and null counts as absent.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `crate::call` parses")]
struct AuthorizeRequest {
    agent: CallingAgent,
    tool_call: RequestedCall,
    context: CallContext,
    user: Option<CallUser>,
    trace: Option<CallTrace>,
    /// The same call again, with the same credential, gets the same answer for 24 hours.
    #[schema(min_length = 1, max_length = 128)]
    request_id: Option<String>,
    #[schema(max_length = 128)]
    approval_id: Option<String>,
    /// Counts once, and needs a timestamp.
    #[schema(min_length = 1, max_length = 128)]
    nonce: Option<String>,
    /// Within 300 seconds of now when there is a nonce.
    #[schema(format = DateTime)]
    timestamp: Option<String>,
    /// Decides and explains, and writes nothing.
    dry_run: Option<bool>,
}

/// Who calls, as the credential and the registry say too.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `crate::call` parses")]
struct CallingAgent {
    #[schema(max_length = 256)]
    id: String,
    #[schema(max_length = 256)]
    environment: String,
}

/// What is to be called.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `crate::call` parses")]
struct RequestedCall {
    /// The server's name; `mcp:<server>` means the same.
    #[schema(pattern = "^(mcp:)?[a-z0-9][a-z0-9_-]{0,62}$")]
    tool: String,
    /// The tool's name.
    #[schema(value_type = ToolName)]
    action: String,
    /// The arguments.
    #[schema(value_type = Object)]
    parameters: (),
    /// True makes a read count as a write, false changes nothing.
    mutates_state: bool,
    #[schema(max_length = 2048)]
    resource: Option<String>,
}

/// What led to the call.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `crate::call` parses")]
struct CallContext {
    /// Counts for no more than the credential's `max_source_trust`.
    source_trust: SourceTrust,
    contains_sensitive_data: bool,
}

/// For whom the agent works.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `crate::call` parses")]
struct CallUser {
    #[schema(max_length = 256)]
    id: Option<String>,
    #[schema(max_length = 256)]
    role: Option<String>,
}

/// The run that the call belongs to.
#[derive(ToSchema)]
#[allow(dead_code, reason = "describes what `crate::call` parses")]
struct CallTrace {
    #[schema(max_length = 256)]
    run_id: Option<String>,
    #[schema(max_length = 256)]
    trace_id: Option<String>,
    #[schema(max_length = 256)]
    parent_run_id: Option<String>,
    /// How far the run's root is trusted; can only lower what is reported.
    root_trust_level: Option<SourceTrust>,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::approval::ApprovalEvent;
    use crate::call;
    use crate::decision::ReasonCode;
    use crate::receipt::{AgentEvent, Ending};
    use crate::scope::Scope;

    /// A body with every field that there is.
    fn whole_call() -> Value {
        json!({
            "agent": { "id": "coder", "environment": "production" },
            "tool_call": {
                "tool": "mcp:github", "action": "get_issue", "parameters": { "number": 1 },
                "mutates_state": false, "resource": "gateward/gateward",
            },
            "context": { "source_trust": "untrusted_external", "contains_sensitive_data": false },
            "user": { "id": "u", "role": "r" },
            "trace": {
                "run_id": "r", "trace_id": "t", "parent_run_id": "p", "root_trust_level": "unknown",
            },
            "request_id": "1", "approval_id": "appr_0_1", "nonce": "n",
            "timestamp": "2026-10-01T12:00:00Z", "dry_run": true,
        })
    }

    /// The described fields as JSON pointers, with whether each is required.
    fn fields(schema: &Value, components: &Value, path: &str, found: &mut Vec<(String, bool)>) {
        let variants = schema["oneOf"].as_array().into_iter().flatten().chain([schema]);
        for variant in variants {
            if let Some(name) = variant["$ref"].as_str() {
                let name = name.rsplit('/').next().unwrap();
                fields(&components[name], components, path, found);
            }
        }
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}/{name}");
            let required = schema["required"].as_array().is_some_and(|r| r.contains(&json!(name)));
            fields(field, components, &path, found);
            found.push((path, required));
        }
    }

    #[test]
    fn a_call_is_parsed_as_it_is_described() {
        let document = serde_json::to_value(document()).unwrap();
        let components = &document["components"]["schemas"];
        let mut described = Vec::new();
        fields(&components["AuthorizeRequest"], components, "", &mut described);
        let parse = |call: &Value| call::parse(call.to_string().as_bytes(), "acme");
        let whole = whole_call();
        parse(&whole).unwrap();
        for (path, _) in &described {
            assert!(whole.pointer(path).is_some(), "{path} is not in the whole call");
        }
        for (path, required) in described {
            let name = path.trim_start_matches('/').replace('/', ".");
            let mut mistyped = whole.clone();
            *mistyped.pointer_mut(&path).unwrap() = json!([]);
            let problem = parse(&mistyped).unwrap_err();
            assert!(problem.detail.contains(&format!("`{name}`")), "{path}: {}", problem.detail);

            let mut without = whole.clone();
            without["nonce"] = Value::Null;
            *without.pointer_mut(&path).unwrap() = Value::Null;
            assert_eq!(parse(&without).is_err(), required, "{path}");
        }
    }

    #[test]
    fn described_values_are_those_that_are_written() {
        fn values<T: ToSchema>() -> Vec<String> {
            let schema = serde_json::to_value(T::schema()).unwrap();
            serde_json::from_value(schema["enum"].clone()).unwrap()
        }
        // The derives list every variant, so these lists cannot lack one.
        let codes =
            |codes: &[ProblemCode]| codes.iter().map(|code| code.code()).collect::<Vec<_>>();
        assert_eq!(values::<ProblemCode>(), codes(ProblemCode::ALL));
        let codes = |codes: &[ReasonCode]| codes.iter().map(|code| code.code()).collect::<Vec<_>>();
        assert_eq!(values::<ReasonCode>(), codes(ReasonCode::ALL));
        assert_eq!(values::<Decision>(), Decision::ALL.map(Decision::as_str));
        assert_eq!(values::<Scope>(), Scope::ALL.map(Scope::as_str));
        assert_eq!(values::<SourceTrust>(), SourceTrust::ALL.map(SourceTrust::as_str));
        let steps = [
            ApprovalEvent::Requested,
            ApprovalEvent::Endorsed,
            ApprovalEvent::Approved,
            ApprovalEvent::Rejected,
            ApprovalEvent::Cancelled,
            ApprovalEvent::Expired,
            ApprovalEvent::Used,
            ApprovalEvent::Tampered,
        ];
        assert_eq!(values::<ApprovalEvent>(), steps.map(ApprovalEvent::as_str));
        let events = [AgentEvent::Restored, AgentEvent::Untainted, AgentEvent::Tainted];
        assert_eq!(values::<AgentEvent>(), events.map(AgentEvent::as_str));
        let endings = [
            Ending::Complete,
            Ending::CallerGone,
            Ending::UpstreamFailed,
            Ending::TimedOut,
            Ending::TooLarge,
            Ending::Refused,
        ];
        assert_eq!(values::<Ending>(), endings.map(Ending::as_str));
    }

    #[test]
    fn no_two_types_have_the_same_name_in_the_document() {
        let mut seen = BTreeMap::new();
        for route in ROUTES {
            for (name, schema) in entry(route.operation).schemas {
                let schema = serde_json::to_value(schema).unwrap();
                let first = seen.entry(name.clone()).or_insert_with(|| schema.clone());
                assert_eq!(*first, schema, "{name}");
            }
        }
    }
}
