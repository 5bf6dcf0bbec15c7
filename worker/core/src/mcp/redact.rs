//! Removes the redacted fields from a call's arguments and from the client's responses in it.

use super::message::decode;
use crate::bounds::MAX_JSON_DEPTH;
use crate::call::parameters::repeats;
use crate::json::{self, Json, Names};
use crate::shield::Redaction;
use serde_json::value::RawValue;

/// The values that were removed from the arguments of a call.
#[derive(Debug, Default, PartialEq)]
pub struct Removed(Vec<Json>);

impl Removed {
    /// Returns the JSON text with markers in place of the values that the shield redacts, and keeps those values. `None`:
    /// the shield redacts nothing.
    pub fn mark(&mut self, text: &str, redaction: Redaction<'_>) -> Option<Box<RawValue>> {
        // The text was parsed before, so it is valid JSON within the bounds. If it is not, an empty object is forwarded.
        let mut value = json::parse(text.as_bytes()).unwrap_or(Json::Object(Vec::new()));
        let before = self.0.len();
        redaction.value(&mut value, &mut self.0);
        (self.0.len() > before).then(|| RawValue::from_string(value.canonical()).ok())?
    }

    /// Whether a header contains one of the removed values. True if the header cannot be decoded.
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
        value => repeats(value, text),
    }
}

/// Returns the JSON text without these fields, at any depth and in any case; `None` when it has no such
/// field. What stays keeps its bytes.
///
/// The text was parsed before, so it is JSON within the bounds.
pub fn redact(text: &str, names: &[String], removed: &mut Removed) -> Option<String> {
    let names = Names::new(names);
    let mut redactor = Redactor { text, at: 0, out: String::new(), copied: 0, names, removed };
    if redactor.value(MAX_JSON_DEPTH, true).is_none() {
        // Unreachable for parsed JSON. Nothing of the text is forwarded.
        return Some("{}".to_owned());
    }
    if redactor.copied == 0 {
        return None;
    }
    redactor.copy_to(text.len());
    Some(redactor.out)
}

struct Redactor<'t> {
    text: &'t str,
    /// The offset of the next byte to read.
    at: usize,
    out: String,
    /// The offset up to which the text was copied or left out.
    copied: usize,
    names: Names,
    removed: &'t mut Removed,
}

/// `None` when the text cannot be read.
impl<'t> Redactor<'t> {
    /// Reads a value. If `redacts`, the named fields are left out.
    fn value(&mut self, levels: usize, redacts: bool) -> Option<()> {
        match self.next()? {
            b'{' => self.object(levels.checked_sub(1)?, redacts),
            b'[' => self.array(levels.checked_sub(1)?, redacts),
            b'"' => self.string().map(drop),
            _ => {
                let rest = self.text.get(self.at..)?;
                let end = rest.find([',', ']', '}', ' ', '\t', '\n', '\r']);
                self.at += end.unwrap_or(rest.len());
                Some(())
            }
        }
    }

    fn array(&mut self, levels: usize, redacts: bool) -> Option<()> {
        self.at += 1;
        while self.next()? != b']' {
            self.value(levels, redacts)?;
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        Some(())
    }

    fn object(&mut self, levels: usize, redacts: bool) -> Option<()> {
        self.at += 1;
        while self.next()? != b'}' {
            let begin = self.at;
            let name = self.string()?;
            let taken = redacts && self.names.has(&serde_json::from_str::<String>(name).ok()?);
            (self.next()? == b':').then_some(())?;
            self.at += 1;
            self.next()?;
            let value = self.at;
            self.value(levels, redacts && !taken)?;
            if taken {
                self.removed.0.extend(json::parse(self.text.get(value..self.at)?.as_bytes()));
                self.copy_to(begin);
                self.copied = self.at;
            }
            match self.next()? {
                b',' => {
                    self.at += 1;
                    if taken {
                        self.copied = self.at;
                    }
                }
                // After the last field, remove the comma that was copied before it.
                _ if taken => {
                    let kept = self.out.trim_end();
                    let kept = kept.strip_suffix(',').unwrap_or(kept).len();
                    self.out.truncate(kept);
                }
                _ => {}
            }
        }
        self.at += 1;
        Some(())
    }

    /// Reads a string; returns it with its quotation marks.
    fn string(&mut self) -> Option<&'t str> {
        let begin = self.at;
        self.at += 1;
        loop {
            let rest = self.text.get(self.at..)?;
            self.at += rest.find(['"', '\\'])?;
            match self.text.as_bytes().get(self.at)? {
                b'"' => break,
                // An escape has at least two bytes.
                _ => self.at += 2,
            }
        }
        self.at += 1;
        self.text.get(begin..self.at)
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }

    fn copy_to(&mut self, end: usize) {
        self.out.push_str(self.text.get(self.copied..end).unwrap_or_default());
        self.copied = end;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn named_fields_are_removed_at_any_depth() {
        for (text, expected) in [
            (r#"{"a":1,"token":"x"}"#, Some(r#"{"a":1}"#)),
            (r#"{"token":{"a":1}}"#, Some("{}")),
            (
                r#"{"list":[1.0, {"b":2,"token":3},[{"ssn":4}]],"k": 1e2}"#,
                Some(r#"{"list":[1.0, {"b":2},[{}]],"k": 1e2}"#),
            ),
            (r#"{"t\u006fken":1,"TO\u212aEN":2,"\u017fsn":3,"b":4}"#, Some(r#"{"b":4}"#)),
            (r#"{"token\u0000":1,"tokens":2}"#, Some(r#"{"tokens":2}"#)),
            (r#"{"a":"token","b":["ssn"]}"#, None),
            (r#"{}"#, None),
            (r#"[]"#, None),
            (r#""token""#, None),
            ("-1.5e3", None),
            (
                r#" { "ssn" : { "token" : 1 } , "a\"," : "\\" , "token":[1,"}"] } "#,
                Some(r#" {  "a\"," : "\\"  } "#),
            ),
            (
                r#"{"token":1,"ssn":2,"a":{"ssn":"é\u0022]"},"token\u0000":[{"ssn":1}]}"#,
                Some(r#"{"a":{}}"#),
            ),
            (
                r#"[{"ssn":1},{"a":1,"ssn":2,"b":[{}, true]},"{\"ssn\":1}"]"#,
                Some(r#"[{},{"a":1,"b":[{}, true]},"{\"ssn\":1}"]"#),
            ),
        ] {
            let names = ["token".to_owned(), "ssn".to_owned()];
            let redacted = redact(text, &names, &mut Removed::default());
            assert_eq!(redacted.as_deref(), expected, "{text}");
        }
    }

    proptest! {
        /// The redacted text has the same value as the parsed text without the fields.
        #[test]
        fn redacting_text_is_redacting_its_value(
            text in value(),
        ) {
            let names = ["token".to_owned(), "ssn".to_owned()];
            let mut expected = json::parse(text.as_bytes()).unwrap();
            let before = expected.clone();
            expected.remove(&Names::new(&names));
            let redacted = redact(&text, &names, &mut Removed::default());
            prop_assert_eq!(redacted.is_some(), expected != before, "{}", text);
            if let Some(redacted) = redacted {
                prop_assert_eq!(json::parse(redacted.as_bytes()).unwrap(), expected, "{}", redacted);
            }
        }
    }

    /// JSON with white space in many places, and with fields that are redacted.
    fn value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("1".to_owned()),
            Just("null".to_owned()),
            Just(r#""a\"}],\\""#.to_owned()),
            Just("\"é\"".to_owned()),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let name = prop_oneof![Just("token"), Just("SSN"), Just("a"), Just("b"), Just("c")];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| format!("[ {} ]", items.join(" ,"))),
                prop::collection::btree_map(name, inner, 0..4).prop_map(|fields| {
                    let fields = fields.iter().map(|(k, v)| format!("\n\"{k}\" :\t{v} "));
                    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
                }),
            ]
        })
    }

    #[test]
    fn a_header_that_repeats_a_removed_value_is_found() {
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
