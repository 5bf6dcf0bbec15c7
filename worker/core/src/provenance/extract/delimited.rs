//! Texts that an instruction delimits: a quotation, code, a line, what follows a colon, or what follows `run`.
//!
//! Of a command or a query, only such a text is named. A part of it could do more than the whole.

use super::super::key::ValueKey;
use super::super::normal::MAX_VALUE_BYTES;
use super::super::search::{is_word, split_once, trim, trim_end};
use super::words::{beside, place, words};

/// What begins and what ends a quotation.
#[rustfmt::skip]
const QUOTES: [(char, char); 6] =
    [('`', '`'), ('"', '"'), ('\'', '\''), ('“', '”'), ('„', '“'), ('«', '»')];

/// Words before a command or a filter that goes up to the end of its clause.
const BEGINS: &str = "exec execute run where whose with";

/// What follows "and" if that ends such a clause: "run npm test and tell me".
const NEXT: &str = "fix let show tell then";

/// The hash of a text that an instruction delimits. No value has such a hash.
#[must_use]
pub fn delimited(key: &ValueKey, text: &str) -> u64 {
    key.of_kind(b"\xff:", trim(text).as_bytes())
}

/// Calls `take` with the hash of each text that an instruction delimits.
pub fn each_delimited(key: &ValueKey, instruction: &str, take: &mut dyn FnMut(u64)) {
    // With and without a mark at its end.
    let found: &mut dyn FnMut(&str) = &mut |text| {
        let text = trim(text);
        if text.len() <= MAX_VALUE_BYTES {
            take(delimited(key, text));
            let ended = trim_end(text, &['.', ',', ';', '!', '?']);
            if ended.len() + 1 == text.len() && ended.ends_with(char::is_alphanumeric) {
                take(delimited(key, ended));
            }
        }
    };
    for (open, close) in QUOTES {
        let mut rest = instruction;
        while let Some((before, after)) = split_once(rest, open) {
            rest = after;
            // An apostrophe is in a word.
            if before.ends_with(char::is_alphanumeric) {
                continue;
            }
            let Some((quoted, after)) = split_once(after, close) else { break };
            found(quoted);
            // The lines of a block of code, without its language.
            found(split_once(quoted, '\n').unwrap_or_default().1);
            rest = after;
        }
    }
    for line in instruction.split('\n') {
        each_clause(line, found);
        for word in words(line) {
            if word.ends_with(':') || is_word(BEGINS, word) {
                each_clause(beside(line, word).1, found);
            }
        }
    }
}

/// A text up to its end, and up to the end of its first sentence or clause.
#[inline(never)]
fn each_clause(text: &str, found: &mut dyn FnMut(&str)) {
    let begin = text.get(..text.floor_char_boundary(MAX_VALUE_BYTES)).unwrap_or_default();
    let words = words(begin);
    let get = |at: usize| words.get(at).copied().unwrap_or_default();
    let end = (1..words.len()).find(|at| {
        let (last, next) = (get(at - 1), get(at + 1));
        match get(*at) {
            "please" | "then" => true,
            "and" | "but" => last.ends_with(',') || is_word(NEXT, next),
            "from" => next == "the",
            word => last.len() > 1 && last.ends_with('.') && word.starts_with(char::is_uppercase),
        }
    });
    found(text);
    let last = end.map(|end| place(text, get(end - 1)).1);
    found(last.and_then(|end| text.get(..end)).unwrap_or_default());
}
