//! Personal data: numbers with checksums, addresses, and numbers whose context says what they are.

mod iban;

use std::ops::Range;

use self::iban::account;
use super::{Found, before, ends_with, is_word};
use crate::shield::rule::Detector;
use crate::shield::signs::{Signed, Signs};

/// Digits of a card's number (ISO/IEC 7812-1) and of a telephone number (ITU-T E.164).
const CARD_DIGITS: std::ops::RangeInclusive<usize> = 13..=19;
const TELEPHONE_DIGITS: std::ops::RangeInclusive<usize> = 9..=15;

/// Bytes of the local part and of the domain of an address (RFC 5321).
const MAX_LOCAL_BYTES: usize = 64;
const MAX_DOMAIN_BYTES: usize = 255;

/// Groups of digits that are read together. After so many, another number begins.
const MAX_GROUPS: usize = 8;

/// Names before `=` whose value is a card's number.
const CARD_FIELDS: [&str; 5] = ["card", "cardnumber", "card_number", "ccnum", "pan"];

/// Groups of digits with single separators between them.
#[derive(Default)]
struct Number {
    /// Where the groups begin and end.
    groups: [(usize, usize); MAX_GROUPS],
    count: usize,
    /// Whether something before the first group, or after the last one, shows that it is no card.
    glued: (bool, bool),
}

/// Reports numbers of cards, telephones and bank accounts.
pub fn find_numbers(signed: Signed<'_>, found: Found<'_>) {
    let text = signed.text;
    let bytes = text.as_bytes();
    if bytes.len() < *TELEPHONE_DIGITS.start() {
        return;
    }
    let (mut at, mut goes_on) = (0, false);
    let mut tabbed = Tabbed::default();
    while let Some(begin) = signed.next(at, Signs::DIGIT) {
        // An account's number has letters before its first digit, so no other number has this digit within it.
        if let Some(account) = account(bytes, begin) {
            at = account.end;
            found(Detector::PersonalIban, account);
            continue;
        }
        let is_part = std::mem::take(&mut goes_on);
        let (mut number, end, next) = Number::read(bytes, begin, separator_bytes);
        at = next;
        goes_on = next > end;
        if Tabbed::begins_with(bytes, begin..end)
            && let Some(end) = tabbed.card_end(bytes, begin)
        {
            at = end;
            continue;
        }
        if number.digits() < *TELEPHONE_DIGITS.start() {
            continue;
        }
        let is_part = is_part || goes_on;
        let prior = before(bytes, begin);
        let is_named = prior == Some(b'=')
            && text.get(..begin - 1).is_some_and(|name| ends_with(name, &CARD_FIELDS));
        number.glued = (is_glue(prior) && !is_named, goes_on_after(bytes, end));
        if !number.find_cards(bytes, is_part, found)
            && !is_part
            && number.is_telephone(bytes, prior, bytes.get(end).copied())
        {
            found(Detector::PersonalTelephone, begin..end);
        }
    }
    if !tabbed.in_table {
        tabbed.cards.into_iter().for_each(|card| found(Detector::PersonalCard, card));
    }
}

/// How many bytes are between a group of digits and the next one; zero after the last group.
fn separator_bytes(rest: &[u8]) -> usize {
    match rest {
        [b' ' | b'-' | b'.' | b'(' | b')', b'0'..=b'9', ..] => 1,
        [byte @ (b' ' | b'-' | b'.' | b'(' | b')'), next @ (b'(' | b' '), b'0'..=b'9', ..]
            if byte != next =>
        {
            2
        }
        _ => 0,
    }
}

/// Whether a byte before digits makes them a part of something else.
fn is_glue(prior: Option<u8>) -> bool {
    prior.is_some_and(|byte| is_word(byte) || matches!(byte, b'.' | b'-' | b'/' | b'=' | b'#'))
}

/// Whether what is after digits makes them a part of something else. A date is not.
fn goes_on_after(bytes: &[u8], end: usize) -> bool {
    match bytes.get(end..).unwrap_or_default() {
        [b'.', next, ..] => next.is_ascii_digit(),
        [b'/', next, ..] => !next.is_ascii_digit(),
        [byte, ..] => is_word(*byte) || matches!(byte, b'-' | b'/'),
        [] => false,
    }
}

impl Number {
    /// Reads groups from an offset on. Returns also where they end, and where reading goes on: after the separator, if the
    /// next group is in another number.
    fn read(
        bytes: &[u8],
        mut at: usize,
        separator_bytes: fn(&[u8]) -> usize,
    ) -> (Self, usize, usize) {
        let mut number = Self::default();
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let end = at + rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            number.add((at, end));
            let separator = separator_bytes(bytes.get(end..).unwrap_or_default());
            at = end + separator;
            if separator == 0 || number.count == MAX_GROUPS {
                return (number, end, at);
            }
        }
    }

    fn add(&mut self, group: (usize, usize)) {
        if let Some(next) = self.groups.get_mut(self.count) {
            *next = group;
            self.count += 1;
        }
    }

    /// The bytes of so many groups from one on.
    fn bytes(&self, first: usize, count: usize) -> Option<Range<usize>> {
        let groups = self.groups.get(first..(first + count).min(self.count))?;
        Some(groups.first()?.0..groups.get(count.checked_sub(1)?)?.1)
    }

    fn digits(&self) -> usize {
        self.groups.iter().take(self.count).map(|(begin, end)| end - begin).sum()
    }

    fn length(&self, group: usize) -> usize {
        self.bytes(group, 1).map_or(0, |bytes| bytes.len())
    }

    /// Reports the cards' numbers among the groups. Returns whether there is one.
    fn find_cards(&self, bytes: &[u8], is_part: bool, found: Found<'_>) -> bool {
        let (mut at, mut card_end) = (0, 0);
        while at < self.count {
            let Some(count) = self.card_at(bytes, at) else {
                at += 1;
                continue;
            };
            // Four digits beside it that are in no card: a table has numbers like these.
            let end = at + count;
            let in_table = at > card_end && self.length(at - 1) == 4
                || self.length(end) == 4 && self.card_at(bytes, end).is_none();
            if count > 1 && in_table {
                at += 1;
                continue;
            }
            let one = Detector::PersonalCardNumber;
            let detector = if count > 1 { Detector::PersonalCard } else { one };
            self.bytes(at, count).into_iter().for_each(|bytes| found(detector, bytes));
            (at, card_end) = (end, end);
        }
        let whole = self.bytes(0, self.count).filter(|_| self.glued == (false, false) && !is_part);
        let whole = whole.filter(|whole| card_end == 0 && is_card(bytes, whole));
        let is_found = card_end > 0 || whole.is_some();
        whole.into_iter().for_each(|whole| found(Detector::PersonalCardNumber, whole));
        is_found
    }

    /// The count of groups from one on that are a card's number: one group, or several as on a card.
    fn card_at(&self, bytes: &[u8], first: usize) -> Option<usize> {
        (1..=5).rev().find(|count| {
            let lengths: [usize; 5] =
                std::array::from_fn(|at| if at < *count { self.length(first + at) } else { 0 });
            let is_known = match lengths {
                [4, 4, 4, 1..=4, 0] | [4, 4, 4, 4, 1..=3] | [4, 6, 4 | 5, 0, 0] => true,
                [length, 0, 0, 0, 0] => CARD_DIGITS.contains(&length),
                _ => false,
            };
            // Between other numbers, only white space and brackets end a number.
            let is_space = |byte: Option<&u8>| !matches!(byte, Some(b'.' | b'-'));
            let ends = |range: &Range<usize>| {
                let begins = match first {
                    0 => !self.glued.0,
                    _ => is_space(bytes.get(range.start - 1)),
                };
                let is_last = first + count == self.count;
                begins && if is_last { !self.glued.1 } else { is_space(bytes.get(range.end)) }
            };
            let range = if is_known { self.bytes(first, *count) } else { None };
            range.is_some_and(|range| ends(&range) && is_card(bytes, &range))
        })
    }

    /// A `+` and a country, or three groups or a bracket, as people write telephone numbers.
    fn is_telephone(&self, bytes: &[u8], prior: Option<u8>, next: Option<u8>) -> bool {
        if next.is_some_and(|byte| is_word(byte) || matches!(byte, b'.' | b'/' | b':' | b','))
            && next != Some(b'.')
            && next != Some(b',')
        {
            return false;
        }
        let lengths: [usize; MAX_GROUPS] = std::array::from_fn(|at| self.length(at));
        let groups = lengths.get(..self.count).unwrap_or_default();
        let count: usize = groups.iter().sum();
        let begins_with_zero = self.bytes(0, 1).and_then(|it| bytes.get(it.start)) == Some(&b'0');
        let national = matches!(groups, [3, 3, 4] | [1, 3, 3, 4]);
        match prior {
            Some(b'+') => TELEPHONE_DIGITS.contains(&count) && !begins_with_zero,
            _ if is_glue(prior) => false,
            _ => {
                national
                    || (begins_with_zero
                        && (10..=12).contains(&count)
                        && (3..=5).contains(&self.count)
                        && groups.iter().all(|length| (2..=5).contains(length)))
            }
        }
    }
}

/// Numbers with tabs between their groups. Rows of tables are like them, so they count only if all such rows of a text
/// begin with a card's number.
#[derive(Default)]
struct Tabbed {
    cards: Vec<Range<usize>>,
    in_table: bool,
}

impl Tabbed {
    /// Whether a row begins with a number: another number follows it after a tab, and none is before it.
    fn begins_with(bytes: &[u8], number: Range<usize>) -> bool {
        let in_row = || {
            before(bytes, number.start) == Some(b'\t')
                && before(bytes, number.start - 1).is_some_and(|byte| byte.is_ascii_digit())
        };
        bytes.get(number.end..).is_some_and(|rest| tab_bytes(rest) > 0) && !in_row()
    }

    /// Reads the row that begins at an offset. Returns the end of the card's number at its beginning.
    fn card_end(&mut self, bytes: &[u8], begin: usize) -> Option<usize> {
        let (mut row, end, _) = Number::read(bytes, begin, tab_bytes);
        row.glued = (is_glue(before(bytes, begin)), goes_on_after(bytes, end));
        let count = row.card_at(bytes, 0).filter(|count| *count > 1 && row.length(*count) != 4);
        let card = count.and_then(|count| row.bytes(0, count));
        self.in_table |= card.is_none();
        let end = card.as_ref().map(|card| card.end);
        self.cards.extend(card);
        end
    }
}

/// A tab between two groups of digits.
fn tab_bytes(rest: &[u8]) -> usize {
    usize::from(matches!(rest, [b'\t', b'0'..=b'9', ..]))
}

/// Luhn's checksum and the range of an issuer.
fn is_card(bytes: &[u8], number: &Range<usize>) -> bool {
    let mut digits = [0; *CARD_DIGITS.end()];
    let mut count = 0;
    let written = bytes.get(number.clone()).unwrap_or_default();
    for byte in written.iter().filter(|byte| byte.is_ascii_digit()) {
        let Some(digit) = digits.get_mut(count) else { return false };
        *digit = byte - b'0';
        count += 1;
    }
    let Some(digits) = digits.get(..count).filter(|_| CARD_DIGITS.contains(&count)) else {
        return false;
    };
    let leading = digits.iter().take(4).fold(0, |number, digit| number * 10 + u32::from(*digit));
    let issuer = match leading {
        4000..=4999 => matches!(count, 13 | 16 | 19),
        5100..=5599 | 2221..=2720 => count == 16,
        3400..=3499 | 3700..=3799 => count == 15,
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => matches!(count, 14 | 16),
        6011 | 6440..=6599 | 3528..=3589 | 6200..=6299 => (16..=19).contains(&count),
        5018 | 5020 | 5038 | 5893 | 6304 | 6759 | 6761..=6763 => true,
        _ => false,
    };
    issuer && luhn(digits) && digits.iter().any(|digit| Some(digit) != digits.first())
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

/// Reports mail addresses.
pub fn find_addresses(signed: Signed<'_>, found: Found<'_>) {
    let text = signed.text;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(sign) = signed.next(at, Signs::AT) {
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
        if local > 0
            && domain.len() > top.len() + 1
            && top.len() >= 2
            && top.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !FILE_ENDS.iter().any(|end| end.eq_ignore_ascii_case(top))
            && !is_user(bytes, sign - local)
        {
            found(Detector::PersonalEmail, sign - local..sign + 1 + domain.len());
        }
        at = sign + 1;
    }
}

/// Ends of files' names that are seldom a domain's: `logo@2x.png` is no address.
const FILE_ENDS: [&str; 17] = [
    "avif", "css", "gif", "gz", "html", "ico", "jar", "jpeg", "jpg", "js", "json", "png", "svg",
    "tgz", "webp", "whl", "zip",
];

/// Whether a name before `@`, which begins at an offset, is a user's name or a password in a URL: nothing but `:` and a
/// name is between `://` and it.
fn is_user(bytes: &[u8], begin: usize) -> bool {
    let Some(prior @ (b'/' | b':' | b'@')) = before(bytes, begin) else { return false };
    let window = bytes.get(begin.saturating_sub(MAX_LOCAL_BYTES)..begin).unwrap_or_default();
    let ends =
        |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\'' | b'<' | b'>');
    let authority = window.iter().rposition(ends).and_then(|at| window.get(..=at));
    prior == b'@' || authority.is_some_and(|it| it.ends_with(b"://"))
}

/// What may stand between a word such as `ssn` and nine digits without separators, in lower case.
const SOCIAL_LINKS: [&str; 5] = ["", "is", "no", "nr", "number"];

/// Whether a text only links such a word and a number.
fn links(between: Option<&str>) -> bool {
    let word = between.unwrap_or_default().trim_matches(|c: char| !c.is_ascii_alphanumeric());
    SOCIAL_LINKS.iter().any(|link| link.eq_ignore_ascii_case(word))
}

/// Reports the social security number after a word that says so, which ends at `end`.
pub fn find_social_security(text: &str, end: usize, found: Found<'_>) {
    let bytes = text.as_bytes();
    let rest = bytes.get(end..).unwrap_or_default();
    // In a field with such a name, nine digits are enough.
    let value = text.trim();
    if end == 0 && value.len() == 9 && value.bytes().all(|byte| byte.is_ascii_digit()) {
        let begin = text.len() - text.trim_start().len();
        return found(Detector::PersonalSocialSecurity, begin..begin + value.len());
    }
    let Some(skipped) = rest.iter().take(32).position(u8::is_ascii_digit) else { return };
    let begin = end + skipped;
    let number = bytes.get(begin..).unwrap_or_default();
    let area = number.get(..3).unwrap_or_default();
    let is_area = area != b"000" && area != b"666" && !area.starts_with(b"9");
    let is_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    let length = match number {
        [a, b, c, s @ (b'-' | b' '), d, e, t, f, g, h, i, ..]
            if s == t && is_digits(&[*a, *b, *c, *d, *e, *f, *g, *h, *i]) =>
        {
            11
        }
        _ if number.get(..9).is_some_and(is_digits) && links(text.get(end..begin)) => 9,
        _ => return,
    };
    if is_area && !number.get(length).is_some_and(u8::is_ascii_digit) {
        found(Detector::PersonalSocialSecurity, begin..begin + length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> Vec<Detector> {
        let mut all = Vec::new();
        let mut add = |detector, _| all.push(detector);
        find_numbers(text.into(), &mut add);
        find_addresses(text.into(), &mut add);
        all
    }

    #[test]
    fn numbers_count_if_their_checksum_and_form_are_right() {
        for (text, expected) in [
            ("card 4111 1111 1111 1111 please", Some(Detector::PersonalCard)),
            ("4111111111111111", Some(Detector::PersonalCardNumber)),
            ("3782 822463 10005", Some(Detector::PersonalCard)),
            ("4111 1111 1111 1112", None),
            ("card 4111111111111111 12/27 123", Some(Detector::PersonalCardNumber)),
            ("pay 5 4111 1111 1111 1111", Some(Detector::PersonalCard)),
            ("4111 1111 1111 1111 12/27", Some(Detector::PersonalCard)),
            ("4242424242424242 7", Some(Detector::PersonalCardNumber)),
            ("4111111111111111/2027", Some(Detector::PersonalCardNumber)),
            ("https://shop.example/?card=4111111111111111", Some(Detector::PersonalCardNumber)),
            ("https://shop.example/?id=4111111111111111", None),
            ("1.4111111111111111 5", None),
            // A table.
            ("2025 4111 1111 1111 1111 2026", None),
            ("4111\t1111\t1111\t1111", Some(Detector::PersonalCard)),
            ("card\t3782\t822463\t10005\t12/27", Some(Detector::PersonalCard)),
            ("4111\t1111\t1111\t1111\n4242\t4242\t4242\t4242", Some(Detector::PersonalCard)),
            ("4111\t1111\t1111\t1111\n4112\t1111\t1111\t1111", None),
            ("4111\t1111\t1111\t1111\t2026", None),
            ("7\t4111\t1111\t1111\t1111", None),
            ("4111 1111 1111 1111\t2027\t123", Some(Detector::PersonalCard)),
            ("202\t555\t0143", None),
            ("id-4111111111111111", None),
            ("0.4111111111111111", None),
            ("IBAN DE89 3704 0044 0532 0130 00.", Some(Detector::PersonalIban)),
            ("GB82WEST12345698765432", Some(Detector::PersonalIban)),
            ("DE89 3704 0044 0532 0130 01", None),
            ("mail alice.b@example.co.uk now", Some(Detector::PersonalEmail)),
            ("git@github.com:a/b", Some(Detector::PersonalEmail)),
            ("<a href=\"mailto:bob@example.com\">", Some(Detector::PersonalEmail)),
            ("to:bob@example.com", Some(Detector::PersonalEmail)),
            ("/users/bob@corp.example", Some(Detector::PersonalEmail)),
            ("https://a.example/users/bob@corp.example", Some(Detector::PersonalEmail)),
            ("https://bob@example.com/", None),
            ("https://kim:bob@example.com/", None),
            ("https://mastodon.example/@bob@example.com", None),
            ("img/logo@2x.png", None),
            ("@types/node@18.0.0", None),
            ("https://r.example/cache/foo/bar@v1.2.3.zip", None),
            ("npm/lodash@4.17.21.tar.gz", None),
            ("call +1 (202) 555-0143", Some(Detector::PersonalTelephone)),
            ("202-555-0143", Some(Detector::PersonalTelephone)),
            ("2026-11-23 10:00:00", None),
            ("10.0.0.5", None),
        ] {
            assert_eq!(finds(text).first().copied(), expected, "{text}");
        }
        let pair = "4111 1111 1111 1111 4242 4242 4242 4242";
        assert_eq!(finds(&[pair, " ", pair].concat()), [Detector::PersonalCard; 4]);
        for (text, expected) in [
            ("SSN: 078-05-1120", Some(5..16)),
            ("SSN: 000-05-1120", None),
            ("ssn 078051120.", Some(4..13)),
            ("SSN no. 078051120", Some(8..17)),
            ("ssn: 0780511201", None),
            ("ssn lookup 078051120", None),
        ] {
            let mut social = None;
            find_social_security(text, 3, &mut |_, bytes| social = Some(bytes));
            assert_eq!(social, expected, "{text}");
        }
    }
}
