//! Personal data: numbers with checksums, addresses, and numbers whose context says what they are.

use std::ops::Range;

use super::{Found, before, is_word};
use crate::shield::rule::Detector;
use crate::shield::signs::{self, Signs};

/// Digits of a card's number (ISO/IEC 7812-1) and of a telephone number (ITU-T E.164).
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;
const TELEPHONE_DIGITS: std::ops::RangeInclusive<usize> = 9..=15;

/// Bytes of the local part and of the domain of an address (RFC 5321).
const MAX_LOCAL_BYTES: usize = 64;
const MAX_DOMAIN_BYTES: usize = 255;

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

/// Digits with single separators between them.
struct Number {
    digits: [u8; 20],
    count: usize,
    /// The separators, and the lengths of the groups between them.
    groups: [usize; 8],
    group_count: usize,
}

/// Reports numbers of cards, telephones and bank accounts.
pub fn find_numbers(text: &str, found: Found<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(begin) = signs::next(bytes, at, Signs::DIGIT) {
        // An account's number has letters before its first digit, so no other number has this digit within it.
        if let Some(account) = account(bytes, begin) {
            found(Detector::PersonalIban, account);
        }
        let mut number = Number { digits: [0; 20], count: 0, groups: [0; 8], group_count: 0 };
        let mut group = 0;
        at = begin;
        let mut end = begin;
        while let Some(byte) = bytes.get(at).copied() {
            if byte.is_ascii_digit() {
                if let Some(digit) = number.digits.get_mut(number.count) {
                    *digit = byte - b'0';
                }
                number.count += 1;
                group += 1;
                at += 1;
                end = at;
                continue;
            }
            let next = bytes.get(at + 1).copied().unwrap_or_default();
            let joins = matches!(byte, b' ' | b'-' | b'.' | b'(' | b')')
                && (next.is_ascii_digit()
                    || (matches!(next, b'(' | b' ')
                        && byte != next
                        && bytes.get(at + 2).is_some_and(u8::is_ascii_digit)));
            if !joins {
                break;
            }
            number.close(&mut group);
            at += 1;
            if !next.is_ascii_digit() {
                at += 1;
            }
        }
        number.close(&mut group);
        let prior = before(bytes, begin);
        let glued = prior
            .is_some_and(|byte| is_word(byte) || matches!(byte, b'.' | b'-' | b'/' | b'=' | b'#'))
            || bytes
                .get(end)
                .copied()
                .is_some_and(|byte| is_word(byte) || matches!(byte, b'-' | b'/'))
            || matches!(bytes.get(end..end + 2), Some([b'.', digit]) if digit.is_ascii_digit());
        if !glued && number.is_card() {
            let detector = if number.is_grouped_as_card() {
                Detector::PersonalCard
            } else {
                Detector::PersonalCardNumber
            };
            found(detector, begin..end);
        } else if number.is_telephone(prior, bytes.get(end).copied()) {
            found(Detector::PersonalTelephone, begin..end);
        }
        at = at.max(begin + 1);
    }
}

impl Number {
    fn close(&mut self, group: &mut usize) {
        if let Some(length) = self.groups.get_mut(self.group_count) {
            *length = *group;
        }
        self.group_count += 1;
        *group = 0;
    }

    /// Luhn's checksum and the range of an issuer.
    fn is_card(&self) -> bool {
        let Some(digits) =
            self.digits.get(..self.count).filter(|_| CARD_DIGITS.contains(&self.count))
        else {
            return false;
        };
        let leading = |count: usize| {
            digits.iter().take(count).fold(0, |number, digit| number * 10 + u32::from(*digit))
        };
        let issuer = match leading(4) {
            4000..=4999 => matches!(self.count, 13 | 16 | 19),
            5100..=5599 | 2221..=2720 => self.count == 16,
            3400..=3499 | 3700..=3799 => self.count == 15,
            3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => matches!(self.count, 14 | 16),
            6011 | 6440..=6599 | 3528..=3589 | 6200..=6299 => (16..=19).contains(&self.count),
            5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763 => {
                (13..=19).contains(&self.count)
            }
            _ => false,
        };
        issuer && luhn(digits) && digits.iter().any(|digit| Some(digit) != digits.first())
    }

    fn is_grouped_as_card(&self) -> bool {
        let groups = self.groups.get(..self.group_count.min(8)).unwrap_or_default();
        matches!(groups, [4, 4, 4, 1..=4] | [4, 4, 4, 4, 1..=3] | [4, 6, 4 | 5])
    }

    /// A `+` and a country, or three groups or a bracket, as people write telephone numbers.
    fn is_telephone(&self, prior: Option<u8>, next: Option<u8>) -> bool {
        if next.is_some_and(|byte| is_word(byte) || matches!(byte, b'.' | b'/' | b':' | b','))
            && next != Some(b'.')
            && next != Some(b',')
        {
            return false;
        }
        let groups = self.groups.get(..self.group_count.min(8)).unwrap_or_default();
        let national = self.count == 10 && matches!(groups, [3, 3, 4])
            || self.count == 11 && matches!(groups, [1, 3, 3, 4]);
        match prior {
            Some(b'+') => TELEPHONE_DIGITS.contains(&self.count) && self.digits.first() != Some(&0),
            Some(byte) if is_word(byte) || matches!(byte, b'.' | b'-' | b'/' | b'=' | b'#') => {
                false
            }
            _ => {
                national
                    || (self.digits.first() == Some(&0)
                        && (10..=12).contains(&self.count)
                        && (3..=5).contains(&self.group_count)
                        && groups.iter().all(|length| (2..=5).contains(length)))
            }
        }
    }
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let value = u32::from(*digit) << (at % 2);
            if value > 9 { value - 9 } else { value }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The bank account's number whose first digit is at an offset: a country, the length of its numbers, and the checksum
/// (ISO 7064).
fn account(bytes: &[u8], digit: usize) -> Option<Range<usize>> {
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

/// Reports mail addresses.
pub fn find_addresses(text: &str, found: Found<'_>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(sign) = signs::next(bytes, at, Signs::AT) {
        let local = bytes
            .get(at..sign)
            .unwrap_or_default()
            .iter()
            .rev()
            .take(MAX_LOCAL_BYTES)
            .take_while(|byte| is_word(**byte) || matches!(byte, b'.' | b'%' | b'+' | b'-'))
            .count();
        let domain = bytes.get(sign + 1..).unwrap_or_default();
        let length = domain
            .iter()
            .take(MAX_DOMAIN_BYTES)
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
            .count();
        let domain =
            text.get(sign + 1..sign + 1 + length).unwrap_or_default().trim_end_matches(['.', '-']);
        let top = domain.rsplit('.').next().unwrap_or_default();
        // In a URL, the text before `@` is a user's name.
        let user =
            before(bytes, sign - local).is_some_and(|byte| matches!(byte, b'/' | b':' | b'@'));
        if local > 0
            && domain.len() > top.len() + 1
            && top.len() >= 2
            && top.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !user
        {
            found(Detector::PersonalEmail, sign - local..sign + 1 + domain.len());
        }
        at = sign + 1;
    }
}

/// Reports the social security number after a word that says so, which ends at `end`.
pub fn find_social_security(text: &str, end: usize, found: Found<'_>) {
    let bytes = text.as_bytes();
    let rest = bytes.get(end..).unwrap_or_default();
    let Some(skipped) = rest.iter().take(32).position(u8::is_ascii_digit) else { return };
    let begin = end + skipped;
    let Some([a, b, c, s, d, e, t, f, g, h, i]) = bytes.get(begin..begin + 11) else { return };
    let digits = [a, b, c, d, e, f, g, h, i].iter().all(|byte| byte.is_ascii_digit());
    let area = [*a, *b, *c];
    if digits
        && matches!(s, b'-' | b' ')
        && s == t
        && area != *b"000"
        && area != *b"666"
        && *a != b'9'
        && !bytes.get(begin + 11).is_some_and(u8::is_ascii_digit)
    {
        found(Detector::PersonalSocialSecurity, begin..begin + 11);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> Vec<Detector> {
        let mut all = Vec::new();
        let mut add = |detector, _| all.push(detector);
        find_numbers(text, &mut add);
        find_addresses(text, &mut add);
        all
    }

    #[test]
    fn numbers_count_if_their_checksum_and_form_are_right() {
        assert!(IBAN_LENGTHS.is_sorted_by_key(|(country, _)| country));
        for (text, expected) in [
            ("card 4111 1111 1111 1111 please", Some(Detector::PersonalCard)),
            ("4111111111111111", Some(Detector::PersonalCardNumber)),
            ("3782 822463 10005", Some(Detector::PersonalCard)),
            ("4111 1111 1111 1112", None),
            ("id-4111111111111111", None),
            ("0.4111111111111111", None),
            ("IBAN DE89 3704 0044 0532 0130 00.", Some(Detector::PersonalIban)),
            ("GB82WEST12345698765432", Some(Detector::PersonalIban)),
            ("DE89 3704 0044 0532 0130 01", None),
            ("mail alice.b@example.co.uk now", Some(Detector::PersonalEmail)),
            ("git@github.com:a/b", Some(Detector::PersonalEmail)),
            ("@types/node@18.0.0", None),
            ("call +1 (202) 555-0143", Some(Detector::PersonalTelephone)),
            ("202-555-0143", Some(Detector::PersonalTelephone)),
            ("2026-11-23 10:00:00", None),
            ("10.0.0.5", None),
        ] {
            assert_eq!(finds(text).first().copied(), expected, "{text}");
        }
        let mut social = 0;
        find_social_security("SSN: 078-05-1120", 3, &mut |_, _| social += 1);
        find_social_security("SSN: 000-05-1120", 3, &mut |_, _| social += 1);
        assert_eq!(social, 1);
    }
}
