//! What administrators registered, as a lane holds it.
//!
//! INVARIANT (one epoch): every record in the cache is as it was in D1 at the cache's epoch, and
//! the cache never mixes epochs, so a decision never sees half of a change. Three things change it:
//!
//! - A load brings records that were read in one statement with the tenant's epoch. At a newer
//!   epoch the cache is emptied first; at an older one the load is thrown away, however late it
//!   comes.
//! - A push says that the tenant went from one epoch to another and which keys changed on the way.
//!   Where it begins at the cache's epoch, every other record is the same at both, so only the named
//!   ones are dropped. Where it does not (a push was lost, or came before another), it is not known
//!   what else changed, and the cache is emptied. What is not newer than the cache is no news.
//! - A confirmation of a newer epoch, which names no keys, empties the cache.
//!
//! The epoch never falls: an object that starts anew begins at the one that its storage holds
//! ([`crate::lane::Lane::stored_registry`]). So once a push of an epoch was taken, no record from
//! before it is used: not a held one, not one that a slow load brings, not one that was stored.
//!
//! INVARIANT (nothing renews itself): the time of the last confirmation is when D1 was asked, in memory
//! and in storage. Neither a start nor a push makes it later, and a time that lies in the future
//! confirms nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::bounds::MAX_BANS;
use crate::bundle::Risk;
use crate::call;
use crate::command::{GateCommand, Purpose};
use crate::gate::DEFAULT_TAINT_S;
use crate::glob::Glob;
use crate::http_tool;
use crate::network::Network;
use crate::risk::RiskTier;
use crate::scope::Scope;
use crate::trust::SourceTrust;
use crate::upstream::Upstream;

/// Records of one kind that a lane keeps; beyond it that kind is dropped and read again. A
/// record is some 300 bytes, so a full cache stays below 16 MB of the isolate's 128.
const MAX_CACHED_RECORDS: usize = 10_000;

/// Bytes of the tools' schemas that a lane was given since it last dropped all tools: each may have
/// 64 KiB.
const MAX_CACHED_SCHEMA_BYTES: usize = 16 * 1024 * 1024;

/// Servers whose tools a lane keeps all of. A listing of the most tools that there can be is some
/// 200 KB.
const MAX_CACHED_LISTINGS: usize = 32;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TenantRecord {
    pub status: String,
    pub epoch: u64,
    /// For agents that have none of their own.
    pub rate_capacity: Option<u32>,
    pub rate_refill_per_s: Option<f64>,
    pub quota_per_day: Option<u32>,
    pub risk_denials: Option<u32>,
    pub risk_window_s: Option<u32>,
    pub risk_quiet_s: Option<u32>,
    /// How long taint lasts after the last text of an untrusted server.
    pub taint_s: Option<u32>,
    /// Over how many lanes the bounds below are split. `None`: the record is of limits alone.
    pub lanes: Option<u16>,
    pub rows_per_day: Option<u32>,
    pub bytes_per_day: Option<u32>,
    /// For how long a lane goes on without having confirmed the registry, for each kind of call.
    pub grace_read_s: Option<u32>,
    pub grace_write_s: Option<u32>,
    pub grace_high_risk_s: Option<u32>,
}

/// For how long reads go on when a tenant has not said: D1's own incidents are mostly shorter.
pub const DEFAULT_GRACE_READ_S: u32 = 15 * 60;

/// The longest that can be registered: as long as the journal holds at full rate.
pub const MAX_GRACE_S: u32 = 60 * 60;

impl TenantRecord {
    #[must_use]
    pub fn taint_period_ms(&self) -> u64 {
        u64::from(self.taint_s.unwrap_or(DEFAULT_TAINT_S)) * 1_000
    }
}

/// What administrators did to an agent; the lane's own quarantine is not among it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    Active,
    Frozen,
    Revoked,
    Quarantined,
}

/// In a list that is `None` everything is allowed, in an empty one nothing. A list that is left
/// out of what is read is a mistake, not a list that is `None`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AgentRecord {
    pub lane: u16,
    pub status: AgentStatus,
    pub environment: String,
    /// As registered; the lane may raise it.
    pub risk_tier: RiskTier,
    /// Sorted.
    pub groups: Vec<String>,
    /// Compared with `server/tool`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_tools: Option<Vec<Glob>>,
    pub rate_capacity: Option<u32>,
    pub rate_refill_per_s: Option<f64>,
    pub quota_per_day: Option<u32>,
}

/// Lists are as in [`AgentRecord`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CredentialRecord {
    /// `None` for an administrator's.
    pub agent: Option<String>,
    pub secret_sha256: String,
    #[serde(deserialize_with = "Scope::deserialize_known")]
    pub scopes: Vec<Scope>,
    pub max_source_trust: SourceTrust,
    pub status: String,
    pub expires_at_ms: Option<u64>,
    /// Compared with a server's name.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_servers: Option<Vec<Glob>>,
    /// Compared with `server/tool`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_tools: Option<Vec<Glob>>,
    /// Where the connecting address must be.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_networks: Option<Vec<Network>>,
    /// Whether requests must be signed.
    pub signed: bool,
    /// Whether it belongs to a harness: the program that drives agents and assigns runs, not the
    /// model. Only then are a run and a user more than what the caller says.
    pub assigns_runs: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerRecord {
    pub kind: String,
    pub trust: String,
    pub status: String,
    /// `None` when Gateward does not stand in front of it.
    pub upstream: Option<Rc<Upstream>>,
    /// SHA-256 of the instructions that were pinned at registration, in lower-case hex.
    pub instructions_sha256: Option<String>,
}

impl ServerRecord {
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.trust != "trusted"
    }
}

/// What a tainted call of a tool needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaintRule {
    /// Nothing more: policies judge the call by what is stated.
    Allow,
    /// A person's approval, if it writes.
    #[default]
    RequireApproval,
    /// It is denied, also if it only reads.
    Forbid,
}

impl TaintRule {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::RequireApproval => "require_approval",
            Self::Forbid => "forbid",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolRegistration {
    pub status: String,
    /// 0 or 1, as SQLite has it.
    pub mutates: u8,
    pub risk: Risk,
    pub canary: u8,
    /// What a tainted call of it needs.
    pub tainted: TaintRule,
    /// How long an approval of a call of it is open, in seconds.
    pub approval_ttl_s: Option<u32>,
    /// What its arguments must be: the text of a JSON Schema. It is compiled when a call needs it.
    pub input_schema: Option<Rc<str>>,
}

/// A tool as far as a listing needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTool {
    pub tool: String,
    pub status: String,
    /// 0 or 1, as SQLite has it.
    pub mutates: u8,
    pub canary: u8,
    /// Of its definition as the server listed it, in lower-case hex.
    pub definition_sha256: Option<String>,
}

/// A server's tools by name.
pub type Listing = HashMap<String, ListedTool>;

/// What is banned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BanKind {
    /// An agent, by name.
    Agent,
    /// A user that callers name as `user.id`.
    User,
    /// A run that callers name as `trace.run_id`.
    Run,
    /// The network that a request connects from.
    SourceAddress,
}

impl BanKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::User => "user",
            Self::Run => "run",
            Self::SourceAddress => "source_address",
        }
    }
}

/// One ban, as it is read.
#[derive(Debug, Clone, Deserialize)]
struct Ban {
    kind: BanKind,
    subject: String,
    expires_at_ms: Option<u64>,
}

/// A tenant's bans, by what they ban; the values are when they expire.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(try_from = "Vec<Ban>")]
pub struct Bans {
    agents: HashMap<String, u64>,
    users: HashMap<String, u64>,
    runs: HashMap<String, u64>,
    networks: Vec<(Network, u64)>,
}

impl Bans {
    /// The first ban that a call meets at `now_ms`.
    #[must_use]
    pub fn find(
        &self,
        (agent, user, run): (&str, &str, &str),
        address: Option<IpAddr>,
        now_ms: u64,
    ) -> Option<BanKind> {
        let holds = |expires_at_ms: &u64| now_ms < *expires_at_ms;
        for (kind, banned, name) in [
            (BanKind::Agent, &self.agents, agent),
            (BanKind::User, &self.users, user),
            (BanKind::Run, &self.runs, run),
        ] {
            if banned.get(name).is_some_and(holds) {
                return Some(kind);
            }
        }
        let live = || self.networks.iter().filter(|(_, at)| holds(at));
        // Whoever cannot be placed may be in any of them.
        let Some(address) = address else { return live().next().map(|_| BanKind::SourceAddress) };
        live().any(|(net, _)| net.contains(address)).then_some(BanKind::SourceAddress)
    }
}

impl TryFrom<Vec<Ban>> for Bans {
    type Error = String;

    fn try_from(bans: Vec<Ban>) -> Result<Self, String> {
        if bans.len() > MAX_BANS {
            return Err(format!("there are more than {MAX_BANS} bans"));
        }
        let mut read = Self::default();
        for Ban { kind, subject, expires_at_ms } in bans {
            let expires_at_ms = expires_at_ms.unwrap_or(u64::MAX);
            let names = match kind {
                BanKind::Agent => &mut read.agents,
                BanKind::User => &mut read.users,
                BanKind::Run => &mut read.runs,
                BanKind::SourceAddress => {
                    let network = subject.parse::<Network>();
                    let network = network.map_err(|error| format!("a ban: {error}"))?;
                    read.networks.push((network, expires_at_ms));
                    continue;
                }
            };
            // Of several on one subject, what lasts longest holds.
            let held = names.entry(subject).or_default();
            *held = (*held).max(expires_at_ms);
        }
        Ok(read)
    }
}

/// What one call needs, as of one epoch. Absent means: not registered.
#[derive(Debug, Clone, PartialEq)]
pub struct Records {
    pub tenant: Option<TenantRecord>,
    pub agent: Option<AgentRecord>,
    pub credential: Option<CredentialRecord>,
    pub server: Option<ServerRecord>,
    pub tool: Option<ToolRegistration>,
    pub bans: Rc<Bans>,
    /// All tools of the server; empty unless a listing is to be filtered.
    pub listing: Rc<Listing>,
    /// Whether the epoch was confirmed within `REGISTRY_TTL_MS`. If not, the decision says so.
    pub confirmed: bool,
}

impl Records {
    /// For how long after its last confirmation the registry is good for this call, in milliseconds:
    /// as the tenant registered for reads, for writes, and for tools of high or critical risk; never
    /// less than `ttl_ms`.
    #[must_use]
    pub fn grace_ms(&self, command: &GateCommand, ttl_ms: u64) -> u64 {
        let tenant = self.tenant.as_ref();
        let (risk, mutates) = match &self.tool {
            Some(tool) => (tool.risk, tool.mutates != 0 || command.call.mutates_state),
            None => (Risk::Low, command.call.mutates_state),
        };
        let grace_s = if risk >= Risk::High {
            tenant.and_then(|tenant| tenant.grace_high_risk_s)
        } else if mutates {
            tenant.and_then(|tenant| tenant.grace_write_s)
        } else {
            tenant.and_then(|tenant| tenant.grace_read_s).or(Some(DEFAULT_GRACE_READ_S))
        };
        ttl_ms.max(u64::from(grace_s.unwrap_or_default()) * 1_000)
    }
}

/// What D1 answered to a load: each record as JSON text, `None` for what is not registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct LoadedTexts {
    pub tenant: Option<String>,
    pub agent: Option<String>,
    pub credential: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    /// `None` when they were not asked for.
    pub bans: Option<String>,
}

impl LoadedTexts {
    /// # Errors
    ///
    /// Absent is not the same as unreadable: a record that does not parse stops the call.
    pub fn parse(&self) -> serde_json::Result<Loaded> {
        Ok(Loaded {
            tenant: record(&self.tenant)?,
            agent: record(&self.agent)?,
            credential: record(&self.credential)?,
            server: record(&self.server)?,
            tool: record(&self.tool)?,
            bans: record(&self.bans)?,
        })
    }
}

fn record<'a, T: Deserialize<'a>>(text: &'a Option<String>) -> serde_json::Result<Option<T>> {
    text.as_deref().map(serde_json::from_str).transpose()
}

/// A record as a lane stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    pub kind: RecordKind,
    /// Empty where there is only one of its kind.
    pub name: String,
    /// JSON; `null` for what is not registered.
    pub text: String,
}

/// What a stored record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    Tenant,
    Agent,
    Credential,
    Server,
    Tool,
    Bans,
    /// All tools of a server.
    Listing,
}

impl RecordKind {
    const ALL: [Self; 7] = [
        Self::Tenant,
        Self::Agent,
        Self::Credential,
        Self::Server,
        Self::Tool,
        Self::Bans,
        Self::Listing,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Agent => "agent",
            Self::Credential => "credential",
            Self::Server => "server",
            Self::Tool => "tool",
            Self::Bans => "bans",
            Self::Listing => "listing",
        }
    }

    /// The name of the one that a command needs.
    fn name(self, command: &GateCommand) -> String {
        match self {
            Self::Tenant | Self::Bans => String::new(),
            Self::Agent => command.call.agent.clone(),
            Self::Credential => command.key_id.clone(),
            Self::Server | Self::Listing => command.call.server.clone(),
            Self::Tool => tool_id(command),
        }
    }
}

/// Kind and name of every record that a command needs.
#[must_use]
pub fn needed(command: &GateCommand) -> Vec<(RecordKind, String)> {
    RecordKind::ALL.into_iter().map(|kind| (kind, kind.name(command))).collect()
}

/// What was loaded for a command, as it is stored.
#[must_use]
pub fn stored(command: &GateCommand, loaded: LoadedTexts) -> Vec<StoredRecord> {
    let null = || "null".to_owned();
    let LoadedTexts { tenant, agent, credential, server, tool, bans } = loaded;
    [
        (RecordKind::Tenant, Some(tenant.unwrap_or_else(null))),
        (RecordKind::Agent, Some(agent.unwrap_or_else(null))),
        (RecordKind::Credential, Some(credential.unwrap_or_else(null))),
        (RecordKind::Server, Some(server.unwrap_or_else(null))),
        (RecordKind::Tool, Some(tool.unwrap_or_else(null))),
        (RecordKind::Bans, bans),
    ]
    .into_iter()
    .filter_map(|(kind, text)| Some(StoredRecord { kind, name: kind.name(command), text: text? }))
    .collect()
}

/// What D1 answered to a load, read in one statement.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Loaded {
    pub tenant: Option<TenantRecord>,
    pub agent: Option<AgentRecord>,
    pub credential: Option<CredentialRecord>,
    pub server: Option<ServerRecord>,
    pub tool: Option<ToolRegistration>,
    /// `None` when they were not asked for.
    pub bans: Option<Bans>,
}

/// All tools of a server, read in one statement with the tenant's epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedListing {
    pub epoch: u64,
    pub tools: Vec<ListedTool>,
}

/// All tools of a command's server, as they are stored.
#[must_use]
pub fn stored_listing(command: &GateCommand, loaded: &LoadedListing) -> StoredRecord {
    let kind = RecordKind::Listing;
    // Plain data always serializes; what were empty could not be read.
    let text = serde_json::to_string(&loaded.tools).unwrap_or_default();
    StoredRecord { kind, name: kind.name(command), text }
}

/// Lanes of a tenant that did not take an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPushes {
    pub tenant: String,
    pub lanes: Vec<u16>,
    pub epoch: u64,
}

/// A change of the registry, as every lane of the tenant is told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochPush {
    pub from: u64,
    pub epoch: u64,
    /// Everything that is different at `epoch` from what it was at `from`, and never less: a lane
    /// keeps what is not named.
    pub keys: Vec<ChangedKey>,
}

impl EpochPush {
    /// News without the change itself: whatever a lane holds from before `epoch` is dropped.
    #[must_use]
    pub fn whole(epoch: u64) -> Self {
        Self { from: epoch.saturating_sub(1), epoch, keys: vec![ChangedKey::All] }
    }
}

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedKey {
    Tenant,
    Agent(String),
    /// A key id.
    Credential(String),
    /// A server and all its tools.
    Server(String),
    /// `server/tool`.
    Tool(String),
    Bans,
    All,
}

/// A lane's copy of the registry.
#[derive(Debug, Default)]
pub struct RegistryCache {
    epoch: u64,
    confirmed_at_ms: Option<u64>,
    /// The outer `None` is what is not held, in each field; the inner what is not registered.
    tenant: Option<Option<TenantRecord>>,
    agents: HashMap<String, Option<AgentRecord>>,
    credentials: HashMap<String, Option<CredentialRecord>>,
    servers: HashMap<String, Option<ServerRecord>>,
    tools: HashMap<String, Option<ToolRegistration>>,
    schema_bytes: usize,
    /// All tools of a server.
    listings: HashMap<String, Rc<Listing>>,
    bans: Option<Rc<Bans>>,
}

impl RegistryCache {
    /// The records for `command` that are held; `None` when it is not known who calls, or when
    /// the epoch was not confirmed within `ttl_ms`: then they must be read from D1 first. The flag
    /// says whether server and tool are among them.
    #[must_use]
    pub fn records(
        &self,
        command: &GateCommand,
        now_ms: u64,
        ttl_ms: u64,
    ) -> Option<(Records, bool)> {
        if !self.is_confirmed(now_ms, ttl_ms) {
            return None;
        }
        self.held(command)
    }

    /// The same for when D1 does not answer: they are good for as long as the tenant registered for
    /// such a call, and they say that they were not confirmed.
    #[must_use]
    pub fn unconfirmed(
        &self,
        command: &GateCommand,
        now_ms: u64,
        ttl_ms: u64,
    ) -> Option<(Records, bool)> {
        let (mut records, complete) = self.held(command)?;
        if !self.is_confirmed(now_ms, records.grace_ms(command, ttl_ms)) {
            return None;
        }
        records.confirmed = self.is_confirmed(now_ms, ttl_ms);
        Some((records, complete))
    }

    fn is_confirmed(&self, now_ms: u64, within_ms: u64) -> bool {
        let age_ms = self.confirmed_at_ms.and_then(|at_ms| now_ms.checked_sub(at_ms));
        age_ms.is_some_and(|age_ms| age_ms < within_ms)
    }

    fn held(&self, command: &GateCommand) -> Option<(Records, bool)> {
        let call = &command.call;
        let tenant = self.tenant.clone()?;
        let agent = self.agents.get(&call.agent).cloned()?;
        let credential = self.credentials.get(&command.key_id).cloned()?;
        let bans = Rc::clone(self.bans.as_ref()?);
        let server = self.servers.get(&call.server).cloned();
        let tool = self.tools.get(&tool_id(command)).cloned();
        let listing = match command.purpose {
            Purpose::Filter(_) => self.listings.get(&call.server).cloned(),
            _ => Some(Rc::default()),
        };
        let complete = server.is_some() && tool.is_some() && listing.is_some();
        let (server, tool) = (server.flatten(), tool.flatten());
        let listing = listing.unwrap_or_default();
        let confirmed = true;
        let records = Records { tenant, agent, credential, server, tool, bans, listing, confirmed };
        Some((records, complete))
    }

    /// The command with the tool that an HTTP request calls, as the server's routes say; as it is
    /// while the server is not held.
    #[must_use]
    pub fn routed<'a>(&self, command: &'a GateCommand) -> Cow<'a, GateCommand> {
        let Purpose::Route(request) = &command.purpose else { return Cow::Borrowed(command) };
        let Some(server) = self.servers.get(&command.call.server) else {
            return Cow::Borrowed(command);
        };
        let upstream = server.as_ref().and_then(|server| server.upstream.as_ref());
        let routes = upstream.map_or(&[][..], |upstream| &upstream.routes);
        let mut routed = command.clone();
        match http_tool::resolve(routes, request) {
            Ok(resolved) => {
                routed.call.route = Some((request.method.clone(), resolved.route.clone()));
                routed.purpose = Purpose::Routed(resolved.route);
                routed.call.tool = resolved.tool;
                routed.call.input = resolved.input;
                routed.call.resource = resolved.resource;
            }
            Err(unresolved) => routed.purpose = Purpose::Unroutable(unresolved),
        }
        call::complete(&mut routed.call, &command.tenant);
        Cow::Owned(routed)
    }

    /// Whether all tools of the command's server are wanted and not held.
    #[must_use]
    pub fn needs_listing(&self, command: &GateCommand) -> bool {
        matches!(command.purpose, Purpose::Filter(_))
            && !self.listings.contains_key(&command.call.server)
    }

    /// Takes all tools of a server; returns whether they may be kept.
    pub fn accept_listing(
        &mut self,
        server: &str,
        loaded: LoadedListing,
        asked_at_ms: u64,
    ) -> bool {
        let may_be_kept = self.confirm(loaded.epoch, asked_at_ms);
        if may_be_kept {
            self.keep_listing(server.to_owned(), loaded.tools);
        }
        may_be_kept
    }

    fn keep_listing(&mut self, server: String, tools: Vec<ListedTool>) {
        let listing = tools.into_iter().map(|tool| (tool.tool.clone(), tool)).collect();
        if self.listings.len() >= MAX_CACHED_LISTINGS {
            self.listings.clear();
        }
        self.listings.insert(server, Rc::new(listing));
    }

    /// The newest epoch that it knows of.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether a load should bring the bans: many records come while bans stay the same.
    #[must_use]
    pub fn needs_bans(&self) -> bool {
        self.bans.is_none()
    }

    /// Takes what D1 answered to the load for `command`; the time is when the read was begun,
    /// since only what was true then is confirmed. Returns whether it may be kept.
    pub fn accept(&mut self, command: &GateCommand, loaded: Loaded, asked_at_ms: u64) -> bool {
        let epoch = loaded.tenant.as_ref().map_or(0, |tenant| tenant.epoch);
        if !self.confirm(epoch, asked_at_ms) {
            return false;
        }
        self.tenant = Some(loaded.tenant);
        keep(&mut self.agents, command.call.agent.clone(), loaded.agent);
        keep(&mut self.credentials, command.key_id.clone(), loaded.credential);
        keep(&mut self.servers, command.call.server.clone(), loaded.server);
        self.keep_tool(tool_id(command), loaded.tool);
        if let Some(bans) = loaded.bans {
            self.bans = Some(Rc::new(bans));
        }
        true
    }

    fn keep_tool(&mut self, id: String, tool: Option<ToolRegistration>) {
        let schema = tool.as_ref().and_then(|tool| tool.input_schema.as_ref());
        let bytes = schema.map_or(0, |schema| schema.len());
        self.schema_bytes += bytes;
        if self.schema_bytes > MAX_CACHED_SCHEMA_BYTES {
            self.tools.clear();
            self.schema_bytes = bytes;
        }
        keep(&mut self.tools, id, tool);
    }

    /// Begins where the lane's storage says that it was.
    pub fn resume(&mut self, epoch: u64, confirmed_at_ms: Option<u64>) {
        if epoch > self.epoch || self.confirmed_at_ms.is_none() {
            self.empty_at(epoch.max(self.epoch));
            self.confirmed_at_ms = confirmed_at_ms.filter(|_| self.epoch == epoch);
        }
    }

    /// Takes records that were stored at the cache's own epoch, as far as none are held.
    ///
    /// # Errors
    ///
    /// What is stored cannot be read.
    pub fn restore(&mut self, stored: Vec<StoredRecord>) -> serde_json::Result<()> {
        for StoredRecord { kind, name, text } in stored {
            match kind {
                RecordKind::Tenant if self.tenant.is_none() => {
                    let tenant: Option<TenantRecord> = serde_json::from_str(&text)?;
                    self.tenant =
                        Some(tenant.map(|tenant| TenantRecord { epoch: self.epoch, ..tenant }));
                }
                RecordKind::Agent if !self.agents.contains_key(&name) => {
                    keep(&mut self.agents, name, serde_json::from_str(&text)?);
                }
                RecordKind::Credential if !self.credentials.contains_key(&name) => {
                    keep(&mut self.credentials, name, serde_json::from_str(&text)?);
                }
                RecordKind::Server if !self.servers.contains_key(&name) => {
                    keep(&mut self.servers, name, serde_json::from_str(&text)?);
                }
                RecordKind::Tool if !self.tools.contains_key(&name) => {
                    self.keep_tool(name, serde_json::from_str(&text)?);
                }
                RecordKind::Bans if self.bans.is_none() => {
                    self.bans = Some(Rc::new(serde_json::from_str(&text)?));
                }
                RecordKind::Listing if !self.listings.contains_key(&name) => {
                    self.keep_listing(name, serde_json::from_str(&text)?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// D1 said at `asked_at_ms` or later that the tenant is at `epoch` (0: there is no tenant).
    /// Returns whether what was read with that epoch may be kept.
    pub fn confirm(&mut self, epoch: u64, asked_at_ms: u64) -> bool {
        if epoch < self.epoch {
            return false;
        }
        if epoch > self.epoch {
            self.empty_at(epoch);
        }
        // Not the later of both: a clock that was ahead must not confirm what comes after it.
        self.confirmed_at_ms = Some(asked_at_ms);
        true
    }

    /// Takes the news of a change: from here on nothing from before `push.epoch` is used. It
    /// confirms nothing: there may be a newer epoch still.
    pub fn push(&mut self, push: &EpochPush) {
        if push.epoch <= self.epoch {
            return;
        }
        if push.from != self.epoch || push.keys.contains(&ChangedKey::All) {
            self.empty_at(push.epoch);
            return;
        }
        self.epoch = push.epoch;
        if let Some(Some(tenant)) = &mut self.tenant {
            tenant.epoch = push.epoch;
        }
        for key in &push.keys {
            match key {
                ChangedKey::Tenant => self.tenant = None,
                ChangedKey::Agent(agent) => drop(self.agents.remove(agent)),
                ChangedKey::Credential(key_id) => drop(self.credentials.remove(key_id)),
                ChangedKey::Server(server) => {
                    self.servers.remove(server);
                    self.listings.remove(server);
                    let of_server = |id: &str| id.split_once('/').is_some_and(|(s, _)| s == server);
                    self.tools.retain(|id, _| !of_server(id));
                }
                ChangedKey::Tool(id) => {
                    self.tools.remove(id);
                    let server = id.split_once('/').map_or("", |(server, _)| server);
                    self.listings.remove(server);
                }
                ChangedKey::Bans => self.bans = None,
                // Came to its end above.
                ChangedKey::All => {}
            }
        }
    }

    fn empty_at(&mut self, epoch: u64) {
        *self = Self { epoch, ..Self::default() };
    }
}

fn keep<T>(map: &mut HashMap<String, T>, key: String, value: T) {
    if map.len() >= MAX_CACHED_RECORDS && !map.contains_key(&key) {
        map.clear();
    }
    map.insert(key, value);
}

fn tool_id(command: &GateCommand) -> String {
    format!("{}/{}", command.call.server, command.call.tool)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call;

    const TTL_MS: u64 = 1_000;

    fn command(tool: &str) -> GateCommand {
        let body = format!(
            r#"{{"agent":{{"id":"bot","environment":"e"}},
            "tool_call":{{"tool":"s","action":"{tool}","mutates_state":false,"parameters":{{}}}},
            "context":{{"source_trust":"","contains_sensitive_data":false}}}}"#
        );
        GateCommand {
            tenant: "t".to_owned(),
            lane: 0,
            key_id: "k".to_owned(),
            secret_hash: [0; 32],
            http_request_id: String::new(),
            source_address: None,
            signed: false,
            signature_nonce: None,
            purpose: Purpose::Authorize,
            session: None,
            parameters: Vec::new(),
            call: call::parse(body.as_bytes(), "t").unwrap(),
        }
    }

    fn loaded(epoch: u64, kind: &str) -> Loaded {
        serde_json::from_value(serde_json::json!({
            "tenant": {"status": "active", "epoch": epoch},
            "agent": null, "credential": null, "tool": null, "bans": [],
            "server": {"kind": kind, "trust": "", "status": "active"},
        }))
        .unwrap()
    }

    /// What the cache gives for `command`: `None`, or the server's kind and whether it is complete.
    fn held(cache: &RegistryCache, command: &GateCommand, now_ms: u64) -> Option<(String, bool)> {
        let (records, complete) = cache.records(command, now_ms, TTL_MS)?;
        Some((records.server.map(|server| server.kind).unwrap_or_default(), complete))
    }

    #[test]
    fn records_are_of_one_epoch_which_was_confirmed_in_time() {
        let (x, y) = (command("x"), command("y"));
        let mut cache = RegistryCache::default();
        assert_eq!(held(&cache, &x, 0), None, "nothing was read");
        cache.accept(&x, loaded(5, "old"), 100);
        assert_eq!(held(&cache, &x, 100), Some(("old".to_owned(), true)), "absent records count");
        assert_eq!(held(&cache, &y, 100), Some(("old".to_owned(), false)), "another tool");
        assert_eq!(held(&cache, &x, 1_099), Some(("old".to_owned(), true)));
        assert_eq!(held(&cache, &x, 1_100), None, "the epoch was not confirmed in time");
        assert!(cache.confirm(5, 1_000));
        assert_eq!(held(&cache, &x, 1_100), Some(("old".to_owned(), true)), "now it is");
        assert!(cache.confirm(6, 1_200));
        assert_eq!(held(&cache, &x, 1_200), None, "a newer epoch empties the cache");
        cache.accept(&x, loaded(5, "old"), 1_300);
        assert_eq!(held(&cache, &x, 1_300), None, "what was read at an older epoch is thrown away");
        cache.accept(&x, loaded(6, "new"), 1_250);
        assert_eq!(held(&cache, &x, 1_300), Some(("new".to_owned(), true)));
        assert!(!cache.confirm(5, 9_000), "an older epoch confirms nothing");
        assert_eq!(held(&cache, &x, 9_000), None);
    }

    #[test]
    fn a_full_cache_is_read_anew() {
        let mut cache = RegistryCache::default();
        for at in 0..=MAX_CACHED_RECORDS {
            cache.accept(&command(&format!("tool-{at}")), loaded(1, "s"), 0);
        }
        assert_eq!(cache.tools.len(), 1);
    }

    #[test]
    fn the_schemas_of_tools_stay_within_their_bytes() {
        let mut cache = RegistryCache::default();
        let mut most = 0;
        for at in 0..600 {
            let mut loaded = loaded(1, "s");
            loaded.tool = serde_json::from_value(serde_json::json!({
                "status": "pending", "mutates": 0, "risk": "low", "canary": 0,
                "approval_ttl_s": null, "tainted": "require_approval",
                "input_schema": "x".repeat(64 * 1024),
            }))
            .unwrap();
            cache.accept(&command(&format!("tool-{at}")), loaded, 0);
            assert!(cache.tools.contains_key(&format!("s/tool-{at}")));
            most = most.max(cache.tools.len());
        }
        assert_eq!(most * 64 * 1024, MAX_CACHED_SCHEMA_BYTES);
    }

    #[test]
    fn a_push_drops_what_it_names_and_only_where_nothing_was_missed() {
        use ChangedKey::{Agent, All, Bans, Credential, Server, Tenant, Tool};
        let text = str::to_owned;
        type Expected = Option<(&'static str, bool)>;
        let cases: [(&str, u64, u64, Vec<ChangedKey>, Expected); 14] = [
            ("nothing that is held", 5, 6, vec![Agent(text("a2"))], Some(("k", true))),
            ("the tenant", 5, 6, vec![Tenant], None),
            ("the agent", 5, 6, vec![Agent(text("bot"))], None),
            ("the credential", 5, 6, vec![Credential(text("k"))], None),
            ("the server", 5, 6, vec![Server(text("s"))], Some(("", false))),
            ("another server", 5, 6, vec![Server(text("s2"))], Some(("k", true))),
            ("the tool", 5, 6, vec![Tool(text("s/x"))], Some(("k", false))),
            ("another tool", 5, 6, vec![Tool(text("s/y"))], Some(("k", true))),
            ("the bans", 5, 6, vec![Bans], None),
            ("all", 5, 6, vec![All], None),
            ("a push before it was lost", 6, 7, vec![], None),
            ("one that is known", 4, 5, vec![All], Some(("k", true))),
            ("one from before", 3, 4, vec![All], Some(("k", true))),
            ("several at once", 5, 9, vec![Tool(text("s/y"))], Some(("k", true))),
        ];
        for (name, from, epoch, keys, expected) in cases {
            let x = command("x");
            let mut cache = RegistryCache::default();
            cache.accept(&x, loaded(5, "k"), 100);
            cache.push(&EpochPush { from, epoch, keys });
            let expected = expected.map(|(kind, complete)| (kind.to_owned(), complete));
            assert_eq!(held(&cache, &x, 1_099), expected, "{name}");
            assert_eq!(held(&cache, &x, 1_100), None, "{name}: a push confirms nothing");
            if let Some((records, _)) = cache.records(&x, 100, TTL_MS) {
                assert_eq!(records.tenant.unwrap().epoch, epoch.max(5), "{name}");
            }
            let held_before = held(&cache, &x, 1_099);
            cache.accept(&x, loaded(epoch.max(5) - 1, "slow"), 200);
            assert_eq!(held(&cache, &x, 1_099), held_before, "{name}: a slow load");
        }
    }

    #[test]
    fn a_pushs_json_keeps_its_shape() {
        let text = r#"{"from":1,"epoch":2,"keys":["tenant",{"agent":"a"},{"credential":"k"},{"server":"s"},{"tool":"s/x"},"bans","all"]}"#;
        let push: EpochPush = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&push).unwrap(), text);
    }

    #[test]
    fn bans_hold_until_they_expire_and_what_cannot_be_read_is_no_list() {
        let bans: Bans = serde_json::from_str(
            r#"[{"kind":"agent","subject":"bot","expires_at_ms":50},
            {"kind":"agent","subject":"bot","expires_at_ms":20},
            {"kind":"user","subject":"u","expires_at_ms":null},
            {"kind":"run","subject":"r","expires_at_ms":10},
            {"kind":"source_address","subject":"192.0.2.0/24","expires_at_ms":null},
            {"kind":"source_address","subject":"2001:db8::/32","expires_at_ms":10}]"#,
        )
        .unwrap();
        for (who, address, now_ms, expected) in [
            (("bot", "", ""), "::1", 49, Some(BanKind::Agent)),
            (("bot", "", ""), "::1", 50, None),
            (("u", "bot", "u"), "::1", 0, None),
            (("a", "u", "r"), "::1", 0, Some(BanKind::User)),
            (("a", "", "r"), "::1", 9, Some(BanKind::Run)),
            (("a", "", "r"), "::1", 10, None),
            (("a", "", ""), "192.0.2.9", u64::MAX - 1, Some(BanKind::SourceAddress)),
            (("a", "", ""), "192.0.3.9", 0, None),
            (("a", "", ""), "2001:db8::9", 9, Some(BanKind::SourceAddress)),
            (("a", "", ""), "2001:db8::9", 10, None),
        ] {
            let address = Some(address.parse().unwrap());
            assert_eq!(bans.find(who, address, now_ms), expected, "{who:?} {now_ms}");
        }
        let unplaced = |now_ms| bans.find(("a", "", ""), None, now_ms);
        assert_eq!(unplaced(0), Some(BanKind::SourceAddress), "it may be in any banned network");
        let none: Bans = serde_json::from_str("[]").unwrap();
        assert_eq!(none.find(("a", "", ""), None, 0), None);
        for wrong in [
            r#"[{"kind":"source_address","subject":"x","expires_at_ms":null}]"#.to_owned(),
            r#"[{"kind":"planet","subject":"x","expires_at_ms":null}]"#.to_owned(),
            format!("[{}]", [r#"{"kind":"user","subject":"u"}"#; MAX_BANS + 1].join(",")),
        ] {
            assert!(serde_json::from_str::<Bans>(&wrong).is_err());
        }
    }
}
