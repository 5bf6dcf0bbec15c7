//! Verbs of several words: "roll web back to 2.0", "take Bob out of the group".

use super::super::search::{is_in, is_word};
use super::clause::{Clause, MAX_PHRASE_WORDS, MAX_SAVED_WORDS};
use super::table::{Actions, TABLE, of_word};
use super::vocabulary::{
    ABOUT, DETERMINERS, DROPPED, JOINS, PARTICLES, POSTS, PREPOSITIONS, THESE, TIMES,
};
use super::words::{is_in_any, is_path, is_value};

impl Clause<'_> {
    /// The verbs among the nearest words before a word. `orders`: which words can give an order.
    pub(super) fn verbs(
        &self,
        at: usize,
        count: usize,
        orders: &[bool],
    ) -> impl Iterator<Item = usize> {
        // "Get back to me" gives nothing back.
        let is_back = self.get(at) == "back" && !self.has_before(at, 1, &["go", "revert", "roll"]);
        let end = at.saturating_sub(usize::from(is_back));
        (at.saturating_sub(count)..end).filter(|it| orders.get(*it) == Some(&true))
    }

    /// The actions of a verb with a later word, and where the words begin that are its objects.
    #[inline(never)]
    pub(super) fn of_phrase(&self, at: usize, orders: &[bool]) -> (Actions, usize) {
        let (word, next) = (self.get(at), self.get(at + 1));
        // "Wirf bitte die alte Seite aus dem Wiki raus."
        let reach = if next.is_empty() { MAX_SAVED_WORDS } else { MAX_PHRASE_WORDS };
        let (mut found, mut begin) = (0, at);
        for (starts, actions) in TABLE.phrases.get(word).into_iter().flatten() {
            let starts = |it: &usize| is_word(starts, self.get(*it)) && self.is_gap(*it, at);
            let Some(verb) = self.verbs(at, reach, orders).find(starts) else { continue };
            found |= actions.split(' ').fold(0, |found, action| found | of_word(action));
            begin = match word {
                "of" | "starten" => at,
                // "Go back to 1.9.1", "set the replicas of web to 5".
                "back" if next == "to" => at + 1,
                "einladung" | "invitation" | "invite" if matches!(next, "an" | "to") => at + 1,
                "instances" | "nodes" | "replicas" if next == "of" => at + 1,
                _ => verb,
            };
        }
        (found, begin)
    }

    /// Whether a verb and a later word belong together: "roll out 1.2", "roll 1.2 out", but not "turn in the report on Friday".
    fn is_gap(&self, verb: usize, at: usize) -> bool {
        let next = self.get(at + 1);
        let ends = next.is_empty() || is_in_any(&[&JOINS, &PREPOSITIONS, &TIMES], next);
        let around = at.saturating_sub(MAX_SAVED_WORDS)..=at + MAX_SAVED_WORDS;
        let near = |list: &[&str]| around.clone().any(|it| self.is(it, list));
        match (self.get(verb), self.get(at)) {
            ("kick", "off") => at == verb + 1,
            ("open", "door") => at <= verb + 2,
            (_, "instances" | "nodes" | "replicas") => !(verb..at).any(|it| self.is(it, &ABOUT)),
            // "Take it out of the trash", "when you are back".
            ("take", "out") if near(&["bin", "trash"]) => false,
            (_, "back") if self.has_before(at, 1, &["are", "i'm", "is", "we're", "you're"]) => {
                false
            }
            ("nimm" | "schmeiß" | "wirf", "aus") => true,
            // "Point shop.example.org at 198.51.100.20."
            ("point", _) => {
                is_path(self.get(verb + 1))
                    || verb.checked_sub(2).is_some_and(|it| is_path(self.get(it)))
            }
            ("go", "back") => {
                next == "to" && self.get(at + 2).contains(|it: char| it.is_ascii_digit())
            }
            // Of a server, this is another action.
            ("take", "down") => near(&POSTS),
            // "Out of the trash."
            (_, "bin" | "corbeille" | "papelera" | "papierkorb" | "trash") => {
                self.has_before(at, 2, &["a", "den", "in", "into", "to", "à"])
            }
            (_, word) => !is_in(&PARTICLES, word) || at == verb + 1 || ends,
        }
    }

    /// Whether the user needs a new thing: "I need a payment link".
    pub(super) fn is_needed(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |it| self.get(it));
        matches!(self.get(at), "brauche" | "brauchen" | "like" | "necesito" | "need" | "want")
            && matches!(before, "" | "i" | "i'd" | "ich" | "we" | "we'd" | "wir")
            && matches!(
                self.get(at + 1),
                "a" | "an" | "another" | "ein" | "eine" | "einen" | "new" | "un" | "una"
            )
    }

    /// Whether a verb means something else here.
    #[inline(never)]
    pub(super) fn is_other(&self, at: usize) -> bool {
        let next = self.get(at + 1);
        let any = |list: &[&str]| (at + 1..=at + MAX_PHRASE_WORDS).any(|it| self.is(it, list));
        match self.get(at) {
            // "Ich bin da."
            "bin" => !(is_value(next) || is_in_any(&[&DETERMINERS, &THESE], next)),
            // "Drop a line to Anna", "drop a.md in the channel".
            "drop" => {
                let is_file = is_path(next) || any(&["file", "files"]);
                any(&["into", "line", "mail", "message", "note", "off", "to"])
                    || (any(&["in"]) && !any(&DROPPED) && is_file)
            }
            "kick" => next == "off",
            _ => false,
        }
    }
}
