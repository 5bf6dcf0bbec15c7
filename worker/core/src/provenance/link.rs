//! URLs and mail addresses: finding them in texts, and their parts.
//!
//! INVARIANT (one host): the host of a [`Link`] is what every client takes for the host. A URL that clients
//! could read differently (user names, backslashes, line breaks, octal addresses, letters outside of ASCII)
//! has no parts.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::normal::MAX_VALUE_BYTES;

/// Bytes of a host name (RFC 1035).
const MAX_HOST_BYTES: usize = 253;

/// Top-level domains of which clients make links without a scheme or a path. Sorted.
const LINKED_DOMAINS: &[&str] = &[
    "ai", "app", "at", "au", "be", "bid", "biz", "blog", "br", "buzz", "ca", "cc", "cfd", "ch",
    "click", "cloud", "club", "cn", "co", "com", "cyou", "cz", "de", "dev", "digital", "dk", "edu",
    "es", "eu", "example", "fi", "fr", "fun", "gg", "gov", "host", "icu", "ie", "in", "info", "io",
    "it", "jp", "kr", "link", "live", "lol", "ly", "me", "mil", "mom", "net", "news", "nl", "no",
    "nz", "online", "org", "page", "pl", "pro", "pt", "pw", "rest", "ro", "ru", "sa", "sbs", "se",
    "shop", "site", "sk", "space", "store", "su", "support", "tech", "tk", "to", "today", "top",
    "tr", "tv", "ua", "uk", "us", "vip", "website", "work", "world", "xyz", "za", "zone",
];

/// Ends of file names. `report.md/2` is a path, although `md` is a top-level domain. Sorted.
const FILE_EXTENSIONS: &[&str] = &[
    "bak", "bin", "bz", "c", "cfg", "cpp", "css", "csv", "d", "db", "doc", "docx", "env", "exe",
    "gif", "go", "gz", "h", "html", "ico", "ini", "ipynb", "java", "jpeg", "jpg", "js", "json",
    "jsx", "kt", "lock", "log", "md", "mov", "mp", "old", "pdf", "php", "png", "ppt", "pptx", "ps",
    "py", "rb", "rs", "rst", "sh", "so", "sql", "svg", "swift", "tar", "tgz", "toml", "ts", "tsx",
    "txt", "xls", "xlsx", "xml", "yaml", "yml", "zip",
];

/// Schemes with a host that is where the request goes. `javascript://host/` runs a script instead.
const SCHEMES: [&str; 9] = ["", "ftp", "ftps", "git", "http", "https", "sftp", "ssh", "wss"];

/// A URL whose host is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'t> {
    /// The host, with a port that is not the scheme's own. It may be in upper case.
    pub host: &'t str,
    /// Host, path, query and fragment, if the scheme is HTTP's or absent.
    pub place: Option<&'t str>,
    /// Host and path, if the scheme is HTTP's or absent.
    pub page: Option<&'t str>,
    pub path: &'t str,
    pub query: &'t str,
    pub fragment: &'t str,
}

impl<'t> Link<'t> {
    /// The parts of a URL, or of a host with a path. `None` if its host is not certain.
    #[must_use]
    pub fn parse(text: &'t str) -> Option<Self> {
        let is_certain = |byte: u8| byte.is_ascii_graphic() && byte != b'\\' || !byte.is_ascii();
        if !text.bytes().all(is_certain) {
            return None;
        }
        let (scheme, place) = match text.split_once("://") {
            Some((scheme, place)) if is_scheme(scheme) => (scheme, place),
            _ => ("", text.strip_prefix("//").unwrap_or(text)),
        };
        if !SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return None;
        }
        let own_port = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => ":443",
            _ if scheme.eq_ignore_ascii_case("http") => ":80",
            _ => "",
        };
        let end = place.find(['/', '?', '#']).unwrap_or(place.len());
        let (authority, rest) = place.split_at_checked(end)?;
        let host = match authority.strip_suffix(own_port) {
            Some(host) if !own_port.is_empty() => host,
            _ => authority,
        };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (host, "0"),
        };
        if !is_host(name) || port.parse::<u16>().is_err() || port.starts_with('+') {
            return None;
        }
        let (before, fragment) = rest.split_once('#').unwrap_or((rest, ""));
        let (path, query) = before.split_once('?').unwrap_or((before, ""));
        let web = scheme.is_empty() || !own_port.is_empty();
        // Without the port, host and path are not one piece of the text.
        let place = (web && host.len() == authority.len()).then_some(place);
        let page = place.and_then(|place| place.get(..end + path.len()));
        Some(Self { host, place, page, path, query, fragment })
    }

    /// What the query carries: its values, and names that are not plain words, have no value, or are too many,
    /// since names can carry data too.
    pub fn query_values(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        const MAX_PLAIN_NAMES: usize = 8;
        let pairs = self.query.split('&').enumerate();
        let parts = pairs.flat_map(|(at, pair)| match pair.split_once('=') {
            Some((name, value)) => {
                let plain = at < MAX_PLAIN_NAMES && !value.is_empty() && is_plain_name(name);
                [Some(name).filter(|_| !plain), Some(value)]
            }
            None => [Some(pair), None],
        });
        parts.flatten()
    }
}

/// Whether a name of a query is one that APIs have: `q` or `page_size`.
fn is_plain_name(name: &str) -> bool {
    const MAX_NAME_BYTES: usize = 24;
    name.len() <= MAX_NAME_BYTES
        && name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'-'))
}

/// Whether a text begins as a URL does.
#[must_use]
pub fn is_url(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme))
        || text.starts_with("//")
        || is_web(text)
        || is_place(text)
}

fn is_scheme(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(is_part)
}

/// `http:` or `https:`, with which clients go to a host, however many slashes follow.
fn is_web(text: &str) -> bool {
    let starts = |prefix: &str| {
        text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    starts("http:") || starts("https:")
}

/// A host with or without a path, which clients turn into a link.
fn is_place(text: &str) -> bool {
    let end = text.find(['/', '?', '#', ':']).unwrap_or(text.len());
    let Some((host, rest)) = text.split_at_checked(end) else { return false };
    let rest = rest.trim_end_matches(':');
    if !is_name(host) {
        return false;
    }
    let Some((before, last)) = host.trim_end_matches('.').rsplit_once('.') else { return false };
    let www = before.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."));
    let goes_on = match rest.as_bytes() {
        [b':', b'0'..=b'9', ..] | [b'?' | b'#' | b'/', ..] => !is_in(FILE_EXTENSIONS, last),
        [b':', ..] => return false,
        _ => false,
    };
    let alphabetic = last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    (alphabetic && (www || goes_on || is_in(LINKED_DOMAINS, last)))
        || (goes_on && (last.starts_with("xn--") || host.parse::<Ipv4Addr>().is_ok()))
}

/// Whether a sorted list has the name, in any case.
fn is_in(list: &[&str], name: &str) -> bool {
    let lower = || name.bytes().map(|byte| byte.to_ascii_lowercase());
    list.binary_search_by(|listed| listed.bytes().cmp(lower())).is_ok()
}

/// A host in the spelling that every client takes for the same host.
fn is_host(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|it| it.parse::<Ipv6Addr>().is_ok());
    }
    // Clients take a name whose last label is a number, `0x7f` or `0177` for an IPv4 address.
    let last = name.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    if last.starts_with(|first: char| first.is_ascii_digit()) {
        return name.parse::<Ipv4Addr>().is_ok();
    }
    is_name(name)
}

fn is_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label = |label: &str| !label.is_empty() && label.bytes().all(is_part);
    let name = name.strip_suffix('.').unwrap_or(name);
    !name.is_empty() && name.len() <= MAX_HOST_BYTES && name.split('.').all(is_label)
}

/// Whether a text is one mail address, in a form that every mail server reads in the same way.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-');
    let Some((local, domain)) = text.split_once('@') else { return false };
    !local.is_empty()
        && text.len() <= MAX_VALUE_BYTES
        && local.bytes().all(is_part)
        && domain.contains('.')
        && !domain.ends_with('.')
        && is_name(domain)
}

/// Calls `found` with each mail address in a token without spaces, whatever surrounds it.
pub fn each_address<'t>(token: &'t str, found: &mut dyn FnMut(&'t str)) {
    let is_part =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-');
    for (at, _) in token.match_indices('@') {
        let Some((before, after)) = token.as_bytes().split_at_checked(at) else { return };
        let local = before.iter().rev().take_while(|byte| is_part(byte)).count();
        let domain = after.iter().skip(1).take_while(|byte| is_part(byte)).count();
        let address = token.get(at - local..at + 1 + domain).unwrap_or_default();
        let address = address.trim_end_matches(['.', '-', '_', '+']);
        if is_address(address) {
            found(address);
        } else if local == 0
            && let Some(address) = unusual_address(token, at, domain)
        {
            found(address);
        }
    }
}

/// The address around the `@` at an offset, if its name ends with a character that few names have, such as
/// `eve$@evil.example` or `José@evil.example`. `domain`: the bytes that follow the `@`.
fn unusual_address(token: &str, at: usize, domain: usize) -> Option<&str> {
    let is_around = |character: char| {
        matches!(character, '(' | '[' | '{' | '<' | '>' | ',' | ';' | ':' | '/' | '@')
    };
    let name = token.get(..at)?.char_indices().rev().take(MAX_LOCAL_CHARACTERS);
    let (begin, _) = name.take_while(|(_, character)| !is_around(*character)).last()?;
    let host = token.get(at + 1..at + 1 + domain)?.trim_end_matches(['.', '-', '_', '+']);
    let address = token.get(begin..at + 1 + host.len())?;
    (host.contains('.') && is_name(host)).then_some(address)
}

/// Characters before the `@` of an address (RFC 5321).
const MAX_LOCAL_CHARACTERS: usize = 64;

/// Calls `found` with each URL in a token without spaces. Returns whether there was one.
pub fn each_url<'t>(token: &'t str, found: &mut dyn FnMut(&'t str)) -> bool {
    let (mut rest, mut any) = (token, false);
    while let Some(at) = url_start(rest) {
        let Some((_, url)) = rest.split_at_checked(at) else { break };
        let (url, after) = url.split_at_checked(url_bytes(url)).unwrap_or((url, ""));
        let url = url.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', '*']);
        if !url.is_empty() {
            found(url);
            any = true;
        }
        rest = after;
    }
    any
}

/// Where the first URL begins. Reads no further than its first part, so that a token of many URLs is read
/// in linear time.
fn url_start(token: &str) -> Option<usize> {
    let is_edge = |byte: u8| matches!(byte, b'(' | b')' | b',' | b';' | b'=' | b'\'' | b'*' | b'!');
    let mut part_at = 0;
    for (at, byte) in token.bytes().enumerate() {
        let part = token.get(part_at..at).unwrap_or_default();
        let after = token.get(at + 1..).unwrap_or_default();
        match byte {
            b':' => {
                let is_part =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let scheme = part.bytes().rev().take_while(|byte| is_part(*byte)).count();
                let start = at - scheme;
                if after.starts_with("//") && scheme > 0 || token.get(start..).is_some_and(is_web) {
                    return Some(start);
                }
                // What follows the colon is not a port, as in `Link:x.com`.
                if !after.starts_with(|next: char| next.is_ascii_digit()) {
                    if is_glued_place(token, part_at, part) {
                        return Some(part_at);
                    }
                    part_at = at + 1;
                }
            }
            b'/' | b'\\'
                if part.is_empty() && goes_to_host(token.get(at..).unwrap_or_default()) =>
            {
                return Some(at);
            }
            b'/' if part.is_empty() && after.starts_with('/') => {
                let end =
                    after.bytes().skip(1).take(MAX_HOST_BYTES + 1).position(|byte| {
                        is_edge(byte) || matches!(byte, b'/' | b'?' | b'#' | b':')
                    });
                let host = end.map_or(after.get(1..), |end| after.get(1..=end));
                if host.is_some_and(is_host) {
                    return Some(at);
                }
            }
            _ if is_edge(byte) || !byte.is_ascii() => {
                if is_glued_place(token, part_at, part) {
                    return Some(part_at);
                }
                part_at = at + 1;
            }
            _ => {}
        }
    }
    let part = token.get(part_at..).unwrap_or_default();
    is_glued_place(token, part_at, part).then_some(part_at)
}

/// A host as in [`is_place`], also after what belongs to another host: of `https://x.com'@evil.com` or
/// `https://x.com.evil.com`, a reader may have seen only the beginning. `.com` is the end of a host whose
/// letters are outside of ASCII.
fn is_glued_place(token: &str, part_at: usize, part: &str) -> bool {
    let rest = part.trim_start_matches(['.', '@']);
    let is_end = || {
        let before = part_at.checked_sub(1).and_then(|at| token.as_bytes().get(at));
        let end = rest.find(['/', '?', '#', ':']).unwrap_or(rest.len());
        before.is_some_and(|byte| !byte.is_ascii())
            && rest.get(..end).is_some_and(|last| is_in(LINKED_DOMAINS, last))
    };
    is_place(rest) || (rest.len() < part.len() && is_end())
}

/// Slashes and backslashes in any number, after which browsers expect a host with a dot in it.
fn goes_to_host(text: &str) -> bool {
    let is_slash = |character: char| matches!(character, '/' | '\\');
    let rest = text.trim_start_matches(is_slash);
    let slashes = text.len() - rest.len();
    let rest = rest.get(..rest.floor_char_boundary(MAX_HOST_BYTES)).unwrap_or_default();
    let rest = rest.trim_start_matches('@');
    let end = rest.find(['/', '?', '#', ':', '\\']).unwrap_or(rest.len());
    slashes >= 2 && rest.get(..end).is_some_and(|host| host.contains('.') && is_host(host))
}

/// The bytes of the URL with which a text begins: up to a quote or to a parenthesis that it did not open.
fn url_bytes(text: &str) -> usize {
    let mut open = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => open += 1,
            b')' if open == 0 => return at,
            b')' => open -= 1,
            b'\'' => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(token: &str) -> Vec<&str> {
        let mut all = Vec::new();
        each_url(token, &mut |url| all.push(url));
        all
    }

    #[test]
    fn finds_every_url_of_a_token() {
        for (token, expected) in [
            ("https://x.com/a", vec!["https://x.com/a"]),
            ("(https://x.com/a_(b)).", vec!["https://x.com/a_(b)"]),
            ("(https://x.com)(https://evil.com)", vec!["https://x.com", "https://evil.com"]),
            ("HTTPS:evil.com", vec!["HTTPS:evil.com"]),
            ("http:\\\\evil.com", vec!["http:\\\\evil.com"]),
            ("src='//evil.com/x'", vec!["//evil.com/x"]),
            ("www.evil.com:www.x.com.", vec!["www.evil.com:www.x.com"]),
            ("https://x.com)@evil.com/x", vec!["https://x.com", "@evil.com/x"]),
            ("https://x.com).evil.com/x", vec!["https://x.com", ".evil.com/x"]),
            ("https://x.com'.evil.com", vec!["https://x.com", ".evil.com"]),
            (".evil.com/x", vec![".evil.com/x"]),
            ("@evil.com", vec!["@evil.com"]),
            ("аррӏе.com/login", vec![".com/login"]),
            ("/\\evil.com/x", vec!["/\\evil.com/x"]),
            ("///evil.com/x", vec!["///evil.com/x"]),
            ("//@evil.com/x", vec!["//@evil.com/x"]),
            ("Link:evil.com", vec!["evil.com"]),
            ("evil.com:", vec!["evil.com"]),
            ("x.com:8080", vec!["x.com:8080"]),
            ("/etc/hosts", vec![]),
            ("C:\\a\\b.c", vec![]),
            ("@alice", vec![]),
            (".env", vec![]),
            (".net", vec![]),
            ("www.evil.com.", vec!["www.evil.com"]),
            ("evil.com", vec!["evil.com"]),
            ("evil.xyz/a?b=c", vec!["evil.xyz/a?b=c"]),
            ("evil.rest/a", vec!["evil.rest/a"]),
            ("1.2.3.4:8080/x", vec!["1.2.3.4:8080/x"]),
            ("url=evil.com", vec!["evil.com"]),
            ("a.com,b.com", vec!["a.com,b.com"]),
            ("report.md", vec![]),
            ("src/main.rs:12", vec![]),
            ("main.rs/x", vec![]),
            ("1.2.3", vec![]),
            ("and/or", vec![]),
            ("e.g.", vec![]),
            ("//comment", vec!["//comment"]),
            ("x.com)x.com)x.com", vec!["x.com", "x.com", "x.com"]),
        ] {
            assert_eq!(urls(token), expected, "{token}");
        }
    }

    #[test]
    fn a_url_has_parts_if_its_host_is_certain() {
        let host = |text| Link::parse(text).map(|link| link.host);
        for (text, expected) in [
            ("https://x.com", Some("x.com")),
            ("https://X.com:443/a?b#c", Some("X.com")),
            ("http://x.com:8080", Some("x.com:8080")),
            ("https://[::1]:8443/", Some("[::1]:8443")),
            ("https://10.0.0.1/", Some("10.0.0.1")),
            ("x.com/a", Some("x.com")),
            ("https://good.com@evil.com/", None),
            ("https://good.com:80@evil.com/", None),
            ("https://good.com\\@evil.com/", None),
            ("https://good.com\t.evil.com/", None),
            ("https://good.com\n.evil.com/", None),
            ("https://0x7f.1/", None),
            ("https://0177.0.0.1/", None),
            ("https://2130706433/", None),
            ("https://127.1/", None),
            ("https://10.0.0.1./", None),
            ("https://%67ood.com/", None),
            ("https://good.com%00.evil.com", None),
            ("https://bücher.example/", None),
            ("https://good.com:99999/", None),
            ("https://good.com:+80/", None),
            ("https://good..com/", None),
            ("https:///good.com", None),
            ("https:good.com", None),
            ("javascript://good.com/%0aalert(1)", None),
        ] {
            assert_eq!(host(text), expected, "{text}");
        }
        let link = Link::parse("https://x.com/a/b?c=d&e#f").unwrap();
        assert_eq!((link.path, link.query, link.fragment), ("/a/b", "c=d&e", "f"));
        assert_eq!((link.place, link.page), (Some("x.com/a/b?c=d&e#f"), Some("x.com/a/b")));
        assert_eq!(Link::parse("ssh://x.com/a").unwrap().place, None);
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(LINKED_DOMAINS.is_sorted() && FILE_EXTENSIONS.is_sorted());
        for domain in LINKED_DOMAINS {
            assert!(!is_in(FILE_EXTENSIONS, domain), "{domain}");
        }
    }

    #[test]
    fn finds_addresses_whose_name_ends_with_an_unusual_character() {
        for (token, expected) in [
            ("alice@x.com", vec!["alice@x.com"]),
            ("(mailto:eve$@evil.example)", vec!["eve$@evil.example"]),
            ("<José@evil.bank>.", vec!["José@evil.bank"]),
            ("\"eve\"@evil.example", vec!["\"eve\"@evil.example"]),
            ("a@x.com,b%@y.com", vec!["a@x.com", "b%@y.com"]),
            ("@x.com", vec![]),
            ("(@x.com)", vec![]),
            ("\"$@\"", vec![]),
            ("@scope/pkg", vec![]),
        ] {
            let mut found = Vec::new();
            each_address(token, &mut |address| found.push(address));
            assert_eq!(found, expected, "{token}");
        }
    }

    #[test]
    fn only_a_plain_mail_address_is_an_address() {
        for text in ["alice@x.com", "a.b+c_d-e@mail.x.co.uk"] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "alice",
            "@x.com",
            "alice@x",
            "alice@x.com.",
            "a@b@x.com",
            "a%evil.com@x.com",
            "a!b@x.com",
            "\"a b\"@x.com",
            "a@[1.2.3.4]",
            "а@x.com",
            "a@раyраl.com",
            "a@x..com",
            "a b@x.com",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
