//! The policy step against the number of policies, and plain Cedar on the same request: ids
//! parsed, context from JSON, the whole set evaluated.

#![allow(clippy::unwrap_used, missing_docs, reason = "benches only")]

use std::fmt::Write as _;
use std::hint::black_box;

use cedar_policy::{Authorizer, Context, Decision, Entities, EntityUid, PolicySet, Request};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use gateward_core::policy::{CallEntities, PolicyEngine, PolicyRequest, Value};
use gateward_policy_compiler::{SourceFile, Sources, compile_unvalidated};
use serde_json::json;

/// Policies spread over agents, tools and servers: each call matches ten of them, however many
/// there are, one of which permits it.
fn policies(count: usize) -> String {
    let mut text = String::new();
    for at in 0..count {
        let (scope, condition) = match at {
            0 => (
                "principal == Agent::\"t/a0\", action == Action::\"s0/x\", resource".to_owned(),
                "context.n == 1",
            ),
            1..5 => (
                "principal in Tenant::\"t\", action in Action::\"read\", resource".to_owned(),
                "context.n == 2",
            ),
            5..10 => {
                ("principal, action, resource == Server::\"t/s0\"".to_owned(), "context.n == 3")
            }
            _ => (
                format!(
                    "principal == Agent::\"t/a{at}\", action == Action::\"s{}/x\", resource == Server::\"t/s{at}\"",
                    at % 97
                ),
                "context.n == 1",
            ),
        };
        writeln!(text, "@id(\"p{at}\") permit ({scope}) when {{ {condition} }};").unwrap();
    }
    text
}

fn policy_eval(c: &mut Criterion) {
    let mut group = c.benchmark_group("policy_eval");
    for count in [10, 100, 1_000, 10_000] {
        let text = policies(count);
        let file = SourceFile { path: "base/bench.cedar".to_owned(), text: text.clone() };
        let sources = Sources { policies: vec![file], ..Sources::default() };
        let engine = PolicyEngine::new(compile_unvalidated(&sources).unwrap().leak());
        let run = || {
            let entities = CallEntities {
                tenant: "t",
                agent: "t/a0",
                groups: &[],
                tool: "s0/x",
                mutates: false,
                canary: false,
                server: "t/s0",
            };
            let request = PolicyRequest {
                entities,
                agent_attributes: Vec::new(),
                server_attributes: Vec::new(),
                context: vec![("n", Value::from(black_box(1_i64)))],
            };
            engine.evaluate(request).unwrap()
        };
        let evaluation = run();
        assert!(evaluation.allowed && evaluation.determining.len() == 1);
        group.bench_function(BenchmarkId::new("gateward", count), |b| b.iter(run));

        let set: PolicySet = text.parse().unwrap();
        let entities = json!([
            {"uid": {"type": "Agent", "id": "t/a0"}, "attrs": {}, "parents": [{"type": "Tenant", "id": "t"}]},
            {"uid": {"type": "Server", "id": "t/s0"}, "attrs": {}, "parents": [{"type": "Tenant", "id": "t"}]},
            {"uid": {"type": "Action", "id": "s0/x"}, "attrs": {}, "parents": [{"type": "Action", "id": "read"}]},
        ]);
        let entities = Entities::from_json_value(entities, None).unwrap();
        let authorizer = Authorizer::new();
        let plain = || {
            let uid = |text: &str| -> EntityUid { black_box(text).parse().unwrap() };
            let context = Context::from_json_value(json!({"n": black_box(1)}), None).unwrap();
            let (p, a, r) =
                (uid("Agent::\"t/a0\""), uid("Action::\"s0/x\""), uid("Server::\"t/s0\""));
            let request = Request::new(p, a, r, context, None).unwrap();
            authorizer.is_authorized(&request, &set, &entities).decision()
        };
        assert_eq!(plain(), Decision::Allow);
        group.bench_function(BenchmarkId::new("plain_cedar", count), |b| b.iter(plain));
    }
    group.finish();
}

criterion_group!(benches, policy_eval);
criterion_main!(benches);
