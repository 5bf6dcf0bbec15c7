//! The words of an instruction, and where they are.

/// What stands before a number that names something.
pub const NUMBER_SIGNS: [&str; 4] = ["no", "nr", "number", "num"];

// Inlined into each caller, it takes much more code.
#[inline(never)]
pub fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// A word without the characters around it that are neither letters nor digits.
// Inlined into each caller, it was larger and no faster.
#[inline(never)]
pub fn bare(word: &str) -> &str {
    word.trim_matches(|character: char| !character.is_alphanumeric())
}

/// What is before and what after a part of a word.
pub fn beside<'t>(word: &'t str, part: &str) -> (&'t str, &'t str) {
    let (start, end) = place(word, part);
    (word.get(..start).unwrap_or_default(), word.get(end..).unwrap_or_default())
}

/// Offsets of the first byte of a span, and of the one after its last.
pub type Place = (usize, usize);

pub fn place(text: &str, span: &str) -> Place {
    let start = span.as_ptr().addr() - text.as_ptr().addr();
    (start, start + span.len())
}
