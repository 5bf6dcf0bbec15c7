//! Reading a document.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use super::number::inexact_numbers;
use super::value::{Json, MAX_INTEGER, sort_fields};
use crate::bounds::{MAX_JSON_DEPTH, MAX_JSON_NODES};

/// Why a text is rejected. `ambiguous` is true for JSON that two readers could read differently
/// (duplicate keys, integers beyond ±2^53), and false for invalid JSON and JSON beyond the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    pub message: String,
    pub ambiguous: bool,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonError {}

/// The prefix that marks an ambiguity inside of `serde_json`'s error type.
const AMBIGUOUS: &str = "ambiguous: ";

/// The text of a document. All readers of JSON start from a text, so that `serde_json`'s parser is compiled for one
/// kind of input.
///
/// # Errors
///
/// The bytes are not UTF-8. The message has the line and column.
pub fn utf8(bytes: &[u8]) -> Result<&str, JsonError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        let column = before.rsplit(|byte| *byte == b'\n').next().map_or(0, <[u8]>::len) + 1;
        // serde_json's words for the same.
        let message = format!("invalid unicode code point at line {line} column {column}");
        JsonError { message, ambiguous: false }
    })
}

/// Reads one document.
///
/// # Errors
///
/// The text is invalid, too deep, too large or ambiguous. The message has the line and column.
pub fn parse(bytes: &[u8]) -> Result<Json, JsonError> {
    parse_with(bytes, &[])
}

/// Reads a tool's definition, or a request that contains one.
///
/// Its numbers may be any within the range of a double. A number that neither [`Json::Integer`] nor
/// [`Json::Number`] holds exactly keeps its text, also in the canonical form. So two definitions that
/// differ in such a number have different digests.
///
/// # Errors
///
/// As [`parse`], except that integers beyond ±2^53 are accepted.
pub fn parse_definition(bytes: &[u8]) -> Result<Json, JsonError> {
    let kept = inexact_numbers(bytes);
    if kept.is_empty() {
        return parse(bytes);
    }
    // Each is replaced by a zero and spaces, so that errors still have the right line and column.
    let mut readable = bytes.to_vec();
    let mut texts = Vec::with_capacity(kept.len());
    for (ordinal, place) in kept {
        if let (Some(text), Some(hole)) = (bytes.get(place.clone()), readable.get_mut(place)) {
            hole.fill(b' ');
            hole.iter_mut().take(1).for_each(|first| *first = b'0');
            texts.push((ordinal, String::from_utf8_lossy(text).into_owned()));
        }
    }
    parse_with(&readable, &texts)
}

fn parse_with(bytes: &[u8], kept: &[(usize, String)]) -> Result<Json, JsonError> {
    let mut state = State { nodes: 0, numbers: 0, kept };
    let mut reader = serde_json::Deserializer::from_str(utf8(bytes)?);
    let value = ValueSeed { depth: 0, state: &mut state }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        let message = error.to_string();
        match message.strip_prefix(AMBIGUOUS) {
            Some(rest) => JsonError { message: rest.to_owned(), ambiguous: true },
            None => JsonError { message, ambiguous: false },
        }
    })
}

struct State<'k> {
    nodes: usize,
    numbers: usize,
    /// The kept numbers that were not reached yet: how many numbers precede each, and its text.
    kept: &'k [(usize, String)],
}

struct ValueSeed<'a, 'k> {
    depth: usize,
    state: &'a mut State<'k>,
}

impl<'de> DeserializeSeed<'de> for ValueSeed<'_, '_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        self.state.nodes += 1;
        if self.state.nodes > MAX_JSON_NODES {
            return Err(D::Error::custom(format_args!("more than {MAX_JSON_NODES} values")));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'k> ValueSeed<'_, 'k> {
    /// The text of the number at this place, if it is kept.
    fn kept(&mut self) -> Option<Json> {
        let (ordinal, kept) = (self.state.numbers, self.state.kept);
        self.state.numbers += 1;
        let ((_, text), rest) = kept.split_first().filter(|((at, _), _)| *at == ordinal)?;
        self.state.kept = rest;
        Some(Json::Verbatim(text.clone()))
    }

    /// Checks the depth where an array or object begins, even an empty one.
    fn enter<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.depth == MAX_JSON_DEPTH {
            return Err(E::custom(format_args!("nested deeper than {MAX_JSON_DEPTH} levels")));
        }
        Ok(())
    }

    fn inner(&mut self) -> ValueSeed<'_, 'k> {
        ValueSeed { depth: self.depth + 1, state: &mut *self.state }
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_, '_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Json, E> {
        self.state.numbers += 1;
        integer(value)
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<Json, E> {
        // A kept number was replaced by zero.
        if let Some(kept) = self.kept() {
            return Ok(kept);
        }
        match i64::try_from(value) {
            Ok(value) => integer(value),
            Err(_) => {
                Err(E::custom(format_args!("{AMBIGUOUS}integer `{value}` must be within ±2^53")))
            }
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        self.state.numbers += 1;
        // The double 2^53 may have been 2^53 + 1 in the text.
        if value.abs() >= MAX_INTEGER as f64 {
            return Err(E::custom(format_args!("{AMBIGUOUS}number `{value}` must be below 2^53")));
        }
        Ok(if value.fract() == 0.0 { Json::Integer(value as i64) } else { Json::Number(value) })
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Json, A::Error> {
        self.enter()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.inner())? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Json, A::Error> {
        self.enter()?;
        let mut fields: Vec<(String, Json)> = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.inner())?;
            fields.push((key, value));
        }
        sort_fields(&mut fields);
        for pair in fields.windows(2) {
            if let [(a, _), (b, _)] = pair
                && a == b
            {
                return Err(A::Error::custom(format_args!("{AMBIGUOUS}duplicate key `{a}`")));
            }
        }
        Ok(Json::Object(fields))
    }
}

fn integer<E: serde::de::Error>(value: i64) -> Result<Json, E> {
    if value.unsigned_abs() > MAX_INTEGER.unsigned_abs() {
        return Err(E::custom(format_args!("{AMBIGUOUS}integer `{value}` must be within ±2^53")));
    }
    Ok(Json::Integer(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_two_readers_could_read_differently_is_rejected_as_ambiguous() {
        let cases = [
            (r#"{"a":1,"a":2}"#, "duplicate key `a`"),
            (r#"{"x":[{"b":1,"\u0062":1}]}"#, "duplicate key `b`"),
            ("9007199254740993", "integer `9007199254740993` must be within ±2^53"),
            ("-9007199254740993", "integer `-9007199254740993` must be within ±2^53"),
            ("18446744073709551615", "integer `18446744073709551615` must be within ±2^53"),
            ("1e300", "must be below 2^53"),
            ("9007199254740993.0", "number `9007199254740992` must be below 2^53"),
        ];
        for (text, expected) in cases {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.ambiguous && error.message.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_definition_keeps_the_text_of_each_number_that_is_not_held_exactly() {
        for (text, canonical) in [
            ("[1,1.0,-0.0,0.10,1e2,100000000000000000e-5]", "[1,1,0,0.1,100,1000000000000]"),
            ("[9007199254740992,-9007199254740992]", "[9007199254740992,-9007199254740992]"),
            ("[9007199254740993]", "[9007199254740993]"),
            (
                "[9223372036854775807, 9223372036854775808]",
                "[9223372036854775807,9223372036854775808]",
            ),
            (
                r#"{"b":-1.79E+308,"a\"":[1,1e16],"9e99":2}"#,
                r#"{"9e99":2,"a\"":[1,1e16],"b":-1.79E+308}"#,
            ),
            (
                "[0.1000000000000000055,333333333.33333329]",
                "[0.1000000000000000055,333333333.33333329]",
            ),
            ("[1e-400,5e-324]", "[1e-400,5e-324]"),
        ] {
            let found = parse_definition(text.as_bytes()).unwrap();
            assert_eq!(found.canonical(), canonical, "{text}");
            assert_eq!(parse_definition(canonical.as_bytes()).unwrap(), found, "{text}");
        }
        // Everything else is rejected as in a call, with the right line and column.
        for (text, expected) in [
            (r#"{"a":1e99,"a":1e99}"#, "duplicate key `a`"),
            ("[1e99, 1e400]", "number out of range at line 1 column 12"),
            ("[1e99, 01]", "line 1 column 9"),
            ("[1e99, 1.]", "line 1 column 10"),
            ("[1e99, -]", "line 1 column 9"),
            (r#"["1e99, 1e99"#, "EOF"),
            (r#"["\"#, "EOF"),
        ] {
            let error = parse_definition(text.as_bytes()).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {error}");
        }
        let wide = format!("[{}1]", "1e99,".repeat(2 * MAX_JSON_NODES));
        let error = parse_definition(wide.as_bytes()).unwrap_err();
        assert!(error.message.contains("more than 10000 values"), "{error}");
    }

    #[test]
    fn invalid_or_too_large_json_is_rejected_with_its_place() {
        let deep = "[".repeat(10_000);
        let wide = format!("[{}1]", "1,".repeat(MAX_JSON_NODES));
        let cases = [
            (deep.as_str(), "nested deeper than 32 levels"),
            (wide.as_str(), "more than 10000 values"),
            ("{\"a\":\n  tru}", "line 2 column"),
            ("{} {}", "trailing characters"),
            ("", "EOF"),
        ];
        for (text, expected) in cases {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(!error.ambiguous && error.message.contains(expected), "{error}");
        }
        let error = parse(b"{\"a\":\n \"b\xff\"}").unwrap_err();
        assert_eq!(error.message, "invalid unicode code point at line 2 column 4");
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(MAX_JSON_DEPTH).as_bytes()).is_ok());
        assert!(parse(nested(MAX_JSON_DEPTH + 1).as_bytes()).is_err());
        let nested =
            |levels| format!("{}{{}}{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
        assert!(parse(nested(MAX_JSON_DEPTH).as_bytes()).is_ok());
        assert!(parse(nested(MAX_JSON_DEPTH + 1).as_bytes()).is_err());
    }
}
