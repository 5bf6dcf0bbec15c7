//! What the words between two punctuation marks ask for.

use super::super::search::is_in;
use super::table::{Actions, TABLE, base, is_phrase, named, noun, of_word};
use super::vocabulary::{
    ABOUT, ACCESS, ANSWERS, ASKED, ASKS, AUXILIARIES, BE, BEGINS, DEEDS, DETERMINERS, DOING,
    ENTITLED, FORGET, GIVE, GIVEN, GIVES, I, JOINS, LATER, LIGHT, LOOKS, MODALS, MONEY, NO_WAY,
    NOT_ANYWHERE, NOT_BEFORE, NOT_BESIDE, NOUN_OR_VERB, NUMBERED, OPENED, PARTICIPLES, POLITE,
    PREPOSITIONS, PRONOUNS, QUESTIONS, READING, RELATIVES, REPORTS, RESUMES, RIGHTS_ONLY, SENDS,
    SUBJECTS, TELLS, THESE, TIMES, TO_BE, TRIES, USE, USER, WANT,
};
use super::words::{Asked, Order, SIGNS, is_in_any, is_path, is_value};

/// Words from a verb of `LIGHT` to its noun, from the verb of a phrase to its later word or to a word of access, from a
/// negation to `forget`, and from `write` or `tell` to where the text goes or what it is.
const MAX_LIGHT_WORDS: usize = 4;
pub(super) const MAX_PHRASE_WORDS: usize = 8;
const MAX_FORGET_WORDS: usize = 2;
pub(super) const MAX_SAVED_WORDS: usize = 12;

/// Verbs after which comes what somebody else wants or thinks.
pub(super) const SAYS: [&str; 10] =
    ["asks", "claims", "dice", "dit", "meint", "sagt", "said", "says", "thinks", "wants"];
pub(super) const ALREADY: [&str; 5] = ["already", "bereits", "déjà", "schon", "ya"];

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
        let said = (1..self.words.len()).find(|at| self.is(*at, &SAYS) && self.get(at - 1) != "i");
        let nots = self.negations();
        let is_not = |at: usize| nots.get(at) == Some(&true);
        if (0..self.words.len()).any(|at| is_not(at) && self.is(at, &NOT_ANYWHERE))
            || self.waits_for_others()
        {
            return;
        }
        // "PR 34, den ich mergen soll".
        let mut is_read = self.follows && self.is(0, &RELATIVES);
        let (mut is_forbidden, mut orders) = (false, vec![false; self.words.len()]);
        // Where the words before an order begin that are not for another verb.
        let (mut has_verb, mut first) = (false, 0);
        for (at, word) in self.words.iter().enumerate() {
            let is_answer = self.is_answer(at);
            let begins_to_read = self.begins_to_read(at) || self.is_told(at);
            is_read = begins_to_read
                || (is_answer && self.is(at + 1, &USER))
                || (is_read && !self.joins(at));
            if begins_to_read {
                (has_verb, first) = (true, self.words.len());
            } else if first > 0 && self.is(at, &JOINS) {
                first = at + 1;
            }
            is_forbidden &= !self.is(at, &RESUMES) || self.has_before(at, 1, &["and", "und"]);
            let is_beside = at.checked_sub(1).is_some_and(|it| {
                is_not(it) || (self.is(it, &PRONOUNS) && it.checked_sub(1).is_some_and(is_not))
            });
            let is_needed = self.is_needed(at);
            let is_negated = is_forbidden
                || is_beside
                || said.is_some_and(|said| at > said)
                || (!is_needed && self.is_for_others(at));
            is_forbidden |= is_not(at) && self.is_far(at);
            let next = self.get(at + 1);
            if !is_negated && self.is_saved(at, is_read) {
                let is_report = self.is(at, &REPORTS);
                asked.writes(self.get(at + 1 + usize::from(is_report)));
            }
            let is_none = next == "no" && !starts_with_digit(self.get(at + 2));
            if is_read || is_negated || is_answer || is_none || is_phrase(word, next) {
                continue;
            }
            if let Some(order) = orders.get_mut(at) {
                *order = true;
            }
            if self.is(at, &USE) {
                let name = (at + 1..at + 3).find(|it| !self.is(*it, &DETERMINERS));
                name.into_iter().for_each(|it| asked.uses(self.get(it)));
            }
            let (mut found, mut begin) = self.of_phrase(at, &orders);
            let is_noun = self
                .verbs(at, MAX_LIGHT_WORDS, &orders)
                .any(|it| self.is_light(it, word) && !(it..at).any(|it| self.is(it, &ABOUT)))
                // "Get the taxi receipt."
                && !(matches!(word.as_str(), "cab" | "taxi") && self.is_plain(at + 1));
            // "A refund for pi_7", "comment on PR 12".
            if (is_noun
                && is_in_any(&[&ABOUT, &["de", "del", "du", "für", "para", "pour", "von"]], next))
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
            if first == self.words.len() && !has_verb && self.has_before(at, 2, &BE) {
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
                let order = self.add_objects(at, at, found, asked);
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
        has(&|at| self.get(at) == "only") && has(&|at| waits(at) && self.is(at + 1, &SUBJECTS))
    }

    /// Whether a word is an order that the table does not know: the first one of a clause, or after "and" or "please".
    fn is_new(&self, at: usize) -> bool {
        let word = self.get(at);
        let others: [&[&str]; 6] =
            [&BEGINS, &DETERMINERS, &JOINS, &PREPOSITIONS, &SUBJECTS, &THESE];
        self.begins(at)
            && (at == 0 || self.get(at - 1) != "to" || self.is_for_agent(at - 1))
            && word.len() >= MIN_VERB_BYTES
            && word.chars().all(char::is_alphabetic)
            && of_word(word) == 0
            && noun(word) == 0
            && !is_in_any(&others, word)
    }

    /// Whether a text is to be written to a file: "summarize a.md into b.md", "a summary in b.md".
    fn is_saved(&self, at: usize, is_read: bool) -> bool {
        let is_report = self.is(at, &REPORTS) && at + 3 == self.words.len();
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
        if is_thing || (self.is(at, &SENDS) && !self.has_money(at)) {
            found &= !named("pay");
        }
        if self.is_other(at) {
            return 0;
        }
        let entitles = self.get(at).starts_with(['a', 'l', 'p']);
        let gives = |it: usize| self.is(it, &ACCESS) || (entitles && self.is(it, &ENTITLED));
        if self.is(at, &GIVES) && !(at + 1..=at + MAX_PHRASE_WORDS).any(gives) {
            found &= !(TABLE.grants | named("revoke"));
        }
        found
    }

    /// Whether an amount of money is the object of a verb: "send Anna 50 euros", but not "send a receipt for 50 euros".
    #[inline(never)]
    fn has_money(&self, at: usize) -> bool {
        let after = (at + 1..=at + MAX_MONEY_WORDS).take_while(|it| !self.is(*it, &ABOUT));
        (at.saturating_sub(MAX_MONEY_WORDS)..at).chain(after).any(|it| {
            self.is(it, &MONEY) || self.get(it).contains(|letter: char| SIGNS.contains(letter))
        })
    }

    /// Whether a sentence asks the agent to do something.
    #[inline(never)]
    pub(super) fn is_polite(&self) -> bool {
        (0..self.words.len()).any(|at| {
            self.is(at, &POLITE)
                || matches!(self.get(at), "vergeet" | "vergiss")
                || (self.is(at, &MODALS) && self.is(at + 1, &ASKED))
        })
    }

    /// Whether a clause before a colon is a label: "Transfer: 100 EUR". "Transfer this:" is an order.
    pub(super) fn is_label(&self) -> bool {
        self.words.len() < 3 && self.is(0, &NOUN_OR_VERB) && !self.is(1, &THESE)
    }

    /// Whether after a clause and its colon comes what is to be written: "write to Anna:", "add a reminder:".
    pub(super) fn tells(&self) -> bool {
        let all = || 0..self.words.len();
        let adds = |at: usize| of_word(self.get(at)) & (named("add") | named("create")) != 0;
        let is_later = all().any(|at| self.is(at, &LATER));
        self.words.len() > 1
            && all().any(|at| {
                let tells = self.is(at, &TELLS) && !self.is(at + 1, &USER);
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
                && !self.has_before(last, 2, &["if", "or", "why"]))
    }

    /// Whether an order can follow a word. `en` and `e` are also other words than "and", and "how to review and merge it"
    /// gives no order.
    #[inline(never)]
    fn joins(&self, at: usize) -> bool {
        let next = at + 1;
        let is_how = |it: usize| self.get(it) == "how" && self.get(it + 1) == "to";
        self.is(at, &JOINS)
            && (!matches!(self.get(at), "e" | "en")
                || of_word(self.get(next)) != 0
                || self.is(next, &JOINS))
            && !(at.saturating_sub(MAX_LIGHT_WORDS)..at).any(is_how)
    }

    /// Whether somebody else than the agent does what a verb says: "before I merge it", "Bob will merge it", "let Bob merge
    /// it".
    #[inline(never)]
    fn is_for_others(&self, at: usize) -> bool {
        let before = |count: usize| at.checked_sub(count).map_or("", |it| self.get(it));
        let word = self.get(at);
        // "I already paid".
        let last = before(1 + usize::from(is_in(&ALREADY, before(1))));
        let is_participle = word.ends_with('d') || is_in(&PARTICIPLES, word);
        let is_let = |count: usize| {
            matches!(before(count), "have" | "let")
                && !matches!(before(count - 1), "a" | "to" | "been")
                && !matches!(before(count + 1), "should")
                && last != "to"
        };
        is_in(&SUBJECTS, last)
            || (last.ends_with("'ll") && last != "you'll")
            // "Anna should get access" is for the agent to do.
            || (at > 1
                && !matches!(word, "get" | "have" | "point")
                && is_in(&AUXILIARIES, last)
                && !matches!(before(2), "in" | "please" | "you"))
            || (!is_participle && TABLE.words.contains_key(word) && (2..=4).any(is_let))
    }

    #[inline(never)]
    pub(super) fn get(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Whether a word is in a sorted list.
    #[inline(never)]
    pub(super) fn is(&self, at: usize, list: &[&str]) -> bool {
        is_in(list, self.get(at))
    }

    /// Whether a word of a list is one of the nearest before a word.
    #[inline(never)]
    pub(super) fn has_before(&self, at: usize, count: usize, list: &[&str]) -> bool {
        (at.saturating_sub(count)..at).any(|it| self.is(it, list))
    }

    /// Whether an order can begin with a word.
    fn begins(&self, at: usize) -> bool {
        at == 0 || self.is(at - 1, &BEGINS) || self.is(at - 1, &JOINS)
    }

    /// Whether a word begins a question, or an order that only reads.
    pub(super) fn begins_to_read(&self, at: usize) -> bool {
        let follows = |list: &[&str]| self.is(at + 1, list);
        match self.get(at) {
            _ if self.is(at, &READING) => true,
            // "See that it is merged", "Open a trade".
            "see" if follows(&["that", "to"]) => false,
            "comment" if follows(&["on"]) => false,
            "guarda" if follows(&["el", "las", "los"]) => false,
            "open" if follows(&["a", "an"]) || (at + 1..at + 5).any(|it| self.is(it, &OPENED)) => {
                false
            }
            "when" => at == 0 && follows(&QUESTIONS),
            "do" => at == 0 && (follows(&["i", "they", "we"]) || self.is(at + 2, &["think"])),
            // "Could issue 5 be deleted, please?"
            _ if at == 0 && self.is(at, &MODALS) => {
                let near = |list: &[&str]| (1..MAX_SAVED_WORDS).any(|it| self.is(it, list));
                !(follows(&ASKED) || (near(&BE) && near(&POLITE)))
            }
            _ if self.is(at, &QUESTIONS) => at == 0 || self.is(at - 1, &JOINS),
            _ => self.begins(at) && self.is(at, &LOOKS),
        }
    }

    /// Whether what follows is no order for the agent: "ask Bob to merge it", "a ticket to merge it", "tell Bob that".
    fn is_told(&self, at: usize) -> bool {
        let is_verb = of_word(self.get(at + 1)) != 0;
        let is_tried = || self.has_before(at, 2, &TRIES) || self.has_before(at, 2, &FORGET);
        match self.get(at) {
            "that" | "dass" | "daß" => {
                self.get(at + 1) != "you" && self.has_before(at, MAX_SAVED_WORDS, &TELLS)
            }
            "to" => (is_verb || self.get(at + 1) == "be") && !self.is_for_agent(at),
            "zu" | "te" => is_verb && !self.is_polite,
            "de" | "que" => is_verb && !is_tried(),
            "soll" | "sollen" => self.has_before(at, 1, &["er", "sie"]),
            _ => false,
        }
    }

    /// Whether the user asks the agent with an infinitive: "I want to merge it", "PR 34 is ready to be merged".
    fn is_for_agent(&self, at: usize) -> bool {
        let is_be = self.get(at + 1) == "be" && self.has_before(at, MAX_SAVED_WORDS, &TO_BE);
        // "My landlord would like me to pay", "I may have to cancel it".
        let is_wish = self.has_before(at, 1, &["me"]) && self.has_before(at, 2, &["like"]);
        if is_wish || self.has_before(at, 3, &["may", "might"]) {
            return false;
        }
        let reminds = || self.has_before(at, 3, &["remind", "reminds", "wants"]);
        at == 0
            || is_be
            || (self.has_before(at, 1, &ASKS) && !reminds())
            || self.has_before(at, MAX_SAVED_WORDS, &["use", "using"])
    }

    /// Whether a word is a noun because of the one before it: "the request", "Anna's order".
    #[inline(never)]
    fn is_owned(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map_or("", |it| self.get(it));
        is_in(&DETERMINERS, before)
            || (before.ends_with("'s") && !matches!(before, "let's" | "it's"))
    }

    /// Whether a verb only asks for an answer.
    fn is_answer(&self, at: usize) -> bool {
        let next = at + 1 + usize::from(self.is(at + 1, &["bitte", "please", "sie"]));
        let near = |count: usize, list: &[&str]| (at + 1..=at + count).any(|it| self.is(it, list));
        // "Make me a payment link."
        let is_new = self.is(at, &["make"]) && self.is(next + 1, &["a", "an"]);
        let is_user =
            (self.is(next, &USER) && !is_new) || (at > 0 && self.is(at - 1, &["me", "mir"]));
        // "Write a summary of a.md to b.md" writes.
        let is_saved = || self.is(at, &["write"]) && near(MAX_SAVED_WORDS, &["into", "to"]);
        let is_report = || near(MAX_LIGHT_WORDS, &REPORTS) && !is_saved();
        self.is(at, &ANSWERS)
            && !near(MAX_LIGHT_WORDS, &["cab", "off", "taxi"])
            && (is_user || is_report())
    }

    /// Finds negations. "forget" is one; "don't forget" is not.
    #[inline(never)]
    fn negations(&self) -> Vec<bool> {
        let mut nots: Vec<bool> = (0..self.words.len()).map(|at| self.is_not(at)).collect();
        for at in (0..nots.len()).filter(|at| self.is(*at, &FORGET)) {
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
                is_in_any(&[&NOT_BEFORE, &NOT_BESIDE, &NOT_ANYWHERE], word) || word.ends_with("n't")
            }
        }
    }

    /// Whether a negation holds for all words after it: "under no circumstances", "no PR should be merged".
    #[inline(never)]
    fn is_far(&self, at: usize) -> bool {
        !self.is(at, &NOT_BESIDE)
            || self.is(at + 1, &NO_WAY)
            || (at == 0 && (0..self.words.len()).any(|it| self.is(it, &AUXILIARIES)))
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

    fn is_light(&self, at: usize, noun: &str) -> bool {
        let noun = noun.strip_suffix('s').filter(|it| *it != "acces").unwrap_or(noun);
        match self.get(at) {
            "get" if !self.has_before(at, 1, &["can", "must", "should"]) => {
                matches!(noun, "back" | "cab" | "taxi")
            }
            "file" | "open" | "raise" => noun == "dispute",
            "call" => matches!(noun, "cab" | "taxi"),
            "have" => {
                let is_past = self.get(at + 1).ends_with('t') || self.get(at + 1).ends_with("ed");
                self.has_before(at, 1, &["should"]) && !is_past && is_in(&GIVEN, noun)
            }
            "issue" => self.begins(at),
            "process" => noun == "refund",
            _ if self.is(at, &GIVE) => is_in(&GIVEN, noun),
            _ => self.is(at, &LIGHT),
        }
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
                .any(|it| self.get(it) == "put" || self.is(it, &LIGHT) || self.is(it, &GIVE));
        if (self.is_owned(at) && !is_infinitive && !is_given)
            || is_in(&RIGHTS_ONLY, word)
            || matches!(before, "called" | "named" | "titled")
            || (word == "able" && self.has_before(at, MAX_LIGHT_WORDS, &I))
        {
            return false;
        }
        let is_known = base(word) != 0;
        if is_in(&NOUN_OR_VERB, word) {
            let is_named =
                starts_with_digit(next) && at + 2 == self.words.len() && is_in(&NUMBERED, word);
            return self.begins(at) && !(is_named && matches!(before, "and" | "or" | "to"));
        }
        if is_in(&PARTICIPLES, word) || (!is_known && word.ends_with('d')) {
            let is_end = next.is_empty() || is_in(&TIMES, next);
            // "Get PR 218 in acme/shop merged", but not "get a list of PRs merged in May".
            let is_wide = (is_value(before) || is_in(&THESE, before))
                && (is_end || is_in_any(&[&JOINS, &PREPOSITIONS], next))
                && !self.has_before(at, MAX_SAVED_WORDS, &ABOUT);
            // "Make sure that Anna is invited."
            let is_ensured = self.has_before(at, 1, &["are", "is"])
                && self.has_before(at, MAX_SAVED_WORDS, &["ensure", "sure"]);
            return self.has_before(at, 2, &BE)
                || is_ensured
                // "PR 34 soll gemergt werden."
                || (next == "werden"
                    && self.has_before(at, MAX_SAVED_WORDS, &["bitte", "muss", "soll", "sollen", "sollte"]))
                || (is_end && self.has_before(at, MAX_LIGHT_WORDS, &WANT))
                || (is_wide && self.has_before(at, MAX_SAVED_WORDS, &["get", "need", "want"]));
        }
        // "Que tu fusionnes", "que borres".
        let is_wished = word.ends_with('s') && matches!(before, "que" | "tu");
        is_known || is_wished || (word.ends_with("ing") && (at == 0 || is_in(&DOING, before)))
    }
}
