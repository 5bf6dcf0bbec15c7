//! What comes before a command and does not belong to it: spaces, brackets, words of the shell, programs that run
//! another one, variables, and files that are redirected.

use crate::shield::detect::is_word;

/// Words, variables and redirections before a command, and the bytes of one of them.
const MAX_STEPS: usize = 16;
const MAX_TOKEN_BYTES: usize = 128;

/// Words of the shell after which a command can begin.
const KEYWORDS: [&[u8]; 9] =
    [b"then", b"do", b"if", b"else", b"elif", b"while", b"until", b"eval", b"command"];

/// Programs that run the command after them, and the letters of their options that take a value.
const PROGRAMS: [(&[u8], &[u8]); 11] = [
    (b"sudo", b"ughpCT"),
    (b"doas", b"uC"),
    (b"env", b"uC"),
    (b"exec", b"a"),
    (b"time", b"fo"),
    (b"nohup", b""),
    (b"nice", b"n"),
    (b"setsid", b""),
    (b"stdbuf", b"ioe"),
    (b"builtin", b""),
    (b"timeout", b"sk"),
];

/// What separates commands; see [`Behind`].
const SEPARATORS: [u8; 9] = *b";|&`$\n\r<>";

/// What follows the separators that were read last. Several separators in a row are followed by the same command. It
/// is read once for each of the separators.
#[derive(Default)]
pub struct Behind {
    /// Where the spaces and brackets end.
    target: usize,
    /// The separators after which the command at `target` was read: one bit for each of [`SEPARATORS`].
    read: u16,
}

impl Behind {
    /// Where the command after a separator begins. `None` if it was read after such a separator. `at`: the offset after the
    /// separator.
    pub fn target(&mut self, bytes: &[u8], at: usize, separator: u8) -> Option<usize> {
        if self.target < at {
            let rest = bytes.get(at..).unwrap_or_default();
            self.target = at + run(rest);
            self.read = 0;
        }
        let bit = 1 << SEPARATORS.iter().position(|byte| *byte == separator)?;
        let is_new = self.read & bit == 0;
        self.read |= bit;
        is_new.then_some(self.target)
    }
}

/// The number of spaces and brackets at the beginning.
pub fn run(rest: &[u8]) -> usize {
    let skipped = |byte: &u8| {
        matches!(byte, b'{' | b'(' | b'|' | b'&' | b'!' | b'`' | b'@') || byte.is_ascii_whitespace()
    };
    rest.iter().take_while(|byte| skipped(byte)).count()
}

/// What is before a command.
#[derive(Default)]
pub struct Prefix {
    pub bytes: usize,
    /// It has more than programs. Then the command after it must be a known one.
    pub mixed: bool,
}

/// Reads what is before a command. Of the separators, it has only those of redirections, and at most [`MAX_STEPS`]. So a
/// byte is read for a bounded number of commands.
pub fn prefix(rest: &[u8]) -> Prefix {
    let mut prefix = Prefix::default();
    for _ in 0..MAX_STEPS {
        let left = rest.get(prefix.bytes..).unwrap_or_default();
        let step = match left.first() {
            Some(b'{' | b'(' | b'!' | b' ' | b'\t') if prefix.bytes > 0 => 1,
            Some(byte) if is_word(*byte) || matches!(byte, b'<' | b'>') => {
                let of_program = program(left);
                let others = [keyword(left), redirection(left), assignment(left)];
                let of_others = others.into_iter().find(|bytes| *bytes > 0).unwrap_or(0);
                prefix.mixed |= of_program == 0 && of_others > 0;
                of_program.max(of_others)
            }
            _ => 0,
        };
        if step == 0 {
            break;
        }
        prefix.bytes += step;
    }
    prefix
}

/// The bytes of a token and the spaces after it. Zero if no space follows.
fn token(rest: &[u8]) -> usize {
    let length = rest
        .iter()
        .take(MAX_TOKEN_BYTES + 1)
        .take_while(|byte| {
            !byte.is_ascii_whitespace()
                && !matches!(byte, b';' | b'|' | b'&' | b'`' | b'<' | b'>' | b'(' | b')')
        })
        .count();
    let spaces = spaces(rest.get(length..).unwrap_or_default());
    if length == 0 || length > MAX_TOKEN_BYTES || spaces == 0 { 0 } else { length + spaces }
}

/// The number of spaces at the beginning.
pub fn spaces(rest: &[u8]) -> usize {
    rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// Whether a word is one of the shell, after which a command begins.
pub fn is_keyword(word: &[u8]) -> bool {
    KEYWORDS.contains(&word)
}

fn keyword(left: &[u8]) -> usize {
    let is_keyword = |word: &&&[u8]| left.get(word.len()) == Some(&b' ') && left.starts_with(word);
    KEYWORDS.iter().find(is_keyword).map_or(0, |word| word.len() + 1)
}

/// A program, its options, and the number after `timeout`.
fn program(left: &[u8]) -> usize {
    let is_program =
        |(name, _): &&(&[u8], &[u8])| left.get(name.len()) == Some(&b' ') && left.starts_with(name);
    let Some((name, with_value)) = PROGRAMS.iter().find(is_program) else { return 0 };
    let mut at = name.len() + spaces(left.get(name.len()..).unwrap_or_default());
    let begin = at;
    for _ in 0..MAX_STEPS {
        let rest = left.get(at..).unwrap_or_default();
        let [b'-', letter, ..] = rest else { break };
        let length = token(rest);
        at += length;
        if length == 0 {
            break;
        }
        if with_value.contains(letter) && matches!(rest.get(2), Some(b' ')) {
            at += token(left.get(at..).unwrap_or_default());
        }
    }
    // `nice` is also a word of prose.
    if *name == b"nice" && at == begin {
        return 0;
    }
    let rest = left.get(at..).unwrap_or_default();
    if *name == b"timeout" && rest.first().is_some_and(u8::is_ascii_digit) {
        at += token(rest);
    }
    at
}

/// `2>&1 `, `</etc/passwd `
fn redirection(left: &[u8]) -> usize {
    let digits = usize::from(left.first().is_some_and(u8::is_ascii_digit));
    let signs =
        left.iter().skip(digits).take(2).take_while(|byte| matches!(byte, b'<' | b'>')).count();
    if signs == 0 {
        return 0;
    }
    let mut at = digits + signs;
    let rest = left.get(at..).unwrap_or_default();
    if let [b'&', b'0'..=b'9', b' ', ..] = rest {
        return at + 2 + spaces(rest.get(2..).unwrap_or_default());
    }
    at += spaces(rest);
    let rest = left.get(at..).unwrap_or_default();
    let length = token(rest);
    match rest {
        [b'/', b'a'..=b'z', ..] | [b'.' | b'~', b'/', ..] if length > 0 => at + length,
        _ => 0,
    }
}

/// `NAME=value `
fn assignment(left: &[u8]) -> usize {
    let name = left.iter().take(MAX_TOKEN_BYTES).take_while(|byte| is_word(**byte)).count();
    let named = left.first().is_some_and(|byte| !byte.is_ascii_digit());
    if !named || left.get(name) != Some(&b'=') {
        return 0;
    }
    token(left)
}
