//! Short forms of text that a server wrote.

/// Characters of a server's text in one line of a summary.
pub const SUMMARY_CHARACTERS: usize = 300;

/// At most [`SUMMARY_CHARACTERS`] of a text. If it was longer, that is shown.
pub fn cut(text: &str) -> String {
    crate::table::cut(text, SUMMARY_CHARACTERS)
}
