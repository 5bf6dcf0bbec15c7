//! What a lane's object holds in memory, and its one way to the lane's storage.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use gateward_core::lane::{Lane, RegistryCache, StorageError};
use gateward_core::limit::recall::Recalls;
use gateward_core::log::{Event, Line};
use gateward_core::problem::{Problem, ProblemCode};
use worker::durable::State;
use worker::{Env, Error};

use super::loads::{Database, SharedLoad};
use super::queue::Queue;
use crate::lane::sql::ObjectSql;
use crate::log;

pub struct GateLane {
    pub(super) state: State,
    pub(super) env: Env,
    sql: ObjectSql,
    /// `None` until the first event, and after storage failed. The next event rebuilds it.
    pub(super) lane: RefCell<Option<Lane>>,
    pub(super) registry: RefCell<RegistryCache>,
    pub(super) database: RefCell<Database>,
    /// Loads in progress, by the records that they load.
    pub(super) loads: RefCell<HashMap<String, SharedLoad>>,
    /// Calls that wait for parts of limits that lanes share, by the names of the leases' books.
    pub(super) queues: RefCell<HashMap<String, Rc<Queue>>>,
    /// In a limit's counter object: when it last asked lanes to give back, by subject.
    pub(super) recalls: RefCell<Recalls>,
    /// When the alarm that flushes is due; `None` when no such alarm is set.
    pub(super) alarm_due_ms: Cell<Option<u64>>,
    /// How late the last alarm ran.
    pub(super) alarm_overdue_ms: Cell<u64>,
    pub(super) failed_flushes: Cell<u32>,
    /// When the size of D1's database was last read, and whether it left room for records.
    pub(super) database_size: Cell<(u64, bool)>,
    /// Outer `None`: the lane has not compared D1's checkpoint with its own tree, and must before it publishes. Inner `None`:
    /// D1 has no checkpoint. Else the note of D1's checkpoint, which is of this tree.
    pub(super) compared: RefCell<Option<Option<String>>>,
    /// When publishing may be tried again after it failed.
    pub(super) publish_after_ms: Cell<u64>,
    /// Requests that wait for a checkpoint.
    pub(super) waiting: Cell<u32>,
    /// In a head log: when the registry's events are to be read; `None` if the registry did not change since they were
    /// last read.
    pub(super) events_due: Cell<Option<u64>>,
    /// In a head log: the size of the tree that witnesses were last asked about, and when witnesses that failed are
    /// asked again.
    pub(super) witnessed: Cell<(u64, Option<u64>)>,
    /// In a head log: whether witnesses are being asked. Meanwhile no other checkpoint is published, because it would
    /// not have their cosignatures.
    pub(super) is_witnessing: Cell<bool>,
}

/// An error for the log.
pub struct Failure(pub String);

impl<E: std::fmt::Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::RustError(failure.0)
    }
}

impl GateLane {
    pub(super) fn of(state: State, env: Env) -> Self {
        Self {
            sql: ObjectSql(state.storage().sql()),
            state,
            env,
            lane: RefCell::default(),
            registry: RefCell::default(),
            database: RefCell::default(),
            loads: RefCell::default(),
            queues: RefCell::default(),
            recalls: RefCell::default(),
            alarm_due_ms: Cell::new(None),
            alarm_overdue_ms: Cell::new(0),
            failed_flushes: Cell::new(0),
            database_size: Cell::new((0, true)),
            compared: RefCell::default(),
            publish_after_ms: Cell::new(0),
            waiting: Cell::new(0),
            events_due: Cell::new(None),
            witnessed: Cell::new((0, None)),
            is_witnessing: Cell::new(false),
        }
    }

    /// Logs something that this object does by itself.
    pub(super) fn log(&self, event: Event, detail: &str) {
        let lane = self.lane.try_borrow();
        let identity = lane.as_ref().ok().and_then(|lane| lane.as_ref()?.identity());
        let line = Line::new(event, detail);
        log::write(&match identity {
            Some((tenant, lane)) => line.in_lane(tenant, *lane),
            None => line,
        });
    }

    /// Runs on the lane, and starts it first if memory does not hold it. If storage fails, the lane is
    /// dropped from memory.
    pub(super) fn with_lane<T>(
        &self,
        run: impl FnOnce(&mut Lane, &ObjectSql) -> Result<T, StorageError>,
    ) -> Result<T, Failure> {
        let mut held = self.lane.borrow_mut();
        let mut lane = match held.take() {
            Some(lane) => lane,
            None => self.start_lane()?,
        };
        let result = run(&mut lane, &self.sql)?;
        *held = Some(lane);
        Ok(result)
    }

    /// Not inlined, because [`Self::with_lane`] has some eighty instances.
    #[cold]
    #[inline(never)]
    fn start_lane(&self) -> Result<Lane, Failure> {
        let lane = Lane::start(&self.sql)?;
        let (epoch, confirmed_at_ms) = Lane::stored_registry(&self.sql)?;
        self.registry.borrow_mut().resume(epoch, confirmed_at_ms);
        Ok(lane)
    }
}

pub(super) fn storage_failed() -> Problem {
    Problem::new(ProblemCode::LaneUnavailable, "the lane's storage failed; try again")
}
