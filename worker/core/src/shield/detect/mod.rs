//! Detectors: what a list of literals cannot find. Each reads a text once.

pub mod address;
pub mod hidden;
pub mod html;
pub mod path;
pub mod personal;
pub mod secret;
pub mod shell;
pub mod sql;
pub mod template;

use std::ops::Range;

use super::rule::Detector;

/// Where detectors report what they found: the detector, and the bytes of the text.
pub type Found<'f> = &'f mut dyn FnMut(Detector, Range<usize>);

/// Bytes of a value: longer texts are documents.
pub const MAX_VALUE_BYTES: usize = 512;

/// Whether a text is a single value: short, on one line, without spaces.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.len() <= MAX_VALUE_BYTES && !text.trim().contains(char::is_whitespace)
}

/// Whether a text is short, and no more than a line and the beginning of another.
#[must_use]
pub fn is_line(text: &str) -> bool {
    text.len() <= MAX_VALUE_BYTES && text.trim().split('\n').nth(2).is_none()
}

/// Bytes of the longest word that a list may have.
const MAX_LISTED_BYTES: usize = 24;

/// The position of a word in a sorted list of lower-case words, without regard to case.
#[must_use]
pub fn position<T>(list: &[T], text: fn(&T) -> &str, word: &[u8]) -> Option<usize> {
    let mut buffer = [0; MAX_LISTED_BYTES];
    let lower = buffer.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    list.binary_search_by(|known| text(known).as_bytes().cmp(lower)).ok()
}

/// The byte before an offset.
#[must_use]
pub fn before(text: &[u8], at: usize) -> Option<u8> {
    text.get(at.checked_sub(1)?).copied()
}

/// Whether a byte is part of a word.
#[must_use]
pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
