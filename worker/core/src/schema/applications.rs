//! Bounds the number of subschemas that are applied while arguments are checked.
//!
//! In a chain of definitions, each may apply the next one twice (`allOf` of two equal `$ref`), and so may
//! each level of a recursive schema. A schema of some kilobytes can then take 2^n steps, and the library
//! follows them all. So Gateward first counts the applications, up to a bound: on an empty object when the
//! schema is compiled, and on the arguments if they could exceed the bound. Keywords that read a whole
//! text, list or value count for what they read.

use crate::json::Json;
use crate::percent::decode;

/// Applications in one check. Arguments have at most 10,000 values, and each needs a few applications. In an
/// unoptimised build, this many failing applications took 60 ms and 15 MB.
pub const MAX_APPLICATIONS: usize = 100_000;

/// Nested applications. Arguments have at most 32 levels, and each needs a few. The library uses stack for
/// each, out of 1 MiB.
const MAX_LEVELS: usize = 128;

/// Bytes of text that cost as much to match as one application.
const PATTERN_BYTES: usize = 16;

/// Keywords that cost as much to read as one application.
const KEYWORDS: usize = 16;

/// Applications to an empty object, which every check needs. They are counted for each tool that a server
/// lists, so the bound is far below [`MAX_APPLICATIONS`].
const MAX_APPLICATIONS_TO_EMPTY: usize = 1_000;

/// Whether checking these arguments stays within the bound.
#[must_use]
pub fn are_bounded(schema: &Json, input: &Json) -> bool {
    count(schema, input, MAX_APPLICATIONS)
}

/// Whether checking an empty object stays within its bound.
#[must_use]
pub fn are_bounded_on_empty(schema: &Json) -> bool {
    count(schema, &Json::Object(Vec::new()), MAX_APPLICATIONS_TO_EMPTY)
}

fn count(schema: &Json, input: &Json, left: usize) -> bool {
    let remembers = has(schema, |key, _| remembers(key));
    Count { root: schema, left, remembers }.apply(schema, input, MAX_LEVELS).is_some()
}

/// The largest number of applications per unit of [`weight`], for a schema without references: each part is
/// applied at most once to each value. `None` if the schema refers to parts of itself.
///
/// # Errors
///
/// A reference is not a JSON Pointer from the root. Such references cannot be counted.
pub fn size(schema: &Json) -> Result<Option<usize>, String> {
    let is_local = |to: &str| to == "#" || to.starts_with("#/");
    if !any(schema, true, &|key, _, _| is_reference(key)) {
        return Ok((!has(schema, takes_more)).then(|| weight(schema)));
    }
    let draft_4 = schema.get("$schema").and_then(Json::as_str);
    let draft_4 = draft_4.is_some_and(|name| name.contains("draft-04"));
    let elsewhere = |key: &str, text: &str, root: bool| match key {
        "$id" | "$schema" => !root,
        "id" => draft_4 && !root,
        key => is_reference(key) && !is_local(text),
    };
    match any(schema, true, &elsewhere) {
        true => {
            Err("its references must be JSON Pointers from its root, such as `#/$defs/x`"
                .to_owned())
        }
        false => Ok(None),
    }
}

/// Whether the keyword is a reference.
#[must_use]
pub fn is_reference(key: &str) -> bool {
    matches!(key, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// Whether a keyword can cost more than its own weight for each unit of a value's weight.
fn takes_more(key: &str, value: &Json) -> bool {
    remembers(key) || (key == "format" && value.as_str() == Some("regex"))
}

/// For these keywords, the library records which parts of a value no schema was applied to.
fn remembers(key: &str) -> bool {
    matches!(key, "unevaluatedItems" | "unevaluatedProperties")
}

/// Whether `holds` is true for a field at any depth.
fn has(schema: &Json, holds: fn(&str, &Json) -> bool) -> bool {
    match schema {
        Json::Object(fields) => {
            fields.iter().any(|(key, value)| holds(key, value) || has(value, holds))
        }
        Json::Array(items) => items.iter().any(|item| has(item, holds)),
        _ => false,
    }
}

/// The weight of arguments: their number of values, plus the cost of matching their texts.
#[must_use]
pub fn weight(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Json::Object(fields) => 1 + fields.iter().map(|(_, value)| weight(value)).sum::<usize>(),
        Json::String(text) => 1 + text.len() / PATTERN_BYTES,
        _ => 1,
    }
}

/// Whether `holds` is true for a string field at any depth. It gets the key, the string, and whether the field
/// belongs to the root.
fn any(json: &Json, root: bool, holds: &dyn Fn(&str, &str, bool) -> bool) -> bool {
    match json {
        Json::Object(fields) => fields.iter().any(|(key, value)| match value {
            Json::String(text) => holds(key, text, root),
            value => any(value, false, holds),
        }),
        Json::Array(items) => items.iter().any(|item| any(item, false, holds)),
        _ => false,
    }
}

struct Count<'s> {
    root: &'s Json,
    left: usize,
    /// Whether each application costs as much as the value has parts.
    remembers: bool,
}

impl Count<'_> {
    /// Counts the applications of a schema to a value; `None` beyond the bounds.
    fn apply(&mut self, schema: &Json, value: &Json, levels: usize) -> Option<()> {
        let levels = levels.checked_sub(1)?;
        let parts = match value {
            Json::Array(items) if self.remembers => items.len(),
            Json::Object(fields) if self.remembers => fields.len(),
            _ => 0,
        };
        self.take(1 + parts)?;
        let Json::Object(keywords) = schema else { return Some(()) };
        self.take(keywords.len() / KEYWORDS)?;
        for (keyword, given) in keywords {
            match (keyword.as_str(), given, value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Json::String(to), _) => {
                    self.take(to.len() / PATTERN_BYTES)?;
                    self.apply(part(self.root, to)?, value, levels)?;
                }
                ("allOf" | "anyOf" | "oneOf", Json::Array(schemas), _) => {
                    schemas.iter().try_for_each(|one| self.apply(one, value, levels))?;
                }
                ("if" | "then" | "else" | "not", one, _) => self.apply(one, value, levels)?,
                ("dependentSchemas" | "dependencies", Json::Object(schemas), _) => {
                    if keyword == "dependencies" {
                        self.take(weight(given))?;
                    }
                    schemas.iter().try_for_each(|(_, one)| self.apply(one, value, levels))?;
                }
                ("enum", given, _) => self.take(weight(given))?,
                ("const" | "uniqueItems", ..)
                | ("pattern" | "format" | "minLength" | "maxLength", _, Json::String(_)) => {
                    // The library parses a pattern again for each class in it.
                    let is_pattern = given.as_str() == Some("regex") && keyword == "format";
                    let times = if is_pattern { weight(value) * PATTERN_BYTES } else { 1 };
                    self.take(weight(value).saturating_mul(times))?;
                }
                ("required", Json::Array(names), Json::Object(_)) => self.take(names.len())?,
                ("dependentRequired", given, Json::Object(_)) => self.take(weight(given))?,
                ("properties", schemas @ Json::Object(_), Json::Object(fields)) => {
                    for (name, field) in fields {
                        if let Some(one) = schemas.get(name) {
                            self.apply(one, field, levels)?;
                        }
                    }
                }
                ("patternProperties", Json::Object(schemas), Json::Object(fields)) => {
                    for (name, field) in fields {
                        self.take(schemas.len() * (1 + name.len() / PATTERN_BYTES))?;
                        schemas.iter().try_for_each(|(_, one)| self.apply(one, field, levels))?;
                    }
                }
                ("additionalProperties", one, Json::Object(fields)) => {
                    let named = schema.get("properties");
                    for (name, field) in fields {
                        if named.is_none_or(|named| named.get(name).is_none()) {
                            self.apply(one, field, levels)?;
                        }
                    }
                }
                ("unevaluatedProperties", one, Json::Object(fields)) => {
                    fields.iter().try_for_each(|(_, field)| self.apply(one, field, levels))?;
                }
                ("propertyNames", one, Json::Object(fields)) => {
                    for (name, _) in fields {
                        self.apply(one, &Json::String(name.clone()), levels)?;
                    }
                }
                ("prefixItems" | "items", Json::Array(schemas), Json::Array(items)) => {
                    let mut pairs = schemas.iter().zip(items);
                    pairs.try_for_each(|(one, item)| self.apply(one, item, levels))?;
                }
                (
                    "items" | "additionalItems" | "unevaluatedItems" | "contains",
                    one,
                    Json::Array(items),
                ) => items.iter().try_for_each(|item| self.apply(one, item, levels))?,
                _ => {}
            }
        }
        Some(())
    }

    fn take(&mut self, applications: usize) -> Option<()> {
        self.left = self.left.checked_sub(applications)?;
        Some(())
    }
}

/// Resolves `#` or `#/…`.
pub(super) fn part<'s>(root: &'s Json, pointer: &str) -> Option<&'s Json> {
    root.pointer(&decode(pointer.strip_prefix('#')?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn parse(text: &str) -> Json {
        json::parse(text.as_bytes()).unwrap()
    }

    fn nested(levels: usize) -> String {
        format!("{}{{}}{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn applications_are_counted() {
        let fields: Vec<String> = (0..3_000).map(|n| format!(r#""f{n}":[1,"x"]"#)).collect();
        let wide = format!("{{{}}}", fields.join(","));
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(200_000));
        let filter = r##"{"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"b":{"$ref":"#"}}}],
            "additionalProperties":{"items":{"type":"string"}}}"##;
        let twice =
            r##"{"allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}"##;
        let patterns = [r#"{"pattern":"x"}"#; 10].join(",");
        let lengths = [r#"{"maxLength":1}"#; 10].join(",");
        let names = (0..100).map(|n| format!(r#""r{n}""#)).collect::<Vec<_>>().join(",");
        let objects = format!("[{}{{}}]", "{},".repeat(2_000));
        let forgets = [r#"{"minProperties":1}"#; 50].join(",");
        let pointer = "x".repeat(1_000);
        for (schema, input, expected) in [
            ("{}", &wide, true),
            (r#"{"additionalProperties":{"items":{"anyOf":[{},{}]}}}"#, &wide, true),
            (
                r##"{"additionalProperties":{"items":{"$ref":"#/$defs/a%7e1b"}},"$defs":{"a/b":{}}}"##,
                &wide,
                true,
            ),
            (r##"{"items":[{"$ref":"#/items/1"},true],"$ref":"#/none"}"##, &wide, false),
            (r##"{"$ref":"#"}"##, &nested(0), false),
            (r##"{"anyOf":[{"not":{"$ref":"#/anyOf/0"}}]}"##, &nested(0), false),
            // `filter` needs one more application per level, `twice` doubles them.
            (filter, &nested(30), true),
            (filter, &wide, true),
            (twice, &nested(10), true),
            (twice, &nested(20), false),
            (&twice.replace("properties", "patternProperties"), &nested(20), false),
            (&format!(r#"{{"properties":{{"a":{{"allOf":[{patterns}]}}}}}}"#), &long, false),
            (r#"{"properties":{"a":{"pattern":"x"}}}"#, &long, true),
            // Each of these read or recorded some hundred megabytes.
            (&format!(r#"{{"properties":{{"a":{{"allOf":[{lengths}]}}}}}}"#), &long, false),
            (&format!(r#"{{"items":{{"required":[{names}]}}}}"#), &objects, false),
            (&format!(r#"{{"items":{{"enum":[{names}]}}}}"#), &objects, false),
            (&format!(r#"{{"unevaluatedProperties":false,"allOf":[{forgets}]}}"#), &wide, false),
            (
                &format!(r##"{{"items":{{"$ref":"#/{pointer}"}},"{pointer}":{{}}}}"##),
                &objects,
                false,
            ),
            (r#"{"properties":{"a":{"format":"regex"}}}"#, &long, false),
            (
                r#"{"properties":{"a":{"format":"regex","maxLength":9}}}"#,
                &r#"{"a":"\\d+"}"#.to_owned(),
                true,
            ),
        ] {
            assert_eq!(
                are_bounded(&parse(schema), &parse(input)),
                expected,
                "{schema} {input:.60}"
            );
        }
    }

    #[test]
    fn references_that_cannot_be_counted_are_rejected() {
        for (schema, expected) in [
            (r#"{"type":"object","$id":"urn:x"}"#, Ok(Some(3))),
            (r#"{"items":{"$id":"urn:x"}}"#, Ok(Some(3))),
            (r##"{"$id":"urn:x","items":{"$ref":"#"}}"##, Ok(None)),
            (r##"{"$defs":{"id":{"id":"T"}},"items":{"$ref":"#/$defs/id"}}"##, Ok(None)),
            (r##"{"$defs":{"a":{"$id":"urn:x"}},"items":{"$ref":"#/$defs/a"}}"##, Err(())),
            (
                r##"{"$schema":"http://json-schema.org/draft-04/schema#","not":{"id":"a","$ref":"#/not"}}"##,
                Err(()),
            ),
            (r##"{"items":{"$ref":"#anchor"}}"##, Err(())),
            (r##"{"items":{"$dynamicRef":"urn:x"}}"##, Err(())),
        ] {
            assert_eq!(size(&parse(schema)).map_err(drop), expected, "{schema}");
        }
    }
}
