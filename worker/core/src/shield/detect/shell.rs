//! Shell commands after a value.
//!
//! A command line, or a document with commands in it, is ordinary. A single value that is followed by a command is
//! not.

mod command;
mod names;

use self::command::{Behind, MAX_SKIPPED_BYTES, command, opening};
use self::names::{is_command, is_tool};
use super::{Form, Found, before, is_word};
use crate::shield::rule::Detector;

/// Bytes of a value with a command between backticks, within another value.
const MAX_QUOTED_BYTES: usize = 64;

/// Reports commands after a separator. `decoded`: the text is the decoded form of another one.
pub fn find(text: &str, decoded: bool, form: Form, found: Found<'_>) {
    let bytes = text.as_bytes();
    // An ordinary command line has no encoded newline before it.
    let continues = decoded && text.starts_with(['\n', '\r']);
    let begins = !continues && begins_command(text);
    let line = match form {
        Form::Argument => true,
        Form::Line => !begins,
        Form::Document => false,
    };
    if form != Form::Document && (text.starts_with("() {") || text.starts_with("(){")) {
        found(Detector::ShellCommand, 0..text.len());
    }
    // A disguised command is reported even without a separator before it.
    if form != Form::Document
        && let Some(command) = command(bytes, 0, b'\n', false, &mut Behind::default())
        && command.disguised
    {
        found(Detector::ShellCommand, 0..command.end);
    }
    let (mut prior, mut behind) = (Prior::default(), Behind::default());
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| {
        rest.iter().position(|byte| {
            matches!(byte, b';' | b'|' | b'&' | b'`' | b'$' | b'\n' | b'\r' | b'<' | b'>' | b'\\')
        })
    }) {
        let begin = at + next;
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
            b'$' | b'<' | b'>' if !opens => continue,
            b'$' | b'<' | b'>' => at += 1,
            b'\n' | b'\r' if begin + 1 == bytes.len() => continue,
            _ => {}
        }
        if behind.skipped(bytes, at) > MAX_SKIPPED_BYTES {
            continue;
        }
        prior.read(bytes, begin);
        // Markdown writes code between backticks, and scripts have many lines.
        let words = if line { prior.words } else { 0 };
        let glued = prior.ends_in_word || begin == 0;
        let unknown = line
            && words <= 1
            && matches!(separator, b';' | b'|' | b'&' | b'\n' | b'\r')
            && may_be_unknown(bytes, begin, at, !prior.has_value);
        let Some(command) = command(bytes, at, separator, unknown, &mut behind) else { continue };
        let is_attack = form != Form::Document && command.disguised
            || line
                && match separator {
                    b'`' => glued && words <= 1 && text.len() <= MAX_QUOTED_BYTES,
                    _ if form == Form::Argument && command.plain => true,
                    b'$' | b'<' | b'>' => words <= 1,
                    b'|' | b'\n' | b'\r' => words <= 1,
                    _ => words <= 3,
                };
        found(
            if is_attack { Detector::ShellCommand } else { Detector::ShellMentioned },
            begin..command.end,
        );
        // Commands in a document are only mentioned, and one mention is enough.
        if form == Form::Document {
            return;
        }
    }
}

/// Whether an unknown name after a separator can be a program: only separators and quotes come before the separator,
/// or an option or a path follows the name. An entity of HTML begins and ends with a separator too.
fn may_be_unknown(bytes: &[u8], begin: usize, at: usize, is_first: bool) -> bool {
    let rest = bytes.get(at..).unwrap_or_default();
    let name = rest.get(opening(rest, 0)..).unwrap_or_default();
    let length = name
        .iter()
        .take_while(|byte| is_word(**byte) || matches!(byte, b'.' | b'/' | b'-'))
        .count();
    let after = name.get(length..).unwrap_or_default();
    if bytes.get(begin) == Some(&b'&') && after.first() == Some(&b';') {
        return false;
    }
    // Rows of a table begin like this, and so do comments of some formats.
    let table = bytes.get(begin) == Some(&b'|') && name.contains(&b'|');
    let argument = matches!(after, [b' ', b'-', b'a'..=b'z' | b'A'..=b'Z', ..] | [b' ', b'/' | b'~' | b'%', b'a'..=b'z', ..]);
    argument || is_first && !table
}

/// The text before a separator. Each byte is read once.
#[derive(Default)]
struct Prior {
    read: usize,
    words: usize,
    ends_in_word: bool,
    /// Whether it has more than quotes, brackets and separators.
    has_value: bool,
}

impl Prior {
    fn read(&mut self, bytes: &[u8], end: usize) {
        for byte in bytes.get(self.read..end).unwrap_or_default() {
            let in_word = !byte.is_ascii_whitespace();
            self.words += usize::from(in_word && !self.ends_in_word);
            self.ends_in_word = in_word;
            self.has_value |= byte.is_ascii_alphanumeric() || !byte.is_ascii() || *byte == b'<';
        }
        self.read = end;
    }
}

/// Whether something in a text can separate commands.
#[must_use]
pub fn may_go_on(text: &str) -> bool {
    text.contains([';', '|', '&', '`', '$', '\n', '\r', '<', '>', '\\'])
}

/// Whether a text is a command line by itself.
fn begins_command(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
    let word = text.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
    let more = text.len() > word.len();
    text.starts_with("#!")
        || text.starts_with("$ ")
        || (more && (is_command(word.as_bytes()) || is_tool(word)))
}

#[cfg(test)]
mod tests;
