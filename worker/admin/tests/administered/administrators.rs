//! Who administers a tenant: what an administrator can grant, the last administrator, and the votes in a protected
//! group.

use gateward_admin::Actor;
use gateward_core::id::rfc3339;
use gateward_core::problem::ProblemCode::{
    AlreadyBootstrapped, ApprovalRequired, Forbidden, InvalidField, LastAdministrator,
    MalformedRequest, NameTaken, StateConflict,
};
use gateward_core::scope::Scope;
use serde_json::{Value as Json, json};

use super::PEOPLE;
use crate::support::registry::{Ask, Effect, Registry, delete, get, post, put};
use crate::support::{START_MS, TENANT, with};

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
