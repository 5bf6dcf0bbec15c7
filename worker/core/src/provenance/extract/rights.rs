//! Rights that an instruction grants: "as an admin", "write access".

use super::super::key::ValueKey;
use super::super::search::is_word;
use super::words::bare;

/// Rights by their words, with one name for those that are equal. Sorted.
#[rustfmt::skip]
const RIGHTS: [(&str, &str); 22] = [
    ("admin", "admin"), ("administrator", "admin"), ("anyone", "anyone"), ("edit", "write"), ("editor", "write"),
    ("everyone", "everyone"), ("full", "full"), ("maintain", "maintain"), ("maintainer", "maintain"),
    ("manager", "manager"), ("owner", "owner"), ("public", "public"), ("pull", READ), ("push", "write"),
    ("read", READ), ("read-only", READ), ("reader", READ), ("root", "root"), ("view", READ), ("viewer", READ),
    ("write", "write"), ("writer", "write"),
];
const READ: &str = "read";

/// Words before a right that is granted, with `a` or `an` between; words directly before or after it, which are also in the
/// names of arguments; and verbs before it, with a few words between.
const AS: &str = "als as como create erstelle eröffne make new zum zur";
const ACCESS: &str = "access level permission permissions privacy privileges rights role scope sharing visibility zugriff";
const GRANTS: &str = "change gib give grant mache make promote set upgrade";

/// Words from `make` to the right: "make Anna Weber an admin".
const MAX_RIGHT_WORDS: usize = 6;

/// The hash that says that an instruction grants the right that one of its words is.
pub fn granted(key: &ValueKey, words: &[&str], at: usize) -> Option<u64> {
    let word = |at: usize| words.get(at).map_or("", |word| bare(word));
    let (right, _) = right(key, word(at))?;
    // "She is a guest, and reports to an admin."
    let is_end = |word: &&&str| word.ends_with(['.', ',', ';', '!', '?', ')']);
    let before = words.get(at.saturating_sub(MAX_RIGHT_WORDS)..at).unwrap_or_default();
    let before: Vec<&str> =
        before.iter().rev().take_while(|it| !is_end(it)).map(|it| bare(it)).collect();
    let last = before.first().copied().unwrap_or_default();
    let any = |list: &str| before.iter().any(|word| is_word(list, word));
    let is_article = matches!(last, "a" | "an");
    let is_granted = is_word(ACCESS, word(at + 1))
        || is_word(ACCESS, last)
        || before.get(usize::from(is_article)).is_some_and(|word| is_word(AS, word))
        || (last != "the" && any(GRANTS))
        || (last == "to" && any(ACCESS));
    is_granted.then_some(right)
}

/// The hash of a right, and whether it is more than to read. No value has such a hash.
pub fn right(key: &ValueKey, word: &str) -> Option<(u64, bool)> {
    let lower = word.to_lowercase();
    let at = RIGHTS.binary_search_by(|(right, _)| (*right).cmp(&lower)).ok()?;
    let (_, right) = RIGHTS.get(at)?;
    Some((key.of_kind(b"\xff!", right.as_bytes()), *right != READ))
}

/// Whether a word is in the name of an argument that is a right.
pub fn is_access(word: &str) -> bool {
    is_word(ACCESS, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted() {
        assert!(RIGHTS.is_sorted());
    }
}
