//! Whether a text is a developer's command line, and not a value.

use super::names::{Kind, has_inner_capital, is_command, is_filter, kind};
use crate::shield::detect::{is_word, position, white_space};

/// Whether a text is a command line by itself.
pub fn begins_command(text: &str) -> bool {
    let bytes = text.as_bytes();
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '`');
    let text = without_directive(text);
    if text.starts_with("#!") || text.starts_with("$ ") || is_powershell(text) {
        return true;
    }
    let first = text.get(..white_space(text).unwrap_or(text.len())).unwrap_or_default();
    let word = first.strip_suffix(';').unwrap_or(first);
    if word.strip_prefix('(').is_some_and(is_tool) {
        return true;
    }
    // A line break separates commands.
    let rest = text.get(word.len()..).unwrap_or_default();
    let rest = rest.trim_start_matches([' ', '\t']).as_bytes();
    if rest.is_empty() || word.contains([';', '|', '&']) || is_quoted_command(bytes) {
        return false;
    }
    // A program of the project, and a variable before a program.
    let goes_on = !matches!(rest.first(), Some(b';' | b'|' | b'&' | b'\n' | b'\r'));
    if goes_on && (is_script(word) || assigns(word)) {
        return true;
    }
    if !is_command(word.as_bytes()) && !is_tool(word) {
        return false;
    }
    if is_glued_value(word, rest) {
        return false;
    }
    // One word alone is rather a value, unless it is only a command, or a pipe leads to a filter.
    let is_alone = match word.len() < first.len() {
        true => matches!(word, "ls" | "pwd"),
        false => !needs_argument(word) && kind(word.as_bytes()) != Some(Kind::Argument),
    };
    goes_on || is_alone || pipes_to_filter(rest)
}

/// What is before a command in a Dockerfile and in the file of a pipeline.
const DIRECTIVES: [&str; 6] = ["RUN ", "CMD ", "ENTRYPOINT ", "run: ", "script: ", "command: "];

/// The command line after a directive, and after the options of `RUN`; or else the text itself.
fn without_directive(text: &str) -> &str {
    let item = text.strip_prefix("- ").unwrap_or(text);
    let Some(mut line) = DIRECTIVES.iter().find_map(|it| item.strip_prefix(it)) else {
        return text;
    };
    while line.starts_with("--")
        && let Some((_, after)) = line.split_once(' ')
    {
        line = after;
    }
    line.trim_start_matches(' ')
}

/// Whether a text is one command between backticks, with a path or a number. Markdown has text around it.
pub fn is_quoted_command(bytes: &[u8]) -> bool {
    let [b'`', code @ .., b'`'] = bytes.trim_ascii() else { return false };
    let end = code.iter().position(|byte| !is_word(*byte) && *byte != b'-' && *byte != b'/');
    let Some((word, rest)) = end.and_then(|end| code.split_at_checked(end)) else { return false };
    let rest = rest.trim_ascii_start();
    let argument = match rest {
        [b'/', b'a'..=b'z', ..] | [b'~', b'/', ..] => true,
        [b'-', b'a'..=b'z', ..] => matches!(word, b"id" | b"uname"),
        [b'0'..=b'9', ..] => {
            matches!(word, b"sleep" | b"ping") && !rest.iter().any(u8::is_ascii_whitespace)
        }
        _ => false,
    };
    argument && !code.contains(&b'`') && is_command(word)
}

/// `./build.sh x` or `./configure x`
fn is_script(word: &str) -> bool {
    word.strip_prefix("./").is_some_and(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        !name.contains('.') || name.ends_with(".sh") || name.ends_with(".py")
    })
}

/// `NAME=value`
fn assigns(word: &str) -> bool {
    let value = word.trim_start_matches(|c: char| c.is_ascii_uppercase() || c == '_');
    value.len() < word.len() && value.starts_with('=')
}

/// `find x;id`: two words of prose, and a command without a space before it.
fn is_glued_value(word: &str, rest: &[u8]) -> bool {
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    matches!(word, "find" | "host" | "test" | "time")
        && matches!(rest.get(letters..), Some([b';', next, ..]) if !next.is_ascii_whitespace())
}

fn pipes_to_filter(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"|") else { return false };
    let rest = rest.trim_ascii_start();
    let end = rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
    rest.get(..end).is_some_and(is_filter)
}

/// Whether a text begins with a command of PowerShell, or with a variable of it.
fn is_powershell(text: &str) -> bool {
    let text = text.trim_start_matches('(');
    if let Some(name) = text.strip_prefix('$') {
        let rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        return rest.len() < name.len()
            && matches!(rest.trim_start().as_bytes(), [b'=', ..] | [b'|', b' ', ..])
            && rest.starts_with(' ');
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(text.len());
    let Some((verb, noun)) = text.get(..end).and_then(|word| word.split_once('-')) else {
        return false;
    };
    let is_verb = position(&VERBS, |known| known, verb.as_bytes()).is_some();
    is_verb
        && text.len() > end
        && noun.starts_with(|c: char| c.is_ascii_uppercase())
        && (noun.len() > 3 || has_inner_capital(noun.as_bytes()))
}

/// Verbs with which lines of PowerShell begin, sorted.
const VERBS: [&str; 27] = [
    "add",
    "clear",
    "connect",
    "convertto",
    "copy",
    "enable",
    "enter",
    "export",
    "find",
    "foreach",
    "get",
    "import",
    "install",
    "invoke",
    "join",
    "measure",
    "move",
    "new",
    "out",
    "remove",
    "restart",
    "select",
    "set",
    "start",
    "stop",
    "test",
    "write",
];

/// Whether a word is a command with which developers' command lines begin.
fn is_tool(word: &str) -> bool {
    position(TOOLS, |known| known, word.as_bytes()).is_some()
        && !word.contains(|c: char| c.is_ascii_uppercase())
}

/// Whether a command does nothing without an argument, and its name can be a value.
fn needs_argument(word: &str) -> bool {
    WITH_ARGUMENT.contains(&word)
}

const WITH_ARGUMENT: &[&str] = &[
    "awk", "basename", "black", "comm", "command", "compress", "cut", "declare", "diff", "exec",
    "export", "find", "for", "git", "go", "head", "helm", "host", "hugo", "if", "java", "kill",
    "mount", "net", "node", "perl", "php", "ping", "python", "reg", "rev", "route", "ruby", "seq",
    "set", "shutdown", "sleep", "source", "stat", "strings", "swift", "test", "time", "timeout",
    "touch", "trap", "type", "unset", "until", "vault", "which", "while", "yes", "zip",
];

/// Commands with which developers' command lines begin.
const TOOLS: &[&str] = &[
    "!",
    "(",
    "[",
    "[[",
    "ack",
    "ag",
    "alias",
    "ansible",
    "ansible-playbook",
    "apt",
    "apt-get",
    "aws",
    "az",
    "basename",
    "bat",
    "bazel",
    "bc",
    "black",
    "brew",
    "builtin",
    "bun",
    "bundle",
    "bzcat",
    "cabal",
    "cargo",
    "cd",
    "chattr",
    "clang",
    "clear",
    "cmake",
    "cmp",
    "comm",
    "composer",
    "compress",
    "conda",
    "cpio",
    "ctest",
    "dart",
    "declare",
    "deno",
    "diff",
    "dirname",
    "disown",
    "docker",
    "docker-compose",
    "dotnet",
    "dpkg-query",
    "du",
    "echo",
    "eslint",
    "export",
    "fd",
    "ffmpeg",
    "fg",
    "flake8",
    "flutter",
    "for",
    "fuser",
    "g++",
    "gawk",
    "gcloud",
    "gem",
    "getfacl",
    "gh",
    "git",
    "go",
    "gradle",
    "hatch",
    "helm",
    "heroku",
    "htop",
    "hugo",
    "iconv",
    "if",
    "ifconfig",
    "iostat",
    "java",
    "javac",
    "jest",
    "jobs",
    "jq",
    "kubectl",
    "kustomize",
    "latexmk",
    "ln",
    "lsattr",
    "make",
    "mkdir",
    "mktemp",
    "mvn",
    "mypy",
    "mysqldump",
    "ninja",
    "nox",
    "npm",
    "npx",
    "pandoc",
    "pgrep",
    "pip3",
    "pipx",
    "pkill",
    "pnpm",
    "podman",
    "poetry",
    "popd",
    "pre-commit",
    "prettier",
    "psql",
    "pstree",
    "pushd",
    "pytest",
    "rails",
    "rake",
    "readlink",
    "readonly",
    "rg",
    "rmdir",
    "rpm",
    "rsync",
    "ruff",
    "rustc",
    "rustup",
    "sbt",
    "seq",
    "set",
    "setfacl",
    "shopt",
    "shuf",
    "source",
    "sqlite3",
    "stat",
    "svn",
    "swift",
    "sync",
    "systemctl",
    "terraform",
    "test",
    "time",
    "tmux",
    "tofu",
    "top",
    "tox",
    "trap",
    "tsc",
    "tsort",
    "turbo",
    "ulimit",
    "umask",
    "unset",
    "until",
    "uptime",
    "uv",
    "uvicorn",
    "vagrant",
    "vault",
    "vim",
    "vite",
    "vitest",
    "vmstat",
    "while",
    "wrangler",
    "xcodebuild",
    "yarn",
    "yes",
    "zcat",
    "zgrep",
    "zig",
    "zip",
    "zless",
    "{",
];
