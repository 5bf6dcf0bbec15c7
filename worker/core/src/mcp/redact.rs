//! Takes named fields out of a call's arguments, and out of what its client answered, before they are
//! forwarded.

use super::message::{decode, mirrors};
use super::raw::{RawObject, array, items};
use crate::json::{self, Json, same_folded};

/// What was taken out.
#[derive(Debug, Default, PartialEq)]
pub struct Removed(Vec<Json>);

impl Removed {
    /// Whether a header's value shows any of it.
    #[must_use]
    pub fn shows(&self, header: &str) -> bool {
        let Ok(text) = decode(header) else { return true };
        self.0.iter().any(|value| shows(value, &text))
    }
}

fn shows(value: &Json, text: &str) -> bool {
    match value {
        Json::Array(items) => items.iter().any(|item| shows(item, text)),
        Json::Object(fields) => fields.iter().any(|(_, value)| shows(value, text)),
        value => mirrors(value, text),
    }
}

/// The JSON text without any field that a lenient reader may take for one of these, at any depth; `None` when there is
/// none, and the text stays as it is. Its depth is bounded: it was read before.
pub fn redact(text: &str, names: &[String], removed: &mut Removed) -> Option<String> {
    let named = |name: &str| names.iter().any(|redacted| same_folded(redacted, name));
    if let Some(mut object) = RawObject::parse(text) {
        let mut changed = false;
        for (name, value) in object.iter_mut() {
            if named(name) {
                removed.0.extend(json::parse(value.as_bytes()));
            } else if let Some(inner) = redact(value, names, removed) {
                *value = inner.into();
                changed = true;
            }
        }
        changed |= object.retain(|name| !named(name));
        return changed.then(|| object.write());
    }
    let items = items(text)?;
    let redacted: Vec<Option<String>> =
        items.iter().map(|item| redact(item, names, removed)).collect();
    redacted.iter().any(Option::is_some).then(|| {
        let items: Vec<&str> = items
            .iter()
            .zip(&redacted)
            .map(|(item, redacted)| redacted.as_deref().unwrap_or(item))
            .collect();
        array(&items)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_fields_are_taken_out_at_any_depth() {
        for (text, expected) in [
            (r#"{"a":1,"token":"x"}"#, Some(r#"{"a":1}"#)),
            (r#"{"token":{"a":1}}"#, Some("{}")),
            (
                r#"{"list":[1.0, {"b":2,"token":3},[{"ssn":4}]],"k": 1e2}"#,
                Some(r#"{"list":[1.0,{"b":2},[{}]],"k":1e2}"#),
            ),
            (r#"{"t\u006fken":1,"TO\u212aEN":2,"\u017fsn":3,"b":4}"#, Some(r#"{"b":4}"#)),
            (r#"{"token\u0000":1,"tokens":2}"#, Some(r#"{"tokens":2}"#)),
            (r#"{"a":"token","b":["ssn"]}"#, None),
            (r#"{}"#, None),
        ] {
            let names = ["token".to_owned(), "ssn".to_owned()];
            let redacted = redact(text, &names, &mut Removed::default());
            assert_eq!(redacted.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_header_that_mirrors_what_was_taken_out_shows_it() {
        let mut removed = Removed::default();
        redact(r#"{"a":{"token":["x",{"n":5}]},"b":"y"}"#, &["token".to_owned()], &mut removed);
        for (header, expected) in [
            ("x", true),
            ("=?base64?eA==?=", true),
            ("5.0", true),
            ("y", false),
            ("=?base64?!?=", true),
        ] {
            assert_eq!(removed.shows(header), expected, "{header}");
        }
    }
}
