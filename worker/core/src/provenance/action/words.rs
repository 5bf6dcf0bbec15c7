//! What is kept of an instruction, and small tests on its words.

use super::super::extract::rights::right_of;
use super::super::search::has;
use super::actions::ACTIONS;
use super::table::{Actions, TABLE, named};
use super::vocabulary::SAME;

/// Kinds of the words of an order. Their third byte is the order's number. An empty word says something about the order:
/// that there is one, that its object is named elsewhere (`OBJECT`), and that it needs a place that fits (`PLACE`).
pub(super) const ACTION: u8 = b'!';
/// A verb that the table does not know.
pub(super) const VERB: u8 = b'?';
pub(super) const OBJECT: u8 = b'+';
pub(super) const PLACE: u8 = b'_';
/// Nouns at the end of an object ("an access key").
pub(super) const HEAD: u8 = b'*';
/// Other words that a call may have with it: the kind of its object, or a place that was named before it.
pub(super) const BESIDE: u8 = b'.';
/// A file that is written, as the place of another object.
pub(super) const FILE: u8 = b'/';
/// What something is brought to. An empty one says that it is a number: "set it to 500".
pub(super) const TARGET: u8 = b'>';
/// Says that the order has an amount.
pub(super) const AMOUNT: u8 = b'$';
/// A right that it grants, by its [name](super::super::extract::rights::right_of).
pub(super) const RIGHT: u8 = b'r';
/// The account that pays.
pub(super) const SOURCE: u8 = b'<';
/// Says that the order is for access, that it takes something out of a thing, or that its words are not known.
pub(super) const ENTITLES: u8 = b'a';
pub(super) const TAKES: u8 = b'-';
pub(super) const UNKNOWN: u8 = b'~';

/// The number of a statement such as "the IBAN is DE44", which says a place for each order.
pub(super) const STATED: u8 = u8::MAX;

/// Orders of an instruction, and words that they have. An order whose words do not all fit does not count.
pub(super) const MAX_ORDERS: u8 = 128;
pub(super) const MAX_WORDS: usize = 1_024;

/// Words before a word among which an equal one is looked for.
const MAX_EQUAL: usize = 64;

/// Says that an instruction says to use the tool of this name.
pub(super) const USED: [u8; 3] = [0xff, b'@', b'u'];

/// Signs of currencies.
pub(super) const SIGNS: &str = "$£¥€";

/// Tools that an instruction names, and verbs that the table does not know.
const MAX_USED_TOOLS: usize = 16;

/// What a text asks for.
pub(super) struct Asked {
    /// The words of its orders, each with its kind.
    pub words: Vec<([u8; 3], String)>,
    pub orders: u8,
    /// The first order for whose words there was no space.
    full: u8,
    /// The words of the sentence before the clause that is read, and those of the last sentence that named something.
    pub sentence: Vec<String>,
    pub mention: Vec<String>,
    /// The tools and the unknown verbs among them.
    names: usize,
}

impl Default for Asked {
    fn default() -> Self {
        let (words, sentence, mention) = (Vec::new(), Vec::new(), Vec::new());
        Self { words, orders: 0, full: MAX_ORDERS, sentence, mention, names: 0 }
    }
}

impl Asked {
    #[inline(never)]
    pub(super) fn add(&mut self, kind: u8, order: u8, word: &str) {
        let kind = [0xff, kind, order];
        let mut near = self.words.iter().rev().take(MAX_EQUAL);
        if near.any(|(other, it)| *other == kind && it == word) {
            return;
        }
        if self.words.len() < MAX_WORDS {
            self.words.push((kind, word.to_owned()));
        } else if order != STATED && self.full > order {
            self.full = order;
        }
    }

    /// Adds the right that a word is.
    pub(super) fn add_right(&mut self, order: u8, word: &str) {
        if let Some(right) = right_of(word.trim_start_matches('\'')) {
            self.add(RIGHT, order, right);
            self.add(RIGHT, order, "");
        }
    }

    /// Adds a word that a call may have with an order.
    pub(super) fn add_beside(&mut self, order: u8, word: &str) {
        parts(word.trim_start_matches('\'')).into_iter().for_each(|it| self.add(BESIDE, order, it));
    }

    /// The words of the orders that have all their words.
    pub(super) fn whole(mut self) -> Vec<([u8; 3], String)> {
        let full = self.full;
        let is_whole = |[.., order]: [u8; 3]| order < full || order == STATED;
        self.words.retain(|(kind, _)| *kind == USED || is_whole(*kind));
        self.words
    }

    /// The tool of this name is to be used.
    pub(super) fn uses(&mut self, name: &str) {
        if self.names < MAX_USED_TOOLS {
            self.names += 1;
            self.words.push((USED, name.to_owned()));
        }
    }

    /// Begins an order. The verb counts if it has no action. `None` if there are too many.
    #[inline(never)]
    pub(super) fn begin(&mut self, found: Actions, verb: &str) -> Option<u8> {
        if self.orders >= MAX_ORDERS {
            return None;
        }
        if found == 0 {
            self.names += 1;
            if self.names > MAX_USED_TOOLS {
                return None;
            }
        }
        let order = self.orders;
        self.orders += 1;
        self.add(ACTION, order, "");
        for (at, (name, _)) in ACTIONS.iter().enumerate() {
            if found & (1 << at) != 0 {
                self.add(ACTION, order, name);
            }
        }
        if found == 0 {
            self.add(VERB, order, verb);
            // `drained`.
            let stems = [verb.strip_suffix("ed"), verb.strip_suffix('d')];
            stems.into_iter().flatten().for_each(|stem| self.add(VERB, order, stem));
        }
        Some(order)
    }

    /// Adds an order to write a file.
    pub(super) fn writes(&mut self, path: &str) {
        let Some(order) = self.begin(named("overwrite"), "") else { return };
        let mut parts = parts(path);
        let name = parts.pop();
        name.into_iter().for_each(|it| self.add(OBJECT, order, it));
        parts.into_iter().for_each(|it| self.add(PLACE, order, it));
    }
}

/// An order that goes on after a comma, a colon or a line break.
pub(super) struct Order {
    pub number: u8,
    pub found: Actions,
    pub takes: bool,
    /// Whether its last words were a place.
    pub is_place: bool,
    /// Whether nothing more is added to it.
    pub is_closed: bool,
    /// Its words, from its verb on.
    pub words: Vec<String>,
}

impl Order {
    /// Whether it brings two things together or apart ("share plan.md with Anna").
    pub(super) fn is_related(&self) -> bool {
        self.takes || self.found & TABLE.grants != 0
    }
}

/// The words of a token. A mail address is one.
#[inline(never)]
pub(super) fn parts(token: &str) -> Vec<&str> {
    let is_address = token.trim_start_matches('@').contains('@') && !token.contains("://");
    let is_gap = |letter: char| {
        matches!(letter, ' ' | '/' | '\\' | '#' | '?' | '&' | '=') && (!is_address || letter == ' ')
    };
    token.split(is_gap).filter(|part| part.contains(char::is_alphanumeric)).collect()
}

/// One word for those that mean the same thing.
pub(super) fn same(word: &str) -> &str {
    let one =
        word.strip_suffix('s').filter(|it| !it.ends_with('s') && *it != "acces").unwrap_or(word);
    SAME.iter().find(|(other, _)| *other == one).map_or(one, |(_, same)| same)
}

/// Whether a word is a file's path.
#[inline(never)]
pub(super) fn is_path(word: &str) -> bool {
    let is_name = has(word, '.') && word.ends_with(char::is_alphabetic);
    !has(word, '@') && (has(word, '/') || is_name)
}

/// Whether a word is a number.
#[inline(never)]
pub(super) fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
}

/// Whether a word is a name or a number, and no word of a language.
#[inline(never)]
pub(super) fn is_value(word: &str) -> bool {
    word.starts_with('\'')
        || word.bytes().any(|byte| matches!(byte, b'0'..=b'9' | b'/' | b'@' | b'.' | b'_' | b'#'))
}
