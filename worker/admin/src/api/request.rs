//! Turns a route, its parameters and its body into a read or a change.

use gateward_core::credential::token::MacKeys;
use gateward_core::field::{Name, ToolName, parse};
use gateward_core::limit::OffsetS;
use gateward_core::problem::Problem;
use gateward_core::registry::MemberKind;
use gateward_core::route::{Operation, StateAction};
use gateward_core::sql::administration::{self as sql, Statement, Value};
use gateward_core::target::Target;
use serde_json::Value as Json;

use crate::administrator::{AdministratorRow, CreateAdministrator, DeleteAdministrator};
use crate::agent::{ActOnAgent, AgentRow, CreateAgent, DeleteAgent, PatchAgent};
use crate::api::query::{Query, malformed};
use crate::audit::EventRow;
use crate::ban::{self, BanRow, CreateBan, DeleteBan};
use crate::credential::end::{RevokeCredential, RotateCredential};
use crate::credential::issue::IssueCredential;
use crate::credential::{self, CredentialRow, Mint};
use crate::group::{CreateGroup, DeleteGroup, GroupRow, Member, ProtectGroup, SetMember};
use crate::limit::{CreateLimit, DeleteLimit, LimitRow, PatchLimit};
use crate::refusal::refused;
use crate::resource::{one, page};
use crate::server::ServerRow;
use crate::server::action::{ActOnServer, DeleteServer};
use crate::server::registration::{CreateServer, PatchServer, ServerRequest};
use crate::settings::{PatchSettings, SettingsRow};
use crate::tenant::{
    Bootstrap, BootstrapRequest, CreateTenant, DeleteTenant, PatchTenant, TenantRequest, TenantRow,
};
use crate::tool::action::{ActOnTool, ApproveTool};
use crate::tool::registration::{CreateTool, PatchTool};
use crate::tool::{ToolDetailRow, ToolRow};
use crate::warrant_revocation::{RevokeWarrant, WarrantId, WarrantRevocationRow};
use crate::warrant_root::{
    CreateWarrantRoot, DeleteWarrantRoot, PatchWarrantRoot, TakeRevocationList, WarrantRootRow,
};
use crate::webhook::{self, DeleteWebhook, SetWebhook, WebhookRequest, WebhookRow};
use crate::{AnswerBody, Resource, Write};

/// Random bytes that a request can need.
pub const RANDOM_BYTES: usize = credential::RANDOM_BYTES;
const _: () = assert!(ban::RANDOM_BYTES <= RANDOM_BYTES, "a ban's id comes out of the same bytes");
const _: () = assert!(webhook::SALT_BYTES <= RANDOM_BYTES, "a salt comes out of the same bytes");

/// A request to the administration, with keys and random bytes.
pub struct Request<'a> {
    pub operation: Operation,
    /// The tenant of the administrator.
    pub tenant: &'a str,
    /// From the path, decoded.
    pub parameters: &'a [String],
    /// The query's names and values, decoded.
    pub query: &'a [(String, String)],
    pub body: &'a [u8],
    pub keys: &'a MacKeys,
    pub random: [u8; RANDOM_BYTES],
    /// Whether addresses of local networks may be called, for development.
    pub local_targets: bool,
    /// The time zones of the runtime.
    pub offset_s: OffsetS,
}

/// What a request asks for.
pub enum Asked<'a> {
    /// A change of this tenant's registry.
    Write { tenant: String, write: Box<dyn Write + 'a> },
    /// One record: the statement returns one text, or none.
    One { statement: Statement, view: fn(Option<&str>, u64) -> Result<AnswerBody, Problem> },
    /// An agent, part of whose state is in its lane. The statement returns its record and, as
    /// `extra`, the tenant's values that the lane needs.
    Agent(Statement),
    /// A page: the statement returns a text for each record. If `within` is set, its statement must
    /// find a parent record; its text names it.
    Page {
        within: Option<(&'static str, Statement)>,
        statement: Statement,
        limit: u32,
        view: fn(&[String], u32, u64) -> Result<Json, Problem>,
    },
    /// Not a route of the administration.
    Other,
}

impl<'a> Request<'a> {
    /// Reads the request. One match, so that the compiler finds an operation that is missing.
    ///
    /// # Errors
    ///
    /// The problem for the caller.
    pub fn asked(&self) -> Result<Asked<'a>, Problem> {
        use Operation as Op;
        Ok(match self.operation {
            Op::Health
            | Op::Ready
            | Op::Version
            | Op::Description
            | Op::ReadMetrics
            | Op::Authorize
            | Op::StartRun
            | Op::ReportResult
            | Op::ListDecisions
            | Op::ReadDecision
            | Op::ReportOutcome
            | Op::ReadLimitStates
            | Op::ListApprovals
            | Op::ReadApproval
            | Op::DecideApproval(_)
            | Op::ListReceipts
            | Op::ReadReceiptEnds
            | Op::VerifyReceipts
            | Op::ReadReceipt
            | Op::ReadLogKeys
            | Op::ReadCheckpoint
            | Op::ReadTile
            | Op::ReadInclusion
            | Op::ReadConsistency
            | Op::ListRegistryEvents => Asked::Other,

            Op::Bootstrap => {
                let request: BootstrapRequest = parse(self.body)?;
                let tenant = request.tenant.to_string();
                write_to(tenant, Bootstrap { request, mint: self.mint() })
            }
            Op::ListTenants => self.page_of_all::<TenantRow>(sql::LIST_TENANTS)?,
            Op::CreateTenant => {
                let request: TenantRequest = parse(self.body)?;
                let tenant = request.tenant.to_string();
                write_to(tenant, CreateTenant { request, mint: self.mint() })
            }
            Op::ReadTenant => {
                let values = vec![self.name(0, "tenant")?.to_string().into()];
                one_of::<TenantRow>(sql::READ_TENANT, values)
            }
            Op::PatchTenant => {
                let tenant = self.name(0, "tenant")?.to_string();
                write_to(tenant, parse::<PatchTenant>(self.body)?)
            }
            Op::DeleteTenant => write_to(self.name(0, "tenant")?.to_string(), DeleteTenant),
            Op::ReadSettings => one_of::<SettingsRow>(sql::READ_TENANT, vec![self.tenant.into()]),
            Op::PatchSettings => self.write(parse::<PatchSettings>(self.body)?),

            Op::ListLimits => self.page_of::<LimitRow>(sql::LIST_LIMITS)?,
            Op::CreateLimit => {
                self.write(CreateLimit { request: parse(self.body)?, offset_s: self.offset_s })
            }
            Op::ReadLimit => self.one_named::<LimitRow>(sql::READ_LIMIT, "limit_id")?,
            Op::PatchLimit => self.write(PatchLimit {
                limit_id: self.name(0, "limit_id")?,
                patch: parse(self.body)?,
                offset_s: self.offset_s,
            }),
            Op::DeleteLimit => self.write(DeleteLimit { limit_id: self.name(0, "limit_id")? }),

            Op::ReadWebhook => one_of::<WebhookRow>(sql::READ_WEBHOOK, vec![self.tenant.into()]),
            Op::SetWebhook => {
                let request: WebhookRequest = parse(self.body)?;
                let target = Target::parse(&request.url, self.local_targets)
                    .map_err(|must| refused("url", &must))?;
                self.write(SetWebhook { target, keys: self.keys, salt: self.random() })
            }
            Op::DeleteWebhook => self.write(DeleteWebhook),

            Op::ListAgents => self.page_of::<AgentRow>(sql::LIST_AGENTS)?,
            Op::CreateAgent => self.write(parse::<CreateAgent>(self.body)?),
            Op::ReadAgent => {
                let values = vec![self.tenant.into(), self.name(0, "agent")?.to_string().into()];
                Asked::Agent(Statement::new(sql::READ_AGENT, values))
            }
            Op::PatchAgent => {
                self.write(PatchAgent { agent: self.name(0, "agent")?, patch: parse(self.body)? })
            }
            Op::DeleteAgent => self.write(DeleteAgent { agent: self.name(0, "agent")? }),
            Op::ActOnAgent(action) => {
                self.write(ActOnAgent { agent: self.name(0, "agent")?, action })
            }

            Op::ListGroups => self.page_of::<GroupRow>(sql::LIST_GROUPS)?,
            Op::CreateGroup => self.write(parse::<CreateGroup>(self.body)?),
            Op::ReadGroup => self.one_named::<GroupRow>(sql::READ_GROUP, "group")?,
            Op::DeleteGroup => self.write(DeleteGroup { group: self.name(0, "group")? }),
            Op::ProtectGroup => {
                self.write(ProtectGroup { group: self.name(0, "group")?, protected: true })
            }
            Op::UnprotectGroup => {
                self.write(ProtectGroup { group: self.name(0, "group")?, protected: false })
            }
            Op::ListMembers => self.page_within::<Member>(
                ("group", sql::READ_GROUP),
                sql::LIST_MEMBERS,
                |cursor| {
                    let (kind, member) = cursor.split_once('.').unwrap_or(("", ""));
                    vec![kind.into(), member.into()]
                },
            )?,
            Op::AddMember => self.member(true)?,
            Op::RemoveMember => self.member(false)?,

            Op::ListAdministrators => self.page_of::<AdministratorRow>(sql::LIST_ADMINISTRATORS)?,
            Op::CreateAdministrator => self.write(parse::<CreateAdministrator>(self.body)?),
            Op::ReadAdministrator => {
                self.one_named::<AdministratorRow>(sql::READ_ADMINISTRATOR, "administrator")?
            }
            Op::DeleteAdministrator => {
                let administrator = self.name(0, "administrator")?;
                self.write(DeleteAdministrator { administrator, last: self.query().flag("last")? })
            }

            Op::ListCredentials => self.credentials()?,
            Op::CreateCredential => {
                self.write(IssueCredential { request: parse(self.body)?, mint: self.mint() })
            }
            Op::ReadCredential => {
                self.one_named::<CredentialRow>(sql::READ_CREDENTIAL, "key_id")?
            }
            Op::RotateCredential => {
                let key_id = self.name(0, "key_id")?;
                let request =
                    if self.body.is_empty() { Default::default() } else { parse(self.body)? };
                self.write(RotateCredential { key_id, request, mint: self.mint() })
            }
            Op::RevokeCredential => self.write(RevokeCredential {
                key_id: self.name(0, "key_id")?,
                last: self.query().flag("last")?,
            }),

            Op::ListServers => self.page_of::<ServerRow>(sql::LIST_SERVERS)?,
            Op::CreateServer => {
                let request: ServerRequest = parse(self.body)?;
                self.write(CreateServer::new(request, self.local_targets)?)
            }
            Op::ReadServer => self.one_named::<ServerRow>(sql::READ_SERVER, "server")?,
            Op::PatchServer => {
                let (server, patch) = (self.name(0, "server")?, parse(self.body)?);
                self.write(PatchServer::new(server, patch, self.local_targets)?)
            }
            Op::DeleteServer => self.write(DeleteServer { server: self.name(0, "server")? }),
            Op::ActOnServer(action) => {
                self.write(ActOnServer { server: self.name(0, "server")?, action })
            }

            Op::ListTools => self.page_within::<ToolRow>(
                ("server", sql::READ_SERVER),
                sql::LIST_TOOLS,
                |cursor| vec![cursor.into()],
            )?,
            Op::CreateTool => {
                self.write(CreateTool::new(self.name(0, "server")?, parse(self.body)?))
            }
            Op::ReadTool => {
                let values = vec![
                    self.tenant.into(),
                    self.name(0, "server")?.to_string().into(),
                    self.tool()?.to_string().into(),
                ];
                one_of::<ToolDetailRow>(sql::READ_TOOL, values)
            }
            Op::PatchTool => self.write(PatchTool {
                server: self.name(0, "server")?,
                tool: self.tool()?,
                patch: parse(self.body)?,
            }),
            Op::ActOnTool(action) => self.write(ActOnTool {
                server: self.name(0, "server")?,
                tool: self.tool()?,
                action,
                approval: match action {
                    StateAction::Approve if !self.body.is_empty() => parse(self.body)?,
                    _ => ApproveTool::default(),
                },
            }),

            Op::ListBans => self.page_of::<BanRow>(sql::LIST_BANS)?,
            Op::CreateBan => {
                self.write(CreateBan { request: parse(self.body)?, random: self.random() })
            }
            Op::ReadBan => self.one_named::<BanRow>(sql::READ_BAN, "ban_id")?,
            Op::DeleteBan => self.write(DeleteBan { ban_id: self.name(0, "ban_id")? }),

            Op::ListWarrantRoots => self.page_of::<WarrantRootRow>(sql::LIST_WARRANT_ROOTS)?,
            Op::CreateWarrantRoot => self.write(parse::<CreateWarrantRoot>(self.body)?),
            Op::ReadWarrantRoot => {
                self.one_named::<WarrantRootRow>(sql::READ_WARRANT_ROOT, "root_id")?
            }
            Op::PatchWarrantRoot => self.write(PatchWarrantRoot {
                root_id: self.name(0, "root_id")?,
                patch: parse(self.body)?,
            }),
            Op::DeleteWarrantRoot => {
                self.write(DeleteWarrantRoot { root_id: self.name(0, "root_id")? })
            }
            Op::TakeRevocationList => self.write(TakeRevocationList {
                root_id: self.name(0, "root_id")?,
                request: parse(self.body)?,
            }),

            Op::ListWarrantRevocations => {
                self.page_of::<WarrantRevocationRow>(sql::LIST_WARRANT_REVOCATIONS)?
            }
            Op::RevokeWarrant => self.write(parse::<RevokeWarrant>(self.body)?),
            Op::ReadWarrantRevocation => {
                let id: WarrantId =
                    self.parameter(0).parse().map_err(|must| refused("warrant_id", must))?;
                let values = vec![self.tenant.into(), id.as_str().into()];
                one_of::<WarrantRevocationRow>(sql::READ_WARRANT_REVOCATION, values)
            }

            Op::ListAuditEvents => self.events()?,
        })
    }

    /// Whether the operation reads a JSON body. A list of its own, because the Wasm does not contain the OpenAPI
    /// document. `tests/openapi.rs` compares the two.
    #[must_use]
    pub fn takes_body(&self) -> bool {
        use Operation as Op;
        matches!(
            self.operation,
            Op::Bootstrap
                | Op::CreateTenant
                | Op::PatchTenant
                | Op::PatchSettings
                | Op::CreateLimit
                | Op::PatchLimit
                | Op::SetWebhook
                | Op::CreateAgent
                | Op::PatchAgent
                | Op::CreateGroup
                | Op::CreateAdministrator
                | Op::CreateCredential
                | Op::CreateServer
                | Op::PatchServer
                | Op::CreateTool
                | Op::PatchTool
                | Op::CreateBan
                | Op::CreateWarrantRoot
                | Op::PatchWarrantRoot
                | Op::TakeRevocationList
                | Op::RevokeWarrant
        ) || (matches!(self.operation, Op::RotateCredential | Op::ActOnTool(StateAction::Approve))
            && !self.body.is_empty())
    }

    fn query(&self) -> Query<'a> {
        Query(self.query)
    }

    fn mint(&self) -> Mint<'a> {
        Mint { keys: self.keys, random: self.random }
    }

    /// The first of the random bytes.
    fn random<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut random = [0; LENGTH];
        random.iter_mut().zip(self.random).for_each(|(byte, given)| *byte = given);
        random
    }

    fn write(&self, write: impl Write + 'a) -> Asked<'a> {
        write_to(self.tenant.to_owned(), write)
    }

    fn parameter(&self, at: usize) -> &str {
        self.parameters.get(at).map_or("", String::as_str)
    }

    fn name(&self, at: usize, field: &str) -> Result<Name, Problem> {
        Name::parse(self.parameter(at)).map_err(|must| refused(field, &must))
    }

    /// The tool of `/v1/servers/{server}/tools/{tool}`.
    fn tool(&self) -> Result<ToolName, Problem> {
        ToolName::parse(self.parameter(1)).map_err(|must| refused("tool", &must))
    }

    fn member(&self, present: bool) -> Result<Asked<'a>, Problem> {
        let kind = match self.parameter(1) {
            "agents" => MemberKind::Agent,
            "administrators" => MemberKind::Administrator,
            _ => return Err(Problem::not_found("kind of member")),
        };
        let (group, member) = (self.name(0, "group")?, self.name(2, "member")?);
        Ok(self.write(SetMember { group, kind, member, present }))
    }

    fn one_named<R: Resource>(&self, sql: &'static str, field: &str) -> Result<Asked<'a>, Problem> {
        let values = vec![self.tenant.into(), self.name(0, field)?.to_string().into()];
        Ok(one_of::<R>(sql, values))
    }

    /// A page of the tenant's records: tenant, after, limit.
    fn page_of<R: Resource>(&self, sql: &'static str) -> Result<Asked<'a>, Problem> {
        let (limit, cursor) = self.query().page(&[])?;
        let values = vec![self.tenant.into(), cursor.into(), u64::from(limit).into()];
        Ok(page_of::<R>(sql, values, limit))
    }

    /// A page of records of no tenant: after, limit.
    fn page_of_all<R: Resource>(&self, sql: &'static str) -> Result<Asked<'a>, Problem> {
        let (limit, cursor) = self.query().page(&[])?;
        let values = vec![cursor.into(), u64::from(limit).into()];
        Ok(page_of::<R>(sql, values, limit))
    }

    /// A page of the records of one parent, which the path names: tenant, parent, what `after` makes of the cursor, limit.
    /// `parent` is its kind, and the statement that reads it.
    fn page_within<R: Resource>(
        &self,
        (parent, read): (&'static str, &'static str),
        list: &'static str,
        after: fn(&str) -> Vec<Value>,
    ) -> Result<Asked<'a>, Problem> {
        let key: Vec<Value> = vec![self.tenant.into(), self.name(0, parent)?.to_string().into()];
        let (limit, cursor) = self.query().page(&[])?;
        let mut values = key.clone();
        values.extend(after(cursor));
        values.push(u64::from(limit).into());
        let within = Some((parent, Statement::new(read, key)));
        let statement = Statement::new(list, values);
        Ok(Asked::Page { within, statement, limit, view: page::<R> })
    }

    fn credentials(&self) -> Result<Asked<'a>, Problem> {
        let Some(agent) = self.query().get("agent") else {
            return self.page_of::<CredentialRow>(sql::LIST_CREDENTIALS);
        };
        let (limit, cursor) = self.query().page(&["agent"])?;
        let values = vec![self.tenant.into(), cursor.into(), u64::from(limit).into(), agent.into()];
        Ok(page_of::<CredentialRow>(sql::LIST_CREDENTIALS_OF_AGENT, values, limit))
    }

    fn events(&self) -> Result<Asked<'a>, Problem> {
        let (limit, cursor) = self.query().page(&["kind", "from", "to"])?;
        let from = self.query().time("from")?.unwrap_or(0);
        let to = self.query().time("to")?.unwrap_or(MAX_TIME_MS);
        let (mut before, mut before_id) = (to, "");
        if !cursor.is_empty() {
            let place = cursor.split_once('.').and_then(|(at, id)| Some((at.parse().ok()?, id)));
            let (at, id) =
                place.ok_or_else(|| malformed("cursor", "the `next_cursor` of a page"))?;
            if at <= before {
                (before, before_id) = (at, id);
            }
        }
        let mut values: Vec<Value> = vec![
            self.tenant.into(),
            before.into(),
            before_id.into(),
            from.into(),
            u64::from(limit).into(),
        ];
        let sql = match self.query().get("kind") {
            None => sql::LIST_EVENTS,
            Some("decision") => sql::LIST_EVENTS_OF_DECISIONS,
            Some(kind) => {
                values.push(kind.into());
                sql::LIST_EVENTS_OF_KIND
            }
        };
        Ok(page_of::<EventRow>(sql, values, limit))
    }
}

/// Later than any time in a record, and still exact as a double.
const MAX_TIME_MS: u64 = 1 << 52;

fn write_to<'a>(tenant: String, write: impl Write + 'a) -> Asked<'a> {
    Asked::Write { tenant, write: Box::new(write) }
}

fn one_of<'a, R: Resource>(sql: &'static str, values: Vec<Value>) -> Asked<'a> {
    Asked::One { statement: Statement::new(sql, values), view: one::<R> }
}

fn page_of<'a, R: Resource>(sql: &'static str, values: Vec<Value>, limit: u32) -> Asked<'a> {
    Asked::Page { within: None, statement: Statement::new(sql, values), limit, view: page::<R> }
}
