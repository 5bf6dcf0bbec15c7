//! One command: where it begins, where it ends, and how it is spelled.

use super::names::{is_command, takes_words};
use crate::shield::detect::{before, is_word};

/// Bytes of a command with its path, as far as it is read.
const MAX_COMMAND_BYTES: usize = 64;

/// Bytes of a command that is written in pieces, and its pieces: a caret before each letter of the longest name.
const MAX_SPELLED_BYTES: usize = 2 * MAX_COMMAND_BYTES;
const MAX_PIECES: usize = 16;

/// Bytes of spaces, brackets and words of the shell before a command.
pub const MAX_SKIPPED_BYTES: usize = 24;

/// A command that was read.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub end: usize,
    /// It cannot be prose, whatever came before.
    pub plain: bool,
    /// Its spelling hides it: it is in pieces, with wildcards, or without spaces.
    pub disguised: bool,
}

/// Words of the shell after which a command can begin.
const OPENING: [&[u8]; 9] =
    [b"sudo ", b"exec ", b"eval ", b"then ", b"do ", b"if ", b"time ", b"nohup ", b"env "];

/// The command at an offset. The text after it must be like the text after commands, because the names of many
/// commands are also ordinary words. `unknown`: the command need not be a known one.
pub fn command(
    bytes: &[u8],
    at: usize,
    separator: u8,
    unknown: bool,
    behind: &mut Behind,
) -> Option<Command> {
    let begin = at + opening(bytes.get(at..)?, behind.skipped(bytes, at));
    if !may_begin(*bytes.get(begin)?) || behind.unnamed == Some(begin) && !unknown {
        return None;
    }
    let brace = before(bytes, begin) == Some(b'{') && begin > at;
    // The shell drops quotes, backslashes and empty variables inside of a word.
    let mut word = [0_u8; MAX_COMMAND_BYTES];
    let mut length = 0;
    let mut end = begin;
    let (mut pieces, mut quotes) = (0, [0_usize; 2]);
    while let Some(byte) = bytes.get(end).copied()
        && end - begin < MAX_SPELLED_BYTES
    {
        let next = bytes.get(end + 1).copied();
        if matches!(byte, b'\'' | b'"') {
            if let Some(count) = quotes.get_mut(usize::from(byte == b'"')) {
                *count += 1;
            }
        } else if matches!(byte, b'\\' | b'^')
            && next.is_some_and(|it| it.is_ascii_alphabetic() || it == b'\n' && length > 0)
        {
            pieces += 1;
            end += usize::from(next == Some(b'\n'));
        } else if byte == b'$' && matches!(next, Some(b'@' | b'*' | b'1'..=b'9'))
            || (byte, next) == (b'`', Some(b'`')) && length > 0
        {
            pieces += 1;
            end += 1;
        } else if bytes.get(end..)?.starts_with(b"$()") && length > 0 {
            pieces += 1;
            end += 2;
        } else if is_word(byte) || matches!(byte, b'.' | b'/' | b'-' | b'?' | b'*' | b'[' | b']') {
            *word.get_mut(length)? = byte;
            length += 1;
        } else {
            break;
        }
        end += 1;
        if pieces > MAX_PIECES {
            return None;
        }
    }
    let mut word = word.get(..length)?;
    let variable = if length == 0 { variable(bytes, begin) } else { None };
    if let Some(after) = variable {
        end = after;
        word = b"$";
    }
    let wild = has_wildcard(word);
    let known = is_command(word) || wild || variable.is_some();
    let named = length > 1 && word.iter().any(u8::is_ascii_alphabetic);
    let may_be = known || unknown && named;
    if !may_be {
        behind.unnamed = Some(begin);
        return None;
    }
    let after = bytes.get(end..).unwrap_or_default();
    // A quote that is not closed within the word is prose or the end of a string.
    let closed = quotes.iter().all(|count| count % 2 == 0);
    let whole = quotes.iter().sum::<usize>() == 2
        && matches!(bytes.get(begin), Some(b'\'' | b'"'))
        && matches!(before(bytes, end), Some(b'\'' | b'"'));
    let pieced = closed && !whole && pieces + quotes.iter().sum::<usize>() > 0;
    let spaceless = after.starts_with(b"$IFS")
        || after.starts_with(b"${IFS")
        || after.starts_with(b"<<<")
        || redirects(after)
        || (brace && after.first() == Some(&b','));
    let disguised = length > 1 && (pieced || wild || spaceless);
    let spaces = after.iter().take_while(|byte| **byte == b' ' || **byte == b'\t').count();
    let next = after.get(spaces);
    let mut plain = known;
    let follows = match next {
        None
        | Some(
            b';' | b'|' | b'&' | b'`' | b')' | b'}' | b'\n' | b'\r' | b'#' | b'$' | b'>' | b'<'
            | b'{' | b',',
        ) => true,
        Some(b'-' | b'/' | b'~' | b'0'..=b'9' | b'%' | b'*' | b'\\' | b'@' | b':')
            if spaces > 0 =>
        {
            true
        }
        // A line break as source code writes it.
        Some(b'\\') => matches!(after.get(spaces + 1), Some(b'n' | b'r')),
        Some(b'\'' | b'"') => separator != b'`',
        Some(b'.') => spaces > 0 || length == 0,
        Some(_) if !known => return None,
        Some(_) => {
            plain = false;
            (takes_words(word) || at <= 2) && spaces > 0
        }
    };
    let closes = separator != b'`' || after.contains(&b'`') || spaces == after.len();
    ((follows || disguised) && closes).then_some(Command {
        end,
        plain: plain || disguised,
        disguised,
    })
}

/// Whether a command can begin with this byte: one of its letters, what the shell drops, or a variable.
const fn may_begin(byte: u8) -> bool {
    is_word(byte)
        || matches!(
            byte,
            b'.' | b'/'
                | b'-'
                | b'?'
                | b'*'
                | b'['
                | b']'
                | b'\''
                | b'"'
                | b'\\'
                | b'^'
                | b'$'
                | b'%'
        )
}

/// Whether a file is read without a space before it: `</etc/passwd`. A closing tag of HTML is not a file.
fn redirects(after: &[u8]) -> bool {
    let Some(path) = after.strip_prefix(b"</") else { return false };
    let name = path.iter().take_while(|byte| is_word(**byte)).count();
    name > 0 && matches!(path.get(name), Some(b'/' | b'.' | b'?' | b'*'))
}

/// The end of a variable that is used as a command: `$0`, `$SHELL`, `${a}`, `%COMSPEC%`.
fn variable(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let name = rest.get(1..)?;
    let letters = |from: &[u8]| from.iter().take_while(|byte| is_word(**byte)).count();
    match (rest.first()?, name.first()?) {
        (b'$', b'0') => Some(at + 2),
        (b'$', b'{') => {
            let length = letters(name.get(1..)?);
            (length > 0 && name.get(1 + length) == Some(&b'}')).then_some(at + length + 3)
        }
        (b'$', first) if first.is_ascii_alphabetic() => Some(at + 1 + letters(name)),
        (b'%', first) if first.is_ascii_alphabetic() => {
            let length = letters(name);
            (name.get(length) == Some(&b'%')).then_some(at + length + 2)
        }
        _ => None,
    }
}

/// What follows the separators that were read last. Several separators in a row are followed by the same
/// command, so this is remembered and not read again.
#[derive(Default)]
pub struct Behind {
    /// Where the spaces and brackets end that are read one by one.
    run_end: usize,
    /// Where no known command begins.
    unnamed: Option<usize>,
}

impl Behind {
    /// The number of spaces and brackets at an offset. If it is above [`MAX_SKIPPED_BYTES`], no command follows.
    pub fn skipped(&mut self, bytes: &[u8], at: usize) -> usize {
        if self.run_end <= at {
            let rest = bytes.get(at..).unwrap_or_default();
            self.run_end = at + rest.iter().take_while(|byte| is_skipped(**byte)).count();
        }
        self.run_end - at
    }
}

/// Whether a byte before a command does not belong to it.
const fn is_skipped(byte: u8) -> bool {
    matches!(byte, b'{' | b'(' | b'|' | b'&' | b'!' | b'`' | b'@') || byte.is_ascii_whitespace()
}

/// The bytes before a command that do not belong to it: spaces, brackets, and words of the shell. `skipped`: how many of
/// them are known.
pub fn opening(rest: &[u8], skipped: usize) -> usize {
    let mut at = skipped.min(MAX_SKIPPED_BYTES);
    while at < MAX_SKIPPED_BYTES {
        match rest.get(at) {
            Some(byte) if is_skipped(*byte) => at += 1,
            // The first letters of the words.
            Some(b's' | b'e' | b't' | b'd' | b'i' | b'n') => {
                let left = rest.get(at..).unwrap_or_default();
                match OPENING.iter().find(|word| left.starts_with(word)) {
                    Some(word) => at += word.len(),
                    None => break,
                }
            }
            _ => break,
        }
    }
    at
}

/// Whether a path names a command with wildcards: `/bin/c?t`, `/???/b*h`.
fn has_wildcard(word: &[u8]) -> bool {
    let [b'/', rest @ ..] = word else { return false };
    let mut parts = rest.split(|byte| *byte == b'/');
    let is_wild = |part: &[u8]| {
        part.iter().any(|byte| matches!(byte, b'?' | b'['))
            || part.len() > 2 && part.contains(&b'*')
    };
    let first = parts.next().unwrap_or_default();
    // The rest of a path: `/???/c?t` has one more part, a comment of a program has none.
    let known = matches!(first, b"bin" | b"usr" | b"sbin" | b"etc") || is_wild(first);
    let more = parts.clone().any(|part| !part.is_empty());
    known && more && (is_wild(first) || parts.any(is_wild))
}
