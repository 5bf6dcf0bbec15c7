//! Confusable keys: keys that differ, but that a reader which ignores case takes for the same.

use std::collections::HashSet;

use super::value::Json;

/// A key with its case folded. Equal results mean that some reader takes the keys for the same: Go's
/// `encoding/json` folds case, including `ſ` and the Kelvin sign, and readers in C stop at a NUL.
pub(crate) fn folded(key: &str) -> impl Iterator<Item = char> {
    let characters = key.chars().filter(|c| *c != '\0').flat_map(char::to_lowercase);
    characters.map(|c| if c == 'ſ' { 's' } else { c })
}

/// Names to search for, together with all keys that are confusable with them.
pub struct Names {
    folded: HashSet<String>,
    fold: fn(&str) -> String,
}

impl Names {
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self::by(names, |name| folded(name).collect())
    }

    /// The same with another way of folding.
    #[must_use]
    pub fn by(names: &[String], fold: fn(&str) -> String) -> Self {
        Self { folded: names.iter().map(|name| fold(name)).collect(), fold }
    }

    /// Whether the key is one of the names, or confusable with one.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        !self.folded.is_empty() && self.folded.contains(&(self.fold)(key))
    }
}

/// Whether two keys are equal or confusable.
#[must_use]
pub fn same_folded(a: &str, b: &str) -> bool {
    folded(a).eq(folded(b))
}

/// Whether a key is confusable with one of these names, and is not one of them. The names are ASCII.
#[must_use]
pub fn is_confusable(key: &str, names: &[&str]) -> bool {
    // Most keys are ASCII too. Comparing those is fast: most differ in length.
    let plain = key.bytes().all(|byte| byte.is_ascii() && byte != 0);
    let same = |name: &&str| match plain {
        true => name.eq_ignore_ascii_case(key),
        false => same_folded(name, key),
    };
    !names.contains(&key) && names.iter().any(same)
}

/// Whether a key begins with `prefix`, or is confusable with one that does. The prefix is in lower case.
#[must_use]
pub fn begins_folded(key: &str, prefix: &str) -> bool {
    let mut key = folded(key);
    prefix.chars().all(|character| key.next() == Some(character))
}

impl Json {
    /// Removes every field with one of these names, or a confusable one, at any depth.
    pub fn remove(&mut self, names: &Names) {
        match self {
            Json::Object(fields) => {
                fields.retain(|(name, _)| !names.has(name));
                fields.iter_mut().for_each(|(_, value)| value.remove(names));
            }
            Json::Array(items) => items.iter_mut().for_each(|item| item.remove(names)),
            _ => {}
        }
    }

    /// A key, at any depth, that is confusable with another key of its object.
    #[must_use]
    pub fn confusable_key(&self) -> Option<&str> {
        self.confusable_key_by(&|key| folded(key).collect())
    }

    /// The same with another way of folding.
    #[must_use]
    pub fn confusable_key_by(&self, fold: &dyn Fn(&str) -> String) -> Option<&str> {
        match self {
            Json::Object(fields) => {
                let mut keys: Vec<(String, &str)> =
                    fields.iter().map(|(key, _)| (fold(key), key.as_str())).collect();
                keys.sort_unstable();
                let confusable = keys.windows(2).find_map(|pair| match pair {
                    [(a, _), (b, key)] if a == b => Some(*key),
                    _ => None,
                });
                confusable
                    .or_else(|| fields.iter().find_map(|(_, value)| value.confusable_key_by(fold)))
            }
            Json::Array(items) => items.iter().find_map(|item| item.confusable_key_by(fold)),
            _ => None,
        }
    }
}
