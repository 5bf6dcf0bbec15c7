//! What a lane answers to proxies, and the outcomes of what they forwarded.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::rc::Rc;

use crate::support::{self, Gate, TENANT, command, read_call};
use gateward_core::call::claims::Claims;
use gateward_core::call::command::{Candidate, GateCommand, Purpose};
use gateward_core::call::http_tool::{HttpRequest, Unresolved};
use gateward_core::credential::token::MacKeys;
use gateward_core::gate::{Effect, OutcomeCommand};
use gateward_core::json;
use gateward_core::json::raw::RawObject;
use gateward_core::mcp::message::{Kind, Message};
use gateward_core::mcp::redact::Removed;
use gateward_core::mcp::seal::Seal;
use gateward_core::mcp::{Era, action, forward, response};
use gateward_core::receipt;
use gateward_core::receipt::Ending;
use gateward_core::registry::{
    CredentialStatus, ServerKind, ServerRecord, ServerStatus, ServerTools, ToolStatus,
};
use gateward_core::shield::{Redaction, Rules, Shield};
use gateward_core::trust::SourceTrust;
use serde_json::{Value as Json, json};

fn upstream(routes: &Json) -> Option<Rc<ServerRecord>> {
    let server = json!({"kind": "mcp", "trust": "trusted", "status": "active", "upstream": {
        "url": "https://api.example.com/", "routes": routes,
        "credential": {"binding": "UPSTREAM_API"}}});
    Some(serde_json::from_value(server).unwrap())
}

fn gate() -> Gate {
    let mut gate = Gate::new();
    gate.records.server = upstream(&json!([]));
    gate
}

/// The demo's read for another purpose, as proxies ask it: without an environment.
fn asking(purpose: Purpose) -> GateCommand {
    let mut command = command(&read_call());
    command.call.environment = None;
    command.purpose = purpose;
    command
}

fn answer(gate: &Gate, command: &GateCommand) -> (u16, Json) {
    let reply = gate.try_call(command).unwrap();
    (reply.status, serde_json::from_str(&reply.body).unwrap())
}

#[test]
fn where_a_call_goes_is_told_when_it_may_go_there() {
    let mut gate = gate();
    let (status, body) = answer(&gate, &asking(Purpose::Forward));
    assert_eq!((status, &body["decision"]["decision"]), (200, &json!("allow")));
    assert_eq!(body["upstream"]["url"], "https://api.example.com/");
    assert_eq!(body["upstream"]["credential"]["binding"], "UPSTREAM_API");

    gate.agent_mut().allowed_tools = Some(Vec::new());
    let (_, body) = answer(&gate, &asking(Purpose::Forward));
    assert_eq!(body["decision"]["reason_code"], "tool_not_granted");
    assert_eq!(body["upstream"], Json::Null);
}

/// Attack: an agent without grants delivers text to a server in messages that call no tool.
#[test]
fn nothing_passes_to_a_server_of_whose_tools_none_can_be_granted() {
    let cases: [(Json, Json, bool); 10] = [
        (json!(null), json!(null), true),
        (json!(["notes/*"]), json!(null), true),
        (json!(["*/list_*"]), json!(["notes/list_issues"]), true),
        (json!(["crm/*", "notes/x"]), json!(["*"]), true),
        (json!([]), json!(null), false),
        (json!(null), json!([]), false),
        (json!(["crm/*", "notes"]), json!(null), false),
        (json!(null), json!(["crm/*"]), false),
        (json!(["notes/*"]), json!(["crm/*"]), false),
        (json!(["notes/list_*"]), json!(["notes/get_*"]), false),
    ];
    for (of_agent, of_credential, passes) in cases {
        let mut gate = gate();
        let globs = |list: &Json| serde_json::from_value(list.clone()).unwrap();
        gate.agent_mut().allowed_tools = globs(&of_agent);
        gate.credential_mut().allowed_tools = globs(&of_credential);
        for purpose in [Purpose::Message { cost: 1 }, Purpose::Filter(Vec::new())] {
            let (_, body) = answer(&gate, &asking(purpose.clone()));
            let what = format!("{of_agent} {of_credential} {purpose:?}: {body}");
            assert_eq!(body["upstream"].is_object(), passes, "{what}");
            let code = if passes { Json::Null } else { json!("tool_not_granted") };
            assert_eq!(body["decision"]["reason_code"], code, "{what}");
        }
        gate.server_mut().kind = ServerKind::Http;
        let unmapped = Unresolved::Unmapped("no route".to_owned());
        let (_, body) = answer(&gate, &asking(Purpose::Unroutable(unmapped)));
        let code = if passes { "route_unmapped" } else { "tool_not_granted" };
        assert_eq!(body["decision"]["reason_code"], code, "{of_agent} {of_credential}");
    }
}

#[test]
fn what_gateward_does_not_stand_in_front_of_is_not_forwarded() {
    let mut gate = gate();
    gate.server_mut().upstream = None;
    for purpose in [Purpose::Forward, Purpose::Message { cost: 1 }, Purpose::Filter(Vec::new())] {
        let (_, body) = answer(&gate, &asking(purpose));
        assert_eq!(body["decision"]["reason_code"], "upstream_missing");
    }
    // A gateway that only asks does not need the server's traffic to pass through Gateward.
    assert_eq!(gate.call(&read_call()).1["decision"], "allow");
}

#[test]
fn a_server_is_reached_in_the_way_of_its_kind_alone() {
    let mut gate = gate();
    let routed = || Purpose::Routed("/x".to_owned());
    for (kind, purpose, passes) in [
        (ServerKind::Mcp, Purpose::Forward, true),
        (ServerKind::Mcp, Purpose::Message { cost: 1 }, true),
        (ServerKind::Mcp, routed(), false),
        (ServerKind::Http, routed(), true),
        (ServerKind::Http, Purpose::Forward, false),
        (ServerKind::Http, Purpose::Ask, false),
        (ServerKind::Http, Purpose::Message { cost: 1 }, false),
        (ServerKind::Http, Purpose::Filter(Vec::new()), false),
        (ServerKind::Named, Purpose::Forward, false),
        (ServerKind::Named, routed(), false),
    ] {
        gate.server_mut().kind = kind;
        let (_, body) = answer(&gate, &asking(purpose.clone()));
        assert_eq!(body["upstream"].is_object(), passes, "{kind:?} {purpose:?}: {body}");
    }
}

#[test]
fn what_a_server_asks_is_decided_and_counts_neither_as_call_nor_as_denial() {
    let mut gate = gate();
    let state = |gate: &Gate| {
        let tenant = gate.records.tenant.as_ref().unwrap();
        let now_ms = gate.now_ms.get();
        let held = gate.on_lane(|lane, storage| lane.containment(storage, "coder", tenant, now_ms));
        serde_json::to_value(held.unwrap()).unwrap()
    };
    let before = state(&gate);
    assert_eq!(answer(&gate, &asking(Purpose::Ask)).1["decision"]["decision"], "allow");
    // A write that a customer's text caused needs approval, and nobody is asked.
    gate.tool_mut().mutates = true;
    let mut asked = asking(Purpose::Ask);
    asked.call.source_trust = SourceTrust::SemiTrustedCustomer;
    for _ in 0..20 {
        let reply = gate.try_call(&asked).unwrap();
        let body: Json = serde_json::from_str(&reply.body).unwrap();
        assert_eq!((&body["decision"]["decision"], reply.status), (&json!("deny"), 200));
        assert_eq!(body["decision"]["approval"], Json::Null);
    }
    // A canary does not stop an agent that did not call it itself.
    gate.tool_mut().canary = true;
    assert_eq!(answer(&gate, &asking(Purpose::Ask)).1["decision"]["decision"], "deny");
    assert_eq!(state(&gate), before);
    assert_eq!(gate.receipts().len(), 22);
    gate.flush_all();
    assert_eq!(gate.count("SELECT count(*) FROM approvals"), 0);
}

#[test]
fn a_server_that_asks_often_is_held_to_its_agents_rate() {
    let mut gate = gate();
    gate.agent_mut().request_rate = support::rate(4, 0.001);
    assert_eq!(answer(&gate, &asking(Purpose::Forward)).0, 200);
    let asked: Vec<u16> = (0..32).map(|_| answer(&gate, &asking(Purpose::Ask)).0).collect();
    assert_eq!(asked.iter().filter(|status| **status == 200).count(), 3);
    let (status, body) = answer(&gate, &asking(Purpose::Ask));
    assert_eq!((status, body["code"].as_str()), (429, Some("rate_limited")));
    // A request that could not be charged is counted, and has no receipt.
    assert_eq!(gate.receipts().len(), 4);
    gate.now_ms.set(gate.now_ms.get() + 60_000);
    gate.flush_all();
    assert_eq!(gate.count("SELECT count FROM audit_events WHERE kind = 'rate_limited'"), 30);
}

#[test]
fn an_agents_read_of_its_records_is_charged_and_checked_and_leaves_no_row() {
    let mut gate = gate();
    gate.agent_mut().request_rate = support::rate(2, 0.001);
    (gate.records.server, gate.records.tool) = (None, None);
    let mut read = asking(Purpose::Read);
    (read.call.server, read.call.tool) = (String::new(), String::new());
    let now_ms = gate.now_ms.get();
    let needs_tool = gate.on_lane(|lane, storage| {
        lane.needs_tool(storage, (&*gate.engine, &gate.config), &read, &gate.records, now_ms)
    });
    assert_eq!(needs_tool, Ok(false));
    assert_eq!([(); 3].map(|()| answer(&gate, &read).0), [200, 200, 429]);
    // Calls and reads share one bucket.
    assert_eq!(gate.call(&read_call()).0, 429);
    assert_eq!(gate.receipts().len(), 0);
    gate.credential_mut().status = CredentialStatus::Revoked;
    assert_eq!(answer(&gate, &read).0, 401);
}

#[test]
fn a_request_that_calls_no_tool_is_charged_and_not_journalled_unless_it_is_denied() {
    let mut gate = gate();
    let reply = gate.try_call(&asking(Purpose::Message { cost: 1 })).unwrap();
    assert!(reply.rate_headers.unwrap().states.starts_with(r#""agent";r=99999;"#));
    let body: Json = serde_json::from_str(&reply.body).unwrap();
    assert_eq!((&body["decision"], gate.receipts().len()), (&Json::Null, 0));
    assert_eq!(body["upstream"]["url"], "https://api.example.com/");

    let charged = gate.try_call(&asking(Purpose::Filter(Vec::new()))).unwrap().rate_headers;
    assert_eq!(charged, None);

    gate.server_mut().status = ServerStatus::Disabled;
    let (_, body) = answer(&gate, &asking(Purpose::Message { cost: 1 }));
    assert_eq!(body["decision"]["reason_code"], "tool_inactive");
    assert_eq!((&body["upstream"], gate.receipts().len()), (&Json::Null, 1));
}

#[test]
fn a_listing_leaves_out_what_no_call_of_the_agent_could_do() {
    let mut gate = gate();
    let listed = |tool: &str, status: &str, mutates: u8, canary: u8| {
        let definition = Some("d".repeat(64));
        let egress = u8::from(tool.ends_with("_by_url"));
        let listed = json!({"tool": tool, "status": status, "mutates": mutates, "egress": egress,
            "canary": canary, "definition_sha256": definition});
        (tool.to_owned(), serde_json::from_value(listed).unwrap())
    };
    gate.records.listing = Rc::new(ServerTools::from([
        listed("list_issues", "active", 0, 0),
        listed("merge_pull_request", "active", 1, 0),
        listed("pending", "pending", 0, 0),
        listed("trap", "active", 0, 1),
        listed("drop_table", "active", 0, 0),
        listed("by_hand", "active", 0, 0),
        listed("list_by_url", "active", 0, 0),
    ]));
    Rc::get_mut(&mut gate.records.listing).unwrap().get_mut("by_hand").unwrap().definition_sha256 =
        None;
    let globs =
        json!(["notes/list_*", "notes/merge_*", "notes/pending", "notes/trap", "notes/by_hand"]);
    gate.agent_mut().allowed_tools = serde_json::from_value(globs).unwrap();

    let candidate = |tool: &str, definition: &str| Candidate {
        tool: tool.to_owned(),
        input: None,
        resource: None,
        definition_sha256: Some(definition.repeat(64)),
    };
    let candidates = vec![
        candidate("list_issues", "d"),
        // Whether it passes depends on what made the agent call it.
        candidate("merge_pull_request", "d"),
        candidate("pending", "d"),
        candidate("trap", "d"),
        // Not granted.
        candidate("drop_table", "d"),
        candidate("by_hand", "e"),
        candidate("list_issues", "e"),
        candidate("new", "d"),
        candidate("list_by_url", "d"),
    ];
    let (_, body) = answer(&gate, &asking(Purpose::Filter(candidates.clone())));
    assert_eq!(
        body["visible"],
        json!([
            "Visible",
            "Visible",
            "Hidden",
            "Hidden",
            "Hidden",
            "Unreviewed",
            "Changed",
            "Unknown",
            "Visible"
        ])
    );

    let read_only = json!(["tools:read"]);
    let credential = gate.credential_mut();
    credential.scopes = serde_json::from_value(read_only).unwrap();
    let (_, body) = answer(&gate, &asking(Purpose::Filter(candidates)));
    assert_eq!(body["visible"][0], "Visible");
    assert_eq!(body["visible"][1], "Hidden");
    assert_eq!(body["visible"][8], "Hidden", "sending text out is a write");
}

#[test]
fn an_http_request_is_the_call_of_the_tool_that_its_route_names() {
    use gateward_core::lane::RegistryCache;
    use gateward_core::registry::Loaded;
    let mut gate = gate();
    gate.server_mut().kind = ServerKind::Http;
    let routes = json!([{"method": "GET", "path": "/repos/{repo}/issues", "tool": "list_issues"}]);
    let mut cache = RegistryCache::default();
    let asked = |path: &str| {
        let mut command = asking(Purpose::Route(HttpRequest {
            method: "GET".to_owned(),
            path: path.to_owned(),
            query: "state=open".to_owned(),
            body: None,
        }));
        command.call.tool.clear();
        command
    };
    // Not known yet, so nothing is decided.
    let command = asked("/repos/shop/issues");
    assert_eq!(*cache.routed(&command), command);
    let records = &gate.records;
    let loaded = Loaded {
        tenant: records.tenant.clone(),
        agent: records.agent.clone(),
        credential: records.credential.clone(),
        server: upstream(&routes),
        tool: None,
        bans: Some(gateward_core::registry::Bans::default()),
        warrants: Some(gateward_core::registry::Warrants::default()),
    };
    cache.accept(&command, loaded, 0);
    let routed = cache.routed(&command).into_owned();
    assert_eq!(
        (routed.call.tool.as_str(), routed.call.resource.as_str()),
        ("list_issues", "/repos/shop/issues")
    );
    assert_eq!(routed.call.input.canonical(), r#"{"repo":"shop","state":"open"}"#);
    assert_eq!(routed.purpose, Purpose::Routed("/repos/{repo}/issues".to_owned()));
    assert_ne!(routed.call.action_hash, command.call.action_hash);

    let (_, body) = answer(&gate, &routed);
    assert_eq!(
        (&body["decision"]["decision"], &body["route"]),
        (&json!("allow"), &json!("/repos/{repo}/issues"))
    );
    assert_eq!(body["upstream"]["routes"], json!([]));
    let unmapped = cache.routed(&asked("/users")).into_owned();
    assert_eq!(answer(&gate, &unmapped).1["decision"]["reason_code"], "route_unmapped");
    let twice = cache.routed(&asked("/repos/a/issues?")).into_owned();
    assert_eq!(answer(&gate, &twice).1["decision"]["reason_code"], "route_unmapped");
}

#[test]
fn arguments_are_held_against_the_schema_before_policies_are_asked() {
    let mut gate = gate();
    let tool = gate.tool_mut();
    tool.input_schema = Some(Rc::from(r#"{"properties":{"n":{"maximum":0}}}"#));
    let (_, body) = answer(&gate, &asking(Purpose::Forward));
    assert_eq!(body["decision"]["reason_code"], "input_schema_mismatch");
    let reason = body["decision"]["reason"].as_str().unwrap();
    assert_eq!(
        reason,
        "The arguments do not match the tool's schema: `/n` must be at most 0 (`maximum`)."
    );
    assert_eq!(body["decision"]["matched_policies"], json!([]));
    // A caller that only asks gets the same answer.
    let asked = gate.call(&read_call()).1;
    assert_eq!(
        (&asked["reason_code"], asked["reason"].as_str()),
        (&json!("input_schema_mismatch"), Some(reason))
    );
    // A canary quarantines when it is called, with any arguments.
    gate.tool_mut().canary = true;
    assert_eq!(gate.call(&read_call()).1["decision"], "quarantine");
}

/// A server listed a schema that took a minute to compile; a call of the tool, which nobody had
/// approved, compiled it.
#[test]
fn the_schema_of_a_tool_that_cannot_be_called_is_not_compiled() {
    let schema: Rc<str> = Rc::from(r#"{"properties":{"n":{"maximum":0}}}"#);
    type Change = fn(&mut Gate);
    let cases: [(&str, Change, bool); 7] = [
        ("an active tool", |_| {}, true),
        ("a pending tool", |gate| gate.tool_mut().status = ToolStatus::Pending, false),
        ("a quarantined tool", |gate| gate.tool_mut().status = ToolStatus::Quarantined, false),
        ("an inactive server", |gate| gate.server_mut().status = ServerStatus::Pending, false),
        (
            "a tool that is not granted",
            |gate| gate.agent_mut().allowed_tools = Some(Vec::new()),
            false,
        ),
        ("a credential without the scope", |gate| gate.credential_mut().scopes = Vec::new(), false),
        ("a canary", |gate| gate.tool_mut().canary = true, false),
    ];
    for (name, change, expected) in cases {
        // An engine of its own, because an engine keeps what it compiled.
        let engine = Rc::new(support::engine(gateward_policies::bundle()));
        let mut gate = Gate { engine, ..gate() };
        gate.tool_mut().input_schema = Some(Rc::clone(&schema));
        change(&mut gate);
        answer(&gate, &asking(Purpose::Forward));
        assert_eq!(gate.engine.schemas().borrow().holds(&schema), expected, "{name}");
    }
}

#[test]
fn a_name_that_an_api_may_take_for_one_of_the_schema_is_refused() {
    let mut gate = gate();
    let schema = r#"{"properties":{"amount":{"maximum":100}}}"#;
    let tool = gate.tool_mut();
    tool.input_schema = Some(Rc::from(schema));
    for (input, expected) in [
        (r#"{"amount":1}"#, "policy_allow"),
        (r#"{"amount":5000}"#, "input_schema_mismatch"),
        (r#"{"Amount":5000}"#, "input_invalid"),
        (r#"{"%61mount":5000}"#, "input_invalid"),
        (r#"{"other":{"Amount":5000}}"#, "policy_allow"),
    ] {
        let mut command = asking(Purpose::Forward);
        command.call.input = gateward_core::json::parse(input.as_bytes()).unwrap();
        let (_, body) = answer(&gate, &command);
        assert_eq!(body["decision"]["reason_code"], expected, "{input}");
    }
}

#[test]
fn a_schema_that_cannot_be_used_is_not_blamed_on_the_arguments() {
    let mut gate = gate();
    gate.tool_mut().input_schema = Some(Rc::from(r#"{"type":"text"}"#));
    let (_, body) = answer(&gate, &asking(Purpose::Forward));
    assert_eq!(body["decision"]["reason_code"], "schema_unusable");
    let reason = body["decision"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("The tool's schema cannot be used: "), "{reason}");
}

#[test]
fn a_header_mirrors_the_argument_that_the_registered_schema_says() {
    let mut gate = gate();
    let headers = |headers: &[(&str, &str)]| {
        let mut command = asking(Purpose::Forward);
        command.call.input =
            gateward_core::json::parse(br#"{"region":"eu","query":"us"}"#).unwrap();
        command.parameters =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        command
    };
    let reason = |gate: &Gate, command: &GateCommand| {
        let (_, body) = answer(gate, command);
        (body["decision"]["reason_code"].clone(), body["upstream"] == Json::Null)
    };
    // Nothing is known of a tool without a schema.
    let eu = headers(&[("region", "eu")]);
    assert_eq!(reason(&gate, &eu), (json!("header_mismatch"), true));
    let schema = r#"{"properties":{"region":{"x-mcp-header":"Region"},"query":{}}}"#;
    let tool = gate.tool_mut();
    tool.input_schema = Some(Rc::from(schema));
    assert_eq!(reason(&gate, &eu), (json!("policy_allow"), false));
    // The value of another argument. A proxy on the way would route by this value.
    let us = headers(&[("region", "us")]);
    assert_eq!(reason(&gate, &us), (json!("header_mismatch"), true));
    let unmapped = headers(&[("query", "us")]);
    assert_eq!(reason(&gate, &unmapped), (json!("header_mismatch"), true));
}

#[test]
fn a_subscription_is_charged_for_each_name_that_it_lists() {
    let gate = gate();
    let remaining = |cost: u32| {
        let reply = gate.try_call(&asking(Purpose::Message { cost })).unwrap();
        let states = reply.rate_headers.unwrap().states;
        (reply.status, states.split(';').nth(1).unwrap().to_owned())
    };
    assert_eq!(remaining(1), (200, "r=99999".to_owned()));
    assert_eq!(remaining(1_000), (200, "r=98999".to_owned()));
    assert_eq!(remaining(98_999), (200, "r=0".to_owned()));
    assert_eq!(remaining(2), (429, "r=0".to_owned()));
}

#[test]
fn an_outcome_is_chained_to_its_decision_and_told_where_it_came_to_no_good_end() {
    let gate = gate();
    for (ending, event) in [
        (Ending::Complete, None),
        (Ending::CallerGone, None),
        (Ending::UpstreamFailed, Some("upstream_failed")),
        (Ending::TimedOut, Some("upstream_timed_out")),
        (Ending::TooLarge, Some("upstream_result_too_large")),
        (Ending::Refused, Some("upstream_result_refused")),
    ] {
        let (_, body) = answer(&gate, &asking(Purpose::Forward));
        let id = body["decision"]["decision_id"].as_str().unwrap().to_owned();
        let hash = body["decision"]["receipt"]["receipt_hash"].as_str().unwrap().to_owned();
        let outcome = OutcomeCommand {
            tenant: TENANT.to_owned(),
            lane: 0,
            agent: "coder".to_owned(),
            server: "github".to_owned(),
            tool: "list_issues".to_owned(),
            decision_id: id.clone(),
            decision_hash: hash.clone(),
            status: 200,
            bytes: 12,
            duration_ms: 34,
            result_sha256: "r".repeat(64),
            ending,
            effect: Effect::Succeeded,
            untrusted: None,
            observed: None,
            found: None,
        };
        let now_ms = gate.now_ms.get();
        let recorded = gate
            .on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &outcome, now_ms));
        assert_eq!(recorded, Ok(Ok(())));
        gate.flush_all();

        let receipts = gate.receipts();
        assert_eq!(receipt::verify(&receipts, 1, Some(receipt::GENESIS)), Ok(()));
        let [.., decision, last] = receipts.as_slice() else { panic!("{receipts:?}") };
        let body = json::parse(last.body.as_bytes()).unwrap();
        let text = |field: &str| body.get(field).unwrap().as_str().unwrap().to_owned();
        assert_eq!((decision.receipt_hash.clone(), text("decision_hash")), (hash.clone(), hash));
        assert_eq!((text("kind"), text("decision_id")), ("outcome".to_owned(), id.clone()));
        assert_eq!(text("ending"), ending.as_str());
        let events = format!(
            "SELECT coalesce(group_concat(kind), '') FROM audit_events WHERE decision_id = '{id}' AND kind <> 'decision'"
        );
        assert_eq!(gate.text(&events), event.unwrap_or(""), "{ending:?}");
    }
    // Its cost was counted with the decision, so the agent's state does not change.
    gate.evict();
    assert_eq!(gate.call(&read_call()).1["decision"], "allow");
}

/// Attack: a server asks something during a large call. The client brings the server's state with a smaller call, or with
/// a call of another tool: then limits and policies judge that call, and the server carries out the first one.
#[test]
fn a_servers_state_goes_only_with_the_call_that_it_belongs_to() {
    let keys = MacKeys::new("a-mac-key-for-tests-of-40-characters-000", None).unwrap();
    let message = |method: &str, params: &Json| {
        let text = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        Message {
            kind: Kind::Request,
            id: "1".to_owned(),
            method: method.to_owned(),
            params: json::parse(params.to_string().as_bytes()).unwrap(),
            parameters: Vec::new(),
            text: text.to_string(),
        }
    };
    let hash = |message: &Message, claims: &Claims| {
        let asked = action::of(message).unwrap();
        let names = ("payments", asked.tool.as_str(), asked.resource.as_str());
        claims.clone().call((TENANT, "coder"), names, asked.input).action_hash
    };
    fn seal<'a>(keys: &'a MacKeys, action: &'a [u8]) -> Seal<'a> {
        Seal { keys, tenant: TENANT, agent: "coder", server: "payments", action }
    }
    let refund = |arguments: Json| json!({"name": "refund", "arguments": arguments});
    let state = |method: &str, params: &Json| {
        let asks = r#"{"resultType":"input_required","requestState":"s"}"#;
        let mut result = RawObject::parse(asks).unwrap();
        let action = hash(&message(method, params), &Claims::default());
        let seal = seal(&keys, &action);
        response::finish_result(method, &mut result, None, Era::Stateless, &seal).unwrap();
        result.text("requestState").unwrap()
    };
    let of_refund = state("tools/call", &refund(json!({"amount": 900, "to": "ada"})));
    let of_read = state("resources/read", &json!({"uri": "a://b"}));
    let approved =
        Claims::from_headers(|name| (name == "x-gateward-approval-id").then(|| "a".to_owned()));
    let approved = approved.unwrap();
    let answers = json!({"k": {"action": "accept", "content": {"sure": true}}});
    let shield = Shield::new(Rules::default());
    for (method, params, state, opens) in [
        ("tools/call", refund(json!({"to": "ada", "amount": 900.0})), &of_refund, true),
        ("tools/call", refund(json!({"amount": 1, "to": "ada"})), &of_refund, false),
        ("tools/call", refund(json!({"amount": 900, "to": "ada", "x": 1})), &of_refund, false),
        ("tools/call", json!({"name": "refund"}), &of_refund, false),
        (
            "tools/call",
            json!({"name": "status", "arguments": {"amount": 900, "to": "ada"}}),
            &of_refund,
            false,
        ),
        ("resources/read", json!({"uri": "a://b"}), &of_refund, false),
        ("resources/read", json!({"uri": "a://b"}), &of_read, true),
        ("resources/read", json!({"uri": "a://c"}), &of_read, false),
    ] {
        for claims in [&Claims::default(), &approved] {
            for answers in [None, Some(&answers)] {
                let mut params = params.clone();
                params["requestState"] = json!(state);
                if let Some(answers) = answers {
                    params["inputResponses"] = answers.clone();
                }
                let message = message(method, &params);
                let action = hash(&message, claims);
                let seal = seal(&keys, &action);
                let redaction = Redaction { shield: &shield, tenant: TENANT, categories: &[] };
                let mut removed = Removed::default();
                let sent = forward::rewrite(&message, &[], redaction, &seal, &mut removed);
                let checked = forward::check_state(&message, &seal);
                match opens {
                    true => assert!(sent.unwrap().contains(r#""requestState":"s""#), "{params}"),
                    false => {
                        let error = sent.unwrap_err();
                        assert_eq!((error.status, error.code), (200, -32602), "{params}");
                        assert!(error.message.contains("does not belong to this call"));
                    }
                }
                assert_eq!(checked.is_ok(), opens, "{params}");
            }
        }
    }
}
