//! Whole texts that are base64, hexadecimal digits, or compressed data.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use miniz_oxide::inflate::{decompress_to_vec_with_limit, decompress_to_vec_zlib_with_limit};

/// The fewest bytes of base64 that are decoded as a value. Shorter texts are often ordinary words.
pub const MIN_BASE64_BYTES: usize = 8;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The bytes of a text that is base64 in either alphabet (RFC 4648), with or without padding.
#[must_use]
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    if text.len() < MIN_BASE64_BYTES {
        return None;
    }
    let engine = if text.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    engine.decode(text).ok()
}

/// The bytes of a text that is an even number of hexadecimal digits.
#[must_use]
pub fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    hex::decode(text.trim()).ok()
}

/// What compressed data holds.
#[derive(Debug, PartialEq, Eq)]
pub enum Inflated {
    /// The bytes are not compressed.
    Plain,
    Data(Vec<u8>),
    /// More than the bound, or damaged.
    Unreadable,
}

/// Reads gzip (RFC 1952) or zlib data (RFC 1950), up to `max_bytes` of output.
#[must_use]
pub fn inflate(bytes: &[u8], max_bytes: usize) -> Inflated {
    let data = match bytes {
        [0x1f, 0x8b, 8, ..] => {
            gzip_body(bytes).map(|body| decompress_to_vec_with_limit(body, max_bytes))
        }
        // A window of at most 32 KiB, and a check that makes the two bytes a multiple of 31.
        [0x08 | 0x18 | 0x28 | 0x38 | 0x48 | 0x58 | 0x68 | 0x78, flags, ..]
            if (u16::from(bytes.first().copied().unwrap_or_default()) * 256
                + u16::from(*flags))
            .is_multiple_of(31) =>
        {
            Some(decompress_to_vec_zlib_with_limit(bytes, max_bytes))
        }
        _ => return Inflated::Plain,
    };
    match data {
        Some(Ok(data)) => Inflated::Data(data),
        _ => Inflated::Unreadable,
    }
}

/// The deflated data after gzip's header.
fn gzip_body(bytes: &[u8]) -> Option<&[u8]> {
    const HAS_CHECK: u8 = 1 << 1;
    const HAS_EXTRA: u8 = 1 << 2;
    const HAS_NAME: u8 = 1 << 3;
    const HAS_COMMENT: u8 = 1 << 4;
    let flags = *bytes.get(3)?;
    let mut rest = bytes.get(10..)?;
    if flags & HAS_EXTRA != 0 {
        let (length, after) = rest.split_first_chunk()?;
        rest = after.get(usize::from(u16::from_le_bytes(*length))..)?;
    }
    for text in [HAS_NAME, HAS_COMMENT] {
        if flags & text != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & HAS_CHECK != 0 { rest.get(2..) } else { Some(rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GZIP: &str = "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==";
    const GZIP_WITH_NAME: &str = "H4sICAAAAAAAA2EudHh0AMtIzcnJBwCGphA2BQAAAA==";
    const ZLIB: &str = "eJzLSM3JyQcABiwCFQ==";

    #[test]
    fn compressed_data_is_read_up_to_the_bound() {
        for text in [GZIP, GZIP_WITH_NAME, ZLIB] {
            let bytes = base64(text).unwrap();
            assert_eq!(inflate(&bytes, 5), Inflated::Data(b"hello".to_vec()), "{text}");
            assert_eq!(inflate(&bytes, 4), Inflated::Unreadable, "{text}");
            assert_eq!(inflate(&bytes[..12], 5), Inflated::Unreadable, "{text}");
        }
        assert_eq!(inflate(b"hello", 5), Inflated::Plain);
        assert_eq!(inflate(b"xy", 5), Inflated::Plain);
    }

    #[test]
    fn base64_is_read_in_both_alphabets() {
        for (text, expected) in [("ZXZpbEB4LmNvbQ==", "evil@x.com"), ("Pz8_Pj4-", "???>>>")] {
            assert_eq!(base64(text).unwrap(), expected.as_bytes());
        }
        assert_eq!(base64("main"), None);
        assert_eq!(hexadecimal("6869").unwrap(), b"hi");
        assert_eq!(hexadecimal("686"), None);
    }
}
