//! What an instruction asks for: the actions that its words name, and whether a tool does one of them.
//!
//! Of the user's words, an injected text can choose another action: "look at pull request 34" names the pull request,
//! and the text says to merge it. So a tool that destroys, spends or grants needs a word of the instruction for what it
//! does.
//!
//! INVARIANT (words, not sentences): this is a table of words, and rules on the words beside one: negations, questions,
//! what is read only, and nouns. It knows no other grammar. A word that is missing in the table makes a call wait. A word
//! in the instruction with another meaning lets it pass.

#[cfg(test)]
mod tests;
mod vocabulary;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::key::ValueKey;
use super::normal::Form;
use super::search::{is_in, split_once};
use vocabulary::{
    ABOUT, ACTIONS, ANSWERS, ASKED, BE, BEGINS, DELEGATES, DETERMINERS, DOING, ENDS, FORGET, GIVE,
    GIVEN, HERE, I, JOINS, LIGHT, LOOKS, MEMBERS, MODALS, NOT_ANYWHERE, NOT_BEFORE, NOT_BESIDE,
    NOUN_OR_VERB, NOUNS, NUMBERED, OTHERS, PARTICIPLES, PHRASES, PIPELINES, PRONOUNS, QUESTIONS,
    READING, REPORTS, RIGHTS, THINGS, TIMES, USE, USER, WANT, WANTS, WE, WEAK,
};

/// Words from a verb of `LIGHT` to its noun, from the verb of a phrase to its later word, from a negation to its verb and to
/// `forget`, from `write` to where the text goes, and from `ask` to what somebody is asked to do.
const MAX_LIGHT_WORDS: usize = 4;
const MAX_PHRASE_WORDS: usize = 6;
const MAX_NOT_WORDS: usize = 3;
const MAX_FORGET_WORDS: usize = 2;
const MAX_SAVED_WORDS: usize = 12;
const MAX_DELEGATED_WORDS: usize = 8;

/// Tools that an instruction names.
const MAX_USED_TOOLS: usize = 16;

/// Actions as bits.
type Actions = u64;
const _: () = assert!(ACTIONS.len() <= Actions::BITS as usize, "each action has a bit");

struct Table {
    words: HashMap<&'static str, Actions>,
    /// Words of languages without spaces.
    inner: Vec<(&'static str, Actions)>,
    /// The verbs and the action of each phrase, by its later word.
    phrases: HashMap<&'static str, Vec<(&'static str, &'static str)>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table { words: HashMap::new(), inner: Vec::new(), phrases: HashMap::new() };
    for (at, (_, words)) in ACTIONS.iter().enumerate() {
        for word in words.split_whitespace() {
            if word.chars().all(is_wide) {
                table.inner.push((word, 1 << at));
            } else {
                *table.words.entry(word).or_default() |= 1 << at;
            }
        }
    }
    for (starts, ends, action) in PHRASES {
        for end in ends.split_whitespace() {
            table.phrases.entry(end).or_default().push((starts, action));
        }
    }
    table
});

/// Whether a letter is of Chinese or Japanese.
const fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// A word without an end.
// Inlined, the loop over the ends is unrolled.
#[inline(never)]
fn without<'w>(word: &'w str, end: &str) -> Option<&'w str> {
    word.strip_suffix(end).filter(|stem| stem.len() > 1)
}

/// The actions of a word in lower case, also in the regular forms of English.
fn of_word(word: &str) -> Actions {
    let known = |word: &str| TABLE.words.get(word).copied().unwrap_or_default();
    let mut found = known(word);
    for (end, other) in ENDS {
        let Some(stem) = without(word, end) else { continue };
        found |= known(&[stem, other].concat());
        // `stopped`, `cancelling`.
        let mut letters = stem.chars().rev();
        if matches!(end, "ed" | "ing")
            && let (Some(last), Some(before)) = (letters.next(), letters.next())
            && last == before
        {
            found |= known(stem.strip_suffix(last).unwrap_or_default());
        }
    }
    found
}

fn noun(word: &str) -> Actions {
    let word = word.strip_suffix('s').unwrap_or(word);
    let known = NOUNS.iter().find(|(noun, _)| *noun == word);
    known.map_or(0, |(_, action)| named(action))
}

// Inlined, it compares each name at each place.
#[inline(never)]
fn named(action: &str) -> Actions {
    ACTIONS.iter().position(|(name, _)| *name == action).map_or(0, |at| 1 << at)
}

/// The hashes of the actions that an instruction asks for. No value has such a hash, because no normal form contains the
/// byte 0xff.
#[must_use]
pub fn stated(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let (actions, tools) = of_text(instruction);
    hashes(key, actions).chain(tools.iter().map(|name| used(key, name))).collect()
}

/// The hash of the name of a tool that an instruction says to use.
fn used(key: &ValueKey, name: &str) -> u64 {
    key.of_kind(b"\xff@", name.as_bytes())
}

fn hashes(key: &ValueKey, actions: Actions) -> impl Iterator<Item = u64> + use<> {
    let key = *key;
    let named = ACTIONS.iter().enumerate().filter(move |(at, _)| actions & (1 << at) != 0);
    named.map(move |(_, (name, _))| key.of_kind(b"\xff#", name.as_bytes()))
}

/// The hash of a tool, as `server/tool`, that a plan names or an approver let the agent call.
#[must_use]
pub fn tool(key: &ValueKey, tool: &str) -> u64 {
    key.of_kind(b"\xff#", tool.as_bytes())
}

/// Whether a run asks for calls of a tool. `stated`: whether the instruction, the plan or an approver stated a hash.
///
/// If the table has no word of the tool's name, the instruction must have each word of it.
#[must_use]
pub fn asks(key: &ValueKey, tool: &str, stated: impl Fn(u64) -> bool) -> bool {
    if stated(self::tool(key, tool)) {
        return true;
    }
    let words = words(name(tool));
    if words.len() > 1 && stated(used(key, &name(tool).to_lowercase())) {
        return true;
    }
    asks_for(key, &words, &stated)
}

fn asks_for(key: &ValueKey, words: &[String], stated: &dyn Fn(u64) -> bool) -> bool {
    if let Some((_, actions)) = verb(words) {
        return hashes(key, actions).any(stated);
    }
    let mut form = Form::new();
    let mut has = |word: &str| form.of(word).is_some_and(|form| stated(key.hash(form)));
    let mut named = |word: &str| {
        let stem = word.strip_suffix('s').unwrap_or(word);
        has(word) || ["", "s", "d", "ed", "ing"].iter().any(|end| has(&[stem, end].concat()))
    };
    let mut long = words.iter().filter(|word| word.len() >= MIN_WORD_BYTES).peekable();
    long.peek().is_some() && long.all(|word| named(word))
}

/// Bytes of a word that an instruction states by itself.
const MIN_WORD_BYTES: usize = 3;

/// What a tool does: the verb of its name, or all words of the name if that is no verb of the table.
#[must_use]
pub fn of_tool(tool: &str) -> String {
    let words = words(name(tool));
    let verb = verb(&words).filter(|(verb, _)| TABLE.words.contains_key(*verb));
    verb.map_or_else(|| words.join(" "), |(verb, _)| verb.to_owned())
}

/// The tool's name without its server's.
fn name(tool: &str) -> &str {
    split_once(tool, '/').map_or(tool, |(_, name)| name)
}

/// The word of a tool's name that says most about what the tool does, and its action.
fn verb(words: &[String]) -> Option<(&str, Actions)> {
    let nexts = words.iter().skip(1).map(Some).chain([None]);
    let any = |list: &[&str]| words.iter().any(|word| is_in(list, word));
    let ranked = words.iter().zip(nexts).filter_map(|(word, next)| {
        let (found, noun) = (of_word(word), noun(word));
        // The action of this name, otherwise the first one that has the word.
        let action = match (noun, named(word)) {
            // `remove_member` takes rights away.
            (0, _) if found & named("revoke") != 0 && any(&MEMBERS) => named("revoke"),
            (0, 0) => found & found.wrapping_neg(),
            (0, own) => own,
            (noun, _) => noun,
        };
        let rank = match action {
            0 => return None,
            _ if next.is_some_and(|next| is_phrase(word, next)) => 4,
            // `read_and_delete` deletes.
            _ if action == named("fetch") => 3,
            _ if noun == 0 && is_in(&WEAK, word) => 2,
            // `update_permission` gives one.
            _ if action == named("update") && any(&RIGHTS) => 2,
            _ if noun != 0 || is_in(&THINGS, word) => 1,
            _ => 0,
        };
        Some((rank, word.as_str(), action))
    });
    let (_, word, action) = ranked.min_by_key(|(rank, ..)| *rank)?;
    let deploys = action == named("run") && any(&PIPELINES);
    Some((word, if deploys { action | named("deploy") } else { action }))
}

/// Whether both words mean something else: `merge request`, "make sure", "confirm to Anna".
#[inline(never)]
fn is_phrase(word: &str, next: &str) -> bool {
    OTHERS.iter().any(|(words, nexts)| is_in(nexts, next) && is_in(words, word))
}

/// The actions that a text asks for, and the names of tools that it says to use.
fn of_text(text: &str) -> (Actions, Vec<String>) {
    let (mut found, mut clause, mut tools) = (0, Vec::new(), Vec::new());
    for line in text.lines() {
        for token in line.split(|letter: char| letter.is_whitespace() || BREAKS.contains(letter)) {
            let word = token.trim_matches(|letter: char| !letter.is_alphanumeric());
            if !word.is_empty() {
                clause.push(word.to_lowercase().replace('’', "'"));
            }
            if token.ends_with(['.', ',', ';', ':', '!', '?']) {
                found |= Clause(&clause).actions(&mut tools);
                clause.clear();
            }
        }
        found |= Clause(&clause).actions(&mut tools);
        clause.clear();
    }
    if text.chars().any(is_wide) {
        found |= of_wide(text);
    }
    (found, tools)
}

/// What separates words, beside spaces.
const BREAKS: &str = "—–…“”„«»\"`()[]{}<>|";

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The words between two punctuation marks.
struct Clause<'a>(&'a [String]);

impl Clause<'_> {
    fn actions(&self, tools: &mut Vec<String>) -> Actions {
        let nots = self.negations();
        let is_not = |at: usize| nots.get(at) == Some(&true);
        if (0..self.0.len()).any(|at| is_not(at) && self.is(at, &NOT_ANYWHERE)) {
            return 0;
        }
        let (mut found, mut is_read, mut orders) = (0, false, vec![false; self.0.len()]);
        for (at, word) in self.0.iter().enumerate() {
            let is_answer = self.is_answer(at);
            is_read = self.begins_to_read(at)
                || self.is_delegated(at)
                || (is_answer && self.is(at + 1, &USER))
                || (is_read && !self.is(at, &JOINS));
            let is_negated = (at.saturating_sub(MAX_NOT_WORDS)..at).any(|it| {
                let is_beside = it + 1 == at || (it + 2 == at && self.is(it + 1, &PRONOUNS));
                is_not(it) && (is_beside || !self.is(it, &NOT_BESIDE))
            });
            let next = self.get(at + 1);
            // "Summarize a.md into b.md" writes.
            if is_read && !is_negated && word == "into" && next.contains(['.', '/']) {
                found |= named("overwrite");
            }
            let is_none = next == "no" && !starts_with_digit(self.get(at + 2));
            if is_read || is_negated || is_answer || is_none || is_phrase(word, next) {
                continue;
            }
            if let Some(order) = orders.get_mut(at) {
                *order = true;
            }
            if self.is(at, &USE) && tools.len() < MAX_USED_TOOLS {
                let name = (at + 1..at + 3).find(|it| !self.is(*it, &DETERMINERS));
                tools.extend(name.map(|it| self.get(it).to_owned()));
            }
            let verbs = |count: usize| {
                // "Get back to me" gives nothing back.
                let end = at.saturating_sub(usize::from(word == "back"));
                let orders = &orders;
                (at.saturating_sub(count)..end).filter(|it| orders.get(*it) == Some(&true))
            };
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
                found |= of_word(word);
            }
        }
        found
    }

    fn get(&self, at: usize) -> &str {
        self.0.get(at).map_or("", String::as_str)
    }

    /// Whether a word is in a sorted list.
    #[inline(never)]
    fn is(&self, at: usize, list: &[&str]) -> bool {
        is_in(list, self.get(at))
    }

    /// Whether a word of a list is one of the nearest before a word.
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
            delegate => self.is(it + 1, &HERE) && delegate != "remind",
        };
        let joins = |it: usize| (it..at).any(|between| self.is(between, &JOINS));
        let is_delegate = |it: usize| {
            self.is(it, &DELEGATES)
                && !(self.is_owned(it) || is_for_agent(it))
                && (it + MAX_LIGHT_WORDS >= at || !joins(it))
        };
        match self.get(at) {
            "that" | "to" if self.get(at + 1) == "you" => false,
            "to" if self.has_before(at, 1, &WANTS) => !self.has_before(at, 3, &WE),
            "that" | "to" => (at.saturating_sub(MAX_DELEGATED_WORDS)..at).any(is_delegate),
            _ => false,
        }
    }

    /// Whether a word is a noun because of the one before it: "the request", "Anna's order".
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
    fn negations(&self) -> Vec<bool> {
        let is_not = |at: usize| match self.get(at) {
            "nicht" | "niet" => !self.is_attribute(at + 1),
            word => {
                [&NOT_BEFORE[..], &NOT_BESIDE, &NOT_ANYWHERE].iter().any(|it| is_in(it, word))
                    || word.ends_with("n't")
            }
        };
        let mut nots: Vec<bool> = (0..self.0.len()).map(is_not).collect();
        for at in (0..nots.len()).filter(|at| self.is(*at, &FORGET)) {
            let near = at.saturating_sub(MAX_FORGET_WORDS)..=at + MAX_FORGET_WORDS;
            let not = near.into_iter().find(|it| nots.get(*it) == Some(&true));
            if let Some(it) = nots.get_mut(not.unwrap_or(at)) {
                *it = not.is_none();
            }
        }
        nots
    }

    /// Whether a word is an adjective, as in "alle nicht bezahlten Rechnungen".
    fn is_attribute(&self, at: usize) -> bool {
        const ENDS: [&str; 6] = ["te", "ten", "tes", "ter", "ne", "nen"];
        let word = self.get(at);
        word.chars().count() > 6
            && at + 1 < self.0.len()
            && ENDS.iter().any(|end| word.ends_with(*end))
            && of_word(word) == 0
    }

    fn is_light(&self, at: usize, noun: &str) -> bool {
        let noun = noun.strip_suffix('s').filter(|it| *it != "acces").unwrap_or(noun);
        match self.get(at) {
            "get" if !self.has_before(at, 1, &["can", "must", "should"]) => noun == "back",
            "issue" => self.begins(at),
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
                starts_with_digit(next) && at + 2 == self.0.len() && is_in(&NUMBERED, word);
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

/// The actions of words in Chinese or Japanese. A negation, or what makes the word a past one, is directly before or
/// after it.
fn of_wide(text: &str) -> Actions {
    let is_asked = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, rest) = text.split_at_checked(at).unwrap_or_default();
            let after = rest.get(word.len()..).unwrap_or_default();
            let after: String = after.chars().take(MAX_NOT_WIDE_AFTER).collect();
            let is_past = ["した", "された", "済", "了", "的", "履歴", "记录"]
                .iter()
                .any(|it| after.starts_with(*it));
            !before
                .chars()
                .rev()
                .take(MAX_NOT_WIDE_BEFORE)
                .any(|it| "不别別勿莫没未已被".contains(it))
                && (!is_past || after.starts_with("したい"))
                && !["ない", "ません", "ずに", "な。"].iter().any(|not| after.contains(*not))
        })
    };
    let asked = TABLE.inner.iter().filter(|(word, _)| is_asked(word));
    asked.fold(0, |found, (_, actions)| found | actions)
}

/// Letters around such a word in which a negation is looked for: `不要删除`, `削除しないで`.
const MAX_NOT_WIDE_BEFORE: usize = 2;
const MAX_NOT_WIDE_AFTER: usize = 4;

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
#[must_use]
pub fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut begins, mut after_lower) = (true, false);
    for character in name.chars() {
        let is_part = character.is_alphanumeric();
        begins |= !is_part || (after_lower && character.is_uppercase());
        if is_part && std::mem::take(&mut begins) {
            words.push(String::new());
        }
        if is_part && let Some(word) = words.last_mut() {
            word.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    words
}
