//! The place of a text in a JSON value.

use std::cmp::Reverse;

use super::findings::MAX_POINTER_BYTES;
use crate::json::Json;
use crate::provenance::{ArgumentRoles, Role};

/// The way to a value, from its end.
#[derive(Debug, Clone, Copy)]
pub enum Path<'p> {
    /// A part of an answer, by its pointer; empty: the whole.
    Part(&'p str),
    Field(&'p Path<'p>, &'p str),
    /// A field in whose name something was found. No pointer has the name.
    Masked(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
    /// A field whose name is said elsewhere, and that name: see [`name_of_value`].
    Value(&'p Path<'p>, &'p str, &'p str),
}

impl<'p> Path<'p> {
    pub const ROOT: Self = Self::Part("");

    /// A JSON Pointer (RFC 6901), shortened. For a key it is `/*#key` after the pointer of its object, because what was
    /// found in the key must not be stored.
    pub fn pointer(self, is_key: bool) -> String {
        let mut pointer = String::new();
        match self {
            Self::Field(parent, name) if is_key => Self::Masked(parent, name),
            path => path,
        }
        .write(&mut pointer);
        if is_key {
            pointer.push_str("#key");
        }
        pointer
    }

    /// The name of the field at whose end the way is. Items have the name of their list.
    pub const fn name(self) -> Option<&'p str> {
        match self {
            Self::Field(_, name) | Self::Masked(_, name) | Self::Value(_, _, name) => Some(name),
            Self::Item(parent, _) => parent.name(),
            Self::Part(_) => None,
        }
    }

    /// The role that is registered for the place: among the pointers that lead to it or above it, the longest counts.
    /// If several are equally long, a pointer that names an item takes precedence over one with `*`.
    pub fn role(&self, roles: &ArgumentRoles) -> Option<Role> {
        let mut steps = Vec::new();
        let mut path = self;
        while let Self::Field(parent, _)
        | Self::Masked(parent, _)
        | Self::Value(parent, ..)
        | Self::Item(parent, _) = path
        {
            steps.push(path);
            path = parent;
        }
        let matched = |pointer: &str| {
            let mut way = steps.iter().rev();
            let mut wanted = pointer.split('/').skip(1);
            let leads = wanted.all(|wanted| way.next().is_some_and(|step| step.is(wanted)));
            let stars = pointer.matches("/*").count();
            leads.then_some((steps.len() - way.len(), Reverse(stars)))
        };
        let of = |(pointer, role): &(String, Role)| Some((matched(pointer)?, *role));
        roles.0.iter().filter_map(of).max_by_key(|(how_far, _)| *how_far).map(|(_, role)| role)
    }

    /// Whether a step of a JSON Pointer, or `*`, is the last step of the way.
    fn is(&self, step: &str) -> bool {
        match self {
            Self::Field(_, name) | Self::Masked(_, name) | Self::Value(_, name, _)
                if step.contains('~') =>
            {
                step.replace("~1", "/").replace("~0", "~") == *name
            }
            Self::Field(_, name) | Self::Masked(_, name) | Self::Value(_, name, _) => step == *name,
            Self::Item(_, at) => step == "*" || step == itoa::Buffer::new().format(*at),
            Self::Part(_) => false,
        }
    }

    /// Returns whether there is room for more.
    fn write(self, pointer: &mut String) -> bool {
        match self {
            Self::Part(start) => pointer.push_str(start),
            Self::Field(parent, name) => {
                if !parent.write(pointer) {
                    return false;
                }
                let end = name.floor_char_boundary(MAX_POINTER_BYTES);
                let name = name.get(..end).unwrap_or_default();
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Self::Masked(parent, _) => {
                if !parent.write(pointer) {
                    return false;
                }
                pointer.push_str("/*");
            }
            Self::Value(parent, name, _) => return Self::Field(parent, name).write(pointer),
            Self::Item(parent, at) => {
                if !parent.write(pointer) {
                    return false;
                }
                pointer.push('/');
                pointer.push_str(itoa::Buffer::new().format(at));
            }
        }
        let has_room = pointer.len() <= MAX_POINTER_BYTES;
        if !has_room {
            pointer.truncate(pointer.floor_char_boundary(MAX_POINTER_BYTES));
        }
        has_room
    }
}

/// Calls `found` with each text, long number and key of a value, its place, and whether it is a key. If it returns true
/// for a key, the places below are without its name.
pub fn each_text(
    value: &Json,
    path: Path<'_>,
    found: &mut dyn FnMut(&str, Path<'_>, bool) -> bool,
) {
    match value {
        Json::String(text) => {
            found(text, path, false);
        }
        Json::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                each_text(item, Path::Item(&path, at), found);
            }
        }
        Json::Object(fields) => {
            let named = name_of_value(fields, path.name());
            for (name, field) in fields {
                let plain = Path::Field(&path, name);
                let below = match named {
                    _ if found(name, plain, true) => Path::Masked(&path, name),
                    Some((of, said)) if name == of => Path::Value(&path, name, said),
                    _ => plain,
                };
                each_text(field, below, found);
            }
        }
        Json::Integer(number) if has_digits(*number) => {
            found(itoa::Buffer::new().format(*number), path, false);
        }
        Json::Verbatim(digits) => {
            found(digits, path, false);
        }
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Number(_) => {}
    }
}

/// Fields whose name another field says, and that field, as in lists of environment variables and of parameters. Case is
/// ignored.
const NAMED_BY: [(&str, &str); 4] =
    [("value", "name"), ("value", "key"), ("parametervalue", "parameterkey"), ("default", "name")];

/// The field of an object whose name is said elsewhere, and that name: another field says it, or the field is `value` and
/// the object's own name (`parent`) says it. The private field of a JSON Web Key (RFC 7517) counts as a `private_key`.
pub fn name_of_value<'f>(
    fields: &'f [(String, Json)],
    parent: Option<&'f str>,
) -> Option<(&'f str, &'f str)> {
    // If several names differ only in case, the one in lower case counts.
    let text = |wanted: &str| {
        let named = fields.iter().filter_map(|(name, value)| match value {
            Json::String(text) if name.eq_ignore_ascii_case(wanted) => {
                Some((name.as_str(), text.as_str()))
            }
            _ => None,
        });
        named.min_by_key(|(name, _)| *name != wanted)
    };
    let said = |(field, by): &(&str, &str)| Some((text(field)?.0, text(by)?.1));
    let of_parent = || Some((text("value")?.0, parent?));
    let of_key = || {
        text("kty")?;
        Some((text("d").or_else(|| text("k"))?.0, "private_key"))
    };
    NAMED_BY.iter().find_map(said).or_else(of_parent).or_else(of_key)
}

/// Calls `found` with each string of a text that is not quite JSON, unescaped, and with what is between them.
pub fn each_literal(text: &str, found: &mut dyn FnMut(&str)) {
    let mut rest = text;
    while let Some((between, after)) = rest.split_once('"') {
        if between.contains(|character: char| character.is_ascii_alphanumeric()) {
            found(between);
        }
        let mut escaped = false;
        let end = after.bytes().position(|byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        });
        let Some((literal, after)) =
            end.and_then(|end| Some((after.get(..end)?, after.get(end + 1..)?)))
        else {
            return found(after);
        };
        match serde_json::from_str::<String>(&["\"", literal, "\""].concat()) {
            Ok(text) => found(&text),
            Err(_) => found(literal),
        }
        rest = after;
    }
    if !rest.is_empty() {
        found(rest);
    }
}

/// Whether a text that is not JSON within the bounds begins as JSON does. Then a reader that is less strict may take it
/// for JSON.
pub fn begins_as_json(text: &str) -> bool {
    let inside =
        text.trim_start_matches(|character: char| character == '[' || character.is_whitespace());
    match inside.strip_prefix('{') {
        Some(object) => object.trim_start().starts_with('"'),
        None => inside.len() < text.len() && inside.starts_with('"'),
    }
}

/// Whether a number has enough digits to be that of a card, an account or a person.
pub const fn has_digits(number: i64) -> bool {
    number.unsigned_abs() >= 100_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_pointer_says_the_role_of_a_place() {
        let roles = r#"{"/to":"sink","/edits/*/text":"content","/edits/0/text":"detail","/a~1b":"content"}"#;
        let roles: ArgumentRoles = serde_json::from_str(roles).unwrap();
        let root = Path::ROOT;
        let edits = Path::Field(&root, "edits");
        for (at, expected) in [(0, Some(Role::Detail)), (1, Some(Role::Content))] {
            let item = Path::Item(&edits, at);
            let text = Path::Field(&item, "text");
            assert_eq!(text.role(&roles), expected);
            assert_eq!(Path::Item(&text, 3).role(&roles), expected, "below it");
            assert_eq!(item.role(&roles), None, "above it");
        }
        // `*` matches only items of arrays. So a caller cannot turn a destination into content with a name that is a
        // number.
        let named = Path::Field(&edits, "1");
        assert_eq!(Path::Field(&named, "text").role(&roles), None);
        assert_eq!(Path::Field(&root, "a/b").role(&roles), Some(Role::Content));
        assert_eq!(Path::Field(&root, "to").role(&roles), Some(Role::Sink));
    }

    #[test]
    fn no_pointer_has_a_name_in_which_something_was_found() {
        let value = r#"{"a":{"bad/1":{"c":["x"]}},"bad2":"y"}"#;
        let value = crate::json::parse(value.as_bytes()).unwrap();
        let mut seen = Vec::new();
        each_text(&value, Path::ROOT, &mut |text, path, is_key| {
            seen.push(path.pointer(is_key));
            text.starts_with("bad")
        });
        assert_eq!(seen, ["/*#key", "/a/*#key", "/a/*/*#key", "/a/*/c/0", "/*#key", "/*"]);
        let roles = serde_json::from_str(r#"{"/a/bad~11":"detail"}"#).unwrap();
        let (root, name) = (Path::ROOT, "bad/1");
        let masked = Path::Masked(&Path::Field(&root, "a"), name).role(&roles);
        assert_eq!(masked, Some(Role::Detail), "a role is found by the name");
    }

    #[test]
    fn a_text_that_begins_as_json_is_told_from_others() {
        for (text, expected) in [
            (r#"{"a":1,"a":2}"#, true),
            (r#"{ "a": 1, }"#, true),
            (r#"[["a"],]"#, true),
            (r#"[{"a":1},]"#, true),
            ("[WIP] a \"fix\"", false),
            ("[[Page]]", false),
            ("{{ user }}", false),
            ("{% if \"a\" %}", false),
            ("\"a\" and b", false),
            ("", false),
        ] {
            assert_eq!(begins_as_json(text), expected, "{text}");
        }
    }

    #[test]
    fn the_strings_of_a_text_that_is_not_quite_json_are_read() {
        for (text, expected) in [
            (r#"{"a":"b\nc","a":12}"#, &["a", "b\nc", "a", ":12}"][..]),
            (r#"["x\"y", "\u0041", "\q"]"#, &["x\"y", "A", r"\q", "]"]),
            (r#"{"open"#, &["open"]),
            ("[1,2", &["[1,2"]),
            ("", &[]),
        ] {
            let mut seen = Vec::new();
            each_literal(text, &mut |text| seen.push(text.to_owned()));
            assert_eq!(seen, expected, "{text}");
        }
    }
}
