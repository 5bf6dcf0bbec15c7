//! The values of runs, stored and in memory.
//!
//! INVARIANT (observed first): a row of a run is written before the journal row of the same step. If the second
//! write fails, the lane starts again and reads the first.

use std::collections::HashMap;

use super::state::Lane;
use super::storage::{LaneSql, StorageError, Value, integer, unreadable, unsigned};
use crate::call::command::{GateCommand, Purpose};
use crate::gate::assigned_run;
use crate::provenance::run::{Observation, RUN_MS, RunValues, storage_name};
use crate::registry::CallRecords;
use crate::sql::lane as sql;

/// Runs in memory. With more, or with more values, the one that was used longest ago is dropped, and read
/// again when it calls. A full run has 40,000 values and takes about a megabyte.
const MAX_RUNS: usize = 256;
const MAX_VALUES: usize = 400_000;

/// Expired runs that one flush deletes. One has at most 4,000 rows.
const MAX_EXPIRED_RUNS: i64 = 4;

/// The runs that a lane has in memory.
#[derive(Debug, Default)]
pub(super) struct Runs {
    held: HashMap<String, HeldRun>,
    /// Counts uses.
    uses: u64,
}

#[derive(Debug)]
struct HeldRun {
    values: RunValues,
    /// When its rows expire; `None` if it has none.
    expires_at_ms: Option<u64>,
    used: u64,
}

impl Runs {
    /// The values of a run that is in memory.
    pub fn get(&self, name: &str) -> Option<&RunValues> {
        self.held.get(name).map(|held| &held.values)
    }

    /// Drops the runs that were used longest ago until there is space for another one.
    fn make_space(&mut self) {
        let mut values: usize = self.held.values().map(|held| held.values.len()).sum();
        while self.held.len() >= MAX_RUNS || values > MAX_VALUES {
            let oldest = self.held.iter().min_by_key(|(_, held)| held.used);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else { return };
            let dropped = self.held.remove(&name);
            values -= dropped.map_or(0, |held| held.values.len());
        }
    }
}

/// The name of the run whose values a command needs; `None` if it needs none.
pub(super) fn run_of(command: &GateCommand, records: &CallRecords) -> Option<String> {
    let needs = match command.purpose {
        Purpose::Authorize
        | Purpose::Forward
        | Purpose::Routed(_)
        | Purpose::StartRun(_)
        | Purpose::Report(_) => true,
        Purpose::Route(_)
        | Purpose::Unroutable(_)
        | Purpose::Message { .. }
        | Purpose::Ask
        | Purpose::Filter(_)
        | Purpose::Read => false,
    };
    let run = assigned_run(command, records).filter(|_| needs)?;
    Some(storage_name(&command.call.agent, run))
}

impl Lane {
    /// Brings a run into memory.
    pub(super) fn hold_run(
        &mut self,
        storage: &impl LaneSql,
        name: &str,
    ) -> Result<(), StorageError> {
        self.runs.uses += 1;
        let used = self.runs.uses;
        if let Some(held) = self.runs.held.get_mut(name) {
            held.used = used;
            return Ok(());
        }
        let (mut values, mut expires_at_ms) = (RunValues::default(), None);
        for row in storage.exec(sql::OBSERVATIONS, &[Value::Text(name.to_owned())])? {
            let [Value::Text(record), Value::Integer(expires)] = row.as_slice() else {
                return Err(unreadable("an observation"));
            };
            let observation: Observation =
                serde_json::from_str(record).map_err(|_| unreadable("an observation"))?;
            values.apply(&observation);
            expires_at_ms = Some(unsigned(*expires)?);
        }
        self.runs.make_space();
        self.runs.held.insert(name.to_owned(), HeldRun { values, expires_at_ms, used });
        Ok(())
    }

    /// Stores what a step adds to a run, and then takes it into memory. All rows of a run expire together.
    pub(super) fn observe(
        &mut self,
        storage: &impl LaneSql,
        name: &str,
        observation: &Observation,
        now_ms: u64,
    ) -> Result<(), StorageError> {
        self.hold_run(storage, name)?;
        let Some(held) = self.runs.held.get_mut(name) else { return Ok(()) };
        let expires_at_ms = held.expires_at_ms.unwrap_or(now_ms.saturating_add(RUN_MS));
        let record = observation.encode();
        let bytes = record.len();
        let row = [Value::Text(name.to_owned()), integer(expires_at_ms)?, Value::Text(record)];
        storage.exec(sql::OBSERVE, &row)?;
        held.expires_at_ms = Some(expires_at_ms);
        held.values.apply(observation);
        self.day.begin(storage, &self.head, now_ms)?;
        self.day.add(bytes);
        // Its rows may wait for their expiry even if the journal is empty.
        self.unsure = true;
        Ok(())
    }

    /// Deletes runs whose time is over, whole ones and a bounded number.
    pub(super) fn expire_runs(&mut self, storage: &impl LaneSql) -> Result<(), StorageError> {
        let steady_ms = self.steady_ms();
        let values = [integer(steady_ms)?, Value::Integer(MAX_EXPIRED_RUNS)];
        storage.exec(sql::EXPIRE_RUNS, &values)?;
        let is_over = |held: &HeldRun| held.expires_at_ms.is_some_and(|at_ms| at_ms <= steady_ms);
        self.runs.held.retain(|_, held| !is_over(held));
        Ok(())
    }
}
