//! Finding the numbers of a definition that neither [`Json::Integer`] nor [`Json::Number`] holds exactly.

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
