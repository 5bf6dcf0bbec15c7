//! What is kept of an instruction, and small tests on its words.

use super::super::search::{has, is_in};
use super::table::Actions;
use super::vocabulary::SAME;

/// Classes of orders: those that destroy, those that make or change something, those that the table does not know, and those
/// that bring two things together or apart ("share plan.md with Anna").
pub(super) const DESTROYED: u8 = 1;
pub(super) const MADE: u8 = 2;
pub(super) const NEW: u8 = 4;
pub(super) const RELATED: u8 = 8;
pub(super) const CLASSES: [u8; 4] = [DESTROYED, MADE, NEW, RELATED];

/// Kinds of their words: objects, places, and nouns at the end of an object ("an access key").
pub(super) const OBJECT: u8 = b'+';
pub(super) const PLACE: u8 = b'_';
pub(super) const HEAD: u8 = b'*';

/// Says that an order is for access.
pub(super) const ENTITLES: [u8; 3] = [0xff, OBJECT, b'a'];

/// The noun for each path.
pub(super) const FILE: [u8; 3] = [0xff, HEAD, MADE];

/// Words that the orders of an instruction have. With more, no order counts that needs them.
pub(super) const MAX_WORDS: usize = 1_024;

/// Kinds of words of an instruction: the name of a tool that it says to use, and an order that the table does not know.
pub(super) const USED: [u8; 3] = [0xff, b'@', b'u'];
pub(super) const ORDERED: [u8; 3] = [0xff, b'@', b'o'];

/// Signs of currencies.
pub(super) const SIGNS: &str = "$£¥€";

/// Tools that an instruction names, and verbs that the table does not know.
const MAX_USED_TOOLS: usize = 16;

/// What a text asks for.
#[derive(Default)]
pub(super) struct Asked {
    pub actions: Actions,
    /// The words of its orders, each with its kind. An empty word says that there is something of this kind.
    pub words: Vec<([u8; 3], String)>,
    /// The tools and the unknown verbs among them.
    names: usize,
}

impl Asked {
    pub(super) fn name(&mut self, kind: [u8; 3], word: &str) {
        if self.names < MAX_USED_TOOLS {
            self.names += 1;
            self.words.push((kind, word.to_owned()));
        }
    }
}

/// An order that goes on after a comma, a colon or a line break.
pub(super) struct Order {
    pub classes: u8,
    pub verb: String,
    /// Whether its last words were a place.
    pub is_place: bool,
}

/// The words of a token. A mail address is one.
#[inline(never)]
pub(super) fn parts(token: &str) -> Vec<&str> {
    let is_address = token.contains('@') && !token.contains("://");
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

/// A word that belongs to a verb.
pub(super) fn of_verb(verb: &str, word: &str) -> String {
    if verb.is_empty() { word.to_owned() } else { [verb, " ", word].concat() }
}

/// Whether a word is a file's path.
#[inline(never)]
pub(super) fn is_path(word: &str) -> bool {
    let is_name = has(word, '.') && word.ends_with(char::is_alphabetic);
    !has(word, '@') && (has(word, '/') || is_name)
}

/// Whether a word is a name or a number, and no word of a language.
#[inline(never)]
pub(super) fn is_value(word: &str) -> bool {
    word.starts_with('\'')
        || word.bytes().any(|byte| matches!(byte, b'0'..=b'9' | b'/' | b'@' | b'.' | b'_' | b'#'))
}

/// Whether a sorted list of some has a word.
#[inline(never)]
pub(super) fn is_in_any(lists: &[&[&str]], word: &str) -> bool {
    lists.iter().any(|list| is_in(list, word))
}
