//! Shell commands after a value.
//!
//! A command line, or a document with commands in it, is ordinary. A single value that is followed by a command is
//! not.

mod command;
mod names;
mod prefix;
mod tools;

use std::cell::LazyCell;

use self::command::{Command, Follows, Place, command};
use self::names::{Kind, only_filters};
use self::prefix::{Behind, run, spaces};
use self::tools::{begins_command, is_quoted_command};
use super::{Form, Found, before, is_word};
use crate::shield::left::CANDIDATE;
use crate::shield::rule::Detector;
use crate::shield::signs::{self, Signed, Signs};

/// Bytes of a value with a command between backticks, within another value.
const MAX_QUOTED_BYTES: usize = 64;

/// Bytes of the path of a file that is written.
const MAX_PATH_BYTES: usize = 256;

/// Reports commands after a separator, up to the first attack. `value`: it is a single value. `decoded`: it is the decoded
/// form of another text.
pub fn find(signed: Signed<'_>, value: bool, decoded: bool, form: Form, found: Found<'_>) {
    let text = signed.text;
    let bytes = text.as_bytes();
    // An ordinary command line has no encoded newline before it.
    let continues = decoded && text.starts_with(['\n', '\r']);
    let line = LazyCell::new(|| match form {
        Form::Argument => true,
        Form::Line => continues || !begins_command(text),
        Form::Document => false,
    });
    if form != Form::Document && (text.starts_with("() {") || text.starts_with("(){")) {
        return found(Detector::ShellCommand, 0..text.len());
    }
    // A disguised command is reported even without a separator before it.
    if form != Form::Document
        && let Some(command) =
            command(bytes, run(bytes), Place { separator: b'\n', ..Place::default() })
        && command.disguised
    {
        return found(Detector::ShellCommand, 0..command.end);
    }
    let table = is_table(bytes);
    let (mut prior, mut behind) = (Prior::default(), Behind::default());
    let mut at = 0;
    while let Some(begin) = signed.next(at, Signs::SHELL) {
        at = begin + 1;
        let mut separator = bytes.get(begin).copied().unwrap_or_default();
        if separator == b'\\' {
            // A line break as source code writes it. Between letters it is part of a Windows path.
            let breaks = matches!(bytes.get(at), Some(b'n' | b'r'));
            let after = before(bytes, begin);
            if !breaks
                || after.is_some_and(|byte| is_word(byte) || matches!(byte, b'\\' | b':' | b'.'))
            {
                continue;
            }
            separator = b'\n';
            at += 1;
        }
        // Data in a URL begins like this.
        if separator == b';' && bytes.get(at..).is_some_and(|rest| rest.starts_with(b"base64,")) {
            continue;
        }
        let opens = bytes.get(at) == Some(&b'(');
        match separator {
            b'>' if !opens => {
                if *line {
                    prior.read(bytes, begin);
                    if let Some(end) = written_file(bytes, at, &prior) {
                        return found(Detector::ShellCommand, begin..end);
                    }
                }
                continue;
            }
            b'$' | b'<' if !opens => continue,
            b'$' | b'<' | b'>' => at += 1,
            b'\n' | b'\r' if begin + 1 == bytes.len() => continue,
            _ => {}
        }
        let Some(target) = behind.target(bytes, at, separator) else { continue };
        if *line {
            prior.read(bytes, begin);
        }
        // Markdown writes code between backticks, and scripts have many lines.
        let words = prior.words;
        let one = *line && words <= 1;
        let place = Place {
            separator,
            first: begin <= 1,
            unknown: one
                && matches!(separator, b';' | b'|' | b'&' | b'\n' | b'\r')
                && may_be_unknown(bytes, begin, target, !prior.has_value()),
            path: one && !prior.has_path() && may_be_path(bytes, begin, target),
            plus: value,
        };
        if !signed.work.take(CANDIDATE) {
            return;
        }
        let Some(command) = command(bytes, target, place) else { continue };
        let glued = prior.ends_in_word || begin == 0;
        let is_attack = form != Form::Document && command.disguised
            || *line
                && match separator {
                    b'`' if prior.words == 0 && is_quoted_command(bytes) => true,
                    b'`' => {
                        (glued || prior.is_address())
                            && words <= 1
                            && text.len() <= MAX_QUOTED_BYTES
                    }
                    b'|' if table && command.is_cell(bytes) => false,
                    _ if form == Form::Argument && command.is_plain() => true,
                    b'$' | b'<' | b'>' => words <= 1,
                    b'|' if words > 1 => words <= 3 && command.ends_prose(bytes.get(command.end..)),
                    b'|' => !command.is_pipeline(bytes, at),
                    b'\n' | b'\r' => words <= 1,
                    _ => words <= 3,
                };
        found(
            if is_attack { Detector::ShellCommand } else { Detector::ShellMentioned },
            begin..command.end,
        );
        // One attack is enough. Commands in a document are only mentioned, and one mention is enough.
        if is_attack || form == Form::Document {
            return;
        }
    }
}

impl Command {
    /// Whether it is a cell of a table: only its name is between two bars.
    fn is_cell(&self, bytes: &[u8]) -> bool {
        let rest = bytes.get(self.end..).unwrap_or_default();
        let spaces = spaces(rest);
        !self.disguised && spaces > 0 && matches!(rest.get(spaces), None | Some(b'|' | b'\n'))
    }

    /// Whether it is an attack after two or three words and a bar. Titles have a bar too.
    fn ends_prose(&self, rest: Option<&[u8]>) -> bool {
        let is_sure = match self.follows {
            Follows::Nothing => self.probe,
            Follows::Argument | Follows::Value => {
                matches!(self.kind, Some(Kind::Words | Kind::Plain)) && !self.filter
            }
            Follows::Word => false,
        };
        is_sure && !rest.unwrap_or_default().contains(&b'|')
    }

    /// Whether it is the filter of a developer's pipeline: ` | grep word`.
    fn is_pipeline(&self, bytes: &[u8], at: usize) -> bool {
        self.filter
            && matches!(self.follows, Follows::Word | Follows::Value)
            && bytes.get(at) == Some(&b' ')
            && bytes.get(at.saturating_sub(2)) == Some(&b' ')
            && only_filters(bytes.get(at..self.end).unwrap_or_default().trim_ascii())
    }
}

/// Whether a line is a row of a table: it begins and ends with a bar, and has one between them.
fn is_table(bytes: &[u8]) -> bool {
    let [b'|', cells @ .., b'|'] = bytes.trim_ascii() else { return false };
    cells.contains(&b'|')
}

/// Whether an unknown name after a separator can be a program: only separators and quotes come before the separator,
/// or an option or a path follows the name. An entity of HTML begins and ends with a separator too.
fn may_be_unknown(bytes: &[u8], begin: usize, target: usize, is_first: bool) -> bool {
    let separator = bytes.get(begin).copied();
    let name = bytes.get(target..).unwrap_or_default();
    let name = name.get(prefix::prefix(name).bytes..).unwrap_or_default();
    let length = name
        .iter()
        .take_while(|byte| is_word(**byte) || matches!(byte, b'.' | b'/' | b'-'))
        .count();
    let after = name.get(length..).unwrap_or_default();
    if separator == Some(b'&') && after.first() == Some(&b';') {
        return false;
    }
    // Rows of a table begin like this, and so do comments of some formats.
    let table = separator == Some(b'|') && name.contains(&b'|');
    let argument = match after {
        [b' ', b'-', b'a'..=b'z' | b'A'..=b'Z', ..]
        | [b' ', b'-', b'-', b'a'..=b'z', ..]
        | [b' ', b'/' | b'~' | b'%', b'a'..=b'z', ..]
        | [b' ', b'/', b'A'..=b'Z'] => true,
        [b' ', b'/', b'A'..=b'Z', after, ..] => !is_word(*after),
        // Prose has a space after the separator.
        [b' ', digits @ ..] => {
            let begins = bytes.get(target.saturating_sub(1)).copied();
            matches!(separator, Some(b';' | b'|' | b'&'))
                && matches!(begins, Some(b';' | b'|' | b'&'))
                && name.first().is_some_and(u8::is_ascii_lowercase)
                && is_number(digits, separator == Some(b'|'))
        }
        _ => false,
    };
    argument || is_first && !table
}

/// Whether a number or an address is followed by the end or a separator. `address`: it must be an address.
fn is_number(rest: &[u8], address: bool) -> bool {
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let number = rest.get(..length).unwrap_or_default();
    let dots = number.iter().filter(|byte| **byte == b'.').count();
    length > 0
        && (dots == 3 || !address)
        && matches!(rest.get(length), None | Some(b';' | b'|' | b'&' | b'\n' | b'\r'))
}

/// Whether the path of a program can follow a separator. Tables and lists of paths have separators too.
fn may_be_path(bytes: &[u8], begin: usize, target: usize) -> bool {
    let spaced = before(bytes, begin) == Some(b' ') && bytes.get(begin + 1) == Some(&b' ');
    match bytes.get(begin) {
        Some(b';' | b'&') => true,
        Some(b'|') => !spaced && !bytes.get(target..).is_some_and(|rest| rest.contains(&b'|')),
        _ => false,
    }
}

/// The end of a file that a value of one word is written to: `x>/var/www/a.php`. `at`: the offset after the first `>`.
fn written_file(bytes: &[u8], at: usize, prior: &Prior) -> Option<usize> {
    const FOLDERS: [&[u8]; 6] = [b"/etc/", b"/tmp/", b"/var/", b"/dev/", b"/home/", b"/root/"];
    let is_value = prior.words == 1
        && !prior.signs.has(Signs::ANGLE)
        && (prior.has_letter() || prior.is_address());
    if !is_value || matches!(before(bytes, at.checked_sub(1)?), Some(b'-' | b'=' | b'>')) {
        return None;
    }
    let begin = at + usize::from(bytes.get(at) == Some(&b'>'));
    let begin = begin + spaces(bytes.get(begin..)?);
    let rest = bytes.get(begin..)?;
    let folder = FOLDERS.iter().find(|folder| rest.starts_with(folder))?;
    let is_path = |byte: &u8| is_word(*byte) || matches!(byte, b'/' | b'.' | b'-');
    let length = rest.iter().take(MAX_PATH_BYTES).take_while(|byte| is_path(byte)).count();
    let path = rest.get(..length)?;
    let after = rest.get(length..)?;
    let ends = matches!(after.get(spaces(after)), None | Some(b';' | b'|' | b'&' | b'#' | b'\n'));
    (ends && length > folder.len() && path != b"/dev/null").then_some(begin + length)
}

/// The text before a separator. Each byte is read once.
#[derive(Default)]
struct Prior {
    read: usize,
    words: usize,
    ends_in_word: bool,
    dots: usize,
    signs: Signs,
}

impl Prior {
    fn read(&mut self, bytes: &[u8], end: usize) {
        for byte in bytes.get(self.read..end).unwrap_or_default() {
            let in_word = !byte.is_ascii_whitespace();
            self.words += usize::from(in_word && !self.ends_in_word);
            self.ends_in_word = in_word;
            self.dots += usize::from(*byte == b'.');
            self.signs.0 |= signs::of(*byte);
        }
        self.read = end.max(self.read);
    }

    const fn has_letter(&self) -> bool {
        self.signs.has(Signs::LOWER | Signs::UPPER | Signs::HIGH)
    }

    /// Whether it has more than quotes, brackets and separators.
    const fn has_value(&self) -> bool {
        self.has_letter() || self.signs.has(Signs::DIGIT | Signs::ANGLE)
    }

    const fn has_path(&self) -> bool {
        self.signs.has(Signs::SLASH | Signs::BACKSLASH)
    }

    /// Whether it looks like an address of version 4.
    const fn is_address(&self) -> bool {
        self.words == 1 && self.dots == 3 && !self.has_letter()
    }
}

/// Whether something in a text can separate commands.
#[must_use]
pub fn may_go_on(text: &str) -> bool {
    text.contains([';', '|', '&', '`', '$', '\n', '\r', '<', '>', '\\'])
}

#[cfg(test)]
mod tests;
