//! What a call comes to: the answer, and what has to be written before it may leave.

use super::agent_state::AgentState;
use super::row::JournalEntry;
use crate::bucket::RateStatus;

/// What is counted in the audit, not journalled one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counted {
    AuthenticationFailed,
    RateLimited,
    StatusDenied,
    TenantRowsExhausted,
    TenantBytesExhausted,
    /// A message that is no call was let through.
    MessagePassed,
    /// A decision was made while the registry was not confirmed.
    DecidedDegraded,
    /// Something stored bore a time in the future, and was moved to now.
    ClockRepaired,
}

impl Counted {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AuthenticationFailed => "authentication_failed",
            Self::RateLimited => "rate_limited",
            Self::StatusDenied => "status_denied",
            Self::TenantRowsExhausted => "tenant_rows_exhausted",
            Self::TenantBytesExhausted => "tenant_bytes_exhausted",
            Self::MessagePassed => "message_passed",
            Self::DecidedDegraded => "decided_degraded",
            Self::ClockRepaired => "clock_repaired",
        }
    }
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    /// JSON: a decision, or problem details when the status is not 200.
    pub body: String,
    /// Present once the call was charged.
    pub rate: Option<RateStatus>,
    pub retry_after_s: Option<u64>,
    /// Whether the credential is refused for good: it is revoked or has expired.
    pub terminal: bool,
}

/// What a call comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub reply: Reply,
    /// The agent's new state.
    pub agent: AgentState,
    /// The row to write before the reply may leave.
    pub entry: Option<JournalEntry>,
    /// The row after it, of the approval that the call used or tried to; written with it or not
    /// at all.
    pub approval_entry: Option<JournalEntry>,
    /// What to count in the audit.
    pub counted: Option<Counted>,
}
