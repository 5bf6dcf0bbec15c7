//! Mistakes in sources, with their places.

use std::fmt;
use std::ops::Range;

use crate::sources::SourceFile;

/// Characters of an excerpt, so that it fits into a terminal's line together with a message.
const MAX_EXCERPT_CHARS: usize = 100;

/// A mistake in a policy source. In [`crate::Compiled::warnings`]: a probable mistake.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyError {
    /// Relative to `policies/`.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// What is wrong. [`fmt::Display`] prints `text` after it.
    pub message: String,
    /// The first line of the wrong text, cut to a bounded length.
    pub text: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, message, text } = self;
        write!(f, "policies/{file}:{line}: {message} `{text}`")
    }
}

impl std::error::Error for PolicyError {}

impl PolicyError {
    /// A mistake at `range`, in bytes of the file. One at the end of the file, or outside it,
    /// shows the file's last line.
    pub(crate) fn at(file: &SourceFile, range: Range<usize>, message: impl Into<String>) -> Self {
        let text = file.text.trim_end();
        let start = if range.start < text.len() {
            range.start
        } else {
            text.rfind('\n').map_or(0, |newline| newline + 1)
        };
        let before = text.get(..start).unwrap_or_default();
        let shown = text.get(start..range.end.min(text.len())).unwrap_or_default();
        let shown = if shown.is_empty() { text.get(start..).unwrap_or_default() } else { shown };
        Self {
            file: file.path.clone(),
            line: before.matches('\n').count() + 1,
            message: message.into(),
            text: excerpt(shown),
        }
    }

    /// A mistake of the whole file: its name, or something that it lacks.
    pub(crate) fn of_file(file: &str, message: impl Into<String>, text: &str) -> Self {
        Self { file: file.to_owned(), line: 1, message: message.into(), text: excerpt(text) }
    }
}

fn excerpt(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim();
    match line.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line.to_owned(),
    }
}
