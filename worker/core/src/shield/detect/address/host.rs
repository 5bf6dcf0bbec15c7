//! What kind of host a text names.
//!
//! The check of a host is the one for upstreams: [`crate::target::not_public`].

use url::Host;

use super::punycode;
use crate::decode::letters;
use crate::shield::detect::{begins_with, ends_with, position};
use crate::shield::rule::Detector;
use crate::target::not_public;

/// Bytes of a host's name in the DNS, with room for another notation.
pub const MAX_HOST_BYTES: usize = 300;

/// Names of clouds' metadata services.
const METADATA_NAMES: [&str; 10] = [
    "metadata.google.internal",
    "metadata",
    "instance-data",
    "metadata.goog",
    "metadata.platformequinix.com",
    "api.metadata.cloud.ibm.com",
    "metadata.azure.internal",
    "metadata.packet.net",
    "metadata.tencentyun.com",
    "rancher-metadata",
];

/// Addresses of clouds' metadata services.
const METADATA_V4: [[u8; 4]; 8] = [
    [169, 254, 169, 254],
    [169, 254, 170, 2],
    [169, 254, 170, 23],
    [169, 254, 0, 23],
    [169, 254, 42, 42],
    [168, 63, 129, 16],
    [100, 100, 100, 200],
    [192, 0, 0, 192],
];

/// The same in IPv6.
const METADATA_V6: [[u16; 8]; 3] = [
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
    [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23],
    [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254],
];

/// Domains whose names resolve to the address in the name or to an address that changes, or whose owner learns of each
/// request. They have two or three labels, and are sorted.
const WILDCARD_DOMAINS: [&str; 36] = [
    "127-0-0-1.org.uk",
    "1u.ms",
    "42foo.com",
    "backname.io",
    "burpcollaborator.net",
    "ceye.io",
    "ddev.site",
    "dnslog.cn",
    "fuf.me",
    "interact.sh",
    "interactsh.com",
    "lacolhost.com",
    "lndo.site",
    "local.gd",
    "localh.st",
    "localho.st",
    "localtest.me",
    "lvh.me",
    "nip.io",
    "oast.fun",
    "oast.live",
    "oast.me",
    "oast.online",
    "oast.pro",
    "oast.site",
    "oastify.com",
    "r3dir.me",
    "rbndr.us",
    "rebind.network",
    "requestrepo.com",
    "smackaho.st",
    "sslip.io",
    "traefik.me",
    "vcap.me",
    "xip.io",
    "yoogle.com",
];

/// Names of the public DNS that are internal addresses, and names of the host itself.
const LOCAL_NAMES: [&str; 20] = [
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
    "lndo.site",
    "ddev.site",
    "smackaho.st",
    "42foo.com",
    "kubernetes.default",
];

/// The known names without a dot. A value without any sign of an address is a host only if it has one of them.
pub fn words() -> impl Iterator<Item = &'static str> {
    known_names().filter(|name| !name.contains('.'))
}

fn known_names() -> impl Iterator<Item = &'static str> {
    METADATA_NAMES.into_iter().chain(LOCAL_NAMES).chain(["localhost"])
}

/// Bytes of the shortest of these names.
const MIN_NAME_BYTES: usize = 6;

/// Names of one label that stand for any host in examples, or that a program wrote because it had none.
const PLACEHOLDERS: [&str; 34] = [
    "address",
    "bar",
    "base",
    "baseurl",
    "baz",
    "blank",
    "domain",
    "dummy",
    "endpoint",
    "example",
    "foo",
    "foobar",
    "host",
    "hostname",
    "invalid",
    "link",
    "name",
    "none",
    "ns",
    "null",
    "path",
    "placeholder",
    "schema",
    "schemas",
    "server",
    "servername",
    "site",
    "some",
    "test",
    "undefined",
    "uri",
    "url",
    "website",
    "www",
];

/// The same, as the beginning of a longer name.
const PLACEHOLDER_STARTS: [&str; 6] = ["your", "my-", "my_", "example", "some-", "test-"];

/// What kind of host a value without a scheme names. Only whole addresses and known names count: `10.5` is a number.
pub fn bare(value: &str) -> Option<Detector> {
    let scheme = ["http:", "https:", "ftp:"].into_iter().find(|scheme| begins_with(value, scheme));
    let rest = value.get(scheme.map_or(0, str::len)..).unwrap_or_default();
    let host = host_of(rest.trim_start_matches(['/', '\\']));
    if scheme.is_some() {
        return judge(host, false).or_else(|| {
            let internal =
                rest.starts_with("//") && !host.contains('@') && is_service(name_of(host));
            (internal && !begins_with(value, "ftp:")).then_some(Detector::AddressInternal)
        });
    }
    // The zone of an address says on which interface it is.
    let unzoned = value.split('%').next().unwrap_or_default();
    if value.contains(':')
        && value.len() > 2
        && let Ok(address) = unzoned.parse::<std::net::Ipv6Addr>()
    {
        if METADATA_V6.contains(&address.segments()) {
            return Some(Detector::AddressMetadata);
        }
        let internal =
            not_public(&Host::Ipv6(address)).filter(|it| *it != "an address for documentation");
        return internal.map(|_| Detector::AddressInternal);
    }
    let name = name_of(host).trim_end_matches('.');
    let parts = || name.split('.');
    // `2026.01.02.03` is a version. The others are read as addresses (`inet_aton`), also with two or three parts.
    let odd = |part: &str| part.starts_with("0x") || part.starts_with("0X");
    let octal = |part: &str| part.len() > 2 && part.starts_with('0');
    let is_address = match parts().count() {
        4 => {
            parts().any(odd)
                || parts().next().is_some_and(octal)
                || name.parse::<std::net::Ipv4Addr>().is_ok()
        }
        2 | 3 => parts().any(odd) || name.starts_with("127.") && name.len() < value.len(),
        _ => false,
    };
    if is_address && parts().all(|part| number(part).is_some()) {
        return judge(host, false);
    }
    bare_name(value)
}

/// The same, of the value of a field that holds a host. Elsewhere these notations mean something else: `2130706433` is an
/// id, and `kim@localhost` is the address of a mailbox.
pub fn of_field(value: &str) -> Option<Detector> {
    let host = host_of(value);
    if let Some((user, host)) = host.rsplit_once('@') {
        let is_mailbox = begins_with(user, "mailto:");
        return if is_mailbox { None } else { bare(host).or_else(|| of_field(host)) };
    }
    let name = name_of(host).trim_end_matches('.');
    let is_internal = |number: u128| {
        INTERNAL_NUMBERS.contains(&number)
            && not_public(&Host::Ipv4(std::net::Ipv4Addr::from(number as u32))).is_some()
    };
    let is_host = name.starts_with("127.")
        || name.split('.').any(|label| begins_with(label, "xn--"))
        || number(name).is_some_and(is_internal);
    if is_host { judge(host, false) } else { None }
}

/// Whole numbers that are addresses of networks and hosts. Smaller ones are ports and counts, larger ones are ids.
const INTERNAL_NUMBERS: std::ops::Range<u128> = 1 << 24..224 << 24;

/// The same, of a value without a scheme and without an address.
pub fn bare_name(value: &str) -> Option<Detector> {
    if value.len() < MIN_NAME_BYTES && !value.contains('[') {
        return None;
    }
    let value = value.trim_start_matches(['/', '\\']);
    let host = host_of(value);
    let name = name_of(host).trim_end_matches('.');
    // It is an ordinary word, and the name of many folders.
    if name.eq_ignore_ascii_case("metadata") {
        let rest = value.get(name.len()..).unwrap_or_default();
        let path = rest.trim_start_matches(['.', ':', '8', '0']);
        return begins_with(path, "/computemetadata").then_some(Detector::AddressMetadata);
    }
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    let is_known = || {
        LOCAL_NAMES.iter().any(|it| is(it) && *it != "kubernetes.default")
            || METADATA_NAMES.iter().any(is)
            || ends_with(name, &[".localhost"])
            || is(&"localhost")
            || is_wildcard(name)
    };
    // Brackets are around an address of version 6. JSON and Markdown have others.
    let is_address = host.starts_with('[') && host.contains([':', '@']);
    (is_address || is_known()).then(|| judge(host, false))?
}

/// Whether a name of one label is a service of the network, and not a placeholder.
fn is_service(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.len() > 1
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
        && !PLACEHOLDERS.contains(&name.as_str())
        && !PLACEHOLDER_STARTS.iter().any(|start| name.starts_with(start))
}

/// Whether a name is in one of the domains.
fn is_wildcard(name: &str) -> bool {
    let ends = name.rmatch_indices('.').filter_map(|(dot, _)| name.get(dot + 1..));
    let mut ends = ends.skip(1).take(2);
    ends.any(|end| position(&WILDCARD_DOMAINS, |known| known, end.as_bytes()).is_some())
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

/// The same, which count only behind a dot: alone, they are folders of `file:` URLs.
const LOCAL_SUFFIXES: [&str; 5] = [".consul", ".home", ".home.arpa", ".intra", ".private"];

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

/// A part of an IPv4 address, in decimal, octal or hexadecimal digits.
fn number(part: &str) -> Option<u128> {
    let lower = part.to_ascii_lowercase();
    let digits = lower.trim_start_matches(['o', 'q']);
    let is_octal = digits.len() < lower.len();
    let lower = digits;
    let (digits, radix) = match lower.as_bytes() {
        [b'0', b'x', ..] => (lower.get(2..)?, 16),
        [b'0'..=b'7', ..] if is_octal => (lower, 8),
        [b'0', b'o', ..] => (lower.get(2..)?, 8),
        [b'0', _, ..] => (lower.get(1..)?, 8),
        _ => (lower, 10),
    };
    u128::from_str_radix(digits, radix).ok()
}

/// The IPv4 address that a parser without a check for overflow reads: `425.510.425.510`, `7147006462`.
fn wrapped(host: &str) -> Option<std::net::Ipv4Addr> {
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
    let colons = host.matches(':').count();
    let has_port = host.ends_with(|c: char| c.is_ascii_digit()) && colons > 0;
    let host = match host.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit())
                && (!host.contains(':') || host.ends_with(']')) =>
        {
            host
        }
        // Some readers stop at the first character that is not a digit, or at the second colon.
        Some(_)
            if !host.starts_with('[')
                && (colons == 1 || host.parse::<std::net::Ipv6Addr>().is_err()) =>
        {
            name_of(host)
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
        // The name of a service that every cluster has.
        let plain = lower == "kubernetes.default" && !decoded;
        return Some(if plain { Detector::AddressInternal } else { Detector::AddressDisguised });
    }
    // No client writes such a name for a host of the public internet.
    if let Some(name) = punycode::decoded(&lower)
        && let name = letters::folded(&name)
        && name.is_ascii()
        && !name.contains("xn--")
        && judge(&name, false).is_some()
    {
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
            || LOCAL_SUFFIXES.iter().any(|suffix| lower.ends_with(suffix))
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
                // A long number alone can be an id. Four parts are an address, so the overflow hides it.
                let hidden = host.contains('.') || not_public(&Host::Ipv4(address)).is_some();
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
    // Neither is the name of a host inside.
    let is_no_name = matches!(what, "a name without a dot" | "a name with an empty part");
    if matches!(borrowed, Host::Domain(_)) && is_no_name {
        return None;
    }
    let written = match &bare {
        Host::Ipv4(address) => address.to_string() == host,
        Host::Ipv6(address) => {
            address.to_ipv4_mapped().is_none() && what != "an IPv4 address in another form"
        }
        Host::Domain(name) => *name == lower,
    };
    let is_metadata = match &bare {
        Host::Ipv4(address) => METADATA_V4.contains(&address.octets()),
        Host::Ipv6(address) => {
            METADATA_V6.contains(&address.segments())
                || address.to_ipv4().is_some_and(|it| METADATA_V4.contains(&it.octets()))
        }
        Host::Domain(_) => false,
    };
    if is_metadata {
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
