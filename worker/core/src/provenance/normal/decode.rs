//! Decodings: other forms in which a text may carry a value.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::percent;

/// Decodings of one text: percent, base64, escapes, and letters that look like others.
pub const MAX_DECODINGS: usize = 4;

/// Bytes of a text that is decoded. A destination is much shorter.
pub const MAX_DECODED_BYTES: usize = 4_096;

/// Bytes of base64 that hold a value. Shorter words are often words.
const MIN_BASE64_BYTES: usize = 8;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

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
    text.contains('%').then(|| percent::decode(text)).flatten()
}

fn base64(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() < MIN_BASE64_BYTES {
        return None;
    }
    let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    String::from_utf8(engine.decode(text).ok()?).ok()
}

/// `\u0041` and `\x41` as in the strings of many languages. A surrogate is kept as it is.
fn unescaped(text: &str) -> Option<String> {
    let mut pieces = text.split('\\');
    let mut out = pieces.next()?.to_owned();
    for piece in pieces {
        let digits = match piece.as_bytes().first() {
            Some(b'u') => 4,
            Some(b'x') => 2,
            _ => 0,
        };
        let code = piece.get(1..1 + digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        match code.and_then(char::from_u32) {
            Some(character) => {
                out.push(character);
                out.push_str(piece.get(1 + digits..).unwrap_or_default());
            }
            None => {
                out.push('\\');
                out.push_str(piece);
            }
        }
    }
    Some(out)
}

/// The text in plain letters: without invisible characters, and with ASCII in place of full-width forms and
/// of Greek and Cyrillic letters that look like it.
fn plain_letters(text: &str) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    Some(text.chars().filter_map(plain).collect())
}

/// `None` for an invisible character.
fn plain(character: char) -> Option<char> {
    const LOOK_ALIKE: &str = "аaеeоoрpсcуyхxіiјjѕsһhԁdԛqԝwкkмmтtвbнhАAВBЕEКKМMНHОOРPСCТTУYХXІIЈJЅS\
        οoαaνvρpιiκkτtυuχxΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXıiɡg\u{212a}k。.․.∕/⁄/";
    const MATHEMATICAL_LETTERS: u32 = 0x1d400;
    const MATHEMATICAL_END: u32 = 0x1d6a4;
    let code = u32::from(character);
    Some(match character {
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => return None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(code - 0xff01 + 0x21)?,
        _ if (MATHEMATICAL_LETTERS..MATHEMATICAL_END).contains(&code) => {
            let at = u8::try_from((code - MATHEMATICAL_LETTERS) % 52).ok()?;
            char::from(if at < 26 { b'A' + at } else { b'a' + at - 26 })
        }
        _ if character.is_ascii() => character,
        _ => {
            let mut pairs = LOOK_ALIKE.chars();
            loop {
                match (pairs.next(), pairs.next()) {
                    (Some(from), Some(to)) if from == character => break to,
                    (Some(_), Some(_)) => {}
                    _ => break character,
                }
            }
        }
    })
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
