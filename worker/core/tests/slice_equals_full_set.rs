//! The slice of a bundle decides exactly as the bundle: the same decision, the same determining
//! policies, the same policies that err. Shown on generated sets of policies, base and overlays
//! of two tenants, over a small universe in which scopes often match.
//!
//! And what a listing leaves out is what no call could do: whatever of a call's context is taken for
//! unknown, a call that passes could be permitted.
//!
//! The full set is parsed from the generated text, without the compiler: what the index, the
//! compiler and the look-up do wrong, they cannot do wrong on both sides.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName,
    EntityUid, Policy, PolicyId, PolicySet, Request, RestrictedExpression,
};
use gateward_core::bundle::PolicyRecord;
use gateward_core::policy::{CallEntities, PolicyEngine, PolicyRequest, Value as CedarValue};
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};

/// Sets of policies; each is asked [`CALLS_PER_SET`] times.
const SETS: u32 = 10_000;
const POLICIES_PER_SET: usize = 8;
const CALLS_PER_SET: usize = 3;

const TENANTS: [&str; 2] = ["t0", "t1"];
/// The last one needs escapes in policy text.
const NAMES: [&str; 3] = ["a", "b", "c\"\\\n\u{e9}"];
const TOOLS: [&str; 3] = ["a/x", "a/y", "b/x"];
const ACTION_GROUPS: [&str; 4] = ["call", "read", "write", "canary"];

/// Entity type and raw id.
type Key = (&'static str, String);

fn keys_of(entity_type: &'static str) -> Vec<Key> {
    match entity_type {
        "Tenant" => TENANTS.map(|tenant| (entity_type, tenant.to_owned())).to_vec(),
        "Action" => TOOLS.iter().chain(&ACTION_GROUPS).map(|id| ("Action", (*id).into())).collect(),
        _ => TENANTS
            .iter()
            .flat_map(|tenant| NAMES.map(|name| (entity_type, format!("{tenant}/{name}"))))
            .collect(),
    }
}

/// Cedar's string escapes are among Rust's.
fn text((entity_type, id): &Key) -> String {
    format!("{entity_type}::{id:?}")
}

fn uid((entity_type, id): &Key) -> EntityUid {
    let type_name: EntityTypeName = entity_type.parse().unwrap();
    EntityUid::from_type_name_and_id(type_name, EntityId::new(id))
}

/// A policy without its id, and where it stands: `None` is base.
#[derive(Debug, Clone)]
struct Generated {
    tenant: Option<&'static str>,
    text: String,
}

impl Generated {
    fn file(&self) -> String {
        self.tenant.map_or("base/x".to_owned(), |tenant| format!("tenants/{tenant}/x"))
    }
}

/// A scope of `variable`, on entities of `own` type in most cases.
fn scope(variable: &'static str, own: &'static str) -> impl Strategy<Value = String> {
    let entity = prop_oneof![
        3 => select(keys_of(own)),
        2 => select(keys_of("Group")),
        2 => select(keys_of("Tenant")),
    ];
    let type_name = prop_oneof![4 => Just(own), 1 => Just("Group"), 1 => Just("Unknown::Type")];
    (0..8_u8, entity, type_name).prop_map(move |(form, entity, type_name)| {
        let entity = text(&entity);
        match form {
            0 | 1 => variable.to_owned(),
            2 | 3 => format!("{variable} == {entity}"),
            4 | 5 => format!("{variable} in {entity}"),
            6 => format!("{variable} is {type_name}"),
            _ => format!("{variable} is {type_name} in {entity}"),
        }
    })
}

fn action_scope() -> impl Strategy<Value = String> {
    let actions = subsequence(keys_of("Action"), 0..4);
    (0..5_u8, select(keys_of("Action")), actions).prop_map(|(form, action, actions)| match form {
        0 => "action".to_owned(),
        1 => format!("action == {}", text(&action)),
        2 | 3 => format!("action in {}", text(&action)),
        _ => format!("action in [{}]", actions.iter().map(text).collect::<Vec<_>>().join(", ")),
    })
}

/// Conditions that hold, do not, or fail, some of them depending on the call.
const CONDITIONS: [&str; 14] = [
    "",
    "",
    "when { context.flag }",
    "unless { context.flag }",
    "when { false }",
    "when { principal.level > 1 }",
    "when { principal in Group::\"t0/a\" }",
    "when { resource in Tenant::\"t1\" }",
    "when { context.missing == 1 }",
    "when { resource.missing }",
    "when { context.flag && context.missing }",
    "unless { context.flag || principal.missing }",
    "when { 9223372036854775807 + context.n > 0 }",
    "when { context.n }",
];

fn policy() -> impl Strategy<Value = Generated> {
    let tenant = prop_oneof![3 => Just(None), 3 => select(TENANTS.map(Some).to_vec())];
    let effect = prop_oneof![2 => Just("permit"), 1 => Just("forbid")];
    let scopes = (scope("principal", "Agent"), action_scope(), scope("resource", "Server"));
    (tenant, effect, scopes, select(CONDITIONS.to_vec())).prop_map(
        |(tenant, effect, (principal, action, resource), condition)| Generated {
            tenant,
            text: format!("{effect} ({principal}, {action}, {resource}) {condition};"),
        },
    )
}

/// A call; ids are those of Cedar's entities.
#[derive(Debug, Clone)]
struct Call {
    tenant: &'static str,
    agent: String,
    groups: Vec<String>,
    tool: &'static str,
    mutates: bool,
    canary: bool,
    server: String,
    level: i64,
    flag: bool,
    n: i64,
}

fn call() -> impl Strategy<Value = Call> {
    let values = (0..4_i64, any::<bool>(), 0..2_i64);
    let agent =
        (select(TENANTS.to_vec()), select(NAMES.to_vec()), subsequence(NAMES.to_vec(), 0..3));
    let tool = (select(TOOLS.to_vec()), any::<bool>(), any::<bool>());
    (agent, tool, select(NAMES.to_vec()), values).prop_map(
        |((tenant, agent, groups), (tool, mutates, canary), server, (level, flag, n))| {
            let own = |name: &str| format!("{tenant}/{name}");
            let groups = groups.into_iter().map(own).collect();
            let (agent, server) = (own(agent), own(server));
            Call { tenant, agent, groups, tool, mutates, canary, server, level, flag, n }
        },
    )
}

impl Call {
    /// As one who uses Cedar alone would ask it.
    fn request(&self) -> (Request, Entities) {
        let entity = |own: &EntityUid, attributes, ancestors: Vec<Key>| {
            let ancestors: HashSet<EntityUid> = ancestors.iter().map(uid).collect();
            Entity::new(own.clone(), attributes, ancestors).unwrap()
        };
        let tenant = ("Tenant", self.tenant.to_owned());
        let mut of_agent: Vec<Key> =
            self.groups.iter().map(|group| ("Group", group.clone())).collect();
        of_agent.push(tenant.clone());
        let mut of_tool = vec![if self.mutates { "write" } else { "read" }, "call"];
        of_tool.extend(self.canary.then_some("canary"));
        let of_tool = of_tool.into_iter().map(|id| ("Action", id.to_owned())).collect();
        let (p, a, r) = (
            uid(&("Agent", self.agent.clone())),
            uid(&("Action", self.tool.to_owned())),
            uid(&("Server", self.server.clone())),
        );
        let level = RestrictedExpression::new_long(self.level);
        let entities = Entities::from_entities(
            [
                entity(&p, HashMap::from([("level".to_owned(), level)]), of_agent),
                entity(&a, HashMap::new(), of_tool),
                entity(&r, HashMap::new(), vec![tenant]),
            ],
            None,
        );
        let context = Context::from_pairs([
            ("flag".to_owned(), RestrictedExpression::new_bool(self.flag)),
            ("n".to_owned(), RestrictedExpression::new_long(self.n)),
        ]);
        (Request::new(p, a, r, context.unwrap(), None).unwrap(), entities.unwrap())
    }

    fn entities(&self) -> CallEntities<'_> {
        CallEntities {
            tenant: self.tenant,
            agent: &self.agent,
            groups: &self.groups,
            tool: self.tool,
            mutates: self.mutates,
            canary: self.canary,
            server: &self.server,
        }
    }
}

/// Decision, determining policies, policies that erred.
type Answer = (Decision, BTreeSet<String>, BTreeSet<String>);

fn decide_by_cedar(call: &Call, policies: &PolicySet) -> Answer {
    let (request, entities) = call.request();
    let response = Authorizer::new().is_authorized(&request, policies, &entities);
    let determining = response.diagnostics().reason().map(ToString::to_string).collect();
    let erring = response.diagnostics().errors().map(|error| match error {
        AuthorizationError::PolicyEvaluationError(error) => error.policy_id().to_string(),
    });
    (response.decision(), determining, erring.collect())
}

fn decide_by_slice(call: &Call, engine: &PolicyEngine) -> Answer {
    let request = PolicyRequest {
        entities: call.entities(),
        agent_attributes: vec![("level", CedarValue::from(call.level))],
        server_attributes: Vec::new(),
        context: vec![("flag", CedarValue::from(call.flag)), ("n", CedarValue::from(call.n))],
    };
    let evaluation = engine.evaluate(request).unwrap();
    let decision = if evaluation.allowed { Decision::Allow } else { Decision::Deny };
    let ids = |records: &[&PolicyRecord]| records.iter().map(|r| r.id.to_owned()).collect();
    (decision, ids(&evaluation.determining), ids(&evaluation.erring))
}

/// Whether a call could be permitted of whose context only the rest is known.
fn could_permit(call: &Call, engine: &PolicyEngine, unknown: &[&'static str]) -> bool {
    let context = [("flag", CedarValue::from(call.flag)), ("n", CedarValue::from(call.n))];
    let context = context.into_iter().filter(|(name, _)| !unknown.contains(name));
    let request = PolicyRequest {
        entities: call.entities(),
        agent_attributes: vec![("level", CedarValue::from(call.level))],
        server_attributes: Vec::new(),
        context: context.collect(),
    };
    engine.could_permit(request, unknown).unwrap()
}

/// What the generated cases must have met, so that they show something.
#[derive(Default)]
struct Seen {
    allowed: Cell<u32>,
    forbidden: Cell<u32>,
    erred: Cell<u32>,
    overlay_determined: Cell<u32>,
    smaller: Cell<u32>,
    impossible: Cell<u32>,
    undecided: Cell<u32>,
}

fn count(cell: &Cell<u32>, met: bool) {
    cell.set(cell.get() + u32::from(met));
}

#[test]
fn a_slice_decides_exactly_as_the_full_set() {
    let seen = Seen::default();
    let sets = prop::collection::vec(policy(), 1..=POLICIES_PER_SET);
    let calls = prop::collection::vec(call(), CALLS_PER_SET);
    let config = Config { cases: SETS, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&(sets, calls), |(generated, calls)| {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let mut parsed = Vec::new();
        for (n, policy) in generated.iter().enumerate() {
            let text = format!("@id(\"p{n}\") {}\n", policy.text);
            let id = PolicyId::new(format!("{}#p{n}", policy.file()));
            parsed.push((policy.tenant, Policy::parse(Some(id), &text).unwrap()));
            files.entry(format!("{}.cedar", policy.file())).or_default().push_str(&text);
        }
        let policies = files.into_iter().map(|(path, text)| SourceFile { path, text }).collect();
        let sources = Sources { policies, ..Sources::default() };
        let bundle = compile_unvalidated(&sources).unwrap().leak();
        prop_assert_eq!(bundle.policies.len(), generated.len());
        let engine = PolicyEngine::new(bundle);

        for call in &calls {
            let full = PolicySet::from_policies(
                parsed
                    .iter()
                    .filter(|(tenant, _)| tenant.is_none_or(|tenant| tenant == call.tenant))
                    .map(|(_, policy)| policy.clone()),
            )
            .unwrap();
            let expected = decide_by_cedar(call, &full);
            prop_assert_eq!(decide_by_slice(call, &engine), expected.clone(), "{:?}", call);

            let (decision, determining, erring) = expected;
            count(&seen.allowed, decision == Decision::Allow);
            count(&seen.forbidden, decision == Decision::Deny && !determining.is_empty());
            count(&seen.erred, !erring.is_empty());
            let of_overlay = determining.iter().any(|id| id.starts_with("tenants/"));
            count(&seen.overlay_determined, of_overlay);
            let passes = decision == Decision::Allow && erring.is_empty();
            for unknown in [&["flag"][..], &["n"], &["flag", "n"]] {
                let could = could_permit(call, &engine, unknown);
                prop_assert!(could || !passes, "{:?} {:?}", unknown, call);
                count(&seen.impossible, !could && !determining.is_empty());
                count(&seen.undecided, could && !passes);
            }
            prop_assert_eq!(could_permit(call, &engine, &[]), passes, "{:?}", call);
            let slice = engine.slice(&call.entities()).unwrap();
            count(&seen.smaller, slice.policies() < full.num_of_policies());
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    for (what, met) in [
        ("allowed", seen.allowed),
        ("forbidden", seen.forbidden),
        ("erred", seen.erred),
        ("determined by an overlay", seen.overlay_determined),
        ("sliced to fewer policies", seen.smaller),
        ("known to be impossible", seen.impossible),
        ("not known to be impossible", seen.undecided),
    ] {
        assert!(met.get() > SETS / 20, "only {} calls were {what}", met.get());
    }
}
