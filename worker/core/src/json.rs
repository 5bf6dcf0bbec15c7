//! Bounded JSON: read once, in one pass, into a value that has one canonical form.
//!
//! INVARIANT (one meaning): two documents with equal canonical bytes are equal values here, so a
//! digest over the canonical form is a digest over what policies see. That is why duplicate
//! keys, and integers that a double cannot hold, are refused and not merged, and why `1.0` and
//! `1` are the same integer.
//!
//! The canonical form is RFC 8785 (JSON Canonicalization Scheme).

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::bounds::{MAX_JSON_DEPTH, MAX_JSON_NODES};

/// The largest integer that RFC 8785 keeps apart from its neighbours, 2^53.
pub const MAX_INTEGER: i64 = 1 << 53;

/// Bytes to begin a canonical form with: most arguments take fewer, so it grows seldom.
const CANONICAL_BYTES: usize = 256;

/// Bytes that an allocation takes beside its own: dlmalloc's header, and rounding up to 8.
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
    /// A number of a definition that neither of the two above is exactly; its text as it came. Only
    /// [`parse_definition`] makes it, so no argument is one.
    #[serde(skip)]
    Verbatim(String),
}

/// Why text is not JSON that Gateward takes. `ambiguous` tells what two readers could read
/// differently (duplicate keys, integers beyond ±2^53) from what is no JSON or too much of it.
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

/// Marks messages about ambiguity on their way through `serde_json`'s error type.
const AMBIGUOUS: &str = "ambiguous: ";

/// Reads one document.
///
/// # Errors
///
/// Says line and column of what is not JSON, too deep, too large or ambiguous.
pub fn parse(bytes: &[u8]) -> Result<Json, JsonError> {
    parse_with(bytes, &[])
}

/// Reads one document that describes and is not called: a tool's definition, or a request that holds
/// one. Its numbers may be any that a double can hold. One that is not exactly an [`Json::Integer`] or
/// a [`Json::Number`] keeps its text, in the canonical form too: so two definitions that differ in
/// such a number differ in their digests.
///
/// # Errors
///
/// As [`parse`], but for integers beyond ±2^53.
pub fn parse_definition(bytes: &[u8]) -> Result<Json, JsonError> {
    let kept = kept_numbers(bytes);
    if kept.is_empty() {
        return parse(bytes);
    }
    // In their places a zero, so that every error says line and column of the text as it came.
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

/// Where the numbers of a text are that [`Json::Integer`] and [`Json::Number`] do not hold exactly: how
/// many numbers are before each, and its bytes. No more than a document may have values.
fn kept_numbers(bytes: &[u8]) -> Vec<(usize, Range<usize>)> {
    let (mut kept, mut ordinal, mut at) = (Vec::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            b'"' => string_bytes(rest),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
                let text = rest.get(..length).unwrap_or_default();
                if kept.len() <= MAX_JSON_NODES && !is_held_exactly(text) {
                    kept.push((ordinal, at..at + length));
                }
                ordinal += 1;
                length
            }
            _ => 1,
        };
    }
    kept
}

/// Bytes of the string that a text begins with, both quotation marks included.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match text.get(at) {
            None => return text.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Whether a number's text means what [`parse`] makes of it. What is no number, or larger than a double
/// can hold, is left to [`parse`] to refuse.
fn is_held_exactly(text: &[u8]) -> bool {
    /// An integer of as many digits is within ±2^53.
    const SMALL: usize = 15;
    if text.len() <= SMALL && text.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let Ok(value) = serde_json::from_slice::<f64>(text) else { return true };
    let Ok(text) = std::str::from_utf8(text) else { return true };
    if value.abs() >= MAX_INTEGER as f64 {
        return text.trim_start_matches('-') == "9007199254740992";
    }
    let value =
        if value.fract() == 0.0 { Json::Integer(value as i64) } else { Json::Number(value) };
    decimal(text) == decimal(&value.canonical())
}

/// Sign, digits without zeros at either end, and the power of ten that they are multiplied with: equal
/// for equal numbers. `None` if the power is too large to be one.
pub(crate) fn decimal(number: &str) -> Option<(bool, String, i64)> {
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number),
    };
    let (mantissa, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = [whole, fraction].concat();
    let trimmed = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - trimmed.len()).ok()?;
    let power = power.parse::<i64>().ok()?;
    let power = power.checked_sub(i64::try_from(fraction.len()).ok()?)?.checked_add(zeros)?;
    match trimmed.trim_start_matches('0') {
        "" => Some((false, String::new(), 0)),
        digits => Some((negative, digits.to_owned(), power)),
    }
}

fn parse_with(bytes: &[u8], kept: &[(usize, String)]) -> Result<Json, JsonError> {
    let mut state = State { nodes: 0, numbers: 0, kept };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
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
    /// The texts of the numbers that are kept and were not reached yet, each with how many numbers are
    /// before it.
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
    /// The text of the number that was reached, if it is one that is kept.
    fn kept(&mut self) -> Option<Json> {
        let (ordinal, kept) = (self.state.numbers, self.state.kept);
        self.state.numbers += 1;
        let ((_, text), rest) = kept.split_first().filter(|((at, _), _)| *at == ordinal)?;
        self.state.kept = rest;
        Some(Json::Verbatim(text.clone()))
    }

    /// An array or object begins, empty ones included.
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
        // A number that is kept was written as zero.
        if let Some(kept) = self.kept() {
            return Ok(kept);
        }
        match i64::try_from(value) {
            Ok(value) => integer(value),
            Err(_) => Err(E::custom(format_args!("{AMBIGUOUS}integer `{value}` is beyond ±2^53"))),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Json, E> {
        self.state.numbers += 1;
        // 2^53 itself may have been 2^53 + 1 in the text: a double does not know.
        if value.abs() >= MAX_INTEGER as f64 {
            return Err(E::custom(format_args!("{AMBIGUOUS}number `{value}` is not below 2^53")));
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
        fields.sort_by(|(a, _), (b, _)| utf16_order(a, b));
        for pair in fields.windows(2) {
            if let [(a, _), (b, _)] = pair
                && a == b
            {
                return Err(A::Error::custom(format_args!("{AMBIGUOUS}key `{a}` stands twice")));
            }
        }
        Ok(Json::Object(fields))
    }
}

fn integer<E: serde::de::Error>(value: i64) -> Result<Json, E> {
    if value.unsigned_abs() > MAX_INTEGER.unsigned_abs() {
        return Err(E::custom(format_args!("{AMBIGUOUS}integer `{value}` is beyond ±2^53")));
    }
    Ok(Json::Integer(value))
}

/// RFC 8785 sorts keys by UTF-16 code units; that is byte order but for astral characters.
pub(crate) fn utf16_order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

/// A key as the most lenient reader matches it. Go's `encoding/json` folds case, `ſ` and the sign of
/// Kelvin included; readers in C stop at a NUL.
pub(crate) fn folded(key: &str) -> impl Iterator<Item = char> {
    let characters = key.chars().filter(|c| *c != '\0').flat_map(char::to_lowercase);
    characters.map(|c| if c == 'ſ' { 's' } else { c })
}

/// Names that are looked for however a lenient reader may spell them.
pub struct Names {
    folded: HashSet<String>,
    fold: fn(&str) -> String,
}

impl Names {
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self::by(names, |name| folded(name).collect())
    }

    /// The same for readers that match names by what `fold` makes of them.
    #[must_use]
    pub fn by(names: &[String], fold: fn(&str) -> String) -> Self {
        Self { folded: names.iter().map(|name| fold(name)).collect(), fold }
    }

    /// Whether a lenient reader may take the key for one of these.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        !self.folded.is_empty() && self.folded.contains(&(self.fold)(key))
    }
}

/// Whether a lenient reader may take one key for the other.
#[must_use]
pub fn same_folded(a: &str, b: &str) -> bool {
    folded(a).eq(folded(b))
}

/// Whether a lenient reader may take a key for one of these names, and it is none of them. The names
/// are ASCII.
#[must_use]
pub fn is_mistakable(key: &str, names: &[&str]) -> bool {
    // Most keys are ASCII too, and then differ in their lengths already.
    let plain = key.bytes().all(|byte| byte.is_ascii() && byte != 0);
    let same = |name: &&str| match plain {
        true => name.eq_ignore_ascii_case(key),
        false => same_folded(name, key),
    };
    !names.contains(&key) && names.iter().any(same)
}

/// Whether a lenient reader may take a key for one that begins with `prefix`, in lower case.
#[must_use]
pub fn begins_folded(key: &str, prefix: &str) -> bool {
    let mut key = folded(key);
    prefix.chars().all(|character| key.next() == Some(character))
}

impl Json {
    /// The field `key` of an object; `None` when this is no object or has no such field.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => {
                let at = fields.binary_search_by(|(name, _)| utf16_order(name, key)).ok()?;
                fields.get(at).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The same, to be changed.
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

    /// Bytes of memory that the value holds beside itself, with what an allocator adds to each part.
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

    /// Takes every field of these names out, at any depth and however a lenient reader may spell them.
    pub fn remove(&mut self, names: &Names) {
        match self {
            Json::Object(fields) => {
                fields.retain(|(name, _)| !names.has(name));
                fields.iter_mut().for_each(|(_, value)| value.remove(names));
            }
            Json::Array(items) => items.iter_mut().for_each(|item| item.remove(names)),
            _ => {}
        }
    }

    /// A key, at any depth, that a lenient reader may take for another key of its object.
    #[must_use]
    pub fn twin(&self) -> Option<&str> {
        self.twin_by(&|key| folded(key).collect())
    }

    /// The same for readers that match keys by what `fold` makes of them.
    #[must_use]
    pub fn twin_by(&self, fold: &dyn Fn(&str) -> String) -> Option<&str> {
        match self {
            Json::Object(fields) => {
                let mut keys: Vec<(String, &str)> =
                    fields.iter().map(|(key, _)| (fold(key), key.as_str())).collect();
                keys.sort_unstable();
                let twins = keys.windows(2).find_map(|pair| match pair {
                    [(a, _), (b, key)] if a == b => Some(*key),
                    _ => None,
                });
                twins.or_else(|| fields.iter().find_map(|(_, value)| value.twin_by(fold)))
            }
            Json::Array(items) => items.iter().find_map(|item| item.twin_by(fold)),
            _ => None,
        }
    }

    /// What this is, for an error message.
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

    /// Appends the RFC 8785 form.
    pub fn write_canonical(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Integer(value) => out.push_str(itoa::Buffer::new().format(*value)),
            Json::Number(value) => out.push_str(ryu_js::Buffer::new().format_finite(*value)),
            Json::Verbatim(text) => out.push_str(text),
            Json::String(text) => write_string(text, out),
            Json::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    item.write_canonical(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    value.write_canonical(out);
                }
                out.push('}');
            }
        }
    }

    /// The RFC 8785 form.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::with_capacity(CANONICAL_BYTES);
        self.write_canonical(&mut out);
        out
    }
}

/// Where the first byte stands that RFC 8785 escapes: below 0x20, a quotation mark or a backslash.
/// Eight bytes at a time; in each word, the lowest byte that is found is one.
fn first_escaped(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHEST_BITS: u64 = u64::from_ne_bytes([0x80; 8]);
    // Subtracting borrows into the highest bit of each byte that is less; what had it set is not.
    let less = |word: u64, than: u8| word.wrapping_sub(ONES * u64::from(than)) & !word;
    let equal = |word: u64, to: u8| less(word ^ (ONES * u64::from(to)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = (less(word, 0x20) | equal(word, b'"') | equal(word, b'\\')) & HIGHEST_BITS;
        if found != 0 {
            return Some(at * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let escaped = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    rest.iter().position(escaped).map(|at| words.len() * 8 + at)
}

/// A JSON string with exactly the escapes of RFC 8785.
pub fn write_string(text: &str, out: &mut String) {
    const HEX: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    out.push('"');
    let mut rest = text;
    while let Some(at) = first_escaped(rest.as_bytes()) {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(control) => {
                out.push_str("\\u00");
                out.extend(HEX.get((control as usize >> 4) & 15));
                out.extend(HEX.get(control as usize & 15));
            }
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_form_is_rfc_8785() {
        // The numbers, strings and key order of RFC 8785, sections 3.2.2 and 3.2.3 and appendix B.
        let cases = [
            (r#"{"b":1,"a":[ null ,true,{}]}"#, r#"{"a":[null,true,{}],"b":1}"#),
            ("[1.0,-0.0,0.10,1e3,4.50,2e-3,1e-7]", "[1,0,0.1,1000,4.5,0.002,1e-7]"),
            ("[0.000001,333333333.33333329]", "[0.000001,333333333.3333333]"),
            (
                r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/""#,
                "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"",
            ),
            (
                r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#,
                "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes()).unwrap().canonical(), expected, "{text}");
        }
    }

    #[test]
    fn finds_the_first_byte_to_escape_wherever_it_stands() {
        for length in 0..20 {
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    // What follows must not hide it, nor what is before be mistaken for it.
                    let mut bytes = vec![0x20; length];
                    bytes[at..].fill(b'\\');
                    bytes[..at].fill(0x80);
                    bytes[at] = byte;
                    let escaped = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let next = (at + 1 < length).then_some(at + 1);
                    let expected = if escaped { Some(at) } else { next };
                    assert_eq!(first_escaped(&bytes), expected, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn what_a_value_holds_is_measured_and_not_estimated_from_its_text() {
        let text = format!("[{}{{}}]", r#"{"a":0},"#.repeat(4_000));
        let value = parse(text.as_bytes()).unwrap();
        // Each object has room for four fields, and a key.
        let each = 4 * size_of::<(String, Json)>() + 1 + 2 * ALLOCATION_BYTES;
        assert!(value.heap_bytes() >= 4_000 * (each + size_of::<Json>()), "{}", value.heap_bytes());
        assert_eq!(parse(b"[]").unwrap().heap_bytes(), 0);
        assert_eq!(Json::String("x".repeat(100)).heap_bytes(), 100 + ALLOCATION_BYTES);
    }

    #[test]
    fn refuses_what_two_readers_could_read_differently() {
        let cases = [
            (r#"{"a":1,"a":2}"#, "key `a` stands twice"),
            (r#"{"x":[{"b":1,"\u0062":1}]}"#, "key `b` stands twice"),
            ("9007199254740993", "integer `9007199254740993` is beyond ±2^53"),
            ("-9007199254740993", "integer `-9007199254740993` is beyond ±2^53"),
            ("18446744073709551615", "integer `18446744073709551615` is beyond ±2^53"),
            ("1e300", "is not below 2^53"),
            ("9007199254740993.0", "number `9007199254740992` is not below 2^53"),
        ];
        for (text, expected) in cases {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.ambiguous && error.message.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_definition_keeps_the_text_of_each_number_that_no_value_holds_exactly() {
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
        // All else is refused as in a call, and said to be where it is.
        for (text, expected) in [
            (r#"{"a":1e99,"a":1e99}"#, "key `a` stands twice"),
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
    fn refuses_what_is_too_deep_too_much_or_no_json_and_says_where() {
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
        let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(nested(MAX_JSON_DEPTH).as_bytes()).is_ok());
        assert!(parse(nested(MAX_JSON_DEPTH + 1).as_bytes()).is_err());
        let nested =
            |levels| format!("{}{{}}{}", r#"{"a":"#.repeat(levels - 1), "}".repeat(levels - 1));
        assert!(parse(nested(MAX_JSON_DEPTH).as_bytes()).is_ok());
        assert!(parse(nested(MAX_JSON_DEPTH + 1).as_bytes()).is_err());
    }
}
