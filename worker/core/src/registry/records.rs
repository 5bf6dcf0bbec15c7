//! What administrators registered, as a lane reads it: the records, the news of a change, and which
//! of the records a call needs. How a lane keeps them is in [`cache`](RegistryCache), how it stores them
//! in [`crate::lane`].

use std::collections::HashMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::call::command::GateCommand;
use crate::glob::Glob;
use crate::network::Network;
use crate::policy::bundle::Risk;
use crate::policy::risk::RiskTier;
use crate::registry::upstream::Upstream;
use crate::scope::Scope;
use crate::taint::DEFAULT_TAINT_S;
use crate::trust::SourceTrust;

use super::bans::Bans;
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// 0 or 1. A lane may still have stored the record as it was before there was egress; no tool was
    /// marked then, and marking one makes the stored record go.
    #[serde(default)]
    pub egress: u8,
    pub risk: Risk,
    pub canary: u8,
    /// What a tainted call of it needs.
    pub tainted: TaintRule,
    /// How long an approval of a call of it is open, in seconds.
    pub approval_ttl_s: Option<u32>,
    /// What its arguments must be: the text of a JSON Schema. It is compiled when a call needs it.
    pub input_schema: Option<Rc<str>>,
}

impl ToolRegistration {
    /// Whether its calls are writes, whatever their callers say: they change something or send text
    /// out.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.mutates != 0 || self.egress != 0
    }
}

/// A tool as far as a listing needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListedTool {
    pub tool: String,
    pub status: String,
    /// 0 or 1, as SQLite has it.
    pub mutates: u8,
    /// As in [`ToolRegistration`].
    #[serde(default)]
    pub egress: u8,
    pub canary: u8,
    /// Of its definition as the server listed it, in lower-case hex.
    pub definition_sha256: Option<String>,
}

/// A server's tools by name.
pub type Listing = HashMap<String, ListedTool>;

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
        let (risk, writes) = match &self.tool {
            Some(tool) => (tool.risk, tool.writes() || command.call.mutates_state),
            None => (Risk::Low, command.call.mutates_state),
        };
        let grace_s = if risk >= Risk::High {
            tenant.and_then(|tenant| tenant.grace_high_risk_s)
        } else if writes {
            tenant.and_then(|tenant| tenant.grace_write_s)
        } else {
            tenant.and_then(|tenant| tenant.grace_read_s).or(Some(DEFAULT_GRACE_READ_S))
        };
        ttl_ms.max(u64::from(grace_s.unwrap_or_default()) * 1_000)
    }
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

pub(super) fn tool_id(command: &GateCommand) -> String {
    format!("{}/{}", command.call.server, command.call.tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(registered: &str) -> ToolRegistration {
        let fixed = r#""status":"active","canary":0,"tainted":"allow","approval_ttl_s":null,"input_schema":null"#;
        serde_json::from_str(&format!("{{{fixed},{registered}}}")).unwrap()
    }

    #[test]
    fn a_tool_that_was_stored_before_there_was_egress_is_read() {
        assert!(!tool(r#""mutates":0,"risk":"low""#).writes());
        let listed =
            r#"{"tool":"t","status":"active","mutates":0,"canary":0,"definition_sha256":null}"#;
        assert_eq!(serde_json::from_str::<ListedTool>(listed).unwrap().egress, 0);
    }

    #[test]
    fn a_pushs_json_keeps_its_shape() {
        let text = r#"{"from":1,"epoch":2,"keys":["tenant",{"agent":"a"},{"credential":"k"},{"server":"s"},{"tool":"s/x"},"bans","all"]}"#;
        let push: EpochPush = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&push).unwrap(), text);
    }
}
