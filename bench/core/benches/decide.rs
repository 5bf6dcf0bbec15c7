//! Deciding a call: every outcome that policies have, what is refused before any policy, and the
//! parts of the way. Each bench checks first that it times what its name says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "benches only")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use gateward_core::call::{self, ToolCall};
use gateward_core::command::GateCommand;
use gateward_core::config::Config;
use gateward_core::gate::{AgentState, ChainHead, Facts, Step, decide};
use gateward_core::json as gate_json;
use gateward_core::policy::PolicyEngine;
use gateward_core::receipt::GENESIS;
use gateward_core::registry::Records;
use gateward_core::token::{self, MacKeys, TokenError, secret_hash};
use serde_json::{Value, json};

const TENANT: &str = "demo";
const SECRET: &str = "0123456789012345678901234567890123456789012";
const NOW_MS: u64 = 1_795_000_000_000;

/// A call of the demo's agent, as JSON.
fn body(tool: &str, action: &str, trust: &str, sensitive: bool, parameters: &Value) -> String {
    json!({
        "agent": {"id": "coder", "environment": "production"},
        "tool_call": {"tool": tool, "action": action, "mutates_state": false, "parameters": parameters},
        "context": {"source_trust": trust, "contains_sensitive_data": sensitive},
    })
    .to_string()
}

fn command(call: ToolCall) -> GateCommand {
    GateCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        key_id: "k1".to_owned(),
        secret_hash: secret_hash(SECRET),
        http_request_id: "bench".to_owned(),
        call,
    }
}

/// The demo's registry, with the tool as the bundle describes it.
fn records(engine: &PolicyEngine, call: &ToolCall) -> Records {
    let tool = engine.tool(&format!("{}/{}", call.server, call.tool)).map(|tool| {
        let (mutates, canary) = (u8::from(tool.mutates), u8::from(tool.canary));
        json!({"status": "active", "mutates": mutates, "risk": tool.risk, "canary": canary})
    });
    serde_json::from_value(json!({
        "tenant": {"status": "active", "epoch": 1},
        "agent": {
            "lane": 0, "status": "active", "environment": "production", "risk_tier": "low",
            "groups": ["engineering"], "rate_capacity": null, "rate_refill_per_s": null,
            "quota_per_day": null,
        },
        "credential": {
            "agent": "coder", "secret_sha256": hex::encode(secret_hash(SECRET)),
            "scopes": ["tools:read", "tools:write"], "max_source_trust": "trusted_internal_signed",
            "status": "active", "expires_at_ms": null,
        },
        "server": {"kind": "mcp", "trust": "trusted", "status": "active"},
        "tool": tool,
    }))
    .unwrap()
}

fn config() -> Config {
    Config::read(|_| Some("1000".to_owned())).unwrap()
}

fn decide_outcomes(c: &mut Criterion) {
    let merge = |base: &str| json!({"repo": "acme/shop", "number": 42, "base": base});
    let signed = "trusted_internal_signed";
    let cases = [
        (
            "decide_allow_read",
            "github",
            "list_issues",
            signed,
            false,
            json!({"repo": "acme/shop"}),
            "policy_allow",
        ),
        (
            "decide_allow_write",
            "github",
            "merge_pull_request",
            signed,
            false,
            merge("dev"),
            "policy_allow",
        ),
        (
            "decide_deny_policy",
            "github",
            "merge_pull_request",
            "untrusted_external",
            false,
            merge("main"),
            "policy_forbid",
        ),
        (
            "decide_require_approval",
            "github",
            "merge_pull_request",
            signed,
            false,
            merge("main"),
            "policy_require_approval",
        ),
        (
            "decide_redact",
            "crm",
            "get_customer",
            signed,
            true,
            json!({"customer_id": "c-1"}),
            "policy_redact",
        ),
        ("deny_unknown_tool", "github", "no_such_tool", signed, false, json!({}), "tool_unknown"),
    ];
    let (engine, config) = (PolicyEngine::new(gateward_policies::bundle()), config());
    let (agent, head) = (AgentState::default(), ChainHead { seq: 0, hash: GENESIS.to_owned() });
    for (name, server, tool, trust, sensitive, parameters, expected) in cases {
        let text = body(server, tool, trust, sensitive, &parameters);
        let command = command(call::parse(text.as_bytes(), TENANT).unwrap());
        let records = records(&engine, &command.call);
        let run = || -> Step {
            let facts = Facts {
                now_ms: NOW_MS,
                config: &config,
                records: &records,
                agent: &agent,
                head: &head,
                stored: None,
                nonce_used: false,
                journal_rows: 0,
                storage_full: false,
            };
            decide(&engine, black_box(&facts), black_box(&command))
        };
        let answer: Value = serde_json::from_str(&run().reply.body).unwrap();
        assert_eq!(answer["reason_code"], expected, "{name}");
        c.bench_function(name, |b| b.iter(run));
    }
}

fn credentials(c: &mut Criterion) {
    let keys = MacKeys::new("0123456789abcdef0123456789abcdef", None).unwrap();
    let forged = format!("gw_demo.coder.0.k1.{SECRET}.AAAAAAAAAAA");
    let cases = [
        ("deny_malformed_token", "not-a-credential".repeat(8), TokenError::Malformed),
        ("deny_forged_token", forged, TokenError::Forged),
    ];
    for (name, text, expected) in cases {
        assert_eq!(token::parse(&text, &keys), Err(expected), "{name}");
        c.bench_function(name, |b| b.iter(|| token::parse(black_box(&text), &keys).is_ok()));
    }
}

fn parts(c: &mut Criterion) {
    let merge = json!({"repo": "acme/shop", "number": 42, "base": "main"});
    let text = body("github", "merge_pull_request", "trusted_internal_signed", false, &merge);
    assert!(call::parse(text.as_bytes(), TENANT).is_ok());
    c.bench_function("parse_request", |b| {
        b.iter(|| call::parse(black_box(text.as_bytes()), TENANT))
    });

    let command = command(call::parse(text.as_bytes(), TENANT).unwrap());
    let bytes = command.encode();
    assert_eq!(GateCommand::decode(&bytes).as_ref(), Some(&command));
    c.bench_function("encode_command", |b| b.iter(|| black_box(&command).encode()));
    c.bench_function("decode_command", |b| b.iter(|| GateCommand::decode(black_box(&bytes))));

    let nested =
        (0..8).fold(json!({"leaf": 1}), |inner, at| json!({"b": inner, "a": at, "\u{e9}": "x"}));
    let shapes = [
        ("canonicalize_flat", merge),
        ("canonicalize_nested", nested),
        (
            "canonicalize_array200",
            json!((0..200).map(|at| json!({"id": at, "ok": true})).collect::<Vec<_>>()),
        ),
        ("canonical_string_plain", json!("a sentence without escapes ".repeat(8))),
        ("canonical_string_escaped", json!("\"quoted\"\n\u{1}".repeat(16))),
    ];
    for (name, value) in shapes {
        let value = gate_json::parse(value.to_string().as_bytes()).unwrap();
        let canonical = value.canonical();
        assert_eq!(gate_json::parse(canonical.as_bytes()).unwrap(), value, "{name}");
        c.bench_function(name, |b| b.iter(|| black_box(&value).canonical()));
    }
}

criterion_group!(benches, decide_outcomes, credentials, parts);
criterion_main!(benches);
