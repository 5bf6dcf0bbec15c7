//! The normal form of values, and bounded decodings of texts.
//!
//! A value is hashed in its normal form: trimmed, without quotes, brackets and punctuation around it, in
//! lower case, each inner gap one space or one line break. A path keeps its case. Numbers, dates and account
//! numbers have one spelling each.
//!
//! INVARIANT (one meaning): two texts with one normal form name the same destination. So a letter that only
//! looks like another keeps its own form, and a separator that could mean two things is kept.
//!
//! INVARIANT (decodings lower): a decoding only shows that a value is untrusted. It never raises a value.

mod decode;
mod shape;
mod strip;

pub use decode::{MAX_DECODED_BYTES, MAX_DECODINGS, decodings};
pub(super) use shape::month;
pub use strip::{Stripped, is_exact, stripped};

use super::class::{AT, BREAK, COLON, Classes, DIGIT, HASH, HIGH, SEMICOLON, SLASH, SPACE, UPPER};
use super::search::{find, trim_end};
use crate::json::Json;

/// Bytes of a value. Addresses, paths and URLs are shorter, except for URLs that carry data. A longer text is
/// content.
pub const MAX_VALUE_BYTES: usize = 512;

/// What addresses, URLs, times and fields have, and [`shape::compact`] recognizes nothing with.
const NO_NUMBER: Classes = AT | COLON | HASH | SEMICOLON;

/// Holds one normal form at a time, so that a value needs no allocation.
pub struct Form {
    bytes: [u8; MAX_VALUE_BYTES],
    length: usize,
}

impl Default for Form {
    fn default() -> Self {
        Self::new()
    }
}

impl Form {
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: [0; MAX_VALUE_BYTES], length: 0 }
    }

    /// The normal form of a text. `None` if nothing is left of the text, the value is too long, or it is a path
    /// that ends with `..`.
    // Inlined into each caller, it takes much more code.
    #[inline(never)]
    pub fn of(&mut self, text: &str) -> Option<&[u8]> {
        self.length = 0;
        let text = Stripped::new(stripped(text));
        self.lower(&text)
    }

    /// The form of a place on the web: host and path without scheme. It begins with `//`, so that a file
    /// named `readme.md` is another value than the host `readme.md`.
    pub fn of_place(&mut self, place: &str) -> Option<&[u8]> {
        self.length = 0;
        self.push(b'/')?;
        self.push(b'/')?;
        let mut place = Stripped::new(stripped(place));
        place.text = trim_end(place.text, &['/']);
        self.lower(&place)
    }

    /// The form of a component of a URL's path, which keeps its case.
    pub fn of_component(&mut self, component: &str) -> Option<&[u8]> {
        self.length = 0;
        self.fold(&Stripped::new(stripped(component)), 0)
    }

    /// The form of a path or a URL in which case and scheme do not count. `None` for any other text. No normal form begins
    /// with the byte 0xff.
    pub fn in_any_case(&mut self, text: &str) -> Option<&[u8]> {
        self.any_case(&Stripped::new(stripped(text)))
    }

    fn any_case(&mut self, text: &Stripped<'_>) -> Option<&[u8]> {
        if text.classes & SLASH == 0 || text.is_above {
            return None;
        }
        self.length = 2;
        self.bytes.get_mut(..2)?.copy_from_slice(b"\xff~");
        let scheme = if text.classes & COLON == 0 { None } else { find(text.text, b"://") };
        let path = scheme.and_then(|end| text.text.get(end + 3..)).unwrap_or(text.text);
        let path = Stripped { text: trim_end(path, &['/']), ..*text };
        self.fold(&path, path.text.len())
    }

    /// Calls `found` with the normal form of a text, with its form [in any case](Self::in_any_case), and, if it has capitals,
    /// with its form as a component.
    pub fn each(&mut self, text: &str, found: &mut dyn FnMut(&[u8])) {
        self.each_of(&Stripped::new(stripped(text)), found);
    }

    /// The same for a text that is stripped.
    // Inlined into each caller, it was larger and no faster.
    #[inline(never)]
    pub fn each_of(&mut self, text: &Stripped<'_>, found: &mut dyn FnMut(&[u8])) {
        self.length = 0;
        if let Some(form) = self.lower(text) {
            found(form);
        }
        self.any_case(text).into_iter().for_each(&mut *found);
        self.length = 0;
        if text.has_upper()
            && let Some(form) = self.fold(text, 0)
        {
            found(form);
        }
    }

    /// The normal form of a number or string. `None` also for the other kinds.
    pub fn of_json(&mut self, value: &Json) -> Option<&[u8]> {
        let (mut integer, mut double) = (itoa::Buffer::new(), ryu_js::Buffer::new());
        self.of(match value {
            Json::Integer(number) => integer.format(*number),
            Json::Number(number) => double.format_finite(*number),
            Json::Verbatim(text) | Json::String(text) => text,
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return None,
        })
    }

    /// Appends the text in lower case, up to its path.
    fn lower(&mut self, text: &Stripped<'_>) -> Option<&[u8]> {
        let path_at = match text.classes & SLASH {
            0 => text.text.len(),
            _ => path_at(text.text.as_bytes()),
        };
        if text.is_above { None } else { self.fold(text, path_at) }
    }

    /// Appends the text in lower case up to its path, with its gaps collapsed. If nothing is before it, a number, date or
    /// account number gets its one spelling.
    fn fold(&mut self, text: &Stripped<'_>, path_at: usize) -> Option<&[u8]> {
        let Stripped { text, classes, .. } = *text;
        if text.is_empty() || text.len() > MAX_VALUE_BYTES {
            return None;
        }
        let begin = self.length;
        let has_two_spaces = || text.as_bytes().windows(2).any(|two| two == b"  ");
        if classes & (BREAK | HIGH) != 0 || (classes & SPACE != 0 && has_two_spaces()) {
            self.fold_characters(text, path_at)?;
        } else {
            // Most texts. Their gaps are collapsed already.
            self.length += text.len();
            let out = self.bytes.get_mut(begin..self.length)?;
            out.copy_from_slice(text.as_bytes());
            if classes & UPPER != 0 {
                out.get_mut(..path_at)?.make_ascii_lowercase();
            }
        }
        // Letters and digits without a sign or a gap have one spelling.
        if begin == 0
            && classes & DIGIT != 0
            && classes & !(UPPER | DIGIT) != 0
            && classes & NO_NUMBER == 0
        {
            self.compact();
        }
        self.bytes.get(..self.length)
    }

    /// The same for a text that can have other gaps than one space, and characters outside of ASCII.
    fn fold_characters(&mut self, text: &str, path_at: usize) -> Option<()> {
        let mut gap = 0;
        for (at, character) in text.char_indices() {
            if character.is_whitespace() {
                let line = matches!(character, '\n'..='\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
                gap = widened(gap, line);
                continue;
            }
            if gap != 0 {
                self.push(std::mem::take(&mut gap))?;
            }
            let folded = if at < path_at { lower(character) } else { character };
            for byte in folded.encode_utf8(&mut [0; 4]).bytes() {
                self.push(byte)?;
            }
        }
        Some(())
    }

    fn push(&mut self, byte: u8) -> Option<()> {
        *self.bytes.get_mut(self.length)? = byte;
        self.length += 1;
        Some(())
    }

    /// Writes a number, date or account number in its one spelling.
    fn compact(&mut self) {
        let Some(text) = self.bytes.get(..self.length) else { return };
        if let Some(short) = shape::compact(text) {
            self.length = 0;
            for byte in short.as_bytes() {
                // It is never longer than the text was.
                let _ = self.push(*byte);
            }
        }
    }
}

/// The normal form of a text as a `String`: for registered destinations, and for tests.
#[must_use]
pub fn normal(text: &str) -> Option<String> {
    String::from_utf8(Form::new().of(text)?.to_vec()).ok()
}

/// Where a path begins: two paths that differ in their case can be two files. A host has no case. The text's
/// length if it has no path.
fn path_at(text: &[u8]) -> usize {
    let Some(slash) = text.iter().position(|byte| *byte == b'/') else { return text.len() };
    let (before, after) = text.split_at_checked(slash).unwrap_or((text, &[]));
    let is_end = |byte: &u8| matches!(byte, b'/' | b'?' | b'#');
    let authority = match (before, after) {
        (b"" | [.., b':'], [b'/', b'/', ..]) => slash + 2,
        _ if before.contains(&b'.') => 0,
        _ => return 0,
    };
    let rest = text.get(authority..).unwrap_or_default();
    rest.iter().position(is_end).map_or(text.len(), |end| authority + end)
}

/// A gap with a line break anywhere is a line break. So a second line is never taken for a second word.
fn widened(gap: u8, line: bool) -> u8 {
    if line || gap == b'\n' { b'\n' } else { b' ' }
}

/// Simple lower case. A letter outside of ASCII never becomes an ASCII letter: the Kelvin sign does not become `k`.
fn lower(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    // The tables of conversions take longer to search.
    if !character.is_uppercase() {
        return character;
    }
    let mut lower = character.to_lowercase();
    let (Some(small), None) = (lower.next(), lower.next()) else { return character };
    // The ångström sign has the lower case of the letter `Å`, but is another letter.
    let mut upper = small.to_uppercase();
    let is_its_own = upper.next() == Some(character) && upper.next().is_none();
    if is_its_own && !small.is_ascii() { small } else { character }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn spellings_of_one_value_have_one_normal_form() {
        let cases: &[(&[&str], &str)] = &[
            (&["Alice", " alice ", "“Alice”", "'ALICE',", "(alice).", "`Alice`:"], "alice"),
            (&["Alice  Smith", "alice\tsmith", "Alice\u{a0}Smith"], "alice smith"),
            (&["Émile", "émile"], "émile"),
            (&["ΣΊΣΥΦΟΣ"], "σίσυφοσ"),
            (&["1200.5", "1,200.50", "1.200,50", "1 200,50", "$1,200.50", "1200,50 €"], "1200.5"),
            (&["50", "$50.00", "50,00", "€50", "50.", "£ 50"], "50"),
            (&["1,200", "1'200", "1 200", "1200.0", "1,200.00"], "1200"),
            (&["1.200.000", "1,200,000", "1200000"], "1200000"),
            (&["-50", "-$50.00", "$-50"], "-50"),
            (&["0", "-0", "0.0"], "0"),
            (
                &["2026-11-22", "22 Nov 2026", "November 22, 2026", "22. November 2026"],
                "2026-11-22",
            ),
            (&["22nd of November 2026", "22.11.2026", "22/11/2026", "11/22/2026"], "2026-11-22"),
            (&["DE89 3704 0044 0532 0130 00", "de89370400440532013000"], "de89370400440532013000"),
            (&["GB82-WEST-1234-5698-7654-32"], "gb82west12345698765432"),
            (&["4111 1111 1111 1111", "4111-1111-1111-1111"], "4111111111111111"),
            (&["+49 (170) 123-4567", "+491701234567"], "+491701234567"),
        ];
        for (texts, expected) in cases {
            for text in *texts {
                assert_eq!(normal(text).as_deref(), Some(*expected), "{text}");
            }
        }
    }

    #[test]
    fn what_could_mean_something_else_keeps_its_form() {
        for (text, expected) in [
            ("1.200", "1.2"),
            ("007", "007"),
            ("1.2.3", "1.2.3"),
            ("1,2", "1,2"),
            ("50%", "50%"),
            ("+50", "+50"),
            ("1e3", "1e3"),
            ("01/02/2026", "01/02/2026"),
            ("10.0.0.1", "10.0.0.1"),
            ("12-34-56", "12-34-56"),
            ("of12 3456 7890", "of12 3456 7890"),
            ("alice\nbob", "alice\nbob"),
            ("alice \r\n bob", "alice\nbob"),
            ("alice\u{2028}bob", "alice\nbob"),
            ("ban\u{212a}", "ban\u{212a}"),
            ("\u{212b}ngstr\u{f6}m", "\u{212b}ngstr\u{f6}m"),
            ("\u{2126}\u{3f4}\u{1e9e}", "\u{2126}\u{3f4}\u{1e9e}"),
            ("\u{130}stanbul", "\u{130}stanbul"),
            ("good\u{200b}.com", "good\u{200b}.com"),
            ("ра", "ра"),
            ("../x", "../x"),
            ("https://Bit.ly/Q3Report", "https://bit.ly/Q3Report"),
            ("HTTPS://X.com?Q=1", "https://x.com?Q=1"),
            ("//X.com/A", "//x.com/A"),
            ("X.com/A", "x.com/A"),
            ("Src/Main.rs", "Src/Main.rs"),
            ("/Etc", "/Etc"),
            (".env", ".env"),
        ] {
            assert_eq!(normal(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_empty_or_too_long_has_no_normal_form() {
        for text in [
            "", " ", "...", "\"\"", "()", "\n", "old/..", "old/.. ", "a\\..", "a/.", "old/..?",
            "(old/..)", "'old/..'", "old/..;", "old/.?", "old/\t..", "old/\n..",
        ] {
            assert_eq!(normal(text), None, "{text:?}");
        }
        assert!(normal(&"a".repeat(MAX_VALUE_BYTES)).is_some());
        assert_eq!(normal(&"a".repeat(MAX_VALUE_BYTES + 1)), None);
        // In lower case this letter has one byte more.
        assert_eq!(normal(&"\u{23a}".repeat(MAX_VALUE_BYTES / 2)), None);
        assert_eq!(Form::new().of_place("///"), None);
        for place in ["x.com/a/..", "x.com/a/..?", "x.com/a/.?", "x.com/a/..;"] {
            assert_eq!(Form::new().of_place(place), None, "{place}");
        }
    }

    #[test]
    fn numbers_of_json_have_the_form_of_texts() {
        let form = |json: &str| {
            let value = parse(json.as_bytes()).unwrap();
            Form::new().of_json(&value).map(|form| String::from_utf8(form.to_vec()).unwrap())
        };
        for (json, text) in [("50.00", "50"), ("1200.5", "1,200.50"), ("-3", "-3"), ("0.1", "0.10")]
        {
            assert_eq!(form(json), normal(text), "{json}");
        }
        for json in ["null", "true", "[1]", "{}"] {
            assert_eq!(form(json), None, "{json}");
        }
    }

    #[test]
    fn more_around_a_value_than_prose_has_makes_it_another_value() {
        for text in [
            "anna",
            "anna.",
            " anna ",
            "\"anna\"",
            "'anna'",
            "“anna”",
            "„anna“",
            "(anna)",
            "<a@x.com>",
            "`main`",
            "'anna'.",
            "Smith (London)",
            "(555) 123-4567",
            "[ACME] board",
            "https://x.com/a_(b)",
            "50%",
            ".env",
            "",
            "#general",
            "C++",
            "«a»",
            "P.O.",
        ] {
            assert!(is_exact(text), "{text}");
        }
        for text in [
            "anna..",
            "anna,",
            "plan.md!",
            "main'",
            "main)",
            "(main",
            "((main))",
            "'main)",
            "\"main",
            "main:",
            "a?",
            "a…",
            "old/..",
            "https://x.com/a!?!",
            "https://x.com/a_(b))",
            "...",
            "\"\"\"",
        ] {
            assert!(!is_exact(text), "{text}");
        }
    }

    #[test]
    fn a_host_is_another_value_than_a_file_of_that_name() {
        let place = Form::new().of_place("README.md/").map(<[u8]>::to_vec);
        assert_eq!(place.as_deref(), Some(b"//readme.md".as_slice()));
        assert_eq!(normal("README.md").as_deref(), Some("readme.md"));
    }
}
