//! What a call is counted by: a keyed hash, so that no account number is stored.

use super::definition::{KeyPart, Reach, Window};
use crate::json::Json;
use crate::provenance::ValueKey;
use crate::provenance::normal::{Form, MAX_VALUE_BYTES};

/// Who calls, as far as keys need it.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub agent: &'a str,
    /// `None` if no harness states it. Any other caller could name another user with each call.
    pub user: Option<&'a str>,
    /// `None` if no harness assigned it.
    pub run: Option<&'a str>,
}

/// The forms of a part, so that no two of them are equal.
const NORMAL: u8 = 0;
const CANONICAL: u8 = 1;
const ABSENT: u8 = 2;
/// A text of more than [`MAX_VALUE_BYTES`]. All of them have one key: a caller can spell a value in any number of long
/// ways, such as with more spaces, and must not get a key of its own for each.
const LONG: u8 = 3;

/// The keyed hash of a call's key in a window. Values are hashed in the normal form of provenance, so another spelling
/// of a value gives the same key. All calls that lack a part, or have a list or an object there, count together. All
/// calls with a long text there count together too.
#[must_use]
pub fn key_of(window: &Window, caller: Caller<'_>, input: &Json, key: &ValueKey) -> u64 {
    let mut bytes = Vec::with_capacity(96);
    bytes.extend(b"velocity\0");
    bytes.extend(window.id.as_bytes());
    let of_agent = (window.reach == Reach::Agent).then_some(&KeyPart::Agent);
    for part in of_agent.into_iter().chain(window.key) {
        bytes.push(0);
        match part {
            KeyPart::Agent => exact(&mut bytes, Some(caller.agent)),
            KeyPart::User => exact(&mut bytes, caller.user),
            KeyPart::Run => exact(&mut bytes, caller.run),
            KeyPart::Argument(pointer) => argument(&mut bytes, input.pointer(pointer)),
        }
    }
    key.hash(&bytes)
}

/// Names are compared as they are.
fn exact(bytes: &mut Vec<u8>, name: Option<&str>) {
    match name {
        Some(name) => part(bytes, CANONICAL, name.as_bytes()),
        None => part(bytes, ABSENT, &[]),
    }
}

fn argument(bytes: &mut Vec<u8>, value: Option<&Json>) {
    let mut form = Form::new();
    match value {
        Some(Json::Bool(value)) => part(bytes, CANONICAL, &[u8::from(*value)]),
        Some(value) => match (form.of_json(value), value) {
            (Some(normal), _) => part(bytes, NORMAL, normal),
            (None, Json::String(text)) if text.len() > MAX_VALUE_BYTES => {
                part(bytes, LONG, &[]);
            }
            // A server could treat a blank value as absent, and a list with one item as this item.
            _ => part(bytes, ABSENT, &[]),
        },
        None => part(bytes, ABSENT, &[]),
    }
}

/// The length comes first, so that no two lists of parts have the same bytes.
fn part(bytes: &mut Vec<u8>, form: u8, value: &[u8]) {
    bytes.push(form);
    bytes.extend((value.len() as u64).to_be_bytes());
    bytes.extend(value);
}

#[cfg(test)]
mod tests {
    use super::super::definition::Counts;
    use super::*;

    fn hash(key: &'static [KeyPart], user: Option<&str>, input: &str) -> u64 {
        hash_of("a", Reach::Tenant, key, user, input)
    }

    fn hash_of(
        agent: &str,
        reach: Reach,
        key: &'static [KeyPart],
        user: Option<&str>,
        input: &str,
    ) -> u64 {
        let caller = Caller { agent, user, run: None };
        let input = crate::json::parse(input.as_bytes()).unwrap();
        key_of(&window(reach, key), caller, &input, &ValueKey::new([3; 16]))
    }

    fn window(reach: Reach, key: &'static [KeyPart]) -> Window {
        Window {
            name: "w",
            id: "w.1",
            tools: &["*"],
            counts: Counts::Passed,
            sum: None,
            key,
            width_ms: 1_000,
            reach,
        }
    }

    #[test]
    fn each_run_and_each_user_has_a_key() {
        const RUN: &[KeyPart] = &[KeyPart::Run];
        const USER: &[KeyPart] = &[KeyPart::User];
        let of = |key: &'static [KeyPart], user, run| {
            let caller = Caller { agent: "a", user, run };
            key_of(&window(Reach::Tenant, key), caller, &Json::Null, &ValueKey::new([3; 16]))
        };
        for (key, one, other, equal) in [
            (RUN, (None, Some("1")), (None, Some("2")), false),
            (RUN, (None, Some("1")), (None, None), false),
            (RUN, (Some("u"), Some("1")), (Some("v"), Some("1")), true),
            (USER, (Some("u"), None), (Some("v"), None), false),
            (USER, (Some("u"), Some("1")), (Some("u"), Some("2")), true),
        ] {
            let keys = [one, other].map(|(user, run)| of(key, user, run));
            assert_eq!(keys[0] == keys[1], equal, "{one:?} {other:?}");
        }
    }

    #[test]
    fn equal_values_have_one_key_and_others_have_another() {
        const CUSTOMER: &[KeyPart] = &[KeyPart::Argument("/c")];
        const BOTH: &[KeyPart] = &[KeyPart::Argument("/c"), KeyPart::Argument("/d")];
        for (key, one, other, equal) in [
            (CUSTOMER, r#"{"c":"cus 1"}"#, r#"{"c":" CUS  1 "}"#, true),
            (CUSTOMER, r#"{"c":17}"#, r#"{"c":"17"}"#, true),
            (CUSTOMER, r#"{}"#, r#"{"c":null}"#, true),
            (CUSTOMER, r#"{"c":["x"]}"#, r#"{}"#, true),
            (CUSTOMER, r#"{"c":{"x":1}}"#, r#"{"c":["y"]}"#, true),
            (CUSTOMER, r#"{"c":""}"#, r#"{"c":"  "}"#, true),
            (CUSTOMER, r#"{"c":""}"#, r#"{}"#, true),
            (CUSTOMER, r#"{"c":true}"#, r#"{"c":false}"#, false),
            (CUSTOMER, r#"{"c":true}"#, r#"{}"#, false),
            (CUSTOMER, r#"{"c":"cus_1"}"#, r#"{"c":"cus_2"}"#, false),
            (BOTH, r#"{"c":"a","d":"b"}"#, r#"{"c":"b","d":"a"}"#, false),
            (BOTH, r#"{"c":"ab"}"#, r#"{"c":"a","d":"b"}"#, false),
        ] {
            assert_eq!(hash(key, None, one) == hash(key, None, other), equal, "{one} {other}");
        }
        let spaces = |count: usize| format!(r#"{{"c":"cus{}1"}}"#, " ".repeat(count));
        let long = hash(CUSTOMER, None, &spaces(513));
        for count in [514, 515, 2_000] {
            let padded = hash(CUSTOMER, None, &spaces(count));
            assert_eq!(padded, long, "padding gives no key of its own");
        }
        for length in [513, 600, 5_000] {
            for letter in ["x", "É", " "] {
                let text = format!(r#"{{"c":"{}"}}"#, letter.repeat(length));
                assert_eq!(hash(CUSTOMER, None, &text), long, "{letter} {length}");
            }
        }
        for other in ["{}".to_owned(), spaces(1), r#"{"c":true}"#.to_owned()] {
            assert_ne!(hash(CUSTOMER, None, &other), long, "{other}");
        }
        const USER: &[KeyPart] = &[KeyPart::User];
        assert_ne!(hash(USER, Some("ann"), "{}"), hash(USER, Some("bob"), "{}"));
        assert_ne!(hash(USER, None, "{}"), hash(USER, Some(""), "{}"));
        let of = |agent, reach| hash_of(agent, reach, CUSTOMER, None, r#"{"c":"x"}"#);
        assert_ne!(of("a", Reach::Agent), of("b", Reach::Agent));
        assert_eq!(of("a", Reach::Tenant), of("b", Reach::Tenant));
    }
}
