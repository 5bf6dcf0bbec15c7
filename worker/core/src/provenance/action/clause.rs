//! What the words between two punctuation marks ask for.

use super::super::search::is_in;
use super::lists::{
    ACCESS, ALREADY, ANSWERS, ASKED, ASKS, AUXILIARIES, BEGINS, DETERMINERS, DOING, ENTITLED,
    FORGET, GIVE, GIVES, I, IS, JOINS, LATER, LIGHT, LOOKS, List, MODALS, MONEY, NO_WAY,
    NOT_ANYWHERE, NOT_BEFORE, NOUN_OR_VERB, PARTICIPLES, POLITE, PREPOSITIONS, PRONOUNS, QUESTIONS,
    READING, REPORTS, RESUMES, RIGHTS_ONLY, SAYS, SENDS, SUBJECTS, TELLS, THESE, TO_BE, TRIES, USE,
    USER,
};
use super::table::{Actions, TABLE, base, is_listed, is_phrase, known, named, noun, of_word};
use super::vocabulary::{ABOUT, BE, DEEDS, NOT_BESIDE, NUMBERED, OPENED, RELATIVES};
use super::words::{Asked, Order, SIGNS, is_path};

/// Words from a verb of `LIGHT` to its noun, from the verb of a phrase to its later word or to a word of access, from a
/// negation to `forget`, and from `write` or `tell` to where the text goes or what it is.
pub(super) const MAX_LIGHT_WORDS: usize = 4;
pub(super) const MAX_PHRASE_WORDS: usize = 8;
const MAX_FORGET_WORDS: usize = 2;
pub(super) const MAX_SAVED_WORDS: usize = 12;

/// Words from a verb such as `send` to an amount of money.
const MAX_MONEY_WORDS: usize = 5;

/// Bytes of a verb that the table does not know.
const MIN_VERB_BYTES: usize = 4;

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The words between two punctuation marks.
pub(super) struct Clause<'a> {
    pub words: &'a [String],
    /// Whether it comes after a comma.
    pub follows: bool,
    /// Whether its sentence asks the agent.
    pub is_polite: bool,
    /// Whether what it is for comes after it: "run this:".
    pub is_open: bool,
}

impl Clause<'_> {
    #[inline(never)]
    pub(super) fn add_to(&self, asked: &mut Asked, last: &mut Option<Order>) {
        // "Marta says that it has to be merged".
        let said = (1..self.words.len()).find(|at| self.is(*at, SAYS) && self.get(at - 1) != "i");
        let nots = self.negations();
        let is_not = |at: usize| nots.get(at) == Some(&true);
        if (0..self.words.len()).any(|at| is_not(at) && self.is(at, NOT_ANYWHERE))
            || self.waits_for_others()
        {
            return;
        }
        // "PR 34, den ich mergen soll".
        let mut is_read = self.follows && self.is_any(0, &RELATIVES);
        let (mut is_forbidden, mut orders) = (false, vec![false; self.words.len()]);
        // Where the words before an order begin that are not for another verb.
        let (mut has_verb, mut first) = (false, 0);
        for (at, word) in self.words.iter().enumerate() {
            let is_answer = self.is_answer(at);
            let begins_to_read = self.begins_to_read(at) || self.is_told(at);
            is_read = begins_to_read
                || (is_answer && self.is(at + 1, USER))
                || (is_read && !self.joins(at));
            if begins_to_read {
                (has_verb, first) = (true, self.words.len());
            } else if first > 0 && self.is(at, JOINS) {
                first = at + 1;
            }
            is_forbidden &= !self.is(at, RESUMES) || self.has_any_before(at, 1, &["and", "und"]);
            let is_beside = at.checked_sub(1).is_some_and(|it| {
                is_not(it) || (self.is(it, PRONOUNS) && it.checked_sub(1).is_some_and(is_not))
            });
            let is_needed = self.is_needed(at);
            let is_negated = is_forbidden
                || is_beside
                || said.is_some_and(|said| at > said)
                || (!is_needed && self.is_for_others(at));
            is_forbidden |= is_not(at) && self.is_far(at);
            let next = self.get(at + 1);
            if !is_negated && self.is_saved(at, is_read) {
                let is_report = self.is(at, REPORTS);
                asked.writes(self.get(at + 1 + usize::from(is_report)));
            }
            let is_none = next == "no" && !starts_with_digit(self.get(at + 2));
            if is_read || is_negated || is_answer || is_none || is_phrase(word, next) {
                continue;
            }
            if let Some(order) = orders.get_mut(at) {
                *order = true;
            }
            if self.is(at, USE) {
                let name = (at + 1..at + 3).find(|it| !self.is(*it, DETERMINERS));
                name.into_iter().for_each(|it| asked.uses(self.get(it)));
            }
            let (mut found, mut begin) = self.of_phrase(at, &orders);
            let is_noun = self
                .verbs(at, MAX_LIGHT_WORDS, &orders)
                .any(|it| self.is_light(it, word) && !(it..at).any(|it| self.is_any(it, &ABOUT)))
                // "Get the taxi receipt."
                && !(matches!(word.as_str(), "cab" | "taxi") && self.is_plain(at + 1));
            // "A refund for pi_7", "comment on PR 12".
            if (is_noun
                && (is_in(&ABOUT, next)
                    || is_in(&["de", "del", "du", "für", "para", "pour", "von"], next)))
                || (matches!(word.as_str(), "comment" | "freeze") && next == "on")
            {
                begin = at + 1;
            }
            if is_noun {
                found |= noun(word);
            }
            if is_noun || self.is_order(at) {
                found |= self.of_verb(at);
            }
            if is_needed {
                found |= named("create");
            }
            // "Front should be scaled": what looks like a new verb is no verb.
            if first == self.words.len() && !has_verb && self.has_any_before(at, 2, &BE) {
                first = 0;
            }
            if found != 0 {
                *last = self.add_objects(begin, first.min(begin), found, asked);
                // "Make Anna an editor of a.md": she is between the verb and what the order is read from.
                if let Some(order) = last.as_ref().filter(|_| is_noun || begin > at) {
                    let is_verb = |it: &usize| of_word(self.get(*it)) != 0;
                    let verb = (0..at.min(begin)).rev().find(is_verb).unwrap_or(0);
                    let between = verb..begin.max(at);
                    between.for_each(|it| asked.add_beside(order.number, self.get(it)));
                }
                (has_verb, first) = (true, self.words.len());
            } else if self.is_new(at) {
                let from = if self.begins(at) { at } else { first.min(at) };
                let order = self.add_objects(at, from, found, asked);
                if last.is_none() {
                    (*last, has_verb) = (order, true);
                }
                first = self.words.len();
            }
        }
        if !has_verb && let Some(order) = last {
            self.add_more(order, self.is_new(0), asked);
        }
    }

    /// Whether the user only says what is to be done after something that a person does: "only merge it after I approved it".
    fn waits_for_others(&self) -> bool {
        let has = |is: &dyn Fn(usize) -> bool| (0..self.words.len()).any(is);
        let waits = |at: usize| matches!(self.get(at), "after" | "if" | "once" | "when");
        has(&|at| self.get(at) == "only") && has(&|at| waits(at) && self.is(at + 1, SUBJECTS))
    }

    /// Whether a word is an order that the table does not know: the first one of a clause, or after "and" or "please".
    fn is_new(&self, at: usize) -> bool {
        let word = self.get(at);
        let others = BEGINS | DETERMINERS | JOINS | PREPOSITIONS | SUBJECTS | THESE;
        // "I need node-4 drained."
        let is_wanted = word.ends_with("ed") && self.is_participle(at);
        // "Node node-4 is slow", "password reset for jdoe".
        let is_noun = (at + 1..at + MAX_LIGHT_WORDS)
            .any(|it| self.is(it, IS) || matches!(self.get(it), "had" | "has" | "was" | "were"))
            || self.is_any(at + 1, &DEEDS);
        (is_wanted || (self.begins(at) && !is_noun))
            && (at == 0 || self.get(at - 1) != "to" || self.is_for_agent(at - 1))
            && word.len() >= MIN_VERB_BYTES
            && word.chars().all(char::is_alphabetic)
            && of_word(word) == 0
            && noun(word) == 0
            && !is_listed(others, word)
    }

    /// Whether a text is to be written to a file: "summarize a.md into b.md", "a summary in b.md".
    fn is_saved(&self, at: usize, is_read: bool) -> bool {
        let is_report = self.is(at, REPORTS) && at + 3 == self.words.len();
        let at = at + usize::from(is_report);
        let word = self.get(at);
        is_path(self.get(at + 1))
            && ((is_read && word == "into")
                || (is_report && matches!(word, "as" | "in" | "into" | "nach" | "to")))
    }

    /// The actions of a verb with its object. "Send Anna the invoice" does not pay it, and "give Bob an answer" gives nobody
    /// access.
    #[inline(never)]
    fn of_verb(&self, at: usize) -> Actions {
        let mut found = of_word(self.get(at));
        let is_thing = self.get(at) == "move" && !starts_with_digit(self.get(at + 1));
        if is_thing || (self.is(at, SENDS) && !self.has_money(at) && !self.is_to_account(at)) {
            found &= !named("pay");
        }
        if self.is_other(at) {
            return 0;
        }
        let entitles = self.get(at).starts_with(['a', 'l', 'p']);
        let gives = |it: usize| self.is(it, ACCESS) || (entitles && self.is(it, ENTITLED));
        if self.is(at, GIVES) && !(at + 1..=at + MAX_PHRASE_WORDS).any(gives) {
            found &= !(TABLE.grants | named("revoke"));
        }
        found
    }

    /// Whether an amount of money is the object of a verb: "send Anna 50 euros", but not "send a receipt for 50 euros".
    #[inline(never)]
    fn has_money(&self, at: usize) -> bool {
        let after = (at + 1..=at + MAX_MONEY_WORDS).take_while(|it| !self.is_any(*it, &ABOUT));
        (at.saturating_sub(MAX_MONEY_WORDS)..at).chain(after).any(|it| {
            self.is(it, MONEY) || self.get(it).contains(|letter: char| SIGNS.contains(letter))
        })
    }

    /// Whether a sentence asks the agent to do something.
    #[inline(never)]
    pub(super) fn is_polite(&self) -> bool {
        (0..self.words.len()).any(|at| {
            self.is(at, POLITE)
                || matches!(self.get(at), "vergeet" | "vergiss")
                || (self.is(at, MODALS) && self.is(at + 1, ASKED))
        })
    }

    /// Whether a clause before a colon is a label: "Transfer: 100 EUR". "Transfer this:" is an order.
    pub(super) fn is_label(&self) -> bool {
        self.words.len() < 3 && self.is(0, NOUN_OR_VERB) && !self.is(1, THESE)
    }

    /// Whether after a clause and its colon comes what is to be written: "write to Anna:", "add a reminder:".
    pub(super) fn tells(&self) -> bool {
        let all = || 0..self.words.len();
        let adds = |at: usize| of_word(self.get(at)) & (named("add") | named("create")) != 0;
        let is_later = all().any(|at| self.is(at, LATER));
        self.words.len() > 1
            && all().any(|at| {
                let tells = self.is(at, TELLS) && !self.is(at + 1, USER);
                self.begins(at) && (tells || (is_later && adds(at)))
            })
    }

    /// Whether a clause ends with its negation: "do not". "If not" does not forbid what follows.
    #[inline(never)]
    pub(super) fn is_left_open(&self) -> bool {
        let Some(last) = self.words.len().checked_sub(1) else { return false };
        matches!(self.get(last), "if" | "when" | "whether")
            || (self.negations().last() == Some(&true)
                && self.is_far(last)
                && !self.has_any_before(last, 2, &["if", "or", "why"]))
    }

    /// Whether an order can follow a word. `en` and `e` are also other words than "and", and "how to review and merge it"
    /// gives no order.
    #[inline(never)]
    fn joins(&self, at: usize) -> bool {
        let next = at + 1;
        let is_how = |it: usize| self.get(it) == "how" && self.get(it + 1) == "to";
        self.is(at, JOINS)
            && (!matches!(self.get(at), "e" | "en")
                || of_word(self.get(next)) != 0
                || self.is(next, JOINS))
            && !(at.saturating_sub(MAX_LIGHT_WORDS)..at).any(is_how)
    }

    /// Whether somebody else than the agent does what a verb says: "before I merge it", "Bob will merge it", "let Bob merge
    /// it".
    #[inline(never)]
    fn is_for_others(&self, at: usize) -> bool {
        let before = |count: usize| at.checked_sub(count).map_or("", |it| self.get(it));
        let word = self.get(at);
        // "I already paid".
        let last = before(1 + usize::from(is_listed(ALREADY, before(1))));
        let is_participle = word.ends_with('d') || is_listed(PARTICIPLES, word);
        let is_let = |count: usize| {
            matches!(before(count), "have" | "let")
                && !matches!(before(count - 1), "a" | "to" | "been")
                && !matches!(before(count + 1), "should")
                && last != "to"
        };
        is_listed(SUBJECTS, last)
            || (last.ends_with("'ll") && last != "you'll")
            // "Anna should get access" is for the agent to do.
            || (at > 1
                && !matches!(word, "get" | "have" | "point")
                && is_listed(AUXILIARIES, last)
                && !matches!(before(2), "in" | "please" | "you"))
            || (!is_participle && known(word) != 0 && (2..=4).any(is_let))
    }

    #[inline(never)]
    pub(super) fn get(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Whether a word is in one of some lists.
    #[inline(never)]
    pub(super) fn is(&self, at: usize, lists: List) -> bool {
        is_listed(lists, self.get(at))
    }

    /// Whether a word is one of a few, which are sorted.
    #[inline(never)]
    pub(super) fn is_any(&self, at: usize, few: &[&str]) -> bool {
        is_in(few, self.get(at))
    }

    /// Whether a word of some lists is one of the nearest before a word.
    #[inline(never)]
    pub(super) fn has_before(&self, at: usize, count: usize, lists: List) -> bool {
        (at.saturating_sub(count)..at).any(|it| self.is(it, lists))
    }

    /// The same for a few words.
    #[inline(never)]
    pub(super) fn has_any_before(&self, at: usize, count: usize, few: &[&str]) -> bool {
        (at.saturating_sub(count)..at).any(|it| self.is_any(it, few))
    }

    /// Whether an order can begin with a word.
    pub(super) fn begins(&self, at: usize) -> bool {
        at == 0 || self.is(at - 1, BEGINS | JOINS)
    }

    /// Whether a word begins a question, or an order that only reads.
    pub(super) fn begins_to_read(&self, at: usize) -> bool {
        let follows = |few: &[&str]| self.is_any(at + 1, few);
        match self.get(at) {
            _ if self.is(at, READING) => true,
            // "See that it is merged", "Open a trade".
            "see" if follows(&["that", "to"]) => false,
            "comment" if follows(&["on"]) => false,
            "guarda" if follows(&["el", "las", "los"]) => false,
            "open"
                if follows(&["a", "an"]) || (at + 1..at + 5).any(|it| self.is_any(it, &OPENED)) =>
            {
                false
            }
            "when" => at == 0 && self.is(at + 1, QUESTIONS),
            "do" => at == 0 && (follows(&["i", "they", "we"]) || self.is_any(at + 2, &["think"])),
            // "Could issue 5 be deleted, please?"
            _ if at == 0 && self.is(at, MODALS) => {
                let near = || 1..MAX_SAVED_WORDS;
                let is_polite = near().any(|it| self.is(it, POLITE));
                !(self.is(at + 1, ASKED) || (is_polite && near().any(|it| self.is_any(it, &BE))))
            }
            _ if self.is(at, QUESTIONS) => at == 0 || self.is(at - 1, JOINS),
            _ => self.begins(at) && self.is(at, LOOKS),
        }
    }

    /// Whether what follows is no order for the agent: "ask Bob to merge it", "a ticket to merge it", "tell Bob that".
    fn is_told(&self, at: usize) -> bool {
        let is_verb = of_word(self.get(at + 1)) != 0;
        let is_tried = || self.has_before(at, 2, TRIES) || self.has_before(at, 2, FORGET);
        match self.get(at) {
            "that" | "dass" | "daß" => {
                self.get(at + 1) != "you" && self.has_before(at, MAX_SAVED_WORDS, TELLS)
            }
            "to" => (is_verb || self.get(at + 1) == "be") && !self.is_for_agent(at),
            "zu" | "te" => is_verb && !self.is_polite,
            "de" | "que" => is_verb && !is_tried(),
            "soll" | "sollen" => self.has_any_before(at, 1, &["er", "sie"]),
            _ => false,
        }
    }

    /// Whether the user asks the agent with an infinitive: "I want to merge it", "PR 34 is ready to be merged".
    fn is_for_agent(&self, at: usize) -> bool {
        let is_be = self.get(at + 1) == "be" && self.has_before(at, MAX_SAVED_WORDS, TO_BE);
        // "My landlord would like me to pay", "I may have to cancel it".
        let is_wish = self.has_any_before(at, 1, &["me"]) && self.has_any_before(at, 2, &["like"]);
        if is_wish || self.has_any_before(at, 3, &["may", "might"]) {
            return false;
        }
        let reminds = || self.has_any_before(at, 3, &["remind", "reminds", "wants"]);
        at == 0
            || is_be
            || (self.has_before(at, 1, ASKS) && !reminds())
            || self.has_any_before(at, MAX_SAVED_WORDS, &["use", "using"])
    }

    /// Whether a word is a noun because of the one before it: "the request", "Anna's order".
    #[inline(never)]
    fn is_owned(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |it| self.get(it));
        is_listed(DETERMINERS, before)
            || (before.ends_with("'s") && !matches!(before, "let's" | "it's"))
    }

    /// Whether a verb only asks for an answer.
    fn is_answer(&self, at: usize) -> bool {
        let next = at + 1 + usize::from(self.is_any(at + 1, &["bitte", "please", "sie"]));
        let near =
            |count: usize, few: &[&str]| (at + 1..=at + count).any(|it| self.is_any(it, few));
        // "Make me a payment link."
        let is_new = self.is_any(at, &["make"]) && self.is_any(next + 1, &["a", "an"]);
        let is_user =
            (self.is(next, USER) && !is_new) || (at > 0 && self.is_any(at - 1, &["me", "mir"]));
        // "Write a summary of a.md to b.md" writes.
        let is_saved = || self.is_any(at, &["write"]) && near(MAX_SAVED_WORDS, &["into", "to"]);
        let has_report = || (at + 1..=at + MAX_LIGHT_WORDS).any(|it| self.is(it, REPORTS));
        let is_report = || has_report() && !is_saved();
        self.is(at, ANSWERS)
            && !near(MAX_LIGHT_WORDS, &["cab", "off", "taxi"])
            && (is_user || is_report())
    }

    /// Finds negations. "forget" is one; "don't forget" is not.
    #[inline(never)]
    fn negations(&self) -> Vec<bool> {
        let mut nots: Vec<bool> = (0..self.words.len()).map(|at| self.is_not(at)).collect();
        for at in (0..nots.len()).filter(|at| self.is(*at, FORGET)) {
            let near = at.saturating_sub(MAX_FORGET_WORDS)..=at + MAX_FORGET_WORDS;
            let not = near.into_iter().find(|it| nots.get(*it) == Some(&true));
            if let Some(it) = nots.get_mut(not.unwrap_or(at)) {
                *it = not.is_none();
            }
        }
        nots
    }

    #[inline(never)]
    fn is_not(&self, at: usize) -> bool {
        match self.get(at) {
            "nicht" | "niet" => !self.is_attribute(at + 1),
            word => {
                (is_listed(NOT_BEFORE | NOT_ANYWHERE, word) || is_in(&NOT_BESIDE, word))
                    || word.ends_with("n't")
            }
        }
    }

    /// Whether a negation holds for all words after it: "under no circumstances", "no PR should be merged".
    #[inline(never)]
    fn is_far(&self, at: usize) -> bool {
        !self.is_any(at, &NOT_BESIDE)
            || self.is(at + 1, NO_WAY)
            || (at == 0 && (0..self.words.len()).any(|it| self.is(it, AUXILIARIES)))
    }

    /// Whether a word is an adjective, as in "alle nicht bezahlten Rechnungen".
    fn is_attribute(&self, at: usize) -> bool {
        const ENDS: [&str; 6] = ["te", "ten", "tes", "ter", "ne", "nen"];
        let word = self.get(at);
        word.chars().count() > 6
            && at + 1 < self.words.len()
            && ENDS.iter().any(|end| word.ends_with(*end))
            && of_word(word) == 0
    }

    /// Whether a word gives an order in its form and place, if the table has it.
    fn is_order(&self, at: usize) -> bool {
        let (word, next) = (self.get(at), self.get(at + 1));
        let before = at.checked_sub(1).map_or("", |it| self.get(it));
        // "Ayuda a borrar", "aiutami a pagare".
        let is_infinitive = before == "a" && (word.ends_with('r') || word.ends_with("re"));
        // "Give it a restart."
        let is_given = is_in(&DEEDS, word)
            && matches!(before, "a" | "an")
            && (at.saturating_sub(MAX_PHRASE_WORDS)..at)
                .any(|it| self.get(it) == "put" || self.is(it, LIGHT) || self.is(it, GIVE));
        // "The password reset for jdoe failed."
        let is_deed =
            is_in(&DEEDS, word) && at.checked_sub(2).is_some_and(|it| self.get(it) == "the");
        if (self.is_owned(at) && !is_infinitive && !is_given)
            || is_deed
            || is_listed(RIGHTS_ONLY, word)
            || matches!(before, "called" | "named" | "titled")
            || (word == "able" && self.has_before(at, MAX_LIGHT_WORDS, I))
        {
            return false;
        }
        let is_known = base(word) != 0;
        if is_listed(NOUN_OR_VERB, word) {
            let is_named =
                starts_with_digit(next) && at + 2 == self.words.len() && is_in(&NUMBERED, word);
            return self.begins(at) && !(is_named && matches!(before, "and" | "or" | "to"));
        }
        if is_listed(PARTICIPLES, word) || (!is_known && word.ends_with('d')) {
            return self.is_participle(at);
        }
        // "Que tu fusionnes", "que borres".
        let is_wished = word.ends_with('s') && matches!(before, "que" | "tu");
        is_known || is_wished || (word.ends_with("ing") && (at == 0 || is_listed(DOING, before)))
    }
}
