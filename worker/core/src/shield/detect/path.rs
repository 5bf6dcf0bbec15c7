//! Paths that lead out of their folder.
//!
//! A step upwards is two dots and a separator. Servers accept many spellings of these bytes. So each is read as a
//! unit: the byte itself, or an escape of it, even a malformed one. Steps that follow one another are one path.

use super::{Found, is_value};
use crate::shield::left::TOKEN;
use crate::shield::rule::Detector;
use crate::shield::signs::Signed;

/// This many steps upwards are suspicious, because a relative path between two packages of one repository seldom has
/// them.
const DEEP_STEPS: usize = 4;

/// Ends of the names of files of source code. Deep in a repository of many packages, a relative path to one has many steps.
/// Left out are languages whose programs keep settings in files of any name, and files that [`names_settings`] knows.
const SOURCE_ENDS: [&str; 22] = [
    "c", "cc", "cjs", "cpp", "cs", "css", "cts", "go", "h", "hpp", "java", "js", "jsx", "kt",
    "mjs", "mts", "rs", "scss", "svelte", "swift", "ts", "tsx",
];

/// Words in the names of files and folders with settings or secrets.
const SETTINGS: [&str; 6] = ["config", "credential", "env", "knexfile", "secret", "setting"];

/// Times that the `%` of an escape is an escape itself.
const MAX_NESTED: usize = 4;

/// Separators after the dots of one step.
const MAX_SEPARATORS: usize = 8;

/// What a unit of a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Dot,
    Slash,
    Backslash,
    /// An escape of any other character, except white space.
    Other,
}

/// Steps upwards that follow one another.
#[derive(Debug, Default, PartialEq, Eq)]
struct Climb {
    steps: usize,
    /// A dot or a separator is an escape.
    encoded: bool,
    /// An escape stands for something else.
    broken: bool,
    /// Slashes of both kinds in one step, or a semicolon with a text after it, which Java servers drop.
    mixed: bool,
    /// More dots or slashes than a step needs, or `./` between steps.
    padded: bool,
}

/// Reports paths with steps upwards, and returns their number. In a decoded form, `plain` is the number of steps in the
/// text as it was sent: the others were encoded.
pub fn find(signed: Signed<'_>, plain: Option<usize>, found: Found<'_>) -> usize {
    let text = signed.text;
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut steps = 0;
    while let Some(next) = bytes
        .get(at..)
        .and_then(|rest| rest.iter().position(|byte| matches!(byte, b'.' | b'%' | b'0')))
    {
        if !signed.work.take(TOKEN) {
            break;
        }
        let begin = at + next;
        let (climb, end) = climb(bytes, begin);
        at = end.max(begin + 1);
        if climb.steps == 0 {
            continue;
        }
        steps += climb.steps;
        let again = climb.steps > 1;
        if climb.encoded || again && climb.broken {
            found(Detector::PathEncoded, begin..end);
        }
        let deep = climb.steps >= DEEP_STEPS
            && is_value(text)
            && !is_source(bytes.get(end..).unwrap_or_default());
        if climb.mixed || again && climb.padded || deep {
            found(Detector::PathDeep, begin..end);
        }
        if plain.is_some_and(|plain| steps > plain) {
            found(Detector::PathEncoded, begin..end);
        }
    }
    steps
}

/// Whether the path after the steps is written plainly, and leads to source code that is not named as settings.
fn is_source(path: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./@()[]".contains(byte);
    let end = path.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    path.len() > end.len()
        && SOURCE_ENDS.iter().any(|known| known.as_bytes() == end)
        && path.iter().all(is_plain)
        && !path.split(|byte| *byte == b'/').any(names_settings)
}

/// Whether the name of a file or a folder is hidden, or has a word of [`SETTINGS`].
fn names_settings(name: &[u8]) -> bool {
    let has = |word: &[u8]| name.windows(word.len()).any(|it| it.eq_ignore_ascii_case(word));
    name.starts_with(b".") || SETTINGS.iter().any(|word| has(word.as_bytes()))
}

/// Whether a value without two dots in a row may have steps: an escape in it may be a dot.
#[must_use]
pub fn may_have_escaped_steps(value: &str) -> bool {
    value.bytes().any(|byte| matches!(byte, b'%' | b'x'))
}

/// The steps upwards at an offset, and where they end.
fn climb(bytes: &[u8], begin: usize) -> (Climb, usize) {
    let mut climb = Climb::default();
    let mut at = begin;
    loop {
        let mut end = at;
        let mut dots = 0;
        let (mut encoded, mut broken) = (false, false);
        // Some readers drop an escape between the dots, such as that of the null character.
        while let Some((unit, length)) = unit(bytes, end) {
            match unit {
                Unit::Dot => dots += 1,
                Unit::Other if dots == 1 => broken = true,
                _ => break,
            }
            encoded |= unit == Unit::Dot && length > 1;
            end += length;
        }
        let (mut slashes, mut backslashes) = (0, 0);
        while slashes + backslashes < MAX_SEPARATORS
            && let Some((unit, length)) = unit(bytes, end)
        {
            match unit {
                Unit::Slash => slashes += 1,
                Unit::Backslash => backslashes += 1,
                Unit::Other => broken = true,
                Unit::Dot => break,
            }
            encoded |= unit != Unit::Other && length > 1;
            end += length;
        }
        let semicolon = slashes + backslashes == 0 && bytes.get(end..end + 2) == Some(b";/");
        end += if semicolon { 2 } else { 0 };
        let separated = slashes + backslashes > 0 || semicolon || broken;
        if !separated || dots == 0 || (dots == 1 && climb.steps == 0) {
            // The dots are not read again.
            return (climb, if at == begin { end.max(at) } else { at });
        }
        if dots == 1 {
            climb.padded = true;
        } else {
            climb.steps += 1;
            climb.encoded |= encoded;
            climb.broken |= broken;
            climb.mixed |= slashes > 0 && backslashes > 0 || semicolon;
            climb.padded |= dots > 2 || slashes + backslashes > 1;
        }
        at = end;
    }
}

/// The unit at an offset, and its bytes.
fn unit(bytes: &[u8], at: usize) -> Option<(Unit, usize)> {
    match (bytes.get(at)?, bytes.get(at + 1)) {
        (b'.', _) => Some((Unit::Dot, 1)),
        (b'/', _) => Some((Unit::Slash, 1)),
        (b'\\', _) => Some((Unit::Backslash, 1)),
        (b'0', Some(b'x' | b'X')) => match of_byte(hexadecimal(bytes, at + 2)?)? {
            Unit::Other => None,
            unit => Some((unit, 4)),
        },
        (b'%', Some(_)) => escape(bytes, at),
        _ => None,
    }
}

/// `%2e`, `%252e`, `%%32%65`, `%u002e`, and UTF-8 with more bytes than it needs, also malformed.
fn escape(bytes: &[u8], at: usize) -> Option<(Unit, usize)> {
    let (lead, mut end) = piece(bytes, at)?;
    let unit = match lead {
        Piece::Wide(0x2e | 0x2024 | 0x3002 | 0xff0e) => Unit::Dot,
        Piece::Wide(0x2f | 0x2044 | 0x2215 | 0xff0f | 0xf025) => Unit::Slash,
        Piece::Wide(0x5c | 0x2216 | 0xff3c | 0xefc8) => Unit::Backslash,
        Piece::Wide(_) => Unit::Other,
        Piece::Byte(byte @ (0xc0 | 0xc1 | 0xe0 | 0xf0 | 0xf8 | 0xfc)) => {
            let pieces = match byte {
                0xc0 | 0xc1 => 1,
                0xe0 => 2,
                0xf0 => 3,
                0xf8 => 4,
                _ => 5,
            };
            let mut last = None;
            for _ in 0..pieces {
                let (next, length) = match piece(bytes, end) {
                    Some((Piece::Byte(byte), next)) => (Some(byte), next),
                    Some((_, next)) => (None, next),
                    None => match hexadecimal(bytes, end) {
                        Some(byte @ (0xae | 0xaf)) => (Some(byte), end + 2),
                        _ => break,
                    },
                };
                (last, end) = (next, length);
            }
            match last {
                Some(0x2e | 0xae) => Unit::Dot,
                Some(0x2f | 0xaf) => Unit::Slash,
                Some(0x5c | 0x9c | 0xdc) => Unit::Backslash,
                _ => Unit::Other,
            }
        }
        Piece::Byte(byte) => of_byte(byte)?,
        Piece::Malformed => Unit::Other,
    };
    Some((unit, end - at))
}

fn of_byte(byte: u8) -> Option<Unit> {
    match byte {
        b'.' => Some(Unit::Dot),
        b'/' => Some(Unit::Slash),
        b'\\' => Some(Unit::Backslash),
        // Characters of ordinary texts.
        b'\t' | b'\n' | b'\r' | b' '..=b'~' => None,
        _ => Some(Unit::Other),
    }
}

/// What one `%` escapes.
enum Piece {
    Byte(u8),
    /// Microsoft's `%u002e`.
    Wide(u32),
    /// `%qf`, whose letters some decoders take for digits.
    Malformed,
}

/// The escape at an offset, and where it ends.
fn piece(bytes: &[u8], at: usize) -> Option<(Piece, usize)> {
    let mut at = at + usize::from(bytes.get(at) == Some(&b'%'));
    bytes.get(at - 1).filter(|byte| **byte == b'%')?;
    for _ in 0..MAX_NESTED {
        if bytes.get(at..at + 2) != Some(b"25") {
            break;
        }
        at += 2;
    }
    if bytes.get(at) == Some(&b'%') {
        // Each digit is an escape.
        let digit = |at: usize| {
            let byte = hexadecimal(bytes, at).filter(|_| bytes.get(at - 1) == Some(&b'%'))?;
            char::from(byte).to_digit(16)
        };
        if let (Some(high), Some(low)) = (digit(at + 1), digit(at + 4)) {
            return Some((Piece::Byte(u8::try_from(high * 16 + low).ok()?), at + 6));
        }
        at += 1;
    }
    if matches!(bytes.get(at), Some(b'u' | b'U')) {
        let (high, low) = (hexadecimal(bytes, at + 1)?, hexadecimal(bytes, at + 3)?);
        return Some((Piece::Wide(u32::from(high) << 8 | u32::from(low)), at + 5));
    }
    if let Some(byte) = hexadecimal(bytes, at) {
        return Some((Piece::Byte(byte), at + 2));
    }
    let letters = bytes.get(at..at + 2)?.iter().all(u8::is_ascii_alphanumeric);
    letters.then_some((Piece::Malformed, at + 2))
}

/// The byte that two hexadecimal digits write.
fn hexadecimal(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(at)? * 16 + digit(at + 1)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str, plain: Option<usize>) -> bool {
        let mut any = false;
        find(text.into(), plain, &mut |_, _| any = true);
        any
    }

    #[test]
    fn a_value_that_climbs_far_or_in_disguise_is_found() {
        for (text, plain) in [
            ("../../../../etc/passwd", None),
            ("../../../../etc/passwd%00.ts", None),
            ("../../../../etc/passwd?.ts", None),
            ("../../../../app/settings.py", None),
            ("../../../../ts", None),
            ("../../../../srv/app/config.js", None),
            ("../../../../app/.vscode/index.ts", None),
            ("../../../../root/knexfile.js", None),
            ("..\\..\\..\\..\\windows", None),
            ("/var/www/../../../../x", None),
            ("..;/..;/admin", None),
            ("../x", Some(0)),
            ("..%2f..%2fx", None),
            ("%2e%2e/x", None),
            ("%252e%252e%252fx", None),
            ("%%32%65%%32%65/x", None),
            ("..%u2215..%u2215x", None),
            ("..%c0%af..%c0%afx", None),
            ("%c0%2e%c0%2e/x", None),
            ("%e0%80%ae%e0%80%ae/x", None),
            ("%c0ae%c0ae/x", None),
            ("..%25c1%259cx", None),
            ("..%c1%pc..%c1%pcx", None),
            ("..%bg%qf..%bg%qfx", None),
            ("0x2e0x2e0x2fx", None),
            (".%00./.%00./x", None),
            ("....//....//x", None),
            ("/./.././../x", None),
            ("/...\\...\\x", None),
            ("..\\/..\\/..\\x", None),
        ] {
            assert!(finds(text, plain), "{text}");
        }
        for text in [
            "../src/lib.rs",
            "../../package.json",
            "a..b",
            "1...2",
            "see ../../../../x for more",
            "../my%20notes/a.txt",
            "wait..%20..%20",
            "a/.../b",
            "./...",
            "100%..50%",
            "../../x.svg%3Fv=1",
            "../../../../packages/ui/src/index.ts",
            "../../../../../app/[id]/page.tsx",
        ] {
            assert!(!finds(text, None), "{text}");
        }
        assert!(!finds("../my notes", Some(1)));
    }
}
