//! What kind of host a text names.
//!
//! The check of a host is the one for upstreams: [`crate::target::not_public`].

use url::Host;

use crate::shield::detect::begins_with;
use crate::shield::rule::Detector;
use crate::target::not_public;

/// Bytes of a host's name in the DNS, with room for another notation.
pub const MAX_HOST_BYTES: usize = 300;

/// Names of clouds' metadata services.
const METADATA_NAMES: [&str; 7] = [
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "metadata.azure.internal",
    "metadata.packet.net",
    "metadata.tencentyun.com",
    "rancher-metadata",
];

/// Suffixes of names that resolve to the address in the name or to an address that changes, or whose owner learns of each
/// request.
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

/// What kind of host a value without a scheme names. Only whole addresses and known names count: `10.5` is a number.
pub fn bare(value: &str) -> Option<Detector> {
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
    if name.split('.').count() == 4 && name.parse::<std::net::Ipv4Addr>().is_ok() {
        return judge(host, false);
    }
    bare_name(value)
}

/// The same, of a value without a scheme and without an address.
pub fn bare_name(value: &str) -> Option<Detector> {
    let host = host_of(value.trim_start_matches(['/', '\\']));
    let name = name_of(host);
    let known = METADATA_NAMES.iter().chain(&LOCAL_NAMES).chain(&["localhost"]);
    (is_wildcard(name)
        || host.starts_with('[')
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
pub fn host_of(rest: &str) -> &str {
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

/// The IPv4 address that a parser without a check for overflow reads: `425.510.425.510`, `7147006462`.
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
pub fn judge(authority: &str, decoded: bool) -> Option<Detector> {
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
        // Some readers stop at the first character that is not a digit.
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
        // The only purpose of writing a public address as one number, or in hexadecimal or octal digits, is to hide
        // it.
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
