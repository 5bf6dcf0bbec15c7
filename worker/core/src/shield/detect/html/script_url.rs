//! URLs whose scheme runs code, such as `javascript:`.

use crate::shield::detect::before;

/// Whether a scheme that runs code is within a value: in the style of an element, or in what a page goes on to.
/// `spaced`: also after a space.
pub fn has_script_url(value: &[u8], spaced: bool) -> bool {
    let starts = |at: usize| {
        before(value, at).is_some_and(|byte| {
            matches!(byte, b'=' | b'(' | b';' | b'\'' | b'"' | b',') || spaced && byte == b' '
        })
    };
    let letters = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'j' | b'v' | b'd');
    let places = value.iter().enumerate().filter(|(_, byte)| letters(byte));
    places.map(|(at, _)| at).filter(|at| starts(*at)).any(|at| script_url(value, at).is_some())
}

/// The end of a scheme that runs code, if a URL at this offset has one. Browsers drop control characters and line
/// breaks in a scheme.
pub fn script_url(bytes: &[u8], at: usize) -> Option<usize> {
    const SCHEMES: [&[u8]; 4] = [b"javascript:", b"vbscript:", b"livescript:", b"data:text/html"];
    let mut scheme = [0_u8; 16];
    let mut length = 0;
    let mut end = at;
    for byte in bytes.get(at..)?.iter().take(64) {
        end += 1;
        if *byte <= b' ' || matches!(byte, b'\'' | b'"' | b'`') {
            if length > 0 && !byte.is_ascii_control() {
                return None;
            }
            continue;
        }
        *scheme.get_mut(length)? = byte.to_ascii_lowercase();
        length += 1;
        let so_far = scheme.get(..length)?;
        if SCHEMES.contains(&so_far) {
            let rest = bytes.get(end..)?;
            let harmless = rest.starts_with(b"void(0")
                || rest.starts_with(b";")
                || rest.is_empty()
                || rest.starts_with(b"void 0")
                || rest.starts_with(b" ");
            return (!harmless).then_some(end);
        }
        if !SCHEMES.iter().any(|known| known.starts_with(so_far)) {
            return None;
        }
    }
    None
}
