//! What surrounds a value in prose: quotes, brackets and punctuation.

use super::super::class::{Classes, HIGH, UPPER, class_of};

/// Whether a text is a value and no more: besides spaces and one `.` at its end, it has at most one quote or bracket on
/// each side, which another one in the text opens or closes. The [normal form](super::Form::of) drops more, because in prose
/// any punctuation can follow a value.
#[must_use]
pub fn is_exact(text: &str) -> bool {
    if is_bare(text) {
        return true;
    }
    let text = text.trim();
    let text = text.strip_suffix('.').unwrap_or(text);
    let begun = text.trim_start_matches(is_around);
    let (kept, after) = begun.split_at(begun.trim_end_matches(is_after).len());
    let before = text.get(..text.len() - begun.len()).unwrap_or_default();
    let one = |dropped: &str| {
        let mut letters = dropped.chars();
        (letters.next(), letters.next().is_none())
    };
    let ((open, one_before), (close, one_after)) = (one(before), one(after));
    let has = |side: &str, letter: Option<char>| match letter {
        Some(letter) => side.contains(letter),
        None => kept.contains(|letter| side.contains(letter)),
    };
    let is_closed = |(left, right): &(&str, &str)| has(left, open) && has(right, close);
    one_before && one_after && ((open.is_none() && close.is_none()) || PAIRS.iter().any(is_closed))
}

/// Quotes and brackets, by what opens and what closes.
const PAIRS: [(&str, &str); 10] = [
    ("\"", "\""),
    ("'", "'"),
    ("`", "`"),
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("<", ">"),
    ("“„”", "”“"),
    ("‘’", "’‘"),
    ("«»", "»«"),
];

/// A text without what surrounds a value in prose.
pub struct Stripped<'t> {
    pub text: &'t str,
    pub(super) classes: Classes,
    /// Whether it is a path that ends with `.` or `..`. Punctuation after a value is dropped, so that `old/..` would be
    /// `old/`, and `old/..?` too.
    pub(super) is_above: bool,
}

impl<'t> Stripped<'t> {
    /// Of what [`stripped`] returned.
    #[must_use]
    pub fn new((text, is_above): (&'t str, bool)) -> Self {
        Self { text, classes: class_of(text.as_bytes()), is_above }
    }

    pub(super) fn has_upper(&self) -> bool {
        self.classes & UPPER != 0
            || (self.classes & HIGH != 0 && self.text.contains(char::is_uppercase))
    }
}

/// A text without what surrounds it, and whether it is a path that ends with `.` or `..`.
#[must_use]
pub fn stripped(text: &str) -> (&str, bool) {
    if is_bare(text) {
        return (text, false);
    }
    let text = trim_start(text);
    let kept = trim_end(text);
    let is_above = kept.ends_with(['/', '\\'])
        && text.get(kept.len()..).is_some_and(|dropped| dropped.trim_start().starts_with('.'));
    (kept, is_above)
}

/// A text without what can be before a value. Most of that is ASCII.
fn trim_start(text: &str) -> &str {
    let ascii = text.bytes().take_while(|byte| byte.is_ascii() && is_around(char::from(*byte)));
    let text = text.get(ascii.count()..).unwrap_or_default();
    if text.as_bytes().first().is_none_or(u8::is_ascii) {
        return text;
    }
    text.trim_start_matches(is_around)
}

/// A text without what can be after a value.
fn trim_end(text: &str) -> &str {
    let is_dropped = |byte: &u8| byte.is_ascii() && is_after(char::from(*byte));
    let ascii = text.bytes().rev().take_while(is_dropped).count();
    let text = text.get(..text.len() - ascii).unwrap_or_default();
    if text.as_bytes().last().is_none_or(u8::is_ascii) {
        return text;
    }
    text.trim_end_matches(is_after)
}

/// Whether nothing surrounds a value, as around most.
fn is_bare(text: &str) -> bool {
    match text.as_bytes() {
        [first, .., last] => {
            let ends = [*first, *last];
            ends.iter().all(u8::is_ascii_alphanumeric)
                || (ends.is_ascii()
                    && !is_around(char::from(*first))
                    && !is_after(char::from(*last)))
        }
        _ => false,
    }
}

/// What can be before a value in prose.
fn is_around(character: char) -> bool {
    character.is_whitespace()
        || matches!(
            character,
            '"' | '\''
                | '`'
                | '('
                | ')'
                | '['
                | ']'
                | '{'
                | '}'
                | '<'
                | '>'
                | '“'
                | '”'
                | '„'
                | '‘'
                | '’'
                | '«'
                | '»'
        )
}

/// What can be after it.
fn is_after(character: char) -> bool {
    is_around(character) || matches!(character, '.' | ',' | ';' | ':' | '!' | '?' | '…')
}
