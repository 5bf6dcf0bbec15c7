//! Names in arguments that a tool's schema does not declare. So the caller chose them: they can say whom a call reaches.

use std::ptr;

use super::pointers::Step;
use crate::json::Json;

/// Names that are found at most. [`Undeclared::more`] says that there are more.
pub const MAX_UNDECLARED: usize = 64;

/// Names inside of arguments that the formats of documents and records have in common, and that do not say whom a call
/// reaches. Schemas often do not declare them.
#[rustfmt::skip]
pub const PLAIN_NAMES: [&str; 12] = [
    "children", "content", "database_id", "id", "name", "page_id", "paragraph", "properties", "rich_text", "text",
    "title", "type",
];

/// Such names of one call that are not looked up. The choice of these names can carry 58 bits at most.
pub const MAX_PLAIN_NAMES: usize = 16;

/// Bytes of the names above one that is found, and of its own. A longer text has no normal form, so no such name is known.
const MAX_POINTER_BYTES: usize = 1_024;

/// Whether a name is the tool's own. The last of the steps is the name.
type IsOwn<'s> = dyn Fn(&str, &[Step<'_>]) -> bool + 's;

/// The names in a call's arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Undeclared<'i> {
    /// Each name with its JSON Pointer. Not complete if there are `more`.
    pub found: Vec<(String, &'i str)>,
    /// Whether there are more than [`MAX_UNDECLARED`], or longer ones than [`MAX_POINTER_BYTES`].
    pub more: bool,
    /// How many further [`PLAIN_NAMES`] are left out.
    plain: usize,
}

impl<'i> Undeclared<'i> {
    /// The names of members in `input` that are not the tool's own. `is_own` gets a name and the steps to it.
    ///
    /// `passed_over` are parts of `input`. Their own names, and everything in them, are left out. `plain`: whether the first
    /// [`MAX_PLAIN_NAMES`] of [`PLAIN_NAMES`] are left out too.
    #[must_use]
    pub fn of(is_own: &IsOwn<'_>, input: &'i Json, passed_over: &[&Json], plain: bool) -> Self {
        let plain = if plain { MAX_PLAIN_NAMES } else { 0 };
        let mut undeclared = Self { plain, ..Self::default() };
        undeclared.look(&Search { is_own, passed_over }, input, &mut Vec::new());
        undeclared
    }

    /// `steps` lead to the value. A pointer is made only for what is found, so that long names above many values cost
    /// nothing.
    fn look(&mut self, search: &Search<'_>, value: &'i Json, steps: &mut Vec<Step<'i>>) {
        if self.more {
            return;
        }
        let mut enter = |step: Step<'i>, value: &'i Json| {
            if search.passed_over.iter().any(|other| ptr::eq(*other, value)) {
                return;
            }
            steps.push(step);
            if let Step::Member(name) = step
                && !(search.is_own)(name, steps)
            {
                self.add(name, steps);
            }
            self.look(search, value, steps);
            steps.pop();
        };
        match value {
            Json::Array(items) => {
                items.iter().enumerate().for_each(|(at, item)| enter(Step::Item(at), item));
            }
            Json::Object(members) => {
                members.iter().for_each(|(name, member)| enter(Step::Member(name), member));
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &'i str, steps: &[Step<'_>]) {
        if steps.len() > 1 && self.plain > 0 && PLAIN_NAMES.contains(&name) {
            self.plain -= 1;
            return;
        }
        let bytes: usize = steps.iter().map(bytes).sum();
        if self.found.len() >= MAX_UNDECLARED || bytes > MAX_POINTER_BYTES {
            self.more = true;
            return;
        }
        let pointer = steps.iter().map(|step| ["/", &step.text()].concat()).collect();
        self.found.push((pointer, name));
    }
}

/// Bytes of a step in a pointer, about.
const fn bytes(step: &Step<'_>) -> usize {
    match step {
        Step::Item(_) => 4,
        Step::Member(name) => name.len(),
    }
}

struct Search<'s> {
    is_own: &'s IsOwn<'s>,
    /// A few: the arguments of a call that have a role.
    passed_over: &'s [&'s Json],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;
    use crate::schema::Schema;

    const SCHEMA: &str = r#"{"type":"object","properties":{"to":{},"grants":{"type":"object"},
        "items":{"items":{"properties":{"id":{}}}}},"additionalProperties":{"$defs":{}}}"#;

    /// The names with their places, passing over the arguments with these names.
    fn found(schema: &str, input: &str, passed_over: &[&str]) -> (Vec<String>, bool) {
        let schema = Schema::compile(schema).unwrap();
        let input = parse(input.as_bytes()).unwrap();
        let passed_over: Vec<_> = passed_over.iter().filter_map(|it| input.get(it)).collect();
        let is_own = |name: &str, _: &[Step<'_>]| schema.declared().contains(name);
        let Undeclared { found, more, .. } = Undeclared::of(&is_own, &input, &passed_over, false);
        let found = found.iter().map(|(place, name)| [place, " ", name].concat());
        (found.collect(), more)
    }

    #[test]
    fn names_that_no_properties_list_are_found_with_their_place() {
        for (input, passed_over, expected) in [
            (r#"{"to":"x","items":[{"id":1}]}"#, &[][..], vec![]),
            (r#"{"grants":{"mallory":"read"}}"#, &[], vec!["/grants/mallory mallory"]),
            (r#"{"grants":{"to":null,"a/b":{"id":1}}}"#, &[], vec!["/grants/a~1b a/b"]),
            (r#"{"items":[{"id":1,"eve":{}}],"cc":1}"#, &[], vec!["/cc cc", "/items/0/eve eve"]),
            (r#"{"items":[{"id":1,"eve":{}}],"cc":1}"#, &["items"], vec!["/cc cc"]),
            (r#"{"items":[{"id":1,"eve":{}}],"cc":1}"#, &["items", "cc"], vec![]),
        ] {
            let expected = expected.iter().map(ToString::to_string).collect();
            assert_eq!(found(SCHEMA, input, passed_over), (expected, false), "{input}");
        }
        // A property that has the name of a keyword: what is under it is a schema.
        let schema = r#"{"properties":{"properties":{"type":"object"}}}"#;
        let eve = vec!["/properties/type type".to_owned()];
        assert_eq!(found(schema, r#"{"properties":{"type":1}}"#, &[]), (eve, false));
    }

    #[test]
    fn more_names_than_are_found_are_noticed_unless_they_are_passed_over() {
        let long =
            format!(r#"{{"{}":{{"eve":1}},"to":{{"eve":1}}}}"#, "/".repeat(MAX_POINTER_BYTES + 1));
        assert_eq!(found(SCHEMA, &long, &[]), (vec![], true));
        let many: Vec<String> = (0..=MAX_UNDECLARED).map(|n| format!(r#""n{n:03}":1"#)).collect();
        let many = format!(r#"{{"to":{{{}}}}}"#, many.join(","));
        let (names, more) = found(SCHEMA, &many, &[]);
        assert_eq!((names.len(), more), (MAX_UNDECLARED, true));
        assert_eq!(found(SCHEMA, &many, &["to"]), (vec![], false));
    }
}
