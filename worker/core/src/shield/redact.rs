//! Replaces secrets and personal data by markers.

use super::inspect::{Match, Shield};
use super::mode::Category;
use crate::json::Json;

/// What is to be replaced in a call that passes.
#[derive(Debug, Clone, Copy)]
pub struct Redaction<'s> {
    pub shield: &'s Shield,
    pub tenant: &'s str,
    /// Empty: nothing.
    pub categories: &'s [Category],
}

impl Redaction<'_> {
    /// Whether something is to be replaced.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        !self.categories.is_empty()
    }

    /// Replaces what is found in the texts of a value, keys included, and adds the texts that were changed to
    /// `changed`.
    pub fn value(&self, value: &mut Json, changed: &mut Vec<Json>) {
        match value {
            Json::String(text) => self.replace(text, changed),
            Json::Array(items) => items.iter_mut().for_each(|item| self.value(item, changed)),
            Json::Object(fields) => {
                for (name, field) in fields {
                    self.replace(name, changed);
                    self.value(field, changed);
                }
            }
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Number(_) | Json::Verbatim(_) => {
            }
        }
    }

    fn replace(&self, text: &mut String, changed: &mut Vec<Json>) {
        if let Some(redacted) = self.text(text) {
            changed.push(Json::String(std::mem::replace(text, redacted)));
        }
    }

    /// A text with a marker in place of what is found in it; `None` if nothing is. A text in whose decoded form
    /// something is found is replaced as a whole.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        let found = self.shield.matches(self.tenant, text);
        let mut found: Vec<Match> =
            found.into_iter().filter(|it| self.categories.contains(&it.category)).collect();
        let whole = marker(found.iter().find(|it| it.bytes.is_none()).or(found.first())?.rule);
        found.sort_by_key(|it| it.bytes.as_ref().map(|bytes| bytes.start));
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        for Match { rule, bytes, .. } in found {
            let Some(bytes) = bytes else { return Some(whole) };
            if bytes.start >= at {
                let Some(before) = text.get(at..bytes.start) else { return Some(whole) };
                out.push_str(before);
                out.push_str(&marker(rule));
            }
            at = at.max(bytes.end);
        }
        let Some(rest) = text.get(at..) else { return Some(whole) };
        out.push_str(rest);
        Some(out)
    }
}

fn marker(rule: &str) -> String {
    ["[redacted:", rule, "]"].concat()
}
