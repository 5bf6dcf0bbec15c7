//! Words, and the actions and things that they name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::super::search::{has, is_in, rsplit_once};
use super::actions::{ACTIONS, PHRASES};
use super::lists::{LISTS, List};
use super::vocabulary::{DESTROYS, ENDS, GRANTS, NOUNS, OTHERS, WIDE};

/// Actions as bits.
pub(super) type Actions = u64;
const _: () = assert!(ACTIONS.len() <= Actions::BITS as usize, "each action has a bit");

pub(super) struct Table {
    pub(super) words: HashMap<&'static str, Actions>,
    /// The lists of each word of an instruction.
    lists: HashMap<&'static str, List>,
    /// Words of languages without spaces.
    pub(super) inner: Vec<(&'static str, Actions)>,
    /// The verbs and the action of each phrase, by its later word.
    pub(super) phrases: HashMap<&'static str, Vec<(&'static str, &'static str)>>,
    /// The actions of `DESTROYS`, `WIDE` and `GRANTS`.
    pub(super) destroys: Actions,
    pub(super) wide: Actions,
    pub(super) grants: Actions,
}

pub(super) static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let (words, inner, phrases) = (HashMap::new(), Vec::new(), HashMap::new());
    let (destroys, wide, grants) = (all(&DESTROYS), all(&WIDE), all(&GRANTS));
    let mut table = Table { words, lists: HashMap::new(), inner, phrases, destroys, wide, grants };
    for (at, (_, words)) in ACTIONS.iter().enumerate() {
        for word in words.split_whitespace() {
            if word.chars().all(is_wide) {
                table.inner.push((word, 1 << at));
            } else {
                *table.words.entry(word).or_default() |= 1 << at;
            }
        }
    }
    for (at, words) in LISTS.iter().enumerate() {
        for word in words.split_whitespace() {
            *table.lists.entry(word).or_default() |= 1 << at;
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
pub(super) const fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}')
}

/// Whether a word in lower case is in one of some lists.
#[inline(never)]
pub(super) fn is_listed(lists: List, word: &str) -> bool {
    bits(&TABLE.lists, word) & lists != 0
}

/// A word without an end.
// Inlined, the loop over the ends is unrolled.
#[inline(never)]
fn without<'w>(word: &'w str, end: &str) -> Option<&'w str> {
    word.strip_suffix(end).filter(|stem| stem.len() > 1)
}

/// The word in the other spelling of English: `finalise` for `finalize`.
#[inline(never)]
#[must_use]
pub(super) fn respelled(word: &str) -> Option<String> {
    ["e", "ed", "es", "ing"].iter().find_map(|end| {
        let stem = without(word, end)?;
        let (begin, other) = match without(stem, "is") {
            Some(begin) => (begin, "iz"),
            None => (without(stem, "iz")?, "is"),
        };
        Some([begin, other, end].concat())
    })
}

/// The bits of a word in a table.
// Inlined, each look-up has the hash function.
#[inline(never)]
fn bits(table: &HashMap<&'static str, u64>, word: &str) -> u64 {
    table.get(word).copied().unwrap_or_default()
}

/// The actions of a word in lower case, in a form that the table has.
pub(super) fn known(word: &str) -> Actions {
    bits(&TABLE.words, word)
}

/// The actions of a word in lower case, in a form that the table has, or with a pronoun.
#[inline(never)]
pub(super) fn base(word: &str) -> Actions {
    // `supprime-le`, `re-run`.
    if let Some((verb, end)) = rsplit_once(word, '-') {
        const PRONOUNS: [&str; 8] = ["la", "le", "les", "leur", "lui", "moi", "nous", "y"];
        return if is_in(&PRONOUNS, end) { known(verb) } else { known(&word.replace('-', "")) };
    }
    // `bórralo`.
    let verb = ["la", "las", "lo", "los"].iter().find_map(|end| without(word, end));
    let accents = [('á', "a"), ('é', "e"), ('í', "i"), ('ó', "o"), ('ú', "u")];
    let plain = |verb: &str| {
        // `bloquearla`.
        if verb.ends_with('r') {
            return known(verb);
        }
        let accent = accents.iter().find(|(letter, _)| has(verb, *letter));
        accent.map_or(0, |(letter, plain)| known(&verb.replace(*letter, plain)))
    };
    let other = || respelled(word).map_or(0, |word| known(&word));
    // `kündigst`.
    let du = || without(word, "st").map_or(0, |stem| known(&[stem, "en"].concat()));
    match known(word) {
        0 => other() | du() | verb.map_or(0, plain),
        found => found,
    }
}

/// The actions of a word in lower case, also in the regular forms of English.
#[inline(never)]
pub(super) fn of_word(word: &str) -> Actions {
    let mut found = base(word);
    for (end, other) in ENDS {
        let Some(stem) = without(word, end) else { continue };
        found |= base(&[stem, other].concat());
        // `stopped`, `cancelling`.
        let mut letters = stem.chars().rev();
        if matches!(end, "ed" | "ing")
            && let (Some(last), Some(before)) = (letters.next(), letters.next())
            && last == before
        {
            found |= base(stem.strip_suffix(last).unwrap_or_default());
        }
    }
    found
}

pub(super) fn noun(word: &str) -> Actions {
    let word = word.strip_suffix('s').unwrap_or(word);
    let known = NOUNS.iter().find(|(noun, _)| *noun == word);
    known.map_or(0, |(_, action)| named(action))
}

/// The actions with these names.
fn all(names: &[&str]) -> Actions {
    names.iter().fold(0, |found, name| found | named(name))
}

// Inlined, it compares each name at each place.
#[inline(never)]
pub(super) fn named(action: &str) -> Actions {
    ACTIONS.iter().position(|(name, _)| *name == action).map_or(0, |at| 1 << at)
}

/// Whether both words mean something else: `merge request`, "make sure", "confirm to Anna".
#[inline(never)]
pub(super) fn is_phrase(word: &str, next: &str) -> bool {
    OTHERS.iter().any(|(words, nexts)| is_in(nexts, next) && is_in(words, word))
}
