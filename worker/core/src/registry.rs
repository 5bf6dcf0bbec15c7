//! What administrators registered, as a lane holds it.
//!
//! INVARIANT (one epoch): every record in the cache was read in one D1 statement with the
//! tenant's epoch, and the cache never mixes epochs: a newer one empties it, an older one is
//! thrown away. So a decision never sees half of a change.

use std::collections::HashMap;

use serde::Deserialize;

use crate::bundle::Risk;
use crate::command::GateCommand;
use crate::trust::SourceTrust;

/// Records of one kind that a lane keeps; beyond it that kind is dropped and read again. A
/// record is some 300 bytes, so a full cache stays below 16 MB of the isolate's 128.
const MAX_CACHED_RECORDS: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TenantRecord {
    pub status: String,
    pub epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentStatus {
    Active,
    Frozen,
    Revoked,
    Quarantined,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AgentRecord {
    pub lane: u16,
    pub status: AgentStatus,
    pub environment: String,
    pub risk_tier: String,
    pub groups: Vec<String>,
    pub rate_capacity: Option<u32>,
    pub rate_refill_per_s: Option<f64>,
    pub quota_per_day: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CredentialRecord {
    /// `None` for an administrator's.
    pub agent: Option<String>,
    pub secret_sha256: String,
    pub scopes: Vec<String>,
    pub max_source_trust: SourceTrust,
    pub status: String,
    pub expires_at_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ServerRecord {
    pub kind: String,
    pub trust: String,
    pub status: String,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolRegistration {
    pub status: String,
    /// 0 or 1, as SQLite has it.
    pub mutates: u8,
    pub risk: Risk,
    pub canary: u8,
}

/// What one call needs, read at one epoch. Absent means: not registered.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Records {
    pub tenant: Option<TenantRecord>,
    pub agent: Option<AgentRecord>,
    pub credential: Option<CredentialRecord>,
    pub server: Option<ServerRecord>,
    pub tool: Option<ToolRegistration>,
}

/// A lane's copy of the registry.
#[derive(Debug, Default)]
pub struct RegistryCache {
    epoch: u64,
    confirmed_at_ms: Option<u64>,
    tenant: Option<TenantRecord>,
    agents: HashMap<String, Option<AgentRecord>>,
    credentials: HashMap<String, Option<CredentialRecord>>,
    servers: HashMap<String, Option<ServerRecord>>,
    tools: HashMap<String, Option<ToolRegistration>>,
}

impl RegistryCache {
    /// The records for `command`; `None` when one was never read, or when the epoch was not
    /// confirmed within `ttl_ms`: then they must be read from D1 first.
    #[must_use]
    pub fn records(&self, command: &GateCommand, now_ms: u64, ttl_ms: u64) -> Option<Records> {
        let call = &command.call;
        self.confirmed_at_ms.filter(|at| now_ms.saturating_sub(*at) < ttl_ms)?;
        Some(Records {
            tenant: self.tenant.clone(),
            agent: self.agents.get(&call.agent).cloned()?,
            credential: self.credentials.get(&command.key_id).cloned()?,
            server: self.servers.get(&call.server).cloned()?,
            tool: self.tools.get(&tool_id(command)).cloned()?,
        })
    }

    /// Takes what D1 answered to the load for `command`; the time is when the read was begun,
    /// since only what was true then is confirmed.
    pub fn accept(&mut self, command: &GateCommand, loaded: Records, asked_at_ms: u64) {
        if !self.confirm(loaded.tenant.as_ref().map_or(0, |tenant| tenant.epoch), asked_at_ms) {
            return;
        }
        self.tenant = loaded.tenant;
        keep(&mut self.agents, command.call.agent.clone(), loaded.agent);
        keep(&mut self.credentials, command.key_id.clone(), loaded.credential);
        keep(&mut self.servers, command.call.server.clone(), loaded.server);
        keep(&mut self.tools, tool_id(command), loaded.tool);
    }

    /// D1 said at `asked_at_ms` or later that the tenant is at `epoch` (0: there is no tenant).
    /// Returns whether what was read with that epoch may be kept.
    pub fn confirm(&mut self, epoch: u64, asked_at_ms: u64) -> bool {
        if epoch < self.epoch {
            return false;
        }
        if epoch > self.epoch {
            *self = Self { epoch, ..Self::default() };
        }
        self.confirmed_at_ms = self.confirmed_at_ms.max(Some(asked_at_ms));
        true
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
