//! The code that attacks run: its words, and where a text has them.

use std::cell::OnceCell;
use std::ops::Range;

use super::syntax::{MAX_QUOTED_BYTES, value, value_begin};
use crate::shield::detect::{is_word, position};

/// Functions and objects in the code of attacks, in lower case, sorted. `(` after it: only if called.
const CODE: &[(&str, bool)] = &[
    ("activexobject", false),
    ("alert", true),
    ("atob", true),
    ("confirm", true),
    ("constructor", false),
    ("cookie", false),
    ("document", false),
    ("eval", true),
    ("execscript", true),
    ("expression", true),
    ("fetch", true),
    ("fromcharcode", false),
    ("function", true),
    ("import", true),
    ("innerhtml", false),
    ("localstorage", false),
    ("location", false),
    ("onerror", false),
    ("parent", false),
    ("print", true),
    ("prompt", true),
    ("self", false),
    ("setinterval", true),
    ("settimeout", true),
    ("top", false),
    ("window", false),
    ("write", true),
    ("xmlhttprequest", false),
];

/// The words of attacks' code.
pub fn words() -> impl Iterator<Item = &'static str> {
    CODE.iter().map(|(word, _)| *word)
}

/// Whether attacks use this word in their code, and whether it counts only if it is called.
pub fn is_code(word: &[u8]) -> Option<bool> {
    position(CODE, |(known, _)| known, word).and_then(|at| CODE.get(at)).map(|(_, called)| *called)
}

/// The words of attacks' code in a text. They are searched once, when the first value is read: values can overlap.
#[derive(Default)]
pub struct Code(OnceCell<Vec<Range<usize>>>);

impl Code {
    /// Whether there is such a word within these bytes, with what makes it code after it. A word must not begin before them.
    pub fn is_in(&self, bytes: &[u8], within: Range<usize>) -> bool {
        let words = self.0.get_or_init(|| words_of_code(bytes));
        let next = words.partition_point(|word| word.start < within.start);
        words.get(next).is_some_and(|word| word.end <= within.end)
    }

    /// The same for the value after an `=`. Only its first [`MAX_QUOTED_BYTES`] bytes are read, because what follows a
    /// quote is read again after each quote.
    pub fn follows(&self, bytes: &[u8], equals: usize) -> bool {
        let begin = value_begin(bytes, equals).0;
        // Most values have none, and need no search for their end.
        self.is_in(bytes, begin..begin + MAX_QUOTED_BYTES) && {
            let (value, _) = value(bytes, equals, MAX_QUOTED_BYTES);
            self.is_in(bytes, value)
        }
    }
}

/// The words of attacks' code, each up to the sign after it that makes it code.
fn words_of_code(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(next) =
        bytes.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_alphabetic))
    {
        let begin = at + next;
        let rest = bytes.get(begin..).unwrap_or_default();
        let length = rest.iter().take_while(|byte| is_word(**byte)).count();
        at = begin + length;
        let Some(must_be_called) = is_code(rest.get(..length).unwrap_or_default()) else {
            continue;
        };
        let after = bytes.get(at..).unwrap_or_default();
        let spaces = after.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let is_used = match after.get(spaces) {
            Some(b'(' | b'.') => true,
            Some(b'`' | b'&' | b')' | b']' | b';') => must_be_called,
            Some(b'[' | b'=') => !must_be_called,
            _ => false,
        };
        if is_used {
            words.push(begin..at + spaces + 1);
        }
    }
    words
}
