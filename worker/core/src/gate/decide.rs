//! Steps 5 to 12, in order.
//!
//! INVARIANT (deny is the default arm): every return of [`judge`] that is not an explicit permit of
//! the policies is a denial or a problem.

use super::caller;
use super::conclude::conclude;
use super::draft::{Draft, DraftResult, Stop, assigned_run, observed_run, scope, taint_period_ms};
use super::facts::Facts;
use super::identity::{self, Identity};
use super::proxy::{self, AnswerRules, InspectResults, Observe, Untrusted, Visibility};
use super::ruling::{self, Ruling, Tool};
use super::step::{CountedEvent, Refused, Step};
use super::{
    approval, limits, listing, meter, outcome_report, provenance, resolve, run, shield, trust,
    velocity, warrant,
};
use crate::call::command::{GateCommand, Purpose};
use crate::decision::{Decision, ReasonCode};
use crate::policy::{Evaluation, PolicyEngine};
use crate::provenance::Provenance;
use crate::registry::upstream::DenialForm;

/// Decides one command: steps 5 to 12.
#[must_use]
pub fn decide(engine: &PolicyEngine, facts: &Facts<'_>, command: &GateCommand) -> Step {
    let mut draft = Draft::new(facts, command);
    let judged = match command.purpose {
        Purpose::Read => read(&mut draft),
        Purpose::ReportOutcome(_) => outcome_report::judge(&mut draft),
        Purpose::StartRun(_) | Purpose::ReportResult(_) => run::judge(engine, &mut draft),
        Purpose::Message { .. } | Purpose::Filter(_) => listing::judge(engine, &mut draft),
        _ => judge(engine, &mut draft),
    };
    match judged {
        Ok(DraftResult::Ruling(ruling)) => {
            let mut step = conclude(draft, engine, &ruling);
            let passes = ruling.decision.passes();
            if passes {
                step.reply.counted_in = velocity::shared_rows(facts);
            }
            if command.purpose != Purpose::Authorize {
                step.reply.body = proxy_body(facts, command, Some((&step.reply.body, passes)), &[]);
            }
            step
        }
        Ok(DraftResult::Passed(visible)) => {
            let body = proxy_body(facts, command, None, &visible);
            let is_message = matches!(command.purpose, Purpose::Message { .. });
            draft.answer(200, body, None, is_message.then_some(CountedEvent::MessagePassed))
        }
        Ok(DraftResult::Recorded { entry, observation }) => {
            let body = proxy_body(facts, command, None, &[]);
            let mut step = draft.answer(200, body, None, None);
            step.entry = entry.map(|entry| *entry);
            step.observation = observation;
            step
        }
        Err(Stop::Stored(body)) => draft.answer(200, body, None, None),
        Err(Stop::NotLeased(needs)) => {
            Step { needs, ..draft.answer(200, String::new(), None, None) }
        }
        Err(Stop::NotCounted(count_requests)) => {
            Step { count_requests, ..draft.answer(200, String::new(), None, None) }
        }
        Err(Stop::Problem(problem, counted)) => {
            let body = problem.to_json(&command.http_request_id);
            let retry = problem.retry_after_s.map(u64::from);
            let refused = counted.and_then(|counted| Refused::of(counted, &problem));
            let charged = match command.call.dry_run {
                true => None,
                false => limits::writes(&draft, false, ""),
            };
            Step { refused, charged, ..draft.answer(problem.code.status(), body, retry, counted) }
        }
        Err(Stop::Terminal(problem)) => {
            let body = problem.to_json(&command.http_request_id);
            let counted = Some(CountedEvent::AuthenticationFailed);
            let mut step = draft.answer(problem.code.status(), body, None, counted);
            step.reply.terminal = true;
            step.refused = Some(Refused::Authentication(problem.code));
            step
        }
    }
}

/// The answer to a proxy. `decision` is the decision's text, and whether the call passes. Only a
/// request that passes gets the server's address.
fn proxy_body(
    facts: &Facts<'_>,
    command: &GateCommand,
    decision: Option<(&str, bool)>,
    visible: &[Visibility],
) -> String {
    let server = facts.records.server.as_ref();
    let upstream = server.and_then(|server| server.upstream.as_deref());
    let denial = upstream.map_or(DenialForm::default(), |upstream| upstream.denial);
    let passes = decision.is_none_or(|(_, passes)| passes);
    let upstream = upstream.filter(|_| passes);
    let answer = match passes {
        true => AnswerRules {
            untrusted: taints(facts, command).filter(|_| facts.records.is_untrusted()),
            observe: observe(facts, command, decision.is_some()),
            inspect: inspect(facts, command),
        },
        false => AnswerRules::default(),
    };
    let text = decision.map(|(text, _)| text);
    proxy::reply(text, upstream, answer, denial, command, visible)
}

/// Whose calls a text of the server taints.
fn taints(facts: &Facts<'_>, command: &GateCommand) -> Option<Untrusted> {
    let server = facts.records.server.as_ref()?;
    Some(Untrusted {
        run: assigned_run(command, facts.records).map(str::to_owned),
        period_ms: taint_period_ms(facts.records),
        instructions_sha256: server.instructions_sha256.clone(),
    })
}

/// How a proxy inspects what the server returns; `None` if the server's registration does not ask for it, or every
/// category is off.
fn inspect(facts: &Facts<'_>, command: &GateCommand) -> Option<InspectResults> {
    facts.records.server.as_ref().filter(|server| server.inspects_results)?;
    let (modes, server) = (shield::modes(facts), shield::modes_of_server(facts));
    let taints = taints(facts, command)?;
    (!modes.are_off() || !server.are_off()).then_some(InspectResults { modes, server, taints })
}

/// What a proxy must observe in the answer; `None` if no harness assigned the call's run. Of the answer to a message
/// that calls no tool, lists, errors and completions are observed. No pointer leads into them.
fn observe(facts: &Facts<'_>, command: &GateCommand, decided: bool) -> Option<Observe> {
    let records = facts.records;
    let (run, result_trust) = match command.purpose {
        Purpose::Message { .. } => (assigned_run(command, records)?, None),
        _ if decided => {
            let trust = &records.tool.as_ref()?.result_trust;
            (observed_run(command, records)?, trust.as_deref().cloned())
        }
        _ => return None,
    };
    let trusted = records.server.as_ref().is_some_and(|server| !server.is_untrusted());
    Some(Observe { run: run.to_owned(), trusted, result_trust })
}

/// Whether [`decide`] gets as far as the tool. If not, the lane does not read the tool's record: an
/// agent that is stopped, over its rate, or not granted the tool causes no reads.
#[must_use]
pub fn needs_tool(facts: &Facts<'_>, command: &GateCommand) -> bool {
    if matches!(command.purpose, Purpose::ReportResult(_)) {
        return facts.records.credential.as_ref().is_some_and(|it| it.assigns_runs);
    }
    let mut draft = Draft::new(facts, command);
    match caller::check(&mut draft) {
        Ok((identity, None)) => resolve::is_granted(&draft, &identity),
        _ => false,
    }
}

/// What the policies say about a call, as [`decide`] asks them; `None` if it does not get as far.
/// For benches, which compare step 10 with plain Cedar.
#[must_use]
pub fn evaluate_policies(
    engine: &PolicyEngine,
    facts: &Facts<'_>,
    command: &GateCommand,
) -> Option<Evaluation> {
    let mut draft = Draft::new(facts, command);
    let identity = identity::verify(command, facts).ok()?;
    let tool = resolve::registered_tool(engine, &draft, &identity).ok()?;
    velocity::read_windows(&mut draft, &tool).ok()?;
    resolve::evaluate(engine, &draft, &identity, &tool, None, draft.origin()).ok()
}

/// An agent's read of its own records. Its credential is checked and one request is charged. The
/// worker asks D1 whether the agent may read at all.
fn read(draft: &mut Draft<'_>) -> Result<DraftResult, Stop> {
    identity::verify(draft.command, draft.facts)?;
    meter::charge(draft)?;
    Ok(DraftResult::Passed(Vec::new()))
}

/// Steps 5 to 11 of a call.
fn judge(engine: &PolicyEngine, draft: &mut Draft<'_>) -> Result<DraftResult, Stop> {
    let ruling = rule_on_call(engine, draft);
    let passes = matches!(&ruling, Ok(ruling) if ruling.decision.passes());
    if !passes || draft.command.call.dry_run {
        limits::revert(draft);
    }
    ruling.map(DraftResult::Ruling)
}

/// The ruling of steps 5 to 11. If it passes, the limits are used.
fn rule_on_call(engine: &PolicyEngine, draft: &mut Draft<'_>) -> Result<Ruling, Stop> {
    let (identity, denial) = caller::check(draft)?;
    let ruling = match denial {
        Some(denial) => denial,
        None => judge_call(engine, draft, &identity)?,
    };
    draft.check_space(&ruling)?;
    // This comes last, so that a call that is denied for another reason takes nothing away from other lanes.
    if ruling.decision.passes() && !draft.needs.is_empty() {
        return Err(Stop::NotLeased(std::mem::take(&mut draft.needs)));
    }
    Ok(ruling)
}

/// Steps 7 to 11: the ruling on a call of an agent that may call.
fn judge_call(
    engine: &PolicyEngine,
    draft: &mut Draft<'_>,
    identity: &Identity<'_>,
) -> Result<Ruling, Stop> {
    let approval_refusal = approval::check_presented(draft).err();
    let ruling = match resolve_tool(engine, draft, identity) {
        Ok((tool, warrant_denial)) => {
            rule(engine, draft, identity, &tool, warrant_denial, approval_refusal)?
        }
        Err(denial) => *denial,
    };
    let mut ruling = match draft.command.purpose {
        Purpose::Ask => ruling::without_effects(ruling),
        Purpose::Routed(_) if ruling.decision == Decision::Redact && !draft.command.forwarded => {
            ruling::without_redaction(ruling)
        }
        _ => approval::deny_if_it_cannot_wait(draft, ruling),
    };
    ruling.provenance = shield::stored_provenance(engine, draft).map(Box::new);
    explain_taint(draft, &mut ruling);
    Ok(ruling)
}

/// The tool of a call, once its warrant was checked. A canary comes with the denial of its warrant, if there is one.
fn resolve_tool(
    engine: &PolicyEngine,
    draft: &mut Draft<'_>,
    identity: &Identity<'_>,
) -> Result<(Tool, Option<Box<Ruling>>), Box<Ruling>> {
    warrant::deny_if_not_carried(draft)?;
    let tool = resolve::registered_tool(engine, draft, identity)?;
    // A request of a server is not the agent's call.
    let warranted = match draft.command.purpose {
        Purpose::Ask => Ok(()),
        _ => warrant::check(draft, &tool),
    };
    match warranted {
        // A canary quarantines, whatever the warrant says. But a caller without a credential must not stop the agent
        // with a call that its warrant does not carry.
        Err(denial) if tool.canary && !draft.command.located => Ok((tool, Some(denial))),
        warranted => warranted.map(|()| (tool, None)),
    }
}

/// The ruling on a call whose tool is known: limits, shield, windows and policies. The denial of a canary's warrant and
/// the refusal of the call's approval hold unless the ruling is a quarantine.
fn rule(
    engine: &PolicyEngine,
    draft: &mut Draft<'_>,
    identity: &Identity<'_>,
    tool: &Tool,
    warrant_denial: Option<Box<Ruling>>,
    approval_refusal: Option<ReasonCode>,
) -> Result<Ruling, Stop> {
    if let Some(denial) = limits::check(draft, tool)? {
        return Ok(denial);
    }
    let shield_denial = shield::inspect_call(engine, draft, Some(tool));
    draft.provenance = provenance::of(draft, tool);
    let ruling = match velocity::read_windows(draft, tool)? {
        Some(denial) => denial,
        None => {
            let ruling = ask_policies(engine, draft, identity, tool.clone());
            let ruling = warrant::deny_redaction(draft, tool, ruling);
            shield::apply_redaction(draft, tool, ruling)
        }
    };
    let ruling = approval::deny_if_unusable(approval_refusal, ruling);
    Ok(match warrant_denial.or(shield_denial) {
        Some(denial) if ruling.decision != Decision::Quarantine => *denial,
        _ => ruling,
    })
}

/// If taint caused the ruling, its reason says where the taint and the call's destinations came from.
fn explain_taint(draft: &Draft<'_>, ruling: &mut Ruling) {
    let Some(taint) = &ruling.taint else { return };
    let (scope, agent) = (scope(draft.command, draft.facts.records), &draft.command.call.agent);
    ruling.reason = [&ruling.reason, " ", &taint.sentences(scope, agent)].concat();
    let origins = ruling.provenance.as_deref().map(Provenance::sentences);
    if let Some(origins) = origins.filter(|sentences| !sentences.is_empty()) {
        ruling.reason.extend([" ", &origins]);
    }
}

/// Steps 10 and 11.
fn ask_policies(
    engine: &PolicyEngine,
    draft: &Draft<'_>,
    identity: &Identity<'_>,
    tool: Tool,
) -> Ruling {
    let approval = approval::granted(draft);
    let ask = |tool: &Tool, origin: trust::Origin<'_>| {
        resolve::evaluate(engine, draft, identity, tool, approval, origin)
    };
    match ask(&tool, draft.origin()) {
        Ok(evaluation) => {
            let ruling = ruling::from_policies(&evaluation, tool, approval);
            trust::explain(draft, ruling, &evaluation, approval, ask)
        }
        Err(denial) => *denial,
    }
}
