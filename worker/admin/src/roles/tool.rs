//! What the words of a tool's definition say about the whole tool.

use gateward_core::json::Json;

use super::schema::{choices, properties, text};
use super::tables::{
    ADDS, BUYS, CREATES, CREATES_IF_FIRST, EDITS, ENTITLES, HIGH_RISK, HIGH_RISK_IF_ADDED,
    HIGH_RISK_IF_CLOSED, HIGH_RISK_IF_FIRST, HIGH_RISK_IF_WRITTEN, MODES, READS, SELECTS, WRITTEN,
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
    /// An argument says which thing it changes.
    selects: bool,
}

impl Tool {
    pub fn of(definition: &Json) -> Self {
        let words = words(text(definition, "name"));
        let risks: Vec<&String> = high_risk_words(&words).collect();
        let chooses = chooses_high_risk(definition);
        Self {
            high_risk: chooses || !risks.is_empty(),
            only_buys: !chooses && !risks.is_empty() && risks.iter().all(|word| has(BUYS, word)),
            reads: reads(&words),
            creates: has_any(CREATES, &words) || begins(&words, CREATES_IF_FIRST),
            writes: words.last().is_some_and(|word| word == "write"),
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
}

pub(super) fn begins(name: &[String], verbs: &[&str]) -> bool {
    name.first().is_some_and(|word| has(verbs, word))
}

/// Whether the tool reads and does nothing else: `get_and_purge_queue` purges.
fn reads(name: &[String]) -> bool {
    let does_more = name.windows(2).any(|pair| match pair {
        [join, word] => (join == "and" || join == "or") && HIGH_RISK.contains(&word.as_str()),
        _ => false,
    });
    begins(name, READS) && !does_more
}

/// The words of a tool's name that say that it destroys, spends or grants.
fn high_risk_words(name: &[String]) -> impl Iterator<Item = &String> {
    let (reads, adds) = (reads(name), has_any(ADDS, name));
    let (writes_new, closes) = (has_any(WRITTEN, name), has_any(HIGH_RISK_IF_CLOSED, name));
    let is_high_risk = move |at: usize, word: &String| {
        let is_noun = word == "merge" && name.get(at + 1).is_some_and(|it| has(&["request"], it));
        (has(HIGH_RISK, word) && !is_noun)
            || (adds && has(HIGH_RISK_IF_ADDED, word))
            || (closes && word == "close")
            || (at == 0 && has(HIGH_RISK_IF_FIRST, word))
            || (at == 0 && has(HIGH_RISK_IF_WRITTEN, word) && !writes_new)
    };
    let found = name.iter().enumerate().filter(move |(at, word)| is_high_risk(*at, word));
    found.map(|(_, word)| word).filter(move |_| !reads)
}

/// Whether a caller chooses what the tool does, and one of the choices destroys, spends or grants. `merge_method` only
/// says how.
fn chooses_high_risk(definition: &Json) -> bool {
    let is_mode = |name: &str| {
        let words = words(name);
        words.last().is_some_and(|last| has(MODES, last)) && !begins(&words, &["merge"])
    };
    let is_high_risk = |value| begins(&words(value), HIGH_RISK);
    properties(definition).any(|(name, schema)| is_mode(name) && choices(schema).any(is_high_risk))
}

/// Whether an argument with this name says which thing is changed.
fn selects(name: &str) -> bool {
    words(name).last().is_some_and(|last| has(SELECTS, last))
}
