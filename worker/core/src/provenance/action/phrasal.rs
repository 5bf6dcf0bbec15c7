//! Verbs of several words: "roll web back to 2.0", "take Bob out of the group".

use super::super::search::is_word;
use super::clause::{Clause, MAX_LIGHT_WORDS, MAX_PHRASE_WORDS, MAX_SAVED_WORDS};
use super::lists::{
    DETERMINERS, DROPPED, GIVE, GIVEN, I, JOINS, LIGHT, PARTICLES, POSTS, PREPOSITIONS, THESE,
    TIMES, WANT,
};
use super::table::{Actions, TABLE, is_listed, of_word};
use super::vocabulary::{ABOUT, BE};
use super::words::{is_number, is_path, is_value};

/// Letters of an account number after its country and its check digits, if it has no gaps.
const MIN_ACCOUNT_BYTES: usize = 10;

impl Clause<'_> {
    /// The verbs among the nearest words before a word. `orders`: which words can give an order.
    pub(super) fn verbs(
        &self,
        at: usize,
        count: usize,
        orders: &[bool],
    ) -> impl Iterator<Item = usize> {
        // "Get back to me" gives nothing back.
        let is_back = self.get(at) == "back" && self.has_any_before(at, 1, &["get"]);
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
                "back" if next == "to" && at == verb + 1 => at + 1,
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
        let ends = next.is_empty() || is_listed(JOINS | PREPOSITIONS | TIMES, next);
        let around = at.saturating_sub(MAX_SAVED_WORDS)..=at + MAX_SAVED_WORDS;
        let near = |few: &[&str]| around.clone().any(|it| self.is_any(it, few));
        match (self.get(verb), self.get(at)) {
            ("kick", "off") => at == verb + 1,
            ("open", "door") => at <= verb + 2,
            (_, "instances" | "nodes" | "replicas") => {
                !(verb..at).any(|it| self.is_any(it, &ABOUT))
            }
            // "Take it out of the trash", "when you are back".
            ("take", "out") if near(&["bin", "trash"]) => false,
            (_, "back") if self.has_any_before(at, 1, &["are", "i'm", "is", "we're", "you're"]) => {
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
            ("take", "down") => around.clone().any(|it| self.is(it, POSTS)),
            // "Out of the trash."
            (_, "bin" | "corbeille" | "papelera" | "papierkorb" | "trash") => {
                self.has_any_before(at, 2, &["a", "den", "in", "into", "to", "à"])
            }
            (_, word) => !is_listed(PARTICLES, word) || at == verb + 1 || ends,
        }
    }

    /// Whether an account number follows that only money is sent to: "send it to DE44 5001 …".
    pub(super) fn is_to_account(&self, at: usize) -> bool {
        let is_iban = |it: usize| {
            let Some((code, rest)) = self.get(it).split_at_checked(2) else { return false };
            let (check, account) = rest.split_at_checked(2).unwrap_or_default();
            let is_group = |word: &str| word.len() == 4 && is_number(word);
            code.bytes().all(|letter| letter.is_ascii_alphabetic())
                && !check.is_empty()
                && is_number(check)
                && (account.len() > MIN_ACCOUNT_BYTES || is_group(self.get(it + 1)))
        };
        self.is(at + 1, THESE) && (at + 2..=at + MAX_PHRASE_WORDS).any(is_iban)
    }

    /// Whether the user wants what a participle says: "I'd like a.md deleted".
    #[inline(never)]
    pub(super) fn is_wanted(&self, at: usize, count: usize) -> bool {
        (at.saturating_sub(count)..at).any(|it| {
            matches!(self.get(it), "get" | "need" | "want")
                || (matches!(self.get(it), "like" | "love") && self.has_before(it, 2, I))
        })
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
        let after = || at + 1..=at + MAX_PHRASE_WORDS;
        let any = |few: &[&str]| after().any(|it| self.is_any(it, few));
        match self.get(at) {
            // "Ich bin da."
            "bin" => !(is_value(next) || is_listed(DETERMINERS | THESE, next)),
            // "Drop a line to Anna", "drop a.md in the channel".
            "drop" => {
                let is_file = is_path(next) || any(&["file", "files"]);
                any(&["into", "line", "mail", "message", "note", "off", "to"])
                    || (any(&["in"]) && !after().any(|it| self.is(it, DROPPED)) && is_file)
            }
            "kick" => next == "off",
            _ => false,
        }
    }

    /// Whether a participle gives an order: "it has to be merged", "I want it merged".
    #[inline(never)]
    pub(super) fn is_participle(&self, at: usize) -> bool {
        let next = self.get(at + 1);
        let before = at.checked_sub(1).map_or("", |it| self.get(it));
        let is_end = next.is_empty() || is_listed(TIMES, next);
        // "Get PR 218 in acme/shop merged", but not "get a list of PRs merged in May".
        let is_wide = (is_value(before) || is_listed(THESE, before))
            && (is_end || is_listed(JOINS | PREPOSITIONS, next))
            && !self.has_any_before(at, MAX_SAVED_WORDS, &ABOUT);
        // "Make sure that Anna is invited."
        let is_ensured = self.has_any_before(at, 1, &["are", "is"])
            && self.has_any_before(at, MAX_SAVED_WORDS, &["ensure", "sure"]);
        self.has_any_before(at, 2, &BE)
            || is_ensured
            // "PR 34 soll gemergt werden."
            || (next == "werden"
                && self.has_any_before(at, MAX_SAVED_WORDS, &["bitte", "muss", "soll", "sollen", "sollte"]))
            || (is_end
                && (self.has_before(at, MAX_LIGHT_WORDS, WANT)
                    || self.is_wanted(at, MAX_LIGHT_WORDS)))
            || (is_wide && self.is_wanted(at, MAX_SAVED_WORDS))
    }

    /// Whether a verb asks for what a noun says: "make a payment", "give Anna access".
    #[inline(never)]
    pub(super) fn is_light(&self, at: usize, noun: &str) -> bool {
        let noun = noun.strip_suffix('s').filter(|it| *it != "acces").unwrap_or(noun);
        match self.get(at) {
            "get" if !self.has_any_before(at, 1, &["can", "must", "should"]) => {
                matches!(noun, "back" | "cab" | "taxi")
            }
            "file" | "open" | "raise" => noun == "dispute",
            "call" => matches!(noun, "cab" | "taxi"),
            "have" => {
                let is_past = self.get(at + 1).ends_with('t') || self.get(at + 1).ends_with("ed");
                self.has_any_before(at, 1, &["should"]) && !is_past && is_listed(GIVEN, noun)
            }
            "issue" => self.begins(at),
            "process" => noun == "refund",
            _ if self.is(at, GIVE) => is_listed(GIVEN, noun),
            _ => self.is(at, LIGHT),
        }
    }
}
