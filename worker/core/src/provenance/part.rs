//! A part of what a server returns: a text, or JSON. Provenance and the shield read the same parts.

use std::borrow::Cow;

use crate::json::{self, Json};

/// Bytes that are read of one result. A longer result is a file or a dump, and agents seldom take destinations from
/// those.
pub const MAX_READ_BYTES: usize = 1024 * 1024;

/// Whether a text begins as JSON does.
#[must_use]
pub fn looks_like_json(text: &str) -> bool {
    text.trim_start_matches(BOM).trim_start().starts_with(['{', '[', '"'])
}

/// U+FEFF, which some writers put before JSON.
const BOM: char = '\u{feff}';

/// What is read in a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The whole result, or its only text: a tool's pointers lead into it.
    Whole,
    /// Another text. No pointer leads into it, also if it is JSON.
    Text,
    /// A file, as base64.
    File,
    /// Names and kinds: no values that a later call could send on.
    Rest,
}

/// A part of a result.
#[derive(Debug)]
pub struct Part<'t> {
    pub kind: Kind,
    /// The part's place in the result, as a JSON Pointer (RFC 6901).
    pub pointer: String,
    pub text: Cow<'t, str>,
    /// The text, if it is JSON.
    pub value: Option<Json>,
}

impl<'t> Part<'t> {
    /// A part that is read as JSON if it is JSON within the bounds.
    #[must_use]
    pub fn new(kind: Kind, pointer: String, text: Cow<'t, str>) -> Self {
        let mut part = Self { kind, pointer, text, value: None };
        if looks_like_json(&part.text) && part.text.len() <= MAX_READ_BYTES {
            part.value = json::parse(part.text.trim_start_matches(BOM).as_bytes()).ok();
        }
        part
    }

    /// A result that is one text.
    #[must_use]
    pub fn whole(text: &'t str) -> Self {
        Self::new(Kind::Whole, String::new(), Cow::Borrowed(text))
    }

    /// The same with a text of its own.
    #[must_use]
    pub fn into_owned(self) -> Part<'static> {
        Part { text: Cow::Owned(self.text.into_owned()), ..self }
    }
}
