//! URLs as values: what their beginning says, and where readers of URLs disagree about the host.

use super::host::{MAX_HOST_BYTES, host_of, judge};
use crate::shield::detect::begins_with;
use crate::shield::rule::Detector;

/// Schemes of clients that fetch anything, and of wrappers that read or run what they fetch. One that ends with a colon
/// begins words too, so it counts only in a value, or before `//`.
const FETCHING: [&str; 30] = [
    "gopher:",
    "dict:",
    "tftp:",
    "jar:",
    "netdoc:",
    "ldap://",
    "ldaps://",
    "ldapi:",
    "sftp://",
    "php://",
    "phar:",
    "expect:",
    "zip://",
    "glob://",
    "ogg://",
    "rar://",
    "ssh2.",
    "compress.zlib:",
    "compress.bzip2:",
    "url:",
    "finger://",
    "local_file:",
    "local-file:",
    "scp://",
    "smb://",
    "view-source:",
    "rmi://",
    "iiop:",
    "corbaname:",
    "http+unix:",
];

/// The same, which count only in a value.
const FETCHING_VALUES: [&str; 18] = [
    "php:/",
    "php:filter/",
    "unix:/",
    "npipe:/",
    "npipe:\\",
    "http://unix:/",
    "https://unix:/",
    "msl:/",
    "mvg:/",
    "ephemeral:/",
    "concat:/",
    "concat:http",
    "concat:file",
    "subfile:",
    "subfile,",
    "corbaloc:",
    "ftp+unix:",
    "https+unix:",
];

/// Schemes that clients of URLs follow.
const FOLLOWED: [&str; 6] = ["http:", "https:", "ftp:", "ftps:", "ws:", "wss:"];

/// Bytes of a text that decide whether it is a URL.
const MAX_BEGIN_BYTES: usize = 48;

/// Folders of the system: no agent needs a `file:` URL into one of them.
const SYSTEM_FOLDERS: [&str; 14] = [
    "etc/",
    "proc/",
    "dev/",
    "sys/",
    "root/",
    "boot",
    "var/run/",
    "var/log/",
    "run/secrets",
    "windows",
    "winnt",
    "c:/windows",
    "c|/windows",
    "c:/boot",
];

/// The same behind a host, whose other folders can be shares.
const HOST_FOLDERS: [&str; 5] = ["etc/", "proc/", "root/", "var/run/", "var/log/"];

/// Files and folders with secrets, in any folder.
const SECRET_PARTS: [&str; 10] = [
    ".env",
    ".env.local",
    ".env.production",
    ".ssh",
    ".aws",
    ".kube",
    ".netrc",
    ".npmrc",
    ".git-credentials",
    "id_rsa",
];

/// Whether a tab or a line break is a character that readers of URLs leave out (WHATWG URL, section 4.4).
const fn is_break(c: char) -> bool {
    matches!(c, '\t' | '\r' | '\n')
}

/// Whether a text begins with a scheme that clients follow, and a slash.
#[must_use]
pub fn begins_as_url(text: &str) -> bool {
    let text = text.trim_start();
    // Most texts begin with another letter.
    if !text.starts_with(['h', 'H', 'f', 'F', 'w', 'W']) {
        return false;
    }
    let begin = text.get(..text.floor_char_boundary(MAX_BEGIN_BYTES)).unwrap_or_default();
    let follows = |text: &str| {
        let slash = |scheme: &str| matches!(text.as_bytes().get(scheme.len()), Some(b'/' | b'\\'));
        FOLLOWED.iter().any(|scheme| slash(scheme) && begins_with(text, scheme))
    };
    // Most texts have no break.
    if begin.bytes().any(|byte| is_break(char::from(byte))) {
        follows(&begin.replace(is_break, ""))
    } else {
        follows(begin)
    }
}

/// Whether a text begins with a scheme that fetches anything. What such a client sends can have spaces in it.
pub fn fetches(text: &str, whole: bool) -> bool {
    // Each scheme begins with a letter, and each but `ssh2.` has one of these signs. Most values are told from them by that.
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    if !begins || !text.contains([':', ',']) && !begins_with(text, "ssh2.") {
        return false;
    }
    let fetches = |scheme: &&str| {
        let is_whole = whole || scheme.len() > 3 && !scheme.ends_with(':');
        let begins = begins_with(text, scheme);
        begins && (is_whole || text.get(scheme.len()..).is_some_and(|it| it.starts_with("//")))
    };
    FETCHING.iter().any(fetches)
        || whole && FETCHING_VALUES.iter().any(|scheme| begins_with(text, scheme))
        // `dns:///a.example` is a name of gRPC.
        || whole && begins_with(text, "dns://") && !begins_with(text, "dns:///")
}

/// Whether the first parameter of a URL is a URL that fetches anything.
pub fn passes_fetching(text: &str) -> bool {
    text.split_once('=').is_some_and(|(_, value)| fetches(value, false))
}

/// Whether a URL reads a folder of the system, or a file with secrets. Readers take any number of slashes of either
/// kind.
pub fn reads_system(url: &str) -> bool {
    if !begins_with(url, "file:") {
        return false;
    }
    let rest = url.get(5..).unwrap_or_default().replace('\\', "/");
    let slashless = rest.trim_start_matches('/');
    let path = ["localhost", "127.0.0.1"].iter().find_map(|host| slashless.strip_prefix(host));
    let path = path.unwrap_or(slashless).trim_start_matches('/');
    let behind_host = rest.strip_prefix("//").filter(|rest| !rest.starts_with('/'));
    let behind_host = behind_host.and_then(|rest| rest.split_once('/')).map(|(_, path)| path);
    SYSTEM_FOLDERS.iter().any(|folder| begins_with(path, folder))
        || behind_host.is_some_and(|it| HOST_FOLDERS.iter().any(|folder| begins_with(it, folder)))
        || path.split(['/', '?', '#']).any(|part| SECRET_PARTS.contains(&part))
}

/// The finding for a URL whose host or scheme is written with tabs or line breaks.
pub fn broken(text: &str) -> Option<Detector> {
    let begin = text.get(..text.floor_char_boundary(MAX_HOST_BYTES))?;
    // A byte is found faster than a character.
    let end = begin.bytes().position(|byte| is_break(char::from(byte)))?;
    let first = begin.get(..end)?;
    let begins_a_url = |line: &str| FOLLOWED.iter().any(|scheme| begins_with(line, scheme));
    // A list of URLs, one a line.
    if begins_a_url(first) && begin.split(is_break).skip(1).any(begins_a_url) {
        return None;
    }
    let host = |text: &str| {
        let (_, rest) = text.split_once(':')?;
        Some(host_of(rest.trim_start_matches(['/', '\\'])).to_owned())
    };
    let before = host(first).unwrap_or_default();
    let joined: String = begin.chars().filter(|c| !is_break(*c)).collect();
    let host = host(&joined).filter(|host| *host != before)?;
    match judge(&host, false)? {
        Detector::AddressMetadata => Some(Detector::AddressMetadata),
        // The host before the break is found without this.
        _ => judge(&before, false).is_none().then_some(Detector::AddressDisguised),
    }
}

/// Whether some readers find an internal host in a URL with an `@`. Readers disagree about a URL such as `a#@b`: some
/// end the host at the `#`, others take the text after the last `@`. So all parts are judged. `whole`: the text is a
/// URL to its end.
pub fn second_host(url: &str, whole: bool) -> bool {
    const ENDS: [char; 6] = ['\\', '#', '?', ' ', ';', '&'];
    let url = url.get(..url.floor_char_boundary(MAX_HOST_BYTES)).unwrap_or_default();
    // Most values have no `@`.
    if !url.contains('@') {
        return false;
    }
    let Some((_, rest)) = url.split_once("://") else { return false };
    let Some((first, second)) = rest.split_once('@') else { return false };
    let internal = |host: &str| judge(host_of(host), false).is_some();
    if !whole {
        // A mail address has a name before the `@`.
        let mut before = first;
        return second.split('@').any(|part| {
            let no_name = before.is_empty() || before.ends_with(ENDS);
            before = part;
            no_name && internal(part)
        });
    }
    // A mail address in a path or a query is not a host. A user's name can have an escape, and a password can be a
    // number.
    let user = first.split(ENDS).next().unwrap_or_default();
    let name = user.split(':').next().unwrap_or_default();
    let is_host = name.contains('.') || internal(name);
    if is_host && !user.contains('%') && internal(user) {
        return true;
    }
    if first.contains(ENDS) && second.split('@').next_back().is_some_and(internal) {
        return true;
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let parts = authority.matches('@').count();
    authority.split('@').take(parts).skip(1).any(internal)
}
