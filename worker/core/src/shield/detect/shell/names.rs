//! Names of commands that are known, and what must follow them.

use crate::shield::detect::{Dictionary, position};

/// What must follow a name, because many names are words of prose too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// No word of prose: anything can follow.
    Words,
    /// Nothing, or an argument that is not a plain word.
    Plain,
    /// A word of prose: nothing, or an argument that prose does not have.
    Prose,
    /// A word of prose, or the name of a language: an argument that prose does not have.
    Argument,
}

use Kind::{Argument, Plain, Prose, Words};

/// Commands that attacks run, sorted.
static COMMANDS: Dictionary<Kind> = Dictionary::new(&[
    ("apt-get", Words),
    ("aria2c", Words),
    ("arp", Plain),
    ("ash", Argument),
    ("attrib", Words),
    ("awk", Words),
    ("base64", Words),
    ("bash", Words),
    ("bcdedit", Words),
    ("bitsadmin", Words),
    ("bunzip2", Words),
    ("busybox", Words),
    ("bzip2", Words),
    ("cacls", Words),
    ("calc", Plain),
    ("cat", Words),
    ("certutil", Words),
    ("chgrp", Words),
    ("chmod", Words),
    ("chown", Words),
    ("chroot", Words),
    ("cmd", Words),
    ("cmdkey", Words),
    ("copy", Argument),
    ("cp", Words),
    ("crontab", Words),
    ("cscript", Words),
    ("csh", Words),
    ("curl", Words),
    ("cut", Prose),
    ("dash", Argument),
    ("date", Argument),
    ("dd", Words),
    ("del", Argument),
    ("df", Plain),
    ("dig", Words),
    ("dir", Words),
    ("diskutil", Plain),
    ("dmesg", Plain),
    ("doas", Words),
    ("docker", Argument),
    ("dpkg", Words),
    ("driverquery", Words),
    ("echo", Words),
    ("egrep", Words),
    ("env", Plain),
    ("esentutl", Words),
    ("ethtool", Words),
    ("eval", Argument),
    ("exec", Argument),
    ("expr", Plain),
    ("false", Prose),
    ("fgrep", Words),
    ("find", Prose),
    ("findstr", Words),
    ("fish", Argument),
    ("forfiles", Words),
    ("fping", Words),
    ("free", Argument),
    ("fsutil", Words),
    ("ftp", Plain),
    ("gawk", Words),
    ("gcc", Plain),
    ("gci", Words),
    ("gdb", Words),
    ("get-childitem", Words),
    ("get-content", Words),
    ("get-process", Words),
    ("getent", Words),
    ("getmac", Words),
    ("gpresult", Words),
    ("grep", Words),
    ("gunzip", Words),
    ("gzip", Words),
    ("head", Prose),
    ("hexdump", Words),
    ("history", Prose),
    ("host", Prose),
    ("hostname", Plain),
    ("hping3", Words),
    ("htop", Words),
    ("icacls", Words),
    ("id", Plain),
    ("iex", Words),
    ("ifconfig", Plain),
    ("invoke-expression", Words),
    ("invoke-webrequest", Words),
    ("ip", Argument),
    ("ipconfig", Plain),
    ("iptables", Words),
    ("irm", Words),
    ("iwr", Words),
    ("java", Argument),
    ("journalctl", Words),
    ("kill", Prose),
    ("killall", Words),
    ("klist", Words),
    ("ksh", Words),
    ("kubectl", Words),
    ("last", Argument),
    ("ldd", Words),
    ("less", Argument),
    ("ln", Plain),
    ("ls", Words),
    ("lsblk", Words),
    ("lsof", Words),
    ("ltrace", Words),
    ("lua", Plain),
    ("lynx", Argument),
    ("masscan", Words),
    ("md5sum", Words),
    ("mkdir", Words),
    ("mkfifo", Words),
    ("mknod", Words),
    ("modprobe", Words),
    ("more", Argument),
    ("mount", Prose),
    ("move", Argument),
    ("msbuild", Words),
    ("mshta", Words),
    ("msiexec", Words),
    ("mspaint", Plain),
    ("mutt", Plain),
    ("mv", Words),
    ("mysql", Plain),
    ("mysqldump", Words),
    ("nbtstat", Words),
    ("nc", Words),
    ("ncat", Words),
    ("net", Argument),
    ("netcat", Words),
    ("netsh", Words),
    ("netstat", Plain),
    ("nl", Words),
    ("nltest", Words),
    ("nmap", Words),
    ("node", Prose),
    ("nohup", Words),
    ("notepad", Plain),
    ("nsenter", Words),
    ("nslookup", Words),
    ("od", Words),
    ("openssl", Words),
    ("osascript", Words),
    ("passwd", Plain),
    ("pathping", Words),
    ("perl", Words),
    ("pgrep", Words),
    ("php", Words),
    ("pidof", Words),
    ("ping", Words),
    ("pip", Words),
    ("pkexec", Words),
    ("pkill", Words),
    ("poweroff", Words),
    ("powershell", Words),
    ("printenv", Words),
    ("printf", Words),
    ("ps", Words),
    ("psexec", Words),
    ("psql", Words),
    ("pstree", Words),
    ("pwd", Plain),
    ("pwsh", Words),
    ("python", Words),
    ("quser", Words),
    ("qwinsta", Words),
    ("reboot", Plain),
    ("reg", Argument),
    ("regedit", Words),
    ("regsvr32", Words),
    ("rev", Prose),
    ("rm", Words),
    ("rmdir", Words),
    ("robocopy", Words),
    ("route", Prose),
    ("rsync", Words),
    ("ruby", Words),
    ("runas", Words),
    ("rundll32", Words),
    ("sc", Argument),
    ("schtasks", Words),
    ("scp", Words),
    ("sed", Words),
    ("set", Prose),
    ("setfacl", Words),
    ("sftp", Words),
    ("sh", Words),
    ("sha256sum", Words),
    ("shutdown", Prose),
    ("sleep", Prose),
    ("socat", Words),
    ("sort", Prose),
    ("sqlite3", Words),
    ("ss", Plain),
    ("ssh", Words),
    ("sshpass", Words),
    ("strace", Words),
    ("strings", Prose),
    ("su", Plain),
    ("sudo", Words),
    ("sysctl", Words),
    ("sysinfo", Plain),
    ("systemctl", Words),
    ("systeminfo", Plain),
    ("tac", Words),
    ("tail", Prose),
    ("takeown", Words),
    ("tar", Words),
    ("taskkill", Words),
    ("tasklist", Words),
    ("tclsh", Words),
    ("tcpdump", Words),
    ("tcsh", Words),
    ("tee", Words),
    ("telnet", Words),
    ("tftp", Words),
    ("timeout", Prose),
    ("touch", Words),
    ("tr", Plain),
    ("traceroute", Words),
    ("tracert", Words),
    ("true", Prose),
    ("type", Plain),
    ("uname", Words),
    ("uniq", Plain),
    ("unlink", Words),
    ("unshare", Words),
    ("unzip", Words),
    ("uptime", Plain),
    ("useradd", Words),
    ("usermod", Words),
    ("usleep", Words),
    ("ver", Prose),
    ("vi", Plain),
    ("vssadmin", Words),
    ("w", Prose),
    ("wc", Words),
    ("wevtutil", Words),
    ("wget", Words),
    ("where", Argument),
    ("whereis", Plain),
    ("which", Prose),
    ("who", Prose),
    ("whoami", Words),
    ("whois", Words),
    ("winrm", Words),
    ("wmic", Words),
    ("wscript", Words),
    ("xargs", Words),
    ("xcopy", Words),
    ("xxd", Words),
    ("yum", Words),
    ("zcat", Words),
    ("zsh", Words),
]);

/// What must follow a command, if a word is the name of one that attacks run: alone, after a path, or with `.exe`.
pub fn kind(word: &[u8]) -> Option<Kind> {
    let name = word.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
    let name = match name.split_last_chunk::<4>() {
        Some((name, suffix)) if suffix.eq_ignore_ascii_case(b".exe") => name,
        _ => name,
    };
    kind_of_name(name)
}

/// The same of a name that is alone.
pub fn kind_of_name(name: &[u8]) -> Option<Kind> {
    // `HEAD` is not a command.
    if !name.iter().any(u8::is_ascii_lowercase) {
        return None;
    }
    // `python3.11`
    let versioned = name.starts_with(b"python") || name.starts_with(b"pip");
    let last = || name.iter().rposition(u8::is_ascii_alphabetic);
    let end = if versioned { last().map_or(0, |at| at + 1) } else { name.len() };
    let name = name.get(..end).unwrap_or(name);
    COMMANDS.get(name).or_else(|| is_cmdlet(name).then_some(Words))
}

/// Whether a word is the name of a command that attacks run.
pub fn is_command(word: &[u8]) -> bool {
    kind(word).is_some()
}

/// What a command does with the text that a pipe brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// Nothing but change it.
    Changes,
    /// It can run code, open files or use the network.
    Acts,
}

use Filter::{Acts, Changes};

/// Commands that read what a pipe brings, sorted. Developers' pipelines end with them.
static FILTERS: Dictionary<Filter> = Dictionary::new(&[
    ("awk", Acts),
    ("base64", Acts),
    ("bash", Acts),
    ("bc", Acts),
    ("cat", Acts),
    ("column", Changes),
    ("cut", Changes),
    ("grep", Changes),
    ("gunzip", Acts),
    ("head", Changes),
    ("hexdump", Acts),
    ("jq", Changes),
    ("ksh", Acts),
    ("less", Acts),
    ("more", Acts),
    ("mysql", Acts),
    ("nc", Acts),
    ("nl", Acts),
    ("node", Acts),
    ("od", Acts),
    ("openssl", Acts),
    ("perl", Acts),
    ("php", Acts),
    ("psql", Acts),
    ("python", Acts),
    ("python3", Acts),
    ("rev", Acts),
    ("rg", Changes),
    ("ruby", Acts),
    ("sed", Acts),
    ("sh", Acts),
    ("sort", Changes),
    ("ssh", Acts),
    ("sudo", Acts),
    ("tac", Acts),
    ("tail", Changes),
    ("tar", Acts),
    ("tee", Changes),
    ("tr", Changes),
    ("uniq", Changes),
    ("wc", Changes),
    ("xargs", Acts),
    ("xxd", Acts),
    ("zsh", Acts),
]);

/// Whether a command reads what a pipe brings.
pub fn is_filter(word: &[u8]) -> bool {
    FILTERS.get(word).is_some()
}

/// Whether this is the name of a command that can do nothing but change the text that a pipe brings.
pub fn only_filters(name: &[u8]) -> bool {
    FILTERS.get(name) == Some(Changes) && name.iter().all(u8::is_ascii_lowercase)
}

/// Whether a command shows something about the machine without an argument.
pub fn is_probe(word: &[u8]) -> bool {
    const PROBES: [&str; 14] = [
        "getmac",
        "id",
        "ifconfig",
        "ipconfig",
        "ls",
        "lsblk",
        "netstat",
        "printenv",
        "ps",
        "pwd",
        "systeminfo",
        "tasklist",
        "uname",
        "whoami",
    ];
    position(&PROBES, |known| known, word).is_some()
}

/// Whether a word follows `net`, `reg`, `sc`, `ip` or `docker`.
pub fn is_subcommand(word: &[u8]) -> bool {
    const WORDS: [&str; 23] = [
        "accounts",
        "add",
        "addr",
        "config",
        "create",
        "delete",
        "exec",
        "export",
        "group",
        "import",
        "link",
        "localgroup",
        "ps",
        "query",
        "route",
        "run",
        "save",
        "session",
        "start",
        "stop",
        "use",
        "user",
        "view",
    ];
    position(&WORDS, |known| known, word).is_some()
}

/// Verbs of PowerShell's commands, and nouns that attacks use.
const VERBS: [&str; 34] = [
    "add", "clear", "compress", "copy", "disable", "enable", "expand", "export", "foreach", "get",
    "import", "install", "invoke", "measure", "new", "out", "receive", "register", "remove",
    "rename", "restart", "save", "select", "send", "set", "show", "sort", "start", "stop", "test",
    "unblock", "update", "where", "write",
];
const NOUNS: [&str; 33] = [
    "acl",
    "alias",
    "archive",
    "childitem",
    "command",
    "computer",
    "content",
    "eventlog",
    "expression",
    "file",
    "help",
    "history",
    "host",
    "item",
    "itemproperty",
    "job",
    "json",
    "localuser",
    "location",
    "log",
    "module",
    "netipconfiguration",
    "object",
    "output",
    "process",
    "psremoting",
    "restmethod",
    "scheduledtask",
    "service",
    "variable",
    "webrequest",
    "wmiobject",
    "xml",
];

/// Whether a word is a command of PowerShell: a verb, and a noun that is known or has a capital letter within.
pub fn is_cmdlet(word: &[u8]) -> bool {
    let Some(dash) = word.iter().position(|byte| *byte == b'-') else { return false };
    let (verb, noun) = word.split_at(dash);
    let noun = noun.get(1..).unwrap_or_default();
    position(&VERBS, |known| known, verb).is_some()
        && noun.iter().all(u8::is_ascii_alphanumeric)
        && (position(&NOUNS, |known| known, noun).is_some() || has_inner_capital(noun))
}

/// Whether a noun is written like `ChildItem` or `ADUser`.
pub fn has_inner_capital(noun: &[u8]) -> bool {
    let inner = noun.get(1..).unwrap_or_default();
    noun.first().is_some_and(u8::is_ascii_uppercase)
        && inner.iter().any(u8::is_ascii_uppercase)
        && inner.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        assert!(COMMANDS.words().is_sorted_by_key(|command| command.0));
        assert!(FILTERS.words().is_sorted_by_key(|filter| filter.0));
        assert!(VERBS.is_sorted() && NOUNS.is_sorted());
    }
}
