//! Rights that an instruction grants: "as an admin", "write access".

use super::super::key::ValueKey;
use super::super::search::{has, is_word};
use super::words::bare;

/// Rights by their words, with one name for those that are equal. Sorted.
#[rustfmt::skip]
const RIGHTS: [(&str, &str); 56] = [
    ("admin", "admin"), ("administrator", "admin"), ("anyone", "anyone"), ("anzusehen", READ), ("bearbeiten", WRITE),
    ("change", WRITE), ("comment", COMMENT), ("commentator", COMMENT), ("commenter", COMMENT),
    ("commenting", COMMENT), ("edit", WRITE), ("editable", WRITE), ("editar", WRITE), ("editing", WRITE), ("editor", WRITE),
    ("escritura", WRITE), ("everyone", "everyone"), ("full", "full"), ("kommentieren", COMMENT), ("lectura", READ),
    ("lecture", READ), ("leer", READ), ("lesen", READ), ("leserechte", READ), ("leserechten", READ), ("lesezugriff", READ), ("lire", READ), ("look", READ),
    ("maintain", "maintain"), ("maintainer", "maintain"), ("manager", "manager"), ("modifier", WRITE),
    ("modify", WRITE), ("open", READ), ("owner", "owner"), ("public", "public"), ("pull", READ), ("push", WRITE),
    ("read", READ), ("read-only", READ), ("readable", READ), ("reader", READ), ("reading", READ), ("root", "root"),
    ("schreibrechte", WRITE), ("schreibrechten", WRITE), ("schreibzugriff", WRITE), ("see", READ), ("view", READ), ("viewable", READ),
    ("viewer", READ), ("viewing", READ), ("visible", READ), ("write", WRITE), ("writer", WRITE), ("écriture", WRITE),
];
/// The least right, which a call can always give in place of another.
pub const READ: &str = "read";
const WRITE: &str = "write";
const COMMENT: &str = "comment";

/// Words before a right that is granted, with `a` or `an` between; words directly before or after it, which are also in the
/// names of arguments; verbs before it, with a few words between; and verbs before what somebody is to do: "let Anna edit
/// it".
const AS: &str = "als as como comme create en erstelle eröffne make new zum zur";
const ACCESS: &str = "access acceso accesso accès level permission permissions privacy privileges rechte rights role scope \
    sharing visibility zugriff";
const GRANTS: &str = "become becomes change gib give grant mache make promote set upgrade";
const LETS: &str = "able allow allows let lets needs should so soll sollen damit";
const DOES: &str = "bearbeiten change comment edit editar kommentieren leer lesen lire look modifier modify open pull push read see view write";

/// Words between two words for a right that say for whom it is: "readable for anyone".
const FOR: &str = "for to with";
const OPENS: &str = "access editable open public readable share viewable visible";

/// Rights that are one word: "gib Anna Leserechte".
const WHOLE: &str =
    "leserechte leserechten lesezugriff schreibrechte schreibrechten schreibzugriff";

/// Words from `make` to the right: "make Anna Weber an admin".
const MAX_RIGHT_WORDS: usize = 6;

/// The hash that says that an instruction grants the right that one of its words is.
pub fn granted(key: &ValueKey, words: &[&str], at: usize) -> Option<u64> {
    let word = |at: usize| words.get(at).map_or("", |word| bare(word));
    let own = word(at);
    let (right, _) = right(key, own)?;
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
        || (last == "to" && any(ACCESS))
        // "Accès en écriture."
        || before.get(1).is_some_and(|word| is_word(ACCESS, word))
        || (is_word(DOES, own) && any(LETS) && !any("i i'd i'll we"))
        || (is_word("anyone everyone", own) && is_word(FOR, last) && any(OPENS))
        || is_word(WHOLE, own)
        || (last == "for" && own.ends_with("ing"))
        // "Share it with Anna (editor)."
        || words.get(at).is_some_and(|it| it.starts_with('(') && has(it, ')'))
        || (own.eq_ignore_ascii_case("read") && word(at + 1) == "only");
    is_granted.then_some(right)
}

/// The hash of a right, and whether it is more than to read. No value has such a hash.
pub fn right(key: &ValueKey, word: &str) -> Option<(u64, bool)> {
    let right = right_of(&word.to_lowercase())?;
    Some((key.of_kind(b"\xff!", right.as_bytes()), right != READ))
}

/// The name of the right that a word in lower case is, which it has in common with equal rights.
#[inline(never)]
pub fn right_of(word: &str) -> Option<&'static str> {
    let at = RIGHTS.binary_search_by(|(right, _)| (*right).cmp(word)).ok()?;
    RIGHTS.get(at).map(|(_, right)| *right)
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
