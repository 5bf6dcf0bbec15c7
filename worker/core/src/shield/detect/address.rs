//! Hosts that are not on the public internet, in every notation.
//!
//! The check of a host is the one for upstreams: [`crate::target::not_public`].

use url::Host;

use super::{Found, is_value};
use crate::shield::rule::Detector;
use crate::target::not_public;

/// Bytes of a host's name in the DNS, with room for another notation.
const MAX_HOST_BYTES: usize = 300;

/// Names of clouds' metadata services, and suffixes under which a name stands for the address in it.
const METADATA_NAMES: [&str; 7] = [
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "metadata.azure.internal",
    "metadata.packet.net",
    "metadata.tencentyun.com",
    "rancher-metadata",
];
const WILDCARD_SUFFIXES: [&str; 6] =
    [".nip.io", ".sslip.io", ".xip.io", ".localtest.me", ".lvh.me", ".vcap.me"];
const LOCAL_NAMES: [&str; 7] = [
    "localtest.me",
    "lvh.me",
    "vcap.me",
    "lacolhost.com",
    "yoogle.com",
    "ip6-localhost",
    "ip6-loopback",
];

/// Schemes of clients that fetch anything.
const FETCHING: [&str; 8] =
    ["gopher:", "dict:", "file:///etc", "file:///proc", "tftp:", "jar:http", "jar:ftp", "netdoc:"];

/// Reports the hosts in a text.
pub fn find(text: &str, decoded: bool, found: Found<'_>) {
    let whole = is_value(text);
    let trimmed = text.trim();
    if whole {
        if FETCHING.iter().any(|scheme| {
            trimmed.get(..scheme.len()).is_some_and(|it| it.eq_ignore_ascii_case(scheme))
        }) {
            found(Detector::AddressDisguised, 0..text.len());
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
        let follows_scheme = before.ends_with(':') || (whole && before.trim().is_empty());
        if !follows_scheme {
            continue;
        }
        // Browsers take any number of slashes of either kind.
        let rest = text.get(begin..).unwrap_or_default().trim_start_matches(['/', '\\']);
        let host = host_of(rest);
        at = text.len() - rest.len() + host.len();
        let Some(finding) = judge(host, decoded) else { continue };
        let finding = match finding {
            Detector::AddressInternal if !whole || !is_web(before) => Detector::AddressMentioned,
            finding => finding,
        };
        found(finding, begin - 2..at);
    }
}

/// Whether a URL's text before `//` is a scheme of the web, or none.
fn is_web(before: &str) -> bool {
    let scheme = before.trim().to_ascii_lowercase();
    ["", "http:", "https:", "ws:", "wss:", "ftp:"].contains(&scheme.as_str())
        || scheme.ends_with("=http:")
        || scheme.ends_with("=https:")
}

/// What kind of host a value without a scheme names. Only whole addresses and known names count: `10.5` is a number.
fn bare(value: &str) -> Option<Detector> {
    let host = host_of(value);
    let name = host.split(':').next().unwrap_or_default();
    let known = METADATA_NAMES.iter().chain(&LOCAL_NAMES).chain(&["localhost"]);
    let address = name.split('.').count() == 4 && name.parse::<std::net::Ipv4Addr>().is_ok();
    let wildcard = WILDCARD_SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    (address
        || wildcard
        || host.starts_with("[")
        || (known.into_iter().any(|it| it.eq_ignore_ascii_case(name)) && value != "metadata"))
        .then(|| judge(host, false))?
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
    });
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

/// What kind of host an authority names.
fn judge(authority: &str, decoded: bool) -> Option<Detector> {
    if authority.is_empty() || authority.len() > MAX_HOST_BYTES {
        return None;
    }
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let host = match host.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (!host.contains(':') || host.ends_with(']')) =>
        {
            host
        }
        _ => host,
    };
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
    if LOCAL_NAMES.contains(&lower.as_str())
        || WILDCARD_SUFFIXES.iter().any(|suffix| lower.ends_with(suffix))
    {
        return Some(Detector::AddressDisguised);
    }
    if plain {
        let local =
            matches!(last.to_ascii_lowercase().as_str(), "localhost" | "local" | "internal");
        return local.then_some(if decoded {
            Detector::AddressDisguised
        } else {
            Detector::AddressInternal
        });
    }
    let bare: Host<String> = match Host::parse(host) {
        Ok(parsed) => parsed,
        Err(_) => Host::Ipv6(host.parse().ok()?),
    };
    let borrowed = match &bare {
        Host::Domain(name) => Host::Domain(name.as_str()),
        Host::Ipv4(address) => Host::Ipv4(*address),
        Host::Ipv6(address) => Host::Ipv6(*address),
    };
    let what = not_public(&borrowed)?;
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
        ] {
            assert_eq!(finds(text), None, "{text}");
        }
    }
}
