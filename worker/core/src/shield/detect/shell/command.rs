//! One command: where it ends, how it is spelled, and whether what follows it follows commands.

use super::names::{
    Kind, is_cmdlet, is_command, is_filter, is_probe, is_subcommand, kind, kind_of_name,
};
use super::prefix::{is_keyword, known, prefix, spaces};
use crate::shield::detect::{before, is_word};

/// Bytes of a command with its path, as far as it is read. Of a longer path only the end is kept.
const MAX_COMMAND_BYTES: usize = 64;

/// Pieces of a command that have a separator in them. More are a disguise. Other pieces need no limit, because no
/// command is read twice for them.
const MAX_PIECES: usize = 16;

/// Bytes of an argument, as far as it is read.
const MAX_ARGUMENT_BYTES: usize = 64;

/// Bytes of the path of a program.
const MAX_PATH_BYTES: usize = 256;

/// A command that was read.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    pub end: usize,
    pub follows: Follows,
    pub kind: Option<Kind>,
    /// Its spelling hides it: it is in pieces, with wildcards, or without spaces.
    pub disguised: bool,
    /// It reads what a pipe brings.
    pub filter: bool,
    /// It shows something about the machine, without an argument.
    pub probe: bool,
}

/// What follows a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follows {
    /// The end, or a separator.
    Nothing,
    /// An option, a path, a number, or something else that does not follow a word of prose.
    Argument,
    /// A word with a sign or a digit in it.
    Value,
    /// A plain word.
    Word,
}

/// Where a command is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// The separator before it.
    pub separator: u8,
    /// It is at the beginning of the text.
    pub first: bool,
    /// It need not be a known one.
    pub unknown: bool,
    /// It can be a path.
    pub path: bool,
    /// The text has no spaces, so that `+` can be one.
    pub plus: bool,
}

impl Command {
    fn plain(end: usize) -> Self {
        Self {
            end,
            follows: Follows::Argument,
            kind: None,
            disguised: false,
            filter: false,
            probe: false,
        }
    }

    /// Whether it cannot be prose, whatever came before.
    pub fn is_plain(&self) -> bool {
        self.kind.is_some() && self.follows != Follows::Word || self.disguised
    }
}

/// The command at an offset. The text after it must be like the text after commands, because the names of many
/// commands are also ordinary words.
pub fn command(bytes: &[u8], begin: usize, place: Place) -> Option<Command> {
    let rest = bytes.get(begin..)?;
    if !place.unknown && !place.path && is_other_word(rest) {
        return None;
    }
    if matches!(place.separator, b'$' | b'`') && reads_file(rest) {
        let command = Command { kind: Some(Kind::Plain), ..Command::plain(begin + 1) };
        return Some(command);
    }
    let prefix = prefix(rest);
    let after_prefix = (prefix.bytes > 0).then(|| {
        let place = Place { unknown: place.unknown && !prefix.mixed, ..place };
        read(bytes, begin + prefix.bytes, place)
    });
    after_prefix.flatten().or_else(|| read(bytes, begin, place))
}

/// Whether a word begins that is no command, and is not before one. Most words after a separator are such words.
fn is_other_word(rest: &[u8]) -> bool {
    let length = rest.iter().take(MAX_COMMAND_BYTES).take_while(|byte| is_word(**byte)).count();
    let (word, after) = rest.split_at_checked(length).unwrap_or_default();
    let goes_on = match after {
        [b'`', next, ..] => *next == b'`',
        [byte, ..] => b"'\"\\^$/.-?*[]=<>".contains(byte),
        [] => false,
    };
    (1..MAX_COMMAND_BYTES).contains(&length)
        && !goes_on
        && word != b"for"
        && known(word).is_none()
        && kind_of_name(word).is_none()
}

/// `$(</etc/passwd)`
fn reads_file(rest: &[u8]) -> bool {
    let Some(file) = rest.strip_prefix(b"<") else { return false };
    let file = file.get(spaces(file)..).unwrap_or_default();
    matches!(file, [b'/', b'a'..=b'z', ..])
        && [&b"/etc/"[..], b"/proc/", b"/root/", b"/home/", b"/var/", b"/tmp/"]
            .iter()
            .any(|folder| file.starts_with(folder))
}

/// The length of what only a shell writes at the beginning of a command: a loop, a condition of Windows, a class of
/// PowerShell.
fn compound(rest: &[u8]) -> Option<usize> {
    const STARTS: [&[u8]; 6] =
        [b"for /", b"for %", b"for ((", b"if exist ", b"if not exist ", b"if errorlevel "];
    // Most commands begin otherwise.
    if !matches!(rest.first(), Some(b'f' | b'i' | b'[')) {
        return None;
    }
    if let Some(start) = STARTS.iter().find(|start| rest.starts_with(start)) {
        return Some(start.len());
    }
    if let Some(after) = rest.strip_prefix(b"for ") {
        let name = after.iter().take_while(|byte| is_word(**byte)).count();
        let list = after.get(name..)?.strip_prefix(b" in ")?;
        let separates = |byte: &u8| matches!(byte, b';' | b'|' | b'&' | b'`' | b'\n');
        let end = list.iter().take(MAX_ARGUMENT_BYTES).position(separates)?;
        let body = list.get(end..)?.strip_prefix(b";")?;
        return body.get(spaces(body)..)?.starts_with(b"do ").then_some(4);
    }
    let class = rest.strip_prefix(b"[")?;
    let name = class.iter().take(MAX_ARGUMENT_BYTES).take_while(|it| is_word(**it) || **it == b'.');
    let length = name.count();
    (length > 0 && class.get(length..)?.starts_with(b"]::")).then_some(length + 4)
}

fn read(bytes: &[u8], begin: usize, place: Place) -> Option<Command> {
    if let Some(length) = compound(bytes.get(begin..)?) {
        return Some(Command { kind: Some(Kind::Plain), ..Command::plain(begin + length) });
    }
    if !may_begin(*bytes.get(begin)?) {
        return None;
    }
    if place.path
        && let Some(end) = program_path(bytes, begin)
    {
        return Some(Command::plain(end));
    }
    // The shell drops quotes, backslashes and empty variables inside of a word.
    let mut word = [0_u8; MAX_COMMAND_BYTES];
    let mut length = 0;
    let mut end = begin;
    // `separators`: the pieces that have a separator in them.
    let (mut pieces, mut separators, mut quotes) = (0, 0, [0_usize; 2]);
    while let Some(byte) = bytes.get(end).copied() {
        let next = bytes.get(end + 1).copied();
        if is_word(byte) || matches!(byte, b'.' | b'-' | b'?' | b'*' | b'[' | b']') {
            *word.get_mut(length)? = byte;
            length += 1;
        } else if matches!(byte, b'\'' | b'"') {
            if let Some(count) = quotes.get_mut(usize::from(byte == b'"')) {
                *count += 1;
            }
        } else if byte == b'\\'
            && length > 0
            && matches!(next, Some(b'n' | b'r'))
            && !bytes.get(end + 2).copied().is_some_and(is_word)
        {
            // A line break as source code writes it.
            break;
        } else if matches!(byte, b'\\' | b'^')
            && next.is_some_and(|it| it.is_ascii_alphabetic() || it == b'\n' && length > 0)
        {
            pieces += 1;
            separators += usize::from(matches!(next, Some(b'\n' | b'n' | b'r')));
            end += usize::from(next == Some(b'\n'));
        } else if byte == b'$' && matches!(next, Some(b'@' | b'*' | b'1'..=b'9')) {
            pieces += 1;
            end += 1;
        } else if (byte, next) == (b'`', Some(b'`'))
            && length > 0
            && bytes.get(end + 2).is_some_and(|it| goes_on(*it))
        {
            (pieces, separators) = (pieces + 1, separators + 1);
            end += 1;
        } else if bytes.get(end..)?.starts_with(b"$()")
            && length > 0
            && bytes.get(end + 3).is_some_and(|it| goes_on(*it))
        {
            (pieces, separators) = (pieces + 1, separators + 1);
            end += 2;
        } else if byte == b'$' && matches!(next, Some(b'\'' | b'"')) && end == begin {
            pieces += 1;
        } else if byte == b'$'
            && length > 0
            && place.separator != b'`'
            && let Some(after) = empty_variable(bytes, end)
        {
            pieces += 1;
            end = after - 1;
        } else if byte == b'/' {
            if length > MAX_COMMAND_BYTES / 2 {
                length = 0;
            }
            // More slashes in a row are one.
            if word.get(..length)?.last() != Some(&b'/') {
                *word.get_mut(length)? = byte;
                length += 1;
            }
        } else {
            break;
        }
        end += 1;
        if separators > MAX_PIECES {
            let disguised = length <= 2 * pieces;
            return disguised.then_some(Command { disguised, ..Command::plain(end) });
        }
    }
    let mut word = word.get(..length)?;
    let variable = if length == 0 { variable(bytes, begin) } else { None };
    if let Some(after) = variable {
        end = after;
        word = b"$";
    }
    let wild = has_wildcard(word);
    let kind = match kind(word) {
        None if wild || variable.is_some() => Some(Kind::Plain),
        kind => kind,
    };
    let named = length > 1 && word.iter().any(u8::is_ascii_alphabetic);
    if kind.is_none() && !(place.unknown && named && !is_keyword(word)) {
        return None;
    }
    let after = bytes.get(end..).unwrap_or_default();
    // A quote that is not closed within the word is prose or the end of a string.
    let closed = quotes.iter().all(|count| count % 2 == 0);
    let whole = quotes.iter().sum::<usize>() == 2
        && matches!(bytes.get(begin), Some(b'\'' | b'"'))
        && matches!(before(bytes, end), Some(b'\'' | b'"'));
    let pieced = closed && !whole && pieces + quotes.iter().sum::<usize>() > 0;
    let brace = before(bytes, begin) == Some(b'{');
    let spaceless = after.starts_with(b"$IFS")
        || after.starts_with(b"${IFS")
        || after.starts_with(b"<<<")
        || redirects(after)
        || (brace && after.first() == Some(&b','));
    let disguised = length > 1 && (pieced || wild || spaceless);
    let follows = follows(word, kind, after, place);
    let closes = place.separator != b'`'
        || after.contains(&b'`')
        || after.iter().all(|byte| matches!(byte, b' ' | b'\t'));
    (follows.is_some() || disguised && kind.is_some()).then_some(())?;
    closes.then_some(Command {
        end,
        follows: follows.unwrap_or(Follows::Word),
        kind,
        disguised,
        filter: is_filter(word),
        probe: is_probe(word),
    })
}

/// What follows a command of a kind. `None` if it does not follow commands.
fn follows(word: &[u8], kind: Option<Kind>, after: &[u8], place: Place) -> Option<Follows> {
    let plus = place.plus && after.first() == Some(&b'+');
    let spaces = if plus { 1 } else { spaces(after) };
    let rest = after.get(spaces..).unwrap_or_default();
    let next = rest.first().copied();
    if kind == Some(Kind::Argument) {
        return (spaces > 0 && is_argument(argument(rest), word)).then_some(Follows::Argument);
    }
    let separated = spaces > 0;
    match next {
        _ if plus && !is_signed(rest) && kind != Some(Kind::Words) => None,
        None
        | Some(
            b';' | b'|' | b'&' | b'`' | b')' | b'}' | b'\n' | b'\r' | b'#' | b'$' | b'>' | b'<'
            | b'{',
        ) => Some(Follows::Nothing),
        Some(b',') => (kind != Some(Kind::Prose)).then_some(Follows::Nothing),
        Some(b'-' | b'/' | b'~' | b'0'..=b'9' | b'%' | b'*' | b'\\' | b'@' | b':') if separated => {
            Some(Follows::Argument)
        }
        // A line break as source code writes it.
        Some(b'\\') => matches!(rest.get(1), Some(b'n' | b'r')).then_some(Follows::Nothing),
        Some(b'\'' | b'"') => (place.separator != b'`').then_some(Follows::Argument),
        Some(b'.') if separated || word == b"$" => Some(Follows::Argument),
        Some(b'(') if is_cmdlet(word) || matches!(word, b"iex" | b"iwr" | b"irm") => {
            Some(Follows::Argument)
        }
        Some(byte) => {
            let kind = kind?;
            let argument = argument(rest);
            let word = byte.is_ascii_alphanumeric()
                || matches!(byte, b'_' | b'[' | 0x80..)
                || byte == b'+' && rest.get(1).is_some_and(u8::is_ascii_alphabetic);
            if !separated || !word || rest.get(argument.len()) == Some(&b'=') {
                None
            } else if kind == Kind::Prose {
                is_command(argument).then_some(Follows::Word)
            } else if has_sign(argument) {
                Some(Follows::Value)
            } else {
                (kind == Kind::Words || place.first).then_some(Follows::Word)
            }
        }
    }
}

/// The argument at the beginning, without the signs of a sentence at its end.
fn argument(rest: &[u8]) -> &[u8] {
    let length = rest
        .iter()
        .take(MAX_ARGUMENT_BYTES)
        .take_while(|byte| {
            !byte.is_ascii_whitespace()
                && !matches!(byte, b';' | b'|' | b'&' | b'`' | b'<' | b'>' | b')' | b'"' | b'\'')
        })
        .count();
    let argument = rest.get(..length).unwrap_or_default();
    let signs =
        argument.iter().rev().take_while(|byte| matches!(byte, b'.' | b',' | b':' | b'!' | b'?'));
    argument.get(..length - signs.count()).unwrap_or_default()
}

/// Whether an argument has a sign or a digit that words of prose do not have.
fn has_sign(argument: &[u8]) -> bool {
    argument
        .iter()
        .any(|byte| matches!(byte, b'.' | b'/' | b'=' | b':' | b'$' | b'*' | b'\\' | b'0'..=b'9'))
}

/// Whether an option or a path begins.
fn is_signed(rest: &[u8]) -> bool {
    matches!(
        rest,
        [b'-', b'a'..=b'z' | b'A'..=b'Z' | b'-', ..] | [b'/' | b'~', b'a'..=b'z' | b'/', ..]
    )
}

/// Whether an argument follows a command whose name is a word of prose.
fn is_argument(argument: &[u8], word: &[u8]) -> bool {
    is_signed(argument)
        || argument.starts_with(b"./")
        || argument.starts_with(b"../")
        || argument.contains(&b'\\')
        || argument.starts_with(b"*.")
        || is_subcommand(argument)
            && matches!(word, b"net" | b"reg" | b"sc" | b"ip" | b"docker" | b"net.exe" | b"reg.exe")
}

/// Whether a word goes on with this byte after an empty piece. Markdown has backticks after a word.
const fn goes_on(byte: u8) -> bool {
    is_word(byte) || matches!(byte, b'$' | b'`' | b'\'' | b'"' | b'\\')
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
                | b'~'
        )
}

/// The end of the path of a program: in a folder of programs or of temporary files, or with a drive and `.exe`.
fn program_path(bytes: &[u8], begin: usize) -> Option<usize> {
    const FOLDERS: [&[u8]; 9] = [
        b"/tmp/",
        b"/dev/shm/",
        b"/bin/",
        b"/sbin/",
        b"/usr/bin/",
        b"/usr/sbin/",
        b"/usr/local/bin/",
        b"./",
        b"~/",
    ];
    let rest = bytes.get(begin..)?;
    // `. file` runs a file.
    if let [b'.', b' ', file @ ..] = rest {
        return FOLDERS.iter().any(|folder| file.starts_with(folder)).then_some(begin + 1);
    }
    let length = rest
        .iter()
        .take(MAX_PATH_BYTES)
        .take_while(|byte| {
            byte.is_ascii_graphic() && !matches!(byte, b';' | b'|' | b'&' | b'"' | b'\'' | b'`')
        })
        .count();
    let path = rest.get(..length)?;
    if matches!(path, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
        || path.starts_with(b"\\\\")
    {
        let suffix = path.get(path.len().checked_sub(4)?..)?;
        return suffix.eq_ignore_ascii_case(b".exe").then_some(begin + length);
    }
    let folder = FOLDERS.iter().find(|folder| path.starts_with(folder))?;
    let first = path.get(folder.len())?;
    (is_word(*first) || *first == b'.').then_some(begin + length)
}

/// Whether a file is read without a space before it: `</etc/passwd`. A closing tag of HTML is not a file.
fn redirects(after: &[u8]) -> bool {
    let Some(path) = after.strip_prefix(b"</") else { return false };
    let name = path.iter().take_while(|byte| is_word(**byte)).count();
    name > 0 && matches!(path.get(name), Some(b'/' | b'.' | b'?' | b'*'))
}

/// The end of an empty variable within a word: `ca${z}t`.
fn empty_variable(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let is_variable = rest.starts_with(b"${") && !rest.starts_with(b"${IFS");
    let end = is_variable.then(|| variable(bytes, at)).flatten()?;
    bytes.get(end).is_some_and(u8::is_ascii_alphabetic).then_some(end)
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
    // A pattern of files has a suffix: `/usr/share/?.lua`.
    let is_file = parts.clone().next_back().is_some_and(|part| part.contains(&b'.'));
    known && more && !is_file && (is_wild(first) || parts.any(is_wild))
}
