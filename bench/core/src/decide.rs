//! Deciding a call: every decision that policies can make, denials that come before the policies, and
//! the policy step alone beside plain Cedar.

use std::hint::black_box;
use std::rc::Rc;

use gateward_core::call;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::credential::token::secret_hash;
use gateward_core::gate::Books;
use gateward_core::gate::config::Config;
use gateward_core::gate::daily_rows::Written;
use gateward_core::gate::velocity::of_call;
use gateward_core::gate::windows::{Counting, Windows};
use gateward_core::gate::{AgentState, Facts, Step, decide, evaluate_policies};
use gateward_core::limit::window::utc_only;
use gateward_core::policy::bundle::{AnnotatedDecision, PolicyRecord};
use gateward_core::policy::{Evaluation, PolicyEngine};
use gateward_core::provenance::ValueKey;
use gateward_core::receipt::ChainHead;
use gateward_core::receipt::GENESIS;
use gateward_core::registry::{CallRecords, Loaded};
use serde_json::{Value, json};

use crate::operation::{GATEWARD, Operation};
use crate::plain_cedar::{self, PLAIN_CEDAR, Plain};

pub const TENANT: &str = "demo";
pub const SECRET: &str = "0123456789012345678901234567890123456789012";
pub const NOW_MS: u64 = 1_795_000_000_000;

/// A call of the demo's agent.
#[derive(Clone)]
pub struct Call {
    pub server: &'static str,
    pub tool: &'static str,
    pub trust: &'static str,
    pub sensitive: bool,
    pub parameters: Value,
}

impl Call {
    fn signed(server: &'static str, tool: &'static str, parameters: Value) -> Self {
        Self { server, tool, trust: "trusted_internal_signed", sensitive: false, parameters }
    }

    pub fn read() -> Self {
        Self::signed("github", "list_issues", json!({"repo": "acme/shop"}))
    }

    pub fn merge(base: &str) -> Self {
        let parameters = json!({"repo": "acme/shop", "number": 42, "base": base});
        Self::signed("github", "merge_pull_request", parameters)
    }

    /// The body of `POST /v1/authorize`.
    pub fn body(&self) -> String {
        json!({
            "agent": {"id": "coder", "environment": "production"},
            "tool_call": {
                "tool": self.server, "action": self.tool, "mutates_state": false,
                "parameters": self.parameters,
            },
            "context": {"source_trust": self.trust, "contains_sensitive_data": self.sensitive},
        })
        .to_string()
    }

    pub fn command(&self) -> GateCommand {
        GateCommand {
            tenant: TENANT.to_owned(),
            lane: 0,
            key_id: "k1".to_owned(),
            secret_hash: secret_hash(SECRET),
            located: false,
            http_request_id: "bench".to_owned(),
            trace_id: None,
            source_address: Some([192, 0, 2, 7].into()),
            signed: true,
            run_credential: false,
            forwarded: false,
            signature_nonce: None,
            purpose: Purpose::Authorize,
            session: None,
            parameters: Vec::new(),
            beside: gateward_core::json::Json::Null,
            warrant: None,
            call: call::parse(self.body().as_bytes(), TENANT).unwrap().0,
        }
    }
}

/// A lane's first call, with everything that deciding it needs.
pub struct Scenario {
    engine: PolicyEngine,
    config: Config,
    records: CallRecords,
    agent: AgentState,
    head: ChainHead,
    command: GateCommand,
}

impl Scenario {
    pub fn new(call: &Call) -> Self {
        let engine = PolicyEngine::new(gateward_policies::bundle());
        Self {
            config: Config::read(
                (ValueKey::new([7; 16]), ValueKey::new([8; 16])),
                utc_only,
                |name| Some(if name == "D1_MAX_BYTES" { "10000000000" } else { "1000" }.to_owned()),
            )
            .unwrap(),
            records: records(&engine, call),
            agent: AgentState::default(),
            head: ChainHead { seq: 0, hash: GENESIS.to_owned() },
            command: call.command(),
            engine,
        }
    }

    fn countings(&self) -> Vec<Counting> {
        of_call(&self.engine, &self.config.value_key, &self.command, &self.records)
    }

    fn facts<'a>(&'a self, countings: &'a [Counting]) -> Facts<'a> {
        Facts {
            now_ms: NOW_MS,
            config: &self.config,
            records: &self.records,
            agent: &self.agent,
            head: &self.head,
            latest_ms: 0,
            stored: None,
            nonce_used: false,
            signature_nonce_used: false,
            warrant: None,
            proof_used: false,
            approval: None,
            run: None,
            books: Books::NONE,
            windows: Windows { countings, ..Windows::default() },
            reservation: None,
            journal_rows: 0,
            storage_full: false,
            written: Written::default(),
        }
    }

    /// What the policies say.
    pub fn evaluate(&self) -> Evaluation {
        let countings = self.countings();
        let facts = self.facts(&countings);
        evaluate_policies(&self.engine, black_box(&facts), black_box(&self.command)).unwrap()
    }

    fn decide(&self) -> Step {
        let countings = self.countings();
        decide(&self.engine, black_box(&self.facts(&countings)), black_box(&self.command))
    }
}

fn records(engine: &PolicyEngine, call: &Call) -> CallRecords {
    let Loaded { tenant, agent, credential, server, tool, .. } = loaded(engine, call, SECRET);
    let (bans, warrants, listing) = (Rc::default(), Rc::default(), Rc::default());
    let confirmed = true;
    CallRecords { tenant, agent, credential, server, tool, bans, warrants, listing, confirmed }
}

/// What D1 has for a call: the demo's registry, with the tool as the bundle describes it, and a credential with this
/// secret.
pub fn loaded(engine: &PolicyEngine, call: &Call, secret: &str) -> Loaded {
    let tool = engine.tool(&format!("{}/{}", call.server, call.tool)).map(|tool| {
        let (mutates, egress) = (u8::from(tool.mutates), u8::from(tool.egress));
        let canary = u8::from(tool.canary);
        json!({"status": "active", "mutates": mutates, "egress": egress, "risk": tool.risk, "canary": canary,
            "tainted": "require_approval"})
    });
    let loaded = serde_json::from_value(json!({
        "tenant": {"status": "active", "epoch": 1},
        "agent": {
            "lane": 0, "status": "active", "environment": "production", "risk_tier": "low",
            "groups": ["engineering"], "allowed_tools": null,
        },
        "credential": {
            "agent": "coder", "secret_sha256": hex::encode(secret_hash(secret)),
            "scopes": ["tools:read", "tools:write"], "max_source_trust": "trusted_internal_signed",
            "status": "active", "expires_at_ms": null, "allowed_servers": null,
            "allowed_tools": null, "allowed_networks": null, "signed": true,
            "assigns_runs": false,
        },
        "server": {"kind": "mcp", "trust": "trusted", "status": "active"},
        "tool": tool,
        "bans": [],
        "warrants": {"roots": [], "revoked": []},
    }));
    loaded.unwrap()
}

pub fn operations() -> Vec<Operation> {
    let untrusted = Call { trust: "untrusted_external", ..Call::merge("main") };
    let customer = Call::signed("crm", "get_customer", json!({"customer_id": "c-1"}));
    let customer = Call { sensitive: true, ..customer };
    let unknown = Call::signed("github", "no_such_tool", json!({}));
    let decisions = [
        ("decide_allow_read", Call::read(), "policy_allow"),
        ("decide_allow_write", Call::merge("dev"), "policy_allow"),
        ("decide_deny_policy", untrusted, "policy_forbid"),
        ("decide_require_approval", Call::merge("main"), "policy_require_approval"),
        ("decide_redact", customer, "policy_redact"),
        ("deny_unknown_tool", unknown, "tool_unknown"),
    ];
    let policy_steps = [
        ("policy_step_allow_read", Call::read()),
        ("policy_step_allow_write", Call::merge("dev")),
        ("policy_step_require_approval", Call::merge("main")),
    ];
    let mut operations: Vec<Operation> =
        decisions.map(|(name, call, reason)| decision(name, call, reason)).into();
    operations.extend(policy_steps.into_iter().flat_map(|(name, call)| policy_step(name, call)));
    operations
}

/// The whole of `gate::decide`: steps 5 to 12, up to the journal's row.
fn decision(name: &'static str, call: Call, reason_code: &'static str) -> Operation {
    Operation::new(name, GATEWARD, move || {
        let scenario = Scenario::new(&call);
        let step = scenario.decide();
        let answer: Value = serde_json::from_str(&step.reply.body).unwrap();
        assert_eq!(answer["reason_code"], reason_code, "{name}");
        assert!(step.entry.is_some(), "{name} is journalled");
        move || scenario.decide()
    })
}

/// The evaluation of the request that `decide_*` makes, on the shipped bundle.
///
/// Gateward's side is `gate::evaluate_policies`: it converts the call's values to Cedar's, makes
/// the entities, finds the slice and evaluates it. It also finds out who calls, and which tool. The
/// peer's side gets both as given, so it does a little less.
fn policy_step(name: &'static str, call: Call) -> [Operation; 2] {
    let of_gateward = call.clone();
    [
        Operation::new(name, GATEWARD, move || {
            let scenario = Scenario::new(&of_gateward);
            let run = move || scenario.evaluate();
            let evaluation = run();
            assert!(evaluation.allowed && evaluation.erring.is_empty(), "{name}");
            let asks = |policy: &&PolicyRecord| {
                policy.annotations.decision == AnnotatedDecision::RequireApproval
            };
            let approval = evaluation.determining.iter().any(asks);
            assert_eq!(approval, name.ends_with("require_approval"), "{name}");
            run
        }),
        Operation::new(name, PLAIN_CEDAR, move || {
            let plain = Plain::new(gateward_policies::bundle());
            let scenario = Scenario::new(&call);
            let facts = scenario.facts(&[]);
            let evaluation =
                evaluate_policies(&scenario.engine, &facts, &scenario.command).unwrap();
            let call = call.clone();
            let run = move || plain.authorize(plain_request(black_box(&call)));
            plain_cedar::assert_same(name, &run(), &evaluation);
            run
        }),
    ]
}

/// The same request for Cedar used plainly, each value as the application has it.
fn plain_request(call: &Call) -> plain_cedar::Request {
    let kind = if call.tool.starts_with("list_") { "read" } else { "write" };
    plain_cedar::Request {
        principal: format!("Agent::\"{TENANT}/coder\""),
        action: format!("Action::\"{}/{}\"", call.server, call.tool),
        resource: format!("Server::\"{TENANT}/{}\"", call.server),
        context: json!({
            "source_trust": call.trust,
            "stated_trust": call.trust,
            "taint": {"tainted": false, "servers": [], "age_s": 0, "tool": "require_approval"},
            "sensitive": call.sensitive,
            "resource": "",
            "input": call.parameters,
            "shield": {"categories": [], "rules": [], "max_severity": 0, "truncated": false},
            "velocity": {"calls_1m": {"count": 1}, "denials_10m": {"count": 0}},
            "approval": {"granted": false, "approvers": [], "age_s": 0},
            "warrant": {"present": false},
            "session": {"run_id": "", "user_id": "", "user_role": ""},
        }),
        entities: json!([
            {
                "uid": {"type": "Agent", "id": format!("{TENANT}/coder")},
                "attrs": {"environment": "production", "risk_tier": "low"},
                "parents": [
                    {"type": "Tenant", "id": TENANT},
                    {"type": "Group", "id": format!("{TENANT}/engineering")},
                ],
            },
            {
                "uid": {"type": "Action", "id": format!("{}/{}", call.server, call.tool)},
                "attrs": {},
                "parents": [{"type": "Action", "id": kind}, {"type": "Action", "id": "call"}],
            },
            {
                "uid": {"type": "Server", "id": format!("{TENANT}/{}", call.server)},
                "attrs": {"trust": "trusted", "kind": "mcp"},
                "parents": [{"type": "Tenant", "id": TENANT}],
            },
        ]),
    }
}
