//! Globs of warrants.
//!
//! `*` matches any text, also one with `/`; `?` matches one character. Character classes (`[…]`) are not
//! evaluated. The reference implementation knows `**` only as a whole component of a path, where it matches
//! components; here it does not match at all.

use super::work::{TooMuch, Work};

/// A glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// What a glob matches, as far as globs can be compared.
enum Shape<'a> {
    /// Only this text.
    Text(&'a str),
    /// What begins with this.
    Prefix(&'a str),
    /// What ends with this.
    Suffix(&'a str),
    /// Anything else.
    Other,
}

impl Pattern {
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the glob matches the whole text; `None` if it cannot be evaluated.
    ///
    /// # Errors
    ///
    /// It takes too much work.
    pub fn matches(&self, text: &str, work: &mut Work) -> Result<Option<bool>, TooMuch> {
        work.spend(self.0.len())?;
        if has_any(&self.0, b"[]") || self.0.as_bytes().windows(2).any(|two| two == b"**") {
            return Ok(None);
        }
        // A part without `?` is found in linear time. One with `?` is tried at each place.
        let tries = if has_wildcard(&self.0) { self.0.len() } else { 1 };
        work.spend(text.len().saturating_mul(tries))?;
        Ok(Some(matches(&self.0, text)))
    }

    /// Whether each text that `other` matches is one that this matches. False if that is not certain.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        use Shape::{Prefix, Suffix, Text};
        self == other
            || match (self.shape(), other.shape()) {
                (Prefix(mine), Prefix(theirs) | Text(theirs)) => theirs.starts_with(mine),
                (Suffix(mine), Suffix(theirs) | Text(theirs)) => theirs.ends_with(mine),
                _ => false,
            }
    }

    fn shape(&self) -> Shape<'_> {
        let text = self.0.as_str();
        if has_any(text, b"?[]") {
            return Shape::Other;
        }
        match text.split_once('*') {
            None => Shape::Text(text),
            Some((prefix, "")) => Shape::Prefix(prefix),
            Some(("", suffix)) if !suffix.contains('*') => Shape::Suffix(suffix),
            Some(_) => Shape::Other,
        }
    }
}

/// The first place at which each part begins is as good as any other, because everything may be between them.
fn matches(glob: &str, text: &str) -> bool {
    let mut parts = glob.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = strip(text, first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match find(rest, part) {
            Some(after) => rest = after,
            None => return false,
        }
    }
    // The last part must be at the end.
    let from = rest.char_indices().rev().nth(last.chars().count().wrapping_sub(1));
    match (last.is_empty(), from) {
        (true, _) => true,
        (false, Some((at, _))) => rest.get(at..).and_then(|end| strip(end, last)) == Some(""),
        (false, None) => false,
    }
}

/// Whether a part matches more than one text.
#[inline(never)]
fn has_wildcard(part: &str) -> bool {
    part.contains('?')
}

/// Whether the text has one of these characters, which are ASCII.
#[inline(never)]
fn has_any(text: &str, characters: &[u8]) -> bool {
    text.bytes().any(|byte| characters.contains(&byte))
}

/// The text after a part with which it begins.
fn strip<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    if !has_wildcard(part) {
        return text.strip_prefix(part);
    }
    let mut characters = text.chars();
    let matches = part
        .chars()
        .all(|wanted| characters.next().is_some_and(|got| wanted == '?' || wanted == got));
    matches.then_some(characters.as_str())
}

/// The text after the first place at which the part is.
fn find<'a>(text: &'a str, part: &str) -> Option<&'a str> {
    if !has_wildcard(part) {
        return text.find(part).and_then(|at| text.get(at + part.len()..));
    }
    text.char_indices().find_map(|(at, _)| strip(text.get(at..)?, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_texts() {
        for (glob, text, expected) in [
            ("", "", Some(true)),
            ("", "a", Some(false)),
            ("*", "", Some(true)),
            ("*", "a/b\nc", Some(true)),
            ("a", "a", Some(true)),
            ("a*", "a", Some(true)),
            ("a*", "ba", Some(false)),
            ("*a", "ba", Some(true)),
            ("*a", "ab", Some(false)),
            ("a*a", "a", Some(false)),
            ("a*a", "aa", Some(true)),
            ("a*b*c", "a-b-b-c", Some(true)),
            ("a*b*c", "a-c-b", Some(false)),
            ("?", "é", Some(true)),
            ("?", "", Some(false)),
            ("a?c*", "abcd", Some(true)),
            ("*?b", "ab", Some(true)),
            ("*?b", "b", Some(false)),
            ("*é", "caf\u{e9}", Some(true)),
            ("A", "a", Some(false)),
            ("a.c", "abc", Some(false)),
            ("[ab]", "a", None),
            ("/data/**", "/data/x", None),
        ] {
            let matched = Pattern::new(glob.to_owned()).matches(text, &mut Work::default());
            assert_eq!(matched, Ok(expected), "{glob} {text}");
        }
        let costly = Pattern::new("?a".repeat(500));
        assert_eq!(costly.matches(&"a".repeat(60_000), &mut Work::default()), Err(TooMuch));
    }

    #[test]
    fn a_glob_covers_only_what_is_certainly_narrower() {
        for (wide, narrow, expected) in [
            ("a*", "a*", true),
            ("a*", "ab*", true),
            ("a*", "ab", true),
            ("ab*", "a*", false),
            ("*a", "*ba", true),
            ("*a", "ba", true),
            ("*a", "a*", false),
            ("a*", "*", false),
            ("*", "anything*", true),
            ("a", "a", true),
            ("a", "a*", false),
            ("a*b", "a*b", true),
            ("a*b", "axb", false),
            ("a*", "ab?", false),
            ("a?*", "abc", false),
        ] {
            let [wide, narrow] = [wide, narrow].map(|text| Pattern::new(text.to_owned()));
            assert_eq!(wide.covers(&narrow), expected, "{wide:?} {narrow:?}");
        }
    }
}
