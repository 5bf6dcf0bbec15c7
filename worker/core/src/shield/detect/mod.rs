//! Detectors: what a list of literals cannot find. Each reads a text once.

pub mod address;
pub mod hidden;
pub mod html;
pub mod path;
pub mod personal;
pub mod secret;
pub mod shell;
pub mod sql;
pub mod template;

use std::ops::Range;

use super::rule::Detector;

/// Where detectors report what they found: the detector, and the bytes of the text.
pub type Found<'f> = &'f mut dyn FnMut(Detector, Range<usize>);

/// Bytes of a value: longer texts are documents.
pub const MAX_VALUE_BYTES: usize = 512;

/// Whether a text is a single value: short, on one line, without spaces.
#[must_use]
pub fn is_value(text: &str) -> bool {
    text.len() <= MAX_VALUE_BYTES
        && (text.bytes().all(|byte| byte.is_ascii_graphic()) || white_space(text.trim()).is_none())
}

/// The offset of the first white space. Bytes are read faster than characters.
#[must_use]
pub fn white_space(text: &str) -> Option<usize> {
    let may_be = |byte| matches!(byte, b'\t'..=b'\r' | b' ' | 0x80..);
    let at = text.bytes().position(may_be)?;
    Some(at + text.get(at..)?.find(char::is_whitespace)?)
}

/// Bytes of which more than [`MAX_VALUE_BYTES`] are no white space, in most texts of so many bytes.
const LONG_BYTES: usize = 704;

/// The form of a text. It decides the severity of findings in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An argument that is registered as something other than content. It is neither a document nor a command line. Its
    /// length does not count, because an attacker can make it longer.
    Argument,
    /// A short text.
    Line,
    /// A long text, or a sentence. It may be about attacks.
    Document,
}

impl Form {
    /// The form of a text of which nothing else is known.
    #[must_use]
    pub fn of(text: &str) -> Self {
        if is_line(text) && !is_sentence(text) { Self::Line } else { Self::Document }
    }
}

/// Words of English that SQL, HTML and shells do not use, sorted.
const PROSE: [&str; 37] = [
    "a", "an", "are", "be", "can", "could", "does", "every", "for", "has", "have", "how", "it",
    "its", "my", "no", "of", "our", "please", "should", "so", "that", "the", "their", "they",
    "this", "to", "was", "we", "what", "which", "who", "why", "will", "would", "you", "your",
];

/// How many words of [`PROSE`], and how many words of only letters, make a sentence.
const SENTENCE: (usize, usize) = (2, 8);

/// Whether a text is a sentence. Sentences talk about attacks, as documents do.
fn is_sentence(text: &str) -> bool {
    let is_space = |byte: &u8| *byte == b' ';
    // Most texts have too few words.
    if text.as_bytes().iter().filter(|byte| is_space(byte)).count() + 1 < SENTENCE.1 {
        return false;
    }
    let (mut prose, mut plain) = (0, 0);
    text.as_bytes().split(is_space).any(|mut word| {
        while let [before @ .., b'.' | b',' | b';' | b':' | b'?' | b'!'] = word {
            word = before;
        }
        if !word.is_empty() && word.iter().all(u8::is_ascii_alphabetic) {
            plain += 1;
            let is_prose = prose < SENTENCE.0 && position(&PROSE, |known| known, word).is_some();
            prose += usize::from(is_prose);
        }
        prose >= SENTENCE.0 && plain >= SENTENCE.1
    })
}

/// Whether a text is short, and has at most one line and the beginning of another. White space and comments between
/// `/*` and `*/` count as one space, because anybody can add them. Anybody can also put each word of SQL or HTML on a line of
/// its own. So a text with a quote or a tag is also a line if only single words follow its first line.
fn is_line(text: &str) -> bool {
    // Most texts are a line whatever counts.
    if text.len() <= MAX_VALUE_BYTES && text.bytes().filter(|byte| *byte == b'\n').count() < 2 {
        return true;
    }
    let mut rest = text.trim().as_bytes();
    // Most long texts are told by their beginning, which has no comment and enough bytes that count.
    let begin = rest.get(..LONG_BYTES).unwrap_or_default();
    let counted = begin.iter().filter(|byte| !byte.is_ascii_whitespace()).count();
    if counted > MAX_VALUE_BYTES && !begin.contains(&b'*') {
        return false;
    }
    let may_be_code = rest.iter().any(|byte| matches!(byte, b'<' | b'\'' | b'"'));
    let (mut bytes, mut lines, mut words) = (0, 1, 0);
    while let [byte, after @ ..] = rest {
        let is_space = byte.is_ascii_whitespace();
        let length = match rest {
            [b'/', b'*', comment @ ..] => {
                bytes += 1;
                comment.windows(2).position(|it| it == b"*/").map_or(rest.len(), |end| end + 4)
            }
            _ if is_space => {
                bytes += 1;
                rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
            }
            _ => {
                let is_plain = |byte: &&u8| !byte.is_ascii_whitespace() && **byte != b'/';
                let plain = 1 + after.iter().take_while(is_plain).count();
                bytes += plain;
                plain
            }
        };
        let (skipped, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        if is_space && skipped.contains(&b'\n') {
            let is_word = may_be_code && !begins_a_line(after);
            words += usize::from(is_word);
            lines += usize::from(!is_word);
        }
        if bytes > MAX_VALUE_BYTES || lines > 2 || words > 0 && lines > 1 {
            return false;
        }
        rest = after;
    }
    true
}

/// Whether a text begins with a tag, or with two words in one line.
fn begins_a_line(text: &[u8]) -> bool {
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    line.starts_with(b"<") || words.nth(1).is_some()
}

/// A sorted list of lower-case words, each with what it means. Most other words are told from them by their first two
/// letters and their length.
#[derive(Debug)]
pub struct Dictionary<T: 'static> {
    words: &'static [(&'static str, T)],
    /// For each first letter where its words begin and end, their lengths, and their second characters: one bit for each.
    letters: [(u16, u16, u32, u32); 26],
}

/// The bit of a word's second character. Both cases have one bit, and so have some other characters.
const fn second_bit(word: &[u8]) -> u32 {
    match word {
        [_, second, ..] => 1 << (*second % 32),
        _ => 1,
    }
}

impl<T: Copy> Dictionary<T> {
    #[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
    pub const fn new(words: &'static [(&'static str, T)]) -> Self {
        let mut letters = [(0, 0, 0, 0); 26];
        let mut at = 0;
        while at < words.len() {
            let word = words[at].0.as_bytes();
            let (begin, end, lengths, seconds) = &mut letters[(word[0] - b'a') as usize];
            *begin = if *lengths == 0 { at as u16 } else { *begin };
            at += 1;
            *end = at as u16;
            *lengths |= 1 << word.len();
            *seconds |= second_bit(word);
        }
        Self { words, letters }
    }

    /// What a word means, without regard to case.
    pub fn get(&self, word: &[u8]) -> Option<T> {
        let letter = word.first()?.to_ascii_lowercase().checked_sub(b'a')?;
        let (begin, end, lengths, seconds) = self.letters.get(usize::from(letter))?;
        let is_known = lengths & 1_u32.checked_shl(word.len() as u32)? != 0;
        if !is_known || seconds & second_bit(word) == 0 {
            return None;
        }
        let mut alike = self.words.get(usize::from(*begin)..usize::from(*end))?.iter();
        let known = alike.find(|(known, _)| known.as_bytes().eq_ignore_ascii_case(word));
        known.map(|(_, meaning)| *meaning)
    }

    pub const fn words(&self) -> &'static [(&'static str, T)] {
        self.words
    }
}

/// The position of a word in a sorted list of lower-case words, without regard to case.
#[must_use]
pub fn position<T>(list: &[T], text: fn(&T) -> &str, word: &[u8]) -> Option<usize> {
    let letter = word.first()?.to_ascii_lowercase();
    let first = |known: &T| text(known).bytes().next();
    let begin = list.partition_point(|known| first(known) < Some(letter));
    let alike = list.get(begin..)?.iter().take_while(|known| first(known) == Some(letter));
    let at = alike.map(text).position(|known| known.as_bytes().eq_ignore_ascii_case(word))?;
    Some(begin + at)
}

/// Whether a text begins with another one, without regard to case.
#[inline]
#[must_use]
pub fn begins_with(text: &str, start: &str) -> bool {
    let (text, start) = (text.as_bytes(), start.as_bytes());
    // Most texts begin with another letter.
    let is_same = |(a, b): (&u8, &u8)| (a ^ b) & !0x20 == 0;
    text.first().zip(start.first()).is_none_or(is_same) && begins_with_all(text, start)
}

#[inline(never)]
fn begins_with_all(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start))
}

/// Whether a name ends with one of these words, without regard to case.
#[must_use]
pub fn ends_with(name: &str, words: &[&str]) -> bool {
    let name = name.as_bytes();
    words.iter().any(|word| {
        let end = name.len().checked_sub(word.len()).and_then(|at| name.get(at..));
        end.is_some_and(|end| end.eq_ignore_ascii_case(word.as_bytes()))
    })
}

/// The byte before an offset.
#[must_use]
pub fn before(text: &[u8], at: usize) -> Option<u8> {
    text.get(at.checked_sub(1)?).copied()
}

/// Whether a byte is part of a word.
#[must_use]
pub const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_prose_are_sorted() {
        assert!(PROSE.is_sorted());
    }

    #[test]
    fn a_line_stays_one_whatever_space_is_added() {
        let padding = [" ".repeat(600), "\n".repeat(600), ["/*", &"x".repeat(600), "*/"].concat()];
        for padding in &padding {
            for text in [["1' or 1=1", padding].concat(), ["1'", padding, "or 1=1"].concat()] {
                assert_eq!(Form::of(&text), Form::Line, "{text}");
            }
        }
        for (text, form) in [
            ("", Form::Line),
            ("a\nb", Form::Line),
            ("a\n\n\nb\n", Form::Line),
            ("a\nb\nc", Form::Document),
            ("/* not closed", Form::Line),
            ("é\né", Form::Line),
            ("<img src=x onerror\n=\nalert(1)>", Form::Line),
            ("1'\nunion\nselect\n1,2", Form::Line),
            ("<ul>\n<li>a</li>\n</ul>", Form::Document),
            ("it's a\nlist of\nlines", Form::Document),
        ] {
            assert_eq!(Form::of(text), form, "{text}");
        }
        for (text, form) in [
            ("We block the phrase UNION SELECT in the posts of our editors.", Form::Document),
            ("1 union all select name, password from users where id in (1)", Form::Line),
            ("Is this the right one?", Form::Line),
        ] {
            assert_eq!(Form::of(text), form, "{text}");
        }
        assert_eq!(Form::of(&"a".repeat(513)), Form::Document);
        assert_eq!(Form::of(&"a b ".repeat(129)), Form::Document);
    }
}
