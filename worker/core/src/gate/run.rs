//! What a harness says about a run: the user's instruction, and results that the agent got without Gateward.
//!
//! A deceived agent could state an instruction, or report a trusted result that never existed. So only the harness's
//! own credential may do this, and no run credential.

use super::draft::{Draft, DraftResult, Stop, scope, taint_period_ms};
use super::event::{self, TaintCommand};
use super::row::JournalEntry;
use super::{identity, meter, shield};
use crate::call::command::Purpose;
use crate::call::run::{ReportedResult, RunStart};
use crate::policy::PolicyEngine;
use crate::problem::{Problem, ProblemCode};
use crate::provenance::part::Part;
use crate::provenance::run::{Observation, RunValues, Source};
use crate::provenance::{action, extract, lookup};
use crate::shield::Verdict;
use crate::taint::Scope;

/// Carries out a [`Purpose::StartRun`] or a [`Purpose::ReportResult`]. The credential is checked and one request
/// is charged.
pub fn judge(engine: &PolicyEngine, draft: &mut Draft<'_>) -> Result<DraftResult, Stop> {
    let (command, facts) = (draft.command, draft.facts);
    let identity = identity::verify(command, facts)?;
    meter::charge(draft)?;
    let refuse = |detail| Err(Stop::Problem(Problem::new(ProblemCode::Forbidden, detail), None));
    if command.run_credential {
        return refuse("a run credential only makes calls in its run; send the harness's own");
    }
    // Only a credential with `assigns_runs` has an assigned run.
    let Some(run) = facts.run.filter(|_| identity.credential.assigns_runs) else {
        return refuse("the credential was not registered with `assigns_runs`");
    };
    if identity::status(draft, &identity)?.is_some() {
        return refuse("the agent is not active, or a ban applies; ask an administrator");
    }
    match &command.purpose {
        Purpose::StartRun(start) if start.issues_credential && identity.credential.signed => {
            // The agent has no signing key, so it could not use the run credential.
            refuse("a credential that must sign requests cannot issue run credentials")
        }
        Purpose::StartRun(start) => begin(draft, run, start),
        Purpose::ReportResult(reported) => report(engine, draft, run, reported),
        _ => refuse("this says nothing about a run"),
    }
}

/// A statement of what the user asked for. If it is repeated, nothing changes and no row is written.
fn begin(draft: &Draft<'_>, run: &RunValues, start: &RunStart) -> Result<DraftResult, Stop> {
    let key = &draft.facts.config.value_key;
    // The actions come first, so that a run that is full lacks values instead.
    let mut stated = action::stated(key, &start.instruction);
    stated.extend(start.plan.iter().map(|call| action::tool(key, &call.tool)));
    stated.extend(extract::instruction(key, &start.instruction));
    let planned = start.plan.iter().flat_map(|call| {
        call.arguments.iter().flat_map(move |(pointer, values)| {
            values.iter().map(move |value| lookup::planned(key, &call.tool, pointer, value))
        })
    });
    let from = start.plan.iter().flat_map(|call| {
        call.from.iter().flat_map(move |(pointer, tools)| {
            tools.iter().map(move |source| lookup::from(key, &call.tool, pointer, source))
        })
    });
    let at_most = start.plan.iter().flat_map(|call| {
        let limits = call.at_most.iter();
        limits.map(|(pointer, most)| (lookup::limited(key, &call.tool, pointer), *most))
    });
    let plan = (planned.chain(from).collect(), at_most.collect());
    let Some(observation) = run.of_statement(key.fingerprint(), stated, plan) else {
        return Ok(DraftResult::Recorded { entry: None, observation: None });
    };
    // Without the key, nobody who reads the audit can check a guess of a short instruction.
    let instruction_hash = hex::encode(key.verbatim(&start.instruction).to_be_bytes());
    let entry = event::run_started(&draft.event_facts(), draft.command, instruction_hash);
    recorded(entry.map(Some), Some(observation))
}

/// A result of a call that the agent made itself. It counts like one that Gateward passed on.
fn report(
    engine: &PolicyEngine,
    draft: &mut Draft<'_>,
    run: &RunValues,
    reported: &ReportedResult,
) -> Result<DraftResult, Stop> {
    let (command, facts) = (draft.command, draft.facts);
    let Some(server) = &facts.records.server else {
        return Err(Stop::Problem(Problem::not_found("server"), None));
    };
    let Some(tool) = &facts.records.tool else {
        return Err(Stop::Problem(Problem::not_found("tool"), None));
    };
    let key = &facts.config.value_key;
    let trust = tool.result_trust.as_deref();
    let parts = [Part::whole(&reported.text)];
    // The agent has read it, so nothing is redacted or withheld.
    let modes = shield::modes(facts);
    let attacks = server.inspects_results && !modes.are_off() && {
        let found = engine.shield().inspect_answer(&command.tenant, key, &parts);
        Verdict::new(modes, found).taints()
    };
    let observed = extract::result(key, &parts, trust, !server.is_untrusted() && !attacks);
    let source = Source { decision_id: reported.decision_id.clone(), tool: command.call.tool_id() };
    let observation = run.of_result(&observed, source);
    let taint = (facts.records.is_untrusted() || attacks).then(|| {
        let command = TaintCommand {
            tenant: command.tenant.clone(),
            lane: command.lane,
            agent: command.call.agent.clone(),
            server: command.call.server.clone(),
            run: match scope(command, facts.records) {
                Scope::Agent => None,
                Scope::Run(run) => Some(run.to_owned()),
            },
            period_ms: taint_period_ms(facts.records),
        };
        event::taint(&draft.event_facts(), &command)
    });
    let entry = match taint.transpose() {
        Ok(Some(Some((entry, state)))) => {
            draft.agent = state;
            Ok(Some(entry))
        }
        Ok(_) => Ok(None),
        Err(problem) => Err(problem),
    };
    recorded(entry, observation)
}

fn recorded(
    entry: Result<Option<JournalEntry>, Problem>,
    observation: Option<Observation>,
) -> Result<DraftResult, Stop> {
    match entry {
        Ok(entry) => Ok(DraftResult::Recorded { entry: entry.map(Box::new), observation }),
        Err(problem) => Err(Stop::Problem(problem, None)),
    }
}
