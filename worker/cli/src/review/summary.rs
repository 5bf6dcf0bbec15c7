//! Short forms of text that a server wrote.

/// Characters of a server's text in one line of a summary.
pub const SUMMARY_CHARACTERS: usize = 300;

/// At most [`SUMMARY_CHARACTERS`] of a text. If it was longer, that is shown.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(SUMMARY_CHARACTERS) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "… (cut)",
        None => text.to_owned(),
    }
}
