//! Events of an agent that are no calls: what an administrator commands, and taint.

use super::state::Lane;
use super::storage::{LaneResult, LaneSql, StorageError, unreadable};
use crate::gate::config::Config;
use crate::gate::{
    AgentCommand, AgentState, Containment, EventFacts, JournalEntry, JournalSpace, TaintCommand,
    carry_out, taint,
};
use crate::problem::Problem;
use crate::registry::TenantRecord;
use crate::sql::lane as sql;

impl Lane {
    /// Carries out an administrator's command about an agent. It takes effect from the next call
    /// on. A command that changes nothing writes nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`] for the administrator: the journal is full.
    pub fn carry_out(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &AgentCommand,
        now_ms: u64,
    ) -> LaneResult<()> {
        self.load_agent(storage, &command.agent, now_ms)?;
        let Some(agent) = self.agents.get(&command.agent) else { return Ok(Ok(())) };
        let event = carry_out(&self.event_facts(config, &agent.state, now_ms), command);
        self.write_event(storage, event, now_ms)
    }

    /// Marks an agent as tainted before text of an untrusted server reaches it.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a [`Problem`]: the journal is full. In both cases the text must
    /// not be passed on.
    pub fn taint(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &TaintCommand,
        now_ms: u64,
    ) -> LaneResult<()> {
        self.load_agent(storage, &command.agent, now_ms)?;
        let Some(agent) = self.agents.get(&command.agent) else { return Ok(Ok(())) };
        let event = taint(&self.event_facts(config, &agent.state, now_ms), command);
        self.write_event(storage, event, now_ms)
    }

    /// Writes an event of an agent, if there is one.
    pub(super) fn write_event(
        &mut self,
        storage: &impl LaneSql,
        event: Result<Option<(JournalEntry, AgentState)>, Problem>,
        now_ms: u64,
    ) -> LaneResult<()> {
        match event {
            Ok(Some((entry, state))) => self.journal(storage, entry, None, state, now_ms).map(Ok),
            // Touches the storage, so that an object that was replaced fails instead of answering
            // from an old state.
            Ok(None) => storage.exec(sql::TOUCH, &[]).map(|_| Ok(())),
            Err(problem) => Ok(Err(problem)),
        }
    }

    /// The agent's containment at `now_ms`.
    ///
    /// # Errors
    ///
    /// [`StorageError`].
    pub fn containment(
        &mut self,
        storage: &impl LaneSql,
        agent: &str,
        tenant: &TenantRecord,
        now_ms: u64,
    ) -> Result<Containment, StorageError> {
        storage.exec(sql::TOUCH, &[])?;
        self.load_agent(storage, agent, now_ms)?;
        let agent = self.agents.get(agent).ok_or_else(|| unreadable("an agent's state"))?;
        Ok(Containment::of(&agent.state, tenant, now_ms))
    }

    /// The facts of an event; `state` is the agent's.
    pub(super) fn event_facts<'a>(
        &'a self,
        config: &'a Config,
        state: &'a AgentState,
        now_ms: u64,
    ) -> EventFacts<'a> {
        let (journal_rows, storage_full) = (self.journal_rows, self.storage_full);
        let space = JournalSpace { config, journal_rows, storage_full };
        EventFacts { space, head: &self.head, state, now_ms }
    }
}
