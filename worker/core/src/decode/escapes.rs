//! Escapes: percent-encoding (RFC 3986), entities of HTML, and the escapes of strings in JSON and JavaScript.

use std::ops::Range;
use std::slice;

use memchr::memchr3;

/// Names of HTML entities with which punctuation and invisible characters can be written (HTML Standard, 13.5), sorted.
const ENTITIES: [(&str, char); 45] = [
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bsol", '\\'),
    ("colon", ':'),
    ("comma", ','),
    ("commat", '@'),
    ("dash", '-'),
    ("dollar", '$'),
    ("equals", '='),
    ("excl", '!'),
    ("grave", '`'),
    ("gt", '>'),
    ("hat", '^'),
    ("hyphen", '-'),
    ("lbrace", '{'),
    ("lbrack", '['),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lt", '<'),
    ("midast", '*'),
    ("nbsp", '\u{a0}'),
    ("newline", '\n'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quest", '?'),
    ("quot", '"'),
    ("rbrace", '}'),
    ("rbrack", ']'),
    ("rcub", '}'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("semi", ';'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("tab", '\t'),
    ("verbar", '|'),
    ("vert", '|'),
    ("zerowidthspace", '\u{200b}'),
    ("zwj", '\u{200d}'),
    ("zwnj", '\u{200c}'),
];

/// Bytes of an entity's name, or of its number without leading zeros.
const MAX_ENTITY_BYTES: usize = 14;

/// The kinds of escapes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Escapes {
    pub percent: bool,
    pub entity: bool,
    pub backslash: bool,
}

impl Escapes {
    pub const ALL: Self = Self { percent: true, entity: true, backslash: true };

    #[must_use]
    pub fn any(self) -> bool {
        self.percent || self.entity || self.backslash
    }
}

/// Decodes the escapes of these kinds once, and returns the kinds that were there. Bytes that are not UTF-8 are read
/// leniently: an overlong form is the character that it stands for.
#[must_use]
pub fn decode(text: &str, kinds: Escapes) -> (String, Escapes) {
    match Round::first(text, kinds) {
        Some(round) => (round.text, round.found),
        None => (text.to_owned(), Escapes::default()),
    }
}

/// Bytes before the digits of a number: `&#x`.
const NUMBER_PREFIX_BYTES: usize = 3;

/// Bytes of the longest escape, without its semicolon and without leading zeros.
const MAX_BYTES: usize = NUMBER_PREFIX_BYTES + MAX_ENTITY_BYTES;

/// A text whose escapes were decoded once, and may be decoded again.
///
/// INVARIANT (changed): an escape that was not decoded cannot be decoded later unless one of its characters changed. So
/// later rounds read only what is near a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Round {
    pub text: String,
    /// The kinds of escapes that were there.
    pub found: Escapes,
    /// Where an escape can begin that was not there before, in order.
    changed: Vec<Range<usize>>,
}

impl Round {
    /// `None` if a text has no escapes of these kinds.
    #[must_use]
    pub fn first(text: &str, kinds: Escapes) -> Option<Self> {
        Self::within(text, kinds, slice::from_ref(&(0..text.len())))
    }

    /// The text with the escapes decoded that became readable in this round; `None` if none did.
    #[must_use]
    pub fn next(&self, kinds: Escapes) -> Option<Self> {
        Self::within(&self.text, kinds, &self.changed)
    }

    /// Decodes the escapes that begin in these ranges.
    fn within(text: &str, kinds: Escapes, ranges: &[Range<usize>]) -> Option<Self> {
        let mut found = Escapes::default();
        let mut out = Out::default();
        let mut at = 0;
        for range in ranges {
            let mut begin = at.max(range.start);
            while let Some(next) = text
                .as_bytes()
                .get(begin..range.end)
                .and_then(|rest| memchr3(b'%', b'&', b'\\', rest))
            {
                begin += next;
                let escape = text.get(begin..).unwrap_or_default();
                let decoded = match escape.as_bytes().first() {
                    Some(b'%') if kinds.percent => {
                        percent(escape).map(|it| (it, &mut found.percent))
                    }
                    Some(b'&') if kinds.entity => entity(escape).map(|it| (it, &mut found.entity)),
                    Some(b'\\') if kinds.backslash => {
                        backslash(escape).map(|it| (it, &mut found.backslash))
                    }
                    _ => None,
                };
                let Some(((unit, bytes), kind)) = decoded else {
                    begin += 1;
                    continue;
                };
                *kind = true;
                out.text.reserve(text.len() - out.text.len());
                out.plain(text.get(at..begin).unwrap_or_default());
                out.unit(unit);
                begin += bytes;
                at = begin;
            }
        }
        if !found.any() {
            return None;
        }
        out.plain(text.get(at..).unwrap_or_default());
        out.flush();
        Some(Self { text: out.text, found, changed: out.changed })
    }
}

/// A decoded text while it is written.
#[derive(Default)]
struct Out {
    text: String,
    changed: Vec<Range<usize>>,
    /// A row of decoded bytes that are not ASCII. Any other text ends the row: that text is valid UTF-8 by itself, so
    /// no byte of the row belongs to one of its characters.
    bytes: Vec<u8>,
}

impl Out {
    /// Adds a part in which nothing is decoded.
    fn plain(&mut self, text: &str) {
        if !text.is_empty() {
            self.flush();
            self.text.push_str(text);
        }
    }

    fn unit(&mut self, unit: Unit) {
        match unit {
            Unit::Byte(byte) if !byte.is_ascii() => self.bytes.push(byte),
            Unit::Byte(byte) => self.character(char::from(byte)),
            Unit::Character(character) => self.character(character),
        }
    }

    fn character(&mut self, character: char) {
        self.flush();
        let begin = self.text.len();
        self.text.push(character);
        self.change(begin);
    }

    /// Ends a row of decoded bytes.
    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            let begin = self.text.len();
            self.text.push_str(&lenient(std::mem::take(&mut self.bytes)));
            self.change(begin);
        }
    }

    /// Notes that the text is new from `begin` on.
    fn change(&mut self, begin: usize) {
        let end = self.text.len();
        let start = begin.saturating_sub(MAX_BYTES);
        // Leading zeros make an entity longer. Each zero is read once: what is before the last change is noted already.
        let noted = self.changed.last().map_or(0, |last| last.end);
        let zeros = self.text.as_bytes().get(noted..=start).unwrap_or_default();
        let zeros = zeros.iter().rev().take_while(|byte| **byte == b'0').count();
        let start = start.saturating_sub(zeros + NUMBER_PREFIX_BYTES);
        match self.changed.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ => self.changed.push(start..end),
        }
    }
}

/// What one escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte(u8),
    Character(char),
}

/// The number that the `digits` hexadecimal digits at `at` stand for.
fn hexadecimal(text: &str, at: usize, digits: usize) -> Option<u32> {
    let digits = text.get(at..at + digits)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// `%3c`, and Microsoft's `%u003c`. Returns the bytes of the escape.
fn percent(text: &str) -> Option<(Unit, usize)> {
    if let Some(byte) = hexadecimal(text, 1, 2) {
        return Some((Unit::Byte(u8::try_from(byte).ok()?), 3));
    }
    let code = text.get(1..2)?.eq_ignore_ascii_case("u").then(|| hexadecimal(text, 2, 4))??;
    Some((Unit::Character(char::from_u32(code)?), 6))
}

/// `\u003c`, `\u{3c}`, `\U0000003c`, `\x3c`, `\074`, and two surrogates together: `\ud835\udc22`. A single surrogate
/// stays as it is.
fn backslash(text: &str) -> Option<(Unit, usize)> {
    let (code, bytes) = match text.as_bytes().get(1)? {
        b'u' if text.as_bytes().get(2) == Some(&b'{') => {
            let zeros = text.bytes().skip(3).take_while(|byte| *byte == b'0').count();
            let digits = text.bytes().skip(3 + zeros).take(6);
            let digits = zeros + digits.take_while(u8::is_ascii_hexdigit).count();
            (text.as_bytes().get(3 + digits) == Some(&b'}')).then_some(())?;
            (u32::from_str_radix(text.get(3..3 + digits)?, 16).ok()?, digits + 4)
        }
        b'u' => match (hexadecimal(text, 2, 4)?, text.get(6..8)) {
            (high @ 0xd800..=0xdbff, Some(r"\u")) => {
                let low =
                    hexadecimal(text, 8, 4)?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                (0x10000 + ((high - 0xd800) << 10) + low, 12)
            }
            (code, _) => (code, 6),
        },
        b'U' => (hexadecimal(text, 2, 8)?, 10),
        b'x' => (hexadecimal(text, 2, 2)?, 4),
        // An octal escape of an ASCII character has three digits. Fewer digits are a back-reference of a regular
        // expression.
        b'0' | b'1' => {
            let digits = text.get(1..4).filter(|it| it.bytes().all(|it| matches!(it, b'0'..=b'7')));
            (u32::from_str_radix(digits?, 8).ok()?, 4)
        }
        _ => return None,
    };
    Some((Unit::Character(char::from_u32(code)?), bytes))
}

/// An entity by name or number, with the semicolon after it if there is one.
fn entity(text: &str) -> Option<(Unit, usize)> {
    let piece = text.get(1..)?;
    let bytes = entity_bytes(piece);
    let character = character(piece.get(..bytes)?)?;
    let semicolon = usize::from(piece.as_bytes().get(bytes) == Some(&b';'));
    Some((Unit::Character(character), 1 + bytes + semicolon))
}

/// The bytes of the entity with which a text begins. A number needs no semicolon after it.
fn entity_bytes(text: &str) -> usize {
    let (prefix, is_part): (_, fn(&u8) -> bool) = match text.as_bytes() {
        [b'#', b'x' | b'X', ..] => (2, u8::is_ascii_hexdigit),
        [b'#', ..] => (1, u8::is_ascii_digit),
        _ => (0, u8::is_ascii_alphabetic),
    };
    let zeros = text.bytes().skip(prefix).take_while(|byte| prefix > 0 && *byte == b'0').count();
    let prefix = prefix + zeros;
    let digits = text.bytes().skip(prefix).take(MAX_ENTITY_BYTES);
    prefix + digits.take_while(is_part).count()
}

fn character(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
            None => number.parse(),
        };
        return char::from_u32(code.ok()?);
    }
    let mut lower = [0; MAX_ENTITY_BYTES];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    // Most words after `&` are told from names by their first letter and their length.
    let first = |(known, _): &(&str, char)| known.bytes().next();
    let begin = ENTITIES.partition_point(|known| first(known) < lower.first().copied());
    let alike = ENTITIES.get(begin..)?.iter();
    let known = alike
        .take_while(|known| first(known) == lower.first().copied())
        .find(|(known, _)| known.as_bytes() == lower);
    known.map(|(_, character)| *character)
}

/// UTF-8, in which a character may have more bytes than it needs. Other bytes become U+FFFD.
fn lenient(bytes: Vec<u8>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let mut out = String::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while !rest.is_empty() {
        let (valid, bytes) = match std::str::from_utf8(rest) {
            Ok(valid) => (valid, rest.len()),
            Err(error) => {
                let valid = rest.get(..error.valid_up_to()).unwrap_or_default();
                (std::str::from_utf8(valid).unwrap_or_default(), valid.len())
            }
        };
        out.push_str(valid);
        rest = rest.get(bytes..).unwrap_or_default();
        // The byte with the highest bit of a character of ASCII, the byte with the others, and the length.
        let (high, low, bytes) = match rest {
            [] => break,
            [high @ (0xc0 | 0xc1), low, ..] => (high, low, 2),
            [0xe0, high @ (0x80 | 0x81), low, ..] => (high, low, 3),
            [0xf0, 0x80, high @ (0x80 | 0x81), low, ..] => (high, low, 4),
            [0xf8, 0x80, 0x80, high @ (0x80 | 0x81), low, ..] => (high, low, 5),
            [0xfc, 0x80, 0x80, 0x80, high @ (0x80 | 0x81), low, ..] => (high, low, 6),
            _ => (&0, &0, 1),
        };
        let (character, bytes) = match low & 0xc0 {
            0x80 => (char::from((high & 1) << 6 | low & 0x3f), bytes),
            _ => (char::REPLACEMENT_CHARACTER, 1),
        };
        out.push(character);
        rest = rest.get(bytes..).unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_sorted() {
        assert!(ENTITIES.is_sorted());
    }

    #[test]
    fn each_escape_stands_for_its_character() {
        for (text, expected) in [
            ("%3Cscript%3e", "<script>"),
            ("%253c", "%3c"),
            ("%u003c%U003C", "<<"),
            ("&lt;&#60;&#x3C;&#x3c&LT;", "<<<<<"),
            ("&#00000000000060;&#x000000000000003c&#000000000000;", "<<\0"),
            (r"\u003c\x3c\u{3c}\074", "<<<<"),
            (r"\u{000000000000003c}\U0000003c C:\Users", r"<< C:\Users"),
            ("&lbrace;&verbar;&rbrack;a&shy;&ZeroWidthSpace;b", "{|]a\u{ad}\u{200b}b"),
            (r"\1\07\08x", r"\1\07\08x"),
            ("%c0%ae%c0%ae%c0%af%e0%80%af", "..//"),
            ("%f0%80%80%bc%f8%80%80%80%bc%fc%80%80%80%81%a1", "<<a"),
            ("%f0%80%80", "\u{fffd}\u{fffd}\u{fffd}"),
            ("%e2%82%ac", "€"),
            ("%ff", "\u{fffd}"),
            ("a%zz&nosuch;\\q", "a%zz&nosuch;\\q"),
            ("%&\\", "%&\\"),
            (r"\ud800", r"\ud800"),
            (r"\ud835\uDC22\ud835\ud835", r"𝐢\ud835\ud835"),
            ("%+1", "%+1"),
        ] {
            assert_eq!(decode(text, Escapes::ALL).0, expected, "{text}");
        }
    }

    /// Rounds that read only what is near a change decode the same as rounds that read everything.
    #[test]
    fn what_one_round_leaves_the_next_one_decodes() {
        let pieces = [
            "%",
            "25",
            "3",
            "c",
            "&",
            "#",
            "x",
            "60",
            ";",
            "amp",
            "lt",
            "\\",
            "u",
            "00",
            "00000000000",
            "%30",
            "5c",
            "{",
            "}",
            "074",
            "%25",
            "&amp;",
            "&#37;",
            "\\u0025",
            "\\ud835",
            "\\udc22",
            "%c0",
            "%ae",
            "%e2%82%ac",
            "%ff",
            "é",
            "€",
            " ",
            "z",
        ];
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..12 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            }
            let mut round = Round::first(&text, Escapes::ALL);
            while let Some(before) = round {
                let (expected, found) = decode(&before.text, Escapes::ALL);
                round = before.next(Escapes::ALL);
                let next = round.as_ref().map(|round| (&round.text, round.found));
                assert_eq!(next, found.any().then_some((&expected, found)), "{text}");
            }
        }
    }

    #[test]
    fn only_the_kinds_that_were_asked_for_are_decoded() {
        let text = r"%3c&lt;\x3c";
        let entity = Escapes { entity: true, ..Escapes::default() };
        assert_eq!(decode(text, entity), (r"%3c<\x3c".to_owned(), entity));
        assert_eq!(decode(text, Escapes::ALL).1, Escapes::ALL);
        assert!(!decode("plain", Escapes::ALL).1.any());
    }
}
