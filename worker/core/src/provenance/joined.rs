//! Destinations that two arguments name together, such as the owner and the name of a repository.
//!
//! The user writes "answer mallory in issue 12 of acme/shop". Each word is stated, and so `mallory` with `shop` would be
//! two stated values, but they name another repository. So it is kept which words of an instruction are joined.
//!
//! An agent can also send two words apart, and a trusted server can join them in its answer: in `mallory/evil`, or in a
//! URL. So it is kept which words were sent together.
//!
//! INVARIANT (only lowers): a word that the instruction joins with no other is judged alone, as before.

use super::key::{Hashes, ValueKey};
use super::normal::Form;
use crate::json::Json;

/// Names of two arguments of one object that name a destination together.
#[rustfmt::skip]
const PAIRS: [(&str, &str); 23] = [
    ("bucket", "key"), ("bucket", "object"), ("database", "table"), ("dataset", "table"), ("group", "project"),
    ("local_part", "domain"), ("namespace", "project"), ("namespace", "repo"), ("org", "project"), ("org", "repo"),
    ("organization", "project"), ("organization", "repo"), ("organization", "repository"), ("owner", "project"),
    ("owner", "repo"), ("owner", "repository"), ("project", "dataset"), ("schema", "table"), ("user", "domain"),
    ("user", "repo"), ("username", "domain"), ("workspace", "repo"), ("workspace", "repo_slug"),
];

/// The pointers to the arguments that can be the second one of a pair with this argument, or none.
pub fn seconds(pointer: &str) -> impl Iterator<Item = String> {
    let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    let pairs = PAIRS.iter().filter(move |(first, _)| first.eq_ignore_ascii_case(name));
    pairs.map(move |(_, second)| [parent, "/", second].concat())
}

/// The two words of `acme/shop`, if the argument is one whose name a pair has as the second.
#[must_use]
pub fn words<'t>(pointer: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
    let (_, name) = pointer.rsplit_once('/')?;
    words_of(name, text)
}

fn words_of<'t>(name: &str, text: &'t str) -> Option<(&'t str, &'t str)> {
    let (first, second) = text.split_once('/')?;
    let is_second = PAIRS.iter().any(|(_, second)| second.eq_ignore_ascii_case(name));
    let fits = is_second && !first.is_empty() && !second.is_empty() && !second.contains('/');
    fits.then_some((first, second))
}

/// Hashes of one instruction: those of some 40 URLs.
pub const MAX_JOINED: usize = 1_024;

/// Words before a word that are joined with it: `acme` and `web` of `dev.azure.com/acme/shop/_git/web`.
const MAX_BEFORE: usize = 4;

/// The hashes of the words that an instruction joins with `/`, `@` or another sign of URLs: one for each second word, and
/// one for each pair of it and a word before it. `group/sub` of `group/sub/app` is such a word too. No value has such a
/// hash, because no normal form contains the byte 0xff. At most [`MAX_JOINED`]. If second words are missing, there is one
/// that says that there are [`more`]. A missing pair can only lower levels. Sorted.
#[must_use]
pub fn stated(key: &ValueKey, instruction: &str) -> Vec<u64> {
    let mut hashes = Hashes::default();
    let is_edge = |letter: char| !letter.is_alphanumeric();
    let gaps = [' ', '\t', '\n', '\r', ',', ';', '(', ')', '"', '`', '\''];
    let tokens = instruction.split(gaps).map(|token| token.trim_matches(is_edge));
    let tokens = tokens.map(|token| (token, token.split(SIGNS).filter(|word| !word.is_empty())));
    let tokens: Vec<(&str, Vec<&str>)> = tokens.map(|(it, words)| (it, words.collect())).collect();
    for word in tokens.iter().flat_map(|(_, words)| words.iter().skip(1)) {
        if hashes.len() == MAX_JOINED / 2 {
            hashes.insert(more(key));
            break;
        }
        hashes.extend(second(key, word));
    }
    // Neighbours first, so that those of a long instruction fit.
    for distance in 1..=MAX_BEFORE {
        for (token, words) in &tokens {
            for (first, word) in words.iter().zip(words.iter().skip(distance)) {
                for first in [*first, between(token, first, word)] {
                    if hashes.len() < MAX_JOINED {
                        hashes.extend(pair(key, first, word));
                    }
                }
            }
        }
    }
    let mut hashes: Vec<u64> = hashes.into_iter().collect();
    hashes.sort_unstable();
    hashes
}

/// The hashes of the words that a call names together, and that are not known together: neither the instruction joins
/// them, nor does a trusted result have them as one value, nor is each known and joined with nothing. A later result does
/// not raise them ([`is_sent`]).
#[must_use]
pub fn sent(
    key: &ValueKey,
    input: &Json,
    is_said: &dyn Fn(Option<u64>) -> bool,
    is_known: &dyn Fn(&str) -> bool,
) -> Vec<u64> {
    let (mut sent, mut form) = (Vec::new(), Form::new());
    let more = is_said(Some(more(key)));
    each_pair(input, &mut |first, word| {
        let (pair, whole) = (pair(key, first, word), [first, "/", word].concat());
        let is_alone = || !more && !is_said(second(key, word));
        if !(is_said(pair) || is_known(&whole) || (is_alone() && is_known(first) && is_known(word)))
        {
            sent.extend(pair);
            sent.extend(form.in_any_case(&whole).map(|form| key.hash(form)));
        }
    });
    sent
}

/// Calls `found` with the words of two arguments that name a destination together, and with those of one argument.
fn each_pair<'v>(input: &'v Json, found: &mut dyn FnMut(&'v str, &'v str)) {
    let fields = match input {
        Json::Array(items) => return items.iter().for_each(|item| each_pair(item, found)),
        Json::Object(fields) => fields,
        _ => return,
    };
    for (name, field) in fields {
        let Json::String(text) = field else {
            each_pair(field, found);
            continue;
        };
        if let Some((first, second)) = words_of(name, text) {
            found(first, second);
        }
        for (_, second) in PAIRS.iter().filter(|(first, _)| first.eq_ignore_ascii_case(name)) {
            let mut others = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(second));
            if let Some(Json::String(second)) = others.next().map(|(_, other)| other) {
                found(text, second);
            }
        }
    }
}

/// Whether two words that are neighbours in a path, a URL or a mail address were [`sent`] together.
pub fn is_sent(key: &ValueKey, text: &str, is_low: &dyn Fn(u64) -> bool) -> bool {
    let path = text.split_once("://").map_or(text, |(_, rest)| rest);
    let mut words = path.split(['?', '#']).next().unwrap_or_default().split(['/', '@']);
    let mut first = words.next().unwrap_or_default();
    words.any(|word| {
        let second = word.strip_suffix(".git").unwrap_or(word);
        pair(key, std::mem::replace(&mut first, word), second).is_some_and(is_low)
    })
}

/// What is between the beginning of a word and the sign before another word of the token.
fn between<'t>(token: &'t str, first: &str, word: &str) -> &'t str {
    let at = |word: &str| word.as_ptr().addr() - token.as_ptr().addr();
    token.get(at(first)..at(word)).unwrap_or_default().trim_end_matches(SIGNS)
}

/// What joins words in one token.
const SIGNS: [char; 7] = ['/', '\\', '@', '#', '?', '&', '='];

/// The hash of two words that are joined.
#[must_use]
pub fn pair(key: &ValueKey, first: &str, second: &str) -> Option<u64> {
    let (mut form, mut other) = (Form::new(), Form::new());
    Some(key.hash(&[b"\xff/", form.of(first)?, b"\xff/", other.of(second)?].concat()))
}

/// The hash of a word that is joined with one before it.
#[must_use]
pub fn second(key: &ValueKey, word: &str) -> Option<u64> {
    Some(key.hash(&[b"\xff/", Form::new().of(word)?].concat()))
}

/// The hash that says that an instruction has more second words than fit: each word can be one.
#[must_use]
pub fn more(key: &ValueKey) -> u64 {
    key.hash(b"\xff/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ValueKey = ValueKey::new([7; 16]);

    #[test]
    fn words_that_an_instruction_joins_are_known_as_pairs() {
        for (instruction, joined, alone) in [
            ("Answer mallory in issue 12 of acme/shop.", "acme shop", "mallory"),
            ("Look at (https://forge.example/acme/shop/issues/12)?", "acme shop", "mallory"),
            ("Ask ANNA@X.com, please", "anna x.com", "ask"),
            ("Merge https://dev.azure.com/acme/shop/_git/web", "acme web", "merge"),
            ("Merge https://dev.azure.com/acme/shop/_git/web", "shop web", "merge"),
            ("Tag group/sub/app", "group/sub app", "tag"),
            ("Drop (db/schema/t).", "db t", "drop"),
        ] {
            let stated = stated(&KEY, instruction);
            let (first, last) = joined.split_once(' ').unwrap();
            let has = |hash: Option<u64>| stated.contains(&hash.unwrap());
            assert!(has(pair(&KEY, first, last)) && has(second(&KEY, last)), "{instruction}");
            assert!(!has(pair(&KEY, alone, last)) && !has(second(&KEY, alone)), "{instruction}");
        }
        assert!(stated(&KEY, "Close issue 12 in the repo shop of acme.").is_empty());
    }

    #[test]
    fn the_pairs_of_a_long_instruction_are_bounded() {
        let list = |count: usize| -> Vec<u64> {
            stated(&KEY, &(0..count).map(|at| format!("a{at}/b{at} ")).collect::<String>())
        };
        let (fits, many) = (list(MAX_JOINED / 2 - 1), list(2_000));
        assert!(fits.len() < MAX_JOINED && !fits.contains(&more(&KEY)));
        assert!(fits.contains(&pair(&KEY, "a500", "b500").unwrap()));
        assert!(many.len() == MAX_JOINED && many.contains(&more(&KEY)));
        let long = stated(&KEY, &(0..2_000).map(|at| format!("a{at}/")).collect::<String>());
        assert_eq!(long.len(), MAX_JOINED);
    }

    #[test]
    fn a_pair_is_two_arguments_of_one_object_or_one_that_has_both() {
        let found = |pointer| seconds(pointer).collect::<Vec<_>>();
        assert_eq!(found("/owner"), ["/project", "/repo", "/repository"]);
        assert_eq!(found("/to/bucket"), ["/to/key", "/to/object"]);
        assert!(found("/title").is_empty());
        for (pointer, text, expected) in [
            ("/repo", "acme/shop", Some(("acme", "shop"))),
            ("/repo", "shop", None),
            ("/repo", "/shop", None),
            ("/repo", "a/b/c", None),
            ("/path", "acme/shop", None),
        ] {
            assert_eq!(words(pointer, text), expected, "{pointer} {text}");
        }
    }
}
