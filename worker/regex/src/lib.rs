//! The part of [regex](https://docs.rs/regex) that Gateward's dependencies use.
//!
//! `boon` compiles the patterns of JSON Schemas with regex. These patterns come from untrusted servers, and the texts
//! from untrusted agents. This crate differs from regex for them (docs/decisions/0053-small-regex.md):
//!
//! - A caller can bound the time of matching ([`within`]).
//! - It is small, because it has one engine and no tables except the general categories of Unicode.
//! - As in ECMA-262, `\d`, `\w`, `\s` and `\b` are ASCII.
//! - Flags, and properties of Unicode other than general categories, are errors.
//!
//! The functions that return parts of a text ([`Regex::captures`] and others) use `regex-automata`, and so
//! behave as in regex. Cedar calls them where it parses, which the worker never does, so they are not in the Wasm.

mod budget;
mod category;
mod class;
mod groups;
mod program;
mod search;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

pub use budget::within;
pub use class::is_supported;
pub use groups::{Captures, Match};
pub use program::{MAX_SIZE, size};

use program::Program;

/// A compiled pattern.
#[derive(Clone)]
pub struct Regex {
    pattern: Box<str>,
    program: Program,
    /// The pattern, compiled by regex-automata when it is first used. As a type, it would bring the code that drops it into
    /// the Wasm.
    groups: OnceLock<Option<Arc<dyn Any + Send + Sync>>>,
}

impl Regex {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// The pattern is invalid, not supported, or too large.
    pub fn new(pattern: &str) -> Result<Self, Error> {
        let program = Program::new(pattern)?;
        Ok(Self { pattern: pattern.into(), program, groups: OnceLock::new() })
    }

    /// The pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern matches anywhere in the text. See [`within`] for a bound on its time.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.program.is_match(text)
    }
}

impl fmt::Debug for Regex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Regex").field(&self.pattern).finish()
    }
}

/// Why a pattern cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    Syntax(String),
    Flags,
    Property,
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax(message) => message,
            Self::Flags => "flags are not supported",
            Self::Property => "of Unicode's properties, only general categories are supported",
            Self::TooLarge => "the pattern is too large",
        })
    }
}

impl std::error::Error for Error {}
