//! Signs: what a text has that some detector looks for.

use super::left::{SIGN, Work};

/// Signs in a text, as bits. Those of bytes are found in one pass. The others are literals: see
/// [`super::matcher`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Signs(pub u32);

impl Signs {
    /// `'` and `"`.
    pub const QUOTE: u32 = 1;
    pub const DIGIT: u32 = 1 << 1;
    pub const SHELL: u32 = 1 << 2;
    pub const ANGLE: u32 = 1 << 3;
    pub const AT: u32 = 1 << 4;
    pub const HIGH: u32 = 1 << 5;
    pub const ESCAPE: u32 = 1 << 6;
    pub const BACKSLASH: u32 = 1 << 7;
    /// Control characters that are no white space.
    pub const CONTROL: u32 = 1 << 8;
    pub const KEY: u32 = 1 << 9;
    pub const STEP: u32 = 1 << 10;
    pub const CODE: u32 = 1 << 11;
    pub const LOGIC: u32 = 1 << 12;
    pub const SQL: u32 = 1 << 13;
    pub const COMPARE: u32 = 1 << 14;
    pub const SCHEME: u32 = 1 << 15;
    pub const BRACE: u32 = 1 << 16;
    pub const BACKTICK: u32 = 1 << 17;
    pub const CLOSING: u32 = 1 << 18;
    pub const SLASH: u32 = 1 << 19;
    pub const UPPER: u32 = 1 << 20;
    /// `:` and `.`.
    pub const MARK: u32 = 1 << 21;
    pub const HOST: u32 = 1 << 22;
    pub const LOWER: u32 = 1 << 23;
    pub const URL: u32 = 1 << 24;
    pub const IMAGE: u32 = 1 << 25;
    /// Those of bytes, and some others. The automaton has something else in the other bits of its table of bytes.
    pub const OF_BYTES: u32 = (1 << 24) - 1;

    #[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
    const OF: [u32; 256] = {
        let mut of = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            of[byte] = match byte as u8 {
                b'\'' | b'"' => Self::QUOTE,
                b'`' => Self::BACKTICK | Self::SHELL,
                b'0'..=b'9' => Self::DIGIT,
                b'A'..=b'Z' => Self::UPPER,
                b'a'..=b'z' => Self::LOWER,
                b'&' => Self::SHELL | Self::ESCAPE,
                b'%' => Self::ESCAPE,
                b'\\' => Self::BACKSLASH | Self::ESCAPE | Self::SHELL,
                b';' | b'|' | b'$' | b'\n' | b'\r' => Self::SHELL,
                b'=' => Self::COMPARE,
                b'#' => Self::COMPARE | Self::BRACE,
                b'>' => Self::SHELL | Self::COMPARE,
                b'<' => Self::ANGLE | Self::SHELL | Self::COMPARE,
                b'@' => Self::AT,
                b'{' | b'[' => Self::BRACE,
                b')' | b'}' => Self::CLOSING,
                b'/' => Self::SLASH,
                b':' | b'.' => Self::MARK,
                0x80.. => Self::HIGH,
                0..=8 | 0x0e..=0x1f | 0x7f => Self::CONTROL,
                _ => 0,
            };
            byte += 1;
        }
        of
    };

    pub const fn has(self, sign: u32) -> bool {
        self.0 & sign != 0
    }
}

/// The signs of a byte.
#[inline]
pub fn of(byte: u8) -> u32 {
    Signs::OF.get(usize::from(byte)).copied().unwrap_or_default()
}

/// A text, and which signs each part of it has, so that a detector need not read the parts without its signs.
#[derive(Debug, Clone, Copy)]
pub struct Signed<'t> {
    pub text: &'t str,
    /// The signs in each [`BLOCK_BYTES`] of the text. What is missing is not known.
    pub blocks: &'t [u32],
    /// The budget of which each sign takes something.
    pub work: &'t Work,
}

/// Bytes of a part of a text whose signs are kept.
pub const BLOCK_BYTES: usize = 16;

impl Signed<'_> {
    /// The offset of the first byte that has one of these signs, from an offset on; `None` also if the budget is used up.
    #[inline]
    pub fn next(self, at: usize, signs: u32) -> Option<usize> {
        self.find(at, signs).filter(|_| self.work.take(SIGN))
    }

    #[inline]
    fn find(self, mut at: usize, signs: u32) -> Option<usize> {
        let bytes = self.text.as_bytes();
        while let Some(of_block) = self.blocks.get(at / BLOCK_BYTES) {
            let end = (at / BLOCK_BYTES + 1) * BLOCK_BYTES;
            if of_block & signs != 0 {
                let block = bytes.get(at..end.min(bytes.len()))?;
                if let Some(found) = block.iter().position(|byte| of(*byte) & signs != 0) {
                    return Some(at + found);
                }
            }
            at = end;
        }
        next(bytes, at, signs)
    }
}

#[cfg(test)]
impl<'t> From<&'t str> for Signed<'t> {
    fn from(text: &'t str) -> Self {
        Self { text, blocks: &[], work: Box::leak(Box::new(Work::of(usize::MAX))) }
    }
}

/// The offset of the first byte that has one of these signs, from an offset on.
#[inline]
pub fn next(bytes: &[u8], at: usize, signs: u32) -> Option<usize> {
    let rest = bytes.get(at..)?;
    // Most bytes have none of them.
    let (chunks, _) = rest.as_chunks::<8>();
    let has_none =
        |chunk: &&[u8; 8]| chunk.iter().fold(0, |all, byte| all | of(*byte)) & signs == 0;
    let skipped = 8 * chunks.iter().take_while(has_none).count();
    let found = rest.get(skipped..)?.iter().position(|byte| of(*byte) & signs != 0)?;
    Some(at + skipped + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_known_blocks_is_read_as_any_other() {
        let text = "'".to_owned() + &"a".repeat(40) + "1/'" + &"é b".repeat(9) + "\";";
        let all = |block: &[u8]| block.iter().fold(0, |all, byte| all | of(*byte));
        let blocks: Vec<u32> = text.as_bytes().chunks(BLOCK_BYTES).map(all).collect();
        for at in 0..=text.len() + BLOCK_BYTES {
            for signs in [Signs::QUOTE, Signs::DIGIT, Signs::SHELL, Signs::HIGH, Signs::AT] {
                let expected = next(text.as_bytes(), at, signs);
                for blocks in [&blocks[..], &blocks[..2], &[]] {
                    let signed = Signed { blocks, ..text.as_str().into() };
                    assert_eq!(signed.next(at, signs), expected, "{at}");
                }
            }
        }
    }
}
