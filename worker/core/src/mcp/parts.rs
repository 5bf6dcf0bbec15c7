//! The parts of a server's answer, as provenance and the shield read them.

use std::borrow::Cow;

use crate::call::headers::is_media_type;
use crate::json::raw::{self, RawObject};
use crate::provenance::part::{Kind, Part};

/// The names of members that every answer may have. Any other name is a text of the server.
const KNOWN: [&str; 12] = [
    "annotations",
    "code",
    "content",
    "contents",
    "data",
    "isError",
    "message",
    "messages",
    "resultType",
    "role",
    "structuredContent",
    "text",
];

/// The names of other members that a content block or a resource may have.
const BLOCK: [&str; 8] =
    ["_meta", "blob", "description", "mimeType", "name", "resource", "type", "uri"];

/// The parts of a result, or of an error. The structured content is read as a whole. So is a content's only text if
/// there is none: they may have a trust of their own. No pointer leads to anything else, because a stranger could have written JSON
/// of that form.
#[must_use]
pub fn of(answer: &RawObject) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for (name, value) in answer.fields() {
        let pointer = step("", shown(name));
        if !KNOWN.contains(&name) {
            parts.push(key(&pointer, name));
        }
        match name {
            "structuredContent" => parts.push(part(Kind::Whole, pointer, value)),
            "content" | "contents" | "messages" => match raw::items(value) {
                Some(blocks) => {
                    let only = blocks.len() == 1 && answer.get("structuredContent").is_none();
                    for (at, one) in blocks.into_iter().enumerate() {
                        let pointer = step(&pointer, itoa::Buffer::new().format(at));
                        block(one.get(), pointer, false, only, &mut |part| parts.push(part));
                    }
                }
                None => parts.push(part(Kind::Text, pointer, value)),
            },
            _ => parts.push(part(Kind::Text, pointer, value)),
        }
    }
    parts
}

/// The parts of a content block, of a resource's content, or of a prompt's message. A block can hold another one, which
/// holds none. `only`: it is the only block.
fn block(
    text: &str,
    pointer: String,
    nested: bool,
    only: bool,
    found: &mut dyn FnMut(Part<'static>),
) {
    let Some(members) = RawObject::parse(text) else {
        return found(part(Kind::Text, pointer, text).into_owned());
    };
    let is_media = is_media(&members);
    for (name, value) in members.fields() {
        let pointer = step(&pointer, shown(name));
        match name {
            // Nobody reads it as text.
            "data" | "blob" if is_media => {}
            "text" => match serde_json::from_str::<String>(value) {
                Ok(text) => {
                    let kind = if only { Kind::Whole } else { Kind::Text };
                    found(Part::new(kind, pointer, Cow::Owned(text)));
                }
                Err(_) => found(part(Kind::Text, pointer, value).into_owned()),
            },
            "content" | "resource" if !nested => block(value, pointer, true, false, found),
            "type" | "mimeType" | "role" | "data" | "blob" => {
                let text = serde_json::from_str(value).unwrap_or_else(|_| value.to_owned());
                let kind = if matches!(name, "data" | "blob") { Kind::File } else { Kind::Rest };
                found(Part::new(kind, pointer, Cow::Owned(text)));
            }
            _ => {
                if !KNOWN.contains(&name) {
                    found(key(&pointer, name).into_owned());
                }
                found(part(Kind::Text, pointer, value).into_owned());
            }
        }
    }
}

/// Whether a block says that its data is a picture, a sound or a film.
fn is_media(block: &RawObject) -> bool {
    matches!(block.text("type").as_deref(), Some("image" | "audio"))
        || block.text("mimeType").is_some_and(|kind| is_media_type(&kind))
}

fn part(kind: Kind, pointer: String, json: &str) -> Part<'_> {
    Part::new(kind, pointer, Cow::Borrowed(json))
}

fn key<'t>(pointer: &str, name: &'t str) -> Part<'t> {
    Part::new(Kind::Rest, [pointer, "#key"].concat(), Cow::Borrowed(name))
}

fn step(pointer: &str, name: &str) -> String {
    [pointer, "/", name].concat()
}

/// A member's name in pointers, which are stored. A name that is not MCP's own can be a text of the server, so it is not
/// shown.
fn shown(name: &str) -> &str {
    let is_own = KNOWN.contains(&name) || BLOCK.contains(&name);
    if is_own { name } else { "*" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_an_answer_is_a_part() {
        for (answer, expected) in [
            (r#"{"structuredContent":{"a":1}}"#, &["Whole /structuredContent {\"a\":1} json"][..]),
            (
                r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"isError":true}"#,
                &[
                    "Rest /content/0/type text",
                    "Whole /content/0/text {\"a\":1} json",
                    "Text /isError true",
                ],
            ),
            (
                r#"{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":2}}"#,
                &[
                    "Rest /content/0/type text",
                    "Text /content/0/text {\"a\":1} json",
                    "Whole /structuredContent {\"a\":2} json",
                ],
            ),
            (
                r#"{"contents":[{"uri":"a:b","text":"x"},{"blob":"eA=="}]}"#,
                &[
                    "Rest /contents/0/uri#key uri",
                    "Text /contents/0/uri \"a:b\" json",
                    "Text /contents/0/text x",
                    "File /contents/1/blob eA==",
                ],
            ),
            (
                r#"{"content":[{"type":"image","mimeType":"image/png","data":"eA=="}]}"#,
                &["Rest /content/0/type image", "Rest /content/0/mimeType image/png"],
            ),
            (
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#,
                &[
                    "Rest /messages/0/role user",
                    "Rest /messages/0/content/type text",
                    "Text /messages/0/content/text hi",
                ],
            ),
            (
                r#"{"content":"hi","a/b":2}"#,
                &["Text /content \"hi\" json", "Rest /*#key a/b", "Text /* 2"],
            ),
        ] {
            let answer = RawObject::parse(answer).unwrap();
            let seen: Vec<String> = of(&answer)
                .iter()
                .map(|part| {
                    let json = if part.value.is_some() { " json" } else { "" };
                    format!("{:?} {} {}{json}", part.kind, part.pointer, part.text)
                })
                .collect();
            assert_eq!(seen, expected);
        }
    }
}
