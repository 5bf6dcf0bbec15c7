//! Finding the numbers of a text that neither [`Json::Integer`] nor [`Json::Number`] holds exactly.

use std::ops::Range;

use super::value::{Json, MAX_INTEGER};
use crate::bounds::MAX_JSON_NODES;

/// Finds the numbers in a text that are not held exactly. Returns for each how many numbers precede it,
/// and its range of bytes. Stops when there are more than a document may have values.
pub fn inexact_numbers(bytes: &[u8]) -> Vec<(usize, Range<usize>)> {
    let (mut kept, mut ordinal, mut at) = (Vec::new(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            b'"' => string_bytes(rest),
            b'-' | b'0'..=b'9' => {
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

/// Finds the numbers in the text of a parsed document that are not held exactly. Returns what was read
/// instead, in order: 1000 for `1000.00000000000005`.
#[must_use]
pub fn rounded(bytes: &[u8]) -> Vec<f64> {
    /// A number with fewer than 17 bytes has at most 15 digits, or is an integer. So a double holds it, unless it is
    /// below 10^-307, which is no amount or counts as zero. Each 17 bytes contain nine that begin at a multiple of nine.
    const PART_BYTES: usize = 9;
    // Few texts have nine such bytes, and only these texts are read byte by byte.
    if !bytes.chunks_exact(PART_BYTES).any(|part| part.iter().all(is_part)) {
        return Vec::new();
    }
    let read = |(_, place): (usize, Range<usize>)| -> Option<f64> {
        serde_json::from_str(std::str::from_utf8(bytes.get(place)?).ok()?).ok()
    };
    let mut numbers: Vec<f64> =
        inexact_numbers(bytes).into_iter().filter_map(read).map(without_sign_of_zero).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

impl Json {
    /// Whether it is one of these numbers, or contains one at any depth. They are in the order of [`rounded`].
    #[must_use]
    pub fn has_number_of(&self, numbers: &[f64]) -> bool {
        let contains = |number: f64| {
            let number = without_sign_of_zero(number);
            numbers.binary_search_by(|held| held.total_cmp(&number)).is_ok()
        };
        match self {
            Self::Integer(number) => contains(*number as f64),
            Self::Number(number) => contains(*number),
            Self::Array(items) => items.iter().any(|item| item.has_number_of(numbers)),
            Self::Object(fields) => fields.iter().any(|(_, value)| value.has_number_of(numbers)),
            Self::Null | Self::Bool(_) | Self::String(_) | Self::Verbatim(_) => false,
        }
    }
}

/// Zero for minus zero, which is the same number and has another place in [`f64::total_cmp`].
fn without_sign_of_zero(number: f64) -> f64 {
    number + 0.0
}

/// Whether a number can contain the byte.
fn is_part(byte: &u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E')
}

/// The length of the string that a text begins with, including both quotation marks.
pub fn string_bytes(text: &[u8]) -> usize {
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

/// Whether parsing a number's text keeps its value. True also for a text that is not a number, or is
/// larger than a double: the parser rejects those.
fn is_held_exactly(text: &[u8]) -> bool {
    /// Every integer with this many digits is within ±2^53.
    const SMALL: usize = 15;
    if text.len() <= SMALL && text.iter().all(u8::is_ascii_digit) {
        return true;
    }
    let Ok(text) = std::str::from_utf8(text) else { return true };
    let Ok(value) = serde_json::from_str::<f64>(text) else { return true };
    if value.abs() >= MAX_INTEGER as f64 {
        return text.trim_start_matches('-') == "9007199254740992";
    }
    let value =
        if value.fract() == 0.0 { Json::Integer(value as i64) } else { Json::Number(value) };
    decimal(text) == decimal(&value.canonical())
}

/// A number as its sign, its digits without leading and trailing zeros, and a power of ten. Equal numbers
/// have equal results. `None` if the power is out of range.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn a_number_of_a_call_that_a_double_does_not_hold_is_found() {
        for (number, expected) in [
            ("1000.00000000000005", Some(1000.0)),
            ("-1000.00000000000005", Some(-1000.0)),
            ("12345678901234.567", Some(12_345_678_901_234.566)),
            ("0.1000000000000000055", Some(0.1)),
            ("100000000000000000005e-18", Some(100.0)),
            ("1000.00000000000000", None),
            ("0.30000000000000004", None),
            ("9007199254740992", None),
            ("-123456789012.345", None),
            ("12.50", None),
            ("1e2", None),
            ("\"1000.00000000000005\"", None),
        ] {
            // Wherever the number is.
            for before in 0..20 {
                let text = format!("[{}{number}]", " ".repeat(before));
                assert!(parse(text.as_bytes()).is_ok(), "{text}");
                assert_eq!(rounded(text.as_bytes()), Vec::from_iter(expected), "{text}");
            }
        }
    }

    #[test]
    fn rounded_numbers_are_found_whatever_their_order() {
        let numbers = rounded(b"[2.00000000000000005,1,0.1000000000000000055]");
        assert_eq!(numbers, [0.1, 2.0]);
        for (text, expected) in
            [("2", true), ("2.0", true), ("[[{\"a\":0.1}]]", true), ("1", false), ("\"2\"", false)]
        {
            let value = parse(text.as_bytes()).unwrap();
            assert_eq!(value.has_number_of(&numbers), expected, "{text}");
        }
        let zero = parse(b"-0.0").unwrap();
        assert!(zero.has_number_of(&[0.0]) && parse(b"0").unwrap().has_number_of(&[0.0]));
    }
}
