//! Which detectors a text needs: signs of them, in one pass over its bytes and by literals.

use super::detect::{html, sql};

/// What detectors look for in a text: bytes, and literals that the automaton finds on its way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Signs(pub u32);

impl Signs {
    pub const QUOTE: u32 = 1;
    pub const DIGIT: u32 = 1 << 1;
    pub const SHELL: u32 = 1 << 2;
    pub const ANGLE: u32 = 1 << 3;
    pub const AT: u32 = 1 << 4;
    pub const HIGH: u32 = 1 << 5;
    pub const ESCAPE: u32 = 1 << 6;
    pub const URL: u32 = 1 << 7;
    pub const IMAGE: u32 = 1 << 8;
    pub const KEY: u32 = 1 << 9;
    pub const STEP: u32 = 1 << 10;
    pub const CODE: u32 = 1 << 11;
    pub const LOGIC: u32 = 1 << 12;
    pub const SQL: u32 = 1 << 13;
    pub const COMPARE: u32 = 1 << 14;
    pub const SCHEME: u32 = 1 << 15;
    pub const BRACE: u32 = 1 << 16;

    #[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
    const OF: [u32; 256] = {
        let mut of = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            of[byte] = match byte as u8 {
                b'\'' | b'"' => Self::QUOTE,
                b'`' => Self::QUOTE | Self::SHELL,
                b'0'..=b'9' => Self::DIGIT,
                b'&' => Self::SHELL | Self::ESCAPE,
                b'%' => Self::ESCAPE,
                b'\\' => Self::ESCAPE | Self::SHELL,
                b';' | b'|' | b'$' | b'\n' | b'\r' => Self::SHELL,
                b'=' => Self::COMPARE,
                b'#' => Self::COMPARE | Self::BRACE,
                b'>' => Self::SHELL | Self::COMPARE,
                b'<' => Self::ANGLE | Self::SHELL | Self::COMPARE,
                b'@' => Self::AT,
                b'{' | b'[' => Self::BRACE,
                0x80.. => Self::HIGH,
                _ => 0,
            };
            byte += 1;
        }
        of
    };

    /// Literals, and the signs that they are.
    pub fn literals() -> impl Iterator<Item = (&'static str, u32)> {
        let code = html::words().map(|word| (word, Self::CODE));
        let logic = ["or", "and", "xor", "||", "&&", "where", "having", "case", "elt"]
            .map(|word| (word, Self::LOGIC));
        let sql = sql::telling_words()
            .chain(["union", "waitfor", "outfile", "dumpfile", "sleep", "select", "iif"]);
        let fixed = [
            ("//", Self::URL),
            ("![", Self::IMAGE),
            ("-----begin", Self::KEY),
            ("..", Self::STEP),
            ("javascript:", Self::SCHEME),
            ("vbscript:", Self::SCHEME),
            ("script:", Self::SCHEME),
            ("data:", Self::SCHEME),
            ("--", Self::COMPARE),
            (" like", Self::COMPARE),
        ];
        fixed.into_iter().chain(code).chain(logic).chain(sql.map(|word| (word, Self::SQL)))
    }

    /// Whether a text may have SQL that leaves its value.
    pub fn may_be_sql(self, text: &str) -> bool {
        self.has(Self::SQL)
            || (self.has(Self::LOGIC) && self.has(Self::COMPARE) && self.has(Self::DIGIT))
            || text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, ';' | '-' | '('))
            || (self.has(Self::QUOTE) && sql::leaves_quotes(text))
    }

    pub fn of(text: &str) -> Self {
        Self(text.bytes().fold(0, |signs, byte| {
            signs | Self::OF.get(usize::from(byte)).copied().unwrap_or_default()
        }))
    }

    pub fn has(self, sign: u32) -> bool {
        self.0 & sign != 0
    }
}
