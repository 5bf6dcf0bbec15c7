//! A call under way through the steps.

use super::agent_state::AgentState;
use super::facts::Facts;
use super::proxy::Visibility;
use super::ruling::Ruling;
use super::space::{self, JournalSpace};
use super::step::{Counted, Reply, Step};
use super::taint_state::Tainted;
use crate::bucket::Rate;
use crate::call::Action;
use crate::call::command::GateCommand;
use crate::problem::Problem;
use crate::registry::{Records, TenantRecord};
use crate::taint::{DEFAULT_TAINT_S, Scope};

/// A way out before there is a ruling.
pub enum Stop {
    Problem(Problem, Option<Counted>),
    /// The credential is refused for good.
    Terminal(Problem),
    /// The request id's first answer, again.
    Stored(String),
}

/// What the steps before the journal come to.
pub enum Judged {
    /// A decision, to be journalled.
    Ruling(Ruling),
    /// A request that calls no tool passes. Holds the visibility of each item of a listing, in order.
    Passed(Vec<Visibility>),
}

/// What the call's `approval_id` is good for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Presented {
    /// Nothing.
    #[default]
    Nothing,
    /// It is not decided yet.
    Pending,
    /// It lets a call pass that policies hold back.
    Granted,
    /// It is for another call.
    Tampered,
    /// It is closed, or it was edited and this is the call from before the edit.
    Useless,
}

/// A call under way: the agent's state as it will be, and what identity established.
pub struct Draft<'a> {
    pub command: &'a GateCommand,
    pub facts: &'a Facts<'a>,
    pub agent: AgentState,
    pub rate: Rate,
    pub charged: bool,
    /// What the call's approval is good for.
    pub presented: Presented,
    /// The call's taint, as it was before the call.
    pub tainted: Option<Tainted>,
    /// What an approval of the call binds.
    pub action_hash: [u8; 32],
}

impl<'a> Draft<'a> {
    pub fn new(facts: &'a Facts<'a>, command: &'a GateCommand) -> Self {
        let scope = scope(command, facts.records);
        let period_ms = taint_period_ms(facts.records);
        Self {
            command,
            facts,
            agent: facts.agent.clone(),
            rate: facts.rate(),
            charged: false,
            presented: Presented::Nothing,
            tainted: facts.agent.taint.of(scope, period_ms, facts.now_ms),
            action_hash: action_hash(command, facts.records),
        }
    }

    /// The number of the row that the call's decision will have.
    pub const fn seq(&self) -> u64 {
        self.facts.head.seq + 1
    }

    /// The registry's epoch that the call is decided at.
    pub fn epoch(&self) -> u64 {
        self.facts.records.tenant.as_ref().map_or(0, |tenant| tenant.epoch)
    }

    /// The last check before a ruling is journalled: whether the journal has space for its row.
    pub fn check_space(&self, ruling: &Ruling) -> Result<(), Stop> {
        if self.command.call.dry_run || ruling.counted_only {
            return Ok(());
        }
        let facts = self.facts;
        // For an unknown tool there is only the caller's claim.
        let claim = self.command.call.mutates_state;
        let writes = ruling.tool.as_ref().map_or(claim, |tool| tool.writes);
        let space = JournalSpace {
            config: facts.config,
            journal_rows: facts.journal_rows,
            storage_full: facts.storage_full,
        };
        if space.takes(facts.head, writes) {
            Ok(())
        } else {
            Err(Stop::Problem(space::full(), None))
        }
    }

    /// Ends the step with an answer and without a row.
    pub fn answer(
        self,
        status: u16,
        body: String,
        retry_after_s: Option<u64>,
        counted: Option<Counted>,
    ) -> Step {
        let rate = self.charged.then(|| self.agent.bucket.map(|b| b.status(self.rate))).flatten();
        let reply = Reply { status, body, rate, retry_after_s, terminal: false };
        Step { reply, agent: self.agent, entry: None, approval_entry: None, counted }
    }
}

pub fn taint_period_ms(records: &Records) -> u64 {
    let default_ms = u64::from(DEFAULT_TAINT_S) * 1_000;
    records.tenant.as_ref().map_or(default_ms, TenantRecord::taint_period_ms)
}

/// Whether the caller is a harness, whose word on users and runs counts.
pub fn is_harness(records: &Records) -> bool {
    records.credential.as_ref().is_some_and(|credential| credential.assigns_runs)
}

/// The run that the call belongs to, if a harness assigned it.
pub fn assigned_run<'a>(command: &'a GateCommand, records: &Records) -> Option<&'a str> {
    Some(command.call.run_id.as_str()).filter(|run| is_harness(records) && !run.is_empty())
}

/// The call's action hash. The worker computed it without user and run: it does not know whether the
/// caller is a harness.
fn action_hash(command: &GateCommand, records: &Records) -> [u8; 32] {
    let call = &command.call;
    if !is_harness(records) || (call.user_id.is_empty() && call.run_id.is_empty()) {
        return call.action_hash;
    }
    let action = Action::of(call, &command.tenant);
    Action { user: &call.user_id, run: &call.run_id, ..action }.hash()
}

/// Whose taint a call has, and adds to.
pub fn scope<'a>(command: &'a GateCommand, records: &Records) -> Scope<'a> {
    assigned_run(command, records).map_or(Scope::Agent, Scope::Run)
}
