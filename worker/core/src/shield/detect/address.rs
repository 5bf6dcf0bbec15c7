//! Hosts that are not on the public internet, in every notation.
//!
//! This file finds the hosts in a text. `host` judges a host.

mod host;

use std::collections::HashMap;

use self::host::{MAX_HOST_BYTES, bare, bare_name, host_of, judge};
use super::{Found, begins_with, is_value};
use crate::shield::rule::Detector;

/// Schemes of clients that fetch anything, and of wrappers that read or run what they fetch.
const FETCHING: [&str; 24] = [
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
    "url:",
    "finger://",
    "local_file:",
    "scp://",
    "smb://",
    "view-source:",
];

/// Folders of the system: no agent needs a `file:` URL into one of them.
const SYSTEM_FOLDERS: [&str; 13] = [
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
    "c:/boot",
];

/// Different hosts of one text that are judged, without plain names: more than a list of servers has. Each costs as much
/// as some fifty bytes of text.
const MAX_HOSTS: usize = 1_024;

/// Reports the hosts in a text. Returns whether all of them were judged.
pub fn find(text: &str, decoded: bool, found: Found<'_>) -> bool {
    let (mut judged, mut all) = (HashMap::<&str, Option<Detector>>::new(), true);
    let whole = is_value(text);
    let trimmed = text.trim();
    // Most values have neither, and so no scheme and no address.
    let marked = text.bytes().any(|byte| matches!(byte, b':' | b'.'));
    // What such a client sends can have spaces in it.
    let fetches = |scheme: &&str| {
        let is_whole = whole || scheme.len() > 3 && !scheme.ends_with(':');
        let begins = begins_with(trimmed, scheme);
        begins && (is_whole || trimmed.get(scheme.len()..).is_some_and(|it| it.starts_with("//")))
    };
    if marked && FETCHING.iter().any(fetches) {
        found(Detector::AddressDisguised, 0..text.len());
    }
    if whole {
        if marked && reads_system(trimmed) {
            found(Detector::AddressDisguised, 0..text.len());
        }
        if marked && let Some(finding) = second_host(trimmed) {
            found(finding, 0..text.len());
        }
        let finding = if marked { bare(trimmed) } else { bare_name(trimmed) };
        if let Some(finding) = finding {
            found(finding, 0..text.len());
        }
    }
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(next) =
        bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'/'))
    {
        at += next + 1;
        if bytes.get(at) != Some(&b'/') {
            continue;
        }
        let begin = at + 1;
        at = begin;
        let before = text.get(..begin - 2).unwrap_or_default();
        let follows_scheme =
            before.ends_with(':') || (whole && (before.ends_with('=') || before.trim().is_empty()));
        if !follows_scheme {
            continue;
        }
        // Browsers take any number of slashes of either kind.
        let rest = text.get(begin..).unwrap_or_default().trim_start_matches(['/', '\\']);
        let host = host_of(rest);
        at = text.len() - rest.len() + host.len();
        let finding = if is_plain(host) {
            judge(host, decoded)
        } else if let Some(finding) = judged.get(host) {
            *finding
        } else if judged.len() < MAX_HOSTS {
            *judged.entry(host).or_insert_with(|| judge(host, decoded))
        } else {
            all = false;
            continue;
        };
        let Some(finding) = finding else { continue };
        let finding = match finding {
            Detector::AddressInternal if !whole || !is_followed(before) => {
                Detector::AddressMentioned
            }
            finding => finding,
        };
        found(finding, begin - 2..at);
    }
    all
}

/// Whether a host is a name without digits, as most are. It costs little.
fn is_plain(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_part = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'-');
    last.bytes().all(|byte| byte.is_ascii_alphabetic()) && host.bytes().all(is_part)
}

/// Whether a URL reads a folder of the system. Readers take any number of slashes of either kind.
fn reads_system(url: &str) -> bool {
    if !begins_with(url, "file:") {
        return false;
    }
    let path = url.get(5..).unwrap_or_default().trim_start_matches(['/', '\\']);
    let path = ["localhost", "127.0.0.1"].iter().find_map(|host| path.strip_prefix(host));
    let path = path.unwrap_or(url.get(5..).unwrap_or_default()).trim_start_matches(['/', '\\']);
    SYSTEM_FOLDERS.iter().any(|folder| begins_with(&path.replace('\\', "/"), folder))
}

/// The finding for a URL with an `@` in which some readers find an internal host. Readers disagree about a URL such as
/// `a#@b`: some end the host at the `#`, others take the text after the last `@`. So both parts are judged.
fn second_host(url: &str) -> Option<Detector> {
    let url = url.get(..url.floor_char_boundary(MAX_HOST_BYTES))?;
    let (_, rest) = url.split_once("://")?;
    let (first, second) = rest.split_once('@')?;
    const ENDS: [char; 6] = ['\\', '#', '?', ' ', ';', '&'];
    // A mail address in a path or a query is not a host. A user's name can have an escape.
    let before = first.split(ENDS).next().filter(|name| !name.contains('%'));
    let behind = second.split('@').next_back().filter(|_| first.contains(ENDS));
    let internal = |host: &str| judge(host_of(host), false);
    before.and_then(internal).or_else(|| internal(behind?)).map(|_| Detector::AddressDisguised)
}

/// Schemes of databases and queues. Settings of developers name such a service on their own host.
const SERVICES: [&str; 14] = [
    "amqp",
    "amqps",
    "cassandra",
    "kafka",
    "mongodb",
    "mqtt",
    "mysql",
    "mariadb",
    "nats",
    "postgres",
    "postgresql",
    "redis",
    "sqlserver",
    "tcp",
];

/// Whether the text before `//` in a URL is empty, or a scheme that clients of URLs follow. The URL may be a parameter
/// of another one.
fn is_followed(before: &str) -> bool {
    let scheme = before.trim().strip_suffix(':').unwrap_or_default();
    let begin = scheme.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let scheme = scheme.get(begin..).unwrap_or_default().to_ascii_lowercase();
    !SERVICES.contains(&scheme.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str) -> Option<Detector> {
        let mut first = None;
        find(text, false, &mut |detector, _| first = first.or(Some(detector)));
        first
    }

    #[test]
    fn an_internal_host_is_found_in_every_notation() {
        for (text, expected) in [
            ("http://127.0.0.1/", Detector::AddressInternal),
            ("http://10.0.0.5:8080/admin", Detector::AddressInternal),
            ("http://localhost", Detector::AddressInternal),
            ("//localhost/x", Detector::AddressInternal),
            ("http://2130706433/", Detector::AddressDisguised),
            ("http://0177.0.0.1/", Detector::AddressDisguised),
            ("http://0x7f.1/", Detector::AddressDisguised),
            ("http://127.1", Detector::AddressDisguised),
            ("http://[::1]:80/", Detector::AddressInternal),
            ("http://[::ffff:127.0.0.1]/", Detector::AddressDisguised),
            ("http://evil.example@127.0.0.1/", Detector::AddressDisguised),
            ("http://127.0.0.1.nip.io/", Detector::AddressDisguised),
            ("http://169.254.169.254/latest/meta-data/", Detector::AddressMetadata),
            ("http://169.254.169.254./", Detector::AddressMetadata),
            ("http://metadata.google.internal/", Detector::AddressMetadata),
            ("169.254.169.254", Detector::AddressMetadata),
            ("http://192.0.0.192/latest/", Detector::AddressMetadata),
            ("http://ip6-localhost/", Detector::AddressDisguised),
            ("the service at http://10.0.0.5/ is down", Detector::AddressMentioned),
            ("gopher://127.0.0.1:6379/_x", Detector::AddressDisguised),
            ("dict://127.0.0.1:6379/SET a b", Detector::AddressDisguised),
            ("file:\\\\\\etc\\hosts", Detector::AddressDisguised),
            ("file://localhost/proc/1/environ", Detector::AddressDisguised),
            ("http:127.0.0.1", Detector::AddressInternal),
            ("\\\\127.0.0.1\\c$", Detector::AddressInternal),
            ("http://425.510.425.510/", Detector::AddressDisguised),
            ("http://7147006462/", Detector::AddressDisguised),
            ("http://3627734734/", Detector::AddressDisguised),
            ("http://0xd8.0x3a.0xd6.0xe3/", Detector::AddressDisguised),
            ("0x7f.0x0.0x0.0x1", Detector::AddressDisguised),
            ("0177.0.0.1", Detector::AddressDisguised),
            ("::ffff:127.0.0.1", Detector::AddressInternal),
            ("http://[fe80::1%25eth0]/", Detector::AddressInternal),
            ("http://127.0.0.1.evil.example/", Detector::AddressDisguised),
            ("http://10-0-0-1.evil.example/", Detector::AddressDisguised),
            ("http://evil.example#@127.0.0.1/", Detector::AddressDisguised),
            ("http://127.0.0.1:80@evil.example/", Detector::AddressDisguised),
            ("http://localhost:+80x", Detector::AddressInternal),
            ("http://queue:8080/", Detector::AddressInternal),
            ("http://ⓔⓧⓐⓜⓟⓛⓔ.com/", Detector::AddressDisguised),
            ("http://８.8.8。8/", Detector::AddressDisguised),
            ("http://evil%2eexample/", Detector::AddressDisguised),
            ("http://a.example/?next=//127.0.0.1", Detector::AddressInternal),
            ("imap://127.0.0.1:143/", Detector::AddressInternal),
            ("postgres://localhost:5432/a", Detector::AddressMentioned),
        ] {
            assert_eq!(finds(text), Some(expected), "{text}");
        }
        for text in [
            "https://example.com/a",
            "http://8.8.8.8/",
            "v1.2.3",
            "10:30",
            "// a comment",
            "a//b",
            "main",
            "example.com",
            "2026.01.02.03",
            "url: the link",
            "std::",
            "file:///home/kim/report.txt",
            "https://a.example/?mail=kim@10.example",
            "https://a.example/1.2.3.4",
            "https://bücher.example/",
            "https://kim%40mail.example@example.com/",
            "http://%s/a",
            "https://пример.example/",
            "https://a.example/ｂ",
            "v10-0-0-1",
        ] {
            assert_eq!(finds(text), None, "{text}");
        }
    }
}
