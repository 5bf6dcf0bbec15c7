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

/// Ends of file names that are no top-level domains. Sorted.
const FILE_EXTENSIONS: &[&str] = &[
    "asp", "aspx", "bak", "bin", "c", "cfg", "cpp", "css", "csv", "d", "db", "doc", "docx", "env",
    "exe", "gif", "go", "gz", "h", "htm", "html", "ico", "ini", "ipynb", "java", "jpeg", "jpg",
    "js", "json", "jsp", "jsx", "kt", "lock", "log", "old", "pdf", "php", "png", "ppt", "pptx",
    "rb", "rst", "sql", "svg", "swift", "tar", "tgz", "toml", "ts", "tsx", "txt", "xls", "xlsx",
    "xml", "yaml", "yml",
];

/// Ends of file names that are top-level domains too. `main.rs:12` and `guide.md#top` are files, but clients make a
/// link of `evil.zip/x`. Sorted.
const FILE_DOMAINS: &[&str] = &["bz", "md", "mov", "mp", "ps", "py", "rs", "sh", "so", "zip"];

/// Top-level domains that are names of functions too. A call such as `logger.info(` or `self.model.to(` is not a link. Only
/// an attacker's own domain has such a name: its subdomains could carry data. Sorted.
const FUNCTIONS: &[&str] = &[
    "app", "at", "click", "host", "in", "info", "link", "live", "me", "page", "rest", "space",
    "store", "support", "to", "today", "top", "work",
];

/// Hosts of two labels that are code, or the name of a product, far more often than a link: each word of the first text,
/// a dot, and each word of the second. These are a few dozen domains, so an attacker cannot choose one freely.
const CODE: &[(&str, &str)] = &[
    (
        "self this",
        "app at cc dev host in info io link live me net page rest site space store to top",
    ),
    (
        "api args base config conn headers location options opts parsed req request server url",
        "host",
    ),
    ("console log logger logging", "info"),
    ("headers os req style", "link"),
    ("padding rect style window", "top"),
    ("config makefile manifest system", "in"),
    ("ado asp vb", "net"),
    ("prototype", "at"),
    ("socket", "io"),
    ("test", "support"),
];

/// Bytes of the longest top-level domain of letters. `modelcontextprotocol` is longer.
const MAX_DOMAIN_BYTES: usize = 18;

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
        let (scheme, place) =
            split_scheme(text).unwrap_or_else(|| ("", text.strip_prefix("//").unwrap_or(text)));
        if !SCHEMES.iter().any(|known| known.eq_ignore_ascii_case(scheme)) {
            return None;
        }
        let own_port = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => ":443",
            _ if scheme.eq_ignore_ascii_case("http") => ":80",
            _ => "",
        };
        let is_end = |byte: u8| matches!(byte, b'/' | b'?' | b'#');
        let end = place.bytes().position(is_end).unwrap_or(place.len());
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
    split_scheme(text).is_some() || text.starts_with("//") || is_web(text) || is_place(text)
}

/// The scheme before `://`, and what is after it.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let (scheme, rest) = text.split_at_checked(text.bytes().position(|byte| !is_part(byte))?)?;
    let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
    Some((scheme, rest.strip_prefix("://").filter(|_| is_scheme)?))
}

/// `http:` or `https:`, with which clients go to a host, however many slashes follow. Nothing follows the name of the
/// scheme in `http:`.
fn is_web(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_more = |next: char| next.is_alphanumeric() || "/\\[@%&#?".contains(next);
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
        && rest.starts_with(is_more)
}

/// A host with or without a path, which clients turn into a link.
fn is_place(text: &str) -> bool {
    let end = text.bytes().position(ends_place).unwrap_or(text.len());
    text.split_at_checked(end)
        .is_some_and(|(host, rest)| is_linked(host, rest.trim_end_matches(':')))
}

/// What ends a host in a place.
fn ends_place(byte: u8) -> bool {
    matches!(byte, b'/' | b'?' | b'#' | b':')
}

/// Whether clients make a link of a host that is followed by `rest`, which is empty or [ends](ends_place) the host.
fn is_linked(host: &str, rest: &str) -> bool {
    let Some((before, last)) = host.trim_end_matches('.').rsplit_once('.') else { return false };
    let www = before.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www."));
    // `x.y?.z` and `is it x.y?` have no query.
    let is_more = |byte: &u8| !matches!(byte, b'?' | b'.' | b'(' | b'[' | b',' | b';' | b')');
    let goes_on = match rest.as_bytes() {
        [b':', b'0'..=b'9', ..] => !is_in(FILE_DOMAINS, last),
        [b':', ..] => return false,
        [b'#', next, ..] => is_more(next) && !is_in(FILE_DOMAINS, last),
        [b'?', next, ..] => is_more(next),
        [b'/', _, ..] => true,
        [b'/'] => !is_in(FILE_DOMAINS, last),
        _ => false,
    };
    let goes_on = goes_on && !is_in(FILE_EXTENSIONS, last);
    let alphabetic = (2..=MAX_DOMAIN_BYTES).contains(&last.len())
        && last.bytes().all(|byte| byte.is_ascii_alphabetic());
    let address = || host.parse::<Ipv4Addr>().is_ok_and(|address| !is_network(address, rest));
    ((alphabetic && (www || goes_on || is_in(LINKED_DOMAINS, last)))
        || (goes_on && (last.starts_with("xn--") || address())))
        && is_name(host)
}

/// `10.0.0.0/8`: a range of addresses. Nothing is sent to it.
fn is_network(address: Ipv4Addr, rest: &str) -> bool {
    let rest = rest.strip_prefix('/').unwrap_or_default();
    let end = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
    let Some((bits, after)) = rest.split_at_checked(end) else { return false };
    let ends = after.is_empty() || after.starts_with([',', ';', ')', '\'']);
    let bits = bits.parse::<u32>().ok().filter(|bits| (8..32).contains(bits));
    ends && bits.is_some_and(|bits| u32::from(address).trailing_zeros() >= 32 - bits)
}

/// Whether a host without a path is code, by its name and by what follows it.
fn is_code(host: &str, after: &str) -> bool {
    let is_identifier = |label: &str| {
        !label.starts_with(|first: char| first.is_ascii_digit()) && !label.contains('-')
    };
    let mut labels = host.rsplit('.');
    let (last, before) = (labels.next().unwrap_or_default(), labels.next().unwrap_or_default());
    let own = host.strip_prefix("self.").or_else(|| host.strip_prefix("this.")).unwrap_or(host);
    let called = after.starts_with('(') && is_in(FUNCTIONS, last) && own.split('.').count() == 2;
    let has = |words: &str, label: &str| words.split(' ').any(|it| it.eq_ignore_ascii_case(label));
    // Nobody can register a domain with `_` in its name.
    (called && host.split('.').all(is_identifier))
        || before.contains('_')
        || CODE.iter().any(|(first, second)| has(second, last) && has(first, before))
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
        && !domain.ends_with('.')
        && is_domain(domain)
}

/// A host of mail. `tool@1.2.3` is a version.
fn is_domain(name: &str) -> bool {
    let last = name.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| !last.starts_with(|first: char| first.is_ascii_digit()))
        && is_name(name)
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
    is_domain(host).then_some(address)
}

/// Characters before the `@` of an address (RFC 5321).
const MAX_LOCAL_CHARACTERS: usize = 64;

/// Calls `found` with each URL in a token without spaces. Returns whether there was one.
pub fn each_url<'t>(token: &'t str, found: &mut dyn FnMut(&'t str)) -> bool {
    let (mut rest, mut any) = (token, false);
    while let Some(at) = url_start(rest) {
        let Some((_, url)) = rest.split_at_checked(at) else { break };
        let (url, after) = url.split_at_checked(url_bytes(url)).unwrap_or((url, ""));
        let ends = ['.', ',', ';', ':', '!', '?', '\'', '*'];
        let url = url.trim_end_matches(ends);
        let url = url.strip_suffix(TYPOGRAPHIC).map_or(url, |url| url.trim_end_matches(ends));
        // Markdown's emphasis, as in `_x.com_`.
        let mark = rest.get(..at).and_then(|before| before.chars().next_back());
        let url = url.trim_end_matches(|last| matches!(last, '_' | '~') && mark == Some(last));
        if !url.is_empty() {
            found(url);
            any = true;
        }
        rest = after;
    }
    any
}

/// What can be after a URL in prose, besides ASCII. Only one is left out: more of them could be a message.
const TYPOGRAPHIC: [char; 7] = ['“', '”', '‘', '’', '«', '»', '…'];

/// Whether a byte can stand directly before a URL: it is in no host, and begins no path.
fn is_edge(byte: u8) -> bool {
    byte.is_ascii_punctuation()
        && !matches!(byte, b'-' | b'.' | b'_' | b'/' | b'\\' | b':' | b'?' | b'#' | b'@')
}

/// Whether a host, or a user and a host, can contain the byte.
fn is_of_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'@')
}

/// Where the first URL begins. Reads no further than its first part, so that a token of many URLs is read
/// in linear time.
fn url_start(token: &str) -> Option<usize> {
    let mut part_at = 0;
    for (at, byte) in token.bytes().enumerate() {
        // Most bytes begin nothing and end nothing.
        if is_of_host(byte) {
            continue;
        }
        let part = token.get(part_at..at).unwrap_or_default();
        let after = token.get(at + 1..).unwrap_or_default();
        match byte {
            b':' => {
                let is_part =
                    |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
                let before = token.as_bytes().get(..at).unwrap_or_default();
                let start = at - before.iter().rev().take_while(|byte| is_part(byte)).count();
                if after.starts_with("//") && start < at || token.get(start..).is_some_and(is_web) {
                    return Some(start);
                }
                // What follows the colon is not a port, as in `Link:x.com`.
                if !after.starts_with(|next: char| next.is_ascii_digit()) {
                    if let Some(start) = place_start(token, part_at, part) {
                        return Some(start);
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
            b'?' | b'#' if part.is_empty() => part_at = at + 1,
            _ if is_edge(byte) || !byte.is_ascii() => {
                if let Some(start) = place_start(token, part_at, part) {
                    return Some(start);
                }
                part_at = at + 1;
            }
            _ => {}
        }
    }
    place_start(token, part_at, token.get(part_at..).unwrap_or_default())
}

/// Where in a part a host as in [`is_place`] begins, also after what belongs to another host: of `https://x.com'@evil.com`
/// or `https://x.com.evil.com`, a reader may have seen only the beginning. `.com` is the end of a host whose letters are
/// outside of ASCII.
fn place_start(token: &str, part_at: usize, part: &str) -> Option<usize> {
    if !part.bytes().any(|byte| matches!(byte, b'.' | b'@')) {
        return None;
    }
    let part_end = part_at + part.len();
    let marked = part.trim_start_matches('_');
    let rest = marked.trim_start_matches(['.', '@']);
    let end = rest.bytes().position(ends_place).unwrap_or(rest.len());
    let host = rest.get(..end)?;
    // `_x.com_` is in Markdown's emphasis.
    let host = if marked.len() < part.len() { host.trim_end_matches('_') } else { host };
    let after = token.get(part_end - rest.len() + end..).unwrap_or_default();
    let is_place = match end < rest.len() {
        true => is_linked(host, after),
        false => is_linked(host, "") && !is_code(host, after),
    };
    let is_end = || {
        let before = part_at.checked_sub(1).and_then(|at| token.as_bytes().get(at));
        before.is_some_and(|byte| !byte.is_ascii()) && is_in(LINKED_DOMAINS, host)
    };
    let is_found = is_place || (rest.len() < marked.len() && is_end());
    is_found.then(|| part_end - marked.len())
}

/// Slashes and backslashes in any number, after which browsers expect a host with a dot in it.
fn goes_to_host(text: &str) -> bool {
    let is_slash = |character: char| matches!(character, '/' | '\\');
    let rest = text.trim_start_matches(is_slash);
    let slashes = text.len() - rest.len();
    let rest = rest.get(..rest.floor_char_boundary(MAX_HOST_BYTES)).unwrap_or_default();
    let rest = rest.trim_start_matches('@');
    let end = rest.bytes().position(|byte| ends_place(byte) || byte == b'\\').unwrap_or(rest.len());
    slashes >= 2 && rest.get(..end).is_some_and(|host| host.contains('.') && is_host(host))
}

/// The bytes of the URL with which a text begins: up to a quote or to a parenthesis that it did not open. A host without
/// a path ends before a separator.
fn url_bytes(text: &str) -> usize {
    let host = text.bytes().position(|byte| !is_of_host(byte)).unwrap_or(text.len());
    if matches!(text.as_bytes().get(host), Some(b',' | b';' | b'(' | b'=')) {
        return host;
    }
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
            ("a.com,b.com", vec!["a.com", "b.com"]),
            ("x.com(y)", vec!["x.com"]),
            ("x.com%2eevil.com", vec!["x.com%2eevil.com"]),
            ("git+https://x.com/a", vec!["git+https://x.com/a"]),
            ("~www.evil.example/x~", vec!["www.evil.example/x"]),
            ("_www.evil.bar_", vec!["www.evil.bar"]),
            ("_https://x.com/a_", vec!["https://x.com/a"]),
            ("%www.evil.example", vec!["www.evil.example"]),
            ("+www.evil.example", vec!["www.evil.example"]),
            ("#evil.example/x", vec!["evil.example/x"]),
            ("&www.evil.example", vec!["www.evil.example"]),
            ("$evil.example", vec!["evil.example"]),
            ("^evil.example", vec!["evil.example"]),
            ("evil.zip/x", vec!["evil.zip/x"]),
            ("evil.mov/x", vec!["evil.mov/x"]),
            ("evil.md?x=1", vec!["evil.md?x=1"]),
            ("evil.pizza?x=1", vec!["evil.pizza?x=1"]),
            ("http:evil", vec!["http:evil"]),
            // Hosts on domains that are names of functions too.
            ("evil.info", vec!["evil.info"]),
            ("acme-login.info(now)", vec!["acme-login.info"]),
            ("evil.com(now)", vec!["evil.com"]),
            ("deadbeef.evil.support(now)", vec!["deadbeef.evil.support"]),
            ("a.self.evil.info(now)", vec!["a.self.evil.info"]),
            ("evil.info/(now)", vec!["evil.info/(now)"]),
            ("evil.self.info.example", vec!["evil.self.info.example"]),
            ("self.host/x", vec!["self.host/x"]),
            ("www.url.host/x", vec!["www.url.host/x"]),
            ("203.0.113.5/24", vec!["203.0.113.5/24"]),
            ("10.0.0.0/8/x", vec!["10.0.0.0/8/x"]),
            ("report.md", vec![]),
            ("src/main.rs:12", vec![]),
            ("main.rs:12", vec![]),
            ("main.rs#L12", vec![]),
            ("README.md/", vec![]),
            ("http:", vec![]),
            ("1.2.3", vec![]),
            // Code.
            ("logger.info(", vec![]),
            ("System.in)", vec![]),
            ("model.to(device)", vec![]),
            ("self.model.to(device)", vec![]),
            ("this.server.at(1)", vec![]),
            ("el.style.top", vec![]),
            ("window.location.host", vec![]),
            ("self.app.run()", vec![]),
            ("arr.at(-1)", vec![]),
            ("date.today()", vec![]),
            ("answer.receipt?.seq", vec![]),
            ("call.f?.(x)", vec![]),
            ("is.it.x?", vec![]),
            ("&self.host", vec![]),
            ("logging.INFO", vec![]),
            ("cache_entry.link", vec![]),
            ("ASP.NET", vec![]),
            ("socket.io", vec![]),
            ("10.0.0.0/8,172.16.0.0/12", vec![]),
            ("io.modelcontextprotocol/version", vec![]),
            ("and/or", vec![]),
            ("e.g.", vec![]),
            ("//comment", vec!["//comment"]),
            ("„https://x.com/a“,", vec!["https://x.com/a"]),
            ("“https://x.com/a.”", vec!["https://x.com/a"]),
            ("»https://x.com/a«", vec!["https://x.com/a"]),
            ("https://x.com/a…", vec!["https://x.com/a"]),
            ("„x.com“", vec!["x.com"]),
            ("https://x.com/a””", vec!["https://x.com/a”"]),
            ("https://x.com/a”b", vec!["https://x.com/a”b"]),
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
        for list in [LINKED_DOMAINS, FILE_EXTENSIONS, FILE_DOMAINS, FUNCTIONS] {
            assert!(list.is_sorted());
        }
        for domain in LINKED_DOMAINS {
            assert!(!is_in(FILE_EXTENSIONS, domain) && !is_in(FILE_DOMAINS, domain), "{domain}");
        }
        for name in FUNCTIONS {
            assert!(is_in(LINKED_DOMAINS, name), "{name}");
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
            ("rollup@4.17.2", vec![]),
            ("eve@4.17.2.example", vec!["eve@4.17.2.example"]),
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
            "a@1.2.3",
            "a b@x.com",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
