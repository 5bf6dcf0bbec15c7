//! A call between its first step and its row.

use super::agent_state::AgentState;
use super::facts::{EventFacts, Facts};
use super::proxy::Visibility;
use super::row::JournalEntry;
use super::ruling::Ruling;
use super::space::{self, JournalSpace};
use super::step::{CountedEvent, Reply, Step};
use super::taint_state::Tainted;
use super::windows::WindowCount;
use crate::bucket::Rate;
use crate::call::Action;
use crate::call::command::{GateCommand, Purpose};
use crate::limit::book::At;
use crate::limit::lease::Need;
use crate::limit::rate_headers::RateHeaders;
use crate::limit::usage::{Covered, Ledger, Use};
use crate::limit::{DEFAULT_RATE, RequestRate};
use crate::problem::Problem;
use crate::provenance::Provenance;
use crate::provenance::run::Observation;
use crate::registry::{CallRecords, TenantRecord};
use crate::shield::Noted;
use crate::taint::{DEFAULT_TAINT_S, Scope};
use crate::velocity::shared::CountRequest;
use crate::warrant::Claim;

/// An end without a ruling.
pub enum Stop {
    Problem(Problem, Option<CountedEvent>),
    /// The credential is revoked or has expired, and no later request with it can pass.
    Terminal(Problem),
    /// The answer that the request id already has.
    Stored(String),
    /// The lane lacks parts of limits that lanes share.
    NotLeased(Vec<Need>),
    /// The lane must ask windows that lanes share.
    NotCounted(Vec<CountRequest>),
}

/// The result of the steps before the journal.
pub enum DraftResult {
    /// A decision that is to be journalled.
    Ruling(Ruling),
    /// A request that calls no tool passes. Holds the visibility of each item of a list, in order.
    Passed(Vec<Visibility>),
    /// What a harness said about a run is recorded.
    Recorded { entry: Option<Box<JournalEntry>>, observation: Option<Observation> },
}

/// Whether the approval that the call's `approval_id` names is usable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PresentedApproval {
    /// The call names no approval, or one that the agent does not have.
    #[default]
    Nothing,
    /// It is not decided yet.
    Pending,
    /// It allows a call that policies hold back.
    Granted,
    /// It is for another call.
    Tampered,
    /// It is closed, or an approver edited the call and this is the call before the edit.
    Useless,
}

/// A call that is being decided: its input, and the agent's state as it will be.
pub struct Draft<'a> {
    pub command: &'a GateCommand,
    pub facts: &'a Facts<'a>,
    /// The call's tool: `<server>/<tool>`.
    pub tool_id: String,
    pub agent: AgentState,
    pub rate: Rate,
    /// The limit that sets the rate; `None`: the default holds.
    pub request_limit: Option<&'a RequestRate>,
    pub charged: bool,
    /// Whether the call's approval is usable.
    pub presented: PresentedApproval,
    /// The call's taint, as it was before the call.
    pub tainted: Option<Tainted>,
    /// The call's warrant, once it was accepted.
    pub warranted: Option<&'a Claim>,
    /// Where the destinations of the call came from. Known from step 10 on, if the call writes and is tainted,
    /// or belongs to an assigned run.
    pub provenance: Option<Provenance>,
    /// Whether the shield inspected the call.
    pub inspected: bool,
    /// What the shield found, if anything.
    pub shield: Option<Noted>,
    /// The limits of the call, once they were checked.
    pub ledgers: Vec<Ledger<'a>>,
    /// Which limits cover the call.
    pub covered: Covered,
    /// What the call uses of them if it passes.
    pub uses: Vec<Use<'a>>,
    /// What the lane must ask counters for, if nothing else denies the call.
    pub needs: Vec<Need>,
    /// The windows that count the call, with their counts.
    pub window_counts: Vec<WindowCount>,
    /// The hash that an approval of this call has.
    pub action_hash: [u8; 32],
}

impl<'a> Draft<'a> {
    pub fn new(facts: &'a Facts<'a>, command: &'a GateCommand) -> Self {
        let scope = scope(command, facts.records);
        let period_ms = taint_period_ms(facts.records);
        let (rate, request_limit) = facts.request_rate();
        Self {
            command,
            facts,
            tool_id: command.call.tool_id(),
            agent: facts.agent.clone(),
            rate,
            request_limit,
            charged: false,
            presented: PresentedApproval::Nothing,
            tainted: facts.agent.taint.of(scope, period_ms, facts.now_ms),
            warranted: None,
            provenance: None,
            inspected: false,
            shield: None,
            ledgers: Vec::new(),
            covered: Covered::default(),
            uses: Vec::new(),
            needs: Vec::new(),
            window_counts: Vec::new(),
            action_hash: action_hash(command, facts.records),
        }
    }

    /// The number of the row that the call's decision will have.
    pub const fn seq(&self) -> u64 {
        self.facts.head.seq + 1
    }

    /// The registry's epoch at which the call is decided.
    pub fn epoch(&self) -> u64 {
        self.facts.records.tenant.as_ref().map_or(0, |tenant| tenant.epoch)
    }

    /// Checks that the journal has space for the row of this ruling. The last check before the
    /// ruling is journalled.
    pub fn check_space(&self, ruling: &Ruling) -> Result<(), Stop> {
        if self.command.call.dry_run || ruling.counted_only {
            return Ok(());
        }
        let facts = self.facts;
        // If the tool is unknown, only the caller says whether it writes.
        let claim = self.command.call.mutates_state;
        let writes = ruling.tool.as_ref().map_or(claim, |tool| tool.writes);
        let space = JournalSpace {
            config: facts.config,
            journal_rows: facts.journal_rows,
            storage_full: facts.storage_full,
        };
        if space.has_space_for_row(facts.head, writes) {
            Ok(())
        } else {
            Err(Stop::Problem(space::full(), None))
        }
    }

    /// The facts of an event that the call causes.
    pub fn event_facts(&self) -> EventFacts<'_> {
        let facts = self.facts;
        EventFacts {
            space: JournalSpace {
                config: facts.config,
                journal_rows: facts.journal_rows,
                storage_full: facts.storage_full,
            },
            head: facts.head,
            state: &self.agent,
            now_ms: facts.now_ms,
        }
    }

    /// `None` if the call was not charged.
    fn rate_headers(&self) -> Option<RateHeaders> {
        let bucket = self.agent.bucket.filter(|_| self.charged)?;
        let name = self.request_limit.map_or(DEFAULT_RATE, |it| &it.limit_id);
        let mut headers = RateHeaders::of_requests(name, bucket.status(self.rate));
        if !self.ledgers.is_empty() {
            let at = At { now_ms: self.facts.now_ms, offset_s: self.facts.config.offset_s };
            headers.add(&self.ledgers, &self.tool_id, self.covered, at);
        }
        Some(headers)
    }

    /// Ends the step with an answer and without a row.
    pub fn answer(
        self,
        status: u16,
        body: String,
        retry_after_s: Option<u64>,
        counted: Option<CountedEvent>,
    ) -> Step {
        let rate_headers = self.rate_headers();
        let counted_in = Vec::new();
        let reply =
            Reply { status, body, rate_headers, retry_after_s, terminal: false, counted_in };
        Step {
            reply,
            agent: self.agent,
            entry: None,
            approval_entry: None,
            observation: None,
            charged: None,
            counted,
            refused: None,
            needs: Vec::new(),
            count_requests: Vec::new(),
        }
    }
}

pub fn taint_period_ms(records: &CallRecords) -> u64 {
    let default_ms = u64::from(DEFAULT_TAINT_S) * 1_000;
    records.tenant.as_deref().map_or(default_ms, TenantRecord::taint_period_ms)
}

/// The run that the call belongs to, if a harness assigned it.
pub fn assigned_run<'a>(command: &'a GateCommand, records: &CallRecords) -> Option<&'a str> {
    Some(command.call.run_id.as_str()).filter(|run| records.is_harness() && !run.is_empty())
}

/// The run whose values a command needs; `None` if it decides on no tool, or if no harness assigned a run.
pub fn observed_run<'a>(command: &'a GateCommand, records: &CallRecords) -> Option<&'a str> {
    match command.purpose {
        Purpose::Authorize
        | Purpose::Forward
        | Purpose::Routed(_)
        | Purpose::StartRun(_)
        | Purpose::ReportResult(_) => assigned_run(command, records),
        Purpose::Filter(_) if command.names_what_it_is_about() => assigned_run(command, records),
        Purpose::Route(_)
        | Purpose::Unroutable(_)
        | Purpose::Message { .. }
        | Purpose::Ask
        | Purpose::Filter(_)
        | Purpose::Read
        | Purpose::ReportOutcome(_) => None,
    }
}

/// The call's action hash. The worker computes it without user and run, because it does not know
/// whether the caller is a harness.
fn action_hash(command: &GateCommand, records: &CallRecords) -> [u8; 32] {
    let call = &command.call;
    if !records.is_harness() || (call.user_id.is_empty() && call.run_id.is_empty()) {
        return call.action_hash;
    }
    let action = Action::of(call, &command.tenant);
    Action { user: &call.user_id, run: &call.run_id, ..action }.hash()
}

/// The scope whose taint the call has, and to which it adds.
pub fn scope<'a>(command: &'a GateCommand, records: &CallRecords) -> Scope<'a> {
    assigned_run(command, records).map_or(Scope::Agent, Scope::Run)
}
