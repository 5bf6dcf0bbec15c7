//! Decodings: other forms in which a text may carry a value.

use super::super::search::has;
use crate::decode::binary;
use crate::decode::escapes::{self, Escapes};
use crate::decode::letters::plain;
use crate::percent;

/// Decodings of one text: percent, base64, escapes, and letters that look like others.
pub const MAX_DECODINGS: usize = 4;

/// Bytes of a text that is decoded. A destination is much shorter.
pub const MAX_DECODED_BYTES: usize = 4_096;

/// The forms of a text that differ from it, at most [`MAX_DECODINGS`]. Empty for a text longer than
/// [`MAX_DECODED_BYTES`].
#[must_use]
pub fn decodings(text: &str) -> Vec<String> {
    if text.len() > MAX_DECODED_BYTES {
        return Vec::new();
    }
    let forms = [percent, base64, unescaped, plain_letters];
    const { assert!(MAX_DECODINGS == 4, "one for each form") };
    forms.iter().filter_map(|form| form(text)).filter(|form| form != text).collect()
}

fn percent(text: &str) -> Option<String> {
    has(text, '%').then(|| percent::decode(text)).flatten()
}

fn base64(text: &str) -> Option<String> {
    String::from_utf8(binary::base64(text)?).ok()
}

/// Escapes of strings, as in JSON.
fn unescaped(text: &str) -> Option<String> {
    let backslash = Escapes { backslash: true, ..Escapes::default() };
    Some(escapes::decode(text, backslash).0)
}

/// The text in plain letters: without invisible characters, and with ASCII in place of full-width forms and
/// of Greek and Cyrillic letters that look like it.
fn plain_letters(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    Some(text.chars().filter_map(plain).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_decoded_in_each_known_way() {
        for (text, expected) in [
            ("evil%40x.com", "evil@x.com"),
            ("ZXZpbEB4LmNvbQ==", "evil@x.com"),
            ("ZXZpbEB4LmNvbQ", "evil@x.com"),
            ("Pz8_Pj4-", "???>>>"),
            (r"evil\u0040x.com", "evil@x.com"),
            (r"evil\x40x.com", "evil@x.com"),
            ("ｅｖｉｌ＠ｘ．ｃｏｍ", "evil@x.com"),
            ("ev\u{200b}il@x.c\u{ad}om", "evil@x.com"),
            ("раyраl.com", "paypal.com"),
            ("𝐞𝑣𝒊𝓁.com", "evil.com"),
            ("evil。com", "evil.com"),
        ] {
            assert!(decodings(text).iter().any(|form| form == expected), "{text}");
        }
    }

    #[test]
    fn a_text_without_encodings_has_no_other_forms() {
        for text in ["", "main", "alice@x.com", "https://x.com/a-b", "100%", "\\u00", "naïve"] {
            assert_eq!(decodings(text), Vec::<String>::new(), "{text}");
        }
        assert!(decodings(&"%41".repeat(MAX_DECODED_BYTES)).is_empty());
    }
}
