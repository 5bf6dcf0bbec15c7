//! URLs and mail addresses: finding them in texts, and their parts.
//!
//! INVARIANT (one host): the host of a [`Link`] is what every client takes for the host. A URL that clients
//! could read differently (user names, backslashes, line breaks, octal addresses, letters outside of ASCII)
//! has no parts.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::normal::MAX_VALUE_BYTES;
use super::search::{
    decimal, has, is_in, is_one_of, is_same, rsplit_once, split_once, trim_end, trim_start,
};

/// What separates the folders of a path.
pub const SLASHES: [char; 2] = ['/', '\\'];

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
const SCHEMES: [&str; 11] =
    ["", "ftp", "ftps", "git", "gs", "http", "https", "s3", "sftp", "ssh", "wss"];

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
        if !is_one_of(&SCHEMES, scheme) {
            return None;
        }
        let own_port = match scheme {
            _ if is_same(scheme, "https") => ":443",
            _ if is_same(scheme, "http") => ":80",
            _ => "",
        };
        let is_end = |byte: u8| matches!(byte, b'/' | b'?' | b'#');
        let end = place.bytes().position(is_end).unwrap_or(place.len());
        let (authority, rest) = place.split_at_checked(end)?;
        let host = match authority.strip_suffix(own_port) {
            Some(host) if !own_port.is_empty() => host,
            _ => authority,
        };
        let (name, port) = match rsplit_once(host, ':') {
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (host, "0"),
        };
        let is_port = decimal(port).is_some_and(|port| port <= 0xffff) && !port.starts_with('+');
        if !is_host(name) || !is_port {
            return None;
        }
        let (before, fragment) = split_once(rest, '#').unwrap_or((rest, ""));
        let (path, query) = split_once(before, '?').unwrap_or((before, ""));
        let web = scheme.is_empty() || !own_port.is_empty();
        // Without the port, host and path are not one piece of the text.
        let place = (web && host.len() == authority.len()).then_some(place);
        let page = place.and_then(|place| place.get(..end + path.len()));
        Some(Self { host, place, page, path, query, fragment })
    }

    /// Calls `found` with each name in the query and its value.
    pub fn each_query_pair(&self, found: &mut dyn FnMut(&'t str, &'t str)) {
        for pair in self.query.split('&') {
            let (name, value) = split_once(pair, '=').unwrap_or((pair, ""));
            found(name, value);
        }
    }

    /// Calls `found` with what the query carries: its values, and names that [no API has](is_plain_name), have no value, or
    /// are too many, since names can carry data too. Some are empty.
    pub fn each_query_part(&self, found: &mut dyn FnMut(&'t str)) {
        const MAX_PLAIN_NAMES: usize = 8;
        let mut names = 0;
        self.each_query_pair(&mut |name, value| {
            names += 1;
            if names > MAX_PLAIN_NAMES || value.is_empty() || !is_plain_name(name) {
                found(name);
            }
            found(value);
        });
    }
}

/// Names of queries that many APIs have. A list, because names that the agent chooses could spell a secret.
const PLAIN_NAMES: &str = "after before branch category count cursor date direction end fields filter format from id \
    include key lang language lat latitude limit lng locale lon longitude maxResults mode name offset order orderBy owner \
    page pageSize pageToken page_size page_token path perPage per_page project q query ref repo search since size skip \
    sort sortBy sort_by start state status symbol tab tag tags term timezone to token top type units until url user v \
    version view year";

/// Whether a name of a query is one that APIs have: `q` or `page_size`.
fn is_plain_name(name: &str) -> bool {
    PLAIN_NAMES.split(' ').any(|plain| plain == name)
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
    let Some((scheme, rest)) = split_once(text, ':') else { return false };
    let is_more = |next: char| next.is_alphanumeric() || "/\\[@%&#?".contains(next);
    is_one_of(&["http", "https"], scheme) && rest.starts_with(is_more)
}

/// A host with or without a path, which clients turn into a link.
fn is_place(text: &str) -> bool {
    let end = text.bytes().position(ends_place).unwrap_or(text.len());
    text.split_at_checked(end).is_some_and(|(host, rest)| is_linked(host, trim_end(rest, &[':'])))
}

/// What ends a host in a place.
fn ends_place(byte: u8) -> bool {
    matches!(byte, b'/' | b'?' | b'#' | b':')
}

/// Whether clients make a link of a host that is followed by `rest`, which is empty or [ends](ends_place) the host.
fn is_linked(host: &str, rest: &str) -> bool {
    let Some((before, last)) = rsplit_once(trim_end(host, &['.']), '.') else { return false };
    let www = before.get(..4).is_some_and(|start| is_same(start, "www."));
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
    is_name(host)
        && ((alphabetic && (www || goes_on || is_in(LINKED_DOMAINS, last)))
            || (goes_on && (last.starts_with("xn--") || address())))
}

/// `10.0.0.0/8`: a range of addresses. Nothing is sent to it.
fn is_network(address: Ipv4Addr, rest: &str) -> bool {
    let rest = rest.strip_prefix('/').unwrap_or_default();
    let end = rest.find(|next: char| !next.is_ascii_digit()).unwrap_or(rest.len());
    let Some((bits, after)) = rest.split_at_checked(end) else { return false };
    let ends = after.is_empty() || after.starts_with([',', ';', ')', '\'']);
    let bits = decimal(bits).filter(|bits| (8..32).contains(bits));
    ends && bits.is_some_and(|bits| u32::from(address).trailing_zeros() >= 32 - bits)
}

/// Whether a host without a path is code, by its name and by what follows it.
fn is_code(host: &str, after: &str) -> bool {
    let is_identifier =
        |label: &str| !label.starts_with(|first: char| first.is_ascii_digit()) && !has(label, '-');
    let mut labels = host.rsplit('.');
    let (last, before) = (labels.next().unwrap_or_default(), labels.next().unwrap_or_default());
    let own = host.strip_prefix("self.").or_else(|| host.strip_prefix("this.")).unwrap_or(host);
    let called = after.starts_with('(') && is_in(FUNCTIONS, last) && own.split('.').count() == 2;
    let lists = |words: &str, label: &str| words.split(' ').any(|it| is_same(it, label));
    // Nobody can register a domain with `_` in its name.
    (called && host.split('.').all(is_identifier))
        || has(before, '_')
        || CODE.iter().any(|(first, second)| lists(second, last) && lists(first, before))
}

/// A host in the spelling that every client takes for the same host.
fn is_host(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|it| it.parse::<Ipv6Addr>().is_ok());
    }
    // Clients take a name whose last label is a number, `0x7f` or `0177` for an IPv4 address.
    let last = trim_end(name, &['.']).rsplit('.').next().unwrap_or_default();
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
    let Some((local, domain)) = split_once(text, '@') else { return false };
    !local.is_empty()
        && text.len() <= MAX_VALUE_BYTES
        && local.bytes().all(is_part)
        && !domain.ends_with('.')
        && is_domain(domain)
}

/// A host of mail. `tool@1.2.3` is a version.
fn is_domain(name: &str) -> bool {
    let last = rsplit_once(name, '.').map(|(_, last)| last);
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
        let address = trim_end(address, &['.', '-', '_', '+']);
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
    let host = trim_end(token.get(at + 1..at + 1 + domain)?, &['.', '-', '_', '+']);
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
        let url = trim_end(url, &ends);
        let url = url.strip_suffix(TYPOGRAPHIC).map_or(url, |url| trim_end(url, &ends));
        // Markdown's emphasis, as in `_x.com_`.
        let mark = rest.get(..at).and_then(|before| before.chars().next_back());
        let mark = mark.filter(|mark| matches!(mark, '_' | '~'));
        let url = trim_end(url, mark.as_slice());
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
    let marked = trim_start(part, &['_']);
    let rest = trim_start(marked, &['.', '@']);
    let end = rest.bytes().position(ends_place).unwrap_or(rest.len());
    let host = rest.get(..end)?;
    // `_x.com_` is in Markdown's emphasis.
    let host = if marked.len() < part.len() { trim_end(host, &['_']) } else { host };
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
    let rest = trim_start(text, &SLASHES);
    let slashes = text.len() - rest.len();
    let rest = rest.get(..rest.floor_char_boundary(MAX_HOST_BYTES)).unwrap_or_default();
    let rest = trim_start(rest, &['@']);
    let end = rest.bytes().position(|byte| ends_place(byte) || byte == b'\\').unwrap_or(rest.len());
    slashes >= 2 && rest.get(..end).is_some_and(|host| has(host, '.') && is_host(host))
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
mod tests;
