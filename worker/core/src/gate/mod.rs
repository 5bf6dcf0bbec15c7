//! The lane's synchronous step: one call in, an answer and at most one journal row out.
//!
//! [`decide`] is pure. The shell hands it what storage says and writes what it returns; the
//! lane's memory takes the new state only after that write succeeded.
//!
//! INVARIANT (deny is the default arm): every way out of [`rule`] that is not an explicit permit
//! of the policies is a denial or a problem.
//!
//! Out of scope: reading the registry (step 5 to 6), storing (the lane), flushing (step 13).

mod approval;
mod clock;
mod containment;
mod event;
mod forwarded;
mod identity;
mod journal;
mod listing;
mod meter;
mod outcome;
mod replay;
mod resolve;
pub(crate) mod respond;
mod taint;
mod trust;

use serde::{Deserialize, Serialize};

use self::approval::Presented;
use self::identity::Identity;
use crate::approval::Approval;
use crate::bucket::{Bucket, Rate, RateStatus, SlidingCount};
use crate::budget::Written;
use crate::call::Action;
use crate::command::{GateCommand, Purpose};
use crate::config::Config;
use crate::policy::{Evaluation, PolicyEngine};
use crate::problem::Problem;
use crate::proxy::{self, Untrusted, Visibility};
use crate::registry::{Records, TenantRecord};
use crate::upstream::DenialForm;

pub use approval::{
    Around, Change as RegistryChange, ask_change, decide as decide_approval,
    expire as expire_approval, use_change,
};
pub use clock::CLOCK_TOLERANCE_MS;
pub(crate) use clock::repair_window;
pub use containment::{
    Containment, ContainmentDetail, ContainmentRow, DEFAULT_RISK_DENIALS, DEFAULT_RISK_QUIET_S,
    DEFAULT_RISK_WINDOW_S, RiskLimits, RiskState,
};
pub use event::{AgentCommand, AgentEvent, LaneAction, TaintCommand, carry_out, taint};
pub use forwarded::{Ending, OutcomeCommand, record as record_outcome};
pub use journal::{JournalEntry, Room, Row, encode_state, scoped_key};
pub use outcome::{Decision, ReasonCode, Ruling};
pub use replay::{NONCE_MS, REPLAY_MS};
pub use respond::{Engine, Receipt as ReplyReceipt, response as encode_response};
pub use taint::{
    DEFAULT_TAINT_S, MAX_TAINTED_RUNS, Scope, TAINTED_TRUST, Taint, TaintExplanation, Tainted,
    TaintingCall,
};
pub use trust::{CallTrust, LoweredBy};

/// The `engine_mode` of a decision that was made while something was away that it would have asked.
pub const DEGRADED: &str = "degraded";
/// The `degraded_cause` of one for which D1 did not confirm the registry in time.
pub const REGISTRY_UNCONFIRMED: &str = "registry_unconfirmed";

/// The window of `context.velocity.calls_1m`.
pub const CALLS_WINDOW_MS: u64 = 60_000;
/// The window of `context.velocity.denials_10m`.
pub const DENIALS_WINDOW_MS: u64 = 600_000;

/// What the lane remembers of one agent. Persisted in every journal row of the agent: the
/// format is pinned by a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    /// Counts changes, so that of two stored states the newer is known.
    pub revision: u64,
    pub bucket: Option<Bucket>,
    /// Set by a quarantine decision, and lifted by [`carry_out`], and only by these.
    pub quarantined: bool,
    /// The denial for the agent's status that was journalled last.
    pub status_denial: Option<StatusDenial>,
    /// The UTC day, counted from the Unix epoch, that `quota_used` belongs to.
    pub quota_day: u64,
    pub quota_used: u32,
    pub calls: SlidingCount,
    pub denials: SlidingCount,
    // What follows is left out of most states, to keep rows small.
    /// The id of the quarantine decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined_by: Option<QuarantinedBy>,
    #[serde(default, skip_serializing_if = "RiskState::is_default")]
    pub risk: RiskState,
    #[serde(default, skip_serializing_if = "Taint::is_default")]
    pub taint: Taint,
    /// The epoch of the newest command that lifted the taint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub untainted_epoch: u64,
    /// Approvals that the agent asked for and that are not closed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub open_approvals: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The decision that quarantined an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedBy {
    pub decision_id: String,
    /// The registry's epoch that it was decided at.
    pub epoch: u64,
}

/// When a stopped agent was last denied in the journal, and with which reason code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusDenial {
    pub at_ms: u64,
    pub code: String,
}

/// The newest link of the lane's chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainHead {
    pub seq: u64,
    pub hash: String,
}

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

/// A way out before there is a ruling.
enum Stop {
    Problem(Problem, Option<Counted>),
    /// The credential is refused for good.
    Terminal(Problem),
    /// The request id's first answer, again.
    Stored(String),
}

/// A call under way: the agent's state as it will be, and what identity established.
struct Draft<'a> {
    command: &'a GateCommand,
    facts: &'a Facts<'a>,
    agent: AgentState,
    rate: Rate,
    charged: bool,
    /// What the call's approval is good for.
    presented: Presented,
    /// The call's taint, as it was before the call.
    tainted: Option<Tainted>,
    /// What an approval of the call binds.
    action_hash: [u8; 32],
}

/// Steps 6 to 12, in order.
#[must_use]
pub fn decide(engine: &PolicyEngine, facts: &Facts<'_>, command: &GateCommand) -> Step {
    let mut draft = Draft::new(facts, command);
    let ruled = match command.purpose {
        Purpose::Read => read(&mut draft),
        Purpose::Admit { .. } | Purpose::Filter(_) => listing::rule(engine, &mut draft),
        _ => rule(engine, &mut draft).map(Err),
    };
    let server = facts.records.server.as_ref();
    let upstream = server.and_then(|server| server.upstream.as_deref());
    let denial = upstream.map_or(DenialForm::default(), |upstream| upstream.denial);
    let proxied = command.purpose != Purpose::Authorize;
    match ruled {
        Ok(Err(ruling)) => {
            let passes = ruling.decision.passes();
            let mut step = journal::conclude(draft, engine, ruling);
            if proxied {
                let decision = step.reply.body;
                let untrusted = untrusted(facts, command).filter(|_| passes);
                step.reply.body = proxy::reply(
                    Some(&decision),
                    upstream.filter(|_| passes),
                    untrusted,
                    denial,
                    command,
                    &[],
                );
            }
            step
        }
        Ok(Ok(visible)) => {
            let untrusted = untrusted(facts, command);
            let body = proxy::reply(None, upstream, untrusted, denial, command, &visible);
            let is_message = matches!(command.purpose, Purpose::Admit { .. });
            draft.answer(200, body, None, is_message.then_some(Counted::MessagePassed))
        }
        Err(Stop::Stored(body)) => draft.answer(200, body, None, None),
        Err(Stop::Problem(problem, counted)) => {
            let body = problem.to_json(&command.http_request_id);
            let retry = problem.retry_after_s.map(u64::from);
            draft.answer(problem.code.status(), body, retry, counted)
        }
        Err(Stop::Terminal(problem)) => {
            let body = problem.to_json(&command.http_request_id);
            let counted = Some(Counted::AuthenticationFailed);
            let mut step = draft.answer(problem.code.status(), body, None, counted);
            step.reply.terminal = true;
            step
        }
    }
}

/// What a proxy must know of an untrusted server; `None` when the server is trusted.
fn untrusted(facts: &Facts<'_>, command: &GateCommand) -> Option<Untrusted> {
    let server = facts.records.server.as_ref().filter(|server| server.is_untrusted())?;
    Some(Untrusted {
        run: assigned_run(command, facts.records).map(str::to_owned),
        period_ms: taint_period_ms(facts.records),
        instructions_sha256: server.instructions_sha256.clone(),
    })
}

/// Whether [`decide`] will come as far as the tool. While it does not, the registry need not be
/// asked for one: an agent that is stopped or over its rate causes no reads, nor does a call of a
/// tool that was not granted.
#[must_use]
pub fn needs_tool(facts: &Facts<'_>, command: &GateCommand) -> bool {
    match admit(&mut Draft::new(facts, command)) {
        Ok((identity, None)) => resolve::is_granted(command, &identity),
        _ => false,
    }
}

/// What the policies say of a call, as [`decide`] asks them; `None` when it does not come as far.
/// For benches, which set step 10 beside Cedar used plainly.
#[must_use]
pub fn evaluate_policies(
    engine: &PolicyEngine,
    facts: &Facts<'_>,
    command: &GateCommand,
) -> Option<Evaluation> {
    let draft = Draft::new(facts, command);
    let identity = identity::verify(command, facts).ok()?;
    let tool = resolve::tool(engine, command, facts.records, &identity).ok()?;
    resolve::evaluate(engine, &draft, &identity, &tool, None, draft.origin()).ok()
}

/// An agent's read of its own records: its credential is checked and one request charged. Whether
/// the agent may read at all, the worker asks D1.
fn read(draft: &mut Draft<'_>) -> Result<Result<Vec<Visibility>, Ruling>, Stop> {
    identity::verify(draft.command, draft.facts)?;
    meter::charge(draft)?;
    Ok(Ok(Vec::new()))
}

/// Steps 6 and 7: who calls, and the denial if it is stopped or its tenant has written too much.
fn admit<'a>(draft: &mut Draft<'a>) -> Result<(Identity<'a>, Option<Ruling>), Stop> {
    let identity = identity::verify(draft.command, draft.facts)?;
    // The request that a listing answers was charged before it was sent on, and it is answered once.
    // A server can ask many times in one answer, so each request of a server is charged.
    if !matches!(draft.command.purpose, Purpose::Filter(_)) {
        meter::charge(draft)?;
    }
    let mut denial = identity::status(draft, &identity)?;
    if denial.is_none() {
        replay::check(draft)?;
        denial = meter::budget(draft.facts);
    }
    Ok((identity, denial))
}

/// Steps 6 to 11: what is to be answered.
fn rule(engine: &PolicyEngine, draft: &mut Draft<'_>) -> Result<Ruling, Stop> {
    let (identity, denial) = admit(draft)?;
    if let Some(denial) = denial {
        return Ok(denial);
    }
    let refused = approval::present(draft).err();
    let ruling = meter::quota(draft)
        .and_then(|()| resolve::tool(engine, draft.command, draft.facts.records, &identity))
        .map(|tool| {
            let approval = approval::granted(draft);
            let ask = |tool: &resolve::Tool, origin: trust::Origin<'_>| {
                resolve::evaluate(engine, draft, &identity, tool, approval, origin)
            };
            let ruling = match ask(&tool, draft.origin()) {
                Ok(evaluation) => {
                    let ruling = outcome::from_policies(&evaluation, tool, approval);
                    trust::explain(draft, ruling, &evaluation, approval, ask)
                }
                Err(denial) => *denial,
            };
            approval::prefer(refused, ruling)
        })
        .unwrap_or_else(|denial| *denial);
    let mut ruling = match draft.command.purpose {
        Purpose::Ask => outcome::without_effects(ruling),
        _ => approval::bound(draft, ruling),
    };
    if let Some(taint) = &ruling.taint {
        let (scope, agent) = (scope(draft.command, draft.facts.records), &draft.command.call.agent);
        ruling.reason = [&ruling.reason, " ", &taint.sentences(scope, agent)].concat();
    }
    journal::admit(draft, &ruling)?;
    Ok(ruling)
}

impl<'a> Draft<'a> {
    fn new(facts: &'a Facts<'a>, command: &'a GateCommand) -> Self {
        let scope = scope(command, facts.records);
        let period_ms = taint_period_ms(facts.records);
        Self {
            command,
            facts,
            agent: facts.agent.clone(),
            rate: meter::rate(facts),
            charged: false,
            presented: Presented::Nothing,
            tainted: facts.agent.taint.of(scope, period_ms, facts.now_ms),
            action_hash: action_hash(command, facts.records),
        }
    }

    fn answer(
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

fn taint_period_ms(records: &Records) -> u64 {
    let default_ms = u64::from(DEFAULT_TAINT_S) * 1_000;
    records.tenant.as_ref().map_or(default_ms, TenantRecord::taint_period_ms)
}

/// Whether the caller is a harness, whose word on users and runs counts.
fn is_harness(records: &Records) -> bool {
    records.credential.as_ref().is_some_and(|credential| credential.assigns_runs)
}

/// The run that the call belongs to, if a harness assigned it.
fn assigned_run<'a>(command: &'a GateCommand, records: &Records) -> Option<&'a str> {
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
fn scope<'a>(command: &'a GateCommand, records: &Records) -> Scope<'a> {
    assigned_run(command, records).map_or(Scope::Agent, Scope::Run)
}
