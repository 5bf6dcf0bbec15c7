//! The calls of a lane that wait for parts of one shared limit.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use futures_channel::oneshot;
use gateward_core::limit::Amount;
use gateward_core::limit::lease::Answer;

#[derive(Default)]
pub struct Queue {
    /// Whether a call asks for all that wait.
    pub asks: Cell<bool>,
    /// First come, first served.
    pub waiting: RefCell<VecDeque<Waiting>>,
}

pub struct Waiting {
    pub amount: Amount,
    /// The limit's revision that the call knows. Calls ask together only if they know the same.
    pub revision: u64,
    pub tell: oneshot::Sender<Told>,
}

/// What becomes of a call that waits.
pub enum Told {
    Answer(Answer),
    /// It asks next, for all that wait.
    Ask,
}
