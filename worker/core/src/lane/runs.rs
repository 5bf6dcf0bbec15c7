//! The values of runs, stored and in memory.
//!
//! Out of scope: which step adds what (`observe.rs`).

use std::collections::HashMap;

use super::storage::{LaneSql, StorageError, Value, integer, unreadable, unsigned};
use crate::provenance::run::{Observation, RUN_MS, RunValues};
use crate::sql::lane as sql;

/// Runs in memory. With more, or with more values, the one that was used longest ago is dropped, and read
/// again when it calls. A full run has 56,000 values and takes about a megabyte.
const MAX_RUNS: usize = 256;
const MAX_VALUES: usize = 400_000;

/// Expired runs that one flush deletes. One has at most 4,000 rows.
const MAX_EXPIRED_RUNS: i64 = 4;

/// The runs that a lane has in memory.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: HashMap<String, RunInMemory>,
    /// Counts uses.
    uses: u64,
}

#[derive(Debug)]
struct RunInMemory {
    values: RunValues,
    /// When its rows expire; `None` if it has none.
    expires_at_ms: Option<u64>,
    used: u64,
}

impl Runs {
    /// The values of a run that is in memory.
    pub fn get(&self, name: &str) -> Option<&RunValues> {
        self.runs.get(name).map(|run| &run.values)
    }

    /// Drops the runs that were used longest ago until there is space for another one.
    fn make_space(&mut self) {
        let mut values: usize = self.runs.values().map(|run| run.values.len()).sum();
        while self.runs.len() >= MAX_RUNS || values > MAX_VALUES {
            let oldest = self.runs.iter().min_by_key(|(_, run)| run.used);
            let Some(name) = oldest.map(|(name, _)| name.clone()) else { return };
            let dropped = self.runs.remove(&name);
            values -= dropped.map_or(0, |run| run.values.len());
        }
    }

    /// Loads a run into memory.
    pub fn load(&mut self, storage: &impl LaneSql, name: &str) -> Result<(), StorageError> {
        self.uses += 1;
        let used = self.uses;
        if let Some(run) = self.runs.get_mut(name) {
            run.used = used;
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
        self.make_space();
        self.runs.insert(name.to_owned(), RunInMemory { values, expires_at_ms, used });
        Ok(())
    }

    /// Writes an observation to storage, and then applies it to the run, which must be in memory. All rows of
    /// a run expire together. Returns the number of bytes that were written.
    pub fn add(
        &mut self,
        storage: &impl LaneSql,
        name: &str,
        observation: &Observation,
        now_ms: u64,
    ) -> Result<usize, StorageError> {
        let Some(run) = self.runs.get_mut(name) else { return Err(unreadable("a run")) };
        let expires_at_ms = run.expires_at_ms.unwrap_or(now_ms.saturating_add(RUN_MS));
        let record = observation.encode();
        let bytes = record.len();
        let row = [Value::Text(name.to_owned()), integer(expires_at_ms)?, Value::Text(record)];
        storage.exec(sql::OBSERVE, &row)?;
        run.expires_at_ms = Some(expires_at_ms);
        run.values.apply(observation);
        Ok(bytes)
    }

    /// Deletes runs whose time was over at `steady_ms`: whole ones, and a bounded number.
    pub fn expire(&mut self, storage: &impl LaneSql, steady_ms: u64) -> Result<(), StorageError> {
        let values = [integer(steady_ms)?, Value::Integer(MAX_EXPIRED_RUNS)];
        storage.exec(sql::EXPIRE_RUNS, &values)?;
        let is_over = |run: &RunInMemory| run.expires_at_ms.is_some_and(|at_ms| at_ms <= steady_ms);
        self.runs.retain(|_, run| !is_over(run));
        Ok(())
    }
}
