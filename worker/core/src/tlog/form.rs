//! How numbers and hashes are written in all of the formats. Each has one form only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::tree::{HASH_BYTES, Hash};

/// Bytes of a hash in base64.
const HASH_BASE64_BYTES: usize = HASH_BYTES.div_ceil(3) * 4;

/// Reads a decimal number without sign and leading zeros. `None` if it is above `max`.
pub(super) fn decimal(text: &str, max: u64) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = digits && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|number| canonical && *number <= max)
}

/// Reads a hash in base64 (RFC 4648, section 4).
pub(super) fn hash(text: &str) -> Option<Hash> {
    if text.len() != HASH_BASE64_BYTES {
        return None;
    }
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Writes a hash in base64.
pub(super) fn base64(hash: &Hash) -> String {
    STANDARD.encode(hash)
}
