//! Whole texts that are base64, hexadecimal digits, or compressed data.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::inflate_flags::{
    TINFL_FLAG_PARSE_ZLIB_HEADER, TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF,
};
use miniz_oxide::inflate::core::{DecompressorOxide, decompress};

/// The fewest bytes of base64 that are decoded as a value. Shorter texts are often ordinary words.
pub const MIN_BASE64_BYTES: usize = 8;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);

/// The bytes of a text that is base64 in either alphabet (RFC 4648), or in both, with or without padding.
#[must_use]
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    if text.len() < MIN_BASE64_BYTES {
        return None;
    }
    if text.contains(['-', '_']) {
        return STANDARD.decode(text.replace('-', "+").replace('_', "/")).ok();
    }
    STANDARD.decode(text).ok()
}

/// The bytes of a text that is an even number of hexadecimal digits, with or without `0x` before them.
#[must_use]
pub fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    hex::decode(text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text)).ok()
}

/// The data of a URL with the scheme `data` (RFC 2397) that is in base64. Case is ignored.
#[must_use]
pub fn data_of_url(text: &str) -> Option<&str> {
    const SCHEME: &str = "data:";
    if !text.get(..SCHEME.len())?.eq_ignore_ascii_case(SCHEME) {
        return None;
    }
    // A comma can also be in a parameter of the type.
    text.match_indices(',').find_map(|(at, _)| {
        let kind = without_base64(text.get(..at)?.trim_end())?;
        if kind.trim_end().ends_with(';') { text.get(at + 1..) } else { None }
    })
}

/// What is before `base64` at the end of a text.
fn without_base64(text: &str) -> Option<&str> {
    const NAME: &str = "base64";
    let (before, end) = text.split_at_checked(text.len().checked_sub(NAME.len())?)?;
    end.eq_ignore_ascii_case(NAME).then_some(before)
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

/// Members of one gzip file that are read.
const MAX_MEMBERS: usize = 16;

/// Bytes of the check and the length after each member.
const MEMBER_END_BYTES: usize = 8;

/// Bytes of the first buffer. A buffer without bytes could not be doubled.
const MIN_BUFFER_BYTES: usize = 64;

/// The first bytes of gzip data that is deflated.
const GZIP: [u8; 3] = [0x1f, 0x8b, 8];

/// Reads gzip (RFC 1952) or zlib data (RFC 1950). `left` is how many bytes of output may be read, and becomes less by what
/// is read. Data is unreadable if something else is after its end, because there are readers for that too.
#[must_use]
pub fn inflate(bytes: &[u8], left: &mut usize) -> Inflated {
    let mut out = Vec::new();
    let read = match bytes {
        [first, flags, ..] if bytes.starts_with(&GZIP) || is_zlib(*first, *flags) => {
            if bytes.starts_with(&GZIP) {
                gzip(bytes, *left, &mut out)
            } else {
                let rest = deflated(bytes, TINFL_FLAG_PARSE_ZLIB_HEADER, *left, &mut out);
                // One random value in 920 starts like zlib. If nothing decompresses, it is not compressed text.
                if rest.is_none() && out.is_empty() && *left > 0 {
                    return Inflated::Plain;
                }
                rest.filter(|rest| rest.is_empty()).map(drop)
            }
        }
        _ => return Inflated::Plain,
    };
    *left = left.saturating_sub(out.len());
    read.map_or(Inflated::Unreadable, |()| Inflated::Data(out))
}

/// Whether these are the first bytes of zlib data: a window of at most 32 KiB, and a check that makes the two bytes a
/// multiple of 31.
fn is_zlib(first: u8, flags: u8) -> bool {
    first & 0x8f == 8 && (u16::from(first) * 256 + u16::from(flags)).is_multiple_of(31)
}

/// Appends what all members hold.
fn gzip(mut bytes: &[u8], max_bytes: usize, out: &mut Vec<u8>) -> Option<()> {
    for _ in 0..MAX_MEMBERS {
        let rest = deflated(gzip_body(bytes)?, 0, max_bytes, out)?;
        bytes = rest.get(MEMBER_END_BYTES..).unwrap_or_default();
        // Tapes and some writers fill the last block with zeros.
        if bytes.iter().all(|byte| *byte == 0) {
            return Some(());
        }
        if !bytes.starts_with(&GZIP) {
            return None;
        }
    }
    None
}

/// Appends what one stream of deflated data (RFC 1951) holds, up to `max_bytes` of `out`. Returns the bytes after the
/// stream; `None` if it is damaged or holds more. `out` has what was read until then.
fn deflated<'b>(
    mut bytes: &'b [u8],
    flags: u32,
    max_bytes: usize,
    out: &mut Vec<u8>,
) -> Option<&'b [u8]> {
    let flags = flags | TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let max_bytes = max_bytes.saturating_sub(out.len());
    let mut stream = Box::<DecompressorOxide>::default();
    let mut data = vec![0; bytes.len().saturating_mul(2).max(MIN_BUFFER_BYTES).min(max_bytes)];
    let mut end = 0;
    let rest = loop {
        let (status, read, written) = decompress(&mut stream, bytes, &mut data, end, flags);
        end += written;
        bytes = bytes.get(read..).unwrap_or_default();
        match status {
            TINFLStatus::Done => break Some(bytes),
            TINFLStatus::HasMoreOutput if data.len() < max_bytes => {
                data.resize(data.len().saturating_mul(2).min(max_bytes), 0);
            }
            _ => break None,
        }
    };
    data.truncate(end);
    out.append(&mut data);
    rest
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

    const GZIPPED: &str = "H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==";
    const GZIPPED_WITH_NAME: &str = "H4sICAAAAAAAA2EudHh0AMtIzcnJBwCGphA2BQAAAA==";
    const ZLIB: &str = "eJzLSM3JyQcABiwCFQ==";

    #[test]
    fn compressed_data_is_read_up_to_the_bound() {
        for text in [GZIPPED, GZIPPED_WITH_NAME, ZLIB] {
            let bytes = base64(text).unwrap();
            let hello = Inflated::Data(b"hello".to_vec());
            let mut left = 7;
            assert_eq!((inflate(&bytes, &mut left), left), (hello, 2), "{text}");
            for (bytes, mut left) in [
                (bytes.as_slice(), 4),
                (&bytes[..12], 5),
                (&[bytes.as_slice(), b"more"].concat(), 10),
            ] {
                assert_eq!(inflate(bytes, &mut left), Inflated::Unreadable, "{text}");
            }
        }
        assert_eq!(inflate(b"hello", &mut 5), Inflated::Plain);
        assert_eq!(inflate(b"xy", &mut 5), Inflated::Plain);
        // Nothing was read of it.
        let mut left = 5;
        let header = base64("H4sIAAAAAAAAAwAAAAAAAAAAAAAAAA==").unwrap();
        assert_eq!(inflate(&header, &mut left), Inflated::Unreadable);
        assert_eq!(left, 5);
    }

    #[test]
    fn each_member_of_a_gzip_file_is_read() {
        let member = base64(GZIPPED).unwrap();
        for (members, after, left, expected) in [
            (2, &[][..], 10, Inflated::Data(b"hellohello".to_vec())),
            (2, &[0; 20], 10, Inflated::Data(b"hellohello".to_vec())),
            (2, &[], 9, Inflated::Unreadable),
            (2, b"more", 10, Inflated::Unreadable),
            (MAX_MEMBERS, &[], 1_000, Inflated::Data(b"hello".repeat(MAX_MEMBERS))),
            (MAX_MEMBERS + 1, &[], 1_000, Inflated::Unreadable),
        ] {
            let bytes = [member.repeat(members).as_slice(), after].concat();
            assert_eq!(inflate(&bytes, &mut { left }), expected, "{members} {after:?}");
        }
    }

    #[test]
    fn data_of_urls_is_found_however_its_type_is_written() {
        let long = format!("data:text/html;x={};base64,QUJD", "y".repeat(200));
        for (text, expected) in [
            ("data:;base64,QUJD", Some("QUJD")),
            ("DATA:text/html;BASE64,QUJD", Some("QUJD")),
            ("data:text/html; Base64 ,QUJD", Some("QUJD")),
            (r#"data:text/html;x=",";base64,QUJD"#, Some("QUJD")),
            (&long, Some("QUJD")),
            ("data:text/html,QUJD", None),
            ("data:text/html;xbase64,QUJD", None),
            ("date:;base64,QUJD", None),
            ("é", None),
        ] {
            assert_eq!(data_of_url(text), expected, "{text}");
        }
    }

    #[test]
    fn base64_is_read_in_both_alphabets() {
        for (text, expected) in
            [("ZXZpbEB4LmNvbQ==", "evil@x.com"), ("Pz8_Pj4-", "???>>>"), ("Pz8/Pj4-", "???>>>")]
        {
            assert_eq!(base64(text).unwrap(), expected.as_bytes());
        }
        assert_eq!(base64("main"), None);
        assert_eq!(hexadecimal("6869").unwrap(), b"hi");
        assert_eq!(hexadecimal("0x6869").unwrap(), b"hi");
        assert_eq!(hexadecimal("686"), None);
    }
}
