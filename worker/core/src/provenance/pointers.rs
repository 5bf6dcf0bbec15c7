//! What is registered for parts of a JSON value: an object from JSON Pointers (RFC 6901) to the value for each part.
//! It is sorted, so that it has only one spelling.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::{MAX_POINTER_BYTES, is_pointer};

/// Pointers of a tool. Each is compared with every argument or part of a result. Tools with more than sixty
/// arguments are rare, and one pointer covers everything below it.
pub const MAX_POINTERS: usize = 64;

/// # Errors
///
/// The serializer's.
pub fn serialize<T: Serialize, S: Serializer>(
    pointers: &[(String, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pointers.iter().map(|(pointer, value)| (pointer, value)))
}

/// # Errors
///
/// It has too many pointers, has a pointer twice, or has a name that is not a pointer.
pub fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, T)>, D::Error> {
    deserializer.deserialize_map(Pointers(PhantomData))
}

/// As [`deserialize`], for pointers to parts of an object: the empty pointer, which is the whole object, is
/// refused.
///
/// # Errors
///
/// As [`deserialize`].
pub fn deserialize_parts<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, T)>, D::Error> {
    let pointers = deserialize(deserializer)?;
    // Sorted, so the empty pointer is the first.
    if pointers.first().is_some_and(|(pointer, _)| pointer.is_empty()) {
        return Err(D::Error::custom("must not have the empty pointer: name the arguments"));
    }
    Ok(pointers)
}

struct Pointers<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Pointers<T> {
    type Value = Vec<(String, T)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object whose names are JSON Pointers")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pointers: Self::Value = Vec::new();
        while let Some(pointer) = map.next_key::<String>()? {
            if pointers.len() == MAX_POINTERS {
                let error = format!("must have at most {MAX_POINTERS} pointers");
                return Err(A::Error::custom(error));
            }
            if !is_pointer(&pointer) {
                // The pointer itself may be long.
                let error = format!(
                    "each name must be a JSON Pointer, such as `/to` or `/items/*/id`, of at most \
                     {MAX_POINTER_BYTES} bytes"
                );
                return Err(A::Error::custom(error));
            }
            // Each is inserted at its place: there are few pointers, and a sort would be compiled for each type.
            let value = map.next_value()?;
            match pointers.binary_search_by(|(known, _)| known.cmp(&pointer)) {
                Ok(_) => return Err(A::Error::custom("must not have a pointer twice")),
                Err(at) => pointers.insert(at, (pointer, value)),
            }
        }
        Ok(pointers)
    }
}

/// The name of a member as a step of a JSON Pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The name of a member that a step of a JSON Pointer has.
pub(super) fn unescaped(step: &str) -> String {
    step.replace("~1", "/").replace("~0", "~")
}

/// The first step of a JSON Pointer, and the pointer that is left below it. `None` if the pointer has no step.
#[inline(never)]
pub(super) fn first_step(pointer: &str) -> Option<(&str, &str)> {
    let steps = pointer.strip_prefix('/')?;
    steps.split_at_checked(steps.find('/').unwrap_or(steps.len()))
}

/// A step into a JSON value.
#[derive(Debug, Clone, Copy)]
pub enum Step<'i> {
    Item(usize),
    Member(&'i str),
}

impl Step<'_> {
    /// As a step of a JSON Pointer.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Item(at) => at.to_string(),
            Self::Member(name) => escaped(name),
        }
    }

    /// Whether a registered pointer has this step. There, `*` stands for every item.
    #[must_use]
    pub fn is(&self, registered: &str) -> bool {
        match self {
            Self::Item(at) => registered == "*" || registered.parse() == Ok(*at),
            Self::Member(name) if name.contains(['~', '/']) => registered == escaped(name),
            Self::Member(name) => registered == *name,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::provenance::{ArgumentRoles, ResultLevel, ResultTrust, Role};

    #[test]
    fn pointers_are_an_object_that_is_sorted() {
        let text = r#"{"/to/*":"sink","/body":"content","/a~1b/~0":"detail"}"#;
        let roles: ArgumentRoles = serde_json::from_str(text).unwrap();
        let role = |pointer: &str, role| (pointer.to_owned(), role);
        let expected = [
            role("/a~1b/~0", Role::Detail),
            role("/body", Role::Content),
            role("/to/*", Role::Sink),
        ];
        assert_eq!(roles.0, expected);
        let sorted = r#"{"/a~1b/~0":"detail","/body":"content","/to/*":"sink"}"#;
        assert_eq!(serde_json::to_string(&roles).unwrap(), sorted);
    }

    #[test]
    fn pointers_come_back_from_a_message_to_a_lane() {
        let trust = ResultTrust(vec![
            (String::new(), ResultLevel::Untrusted),
            ("/contacts".to_owned(), ResultLevel::Trusted),
        ]);
        let bytes = postcard::to_allocvec(&trust).unwrap();
        assert_eq!(postcard::from_bytes::<ResultTrust>(&bytes), Ok(trust));
    }

    #[test]
    fn what_is_not_a_pointer_is_refused() {
        let many = |count: usize| {
            let members: Vec<_> = (0..count).map(|n| format!(r#""/{n}":"sink""#)).collect();
            format!("{{{}}}", members.join(","))
        };
        let long = |bytes: usize| json!({ format!("/{}", "x".repeat(bytes - 1)): "sink" });
        for (what, text, expected) in [
            ("no pointer", "{}".to_owned(), true),
            ("every item", r#"{"/a/*/b":"sink"}"#.to_owned(), true),
            ("name that is empty", r#"{"/":"sink"}"#.to_owned(), true),
            ("most pointers", many(super::MAX_POINTERS), true),
            ("too many pointers", many(super::MAX_POINTERS + 1), false),
            ("longest pointer", long(super::MAX_POINTER_BYTES).to_string(), true),
            ("too long pointer", long(super::MAX_POINTER_BYTES + 1).to_string(), false),
            ("name instead of a pointer", r#"{"to":"sink"}"#.to_owned(), false),
            ("JSONPath", r#"{"$.to":"sink"}"#.to_owned(), false),
            ("unknown escape", r#"{"/a~2":"sink"}"#.to_owned(), false),
            ("escape that is cut", r#"{"/a~":"sink"}"#.to_owned(), false),
            ("control character", r#"{"/a\n":"sink"}"#.to_owned(), false),
            ("pointer that is there twice", r#"{"/a":"sink","/a":"detail"}"#.to_owned(), false),
            ("unknown role", r#"{"/a":"source"}"#.to_owned(), false),
            ("all arguments at once", r#"{"":"detail"}"#.to_owned(), false),
            ("list", r#"[["/a","sink"]]"#.to_owned(), false),
        ] {
            let read = serde_json::from_str::<ArgumentRoles>(&text);
            assert_eq!(read.is_ok(), expected, "{what}: {read:?}");
        }
        assert!(serde_json::from_str::<ResultTrust>(r#"{"":"trusted"}"#).is_ok());
    }
}
