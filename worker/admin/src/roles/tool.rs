//! What the words of a tool's definition say about the whole tool.

use gateward_core::json::Json;

use super::schema::{choices, has_type, properties, text};
use super::tables::{
    ADDS, ALTERS, BUYS, CHANGES, COMMANDED, CREATES, CREATES_IF_FIRST, DNS, DOES_MORE, EDITS,
    ENTITLES, FILLERS, HIGH_RISK, HIGH_RISK_IF_FIRST, HIGH_RISK_IF_WRITTEN, HIGH_RISK_TOGETHER,
    MODES, OWN, OWN_IF_NEW, READS, READS_IF_SECOND, RECORDS, RUNS, SELECTS, SENDS, WEB, WRITTEN,
};
use crate::words::{has, has_any, words};

pub(super) struct Tool {
    /// The words of its name.
    pub words: Vec<String>,
    /// It destroys, spends or grants.
    pub high_risk: bool,
    /// It is of high risk only because it pays or books.
    pub only_buys: bool,
    pub reads: bool,
    pub creates: bool,
    /// It creates and updates.
    pub writes: bool,
    /// It changes no existing thing, or only a thing of the user.
    pub adds: bool,
    /// Every word of its name is known, and it changes a thing that nobody but the user sees.
    pub own: bool,
    /// An argument says which thing it changes.
    selects: bool,
}

impl Tool {
    pub fn of(definition: &Json) -> Self {
        let words = words(text(definition, "name"));
        let reads = reads(&words);
        let risks: Vec<&String> = high_risk_words(&words, reads).collect();
        let chooses = chooses(definition, &is_high_risk) || takes(definition, &words, reads);
        let creates = has_any(CREATES, &words) || begins(&words, CREATES_IF_FIRST);
        let own = is_own(&words, creates);
        Self {
            high_risk: chooses || !risks.is_empty(),
            only_buys: !chooses && !risks.is_empty() && risks.iter().all(|word| has(BUYS, word)),
            reads,
            creates,
            writes: words.last().is_some_and(|word| word == "write"),
            adds: own || ((creates || has_any(SENDS, &words)) && !has_any(ALTERS, &words)),
            own,
            selects: properties(definition).any(|(name, _)| selects(name)),
            words,
        }
    }

    pub fn does(&self, verbs: &[&str]) -> bool {
        has_any(verbs, &self.words)
    }

    /// Whether its name has the word. Of the two, one can be the plural.
    pub fn is_named_after(&self, word: &str) -> bool {
        self.words.iter().any(|own| has(&[own.as_str()], word) || has(&[word], own))
    }

    /// Whether a title is one of a new text.
    pub fn entitles(&self) -> bool {
        self.does(ENTITLES) || (self.selects && self.does(EDITS))
    }

    /// Whether its name says that it only reads: it has no other verb, and no argument says what else it does.
    pub fn only_reads(&self, definition: &Json) -> bool {
        let description = words(text(definition, "description"));
        let does_more = begins(&self.words, DOES_MORE)
            || self.words.iter().any(|word| joins(word) || is_verb(word))
            || chooses(definition, &|word| has(CHANGES, word));
        let asks_the_web = self.does(WEB) || has_any(WEB, &description);
        self.reads && !(self.high_risk || does_more || asks_the_web)
    }
}

pub(super) fn begins(name: &[String], verbs: &[&str]) -> bool {
    name.first().is_some_and(|word| has(verbs, word))
}

fn joins(word: &str) -> bool {
    word == "and" || word == "or"
}

/// Whether the word is a verb that changes something. A verb has no plural: `list_orders` orders nothing.
#[inline(never)]
fn is_verb(word: &str) -> bool {
    [HIGH_RISK, RUNS, HIGH_RISK_IF_WRITTEN, CHANGES].iter().any(|list| list.contains(&word))
}

/// Whether the tool reads and does nothing else: `get_and_purge_queue` purges.
fn reads(name: &[String]) -> bool {
    let does_more = name.windows(2).any(|pair| match pair {
        [join, word] => joins(join) && is_verb(word),
        _ => false,
    });
    let begins_to_read = match name {
        [first, ..] if has(READS, first) => true,
        [first, second, ..] => {
            let is_other = is_verb(first) || has(ADDS, first) || has(ENTITLES, first);
            has(READS_IF_SECOND, second) && !is_other && !has(HIGH_RISK_IF_FIRST, first)
        }
        _ => false,
    };
    begins_to_read && !does_more
}

/// Whether a word of a tool's name says that the tool destroys, spends, grants or runs a text.
#[inline(never)]
fn is_high_risk(word: &str) -> bool {
    let undone = word.strip_prefix("un").unwrap_or_default();
    has(HIGH_RISK, word)
        || has(HIGH_RISK, undone)
        || has(HIGH_RISK_IF_FIRST, undone)
        || (has(RUNS, word) && !has(READS, word))
}

/// The words of a tool's name that say that it destroys, spends or grants.
fn high_risk_words(name: &[String], reads: bool) -> impl Iterator<Item = &String> {
    let writes_new = has_any(WRITTEN, name);
    let is_high_risk = move |at: usize, word: &String| {
        let next = name.get(at + 1);
        let is_noun = (word == "merge" && next.is_some_and(|next| has(&["request"], next)))
            || (word == "write" && at > 0);
        let is_together =
            |(verbs, things): &(&[&str], &[&str])| has(things, word) && has_any(verbs, name);
        let is_verb = is_high_risk(word)
            || (at == 0 && has(HIGH_RISK_IF_FIRST, word))
            || (has(HIGH_RISK_IF_WRITTEN, word) && !writes_new);
        (is_verb && !is_noun) || HIGH_RISK_TOGETHER.iter().any(is_together)
    };
    let found = name.iter().enumerate().filter(move |(at, word)| is_high_risk(*at, word));
    found.map(|(_, word)| word).filter(move |_| !reads)
}

/// Whether the tool takes an argument that makes it one of high risk: a command, or what only a record of a domain has.
fn takes(definition: &Json, name: &[String], reads: bool) -> bool {
    let is_record = !reads && has_any(DNS, name);
    properties(definition).any(|(argument, schema)| {
        let words = words(argument);
        let is_command = || {
            words.last().is_some_and(|last| has(COMMANDED, last))
                && choices(schema).next().is_none()
                && !["boolean", "integer", "number"].iter().any(|kind| has_type(schema, kind))
        };
        is_command() || (is_record && has_any(RECORDS, &words))
    })
}

/// Whether a caller chooses what the tool does, and the first word of one of the choices is such a verb. `merge_method`
/// only says how.
fn chooses(definition: &Json, is_verb: &dyn Fn(&str) -> bool) -> bool {
    let is_mode = |name: &str| {
        let words = words(name);
        words.last().is_some_and(|last| has(MODES, last)) && !begins(&words, &["merge"])
    };
    let is_chosen = |value| words(value).first().is_some_and(|first| is_verb(first));
    properties(definition).any(|(name, schema)| is_mode(name) && choices(schema).any(is_chosen))
}

/// Whether each word of the name is known, and the tool changes a thing of the user.
fn is_own(name: &[String], creates: bool) -> bool {
    let does = |verb: &str| has_any(&[verb], name);
    let creates = creates || does("add");
    let is_thing = |word: &String| has(OWN, word) || (creates && has(OWN_IF_NEW, word));
    let is_verb =
        |word: &String| has(CHANGES, word) || has(CREATES, word) || has(CREATES_IF_FIRST, word);
    // A draft that is scheduled is sent.
    let sends = does("draft") && (does("reschedule") || does("schedule"));
    let known = |word: &String| is_verb(word) || is_thing(word) || has(FILLERS, word);
    !sends && name.iter().any(is_verb) && name.iter().any(is_thing) && name.iter().all(known)
}

/// Whether an argument with this name says which thing is changed.
fn selects(name: &str) -> bool {
    words(name).last().is_some_and(|last| has(SELECTS, last))
}
