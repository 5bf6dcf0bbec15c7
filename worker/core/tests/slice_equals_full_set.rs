//! A slice of a bundle decides exactly as the whole bundle: the same decision, the same determining
//! policies, and the same policies that fail. The tests use generated sets of policies, base and
//! overlays of two tenants, over few entities, so that scopes often match.
//!
//! Some conditions test the ancestors of an entity that they name. The full set is evaluated with a store of all
//! entities.
//!
//! A listing leaves out only tools whose calls cannot pass: whichever part of a call's context is unknown, a call that
//! passes counts as one that could be permitted.
//!
//! The full set is parsed from the generated text, without the compiler. So a mistake in the index,
//! the compiler or the lookup cannot occur on both sides.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, in its helpers too"
)]

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Entities, Entity, EntityId, EntityTypeName,
    EntityUid, Policy, PolicyId, PolicySet, Request, RestrictedExpression,
};
use gateward_core::json;
use gateward_core::policy::bundle::PolicyRecord;
use gateward_core::policy::input::convert;
use gateward_core::policy::{CallEntities, PolicyEngine, PolicyRequest, Value as CedarValue};
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, TestRunner};

/// Sets of policies. Each is evaluated for [`CALLS_PER_SET`] calls.
const SETS: u32 = 10_000;
/// The processors of a small machine. Each thread takes a part of the sets.
const THREADS: u32 = 2;
const POLICIES_PER_SET: usize = 8;
const CALLS_PER_SET: usize = 3;

const TENANTS: [&str; 2] = ["t0", "t1"];
/// The last one needs escapes in policy text.
const NAMES: [&str; 3] = ["a", "b", "c\"\\\n\u{e9}"];
const TOOLS: [&str; 3] = ["a/x", "a/y", "b/x"];
const TYPES: [&str; 5] = ["Tenant", "Action", "Agent", "Group", "Server"];
const ACTION_GROUPS: [&str; 5] = ["call", "read", "write", "egress", "canary"];

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

/// A policy without its id, and where it is: `None` is base.
#[derive(Debug, Clone)]
struct Generated {
    tenant: Option<&'static str>,
    text: String,
    /// Whether its condition tests the ancestors of an entity that it names.
    names: bool,
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

/// Conditions that are true, false or fail. Some depend on the call.
const CONDITIONS: [&str; 18] = [
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
    "when { context.amount.lessThan(decimal(\"5.0\")) }",
    "unless { context.amount.greaterThanOrEqual(decimal(\"5.0\")) && context.flag }",
    "when { context has n && [context].contains(context) }",
    "unless { context has missing || context has \"missing too\" }",
];

/// The name of an entity that is not the call's says which entities it is in. The build refuses other conditions.
fn is_told_by_names(left: &Key, right: &Key) -> bool {
    let is_tool = left.0 == "Action" && TOOLS.contains(&left.1.as_str());
    let kinds = ["read", "write", "egress", "canary"];
    let is_kind = right.0 == "Action" && kinds.contains(&right.1.as_str());
    let is_membership = left.0 == "Agent" && right.0 == "Group";
    !(is_membership || is_tool && is_kind)
}

/// Conditions on entities that they name, some together with the call's entities.
fn condition_on_names() -> impl Strategy<Value = String> {
    let all: Vec<Key> = TYPES.into_iter().flat_map(keys_of).collect();
    let pairs: Vec<(Key, Key)> = all
        .iter()
        .flat_map(|left| all.iter().map(move |right| (left.clone(), right.clone())))
        .filter(|(left, right)| is_told_by_names(left, right))
        .collect();
    let variable = select(vec!["principal", "action", "resource"]);
    (select(vec!["when", "unless"]), 0..8_u8, select(pairs), variable).prop_map(
        |(keyword, form, (left, right), variable)| {
            let (entity_type, left, right) = (left.0, text(&left), text(&right));
            let condition = match form {
                0..3 => format!("{left} in {right}"),
                3 => format!("{left} is {entity_type} in {right}"),
                4 => format!("{left} in [{variable}, {right}]"),
                5 => format!("context.flag && {left} in {right}"),
                6 => format!("(if context.flag then {variable} else {left}) in {right}"),
                _ => format!("{left} in (if context.flag then {right} else {variable})"),
            };
            format!("{keyword} {{ {condition} }}")
        },
    )
}

fn policy() -> impl Strategy<Value = Generated> {
    let tenant = prop_oneof![3 => Just(None), 3 => select(TENANTS.map(Some).to_vec())];
    let effect = prop_oneof![2 => Just("permit"), 1 => Just("forbid")];
    let scopes = (scope("principal", "Agent"), action_scope(), scope("resource", "Server"));
    let condition = prop_oneof![
        3 => select(CONDITIONS.to_vec()).prop_map(|text| (text.to_owned(), false)),
        1 => condition_on_names().prop_map(|text| (text, true)),
    ];
    (tenant, effect, scopes, condition).prop_map(
        |(tenant, effect, (principal, action, resource), (condition, names))| Generated {
            tenant,
            text: format!("{effect} ({principal}, {action}, {resource}) {condition};"),
            names,
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
    egress: bool,
    canary: bool,
    server: String,
    level: i64,
    flag: bool,
    n: i64,
    amount: &'static str,
}

fn call() -> impl Strategy<Value = Call> {
    let values = (0..4_i64, any::<bool>(), 0..2_i64, select(vec!["4.9999", "5.0001"]));
    let agent =
        (select(TENANTS.to_vec()), select(NAMES.to_vec()), subsequence(NAMES.to_vec(), 0..3));
    let tool = (select(TOOLS.to_vec()), any::<[bool; 3]>());
    (agent, tool, select(NAMES.to_vec()), values).prop_map(
        |(
            (tenant, agent, groups),
            (tool, [mutates, egress, canary]),
            server,
            (level, flag, n, amount),
        )| {
            let own = |name: &str| format!("{tenant}/{name}");
            let groups = groups.into_iter().map(own).collect();
            let (agent, server) = (own(agent), own(server));
            Call {
                tenant,
                agent,
                groups,
                tool,
                mutates,
                egress,
                canary,
                server,
                level,
                flag,
                n,
                amount,
            }
        },
    )
}

/// The parents of an entity that is not the call's. For other agents and tools: possible ones.
fn parents((entity_type, id): &Key) -> Vec<Key> {
    let tenant = || ("Tenant", id.split_once('/').unwrap().0.to_owned());
    match (*entity_type, id.as_str()) {
        ("Tenant", _) | ("Action", "call") => Vec::new(),
        ("Action", "read" | "write" | "egress" | "canary") => vec![("Action", "call".to_owned())],
        ("Action", _) => vec![("Action", "write".to_owned())],
        ("Agent", _) => vec![("Group", format!("{}/a", tenant().1)), tenant()],
        _ => vec![tenant()],
    }
}

fn decimal(text: &str) -> CedarValue {
    convert(&json::parse(text.as_bytes()).unwrap(), None).unwrap()
}

impl Call {
    /// The way to use Cedar alone: with every entity.
    fn request(&self) -> (Request, Entities) {
        let own = [
            ("Agent", self.agent.clone()),
            ("Action", self.tool.to_owned()),
            ("Server", self.server.clone()),
        ];
        let entities = TYPES.into_iter().flat_map(keys_of).map(|key| {
            let parents = if own.contains(&key) { self.parents(key.0) } else { parents(&key) };
            let parents: HashSet<EntityUid> = parents.iter().map(uid).collect();
            let level = RestrictedExpression::new_long(self.level);
            let level = (key == own[0]).then(|| ("level".to_owned(), level));
            Entity::new(uid(&key), level.into_iter().collect(), parents).unwrap()
        });
        let entities = Entities::from_entities(entities, None);
        let context = Context::from_pairs([
            ("flag".to_owned(), RestrictedExpression::new_bool(self.flag)),
            ("n".to_owned(), RestrictedExpression::new_long(self.n)),
            ("amount".to_owned(), RestrictedExpression::new_decimal(self.amount)),
        ]);
        let [p, a, r] = own.each_ref().map(uid);
        (Request::new(p, a, r, context.unwrap(), None).unwrap(), entities.unwrap())
    }

    /// The parents of the call's own entity of this type.
    fn parents(&self, entity_type: &str) -> Vec<Key> {
        let tenant = ("Tenant", self.tenant.to_owned());
        match entity_type {
            "Agent" => {
                let groups = self.groups.iter().map(|group| ("Group", group.clone()));
                groups.chain([tenant]).collect()
            }
            "Action" => {
                let kind = if self.mutates || self.egress { "write" } else { "read" };
                let egress = self.egress.then_some("egress");
                let canary = self.canary.then_some("canary");
                [kind]
                    .into_iter()
                    .chain(egress)
                    .chain(canary)
                    .map(|id| ("Action", id.to_owned()))
                    .collect()
            }
            _ => vec![tenant],
        }
    }

    fn context(&self) -> Vec<(&'static str, CedarValue)> {
        vec![
            ("flag", CedarValue::from(self.flag)),
            ("n", CedarValue::from(self.n)),
            ("amount", decimal(self.amount)),
        ]
    }

    fn entities(&self) -> CallEntities<'_> {
        CallEntities {
            tenant: self.tenant,
            agent: &self.agent,
            groups: &self.groups,
            tool: self.tool,
            mutates: self.mutates,
            egress: self.egress,
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
        context: call.context(),
    };
    let evaluation = engine.evaluate(request).unwrap();
    let decision = if evaluation.allowed { Decision::Allow } else { Decision::Deny };
    let ids = |records: &[&PolicyRecord]| records.iter().map(|r| r.id.to_owned()).collect();
    (decision, ids(&evaluation.determining), ids(&evaluation.erring))
}

/// Whether a call could be permitted if only the rest of its context is known.
fn could_permit(call: &Call, engine: &PolicyEngine, unknown: &[&'static str]) -> bool {
    let context = call.context().into_iter().filter(|(name, _)| !unknown.contains(name));
    let request = PolicyRequest {
        entities: call.entities(),
        agent_attributes: vec![("level", CedarValue::from(call.level))],
        server_attributes: Vec::new(),
        context: context.collect(),
    };
    engine.could_permit(request, &[Vec::new()], unknown).unwrap()
}

/// The situations that the generated cases must contain, so that the test means something.
#[derive(Default)]
struct Seen {
    allowed: AtomicU32,
    forbidden: AtomicU32,
    erred: AtomicU32,
    overlay_determined: AtomicU32,
    determined_by_names: AtomicU32,
    smaller: AtomicU32,
    impossible: AtomicU32,
    undecided: AtomicU32,
}

fn count(counter: &AtomicU32, met: bool) {
    counter.fetch_add(u32::from(met), Relaxed);
}

#[test]
fn a_slice_decides_exactly_as_the_full_set() {
    let seen = Seen::default();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| decide_both_ways(&seen));
        }
    });
    for (what, met) in [
        ("allowed", seen.allowed),
        ("forbidden", seen.forbidden),
        ("erred", seen.erred),
        ("determined by an overlay", seen.overlay_determined),
        ("determined by a condition on names", seen.determined_by_names),
        ("sliced to fewer policies", seen.smaller),
        ("known to be impossible", seen.impossible),
        ("not known to be impossible", seen.undecided),
    ] {
        let met = met.into_inner();
        assert!(met > SETS / 20, "only {met} calls were {what}");
    }
}

/// Decides random calls by random sets of policies.
fn decide_both_ways(seen: &Seen) {
    let sets = prop::collection::vec(policy(), 1..=POLICIES_PER_SET);
    let calls = prop::collection::vec(call(), CALLS_PER_SET);
    let config = Config { cases: SETS / THREADS, failure_persistence: None, ..Config::default() };
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
            let names = |id: &String| {
                let position = id.split_once("#p").unwrap().1;
                generated[position.parse::<usize>().unwrap()].names
            };
            count(&seen.determined_by_names, determining.iter().any(names));
            let passes = decision == Decision::Allow && erring.is_empty();
            for unknown in [&["flag"][..], &["n"], &["flag", "n"], &["amount"], &["n", "amount"]] {
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
    result.map_err(|error| error.to_string()).unwrap();
}

fn engine(text: &str) -> PolicyEngine {
    let file = SourceFile { path: "base/x.cedar".to_owned(), text: text.to_owned() };
    let sources = Sources { policies: vec![file], ..Sources::default() };
    PolicyEngine::new(compile_unvalidated(&sources).unwrap().leak())
}

fn coder(context: Vec<(&'static str, CedarValue)>) -> PolicyRequest<'static> {
    let entities = CallEntities {
        tenant: "demo",
        agent: "demo/coder",
        groups: &[],
        tool: "crm/refund",
        mutates: true,
        egress: false,
        canary: false,
        server: "demo/crm",
    };
    PolicyRequest { entities, agent_attributes: vec![], server_attributes: vec![], context }
}

/// Regression: a named entity had no ancestors, so these forbids never applied.
#[test]
fn a_condition_on_named_entities_is_as_with_all_entities() {
    for (condition, expected) in [
        (r#"Action::"read" in Action::"call""#, true),
        (r#"Action::"canary" in Action::"call""#, true),
        (r#"Action::"read" in Action::"write""#, false),
        (r#"Action::"call" in Action::"read""#, false),
        (r#"Action::"git/merge" in Action::"call""#, true),
        (r#"Action::"git/merge" in action"#, false),
        (r#"Action::"crm/refund" in action"#, true),
        (r#"Group::"demo/support" in Tenant::"demo""#, true),
        (r#"Group::"demo/support" in Tenant::"other""#, false),
        (r#"Group::"demo/support" in [Tenant::"other", Tenant::"demo"]"#, true),
        (r#"Group::"demo/support" is Group in Tenant::"demo""#, true),
        (r#"Group::"demo/support" is Agent in Tenant::"demo""#, false),
        (r#"Server::"demo/github" in Tenant::"demo""#, true),
        (r#"Server::"other/crm" in Tenant::"demo""#, false),
        (r#"Agent::"demo/other" in Tenant::"demo""#, true),
        (r#"Agent::"demo/coder" in Tenant::"demo""#, true),
        (r#"Agent::"demo/coder" in principal"#, true),
        (r#"Tenant::"demo" in Tenant::"demo""#, true),
        (r#"Tenant::"demo" in Tenant::"other""#, false),
        (r#"(if context.flag then Group::"demo/a" else principal) in Tenant::"demo""#, true),
        (r#"(if context.flag then Group::"other/a" else principal) in Tenant::"demo""#, false),
        (r#"resource in Tenant::"demo""#, true),
        (r#"Group::"demo/a" == Group::"demo/a""#, true),
    ] {
        for (text, allowed) in [
            (format!("permit (principal, action, resource) when {{ {condition} }};"), expected),
            (format!("permit (principal, action, resource) unless {{ {condition} }};"), !expected),
            (
                format!(
                    "permit (principal, action, resource); @id(\"q\")
                     forbid (principal, action, resource) when {{ {condition} }};"
                ),
                !expected,
            ),
            (
                format!(
                    "permit (principal, action, resource); @id(\"q\")
                     forbid (principal, action, resource) unless {{ {condition} }};"
                ),
                expected,
            ),
        ] {
            let engine = engine(&format!("@id(\"p\") {text}"));
            let context = vec![("flag", CedarValue::from(true))];
            let evaluation = engine.evaluate(coder(context.clone())).unwrap();
            assert_eq!((evaluation.allowed, evaluation.erring.len()), (allowed, 0), "{text}");
            assert_eq!(
                engine.could_permit(coder(context), &[Vec::new()], &["n"]),
                Ok(allowed),
                "{text}"
            );
        }
    }
}

/// Regression: a decimal among the known fields made all of them unknown.
#[test]
fn a_listing_knows_a_decimal_and_the_fields_beside_it() {
    for (policies, amount, expected) in [
        (
            r#"permit (principal, action, resource)
            when { context.input.amount.lessThan(decimal("5.0")) };"#,
            "4.9999",
            true,
        ),
        (
            r#"permit (principal, action, resource)
            when { context.input.amount.lessThan(decimal("5.0")) };"#,
            "5.0001",
            false,
        ),
        (
            r#"permit (principal, action, resource); @id("q") forbid (principal, action, resource)
            when { context.input.amount.greaterThan(decimal("5.0")) };"#,
            "4.9999",
            true,
        ),
        (
            r#"permit (principal, action, resource); @id("q") forbid (principal, action, resource)
            when { context.input.amount.greaterThan(decimal("5.0")) };"#,
            "5.0001",
            false,
        ),
        (
            r#"permit (principal, action, resource)
            when { context.resource == "a" && context has input && context.input has amount };"#,
            "5.0001",
            true,
        ),
        (
            r#"permit (principal, action, resource) when { context.resource == "b" };"#,
            "5.0001",
            false,
        ),
        (
            r#"permit (principal, action, resource)
            when { context.input.amount == decimal("5.0001") && context.resource == "b" };"#,
            "5.0001",
            false,
        ),
        (
            r#"permit (principal, action, resource)
            when { context.input.amount == decimal("5.0001") && context.flag };"#,
            "4.9999",
            false,
        ),
        // Depends on what is not known.
        (
            r#"permit (principal, action, resource)
            when { context.input.amount == decimal("5.0001") && context.flag };"#,
            "5.0001",
            true,
        ),
        (
            r#"permit (principal, action, resource) when { context.input.missing };"#,
            "5.0001",
            false,
        ),
        (
            r#"permit (principal, action, resource) unless { [context].contains(context.input) };"#,
            "5.0001",
            true,
        ),
    ] {
        let engine = engine(&format!("@id(\"p\") {policies}"));
        let input = json::parse(format!(r#"{{"amount": {amount}}}"#).as_bytes()).unwrap();
        let known =
            vec![("input", convert(&input, None).unwrap()), ("resource", CedarValue::from("a"))];
        let could = engine.could_permit(coder(known.clone()), &[Vec::new()], &["flag"]);
        assert_eq!(could, Ok(expected), "{amount} {policies}");

        // If nothing is unknown, this is the call's own evaluation. Regression: this broke an
        // invariant that Cedar's debug builds check.
        let call = [known, vec![("flag", CedarValue::from(true))]].concat();
        let evaluation = engine.evaluate(coder(call.clone())).unwrap();
        let passes = evaluation.allowed && evaluation.erring.is_empty();
        assert_eq!(passes, expected, "{amount} {policies}");
        assert_eq!(
            engine.could_permit(coder(call), &[Vec::new()], &[]),
            Ok(passes),
            "{amount} {policies}"
        );
    }
}
