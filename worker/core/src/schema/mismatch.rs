//! The sentence about arguments that do not match a schema. For each mismatch it has the place as a JSON
//! Pointer, the keyword, and what is allowed, so that a model can correct its call.
//!
//! Schemas come from servers and arguments from agents, and both may be hostile. So the sentence and each
//! part of it are bounded, and invisible characters are escaped. It contains names and places of arguments,
//! but no values. Writing it takes time linear in the number of causes.

use std::borrow::Cow;
use std::fmt::Write as _;

use boon::{ErrorKind as Kind, InstanceLocation, InstanceToken, ValidationError};
use serde_json::{Number, Value};

/// The beginning of the sentence.
pub const MISMATCH: &str = "The arguments do not match the tool's schema";

/// Bytes of the sentence: some ten causes with short names.
pub const MAX_SENTENCE_BYTES: usize = 640;

/// Bytes of a place, a name or a pattern.
const MAX_PART_BYTES: usize = 128;

/// Bytes of the list of allowed values.
const MAX_VALUES_BYTES: usize = 256;

/// Causes in the sentence. A model that corrects these may get others next.
const MAX_CAUSES: usize = 4;

/// Names in a list.
const MAX_NAMES: usize = 8;

/// Describes the mismatches, up to the bounds.
pub fn describe(error: &ValidationError<'_, '_>) -> String {
    let mut causes = Causes { left: MAX_CAUSES };
    let description = causes.describe(error);
    let sentence = shortened(&description, MAX_SENTENCE_BYTES);
    format!("{MISMATCH}: {sentence}.")
}

struct Causes {
    left: usize,
}

impl Causes {
    /// Describes an error: several causes are joined by `;`, alternatives by `or`.
    fn describe(&mut self, error: &ValidationError<'_, '_>) -> String {
        // For a property's name, the causes inside are not described.
        let is_leaf = matches!(error.kind, Kind::PropertyName { .. });
        if error.causes.is_empty() || is_leaf {
            self.left = self.left.saturating_sub(1);
            return clause(error);
        }
        let (join, rest) = match error.kind {
            Kind::AnyOf | Kind::OneOf(None) => (", or ", ", or another alternative"),
            _ => ("; ", "; and more"),
        };
        let mut description = String::new();
        for (at, cause) in error.causes.iter().enumerate() {
            if at > 0 && self.left == 0 {
                description.push_str(rest);
                break;
            }
            let cause = self.describe(cause);
            // Equal alternatives are described once.
            if !description.contains(&cause) {
                description.push_str(if description.is_empty() { "" } else { join });
                description.push_str(&cause);
            }
        }
        description
    }
}

/// One mismatch: the place, what is allowed, and the keyword.
fn clause(error: &ValidationError<'_, '_>) -> String {
    let (must, keyword) = rule(&error.kind);
    format!("{} {must} (`{keyword}`)", place(&error.instance_location))
}

/// The place of the value that does not match.
fn place(location: &InstanceLocation<'_>) -> String {
    if location.tokens.is_empty() {
        return "the arguments".to_owned();
    }
    let mut pointer = String::new();
    for token in &location.tokens {
        // The rest would be cut off.
        if pointer.len() > MAX_PART_BYTES {
            break;
        }
        pointer.push('/');
        match token {
            InstanceToken::Prop(name) => {
                let name = shortened(name, MAX_PART_BYTES);
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            InstanceToken::Item(at) => {
                let _ = write!(pointer, "{at}");
            }
        }
    }
    quoted(&pointer)
}

/// What the value must be, to follow its place, and the keyword.
fn rule(kind: &Kind<'_, '_>) -> (String, &'static str) {
    match kind {
        Kind::Type { want, .. } => {
            let types: Vec<String> = want.iter().map(|kind| kind.to_string()).collect();
            (format!("must be of type {}", types.join(" or ")), "type")
        }
        Kind::Enum { want } => (format!("must be one of {}", values(*want)), "enum"),
        Kind::Const { want } => (format!("must be {}", values([*want])), "const"),
        Kind::Format { want, .. } => (format!("must have the format {want}"), "format"),
        Kind::Required { want } => (format!("must have {}", names(want)), "required"),
        Kind::AdditionalProperties { got } => {
            (format!("must not have {}", names(got)), "additionalProperties")
        }
        Kind::PropertyName { prop } => {
            (format!("must not have the name {}", names(&[prop])), "propertyNames")
        }
        Kind::Dependency { prop, missing } | Kind::DependentRequired { prop, missing } => {
            let needed = format!("must have {} if it has {}", names(missing), names(&[prop]));
            (needed, "dependentRequired")
        }
        Kind::MinProperties { want, .. } => (least(*want, "properties"), "minProperties"),
        Kind::MaxProperties { want, .. } => (most(*want, "properties"), "maxProperties"),
        Kind::MinItems { want, .. } => (least(*want, "items"), "minItems"),
        Kind::MaxItems { want, .. } => (most(*want, "items"), "maxItems"),
        Kind::MinLength { want, .. } => (least(*want, "characters"), "minLength"),
        Kind::MaxLength { want, .. } => (most(*want, "characters"), "maxLength"),
        Kind::MinContains { want, .. } => (least(*want, "items of its kind"), "minContains"),
        Kind::MaxContains { want, .. } => (most(*want, "items of its kind"), "maxContains"),
        Kind::Contains => ("must have an item of its kind".to_owned(), "contains"),
        Kind::UniqueItems { got: [one, other] } => {
            (format!("must not have equal items, as {one} and {other} are"), "uniqueItems")
        }
        Kind::AdditionalItems { got } => {
            (format!("must not have its last {got} items"), "additionalItems")
        }
        Kind::Pattern { want, .. } => {
            (format!("must match {}", quoted(&shortened(want, MAX_PART_BYTES))), "pattern")
        }
        Kind::Minimum { want, .. } => (format!("must be at least {}", number(want)), "minimum"),
        Kind::Maximum { want, .. } => (format!("must be at most {}", number(want)), "maximum"),
        Kind::ExclusiveMinimum { want, .. } => {
            (format!("must be greater than {}", number(want)), "exclusiveMinimum")
        }
        Kind::ExclusiveMaximum { want, .. } => {
            (format!("must be less than {}", number(want)), "exclusiveMaximum")
        }
        Kind::MultipleOf { want, .. } => {
            (format!("must be a multiple of {}", number(want)), "multipleOf")
        }
        Kind::FalseSchema => ("must be absent".to_owned(), "false"),
        Kind::Not => ("must not match the schema that is excluded".to_owned(), "not"),
        Kind::OneOf(Some((one, other))) => {
            (format!("must match exactly one alternative, but matches {one} and {other}"), "oneOf")
        }
        Kind::OneOf(None) => ("must match exactly one alternative".to_owned(), "oneOf"),
        Kind::AnyOf => ("must match at least one alternative".to_owned(), "anyOf"),
        Kind::AllOf => ("must match all of the schemas".to_owned(), "allOf"),
        _ => ("must match the referenced schema".to_owned(), "$ref"),
    }
}

fn least(count: usize, what: &str) -> String {
    format!("must have at least {count} {what}")
}

fn most(count: usize, what: &str) -> String {
    format!("must have at most {count} {what}")
}

/// A number as in JSON. Large integers of a schema are doubles here.
fn number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (None, Some(value)) => ryu_js::Buffer::new().format(value).to_owned(),
        _ => number.to_string(),
    }
}

/// Values as JSON texts, up to the bound.
fn values<'v>(values: impl IntoIterator<Item = &'v Value>) -> String {
    let mut list = String::new();
    for value in values {
        if list.len() > MAX_VALUES_BYTES {
            return list + ", …";
        }
        let value = match value {
            Value::Number(value) => number(value),
            // A long text is shortened before it is written as JSON.
            Value::String(text) => Value::from(shortened(text, MAX_PART_BYTES)).to_string(),
            value => value.to_string(),
        };
        list.push_str(if list.is_empty() { "" } else { ", " });
        list.push_str(&quoted(&shortened(&value, MAX_PART_BYTES)));
    }
    list
}

/// Names, up to the bound.
fn names<T: AsRef<str>>(names: &[T]) -> String {
    let mut list: Vec<String> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| quoted(&shortened(name.as_ref(), MAX_PART_BYTES)))
        .collect();
    if names.len() > MAX_NAMES {
        list.push("…".to_owned());
    }
    list.join(", ")
}

/// The text, shortened to `max_bytes`.
pub fn shortened(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let mut end = max_bytes;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned([text.get(..end).unwrap_or_default(), "…"].concat())
}

/// The text in backticks. Invisible characters and backticks are escaped as in Rust.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote(&mut out, text);
    out
}

/// Writes the same behind another text.
pub fn quote(out: &mut String, text: &str) {
    out.push('`');
    for character in text.chars() {
        match character {
            '`' => out.push_str("\\u{60}"),
            ' '..='~' => out.push(character),
            _ => out.extend(character.escape_debug()),
        }
    }
    out.push('`');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use crate::schema::Schema;

    fn description(schema: &str, input: &str) -> Option<String> {
        let schema = Schema::compile(schema).unwrap();
        schema.check(&json::parse(input.as_bytes()).unwrap()).err()
    }

    #[test]
    fn a_mismatch_names_the_place_the_keyword_and_what_is_allowed() {
        let merge = r##"{"type":"object","required":["repo"],"additionalProperties":false,
            "properties":{"repo":{"type":"string","pattern":"^[a-z]+/[a-z]+$"},
              "number":{"type":"integer","minimum":1},"labels":{"items":{"$ref":"#/$defs/label"}}},
            "$defs":{"label":{"enum":["bug","idea",3]}}}"##;
        for (schema, input, expected) in [
            (merge, r#"{"repo":"a/b","number":1,"labels":["bug"]}"#, ""),
            (merge, "{}", "the arguments must have `repo` (`required`)"),
            (merge, r#"{"repo":7}"#, "`/repo` must be of type string (`type`)"),
            (merge, r#"{"repo":"A"}"#, "`/repo` must match `^[a-z]+/[a-z]+$` (`pattern`)"),
            (merge, r#"{"repo":"a/b","number":0}"#, "`/number` must be at least 1 (`minimum`)"),
            (merge, r#"{"repo":"a/b","number":1.5}"#, "`/number` must be of type integer (`type`)"),
            (
                merge,
                r#"{"repo":"a/b","labels":["bug","x"]}"#,
                r#"`/labels/1` must be one of `"bug"`, `"idea"`, `3` (`enum`)"#,
            ),
            (
                merge,
                r#"{"repo":"a/b","x":1,"y":2}"#,
                "the arguments must not have `x`, `y` (`additionalProperties`)",
            ),
            // All mismatches are described.
            (
                merge,
                r#"{"repo":7,"number":0}"#,
                "`/number` must be at least 1 (`minimum`); `/repo` must be of type string (`type`)",
            ),
            (
                r#"{"properties":{"a/b~":{"type":"null"}}}"#,
                r#"{"a/b~":1}"#,
                "`/a~1b~0` must be of type null (`type`)",
            ),
            (
                r#"{"properties":{"a":{"const":{"b":1}}}}"#,
                r#"{"a":2}"#,
                r#"`/a` must be `{"b":1}` (`const`)"#,
            ),
            (
                r#"{"properties":{"a":{"maximum":2.5}}}"#,
                r#"{"a":3}"#,
                "`/a` must be at most 2.5 (`maximum`)",
            ),
            (
                r#"{"properties":{"a":{"maximum":4294967296}}}"#,
                r#"{"a":4294967297}"#,
                "`/a` must be at most 4294967296 (`maximum`)",
            ),
            (
                r#"{"properties":{"a":{"exclusiveMinimum":0}}}"#,
                r#"{"a":0}"#,
                "`/a` must be greater than 0 (`exclusiveMinimum`)",
            ),
            (
                r#"{"properties":{"a":{"exclusiveMaximum":9}}}"#,
                r#"{"a":9}"#,
                "`/a` must be less than 9 (`exclusiveMaximum`)",
            ),
            (
                r#"{"properties":{"a":{"multipleOf":5}}}"#,
                r#"{"a":7}"#,
                "`/a` must be a multiple of 5 (`multipleOf`)",
            ),
            (
                r#"{"properties":{"a":{"minLength":2}}}"#,
                r#"{"a":"x"}"#,
                "`/a` must have at least 2 characters (`minLength`)",
            ),
            (
                r#"{"properties":{"a":{"maxLength":2}}}"#,
                r#"{"a":"xyz"}"#,
                "`/a` must have at most 2 characters (`maxLength`)",
            ),
            (
                r#"{"properties":{"a":{"minItems":1}}}"#,
                r#"{"a":[]}"#,
                "`/a` must have at least 1 items (`minItems`)",
            ),
            (
                r#"{"properties":{"a":{"maxItems":0}}}"#,
                r#"{"a":[1]}"#,
                "`/a` must have at most 0 items (`maxItems`)",
            ),
            (
                r#"{"properties":{"a":{"uniqueItems":true}}}"#,
                r#"{"a":[1,2,1]}"#,
                "`/a` must not have equal items, as 0 and 2 are (`uniqueItems`)",
            ),
            (
                r#"{"properties":{"a":{"contains":{"type":"null"}}}}"#,
                r#"{"a":[]}"#,
                "`/a` must have an item of its kind (`contains`)",
            ),
            (
                r#"{"minProperties":1}"#,
                "{}",
                "the arguments must have at least 1 properties (`minProperties`)",
            ),
            (
                r#"{"maxProperties":0}"#,
                r#"{"a":1}"#,
                "the arguments must have at most 0 properties (`maxProperties`)",
            ),
            (
                r#"{"propertyNames":{"maxLength":1}}"#,
                r#"{"ab":1}"#,
                "the arguments must not have the name `ab` (`propertyNames`)",
            ),
            (
                r#"{"dependentRequired":{"a":["b"]}}"#,
                r#"{"a":1}"#,
                "the arguments must have `b` if it has `a` (`dependentRequired`)",
            ),
            (r#"{"properties":{"a":false}}"#, r#"{"a":1}"#, "`/a` must be absent (`false`)"),
            (
                r#"{"properties":{"a":{"not":{"type":"null"}}}}"#,
                r#"{"a":null}"#,
                "`/a` must not match the schema that is excluded (`not`)",
            ),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"format":"date"}}}"#,
                r#"{"a":"x"}"#,
                "`/a` must have the format date (`format`)",
            ),
            // Alternatives are joined by `or`, and equal ones appear once.
            (
                r#"{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}"#,
                r#"{"a":1}"#,
                "`/a` must be of type string (`type`), or `/a` must be of type null (`type`)",
            ),
            (
                r#"{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"string"}]}}}"#,
                r#"{"a":1}"#,
                "`/a` must be of type string (`type`)",
            ),
            (
                r#"{"properties":{"a":{"oneOf":[{"minimum":1},{"minimum":2}]}}}"#,
                r#"{"a":3}"#,
                "`/a` must match exactly one alternative, but matches 0 and 1 (`oneOf`)",
            ),
            (
                r#"{"properties":{"a":{"anyOf":[{"const":1},{"const":2},{"const":3},{"const":4},{"const":5}]}}}"#,
                r#"{"a":0}"#,
                "`/a` must be `1` (`const`), or `/a` must be `2` (`const`), or `/a` must be `3` (`const`), or `/a` must be `4` (`const`), or another alternative",
            ),
        ] {
            let expected = (!expected.is_empty()).then(|| format!("{MISMATCH}: {expected}."));
            assert_eq!(description(schema, input), expected, "{schema} {input}");
        }
    }

    #[test]
    fn a_sentence_is_bounded_and_has_no_argument_values_or_invisible_characters() {
        let long = "x".repeat(60_000);
        let many: Vec<String> = (0..5_000).map(|at| format!(r#""v{at}""#)).collect();
        let (some, many) = (many[..500].join(","), many.join(","));
        let properties: Vec<String> = (0..5_000).map(|at| format!(r#""p{at}":"SECRET""#)).collect();
        let properties = format!("{{{}}}", properties.join(","));
        let deep = format!("{}\"SECRET\"{}", r#"{"a":"#.repeat(25), "}".repeat(25));
        let of_deep = format!(
            "{}{{\"type\":\"null\"}}{}",
            r#"{"properties":{"a":"#.repeat(12),
            "}}".repeat(12)
        );
        let name = "n".repeat(50_000);
        for (schema, input) in [
            (format!(r#"{{"properties":{{"a":{{"enum":[{many}]}}}}}}"#), r#"{"a":"SECRET"}"#),
            (format!(r#"{{"properties":{{"a":{{"enum":["{long}"]}}}}}}"#), r#"{"a":"SECRET"}"#),
            (format!(r#"{{"properties":{{"a":{{"const":["{long}"]}}}}}}"#), r#"{"a":"SECRET"}"#),
            (format!(r#"{{"required":[{some}]}}"#), "{}"),
            (format!(r#"{{"required":["{long}"]}}"#), "{}"),
            (r#"{"additionalProperties":false}"#.to_owned(), properties.as_str()),
            (r#"{"additionalProperties":{"type":"null"}}"#.to_owned(), properties.as_str()),
            (r#"{"additionalProperties":false}"#.to_owned(), &format!(r#"{{"{name}":1}}"#)),
            (
                r#"{"additionalProperties":{"type":"null"}}"#.to_owned(),
                &format!(r#"{{"{name}":1}}"#),
            ),
            (r#"{"propertyNames":{"maxLength":9}}"#.to_owned(), &format!(r#"{{"{name}":1}}"#)),
            (of_deep, &deep),
        ] {
            let description = description(&schema, input).unwrap();
            assert!(
                description.len() <= MISMATCH.len() + MAX_SENTENCE_BYTES + 8,
                "{}: {description}",
                description.len()
            );
            assert!(!description.contains("SECRET"), "{description}");
        }
        let unseen = description(
            r#"{"properties":{"a\n\u202e`":{"enum":["\u0007\u200b\u2028`","é"]}}}"#,
            r#"{"a\n\u202e`":1}"#,
        );
        assert_eq!(
            unseen.unwrap(),
            format!(
                "{MISMATCH}: {} must be one of {}, `\"é\"` (`enum`).",
                r"`/a\n\u{202e}\u{60}`", r#"`"\u0007\u{200b}\u{2028}\u{60}"`"#
            )
        );
    }
}
