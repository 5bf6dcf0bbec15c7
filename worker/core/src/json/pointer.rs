//! JSON Pointers (RFC 6901), as they are registered.

/// Bytes of a pointer: several long names.
pub const MAX_POINTER_BYTES: usize = 256;

/// RFC 6901, section 3.
#[must_use]
pub fn is_pointer(text: &str) -> bool {
    let escapes = || text.split('~').skip(1);
    text.len() <= MAX_POINTER_BYTES
        && (text.is_empty() || text.starts_with('/'))
        && escapes().all(|after| after.starts_with(['0', '1']))
        && !text.contains(char::is_control)
}
