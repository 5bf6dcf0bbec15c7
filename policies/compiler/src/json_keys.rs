//! Offsets of the values of a JSON document in its text, which `serde_json` does not give.

use std::collections::BTreeMap;

/// The offset of every member's key and every element, by JSON pointer (RFC 6901), and the keys that
/// an object has twice.
#[derive(Debug, Default)]
pub(crate) struct JsonKeys {
    offsets: BTreeMap<String, usize>,
    /// Pointer and offset of each repetition.
    pub repeated: Vec<(String, usize)>,
}

/// An object or array that is open at the scanner's position.
struct Open {
    pointer: String,
    /// The number of elements so far. `None` in an object.
    elements: Option<usize>,
}

impl JsonKeys {
    /// Reads a document that `serde_json` has accepted. For other texts the result is unspecified.
    pub(crate) fn of(text: &str) -> Self {
        let mut keys = Self::default();
        let mut open: Vec<Open> = Vec::new();
        // The pointer of the value that comes next.
        let mut next = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let at = text.len() - rest.len();
            let token = match c {
                '"' => string_literal(rest),
                _ => rest.get(..c.len_utf8()).unwrap_or_default(),
            };
            rest = rest.get(token.len()..).unwrap_or_default();
            // An element begins at a character that is neither white space, a comma nor a bracket.
            if let Some(Open { pointer, elements: Some(count) }) = open.last_mut()
                && next.is_empty()
                && !c.is_whitespace()
                && !matches!(c, ',' | ']')
            {
                next = format!("{pointer}/{count}");
                *count += 1;
                keys.add(&next, at);
            }
            match c {
                '{' | '[' => {
                    let elements = (c == '[').then_some(0);
                    open.push(Open { pointer: std::mem::take(&mut next), elements });
                }
                '}' | ']' => {
                    open.pop();
                    next.clear();
                }
                ',' => next.clear(),
                '"' if next.is_empty() => {
                    if let Some(Open { pointer, elements: None }) = open.last() {
                        let key: String = serde_json::from_str(token).unwrap_or_default();
                        next = format!("{pointer}/{}", escape(&key));
                        keys.add(&next, at);
                    }
                }
                _ => {}
            }
        }
        keys
    }

    /// Reports a repetition, but not further ones inside it.
    fn add(&mut self, pointer: &str, offset: usize) {
        let inside = |(outer, _): &(String, usize)| {
            pointer.strip_prefix(outer.as_str()).is_some_and(|rest| rest.starts_with('/'))
        };
        if !self.offsets.contains_key(pointer) {
            self.offsets.insert(pointer.to_owned(), offset);
        } else if !self.repeated.iter().any(inside) {
            self.repeated.push((pointer.to_owned(), offset));
        }
    }

    /// The offset of the member or element. If it is missing, the offset of the value that would contain
    /// it.
    pub(crate) fn offset(&self, pointer: &str) -> usize {
        let mut pointer = pointer;
        loop {
            if let Some(offset) = self.offsets.get(pointer) {
                return *offset;
            }
            match pointer.rsplit_once('/') {
                Some((parent, _)) => pointer = parent,
                None => return 0,
            }
        }
    }
}

/// A key, escaped for a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The string literal that `text` begins with.
fn string_literal(text: &str) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return text.get(..=at).unwrap_or(text),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_and_element_is_found_at_its_place() {
        let text = r#"{"a": [1, {"b": "x,]"}, [true]], "c/d": {"e\"": {}}, "f": null}"#;
        let keys = JsonKeys::of(text);
        for (pointer, expected) in [
            ("/a", r#""a""#),
            ("/a/0", "1,"),
            ("/a/1", r#"{"b""#),
            ("/a/1/b", r#""b""#),
            ("/a/2", "[true"),
            ("/a/2/0", "true"),
            ("/c~1d", r#""c/d""#),
            (r#"/c~1d/e""#, r#""e\"""#),
            ("/f", r#""f""#),
            ("/f/missing", r#""f""#),
            ("/missing", "{"),
        ] {
            assert!(text[keys.offset(pointer)..].starts_with(expected), "{pointer}");
        }
        assert_eq!(keys.repeated, []);
    }

    #[test]
    fn a_repeated_key_is_told_however_it_is_written() {
        let keys = JsonKeys::of(r#"{"a": {"b": {"c": 1}, "\u0062": {"c": 2}}, "b": 3}"#);
        assert_eq!(keys.repeated, [("/a/b".to_owned(), 22)]);
    }
}
