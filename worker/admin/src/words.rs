//! The words of names in tool definitions.

/// Whether the list has the word, in the singular or the plural.
pub(super) fn has(list: &[&str], word: &str) -> bool {
    let singular = word.strip_suffix("es").into_iter().chain(word.strip_suffix('s'));
    singular.chain([word]).any(|word| list.contains(&word))
}

/// The words of `snake_case`, `kebab-case` and `camelCase`, in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for character in name.chars() {
        let is_break = !character.is_alphanumeric() || (after_lower && character.is_uppercase());
        if is_break {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut()
            && character.is_alphanumeric()
        {
            word.extend(character.to_lowercase());
        }
        after_lower = character.is_lowercase() || character.is_numeric();
    }
    words.retain(|word| !word.is_empty());
    words
}
