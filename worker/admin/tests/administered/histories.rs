//! Random histories of requests: the registry is as the model says, and lanes that get the pushes hold what D1 has.

use std::collections::{BTreeMap, BTreeSet};

use gateward_admin::AgentInLane;
use gateward_core::call::command::GateCommand;
use gateward_core::gate::LaneAction;
use gateward_core::lane::{Lane, LaneSql, RegistryCache, stored};
use gateward_core::registry::{CredentialRecord, EpochPush, Loaded, LoadedTexts};
use gateward_core::sql;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::Value as Json;

use super::requests::{Step, dated, one_of_each, step};
use super::{AGENTS, DAY_S, SERVERS, TOOLS};
use crate::support::model::Model;
use crate::support::registry::{Answered, Ask, Effect, Registry, get};
use crate::support::{START_MS, Storage, TENANT, command, read_call};

/// How long a credential stays after it has ended.
const KEPT_S: u64 = 90 * DAY_S;

/// Which requests may raise a flag, and which may lower it. A manifest in the body counts too.
const FLAGS: [(&str, &str, &[&str], &[&str]); 9] = [
    ("agent", "frozen", &["freeze"], &["unfreeze"]),
    ("agent", "quarantined", &["quarantine"], &["restore"]),
    ("agent", "revoked", &["revoke"], &[]),
    ("server", "approved", &["approve"], &[]),
    ("server", "disabled", &["disable"], &["restore"]),
    ("server", "quarantined", &["quarantine", "manifest"], &["restore"]),
    ("tool", "approved", &["approve"], &["manifest"]),
    ("tool", "disabled", &["disable"], &["restore"]),
    ("tool", "quarantined", &["quarantine"], &["restore"]),
];

type Lists = BTreeMap<String, Vec<Json>>;

/// Only an action's own opposite undoes it, and no record is approved when it is created.
fn check_honest(ask: &Ask, before: &Lists, after: &Lists) {
    let by = match ask.body.get("manifest") {
        Some(_) => "manifest",
        None => ask.path.rsplit('/').next().unwrap(),
    };
    for (path, rows) in after {
        let kind = path.rsplit('/').next().unwrap().trim_end_matches('s');
        for (_, flag, raised, lowered) in FLAGS.iter().filter(|flag| flag.0 == kind) {
            for is in rows {
                let mut known = before.get(path).into_iter().flatten();
                let was = known.find(|was| was[kind] == is[kind]);
                let allowed = match (was.is_some_and(|was| was[flag] == true), is[flag] == true) {
                    (false, true) => raised.contains(&by),
                    (true, false) => lowered.contains(&by),
                    _ => true,
                };
                assert!(allowed, "{ask:?} changed `{flag}` of {is}");
            }
        }
    }
}

/// Runs a history and compares it with the model: the answers, the stored records, what the API shows, and what lanes
/// read.
fn check_rules(steps: Vec<Step>) -> TestCaseResult {
    let (registry, mut model) = (Registry::new(), Model::new());
    let mut lists = model.lists(START_MS);
    for (wait_s, ask) in one_of_each().chain(steps) {
        registry.wait(wait_s);
        let now_ms = registry.now_ms.get();
        let ask = dated(ask, now_ms);
        let path = registry.resolve(&ask);
        let commits = registry.commits.get();
        let answered = registry.ask(&ask).map_err(|problem| problem.code);
        let body = answered.as_ref().map_or(&Json::Null, |answered| &answered.body);
        let expected = model.ask(&ask, &path, now_ms, body);
        let effect = answered.as_ref().map(|answered| answered.effect);
        prop_assert_eq!(effect, expected.as_ref().map(|(effect, _)| *effect), "{:?}", ask);
        prop_assert_eq!(registry.epoch(), model.epoch, "{:?}", ask);
        let changed = answered.as_ref().is_ok_and(Answered::changed);
        prop_assert_eq!(registry.commits.get() - commits, u32::from(changed), "{:?}", ask);

        // From now on, reads return what the answer has, and its revision.
        if let (Ok(answered), Ok((effect, view))) = (&answered, &expected) {
            let mut fields = body.as_object().unwrap().clone();
            let (token, signing_key) = (fields.remove("token"), fields.remove("signing_key"));
            fields.remove("skipped_tools");
            fields.remove("unsatisfiable_schemas");
            fields.remove("unsatisfiable");
            fields.remove("instructions");
            let signs = signing_key.is_some_and(|key| key.is_string());
            prop_assert_eq!(signs, token.is_some() && fields["signed"] == true, "{:?}", ask);
            prop_assert_eq!(&Json::Object(fields), view, "{:?}", ask);
            let status = if *effect == Effect::Created { 201 } else { 200 };
            prop_assert_eq!(answered.status, status, "{:?}", ask);
            let revision = view["revision"].as_u64().filter(|_| ask.method != "DELETE");
            prop_assert_eq!(answered.revision, revision, "{:?}", ask);
            // Restoring and untainting also need the lane.
            let action = path.strip_prefix("/v1/agents/").and_then(|rest| rest.split_once('/'));
            let action = match action.map(|(_, action)| action) {
                Some("restore") => Some(LaneAction::Restore),
                Some("untaint") => Some(LaneAction::Untaint),
                _ => None,
            };
            let told_lane = action.map(|action| {
                let agent = body["agent"].as_str().unwrap().to_owned();
                (action, AgentInLane { agent, lane: 0 }, model.epoch)
            });
            prop_assert_eq!(&answered.told_lane, &told_lane, "{:?}", ask);
        }
        if !changed {
            continue;
        }

        let expected = model.lists(now_ms);
        for (path, rows) in &expected {
            prop_assert_eq!(&registry.list(path), rows, "{:?}: {}", ask, path);
        }
        let body = |path: &str| registry.ask(&get(path)).unwrap().body;
        prop_assert_eq!(body("/v1/settings"), model.limits(), "{:?}", ask);
        prop_assert_eq!(body("/v1/tenants/demo"), model.tenant(), "{:?}", ask);
        check_honest(&ask, &lists, &expected);
        lists = expected;

        // Lanes see the same: each agent, credential, server and tool at least once.
        let mut key_ids = registry.ids(TENANT, "credentials");
        key_ids.push("none".to_owned());
        for at in 0..key_ids.len().max(4) {
            let (agent, key_id) = (AGENTS[at % 2], &key_ids[at % key_ids.len()]);
            let (server, tool) = (SERVERS[at / 2 % 2], TOOLS[at % 2]);
            let loaded = registry.load(agent, key_id, server, tool);
            prop_assert_eq!(loaded, model.load(agent, key_id, (server, tool)), "{:?}", ask);
        }
    }
    // Every epoch is one change, and has its event.
    let events = registry.list("/v1/audit-events").into_iter();
    let events: BTreeSet<String> = events.map(|event| event["event_id"].to_string()).collect();
    prop_assert_eq!(
        events,
        (2..=model.epoch).map(|epoch| format!("\"registry.{epoch}\"")).collect()
    );
    Ok(())
}

/// The lane holds for these calls what D1 has.
fn check_held(
    cache: &RegistryCache,
    calls: &[GateCommand],
    loads: &[Loaded],
    now_ms: u64,
    ask: &Ask,
) -> TestCaseResult {
    for (call, now) in calls.iter().zip(loads) {
        let Some((held, complete)) = cache.unconfirmed(call, now_ms, u64::MAX) else { continue };
        prop_assert_eq!(&held.tenant, &now.tenant, "{:?}", ask);
        prop_assert_eq!(&held.agent, &now.agent, "{:?}", ask);
        // A credential that expired long ago was deleted, which means the same.
        let old = |held: &CredentialRecord| {
            held.expires_at_ms.is_some_and(|at| at < now_ms - KEPT_S * 1_000)
        };
        if now.credential.is_some() || !held.credential.as_deref().is_some_and(old) {
            prop_assert_eq!(&held.credential, &now.credential, "{:?}", ask);
        }
        if complete || held.server.is_some() {
            prop_assert_eq!(&held.server, &now.server, "{:?}", ask);
        }
        if complete || held.tool.is_some() {
            prop_assert_eq!(&held.tool, &now.tool, "{:?}", ask);
        }
        prop_assert_eq!(Some(&*held.bans), now.bans.as_ref(), "{:?}", ask);
        prop_assert_eq!(Some(&*held.warrants), now.warrants.as_ref(), "{:?}", ask);
    }
    Ok(())
}

/// Runs a history with a lane that holds all records, in memory and in storage, and that misses some of the pushes.
fn check_pushes(steps: Vec<(Step, bool)>) -> TestCaseResult {
    let registry = Registry::new();
    let mut copies = Copies::new();
    let there = one_of_each().map(|step| (step, false));
    for ((wait_s, ask), missed) in there.chain(steps) {
        if wait_s > 0 {
            registry.wait(wait_s);
            // Bans and revocations that expire are not read again, because no change of the registry made them expire.
            copies = Copies::new();
        }
        let now_ms = registry.now_ms.get();
        let ask = dated(ask, now_ms);
        let before = calls(&registry);
        for call in &before {
            if !copies.cache.records(call, now_ms, 1).is_some_and(|(_, complete)| complete) {
                copies.accept(call, load(&registry, call), now_ms);
            }
        }
        let nothing = load(&registry, &before[0]);
        let Ok(Answered { push: Some(push), .. }) = registry.ask(&ask) else { continue };
        if missed {
            continue;
        }
        let calls = calls(&registry);
        // The lane may have been asked about a credential before the credential existed.
        if calls.len() > before.len() {
            copies.accept(calls.last().unwrap(), nothing, now_ms);
        }
        copies.push(&push);
        // Twice. The second time, the records that all calls share are read again, so that they hide nothing.
        let texts: Vec<LoadedTexts> = calls.iter().map(|call| load(&registry, call)).collect();
        let loads: Vec<Loaded> = texts.iter().map(|texts| texts.parse().unwrap()).collect();
        for _ in 0..2 {
            check_held(&copies.cache, &calls, &loads, now_ms, &ask)?;
            let restarted = copies.restarted(&calls);
            prop_assert_eq!(restarted.epoch(), copies.cache.epoch());
            check_held(&restarted, &calls, &loads, now_ms, &ask)?;
            copies.accept(&calls[0], texts[0].clone(), now_ms);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 120, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_administrators_ask_the_registry_is_as_the_rules_say(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        check_rules(steps)?;
    }

    #[test]
    fn a_push_names_everything_that_its_change_made_different(
        steps in prop::collection::vec((step(), prop::bool::weighted(0.1)), 1..40),
    ) {
        check_pushes(steps)?;
    }
}

/// First a call about things that do not exist. Then one call for each thing; otherwise the calls
/// are alike. The newest credential comes last.
fn calls(registry: &Registry) -> Vec<GateCommand> {
    let none = "none";
    let any = command(&read_call());
    let call = |agent: &str, key_id: &str, server: &str, tool: &str| {
        let mut command = any.clone();
        command.key_id = key_id.to_owned();
        command.call.agent = agent.to_owned();
        command.call.server = server.to_owned();
        command.call.tool = tool.to_owned();
        command
    };
    let mut calls = vec![call(none, none, none, none)];
    calls.extend(AGENTS.iter().map(|agent| call(agent, none, none, none)));
    for server in SERVERS {
        calls.push(call(none, none, server, none));
        calls.extend(TOOLS.iter().map(|tool| call(none, none, server, tool)));
    }
    let key_ids = registry.ids(TENANT, "credentials");
    calls.extend(key_ids.iter().map(|key_id| call(none, key_id, none, none)));
    calls
}

fn load(registry: &Registry, command: &GateCommand) -> LoadedTexts {
    let call = &command.call;
    registry.load_texts(&call.agent, &command.key_id, &call.server, &call.tool)
}

/// A lane's memory and its storage, which must have the same records.
struct Copies {
    cache: RegistryCache,
    storage: Storage,
}

impl Copies {
    fn new() -> Self {
        let storage = Storage::new();
        for statement in sql::lane::SCHEMA {
            storage.exec(statement, &[]).unwrap();
        }
        Self { cache: RegistryCache::default(), storage }
    }

    fn accept(&mut self, call: &GateCommand, texts: LoadedTexts, now_ms: u64) {
        let loaded = texts.parse().unwrap();
        let epoch = loaded.tenant.as_ref().map_or(0, |tenant| tenant.epoch);
        if self.cache.accept(call, loaded, now_ms) {
            let records = stored(call, texts);
            Lane::keep_records(&self.storage, epoch, now_ms, &records).unwrap();
        }
    }

    fn push(&mut self, push: &EpochPush) {
        self.cache.push(push);
        Lane::take_push(&self.storage, push).unwrap();
    }

    /// The memory of a restarted object that has read everything that is stored for these calls.
    fn restarted(&self, calls: &[GateCommand]) -> RegistryCache {
        let mut cache = RegistryCache::default();
        let (epoch, confirmed_at_ms) = Lane::stored_registry(&self.storage).unwrap();
        cache.resume(epoch, confirmed_at_ms);
        for call in calls {
            cache.restore(Lane::stored_records(&self.storage, epoch, call).unwrap()).unwrap();
        }
        cache
    }
}
