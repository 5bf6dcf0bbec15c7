//! Secrets that a prefix and an alphabet do not describe.

use std::collections::BTreeSet;

use super::{Found, before, ends_with, is_word};
use crate::decode::binary;
use crate::shield::rule::Detector;

/// Bytes of a private key in PEM, as far as its end is searched: RSA with 16,384 bits has 13 KB.
const MAX_KEY_BYTES: usize = 16_384;

/// Bytes of the parts of a token.
const MAX_TOKEN_BYTES: usize = 8_192;

/// Bytes of a user and a password in a URL.
const MAX_USER_BYTES: usize = 256;

/// Bytes of a password that is assigned.
const MIN_ASSIGNED_BYTES: usize = 12;
const MAX_ASSIGNED_BYTES: usize = 4_096;

/// Bytes of an assigned password, or of a key of PuTTY, that decide whether it is one.
const JUDGED_BYTES: usize = 256;

/// Ends of the names of tokens that are no secrets.
const PUBLIC_NAMES: [&str; 6] =
    ["page_token", "pagetoken", "next_token", "nexttoken", "continuation_token", "sync_token"];

/// The least entropy of a random text: bits per character, on average over the text (C. E. Shannon).
const RANDOM_BITS: f32 = 3.0;

/// Placeholders for passwords, in lower case.
const PLACEHOLDERS: [&str; 24] = [
    "admin",
    "changeme",
    "example",
    "guest",
    "here",
    "hunter2",
    "my",
    "mypassword",
    "mysecret",
    "pass",
    "passwd",
    "password",
    "postgres",
    "pw",
    "pwd",
    "redacted",
    "root",
    "secret",
    "test",
    "token",
    "user",
    "xxx",
    "your",
    "placeholder",
];

/// Whether a token looks random: its characters vary, and it is not a sequence.
#[must_use]
pub fn is_random(token: &[u8]) -> bool {
    if token.windows(7).any(|it| it.eq_ignore_ascii_case(b"example")) {
        return false;
    }
    let mut counts = [0_u16; 256];
    let mut steps = 0;
    let mut last = None;
    for byte in token {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count = count.saturating_add(1);
        }
        steps += usize::from(last.is_some_and(|last: u8| byte.wrapping_sub(last) <= 1));
        last = Some(*byte);
    }
    let length = token.len() as f32;
    // Each count is taken once, at the first of its characters.
    let bits: f32 = token
        .iter()
        .filter_map(|byte| counts.get_mut(usize::from(*byte)).map(std::mem::take))
        .filter(|count| *count > 0)
        .map(|count| {
            let share = f32::from(count) / length;
            -share * share.log2()
        })
        .sum();
    bits >= RANDOM_BITS.min(length.log2() * 0.8) && steps * 2 < token.len()
}

/// CRC-32 of ISO 3309, as in gzip.
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    })
}

/// Whether the last six characters of a token are the CRC-32 of those before in base 62, as in tokens of GitHub and
/// npm.
#[must_use]
pub fn has_checksum(token: &[u8]) -> bool {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let Some((random, sum)) = token.split_last_chunk::<6>() else { return false };
    let mut rest = crc32(random);
    sum.iter().rev().all(|digit| {
        let expected = DIGITS.get((rest % 62) as usize);
        rest /= 62;
        expected == Some(digit)
    })
}

/// Reports private keys in PEM (RFC 7468), with the data between their lines.
pub fn find_private_keys(text: &str, found: Found<'_>) {
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find("-----BEGIN ")) {
        let begin = at + next;
        at = begin + 11;
        let rest = text.get(at..).unwrap_or_default();
        let label = rest.get(..rest.floor_char_boundary(48)).unwrap_or_default();
        let Some((label, _)) = label.split_once("-----") else { continue };
        if !label.ends_with("PRIVATE KEY") && !label.ends_with("PRIVATE KEY BLOCK") {
            continue;
        }
        let body = rest.get(..rest.floor_char_boundary(MAX_KEY_BYTES)).unwrap_or_default();
        let body = body.get(label.len() + 5..).unwrap_or_default();
        let end = body.find("-----").unwrap_or(body.len());
        let data = body.get(..end).unwrap_or_default();
        let letters = data.bytes().filter(u8::is_ascii_alphanumeric).count();
        at += label.len() + 5 + end;
        let mut distinct = BTreeSet::new();
        distinct.extend(data.bytes().take(256));
        if letters >= 32 && distinct.len() > 12 {
            let after = text.get(at..).unwrap_or_default();
            let after = after.get(..after.floor_char_boundary(64)).unwrap_or_default();
            let line = after.find('\n').unwrap_or(after.len());
            found(Detector::SecretPrivateKey, begin..at + line);
        }
    }
}

/// Reports the private part of keys of PuTTY (PPK).
pub fn find_putty_keys(text: &str, found: Found<'_>) {
    const NAME: &str = "Private-Lines:";
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find(NAME)) {
        let begin = at + next;
        let rest = text.get(begin..).unwrap_or_default();
        let judged = rest.get(..rest.floor_char_boundary(JUDGED_BYTES)).unwrap_or_default();
        // The name, the number of lines, and the lines.
        let line = judged.split_ascii_whitespace().nth(2).and_then(|line| line.get(..40));
        if line.is_none_or(|line| binary::base64(line).is_none()) {
            // Only this name is skipped: a key may be directly behind it.
            at = begin + NAME.len();
            continue;
        }
        let part = rest.get(..rest.floor_char_boundary(MAX_KEY_BYTES)).unwrap_or_default();
        let part = part.split("Private-MAC").next().unwrap_or_default();
        at = begin + part.len();
        found(Detector::SecretPrivateKey, begin..at);
    }
}

/// Reports JSON Web Tokens (RFC 7519) at the places where `eyJ` ends.
pub fn find_web_token(text: &str, end: usize, found: Found<'_>) {
    let bytes = text.as_bytes();
    let begin = end.saturating_sub(3);
    if before(bytes, begin).is_some_and(|byte| is_word(byte) || matches!(byte, b'-' | b'.'))
        || bytes.get(begin..end) != Some(b"eyJ")
    {
        return;
    }
    let rest = bytes.get(begin..).unwrap_or_default();
    let length = rest
        .iter()
        .take(MAX_TOKEN_BYTES)
        .take_while(|byte| is_word(**byte) || matches!(byte, b'-' | b'.'))
        .count();
    let token = text.get(begin..begin + length).unwrap_or_default().trim_end_matches('.');
    let mut parts = token.split('.');
    let (Some(header), Some(payload), Some(signature)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let json = binary::base64(header).unwrap_or_default();
    let is_header = json.first() == Some(&b'{') && json.windows(5).any(|it| it == b"\"alg\"");
    if is_header && payload.len() >= 4 && signature.len() >= 16 {
        let is_of_picture = payload.starts_with(OF_PICTURE) && is_of_picture(text, begin);
        let detector =
            if is_of_picture { Detector::SecretAssigned } else { Detector::SecretWebToken };
        found(detector, begin..begin + token.len());
    }
}

/// The begin of the payload of GitHub's tokens for pictures: `{"iss":"github.com","aud":"raw.githubusercontent.com",`.
const OF_PICTURE: &str = "eyJpc3MiOiJnaXRodWIuY29tIiwiYXVkIjoicmF3LmdpdGh1YnVzZXJjb250ZW50LmNvbSIs";

/// Whether the token at an offset is a parameter of a picture in a private repository of GitHub. If the payload is
/// GitHub's too, the token is for this picture only, and for five minutes. Issues and pull requests are full of them.
fn is_of_picture(text: &str, begin: usize) -> bool {
    const SERVER: &str = "https://private-user-images.githubusercontent.com/";
    let start = text.floor_char_boundary(begin.saturating_sub(MAX_USER_BYTES));
    let prior = text.get(start..begin).unwrap_or_default();
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | '<');
    let url = prior.rsplit(ends).next().unwrap_or_default();
    url.starts_with(SERVER) && url.ends_with("jwt=")
}

/// Reports passwords in URLs: `scheme://user:password@host`.
pub fn find_in_urls(text: &str, found: Found<'_>) {
    let mut at = 0;
    while let Some(next) = text.get(at..).and_then(|rest| rest.find("://")) {
        at += next + 3;
        let rest = text.get(at..).unwrap_or_default();
        let rest = rest.get(..rest.floor_char_boundary(MAX_USER_BYTES)).unwrap_or_default();
        let end = rest
            .find(|c: char| {
                c.is_whitespace() || matches!(c, '/' | '"' | '\'' | '`' | '<' | '>' | '?')
            })
            .unwrap_or(rest.len());
        let Some((user, host)) = rest.get(..end).and_then(|it| it.rsplit_once('@')) else {
            continue;
        };
        let Some((_, password)) = user.split_once(':') else { continue };
        if !is_placeholder(password) && !host.is_empty() {
            let begin = at + user.len() - password.len();
            found(Detector::SecretInUrl, begin..begin + password.len());
        }
    }
}

/// Whether a password is only a placeholder: a variable, or a word from documentation.
fn is_placeholder(password: &str) -> bool {
    let lower = password.to_ascii_lowercase();
    let letters = lower.trim_matches(|c: char| !c.is_ascii_alphabetic());
    password.len() < 3
        || password.contains(['$', '{', '<', '[', '%', '*'])
        || PLACEHOLDERS.contains(&letters)
        || is_made_of_placeholders(lower.as_bytes())
        || password.bytes().all(|byte| Some(byte) == password.bytes().next())
}

/// Whether almost nothing is left of a password without words of [`PLACEHOLDERS`], digits at its end, and what joins
/// words.
fn is_made_of_placeholders(lower: &[u8]) -> bool {
    const MAX_LEFT: usize = 3;
    let mut rest = lower.trim_ascii_end();
    while let [before @ .., b'0'..=b'9'] = rest {
        rest = before;
    }
    let (mut left, mut has_word) = (0, false);
    while let [byte, after @ ..] = rest {
        let known = PLACEHOLDERS.iter().map(|it| it.as_bytes());
        let known = known.filter(|it| it.first() == Some(byte) && rest.starts_with(it));
        if let Some(longest) = known.map(<[u8]>::len).max() {
            has_word |= longest > 4;
            rest = rest.get(longest..).unwrap_or_default();
        } else {
            left += usize::from(!matches!(byte, b'_' | b'-' | b'.'));
            rest = after;
        }
    }
    has_word && left <= MAX_LEFT
}

/// Whether a name ends as those of tokens that are no secrets.
fn is_public(name: &str) -> bool {
    ends_with(name, &PUBLIC_NAMES)
}

/// Reports the value of a field with a name such as `api_key`.
pub fn find_value(text: &str, name: &str, found: Found<'_>) {
    let value = text.trim();
    if !is_public(name) && !value.contains(char::is_whitespace) && is_secret(value) {
        let begin = text.len() - text.trim_start().len();
        found(Detector::SecretAssigned, begin..begin + value.len());
    }
}

/// Reports what is assigned to a name such as `api_key`, which ends at `end`.
pub fn find_assigned(text: &str, end: usize, found: Found<'_>) {
    let bytes = text.as_bytes();
    let rest = bytes.get(end..).unwrap_or_default();
    // `"`, then `:`, `=` or `=>`, then perhaps a quote.
    let between = rest
        .iter()
        .take(12)
        .take_while(|byte| matches!(byte, b' ' | b'"' | b'\'' | b':' | b'=' | b'>' | b'\t'))
        .count();
    let assigns =
        rest.get(..between).is_some_and(|it| it.iter().any(|byte| matches!(byte, b':' | b'=')));
    if !assigns || text.get(..end).is_some_and(is_public) {
        return;
    }
    let value = rest.get(between..).unwrap_or_default();
    let quote = before(rest, between).filter(|byte| matches!(byte, b'"' | b'\''));
    let length = value
        .iter()
        .take(MAX_ASSIGNED_BYTES)
        .take_while(|byte| {
            let ends = || {
                matches!(
                    byte,
                    b'"' | b'\''
                        | b','
                        | b';'
                        | b':'
                        | b'='
                        | b'('
                        | b')'
                        | b'<'
                        | b'`'
                        | b'{'
                        | b'}'
                        | b'['
                        | b']'
                        | b'&'
                )
            };
            byte.is_ascii_graphic() && Some(**byte) != quote && (quote.is_some() || !ends())
        })
        .count();
    let value = text.get(end + between..end + between + length).unwrap_or_default();
    if is_secret(value) {
        let begin = end + between;
        found(Detector::SecretAssigned, begin..begin + length);
    }
}

/// Whether a value with the name of a secret looks like one: long, random, and not a path.
fn is_secret(value: &str) -> bool {
    let value = value.get(..value.floor_char_boundary(JUDGED_BYTES)).unwrap_or(value);
    let mixed = value.bytes().any(|byte| byte.is_ascii_digit())
        && value.bytes().any(|byte| byte.is_ascii_alphabetic());
    let path = value.starts_with(['/', '.', '$']) || value.matches('.').count() > 2;
    value.len() >= MIN_ASSIGNED_BYTES
        && mixed
        && !path
        && is_random(value.as_bytes())
        && !is_placeholder(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(find: impl Fn(Found<'_>)) -> usize {
        let mut count = 0;
        find(&mut |_, _| count += 1);
        count
    }

    #[test]
    fn checksums_are_those_of_the_published_algorithm() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let random = b"0123456789abcdefghijABCDEFGHIJ";
        let mut sum = crc32(random);
        let mut token = random.to_vec();
        let mut digits = Vec::new();
        for _ in 0..6 {
            digits.push(
                b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                    [(sum % 62) as usize],
            );
            sum /= 62;
        }
        digits.reverse();
        token.extend(digits);
        assert!(has_checksum(&token));
        token[3] ^= 1;
        assert!(!has_checksum(&token));
    }

    #[test]
    fn secrets_are_found_and_placeholders_are_not() {
        let header = "eyJhbGciOiJIUzI1NiJ9";
        let token = format!("Bearer {header}.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLWhlcmUtMTIz");
        let web = |text: &str| {
            let end = text.find("eyJ").map_or(0, |at| at + 3);
            count(|found| find_web_token(text, end, found))
        };
        assert_eq!((web(&token), web("eyJub3QiOiJhIHRva2VuIn0.e.f")), (1, 0));
        let of_picture = format!("{OF_PICTURE}ImtleSI6ImtleTUifQ");
        for (host, payload, expected) in [
            (
                "private-user-images.githubusercontent.com",
                of_picture.as_str(),
                Detector::SecretAssigned,
            ),
            // A stolen token, behind the address of a picture.
            (
                "private-user-images.githubusercontent.com",
                "eyJzdWIiOiIxIn0",
                Detector::SecretWebToken,
            ),
            ("evil.example", of_picture.as_str(), Detector::SecretWebToken),
        ] {
            let image = token
                .replace("Bearer ", &format!("![x](https://{host}/1/2.png?jwt="))
                .replace("eyJzdWIiOiIxIn0", payload);
            let end = image.find("eyJ").map_or(0, |at| at + 3);
            let mut first = None;
            find_web_token(&image, end, &mut |detector, _| first = Some(detector));
            assert_eq!(first, Some(expected), "{image}");
        }
        for (text, expected) in [
            ("postgres://app:Tr0ub4dor9x@db.example/x", 1),
            ("postgres://user:password@localhost/x", 0),
            ("https://user:${TOKEN}@host/", 0),
            ("https://example.com/a@b:c", 0),
        ] {
            assert_eq!(count(|found| find_in_urls(text, found)), expected, "{text}");
        }
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
        let key = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        assert_eq!(count(|found| find_private_keys(&key, found)), 1);
        assert_eq!(count(|found| find_private_keys("-----BEGIN PRIVATE KEY-----\n...", found)), 0);
        let key = format!("Private-Lines: 1\n{body}\nPrivate-MAC: 00");
        assert_eq!(count(|found| find_putty_keys(&key, found)), 1);
        let behind_decoy = format!("Private-Lines: see below\n\n{key}");
        assert_eq!(count(|found| find_putty_keys(&behind_decoy, found)), 1);
        assert_eq!(count(|found| find_putty_keys("`Private-Lines:` is a header", found)), 0);
    }
}
