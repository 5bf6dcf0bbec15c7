//! The outcome of a call that was allowed and forwarded: a second receipt in the same chain, which
//! names the decision's receipt.
//!
//! A decision holds whatever its outcome is. If a decision that passed has no outcome, the worker stopped before it
//! could report: the call may have been forwarded, and its end is unknown.

use serde::{Deserialize, Serialize};

use super::agent_state::AgentState;
use super::facts::EventFacts;
use super::proxy::Untrusted;
use super::row::{Event, JournalEntry, LaneEvent};
use crate::json::as_text;
use crate::limit::reservation;
use crate::metrics::{Ended, ReservationEvent, Series};
use crate::problem::Problem;
use crate::provenance::Observed;
use crate::receipt::{BODY_VERSION, Body, Ending, OutcomeBody, ReceiptKind};
use crate::shield::Noted;
use crate::taint::{Scope, TaintingCall};

/// An outcome, as the worker reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCommand {
    pub tenant: String,
    pub lane: u16,
    pub agent: String,
    pub server: String,
    /// Empty in commands of older workers.
    #[serde(default)]
    pub tool: String,
    pub decision_id: String,
    /// The hash of the decision's receipt.
    pub decision_hash: String,
    pub status: u16,
    pub bytes: u64,
    pub duration_ms: u64,
    pub result_sha256: String,
    pub ending: Ending,
    /// Whether the call did what it should. Limits give back what a call did not use.
    pub effect: Effect,
    /// Present if the answer taints: the server is untrusted, or the shield found an attack in what it
    /// returned. Names the run to mark; if it names none, the agent is marked. The run or the agent was
    /// marked before, but an administrator may have lifted that mark while the answer was on its way.
    pub untrusted: Option<Untrusted>,
    /// The values of the answer, if a harness assigned the call's run.
    pub observed: Option<ObservedResult>,
    /// What the shield found in the answer.
    #[serde(with = "as_text")]
    pub found: Option<FoundInResult>,
}

/// What the shield found in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundInResult {
    pub noted: Noted,
    /// Whether the answer was withheld.
    pub blocked: bool,
}

/// Whether a forwarded call did what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// It did what it should. Also if the caller caused the ending, for example by closing the connection: the call may
    /// have had its effect before.
    Succeeded,
    /// It certainly did nothing.
    Failed,
    Unclear,
}

impl Effect {
    /// By the status of an HTTP response. A server that fails may have done something before.
    #[must_use]
    pub const fn of_http(ending: Ending, status: u16) -> Self {
        match (ending, status) {
            // It was not sent.
            (Ending::Refused, 0) => Self::Failed,
            // The caller went away, or its headers or arguments asked for an answer that cannot be given.
            (Ending::CallerGone | Ending::TooLarge, _) | (_, 406 | 408 | 412 | 416) => {
                Self::Succeeded
            }
            (Ending::Complete, 200..=399) => Self::Succeeded,
            (_, 400..=499) => Self::Failed,
            _ => Self::Unclear,
        }
    }

    /// By the effect of the answer to an MCP call, if it had one.
    ///
    /// In a session, a status says nothing about one call: it can be about another message of the batch, or about the end
    /// of the session, which the client can cause while the call runs.
    #[must_use]
    pub const fn of_mcp(
        ending: Ending,
        status: u16,
        answer: Option<Self>,
        in_session: bool,
    ) -> Self {
        match (answer, Self::of_http(ending, status)) {
            (Some(effect), _) => effect,
            // Without a status, the call was not sent.
            (None, Self::Failed) if in_session && status != 0 => Self::Unclear,
            (None, Self::Failed) => Self::Failed,
            // The response is complete, but has no result of this call.
            (None, Self::Succeeded) if matches!(ending, Ending::Complete) => Self::Unclear,
            (None, effect) => effect,
        }
    }
}

impl From<Effect> for reservation::Ending {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Succeeded => Self::Succeeded(None),
            Effect::Failed => Self::Failed,
            Effect::Unclear => Self::Unclear,
        }
    }
}

/// The values of an answer, and the run that they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObservedResult {
    pub run: String,
    pub values: Observed,
}

/// The values of a list, an error or a completion that a server returned in a run. It has no decision and no outcome, so
/// its values have no journal row. If they add something to the run, they are stored as a row of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListCommand {
    pub tenant: String,
    pub lane: u16,
    pub agent: String,
    pub server: String,
    /// The method that it answers.
    pub method: String,
    pub observed: ObservedResult,
}

/// The members of an outcome's row.
#[derive(Serialize)]
struct OutcomeDetail<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    source: &'a str,
    detail: Detail<'a>,
}

#[derive(Serialize)]
struct Detail<'a> {
    server: &'a str,
    status: u16,
    bytes: u64,
    duration_ms: u64,
}

/// The row and the agent's next state. `settles`: whether the outcome ends a reservation.
///
/// # Errors
///
/// `journal_full`.
pub fn record(
    facts: &EventFacts<'_>,
    command: &OutcomeCommand,
    settles: bool,
) -> Result<(JournalEntry, AgentState), Problem> {
    facts.check_space()?;
    let mut state = AgentState { revision: facts.state.revision + 1, ..facts.state.clone() };
    if let Some(untrusted) = command.untrusted.as_ref().filter(|_| command.bytes > 0) {
        let scope = untrusted.run.as_deref().map_or(Scope::Agent, Scope::Run);
        let call = (!command.tool.is_empty()).then(|| TaintingCall {
            decision_id: command.decision_id.clone(),
            server: command.server.clone(),
            tool: command.tool.clone(),
        });
        state.taint.add(scope, &command.server, call, untrusted.period_ms, facts.now_ms);
    }
    let event = Event {
        head: facts.head,
        at_ms: facts.now_ms,
        agent: &command.agent,
        state: &state,
        decision_id: &command.decision_id,
    };
    let blocked = command.found.as_ref().is_some_and(|found| found.blocked);
    let body = Body::Outcome(OutcomeBody {
        agent: &command.agent,
        bytes: command.bytes,
        decision_hash: &command.decision_hash,
        decision_id: &command.decision_id,
        duration_ms: command.duration_ms,
        ending: command.ending,
        kind: ReceiptKind::Outcome,
        lane: command.lane,
        prev_hash: &facts.head.hash,
        result_blocked: blocked,
        result_sha256: &command.result_sha256,
        seq: event.seq(),
        server: &command.server,
        shield: command.found.as_ref().map(|found| &found.noted),
        status: command.status,
        tenant: &command.tenant,
        time: &event.time(),
        version: BODY_VERSION,
    });
    let detail = OutcomeDetail {
        event: match blocked {
            true => Some(LaneEvent::ResultBlocked.as_str()),
            false => command.ending.event(),
        },
        source: &command.agent,
        detail: Detail {
            server: &command.server,
            status: command.status,
            bytes: command.bytes,
            duration_ms: command.duration_ms,
        },
    };
    let entry = event.entry(&body, detail, &series(command, settles));
    Ok((entry, state))
}

/// What the outcome adds to metrics.
fn series(command: &OutcomeCommand, settles: bool) -> Vec<Series<'_>> {
    let outcome = match command.ending {
        Ending::Complete if command.status >= 500 => Ended::ServerError,
        Ending::Complete => Ended::Answered,
        Ending::CallerGone => Ended::CallerGone,
        Ending::UpstreamFailed => Ended::UpstreamFailed,
        Ending::TimedOut => Ended::TimedOut,
        Ending::TooLarge => Ended::TooLarge,
        Ending::Refused => Ended::Refused,
    };
    let (server, duration_ms) = (command.server.as_str(), command.duration_ms);
    let mut series = vec![Series::Proxied { outcome, server, duration_ms }];
    if settles {
        series.push(Series::Reservation(match command.effect {
            Effect::Succeeded => ReservationEvent::Settled,
            Effect::Failed => ReservationEvent::Returned,
            Effect::Unclear => ReservationEvent::Unclear,
        }));
    }
    series
}
