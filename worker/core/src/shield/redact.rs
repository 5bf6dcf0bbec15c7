//! Replaces secrets and personal data by markers.

use std::collections::BTreeMap;

use super::inspect::{Match, Reading, Shield};
use super::left::Left;
use super::mode::Category;
use super::path::{begins_as_json, has_digits, name_of_value};
use crate::json::{self, Json, sort_fields};
use crate::provenance::part::MAX_READ_BYTES;

/// What is to be replaced in a call that passes.
#[derive(Debug, Clone, Copy)]
pub struct Redaction<'s> {
    pub shield: &'s Shield,
    pub tenant: &'s str,
    /// Empty: nothing.
    pub categories: &'s [Category],
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Call,
    Answer,
    /// A text of an answer that is JSON.
    Document,
}

impl Redaction<'_> {
    /// Whether something is to be replaced.
    #[must_use]
    pub fn is_needed(&self) -> bool {
        !self.categories.is_empty()
    }

    /// Replaces what is found in a call's arguments, keys included, and adds what was changed to `changed`.
    pub fn value(&self, value: &mut Json, changed: &mut Vec<Json>) {
        self.within(value, None, changed, Origin::Call, &mut Left::of(MAX_READ_BYTES));
    }

    /// A reader of a call's texts: each with markers in place of what is found in it; `None` if nothing is. All its texts
    /// share the bounds of one call. The second argument is the name of the field whose value the text is.
    pub fn texts(&self) -> impl FnMut(&str, Option<&str>) -> Option<String> {
        let mut left = Left::of(MAX_READ_BYTES);
        move |text, name| self.marked(text, name, &mut left)
    }

    /// The JSON of an answer with markers in place of what is found in it, also in texts that are JSON themselves.
    /// `None` if it cannot be read.
    #[must_use]
    pub fn answer(&self, json: &str) -> Option<String> {
        let mut value = json::parse_definition(json.as_bytes()).ok()?;
        let left = &mut Left::of(2 * MAX_READ_BYTES);
        self.within(&mut value, None, &mut Vec::new(), Origin::Answer, left);
        Some(value.canonical())
    }

    /// A text of an answer, likewise; `None` if nothing is found in it, or if it is JSON that cannot be read.
    #[must_use]
    pub fn answer_text(&self, text: &str) -> Option<String> {
        if begins_as_json(text.trim_start()) && json::parse_definition(text.as_bytes()).is_err() {
            return None;
        }
        self.document(text, None, &mut Left::of(2 * MAX_READ_BYTES))
    }

    /// `name`: the name of the field whose value it is.
    fn within(
        &self,
        value: &mut Json,
        name: Option<&str>,
        changed: &mut Vec<Json>,
        origin: Origin,
        left: &mut Left,
    ) {
        let redacted = match value {
            Json::String(text) => match origin {
                Origin::Call | Origin::Document => self.marked(text, name, left),
                Origin::Answer => self.document(text, name, left),
            },
            Json::Integer(number) if has_digits(*number) => {
                self.marked(itoa::Buffer::new().format(*number), name, left)
            }
            Json::Verbatim(digits) => self.marked(digits, name, left),
            Json::Array(items) => {
                items.iter_mut().for_each(|item| self.within(item, name, changed, origin, left));
                None
            }
            Json::Object(fields) => {
                let before = changed.len();
                let named = name_of_value(fields, name);
                let named = named.map(|(field, said)| (field.to_owned(), said.to_owned()));
                for (at, (name, field)) in fields.iter_mut().enumerate() {
                    let redacted = self.marked(name, None, left);
                    let said = named.as_ref().filter(|(of, _)| of == name);
                    let said = said.map_or(name.as_str(), |(_, said)| said);
                    self.within(field, Some(said), changed, origin, left);
                    if let Some(redacted) = redacted {
                        // Two keys with the same marker must stay different.
                        let redacted = [&redacted, "#", itoa::Buffer::new().format(at)].concat();
                        changed.push(Json::String(std::mem::replace(name, redacted)));
                    }
                }
                if changed.len() > before {
                    sort_fields(fields);
                }
                None
            }
            Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Number(_) => None,
        };
        if let Some(redacted) = redacted {
            changed.push(std::mem::replace(value, Json::String(redacted)));
        }
    }

    /// A text that may be JSON; `None` if nothing is found in it.
    fn document(&self, text: &str, name: Option<&str>, left: &mut Left) -> Option<String> {
        // What is found in the text itself may lie across several values.
        let value = json::parse_definition(text.as_bytes()).ok();
        let document = value.filter(is_nested).and_then(|mut value| {
            let mut changed = Vec::new();
            self.within(&mut value, None, &mut changed, Origin::Document, left);
            (!changed.is_empty()).then(|| value.canonical())
        });
        self.marked(document.as_deref().unwrap_or(text), name, left).or(document)
    }

    /// The text with markers in place of what is found in it; `None` if nothing is found. One marker replaces the whole
    /// text if more is found in another reading than in the text itself, or if the text cannot be read to its end.
    fn marked(&self, text: &str, name: Option<&str>, left: &mut Left) -> Option<String> {
        let only = Some(self.categories);
        let found = self.shield.matches_within((self.tenant, only), (name, text), left);
        let Some(mut found) = found else { return Some(marker("unread")) };
        let whole = marker(found.first()?.rule);
        let mut counts: BTreeMap<(&str, usize), BTreeMap<Reading, usize>> = BTreeMap::new();
        for Match { rule, length, reading, .. } in &found {
            let of_length = counts.entry((*rule, *length)).or_default();
            *of_length.entry(*reading).or_default() += 1;
        }
        let is_hidden = |of_length: &BTreeMap<Reading, usize>| {
            let plain = of_length.get(&Reading::Plain).copied().unwrap_or_default();
            of_length.values().any(|count| *count > plain)
        };
        if counts.values().any(is_hidden) {
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

/// Whether a value is more than one text or number.
fn is_nested(value: &Json) -> bool {
    matches!(value, Json::Array(_) | Json::Object(_))
}

fn marker(rule: &str) -> String {
    ["[redacted:", rule, "]"].concat()
}
