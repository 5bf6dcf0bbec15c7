//! What an order is for, and where that is: "delete the branch fix-12 in acme/shop" destroys `fix-12`, and nothing else.
//!
//! What comes after a preposition is only where the object is. So is the owner (`Anna's`), what is before the last word of a
//! token such as `acme/shop#12`, and a value before a noun ("the acme/shop branch").

use super::super::extract::rights::right_of;
use super::super::search::{has, is_in};
use super::clause::Clause;
use super::lists::{
    ACCESS, ANOTHER, AUXILIARIES, BEGINS, BRINGS, CHOICES, CONDITIONS, CONTENTS, DESCRIBES,
    DETERMINERS, EMPTIES, EMPTY, GIVES, IS, JOINS, LOOKS, POLITE, POSSESSIVES, PREPOSITIONS,
    SUBJECTS, THESE, TIMES, TO_BE, WANT, WHOLE, WITH,
};
use super::phrase::{Part, Phrase, Word, is_name};
use super::table::{Actions, TABLE, is_listed, named, of_word};
use super::words::{
    Asked, BESIDE, ENTITLES, MAX_ORDERS, OBJECT, Order, PLACE, STATED, TAKES, is_path, is_value,
    same,
};

/// Words of one clause after a verb, and before it, that an order can have.
pub(super) const MAX_ORDER_WORDS: usize = 64;

/// Words that belong to a verb.
const SEPARABLE: [&str; 4] = ["back", "down", "off", "up"];

/// How verbs begin that take something out of another thing.
const REMOVES: [&str; 10] =
    ["boot", "entfern", "kick", "nimm", "quita", "remov", "retir", "rimuov", "take", "throw"];

/// Whether a clause with a word is one of its own: "13 is not ready".
pub(super) fn is_finite(word: &str) -> bool {
    is_listed(AUXILIARIES | IS | TO_BE | WANT, word)
}

#[inline(never)]
fn is_preposition(word: &str) -> bool {
    is_listed(PREPOSITIONS, word) || matches!(word, "als" | "as")
}

/// What some words have after prepositions that others lack.
fn places<'w>(words: &'w [String], others: &[String]) -> impl Iterator<Item = &'w String> {
    let mut is_place = false;
    words.iter().filter(move |word| {
        if is_preposition(word) {
            is_place = !others.contains(word);
        }
        is_place
    })
}

/// Adds an order with the verb and the places of another one.
fn add_again(
    order: &[String],
    words: &[String],
    found: Actions,
    asked: &mut Asked,
) -> Option<Order> {
    // "Share a.md with Anna as editor and with Bob as viewer".
    let is_with = |word: &String| is_listed(WITH, word);
    let ends = |word: &&String| is_with(word) || is_preposition(word);
    let shared = order.iter().take_while(|word| !ends(word)).count();
    let shared = if words.first().is_some_and(is_with) { shared } else { 1 };
    let own: Vec<String> = order.iter().take(shared).chain(words).cloned().collect();
    let clause = Clause { words: &own, follows: false, is_polite: false, is_open: true };
    let next = clause.add_objects(0, 0, found, asked)?;
    places(order, words).for_each(|word| asked.add_beside(next.number, word));
    Some(next)
}

impl Clause<'_> {
    /// Whether a word is one of a language that can be a noun.
    #[inline(never)]
    pub(super) fn is_plain(&self, at: usize) -> bool {
        let word = self.get(at);
        let others = BEGINS | DESCRIBES | DETERMINERS | JOINS | PREPOSITIONS | TIMES | WITH;
        !word.is_empty() && word.chars().all(char::is_alphabetic) && !is_listed(others, word)
    }

    /// Adds some words of the clause to a phrase.
    #[inline(never)]
    fn read<'w>(&'w self, (from, to): (usize, usize), is_emptied: bool, phrase: &mut Phrase<'w>) {
        for at in from..to {
            let word = self.get(at);
            let before = at.checked_sub(1).map_or("", |it| self.get(it));
            let is_object = phrase.part == Part::Object;
            // "Merge PR 34 as soon as 35 is reviewed".
            let next = self.get(at + 1);
            if is_listed(CONDITIONS, word)
                || (word == "as" && matches!(next, "long" | "soon"))
                || (word == "so" && next == "that")
                || (word == "on"
                    && "behalf"
                        == if self.is(at + 1, POSSESSIVES) { self.get(at + 2) } else { next })
            {
                phrase.prepositions = phrase.prepositions.saturating_add(1);
                break;
            }
            // "Du dépôt", but not "kannst du".
            let is_du = word == "du" && at > 0 && !is_listed(POLITE, before);
            // "And pay that to DE44".
            let is_that =
                word == "that" && at == from && (next.is_empty() || is_listed(PREPOSITIONS, next));
            // "Both of them".
            let is_of = word == "of" && self.is(at + 1, THESE);
            // "Roll out 1.2", but not "out of the group".
            let is_out = word == "out" && at == from && next != "of";
            let is_wish = word == "like" && (before.ends_with("'d") || before == "would");
            if word == "," {
                // The next clause of a sentence.
                phrase.part = Part::Object;
            } else if is_listed(WHOLE, word) {
                phrase.is_whole |= is_object;
            } else if is_du
                || (is_listed(PREPOSITIONS, word)
                    && before != "rid"
                    && !is_wish
                    && !is_out
                    && !is_of)
            {
                let is_as = matches!(word, "als" | "as");
                phrase.part = if is_as { Part::As } else { Part::Place };
                // "Out of" is one.
                let is_new = !is_as && (word != "of" || before != "out");
                phrase.prepositions = phrase.prepositions.saturating_add(u8::from(is_new));
                phrase.preposition = word;
            } else if is_listed(WITH, word) {
                phrase.part = Part::With;
                phrase.prepositions = phrase.prepositions.saturating_add(1);
            } else if is_listed(DESCRIBES, word) && !is_that {
                phrase.part = Part::Object;
            } else if is_listed(THESE, word) {
                phrase.is_elsewhere |= is_object;
                phrase.is_at_elsewhere |= !is_object;
                phrase.is_one |= is_object && matches!(word, "es" | "ihn" | "it" | "lo");
            } else if !(is_listed(DETERMINERS | JOINS | BEGINS | TIMES | EMPTY, word)
                || is_in(&SEPARABLE, word))
            {
                // Where all of the user's events are.
                if before == "my" && word == "calendar" {
                    continue;
                }
                let owner = word.strip_suffix("'s");
                // "The acme/shop branch".
                let is_first = is_value(word)
                    && self.is_plain(at + 1)
                    && (is_listed(DETERMINERS, before) || is_value(self.get(at + 2)));
                let is_file = is_path(word) && (has(word, '.') || word.starts_with('/'));
                let is_place = owner.is_some() || is_first || (is_emptied && !is_file);
                let part = if is_object && is_place { Part::Place } else { phrase.part };
                let is_object = part == Part::Object;
                if is_object && phrase.has_all_objects {
                    continue;
                }
                let word = owner.unwrap_or(word);
                let is_content = is_emptied && is_listed(CONTENTS, word);
                let is_head = (is_object || is_content)
                    && self.is_plain(at)
                    && (at + 1 == to || !self.is_plain(at + 1));
                // "Delete the pod web-1": the kind of the thing does not name it.
                if is_head && is_value(self.get(at + 1)) {
                    phrase.push(Part::Kind, is_head, word);
                } else {
                    phrase.push(part, is_head, word);
                    phrase.has_object |= is_object;
                    phrase.has_value |= is_object && is_value(word);
                }
            }
        }
    }

    /// Whether a word joins two orders of one verb: a preposition is on both sides, or a number at both beginnings, or
    /// somebody else has another right ("give tpark pull and anna-w admin rights").
    fn is_again(&self, (from, at, end): (usize, usize, usize)) -> bool {
        let is_number = |it: usize| self.get(it).starts_with(|it: char| it.is_ascii_digit());
        let is_twice = |it: usize| (from..at).any(|other| self.get(other) == self.get(it));
        let is_right = |it: usize| right_of(self.get(it)).is_some();
        let is_preposition = |it: usize| is_preposition(self.get(it));
        self.is(at, JOINS)
            && !is_preposition(at)
            && !is_preposition(at + 1)
            && ((is_number(from) && is_number(at + 1) && at > from + 1)
                || (at + 1..end).any(|it| is_preposition(it) && is_twice(it))
                || ((from..at).any(is_right) && !is_right(at + 1) && (at + 2..end).any(is_right)))
    }

    /// Adds the words that an order has. Those before it count if no other verb is there. `None` if no word counts for it.
    #[inline(never)]
    pub(super) fn add_objects(
        &self,
        at: usize,
        first: usize,
        found: Actions,
        asked: &mut Asked,
    ) -> Option<Order> {
        if asked.orders >= MAX_ORDERS {
            return None;
        }
        let is_end = |it: &usize| {
            // "Den Branch fix-12 löschen und PR 14 mergen."
            self.is(*it, JOINS)
                && (*it == at + 1
                    || of_word(self.get(it + 1)) != 0
                    || self.is(it + 1, LOOKS)
                    || self.is(it + 1, BRINGS))
        };
        let last = self.words.len().min(at + MAX_ORDER_WORDS);
        let mut end = (at + 1..last).find(is_end).unwrap_or(last);
        // "Pay 35 EUR to Anna and 50 EUR to Bob" are two orders.
        let again = (at + 1..end).find(|it| self.is_again((at + 1, *it, end)));
        let words = |from: usize, to: usize| self.words.get(from..to).unwrap_or_default();
        let (own, rest) = (words(at, again.unwrap_or(end)), words(again.unwrap_or(end) + 1, end));
        if again.is_some() {
            add_again(own, rest, found, asked);
        }
        end = again.unwrap_or(end);
        let first = first.max(at.saturating_sub(MAX_ORDER_WORDS));
        let (verb, is_emptied) = (self.get(at), self.is(at, EMPTIES));
        let mut phrase = Phrase::default();
        self.read((at + 1, end), is_emptied, &mut phrase);
        let is_place = phrase.part != Part::Object;
        let is_alone = phrase.words.is_empty() && phrase.prepositions == 0;
        // "Remove Bob from the group" does not ask to delete Bob.
        let takes = found & TABLE.destroys != 0
            && REMOVES.iter().any(|it| verb.starts_with(it))
            && phrase.prepositions > 0
            && !phrase.is_whole;
        if !phrase.is_elsewhere {
            phrase.has_all_objects = phrase.has_object;
            (phrase.part, phrase.prepositions) = (Part::Object, 0);
            self.read((first, at), is_emptied, &mut phrase);
        }
        let grants = found & TABLE.grants != 0;
        let is_access = |it: &Word<'_>| it.part != Part::Place && is_listed(ACCESS, it.word);
        let gives = self.is(at, ACCESS)
            || (grants && self.is(at, GIVES))
            || phrase.words.iter().any(is_access);
        let (number, words) = (asked.begin(found, verb)?, own.to_vec());
        let order = Order { number, found, takes, is_place, is_closed: false, words };
        if !own.iter().any(|word| is_preposition(word)) {
            places(rest, own).for_each(|word| asked.add_beside(number, word));
        }
        for (is, kind) in [(gives, ENTITLES), (takes, TAKES)] {
            if is {
                asked.add(kind, order.number, "");
            }
        }
        // What the sentence has before the order, or else the last sentence that names something.
        let mut before = asked.sentence.clone();
        let skipped = at.saturating_sub(MAX_ORDER_WORDS);
        before.extend(self.words.iter().take(at).skip(skipped).cloned());
        let has_name = |words: &[String]| words.iter().any(|word| is_name(word));
        if before.is_empty() || (!has_name(&before) && has_name(&asked.mention)) {
            before = asked.mention.clone();
        }
        let before = Clause { words: &before, follows: false, is_polite: false, is_open: false };
        let mut other = Phrase::default();
        let length = before.words.len();
        before.read((length.saturating_sub(MAX_ORDER_WORDS), length), false, &mut other);
        let has_name = phrase.words.iter().any(|it| is_name(it.word));
        let is_same = |it: &Word<'_>| {
            it.is_head && before.words.iter().any(|word| same(word) == same(it.word))
        };
        // "Jdoe has left, disable the account", "reset his password", "sub_77: the customer wants out. Cancel the subscription."
        let is_destroyed = found & TABLE.destroys != 0;
        let is_right = |it: &&Word<'_>| right_of(it.word).is_some();
        let rights = phrase.words.iter().filter(is_right).count();
        let names = || asked.mention.iter().filter(|word| is_name(word)).count();
        let is_bare = (is_destroyed || rights > 0)
            && phrase.words.len() == 1 + rights
            && self.is(at + 1, DETERMINERS)
            && (!asked.sentence.is_empty() || self.is(at + 1, POSSESSIVES) || names() == 1);
        let is_kind = !has_name && (is_bare || phrase.words.iter().any(is_same));
        // "She should get access."
        let is_whose = || (0..at).any(|it| matches!(self.get(it), "he" | "she" | "they"));
        // "PR 12 is ready. Merge it." "Merge the PR." "Please merge."
        let is_elsewhere = phrase.is_elsewhere
            || (self.is(at, ACCESS) && is_whose())
            || (is_alone && phrase.words.is_empty() && !self.is_open)
            || (is_kind && !is_destroyed);
        let has_place = phrase.words.iter().any(|it| it.part == Part::Place);
        // What is paid has its amount and its account in its own clause, or in a statement.
        let is_made =
            found & TABLE.wide != 0 && found & (TABLE.destroys | TABLE.grants | named("pay")) == 0;
        if is_kind && !is_elsewhere && length > 0 {
            // "Issue 77 says that the cache is stale. Delete the cache." The call must be for such a thing.
            other.words.iter_mut().for_each(|it| it.part = Part::Place);
            other.add_beside(false, order.number, asked);
        } else if phrase.is_at_elsewhere {
            other.words.iter_mut().for_each(|it| it.part = Part::Place);
            other.add(&order, false, asked);
        } else if is_elsewhere && length > 0 {
            // "Carla (carla@x.org) owns a.md, so share it with Omar": a person is not "it".
            let is_person = |word: &str| has(word, '@') && !has(word, '/');
            let is_thing = |it: &Word<'_>| is_name(it.word) && !is_person(it.word);
            let has_own = phrase.words.iter().any(|it| it.part != Part::Object);
            if phrase.is_one && has_own && other.words.iter().any(is_thing) {
                other.words.retain(|it| !is_person(it.word));
            }
            if !(phrase.is_one && before.is_choice()) {
                other.promote(order.is_related());
                other.add(&order, false, asked);
            }
        } else if is_elsewhere {
            asked.add(OBJECT, order.number, "");
        } else if is_made && !phrase.has_value {
            // "Create the branch fix-12, and change a.md in it".
            other.add_beside(true, order.number, asked);
        } else if !has_place || before.is(0, PREPOSITIONS) {
            // "Merge acme/shop#12 and delete the branch fix-12", "in acme/shop, merge PR 12".
            other.add_beside(false, order.number, asked);
        }
        // "Run this: …" What follows is added by who reads the text.
        if self.is_open && (is_alone || phrase.is_elsewhere) {
            asked.add(OBJECT, order.number, "");
        }
        asked.add(BESIDE, order.number, verb);
        // "Jdoe needs write access to vpn".
        if self.is(at, ACCESS) || verb == "able" {
            let mut who = Phrase::default();
            self.read((at.saturating_sub(MAX_ORDER_WORDS), at), false, &mut who);
            let needs = self.words.iter().take(at).any(|it| is_finite(it));
            let kind = if needs { OBJECT } else { BESIDE };
            for Word { word, .. } in who.words {
                asked.add(kind, number, word);
                asked.add_right(number, word);
            }
        }
        phrase.add(&order, true, asked);
        // "Invite Anna to the workspace" needs no place that fits, "add Anna to the list" does.
        let is_loose = gives || (!takes && found & named("overwrite") == 0);
        let is_place = |it: &Word<'_>| {
            matches!(it.part, Part::Place | Part::With)
                && it.prepositions < 2
                // "Invite Anna to comment" is for something else.
                && (!is_loose || is_name(it.word) || of_word(it.word) != 0)
        };
        if order.is_related() && phrase.words.iter().any(is_place) {
            asked.add(PLACE, order.number, "");
        }
        Some(order)
    }

    /// Whether "it" can mean any of two names: "compare PR 12 with PR 13, and merge it".
    fn is_choice(&self) -> bool {
        let is_named = |at: usize| is_name(self.get(at));
        (1..self.words.len())
            .any(|at| self.is(at, CHOICES) && is_named(at - 1) && (at + 1..at + 4).any(is_named))
    }

    /// Adds a clause without a known verb to the order before it. `is_new`: it can begin with an unknown one.
    #[inline(never)]
    pub(super) fn add_more(&self, order: &mut Order, is_new: bool, asked: &mut Asked) {
        // "Delete anna, carl and tom", but not "delete a.md, drain worker-3".
        let next = self.get(1);
        if is_new
            && order.found & TABLE.destroys != 0
            && !(next.is_empty() || is_listed(JOINS | PREPOSITIONS, next))
        {
            order.is_closed = true;
        }
        // "Merge PR 12, PR 13 needs more work".
        if order.is_closed || self.is(0, SUBJECTS) || self.words.iter().any(|it| is_finite(it)) {
            return;
        }
        // "Invite Anna as a guest, Bob as an admin", but not "replace it in a.md, to be safe".
        let mut both = order.words.clone();
        let at = both.len();
        let skipped = usize::from(self.is(0, JOINS));
        let own = self.words.get(skipped..).unwrap_or_default();
        both.push("and".to_owned());
        both.extend(own.iter().cloned());
        let both = Clause { words: &both, follows: false, is_polite: false, is_open: true };
        let is_object = |word: &String| is_value(word) || right_of(word).is_some();
        if own.iter().take_while(|word| !is_preposition(word)).any(is_object)
            && both.is_again((1, at, both.words.len()))
        {
            // What is in the first clause is not for the second one.
            let sentence = std::mem::take(&mut asked.sentence);
            if let Some(next) = add_again(&order.words, own, order.found, asked) {
                *order = next;
            }
            asked.sentence = sentence;
            return;
        }
        // "… in C0123, ts 17123.4" names another object, "… in issue 12, acme/shop" does not.
        let is_named = self.is_plain(0) && is_value(next);
        let is_place = order.is_place && !is_named;
        let part = if is_place { Part::Place } else { Part::Object };
        let mut phrase = Phrase { part, ..Phrase::default() };
        self.read((0, self.words.len()), false, &mut phrase);
        order.is_place = phrase.part != Part::Object;
        phrase.add(order, true, asked);
    }

    /// Adds what a clause without an order says about the orders: "the IBAN is DE44", or, after a label or as a whole
    /// sentence, "DE44" and "in acme/shop".
    pub(super) fn add_statement(&self, is_labelled: bool, is_whole: bool, asked: &mut Asked) {
        let is = |it: &usize| self.is(*it, IS);
        let is_short = self.words.len() <= MAX_STATED_WORDS;
        let plain = || (0..self.words.len()).filter(|at| self.is_plain(*at)).count();
        let begin = match (0..self.words.len().min(MAX_STATED_WORDS)).find(is) {
            Some(at) => at + 1,
            None if is_whole && is_short && self.is(0, PREPOSITIONS) => 0,
            None if is_labelled && plain() <= MAX_LABELLED_WORDS => 0,
            None => return,
        };
        // "PR 13 is for later", "the other account is DE44", "Frank is hoping that we grant him access".
        if (0..begin).any(|at| is_name(self.get(at)) || self.is(at, ANOTHER))
            || self.get(begin).ends_with("ing")
            || (begin..self.words.len()).any(|at| self.is(at, SUBJECTS))
        {
            return;
        }
        let mut phrase = Phrase { part: Part::Place, ..Phrase::default() };
        self.read((begin, self.words.len()), false, &mut phrase);
        phrase.add_beside(false, STATED, asked);
    }

    /// Whether a clause before a colon says what kind of value follows: "IBAN:".
    pub(super) fn is_kind(&self) -> bool {
        (1..=MAX_LABELLED_WORDS + 1).contains(&self.words.len())
            && !self.words.iter().any(|word| is_name(word) || is_listed(ANOTHER, word))
    }

    pub(super) fn has_name(&self) -> bool {
        self.words.iter().any(|word| is_name(word))
    }
}

/// Words before the verb of such a clause, or of one without a verb, and words of a language after a label.
const MAX_STATED_WORDS: usize = 6;
const MAX_LABELLED_WORDS: usize = 2;
