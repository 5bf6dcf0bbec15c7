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

impl Refusal {
    #[must_use]
    pub fn new(code: ReasonCode, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }

    /// A refusal with the code's own sentence.
    #[must_use]
    #[inline(never)]
    pub fn of(code: ReasonCode) -> Self {
        Self::new(code, code.sentence())
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
        Self::new(code, format!("Link {link} of the warrant's chain: {reason}."))
    }
}
