//! The names of arguments that a tool's schema declares, and argument names that are confusable with them.
//!
//! A schema that bounds `amount` does not bound `Amount`. An API that ignores case takes `Amount` for `amount`,
//! without the bound. So if an argument name differs from a property only in case or percent-encoding, it is rejected
//! where the schema has that property.

use std::collections::HashSet;

use super::applications::{MAX_APPLICATIONS, part};
use crate::json::{Json, utf16_order};
use crate::percent::fully_decoded;

/// Schemas that are applied inside of each other; see `applications`.
const MAX_LEVELS: usize = 128;

/// Bytes of a name that cost as much to decode and fold as one application.
const NAME_BYTES: usize = 16;

/// The names that some `properties` lists.
pub fn declared(schema: &Json) -> HashSet<Box<str>> {
    let mut names = HashSet::new();
    declare(schema, &mut names);
    names
}

fn declare(schema: &Json, names: &mut HashSet<Box<str>>) {
    match schema {
        Json::Array(items) => items.iter().for_each(|item| declare(item, names)),
        Json::Object(keywords) => {
            for (keyword, given) in keywords {
                match (keyword.as_str(), given) {
                    // What is under a name is a schema, and not a keyword with that name.
                    ("properties", Json::Object(properties)) => {
                        for (name, property) in properties {
                            names.insert(name.as_str().into());
                            declare(property, names);
                        }
                    }
                    (
                        "$defs" | "definitions" | "patternProperties" | "dependentSchemas"
                        | "dependencies",
                        Json::Object(schemas),
                    ) => schemas.iter().for_each(|(_, schema)| declare(schema, names)),
                    _ => declare(given, names),
                }
            }
        }
        _ => {}
    }
}

/// The first confusable name in `input`; empty when the search takes too long; `None` when there is none.
#[must_use]
pub fn confusable<'i>(schema: &Json, input: &'i Json) -> Option<&'i str> {
    let mut search = Search { root: schema, left: MAX_APPLICATIONS };
    match search.look(schema, input, MAX_LEVELS) {
        Ok(()) => None,
        Err(Found(name)) => Some(name),
    }
}

/// The schema of a property. Objects are sorted by name.
fn find<'s>(properties: &'s [(String, Json)], name: &str) -> Option<&'s Json> {
    let at = properties.binary_search_by(|(property, _)| utf16_order(property, name)).ok()?;
    properties.get(at).map(|(_, schema)| schema)
}

/// The confusable name; empty where the search was given up.
struct Found<'i>(&'i str);

struct Search<'s> {
    root: &'s Json,
    left: usize,
}

impl Search<'_> {
    fn look<'i>(&mut self, schema: &Json, value: &'i Json, levels: usize) -> Result<(), Found<'i>> {
        let within = levels.checked_sub(1).zip(self.left.checked_sub(1));
        let Some((levels, left)) = within else { return Err(Found("")) };
        self.left = left;
        let Json::Object(keywords) = schema else { return Ok(()) };
        for (keyword, given) in keywords {
            match (keyword.as_str(), given, value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Json::String(to), _) => {
                    // Nothing matches a schema with a dangling reference.
                    let Some(schema) = part(self.root, to) else { return Err(Found("")) };
                    self.look(schema, value, levels)?;
                }
                ("allOf" | "anyOf" | "oneOf", Json::Array(schemas), _) => {
                    schemas.iter().try_for_each(|one| self.look(one, value, levels))?;
                }
                ("if" | "then" | "else", one, _) => self.look(one, value, levels)?,
                ("dependentSchemas" | "dependencies", Json::Object(schemas), _) => {
                    schemas.iter().try_for_each(|(_, one)| self.look(one, value, levels))?;
                }
                ("properties", Json::Object(properties), Json::Object(fields)) => {
                    self.properties(properties, fields, levels)?;
                }
                ("prefixItems" | "items", Json::Array(schemas), Json::Array(items)) => {
                    let mut pairs = schemas.iter().zip(items);
                    pairs.try_for_each(|(one, item)| self.look(one, item, levels))?;
                }
                ("items" | "additionalItems" | "contains", one, Json::Array(items)) => {
                    items.iter().try_for_each(|item| self.look(one, item, levels))?;
                }
                ("additionalProperties", one @ Json::Object(_), Json::Object(fields)) => {
                    let named = match schema.get("properties") {
                        Some(Json::Object(properties)) => properties.as_slice(),
                        _ => &[],
                    };
                    for (_, field) in fields.iter().filter(|(name, _)| find(named, name).is_none())
                    {
                        self.look(one, field, levels)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn properties<'i>(
        &mut self,
        properties: &[(String, Json)],
        fields: &'i [(String, Json)],
        levels: usize,
    ) -> Result<(), Found<'i>> {
        let mut unknown = Vec::new();
        for (name, field) in fields {
            match find(properties, name) {
                Some(schema) => self.look(schema, field, levels)?,
                None => unknown.push(name),
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        let names = properties.iter().map(|(name, _)| name).chain(unknown.iter().copied());
        let cost = names.map(|name| 1 + name.len() / NAME_BYTES).sum();
        self.left = self.left.checked_sub(cost).ok_or(Found(""))?;
        let mut known: Vec<String> =
            properties.iter().map(|(name, _)| fully_decoded(name)).collect();
        known.sort_unstable();
        match unknown.into_iter().find(|name| known.binary_search(&fully_decoded(name)).is_ok()) {
            Some(name) => Err(Found(name)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_name_that_is_confusable_with_a_property_is_found_where_the_schema_has_it() {
        let amount = r#"{"properties":{"amount":{"maximum":100}}}"#;
        let nested = r##"{"properties":{"payment":{"$ref":"#/$defs/p"},"all":{"items":{"$ref":"#/$defs/p"}},
            "map":{"additionalProperties":{"type":"string"}}},"$defs":{"p":{"allOf":[{"properties":{"amount":{}}}]}}}"##;
        for (schema, input, expected) in [
            (amount, r#"{"amount":5000}"#, None),
            (amount, r#"{"Amount":5000}"#, Some("Amount")),
            (amount, r#"{"%61mount":5000}"#, Some("%61mount")),
            (amount, r#"{"am\u0000ount":5000}"#, Some("am\0ount")),
            (amount, r#"{"other":{"Amount":5000}}"#, None),
            (r#"{"properties":{"a":{},"A":{}}}"#, r#"{"A":1}"#, None),
            (nested, r#"{"payment":{"Amount":1}}"#, Some("Amount")),
            (nested, r#"{"all":[{"amount":1},{"AMOUNT":1}]}"#, Some("AMOUNT")),
            (nested, r#"{"Payment":{}}"#, Some("Payment")),
            // At these places the schema has no such property.
            (nested, r#"{"map":{"Amount":"1","Payment":"2"}}"#, None),
            (
                r#"{"properties":{"a":{}},"additionalProperties":{"properties":{"x":{}}}}"#,
                r#"{"a":{"X":1},"b":{"x":1},"c":{"X":1}}"#,
                Some("X"),
            ),
            (
                r#"{"properties":{"a":{}},"additionalProperties":{"properties":{"x":{}}}}"#,
                r#"{"a":{"X":1},"b":{"x":1}}"#,
                None,
            ),
            ("{}", r#"{"Amount":1}"#, None),
            ("true", r#"{"Amount":1}"#, None),
            // An endless reference.
            (r##"{"$ref":"#"}"##, "{}", Some("")),
        ] {
            let schema_read = json::parse(schema.as_bytes()).unwrap();
            let input_read = json::parse(input.as_bytes()).unwrap();
            assert_eq!(confusable(&schema_read, &input_read), expected, "{schema} {input}");
        }
    }
}
