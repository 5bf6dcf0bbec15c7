//! Numbers of bank accounts.

use std::ops::Range;

use crate::shield::detect::{before, is_word};

/// Countries and the lengths of their account numbers (the IBAN registry of ISO 13616), sorted.
const IBAN_LENGTHS: &[([u8; 2], usize)] = &[
    (*b"AD", 24),
    (*b"AE", 23),
    (*b"AL", 28),
    (*b"AT", 20),
    (*b"AZ", 28),
    (*b"BA", 20),
    (*b"BE", 16),
    (*b"BG", 22),
    (*b"BH", 22),
    (*b"BR", 29),
    (*b"BY", 28),
    (*b"CH", 21),
    (*b"CR", 22),
    (*b"CY", 28),
    (*b"CZ", 24),
    (*b"DE", 22),
    (*b"DK", 18),
    (*b"DO", 28),
    (*b"EE", 20),
    (*b"EG", 29),
    (*b"ES", 24),
    (*b"FI", 18),
    (*b"FO", 18),
    (*b"FR", 27),
    (*b"GB", 22),
    (*b"GE", 22),
    (*b"GI", 23),
    (*b"GL", 18),
    (*b"GR", 27),
    (*b"GT", 28),
    (*b"HR", 21),
    (*b"HU", 28),
    (*b"IE", 22),
    (*b"IL", 23),
    (*b"IQ", 23),
    (*b"IS", 26),
    (*b"IT", 27),
    (*b"JO", 30),
    (*b"KW", 30),
    (*b"KZ", 20),
    (*b"LB", 28),
    (*b"LC", 32),
    (*b"LI", 21),
    (*b"LT", 20),
    (*b"LU", 20),
    (*b"LV", 21),
    (*b"LY", 25),
    (*b"MC", 27),
    (*b"MD", 24),
    (*b"ME", 22),
    (*b"MK", 19),
    (*b"MR", 27),
    (*b"MT", 31),
    (*b"MU", 30),
    (*b"NL", 18),
    (*b"NO", 15),
    (*b"PK", 24),
    (*b"PL", 28),
    (*b"PS", 29),
    (*b"PT", 25),
    (*b"QA", 29),
    (*b"RO", 24),
    (*b"RS", 22),
    (*b"SA", 24),
    (*b"SC", 31),
    (*b"SE", 24),
    (*b"SI", 19),
    (*b"SK", 24),
    (*b"SM", 27),
    (*b"ST", 25),
    (*b"SV", 28),
    (*b"TL", 23),
    (*b"TN", 24),
    (*b"TR", 26),
    (*b"UA", 29),
    (*b"VA", 22),
    (*b"VG", 24),
    (*b"XK", 20),
];

/// The bank account's number whose first digit is at an offset: a country, the length of its numbers, and the checksum
/// (ISO 7064).
pub fn account(bytes: &[u8], digit: usize) -> Option<Range<usize>> {
    let begin = digit.checked_sub(2)?;
    let country = [*bytes.get(begin)?, *bytes.get(begin + 1)?];
    let is_begin = country.iter().all(u8::is_ascii_uppercase)
        && bytes.get(digit + 1).is_some_and(u8::is_ascii_digit)
        && !before(bytes, begin).is_some_and(is_word);
    if !is_begin {
        return None;
    }
    let known = IBAN_LENGTHS.binary_search_by(|(known, _)| known.cmp(&country)).ok()?;
    let length = IBAN_LENGTHS.get(known)?.1;
    let mut characters = [0_u8; 34];
    let mut count = 0;
    let mut at = begin;
    while count < length {
        let byte = *bytes.get(at)?;
        at += 1;
        if matches!(byte, b' ' | b'-')
            && count > 0
            && bytes.get(at).is_some_and(u8::is_ascii_alphanumeric)
        {
            continue;
        }
        if !byte.is_ascii_alphanumeric() {
            return None;
        }
        *characters.get_mut(count)? = byte.to_ascii_uppercase();
        count += 1;
    }
    if bytes.get(at).copied().is_some_and(is_word) {
        return None;
    }
    let (head, rest) = characters.get(..length)?.split_at_checked(4)?;
    let sum = rest.iter().chain(head).fold(0_u32, |sum, byte| match byte {
        b'0'..=b'9' => (sum * 10 + u32::from(byte - b'0')) % 97,
        _ => (sum * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    (sum == 1).then_some(begin..at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countries_are_sorted() {
        assert!(IBAN_LENGTHS.is_sorted_by_key(|(country, _)| country));
    }
}
