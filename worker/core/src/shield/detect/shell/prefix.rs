//! What comes before a command and does not belong to it: spaces, brackets, words of the shell, programs that run
//! another one, variables, and files that are redirected.

use crate::shield::detect::{Dictionary, is_word};

/// Words, variables and redirections before a command, and the bytes of one of them.
const MAX_STEPS: usize = 16;
const MAX_TOKEN_BYTES: usize = 128;

/// A word before a command.
#[derive(Debug, Clone, Copy)]
pub enum Known {
    /// A word of the shell.
    Keyword,
    /// A program that runs the command after it, and the letters of its options that take a value.
    Program(&'static [u8]),
}

use Known::{Keyword, Program};

/// Words after which a command can begin, sorted.
static WORDS: Dictionary<Known> = Dictionary::new(&[
    ("builtin", Program(b"")),
    ("command", Keyword),
    ("do", Keyword),
    ("doas", Program(b"uC")),
    ("elif", Keyword),
    ("else", Keyword),
    ("env", Program(b"uC")),
    ("eval", Keyword),
    ("exec", Program(b"a")),
    ("if", Keyword),
    ("nice", Program(b"n")),
    ("nohup", Program(b"")),
    ("setsid", Program(b"")),
    ("stdbuf", Program(b"ioe")),
    ("sudo", Program(b"ughpCT")),
    ("then", Keyword),
    ("time", Program(b"fo")),
    ("timeout", Program(b"sk")),
    ("until", Keyword),
    ("while", Keyword),
]);

/// What follows the separators that were read last. Several separators in a row are followed by the same command. It
/// is read once for each of the separators.
#[derive(Default)]
pub struct Behind {
    /// Where the spaces and brackets end.
    target: usize,
    /// The separators after which the command at `target` was read: one bit for each character of ASCII.
    read: u128,
}

impl Behind {
    /// Where the command after a separator begins. `None` if it was read after such a separator, or nothing follows. `at`:
    /// the offset after the separator.
    pub fn target(&mut self, bytes: &[u8], at: usize, separator: u8) -> Option<usize> {
        if self.target < at {
            let rest = bytes.get(at..).unwrap_or_default();
            self.target = at + run(rest);
            self.read = 0;
        }
        let bit = 1_u128.checked_shl(separator.into())?;
        let is_new = self.read & bit == 0;
        self.read |= bit;
        (is_new && self.target < bytes.len()).then_some(self.target)
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
                let length = word(left);
                let (name, after) = left.split_at_checked(length).unwrap_or_default();
                match known(name).filter(|_| after.first() == Some(&b' ')) {
                    Some(Program(with_value)) => program(left, name, with_value),
                    other => {
                        let bytes = match (other, redirection(left)) {
                            (Some(_), _) => length + 1,
                            (None, 0) => assignment(left, length),
                            (None, redirection) => redirection,
                        };
                        prefix.mixed |= bytes > 0;
                        bytes
                    }
                }
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

/// The bytes of the word at the beginning.
fn word(rest: &[u8]) -> usize {
    rest.iter().take(MAX_TOKEN_BYTES).take_while(|byte| is_word(**byte)).count()
}

/// What a word before a command is. Shells do not ignore case.
pub fn known(word: &[u8]) -> Option<Known> {
    WORDS.get(word).filter(|_| word.iter().all(u8::is_ascii_lowercase))
}

/// Whether a word is one of the shell, after which a command begins.
pub fn is_keyword(word: &[u8]) -> bool {
    matches!(known(word), Some(Keyword))
}

/// A program, its options, and the number after `timeout`.
fn program(left: &[u8], name: &[u8], with_value: &[u8]) -> usize {
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
    if name == b"nice" && at == begin {
        return 0;
    }
    let rest = left.get(at..).unwrap_or_default();
    if name == b"timeout" && rest.first().is_some_and(u8::is_ascii_digit) {
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

/// `NAME=value `. `name`: the bytes of the name.
fn assignment(left: &[u8], name: usize) -> usize {
    let named = left.first().is_some_and(|byte| !byte.is_ascii_digit());
    if !named || left.get(name) != Some(&b'=') {
        return 0;
    }
    token(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted() {
        assert!(WORDS.words().is_sorted_by_key(|word| word.0));
    }

    #[test]
    fn what_is_before_a_command_is_read() {
        for (text, bytes, mixed) in [
            ("sudo -u root id", "sudo -u root ".len(), false),
            ("timeout -s KILL 5 id", "timeout -s KILL 5 ".len(), false),
            ("then id", "then ".len(), true),
            ("sudo env A=1 id", "sudo env A=1 ".len(), true),
            ("2>&1 </etc/passwd id", "2>&1 </etc/passwd ".len(), true),
            ("do { time id", "do { time ".len(), true),
            ("nice id", 0, false),
            ("nice -n 5 id", "nice -n 5 ".len(), false),
            ("Then id", 0, false),
            ("thenid", 0, false),
            ("do\tid", 0, false),
            ("", 0, false),
        ] {
            let read = prefix(text.as_bytes());
            assert_eq!((read.bytes, read.mixed), (bytes, mixed), "{text}");
        }
    }
}
