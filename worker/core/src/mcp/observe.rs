//! The values in a server's answer to a call.

use crate::gate::proxy::Observe;
use crate::json::raw::{self, RawObject};
use crate::provenance::{Observed, ValueKey, extract};

/// Reads the values of a result, or of an error. Parts of the structured content can have a trust of their own,
/// and so can parts of a content's only text if it is JSON. Everything else is trusted only if no part of the
/// result is untrusted: a stranger could have written JSON of that form.
#[must_use]
pub fn observed(key: &ValueKey, observe: &Observe, answer: &RawObject) -> Observed {
    let mut all = Observed::default();
    let mut read = |text: &str, whole: bool| {
        let trust = observe.result_trust.as_ref();
        all.add(match whole {
            true => extract::result(key, text, trust, observe.trusted),
            false => extract::opaque(key, text, trust, observe.trusted),
        });
    };
    for (name, value) in answer.fields() {
        match name {
            "structuredContent" => read(value, true),
            "content" | "contents" | "messages" => match raw::items(value) {
                Some(blocks) => {
                    let only = blocks.len() == 1;
                    let read = &mut read;
                    blocks.iter().for_each(|block| block_texts(block.get(), false, only, read));
                }
                None => read(value, false),
            },
            _ => read(value, false),
        }
    }
    all
}

/// The texts of a content block, of a resource's content, or of a prompt's message. A block can hold another
/// one, which holds none. `only`: it is the only block.
fn block_texts(block: &str, nested: bool, only: bool, read: &mut impl FnMut(&str, bool)) {
    let Some(members) = RawObject::parse(block) else { return read(block, false) };
    for (name, value) in members.fields() {
        match name {
            "text" => match serde_json::from_str::<String>(value) {
                Ok(text) => read(&text, only),
                Err(_) => read(value, false),
            },
            "content" | "resource" if !nested => block_texts(value, true, false, read),
            // Kinds, and bytes that nobody reads as text.
            "type" | "mimeType" | "role" | "data" | "blob" => {}
            _ => read(value, false),
        }
    }
}
