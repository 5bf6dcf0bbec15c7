//! What a call is counted by: a keyed hash, so that no account number is stored.

use super::definition::{KeyPart, Reach, Window};
use crate::json::Json;
use crate::provenance::ValueKey;
use crate::provenance::normal::Form;

/// Who calls, as far as keys know.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    pub agent: &'a str,
    /// `None` if no harness states it. Anybody else could name another one with each call.
    pub user: Option<&'a str>,
    /// `None` if no harness assigned it.
    pub run: Option<&'a str>,
}

/// The forms of a part, so that no two of them are equal.
const NORMAL: u8 = 0;
const CANONICAL: u8 = 1;
const ABSENT: u8 = 2;

/// The keyed hash of a call's key in a window. Values are hashed in the normal form of provenance, so another
/// spelling of a value is no other key. All calls that lack a part count together.
#[must_use]
pub fn key_of(window: &Window, caller: Caller<'_>, input: &Json, key: &ValueKey) -> u64 {
    let mut bytes = Vec::with_capacity(96);
    bytes.extend(b"velocity\0");
    bytes.extend(window.name.as_bytes());
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
        None | Some(Json::Null) => part(bytes, ABSENT, &[]),
        Some(value) => match form.of_json(value) {
            Some(normal) => part(bytes, NORMAL, normal),
            None => part(bytes, CANONICAL, value.canonical().as_bytes()),
        },
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
        let window = Window {
            name: "w",
            tools: &["*"],
            counts: Counts::Passed,
            sum: None,
            key,
            width_ms: 1_000,
            reach: Reach::Tenant,
        };
        let caller = Caller { agent: "a", user, run: None };
        let input = crate::json::parse(input.as_bytes()).unwrap();
        key_of(&window, caller, &input, &ValueKey::new([3; 16]))
    }

    #[test]
    fn equal_values_have_one_key_and_others_have_another() {
        const CUSTOMER: &[KeyPart] = &[KeyPart::Argument("/c")];
        const BOTH: &[KeyPart] = &[KeyPart::Argument("/c"), KeyPart::Argument("/d")];
        for (key, one, other, equal) in [
            (CUSTOMER, r#"{"c":"cus 1"}"#, r#"{"c":" CUS  1 "}"#, true),
            (CUSTOMER, r#"{"c":17}"#, r#"{"c":"17"}"#, true),
            (CUSTOMER, r#"{}"#, r#"{"c":null}"#, true),
            (CUSTOMER, r#"{"c":["x"]}"#, r#"{"c":["x"],"d":1}"#, true),
            (CUSTOMER, r#"{"c":"cus_1"}"#, r#"{"c":"cus_2"}"#, false),
            (CUSTOMER, r#"{"c":""}"#, r#"{}"#, false),
            (CUSTOMER, r#"{"c":["x"]}"#, r#"{"c":["y"]}"#, false),
            (BOTH, r#"{"c":"a","d":"b"}"#, r#"{"c":"b","d":"a"}"#, false),
            (BOTH, r#"{"c":"ab"}"#, r#"{"c":"a","d":"b"}"#, false),
        ] {
            assert_eq!(hash(key, None, one) == hash(key, None, other), equal, "{one} {other}");
        }
        const USER: &[KeyPart] = &[KeyPart::User];
        assert_ne!(hash(USER, Some("ann"), "{}"), hash(USER, Some("bob"), "{}"));
        assert_ne!(hash(USER, None, "{}"), hash(USER, Some(""), "{}"));
    }
}
