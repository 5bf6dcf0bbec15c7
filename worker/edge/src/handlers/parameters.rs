//! Query parameters that several handlers read.

use gateward_core::problem::{Problem, ProblemCode};

/// The size of a page.
pub fn page_limit(text: &str, max: u32) -> Result<u32, Problem> {
    text.parse()
        .ok()
        .filter(|limit| (1..=max).contains(limit))
        .ok_or_else(|| malformed("limit", &format!("a number from 1 to {max}")))
}

/// A parameter with a value that is not allowed; `expected` says what is.
pub fn malformed(name: &str, expected: &str) -> Problem {
    Problem::new(ProblemCode::MalformedRequest, format!("`{name}` must be {expected}"))
}
