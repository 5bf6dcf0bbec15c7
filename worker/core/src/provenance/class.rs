//! Classes of bytes, from a table: one look at each byte of a text says what the text is made of.
//!
//! Most bytes have one class. Letters of ASCII in lower case have none.

/// Classes, as bits.
pub type Classes = u16;

pub const UPPER: Classes = 1;
pub const DIGIT: Classes = 1 << 1;
/// Bytes of characters outside of ASCII.
pub const HIGH: Classes = 1 << 2;

/// `.`.
pub const DOT: Classes = 1 << 3;
/// `/` and `\`.
pub const SLASH: Classes = 1 << 4;
/// `@`.
pub const AT: Classes = 1 << 5;
/// `#`.
pub const HASH: Classes = 1 << 6;
const OTHER_MARK: Classes = 1 << 7;
/// Punctuation that identifiers contain.
pub const MARK: Classes = DOT | SLASH | AT | HASH | OTHER_MARK;

/// `:`.
pub const COLON: Classes = 1 << 8;
/// `'`.
pub const QUOTE: Classes = 1 << 9;
/// `!`.
pub const BANG: Classes = 1 << 10;
const OTHER_SOFT: Classes = 1 << 11;
/// Punctuation that also separates values.
pub const SOFT: Classes = COLON | QUOTE | BANG | OTHER_SOFT;

/// Spaces and control characters.
pub const SPACE: Classes = 1 << 12;
/// Quotes, brackets and tabs, which no value contains.
pub const HARD: Classes = 1 << 13;
pub const LINE: Classes = 1 << 14;
/// White space other than a space. It has one of the three classes above, too.
pub const BREAK: Classes = 1 << 15;
pub const SEPARATOR: Classes = SPACE | HARD | LINE | BREAK;

const CLASSES: [Classes; 256] = classes();

const fn classes() -> [Classes; 256] {
    let mut classes = [0; 256];
    let mut byte = 0_u8;
    loop {
        let class = match byte {
            b'a'..=b'z' => 0,
            b'A'..=b'Z' => UPPER,
            b'0'..=b'9' => DIGIT,
            b'\n' | b'\r' => LINE | BREAK,
            b'\t' => HARD | BREAK,
            0x0b | 0x0c => SPACE | BREAK,
            b'"' | b'<' | b'>' | b'`' | b'|' | b'{' | b'}' | b'[' | b']' => HARD,
            b':' => COLON,
            b'\'' => QUOTE,
            b'!' => BANG,
            b',' | b';' | b'(' | b')' | b'=' | b'?' => OTHER_SOFT,
            0x80.. => HIGH,
            0..=b' ' => SPACE,
            b'.' => DOT,
            b'/' | b'\\' => SLASH,
            b'@' => AT,
            b'#' => HASH,
            _ => OTHER_MARK,
        };
        #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
        {
            classes[byte as usize] = class;
        }
        if byte == u8::MAX {
            return classes;
        }
        byte += 1;
    }
}

pub fn class(byte: u8) -> Classes {
    CLASSES.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The classes of all bytes of a text.
pub fn class_of(text: &str) -> Classes {
    text.bytes().fold(0, |all, byte| all | class(byte))
}
