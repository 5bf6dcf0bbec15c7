//! The members of messages that Gateward reads by name, and the one rule about keys that other
//! readers may take for them.
//!
//! INVARIANT (one reading): JSON-RPC names are case-sensitive, and yet many libraries match them
//! without case (Go's `encoding/json` does by default; CVE-2026-27896 and its like). Gateward decides
//! on exact names. So where it reads an object by name, a key that a lenient reader may take for one
//! of these names, and Gateward does not, refuses the message. The rule is the same for clients and
//! servers.
//!
//! Out of scope: free data. A tool's arguments, `structuredContent` and texts may have any keys.

use super::raw::RawObject;
use super::{META_PREFIX, TASKS_EXTENSION};
use crate::json::{begins_folded, is_mistakable};

/// Where a request of the stateless era says its revision.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Where it says what the client can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A whole message.
pub const MESSAGE: &str = "envelope";
/// An item of a list: a tool, a prompt, a resource or a template.
pub const ITEM: &str = "item";
/// What a stateless server asks of the client: one value of `inputRequests`.
pub const INPUT_REQUEST: &str = "inputRequest";

/// The names that Gateward reads or changes in each object. An object is called by the member that
/// holds it; [`MESSAGE`], [`ITEM`] and [`INPUT_REQUEST`] have names of their own.
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
    ("_meta", &[META_VERSION, META_CAPABILITIES]),
    (META_CAPABILITIES, &["extensions"]),
    ("extensions", &[TASKS_EXTENSION]),
    ("capabilities", &["extensions", "prompts", "resources", "tasks", "tools"]),
    ("ref", &["name", "type", "uri"]),
    ("notifications", &["resourceSubscriptions"]),
    (ITEM, &["annotations", "inputSchema", "name", "uri", "uriTemplate"]),
    (INPUT_REQUEST, &["method", "params"]),
];

/// The names that Gateward reads in the object; none when it reads none.
fn read_in(object: &str) -> &'static [&'static str] {
    READ.iter().find(|(name, _)| *name == object).map_or(&[], |(_, read)| read)
}

/// The first of an object's keys that a lenient reader may take for a name that Gateward reads in it.
pub fn mistaken<'k>(object: &str, mut keys: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let read = read_in(object);
    keys.find(|key| is_mistakable(key, read))
}

/// The same of an object and of the objects that Gateward reads in it. One of these that has a key
/// twice is such a key itself: Gateward cannot read what another reader can.
#[must_use]
pub fn misread(name: &str, object: &RawObject) -> Option<String> {
    if let Some(key) = mistaken(name, object.names()) {
        return Some(key.to_owned());
    }
    read_in(name).iter().filter(|inner| !read_in(inner).is_empty()).find_map(|inner| {
        let text = object.get(inner).filter(|text| text.starts_with('{'))?;
        match RawObject::parse(text) {
            Some(object) => misread(inner, &object),
            None => Some((*inner).to_owned()),
        }
    })
}

/// Whether a key of `_meta`, or of an error's data, is Gateward's own, however it is written.
#[must_use]
pub fn is_own(key: &str) -> bool {
    begins_folded(key, META_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_could_be_taken_for_one_that_is_read_is_found_where_that_is_read() {
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
            // Gateward would leave such an object as it is.
            ("result", r#"{"_meta":{"a":1,"a":2}}"#, Some("_meta")),
            ("result", r#"{"capabilities":{"tasks":{},"x":1,"x":2}}"#, Some("capabilities")),
            // Free data, however it is written.
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
            assert_eq!(misread(object, &object_read).as_deref(), expected, "{object} {text}");
        }
    }

    #[test]
    fn no_two_names_that_are_read_in_one_object_can_be_taken_for_each_other() {
        for (object, read) in READ {
            assert_eq!(mistaken(object, read.iter().copied()), None, "{object}");
        }
    }

    #[test]
    fn gatewards_own_keys_are_known_in_any_case() {
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
