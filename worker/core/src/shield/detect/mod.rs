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
    text.len() <= MAX_VALUE_BYTES && !text.trim().contains(char::is_whitespace)
}

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
    let (mut prose, mut plain) = (0, 0);
    for word in text.split(' ') {
        let word = word.trim_end_matches(['.', ',', ';', ':', '?', '!']);
        if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            plain += 1;
            prose += usize::from(position(&PROSE, |known| known, word.as_bytes()).is_some());
        }
    }
    prose >= SENTENCE.0 && plain >= SENTENCE.1
}

/// Whether a text is short, and has at most one line and the beginning of another. White space and comments between
/// `/*` and `*/` count as one space, because anybody can add them.
fn is_line(text: &str) -> bool {
    let mut rest = text.trim().as_bytes();
    let (mut bytes, mut lines) = (0, 1);
    while let Some(byte) = rest.first() {
        let space = match rest {
            [b'/', b'*', comment @ ..] => {
                comment.windows(2).position(|it| it == b"*/").map_or(rest.len(), |end| end + 4)
            }
            _ => rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count(),
        };
        let (skipped, after) = rest.split_at_checked(space.max(1)).unwrap_or((rest, &[]));
        lines += usize::from(byte.is_ascii_whitespace() && skipped.contains(&b'\n'));
        bytes += 1;
        if bytes > MAX_VALUE_BYTES || lines > 2 {
            return false;
        }
        rest = after;
    }
    true
}

/// Bytes of the longest word that a list may have.
const MAX_LISTED_BYTES: usize = 24;

/// The position of a word in a sorted list of lower-case words, without regard to case.
#[must_use]
pub fn position<T>(list: &[T], text: fn(&T) -> &str, word: &[u8]) -> Option<usize> {
    let mut buffer = [0; MAX_LISTED_BYTES];
    let lower = buffer.get_mut(..word.len())?;
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    list.binary_search_by(|known| text(known).as_bytes().cmp(lower)).ok()
}

/// Whether a text begins with another one, without regard to case.
#[must_use]
pub fn begins_with(text: &str, start: &str) -> bool {
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
