//! Rights that an instruction grants: "as an admin", "write access".

use super::super::key::ValueKey;
use super::super::search::{is_in, lower};
use super::words::bare;

/// Rights that are more than to read. Sorted.
#[rustfmt::skip]
const RIGHTS: [&str; 16] = [
    "admin", "administrator", "anyone", "edit", "editor", "everyone", "full", "maintain", "maintainer", "manager", "owner",
    "public", "push", "root", "write", "writer",
];

/// Words directly before a right that is granted, and after or before it. Sorted.
const AS: [&str; 9] = ["a", "als", "an", "as", "como", "to", "with", "zum", "zur"];
const ACCESS: [&str; 8] =
    ["access", "level", "permission", "permissions", "privileges", "rights", "role", "zugriff"];

/// The hash that says that an instruction grants the right of a word in this place.
pub fn granted(key: &ValueKey, previous: &str, word: &str, next: &str) -> Option<u64> {
    let (previous, next) = (bare(previous), bare(next));
    let is_granted = is_in(&AS, previous) || is_in(&ACCESS, previous) || is_in(&ACCESS, next);
    right(key, bare(word)).filter(|_| is_granted)
}

/// The hash of a right that is more than to read. No value has such a hash.
pub fn right(key: &ValueKey, word: &str) -> Option<u64> {
    is_in(&RIGHTS, word).then(|| key.of_kind(b"\xff!", lower(word).as_bytes()))
}

/// Whether a word is in the name of an argument that is a right.
pub fn is_access(word: &str) -> bool {
    is_in(&ACCESS, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted() {
        assert!(RIGHTS.is_sorted() && AS.is_sorted() && ACCESS.is_sorted());
    }
}
