//! The result of a call: the answer, and what must be written before the answer may leave.

use super::agent_state::AgentState;
use super::row::JournalEntry;
use crate::decision::ReasonCode;
use crate::limit::book::Writes;
use crate::limit::lease::Need;
use crate::limit::rate_headers::RateHeaders;
use crate::limit::{DEFAULT_RATE, Kind};
use crate::metrics::Series;
use crate::problem::{Problem, ProblemCode};
use crate::provenance::run::Observation;
use crate::velocity::shared::CountRequest;

/// Events that the audit counts instead of journalling each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedEvent {
    AuthenticationFailed,
    /// The warrant of a caller without a credential does not identify the caller, for this reason.
    WarrantRefused(ReasonCode),
    /// The warrant of a repeated request does not carry it any more, for this reason.
    WarrantLapsed(ReasonCode),
    RateLimited,
    StatusDenied,
    TenantRowsExhausted,
    TenantBytesExhausted,
    /// A message that calls no tool passed.
    MessagePassed,
    /// A decision was made while the registry was not confirmed.
    DecidedDegraded,
    /// A stored time lay in the future and was moved to now.
    ClockRepaired,
}

impl CountedEvent {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "authentication_failed",
            Self::WarrantRefused(reason) | Self::WarrantLapsed(reason) => reason.code(),
            Self::RateLimited => "rate_limited",
            Self::StatusDenied => "status_denied",
            Self::TenantRowsExhausted => "tenant_rows_exhausted",
            Self::TenantBytesExhausted => "tenant_bytes_exhausted",
            Self::MessagePassed => "message_passed",
            Self::DecidedDegraded => "decided_degraded",
            Self::ClockRepaired => "clock_repaired",
        }
    }

    /// Whether metrics show it as an event. The others have a metric of their own.
    #[must_use]
    pub const fn is_event(self) -> bool {
        !self.is_unknown_caller() && !matches!(self, Self::RateLimited | Self::DecidedDegraded)
    }

    /// Whether the request says nothing certain about who calls.
    #[must_use]
    pub const fn is_unknown_caller(self) -> bool {
        matches!(self, Self::AuthenticationFailed | Self::WarrantRefused(_))
    }
}

/// Why a request that is counted got no decision, as metrics show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    Authentication(ProblemCode),
    Warrant(ReasonCode),
    /// The default rate of agents.
    AgentRate,
    Limit {
        kind: Kind,
        limit_id: String,
    },
}

impl Refused {
    pub(super) fn of(counted: CountedEvent, problem: &Problem) -> Option<Self> {
        match counted {
            CountedEvent::AuthenticationFailed => Some(Self::Authentication(problem.code)),
            CountedEvent::WarrantRefused(reason) => Some(Self::Warrant(reason)),
            CountedEvent::RateLimited => {
                let limit = problem.violated_limit.as_deref();
                Some(match limit.filter(|limit| limit.limit_id != DEFAULT_RATE) {
                    Some(limit) => {
                        Self::Limit { kind: limit.kind, limit_id: limit.limit_id.clone() }
                    }
                    None => Self::AgentRate,
                })
            }
            _ => None,
        }
    }

    #[must_use]
    pub fn series(&self) -> Series<'_> {
        match self {
            Self::Authentication(code) => Series::FailedAuthentication(code.code()),
            Self::Warrant(reason) => Series::FailedAuthentication(reason.code()),
            Self::AgentRate => Series::LimitHit { kind: "agent_rate", limit: "" },
            Self::Limit { kind, limit_id } => {
                Series::LimitHit { kind: kind.as_str(), limit: limit_id }
            }
        }
    }
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// JSON: a decision, or problem details if the status is not 200.
    pub body: String,
    /// Present once the call was charged. They have the limits that cover the call, as they are after it.
    pub rate_headers: Option<RateHeaders>,
    pub retry_after_s: Option<u64>,
    /// Whether the credential is revoked or has expired, so that no later request with it can pass.
    pub terminal: bool,
    /// The rows of the tenant's windows that count the call. Empty if the call does not pass. The lane must withdraw
    /// the call from every other window that it asked.
    pub counted_in: Vec<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub reply: Reply,
    /// The agent's new state.
    pub agent: AgentState,
    /// The row to write before the answer may leave.
    pub entry: Option<JournalEntry>,
    /// The row of the approval that the call used or tampered with. It is written together with
    /// `entry`.
    pub approval_entry: Option<JournalEntry>,
    /// What the call adds to the values of its run. It is written before `entry`.
    pub observation: Option<Observation>,
    /// What a request without a decision used of rate limits. It is not written, as with the agent's request rate.
    pub charged: Option<Box<Writes>>,
    /// What the audit counts.
    pub counted: Option<CountedEvent>,
    /// What metrics count, if there was no decision.
    pub refused: Option<Refused>,
    /// What the lane must ask counters for before the call can be decided. If this is not empty, the other members
    /// mean nothing.
    pub needs: Vec<Need>,
    /// The same for windows that lanes share.
    pub count_requests: Vec<CountRequest>,
}
