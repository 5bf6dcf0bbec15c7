//! JSON that is passed on: an object whose fields keep their order, and each its own bytes.
//!
//! What is not changed leaves as it came, to the last digit: neither a number nor the order of keys
//! is anything that Gateward may write differently than the server did.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::bounds::MAX_RAW_PARTS;
use crate::json::write_string;

/// An object; the values are JSON texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawObject {
    fields: Vec<(String, Box<str>)>,
}

impl RawObject {
    /// `None` when `text` is no object, has more than [`MAX_RAW_PARTS`] fields, or names a field
    /// twice: which of the two a reader takes is not known.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The field's JSON text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// Whether it has no field but these.
    #[must_use]
    pub fn has_only(&self, keys: &[&str]) -> bool {
        self.fields.iter().all(|(name, _)| keys.contains(&name.as_str()))
    }

    /// The field, if it is an object.
    #[must_use]
    pub fn object(&self, key: &str) -> Option<Self> {
        Self::parse(self.get(key)?)
    }

    /// The field, if it is a string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.get(key)?).ok()
    }

    /// Puts a JSON text in the field's place, or at the end.
    pub fn set(&mut self, key: &str, json: impl Into<Box<str>>) {
        let json = json.into();
        match self.fields.iter_mut().find(|(name, _)| name == key) {
            Some((_, value)) => *value = json,
            None => self.fields.push((key.to_owned(), json)),
        }
    }

    pub fn set_text(&mut self, key: &str, text: &str) {
        self.set(key, quoted(text));
    }

    /// Keeps the fields for which it holds; whether any is gone.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) -> bool {
        let before = self.fields.len();
        self.fields.retain(|(name, _)| keep(name));
        self.fields.len() < before
    }

    /// The fields with their JSON texts, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), &**value))
    }

    /// The fields' names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields().map(|(name, _)| name)
    }

    /// Removes what `path` leads to through objects; whether it was there.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        match path {
            [] => false,
            [key] => self.retain(|name| name != *key),
            [key, rest @ ..] => {
                let Some(mut inner) = self.object(key) else { return false };
                let removed = inner.remove(rest);
                if removed {
                    self.set(key, inner.write());
                }
                removed
            }
        }
    }

    /// The object's JSON text.
    #[must_use]
    pub fn write(&self) -> String {
        let mut out = String::from("{");
        for (name, value) in &self.fields {
            if out.len() > 1 {
                out.push(',');
            }
            write_string(name, &mut out);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

/// The JSON texts of an array's items; `None` when it is no array, or has more than
/// [`MAX_RAW_PARTS`].
#[must_use]
pub fn items(text: &str) -> Option<Vec<&str>> {
    items_within(text, MAX_RAW_PARTS)
}

/// The same; `None` also when there are more than `max`, as soon as that is known.
#[must_use]
pub fn items_within(text: &str, max: usize) -> Option<Vec<&str>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let items = reader.deserialize_seq(Items(max)).ok()?;
    reader.end().is_ok().then_some(items)
}

struct Items(usize);

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<&RawValue>()? {
            if items.len() == self.0 {
                return Err(A::Error::custom("too many"));
            }
            items.push(item.get());
        }
        Ok(items)
    }
}

/// The array of JSON texts.
#[must_use]
pub fn array<T: AsRef<str>>(items: &[T]) -> String {
    let mut out = String::from("[");
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    out
}

/// A string as JSON text.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::new();
    write_string(text, &mut out);
    out
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
        let mut object = RawObject::default();
        while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if object.fields.len() == MAX_RAW_PARTS {
                return Err(A::Error::custom("too many fields"));
            }
            object.fields.push((key, value.into()));
        }
        // Sorted, so that many keys take little more time than few, whichever they are.
        let mut names: Vec<&str> = object.fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            true => Err(A::Error::custom("a key stands twice")),
            false => Ok(object),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_changed_keeps_its_bytes() {
        for (text, path, expected) in [
            (r#"{"b":1.50,"a":{"$defs":{"x": 1e2}}}"#, &["c"][..], None),
            (
                r#"{"b":1.50,"a":{"$defs":{"x": 1e2}}}"#,
                &["b"],
                Some(r#"{"a":{"$defs":{"x": 1e2}}}"#),
            ),
            (
                r#"{"a":{"b":{"c":1,"d":12345678901234567890}}}"#,
                &["a", "b", "c"],
                Some(r#"{"a":{"b":{"d":12345678901234567890}}}"#),
            ),
            (r#"{"a":[1],"b":2}"#, &["a", "b"], None),
        ] {
            let mut object = RawObject::parse(text).unwrap();
            assert_eq!(object.remove(path), expected.is_some(), "{text}");
            assert_eq!(object.write(), expected.unwrap_or(text).to_owned());
        }
    }

    #[test]
    fn only_objects_without_a_doubled_key_are_read() {
        for text in
            ["[]", "1", r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"a":}"#, "{} {}", ""]
        {
            assert_eq!(RawObject::parse(text), None, "{text}");
        }
    }

    /// 80,000 fields took 25 s: each key was compared with all keys before it.
    #[test]
    fn many_fields_are_read_and_too_many_are_refused() {
        let object = |fields: usize, last: &str| {
            let fields = (1..fields).map(|at| format!(r#""key{at}":{at},"#)).collect::<String>();
            format!(r#"{{{fields}"{last}":0}}"#)
        };
        assert!(RawObject::parse(&object(MAX_RAW_PARTS, "last")).is_some());
        assert!(RawObject::parse(&object(MAX_RAW_PARTS, "key1")).is_none());
        assert!(RawObject::parse(&object(MAX_RAW_PARTS + 1, "last")).is_none());
        let list = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
        assert_eq!(items(&list(MAX_RAW_PARTS)).unwrap().len(), MAX_RAW_PARTS);
        assert_eq!(items(&list(MAX_RAW_PARTS + 1)), None);
    }

    #[test]
    fn a_field_that_is_set_takes_the_place_of_the_old() {
        let mut object = RawObject::parse(r#"{"a":1,"b":2}"#).unwrap();
        object.set_text("a", "\"x\n");
        object.set("c", "[]");
        assert_eq!(object.write(), r#"{"a":"\"x\n","b":2,"c":[]}"#);
        assert_eq!(object.text("a").unwrap(), "\"x\n");
        assert_eq!(items(" [1.0, {\"a\" :2}] ").unwrap(), ["1.0", "{\"a\" :2}"]);
    }
}
