//! The registry's records as a lane reads them, and the push of a change. Their cache and storage
//! are in [`crate::lane`].

use std::collections::HashMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::field::{Environment, flag};
use crate::glob::Glob;
use crate::limit::{Amount, Limit, RequestRate};
use crate::network::Network;
use crate::policy::bundle::Risk;
use crate::policy::risk::RiskTier;
use crate::provenance::{ArgumentRoles, Destinations, Reach, ResultTrust};
use crate::registry::upstream::Upstream;
use crate::scope::Scope;
use crate::shield::Modes;
use crate::taint::DEFAULT_TAINT_S;
use crate::trust::SourceTrust;
use crate::warrant::key::PublicKey;

use super::bans::Bans;
use super::settings::Settings;
use super::status::{
    AgentStatus, CredentialStatus, EACH, ServerKind, ServerStatus, ServerTrust, SubjectKind,
    TaintRule, TenantStatus, ToolStatus,
};
use super::warrants::Warrants;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TenantRecord {
    pub status: TenantStatus,
    pub epoch: u64,
    #[serde(flatten)]
    pub settings: Settings,
    /// The number of lanes among which the two bounds below are divided. `None` in the record that is
    /// read to show an agent: it has only the status, the epoch and the settings.
    pub lanes: Option<u16>,
    pub rows_per_day: Option<u32>,
    pub bytes_per_day: Option<u32>,
    /// Destinations that are the tenant's own. A lane may have stored the record before this field
    /// existed; no tenant had any then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destinations: Option<Rc<Destinations>>,
    /// Limits that the lanes share. As for `destinations`, a stored record may lack them.
    #[serde(default, skip_serializing)]
    pub shared_limits: Rc<[SharedLimit]>,
}

/// A limit whose subject's calls come through several lanes.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SharedLimit {
    pub subject_kind: SubjectKind,
    /// A name, a glob of tools or servers, or `*`: each one on its own.
    pub subject: String,
    pub limit: Rc<Limit>,
}

impl SharedLimit {
    /// Whether the limit counts a subject of its kind with this name.
    #[must_use]
    pub fn counts(&self, name: &str) -> bool {
        match self.subject_kind {
            SubjectKind::Tool | SubjectKind::Server => {
                self.subject.parse::<Glob>().is_ok_and(|glob| glob.matches(name))
            }
            _ => self.subject == EACH || self.subject == name,
        }
    }
}

/// The grace period of reads if the tenant sets none: most of D1's incidents are shorter.
pub const DEFAULT_GRACE_READ_S: u32 = 15 * 60;

/// The longest grace period: as long as the journal has space at full rate.
pub const MAX_GRACE_S: u32 = 60 * 60;

impl TenantRecord {
    #[must_use]
    pub fn taint_period_ms(&self) -> u64 {
        u64::from(self.settings.taint_s.unwrap_or(DEFAULT_TAINT_S)) * 1_000
    }
}

/// A list that is `None` allows everything, an empty one nothing. A record without the member is
/// unreadable: absent is not `None`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AgentRecord {
    pub lane: u16,
    pub status: AgentStatus,
    pub environment: Environment,
    /// As registered; the lane may raise it.
    pub risk_tier: RiskTier,
    /// Sorted.
    pub groups: Vec<String>,
    /// Compared with `server/tool`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_tools: Option<Vec<Glob>>,
    /// The agent's own key, to which warrants can be delegated. A lane may have stored the record before this field and
    /// the next one existed. It does not use such a record: [`crate::lane`] compares the shape.
    #[serde(default)]
    pub public_key: Option<PublicKey>,
    /// Whether each of its calls needs a warrant.
    #[serde(default, with = "flag")]
    pub warrant_required: bool,
    /// Limits of this agent's calls, and of each agent's. A lane may have stored the record before this field existed;
    /// there were no limits then.
    #[serde(default)]
    pub limits: Vec<Rc<Limit>>,
    /// The limit of its requests: its own, or else that of each agent. As for `public_key`, a stored record that lacks
    /// it is not used.
    #[serde(default)]
    pub request_rate: Option<Rc<RequestRate>>,
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
    pub status: CredentialStatus,
    pub expires_at_ms: Option<u64>,
    /// Compared with a server's name.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_servers: Option<Vec<Glob>>,
    /// Compared with `server/tool`.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_tools: Option<Vec<Glob>>,
    /// The networks that must contain the connecting address.
    #[serde(deserialize_with = "Option::deserialize")]
    pub allowed_networks: Option<Vec<Network>>,
    /// Whether requests must be signed.
    pub signed: bool,
    /// Whether it belongs to a harness: the program that drives agents and assigns runs. Only then
    /// run and user are trusted.
    pub assigns_runs: bool,
    /// As in [`AgentRecord`].
    #[serde(default)]
    pub limits: Vec<Rc<Limit>>,
    /// The first credential of those that were rotated into this one. They share their limits.
    #[serde(default)]
    pub first_key_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerRecord {
    pub kind: ServerKind,
    pub trust: ServerTrust,
    pub status: ServerStatus,
    /// `None` if Gateward does not forward to it.
    pub upstream: Option<Rc<Upstream>>,
    /// SHA-256 of the instructions that were pinned at registration, in lower-case hex.
    pub instructions_sha256: Option<String>,
    /// The shield's mode of each category of findings, unless the tool has one. As for [`AgentRecord::public_key`], a
    /// stored record that lacks this or the next field is not used.
    #[serde(default)]
    pub shield: Option<Modes>,
    /// Whether the shield also reads what the server returns.
    #[serde(default, with = "flag")]
    pub inspects_results: bool,
}

impl ServerRecord {
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        self.trust != ServerTrust::Trusted
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolRegistration {
    pub status: ToolStatus,
    #[serde(with = "flag")]
    pub mutates: bool,
    /// A lane may have stored the record before this field existed. No tool was marked then, and
    /// marking a tool deletes its stored record.
    #[serde(default, with = "flag")]
    pub egress: bool,
    pub risk: Risk,
    #[serde(with = "flag")]
    pub canary: bool,
    /// What a tainted call of it needs.
    pub tainted: TaintRule,
    /// How long an approval of a call of it is open, in seconds.
    pub approval_ttl_s: Option<u32>,
    /// The text of the arguments' JSON Schema. It is compiled when a call needs it.
    pub input_schema: Option<Rc<str>>,
    /// What its arguments are for. `None`: every argument is a sink. As for `egress`, a stored record
    /// may lack this and the two fields below; their defaults are the strictest values.
    #[serde(default)]
    pub argument_roles: Option<Rc<ArgumentRoles>>,
    /// Whom its calls reach.
    #[serde(default)]
    pub reach: Reach,
    /// Which parts of its results are trusted. `None`: as the server is.
    #[serde(default)]
    pub result_trust: Option<Rc<ResultTrust>>,
    /// What a call of it takes of a budget. `None`: 1.
    #[serde(default)]
    pub cost: Option<Amount>,
    /// Whether each call of it needs a warrant. As for [`AgentRecord::public_key`], a stored record that lacks this or
    /// the next field is not used.
    #[serde(default, with = "flag")]
    pub warrant_required: bool,
    /// The least clearance that a warrant must have for it.
    #[serde(default)]
    pub min_clearance: Option<u8>,
    /// The shield's mode of each category of findings. As for `warrant_required`, a stored record that lacks this is
    /// not used.
    #[serde(default)]
    pub shield: Option<Modes>,
}

impl ToolRegistration {
    /// Whether its calls are writes, whatever the caller states: they change something or send text
    /// out.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.mutates || self.egress
    }
}

/// A tool in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTool {
    pub tool: String,
    pub status: ToolStatus,
    #[serde(with = "flag")]
    pub mutates: bool,
    /// As in [`ToolRegistration`].
    #[serde(default, with = "flag")]
    pub egress: bool,
    #[serde(with = "flag")]
    pub canary: bool,
    /// SHA-256 of its definition, in lower-case hex.
    pub definition_sha256: Option<String>,
}

/// A server's tools by name.
pub type ServerTools = HashMap<String, ListedTool>;

/// The records that one call needs, as of one epoch. `None`: not registered.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRecords {
    pub tenant: Option<Rc<TenantRecord>>,
    pub agent: Option<Rc<AgentRecord>>,
    pub credential: Option<Rc<CredentialRecord>>,
    pub server: Option<Rc<ServerRecord>>,
    pub tool: Option<Rc<ToolRegistration>>,
    pub bans: Rc<Bans>,
    pub warrants: Rc<Warrants>,
    /// All tools of the server; empty unless a listing is filtered.
    pub listing: Rc<ServerTools>,
    /// Whether the epoch was confirmed within `REGISTRY_TTL_MS`. If not, the decision is marked as
    /// degraded.
    pub confirmed: bool,
}

impl CallRecords {
    /// Whether text of strangers may reach the agent: the server is untrusted, or a part of the tool's results.
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        let trust = self.tool.as_ref().and_then(|tool| tool.result_trust.as_deref());
        self.server.as_deref().is_some_and(ServerRecord::is_untrusted)
            || trust.is_some_and(ResultTrust::has_untrusted)
    }

    /// Whether the caller is a harness. Only a harness's claims about users and runs count.
    #[must_use]
    pub fn is_harness(&self) -> bool {
        self.credential.as_ref().is_some_and(|credential| credential.assigns_runs)
    }

    /// How long the registry can be used for this call after its last confirmation, in
    /// milliseconds: the tenant's grace period for reads, writes, or tools of high or critical
    /// risk, and at least `ttl_ms`.
    #[must_use]
    pub fn grace_ms(&self, mutates_state: bool, ttl_ms: u64) -> u64 {
        let settings = self.tenant.as_ref().map(|tenant| &tenant.settings);
        let (risk, writes) = match &self.tool {
            Some(tool) => (tool.risk, tool.writes() || mutates_state),
            None => (Risk::Low, mutates_state),
        };
        let grace_s = if risk >= Risk::High {
            settings.and_then(|settings| settings.grace_high_risk_s)
        } else if writes {
            settings.and_then(|settings| settings.grace_write_s)
        } else {
            settings.and_then(|settings| settings.grace_read_s).or(Some(DEFAULT_GRACE_READ_S))
        };
        ttl_ms.max(u64::from(grace_s.unwrap_or_default()) * 1_000)
    }
}

/// What D1 answered to a load, read in one statement.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Loaded {
    pub tenant: Option<Rc<TenantRecord>>,
    pub agent: Option<Rc<AgentRecord>>,
    pub credential: Option<Rc<CredentialRecord>>,
    pub server: Option<Rc<ServerRecord>>,
    pub tool: Option<Rc<ToolRegistration>>,
    /// `None` if the tenant's lists were not requested.
    pub bans: Option<Bans>,
    pub warrants: Option<Warrants>,
}

/// All tools of a server, read in one statement with the tenant's epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedListing {
    pub epoch: u64,
    pub tools: Vec<ListedTool>,
}

/// Lanes of a tenant that did not confirm an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingPushes {
    pub tenant: String,
    pub lanes: Vec<u16>,
    pub epoch: u64,
}

/// A change of the registry, as it is sent to every lane of the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochPush {
    pub from: u64,
    pub epoch: u64,
    /// Every record that differs between `from` and `epoch`. It must be complete: a lane keeps
    /// records that are not named.
    pub keys: Vec<ChangedKey>,
}

impl EpochPush {
    /// A push that names no keys: a lane drops every record from before `epoch`.
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
    /// Roots and revocations of warrants.
    Warrants,
    All,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(registered: &str) -> ToolRegistration {
        let fixed = r#""status":"active","canary":0,"tainted":"allow","approval_ttl_s":null,"input_schema":null"#;
        serde_json::from_str(&format!("{{{fixed},{registered}}}")).unwrap()
    }

    #[test]
    fn a_record_that_was_stored_before_a_field_existed_is_read() {
        let old = tool(r#""mutates":0,"risk":"low""#);
        assert!(!old.writes());
        assert_eq!((old.argument_roles, old.reach, old.result_trust), (None, Reach::Outside, None));
        assert_eq!((old.warrant_required, old.min_clearance, old.shield), (false, None, None));
        let server = r#"{"kind":"mcp","trust":"trusted","status":"active","upstream":null,"instructions_sha256":null}"#;
        let server: ServerRecord = serde_json::from_str(server).unwrap();
        assert_eq!((server.shield, server.inspects_results), (None, false));
        let agent = r#"{"lane":0,"status":"active","environment":"e","risk_tier":"low","groups":[],"allowed_tools":null}"#;
        let agent: AgentRecord = serde_json::from_str(agent).unwrap();
        assert_eq!((agent.public_key, agent.warrant_required), (None, false));
        assert_eq!(agent.request_rate, None);
        let tenant: TenantRecord =
            serde_json::from_str(r#"{"status":"active","epoch":1}"#).unwrap();
        assert_eq!((tenant.destinations, tenant.settings.shield), (None, None));
        let listed =
            r#"{"tool":"t","status":"active","mutates":0,"canary":0,"definition_sha256":null}"#;
        assert!(!serde_json::from_str::<ListedTool>(listed).unwrap().egress);
    }

    #[test]
    fn a_record_with_an_unknown_value_is_unreadable() {
        let server = |kind: &str, trust: &str, status: &str| {
            let record = json!({"kind": kind, "trust": trust, "status": status});
            serde_json::from_value::<ServerRecord>(record).is_ok()
        };
        for (kind, trust, status, expected) in [
            ("http", "untrusted", "pending", true),
            ("ftp", "trusted", "active", false),
            ("http", "verified", "active", false),
            ("http", "trusted", "retired", false),
            ("http", "trusted", "", false),
        ] {
            assert_eq!(server(kind, trust, status), expected, "{kind} {trust} {status}");
        }
        let tool = |mutates: &str| {
            let text =
                r#"{"tool":"t","status":"active","mutates":M,"canary":0,"definition_sha256":null}"#;
            serde_json::from_str::<ListedTool>(&text.replace('M', mutates)).is_ok()
        };
        assert!(tool("0") && tool("1"));
        assert!(!tool("2") && !tool("null") && !tool(r#""1""#));
    }

    #[test]
    fn a_pushs_json_keeps_its_shape() {
        let text = r#"{"from":1,"epoch":2,"keys":["tenant",{"agent":"a"},{"credential":"k"},{"server":"s"},{"tool":"s/x"},"bans","warrants","all"]}"#;
        let push: EpochPush = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&push).unwrap(), text);
    }
}
