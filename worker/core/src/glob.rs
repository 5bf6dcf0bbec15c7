//! Globs: which servers and tools an agent or a credential may use.
//!
//! `*` stands for any run of characters, also for `/` and for none; `?` for exactly one.
//! Comparing is at most the product of both lengths, so a glob cannot be made to take long.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::openapi::{Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use wildmatch::WildMatch;

use crate::bounds::MAX_GLOB_BYTES;

/// A glob, parsed once.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Glob {
    text: String,
    compiled: WildMatch,
}

/// The text is no glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobError;

impl Glob {
    /// As JSON Schema has patterns.
    pub const PATTERN: &str = r"^[A-Za-z0-9_./*?-]{1,192}$";
    /// What a text must be, after "must be".
    pub const EXPECTED: &str = "a glob: 1 to 192 of `[A-Za-z0-9_./*?-]`";

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the whole of `text` fits.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.compiled.matches(text)
    }

    /// Whether a text can fit that begins with `prefix` and is longer.
    #[must_use]
    pub fn can_match_within(&self, prefix: &str) -> bool {
        let mut glob = self.text.bytes();
        for expected in prefix.bytes() {
            match glob.next() {
                // The rest of the prefix fits it, and so does any continuation.
                Some(b'*') => return true,
                Some(b'?') => {}
                Some(byte) if byte == expected => {}
                _ => return false,
            }
        }
        glob.next().is_some()
    }

    /// Whether one text may fit both globs. False is certain. True is not: only what stands before
    /// the first wildcard and after the last one is compared, which costs no more than reading both.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        fn agree(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> bool {
            let is_literal = |byte: &u8| !matches!(byte, b'*' | b'?');
            one.take_while(is_literal).zip(other.take_while(is_literal)).all(|(a, b)| a == b)
        }
        agree(self.text.bytes(), other.text.bytes())
            && agree(self.text.bytes().rev(), other.text.bytes().rev())
    }
}

impl PartialSchema for Glob {
    fn schema() -> RefOr<Schema> {
        Object::builder().schema_type(Type::String).pattern(Some(Self::PATTERN)).into()
    }
}

impl ToSchema for Glob {}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Self, GlobError> {
        let allowed = |b: u8| {
            b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'*' | b'?' | b'-')
        };
        if !(1..=MAX_GLOB_BYTES).contains(&text.len()) || !text.bytes().all(allowed) {
            return Err(GlobError);
        }
        Ok(Self { text: text.to_owned(), compiled: WildMatch::new(text) })
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
        glob.text
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Glob {}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Glob({:?})", self.text)
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
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
    fn a_glob_fits_whole_texts() {
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
            ("crm/v?", "crm/v1", true),
            ("crm/v?", "crm/v", false),
            ("crm/v?", "crm/v10", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(glob.parse::<Glob>().unwrap().matches(text), expected, "{glob} {text}");
        }
    }

    #[test]
    fn what_is_no_glob_is_refused_and_what_is_one_is_written_as_it_was() {
        for text in ["", "a b", "[a]", "{a,b}", "a\\*", "ä", "!a", &"a".repeat(193)] {
            assert_eq!(text.parse::<Glob>(), Err(GlobError), "{text}");
            assert!(serde_json::from_value::<Glob>(text.into()).is_err());
        }
        for text in ["**", "a-b_c.d/e?*", &"a".repeat(192)] {
            let glob: Glob = serde_json::from_value(text.into()).unwrap();
            assert_eq!(serde_json::to_value(&glob).unwrap(), text);
        }
    }

    /// What a glob means, said as plainly as can be.
    fn fits(glob: &[u8], text: &[u8]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, first) => first.is_none(),
            (Some((b'*', rest)), _) => (0..=text.len()).any(|at| fits(rest, &text[at..])),
            (Some((b'?', rest)), Some((_, left))) => fits(rest, left),
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
            ("github/?", true),
            ("*issues", true),
            ("git*", true),
            ("g?thub/x", true),
            ("?ithub?x", true),
            ("github", false),
            ("github/", false),
            ("github2/*", false),
            ("crm/*", false),
            ("githu", false),
            ("issues", false),
            ("??????/x", true),
            ("?????/x", false),
        ] {
            let glob: Glob = glob.parse().unwrap();
            assert_eq!(glob.can_match_within("github/"), expected, "{glob}");
        }
    }

    #[test]
    fn globs_that_differ_at_an_end_have_no_text_in_common() {
        for (one, other, expected) in [
            ("crm/*", "crm/get", true),
            ("crm/get_*", "crm/set_*", false),
            ("crm/*_a", "crm/*_b", false),
            ("crm/*", "*_b", true),
            ("crm/*", "notes/*", false),
            ("*", "?", true),
        ] {
            let [one, other]: [Glob; 2] = [one, other].map(|glob| glob.parse().unwrap());
            assert_eq!(one.may_overlap(&other), expected, "{one} {other}");
            assert_eq!(other.may_overlap(&one), expected, "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn a_glob_that_matches_within_a_prefix_is_said_to(
            glob in "[ab/*?]{1,6}", prefix in "[ab]{1,2}/", rest in "[ab/]{1,5}",
        ) {
            let parsed: Glob = glob.parse().unwrap();
            if fits(glob.as_bytes(), format!("{prefix}{rest}").as_bytes()) {
                prop_assert!(parsed.can_match_within(&prefix));
            }
            // What it can match is found among texts as long as the glob and the prefix together.
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
        fn globs_that_share_a_text_are_never_said_not_to(
            one in "[ab/*?]{1,6}", other in "[ab/*?]{1,6}", text in "[ab/]{0,6}",
        ) {
            if fits(one.as_bytes(), text.as_bytes()) && fits(other.as_bytes(), text.as_bytes()) {
                let [one, other]: [Glob; 2] = [&*one, &*other].map(|glob| glob.parse().unwrap());
                prop_assert!(one.may_overlap(&other));
            }
        }

        #[test]
        fn a_glob_means_what_is_said_of_it(glob in "[ab/*?]{1,8}", text in "[ab/]{0,10}") {
            let expected = fits(glob.as_bytes(), text.as_bytes());
            prop_assert_eq!(glob.parse::<Glob>().unwrap().matches(&text), expected);
        }
    }
}
