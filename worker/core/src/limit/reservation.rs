//! What a call takes from its limits, and how the reservation ends.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::amount::Amount;
use super::definition::Unclear;
use super::window::Window;

/// What a call takes of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Take {
    /// The book's name.
    pub book: Rc<str>,
    /// [`super::Limit::counter`].
    pub counter: Rc<str>,
    /// The window's number; `None` for a call in progress.
    pub(super) number: Option<u64>,
    pub(super) window: Option<Window>,
    pub amount: Amount,
    pub(super) unclear: Unclear,
    pub(super) source: Source,
}

/// Where an amount comes from, which decides on what an outcome changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// One call. It counts, however it ends.
    Call,
    /// One call in progress.
    Progress,
    /// The tool's cost.
    Cost,
    /// The call's own number, which its outcome can lower.
    Argument,
}

/// What a call holds of its limits until its outcome is known, or until it is too late to report one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reservation {
    pub decision_id: String,
    /// From then on, the outcome is unclear.
    pub ends_at_ms: u64,
    pub agent: String,
    /// The first key id of the credential.
    #[serde(default)]
    pub credential: String,
    /// Whether Gateward forwarded the call. If not, everything is used already, and a report can only give
    /// back.
    pub forwarded: bool,
    pub takes: Vec<Take>,
}

impl Reservation {
    /// The largest of the call's own numbers that limits count; `None` if there is none.
    #[must_use]
    pub fn argument(&self) -> Option<Amount> {
        let arguments = self.takes.iter().filter(|take| take.source == Source::Argument);
        arguments.map(|take| take.amount).max()
    }
}

/// How a call that used its limits ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It had its effect. If there is a number, it used only this amount.
    Succeeded(Option<Amount>),
    /// It had no effect.
    Failed,
    /// It is not known whether it had an effect.
    Unclear,
}
