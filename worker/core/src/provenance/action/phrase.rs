//! The words of an order: which of them are its object, and which only say where that is.

use super::super::extract::money::{amount, currency};
use super::super::normal::{Form, MAX_VALUE_BYTES};
use super::super::search::has;
use super::lists::{POLITE, SOURCES, TARGETS};
use super::table::{TABLE, is_listed, named};
use super::words::{
    AMOUNT, Asked, BESIDE, FILE, HEAD, OBJECT, Order, PLACE, SIGNS, SOURCE, TARGET, is_number,
    is_path, is_value, parts, same,
};

/// Words of a value with gaps, such as an account number.
const MAX_VALUE_WORDS: usize = 9;

/// Letters of the shortest account number.
const MIN_ACCOUNT_BYTES: usize = 4;

fn is_account(word: &str) -> bool {
    word.len() >= MIN_ACCOUNT_BYTES && word.bytes().any(|byte| byte.is_ascii_digit())
}

#[derive(Clone, Copy, Default, PartialEq)]
pub(super) enum Part {
    #[default]
    Object,
    /// What only says what kind of thing the object is: "delete the pod web-1".
    Kind,
    Place,
    /// After `with`: a place only in "share it with Anna".
    With,
    /// After `as`: "invite Anna as a guest".
    As,
}

/// A word of an order.
pub(super) struct Word<'w> {
    pub part: Part,
    /// Whether it is the last noun of an object.
    pub is_head: bool,
    /// How many prepositions come before it, and the last one.
    pub prepositions: u8,
    pub preposition: &'w str,
    pub word: &'w str,
}

/// The words that an order has.
#[derive(Default)]
pub(super) struct Phrase<'w> {
    pub words: Vec<Word<'w>>,
    pub part: Part,
    pub prepositions: u8,
    pub preposition: &'w str,
    pub has_object: bool,
    /// Whether only its places are added.
    pub has_all_objects: bool,
    /// Whether a name or a number is the object.
    pub has_value: bool,
    /// Whether its object is a word such as `it`, whether that word is for one thing, and whether a place is such a word.
    pub is_elsewhere: bool,
    pub is_one: bool,
    pub is_at_elsewhere: bool,
    /// Whether it has a word such as `everything`.
    pub is_whole: bool,
}

/// Whether a word names something, also by parts with a hyphen.
#[inline(never)]
pub(super) fn is_name(word: &str) -> bool {
    is_value(word) || (has(word, '-') && !is_listed(POLITE, word))
}

impl<'w> Phrase<'w> {
    pub(super) fn push(&mut self, part: Part, is_head: bool, word: &'w str) {
        let (prepositions, preposition) = (self.prepositions, self.preposition);
        self.words.push(Word { part, is_head, prepositions, preposition, word });
    }

    /// If no name is the object, the places after the first preposition that have one are it: "CI is green on acme/shop#34".
    /// What only somebody is brought to or taken from is named in the order itself.
    pub(super) fn promote(&mut self, is_related: bool) {
        if is_related {
            self.words.iter_mut().for_each(|it| it.prepositions = u8::MAX);
            return;
        }
        let is_object = |it: &Word<'_>| it.part == Part::Object && is_name(it.word);
        if self.words.iter().any(is_object) {
            return;
        }
        let is_place = |it: &&mut Word<'_>| it.part == Part::Place && is_name(it.word);
        let mut first = None;
        for it in self.words.iter_mut().filter(is_place) {
            if *first.get_or_insert(it.prepositions) == it.prepositions {
                it.part = Part::Object;
            }
        }
    }

    /// Adds each value in the words, and calls `add` with whether it is the last one of its word.
    #[inline(never)]
    fn each_value(&self, at: usize, add: &mut dyn FnMut(&str, bool)) -> bool {
        let get = |at: Option<usize>| at.and_then(|at| self.words.get(at)).map_or("", |it| it.word);
        let word = get(Some(at));
        let (previous, next) = (get(at.checked_sub(1)), get(Some(at + 1)));
        let bare = word.trim_start_matches('\'').trim_matches(|it| SIGNS.contains(it));
        let parts = parts(bare);
        let count = parts.len();
        for (at, part) in parts.into_iter().enumerate() {
            add(part, at + 1 == count);
        }
        let upper = [previous, word, next].map(str::to_uppercase);
        let [before, capital, after] = &upper;
        if let Some((code, number)) = currency(word).or_else(|| currency(capital)) {
            add(code, true);
            add(number, true);
        }
        let amount = amount(previous, word, next).or_else(|| amount(before, capital, after));
        let has_amount = amount.is_some();
        amount.into_iter().for_each(|it| add(&it, true));
        if !word.contains(|letter: char| letter.is_ascii_digit()) {
            return has_amount;
        }
        // "DE44 5001 0517 …", "3 May 2027": one value.
        let (mut text, mut form) = (word.to_owned(), Form::new());
        for more in self.words.iter().skip(at + 1).take(MAX_VALUE_WORDS) {
            if text.len() > MAX_VALUE_BYTES {
                break;
            }
            text = [&text, " ", more.word].concat();
            let one = form.of(&text).filter(|form| !form.contains(&b' '));
            if let Some(one) = one.and_then(|it| str::from_utf8(it).ok()) {
                add(one, true);
            }
        }
        has_amount
    }

    /// Adds the places, or also all names, as what a call may have with an order, but not what it is for.
    #[inline(never)]
    pub(super) fn add_beside(&self, is_all: bool, order: u8, asked: &mut Asked) {
        for (at, it) in self.words.iter().enumerate() {
            // What is quoted in another clause is said of something else.
            if it.word.starts_with('\'') {
                continue;
            }
            let is_beside = it.part == Part::Place || (is_all && is_name(it.word));
            self.each_value(at, &mut |value, is_last| {
                if is_beside || !is_last {
                    asked.add(BESIDE, order, value);
                }
            });
        }
    }

    /// Adds the words to those of an order. `is_own`: its clause has them, and not the one that "it" is from.
    #[inline(never)]
    pub(super) fn add(&self, order: &Order, is_own: bool, asked: &mut Asked) {
        let (number, found) = (order.number, order.found);
        let (is_related, is_destroyed) = (order.is_related(), found & TABLE.destroys != 0);
        let is_whole = self.is_whole && !self.has_object;
        let is_target = |it: &Word<'_>| is_path(it.word) && is_listed(TARGETS, it.preposition);
        let has_target = self.words.iter().any(is_target);
        let is_paid = found & (named("pay") | named("charge") | named("withdraw")) != 0;
        let is_change = found & named("update") != 0 || found & named("create") == 0;
        let is_set = found & (named("update") | named("scale")) != 0;
        for (at, it) in self.words.iter().enumerate() {
            if is_own {
                asked.add_right(number, it.word);
            }
            if it.is_head && !(is_destroyed && self.has_value) {
                asked.add(HEAD, number, same(it.word));
            }
            let is_object = match it.part {
                Part::Object => true,
                Part::With => is_whole || !is_related,
                // "Upload it as a.csv."
                Part::As => is_whole || (found & TABLE.wide != 0 && !is_related),
                _ => is_whole,
            };
            let other = match it.part {
                Part::Kind => BESIDE,
                Part::As if is_related => BESIDE,
                Part::Place if is_related && it.prepositions > 1 => {
                    // "Invite Anna to the meeting about #ops".
                    if matches!(it.preposition, "about" | "for" | "über") {
                        continue;
                    }
                    BESIDE
                }
                _ => PLACE,
            };
            // "Fix the typo in a.md", "upload it as a.md", "sort the lines of a.md".
            let is_target = is_listed(TARGETS, it.preposition)
                || (is_change && !has_target && matches!(it.preposition, "of" | "on"));
            let is_file = !is_object && is_target && is_path(it.word);
            if is_paid && is_listed(SOURCES, it.preposition) && is_account(it.word) {
                self.each_value(at, &mut |value, _| asked.add(SOURCE, number, value));
                continue;
            }
            // "It had a limit of 5000, set it to 500": that number only.
            let is_end = is_number(it.word);
            let is_brought = !is_object
                && (is_own || !is_end)
                && matches!(it.preposition, "a" | "auf" | "into" | "nach" | "to" | "à");
            if is_brought && is_end && is_set {
                asked.add(TARGET, number, "");
            }
            let has_amount = self.each_value(at, &mut |value, is_last| {
                let is_last = is_last || is_whole;
                if is_brought {
                    asked.add(TARGET, number, value);
                }
                asked.add(if is_object && is_last { OBJECT } else { other }, number, value);
                if is_file && is_last {
                    asked.add(FILE, number, value);
                }
            });
            if has_amount {
                asked.add(AMOUNT, number, "");
            }
            if is_brought {
                asked.add(TARGET, number, it.word);
            }
            if !is_object {
                asked.add(other, number, same(it.word));
            }
        }
    }
}
