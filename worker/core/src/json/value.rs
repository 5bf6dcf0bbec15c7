//! The value of a document.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// The largest integer that RFC 8785 distinguishes from its neighbours, 2^53.
pub const MAX_INTEGER: i64 = 1 << 53;

/// Bytes that the allocator adds to each allocation: dlmalloc's header, and rounding up to 8.
const ALLOCATION_BYTES: usize = 8;

/// A JSON value within the bounds of [`crate::bounds`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Json {
    Null,
    Bool(bool),
    /// Every number that is an integer, within ±[`MAX_INTEGER`].
    Integer(i64),
    /// Every other number; finite.
    Number(f64),
    String(String),
    Array(Vec<Json>),
    /// Sorted by key in UTF-16 order, keys unique.
    Object(Vec<(String, Json)>),
    /// The text of a number that neither of the two above holds exactly. Only definitions have such
    /// numbers: see [`crate::json::parse_definition`]. Arguments never do.
    #[serde(skip)]
    Verbatim(String),
}

/// The order of keys in RFC 8785: by UTF-16 code units.
///
/// It is the order of the UTF-8 bytes, with one exception: the surrogates of an astral character, whose first byte is at
/// least 0xf0, come before the characters from U+E000, whose first byte is 0xee or 0xef.
pub(crate) fn utf16_order(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| if matches!(byte, 0xee | 0xef) { byte + 0x10 } else { byte };
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

/// Sorts fields as [`Json::Object`] requires. Not generic and not inlined, so that it is compiled only once.
#[inline(never)]
pub(crate) fn sort_fields(fields: &mut [(String, Json)]) {
    fields.sort_unstable_by(|(a, _), (b, _)| utf16_order(a, b));
}

impl Json {
    /// The field `key` of an object; `None` if this is not an object or has no such field.
    ///
    /// Not inlined: the search is 200 bytes of code, and there are some thirty callers.
    #[must_use]
    #[inline(never)]
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => {
                let at = fields.binary_search_by(|(name, _)| utf16_order(name, key)).ok()?;
                fields.get(at).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The part that a JSON Pointer (RFC 6901) leads to.
    #[must_use]
    pub fn pointer(&self, pointer: &str) -> Option<&Json> {
        pointer.split('/').skip(1).try_fold(self, |at, name| match at {
            // No other spelling of the index, such as `01`.
            Json::Array(items) => {
                let index = name.parse::<usize>().ok().filter(|index| index.to_string() == name)?;
                items.get(index)
            }
            at if name.contains('~') => at.get(&name.replace("~1", "/").replace("~0", "~")),
            at => at.get(name),
        })
    }

    /// The field `key` of an object, mutable.
    #[must_use]
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        match self {
            Json::Object(fields) => {
                let at = fields.binary_search_by(|(name, _)| utf16_order(name, key)).ok()?;
                fields.get_mut(at).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// Bytes of memory that the value has allocated, including what the allocator adds to each part.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let part = |bytes: usize| if bytes == 0 { 0 } else { bytes + ALLOCATION_BYTES };
        match self {
            Json::String(text) | Json::Verbatim(text) => part(text.capacity()),
            Json::Array(items) => {
                let inner: usize = items.iter().map(Json::heap_bytes).sum();
                part(items.capacity() * size_of::<Json>()) + inner
            }
            Json::Object(fields) => {
                let inner =
                    |(key, value): &(String, Json)| part(key.capacity()) + value.heap_bytes();
                let inner: usize = fields.iter().map(inner).sum();
                part(fields.capacity() * size_of::<(String, Json)>()) + inner
            }
            _ => 0,
        }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Json::String(text) => Some(text),
            _ => None,
        }
    }

    /// The kind of the value, for error messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Integer(_) => "an integer",
            Json::Number(_) | Json::Verbatim(_) => "a number",
            Json::String(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn keys_are_ordered_by_their_utf_16_code_units() {
        let letters = "a\u{7f}é\u{7ff}\u{800}\u{d7ff}\u{e000}\u{efff}\u{ffff}\u{10000}\u{10ffff}";
        let mut keys = vec![String::new()];
        for first in letters.chars() {
            keys.push(first.to_string());
            keys.extend(letters.chars().map(|second| String::from_iter([first, second])));
        }
        for (a, b) in keys.iter().flat_map(|a| keys.iter().map(move |b| (a, b))) {
            assert_eq!(utf16_order(a, b), a.encode_utf16().cmp(b.encode_utf16()), "{a:?} {b:?}");
        }
    }

    #[test]
    fn heap_bytes_counts_every_allocation() {
        let text = format!("[{}{{}}]", r#"{"a":0},"#.repeat(4_000));
        let value = parse(text.as_bytes()).unwrap();
        // Each object has room for four fields, and a key.
        let each = 4 * size_of::<(String, Json)>() + 1 + 2 * ALLOCATION_BYTES;
        assert!(value.heap_bytes() >= 4_000 * (each + size_of::<Json>()), "{}", value.heap_bytes());
        assert_eq!(parse(b"[]").unwrap().heap_bytes(), 0);
        assert_eq!(Json::String("x".repeat(100)).heap_bytes(), 100 + ALLOCATION_BYTES);
    }
}
