//! Classes of bytes, from a table: one look at each byte of a text says what the text is made of.
//!
//! Most bytes have one class. Letters of ASCII in lower case have none.

/// Classes, as bits.
pub type Classes = u32;

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
/// `,`.
pub const COMMA: Classes = 1 << 11;
/// `;`.
pub const SEMICOLON: Classes = 1 << 12;
const OTHER_SOFT: Classes = 1 << 13;
/// Punctuation that also separates values.
pub const SOFT: Classes = COLON | QUOTE | BANG | COMMA | SEMICOLON | OTHER_SOFT;

/// Spaces and control characters.
pub const SPACE: Classes = 1 << 14;
/// `|`.
pub const BAR: Classes = 1 << 15;
pub const TAB: Classes = 1 << 16;
const OTHER_HARD: Classes = 1 << 17;
/// Quotes, brackets and tabs, which no value contains.
const HARD: Classes = BAR | TAB | OTHER_HARD;
pub const LINE: Classes = 1 << 18;
/// White space other than a space. It has one of the three classes above, too.
pub const BREAK: Classes = 1 << 19;
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
            b'\t' => TAB | BREAK,
            0x0b | 0x0c => SPACE | BREAK,
            b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'[' | b']' => OTHER_HARD,
            b'|' => BAR,
            b':' => COLON,
            b'\'' => QUOTE,
            b'!' => BANG,
            b',' => COMMA,
            b';' => SEMICOLON,
            b'(' | b')' | b'=' | b'?' => OTHER_SOFT,
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
    #[expect(clippy::indexing_slicing, reason = "a byte is below 256")]
    CLASSES[usize::from(byte)]
}

/// How many of the first bytes are letters of ASCII in lower case or spaces, of which most of a prose text is. Looks at
/// eight bytes at a time, and so can stop up to seven bytes too early.
pub fn plain(bytes: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x80 * EACH;
    let (words, _) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let low = word & !TOP;
        // A sum has its top bit if the byte is at least `a`, is above `z`, or is no space.
        let (from, above) =
            (low + u64::from(0x80 - b'a') * EACH, low + u64::from(0x7f - b'z') * EACH);
        let no_space = (low ^ (u64::from(b' ') * EACH)) + 0x7f * EACH;
        let others = (word | (no_space & (above | !from))) & TOP;
        if others != 0 {
            return at * 8 + others.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8
}

/// The classes of all bytes.
#[inline(never)]
pub fn class_of(bytes: &[u8]) -> Classes {
    let each = |all, byte: &u8| all | class(*byte);
    // The inner loop has a fixed length, so it is unrolled.
    let (words, rest) = bytes.as_chunks::<8>();
    words.iter().fold(rest.iter().fold(0, each), |all, word| word.iter().fold(all, each))
}
