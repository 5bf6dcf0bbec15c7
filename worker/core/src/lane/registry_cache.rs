//! A lane's copy of the registry.
//!
//! INVARIANT (one epoch): every record in the cache is as it was in D1 at the cache's epoch. The
//! cache never mixes epochs, so a decision never sees half of a change. Three events change the
//! cache:
//!
//! - A load brings records that were read in one statement with the tenant's epoch. A load of a
//!   newer epoch empties the cache first. A load of an older epoch is discarded, however late it
//!   arrives.
//! - A push says that the tenant went from one epoch to another and which keys changed on the way.
//!   If it starts at the cache's epoch, only the named records are dropped: all others are the same
//!   at both epochs. If it does not (a push was lost or reordered), other records may have changed
//!   too, and the cache is emptied. A push whose epoch is not newer is ignored.
//! - A confirmation of a newer epoch, which names no keys, empties the cache.
//!
//! The epoch never falls: an object that starts anew begins at the one that its storage holds
//! ([`crate::lane::Lane::stored_registry`]). So after a push of an epoch, no older record is used:
//! neither a cached one, nor one from a slow load, nor a stored one.
//!
//! INVARIANT (nothing renews itself): the time of the last confirmation is when D1 was asked, in
//! memory and in storage. Neither a start nor a push changes it, and a time in the future confirms
//! nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use crate::call;
use crate::call::command::{GateCommand, Purpose};
use crate::call::{headers, http_tool};
use crate::gate::warrant;
use crate::registry::{
    AgentRecord, Bans, CallRecords, ChangedKey, CredentialRecord, EpochPush, ListedTool, Loaded,
    LoadedListing, RecordKind, ServerRecord, ServerTools, StoredRecord, TenantRecord,
    ToolRegistration, Warrants,
};

/// Records of one kind that a lane keeps; with more, that kind is dropped and read again. A
/// record is some 300 bytes, so a full cache stays below 16 MB of the isolate's 128.
const MAX_CACHED_RECORDS: usize = 10_000;

/// Bytes of the tools' schemas that a lane was given since it last dropped all tools: each may have
/// 64 KiB.
const MAX_CACHED_SCHEMA_BYTES: usize = 16 * 1024 * 1024;

/// Limits that came with the agents and credentials of a lane since it last dropped those: each record has its own
/// copy, of about 400 bytes.
const MAX_CACHED_LIMITS: usize = 40_000;

/// Servers whose tools a lane keeps all of. A listing of the most tools that there can be is some
/// 200 KB.
const MAX_CACHED_LISTINGS: usize = 32;

/// A lane's copy of the registry.
#[derive(Debug, Default)]
pub struct RegistryCache {
    epoch: u64,
    confirmed_at_ms: Option<u64>,
    /// Here and below. No entry: not cached. `None` inside: cached as not registered.
    tenant: Option<Option<Rc<TenantRecord>>>,
    agents: HashMap<String, Option<Rc<AgentRecord>>>,
    credentials: HashMap<String, Option<Rc<CredentialRecord>>>,
    servers: HashMap<String, Option<Rc<ServerRecord>>>,
    tools: HashMap<String, Option<Rc<ToolRegistration>>>,
    schema_bytes: usize,
    limits: usize,
    /// All tools of a server.
    listings: HashMap<String, Rc<ServerTools>>,
    bans: Option<Rc<Bans>>,
    warrants: Option<Rc<Warrants>>,
}

impl RegistryCache {
    /// The cached records for `command`. `None` if the caller's records are not cached, or if the
    /// epoch was not confirmed within `ttl_ms`: then they must be read from D1 first. The flag says
    /// whether server and tool are included.
    #[must_use]
    pub fn records(
        &self,
        command: &GateCommand,
        now_ms: u64,
        ttl_ms: u64,
    ) -> Option<(CallRecords, bool)> {
        if !self.is_confirmed(now_ms, ttl_ms) {
            return None;
        }
        self.cached(command)
    }

    /// The same if D1 does not answer: the records may be used for as long as the tenant registered
    /// for such a call, and they are marked as not confirmed.
    #[must_use]
    pub fn unconfirmed(
        &self,
        command: &GateCommand,
        now_ms: u64,
        ttl_ms: u64,
    ) -> Option<(CallRecords, bool)> {
        let (mut records, complete) = self.cached(command)?;
        if !self.is_confirmed(now_ms, records.grace_ms(command.call.mutates_state, ttl_ms)) {
            return None;
        }
        records.confirmed = self.is_confirmed(now_ms, ttl_ms);
        Some((records, complete))
    }

    fn is_confirmed(&self, now_ms: u64, within_ms: u64) -> bool {
        let age_ms = self.confirmed_at_ms.and_then(|at_ms| now_ms.checked_sub(at_ms));
        age_ms.is_some_and(|age_ms| age_ms < within_ms)
    }

    fn cached(&self, command: &GateCommand) -> Option<(CallRecords, bool)> {
        let call = &command.call;
        let tenant = self.tenant.clone()?;
        let agent = self.agents.get(&call.agent).cloned()?;
        let credential = match command.located {
            true => {
                warrant::credential(&call.agent, agent.as_deref(), tenant.as_deref()).map(Rc::new)
            }
            false => self.credentials.get(&command.key_id).cloned()?,
        };
        let bans = Rc::clone(self.bans.as_ref()?);
        let warrants = Rc::clone(self.warrants.as_ref()?);
        let server = self.servers.get(&call.server).cloned();
        let tool = self.tools.get(&call.tool_id()).cloned();
        let listing = match command.purpose {
            Purpose::Filter(_) => self.listings.get(&call.server).cloned(),
            _ => Some(Rc::default()),
        };
        let complete = server.is_some() && tool.is_some() && listing.is_some();
        let (server, tool) = (server.flatten(), tool.flatten());
        let listing = listing.unwrap_or_default();
        let confirmed = true;
        let records = CallRecords {
            tenant,
            agent,
            credential,
            server,
            tool,
            bans,
            warrants,
            listing,
            confirmed,
        };
        Some((records, complete))
    }

    /// The command with the tool that an HTTP request calls, by the server's routes. Unchanged if
    /// the server is not cached.
    #[must_use]
    pub fn routed<'a>(&self, command: &'a GateCommand) -> Cow<'a, GateCommand> {
        let Purpose::Route(request) = &command.purpose else { return Cow::Borrowed(command) };
        let Some(server) = self.servers.get(&command.call.server) else {
            return Cow::Borrowed(command);
        };
        let upstream = server.as_ref().and_then(|server| server.upstream.as_ref());
        let routes = upstream.map_or(&[][..], |upstream| &upstream.routes);
        let mut routed = command.clone();
        let registered = upstream.map_or(&[][..], |upstream| &upstream.forwarded_headers);
        headers::retain_forwarded(&mut routed.beside, registered);
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

    /// Whether the command needs all tools of its server, and they are not cached.
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

    /// The newest known epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether a load must also read bans and warrants. They rarely change, so most loads leave them out.
    #[must_use]
    pub fn needs_lists(&self) -> bool {
        self.bans.is_none() || self.warrants.is_none()
    }

    /// Takes D1's answer to the load for `command`. The time is the start of the read, because only
    /// the state at that time is confirmed. Returns whether the answer may be kept.
    pub fn accept(&mut self, command: &GateCommand, loaded: Loaded, asked_at_ms: u64) -> bool {
        let epoch = loaded.tenant.as_ref().map_or(0, |tenant| tenant.epoch);
        if !self.confirm(epoch, asked_at_ms) {
            return false;
        }
        self.tenant = Some(loaded.tenant);
        let limits_of_agent = loaded
            .agent
            .as_ref()
            .map_or(0, |agent| agent.limits.len() + usize::from(agent.request_rate.is_some()));
        let limits_of_credential = loaded.credential.as_ref().map_or(0, |it| it.limits.len());
        self.count_limits(limits_of_agent + limits_of_credential);
        keep(&mut self.agents, command.call.agent.clone(), loaded.agent);
        keep(&mut self.credentials, command.key_id.clone(), loaded.credential);
        keep(&mut self.servers, command.call.server.clone(), loaded.server);
        self.keep_tool(command.call.tool_id(), loaded.tool);
        if let Some(bans) = loaded.bans {
            self.bans = Some(Rc::new(bans));
        }
        if let Some(warrants) = loaded.warrants {
            self.warrants = Some(Rc::new(warrants));
        }
        true
    }

    /// Makes space for the limits of other records.
    fn count_limits(&mut self, limits: usize) {
        self.limits += limits;
        if limits > 0 && self.limits > MAX_CACHED_LIMITS {
            self.agents.clear();
            self.credentials.clear();
            self.limits = limits;
        }
    }

    fn keep_tool(&mut self, id: String, tool: Option<Rc<ToolRegistration>>) {
        let schema = tool.as_ref().and_then(|tool| tool.input_schema.as_ref());
        let bytes = schema.map_or(0, |schema| schema.len());
        self.schema_bytes += bytes;
        if self.schema_bytes > MAX_CACHED_SCHEMA_BYTES {
            self.tools.clear();
            self.schema_bytes = bytes;
        }
        keep(&mut self.tools, id, tool);
    }

    /// Starts at the epoch that the lane's storage has.
    pub fn resume(&mut self, epoch: u64, confirmed_at_ms: Option<u64>) {
        if epoch > self.epoch || self.confirmed_at_ms.is_none() {
            self.empty_at(epoch.max(self.epoch));
            self.confirmed_at_ms = confirmed_at_ms.filter(|_| self.epoch == epoch);
        }
    }

    /// Adds records that were stored at the cache's own epoch, unless they are cached.
    ///
    /// # Errors
    ///
    /// A stored record cannot be read.
    pub fn restore(&mut self, stored: Vec<StoredRecord>) -> serde_json::Result<()> {
        for StoredRecord { kind, name, text } in stored {
            match kind {
                RecordKind::Tenant if self.tenant.is_none() => {
                    let tenant: Option<TenantRecord> = serde_json::from_str(&text)?;
                    let tenant = tenant.map(|tenant| TenantRecord { epoch: self.epoch, ..tenant });
                    self.tenant = Some(tenant.map(Rc::new));
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
                RecordKind::Warrants if self.warrants.is_none() => {
                    self.warrants = Some(Rc::new(serde_json::from_str(&text)?));
                }
                RecordKind::Listing if !self.listings.contains_key(&name) => {
                    self.keep_listing(name, serde_json::from_str(&text)?);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// D1 answered, to a read at `asked_at_ms`, that the tenant is at `epoch` (0: the tenant does
    /// not exist). Returns whether the records that were read with that epoch may be kept.
    pub fn confirm(&mut self, epoch: u64, asked_at_ms: u64) -> bool {
        if epoch < self.epoch {
            return false;
        }
        if epoch > self.epoch {
            self.empty_at(epoch);
        }
        // Not the later of the two: a clock that was ahead must not extend a confirmation.
        self.confirmed_at_ms = Some(asked_at_ms);
        true
    }

    /// Applies a push: from now on no record from before `push.epoch` is used. It is not a
    /// confirmation: there may be a newer epoch.
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
            Rc::make_mut(tenant).epoch = push.epoch;
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
                ChangedKey::Warrants => self.warrants = None,
                // Handled above.
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

#[cfg(test)]
mod tests;
