//! JSON that is passed on: an object that keeps the order of its fields and the bytes of each value.
//!
//! INVARIANT (same bytes): a value that Gateward does not change is written with the bytes that it came
//! with. Numbers keep their digits, and nested objects keep the order of their keys.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::bounds::MAX_RAW_PARTS;

/// An object whose values are JSON texts.
#[derive(Debug, Clone, Default)]
pub struct RawObject {
    fields: Vec<(String, Box<RawValue>)>,
}

impl RawObject {
    /// Returns `None` when `text` is not an object, has more than [`MAX_RAW_PARTS`] fields, or has a
    /// duplicate key: readers differ in which of the two values they take.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The field's value.
    #[must_use]
    pub fn raw(&self, key: &str) -> Option<&RawValue> {
        self.fields.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    /// The field's JSON text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.raw(key).map(RawValue::get)
    }

    /// Removes a field and returns its value.
    pub fn take(&mut self, key: &str) -> Option<Box<RawValue>> {
        let at = self.fields.iter().position(|(name, _)| name == key)?;
        Some(self.fields.remove(at).1)
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

    /// Replaces the field's value, or adds the field at the end. A value that cannot be written as JSON,
    /// which no caller has, becomes `null`.
    pub fn set(&mut self, key: &str, value: &(impl Serialize + ?Sized)) {
        self.set_raw(key, to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()));
    }

    /// The same with a value that is passed on.
    pub fn set_raw(&mut self, key: &str, value: Box<RawValue>) {
        match self.fields.iter_mut().find(|(name, _)| name == key) {
            Some((_, present)) => *present = value,
            None => self.fields.push((key.to_owned(), value)),
        }
    }

    /// Keeps the fields whose key passes `keep`. Returns whether a field was removed.
    pub fn retain(&mut self, mut keep: impl FnMut(&str) -> bool) -> bool {
        let before = self.fields.len();
        self.fields.retain(|(name, _)| keep(name));
        self.fields.len() < before
    }

    /// The keys with their values' JSON texts, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.get()))
    }

    /// The keys, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields().map(|(name, _)| name)
    }

    /// Removes the field at `path`, which leads through nested objects. Returns whether it was there.
    pub fn remove(&mut self, path: &[&str]) -> bool {
        match path {
            [] => false,
            [key] => self.retain(|name| name != *key),
            [key, rest @ ..] => {
                let Some(mut inner) = self.object(key) else { return false };
                let removed = inner.remove(rest);
                if removed {
                    self.set(key, &inner);
                }
                removed
            }
        }
    }

    /// The object's JSON text.
    #[must_use]
    pub fn write(&self) -> String {
        // Keys are strings and values are JSON already, so writing them cannot fail.
        super::to_string(self)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields.iter().map(|(name, value)| (name, value)))
    }
}

/// The items of an array. Returns `None` when `text` is not an array, or has more than
/// [`MAX_RAW_PARTS`] items.
#[must_use]
pub fn items(text: &str) -> Option<Vec<&RawValue>> {
    items_within(text, MAX_RAW_PARTS)
}

/// The same with another bound. Stops reading at the first item beyond `max`.
#[must_use]
pub fn items_within(text: &str, max: usize) -> Option<Vec<&RawValue>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let items = reader.deserialize_seq(Items(max)).ok()?;
    reader.end().is_ok().then_some(items)
}

struct Items(usize);

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            if items.len() == self.0 {
                return Err(A::Error::custom("too many items"));
            }
            items.push(item);
        }
        Ok(items)
    }
}

/// An array of messages, each a JSON text. A text that is not JSON, which no caller has, is left out.
#[must_use]
pub fn array(messages: &[String]) -> String {
    let messages = messages.iter().filter_map(|text| serde_json::from_str::<&RawValue>(text).ok());
    super::to_string(&messages.collect::<Vec<_>>())
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
        let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
        while let Some(field) = map.next_entry()? {
            if fields.len() == MAX_RAW_PARTS {
                return Err(A::Error::custom("too many fields"));
            }
            fields.push(field);
        }
        // Sorted, so that finding a duplicate among many keys stays fast.
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) {
            true => Err(A::Error::custom("a duplicate key")),
            false => Ok(RawObject { fields }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_not_changed_keeps_its_bytes() {
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
    fn only_objects_without_a_duplicate_key_are_read() {
        for text in
            ["[]", "1", r#"{"a":1,"a":1}"#, r#"{"a":1,"\u0061":2}"#, r#"{"a":}"#, "{} {}", ""]
        {
            assert!(RawObject::parse(text).is_none(), "{text}");
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
        assert!(items(&list(MAX_RAW_PARTS + 1)).is_none());
    }

    #[test]
    fn setting_a_field_replaces_its_value_in_place() {
        let mut object = RawObject::parse(r#"{"a":1,"b":2}"#).unwrap();
        object.set("a", "\"x\n");
        object.set_raw("c", RawValue::from_string("[1.0]".to_owned()).unwrap());
        assert_eq!(object.write(), r#"{"a":"\"x\n","b":2,"c":[1.0]}"#);
        assert_eq!(object.text("a").unwrap(), "\"x\n");
        let items = items(" [1.0, {\"a\" :2}] ").unwrap();
        let texts: Vec<&str> = items.into_iter().map(RawValue::get).collect();
        assert_eq!(texts, ["1.0", "{\"a\" :2}"]);
        assert_eq!(array(&["{\"a\": 1.0}".to_owned(), "2e0".to_owned()]), "[{\"a\": 1.0},2e0]");
    }
}
