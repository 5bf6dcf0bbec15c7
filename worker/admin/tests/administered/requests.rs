//! Random requests.

use gateward_core::id::rfc3339;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{
    AGENTS, DAY_S, GROUPS, KEYS, LISTED, PEOPLE, ROOTS, SERVERS, TOOLS, list_of, take_list,
};
use crate::support::registry::{Ask, delete, patch, post, put};
use crate::support::with;

/// A request of a random history, and the seconds that pass before it.
pub type Step = (u64, Ask);

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

pub fn step() -> impl Strategy<Value = Step> {
    let wait = prop::sample::select(vec![1, 60, DAY_S, 100 * DAY_S]);
    (prop_oneof![9 => Just(0), 1 => wait], ask())
}

/// One of each thing, so that a short history soon finds something to change.
pub fn one_of_each() -> impl Iterator<Item = Step> {
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
pub fn dated(mut ask: Ask, now_ms: u64) -> Ask {
    if let Some(at) = ask.body.get_mut("expires_at")
        && let Some(seconds) = at.as_u64()
    {
        *at = json!(rfc3339(now_ms + seconds * 1_000));
    }
    ask
}
