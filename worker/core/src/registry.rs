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
        let call = &command.call;
        self.confirmed_at_ms.filter(|at| now_ms.saturating_sub(*at) < ttl_ms)?;
        let agent = self.agents.get(&call.agent).cloned()?;
        let credential = self.credentials.get(&command.key_id).cloned()?;
        let server = self.servers.get(&call.server).cloned();
        let tool = self.tools.get(&tool_id(command)).cloned();
        let complete = server.is_some() && tool.is_some();
        let tenant = self.tenant.clone();
        let (server, tool) = (server.flatten(), tool.flatten());
        Some((Records { tenant, agent, credential, server, tool }, complete))
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
            call: call::parse(body.as_bytes(), "t").unwrap(),
        }
    }

    fn loaded(epoch: u64, kind: &str) -> Records {
        let status = "active".to_owned();
        let server =
            ServerRecord { kind: kind.to_owned(), trust: String::new(), status: status.clone() };
        let tenant = Some(TenantRecord { status, epoch });
        Records { tenant, agent: None, credential: None, server: Some(server), tool: None }
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
}
