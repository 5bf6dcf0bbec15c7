//! Names and values of attributes, as far as detectors read them.

use std::ops::Range;

use crate::shield::detect::is_word;

/// Bytes of a name of an element or attribute that is known.
pub const MAX_NAME_BYTES: usize = 32;

/// Bytes of the code after a quote.
pub const MAX_QUOTED_BYTES: usize = 96;

/// The name at an offset, and where it ends.
pub fn name(bytes: &[u8], at: usize) -> (&[u8], usize) {
    let rest = bytes.get(at..).unwrap_or_default();
    let length = rest
        .iter()
        .take(MAX_NAME_BYTES)
        .take_while(|byte| is_word(**byte) || matches!(byte, b':' | b'-'))
        .count();
    (rest.get(..length).unwrap_or_default(), at + length)
}

/// Whether this is the name of an attribute for an event, such as `onload`.
pub fn is_event(name: &[u8]) -> bool {
    name.len() > 4
        && name.get(..2).is_some_and(|on| on.eq_ignore_ascii_case(b"on"))
        && name.iter().all(u8::is_ascii_alphabetic)
}

/// Where the value after an `=` begins, and its quote.
pub fn value_begin(bytes: &[u8], equals: usize) -> (usize, Option<u8>) {
    let rest = bytes.get(equals..).unwrap_or_default();
    let spaces =
        rest.iter().take_while(|byte| byte.is_ascii_whitespace() || **byte == b'=').count();
    let quote = rest.get(spaces).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    (equals + spaces + usize::from(quote.is_some()), quote)
}

/// The value after an `=`, as far as it is read, and where it ends: with its quote, or else before a space or the end of
/// the tag.
pub fn value(bytes: &[u8], equals: usize, max_bytes: usize) -> (Range<usize>, usize) {
    let (begin, quote) = value_begin(bytes, equals);
    let rest = bytes.get(begin..).unwrap_or_default();
    let ends = |byte: &u8| match quote {
        Some(quote) => *byte == quote,
        None => byte.is_ascii_whitespace() || *byte == b'>',
    };
    let bound = rest.len().min(max_bytes);
    let length = rest.iter().take(bound).position(ends).unwrap_or(bound);
    (begin..begin + length, begin + length + usize::from(quote.is_some()))
}
