//! The values in a server's answer to a call.

use crate::gate::proxy::Observe;
use crate::json::raw::{self, RawObject};
use crate::provenance::{Observed, ValueKey, extract};

/// Reads the values of a result, or of an error. A text of the content may be JSON, and so is the structured
/// content: parts of both can have a trust of their own. Everything else has the trust of the whole result.
#[must_use]
pub fn observed(key: &ValueKey, observe: &Observe, answer: &RawObject) -> Observed {
    let mut all = Observed::default();
    let mut read = |text: &str| {
        let trust = observe.result_trust.as_ref();
        all.add(extract::result(key, text, trust, observe.trusted));
    };
    for (name, value) in answer.fields() {
        match name {
            "structuredContent" => read(value),
            "content" | "contents" | "messages" => match raw::items(value) {
                Some(blocks) => {
                    blocks.iter().for_each(|block| block_texts(block.get(), false, &mut read))
                }
                None => read(value),
            },
            _ => read(value),
        }
    }
    all
}

/// The texts of a content block, of a resource's content, or of a prompt's message. A block can hold another
/// one, which holds none.
fn block_texts(block: &str, nested: bool, read: &mut impl FnMut(&str)) {
    let Some(members) = RawObject::parse(block) else { return read(block) };
    for (name, value) in members.fields() {
        match name {
            "text" => match serde_json::from_str::<String>(value) {
                Ok(text) => read(&text),
                Err(_) => read(value),
            },
            "content" | "resource" if !nested => block_texts(value, true, read),
            // Kinds, and bytes that nobody reads as text.
            "type" | "mimeType" | "role" | "data" | "blob" => {}
            _ => read(value),
        }
    }
}
