//! The text forms of stacks, proofs and approvals.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::bounds::{MAX_STACK_BYTES, MAX_TEXT_BYTES};
use super::cbor::{Malformed, Writer};

const CHAIN: [&str; 2] =
    ["-----BEGIN TENUO WARRANT CHAIN-----", "-----END TENUO WARRANT CHAIN-----"];
const WARRANT: [&str; 2] = ["-----BEGIN TENUO WARRANT-----", "-----END TENUO WARRANT-----"];

/// Characters of a line of PEM.
const LINE: usize = 64;

/// Reads base64 of either alphabet, with or without padding. Clients write both.
///
/// # Errors
///
/// It is not base64.
pub fn decode(text: &str) -> Result<Vec<u8>, Malformed> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut compact = Vec::new();
    let mut plain = text.as_bytes();
    if !text.bytes().all(is_plain) {
        compact.reserve(text.len());
        for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            compact.push(match byte {
                b'+' => b'-',
                b'/' => b'_',
                byte => byte,
            });
        }
        plain = &compact;
        while let Some(unpadded) = plain.strip_suffix(b"=") {
            plain = unpadded;
        }
    }
    URL_SAFE_NO_PAD.decode(plain).map_err(|_| Malformed("it is not base64"))
}

/// Reads the text of a warrant or of a stack: base64, or PEM. Several PEM warrants are a stack.
///
/// # Errors
///
/// It has none of these forms, or is too large.
pub fn stack(text: &str) -> Result<Vec<u8>, Malformed> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(Malformed("it is too large"));
    }
    let trimmed = text.trim();
    let bytes = if let Some(inner) = trimmed.strip_prefix(CHAIN[0]) {
        decode(inner.strip_suffix(CHAIN[1]).ok_or(Malformed("its PEM form has no end"))?)?
    } else if trimmed.starts_with(WARRANT[0]) {
        let mut warrants = Vec::new();
        for block in trimmed.split(WARRANT[0]).skip(1) {
            let inner = block.trim_end().strip_suffix(WARRANT[1]);
            warrants.push(decode(inner.ok_or(Malformed("its PEM form has no end"))?)?);
        }
        match <[Vec<u8>; 1]>::try_from(warrants) {
            Ok([warrant]) => warrant,
            Err(warrants) => join(&warrants),
        }
    } else {
        decode(text)?
    };
    if bytes.len() > MAX_STACK_BYTES { Err(Malformed("it is too large")) } else { Ok(bytes) }
}

/// A stack of warrants that are in CBOR form, from the root to the leaf.
#[must_use]
pub fn join(warrants: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.array(warrants.len());
    warrants.iter().for_each(|warrant| writer.bytes.extend_from_slice(warrant));
    writer.bytes
}

/// Base64 as headers carry it.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The PEM form of a stack.
#[must_use]
pub fn pem(stack: &[u8]) -> String {
    let text = encode(stack);
    let mut lines = vec![Cow::Borrowed(CHAIN[0])];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at_checked(LINE).unwrap_or((rest, ""));
        lines.push(Cow::Borrowed(line));
        rest = after;
    }
    lines.push(Cow::Borrowed(CHAIN[1]));
    lines.join("\n") + "\n"
}
