//! The types of a request's fields. A value is checked once, when it is parsed. A field that is not valid is
//! a 422 with the field's name.

use std::ops::Deref;

use chrono::DateTime;
use serde::de::{DeserializeOwned, Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;

use crate::bounds::MAX_LABEL_BYTES;
use crate::id::rfc3339;
use crate::json::{Json, append_name, append_path};
use crate::name::{is_name, is_tool_name};
use crate::problem::Problem;
use crate::warrant::key::PublicKey;

/// Reads a request's body.
///
/// # Errors
///
/// `malformed_request` if the body is not JSON, `input_invalid` if it is ambiguous, else `invalid_field`.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Checks the bounds on depth, values and keys. The bounds of numbers depend on their fields.
    let body_read = crate::json::parse_definition(body)?;
    require_object(&body_read)?;
    parse_within("", crate::json::utf8(body)?)
}

/// serde would read an array as the fields of a struct, in order.
fn require_object(body: &Json) -> Result<(), Problem> {
    match body {
        Json::Object(_) => Ok(()),
        other => {
            let detail = format!("`.`: the body must be an object, not {}", other.kind());
            Err(Problem::field(".", detail))
        }
    }
}

/// Reads the JSON of the field `within`. The whole body was checked against the bounds before.
///
/// # Errors
///
/// `invalid_field`.
pub fn parse_within<T: DeserializeOwned>(within: &str, text: &str) -> Result<T, Problem> {
    read(text).map_err(|error| refused(within, text, &error, fails::<T>))
}

/// Not inlined, so that the Wasm contains the code for each type once.
#[inline(never)]
fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
}

/// Whether reading the beginning of a text has an error other than an early end.
fn fails<T: DeserializeOwned>(beginning: &str) -> bool {
    read::<T>(beginning).is_err_and(|error| !error.is_eof())
}

/// Not generic, so that it is compiled only once.
fn refused(
    within: &str,
    text: &str,
    error: &serde_json::Error,
    fails: fn(&str) -> bool,
) -> Problem {
    let message = error.to_string();
    // The path is more useful than line and column.
    let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    let mut field = within.to_owned();
    append_path(&mut field, text, error, fails);
    if let Some(name) = absent_or_unknown(message) {
        append_name(&mut field, name);
    }
    if field.is_empty() {
        field.push('.');
    }
    Problem::field(&field, format!("`{field}`: {}", without_value(message)))
}

/// The field's name in a message about a field that is missing or unknown.
fn absent_or_unknown(message: &str) -> Option<&str> {
    if let Some(rest) = message.strip_prefix("missing field `") {
        return rest.strip_suffix('`');
    }
    // The name comes first, so the last of these is serde's own.
    message.strip_prefix("unknown field `")?.rsplit_once("`, expected ").map(|(name, _)| name)
}

/// A message of serde without the value that it is about: an argument or a secret may be in the wrong place.
fn without_value(text: &str) -> String {
    let about_a_value = ["invalid type: ", "invalid value: ", "unknown variant "];
    if !about_a_value.iter().any(|start| text.starts_with(start)) {
        return text.to_owned();
    }
    // The value comes first, so the last of these is serde's own.
    let (found, expected) = text.rsplit_once(", expected ").unwrap_or((text, "another value"));
    let kind = found.split(['"', '`']).next().unwrap_or_default().trim_end();
    format!("{kind}, expected {expected}")
}

/// For a field of a patch, where `null` differs from absent: returns `Some` also for `null`.
pub fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Defines a newtype of a string with a check.
macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $check:expr, $expected:expr, $schema:meta) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
        #[serde(transparent)]
        #[$schema]
        pub struct $name(String);

        impl $name {
            /// # Errors
            ///
            /// A sentence that says which values are allowed.
            pub fn parse(text: &str) -> Result<Self, String> {
                if $check(text) { Ok(Self(text.to_owned())) } else { Err($expected.to_owned()) }
            }
        }

        impl Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }
    };
}

text!(
    /// A name of a tenant, agent, server, group, administrator or key.
    Name,
    is_name,
    "must be a name: `[a-z0-9][a-z0-9_-]{0,62}`",
    schema(pattern = "^[a-z0-9][a-z0-9_-]{0,62}$", example = "coder")
);
text!(
    /// A tool's name, as its server lists it.
    ToolName,
    // URL parsers remove `.` and `..` from paths, even if they are encoded.
    |text: &str| is_tool_name(text) && text != "." && text != "..",
    "must be a tool's name: 1 to 128 of `[A-Za-z0-9_./-]`, but not `.` or `..`",
    schema(pattern = "^[A-Za-z0-9_./-]{1,128}$", example = "get_issue")
);
text!(
    /// A text of the caller's own.
    Label,
    |text: &str| (1..=MAX_LABEL_BYTES).contains(&text.len()) && !text.contains(char::is_control),
    "must be a text of 1 to 256 bytes without control characters",
    schema(min_length = 1, max_length = 256, example = "production")
);

text!(
    /// Where an agent runs, such as `production`; calls must name the same.
    Environment,
    |text: &str| Label::parse(text).is_ok(),
    "must be a text of 1 to 256 bytes without control characters",
    schema(min_length = 1, max_length = 256, example = "production")
);

/// A yes or no that is 0 or 1 in D1 and in stored records. Any other value cannot be read.
pub mod flag {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    /// # Errors
    ///
    /// The serializer's.
    pub fn serialize<S: Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8((*flag).into())
    }

    /// # Errors
    ///
    /// The value is neither 0 nor 1.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
        match u8::deserialize(deserializer)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(D::Error::custom("must be 0 or 1")),
        }
    }
}

/// A whole number within bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole<const MIN: u32, const MAX: u32>(pub u32);

impl<'de, const MIN: u32, const MAX: u32> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).ok().filter(|value| (MIN..=MAX).contains(value)).map_or_else(
            || Err(D::Error::custom(format!("must be a whole number from {MIN} to {MAX}"))),
            |value| Ok(Self(value)),
        )
    }
}

/// An Ed25519 public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{64}$", example = "29acbae141bccaf0b22e1a94d34d0bc7361e526d0bfe12c89794bc9322966dd7")]
pub struct Ed25519Key(pub PublicKey);

impl<'de> Deserialize<'de> for Ed25519Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?.parse();
        key.map(Self).map_err(|what| D::Error::custom(format!("must be {what}")))
    }
}

/// A time in a request: RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_time(&text).map(Self).ok_or_else(|| D::Error::custom("must be an RFC 3339 time"))
    }
}

/// Milliseconds since the Unix epoch of an RFC 3339 time that is not before it.
#[must_use]
pub fn parse_time(text: &str) -> Option<u64> {
    u64::try_from(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis()).ok()
}

/// A time in a record: milliseconds in D1, RFC 3339 in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

/// A list of at most [`crate::bounds::MAX_LIST_ENTRIES`].
pub fn bounded<T>(field: &str, list: Option<&Vec<T>>) -> Result<(), Problem> {
    if list.is_none_or(|list| list.len() <= crate::bounds::MAX_LIST_ENTRIES) {
        return Ok(());
    }
    let most = crate::bounds::MAX_LIST_ENTRIES;
    Err(Problem::field(field, format!("`{field}`: must have at most {most} entries")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::ProblemCode;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
        Two,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Body {
        name: Option<String>,
        count: Option<u8>,
        kind: Option<Kind>,
        list: Option<Vec<String>>,
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        name: Name,
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named_without_its_value() {
        for (body, field, detail) in [
            (r#"{"count":"s3cret"}"#, "count", "`count`: invalid type: string, expected u8"),
            (r#"{"name":4111111111}"#, "name", "`name`: invalid type: integer, expected a string"),
            (r#"{"count":4111}"#, "count", "`count`: invalid value: integer, expected u8"),
            (r#"{"name":true}"#, "name", "`name`: invalid type: boolean, expected a string"),
            (r#"{"list":{"a":1}}"#, "list", "`list`: invalid type: map, expected a sequence"),
            (r#"{"kind":"s3cret"}"#, "kind", "`kind`: unknown variant, expected `one` or `two`"),
            (
                r#"{"count":"x at line 1, expected s3cret` \"s3cret"}"#,
                "count",
                "`count`: invalid type: string, expected u8",
            ),
            (r#"{"inner":{}}"#, "inner.name", "`inner.name`: missing field `name`"),
            (
                r#"{"inner":{"na`me":"s3cret"}}"#,
                "inner.na`me",
                "`inner.na`me`: unknown field `na`me`, expected `name`",
            ),
        ] {
            let problem = parse::<Body>(body.as_bytes()).unwrap_err();
            assert_eq!((problem.field.as_deref(), problem.detail.as_str()), (Some(field), detail));
        }
    }

    #[test]
    fn a_field_within_a_field_is_named_with_it() {
        for (text, field) in [
            ("5", "rule"),
            ("[5]", "rule[0]"),
            ("{}", "rule.name"),
            (r#"{"name":"A"}"#, "rule.name"),
            (r#"{"nam":"a"}"#, "rule.nam"),
        ] {
            let problem = parse_within::<Inner>("rule", text).unwrap_err();
            assert_eq!(problem.field.as_deref(), Some(field), "{text}");
        }
    }

    #[test]
    fn a_time_is_rfc_3339_and_not_before_1970() {
        for (text, expected) in [
            ("2026-11-18T11:06:40.123Z", Some(1_795_000_000_123)),
            ("2026-11-18T12:06:40.1239+01:00", Some(1_795_000_000_123)),
            ("2026-11-18t10:36:40.123-00:30", Some(1_795_000_000_123)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799_000)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59Z", None),
            ("2026-11-18T11:06Z", None),
            ("2026-11-18T11:06:40", None),
            ("2026-11-18T11:06:40+01", None),
            ("2026-11-18T11:06:40Z[UTC]", None),
            ("20261118T110640Z", None),
            ("+002026-11-18T11:06:40Z", None),
            ("2026-02-29T11:06:40Z", None),
            ("2026-11-18T24:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(parse_time(text), expected, "{text}");
        }
    }

    #[test]
    fn a_body_must_be_an_object() {
        for (body, detail) in [
            (r#"["a",1]"#, "`.`: the body must be an object, not an array"),
            ("null", "`.`: the body must be an object, not null"),
            (r#""a""#, "`.`: the body must be an object, not a string"),
        ] {
            let problem = parse::<Body>(body.as_bytes()).unwrap_err();
            assert_eq!(
                (problem.code, problem.detail.as_str()),
                (ProblemCode::InvalidField, detail)
            );
        }
        assert!(parse::<Body>(b"{}").is_ok());
    }
}
