//! The lane's copy of the registry, with every order of writes, loads and pushes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests only")]

use crate::support::{command, read_call};
use gateward_core::lane::RegistryCache;
use gateward_core::registry::{ChangedKey, EpochPush, Loaded};
use proptest::prelude::*;
use serde_json::json;

const TTL_MS: u64 = 1_000_000;

/// The registry as D1 has it: when each record was changed last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Stored {
    epoch: u64,
    tenant: u64,
    agent: u64,
    credential: u64,
    server: u64,
    tool: u64,
    bans: u64,
    warrants: u64,
}

impl Stored {
    fn change(mut self, key: &ChangedKey) -> Self {
        let epoch = self.epoch;
        match key {
            ChangedKey::Tenant => self.tenant = epoch,
            ChangedKey::Agent(name) if name == "coder" => self.agent = epoch,
            ChangedKey::Credential(name) if name == "k1" => self.credential = epoch,
            ChangedKey::Server(name) if name == "notes" => {
                (self.server, self.tool) = (epoch, epoch);
            }
            ChangedKey::Tool(id) if id == "notes/list" => self.tool = epoch,
            ChangedKey::Bans => self.bans = epoch,
            ChangedKey::Warrants => self.warrants = epoch,
            ChangedKey::All => {
                self = Self { tenant: epoch, agent: epoch, credential: epoch, ..self };
                self = Self { server: epoch, tool: epoch, bans: epoch, ..self };
                self.warrants = epoch;
            }
            _ => {}
        }
        self
    }

    /// What a load reads. Each record has the epoch of its last change.
    fn load(&self, with_lists: bool) -> Loaded {
        let at = |epoch: u64| epoch.to_string();
        let bans = json!([{"kind": "run", "subject": "r", "expires_at_ms": 1_000_000 + self.bans}]);
        let warrants = json!({"roots": [], "revoked": [[format!("{:032x}", self.warrants), null]]});
        serde_json::from_value(json!({
            "tenant": {"status": "active", "epoch": self.epoch, "risk_denials": self.tenant},
            "agent": {
                "lane": 0, "status": "active", "environment": at(self.agent), "risk_tier": "low",
                "groups": [], "allowed_tools": null,
            },
            "credential": {
                "agent": "coder", "secret_sha256": at(self.credential), "scopes": [],
                "max_source_trust": "unknown", "status": "active", "allowed_servers": null,
                "allowed_tools": null, "allowed_networks": null, "signed": false,
                "assigns_runs": false,
            },
            "server": {"kind": "mcp", "trust": "trusted", "status": "active",
                "instructions_sha256": at(self.server)},
            "tool": {"status": "active", "mutates": 0, "risk": "low", "canary": 0,
                "tainted": "require_approval", "input_schema": at(self.tool)},
            "bans": with_lists.then_some(bans),
            "warrants": with_lists.then_some(warrants),
        }))
        .unwrap()
    }
}

#[derive(Debug, Clone)]
enum Event {
    /// An administrator's write; whether its push is sent at all.
    Write(ChangedKey, bool),
    BeginLoad,
    /// One of the loads in progress.
    FinishLoad(prop::sample::Index),
    /// One of the pushes that were sent: in any order, and more than once.
    Push(prop::sample::Index),
    /// The flush reads the epoch.
    Confirm,
}

fn key() -> impl Strategy<Value = ChangedKey> {
    let text = str::to_owned;
    prop::sample::select(vec![
        ChangedKey::Tenant,
        ChangedKey::Agent(text("coder")),
        ChangedKey::Agent(text("other")),
        ChangedKey::Credential(text("k1")),
        ChangedKey::Server(text("notes")),
        ChangedKey::Server(text("note")),
        ChangedKey::Tool(text("notes/list")),
        ChangedKey::Tool(text("notes/other")),
        ChangedKey::Bans,
        ChangedKey::Warrants,
        ChangedKey::All,
    ])
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (key(), prop::bool::weighted(0.8)).prop_map(|(key, sent)| Event::Write(key, sent)),
        3 => Just(Event::BeginLoad),
        4 => any::<prop::sample::Index>().prop_map(Event::FinishLoad),
        4 => any::<prop::sample::Index>().prop_map(Event::Push),
        1 => Just(Event::Confirm),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, ..ProptestConfig::default() })]

    /// Loads begin before writes and finish after them. Pushes are delivered, lost, repeated or
    /// reordered. The cache always returns the whole registry of one epoch, and never of an epoch
    /// before the newest push that it took.
    #[test]
    fn what_a_lane_holds_is_of_one_epoch_and_none_before_the_last_push(
        events in prop::collection::vec(event(), 1..60),
    ) {
        let call = command(&read_call());
        let mut cache = RegistryCache::default();
        let first = Stored { epoch: 1, ..Stored::default() }.change(&ChangedKey::All);
        // By epoch, from 1.
        let mut history = vec![first];
        let mut loads: Vec<Loaded> = Vec::new();
        let mut pushes: Vec<EpochPush> = Vec::new();
        let mut taken = 0;
        for event in events {
            let now = *history.last().unwrap();
            match event {
                Event::Write(key, sent) => {
                    let epoch = now.epoch + 1;
                    history.push(Stored { epoch, ..now }.change(&key));
                    if sent {
                        pushes.push(EpochPush { from: now.epoch, epoch, keys: vec![key] });
                    }
                }
                Event::BeginLoad => loads.push(now.load(cache.needs_lists())),
                Event::FinishLoad(at) => {
                    if !loads.is_empty() {
                        let load = loads.remove(at.index(loads.len()));
                        cache.accept(&call, load, 0);
                    }
                }
                Event::Push(at) => {
                    if !pushes.is_empty() {
                        let push = &pushes[at.index(pushes.len())];
                        cache.push(push);
                        taken = taken.max(push.epoch);
                    }
                }
                Event::Confirm => drop(cache.confirm(now.epoch, 0)),
            }
            let Some((records, complete)) = cache.records(&call, 0, TTL_MS) else { continue };
            let epoch = records.tenant.as_ref().unwrap().epoch;
            prop_assert!(epoch >= taken, "epoch {} after the push of {}", epoch, taken);
            let mut expected = history[epoch as usize - 1].load(true);
            if records.server.is_none() {
                prop_assert!(!complete);
                expected.server = None;
            }
            if records.tool.is_none() {
                prop_assert!(!complete);
                expected.tool = None;
            }
            let held = Loaded {
                tenant: records.tenant,
                agent: records.agent,
                credential: records.credential,
                server: records.server,
                tool: records.tool,
                bans: Some((*records.bans).clone()),
                warrants: Some((*records.warrants).clone()),
            };
            prop_assert_eq!(held, expected);
        }
    }
}
