//! What an order is for, and where that is: "delete the branch fix-12 in acme/shop" destroys `fix-12`, and nothing else.
//!
//! What comes after a preposition is only where the object is. So is the owner (`Anna's`), what is before the last word of a
//! token such as `acme/shop#12`, and a value before a noun ("the acme/shop branch").

use super::super::search::{has, is_in};
use super::clause::Clause;
use super::table::{Actions, TABLE, named, of_word};
use super::vocabulary::{
    ACCESS, BEGINS, CONTENTS, DESCRIBES, DETERMINERS, EMPTIES, GIVES, JOINS, LOOKS, POLITE,
    PREPOSITIONS, THESE, TIMES, WHOLE, WITH,
};
use super::words::{
    CLASSES, DESTROYED, ENTITLES, HEAD, MADE, MAX_WORDS, NEW, OBJECT, Order, PLACE, RELATED,
    is_in_any, is_path, is_value, of_verb, parts, same,
};

/// Words of one clause after a verb, and before it, that an order can have.
const MAX_ORDER_WORDS: usize = 64;

/// Words that belong to a verb.
const PARTICLES: [&str; 4] = ["back", "down", "off", "up"];

/// How verbs begin that take something out of another thing.
const REMOVES: [&str; 10] =
    ["boot", "entfern", "kick", "nimm", "quita", "remov", "retir", "rimuov", "take", "throw"];

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Object,
    /// The last noun of an object.
    Head,
    Place,
    /// After `with`: a place only in "share it with Anna".
    With,
    /// After `as`: "invite Anna as a guest".
    As,
}

/// The words that an order has.
struct Phrase<'w> {
    /// Each word with its part, and how many prepositions come before it.
    words: Vec<(Part, u8, &'w str)>,
    part: Part,
    prepositions: u8,
    has_object: bool,
    /// Whether only its places are added.
    has_all_objects: bool,
    /// Whether a name or a number is the object.
    has_value: bool,
    /// Whether it has a word such as `it`, and whether it has one such as `everything`.
    is_elsewhere: bool,
    is_whole: bool,
}

/// The words of orders, and the class and the verb of those that are added.
struct Words<'a> {
    words: &'a mut Vec<([u8; 3], String)>,
    class: u8,
    verb: &'a str,
}

impl Words<'_> {
    #[inline(never)]
    fn add(&mut self, kind: u8, word: &str) {
        if self.words.len() < MAX_WORDS {
            self.words.push(([0xff, kind, self.class], of_verb(self.verb, word)));
        }
    }
}

impl Clause<'_> {
    /// Whether a word is one of a language that can be a noun.
    #[inline(never)]
    pub(super) fn is_plain(&self, at: usize) -> bool {
        let word = self.get(at);
        let others: [&[&str]; 7] =
            [&BEGINS, &DESCRIBES, &DETERMINERS, &JOINS, &PREPOSITIONS, &TIMES, &WITH];
        !word.is_empty() && word.chars().all(char::is_alphabetic) && !is_in_any(&others, word)
    }

    /// Adds some words of the clause to a phrase.
    #[inline(never)]
    fn read<'w>(&'w self, (from, to): (usize, usize), is_emptied: bool, phrase: &mut Phrase<'w>) {
        for at in from..to {
            let word = self.get(at);
            let before = at.checked_sub(1).map_or("", |it| self.get(it));
            let is_object = phrase.part == Part::Object;
            // "Du dépôt", but not "kannst du".
            let is_du = word == "du" && at > 0 && !is_in(&POLITE, before);
            if is_in(&WHOLE, word) {
                phrase.is_whole |= is_object;
            } else if is_du || (is_in(&PREPOSITIONS, word) && before != "rid") {
                let is_as = matches!(word, "als" | "as");
                phrase.part = if is_as { Part::As } else { Part::Place };
                phrase.prepositions = phrase.prepositions.saturating_add(u8::from(!is_as));
            } else if is_in(&WITH, word) {
                phrase.part = Part::With;
                phrase.prepositions = phrase.prepositions.saturating_add(1);
            } else if is_in(&DESCRIBES, word) {
                phrase.part = Part::Object;
            } else if is_in(&THESE, word) {
                phrase.is_elsewhere |= is_object;
            } else if !is_in_any(&[&DETERMINERS, &JOINS, &BEGINS, &PARTICLES, &TIMES], word) {
                // Where all of the user's events are.
                if before == "my" && word == "calendar" {
                    continue;
                }
                let owner = word.strip_suffix("'s");
                // "The acme/shop branch".
                let is_first = is_value(word)
                    && self.is_plain(at + 1)
                    && (is_in(&DETERMINERS, before) || is_value(self.get(at + 2)));
                let is_file = is_path(word) && (has(word, '.') || word.starts_with('/'));
                let is_place = owner.is_some() || is_first || (is_emptied && !is_file);
                let part = if is_object && is_place { Part::Place } else { phrase.part };
                let is_object = part == Part::Object;
                if is_object && phrase.has_all_objects {
                    continue;
                }
                let entry = (phrase.prepositions, owner.unwrap_or(word));
                let is_content = is_emptied && is_in(&CONTENTS, word);
                let is_head =
                    (is_object || is_content) && self.is_plain(at) && !self.is_plain(at + 1);
                if is_head {
                    phrase.words.push((Part::Head, entry.0, entry.1));
                }
                // "Delete the pod web-1": the kind of the thing does not name it.
                if !(is_head && is_value(self.get(at + 1))) {
                    phrase.words.push((part, entry.0, entry.1));
                    phrase.has_object |= is_object;
                    phrase.has_value |= is_object && is_value(word);
                }
            }
        }
    }

    /// Adds the words that an order has. Those before it count if no other verb is there. `None` if no word counts for it.
    #[inline(never)]
    pub(super) fn add_objects(
        &self,
        at: usize,
        first: usize,
        found: Actions,
        words: &mut Vec<([u8; 3], String)>,
    ) -> Option<Order> {
        let is_end = |it: &usize| {
            self.is(*it, &JOINS) && (of_word(self.get(it + 1)) != 0 || self.is(it + 1, &LOOKS))
        };
        let last = self.words.len().min(at + MAX_ORDER_WORDS);
        let end = (at + 1..last).find(is_end).unwrap_or(last);
        let first = first.max(at.saturating_sub(MAX_ORDER_WORDS));
        let (verb, is_emptied) = (self.get(at), self.is(at, &EMPTIES));
        let mut phrase = Phrase::new(Part::Object);
        self.read((at + 1, end), is_emptied, &mut phrase);
        let is_place = phrase.part != Part::Object;
        // "Remove Bob from the group" does not ask to delete Bob.
        let takes = REMOVES.iter().any(|it| verb.starts_with(it))
            && phrase.prepositions > 0
            && !phrase.is_whole;
        if !phrase.is_elsewhere {
            phrase.has_all_objects = phrase.has_object;
            (phrase.part, phrase.prepositions) = (Part::Object, 0);
            self.read((first, at), is_emptied, &mut phrase);
        }
        let destroys = found & TABLE.destroys != 0;
        let is_access =
            |(part, _, word): &(Part, u8, &str)| *part != Part::Place && is_in(&ACCESS, word);
        let grants = found & TABLE.grants != 0;
        let gives = self.is(at, &ACCESS)
            || (grants && self.is(at, &GIVES))
            || phrase.words.iter().any(is_access);
        if gives {
            words.push((ENTITLES, String::new()));
        }
        let class = |is: bool, class: u8| if is { class } else { 0 };
        let classes = class(destroys && !takes, DESTROYED)
            | class(found & TABLE.wide != 0, MADE)
            | class(found == 0, NEW)
            | class(grants || (destroys && takes), RELATED);
        let order = Order { classes, verb: verb.to_owned(), is_place };
        // "Invite Anna to the workspace" needs no place that fits, "add Anna to the list" does.
        let is_loose = gives || (!takes && found & named("overwrite") == 0);
        phrase.add(&order, Some(is_loose), words);
        (classes != 0).then_some(order)
    }

    /// Adds a clause without a known verb to the order before it. `is_new`: it can begin with an unknown one.
    #[inline(never)]
    pub(super) fn add_more(
        &self,
        order: &mut Order,
        is_new: bool,
        words: &mut Vec<([u8; 3], String)>,
    ) {
        // "Delete anna, carl and tom", but not "delete a.md, drain worker-3".
        let next = self.get(1);
        if is_new && !(next.is_empty() || is_in_any(&[&JOINS, &PREPOSITIONS], next)) {
            order.classes &= MADE;
        }
        // "… in C0123, ts 17123.4" names another object, "… in issue 12, acme/shop" does not.
        let is_named = self.is_plain(0) && is_value(next);
        let is_place = order.is_place && !is_named;
        let mut phrase = Phrase::new(if is_place { Part::Place } else { Part::Object });
        self.read((0, self.words.len()), false, &mut phrase);
        order.is_place = phrase.part != Part::Object;
        phrase.add(order, None, words);
    }
}

impl Phrase<'_> {
    fn new(part: Part) -> Self {
        let (words, prepositions) = (Vec::new(), 0);
        let (has_object, has_all_objects, has_value) = (false, false, false);
        let (is_elsewhere, is_whole) = (false, false);
        Self {
            words,
            part,
            prepositions,
            has_object,
            has_all_objects,
            has_value,
            is_elsewhere,
            is_whole,
        }
    }

    /// Adds the words to those of an order. `begins`: this is its clause, and its places need not fit if none is a name.
    #[inline(never)]
    fn add(&self, order: &Order, begins: Option<bool>, words: &mut Vec<([u8; 3], String)>) {
        let is_whole = self.is_whole && !self.has_object;
        for class in CLASSES {
            if order.classes & class == 0 {
                continue;
            }
            // What an unknown verb is for is known by that verb only.
            let verb = if class == NEW { &order.verb } else { "" };
            let mut words = Words { words: &mut *words, class, verb };
            let is_related = class == RELATED;
            let (mut is_open, mut has_place, mut has_name) = (true, false, false);
            for &(part, prepositions, word) in &self.words {
                let is_object = part == Part::Object
                        || (part == Part::With && !is_related)
                        // "Upload it as a.csv."
                        || (part == Part::As && class == MADE)
                        || is_whole;
                if class == MADE && is_path(word) {
                    words.add(HEAD, "file");
                }
                if part == Part::Head {
                    if class != DESTROYED || !self.has_value {
                        words.add(HEAD, same(word));
                    }
                } else if is_object || !is_related || (part != Part::As && prepositions < 2) {
                    let parts = parts(word.trim_start_matches('\''));
                    for (at, part) in parts.iter().enumerate() {
                        let is_last = at + 1 == parts.len() || is_whole;
                        words.add(if is_object && is_last { OBJECT } else { PLACE }, part);
                    }
                    if !is_object {
                        words.add(PLACE, same(word));
                        (has_place, has_name) = (true, has_name || is_value(word));
                    }
                }
                is_open = false;
            }
            let Some(is_loose) = begins else { continue };
            if is_open || self.is_elsewhere {
                words.add(OBJECT, "");
            }
            if is_related && has_place && (!is_loose || has_name) {
                words.add(PLACE, "");
            }
        }
    }
}
