//! Bytes that are read as text.

use std::borrow::Cow;

/// The texts that a reader may decode these bytes to. The first is UTF-8: invalid bytes become `?`, and zeros are removed,
/// so that Latin letters in UTF-16 can be read. If the bytes begin with a byte order mark of UTF-16, the second text is
/// UTF-16.
#[must_use]
pub fn readings(bytes: &[u8]) -> Vec<Cow<'_, str>> {
    let plain = match exact(bytes) {
        Some(text) => Cow::Borrowed(text),
        // Not longer than the bytes.
        None => {
            let lossy = String::from_utf8_lossy(bytes);
            Cow::Owned(lossy.replace('\0', "").replace('\u{fffd}', "?"))
        }
    };
    let mut readings = vec![plain];
    match bytes {
        [0xff, 0xfe, rest @ ..] => readings.push(utf16(rest, u16::from_le_bytes)),
        [0xfe, 0xff, rest @ ..] => readings.push(utf16(rest, u16::from_be_bytes)),
        _ => {}
    }
    readings
}

/// The bytes as UTF-8; `None` if they are not valid, or contain a zero.
#[must_use]
pub fn exact(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Whether the bytes are not text in any known encoding: they are not UTF-8, and have control characters that no text has.
#[must_use]
pub fn is_binary(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 1..=8 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f);
    let is_marked = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    !is_marked && exact(bytes).is_none() && bytes.iter().any(is_control)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Cow<'static, str> {
    let units = bytes.chunks_exact(2).filter_map(|pair| Some(unit(pair.try_into().ok()?)));
    let decoded = char::decode_utf16(units);
    Cow::Owned(decoded.map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_utf_8_and_utf_16() {
        let little =
            |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
        let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>();
        for (bytes, expected) in [
            (b"Gr\xc3\xbc\xc3\x9fe".to_vec(), "Grüße"),
            (b"\xe4 Gr".to_vec(), "? Gr"),
            (b"#\0 Gr".to_vec(), "# Gr"),
            (little("Great"), "Great"),
            (big("Great"), "Great"),
            ([&[0xff, 0xfe][..], &little("Größe \u{1f600}")].concat(), "Größe \u{1f600}"),
            ([&[0xfe, 0xff][..], &big("ölig")].concat(), "ölig"),
            (Vec::new(), ""),
        ] {
            assert!(!is_binary(&bytes), "{expected}");
            let readings = readings(&bytes);
            assert!(readings.iter().any(|text| text == expected), "{readings:?}");
            assert!(readings.iter().all(|text| 2 * text.len() <= 3 * bytes.len()), "{bytes:x?}");
        }
        assert!(!is_binary(b"\x1b[1mbold\x1b[0m\x08"), "a terminal's text is UTF-8");
        for bytes in
            [&b"PK\x03\x04\0\0"[..], b"%PDF-1.4\n%\xe2\xe3\nstream\nx\x9c\x03\x1f", b"\x1f\x8b\x08"]
        {
            assert!(is_binary(bytes), "{bytes:x?}");
        }
    }
}
