//! Agents, which call tools: what they may call, and their states.

use gateward_core::field::{Ed25519Key, Environment, Millis, Name, bounded, present};
use gateward_core::gate::LaneAction;
use gateward_core::glob::Glob;
use gateward_core::policy::risk::RiskTier;
use gateward_core::problem::Problem;
use gateward_core::registry::{AgentStatus, ChangeEvent, ChangedKey};
use gateward_core::route::AgentAction;
use gateward_core::sql::administration::{self as sql, Statement, Value};
use gateward_core::taint::TaintExplanation;
use gateward_core::warrant::key::PublicKey;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use crate::answer::AnswerBody;
use crate::audit_detail::difference;
use crate::change::{At, Change, Loaded, Outcome, Write};
use crate::precondition::check_match;
use crate::refusal::{conflict, limit_reached, name_taken};
use crate::resource::Resource;

/// Agents of a tenant, deleted ones included: their names cannot be used again.
pub const MAX_AGENTS: u64 = 100_000;

/// An agent in D1. `lane_quarantined` and `risk_steps` are the lane's own containment: as of its
/// last flush, or, if the lane was asked, as of now.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AgentRow {
    pub agent: String,
    pub lane: u16,
    environment: Environment,
    risk_tier: RiskTier,
    groups: Vec<String>,
    allowed_tools: Option<Vec<Glob>>,
    public_key: Option<PublicKey>,
    warrant_required: bool,
    frozen: bool,
    quarantined: bool,
    revoked: bool,
    pub lane_quarantined: bool,
    pub risk_steps: u8,
    /// As of now, from the lane. Lists do not have it.
    #[serde(skip)]
    pub taint: Option<TaintExplanation>,
    deleted: bool,
    revision: u64,
    created_at_ms: Millis,
    updated_at_ms: Millis,
}

/// An agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Agent {
    agent: String,
    environment: Environment,
    /// The lane that decides all its calls; it never changes.
    lane: u16,
    /// The strictest of `revoked`, `quarantined` and `frozen`, else `active`.
    status: AgentStatus,
    frozen: bool,
    /// By an administrator or by its lane.
    quarantined: bool,
    revoked: bool,
    /// The registered tier, raised by the lane after denials.
    risk_tier: RiskTier,
    registered_risk_tier: RiskTier,
    groups: Vec<String>,
    /// Globs on `server/tool`; null allows any, an empty list none.
    allowed_tools: Option<Vec<Glob>>,
    /// Its own Ed25519 key, 64 lower-case hex digits, to which warrants can be delegated; null if it has none.
    #[schema(value_type = Option<String>)]
    public_key: Option<PublicKey>,
    /// Whether each of its calls needs a warrant.
    warrant_required: bool,
    /// The taint of the agent's calls that have no assigned run: that of the agent and of all its
    /// runs. Null if there is none. Lists and answers to changes do not ask the lane, so it is null
    /// there too.
    taint: Option<TaintExplanation>,
    /// What callers send instead of a credential if they have a warrant of which the agent was the first holder. Null
    /// without a `public_key`, and in lists.
    warrant_locator: Option<String>,
    revision: u64,
    #[schema(value_type = String, format = DateTime)]
    created_at: Millis,
    #[schema(value_type = String, format = DateTime)]
    updated_at: Millis,
}

impl Resource for AgentRow {
    const SINGULAR: &'static str = "agent";
    const PLURAL: &'static str = "agents";
    type View = Agent;

    fn cursor(&self) -> String {
        self.agent.clone()
    }

    fn revision(&self) -> Option<u64> {
        Some(self.revision)
    }

    fn view(&self, _: u64) -> Agent {
        let quarantined = self.quarantined || self.lane_quarantined;
        Agent {
            agent: self.agent.clone(),
            environment: self.environment.clone(),
            lane: self.lane,
            status: match self {
                _ if self.deleted => AgentStatus::Deleted,
                _ if self.revoked => AgentStatus::Revoked,
                _ if quarantined => AgentStatus::Quarantined,
                _ if self.frozen => AgentStatus::Frozen,
                _ => AgentStatus::Active,
            },
            frozen: self.frozen,
            quarantined,
            revoked: self.revoked,
            risk_tier: self.risk_tier.raised(self.risk_steps),
            registered_risk_tier: self.risk_tier,
            groups: self.groups.clone(),
            allowed_tools: self.allowed_tools.clone(),
            public_key: self.public_key,
            warrant_required: self.warrant_required,
            taint: self.taint.clone(),
            // The worker writes it into an answer, because it has the key for it.
            warrant_locator: None,
            revision: self.revision,
            created_at: self.created_at_ms,
            updated_at: self.updated_at_ms,
        }
    }
}

impl AgentRow {
    fn save(&self, at: &At<'_>) -> Statement {
        let flag = |value: bool| Value::from(u64::from(value));
        Statement::new(
            sql::SAVE_AGENT,
            vec![
                at.tenant.into(),
                self.agent.as_str().into(),
                u64::from(self.lane).into(),
                (&*self.environment).into(),
                self.risk_tier.as_str().into(),
                Value::list(self.allowed_tools.as_ref()),
                flag(self.frozen),
                flag(self.quarantined),
                flag(self.revoked),
                self.revision.into(),
                self.created_at_ms.0.into(),
                self.updated_at_ms.0.into(),
                self.public_key.map(String::from).into(),
                flag(self.warrant_required),
            ],
        )
    }

    /// The change from `before` to this.
    fn changed(
        mut self,
        at: &At<'_>,
        loaded: &Loaded,
        event: ChangeEvent,
    ) -> Result<Change, Problem> {
        self.revision = loaded.next_epoch();
        self.updated_at_ms = Millis(at.now_ms);
        let answer = AnswerBody::of(&self.view(at.now_ms), Some(self.revision))?;
        let mut change = Change::new(event, answer, vec![self.save(at)]);
        change.keys = vec![ChangedKey::Agent(self.agent.clone())];
        change.detail = json!({ "agent": self.agent });
        Ok(change)
    }
}

/// The agent to change. A deleted agent does not exist.
fn existing(at: &At<'_>, loaded: &Loaded) -> Result<AgentRow, Problem> {
    let row: Option<AgentRow> = loaded.record()?;
    let row = row.filter(|row| !row.deleted).ok_or_else(|| Problem::not_found("agent"))?;
    check_match(at, row.revision)?;
    Ok(row)
}

fn load(at: &At<'_>, agent: &str, key: Option<Ed25519Key>) -> Statement {
    let key = key.map(|key| key.0.to_string());
    let values = vec![at.tenant.into(), agent.into(), (MAX_AGENTS + 1).into(), key.into()];
    Statement::new(sql::LOAD_AGENT, values)
}

/// What the statement that loads an agent counts.
#[derive(Deserialize)]
struct AgentCounts {
    /// Agents of the tenant, up to one more than the bound.
    count: u64,
    /// Another agent that has the key.
    with_key: Option<String>,
}

/// A key names one agent: the lane of that agent remembers the proofs of its warrants.
fn check_key(counts: &AgentCounts) -> Result<(), Problem> {
    match &counts.with_key {
        Some(agent) => Err(conflict(&format!("the agent `{agent}` has this public key"))),
        None => Ok(()),
    }
}

/// A new agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateAgent {
    agent: Name,
    /// Where it runs, such as `production`; calls must name the same.
    environment: Environment,
    #[serde(default)]
    risk_tier: RiskTier,
    /// Globs on `server/tool`; null allows any, an empty list none.
    allowed_tools: Option<Vec<Glob>>,
    /// Its own key, to which warrants can be delegated.
    public_key: Option<Ed25519Key>,
    /// Whether each of its calls needs a warrant.
    #[serde(default)]
    warrant_required: bool,
}

impl Write for CreateAgent {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.agent, self.public_key)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        bounded("allowed_tools", self.allowed_tools.as_ref())?;
        if let Some(row) = loaded.record::<AgentRow>()? {
            return Err(name_taken("agent", row.deleted));
        }
        let counts: AgentCounts = loaded.extra()?;
        check_key(&counts)?;
        if counts.count >= MAX_AGENTS {
            return Err(limit_reached("agents", MAX_AGENTS));
        }
        let row = AgentRow {
            agent: self.agent.to_string(),
            lane: lane_of(at.tenant, &self.agent, loaded.lanes.unwrap_or(1)),
            environment: self.environment.clone(),
            risk_tier: self.risk_tier,
            groups: Vec::new(),
            allowed_tools: self.allowed_tools.clone(),
            public_key: self.public_key.map(|key| key.0),
            warrant_required: self.warrant_required,
            frozen: false,
            quarantined: false,
            revoked: false,
            lane_quarantined: false,
            risk_steps: 0,
            taint: None,
            deleted: false,
            revision: 0,
            created_at_ms: Millis(at.now_ms),
            updated_at_ms: Millis(at.now_ms),
        };
        let mut change = row.changed(at, loaded, ChangeEvent::AgentCreated)?;
        change.created = true;
        Ok(Outcome::Changed(change))
    }
}

/// The lane of a new agent. It is chosen by hash, so that no counts are needed. It is stored, and
/// stays the same when lanes are added.
fn lane_of(tenant: &str, agent: &str, lanes: u16) -> u16 {
    let hash = Sha256::digest(format!("{tenant}/{agent}"));
    let number = hash.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    u16::try_from(number % u64::from(lanes.max(1))).unwrap_or(0)
}

/// A change of an agent; members that are left out stay as they are, null clears.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentPatch {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Environment, required = false)]
    environment: Option<Environment>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = RiskTier, required = false)]
    risk_tier: Option<RiskTier>,
    /// Globs on `server/tool`; null allows any, an empty list none.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Vec<Glob>>)]
    allowed_tools: Option<Option<Vec<Glob>>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Ed25519Key>)]
    public_key: Option<Option<Ed25519Key>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = bool, required = false)]
    warrant_required: Option<bool>,
}

/// [`AgentPatch`] of one agent.
pub struct PatchAgent {
    pub agent: Name,
    pub patch: AgentPatch,
}

impl Write for PatchAgent {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.agent, self.patch.public_key.flatten())
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        check_key(&loaded.extra()?)?;
        let mut row = before.clone();
        let patch = &self.patch;
        bounded("allowed_tools", patch.allowed_tools.as_ref().and_then(Option::as_ref))?;
        if let Some(environment) = &patch.environment {
            row.environment = environment.clone();
        }
        row.risk_tier = patch.risk_tier.unwrap_or(row.risk_tier);
        if let Some(allowed) = &patch.allowed_tools {
            row.allowed_tools.clone_from(allowed);
        }
        if let Some(key) = patch.public_key {
            row.public_key = key.map(|key| key.0);
        }
        row.warrant_required = patch.warrant_required.unwrap_or(row.warrant_required);
        conclude(at, loaded, before, row, ChangeEvent::AgentChanged)
    }
}

/// [`AgentAction`] on one agent.
pub struct ActOnAgent {
    pub agent: Name,
    pub action: AgentAction,
}

impl Write for ActOnAgent {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.agent, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let before = existing(at, loaded)?;
        if before.revoked && self.action != AgentAction::Revoke {
            return Err(conflict("the agent is revoked, and this is final"));
        }
        let mut row = before.clone();
        let event = match self.action {
            AgentAction::Freeze => {
                row.frozen = true;
                ChangeEvent::AgentFrozen
            }
            AgentAction::Unfreeze => {
                row.frozen = false;
                ChangeEvent::AgentUnfrozen
            }
            AgentAction::Quarantine => {
                row.quarantined = true;
                ChangeEvent::AgentQuarantined
            }
            AgentAction::Restore => {
                row.quarantined = false;
                // The lane lifts its own quarantine before the answer is sent.
                row.lane_quarantined = false;
                ChangeEvent::AgentRestored
            }
            AgentAction::Untaint => ChangeEvent::AgentUntainted,
            AgentAction::Revoke => {
                row.revoked = true;
                ChangeEvent::AgentRevoked
            }
        };
        if self.lane_action().is_some() {
            // Only the lane knows whether there is anything to lift, and it compares epochs. So
            // this is always a change.
            return row.changed(at, loaded, event).map(Outcome::Changed);
        }
        conclude(at, loaded, before, row, event)
    }

    fn lane_action(&self) -> Option<LaneAction> {
        match self.action {
            AgentAction::Restore => Some(LaneAction::Restore),
            AgentAction::Untaint => Some(LaneAction::Untaint),
            _ => None,
        }
    }
}

fn conclude(
    at: &At<'_>,
    loaded: &Loaded,
    before: AgentRow,
    row: AgentRow,
    event: ChangeEvent,
) -> Result<Outcome, Problem> {
    if row == before {
        return AnswerBody::of(&row.view(at.now_ms), Some(row.revision)).map(Outcome::Unchanged);
    }
    let changes = difference(&before.view(at.now_ms), &row.view(at.now_ms));
    let mut change = row.changed(at, loaded, event)?;
    change.detail = json!({ "agent": before.agent, "changes": changes });
    Ok(Outcome::Changed(change))
}

/// Deletes an agent and its memberships, and revokes its credentials.
pub struct DeleteAgent {
    pub agent: Name,
}

impl Write for DeleteAgent {
    fn read(&self, at: &At<'_>) -> Statement {
        load(at, &self.agent, None)
    }

    fn apply(&self, at: &At<'_>, loaded: &Loaded) -> Result<Outcome, Problem> {
        let mut row: AgentRow = loaded.record()?.ok_or_else(|| Problem::not_found("agent"))?;
        if row.deleted {
            return AnswerBody::of(&row.view(at.now_ms), None).map(Outcome::Unchanged);
        }
        check_match(at, row.revision)?;
        row.deleted = true;
        row.groups.clear();
        let key: Vec<Value> = vec![at.tenant.into(), row.agent.as_str().into()];
        let mut ended = key.clone();
        ended.extend([at.now_ms.into(), loaded.next_epoch().into()]);
        let mut change = row.changed(at, loaded, ChangeEvent::AgentDeleted)?;
        change.statements = vec![
            Statement::new(sql::DELETE_AGENT, ended.clone()),
            Statement::new(sql::DELETE_MEMBERSHIPS, key),
            Statement::new(sql::REVOKE_CREDENTIALS_OF_AGENT, ended),
        ];
        // The agent may have many credentials.
        change.keys = vec![ChangedKey::All];
        change.answer.revision = None;
        Ok(Outcome::Changed(change))
    }
}

/// An agent and its lane, as read from an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AgentInLane {
    pub agent: String,
    pub lane: u16,
}
