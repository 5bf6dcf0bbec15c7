//! Hosts that are not on the public internet, in every notation.
//!
//! The check of a host is the one for upstreams: [`crate::target::not_public`].

use std::collections::HashMap;

use url::Host;

use super::{Found, is_value};
use crate::shield::rule::Detector;
use crate::target::not_public;

/// Bytes of a host's name in the DNS, with room for another notation.
const MAX_HOST_BYTES: usize = 300;

/// Names of clouds' metadata services, and suffixes under which a name is the address in it, or an address
/// that changes, or shows its owner that a request arrived.
const METADATA_NAMES: [&str; 7] = [
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "metadata.azure.internal",
    "metadata.packet.net",
    "metadata.tencentyun.com",
    "rancher-metadata",
];
const WILDCARD_SUFFIXES: [&str; 28] = [
    ".nip.io",
    ".sslip.io",
    ".xip.io",
    ".localtest.me",
    ".lvh.me",
    ".vcap.me",
    ".1u.ms",
    ".r3dir.me",
    ".rbndr.us",
    ".localh.st",
    ".localho.st",
    ".traefik.me",
    ".backname.io",
    ".lacolhost.com",
    ".fuf.me",
    ".yoogle.com",
    ".local.gd",
    ".127-0-0-1.org.uk",
    ".rebind.network",
    ".oastify.com",
    ".burpcollaborator.net",
    ".interact.sh",
    ".oast.fun",
    ".oast.live",
    ".oast.pro",
    ".oast.site",
    ".dnslog.cn",
    ".ceye.io",
];

/// Names of the public DNS that are internal addresses, and names of the host itself.
const LOCAL_NAMES: [&str; 15] = [
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "yoogle.com",
    "localh.st",
    "localho.st",
    "fuf.me",
    "local.gd",
    "127-0-0-1.org.uk",
    "localhost.localdomain",
    "localhost6",
    "loopback",
    "ip6-localhost",
    "ip6-loopback",
];

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

/// Folders of the system: a `file:` URL into one of them reads what no agent needs.
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
    // What such a client sends can have spaces in it.
    let fetches = |scheme: &&str| {
        let is_whole = whole || scheme.len() > 3 && !scheme.ends_with(':');
        let begins = begins_with(trimmed, scheme);
        begins && (is_whole || trimmed.get(scheme.len()..).is_some_and(|it| it.starts_with("//")))
    };
    if FETCHING.iter().any(fetches) {
        found(Detector::AddressDisguised, 0..text.len());
    }
    if whole {
        if reads_system(trimmed) {
            found(Detector::AddressDisguised, 0..text.len());
        }
        if let Some(finding) = second_host(trimmed) {
            found(finding, 0..text.len());
        }
        if let Some(finding) = bare(trimmed) {
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

fn begins_with(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|it| it.eq_ignore_ascii_case(start))
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

/// The host that another reader of a URL finds: behind a `@` that comes after what some take for the end of the host.
fn second_host(url: &str) -> Option<Detector> {
    let url = url.get(..url.floor_char_boundary(MAX_HOST_BYTES))?;
    let (_, rest) = url.split_once("://")?;
    let (first, second) = rest.split_once('@')?;
    const ENDS: [char; 6] = ['\\', '#', '?', ' ', ';', '&'];
    // An address of mail in a path or a query is no host. A user's name can have an escape.
    let before = first.split(ENDS).next().filter(|name| !name.contains('%'));
    let behind = second.split('@').next_back().filter(|_| first.contains(ENDS));
    let internal = |host: &str| judge(host_of(host), false);
    before.and_then(internal).or_else(|| internal(behind?)).map(|_| Detector::AddressDisguised)
}

/// Schemes of databases and queues. Developers' settings name them on the own host.
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

/// Whether a URL's text before `//` is a scheme that a client of URLs follows, or none. The URL may be a parameter of
/// another one.
fn is_followed(before: &str) -> bool {
    let scheme = before.trim().strip_suffix(':').unwrap_or_default();
    let begin = scheme.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let scheme = scheme.get(begin..).unwrap_or_default().to_ascii_lowercase();
    !SERVICES.contains(&scheme.as_str())
}

/// What kind of host a value without a scheme names. Only whole addresses and known names count: `10.5` is a number.
fn bare(value: &str) -> Option<Detector> {
    let scheme = ["http:", "https:", "ftp:"].into_iter().find(|scheme| begins_with(value, scheme));
    let rest = value.get(scheme.map_or(0, str::len)..).unwrap_or_default();
    let host = host_of(rest.trim_start_matches(['/', '\\']));
    if scheme.is_some() {
        return judge(host, false);
    }
    if value.len() > 2
        && let Ok(address) = value.parse::<std::net::Ipv6Addr>()
    {
        let internal =
            not_public(&Host::Ipv6(address)).filter(|it| *it != "an address for documentation");
        return internal.map(|_| Detector::AddressInternal);
    }
    let parts = || name_of(host).split('.');
    // `2026.01.02.03` is a version.
    let odd = |part: &str| part.starts_with("0x") || part.starts_with("0X");
    let octal = |part: &str| part.len() > 2 && part.starts_with('0');
    if parts().count() == 4 && (parts().any(odd) || parts().next().is_some_and(octal)) {
        return wrapped(name_of(host)).and_then(|_| judge(host, false));
    }
    let name = name_of(host);
    let known = METADATA_NAMES.iter().chain(&LOCAL_NAMES).chain(&["localhost"]);
    let address = name.split('.').count() == 4 && name.parse::<std::net::Ipv4Addr>().is_ok();
    (address
        || is_wildcard(name)
        || host.starts_with("[")
        || (known.into_iter().any(|it| it.eq_ignore_ascii_case(name)) && value != "metadata"))
        .then(|| judge(host, false))?
}

/// Whether a name ends with one of the suffixes. Most differ in the last letter.
fn is_wildcard(name: &str) -> bool {
    let last = name.bytes().next_back();
    let ends = |suffix: &&str| suffix.bytes().next_back() == last && name.ends_with(*suffix);
    WILDCARD_SUFFIXES.iter().any(ends)
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    host.split(':').next().unwrap_or_default()
}

/// The host with which the rest of a URL begins, user names included.
fn host_of(rest: &str) -> &str {
    let rest = rest.get(..rest.floor_char_boundary(MAX_HOST_BYTES + 1)).unwrap_or_default();
    let end = rest.find(|c: char| {
        matches!(
            c,
            '/' | '\\'
                | '?'
                | '#'
                | '"'
                | '\''
                | '<'
                | '>'
                | ')'
                | '`'
                | ','
                | ';'
                | '|'
                | '{'
                | '}'
        ) || c.is_whitespace()
            || c.is_control()
    });
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

/// Top-level domains of local networks. Some are not reserved for them, but not registered either.
const LOCAL_DOMAINS: [&str; 9] =
    ["localhost", "local", "internal", "localdomain", "intranet", "lan", "corp", "svc", "cluster"];

/// Whether a name has a percent-encoded character. No client writes one.
fn has_escape(name: &str) -> bool {
    name.as_bytes()
        .windows(3)
        .any(|it| it.first() == Some(&b'%') && it.iter().skip(1).all(u8::is_ascii_hexdigit))
}

/// Whether clients read a character of a host's name as another one (UTS 46): circled, mathematical and full-width letters
/// and digits, and dots of other scripts. No name is registered with them.
const fn is_lookalike(c: char) -> bool {
    matches!(c, '\u{2460}'..='\u{24ff}' | '\u{3002}' | '\u{ff01}'..='\u{ff61}' | '\u{1d400}'..='\u{1d7ff}')
}

/// Whether a name holds an internal address as its labels or within one: `127.0.0.1.evil.example`, `10-0-0-1.evil.example`.
fn embeds_address(name: &str) -> bool {
    if !name.contains(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let parts: Vec<&str> = name.split(['.', '-']).collect();
    parts.windows(4).any(|four| {
        let joined = four.join(".");
        joined.parse::<std::net::Ipv4Addr>().is_ok_and(|address| {
            address.octets() != [0, 0, 0, 0]
                && not_public(&Host::Ipv4(address))
                    .is_some_and(|what| what != "an address for documentation")
        })
    })
}

/// The IPv4 address that a parser reads which does not check for an overflow: `425.510.425.510`, `7147006462`.
fn wrapped(host: &str) -> Option<std::net::Ipv4Addr> {
    let number = |part: &str| -> Option<u128> {
        let lower = part.to_ascii_lowercase();
        let lower = lower.trim_start_matches(['o', 'q']);
        let (digits, radix) = match lower.as_bytes() {
            [b'0', b'x', ..] => (lower.get(2..)?, 16),
            [b'0', b'o', ..] => (lower.get(2..)?, 8),
            [b'0', _, ..] => (lower.get(1..)?, 8),
            _ => (lower, 10),
        };
        u128::from_str_radix(digits, radix).ok()
    };
    let parts: Vec<u128> = host.split('.').map(number).collect::<Option<_>>()?;
    match parts.as_slice() {
        [whole] => Some(std::net::Ipv4Addr::from(*whole as u32)),
        [a, b, c, d] => Some(std::net::Ipv4Addr::new(*a as u8, *b as u8, *c as u8, *d as u8)),
        _ => None,
    }
}

/// What kind of host an authority names.
fn judge(authority: &str, decoded: bool) -> Option<Detector> {
    if authority.is_empty() || authority.len() > MAX_HOST_BYTES {
        return None;
    }
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let has_port = host.ends_with(|c: char| c.is_ascii_digit()) && host.matches(':').count() == 1;
    let host = match host.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (!host.contains(':') || host.ends_with(']')) =>
        {
            host
        }
        // Some readers stop at the first character that is no digit.
        Some(_) if !host.starts_with('[') && host.matches(':').count() == 1 => {
            host.split(':').next().unwrap_or(host)
        }
        _ => host,
    };
    // The zone of an address says on which interface it is.
    let unzoned = host.split_once('%').filter(|(address, _)| address.starts_with('['));
    let unzoned = unzoned.map(|(address, _)| [address, "]"].concat());
    let host = unzoned.as_deref().unwrap_or(host);
    let host = host.trim_end_matches('.');
    // Most hosts are names of letters. They need no parser.
    let last = host.rsplit('.').next().unwrap_or_default();
    let plain = host.is_ascii()
        && last.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !host.contains('%');
    let lower = host.to_ascii_lowercase();
    if METADATA_NAMES.contains(&lower.as_str()) {
        return Some(Detector::AddressMetadata);
    }
    if LOCAL_NAMES.contains(&lower.as_str()) || is_wildcard(&lower) {
        return Some(Detector::AddressDisguised);
    }
    if host.contains(is_lookalike) || (!decoded && has_escape(host)) {
        return Some(Detector::AddressDisguised);
    }
    if plain {
        if embeds_address(&lower) {
            return Some(Detector::AddressDisguised);
        }
        let local = LOCAL_DOMAINS.contains(&last.to_ascii_lowercase().as_str())
            || (!host.contains('.') && has_port);
        return local.then_some(if decoded {
            Detector::AddressDisguised
        } else {
            Detector::AddressInternal
        });
    }
    let bare: Host<String> = match Host::parse(host) {
        Ok(parsed) => parsed,
        Err(_) => match wrapped(host) {
            Some(address) => {
                let hidden = not_public(&Host::Ipv4(address)).is_some();
                return hidden.then_some(Detector::AddressDisguised);
            }
            None => Host::Ipv6(host.parse().ok()?),
        },
    };
    let borrowed = match &bare {
        Host::Domain(name) => Host::Domain(name.as_str()),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    };
    let Some(what) = not_public(&borrowed) else {
        // Nobody writes an address on the internet as one number, or in hexadecimal or octal digits, to be understood.
        return match &bare {
            Host::Ipv4(address) if address.to_string() != host => Some(Detector::AddressDisguised),
            _ => None,
        };
    };
    if matches!(borrowed, Host::Domain(_)) && what == "a name without a dot" {
        return None;
    }
    let written = match &bare {
        Host::Ipv4(address) => address.to_string() == host,
        Host::Ipv6(address) => {
            address.to_ipv4_mapped().is_none() && what != "an IPv4 address in another form"
        }
        Host::Domain(name) => *name == lower,
    };
    if let Host::Ipv4(address) = &bare
        && (address.octets() == [169, 254, 169, 254]
            || address.octets() == [168, 63, 129, 16]
            || address.octets() == [100, 100, 100, 200]
            || address.octets() == [192, 0, 0, 192]
            || address.octets() == [169, 254, 170, 2])
    {
        return Some(Detector::AddressMetadata);
    }
    if what == "an address for documentation" && user.is_none() {
        return None;
    }
    Some(if written && !decoded && user.is_none() {
        Detector::AddressInternal
    } else {
        Detector::AddressDisguised
    })
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
