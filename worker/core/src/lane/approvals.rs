//! The lane's approvals: reading them, deciding on them, and expiring them.

use super::state::Lane;
use super::storage::{
    LaneResult, LaneSql, StorageError, Value, integer, parse_approval, read_approval, unreadable,
    unsigned,
};
use crate::approval::{ChangeCommand, ChangeStep, DecideCommand, HeldApproval, REGISTRY};
use crate::gate::config::Config;
use crate::gate::{
    AgentState, RegistryChange, ask_change, decide_approval, expire_approval, use_change,
};
use crate::json;
use crate::problem::Problem;
use crate::sql::lane as sql;

/// Approvals that one alarm expires. Each is a row of the journal.
const MAX_EXPIRED_APPROVALS: i64 = 500;

/// The result of an administrator's decision.
#[derive(Debug, Clone, PartialEq)]
pub enum DecideOutcome {
    /// The approval after the decision, as JSON, and its revision.
    Done {
        body: String,
        revision: u64,
    },
    /// The lane knows a newer epoch than the one at which the administrator was checked.
    Outdated,
    Refused(Problem),
}

impl Lane {
    /// An approval, if the lane still has it.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn approval(
        storage: &impl LaneSql,
        approval_id: &str,
    ) -> Result<Option<HeldApproval>, StorageError> {
        read_approval(storage, approval_id)
    }

    /// Applies an administrator's decision on an approval. `known_epoch` is the newest epoch in
    /// memory.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn decide_approval(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &DecideCommand,
        known_epoch: u64,
        now_ms: u64,
    ) -> Result<DecideOutcome, StorageError> {
        if command.epoch < known_epoch.max(Self::stored_epoch(storage)?) {
            return Ok(DecideOutcome::Outdated);
        }
        let held = read_approval(storage, &command.approval_id)?;
        let Some(HeldApproval { mut approval, mut input }) = held else {
            return Ok(DecideOutcome::Refused(Problem::not_found("approval")));
        };
        let state = self.state_of(storage, &approval.agent, now_ms)?;
        let facts = self.event_facts(config, &state, now_ms);
        let already = match decide_approval(&facts, &mut approval, &mut input, command) {
            Err(problem) => return Ok(DecideOutcome::Refused(problem)),
            Ok(None) => true,
            Ok(Some((entry, state))) => {
                self.journal(storage, entry, None, state, now_ms)?;
                false
            }
        };
        let view = approval.view(&input, now_ms, already);
        // Plain data always serializes.
        let body = json::to_string(&view);
        Ok(DecideOutcome::Done { body, revision: approval.revision })
    }

    /// Creates the approval that a registry change waits for, or uses it up. Returns the approval's
    /// id.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`] for the administrator.
    pub fn settle_change(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &ChangeCommand,
        now_ms: u64,
    ) -> LaneResult<String> {
        let state = self.state_of(storage, REGISTRY, now_ms)?;
        let settled = match &command.step {
            ChangeStep::Ask { event, resource, input, groups } => {
                let facts = self.event_facts(config, &state, now_ms);
                let change = RegistryChange { event, resource, input, groups };
                ask_change(&facts, command, &change)
            }
            ChangeStep::Use { approval_id, request_id } => {
                match read_approval(storage, approval_id)? {
                    Some(HeldApproval { mut approval, .. }) => {
                        let facts = self.event_facts(config, &state, now_ms);
                        use_change(&facts, &mut approval, command, request_id)
                            .map(|(entry, state)| (approval_id.clone(), entry, state))
                    }
                    None => Err(Problem::not_found("approval")),
                }
            }
        };
        let (approval_id, entry, state) = match settled {
            Ok(settled) => settled,
            Err(problem) => return Ok(Err(problem)),
        };
        self.journal(storage, entry, None, state, now_ms)?;
        Ok(Ok(approval_id))
    }

    /// Expires approvals, a bounded number of them. If the journal is full, the rest wait for the
    /// next alarm; they count as expired anyway.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn expire_approvals(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        let Some((tenant, lane)) = self.identity.clone() else { return Ok(()) };
        let due = [integer(now_ms)?, Value::Integer(MAX_EXPIRED_APPROVALS)];
        for row in storage.exec(sql::DUE_APPROVALS, &due)? {
            let [Value::Text(record)] = row.as_slice() else {
                return Err(unreadable("an approval"));
            };
            let mut approval = parse_approval(record)?;
            let state = self.state_of(storage, &approval.agent, now_ms)?;
            let facts = self.event_facts(config, &state, now_ms);
            let Some((entry, state)) = expire_approval(&facts, (&tenant, lane), &mut approval)
            else {
                return Ok(());
            };
            self.journal(storage, entry, None, state, now_ms)?;
        }
        Ok(())
    }

    /// When the next approval expires; `None` if none is open.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn next_expiry(storage: &impl LaneSql) -> Result<Option<u64>, StorageError> {
        let rows = storage.exec(sql::NEXT_EXPIRY, &[])?;
        match rows.first().map(Vec::as_slice) {
            Some([Value::Integer(at_ms)]) => Ok(Some(unsigned(*at_ms)?).filter(|at| *at > 0)),
            _ => Err(unreadable("an approval's expiry")),
        }
    }

    pub(super) fn state_of(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        now_ms: u64,
    ) -> Result<AgentState, StorageError> {
        self.load_agent(storage, agent, now_ms)?;
        let agent = self.agents.get(agent).ok_or_else(|| unreadable("an agent's state"))?;
        Ok(agent.state.clone())
    }
}
