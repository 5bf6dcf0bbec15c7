//! Names in arguments that a tool's schema does not declare. So the caller chose them: they can say whom a call reaches.

use std::collections::HashSet;

use super::sinks::escaped;
use crate::json::Json;

/// Names that are found at most. [`Undeclared::more`] says that there are more.
pub const MAX_UNDECLARED: usize = 64;

/// Bytes of the names above one that is found, and of its own. A longer text has no normal form, so no such name is known.
const MAX_POINTER_BYTES: usize = 1_024;

/// The names in a call's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undeclared {
    /// Each name with its JSON Pointer.
    pub found: Vec<(String, String)>,
    /// Whether there are more than [`MAX_UNDECLARED`], or longer ones than [`MAX_POINTER_BYTES`].
    pub more: bool,
}

impl Undeclared {
    /// The names of members in `input` that no `properties` of the schema lists. It does not matter where the schema
    /// lists a name: then the tool gave it. A schema that lists no names says nothing about them, so none are found.
    #[must_use]
    pub fn of(schema: &Json, input: &Json) -> Self {
        let (mut declared, mut undeclared) = (HashSet::new(), Self::default());
        declare(schema, &mut declared);
        if !declared.is_empty() {
            undeclared.look(&declared, input, &mut Vec::new());
        }
        undeclared
    }

    /// `steps` lead to the value. A pointer is made only for what is found, so that long names above many values cost
    /// nothing.
    fn look<'i>(&mut self, declared: &HashSet<&str>, value: &'i Json, steps: &mut Vec<Step<'i>>) {
        match value {
            Json::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    steps.push(Step::Item(at));
                    self.look(declared, item, steps);
                    steps.pop();
                }
            }
            Json::Object(members) => {
                for (name, member) in members {
                    steps.push(Step::Member(name));
                    if !declared.contains(name.as_str()) {
                        self.add(name, steps);
                    }
                    self.look(declared, member, steps);
                    steps.pop();
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str, steps: &[Step<'_>]) {
        let bytes: usize = steps.iter().map(Step::bytes).sum();
        if self.found.len() >= MAX_UNDECLARED || bytes > MAX_POINTER_BYTES {
            self.more = true;
            return;
        }
        let pointer = steps.iter().map(|step| ["/", &step.text()].concat()).collect();
        self.found.push((pointer, name.to_owned()));
    }
}

/// A step of a JSON Pointer.
enum Step<'i> {
    Item(usize),
    Member(&'i str),
}

impl Step<'_> {
    const fn bytes(&self) -> usize {
        match self {
            Self::Item(_) => 4,
            Self::Member(name) => name.len(),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Item(at) => at.to_string(),
            Self::Member(name) => escaped(name),
        }
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
        let long =
            format!(r#"{{"{}":{{"eve":1}},"to":{{"eve":1}}}}"#, "/".repeat(MAX_POINTER_BYTES + 1));
        let Undeclared { found, more } = Undeclared::of(&schema, &parse(long.as_bytes()).unwrap());
        assert_eq!((found, more), (vec![("/to/eve".to_owned(), "eve".to_owned())], true));
        let nothing = parse(br#"{"type":"object"}"#).unwrap();
        let input = parse(br#"{"to":"x"}"#).unwrap();
        assert_eq!(Undeclared::of(&nothing, &input), Undeclared::default());
        let many: Vec<String> = (0..=MAX_UNDECLARED).map(|n| format!(r#""n{n:03}":1"#)).collect();
        let many = parse(format!("{{{}}}", many.join(",")).as_bytes()).unwrap();
        let Undeclared { found, more } = Undeclared::of(&schema, &many);
        assert_eq!((found.len(), more), (MAX_UNDECLARED, true));
    }
}
