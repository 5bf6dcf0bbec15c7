//! What became of a call that was allowed and forwarded: a second receipt, in the same chain, that
//! names the decision's.
//!
//! The decision stands whatever its outcome is. One without an outcome was forwarded, and how it
//! ended is not known: the worker ended before it could say.

use serde::{Deserialize, Serialize};

use super::journal::{self, JournalEntry, Room};
use super::taint::{Scope, TaintingCall};
use super::{AgentState, ChainHead};
use crate::id;
use crate::problem::Problem;
use crate::proxy::Untrusted;
use crate::receipt::{self, BODY_VERSION, Body, OutcomeBody};

/// How an upstream's answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As the upstream ended it.
    Complete,
    /// The caller went away.
    CallerGone,
    /// The upstream could not be reached, or broke off.
    UpstreamFailed,
    /// The upstream took longer than its server may.
    TimedOut,
    /// The answer had more bytes than the server's may.
    TooLarge,
    /// The answer was none that can be passed on.
    Refused,
}

impl Ending {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::CallerGone => "caller_gone",
            Self::UpstreamFailed => "upstream_failed",
            Self::TimedOut => "timed_out",
            Self::TooLarge => "too_large",
            Self::Refused => "refused",
        }
    }

    /// The audit event of an answer that came to no good end.
    const fn event(self) -> Option<&'static str> {
        match self {
            Self::Complete | Self::CallerGone => None,
            Self::UpstreamFailed => Some("upstream_failed"),
            Self::TimedOut => Some("upstream_timed_out"),
            Self::TooLarge => Some("upstream_result_too_large"),
            Self::Refused => Some("upstream_result_refused"),
        }
    }
}

/// An outcome, as the worker saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCommand {
    pub tenant: String,
    pub lane: u16,
    pub agent: String,
    pub server: String,
    /// Empty in commands of workers from before this was told.
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
    /// Present when the server is untrusted: whose calls its answer taints. The decision marked them
    /// already; the mark may have been lifted while the answer was on its way.
    pub untrusted: Option<Untrusted>,
}

/// What D1 gets to know of it. Persisted: the format is pinned by the flush statements.
#[derive(Serialize)]
struct Row<'a> {
    kind: &'static str,
    seq: u64,
    at_ms: u64,
    decision_id: &'a str,
    agent: &'a str,
    receipt: &'a str,
    receipt_hash: &'a str,
    prev_receipt_hash: &'a str,
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

/// The row and the agent's next state.
///
/// # Errors
///
/// `journal_full`.
pub fn record(
    room: &Room<'_>,
    head: &ChainHead,
    state: &AgentState,
    command: &OutcomeCommand,
    now_ms: u64,
) -> Result<(JournalEntry, AgentState), Problem> {
    if !room.takes(head, false) {
        return Err(journal::full());
    }
    let seq = head.seq + 1;
    let (body, hash) = receipt::seal(&Body::Outcome(OutcomeBody {
        agent: &command.agent,
        bytes: command.bytes,
        decision_hash: &command.decision_hash,
        decision_id: &command.decision_id,
        duration_ms: command.duration_ms,
        ending: command.ending.as_str(),
        kind: receipt::OUTCOME_KIND,
        lane: command.lane,
        prev_hash: &head.hash,
        result_sha256: &command.result_sha256,
        seq,
        server: &command.server,
        status: command.status,
        tenant: &command.tenant,
        time: &id::rfc3339(now_ms),
        version: BODY_VERSION,
    }));
    let row = Row {
        kind: receipt::OUTCOME_KIND,
        seq,
        at_ms: now_ms,
        decision_id: &command.decision_id,
        agent: &command.agent,
        receipt: &body,
        receipt_hash: &hash,
        prev_receipt_hash: &head.hash,
        event: command.ending.event(),
        source: &command.agent,
        detail: Detail {
            server: &command.server,
            status: command.status,
            bytes: command.bytes,
            duration_ms: command.duration_ms,
        },
    };
    let mut state = AgentState { revision: state.revision + 1, ..state.clone() };
    if let Some(untrusted) = command.untrusted.as_ref().filter(|_| command.bytes > 0) {
        let scope = untrusted.run.as_deref().map_or(Scope::Agent, Scope::Run);
        let call = (!command.tool.is_empty()).then(|| TaintingCall {
            decision_id: command.decision_id.clone(),
            server: command.server.clone(),
            tool: command.tool.clone(),
        });
        state.taint.add(scope, &command.server, call, untrusted.period_ms, now_ms);
    }
    let entry =
        JournalEntry::of_event(&command.agent, &state, &row, ChainHead { seq, hash: hash.clone() });
    Ok((entry, state))
}
