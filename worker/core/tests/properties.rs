//! Invariants over generated histories, and no panic for any input.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::support::{self, Fault, Gate, TENANT, command, read_call, tool, with};
use gateward_core::bounds::{MAX_BODY_BYTES, MAX_JSON_DEPTH, MAX_JSON_NODES};
use gateward_core::credential::token::{self, MacKeys};
use gateward_core::lane::protocol::{LaneReply, LaneRequest};
use gateward_core::policy::bundle::{ArgumentType, RecordType};
use gateward_core::policy::risk::RiskTier;
use gateward_core::receipt::{self, GENESIS};
use gateward_core::registry::ServerTrust;
use gateward_core::{call, json as gate_json};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

/// One event of a lane.
#[derive(Debug, Clone)]
enum Event {
    Call {
        request: Option<u8>,
        writes: bool,
        trust: usize,
        dry_run: bool,
    },
    Wait(u64),
    /// The clock is set back.
    Back(u64),
    Evict,
    Flush(Option<Fault>),
    StorageFault(u32, Fault),
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![Just(Fault::Failed), Just(Fault::Lost)]
}

fn event() -> impl Strategy<Value = Event> {
    let call = (prop::option::of(0u8..6), any::<bool>(), 0usize..4, prop::bool::weighted(0.1));
    prop_oneof![
        8 => call.prop_map(|(request, writes, trust, dry_run)| Event::Call { request, writes, trust, dry_run }),
        1 => (0u64..200_000).prop_map(Event::Wait),
        1 => (0u64..5_000).prop_map(Event::Back),
        1 => Just(Event::Evict),
        2 => prop::option::of(fault()).prop_map(Event::Flush),
        1 => (0u32..12, fault()).prop_map(|(at, fault)| Event::StorageFault(at, fault)),
    ]
}

const TRUST: [&str; 4] =
    ["trusted_internal_unsigned", "semi_trusted_customer", "untrusted_external", "nonsense"];
const QUOTA: u32 = 5;
const CAPACITY: u32 = 12;
const REFILL_PER_S: f64 = 0.25;

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Random interleavings of calls, time, evictions, flushes and faults. The chain verifies, and
    /// every answered decision is in it once. Replays never differ. No day allows more than its
    /// quota, and no more calls are decided than the agent's bucket and its refill allow.
    #[test]
    fn a_history_keeps_its_promises(events in prop::collection::vec(event(), 1..60)) {
        let mut gate = Gate::new();
        let agent = gate.agent_mut();
        agent.limits = support::daily(QUOTA);
        agent.request_rate = support::rate(CAPACITY, REFILL_PER_S);
        let mut answers: HashMap<String, Value> = HashMap::new();
        let mut acknowledged: Vec<Value> = Vec::new();
        let mut waited_ms = 0;
        for event in events {
            match event {
                Event::Wait(ms) => {
                    waited_ms += ms;
                    gate.now_ms.set(gate.now_ms.get() + ms);
                }
                Event::Back(ms) => gate.now_ms.set(gate.now_ms.get() - ms),
                Event::Evict => gate.evict(),
                Event::Flush(fault) => drop(gate.flush(fault)),
                Event::StorageFault(at, fault) => gate.storage.fault.set(Some((at, fault))),
                Event::Call { request, writes, trust, dry_run } => {
                    gate.records.tool = tool(writes, false);
                    let mut body = with(read_call(), json!({
                        "context": {"source_trust": TRUST[trust]}, "dry_run": dry_run,
                        "request_id": request.map(|n| format!("r{n}-{writes}-{trust}")),
                    }));
                    // Another call, so that its fingerprint differs if its request id differs.
                    body["tool_call"]["parameters"]["n"] = json!(format!("{request:?}{writes}{trust}"));
                    let Ok(reply) = gate.try_call(&command(&body)) else { continue };
                    if reply.status == 429 {
                        continue;
                    }
                    prop_assert_eq!(reply.status, 200);
                    let answer: Value = serde_json::from_str(&reply.body).unwrap();
                    if dry_run {
                        prop_assert!(answer["receipt"].is_null());
                        continue;
                    }
                    let id = body["request_id"].as_str().map(str::to_owned);
                    let first = id.as_ref().and_then(|id| answers.get(id));
                    match first {
                        Some(first) => prop_assert_eq!(first, &answer),
                        None => {
                            acknowledged.push(answer.clone());
                            if let Some(id) = id {
                                answers.insert(id, answer);
                            }
                        }
                    }
                }
            }
        }
        gate.storage.fault.set(None);
        gate.evict();
        gate.flush_all();
        let receipts = gate.receipts();
        prop_assert_eq!(receipt::verify(&receipts, 1, Some(GENESIS)), Ok(()));
        let bodies: Vec<Value> = receipts.iter().map(|r| serde_json::from_str(&r.body).unwrap()).collect();
        for answer in &acknowledged {
            let receipt = &answer["receipt"];
            let seq = receipt["seq"].as_u64().unwrap() as usize;
            prop_assert_eq!(&receipt["receipt_hash"], &json!(receipts[seq - 1].receipt_hash));
            prop_assert_eq!(&answer["decision_id"], &bodies[seq - 1]["decision_id"]);
        }
        // If the clock was set back far, the same time refills the bucket a second time.
        let refilled = waited_ms as f64 / 1_000.0 * REFILL_PER_S;
        prop_assert!(receipts.len() as f64 <= f64::from(CAPACITY) + refilled);
        // There can be more receipts than answers only if a write was reported as failed.
        prop_assert!(receipts.len() >= acknowledged.len());
        let mut allowed: HashMap<String, u32> = HashMap::new();
        for body in bodies.iter().filter(|body| body["decision"] == "allow") {
            *allowed.entry(body["time"].as_str().unwrap()[..10].to_owned()).or_default() += 1;
        }
        prop_assert!(allowed.values().all(|count| *count <= QUOTA), "{:?}", allowed);
    }

    /// Random bytes: an answer or a refusal, never a panic.
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        drop(call::parse(&bytes, TENANT));
        drop(LaneRequest::decode(&bytes));
        drop(LaneReply::decode(&bytes));
        let keys = MacKeys::new("0123456789abcdef0123456789abcdef", None).unwrap();
        let _ = token::parse(&String::from_utf8_lossy(&bytes), &keys);
    }

    /// Random JSON in place of any field: the whole gate answers.
    #[test]
    fn no_json_panics(value in any_json(), at in 0usize..16) {
        const FIELDS: [&str; 16] = [
            "/agent", "/agent/id", "/tool_call", "/tool_call/tool", "/tool_call/action",
            "/tool_call/parameters", "/tool_call/parameters/n", "/tool_call/mutates_state",
            "/context/source_trust", "/context/contains_sensitive_data", "/request_id", "/nonce",
            "/timestamp", "/trace", "/user", "/dry_run",
        ];
        let mut body = with(read_call(), json!({
            "request_id": "r", "nonce": null, "timestamp": null, "trace": {}, "user": {}, "dry_run": false,
        }));
        *body.pointer_mut(FIELDS[at]).unwrap() = value;
        if let Ok((call, _)) = call::parse(body.to_string().as_bytes(), TENANT) {
            let mut command = command(&read_call());
            command.call = call;
            let request = LaneRequest::Call(Cow::Borrowed(&command));
            prop_assert_eq!(LaneRequest::decode(&request.encode()), Ok(request));
            drop(Gate::new().try_call(&command).unwrap());
        }
    }

    /// [`Gate`] checks each request to the policies against their schema. The first call can taint the second.
    #[test]
    fn a_call_of_any_tool_conforms_to_the_schema(
        (tool, input) in call_of_a_tool(),
        [mutates, egress, canary, untrusted, assigned] in any::<[bool; 5]>(),
        tier in 0usize..3,
    ) {
        let mut gate = Gate::new();
        gate.tool_mut().egress = egress;
        gate.tool_mut().mutates = mutates;
        gate.tool_mut().canary = canary;
        gate.agent_mut().risk_tier = RiskTier::ALL[tier];
        gate.credential_mut().assigns_runs = assigned;
        if untrusted {
            gate.server_mut().trust = ServerTrust::Untrusted;
        }
        let (server, name) = tool.split_once('/').unwrap();
        let mut call = with(read_call(), json!({
            "tool_call": {"tool": server, "action": name},
            "trace": {"run_id": "r"},
        }));
        call["tool_call"]["parameters"] = input;
        let command = command(&call);
        for _ in 0..2 {
            let reply = gate.try_call(&command).unwrap();
            prop_assert_eq!(reply.status, 200, "{}", reply.body);
            // The policies were evaluated.
            for code in ["input_schema_mismatch", "input_invalid", "velocity_unreadable"] {
                prop_assert!(!reply.body.contains(code), "{}", reply.body);
            }
        }
    }

    /// A digest covers the meaning: reading the canonical form gives the same value.
    #[test]
    fn the_canonical_form_reads_back_as_itself(value in any_json()) {
        if let Ok(first) = gate_json::parse(value.to_string().as_bytes()) {
            let text = first.canonical();
            let second = gate_json::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(second.canonical(), text);
            prop_assert_eq!(second, first);
        }
    }
}

/// A described or undescribed tool, with arguments of its types, and one argument that its description does not name.
fn call_of_a_tool() -> impl Strategy<Value = (&'static str, Value)> {
    let described = gateward_policies::bundle().tools.iter().map(|tool| (tool.id, &tool.input));
    let other = ("notes/list", &RecordType { fields: &[], open: true });
    select(described.chain([other]).collect::<Vec<_>>())
        .prop_flat_map(|(tool, types)| (Just(tool), arguments(types)))
}

fn arguments(types: &'static RecordType) -> BoxedStrategy<Value> {
    let more = types.open.then(|| ("more", false, json_without_null().boxed()));
    let fields = types.fields.iter();
    let fields = fields.map(|field| (field.name, field.required, argument(&field.kind)));
    let fields = fields.chain(more).map(|(name, required, value)| {
        let value = match required {
            true => value.prop_map(Some).boxed(),
            false => option::of(value).boxed(),
        };
        value.prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    });
    fields
        .collect::<Vec<_>>()
        .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect()))
        .boxed()
}

fn argument(kind: &'static ArgumentType) -> BoxedStrategy<Value> {
    match kind {
        ArgumentType::Bool => any::<bool>().prop_map(Value::from).boxed(),
        ArgumentType::Long => any::<i32>().prop_map(Value::from).boxed(),
        // Policies judge up to four decimals, and a window takes no negative amount.
        ArgumentType::Decimal => any::<u16>().prop_map(|n| json!(f64::from(n) / 100.0)).boxed(),
        ArgumentType::String => "\\PC{0,8}".prop_map(Value::from).boxed(),
        ArgumentType::Set(item) => {
            prop::collection::vec(argument(item), 0..3).prop_map(Value::from).boxed()
        }
        ArgumentType::Record(types) => arguments(types),
    }
}

/// Values that every policy can judge.
fn json_without_null() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!({"text": ["a", {"b": 1.5}]})),
        any::<i32>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("\\PC{0,8}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn what_is_exactly_at_its_bound_is_decided_and_what_is_beyond_is_refused() {
    let body = |parameters: &str| {
        let text = read_call().to_string();
        text.replace(r#"{"n":1}"#, parameters)
    };
    let nested =
        |levels: usize| body(&format!(r#"{{"n":{}{}}}"#, "[".repeat(levels), "]".repeat(levels)));
    let wide = |items: usize| body(&format!(r#"{{"n":[{}0]}}"#, "0,".repeat(items - 1)));
    let long = |bytes: usize| {
        let frame = body(r#"{"n":""}"#).len();
        body(&format!(r#"{{"n":"{}"}}"#, "x".repeat(bytes - frame)))
    };
    // The arrays are below root, tool_call and parameters.
    let (depth, nodes) = (MAX_JSON_DEPTH - 3, MAX_JSON_NODES - 13);
    for (text, fits) in [
        (nested(depth), true),
        (nested(depth + 1), false),
        (nested(10_000), false),
        (wide(nodes), true),
        (wide(nodes + 1), false),
        (long(MAX_BODY_BYTES), true),
        (long(MAX_BODY_BYTES + 1), false),
        (long(5_000_000), false),
    ] {
        let parsed = call::parse(text.as_bytes(), TENANT);
        assert_eq!(parsed.is_ok(), fits, "{} bytes: {:?}", text.len(), parsed.err());
        if let Ok((call, _)) = parsed {
            let mut command = command(&read_call());
            command.call = call;
            assert_eq!(Gate::new().try_call(&command).unwrap().status, 200);
        }
    }
}
