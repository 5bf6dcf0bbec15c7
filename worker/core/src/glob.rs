//! Globs: which servers and tools an agent or a credential may use.
//!
//! `*` matches any number of characters, including none and including `/`, as in Cedar's `like`. No sign
//! matches exactly one character: with one, matching could take the product of both lengths.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::{Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::bounds::{MAX_GLOB_BYTES, MAX_GLOB_STARS};

/// A glob that was checked.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob(String);

/// The text is not a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobError;

impl Glob {
    /// The syntax as a pattern of JSON Schema.
    pub const PATTERN: &str = r"^[A-Za-z0-9_./-]*(\*[A-Za-z0-9_./-]*){0,2}$";
    /// The syntax in words, to follow "must be".
    pub const EXPECTED: &str = "a glob: 1 to 192 of `[A-Za-z0-9_./*-]`, with at most 2 `*`";

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the glob matches the whole text, in linear time.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        matches(&self.0, text)
    }

    /// Whether the glob can match a text that begins with `prefix` and is longer.
    #[must_use]
    pub fn can_match_within(&self, prefix: &str) -> bool {
        match self.0.split_once('*') {
            Some((start, _)) if prefix.starts_with(start) => true,
            _ => self.0.len() > prefix.len() && self.0.starts_with(prefix),
        }
    }

    /// Whether a text may match both globs, in linear time. False is certain. True is not: only the parts
    /// before the first `*` and after the last one are compared.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        fn agree(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> bool {
            one.zip(other)
                .take_while(|ends| !matches!(ends, (b'*', _) | (_, b'*')))
                .all(|(a, b)| a == b)
        }
        agree(self.0.bytes(), other.0.bytes()) && agree(self.0.bytes().rev(), other.0.bytes().rev())
    }
}

/// Whether a glob that the build checked matches the whole text, in linear time.
#[must_use]
pub fn matches(glob: &str, text: &str) -> bool {
    let Some((start, rest)) = glob.split_once('*') else { return glob == text };
    let (middle, end) = rest.split_once('*').unwrap_or(("", rest));
    let between = text.strip_prefix(start).and_then(|text| text.strip_suffix(end));
    between.is_some_and(|text| text.contains(middle))
}

impl PartialSchema for Glob {
    fn schema() -> RefOr<Schema> {
        Object::builder()
            .schema_type(Type::String)
            .pattern(Some(Self::PATTERN))
            .min_length(Some(1))
            .max_length(Some(MAX_GLOB_BYTES))
            .into()
    }
}

impl ToSchema for Glob {}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        let allowed =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'*' | b'-');
        let is_bounded = (1..=MAX_GLOB_BYTES).contains(&text.len())
            && text.matches('*').count() <= MAX_GLOB_STARS;
        if !is_bounded || !text.bytes().all(allowed) {
            return Err(GlobError);
        }
        Ok(Self(text.to_owned()))
    }
}

impl TryFrom<String> for Glob {
    type Error = GlobError;

    fn try_from(text: String) -> Result<Self, GlobError> {
        text.parse()
    }
}

impl From<Glob> for String {
    fn from(glob: Glob) -> Self {
        glob.0
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.0)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it must be {}", Glob::EXPECTED)
    }
}

impl std::error::Error for GlobError {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_glob_matches_whole_texts() {
        for (glob, text, expected) in [
            ("github/*", "github/list_issues", true),
            ("github/*", "github/a/b", true),
            ("github/*", "github/", true),
            ("github/*", "github", false),
            ("github/*", "github2/x", false),
            ("*", "crm/refund", true),
            ("*/get_*", "crm/get_customer", true),
            ("*/get_*", "crm/forget", false),
            ("crm/refund", "crm/refund", true),
            ("crm/refund", "crm/refund2", false),
            ("crm/refund", "crm/Refund", false),
            ("crm/*", "crm/", true),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*a", "aba", true),
            ("a*ba*a", "aba", false),
            ("*ab*", "aab", true),
            ("*ab*", "ba", false),
            ("**", "", true),
            ("a.c", "abc", false),
        ] {
            assert_eq!(glob.parse::<Glob>().unwrap().matches(text), expected, "{glob} {text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_glob_is_rejected_and_a_glob_keeps_its_text() {
        let (long, starry) = ("a".repeat(193), "*".repeat(3));
        for text in ["", "a b", "[a]", "{a,b}", "a\\*", "ä", "!a", "a?", &long, &starry] {
            assert_eq!(text.parse::<Glob>(), Err(GlobError), "{text}");
            assert!(serde_json::from_value::<Glob>(text.into()).is_err());
        }
        for text in ["**", "a-b_c.d/e*", &"a".repeat(192)] {
            let glob: Glob = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(&glob).unwrap(), text);
        }
    }

    /// A slow and simple implementation.
    fn fits(glob: &[u8], text: &[u8]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, first) => first.is_none(),
            (Some((b'*', rest)), _) => (0..=text.len()).any(|at| fits(rest, &text[at..])),
            (Some((a, rest)), Some((b, left))) => a == b && fits(rest, left),
            (Some(_), None) => false,
        }
    }

    #[test]
    fn a_glob_can_match_tools_of_some_servers() {
        for (glob, expected) in [
            ("*", true),
            ("github/*", true),
            ("github/list_issues", true),
            ("*issues", true),
            ("git*", true),
            ("g*thub/x", true),
            ("githubs*", false),
            ("github", false),
            ("github/", false),
            ("github2/*", false),
            ("crm/*", false),
            ("githu", false),
            ("issues", false),
        ] {
            let glob: Glob = glob.parse().unwrap();
            assert_eq!(glob.can_match_within("github/"), expected, "{glob}");
        }
    }

    #[test]
    fn globs_with_different_ends_do_not_overlap() {
        for (one, other, expected) in [
            ("crm/*", "crm/get", true),
            ("crm/get_*", "crm/set_*", false),
            ("crm/*_a", "crm/*_b", false),
            ("crm/*", "*_b", true),
            ("crm/*", "notes/*", false),
            ("*", "a", true),
        ] {
            let [one, other]: [Glob; 2] = [one, other].map(|glob| glob.parse().unwrap());
            assert_eq!(one.may_overlap(&other), expected, "{one} {other}");
            assert_eq!(other.may_overlap(&one), expected, "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn can_match_within_is_true_exactly_if_a_text_matches(
            glob in "[ab/]{0,3}[*]?[ab/]{1,2}[*]?", prefix in "[ab]{1,2}/", rest in "[ab/]{1,5}",
        ) {
            let parsed: Glob = glob.parse().unwrap();
            if fits(glob.as_bytes(), format!("{prefix}{rest}").as_bytes()) {
                prop_assert!(parsed.can_match_within(&prefix));
            }
            // If it can match, then one of these texts matches.
            let texts = |length: usize| (0..1_usize << length).map(move |bits| -> String {
                (0..length).map(|at| if bits >> at & 1 == 0 { 'a' } else { 'b' }).collect()
            });
            if parsed.can_match_within(&prefix) && !glob.contains('/') {
                let mut rests = (1..=7).flat_map(texts);
                let fit = rests.any(|rest| fits(glob.as_bytes(), format!("{prefix}{rest}").as_bytes()));
                prop_assert!(fit, "{glob} {prefix}");
            }
        }

        #[test]
        fn globs_that_match_one_text_may_overlap(
            one in "[ab/]{0,2}[*]?[ab/]{1,2}[*]?[ab]{0,2}", other in "[ab/]{0,2}[*]?[ab/]{1,2}[*]?[ab]{0,2}",
            text in "[ab/]{0,6}",
        ) {
            if fits(one.as_bytes(), text.as_bytes()) && fits(other.as_bytes(), text.as_bytes()) {
                let [one, other]: [Glob; 2] = [&*one, &*other].map(|glob| glob.parse().unwrap());
                prop_assert!(one.may_overlap(&other));
            }
        }

        #[test]
        fn a_glob_matches_as_the_simple_implementation_does(
            glob in "[ab/]{0,3}([*][ab/]{0,3}){0,2}", text in "[ab/]{0,12}",
        ) {
            let expected = fits(glob.as_bytes(), text.as_bytes());
            prop_assume!(!glob.is_empty());
            prop_assert_eq!(glob.parse::<Glob>().unwrap().matches(&text), expected);
        }
    }
}
