//! The registry under administrators, as the worker serves it: each request is a method, a path and
//! a body. Then the tests compare what D1 holds, what the API shows, and what a lane reads.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

mod administrators;
mod histories;
mod races;
mod requests;

use crate::support::registry::{
    Answered, Ask, Effect, MAC_KEY, Registry, delete, get, patch, post, put,
};
use crate::support::{Fault, START_MS, with};
use gateward_core::bounds::{MAX_REMEMBERED_LISTS, MAX_WARRANT_REVOCATIONS, MAX_WARRANT_ROOTS};
use gateward_core::credential::token;
use gateward_core::problem::ProblemCode::{
    InvalidField, LimitReached, NotFound, RegistryUnavailable, StateConflict,
};
use gateward_core::registry::EpochPush;
use gateward_core::route::{Access, ROUTES};
use gateward_core::scope::Scope;
use gateward_core::warrant::mint::Secret;
use gateward_core::warrant::text;
use serde_json::{Value as Json, json};

const DAY_S: u64 = 24 * 60 * 60;

const AGENTS: [&str; 2] = ["a", "b"];
const GROUPS: [&str; 2] = ["g", "h"];
const PEOPLE: [&str; 2] = ["bob", "eve"];
const SERVERS: [&str; 2] = ["s", "t"];
/// The second's slash is encoded in paths.
const TOOLS: [&str; 2] = ["read", "x/write"];

const ROOTS: [&str; 2] = ["ci", "ops"];
const KEYS: [&str; 2] = [
    "29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7",
    "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
];

/// The secret of the second key: the first test vector of RFC 8032, section 7.1.
const SECRET: &str = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";

/// Warrants on signed lists.
const LISTED: [&str; 2] = ["0190f3a05b7c7d1e8f2a3b4c5d6e7f80", "0190f3a05b7c7d1e8f2a3b4c5d6e7f82"];

/// A list of revocations that is signed with the second key, in base64.
fn list_of(ids: &[&str], version: u64) -> String {
    let mut secret = [0; 32];
    hex::decode_to_slice(SECRET, &mut secret).unwrap();
    list_by(&Secret::new(secret), ids, version)
}

fn list_by(secret: &Secret, ids: &[&str], version: u64) -> String {
    let ids: Vec<_> = ids.iter().map(|id| id.parse().unwrap()).collect();
    text::encode(&secret.revoke(&ids, version, "2026-01-01T00:00:00Z"))
}

fn take_list(root: &str, list: &str) -> Ask {
    let path = format!("/v1/warrant-roots/{root}/revocation-list");
    Ask::new("PUT", &path, json!({"list": list}))
}

/// Every write, each a change after those before it; the first is the only one without a tenant.
fn writes() -> Vec<Ask> {
    let none = Json::Null;
    let act = |path: &str| post(path, Json::Null);
    vec![
        post("/v1/bootstrap", json!({"tenant": "operators"})).of_tenant(""),
        post("/v1/tenants", json!({"tenant": "acme", "lanes": 2})),
        patch("/v1/tenants/acme", json!({"status": "suspended"})),
        patch("/v1/settings", json!({"risk_denials": 9, "shield": {"secret": "redact"}})),
        post("/v1/agents", json!({"agent": "a", "environment": "production"})),
        patch("/v1/agents/a", json!({"allowed_tools": []})),
        act("/v1/agents/a/freeze"),
        act("/v1/agents/a/unfreeze"),
        act("/v1/agents/a/quarantine"),
        act("/v1/agents/a/restore"),
        act("/v1/agents/a/untaint"),
        post("/v1/groups", json!({"group": "g"})),
        put("/v1/groups/g/members/agents/a"),
        delete("/v1/groups/g/members/agents/a"),
        put("/v1/groups/g/members/agents/a"),
        post("/v1/administrators", json!({"administrator": "bob"})),
        post("/v1/credentials", json!({"kind": "agent", "agent": "a", "signed": true})),
        post("/v1/credentials/@0/rotate", json!({"overlap_s": 60})),
        post(
            "/v1/credentials",
            json!({
                "kind": "administrator", "administrator": "bob", "scopes": ["audit:read"], "signed": true,
            }),
        ),
        act("/v1/credentials/@2/revoke"),
        put("/v1/groups/g/members/administrators/bob"),
        act("/v1/groups/g/protect"),
        act("/v1/groups/g/unprotect").approved("g", &["bob"]),
        delete("/v1/administrators/bob"),
        post("/v1/servers", json!({"server": "s", "kind": "mcp", "manifest": {"v": 1}})),
        act("/v1/servers/s/approve"),
        act("/v1/servers/s/disable"),
        act("/v1/servers/s/restore"),
        act("/v1/servers/s/quarantine"),
        post("/v1/servers/s/tools", json!({"tool": "x/write", "mutates": true, "risk": "low"})),
        patch(
            "/v1/servers/s/tools/x%2Fwrite",
            json!({"risk": "high", "shield": {"sql_injection": "block"}}),
        ),
        act("/v1/servers/s/tools/x%2Fwrite/approve"),
        act("/v1/servers/s/tools/x%2Fwrite/disable"),
        act("/v1/servers/s/tools/x%2Fwrite/quarantine"),
        act("/v1/servers/s/tools/x%2Fwrite/restore"),
        patch("/v1/servers/s", json!({"manifest": {"v": 2}, "inspects_results": true})),
        post("/v1/bans", json!({"kind": "run", "subject": "r"})),
        delete("/v1/bans/@0"),
        post("/v1/warrant-roots", json!({"root_id": "ci", "public_key": KEYS[0]})),
        patch("/v1/warrant-roots/ci", json!({"status": "disabled"})),
        delete("/v1/warrant-roots/ci"),
        post("/v1/warrant-roots", json!({"root_id": "ops", "public_key": KEYS[1]})),
        take_list("ops", &list_of(&LISTED, 1)),
        post("/v1/warrant-revocations", json!({"warrant_id": "0f".repeat(16)})),
        Ask::new("PUT", "/v1/webhook", json!({"url": "https://hooks.example.com/gateward"})),
        delete("/v1/webhook"),
        post(
            "/v1/limits",
            json!({"limit_id": "l", "subject_kind": "agent", "subject": "a",
                   "rule": {"kind": "quota", "max": "9", "window": "day"}}),
        ),
        patch("/v1/limits/l", json!({"rule": {"max": "8"}})),
        delete("/v1/limits/l"),
        act("/v1/agents/a/revoke"),
        delete("/v1/agents/a"),
        delete("/v1/groups/g"),
        delete("/v1/servers/s"),
        Ask::new("DELETE", "/v1/tenants/acme", none),
    ]
}

/// The same, each POST with its own idempotency key.
fn writes_once() -> Vec<Ask> {
    let keyed = |(at, ask): (usize, Ask)| match ask.method {
        "POST" => ask.once(&format!("key-{at}")),
        _ => ask,
    };
    writes().into_iter().enumerate().map(keyed).collect()
}

#[test]
fn these_tests_know_every_write_that_there_is() {
    let fits = |template: &str, path: &str| {
        let (template, path): (Vec<_>, Vec<_>) =
            (template.split('/').collect(), path.split('/').collect());
        template.len() == path.len()
            && template.iter().zip(path).all(|(part, text)| part.starts_with('{') || *part == text)
    };
    for route in ROUTES {
        let writes_registry = matches!(
            route.access,
            Access::Bootstrap | Access::Administrator(Scope::RegistryWrite | Scope::TenantsAdmin)
        );
        let known =
            writes().iter().any(|ask| ask.method == route.method && fits(route.path, &ask.path));
        assert_eq!(
            known,
            writes_registry && route.method != "GET",
            "{} {}",
            route.method,
            route.path
        );
    }
    let registry = Registry::new();
    for ask in writes() {
        assert!(registry.ask(&ask).unwrap().changed(), "{ask:?} changes nothing");
    }
}

#[test]
fn a_commit_that_fails_at_any_statement_writes_nothing_and_can_be_asked_again() {
    let registry = Registry::new();
    let mut broken = 0;
    for ask in writes_once() {
        let before = registry.dump();
        for at in 0.. {
            registry.fault.set(Some((at, Fault::Failed)));
            let answered = registry.ask(&ask);
            if registry.fault.take().is_some() {
                assert!(answered.unwrap().changed(), "{ask:?}");
                assert!(at >= 3, "{ask:?}: an event, a change and an epoch");
                break;
            }
            assert_eq!(answered.unwrap_err().code, RegistryUnavailable, "{ask:?}");
            assert_eq!(registry.dump(), before, "{ask:?} at {at}");
            broken += 1;
        }
    }
    assert!(broken > 150, "only {broken} statements were broken");
}

#[test]
fn a_change_whose_answer_was_lost_is_made_once_however_often_it_is_asked() {
    let registry = Registry::new();
    for ask in writes_once() {
        registry.fault.set(Some((0, Fault::Lost)));
        assert_eq!(registry.ask(&ask).unwrap_err().code, RegistryUnavailable, "{ask:?}");
        let after = registry.dump();
        let again = registry.ask(&ask).map(|answered| answered.effect);
        let expected = match ask.method {
            "POST" => Ok(Effect::Replayed),
            // Nothing of these must be left.
            "DELETE"
                if ["/bans/", "/limits/", "/webhook", "/warrant-roots/"]
                    .iter()
                    .any(|it| ask.path.contains(it)) =>
            {
                Err(NotFound)
            }
            // This is the only way to see its secret.
            "PUT" if ask.path == "/v1/webhook" => Ok(Effect::Changed),
            _ => Ok(Effect::Unchanged),
        };
        let unchanged = expected != Ok(Effect::Changed);
        assert_eq!(again.map_err(|problem| problem.code), expected, "{ask:?}");
        assert_eq!(registry.dump() == after, unchanged, "{ask:?}");
    }
}

#[test]
fn only_one_rate_of_an_agent_covers_requests() {
    let registry = Registry::new();
    let agent = post("/v1/agents", json!({"agent": "a", "environment": "production"}));
    assert!(registry.ask(&agent).unwrap().changed());
    let rate = json!({"kind": "rate", "capacity": 5, "refill_per_s": 1});
    let limit = |id: &str, kind: &str, subject: &str, rule: Json| {
        let named = json!({"limit_id": id, "subject_kind": kind, "subject": subject});
        post("/v1/limits", with(named, json!({"covers": "requests", "rule": rule})))
    };
    let rule = |change: Json| with(rate.clone(), change);
    let quota = json!({"kind": "quota", "max": "5", "window": "day"});
    let no_rate = json!({
        "kind": "quota", "max": "5", "window": "day", "capacity": null, "refill_per_s": null,
    });
    for (kind, subject, rule, field) in [
        ("tenant", "*", rate.clone(), "subject_kind"),
        ("user", "*", rate.clone(), "subject_kind"),
        ("agent", "a", quota, "rule.kind"),
        ("agent", "a", rule(json!({"access": "read"})), "rule.access"),
        ("agent", "a", rule(json!({"tools": ["s/*"]})), "rule.tools"),
    ] {
        let refused = registry.ask(&limit("l", kind, subject, rule)).unwrap_err();
        assert_eq!((refused.code, refused.field.as_deref()), (InvalidField, Some(field)));
    }
    let in_force = || {
        let agent = registry.load("a", "none", "s", "read").agent.unwrap();
        assert!(agent.limits.is_empty(), "a limit of requests covers no call");
        agent.request_rate.as_ref().map(|rate| rate.limit_id.clone())
    };
    assert_eq!(in_force(), None);
    for (subject, id) in [("*", "each"), ("a", "own")] {
        let created = registry.ask(&limit(id, "agent", subject, rate.clone())).unwrap();
        assert_eq!(created.body["covers"], "requests");
        assert_eq!(in_force().as_deref(), Some(id));
        let second = registry.ask(&limit("l", "agent", subject, rate.clone()));
        assert_eq!(second.unwrap_err().code, LimitReached, "{subject}");
    }
    for (change, expected) in [
        (json!({"rule": {"capacity": 6}}), Ok(true)),
        (json!({"rule": {"tools": ["s/*"]}}), Err(InvalidField)),
        (json!({"rule": no_rate}), Err(InvalidField)),
        (json!({"covers": "calls", "rule": {}}), Err(InvalidField)),
    ] {
        let answered = registry.ask(&patch("/v1/limits/own", change.clone()));
        let changed = answered.map(|answered| answered.changed()).map_err(|problem| problem.code);
        assert_eq!(changed, expected, "{change}");
    }
    assert!(registry.ask(&delete("/v1/limits/own")).unwrap().changed());
    assert_eq!(in_force().as_deref(), Some("each"));
}

#[test]
fn a_tenant_has_so_many_roots_and_revocations_and_no_more() {
    let registry = Registry::new();
    // One less than the bound of each kind.
    let numbers = |most: usize| {
        format!(
            "(WITH RECURSIVE n(n) AS (VALUES (2) UNION ALL SELECT n + 1 FROM n WHERE n < {most}) SELECT n FROM n)"
        )
    };
    let rows = format!(
        "INSERT INTO warrant_roots (tenant, root_id, public_key, status, created_by, revision, \
           created_at_ms, updated_at_ms) \
           SELECT 'demo', 'r' || n, printf('%064d', n), 'disabled', 'ada', 1, 0, 0 FROM {}; \
         INSERT INTO warrant_revocations (tenant, warrant_id, reason, revoked_by, revoked_at_ms, \
           expires_at_ms) SELECT 'demo', printf('%032d', n), '', 'ada', 0, {} FROM {};",
        numbers(MAX_WARRANT_ROOTS),
        START_MS + 1_000,
        numbers(MAX_WARRANT_REVOCATIONS),
    );
    registry.database.execute_batch(&rows).unwrap();
    let root = |at: usize| {
        post("/v1/warrant-roots", json!({"root_id": ROOTS[at], "public_key": KEYS[at]}))
    };
    let revoke = |digit: &str| {
        registry.ask(&post("/v1/warrant-revocations", json!({"warrant_id": digit.repeat(32)})))
    };
    assert!(registry.ask(&root(0)).unwrap().changed());
    assert_eq!(registry.ask(&root(1)).unwrap_err().code, LimitReached);
    assert!(revoke("a").unwrap().changed());
    assert_eq!(revoke("b").unwrap_err().code, LimitReached);
    assert_eq!(revoke("a").unwrap().effect, Effect::Unchanged, "it is there already");
    // Expired ones do not count.
    registry.wait(1);
    assert!(revoke("b").unwrap().changed());
    assert_eq!(registry.list("/v1/warrant-revocations").len(), 2);
}

/// The holder of one root's key cannot revoke the warrants of another root, and cannot keep others from revoking them.
#[test]
fn a_list_revokes_for_its_own_root_only() {
    let registry = Registry::new();
    let id = LISTED[0];
    let keys = [1, 2].map(|number| Secret::new([number; 32]));
    for (root, key) in ROOTS.iter().zip(&keys) {
        let root = json!({"root_id": root, "public_key": key.public()});
        assert!(registry.ask(&post("/v1/warrant-roots", root)).unwrap().changed());
    }
    let mut bytes = [0; 16];
    hex::decode_to_slice(id, &mut bytes).unwrap();
    let revoked = || {
        let warrants = registry.load("a", "none", "s", "read").warrants.unwrap();
        keys.each_ref().map(|key| warrants.first_revoked(&key.public(), &[bytes]).is_some())
    };
    let take = |at: usize| take_list(ROOTS[at], &list_by(&keys[at], &[id], 1));
    assert_eq!(revoked(), [false, false]);
    assert!(registry.ask(&take(0)).unwrap().changed());
    assert_eq!(revoked(), [true, false]);
    assert!(registry.ask(&take(1)).unwrap().changed());
    assert_eq!(revoked(), [true, true]);
    // The root's key decides, even after the root was deleted.
    assert!(registry.ask(&delete("/v1/warrant-roots/ops")).unwrap().changed());
    assert_eq!(revoked(), [true, true]);

    let path = format!("/v1/warrant-revocations/{id}");
    let by = |body: &Json| body["root_key"].as_str().map(str::to_owned);
    let known: Vec<_> = registry.list("/v1/warrant-revocations").iter().map(by).collect();
    let mut expected: Vec<_> = keys.iter().map(|key| Some(key.public().to_string())).collect();
    expected.sort();
    assert_eq!(known, expected);
    assert_eq!(by(&registry.ask(&get(&path)).unwrap().body), expected[0]);
    // An administrator revokes the warrant for all roots, and this revocation is the one that is shown.
    let revoke = post("/v1/warrant-revocations", json!({"warrant_id": id}));
    assert_eq!(registry.ask(&revoke).unwrap().effect, Effect::Created);
    assert_eq!(by(&registry.ask(&get(&path)).unwrap().body), None);
    expected.insert(0, None);
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    // One on each page.
    while paged.len() < expected.len() {
        let page = format!("/v1/warrant-revocations?limit=1&cursor={cursor}");
        let body = registry.ask(&get(&page)).unwrap().body;
        paged.push(by(&body["warrant_revocations"][0]));
        cursor = body["next_cursor"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(paged, expected);
}

/// Otherwise somebody could send an old list once the root was deleted and registered again.
#[test]
fn the_version_of_a_list_does_not_go_back_when_its_root_is_deleted() {
    let registry = Registry::new();
    let keys = [1, 2].map(|number| Secret::new([number; 32]));
    let create = |root: &str, key: &Secret| {
        let root = json!({"root_id": root, "public_key": key.public()});
        registry.ask(&post("/v1/warrant-roots", root))
    };
    let version = |answered: Answered| answered.body["revocation_list_version"].clone();
    let take = |root: &str, list: u64, ids: &[&str]| {
        registry.ask(&take_list(root, &list_by(&keys[0], ids, list)))
    };
    let remove = |root: &str| registry.ask(&delete(&format!("/v1/warrant-roots/{root}"))).unwrap();
    assert_eq!(version(create("a", &keys[0]).unwrap()), Json::Null);
    assert!(take("a", 5, &[LISTED[0]]).unwrap().changed());
    remove("a");
    // Under another name too, and once more.
    for (root, newer) in [("b", 6), ("c", 7)] {
        assert_eq!(version(create(root, &keys[0]).unwrap()), json!(newer - 1));
        assert_eq!(take(root, newer - 2, &[]).unwrap_err().code, StateConflict);
        assert_eq!(take(root, newer - 1, &[LISTED[1]]).unwrap_err().code, StateConflict);
        assert_eq!(take(root, newer - 1, &[LISTED[0]]).unwrap().effect, Effect::Unchanged);
        assert!(take(root, newer, &[LISTED[0]]).unwrap().changed());
        remove(root);
    }
    assert_eq!(version(create("d", &keys[1]).unwrap()), Json::Null, "another key");

    let rows = format!(
        "WITH RECURSIVE n(n) AS (VALUES (2) UNION ALL SELECT n + 1 FROM n WHERE n < {MAX_REMEMBERED_LISTS}) \
         INSERT INTO warrant_lists (tenant, public_key, list_version, list_sha256) \
           SELECT 'demo', printf('%064d', n), 1, '' FROM n"
    );
    registry.database.execute_batch(&rows).unwrap();
    remove("d");
    assert_eq!(create("e", &keys[1]).unwrap_err().code, LimitReached);
    assert!(create("e", &keys[0]).unwrap().changed(), "its list is remembered already");
}

#[test]
fn a_secret_is_shown_once_and_stored_nowhere() {
    let registry = Registry::new();
    let mut secrets = vec![MAC_KEY.to_owned()];
    let mut shown = 0;
    for ask in writes_once() {
        let first = registry.ask(&ask).unwrap();
        if ask.method != "POST" {
            continue;
        }
        let mut kept = first.body.clone();
        let issued = match kept.get_mut("credential") {
            Some(credential) => credential,
            None => &mut kept,
        };
        if let Some(token) = issued.get("token") {
            let token = token.as_str().unwrap().to_owned();
            let parts: Vec<&str> = token.split('.').collect();
            let [.., secret, mac] = *parts.as_slice() else { panic!("{token}") };
            secrets.extend([secret.to_owned(), mac.to_owned(), token.clone()]);
            let signed = issued["signed"] == true;
            let signing_key = registry.signing_key(issued["key_id"].as_str().unwrap());
            assert_eq!(issued["signing_key"], if signed { json!(signing_key) } else { Json::Null });
            secrets.push(signing_key);
            issued["token"] = Json::Null;
            issued["signing_key"] = Json::Null;
            shown += 1;
        }
        let again = registry.ask(&ask).unwrap();
        let push = Some(EpochPush::whole(first.push.as_ref().unwrap().epoch));
        let (revision, effect) = (None, Effect::Replayed);
        let expected = Answered { body: kept, revision, effect, push, ..first };
        assert_eq!(again, expected, "{ask:?}");
    }
    assert_eq!(shown, 5);
    for (table, rows) in registry.dump() {
        for secret in &secrets {
            assert!(!rows.iter().any(|row| row.contains(secret)), "{table} has {secret}");
        }
    }
    // Only its SHA-256 is stored.
    let hashes = &registry.dump()["credentials"].join("");
    assert!(hashes.contains(&hex::encode(token::secret_hash(&secrets[1]))));
}

#[test]
fn no_write_touches_another_tenants_rows() {
    let registry = Registry::new();
    registry.add_tenant("twin");
    let mut writes = writes_once();
    writes.retain(|ask| !ask.path.contains("/tenants") && !ask.path.contains("/bootstrap"));
    // The twin keeps all its records. It has the same names and idempotency keys, and its own ids.
    for ask in writes.iter().filter(|ask| ask.method != "DELETE") {
        registry.ask(&ask.clone().of_tenant("twin")).unwrap();
    }
    let of_twin = |registry: &Registry| -> Vec<String> {
        let rows = registry.dump().into_values().flatten();
        rows.filter(|row| row.contains("\"twin\"")).collect()
    };
    let before = of_twin(&registry);
    assert!(before.len() > 50);
    for ask in &writes {
        assert!(registry.ask(ask).unwrap().changed(), "{ask:?}");
        assert_eq!(of_twin(&registry), before, "{ask:?}");
    }
}
