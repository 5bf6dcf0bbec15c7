//! Replaces secrets and personal data by markers.

use std::collections::BTreeMap;

use super::inspect::{Match, Shield};
use super::mode::Category;
use crate::json::{Json, utf16_order};

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

    /// Replaces what is found in a value, keys included, and adds what was changed to `changed`.
    pub fn value(&self, value: &mut Json, changed: &mut Vec<Json>) {
        self.within(value, changed, &mut 0);
    }

    fn within(&self, value: &mut Json, changed: &mut Vec<Json>, inflated: &mut usize) {
        match value {
            Json::String(text) => {
                if let Some(redacted) = self.marked(text, inflated) {
                    changed.push(std::mem::replace(value, Json::String(redacted)));
                }
            }
            Json::Integer(number) => {
                if let Some(redacted) = self.marked(itoa::Buffer::new().format(*number), inflated) {
                    changed.push(std::mem::replace(value, Json::String(redacted)));
                }
            }
            Json::Verbatim(digits) => {
                if let Some(redacted) = self.marked(digits, inflated) {
                    changed.push(std::mem::replace(value, Json::String(redacted)));
                }
            }
            Json::Array(items) => {
                items.iter_mut().for_each(|item| self.within(item, changed, inflated));
            }
            Json::Object(fields) => {
                let before = changed.len();
                for (at, (name, field)) in fields.iter_mut().enumerate() {
                    if let Some(redacted) = self.marked(name, inflated) {
                        // Two keys with the same marker stay two.
                        let redacted = [&redacted, "#", itoa::Buffer::new().format(at)].concat();
                        changed.push(Json::String(std::mem::replace(name, redacted)));
                    }
                    self.within(field, changed, inflated);
                }
                if changed.len() > before {
                    fields.sort_unstable_by(|(a, _), (b, _)| utf16_order(a, b));
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// A text with a marker in place of what is found in it; `None` if nothing is.
    #[must_use]
    pub fn text(&self, text: &str) -> Option<String> {
        self.marked(text, &mut 0)
    }

    /// A text in whose decoded form more is found is replaced as a whole, and so is one that cannot be read to its end.
    fn marked(&self, text: &str, inflated: &mut usize) -> Option<String> {
        let Some(mut found) = self.shield.matches_within(self.tenant, text, inflated) else {
            return Some(marker("unread"));
        };
        found.retain(|it| self.categories.contains(&it.category));
        let whole = marker(found.first()?.rule);
        let mut counts: BTreeMap<(&str, usize), i64> = BTreeMap::new();
        for Match { rule, length, bytes, .. } in &found {
            *counts.entry((*rule, *length)).or_default() += if bytes.is_some() { 1 } else { -1 };
        }
        if counts.values().any(|more| *more < 0) {
            return Some(whole);
        }
        found.retain(|it| it.bytes.is_some());
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
