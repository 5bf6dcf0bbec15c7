//! The part that the provenance of values has in a decision: facts for the policies before it, and what the
//! call adds to its run after it.

use std::thread::LocalKey;

use super::draft::Draft;
use super::ruling::{Ruling, Tool};
use crate::call::command::Purpose;
use crate::policy::bundle::Risk;
use crate::policy::{Value, record};
use crate::provenance::call::Call;
use crate::provenance::lookup::Known as _;
use crate::provenance::run::Observation;
use crate::provenance::{Destinations, Level, Provenance, Reach, lookup};

thread_local! {
    /// What policies see of a call whose destinations are not looked up.
    static UNTRACKED: Value = value(None);
    /// What policies see of a tenant without destinations.
    static NO_DESTINATIONS: Value = destinations(&Destinations::default());
}

/// Where the destinations of the call came from. `None` if it reads, or if it is not tainted and in no
/// assigned run: then nothing depends on it.
pub fn of(draft: &Draft<'_>, tool: &Tool) -> Option<Provenance> {
    let tracked = draft.tainted.is_some() || draft.facts.run.is_some();
    (tool.writes && tracked).then(|| with_call(draft, Some(tool), |call| call.provenance()))
}

/// What a call adds to its run if it passes. It adds the values of its arguments, so that no later result
/// raises them. It adds the destinations that an approver approved, and those that the agent chose as the
/// plan allows.
pub fn of_call(draft: &Draft<'_>, ruling: &Ruling) -> Option<Observation> {
    let facts = draft.facts;
    let run = facts.run?;
    if !ruling.decision.passes() {
        return None;
    }
    let key = &facts.config.value_key;
    // A read names no destination.
    let tool = ruling.tool.as_ref();
    let writes = tool.is_some_and(|tool| tool.writes);
    let approved = writes && super::approval::granted(draft).is_some();
    let stated = approved.then(|| with_call(draft, tool, |call| call.statement()));
    let sent = with_call(draft, tool, |call| call.sent());
    let chosen = (writes && run.has_plan()).then(|| with_call(draft, tool, |call| call.choices()));
    let stated = (stated.unwrap_or_default(), chosen.unwrap_or_default());
    run.of_call(key.fingerprint(), sent, stated)
}

/// Whether a message that names what it is about, but calls no tool, is tainted and says something that nobody trusted
/// said before. A request for a list says nothing.
pub fn says_unknown(draft: &Draft<'_>) -> bool {
    let (input, facts) = (&draft.command.call.input, draft.facts);
    let tenant = facts.records.tenant.as_ref();
    let none = Destinations::default();
    let destinations = tenant.and_then(|tenant| tenant.destinations.as_deref()).unwrap_or(&none);
    let known = |hash| facts.run.and_then(|run| run.get(hash));
    let found = || lookup::sink(&facts.config.value_key, (input, false), destinations, &known);
    draft.tainted.is_some()
        && draft.command.names_what_it_is_about()
        && found().is_some_and(|found| found.level < Level::Trusted)
}

fn with_call<T>(draft: &Draft<'_>, resolved: Option<&Tool>, ask: impl FnOnce(&Call<'_>) -> T) -> T {
    let (command, facts) = (draft.command, draft.facts);
    let none = Destinations::default();
    let registered = facts.records.tool.as_ref();
    let tenant = facts.records.tenant.as_ref();
    ask(&Call {
        key: &facts.config.value_key,
        tool: &draft.tool_id,
        high_risk: resolved.is_some_and(|tool| matches!(tool.risk, Risk::High | Risk::Critical)),
        roles: registered.and_then(|tool| tool.argument_roles.as_deref()),
        reach: registered.map_or(Reach::Outside, |tool| tool.reach),
        destinations: tenant.and_then(|tenant| tenant.destinations.as_deref()).unwrap_or(&none),
        run: facts.run,
        input: &command.call.input,
        resource: match command.purpose {
            Purpose::Authorize => command.call.resource.as_str(),
            _ => "",
        },
        schema: registered.and_then(|tool| tool.input_schema.as_deref()),
        declared: resolved.and_then(|tool| tool.schema.as_ref()).map(|schema| schema.declared()),
        answers: command.answers(),
    })
}

/// `context.provenance` and `context.destinations`.
pub fn context(draft: &Draft<'_>) -> [Value; 2] {
    let constant = |value: &'static LocalKey<Value>| value.with(Value::clone);
    let provenance = match &draft.provenance {
        None => constant(&UNTRACKED),
        known => value(known.as_ref()),
    };
    let tenant = draft.facts.records.tenant.as_ref();
    let destinations = match tenant.and_then(|tenant| tenant.destinations.as_deref()) {
        None => constant(&NO_DESTINATIONS),
        Some(registered) => destinations(registered),
    };
    [provenance, destinations]
}

fn value(provenance: Option<&Provenance>) -> Value {
    let of = |level: Level| {
        let sinks = provenance.into_iter().flat_map(|provenance| provenance.of_level(level));
        (level.as_str(), Value::set(sinks.map(Value::from), None))
    };
    let lowest = provenance.map_or(Level::Nowhere, |provenance| provenance.lowest);
    let reach = provenance.map_or(Reach::Outside, |provenance| provenance.reach);
    let instructed = provenance.is_some_and(|provenance| provenance.instruction_known);
    let mut facts = vec![
        ("tracked", Value::from(provenance.is_some())),
        ("lowest", Value::from(lowest.as_str())),
        ("reach", Value::from(reach.as_str())),
        ("instruction_known", Value::from(instructed)),
    ];
    facts.extend(Level::ALL.map(of));
    record(facts)
}

fn destinations(registered: &Destinations) -> Value {
    let Destinations { accounts, domains, hosts } = registered;
    let set = |names: &[String]| Value::set(names.iter().map(|name| Value::from(&**name)), None);
    record(vec![("accounts", set(accounts)), ("domains", set(domains)), ("hosts", set(hosts))])
}
