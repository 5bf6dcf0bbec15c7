//! The policy step against the number of policies, warm and at a bundle's first evaluation.

use std::cell::Cell;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::OnceLock;

use gateward_core::policy::bundle::Bundle;
use gateward_core::policy::{CallEntities, Evaluation, PolicyEngine, PolicyRequest, Value};
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
use serde_json::json;

use crate::operation::{GATEWARD, Operation};
use crate::plain_cedar::{self, PLAIN_CEDAR, Plain};

const SIZES: [usize; 4] = [10, 100, 1_000, 10_000];
const COLD_SIZES: [usize; 3] = [10, 1_000, 10_000];

const LARGEST: usize = 10_000;

/// Policies that match the call, for every size of the bundle. One of them permits it.
const MATCHING: usize = 10;

pub fn operations() -> Vec<Operation> {
    let eval = SIZES.into_iter().flat_map(|count| {
        let name = format!("policy_eval_{count}_policies");
        [
            Operation::new(name.clone(), GATEWARD, move || {
                let engine = PolicyEngine::new(generated(count));
                assert_permitted(&evaluate(&engine));
                move || evaluate(&engine)
            }),
            Operation::new(name.clone(), PLAIN_CEDAR, move || {
                let plain = Plain::new(generated(count));
                let run = move || plain.authorize(plain_request(black_box(1)));
                let evaluation = evaluate(&PolicyEngine::new(generated(count)));
                plain_cedar::assert_same(&name, &run(), &evaluation);
                run
            }),
        ]
    });
    // The first evaluation of an isolate: no policy was decoded before. Each run needs a new
    // engine, because an engine keeps what it decoded.
    let cold = COLD_SIZES.into_iter().map(|count| {
        Operation::new(format!("bundle_cold_start_{count}"), GATEWARD, move || {
            let bundle = generated(count);
            let run = move || evaluate(&PolicyEngine::new(black_box(bundle)));
            assert_permitted(&run());
            run
        })
    });
    // Scopes that were never evaluated together. Each run is of another agent on another server, so
    // no slice is found. No policy permits these calls.
    let new_slice = Operation::new("policy_eval_10000_policies_new_slice", GATEWARD, || {
        let engine = PolicyEngine::new(generated(LARGEST));
        let next = Cell::new(0);
        let run = move || {
            let at = next.replace(next.get() + 1);
            let (agent, server) = (1 + at % (LARGEST - 1), (at * 7 + at / LARGEST) % LARGEST);
            let (agent, server) = (format!("t/a{agent}"), format!("t/s{server}"));
            let entities = CallEntities { agent: &agent, server: &server, ..CALL };
            engine.evaluate(request(entities, black_box(1))).unwrap()
        };
        let evaluation = run();
        assert!(!evaluation.allowed && evaluation.erring.is_empty());
        run
    });
    eval.chain(cold).chain([new_slice]).collect()
}

fn assert_permitted(evaluation: &Evaluation) {
    assert!(evaluation.allowed && evaluation.erring.is_empty());
    assert_eq!(evaluation.determining.len(), 1);
}

/// A bundle of `count` policies, compiled once.
fn generated(count: usize) -> &'static Bundle {
    static BUNDLES: [OnceLock<&Bundle>; SIZES.len()] = [const { OnceLock::new() }; SIZES.len()];
    let at = SIZES.iter().position(|size| *size == count).unwrap();
    BUNDLES[at].get_or_init(|| {
        let file = SourceFile { path: "base/bench.cedar".to_owned(), text: policies(count) };
        let sources = Sources { policies: vec![file], ..Sources::default() };
        let bundle = compile_unvalidated(&sources).unwrap().leak();
        assert_eq!(bundle.policies.len(), count);
        bundle
    })
}

/// Policies spread over agents, tools and servers. [`MATCHING`] of them, evenly among the others,
/// have scopes that match the call: one by agent and tool, four by tenant and kind of tool, five
/// by server. The conditions of all but the first are false.
fn policies(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let (scope, n) = match (at % (count / MATCHING), at / (count / MATCHING)) {
            (0, 0) => {
                ("principal == Agent::\"t/a0\", action == Action::\"s0/x\", resource".to_owned(), 1)
            }
            (0, 1..5) => {
                ("principal in Tenant::\"t\", action in Action::\"read\", resource".to_owned(), 2)
            }
            (0, _) => ("principal, action, resource == Server::\"t/s0\"".to_owned(), 3),
            _ => (
                format!(
                    "principal == Agent::\"t/a{at}\", action == Action::\"s{}/x\", \
                     resource == Server::\"t/s{at}\"",
                    at % 97
                ),
                1,
            ),
        };
        writeln!(text, "@id(\"p{at}\") permit ({scope}) when {{ context.n == {n} }};").unwrap();
    }
    text
}

fn evaluate(engine: &PolicyEngine) -> Evaluation {
    engine.evaluate(request(CALL, black_box(1))).unwrap()
}

const CALL: CallEntities<'_> = CallEntities {
    tenant: "t",
    agent: "t/a0",
    groups: &[],
    tool: "s0/x",
    mutates: false,
    egress: false,
    canary: false,
    server: "t/s0",
};

fn request(entities: CallEntities<'_>, n: i64) -> PolicyRequest<'_> {
    PolicyRequest {
        entities,
        agent_attributes: Vec::new(),
        server_attributes: Vec::new(),
        context: vec![("n", Value::from(n))],
    }
}

fn plain_request(n: i64) -> plain_cedar::Request {
    let tenant = json!({"type": "Tenant", "id": "t"});
    let kinds = json!([{"type": "Action", "id": "read"}, {"type": "Action", "id": "call"}]);
    plain_cedar::Request {
        principal: "Agent::\"t/a0\"".to_owned(),
        action: "Action::\"s0/x\"".to_owned(),
        resource: "Server::\"t/s0\"".to_owned(),
        context: json!({"n": n}),
        entities: json!([
            {"uid": {"type": "Agent", "id": "t/a0"}, "attrs": {}, "parents": [tenant]},
            {"uid": {"type": "Action", "id": "s0/x"}, "attrs": {}, "parents": kinds},
            {"uid": {"type": "Server", "id": "t/s0"}, "attrs": {}, "parents": [tenant]},
        ]),
    }
}
