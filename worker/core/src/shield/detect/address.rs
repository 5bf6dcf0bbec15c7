//! Hosts that are not on the public internet, in every notation.
//!
//! This file finds the hosts in a text. `host` judges a host. `url` knows what begins a value that is a URL.

mod host;
mod punycode;
mod url;

use std::collections::HashMap;

pub use self::host::words;
use self::host::{bare, bare_name, host_of, judge, of_field};
pub use self::url::begins_as_url;
use self::url::{broken, fetches, passes_fetching, reads_system, second_host};
use super::{Form, Found, ends_with};
use crate::shield::left::HOST;
use crate::shield::rule::Detector;
use crate::shield::signs::{Signed, Signs};

/// Ends of the names of fields whose value is a host, or a URL without a scheme.
const HOST_FIELDS: [&str; 9] =
    ["host", "hostname", "server", "endpoint", "domain", "ip_address", "ipaddress", "url", "uri"];

/// Whether the value of a field with this name is a host, or a URL without a scheme.
#[must_use]
pub fn is_host_field(name: &str) -> bool {
    // Names such as `dbhost` and `webserver` count, so only these words are told apart.
    let is_host = || ends_with(name, &HOST_FIELDS) && !ends_with(name, &["ghost", "observer"]);
    name.eq_ignore_ascii_case("ip") || is_host()
}

/// Whether a value is the number of a version, which can have four parts as an address has.
fn is_version(value: &str, name: Option<&str>) -> bool {
    name.is_some_and(|name| ends_with(name, &["version"]) && !ends_with(name, &["conversion"]))
        && value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Reports the hosts in a text. `value`: it is a single value, of the field with this name.
pub fn find(
    signed: Signed<'_>,
    value: bool,
    decoded: bool,
    name: Option<&str>,
    form: Form,
    found: Found<'_>,
) {
    let text = signed.text;
    let mut judged = HashMap::<&str, Option<Detector>>::new();
    let trimmed = text.trim();
    // Clients accept a URL of any length, and with spaces in its path.
    let is_url = begins_as_url(trimmed);
    let spaced = || trimmed.contains(char::is_whitespace);
    let whole = value || is_url && (form == Form::Argument || !spaced());
    // Most values have neither, and so no scheme and no address.
    let marked = text.bytes().any(|byte| matches!(byte, b':' | b'.'));
    if marked && fetches(trimmed, whole) {
        found(Detector::AddressDisguised, 0..text.len());
    }
    if is_url && let Some(finding) = broken(trimmed) {
        found(finding, 0..text.len());
    }
    if marked && (whole || is_url) && second_host(trimmed, whole) {
        found(Detector::AddressDisguised, 0..text.len());
    }
    if whole {
        // A value that is appended to the host of a URL makes it a user's name.
        let appended = trimmed.strip_prefix('@').filter(|rest| {
            rest.starts_with(|c: char| c == '[' || c.is_ascii_digit()) && bare(rest).is_some()
        });
        if marked && (reads_system(trimmed) || passes_fetching(trimmed) || appended.is_some()) {
            found(Detector::AddressDisguised, 0..text.len());
        }
        let finding = if is_version(trimmed, name) {
            None
        } else if marked {
            bare(trimmed)
        } else {
            bare_name(trimmed)
        };
        let in_host_field = || value && name.is_some_and(is_host_field);
        let finding = finding.or_else(|| if in_host_field() { of_field(trimmed) } else { None });
        if let Some(finding) = finding {
            found(finding, 0..text.len());
        }
    }
    let start = text.len() - text.trim_start().len();
    // Many texts name one host again and again.
    let mut last = ("", None);
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(slash) = signed.next(at, Signs::SLASH) {
        at = slash + 1;
        if bytes.get(at) != Some(&b'/') {
            continue;
        }
        let begin = at + 1;
        at = begin;
        let before = text.get(..begin - 2).unwrap_or_default();
        let follows_scheme =
            before.ends_with(':') || (whole && (before.ends_with('=') || before.len() <= start));
        if !follows_scheme {
            continue;
        }
        // Browsers take any number of slashes of either kind.
        let rest = text.get(begin..).unwrap_or_default().trim_start_matches(['/', '\\']);
        let host = host_of(rest);
        at = text.len() - rest.len() + host.len();
        let finding = if host == last.0 {
            last.1
        } else if is_plain(host) {
            judge(host, decoded)
        } else if let Some(finding) = judged.get(host) {
            *finding
        } else if signed.work.take(HOST) {
            *judged.entry(host).or_insert_with(|| judge(host, decoded))
        } else {
            return;
        };
        last = (host, finding);
        let Some(finding) = finding else { continue };
        let finding = match finding {
            Detector::AddressInternal if !whole || !is_followed(before) => {
                Detector::AddressMentioned
            }
            finding => finding,
        };
        found(finding, begin - 2..at);
    }
}

/// Whether a host is a name without digits, as most are. It costs little.
fn is_plain(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_part = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'-');
    last.bytes().all(|byte| byte.is_ascii_alphabetic()) && host.bytes().all(is_part)
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
    let scheme = before.strip_suffix(':').unwrap_or_default();
    let begin = scheme.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    let scheme = scheme.get(begin..).unwrap_or_default().to_ascii_lowercase();
    !SERVICES.contains(&scheme.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shield::detect::is_value;

    fn finds(text: &str) -> Option<Detector> {
        let mut first = None;
        let report = &mut |detector, _| first = first.or(Some(detector));
        find(text.into(), is_value(text), false, None, Form::of(text), report);
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
            ("0xd8.072.54851", Detector::AddressDisguised),
            ("0x7f.1/admin", Detector::AddressDisguised),
            ("127.1:8080", Detector::AddressDisguised),
            ("http://472.314.470.483/", Detector::AddressDisguised),
            ("@127.0.0.1/", Detector::AddressDisguised),
            ("http://a.example/?to=gopher://b.example/_x", Detector::AddressDisguised),
            ("file:///c|/windows/win.ini", Detector::AddressDisguised),
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
            "127.0.1",
            "0x1.8p3",
            "0177.1234567",
            "@loopback/core",
            "@10",
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

    #[test]
    fn a_host_is_found_however_readers_split_the_url() {
        let padded = ["http://10.0.0.5/?", &"a".repeat(600)].concat();
        for (text, expected) in [
            ("http://foo@127.0.0.1:80@google.com/", Detector::AddressDisguised),
            ("http://1.1.1.1 &@127.0.0.1# @x/", Detector::AddressDisguised),
            ("http://127.0.0.1:11211:80/", Detector::AddressInternal),
            ("http://\t127.0.0.1/", Detector::AddressDisguised),
            ("http:/\t/127.0.0.1", Detector::AddressDisguised),
            ("http://lo\tcalhost/", Detector::AddressDisguised),
            ("ht\ntp://169.254.169.254/", Detector::AddressMetadata),
            ("http://169.254.\r\n169.254/", Detector::AddressMetadata),
            (&padded, Detector::AddressInternal),
            ("http://o177.0.0.1/", Detector::AddressDisguised),
            ("http://vault/v1", Detector::AddressInternal),
            ("https://vault./v1", Detector::AddressInternal),
            ("127.0.0.1.", Detector::AddressInternal),
            ("localhost.", Detector::AddressInternal),
            ("10.0.0.1.NIP.IO", Detector::AddressDisguised),
            ("a.localhost", Detector::AddressInternal),
        ] {
            assert_eq!(finds(text), Some(expected), "{text}");
        }
        let argument = |text: &str| {
            let mut first = None;
            let report = &mut |detector, _| first = first.or(Some(detector));
            find(text.into(), is_value(text), false, None, Form::Argument, report);
            first
        };
        assert_eq!(argument("http://10.0.0.5/a b"), Some(Detector::AddressInternal));
        assert_eq!(finds("http://10.0.0.5/ is down"), Some(Detector::AddressMentioned));
    }

    #[test]
    fn the_name_of_a_field_says_what_its_value_is() {
        let finds = |text: &str, name| {
            let mut first = None;
            let report = &mut |detector, _| first = first.or(Some(detector));
            find(text.into(), true, false, Some(name), Form::of(text), report);
            first
        };
        for text in [
            "127.1",
            "0x7f000001",
            "2130706433",
            "017700000001",
            "root@127.0.0.1",
            "user@10.0.0.1:22",
            "user:pw@localhost/admin",
            "kim@2130706433",
            "fe80::1%eth0",
            "xn--lcalhost-nbh",
        ] {
            assert!(finds(text, "db_host").is_some(), "{text}");
        }
        for (text, name) in [
            ("127.1", "score"),
            ("2130706433", "observer"),
            ("2130706433", "order"),
            ("kim@localhost", "email"),
            ("8.0", "server"),
            ("127", "host"),
            ("1234567890", "server"),
            ("3758096385", "domain"),
            ("kim@corp.example", "server"),
            ("mailto:root@localhost", "url"),
            ("git@git.example:a/b.git", "url"),
            ("xn--bcher-kva.example", "domain"),
            ("10.0.0.1", "version"),
            ("10.0.0.1", "serverVersion"),
        ] {
            assert_eq!(finds(text, name), None, "{name} {text}");
        }
        assert!(finds("10.0.0.1-x", "version").is_none());
        assert!(finds("10.0.0.1:80", "version").is_some());
        assert!(finds("10.0.0.1", "conversion").is_some());
    }

    #[test]
    fn names_and_schemes_are_known() {
        for (text, expected) in [
            ("http://metadata.goog/computeMetadata/v1/", Detector::AddressMetadata),
            ("https://metadata.platformequinix.com/metadata", Detector::AddressMetadata),
            ("http://api.metadata.cloud.ibm.com/", Detector::AddressMetadata),
            ("http://[fd00:ec2::254]/latest/", Detector::AddressMetadata),
            ("http://[fd20:ce::254]/", Detector::AddressMetadata),
            ("fd00:ec2::254", Detector::AddressMetadata),
            ("http://[::ffff:169.254.169.254]/", Detector::AddressMetadata),
            ("http://169.254.170.23/v1/credentials", Detector::AddressMetadata),
            ("http://169.254.0.23/", Detector::AddressMetadata),
            ("http://169.254.42.42/conf", Detector::AddressMetadata),
            ("metadata/computeMetadata/v1/", Detector::AddressMetadata),
            ("http://nas.home.arpa/", Detector::AddressInternal),
            ("http://db.service.consul:8500/", Detector::AddressInternal),
            ("http://a.private/", Detector::AddressInternal),
            ("http://wiki.intra/", Detector::AddressInternal),
            ("http://router.home/", Detector::AddressInternal),
            ("https://kubernetes.default/api", Detector::AddressInternal),
            ("http://x.oast.me/", Detector::AddressDisguised),
            ("http://x.requestrepo.com", Detector::AddressDisguised),
            ("http://app.lndo.site/", Detector::AddressDisguised),
            ("rmi://a.example:1099/x", Detector::AddressDisguised),
            ("iiop://a.example/x", Detector::AddressDisguised),
            ("corbaname:iiop:a.example#x", Detector::AddressDisguised),
            ("dns://a.example/x", Detector::AddressDisguised),
            ("unix:/var/run/docker.sock", Detector::AddressDisguised),
            ("http+unix://%2Fvar%2Frun%2Fdocker.sock/info", Detector::AddressDisguised),
            ("http://unix:/var/run/docker.sock:/info", Detector::AddressDisguised),
            ("npipe:////./pipe/docker_engine", Detector::AddressDisguised),
            ("local-file:///etc/passwd", Detector::AddressDisguised),
            ("php:filter/resource=a", Detector::AddressDisguised),
            ("compress.bzip2:///a", Detector::AddressDisguised),
            ("msl:/tmp/a.msl", Detector::AddressDisguised),
            ("concat:http://a.example/a|file:///etc/passwd", Detector::AddressDisguised),
            ("subfile,,start,0,end,64,,:/etc/passwd", Detector::AddressDisguised),
            ("file://host/etc/passwd", Detector::AddressDisguised),
            ("file:///app/.env", Detector::AddressDisguised),
            ("file:///home/kim/.ssh/id_ed25519", Detector::AddressDisguised),
            // `localhost` with a letter of Cyrillic
            ("http://xn--lcalhost-nbh/", Detector::AddressDisguised),
        ] {
            assert_eq!(finds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn ordinary_values_are_not_found() {
        for text in [
            "http://example/",
            "http://host:port/",
            "http://server/path",
            "https://your-domain/api",
            "https://www",
            "http://undefined/items",
            "http://kim:1234@example.com/",
            "https://a.example/@kim/posts",
            "https://a.example/ was written by @kim",
            "https://ci.example/1 failed, mail root@localhost",
            "https://a.example/x\nhttps://b.example/y",
            "https://a.example/x\n\n10.0.0.5 is its address",
            "metadata",
            "Metadata",
            "metadata:",
            "metadata/labels.json",
            "/metadata/labels.json",
            "kubernetes.default",
            "https://xn--bcher-kva.example/",
            "https://xn--e1afmkfd.example/",
            "php:8.2-fpm",
            "dns:///service.example:443",
            "concat: a, b",
            "unix: a system",
            "jar of honey",
            "file:///srv/etc-backup/a.txt",
            "file:///home/kim/dev/notes.md",
            "file://server/dev/notes.md",
            "file:///home/kim/project/.env.example",
            "home.example",
            "private",
            "http: the protocol",
            "https:",
        ] {
            assert_eq!(finds(text), None, "{text}");
        }
    }
}
