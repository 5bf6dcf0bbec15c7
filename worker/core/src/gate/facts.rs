//! The facts that a decision depends on besides the command.

use super::agent_state::AgentState;
use super::config::Config;
use super::daily_rows::Written;
use super::shared_limits::Leases;
use super::space::{self, JournalSpace};
use super::windows::Windows;
use crate::approval::Approval;
use crate::bucket::Rate;
use crate::limit::reservation::Reservation;
use crate::limit::{Book, RequestRate};
use crate::problem::Problem;
use crate::provenance::run::RunValues;
use crate::receipt::ChainHead;
use crate::registry::CallRecords;
use crate::warrant::Carried;

/// The answer that is stored under a request id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub fingerprint: String,
    pub response: String,
}

/// Whether the lane has space for another reservation: of a forwarded call, and of a call whose caller only asked.
#[derive(Debug, Clone, Copy)]
pub struct ReservationSpace {
    pub forwarded: bool,
    pub asked: bool,
}

/// What was used of a call's limits.
#[derive(Debug, Clone, Copy)]
pub struct Books<'a> {
    pub agent: &'a Book,
    pub credential: &'a Book,
    pub space: ReservationSpace,
    /// The leases of limits that lanes share; `None` if the call has no such limit.
    pub leases: Option<Leases<'a>>,
}

impl Books<'_> {
    /// The books of a call without limits.
    pub const NONE: Books<'static> = Books {
        agent: &Book::new(),
        credential: &Book::new(),
        space: ReservationSpace { forwarded: true, asked: true },
        leases: None,
    };
}

/// All facts that a decision depends on besides the command, as of one instant.
#[derive(Debug)]
pub struct Facts<'a> {
    pub now_ms: u64,
    pub config: &'a Config,
    pub records: &'a CallRecords,
    pub agent: &'a AgentState,
    pub head: &'a ChainHead,
    /// The latest time of any row that the lane wrote. A new id has no earlier time.
    pub latest_ms: u64,
    /// The answer that is stored under the call's request id.
    pub stored: Option<StoredAnswer>,
    /// Whether the call's nonce was used before.
    pub nonce_used: bool,
    /// Whether the nonce of the request's signature was used before.
    pub signature_nonce_used: bool,
    /// The call's warrant, judged.
    pub warrant: Option<&'a Carried>,
    /// Whether the proof of the warrant was used before.
    pub proof_used: bool,
    /// The approval that is stored under the call's approval id.
    pub approval: Option<&'a Approval>,
    /// The values of the call's run; `None` if no harness assigned one.
    pub run: Option<&'a RunValues>,
    /// What the agent and the credential used of their limits.
    pub books: Books<'a>,
    /// The windows of policies that count the call.
    pub windows: Windows<'a>,
    /// For a [`crate::call::command::Purpose::ReportOutcome`]: the reservation of the decision that it reports on.
    pub reservation: Option<&'a Reservation>,
    /// Rows that wait to be flushed.
    pub journal_rows: u64,
    /// Whether the lane's storage is almost full.
    pub storage_full: bool,
    /// What the lane wrote today.
    pub written: Written,
}

impl Facts<'_> {
    /// The rate of the agent's requests, and the limit that sets it. Without a limit, the default holds.
    pub(super) fn request_rate(&self) -> (Rate, Option<&RequestRate>) {
        let limit = self.records.agent.as_ref().and_then(|agent| agent.request_rate.as_deref());
        (limit.map_or(self.config.default_rate, |limit| limit.rate), limit)
    }
}

/// The facts that an event depends on besides its command. An event is not a decision on a call.
#[derive(Clone, Copy)]
pub struct EventFacts<'a> {
    pub space: JournalSpace<'a>,
    pub head: &'a ChainHead,
    /// The state of the agent that the event concerns.
    pub state: &'a AgentState,
    pub now_ms: u64,
}

impl EventFacts<'_> {
    /// Checks that there is space for one more row, or for the values of a list.
    ///
    /// # Errors
    ///
    /// `journal_full`: then nothing may be written, and a list must not reach the agent.
    pub fn check_space(&self) -> Result<(), Problem> {
        if self.space.has_space_for_row(self.head, false) { Ok(()) } else { Err(space::full()) }
    }
}
