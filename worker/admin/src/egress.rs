//! Signs of egress in a tool's definition: that a call sends text out, or fetches an address that
//! the caller gives. An agent that reads a secret can leak it through such a call, so policies
//! treat an egress tool as a write.
//!
//! The server wrote the definition, so this is only a proposal to the person who approves the tool.
//! A definition without signs can still belong to an egress tool. The definition can only add
//! signs: `openWorldHint: false` removes none.

use gateward_core::json::Json;

use crate::words::{has, words};

/// Signs that are reported for one tool; more would not help the reviewer.
pub const MAX_SIGNS: usize = 8;

/// Words in an argument's name that suggest an address.
const WORDS: [&str; 25] = [
    "address",
    "bcc",
    "callback",
    "cc",
    "channel",
    "destination",
    "domain",
    "email",
    "endpoint",
    "host",
    "hostname",
    "href",
    "ip",
    "link",
    "origin",
    "phone",
    "recipient",
    "server",
    "site",
    "to",
    "uri",
    "url",
    "webhook",
    "webpage",
    "website",
];

/// Words that also count at the end of a longer word, as in `imageurl` and `IPAddress`.
const ENDINGS: [&str; 7] = ["address", "email", "endpoint", "hostname", "uri", "url", "webhook"];

/// JSON Schema's formats of addresses: RFC 3986 and 3987, mail, hosts and networks. `url` is not a
/// format of JSON Schema, but servers write it.
const FORMATS: [&str; 13] = [
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "uri",
    "uri-reference",
    "uri-template",
    "url",
    "urn",
];

/// Types that cannot contain an address.
const OTHER_TYPES: [&str; 4] = ["boolean", "integer", "null", "number"];

/// Something in a definition that suggests egress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign<'a> {
    /// The annotation `openWorldHint` is true.
    OpenWorld,
    /// An argument has this format.
    Format(&'a str),
    /// An argument has this name.
    Name(&'a str),
}

/// The signs of egress in a tool's definition, [`MAX_SIGNS`] at most. Reads the definition once.
#[must_use]
pub fn signs(definition: &Json) -> Vec<Sign<'_>> {
    let mut signs = Vec::new();
    let open_world = definition.get("annotations").and_then(|given| given.get("openWorldHint"));
    if open_world == Some(&Json::Bool(true)) {
        signs.push(Sign::OpenWorld);
    }
    if let Some(schema) = definition.get("inputSchema") {
        visit(schema, &mut signs);
    }
    signs.truncate(MAX_SIGNS);
    signs
}

/// Looks at every `properties` and `format` in a schema, even where JSON Schema ignores them: a
/// missed keyword hides a sign, and a false one only costs a needless proposal. Recursion ends at
/// the depth that [`gateward_core::json::parse`] allows.
fn visit<'a>(schema: &'a Json, signs: &mut Vec<Sign<'a>>) {
    if signs.len() >= MAX_SIGNS {
        return;
    }
    match schema {
        Json::Array(items) => items.iter().for_each(|item| visit(item, signs)),
        Json::Object(members) => {
            for (keyword, value) in members {
                match (keyword.as_str(), value) {
                    ("properties", Json::Object(properties)) => signs.extend(
                        properties
                            .iter()
                            .filter(|(name, schema)| names_address(name) && can_hold_text(schema))
                            .map(|(name, _)| Sign::Name(name)),
                    ),
                    ("format", Json::String(format)) => {
                        let format =
                            FORMATS.iter().find(|known| format.eq_ignore_ascii_case(known));
                        signs.extend(format.map(|format| Sign::Format(format)));
                    }
                    _ => {}
                }
                visit(value, signs);
            }
        }
        _ => {}
    }
}

fn can_hold_text(schema: &Json) -> bool {
    let kind = schema.get("type").and_then(Json::as_str);
    !kind.is_some_and(|kind| OTHER_TYPES.contains(&kind))
}

/// Whether a word of the name is one of [`WORDS`] or ends in one of [`ENDINGS`], in the singular or the
/// plural: `targetUrl`, `reply_to`, `imageurl`, `URLs`.
fn names_address(name: &str) -> bool {
    words(name).iter().any(|word| {
        let ends = |word: &str| ENDINGS.iter().any(|ending| word.ends_with(ending));
        let singular = word.strip_suffix("es").into_iter().chain(word.strip_suffix('s'));
        has(&WORDS, word) || singular.chain([word.as_str()]).any(ends)
    })
}

/// Whether a format of JSON Schema is one of an address.
pub(super) fn is_address_format(format: &str) -> bool {
    FORMATS.iter().any(|known| format.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gateward_core::json;

    fn found(definition: &str) -> Vec<String> {
        let definition = json::parse(definition.as_bytes()).unwrap();
        signs(&definition).iter().map(|sign| format!("{sign:?}")).collect()
    }

    #[test]
    fn an_argument_that_names_an_address_is_a_sign() {
        for (name, expected) in [
            ("url", true),
            ("targetUrl", true),
            ("target_url", true),
            ("imageurl", true),
            ("callbackURL", true),
            ("URLs", true),
            ("webhook", true),
            ("endpoints", true),
            ("to", true),
            ("reply-to", true),
            ("replyTo", true),
            ("recipients", true),
            ("addresses", true),
            ("IPAddress", true),
            ("Email", true),
            ("query", false),
            ("path", false),
            ("tool", false),
            ("total", false),
            ("description", false),
            ("token", false),
            ("", false),
        ] {
            let definition = format!(r#"{{"inputSchema":{{"properties":{{"{name}":{{}}}}}}}}"#);
            assert_eq!(!found(&definition).is_empty(), expected, "{name}");
        }
    }

    #[test]
    fn signs_are_found_wherever_they_are() {
        for (what, definition, expected) in [
            ("no schema", r#"{"name":"fetch"}"#, vec![]),
            (
                "format, and not only of a property",
                r#"{"inputSchema":{"properties":{"page":{"anyOf":[{"format":"uri"}]}}}}"#,
                vec![r#"Format("uri")"#],
            ),
            (
                "list of addresses",
                r#"{"inputSchema":{"properties":{"q":{"type":"array","items":{"format":"URI"}}}}}"#,
                vec![r#"Format("uri")"#],
            ),
            (
                "definition that is referred to",
                r##"{"inputSchema":{"$defs":{"a":{"properties":{"url":{}}}},"$ref":"#/$defs/a"}}"##,
                vec![r#"Name("url")"#],
            ),
            (
                "number of that name",
                r#"{"inputSchema":{"properties":{"to":{"type":"integer"},"host":{"type":"string"}}}}"#,
                vec![r#"Name("host")"#],
            ),
            ("open world", r#"{"annotations":{"openWorldHint":true}}"#, vec!["OpenWorld"]),
            ("nothing said", r#"{"annotations":{}}"#, vec![]),
        ] {
            assert_eq!(found(definition), expected, "{what}");
        }
    }

    /// Attack: a definition claims that it has no egress.
    #[test]
    fn a_definition_talks_no_sign_away() {
        let definition = r#"{"annotations":{"openWorldHint":false,"readOnlyHint":true},
            "inputSchema":{"properties":{"url":{"type":"string"}}}}"#;
        assert_eq!(found(definition), [r#"Name("url")"#]);
    }

    #[test]
    fn signs_are_bounded() {
        let many: Vec<String> =
            (0..100).map(|n| format!(r#""url_{n}":{{"format":"uri"}}"#)).collect();
        let definition = format!(r#"{{"inputSchema":{{"properties":{{{}}}}}}}"#, many.join(","));
        assert_eq!(found(&definition).len(), MAX_SIGNS);
    }
}
