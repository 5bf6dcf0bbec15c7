//! Loads of records from D1: which are in progress, and whether D1 answers them.

use std::rc::Rc;

use futures_util::lock::Mutex;
use gateward_core::isolate::outage::Outage;
use gateward_core::problem::Problem;

/// Whether D1 answers loads.
#[derive(Default)]
pub struct Database {
    /// Loads that a call cannot do without.
    loading: Outage,
    /// Loads that only confirm records which the lane holds. They have a shorter limit, so D1 may be too
    /// slow for them and still answer the others.
    confirming: Outage,
}

impl Database {
    /// `can_go_on`: the call can be decided on records that the lane holds.
    pub fn of(&mut self, can_go_on: bool) -> &mut Outage {
        if can_go_on { &mut self.confirming } else { &mut self.loading }
    }

    pub fn is_away(&self) -> bool {
        self.loading.is_away() || self.confirming.is_away()
    }

    /// D1 answered a load. Returns whether it was away before.
    pub fn answered(&mut self) -> bool {
        // `|`, not `||`: an answer ends both outages.
        self.loading.answered() | self.confirming.answered()
    }
}

/// A load in progress that other calls wait for. Once it has ended, it holds the error if it failed.
pub type SharedLoad = Rc<Mutex<Option<Problem>>>;
