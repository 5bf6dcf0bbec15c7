//! Two requests at once: both are decided on one epoch, or both have one idempotency key.

use gateward_core::problem::ProblemCode::{
    self, AlreadyBootstrapped, IdempotencyKeyReused, InvalidField, NameTaken, NotFound,
    PreconditionFailed, StateConflict,
};
use gateward_core::registry::EpochPush;
use serde_json::{Value as Json, json};

use super::{DAY_S, KEYS};
use crate::support::TENANT;
use crate::support::registry::{Answered, Ask, Effect, Registry, delete, get, patch, post, put};

/// The earlier requests; the request that is committed in between; the request that came first and
/// is decided again; and the problem in its answer, which is `None` if it makes the change that it
/// asked for.
fn races() -> Vec<(Vec<Ask>, Ask, Ask, Option<ProblemCode>)> {
    let agent = || post("/v1/agents", json!({"agent": "a", "environment": "production"}));
    let server = || post("/v1/servers", json!({"server": "s", "kind": "mcp"}));
    let tool =
        || post("/v1/servers/s/tools", json!({"tool": "x", "mutates": false, "risk": "low"}));
    let group = || post("/v1/groups", json!({"group": "g"}));
    let credential = || post("/v1/credentials", json!({"kind": "agent", "agent": "a"}));
    let ban = |subject| post("/v1/bans", json!({"kind": "run", "subject": subject}));
    let root = |name, key| post("/v1/warrant-roots", json!({"root_id": name, "public_key": key}));
    let revocation = || post("/v1/warrant-revocations", json!({"warrant_id": "0f".repeat(16)}));
    let act = |path: &str| post(path, Json::Null);
    vec![
        (vec![], root("ci", KEYS[0]), root("ci", KEYS[1]), Some(NameTaken)),
        (vec![], root("ci", KEYS[0]), root("ops", KEYS[0]), Some(StateConflict)),
        (vec![], root("ci", KEYS[0]), root("ops", KEYS[1]), None),
        (vec![], revocation(), revocation(), None),
        (vec![], agent(), agent(), Some(NameTaken)),
        (vec![], group(), group(), Some(NameTaken)),
        (vec![], agent(), group(), None),
        (vec![], ban("p"), ban("q"), None),
        (
            vec![agent()],
            patch("/v1/agents/a", json!({"risk_tier": "medium"})),
            patch("/v1/agents/a", json!({"risk_tier": "high"})),
            None,
        ),
        (
            vec![agent()],
            patch("/v1/agents/a", json!({"risk_tier": "high"})),
            patch("/v1/agents/a", json!({"environment": "test"})),
            None,
        ),
        (vec![agent()], act("/v1/agents/a/freeze"), act("/v1/agents/a/quarantine"), None),
        (vec![agent()], act("/v1/agents/a/freeze"), act("/v1/agents/a/freeze"), None),
        (vec![agent()], delete("/v1/agents/a"), delete("/v1/agents/a"), None),
        (
            vec![agent()],
            act("/v1/agents/a/revoke"),
            act("/v1/agents/a/freeze"),
            Some(StateConflict),
        ),
        (
            vec![agent()],
            act("/v1/agents/a/revoke"),
            patch("/v1/agents/a", json!({"risk_tier": "high"})),
            None,
        ),
        (vec![agent()], act("/v1/agents/a/revoke"), credential(), Some(StateConflict)),
        (vec![agent()], delete("/v1/agents/a"), credential(), Some(InvalidField)),
        (vec![agent()], delete("/v1/agents/a"), act("/v1/agents/a/freeze"), Some(NotFound)),
        (
            vec![agent(), credential()],
            act("/v1/credentials/@0/revoke"),
            act("/v1/credentials/@0/rotate"),
            Some(StateConflict),
        ),
        (
            vec![agent(), credential()],
            act("/v1/credentials/@0/rotate"),
            act("/v1/credentials/@0/revoke"),
            None,
        ),
        (
            vec![agent(), group()],
            delete("/v1/groups/g"),
            put("/v1/groups/g/members/agents/a"),
            Some(NotFound),
        ),
        (
            vec![agent(), group()],
            delete("/v1/agents/a"),
            put("/v1/groups/g/members/agents/a"),
            Some(NotFound),
        ),
        (
            vec![agent(), group()],
            put("/v1/groups/g/members/agents/a"),
            patch("/v1/agents/a", json!({"risk_tier": "high"})),
            None,
        ),
        (
            vec![server(), tool()],
            delete("/v1/servers/s"),
            act("/v1/servers/s/tools/x/approve"),
            Some(NotFound),
        ),
        (
            vec![server(), tool()],
            delete("/v1/servers/s"),
            patch("/v1/servers/s/tools/x", json!({"canary": true})),
            Some(NotFound),
        ),
        (
            vec![server(), tool()],
            act("/v1/servers/s/quarantine"),
            act("/v1/servers/s/approve"),
            None,
        ),
        (
            vec![server(), tool()],
            act("/v1/servers/s/tools/x/quarantine"),
            act("/v1/servers/s/tools/x/approve"),
            None,
        ),
        (
            vec![],
            patch("/v1/settings", json!({"risk_denials": 1})),
            patch("/v1/settings", json!({"risk_quiet_s": 2})),
            None,
        ),
    ]
}

#[test]
fn of_two_changes_decided_on_one_epoch_the_second_is_decided_anew() {
    for (there, first, second, refused) in races() {
        let (registry, one_by_one) = (Registry::new(), Registry::new());
        for ask in &there {
            registry.ask(ask).unwrap();
            one_by_one.ask(ask).unwrap();
        }
        let (drawn, commits) = (registry.drawn.get(), registry.commits.get());
        registry.between.replace(Some(first.clone()));
        let answered = registry.ask(&second);
        let changed = answered.as_ref().is_ok_and(Answered::changed);
        assert_eq!(registry.commits.get() - commits, 2 + u32::from(changed), "{second:?}");

        // As if the requests had come one after the other, with the ids that they drew.
        one_by_one.drawn.set(drawn + 1);
        one_by_one.ask(&first).unwrap();
        one_by_one.drawn.set(drawn);
        assert_eq!(one_by_one.ask(&second), answered, "{second:?}");
        assert_eq!(answered.err().map(|problem| problem.code), refused, "{second:?}");
        assert_eq!(registry.dump(), one_by_one.dump(), "{second:?}");
    }
}

#[test]
fn of_two_changes_of_the_same_revision_the_second_is_told() {
    let mut told = 0;
    for (there, first, second, _) in races() {
        // The record that is read before the change.
        let action = ["freeze", "quarantine", "revoke", "rotate", "approve"];
        let (before, last) = second.path.rsplit_once('/').unwrap();
        let path = if action.contains(&last) { before } else { &second.path };
        let registry = Registry::new();
        for ask in &there {
            registry.ask(ask).unwrap();
        }
        let revision = |registry: &Registry| registry.ask(&get(path)).ok()?.revision;
        let read = if path.contains("/members/") { None } else { revision(&registry) };
        let Some(read) = read else { continue };
        registry.between.replace(Some(first));
        let second = second.clone().matching(&format!("\"{read}\""));
        let answered = registry.ask(&second);
        match revision(&registry) {
            // Another record changed, or this one is gone.
            Some(now) if now == read => drop(answered.unwrap()),
            None => assert_ne!(answered.map(|answered| answered.changed()), Ok(true)),
            Some(_) => {
                assert_eq!(answered.unwrap_err().code, PreconditionFailed, "{second:?}");
                told += 1;
            }
        }
    }
    assert!(told >= 11, "only {told} cases");
}

#[test]
fn two_requests_with_one_idempotency_key_at_once_are_one() {
    let registry = Registry::new();
    let ask = post("/v1/groups", json!({"group": "g"})).once("key");
    registry.between.replace(Some(ask.clone()));
    assert_eq!(registry.ask(&ask).unwrap().effect, Effect::Replayed);
    assert_eq!(registry.epoch(), 2);
    let other = post("/v1/groups", json!({"group": "h"})).once("key");
    assert_eq!(registry.ask(&other).unwrap_err().code, IdempotencyKeyReused);
    registry.wait(DAY_S + 1);
    registry.ask(&post("/v1/groups", json!({"group": "i"})).once("another")).unwrap();
    assert!(registry.ask(&other).unwrap().changed(), "forgotten after a day");
}

#[test]
fn an_answer_that_nothing_had_to_change_is_kept_under_its_key_too() {
    let registry = Registry::new();
    let act = |action: &str| post(&format!("/v1/agents/a/{action}"), Json::Null);
    registry.ask(&post("/v1/agents", json!({"agent": "a", "environment": "e"}))).unwrap();
    registry.ask(&act("freeze")).unwrap();
    let ask = act("freeze").once("key");
    registry.between.replace(Some(ask.clone()));
    assert_eq!(registry.ask(&ask).unwrap().effect, Effect::Replayed, "of two at once");
    registry.ask(&act("unfreeze")).unwrap();
    let before = registry.dump();
    let again = registry.ask(&ask).unwrap();
    assert_eq!((again.effect, &again.body["frozen"]), (Effect::Replayed, &json!(true)));
    assert_eq!(again.push, Some(EpochPush::whole(3)), "as of when it was answered");
    assert_eq!(registry.dump(), before);
}

#[test]
fn of_two_bootstraps_at_once_one_makes_the_operator() {
    let registry = Registry::new();
    let bootstrap = |tenant| post("/v1/bootstrap", json!({"tenant": tenant})).of_tenant("");
    registry.between.replace(Some(bootstrap("one")));
    assert_eq!(registry.ask(&bootstrap("two")).unwrap_err().code, AlreadyBootstrapped);
    let tenants = registry.list("/v1/tenants");
    assert_eq!(tenants.iter().map(|row| &row["tenant"]).collect::<Vec<_>>(), [TENANT, "one"]);
}
