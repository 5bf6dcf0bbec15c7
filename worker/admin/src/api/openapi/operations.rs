//! Every operation: what it takes, what it answers, and which problems it can have.

use gateward_core::approval::{
    ApprovalStatus, ApprovalView, ApproveRequest, CloseRequest, VerdictKind,
};
use gateward_core::call::outcome::OutcomeRequest;
use gateward_core::call::run::{ReportRequest, StartRequest};
use gateward_core::decision::Decision;
use gateward_core::field::{Label, Name};
use gateward_core::gate::Response as AuthorizeResponse;
use gateward_core::metrics::CONTENT_TYPE;
use gateward_core::problem::ProblemCode;
use gateward_core::problem::ProblemCode::{
    AgentMismatch, AlreadyBootstrapped, CallDenied, DefinitionChanged, EnvironmentMismatch,
    InvalidField, JournalFull, LaneUnavailable, LimitReached, NameTaken, NotFound, RateLimited,
    RegistryUnavailable, RequestIdConflict, StateConflict, UpstreamForbidden, UpstreamInvalid,
    UpstreamTimeout, UpstreamUnreachable, WarrantRefused,
};
use gateward_core::receipt::{ConsistencyProof, InclusionProof, RegistryEvents};
use gateward_core::route::{AgentAction, Operation, StateAction};
use serde_json::json;
use utoipa::openapi::{Object, RefOr, Required, Schema, Type};

use super::component::{limit, reference, required};
use super::entry::{CREATED, CREATED_OR_DONE, CREATED_OR_KEPT, DONE, Entry};
use super::schema::AuthorizeRequest;
use crate::administrator::{Administrator, AdministratorRow, CreateAdministrator};
use crate::agent::{Agent, AgentPatch, AgentRow, CreateAgent};
use crate::api::approvals::ApprovalPage;
use crate::api::decisions::{DecisionDetail, DecisionPage};
use crate::api::health::{Health, Version};
use crate::api::limits::LimitStates;
use crate::api::receipts::{
    DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE, ReceiptEnds, ReceiptPage, ReceiptView, Verification,
    VerifyRequest,
};
use crate::api::runs::{IssuedRun, Recorded};
use crate::audit::EventRow;
use crate::ban::{Ban, BanRequest, BanRow};
use crate::credential::end::RotateRequest;
use crate::credential::issue::CreateCredential;
use crate::credential::{Credential, CredentialRow, IssuedCredential};
use crate::group::{CreateGroup, Group, GroupRow, Member};
use crate::limit::{LimitPatch, LimitRequest, LimitRow, LimitView};
use crate::server::registration::{ServerPatch, ServerRequest};
use crate::server::{ChangedServer, Server, ServerRow};
use crate::settings::{PatchSettings, SettingsView};
use crate::tenant::{
    BootstrapRequest, CreatedTenant, PatchTenant, Tenant, TenantRequest, TenantRow,
};
use crate::tool::action::ApproveTool;
use crate::tool::registration::{ToolPatch, ToolRequest};
use crate::tool::{ChangedTool, Tool, ToolDetail, ToolRow};
use crate::warrant_revocation::{RevokeWarrant, WarrantRevocation, WarrantRevocationRow};
use crate::warrant_root::{
    CreateWarrantRoot, RevocationListRequest, WarrantRootPatch, WarrantRootRow, WarrantRootView,
};
use crate::webhook::{IssuedWebhook, Webhook, WebhookRequest};

/// Problems of asking a server for its tools.
pub(super) const DISCOVERY: [ProblemCode; 4] =
    [UpstreamForbidden, UpstreamInvalid, UpstreamTimeout, UpstreamUnreachable];

/// The type of keys and checkpoints.
const TEXT: &str = "text/plain; charset=utf-8";

/// A number from 0 on.
fn number() -> RefOr<Schema> {
    Object::builder().schema_type(Type::Integer).minimum(Some(0)).into()
}

/// Every operation: a new one does not compile before it is described here.
pub(super) fn entry(operation: Operation) -> Entry {
    match operation {
        Operation::Health => {
            Entry::new("worker", "check_health", "Returns whether the worker runs.").answers::<Health>()
        }
        Operation::Ready => {
            Entry::new("worker", "check_readiness", "Returns whether D1 and a lane's storage answer.")
                .answers::<Health>()
                .refuses(&[RegistryUnavailable, LaneUnavailable])
        }
        Operation::Version => {
            Entry::new("worker", "read_version", "Returns what is deployed.").answers::<Version<'_>>()
        }
        Operation::Description => Entry::new("worker", "read_openapi", "Returns this document.")
            .answers_with(Object::with_type(Type::Object).into()),
        Operation::ReadMetrics => Entry::new(
            "worker",
            "read_metrics",
            "Returns the metrics of the tenant, and those of all tenants to an operator, in Prometheus's text format.",
        )
        .answers_text(CONTENT_TYPE),
        Operation::Bootstrap => Entry::new(
            "tenants",
            "bootstrap",
            "Creates the first operator, and its tenant if it does not exist. Or gives a tenant \
             without an administrator a new one.",
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
                    CallDenied,
                    EnvironmentMismatch,
                    RequestIdConflict,
                    RateLimited,
                    JournalFull,
                    LaneUnavailable,
                    WarrantRefused,
                ])
        }
        Operation::StartRun => Entry::new(
            "calls",
            "start_run",
            "Starts a run with the user's instruction, or adds to the instruction of a run. Needs the \
             credential of a harness.",
        )
        .takes::<StartRequest>()
        .creates::<IssuedRun>("The run, and a credential for it.")
        .refuses(&[RateLimited, JournalFull, LaneUnavailable]),
        Operation::ReportResult => Entry::new(
            "calls",
            "report_result",
            "Records a result that the agent got without Gateward. Needs the credential of a harness.",
        )
        .takes::<ReportRequest>()
        .answers::<Recorded>()
        .refuses(&[RateLimited, JournalFull, LaneUnavailable]),
        Operation::ListDecisions => Entry::new(
            "decisions",
            "list_decisions",
            "Lists decisions, newest first; an agent sees its own.",
        )
        .filtered("agent", reference::<Name>(), "Only this agent's.")
        .filtered("decision", reference::<Decision>(), "Only with this decision.")
        .within_times()
        .in_pages()
        .answers::<DecisionPage>(),
        Operation::ReadDecision => {
            Entry::new("decisions", "read_decision", "Returns a decision, as soon as it was answered.")
                .answers::<DecisionDetail>()
                .refuses(&[LaneUnavailable])
        }
        Operation::ReportOutcome => Entry::new(
            "calls",
            "report_outcome",
            "Reports what became of a call that was allowed. Limits get back what it did not use.",
        )
        .takes::<OutcomeRequest>()
        .answers::<Recorded>()
        .refuses(&[RateLimited, JournalFull, LaneUnavailable]),
        Operation::ReadReceiptEnds => Entry::new(
            "receipts",
            "read_receipt_ends",
            "Returns the first and last link of a lane's chain, from the lane.",
        )
        .with(required("lane", "The lane."))
        .answers::<ReceiptEnds>()
        .refuses(&[NotFound, LaneUnavailable]),
        Operation::ListReceipts => {
            let from = Object::builder()
                .schema_type(Type::Integer)
                .minimum(Some(1))
                .default(Some(json!(1)));
            Entry::new("receipts", "list_receipts", "Lists the receipts of a lane in order.")
                .with(required("lane", "The lane."))
                .filtered("from", from.into(), "The first one's sequence number.")
                .with(limit(DEFAULT_RECEIPT_PAGE, MAX_RECEIPT_PAGE))
                .answers::<ReceiptPage>()
                .refuses(&[NotFound, LaneUnavailable])
        }
        Operation::VerifyReceipts => {
            Entry::new("receipts", "verify_receipts", "Verifies stored receipts.")
                .takes_with::<VerifyRequest>(Required::True)
                .answers::<Verification>()
                .refuses(&[NotFound, LaneUnavailable])
        }
        Operation::ReadLogKeys => Entry::new(
            "logs",
            "read_log_keys",
            "Returns the keys that verify the log's checkpoints, one on a line, the newest first.",
        )
        .answers_text(TEXT),
        Operation::ReadCheckpoint => Entry::new(
            "logs",
            "read_checkpoint",
            "Returns the log's newest checkpoint, with the cosignatures of witnesses.",
        )
        .answers_text(TEXT),
        Operation::ReadTile => Entry::new(
            "logs",
            "read_tile",
            "Returns a tile of hashes, or a bundle of entries, as in c2sp.org/tlog-tiles.",
        )
        .answers_bytes(),
        Operation::ReadInclusion => Entry::new(
            "logs",
            "read_inclusion_proof",
            "Returns the proof that an entry is in the tree of a checkpoint.",
        )
        .with(required("index", "The entry's index, from 0."))
        .filtered("size", number(), "The size of the tree. Default: that of the newest checkpoint.")
        .answers::<InclusionProof>(),
        Operation::ReadConsistency => Entry::new(
            "logs",
            "read_consistency_proof",
            "Returns the proof that a tree extends a smaller one.",
        )
        .with(required("from", "The size of the smaller tree."))
        .filtered("to", number(), "The size of the other tree. Default: that of the newest checkpoint.")
        .answers::<ConsistencyProof>(),
        Operation::ListRegistryEvents => Entry::new(
            "logs",
            "list_registry_events",
            "Lists the audit events of the registry as the tenant's head log hashes them, in order.",
        )
        .filtered("after", number(), "Only from epochs after this one. Default: 0.")
        .answers::<RegistryEvents>(),
        Operation::ReadReceipt => Entry::new(
            "receipts",
            "read_receipt",
            "Returns a receipt, as soon as its decision was answered.",
        )
        .answers::<ReceiptView>()
        .refuses(&[LaneUnavailable]),
        Operation::ListApprovals => Entry::new(
            "approvals",
            "list_approvals",
            "Lists approvals without arguments, newest first; an agent sees its own.",
        )
        .filtered("status", reference::<ApprovalStatus>(), "Only with this status.")
        .filtered("group", reference::<Name>(), "Only those that ask this group to approve.")
        .filtered("agent", reference::<Name>(), "Only this agent's.")
        .in_pages()
        .answers::<ApprovalPage<'_>>(),
        Operation::ReadApproval => Entry::new(
            "approvals",
            "read_approval",
            "Returns an approval, with the call's arguments while it is open; an agent may poll its own.",
        )
        .answers::<ApprovalView<'_>>()
        .tagged()
        .polled()
        .refuses(&[LaneUnavailable]),
        Operation::DecideApproval(kind) => {
            let (id, summary) = match kind {
                VerdictKind::Approve => (
                    "approve_approval",
                    "Approves a call, edited if the body says so, for the caller's groups.",
                ),
                VerdictKind::Reject => ("reject_approval", "Rejects a call. This is final."),
                VerdictKind::Cancel => {
                    ("cancel_approval", "Cancels an open approval, granted or not. This is final.")
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
            Entry::new("tenants", "read_tenant", "Returns a tenant.").answers::<Tenant>().tagged()
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
        Operation::ReadSettings => Entry::new("settings", "read_settings", "Returns the tenant's settings.")
            .answers::<SettingsView>()
            .tagged(),
        Operation::PatchSettings => {
            Entry::new("settings", "patch_settings", "Changes the tenant's settings.")
                .takes::<PatchSettings>()
                .writes::<SettingsView>(&DONE)
                .tagged()
                .matching()
        }
        Operation::ReadWebhook => {
            Entry::new("webhook", "read_webhook", "Returns the tenant's webhook without its secret.")
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
            .refuses(&[LimitReached, NameTaken, StateConflict]),
        Operation::ReadAgent => Entry::new("agents", "read_agent", "Returns an agent.")
            .answers::<Agent>()
            .tagged()
            .refuses(&[LaneUnavailable]),
        Operation::PatchAgent => Entry::new("agents", "patch_agent", "Changes an agent.")
            .takes::<AgentPatch>()
            .writes::<Agent>(&DONE)
            .tagged()
            .matching()
            .refuses(&[StateConflict]),
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
            Entry::new("groups", "read_group", "Returns a group.").answers::<Group>()
        }
        Operation::DeleteGroup => Entry::new(
            "groups",
            "delete_group",
            "Deletes a group and all its memberships. Its name cannot be used again.",
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
            Entry::new("groups", "unprotect_group", "Unprotects a group.")
                .writes::<Group>(&DONE)
                .unrevised()
                .guarded()
        }
        Operation::ListMembers => {
            Entry::new("groups", "list_members", "Lists who is in a group.").page::<Member>()
        }
        Operation::AddMember => {
            Entry::new("groups", "add_member", "Adds an agent or administrator to a group.")
                .writes::<Member>(&DONE)
                .refuses(&[LimitReached])
                .unrevised()
                .guarded()
        }
        Operation::RemoveMember => {
            Entry::new("groups", "remove_member", "Removes an agent or administrator from a group.")
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
            Entry::new("administrators", "read_administrator", "Returns an administrator.")
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
            Entry::new("credentials", "read_credential", "Returns a credential without secrets.")
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
            "Revokes a credential, at once and for ever.",
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
            Entry::new("servers", "read_server", "Returns a server.").answers::<Server>().tagged()
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
            Entry::new("tools", "read_tool", "Returns a tool with its definitions.")
                .answers::<ToolDetail>()
                .tagged()
        }
        Operation::PatchTool => {
            Entry::new("tools", "patch_tool", "Changes a tool's registration.")
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
        Operation::ReadLimitStates => Entry::new(
            "limits",
            "read_limit_states",
            "Returns what is left of an agent's limits; an agent sees its own. Or what is left of one shared limit.",
        )
        .filtered("agent", reference::<Name>(), "The agent. An administrator must name one, or a limit.")
        .filtered("credential", reference::<Name>(), "A credential of it. An agent's own if left out.")
        .filtered("limit", reference::<Name>(), "A limit of the tenant, groups, tools, servers or users. Only administrators.")
        .filtered("subject", reference::<Label>(), "Only this group, tool (`server/tool`), server or user. Only with a limit.")
        .answers::<LimitStates>()
        .refuses(&[NotFound, LaneUnavailable]),
        Operation::ListLimits => {
            Entry::new("limits", "list_limits", "Lists limits.").page::<LimitRow>()
        }
        Operation::CreateLimit => {
            Entry::new("limits", "create_limit", "Limits the calls of an agent, a credential, the tenant, a group, a tool, a server or a user.")
                .takes::<LimitRequest>()
                .writes::<LimitView>(&CREATED)
                .tagged()
                .refuses(&[LimitReached, NameTaken])
        }
        Operation::ReadLimit => {
            Entry::new("limits", "read_limit", "Returns a limit.").answers::<LimitView>().tagged()
        }
        Operation::PatchLimit => {
            Entry::new("limits", "patch_limit", "Changes a limit's rule.")
                .takes::<LimitPatch>()
                .writes::<LimitView>(&DONE)
                .tagged()
                .matching()
        }
        Operation::DeleteLimit => {
            Entry::new("limits", "delete_limit", "Deletes a limit, with what was used of it.")
                .writes::<LimitView>(&DONE)
                .tagged()
                .matching()
        }
        Operation::ListBans => Entry::new("bans", "list_bans", "Lists bans.").page::<BanRow>(),
        Operation::CreateBan => {
            Entry::new("bans", "create_ban", "Bans an agent, a user, a run or a network.")
                .takes::<BanRequest>()
                .writes::<Ban>(&CREATED)
                .refuses(&[LimitReached])
        }
        Operation::ReadBan => Entry::new("bans", "read_ban", "Returns a ban.").answers::<Ban>(),
        Operation::DeleteBan => {
            Entry::new("bans", "delete_ban", "Lifts a ban.").writes::<Ban>(&DONE).unrevised()
        }

        Operation::ListWarrantRoots => {
            Entry::new("warrants", "list_warrant_roots", "Lists roots of warrants.")
                .page::<WarrantRootRow>()
        }
        Operation::CreateWarrantRoot => Entry::new(
            "warrants",
            "create_warrant_root",
            "Registers a key whose warrants are accepted.",
        )
        .takes::<CreateWarrantRoot>()
        .writes::<WarrantRootView>(&CREATED)
        .tagged()
        .refuses(&[LimitReached, NameTaken, StateConflict]),
        Operation::ReadWarrantRoot => {
            Entry::new("warrants", "read_warrant_root", "Returns a root of warrants.")
                .answers::<WarrantRootView>()
                .tagged()
        }
        Operation::PatchWarrantRoot => {
            Entry::new("warrants", "patch_warrant_root", "Changes a root of warrants.")
                .takes::<WarrantRootPatch>()
                .writes::<WarrantRootView>(&DONE)
                .tagged()
                .matching()
        }
        Operation::DeleteWarrantRoot => {
            let about = "Deletes a root of warrants. Its warrants are denied from then on.";
            Entry::new("warrants", "delete_warrant_root", about)
                .writes::<WarrantRootView>(&DONE)
                .matching()
        }
        Operation::TakeRevocationList => {
            let about = "Revokes the warrants of a list that is signed with the root's key, for chains of this \
                root. A list adds revocations and lifts none; an older version than the last one is refused.";
            Entry::new("warrants", "take_revocation_list", about)
                .takes::<RevocationListRequest>()
                .writes::<WarrantRootView>(&DONE)
                .tagged()
                .matching()
                .refuses(&[LimitReached, StateConflict])
        }
        Operation::ListWarrantRevocations => {
            Entry::new("warrants", "list_warrant_revocations", "Lists revocations of warrants.")
                .page::<WarrantRevocationRow>()
        }
        Operation::RevokeWarrant => {
            let about = "Revokes a warrant, and with it each warrant that was delegated from it. \
                A second revocation changes nothing.";
            Entry::new("warrants", "revoke_warrant", about)
                .takes::<RevokeWarrant>()
                .writes::<WarrantRevocation>(&CREATED_OR_KEPT)
                .refuses(&[LimitReached])
        }
        Operation::ReadWarrantRevocation => Entry::new(
            "warrants",
            "read_warrant_revocation",
            "Returns the revocation of a warrant.",
        )
        .answers::<WarrantRevocation>(),
    }
}
