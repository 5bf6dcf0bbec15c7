//! Why a warrant does not carry a call.

use serde::{Deserialize, Serialize};

use crate::decision::ReasonCode;
use crate::schema::quote;

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

    /// A refusal of what is no warrant.
    #[must_use]
    #[inline(never)]
    pub fn malformed(reason: &str) -> Self {
        let code = ReasonCode::WarrantMalformed;
        Self::new(code, ["The warrant cannot be read: ", reason, "."].concat())
    }

    /// The same, before any cryptography.
    #[must_use]
    pub fn before_signatures(mut self) -> Self {
        self.reason.push_str(" No signature was verified.");
        self
    }

    /// A refusal that concerns one link. The root is link 0.
    #[must_use]
    pub fn at(code: ReasonCode, link: usize, reason: &str) -> Self {
        Self::about(code, link, (reason, None, ""))
    }

    /// The same. The reason may name an argument or a tool between its words.
    ///
    /// It is written in one piece and without the formatter, because refusals must cost little.
    #[must_use]
    #[inline(never)]
    pub fn about(
        code: ReasonCode,
        link: usize,
        (before, argument, after): (&str, Option<&str>, &str),
    ) -> Self {
        let argument_bytes = argument.map_or(0, str::len);
        let mut text = String::with_capacity(before.len() + argument_bytes + after.len() + ROOM);
        text.push_str("Link ");
        text.push_str(itoa::Buffer::new().format(link));
        text.push_str(" of the warrant's chain: ");
        text.push_str(before);
        if let Some(argument) = argument {
            quote(&mut text, argument);
        }
        text.push_str(after);
        text.push('.');
        Self::new(code, text)
    }
}
