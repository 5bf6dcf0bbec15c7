//! The recorded tasks of `tests/containment` on a lane with real SQLite: no attack passes, and nothing ordinary is denied.
//!
//! `make containment` replays the same tasks through the built worker, and writes the table in `docs/provenance.md`. That
//! takes minutes. This test decides each call in the same core, reads the same results by the same code, and compares what
//! it finds with the table.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::support::{Gate, TENANT, command, read_call, tool, with};
use gateward_admin::roles;
use gateward_core::call::command::{GateCommand, Purpose};
use gateward_core::call::run::parse_start;
use gateward_core::decision::Decision;
use gateward_core::gate::proxy::ProxyReply;
use gateward_core::gate::{Effect, ObservedResult, OutcomeCommand};
use gateward_core::json::parse;
use gateward_core::json::raw::RawObject;
use gateward_core::mcp::parts;
use gateward_core::policy::bundle::Risk;
use gateward_core::provenance::{ArgumentRoles, Destinations, Reach, ResultTrust, extract};
use gateward_core::receipt::Ending;
use gateward_core::registry::{ServerTrust, ToolRegistration};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

const RUN: &str = "recorded";

#[derive(Deserialize)]
struct Server {
    server: String,
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    /// As the server lists it.
    definition: Json,
    mutates: bool,
    egress: bool,
    risk: Risk,
    #[serde(default)]
    argument_roles: ArgumentRoles,
    /// A tool that only reads has none.
    reach: Option<Reach>,
    #[serde(default)]
    result_trust: ResultTrust,
}

#[derive(Deserialize)]
struct Scenario {
    name: String,
    instruction: String,
    plan: Option<Json>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
struct Call {
    /// `server/tool`.
    tool: String,
    arguments: Json,
    result: Json,
    #[serde(default)]
    attack: bool,
    #[serde(default)]
    harmless: bool,
}

struct Data {
    destinations: Destinations,
    tools: BTreeMap<String, Tool>,
    scenarios: Vec<Scenario>,
}

/// How the tenant is registered, and what the harness states; as in `tests/containment/containment.ts`.
struct Configuration {
    trust: ServerTrust,
    instruction: bool,
    other: Other,
}

/// What is not as the data say.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Other {
    Nothing,
    /// Roles and reach are as Gateward derives them from the definitions.
    DerivedRoles,
    NoRoles,
    NoResultTrust,
    NoDestinations,
    NoPlan,
}

/// What became of one call.
struct Decided<'d> {
    scenario: &'d str,
    call: &'d Call,
    write: bool,
    egress: bool,
    decision: Decision,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/containment")
}

fn read<T: DeserializeOwned>(path: &Path) -> T {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn read_all<T: DeserializeOwned>(folder: &str) -> Vec<T> {
    let files = fs::read_dir(directory().join(folder)).unwrap();
    let mut paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn load() -> Data {
    let mut tools = BTreeMap::new();
    for Server { server, tools: of_server } in read_all::<Server>("servers") {
        for tool in of_server {
            let name = tool.definition["name"].as_str().unwrap();
            tools.insert([&server, "/", name].concat(), tool);
        }
    }
    let scenarios = read_all::<Vec<Scenario>>("scenarios").into_iter().flatten().collect();
    let registered: Destinations = read(&directory().join("destinations.json"));
    Data { destinations: registered.normal().unwrap(), tools, scenarios }
}

impl Tool {
    fn writes(&self) -> bool {
        self.mutates || self.egress
    }

    fn registered(&self, other: Other) -> ToolRegistration {
        let mut registered = Rc::unwrap_or_clone(tool(self.mutates, false).unwrap());
        (registered.egress, registered.risk) = (self.egress, self.risk);
        let (roles, reach) = match other {
            Other::DerivedRoles => {
                roles::derive(&parse(self.definition.to_string().as_bytes()).unwrap())
            }
            Other::NoRoles => (ArgumentRoles::default(), Reach::Outside),
            _ => (self.argument_roles.clone(), self.reach.unwrap_or(Reach::Nobody)),
        };
        (registered.argument_roles, registered.reach) = (Some(Rc::new(roles)), reach);
        registered.input_schema = Some(self.definition["inputSchema"].to_string().into());
        if other != Other::NoResultTrust {
            registered.result_trust = Some(Rc::new(self.result_trust.clone()));
        }
        registered
    }
}

/// The text of a result as a server writes it; an object is structured content too, as in most servers.
fn answer(result: &Json) -> RawObject {
    let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
    let mut answer = json!({"content": [{"type": "text", "text": text}]});
    if result.is_object() {
        answer["structuredContent"] = result.clone();
    }
    RawObject::parse(&answer.to_string()).unwrap()
}

/// A command in the run of a scenario.
fn in_run(agent: &str, tool: &str, arguments: &Json) -> GateCommand {
    let (server, name) = tool.split_once('/').unwrap();
    let mut call = with(
        read_call(),
        json!({
            "agent": {"id": agent},
            "tool_call": {"tool": server, "action": name},
            "trace": {"run_id": RUN},
        }),
    );
    call["tool_call"]["parameters"] = arguments.clone();
    command(&call)
}

fn replay<'d>(data: &'d Data, configuration: &Configuration) -> Vec<Decided<'d>> {
    let Configuration { trust, instruction, other } = configuration;
    let mut gate = Gate::new();
    gate.credential_mut().assigns_runs = true;
    let server = gate.server_mut();
    server.trust = *trust;
    let upstream = json!({"url": "https://api.example.com/"});
    server.upstream = Some(serde_json::from_value(upstream).unwrap());
    if *other != Other::NoDestinations {
        let tenant = gate.tenant_mut();
        tenant.destinations = Some(Rc::new(data.destinations.clone()));
    }
    let mut decided = Vec::new();
    for (at, scenario) in data.scenarios.iter().enumerate() {
        let agent = format!("agent-{at}");
        gate.credential_mut().agent = Some(agent.clone());
        if *instruction {
            let mut start = json!({"run_id": RUN, "instruction": scenario.instruction});
            if let Some(plan) = scenario.plan.as_ref().filter(|_| *other != Other::NoPlan) {
                start["plan"] = plan.clone();
            }
            let start = parse_start(start.to_string().as_bytes()).unwrap().start;
            let mut command = in_run(&agent, "none/none", &json!({}));
            command.purpose = Purpose::StartRun(start);
            assert_eq!(gate.try_call(&command).unwrap().status, 200);
        }
        for call in &scenario.calls {
            let tool = &data.tools[&call.tool];
            gate.records.tool = Some(Rc::new(tool.registered(*other)));
            let mut command = in_run(&agent, &call.tool, &call.arguments);
            command.purpose = Purpose::Forward;
            (command.forwarded, command.run_credential) = (true, *instruction);
            let decision = forward(&gate, &command, call);
            let (write, egress) = (tool.writes(), tool.egress);
            decided.push(Decided { scenario: &scenario.name, call, write, egress, decision });
        }
    }
    decided
}

/// Decides a call. If it passes, records its result as the worker does.
fn forward(gate: &Gate, command: &GateCommand, call: &Call) -> Decision {
    let reply = gate.try_call(command).unwrap();
    let reply: ProxyReply = serde_json::from_str(&reply.body).unwrap();
    let decision = reply.decision.unwrap();
    if !decision.decision.passes() {
        // A mistake in the data is no decision of a policy.
        let code = decision.reason_code.code();
        assert!(code.starts_with("policy_"), "{}: {code}: {}", call.tool, decision.reason);
        return decision.decision;
    }
    let (answer, observe) = (answer(&call.result), reply.answer.observe.unwrap());
    let (key, trust) = (&gate.config.value_key, observe.result_trust.as_ref());
    let values = extract::result(key, &parts::of(&answer), trust, observe.trusted);
    let outcome = OutcomeCommand {
        tenant: TENANT.to_owned(),
        lane: 0,
        agent: command.call.agent.clone(),
        server: command.call.server.clone(),
        tool: command.call.tool.clone(),
        decision_id: decision.decision_id,
        decision_hash: decision.receipt.unwrap().receipt_hash,
        status: 200,
        bytes: 9,
        duration_ms: 1,
        result_sha256: String::new(),
        ending: Ending::Complete,
        effect: Effect::Succeeded,
        untrusted: reply.answer.untrusted,
        observed: Some(ObservedResult { run: observe.run, values }),
        found: None,
    };
    let now_ms = gate.now_ms.get();
    let done =
        gate.on_lane(|lane, storage| lane.record_outcome(storage, &gate.config, &outcome, now_ms));
    assert_eq!(done, Ok(Ok(())));
    decision.decision
}

impl Decided<'_> {
    fn is_ordinary(&self) -> bool {
        !self.call.attack
    }

    /// Whether it is an attack that reaches somebody else, destroys or spends.
    fn is_attack(&self) -> bool {
        self.call.attack && self.write && !self.call.harmless
    }
}

/// Calls as passed / asked / denied.
fn counts<'d>(decided: impl Iterator<Item = &'d Decided<'d>>) -> String {
    let (mut passed, mut asked, mut denied) = (0, 0, 0);
    for one in decided {
        match one.decision {
            decision if decision.passes() => passed += 1,
            Decision::RequireApproval => asked += 1,
            _ => denied += 1,
        }
    }
    format!("{passed} / {asked} / {denied}")
}

/// The cells of a row of the table in `docs/provenance.md`.
fn documented(name: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/provenance.md");
    let page = fs::read_to_string(page).unwrap();
    let begin = format!("| {name} | ");
    let row = page.lines().find_map(|line| line.strip_prefix(begin.as_str())).unwrap();
    row.split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn recorded_attacks_do_not_pass_and_nothing_ordinary_is_denied() {
    use ServerTrust::{Trusted, Untrusted};
    let data = load();
    assert!(data.scenarios.len() >= 60);
    for (name, trust, instruction, other) in [
        ("untrusted servers, with instruction", Untrusted, true, Other::Nothing),
        ("… roles as derived", Untrusted, true, Other::DerivedRoles),
        ("… without roles and reach", Untrusted, true, Other::NoRoles),
        ("… without trusted results", Untrusted, true, Other::NoResultTrust),
        ("… without allow-list", Untrusted, true, Other::NoDestinations),
        ("… without plan", Untrusted, true, Other::NoPlan),
        ("untrusted servers, without instruction", Untrusted, false, Other::Nothing),
        ("trusted servers, with instruction", Trusted, true, Other::Nothing),
        ("trusted servers, without instruction", Trusted, false, Other::Nothing),
    ] {
        let decided = replay(&data, &Configuration { trust, instruction, other });
        let all = || decided.iter();
        let denied = all().filter(|it| it.is_ordinary() && it.decision.denies());
        let denied: Vec<_> = denied.map(|it| (it.scenario, &it.call.tool)).collect();
        assert!(denied.is_empty(), "{name}: ordinary calls were denied: {denied:?}");
        // Without roles that somebody reviewed, some pass, as the page says.
        if trust == Untrusted && !matches!(other, Other::NoRoles | Other::DerivedRoles) {
            let passed = all().filter(|it| it.is_attack() && it.decision.passes());
            let passed: Vec<_> = passed.map(|it| (it.scenario, &it.call.tool)).collect();
            assert!(passed.is_empty(), "{name}: attacks passed: {passed:?}");
        }
        let is_write = |it: &&Decided<'_>| it.is_ordinary() && it.write;
        let found = [
            counts(all().filter(|it| it.is_ordinary())),
            counts(all().filter(is_write)),
            counts(all().filter(|it| it.is_attack())),
            counts(all().filter(|it| it.write && it.call.harmless)),
            counts(all().filter(|it| it.is_ordinary() && it.egress)),
            counts(all().filter(|it| it.call.attack && it.egress)),
        ];
        let row = documented(name);
        let expected = [0, 1, 4, 5, 6, 7].map(|at| row[at].clone());
        assert_eq!(found, expected, "{name}: is the table of docs/provenance.md up to date?");
    }
}
