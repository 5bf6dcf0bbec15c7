//! What the words between two punctuation marks ask for.

use super::super::search::is_in;
use super::table::{
    Actions, TABLE, container, destroyed, is_part, is_phrase, is_wide, named, noun, of_word,
};
use super::vocabulary::{
    ABOUT, ADDRESSES, ADDS, ANSWERS, ASKED, AUXILIARIES, BE, BEGINS, DELEGATES, DETERMINERS, DOING,
    FORGET, GIVE, GIVEN, HERE, I, JOINS, LIGHT, LOOKS, MODALS, MONEY, NO_WAY, NOT_ANYWHERE,
    NOT_BEFORE, NOT_BESIDE, NOUN_OR_VERB, NUMBERED, PARTICIPLES, POLITE, PREPOSITIONS, PRONOUNS,
    QUESTIONS, READING, RELATIVES, REPORTS, RESUMES, SENDS, SUBJECTS, TIMES, USE, USER, WANT,
    WANTS, WE,
};
use super::wide;

/// Words from a verb of `LIGHT` to its noun, from the verb of a phrase to its later word or of its object, from a negation
/// to `forget`, from `write` to where the text goes, and from `ask` to what somebody is asked to do.
const MAX_LIGHT_WORDS: usize = 4;
const MAX_PHRASE_WORDS: usize = 6;
const MAX_FORGET_WORDS: usize = 2;
const MAX_SAVED_WORDS: usize = 12;
const MAX_DELEGATED_WORDS: usize = 8;

/// Words from a verb such as `send` to an amount of money.
const MAX_MONEY_WORDS: usize = 5;

/// Tools that an instruction names.
const MAX_USED_TOOLS: usize = 16;

/// What a text asks for.
#[derive(Default)]
pub(super) struct Asked {
    pub actions: Actions,
    /// The things that have parts, and the actions that destroy them.
    pub things: Vec<(&'static str, Actions)>,
    /// The names of tools that the text says to use.
    pub tools: Vec<String>,
}

/// What a text asks for.
pub(super) fn of_text(text: &str) -> Asked {
    let (mut asked, mut words) = (Asked::default(), Vec::new());
    // Whether the clause comes after a comma, and whether the words before it forbid it: "do not, please, merge it".
    let (mut follows, mut is_forbidden) = (false, false);
    for line in text.lines() {
        for token in line.split(|letter: char| letter.is_whitespace() || BREAKS.contains(letter)) {
            let is_edge = |letter: char| !letter.is_alphanumeric() && !SIGNS.contains(letter);
            let word = token.trim_matches(is_edge);
            if !word.is_empty() {
                let is_apostrophe = |letter: char| APOSTROPHES.contains(letter);
                let word = word.to_lowercase().replace(is_apostrophe, "'");
                words.push(word.strip_prefix("squash-").unwrap_or(&word).to_owned());
            }
            if token.ends_with(['.', ',', ';', ':', '!', '?']) {
                let clause = Clause { words: &words, follows, asks: token.ends_with('?') };
                if !is_forbidden {
                    clause.add_to(&mut asked);
                }
                is_forbidden =
                    (is_forbidden || clause.is_left_open()) && token.ends_with([',', ':']);
                follows = token.ends_with(',');
                words.clear();
            }
        }
        if !words.is_empty() {
            let clause = Clause { words: &words, follows, asks: false };
            if !is_forbidden {
                clause.add_to(&mut asked);
            }
            (is_forbidden, follows) = (clause.is_left_open(), false);
            words.clear();
        }
    }
    if text.chars().any(is_wide) {
        asked.actions |= wide::asked(text);
    }
    asked
}

/// Signs that people use for an apostrophe.
const APOSTROPHES: &str = "`´‘’‛ʼ′＇";

/// Signs of currencies.
const SIGNS: &str = "$£¥€";

/// What separates words, beside spaces.
const BREAKS: &str = "—–…“”„«»\"()[]{}<>|";

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The words between two punctuation marks.
struct Clause<'a> {
    words: &'a [String],
    /// Whether it comes after a comma.
    follows: bool,
    /// Whether it ends with a question mark.
    asks: bool,
}

impl Clause<'_> {
    #[inline(never)]
    fn add_to(&self, asked: &mut Asked) {
        let nots = self.negations();
        let is_not = |at: usize| nots.get(at) == Some(&true);
        if (self.asks && !self.is_polite())
            || (0..self.words.len()).any(|at| is_not(at) && self.is(at, &NOT_ANYWHERE))
        {
            return;
        }
        // "PR 34, den ich mergen soll".
        let mut is_read = self.follows && self.is(0, &RELATIVES);
        let (mut is_forbidden, mut orders) = (false, vec![false; self.words.len()]);
        for (at, word) in self.words.iter().enumerate() {
            let is_answer = self.is_answer(at);
            is_read = self.begins_to_read(at)
                || self.is_delegated(at)
                || (is_answer && self.is(at + 1, &USER))
                || (is_read && !self.joins(at));
            is_forbidden &= !self.is(at, &RESUMES) || self.has_before(at, 1, &["and", "und"]);
            let is_beside = at.checked_sub(1).is_some_and(|it| {
                is_not(it) || (self.is(it, &PRONOUNS) && it.checked_sub(1).is_some_and(is_not))
            });
            let is_negated = is_forbidden || is_beside || self.is_for_others(at);
            is_forbidden |= is_not(at) && self.is_far(at);
            let next = self.get(at + 1);
            // "Summarize a.md into b.md" writes.
            if is_read && !is_negated && word == "into" && next.contains(['.', '/']) {
                asked.actions |= named("overwrite");
            }
            let is_none = next == "no" && !starts_with_digit(self.get(at + 2));
            if is_read || is_negated || is_answer || is_none || is_phrase(word, next) {
                continue;
            }
            if let Some(order) = orders.get_mut(at) {
                *order = true;
            }
            if self.is(at, &USE) && asked.tools.len() < MAX_USED_TOOLS {
                let name = (at + 1..at + 3).find(|it| !self.is(*it, &DETERMINERS));
                asked.tools.extend(name.map(|it| self.get(it).to_owned()));
            }
            let verbs = |count: usize| {
                // "Get back to me" gives nothing back.
                let end = at.saturating_sub(usize::from(
                    word == "back" && !self.has_before(at, 1, &["roll"]),
                ));
                let orders = &orders;
                (at.saturating_sub(count)..end).filter(|it| orders.get(*it) == Some(&true))
            };
            let mut found = 0;
            for (starts, action) in TABLE.phrases.get(word.as_str()).into_iter().flatten() {
                let starts = |it| starts.split_whitespace().any(|start| start == self.get(it));
                if verbs(MAX_PHRASE_WORDS).any(starts) {
                    found |= of_word(action);
                }
            }
            let is_noun = verbs(MAX_LIGHT_WORDS)
                .any(|it| self.is_light(it, word) && !(it..at).any(|it| self.is(it, &ABOUT)));
            if is_noun {
                found |= noun(word);
            }
            if is_noun || self.is_order(at) {
                found |= self.of_verb(at);
            }
            asked.actions |= found;
            if let Some(actions) = destroyed(word, found) {
                self.add_things(at, actions, &mut asked.things);
            }
        }
    }

    /// The actions of a verb with its object. "Send Anna the invoice" does not pay it, and "add a comment for Bob" gives
    /// nobody access.
    #[inline(never)]
    fn of_verb(&self, at: usize) -> Actions {
        let mut found = of_word(self.get(at));
        if self.is(at, &SENDS) && !self.has_money(at) {
            found &= !named("pay");
        }
        let is_other = |it: usize| is_part(self.get(it)) && !self.get(it).starts_with("file");
        if self.is(at, &ADDS) && self.objects(at).any(is_other) {
            found &= !(named("invite") | named("share") | named("revoke"));
        }
        found
    }

    /// The words after a verb, up to what tells where its object is.
    fn objects(&self, at: usize) -> impl Iterator<Item = usize> {
        let first = at + 1 + usize::from(self.get(at + 1) == "of");
        let last = self.words.len().min(first + MAX_PHRASE_WORDS);
        (first..last).take_while(|it| {
            !(self.is(*it, &PREPOSITIONS) || self.is(*it, &JOINS) || self.get(*it) == "du")
        })
    }

    /// Adds the things that a verb destroys: the repository of "delete the repository acme/shop", but not the one of "delete
    /// the branch of the repository acme/shop". The object is before a verb at the end.
    #[inline(never)]
    fn add_things(&self, at: usize, actions: Actions, things: &mut Vec<(&'static str, Actions)>) {
        let is_end = self.objects(at).next().is_none();
        let first = if is_end { at.saturating_sub(MAX_LIGHT_WORDS) } else { at };
        let before = (first..at).filter(|it| {
            let is_elsewhere = |it: usize| self.is(it, &PREPOSITIONS) || self.is(it, &JOINS);
            !(it.saturating_sub(2)..at).any(is_elsewhere)
        });
        let is_whole = |it: &usize| !is_part(self.get(*it));
        for it in before.chain(self.objects(at).take_while(is_whole)) {
            let Some(thing) = container(self.get(it)).filter(|_| is_whole(&(it + 1))) else {
                continue;
            };
            match things.iter_mut().find(|(known, _)| *known == thing) {
                Some((_, known)) => *known |= actions,
                None => things.push((thing, actions)),
            }
        }
    }

    /// Whether an amount of money is near a verb.
    #[inline(never)]
    fn has_money(&self, at: usize) -> bool {
        (at.saturating_sub(MAX_MONEY_WORDS)..=at + MAX_MONEY_WORDS).any(|it| {
            self.is(it, &MONEY) || self.get(it).contains(|letter: char| SIGNS.contains(letter))
        })
    }

    /// Whether a question asks the agent to do something.
    #[inline(never)]
    fn is_polite(&self) -> bool {
        (0..self.words.len())
            .any(|at| self.is(at, &POLITE) || (self.is(at, &MODALS) && self.is(at + 1, &ASKED)))
    }

    /// Whether a clause ends with its negation: "do not". "If not" does not forbid what follows.
    #[inline(never)]
    fn is_left_open(&self) -> bool {
        let Some(last) = self.words.len().checked_sub(1) else { return false };
        self.negations().last() == Some(&true)
            && self.is_far(last)
            && !self.has_before(last, 2, &["if", "or", "why"])
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
        let (word, last) = (self.get(at), before(1));
        let is_participle = word.ends_with('d') || is_in(&PARTICIPLES, word);
        let is_let = |count: usize| {
            matches!(before(count), "have" | "let")
                && !matches!(before(count - 1), "a" | "to" | "been")
                && last != "to"
        };
        is_in(&SUBJECTS, last)
            || (last.ends_with("'ll") && last != "you'll")
            // "Anna should get access" is for the agent to do.
            || (at > 1
                && word != "get"
                && is_in(&AUXILIARIES, last)
                && !matches!(before(2), "in" | "please" | "you"))
            || (!is_participle && TABLE.words.contains_key(word) && (2..=4).any(is_let))
    }

    #[inline(never)]
    fn get(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }

    /// Whether a word is in a sorted list.
    #[inline(never)]
    fn is(&self, at: usize, list: &[&str]) -> bool {
        is_in(list, self.get(at))
    }

    /// Whether a word of a list is one of the nearest before a word.
    #[inline(never)]
    fn has_before(&self, at: usize, count: usize, list: &[&str]) -> bool {
        (at.saturating_sub(count)..at).any(|it| self.is(it, list))
    }

    /// Whether an order can begin with a word.
    fn begins(&self, at: usize) -> bool {
        at == 0 || self.is(at - 1, &BEGINS) || self.is(at - 1, &JOINS)
    }

    /// Whether a word begins a question, or an order that only reads.
    fn begins_to_read(&self, at: usize) -> bool {
        let follows = |list: &[&str]| self.is(at + 1, list);
        match self.get(at) {
            _ if self.is(at, &READING) => true,
            // "See that it is merged", "Open a trade".
            "see" if follows(&["that", "to"]) => false,
            "open" if follows(&["a", "an"]) => false,
            "when" => at == 0 && follows(&QUESTIONS),
            "do" => at == 0 && (follows(&["i", "they", "we"]) || self.is(at + 2, &["think"])),
            _ if at == 0 && self.is(at, &MODALS) => !follows(&ASKED),
            _ if self.is(at, &QUESTIONS) => at == 0 || self.is(at - 1, &JOINS),
            _ => self.begins(at) && self.is(at, &LOOKS),
        }
    }

    /// Whether what follows is for somebody else to do: "ask Bob to merge it".
    fn is_delegated(&self, at: usize) -> bool {
        // "The customer asked to cancel it" names nobody else.
        let is_for_agent = |it: usize| match self.get(it) {
            "asked" | "told" if it + 1 == at => true,
            delegate => self.is(it + 1, &HERE) && !matches!(delegate, "remind" | "wants"),
        };
        let joins = |it: usize| (it..at).any(|between| self.is(between, &JOINS));
        let is_to = self.get(at) == "to";
        let is_addressed = |it: usize| {
            let is_told = is_to || of_word(self.get(it)) & named("send") != 0;
            self.is(it, &ADDRESSES)
                && is_told
                && it + 1 < at
                && !matches!(self.get(at + 1), "be" | "get")
        };
        let is_delegate = |it: usize| {
            (self.is(it, &DELEGATES) || is_addressed(it))
                && !(self.is_owned(it) || is_for_agent(it))
                && (it + MAX_LIGHT_WORDS >= at || !joins(it))
        };
        // "I am going to need it merged", "it is ready to be merged".
        let is_wanted = || {
            (self.has_before(at, 3, &WE) && self.is(at + 1, &["have", "like", "need", "want"]))
                || (self.has_before(at, 1, &["ready"]) && self.get(at + 1) == "be")
        };
        match self.get(at) {
            "that" | "to" if self.get(at + 1) == "you" => false,
            "to" | "with" if self.has_before(at, 1, &WANTS) => !is_wanted(),
            "that" | "to" => (at.saturating_sub(MAX_DELEGATED_WORDS)..at).any(is_delegate),
            _ => false,
        }
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
        let is_user = self.is(next, &USER) || (at > 0 && self.is(at - 1, &["me", "mir"]));
        // "Write a summary of a.md to b.md" writes.
        let is_saved = || self.is(at, &["write"]) && near(MAX_SAVED_WORDS, &["into", "to"]);
        let is_report = || near(MAX_LIGHT_WORDS, &REPORTS) && !is_saved();
        self.is(at, &ANSWERS) && (is_user || is_report())
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
                [&NOT_BEFORE[..], &NOT_BESIDE, &NOT_ANYWHERE].iter().any(|it| is_in(it, word))
                    || word.ends_with("n't")
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
            "get" if !self.has_before(at, 1, &["can", "must", "should"]) => noun == "back",
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
        if (self.is_owned(at) && !is_infinitive)
            || (word == "able" && self.has_before(at, MAX_LIGHT_WORDS, &I))
        {
            return false;
        }
        let is_known = TABLE.words.contains_key(word);
        if is_in(&NOUN_OR_VERB, word) {
            let is_named =
                starts_with_digit(next) && at + 2 == self.words.len() && is_in(&NUMBERED, word);
            return self.begins(at) && !(is_named && matches!(before, "and" | "or" | "to"));
        }
        if is_in(&PARTICIPLES, word) || (!is_known && word.ends_with('d')) {
            let is_end = next.is_empty() || is_in(&TIMES, next);
            return self.has_before(at, 2, &BE)
                || (is_end && self.has_before(at, MAX_LIGHT_WORDS, &WANT));
        }
        is_known || (word.ends_with("ing") && (at == 0 || is_in(&DOING, before)))
    }
}
