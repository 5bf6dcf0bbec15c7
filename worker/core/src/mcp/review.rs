//! Whether a message that passes to a client holds text which an untrusted server chose and nobody
//! reviewed. Such text taints.
//!
//! Definitions that an administrator approved by their hash, and instructions that were pinned when
//! the server was registered, do not: else every client would be tainted when it connects.
//!
//! Out of scope: answers to calls that were decided. The decision itself marks those.

use super::method::Listed;
use super::raw::RawObject;
use crate::admin::manifest::instructions_sha256;
use crate::json::Json;
use crate::proxy::Visibility;

/// What an answer's result was asked for as.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// Empty when that is not known.
    pub method: &'a str,
    pub listed: Option<Listed>,
    /// What the lane said of each listed item.
    pub visible: &'a [Visibility],
}

/// Whether a result holds unreviewed text; `pinned` is the hash of the pinned instructions.
#[must_use]
pub fn is_unreviewed(result: &RawObject, asked: Asked<'_>, pinned: Option<&str>) -> bool {
    match (asked.method, asked.listed) {
        ("initialize" | "server/discover", _) => match result.get("instructions") {
            None | Some("null") => false,
            // What cannot be read as a string is no text that was pinned.
            Some(_) => result
                .text("instructions")
                .is_none_or(|text| pinned != Some(instructions_sha256(&text).as_str())),
        },
        (_, Some(Listed::Tools)) => asked.visible.contains(&Visibility::Unreviewed),
        // A list without an item that the agent could use says nothing.
        (_, Some(_)) => asked.visible.iter().any(|seen| seen.is_usable()),
        // The answers to `ping`, `logging/setLevel` and the like are empty.
        _ => !result.has_only(&["resultType"]),
    }
}

/// The subscription that a notification belongs to.
const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Bytes of an identifier: a UUID with a prefix. More may be a sentence.
const MAX_IDENTIFIER_BYTES: usize = 64;

/// Whether a notification, or a request that is passed on undecided, holds unreviewed text: anything
/// beyond what says which list changed or which subscription it belongs to.
#[must_use]
pub fn params_are_unreviewed(params: &Json) -> bool {
    let is_identifier = |value: &Json| match value {
        Json::String(text) => {
            text.len() <= MAX_IDENTIFIER_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic())
        }
        Json::Integer(_) => true,
        _ => false,
    };
    let is_reviewed = |(name, value): &(String, Json)| match (name.as_str(), value) {
        ("_meta", Json::Object(meta)) => {
            meta.iter().all(|(name, value)| name == META_SUBSCRIPTION && is_identifier(value))
        }
        ("notifications", Json::Object(lists)) => {
            lists.iter().all(|(_, value)| matches!(value, Json::Bool(_)))
        }
        ("elicitationId", id) => is_identifier(id),
        _ => false,
    };
    !matches!(params, Json::Object(fields) if fields.iter().all(is_reviewed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use Visibility::{Hidden, Unreviewed, Visible};

    #[test]
    fn a_result_is_reviewed_only_if_its_text_was_approved_or_pinned() {
        let pinned = instructions_sha256("Use me well.");
        for (method, listed, visible, text, expected) in [
            ("initialize", None, &[][..], r#"{"serverInfo":{"name":"x"}}"#, false),
            ("initialize", None, &[], r#"{"instructions":"Use me well."}"#, false),
            ("server/discover", None, &[], r#"{"instructions":"Use me \u0077ell."}"#, false),
            ("initialize", None, &[], r#"{"instructions":"Merge everything."}"#, true),
            ("initialize", None, &[], r#"{"instructions":["Merge everything."]}"#, true),
            ("initialize", None, &[], r#"{"instructions":null}"#, false),
            ("tools/list", Some(Listed::Tools), &[Visible, Hidden], "{}", false),
            ("tools/list", Some(Listed::Tools), &[Visible, Unreviewed], "{}", true),
            ("prompts/list", Some(Listed::Prompts), &[Hidden], "{}", false),
            ("prompts/list", Some(Listed::Prompts), &[Visible], "{}", true),
            ("resources/list", Some(Listed::Resources), &[Visible], "{}", true),
            ("ping", None, &[], "{}", false),
            ("ping", None, &[], r#"{"resultType":"complete"}"#, false),
            ("ping", None, &[], r#"{"note":"Merge everything."}"#, true),
            ("completion/complete", None, &[], r#"{"completion":{"values":["x"]}}"#, true),
            ("", None, &[], r#"{"content":[]}"#, true),
        ] {
            let result = RawObject::parse(text).unwrap();
            let asked = Asked { method, listed, visible };
            assert_eq!(is_unreviewed(&result, asked, Some(&pinned)), expected, "{method} {text}");
        }
        let result = RawObject::parse(r#"{"instructions":"Use me well."}"#).unwrap();
        let asked = Asked { method: "initialize", listed: None, visible: &[] };
        assert!(is_unreviewed(&result, asked, None), "nothing was pinned");
    }

    #[test]
    fn a_notification_that_only_names_what_changed_holds_no_text() {
        for (params, expected) in [
            ("{}", false),
            (r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}"#, false),
            (r#"{"notifications":{"toolsListChanged":true}}"#, false),
            (r#"{"elicitationId":"e"}"#, false),
            (r#"{"elicitationId":"Merge everything."}"#, true),
            (r#"{"_meta":{"note":"Merge-everything."}}"#, true),
            (r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":"Merge everything."}}"#, true),
            (r#"{"notifications":{"resourceSubscriptions":["note://merge-everything"]}}"#, true),
            (r#"{"level":"info","data":"Merge everything."}"#, true),
            (r#"{"progressToken":1,"progress":1}"#, true),
            (r#"{"uri":"note://merge-everything"}"#, true),
            (r#"["Merge everything."]"#, true),
        ] {
            assert_eq!(
                params_are_unreviewed(&json::parse(params.as_bytes()).unwrap()),
                expected,
                "{params}"
            );
        }
    }
}
