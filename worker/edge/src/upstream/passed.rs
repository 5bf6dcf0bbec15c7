//! A call that passed: how its answer is inspected, and the record of its outcome.

use std::cell::{Cell, RefCell};

use futures_util::FutureExt as _;
use gateward_core::call::command::GateCommand;
use gateward_core::gate::inspection::Inspected;
use gateward_core::gate::proxy::{AnswerRules, Observe, ProxyDecision, Untrusted};
use gateward_core::gate::{
    Effect, FoundInResult, ListCommand, ObservedResult, OutcomeCommand, TaintCommand,
};
use gateward_core::log::{Event, Line};
use gateward_core::mcp::Era;
use gateward_core::problem::Problem;
use gateward_core::provenance::Observed;

use super::relay::{Ended, Recorded};
use crate::app::App;
use crate::{lane, log};

/// A call that passed, and what the record of its outcome needs.
pub struct Passed {
    pub command: GateCommand,
    pub decision: ProxyDecision,
    pub rules: AnswerRules,
    /// The era of an MCP call; `None` for a request to an HTTP API.
    era: Option<Era>,
    /// The values that were found so far.
    pub observed: RefCell<Observed>,
    /// What the shield found in the answer.
    found: RefCell<Option<FoundInResult>>,
    /// Whether the finding taints the agent. An answer that is withheld does not taint.
    taints: Cell<bool>,
    /// The effect of an MCP call by its answer; `None` before there is one.
    pub effect: Cell<Option<Effect>>,
}

impl Passed {
    pub fn new(
        command: GateCommand,
        decision: ProxyDecision,
        rules: AnswerRules,
        era: Option<Era>,
    ) -> Self {
        Self {
            command,
            decision,
            rules,
            era,
            observed: RefCell::default(),
            found: RefCell::default(),
            taints: Cell::default(),
            effect: Cell::default(),
        }
    }

    /// Keeps what the record of the outcome says about an inspection.
    pub fn note(&self, inspected: &Inspected) {
        self.found.replace(inspected.found.clone());
        self.taints.set(inspected.taints && inspected.withheld.is_none());
    }

    /// Whether the shield found something in the answer that taints.
    pub fn is_tainting(&self) -> bool {
        self.taints.get()
    }
}

/// Untrusted text of a server marks its agent again only if the last mark is older than this. A server that
/// sends a thousand notifications a second then causes one hop a second.
pub const MARK_INTERVAL_MS: u64 = 1_000;

/// Marks the agent before text of an untrusted server reaches it.
///
/// # Errors
///
/// The lane did not confirm the mark. The text must not be passed on.
pub async fn mark(app: &App, command: &GateCommand, untrusted: &Untrusted) -> Result<(), Problem> {
    let command = TaintCommand {
        tenant: command.tenant.clone(),
        lane: command.lane,
        agent: command.call.agent.clone(),
        server: command.call.server.clone(),
        run: untrusted.run.clone(),
        period_ms: untrusted.period_ms,
    };
    lane::client::taint(app, command).await
}

/// Stores the values of a list, or of another answer without a decision, in its run, before the answer reaches the agent.
/// `method`: what it answers.
///
/// # Errors
///
/// The lane did not confirm that it stored them. The answer must not be passed on.
pub async fn observe_list(
    app: &App,
    command: &GateCommand,
    observe: &Observe,
    method: &str,
    values: Observed,
) -> Result<(), Problem> {
    let command = ListCommand {
        tenant: command.tenant.clone(),
        lane: command.lane,
        agent: command.call.agent.clone(),
        server: command.call.server.clone(),
        method: method.to_owned(),
        observed: ObservedResult { run: observe.run.clone(), values },
    };
    lane::client::observe_list(app, command).await
}

/// Sends the outcome of a call to the lane. If the values of the answer are observed, this returns a promise, and the
/// answer must wait for it. Otherwise nobody waits.
pub fn record_outcome(app: &App, passed: &Passed, ended: Ended) -> Option<Recorded> {
    let Passed { command, decision, rules, era, observed, found, taints, effect } = passed;
    let AnswerRules { untrusted, observe, inspect } = rules;
    let found_taints = inspect.as_ref().filter(|_| taints.get()).map(|inspect| &inspect.taints);
    let receipt = decision.receipt.as_ref()?;
    let observed = observe
        .as_ref()
        .map(|observe| ObservedResult { run: observe.run.clone(), values: observed.take() });
    let effect = match era {
        None => Effect::of_http(ended.ending, ended.status),
        Some(era) => {
            let in_session = *era == Era::Session;
            Effect::of_mcp(ended.ending, ended.status, effect.get(), in_session)
        }
    };
    let outcome = OutcomeCommand {
        tenant: command.tenant.clone(),
        lane: command.lane,
        agent: command.call.agent.clone(),
        server: command.call.server.clone(),
        tool: command.call.tool.clone(),
        decision_id: decision.decision_id.clone(),
        decision_hash: receipt.receipt_hash.clone(),
        status: ended.status,
        bytes: ended.bytes,
        duration_ms: ended.duration_ms,
        result_sha256: ended.sha256,
        ending: ended.ending,
        effect,
        untrusted: untrusted.as_ref().or(found_taints).cloned(),
        observed,
        found: found.take(),
    };
    let owned = app.clone();
    let recorded = async move {
        let app = owned;
        let (tenant, lane) = (outcome.tenant.clone(), outcome.lane);
        let decision_id = outcome.decision_id.clone();
        let recorded = lane::client::record_outcome(&app, outcome).await;
        if let Err(problem) = &recorded {
            let line = app.line(Event::OutcomeNotRecorded, &problem.detail);
            let decision_id = Some(decision_id.as_str());
            log::write(&Line { decision_id, ..line.in_lane(&tenant, lane) });
        }
        recorded
    };
    if observe.is_none() {
        app.context.wait_until(recorded.map(drop));
        return None;
    }
    // The request to the lane goes on if the caller disconnects meanwhile.
    let recorded = recorded.boxed_local().shared();
    app.context.wait_until(recorded.clone().map(drop));
    Some(recorded.boxed_local())
}
