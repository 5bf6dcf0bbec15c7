//! The registry under administrators, as the worker serves it: each request is a method, a path and
//! a body. Then the tests compare what D1 holds, what the API shows, and what a lane reads.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests only")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use gateward_admin::{Actor, AgentInLane};
use gateward_core::bounds::{MAX_REMEMBERED_LISTS, MAX_WARRANT_REVOCATIONS, MAX_WARRANT_ROOTS};
use gateward_core::call::command::GateCommand;
use gateward_core::credential::token;
use gateward_core::gate::LaneAction;
use gateward_core::id::rfc3339;
use gateward_core::lane::{Lane, LaneSql, RegistryCache, stored};
use gateward_core::problem::ProblemCode::{
    self, AlreadyBootstrapped, ApprovalRequired, Forbidden, IdempotencyKeyReused, InvalidField,
    LastAdministrator, LimitReached, MalformedRequest, NameTaken, NotFound, PreconditionFailed,
    RegistryUnavailable, StateConflict,
};
use gateward_core::registry::{CredentialRecord, EpochPush, Loaded, LoadedTexts};
use gateward_core::route::{Access, ROUTES};
use gateward_core::scope::Scope;
use gateward_core::sql;
use gateward_core::warrant::mint::Secret;
use gateward_core::warrant::text;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use serde_json::{Value as Json, json};
use support::model::Model;
use support::registry::{Answered, Ask, Effect, MAC_KEY, Registry, delete, get, patch, post, put};
use support::{Fault, START_MS, Storage, TENANT, command, read_call, with};

const DAY_S: u64 = 24 * 60 * 60;
/// How long a credential stays after it has ended.
const KEPT_S: u64 = 90 * DAY_S;

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

/// A request of a random history, and the seconds that pass before it.
type Step = (u64, Ask);

fn any_of<const N: usize>(values: [&'static str; N]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(values.to_vec())
}

/// Null, an empty list, or some values. Sometimes the field is absent.
fn list(some: &'static str) -> impl Strategy<Value = Option<Json>> {
    prop::option::of(prop::sample::select(vec![Json::Null, json!([]), json!([some])]))
}

fn optional(values: Vec<Json>) -> impl Strategy<Value = Option<Json>> {
    prop::option::of(prop::sample::select(values))
}

/// A body with the fields that are not absent.
fn body<const N: usize>(fields: [(&str, Option<Json>); N]) -> Json {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn agent_fields() -> impl Strategy<Value = Json> {
    let environment = optional(vec![json!("production"), json!("test")]);
    let risk_tier = optional(vec![json!("low"), json!("high")]);
    let warrants = (
        optional(vec![Json::Null, json!(KEYS[0]), json!(KEYS[1])]),
        optional(vec![json!(true), json!(false)]),
    );
    (environment, risk_tier, list("s/*"), warrants).prop_map(
        |(environment, risk_tier, allowed_tools, warrants)| {
            body([
                ("environment", environment),
                ("risk_tier", risk_tier),
                ("allowed_tools", allowed_tools),
                ("public_key", warrants.0),
                ("warrant_required", warrants.1),
            ])
        },
    )
}

fn agents() -> impl Strategy<Value = Ask> {
    let actions = ["freeze", "unfreeze", "quarantine", "restore", "untaint", "revoke"];
    prop_oneof![
        4 => (any_of(AGENTS), agent_fields()).prop_map(|(agent, fields)| {
            let named = json!({"agent": agent, "environment": "production"});
            post("/v1/agents", with(named, fields))
        }),
        3 => (any_of(AGENTS), agent_fields())
            .prop_map(|(agent, fields)| patch(&format!("/v1/agents/{agent}"), fields)),
        6 => (any_of(AGENTS), any_of(actions)).prop_map(|(agent, action)| {
            post(&format!("/v1/agents/{agent}/{action}"), Json::Null)
        }),
        1 => any_of(AGENTS).prop_map(|agent| delete(&format!("/v1/agents/{agent}"))),
    ]
}

fn groups() -> impl Strategy<Value = Ask> {
    let member = prop_oneof![
        any_of(AGENTS).prop_map(|agent| format!("agents/{agent}")),
        any_of(PEOPLE).prop_map(|person| format!("administrators/{person}")),
    ];
    prop_oneof![
        3 => any_of(GROUPS).prop_map(|group| post("/v1/groups", json!({"group": group}))),
        6 => (any_of(GROUPS), member, prop::bool::weighted(0.7)).prop_map(|(group, member, put_in)| {
            let path = format!("/v1/groups/{group}/members/{member}");
            if put_in { put(&path) } else { delete(&path) }
        }),
        1 => any_of(GROUPS).prop_map(|group| delete(&format!("/v1/groups/{group}"))),
        3 => any_of(PEOPLE)
            .prop_map(|person| post("/v1/administrators", json!({"administrator": person}))),
        1 => any_of(PEOPLE).prop_map(|person| delete(&format!("/v1/administrators/{person}"))),
    ]
}

fn credentials() -> impl Strategy<Value = Ask> {
    let kind = prop_oneof![
        3 => any_of(AGENTS).prop_map(|agent| json!({
            "kind": "agent", "agent": agent, "assigns_runs": agent == "b",
        })),
        1 => any_of(PEOPLE).prop_map(|person| json!({
            "kind": "administrator", "administrator": person, "scopes": ["audit:read"],
        })),
    ];
    let trust = optional(vec![json!("trusted_internal_signed"), json!("untrusted_external")]);
    let expires_in_s = prop::option::of(prop::sample::select(vec![0, 60, DAY_S]));
    let fields = (list("s"), list("s/*"), list("10.0.0.0/8"), trust, any::<bool>(), expires_in_s);
    prop_oneof![
        4 => (kind, fields).prop_map(|(kind, (servers, tools, networks, trust, signed, expires))| {
            let fields = body([
                ("allowed_servers", servers),
                ("allowed_tools", tools),
                ("allowed_networks", networks),
                ("max_source_trust", trust),
                ("signed", Some(json!(signed))),
                ("expires_at", expires.map(|s| json!(s))),
            ]);
            post("/v1/credentials", with(kind, fields))
        }),
        3 => (0..8, prop::option::of(prop::sample::select(vec![0, 60, 30 * DAY_S]))).prop_map(
            |(number, overlap_s)| {
                let body = overlap_s.map_or(Json::Null, |s| json!({"overlap_s": s}));
                post(&format!("/v1/credentials/@{number}/rotate"), body)
            },
        ),
        2 => (0..8).prop_map(|n| post(&format!("/v1/credentials/@{n}/revoke"), Json::Null)),
    ]
}

fn manifest() -> impl Strategy<Value = Option<Json>> {
    optional(vec![json!({"v": 1}), json!({"v": 2})])
}

/// Modes of the shield, as they are shown.
fn shield() -> impl Strategy<Value = Option<Json>> {
    let some = json!({"secret": "redact", "sql_injection": "block"});
    optional(vec![Json::Null, json!({}), some, json!({"secret": "off"})])
}

fn servers() -> impl Strategy<Value = Ask> {
    let actions = ["approve", "approve", "disable", "quarantine", "restore"];
    let kind = || any_of(["mcp", "http", "named"]);
    let trust = || optional(vec![json!("trusted"), json!("untrusted")]);
    let inspects = || optional(vec![json!(true), json!(false)]);
    let fields = || {
        (trust(), manifest(), shield(), inspects()).prop_map(
            |(trust, manifest, shield, inspects)| {
                body([
                    ("trust", trust),
                    ("manifest", manifest),
                    ("shield", shield),
                    ("inspects_results", inspects),
                ])
            },
        )
    };
    prop_oneof![
        3 => (any_of(SERVERS), kind(), fields()).prop_map(|(server, kind, fields)| {
            let named = json!({"server": server, "kind": kind});
            post("/v1/servers", with(named, fields))
        }),
        3 => (any_of(SERVERS), fields())
            .prop_map(|(server, fields)| patch(&format!("/v1/servers/{server}"), fields)),
        4 => (any_of(SERVERS), any_of(actions)).prop_map(|(server, action)| {
            post(&format!("/v1/servers/{server}/{action}"), Json::Null)
        }),
        1 => any_of(SERVERS).prop_map(|server| delete(&format!("/v1/servers/{server}"))),
    ]
}

fn tools() -> impl Strategy<Value = Ask> {
    let actions = ["approve", "approve", "disable", "quarantine", "restore"];
    let path = || {
        (any_of(SERVERS), any_of(TOOLS))
            .prop_map(|(s, tool)| format!("/v1/servers/{s}/tools/{}", tool.replace('/', "%2F")))
    };
    let risk = || any_of(["low", "critical"]);
    prop_oneof![
        3 => (any_of(SERVERS), any_of(TOOLS), any::<bool>(), risk(), shield()).prop_map(
            |(server, tool, mutates, risk, shield)| {
                let named = json!({"tool": tool, "mutates": mutates, "risk": risk});
                post(&format!("/v1/servers/{server}/tools"), with(named, body([("shield", shield)])))
            },
        ),
        2 => (path(), shield()).prop_map(|(path, shield)| patch(&path, body([("shield", shield)]))),
        2 => (path(), any::<bool>()).prop_map(|(path, canary)| patch(&path, json!({"canary": canary}))),
        2 => (path(), any::<bool>()).prop_map(|(path, egress)| patch(&path, json!({"egress": egress}))),
        1 => (path(), any_of(["allow", "require_approval", "deny_unknown", "forbid"]))
            .prop_map(|(path, rule)| patch(&path, json!({"tainted": rule}))),
        1 => (path(), prop::sample::select(vec![Json::Null, json!(60), json!(90)]))
            .prop_map(|(path, seconds)| patch(&path, json!({"approval_ttl_s": seconds}))),
        2 => (path(), any::<bool>())
            .prop_map(|(path, required)| patch(&path, json!({"warrant_required": required}))),
        2 => (path(), prop::sample::select(vec![Json::Null, json!(0), json!(255)]))
            .prop_map(|(path, clearance)| patch(&path, json!({"min_clearance": clearance}))),
        2 => (path(), provenance()).prop_map(|(path, fields)| patch(&path, fields)),
        5 => (path(), any_of(actions)).prop_map(|(path, action)| post(&format!("{path}/{action}"), Json::Null)),
    ]
}

/// What provenance of values needs to know of a tool.
fn provenance() -> impl Strategy<Value = Json> {
    let roles = vec![Json::Null, json!({}), json!({"/a~1b": "detail", "/to/*": "sink"})];
    let trust = vec![Json::Null, json!({"": "untrusted", "/contacts": "trusted"})];
    let reach = vec![json!("nobody"), json!("by_sinks")];
    (optional(roles), optional(reach), optional(trust)).prop_map(|(roles, reach, trust)| {
        body([("argument_roles", roles), ("reach", reach), ("result_trust", trust)])
    })
}

fn bans() -> impl Strategy<Value = Ask> {
    let subject = prop::sample::select(vec![
        ("agent", "a"),
        ("user", "Someone Else"),
        ("run", "r"),
        ("source_address", "192.0.2.0/24"),
    ]);
    prop_oneof![
        3 => (subject, prop::option::of(prop::sample::select(vec![0, 60, DAY_S]))).prop_map(
            |((kind, subject), expires)| {
                let expires = ("expires_at", expires.map(|s| json!(s)));
                post("/v1/bans", with(json!({"kind": kind, "subject": subject}), body([expires])))
            },
        ),
        2 => (0..6).prop_map(|number| delete(&format!("/v1/bans/@{number}"))),
    ]
}

fn warrants() -> impl Strategy<Value = Ask> {
    let fields = || {
        let description = optional(vec![Json::Null, json!("builds")]);
        (description, list("s*")).prop_map(|(description, servers)| {
            body([("description", description), ("allowed_servers", servers)])
        })
    };
    let id = any_of([
        "0190f3a05b7c7d1e8f2a3b4c5d6e7f80",
        "tnu_wrt_0190f3a05b7c7d1e8f2a3b4c5d6e7f80",
        "0190f3a0-5b7c-7d1e-8f2a-3b4c5d6e7f81",
    ]);
    prop_oneof![
        3 => (any_of(ROOTS), any_of(KEYS), fields()).prop_map(|(root, key, fields)| {
            let named = json!({"root_id": root, "public_key": key});
            post("/v1/warrant-roots", with(named, fields))
        }),
        2 => (any_of(ROOTS), fields())
            .prop_map(|(root, fields)| patch(&format!("/v1/warrant-roots/{root}"), fields)),
        2 => (any_of(ROOTS), any_of(["active", "disabled"])).prop_map(|(root, status)| {
            patch(&format!("/v1/warrant-roots/{root}"), json!({"status": status}))
        }),
        1 => any_of(ROOTS).prop_map(|root| delete(&format!("/v1/warrant-roots/{root}"))),
        2 => (any_of(ROOTS), any_of(LISTED), 1..4_u64).prop_map(|(root, id, version)| {
            take_list(root, &list_of(&[id], version))
        }),
        3 => (id, optional(vec![json!("stolen")])).prop_map(|(id, reason)| {
            let body = with(json!({"warrant_id": id}), body([("reason", reason)]));
            post("/v1/warrant-revocations", body)
        }),
    ]
}

fn tenant() -> impl Strategy<Value = Ask> {
    let number = || optional(vec![Json::Null, json!(3)]);
    let limits = (number(), number()).prop_map(|(denials, quiet)| {
        patch("/v1/settings", body([("risk_denials", denials), ("risk_quiet_s", quiet)]))
    });
    let status = any_of(["active", "suspended"])
        .prop_map(|status| patch("/v1/tenants/demo", json!({"status": status})));
    let own = json!({"accounts": ["de89"], "domains": ["acme.example"], "hosts": []});
    let destinations = prop::sample::select(vec![Json::Null, own])
        .prop_map(|own| patch("/v1/tenants/demo", json!({"destinations": own})));
    let flag = || optional(vec![Json::Null, json!(true), json!(false)]);
    let trust = optional(vec![Json::Null, json!("unknown"), json!("untrusted_external")]);
    let shield = shield().prop_map(|shield| patch("/v1/settings", body([("shield", shield)])));
    let warrants = (number(), flag(), flag(), trust, flag());
    let warrants = warrants.prop_map(|(links, required, once, trust, public)| {
        let settings = [
            ("warrant_max_links", links),
            ("warrant_required", required),
            ("warrant_reads_once", once),
            ("warrant_alone_trust", trust),
            ("log_public", public),
        ];
        patch("/v1/settings", body(settings))
    });
    prop_oneof![limits, status, destinations, warrants, shield]
}

/// A request. Most are valid, some come too late, and some are wrong.
fn ask() -> impl Strategy<Value = Ask> {
    let tags = vec!["*", "\"0\"", "\"2\"", "\"0\", \"3\", \"4\""];
    let if_match = prop::option::weighted(0.15, prop::sample::select(tags));
    // Boxed: together they are too large for the stack of a test's thread.
    let asked = prop_oneof![
        5 => agents().boxed(),
        3 => groups().boxed(),
        4 => credentials().boxed(),
        5 => servers().boxed(),
        5 => tools().boxed(),
        2 => bans().boxed(),
        3 => warrants().boxed(),
        1 => tenant().boxed(),
    ];
    (asked, if_match, prop::bool::weighted(0.03)).prop_map(|(ask, if_match, surplus)| {
        let mut ask = if let Some(tags) = if_match { ask.matching(tags) } else { ask };
        if surplus && ask.body.is_object() {
            ask.body["surplus"] = json!(1);
        }
        ask
    })
}

fn step() -> impl Strategy<Value = Step> {
    let wait = prop::sample::select(vec![1, 60, DAY_S, 100 * DAY_S]);
    (prop_oneof![9 => Just(0), 1 => wait], ask())
}

/// One of each thing, so that a short history soon finds something to change.
fn one_of_each() -> impl Iterator<Item = Step> {
    let server = json!({"server": "s", "kind": "mcp", "manifest": {"v": 1}});
    let each = [
        post("/v1/agents", json!({"agent": "a", "environment": "production"})),
        post("/v1/groups", json!({"group": "g"})),
        put("/v1/groups/g/members/agents/a"),
        post("/v1/credentials", json!({"kind": "agent", "agent": "a"})),
        post("/v1/servers", server),
        post("/v1/servers/s/tools", json!({"tool": "read", "mutates": false, "risk": "low"})),
        post("/v1/servers/s/tools/read/approve", Json::Null),
        post("/v1/bans", json!({"kind": "run", "subject": "r"})),
        post("/v1/warrant-roots", json!({"root_id": ROOTS[0], "public_key": KEYS[0]})),
    ];
    each.into_iter().map(|ask| (0, ask))
}

/// Expiries are generated as seconds from the request.
fn dated(mut ask: Ask, now_ms: u64) -> Ask {
    if let Some(at) = ask.body.get_mut("expires_at")
        && let Some(seconds) = at.as_u64()
    {
        *at = json!(rfc3339(now_ms + seconds * 1_000));
    }
    ask
}

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
        if now.credential.is_some() || !held.credential.as_ref().is_some_and(old) {
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
        agent.request_rate.map(|rate| rate.limit_id.clone())
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

/// A credential of an administrator, who is created if necessary. Returns the key id.
fn issue(registry: &Registry, tenant: &str, administrator: &str, scopes: &[Scope]) -> String {
    let _ = registry.ask(
        &post("/v1/administrators", json!({"administrator": administrator})).of_tenant(tenant),
    );
    let body = json!({"kind": "administrator", "administrator": administrator, "scopes": scopes});
    let issued = registry.ask(&post("/v1/credentials", body).of_tenant(tenant)).unwrap();
    issued.body["key_id"].as_str().unwrap().to_owned()
}

#[test]
fn the_last_administrator_is_lost_only_if_that_is_said_to_be_meant() {
    const WRITE: &[Scope] = &[Scope::RegistryWrite];
    const OPERATE: &[Scope] = &[Scope::RegistryWrite, Scope::TenantsAdmin];
    type Setting = fn(&Registry);
    let settings: [(&str, Setting, &[Scope], bool); 12] = [
        ("nobody else", |_| {}, WRITE, true),
        ("it does not administer", |_| {}, &[Scope::AuditRead, Scope::ApprovalsDecide], false),
        ("another administrator", |r| drop(issue(r, TENANT, "eve", WRITE)), WRITE, false),
        (
            "another who only reads",
            |r| drop(issue(r, TENANT, "eve", &[Scope::RegistryRead])),
            WRITE,
            true,
        ),
        (
            "another without a credential",
            |r| {
                r.ask(&post("/v1/administrators", json!({"administrator": "eve"}))).unwrap();
            },
            WRITE,
            true,
        ),
        (
            "another whose credential is revoked",
            |r| {
                let key_id = issue(r, TENANT, "eve", WRITE);
                issue(r, TENANT, "bob", WRITE);
                r.ask(&post(&format!("/v1/credentials/{key_id}/revoke"), Json::Null)).unwrap();
                let bob = r.ids(TENANT, "credentials").pop().unwrap();
                let last = format!("/v1/credentials/{bob}/revoke?last=true");
                r.ask(&post(&last, Json::Null)).unwrap();
            },
            WRITE,
            true,
        ),
        (
            "another whose credential has expired",
            |r| {
                issue(r, TENANT, "eve", WRITE);
                let expires =
                    "UPDATE credentials SET expires_at_ms = ?1 WHERE administrator = 'eve'";
                r.database.execute(expires, [r.now_ms.get() as i64]).unwrap();
            },
            WRITE,
            true,
        ),
        (
            "another tenant's",
            |r| {
                r.add_tenant("twin");
                issue(r, "twin", "eve", WRITE);
            },
            WRITE,
            true,
        ),
        ("no other operator", |r| drop(issue(r, TENANT, "eve", WRITE)), OPERATE, true),
        ("an operator in the tenant", |r| drop(issue(r, TENANT, "eve", OPERATE)), OPERATE, false),
        (
            "an operator in another tenant",
            |r| {
                issue(r, TENANT, "eve", WRITE);
                r.add_tenant("twin");
                issue(r, "twin", "eve", OPERATE);
            },
            OPERATE,
            false,
        ),
        (
            "an operator in a deleted tenant",
            |r| {
                issue(r, TENANT, "eve", WRITE);
                r.add_tenant("twin");
                issue(r, "twin", "eve", OPERATE);
                r.database
                    .execute("UPDATE tenants SET status = 'deleted' WHERE tenant = 'twin'", [])
                    .unwrap();
            },
            OPERATE,
            true,
        ),
    ];
    for (name, set, scopes, refused) in settings {
        for by_credential in [true, false] {
            let registry = Registry::new();
            set(&registry);
            let key_id = issue(&registry, TENANT, "bob", scopes);
            let ask = |query: &str| match by_credential {
                true => post(&format!("/v1/credentials/{key_id}/revoke{query}"), Json::Null),
                false => delete(&format!("/v1/administrators/bob{query}")),
            };
            let before = registry.dump();
            if refused {
                for query in ["", "?last=false"] {
                    let problem = registry.ask(&ask(query)).unwrap_err();
                    assert_eq!(problem.code, LastAdministrator, "{name}");
                    assert!(problem.detail.contains("--yes"), "{}", problem.detail);
                }
                assert_eq!(registry.ask(&ask("?last=yes")).unwrap_err().code, MalformedRequest);
                assert_eq!(registry.dump(), before, "{name}");
            }
            let query = if refused { "?last=true" } else { "" };
            assert!(registry.ask(&ask(query)).unwrap().changed(), "{name}");
            // A request that changes nothing cannot remove the last administrator.
            assert!(!registry.ask(&ask("")).unwrap().changed(), "{name}");
        }
    }
}

#[test]
fn of_one_persons_credentials_the_last_alone_is_guarded_and_rotating_loses_nobody() {
    let registry = Registry::new();
    let first = issue(&registry, TENANT, "ada", &[Scope::RegistryWrite]);
    let rotate = format!("/v1/credentials/{first}/rotate");
    let rotated = registry.ask(&post(&rotate, json!({"overlap_s": 0}))).unwrap().body;
    registry.wait(1);
    let second = issue(&registry, TENANT, "ada", &[Scope::RegistryWrite]);
    let revoke =
        |key_id: &str| registry.ask(&post(&format!("/v1/credentials/{key_id}/revoke"), Json::Null));
    assert!(revoke(rotated["key_id"].as_str().unwrap()).is_ok());
    assert_eq!(revoke(&second).unwrap_err().code, LastAdministrator);
}

/// An operator does not administer other tenants, so only the bootstrap secret helps such a tenant.
#[test]
fn bootstrap_gives_a_tenant_without_administrators_another_one_who_is_no_operator() {
    let registry = Registry::new();
    issue(&registry, TENANT, "ada", &Scope::ALL);
    let bootstrap = |tenant: &str, administrator: &str| {
        let body = json!({"tenant": tenant, "administrator": administrator});
        registry.ask(&post("/v1/bootstrap", body).of_tenant(""))
    };
    registry.add_tenant("lost");
    let key_id = issue(&registry, "lost", "mara", &[Scope::RegistryWrite]);
    issue(&registry, "lost", "olga", &[Scope::ApprovalsDecide]);
    for tenant in [TENANT, "lost", "new"] {
        assert_eq!(bootstrap(tenant, "noor").unwrap_err().code, AlreadyBootstrapped, "{tenant}");
    }
    let delete = delete("/v1/administrators/mara?last=true").of_tenant("lost");
    registry.ask(&delete).unwrap();
    assert_eq!(bootstrap("lost", "mara").unwrap_err().code, NameTaken, "{key_id}");
    // The bootstrap secret does not let anybody vote as somebody else.
    assert_eq!(bootstrap("lost", "olga").unwrap_err().code, NameTaken);
    let scopes = bootstrap("lost", "noor").unwrap().body["scopes"].clone();
    let expected: Vec<Scope> =
        Scope::ALL.into_iter().filter(|it| *it != Scope::TenantsAdmin).collect();
    assert_eq!(scopes, json!(expected));
    assert_eq!(bootstrap("lost", "olga").unwrap_err().code, AlreadyBootstrapped);
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
fn nobody_grants_what_it_has_not() {
    use Scope::{ApprovalsDecide, AuditRead, RegistryRead, RegistryWrite, TenantsAdmin};
    let mut all = get("").actor;
    all.name = "bob".to_owned();
    let having = |scopes: &[Scope]| Actor { scopes: scopes.to_vec(), ..all.clone() };
    let scopes = |scopes: &[Scope]| json!({"scopes": scopes});
    let expiring = Actor { expires_at_ms: Some(START_MS + 60_000), ..all.clone() };
    let expires = |ms: u64| json!({"expires_at": rfc3339(START_MS + ms)});
    let inside =
        Actor { allowed_networks: Some(vec!["10.0.0.0/8".parse().unwrap()]), ..all.clone() };
    let networks = |networks: &[&str]| json!({"allowed_networks": networks});
    let signing = Actor { signed: true, ..all.clone() };
    for (own, granted, allowed) in [
        (having(&[RegistryWrite]), scopes(&[RegistryWrite]), true),
        (having(&[RegistryWrite]), scopes(&[]), true),
        (having(&[RegistryWrite, AuditRead]), scopes(&[AuditRead]), true),
        (having(&[RegistryWrite]), scopes(&[RegistryRead]), false),
        (having(&[RegistryWrite]), scopes(&[RegistryWrite, ApprovalsDecide]), false),
        (having(&[RegistryWrite]), scopes(&[TenantsAdmin]), false),
        (having(&[RegistryWrite, RegistryRead]), scopes(&[RegistryRead, AuditRead]), false),
        (expiring.clone(), expires(60_000), true),
        (expiring.clone(), expires(60_001), false),
        (expiring, json!({}), false),
        (inside.clone(), networks(&["10.1.0.0/16", "10.2.0.1"]), true),
        (inside.clone(), networks(&[]), true),
        (inside.clone(), networks(&["10.1.0.0/16", "11.0.0.0/8"]), false),
        (inside.clone(), networks(&["0.0.0.0/0"]), false),
        (inside, json!({}), false),
        (signing.clone(), json!({"signed": true}), true),
        (signing, json!({}), false),
    ] {
        let registry = Registry::new();
        for person in PEOPLE {
            registry.ask(&post("/v1/administrators", json!({"administrator": person}))).unwrap();
        }
        let named = json!({"kind": "administrator", "administrator": "bob", "scopes": []});
        let grant = post("/v1/credentials", with(named, granted.clone()));
        // Rotating a credential that somebody else granted does not give more rights either.
        for ask in [&grant, &post("/v1/credentials/@0/rotate", Json::Null)] {
            let before = registry.dump();
            let answered = registry.ask(&ask.clone().of_actor(&own));
            let refused = answered.err().map(|problem| problem.code);
            assert_eq!(refused, (!allowed).then_some(Forbidden), "{ask:?} by {own:?}");
            if !allowed {
                assert_eq!(registry.dump(), before);
                registry.ask(&grant).unwrap();
            }
        }
        // The registry decides what agents may do.
        registry.ask(&post("/v1/agents", json!({"agent": "a", "environment": "e"}))).unwrap();
        let of_agent = post("/v1/credentials", json!({"kind": "agent", "agent": "a"}));
        registry.ask(&of_agent.of_actor(&own)).unwrap();
        // Only operators can end an operator's credential.
        let operator = json!({
            "kind": "administrator", "administrator": "eve", "scopes": [TenantsAdmin],
        });
        let key_id =
            registry.ask(&post("/v1/credentials", operator)).unwrap().body["key_id"].clone();
        let revoke = format!("/v1/credentials/{}/revoke?last=true", key_id.as_str().unwrap());
        let answered = registry.ask(&post(&revoke, Json::Null).of_actor(&own));
        let refused = (!own.scopes.contains(&TenantsAdmin)).then_some(Forbidden);
        assert_eq!(answered.err().map(|problem| problem.code), refused, "{own:?}");
    }
    for scope in Scope::ALL {
        let registry = Registry::new();
        registry.ask(&post("/v1/agents", json!({"agent": "a", "environment": "e"}))).unwrap();
        let ask =
            post("/v1/credentials", json!({"kind": "agent", "agent": "a", "scopes": [scope]}));
        let refused = registry.ask(&ask).err().map(|problem| (problem.code, problem.field));
        let expected = (!scope.agent_may_have()).then(|| (InvalidField, Some("scopes".to_owned())));
        assert_eq!(refused, expected, "{scope:?}");
    }
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

/// A registry with a protected group `g` of these administrators. The first of them protected it.
fn protected(members: &[&str]) -> Registry {
    let registry = Registry::new();
    registry.ask(&post("/v1/groups", json!({"group": "g"}))).unwrap();
    for person in ["bob", "carl", "eve", "puppet"] {
        registry.ask(&post("/v1/administrators", json!({"administrator": person}))).unwrap();
    }
    for member in members {
        registry.ask(&put(&format!("/v1/groups/g/members/administrators/{member}"))).unwrap();
    }
    registry.ask(&post("/v1/groups/g/protect", Json::Null)).unwrap();
    registry
}

/// The credential of a person who may do everything in the tenant.
fn by(ask: &Ask, person: &str) -> Ask {
    let mut ask = ask.clone();
    ask.actor.name = person.to_owned();
    ask
}

fn credential_of(administrator: &str) -> Ask {
    let scopes = ["approvals:decide"];
    let body = json!({"kind": "administrator", "administrator": administrator, "scopes": scopes});
    post("/v1/credentials", body)
}

/// Every change that gives the person who asks more votes in a protected group.
fn power_grabs() -> Vec<Ask> {
    vec![
        put("/v1/groups/g/members/administrators/puppet"),
        put("/v1/groups/g/members/agents/a"),
        credential_of("bob"),
        delete("/v1/groups/g/members/administrators/bob"),
        delete("/v1/administrators/bob"),
        post("/v1/groups/g/unprotect", Json::Null),
        delete("/v1/groups/g"),
    ]
}

#[test]
fn one_person_cannot_raise_the_number_of_its_votes_in_a_protected_group() {
    let agent = post("/v1/agents", json!({"agent": "a", "environment": "e"}));
    for (members, needed) in
        [(&["bob"][..], 1), (&["bob", "carl"], 2), (&["ada", "bob", "carl"], 2)]
    {
        for grab in power_grabs() {
            let lasts = members.len() > 1
                || !(grab.method == "DELETE" && grab.path.ends_with("administrators/bob"));
            // This applies to members too, and to the first administrator.
            for person in ["eve", "bob", "ada"] {
                let registry = protected(members);
                registry.ask(&agent).unwrap();
                let before = registry.dump();
                let grab = by(&grab, person);
                let refused = registry.ask(&grab).unwrap_err();
                assert_eq!(registry.dump(), before, "{grab:?} by {person}");
                if !lasts {
                    assert_eq!(refused.code, StateConflict, "{grab:?}: a member must be left");
                    continue;
                }
                assert_eq!(refused.code, ApprovalRequired, "{grab:?} by {person}");
                assert_eq!(refused.detail, format!("g {needed}"), "{grab:?} by {person}");
                let one = registry.ask(&grab.clone().approved("g", &["bob"]));
                assert_eq!(one.is_ok(), needed == 1, "{grab:?} by {person}: {one:?}");
                if needed > 1 {
                    let elsewhere = grab.clone().approved("other", &["bob", "carl"]);
                    assert_eq!(registry.ask(&elsewhere).unwrap_err().code, StateConflict);
                    let answered = registry.ask(&grab.approved("g", &["bob", "carl"])).unwrap();
                    assert!(answered.changed());
                }
                let events = registry.list("/v1/audit-events");
                let used = events.iter().filter(|e| e["detail"]["approval_id"] == "appr_0_1");
                assert_eq!(used.count(), 1, "{events:?}");
            }
        }
    }
}

#[test]
fn what_a_protected_group_does_not_hold_back() {
    let agent = post("/v1/agents", json!({"agent": "a", "environment": "e"}));
    let registry = Registry::new();
    registry.ask(&agent).unwrap();
    for ask in [
        post("/v1/groups", json!({"group": "g"})),
        put("/v1/groups/g/members/agents/a"),
        post("/v1/administrators", json!({"administrator": "bob"})),
        credential_of("bob"),
        put("/v1/groups/g/members/administrators/bob"),
        post("/v1/groups/g/protect", Json::Null),
        // Changes that contain an agent or a leaked credential do not wait for approval.
        delete("/v1/groups/g/members/agents/a"),
        post("/v1/credentials/@0/revoke", Json::Null),
        // A person who is not a member has no vote in the group.
        post("/v1/administrators", json!({"administrator": "eve"})),
        credential_of("eve"),
        // After a rotation, the credential still belongs to the same person.
        by(&post("/v1/credentials/@1/rotate", Json::Null), "eve"),
        delete("/v1/administrators/eve"),
    ] {
        let mut ask = ask;
        ask.actor.scopes = Scope::ALL.to_vec();
        assert!(registry.ask(&ask).unwrap().changed(), "{ask:?}");
    }
}

#[test]
fn only_the_first_administrator_protects_a_group_and_only_one_with_a_member() {
    let registry = Registry::new();
    let protect = post("/v1/groups/g/protect", Json::Null);
    registry.ask(&post("/v1/groups", json!({"group": "g"}))).unwrap();
    registry.ask(&post("/v1/administrators", json!({"administrator": "bob"}))).unwrap();
    assert_eq!(registry.ask(&protect).unwrap_err().code, StateConflict, "without a member");
    registry.ask(&put("/v1/groups/g/members/administrators/bob")).unwrap();
    assert_eq!(registry.ask(&by(&protect, "bob")).unwrap_err().code, Forbidden);
    // This does not work under the first administrator's name either.
    assert_eq!(registry.ask(&by(&credential_of("ada"), "bob")).unwrap_err().code, Forbidden);
    assert!(registry.ask(&credential_of("ada")).unwrap().changed());
    assert!(registry.ask(&protect).unwrap().changed());
    assert_eq!(registry.ask(&by(&protect, "bob")).unwrap().effect, Effect::Unchanged);
}

#[test]
fn nobody_is_issued_or_rotates_a_credential_as_somebody_who_is_not_there() {
    let registry = Registry::new();
    let refused = |ask: &Ask| registry.ask(ask).unwrap_err();
    assert_eq!(refused(&credential_of("bob")).field.as_deref(), Some("administrator"));
    let bob = post("/v1/administrators", json!({"administrator": "bob"}));
    registry.ask(&bob).unwrap();
    let issued = registry.ask(&credential_of("bob")).unwrap().body;
    assert_eq!((&issued["issued_by"], &issued["issuer_key_id"]), (&json!("ada"), &json!("k0")));
    let rotate = post("/v1/credentials/@0/rotate", Json::Null);
    assert_eq!(refused(&rotate).code, Forbidden, "the secret would be somebody else's");
    registry.ask(&by(&rotate, "bob")).unwrap();
    registry.ask(&put("/v1/groups/g/members/administrators/bob")).unwrap_err();
    registry.ask(&delete("/v1/administrators/bob")).unwrap();
    for credential in registry.list("/v1/credentials") {
        assert_eq!(credential["status"], "revoked", "{credential}");
    }
    assert_eq!(refused(&bob).code, NameTaken, "a person's name is given once");
    assert_eq!(refused(&credential_of("bob")).field.as_deref(), Some("administrator"));
}
