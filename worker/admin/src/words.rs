//! The words of names in tool definitions.

pub(super) use gateward_core::provenance::action::words;

/// Whether the list has the word, in the singular or the plural.
pub(super) fn has(list: &[&str], word: &str) -> bool {
    let singular = word.strip_suffix("es").into_iter().chain(word.strip_suffix('s'));
    singular.chain([word]).any(|word| list.contains(&word))
}

/// Whether the list has one of the words.
pub(super) fn has_any(list: &[&str], words: &[String]) -> bool {
    words.iter().any(|word| has(list, word))
}
