//! What a lane learns about runs: the values of results, arguments and instructions.
//!
//! INVARIANT (observed first): the row of a run is written before the journal row of the same step. If the
//! second write fails, the lane starts again and reads the first.

use super::state::Lane;
use super::storage::{LaneResult, LaneSql, StorageError};
use crate::gate::config::Config;
use crate::gate::{ListCommand, OutcomeCommand, record_outcome};
use crate::provenance::run::{Observation, Source, storage_name};
use crate::sql::lane as sql;

impl Lane {
    /// Writes the outcome of a forwarded call, and the values of its answer.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a problem: the journal is full.
    pub fn record_outcome(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &OutcomeCommand,
        now_ms: u64,
    ) -> LaneResult<()> {
        self.load_agent(storage, &command.agent, now_ms)?;
        let Some(agent) = self.agents.get(&command.agent) else { return Ok(Ok(())) };
        let reservation = self.limits.reservations.get(&command.decision_id).cloned();
        let facts = self.event_facts(config, &agent.state, now_ms);
        let mut event = record_outcome(&facts, command, reservation.is_some());
        if let (Ok(_), Some(observed)) = (&event, &command.observed) {
            let name = storage_name(&command.agent, &observed.run);
            self.runs.load(storage, &name)?;
            let tool = [&command.server, "/", &command.tool].concat();
            let source = Source { decision_id: command.decision_id.clone(), tool };
            let run = self.runs.get(&name);
            if let Some(observation) = run.and_then(|run| run.of_result(&observed.values, source)) {
                self.observe(storage, &name, &observation, now_ms)?;
            }
        }
        if let (Ok((entry, _)), Some(reservation)) = (&mut event, reservation) {
            let writes =
                self.limits.writes_to_settle(storage, &reservation, command.effect.into())?;
            entry.limits = Some(Box::new(writes));
        }
        self.write_event(storage, event.map(Some), now_ms)
    }

    /// Stores the values of a list before the list reaches the agent. It belongs to no decision, so nothing else is
    /// written. A list that adds nothing to the run writes nothing.
    ///
    /// # Errors
    ///
    /// [`StorageError`]; inside, a problem: the journal is full. In both cases the list must not be passed on.
    pub fn observe_list(
        &mut self,
        storage: &impl LaneSql,
        config: &Config,
        command: &ListCommand,
        now_ms: u64,
    ) -> LaneResult<()> {
        self.load_agent(storage, &command.agent, now_ms)?;
        let Some(agent) = self.agents.get(&command.agent) else { return Ok(Ok(())) };
        if let Err(full) = self.event_facts(config, &agent.state, now_ms).check_space() {
            return Ok(Err(full));
        }
        let name = storage_name(&command.agent, &command.observed.run);
        self.runs.load(storage, &name)?;
        let tool = [&command.server, "/", &command.method].concat();
        let source = Source { decision_id: String::new(), tool };
        let run = self.runs.get(&name);
        match run.and_then(|run| run.of_result(&command.observed.values, source)) {
            Some(observation) => self.observe(storage, &name, &observation, now_ms)?,
            // An object that was replaced must fail here.
            None => drop(storage.exec(sql::TOUCH, &[])?),
        }
        Ok(Ok(()))
    }

    /// Stores what a step adds to a run.
    pub(super) fn observe(
        &mut self,
        storage: &impl LaneSql,
        name: &str,
        observation: &Observation,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.day.begin(storage, &self.head, now_ms)?;
        let bytes = self.runs.add(storage, name, observation, now_ms)?;
        self.day.add(bytes);
        Ok(())
    }
}
