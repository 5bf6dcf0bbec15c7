//! The calls of a lane that wait for parts of one shared limit.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use futures_channel::oneshot;
use gateward_core::limit::Amount;
use gateward_core::limit::lease::Answer;

#[derive(Default)]
pub struct Queue {
    /// Whether a call is asking for all waiting calls.
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

/// What a waiting call must do next.
pub enum Told {
    Answer(Answer),
    /// It is the next call that asks for all waiting calls.
    Ask,
}
