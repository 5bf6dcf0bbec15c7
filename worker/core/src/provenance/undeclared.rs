//! Names in arguments that a tool's schema does not declare. So the caller chose them: they can say whom a call reaches.

use std::collections::HashSet;

use super::sinks::escaped;
use crate::json::Json;

/// Names that are found at most. [`Undeclared::more`] says that there are more.
pub const MAX_UNDECLARED: usize = 64;

/// The names in a call's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undeclared {
    /// Each name with its JSON Pointer.
    pub found: Vec<(String, String)>,
    /// Whether there are more than [`MAX_UNDECLARED`].
    pub more: bool,
}

impl Undeclared {
    /// The names of members in `input` that no `properties` of the schema lists. It does not matter where the schema
    /// lists a name: then the tool gave it.
    #[must_use]
    pub fn of(schema: &Json, input: &Json) -> Self {
        let (mut declared, mut found) = (HashSet::new(), Vec::new());
        declare(schema, &mut declared);
        let more = !look(&declared, input, "", &mut found);
        Self { found, more }
    }
}

fn declare<'s>(schema: &'s Json, declared: &mut HashSet<&'s str>) {
    match schema {
        Json::Array(items) => items.iter().for_each(|item| declare(item, declared)),
        Json::Object(members) => {
            for (name, member) in members {
                if let ("properties", Json::Object(properties)) = (name.as_str(), member) {
                    declared.extend(properties.iter().map(|(property, _)| property.as_str()));
                }
                declare(member, declared);
            }
        }
        _ => {}
    }
}

/// Returns false if there was no space.
fn look(
    declared: &HashSet<&str>,
    value: &Json,
    pointer: &str,
    found: &mut Vec<(String, String)>,
) -> bool {
    match value {
        Json::Array(items) => items.iter().enumerate().all(|(at, item)| {
            look(declared, item, &[pointer, "/", &at.to_string()].concat(), found)
        }),
        Json::Object(members) => members.iter().all(|(name, member)| {
            let pointer = [pointer, "/", &escaped(name)].concat();
            if !declared.contains(name.as_str()) {
                if found.len() >= MAX_UNDECLARED {
                    return false;
                }
                found.push((pointer.clone(), name.clone()));
            }
            look(declared, member, &pointer, found)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn names_that_no_properties_list_are_found_with_their_place() {
        let schema = r#"{"type":"object","properties":{"to":{},"grants":{"type":"object"},
            "items":{"items":{"properties":{"id":{}}}}},"additionalProperties":{"$defs":{}}}"#;
        let schema = parse(schema.as_bytes()).unwrap();
        for (input, expected) in [
            (r#"{"to":"x","items":[{"id":1}]}"#, vec![]),
            (r#"{"grants":{"mallory":"read"}}"#, vec!["/grants/mallory mallory"]),
            (r#"{"grants":{"to":null,"a/b":{"id":1}}}"#, vec!["/grants/a~1b a/b"]),
            (r#"{"items":[{"id":1,"eve":{}}],"cc":1}"#, vec!["/cc cc", "/items/0/eve eve"]),
        ] {
            let Undeclared { found, more } =
                Undeclared::of(&schema, &parse(input.as_bytes()).unwrap());
            let found: Vec<_> =
                found.iter().map(|(place, name)| [place, " ", name].concat()).collect();
            assert_eq!(found, expected, "{input}");
            assert!(!more);
        }
        let many: Vec<String> = (0..=MAX_UNDECLARED).map(|n| format!(r#""n{n:03}":1"#)).collect();
        let many = parse(format!("{{{}}}", many.join(",")).as_bytes()).unwrap();
        let Undeclared { found, more } = Undeclared::of(&schema, &many);
        assert_eq!((found.len(), more), (MAX_UNDECLARED, true));
    }
}
