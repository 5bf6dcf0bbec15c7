//! Why a warrant does not carry a call.

use serde::{Deserialize, Serialize};

use crate::decision::ReasonCode;

/// A refusal: the code for programs, and a sentence for people. It names tools and arguments of the caller's own
/// warrant, and nothing that policies say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    pub code: ReasonCode,
    pub reason: String,
}

/// Bytes of a reason beside its own words: those before it and after it.
const ROOM: usize = 80;

impl Refusal {
    #[must_use]
    pub fn new(code: ReasonCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// A refusal with the code's own sentence.
    #[must_use]
    #[inline(never)]
    pub fn of(code: ReasonCode) -> Self {
        let mut text = String::with_capacity(code.sentence().len() + ROOM);
        text.push_str(code.sentence());
        Self::new(code, text)
    }

    /// The same, before any cryptography.
    #[must_use]
    pub fn before_signatures(mut self) -> Self {
        self.reason.push_str(" No signature was verified.");
        self
    }

    /// A refusal that concerns one link. The root is link 0.
    #[must_use]
    #[inline(never)]
    pub fn at(code: ReasonCode, link: usize, reason: &str) -> Self {
        // Written without the formatter: refusals must cost little.
        let mut text = String::with_capacity(reason.len() + ROOM);
        text.push_str("Link ");
        text.push_str(itoa::Buffer::new().format(link));
        text.push_str(" of the warrant's chain: ");
        text.push_str(reason);
        text.push('.');
        Self::new(code, text)
    }
}
