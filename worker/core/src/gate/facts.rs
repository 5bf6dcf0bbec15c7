//! What a decision depends on besides the command.

use super::agent_state::AgentState;
use super::budget::Written;
use super::config::Config;
use super::space::JournalSpace;
use crate::approval::Approval;
use crate::bucket::Rate;
use crate::receipt::ChainHead;
use crate::registry::Records;

/// The answer that a request id already has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub fingerprint: String,
    pub response: String,
}

/// Everything that a decision depends on besides the command, as of this instant.
#[derive(Debug)]
pub struct Facts<'a> {
    pub now_ms: u64,
    pub config: &'a Config,
    pub records: &'a Records,
    pub agent: &'a AgentState,
    pub head: &'a ChainHead,
    /// The latest time at which the lane wrote a row. Ids bear no earlier one.
    pub latest_ms: u64,
    /// What storage holds under the call's request id.
    pub stored: Option<StoredAnswer>,
    /// Whether storage holds the call's nonce.
    pub nonce_used: bool,
    /// Whether storage holds the nonce of the request's signature.
    pub signature_nonce_used: bool,
    /// What storage holds under the call's approval id.
    pub approval: Option<&'a Approval>,
    /// Rows that wait to be flushed.
    pub journal_rows: u64,
    /// Whether the lane's storage is near its end.
    pub storage_full: bool,
    /// What the lane wrote down today.
    pub written: Written,
}

impl Facts<'_> {
    /// The agent's own rate, else its tenant's, else the default; capacity and refill each by itself.
    pub(super) fn rate(&self) -> Rate {
        let mut rate = self.config.default_rate;
        if let Some(tenant) = &self.records.tenant {
            rate = rate.with(tenant.rate_capacity, tenant.rate_refill_per_s);
        }
        if let Some(agent) = &self.records.agent {
            rate = rate.with(agent.rate_capacity, agent.rate_refill_per_s);
        }
        rate
    }
}

/// What an event that is no decision on a call depends on besides its command.
#[derive(Clone, Copy)]
pub struct EventFacts<'a> {
    pub space: JournalSpace<'a>,
    pub head: &'a ChainHead,
    /// Of the agent that it concerns.
    pub state: &'a AgentState,
    pub now_ms: u64,
}
