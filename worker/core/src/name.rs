//! The syntax of names.

use crate::bounds::{MAX_NAME_BYTES, MAX_TOOL_BYTES};

/// Whether `text` is a name of a tenant, agent, server, group or key:
/// `[a-z0-9][a-z0-9_-]{0,62}`.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    text.len() <= MAX_NAME_BYTES
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|b| plain(b) || b == b'_' || b == b'-')
}

/// Whether `text` is a tool's name: 1 to 128 of `[A-Za-z0-9_./-]`, case-sensitive.
#[must_use]
pub fn is_tool_name(text: &str) -> bool {
    (1..=MAX_TOOL_BYTES).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'/' | b'-'))
}

/// The prefix of Gateward's own headers.
pub const OWN_PREFIX: &str = "x-gateward-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_patterns() {
        for (text, expected) in [
            ("a", true),
            ("0-_", true),
            (&"a".repeat(63), true),
            (&"a".repeat(64), false),
            ("", false),
            ("-a", false),
            ("A", false),
            ("a.b", false),
            ("a/b", false),
            ("ä", false),
        ] {
            assert_eq!(is_name(text), expected, "{text}");
        }
        for (text, expected) in [
            ("get_issue", true),
            ("Repos/get.v1", true),
            (&"x".repeat(128), true),
            (&"x".repeat(129), false),
            ("", false),
            ("a b", false),
            ("a\"", false),
        ] {
            assert_eq!(is_tool_name(text), expected, "{text}");
        }
    }
}
