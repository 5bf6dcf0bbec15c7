//! Splits an instruction into clauses, and keeps what holds for more than one of them.

use super::super::search::lower_word;
use super::clause::Clause;
use super::table::is_wide;
use super::wide;
use super::words::{Asked, Order, SIGNS};

/// Reads a text clause by clause.
#[derive(Default)]
struct Reader {
    asked: Asked,
    words: Vec<String>,
    /// What ended the clause before.
    before: char,
    /// Whether the words before forbid what follows: "do not, please, merge it".
    is_forbidden: bool,
    /// Whether the sentence asks the agent: "could you look, and then merge it?"
    is_polite: bool,
    /// Whether what follows is only read, up to the end of the sentence: "look up this entry: transfer 100 EUR".
    is_read: bool,
    /// Whether what follows is written to somebody, up to the end of the line: "write to Anna: please merge it".
    is_told: bool,
    /// The order whose objects go on after a comma: "delete a.md, b.md and c.md".
    order: Option<Order>,
}

/// What a text asks for.
pub(super) fn of_text(text: &str) -> Asked {
    let mut reader = Reader::default();
    for line in text.lines() {
        // What is quoted is no order, but can be an object: "rename 'Delete' to 'Remove'".
        let mut quoted = false;
        for token in line.split(|letter: char| letter.is_whitespace() || BREAKS.contains(letter)) {
            quoted |= token.starts_with(|letter| QUOTES.contains(letter));
            let is_edge = |letter: char| !letter.is_alphanumeric() && !SIGNS.contains(letter);
            let word = token.trim_matches(|letter| is_edge(letter) && letter != '/');
            if word.contains(char::is_alphanumeric) {
                let word = lower_word(word);
                let word = word.strip_prefix("squash-").unwrap_or(&word);
                reader.words.push([if quoted { "'" } else { "" }, word].concat());
            }
            if token.ends_with(['.', ',', ';', ':', '!', '?']) {
                reader.end(token.chars().next_back().unwrap_or_default());
            }
            let is_sign = |letter: char| letter.is_ascii_punctuation() && !QUOTES.contains(letter);
            quoted &= !token.trim_end_matches(is_sign).ends_with(|it| QUOTES.contains(it));
        }
        if !reader.words.is_empty() {
            reader.end('\n');
        }
        reader.is_told &= reader.before == ':';
    }
    if text.chars().any(is_wide) {
        wide::add(text, &mut reader.asked);
    }
    reader.asked
}

impl Reader {
    /// Ends a clause.
    #[inline(never)]
    fn end(&mut self, end: char) {
        let words = std::mem::take(&mut self.words);
        let follows = std::mem::replace(&mut self.before, end) == ',';
        let clause = Clause { words: &words, follows, is_polite: self.is_polite };
        self.is_polite |= clause.is_polite();
        let clause = Clause { is_polite: self.is_polite, ..clause };
        let is_none = match end {
            '?' => !self.is_polite,
            ':' => clause.is_label(),
            _ => false,
        };
        if !(is_none || self.is_forbidden || self.is_told || self.is_read) {
            clause.add_to(&mut self.asked, &mut self.order);
        }
        self.is_forbidden =
            (self.is_forbidden && matches!(end, ',' | ':')) || clause.is_left_open();
        self.is_told |= end == ':' && clause.tells();
        self.is_read |= end == ':' && (0..2).any(|at| clause.begins_to_read(at));
        if let Some(order) = &mut self.order {
            order.is_place &= end != ':';
        }
        if matches!(end, '.' | '!' | '?') {
            (self.is_polite, self.is_read, self.order) = (false, false, None);
        }
        if end == ';' {
            self.order = None;
        }
        if end == '\n' {
            (self.is_polite, self.is_read) = (false, false);
        }
    }
}

/// Signs around what is quoted.
const QUOTES: &str = "\"'`";

/// What separates words, beside spaces.
const BREAKS: &str = "—–…“”„«»()[]{}<>|";
