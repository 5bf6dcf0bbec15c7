//! Escapes: percent-encoding (RFC 3986), entities of HTML, and the escapes of strings in JSON and JavaScript.

/// Names of HTML entities with which punctuation can be written (HTML Standard, 13.5), sorted.
const ENTITIES: [(&str, char); 28] = [
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
    ("hyphen", '-'),
    ("lcub", '{'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lt", '<'),
    ("newline", '\n'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("quest", '?'),
    ("quot", '"'),
    ("rpar", ')'),
    ("semi", ';'),
    ("sol", '/'),
    ("tab", '\t'),
];

/// Bytes of an entity's name or number. Browsers read longer numbers too.
const MAX_ENTITY_BYTES: usize = 10;

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
    let mut found = Escapes::default();
    let mut out: Vec<u8> = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'%' | b'&' | b'\\')) {
        let (before, escape) = rest.split_at(at);
        out.extend(before.as_bytes());
        let decoded = match escape.as_bytes().first() {
            Some(b'%') if kinds.percent => percent(escape).map(|it| (it, &mut found.percent)),
            Some(b'&') if kinds.entity => entity(escape).map(|it| (it, &mut found.entity)),
            Some(b'\\') if kinds.backslash => {
                backslash(escape).map(|it| (it, &mut found.backslash))
            }
            _ => None,
        };
        let bytes = match decoded {
            Some(((Unit::Byte(byte), bytes), kind)) => {
                *kind = true;
                out.push(byte);
                bytes
            }
            Some(((Unit::Character(character), bytes), kind)) => {
                *kind = true;
                out.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                bytes
            }
            None => {
                out.extend(escape.as_bytes().first());
                1
            }
        };
        rest = escape.get(bytes..).unwrap_or_default();
    }
    out.extend(rest.as_bytes());
    (lenient(out), found)
}

/// What one escape stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Byte(u8),
    Character(char),
}

/// The number that `digits` hexadecimal digits from `at` write.
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

/// `\u003c`, `\u{3c}`, `\x3c` and `\074`. A surrogate stays as it is.
fn backslash(text: &str) -> Option<(Unit, usize)> {
    let (code, bytes) = match text.as_bytes().get(1)? {
        b'u' if text.as_bytes().get(2) == Some(&b'{') => {
            let digits = text
                .get(3..)
                .map(|rest| rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count())?;
            (text.as_bytes().get(3 + digits) == Some(&b'}')).then_some(())?;
            (u32::from_str_radix(text.get(3..3 + digits)?, 16).ok()?, digits + 4)
        }
        b'u' => (hexadecimal(text, 2, 4)?, 6),
        b'x' => (hexadecimal(text, 2, 2)?, 4),
        // Characters of ASCII have three octal digits. Fewer are a reference of a regular expression.
        b'0' | b'1' => {
            let digits = text.get(1..4).filter(|it| it.bytes().all(|it| matches!(it, b'0'..=b'7')));
            (u32::from_str_radix(digits?, 8).ok()?, 4)
        }
        _ => return None,
    };
    Some((Unit::Character(char::from_u32(code)?), bytes))
}

/// An entity by name or number. A semicolon after it belongs to it.
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
    let at = ENTITIES.binary_search_by(|(known, _)| known.as_bytes().cmp(lower)).ok()?;
    ENTITIES.get(at).map(|(_, character)| *character)
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
        let (character, bytes) = match rest {
            [] => break,
            [lead @ (0xc0 | 0xc1), last, ..] if last & 0xc0 == 0x80 => {
                (char::from((lead & 1) << 6 | last & 0x3f), 2)
            }
            [0xe0, middle @ (0x80 | 0x81), last, ..] if last & 0xc0 == 0x80 => {
                (char::from((middle & 1) << 6 | last & 0x3f), 3)
            }
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
            (r"\u003c\x3c\u{3c}\074", "<<<<"),
            (r"\1\07\08x", r"\1\07\08x"),
            ("%c0%ae%c0%ae%c0%af%e0%80%af", "..//"),
            ("%e2%82%ac", "€"),
            ("%ff", "\u{fffd}"),
            ("a%zz&nosuch;\\q", "a%zz&nosuch;\\q"),
            ("%&\\", "%&\\"),
            (r"\ud800", r"\ud800"),
            ("%+1", "%+1"),
        ] {
            assert_eq!(decode(text, Escapes::ALL).0, expected, "{text}");
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
