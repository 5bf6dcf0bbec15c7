//! What a step knows of velocity windows.

use std::collections::HashMap;

use crate::limit::Amount;
use crate::velocity::shared::{CountRequest, row_name};
use crate::velocity::{Counted, Reach, SlidingWindow, Window};

/// Milliseconds of an hour.
pub const HOUR_MS: u64 = 3_600_000;

/// A window that counts calls of the call's tool.
#[derive(Debug, Clone, Copy)]
pub struct Counting {
    pub window: &'static Window,
    /// The hash of the call's key; 0 if the agent's state holds the window.
    pub key: u64,
    /// The call's number. `None` if the window sums up nothing, or if the call has no such number.
    pub amount: Option<Amount>,
}

impl Counting {
    /// The name of the row in the lane's storage, if the window has one there.
    #[must_use]
    pub fn row(&self) -> Option<String> {
        let has_row = self.window.reach == Reach::Agent && !self.window.is_of_agent();
        has_row.then(|| row_name(self.window.id, self.key))
    }

    /// The request to the window's object.
    #[must_use]
    pub fn count_request(&self) -> CountRequest {
        CountRequest {
            window: self.window.id.to_owned(),
            key: self.key,
            width_ms: self.window.width_ms,
            amount: self.amount,
        }
    }
}

/// What a tenant's windows answered, by the names of their rows. `None`: there was no answer in time.
pub type WindowAnswers = [(String, Option<Counted>)];

/// What a step knows of windows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Windows<'a> {
    pub countings: &'a [Counting],
    /// The windows that have rows of their own in the lane, by the rows' names, including those of `countings`.
    pub rows: Option<&'a HashMap<String, SlidingWindow>>,
    /// `None`: none of the tenant's windows was asked yet.
    pub answers: Option<&'a WindowAnswers>,
}

/// What the policies see of a window.
#[derive(Debug, Clone, Copy)]
pub struct WindowCount {
    pub window: &'static Window,
    pub counted: Counted,
}

/// A row to write, together with the decision's own.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowRow {
    pub name: String,
    /// The hour in which the window is over, in hours since the Unix epoch.
    pub hour: u64,
    pub window: SlidingWindow,
}

/// The hour after which a row is not needed.
#[must_use]
pub const fn hour(ends_at_ms: u64) -> u64 {
    ends_at_ms / HOUR_MS
}
