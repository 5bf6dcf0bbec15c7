//! Percent-decoding (RFC 3986, section 2.1).

use crate::json::folded;

/// Decodes once. `None` when an encoding is incomplete, or the result is not UTF-8.
pub fn decode(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut decoded = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (digits, rest) = piece.as_bytes().split_at_checked(2)?;
        let mut byte = [0];
        hex::decode_to_slice(digits, &mut byte).ok()?;
        decoded.extend(byte);
        decoded.extend(rest);
    }
    String::from_utf8(decoded).ok()
}

/// A name decoded repeatedly, until no encoding is left, with its case folded. Equal results mean that some
/// API takes the names for the same.
pub fn fully_decoded(name: &str) -> String {
    if name.bytes().all(|byte| byte.is_ascii() && byte != b'%' && byte != 0) {
        return name.to_ascii_lowercase();
    }
    let mut bytes: Vec<u8> = Vec::with_capacity(name.len());
    for byte in name.bytes() {
        bytes.push(byte);
        // A decoded byte may complete another encoding: `%2561` is `%61` is `a`.
        while let [.., b'%', high, low] = bytes.as_slice()
            && let (Some(high), Some(low)) = (digit(*high), digit(*low))
        {
            bytes.truncate(bytes.len() - 3);
            bytes.push(high * 16 + low);
        }
    }
    folded(&String::from_utf8_lossy(&bytes)).collect()
}

/// The value of a hexadecimal digit.
fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}
