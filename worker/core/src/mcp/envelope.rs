//! The members of messages that Gateward reads by name, and the rule about keys that differ from them in
//! case only.
//!
//! INVARIANT (one reading): JSON-RPC names are case-sensitive, but many libraries ignore case (Go's
//! `encoding/json` does by default; see CVE-2026-27896). Gateward decides on exact names. So a message is
//! rejected if an object that Gateward reads has a confusable key: one that such a library would take for
//! a name in the table, and Gateward would not. The rule is the same for clients and servers.
//!
//! Out of scope: a tool's arguments, `structuredContent` and texts, which may have any keys.

use super::{META_PREFIX, TASKS_EXTENSION};
use crate::json::raw::RawObject;
use crate::json::{begins_folded, is_confusable, same_folded};
use crate::warrant::carried;

/// The key in `_meta` of a stateless request's protocol revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key in `_meta` of the client's capabilities.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A whole message.
pub const MESSAGE: &str = "envelope";
/// An item of a list: a tool, a prompt, a resource or a template.
pub const ITEM: &str = "item";
/// A request of a stateless server to the client: one value of `inputRequests`.
pub const INPUT_REQUEST: &str = "inputRequest";

/// The names that Gateward reads or changes in each object. An object has the name of the member that
/// contains it; [`MESSAGE`], [`ITEM`] and [`INPUT_REQUEST`] are not members.
#[rustfmt::skip]
const READ: &[(&str, &[&str])] = &[
    (MESSAGE, &["error", "id", "jsonrpc", "method", "params", "result"]),
    ("params", &[
        "_meta", "arguments", "capabilities", "cursor", "inputResponses", "name", "notifications",
        "protocolVersion", "ref", "requestState", "task", "uri",
    ]),
    ("result", &[
        "_meta", "cacheScope", "capabilities", "inputRequests", "instructions", "nextCursor",
        "prompts", "protocolVersion", "requestState", "resourceTemplates", "resources",
        "resultType", "supportedVersions", "tools", "ttlMs",
    ]),
    ("error", &["code", "data", "message"]),
    ("data", &["elicitations"]),
    ("_meta", &[META_VERSION, META_CAPABILITIES, carried::META]),
    (META_CAPABILITIES, &["extensions"]),
    ("extensions", &[TASKS_EXTENSION]),
    ("capabilities", &["extensions", "prompts", "resources", "tasks", "tools"]),
    ("ref", &["name", "type", "uri"]),
    ("notifications", &["resourceSubscriptions"]),
    (ITEM, &["annotations", "inputSchema", "name", "uri", "uriTemplate"]),
    (INPUT_REQUEST, &["method", "params"]),
];

/// The names that Gateward reads in the object.
fn read_in(object: &str) -> &'static [&'static str] {
    READ.iter().find(|(name, _)| *name == object).map_or(&[], |(_, read)| read)
}

/// The first confusable key of an object.
pub fn confusable<'k>(object: &str, mut keys: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let read = read_in(object);
    keys.find(|key| is_confusable(key, read))
}

/// The first confusable key of an object, or of an object in it that Gateward reads. An inner object that
/// Gateward cannot read, for example because it has a duplicate key, counts too: its own key is returned.
#[must_use]
pub fn confusable_within(name: &str, object: &RawObject) -> Option<String> {
    if let Some(key) = confusable(name, object.names()) {
        return Some(key.to_owned());
    }
    read_in(name).iter().filter(|inner| !read_in(inner).is_empty()).find_map(|inner| {
        let text = object.get(inner).filter(|text| text.starts_with('{'))?;
        match RawObject::parse(text) {
            Some(object) => confusable_within(inner, &object),
            None => Some((*inner).to_owned()),
        }
    })
}

/// Whether a key of `_meta`, or of an error's data, is Gateward's own, in upper or lower case. The key of a warrant is
/// one of them, because a warrant is for Gateward.
#[must_use]
pub fn is_own(key: &str) -> bool {
    begins_folded(key, META_PREFIX) || same_folded(key, carried::META)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confusable_key_is_found_in_every_object_that_is_read() {
        for (object, text, expected) in [
            (MESSAGE, r#"{"id":1,"method":"a","Method":"b"}"#, Some("Method")),
            (MESSAGE, r#"{"id":1,"meth\u006fd\u0000":"b"}"#, Some("method\0")),
            (MESSAGE, r#"{"id":1,"x":{"Method":1}}"#, None),
            ("params", r#"{"name":"a","argument\u017f":{}}"#, Some("argumentſ")),
            ("params", r#"{"name":"a","tas\u212a":{}}"#, Some("tas\u{212a}")),
            ("params", r#"{"arguments":{"Name":1,"name":2}}"#, None),
            ("params", r#"{"ref":{"Type":"x"}}"#, Some("Type")),
            ("result", r#"{"tools":[],"Tools":[{"name":"x"}]}"#, Some("Tools")),
            ("result", r#"{"Tools":[{"name":"x"}]}"#, Some("Tools")),
            ("result", r#"{"content":[],"InputRequests":{}}"#, Some("InputRequests")),
            ("result", r#"{"REQUESTSTATE":"x"}"#, Some("REQUESTSTATE")),
            ("result", r#"{"resulttype":"task"}"#, Some("resulttype")),
            ("result", r#"{"capabilities":{"Tasks":{}}}"#, Some("Tasks")),
            (
                "result",
                r#"{"capabilities":{"extensions":{"IO.modelcontextprotocol/tasks":{}}}}"#,
                Some("IO.modelcontextprotocol/tasks"),
            ),
            // Gateward cannot change an object with a duplicate key.
            ("result", r#"{"_meta":{"a":1,"a":2}}"#, Some("_meta")),
            ("result", r#"{"capabilities":{"tasks":{},"x":1,"x":2}}"#, Some("capabilities")),
            // Free data.
            (
                "result",
                r#"{"structuredContent":{"a":1,"A":2,"Tools":[],"tools":[]},"content":[{"Text":"x"}]}"#,
                None,
            ),
            ("result", r#"{"_meta":{"Progress":1,"progress":2},"n":12345678901234567890}"#, None),
            ("error", r#"{"code":1,"Data":{"elicitations":[{}]}}"#, Some("Data")),
            ("error", r#"{"code":1,"data":{"Elicitations":[{}]}}"#, Some("Elicitations")),
            ("error", r#"{"code":1,"data":"Elicitations"}"#, None),
            ("error", r#"{"code":1,"data":[{"Elicitations":1}]}"#, None),
            (ITEM, r#"{"name":"a","Name":"b"}"#, Some("Name")),
            (INPUT_REQUEST, r#"{"method":"a","PARAMS":{}}"#, Some("PARAMS")),
        ] {
            let object_read = RawObject::parse(text).unwrap();
            assert_eq!(
                confusable_within(object, &object_read).as_deref(),
                expected,
                "{object} {text}"
            );
        }
    }

    #[test]
    fn the_names_that_are_read_in_one_object_are_not_confusable() {
        for (object, read) in READ {
            assert_eq!(confusable(object, read.iter().copied()), None, "{object}");
        }
    }

    #[test]
    fn gatewards_own_keys_are_recognized_in_any_case() {
        for (key, expected) in [
            ("dev.gateward/decision_id", true),
            ("Dev.Gateward/decision_id", true),
            ("dev.gateward/", true),
            ("d\0ev.gateward/x", true),
            ("dev.gateward", false),
            ("dev.gatewarden/x", false),
        ] {
            assert_eq!(is_own(key), expected, "{key}");
        }
    }
}
