//! URLs: patterns, and URLs that cannot reach a private network.
//!
//! URLs are read by the WHATWG parser, as the runtime reads them. A URL that other parsers may read otherwise
//! does not fit anything.
//!
//! INVARIANT (no answer is wider than the reference implementation's): a URL that fits here fits there, and a URL that does
//! not fit here does not fit there, because `not` and approval gates ask for the latter.

use std::net::Ipv4Addr;

use ::url::Url;

use super::super::cbor::{Malformed, Reader, Writer};
use super::pattern::Pattern;
use super::verdict::Fit;
use super::work::{TooMuch, Work};
use crate::target::{MAX_TARGET_BYTES, not_public};

/// Domains of a list: more make no list that people wrote.
const MAX_DOMAINS: usize = 256;

/// Bytes of a domain name, by RFC 1035.
const MAX_DOMAIN_BYTES: usize = 253;

/// Characters that a pattern must not have. The path of a clear URL has no `;`, and the last six only escaped: a pattern
/// with one would match no URL, so `not` of the pattern would match each.
const NOT_IN_PATTERN: &[u8] = b"\\@?#[]%;\"<>`{}";

/// Steps that reading a short URL takes.
const PARSE_STEPS: usize = 512;

/// The reference implementation puts texts that begin with this in place of the wildcards of a pattern, and refuses
/// patterns that have them.
const PLACEHOLDER: &str = "__tenuo_";

/// Top-level domains of networks that are not public by custom only.
const INTERNAL_DOMAINS: [&str; 5] = ["lan", "corp", "home", "svc", "default"];

#[inline(never)]
fn lower_case(text: &str) -> String {
    text.to_ascii_lowercase()
}

/// The scheme, and what follows it.
#[inline(never)]
fn after_scheme(text: &str) -> Option<(&str, &str)> {
    text.split_once("://")
}

/// Whether the host of URLs with this scheme, in lower case, is a name or an address. With any other scheme, the parser takes
/// the host for a text: it neither finds the address in `ssh://10.0.0.5/` nor decodes escapes.
fn has_plain_host(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

#[inline(never)]
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A URL of an argument; `None` if it is not one, or not clearly.
fn parse(text: &str) -> Option<Url> {
    // Parsers disagree about these characters: some drop spaces, and some read `\` as `/`.
    let is_clear = text.len() <= MAX_TARGET_BYTES
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let url = is_clear.then(|| Url::parse(text).ok()).flatten()?;
    if !has_plain_host(url.scheme()) {
        return None;
    }
    let host = url.host_str().filter(|host| !host.is_empty() && !host.ends_with('.'))?;
    // What the host of another parser would be.
    let written = lower_case(text);
    let authority = after_scheme(&written)?.1.split(['/', '?', '#']).next()?;
    let is_same = authority
        .strip_prefix(host)
        .is_some_and(|port| port.is_empty() || port.strip_prefix(':').is_some_and(is_number));
    is_same.then_some(url)
}

/// `scheme://host:port/path`: the scheme may be `*`, the host may begin with `*.`, the path is a glob without `*.`. Without
/// a port, or without a path, each one matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlPattern {
    text: String,
    /// `None`: any.
    scheme: Option<String>,
    /// Whether it is the host's suffix.
    any_subdomain: bool,
    host: String,
    port: Option<u16>,
    path: Option<Pattern>,
}

impl UrlPattern {
    /// `None` if the text does not have this form.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let is_clear = text.len() <= MAX_TARGET_BYTES
            && !text.contains(PLACEHOLDER)
            && text.bytes().all(|byte| byte.is_ascii_graphic() && !NOT_IN_PATTERN.contains(&byte));
        let (scheme, rest) = after_scheme(text).filter(|_| is_clear)?;
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) if is_number(port) => (host, Some(port.parse().ok()?)),
            Some(_) => return None,
            None => (authority, None),
        };
        let (any_subdomain, host) = match host.strip_prefix("*.") {
            Some(suffix) => (true, suffix),
            None => (false, host),
        };
        let host = lower_case(host);
        let kind = host_kind(&host)?;
        if any_subdomain && kind == HostKind::Address {
            return None;
        }
        let scheme = (scheme != "*").then(|| lower_case(scheme));
        if scheme.as_deref().is_some_and(|scheme| !has_plain_host(scheme)) {
            return None;
        }
        // The path of a clear URL never has these components. The reference implementation takes `*.` in a path for the
        // `*.` of a host, and then matches a text that no path has.
        let is_never_in_url = |part: &str| matches!(part, "." | "..");
        if path.contains("*.") || path.contains("//") || path.split('/').any(is_never_in_url) {
            return None;
        }
        let path = (!matches!(path, "" | "/")).then(|| Pattern::new(path.to_owned()));
        Some(Self { text: text.to_owned(), scheme, any_subdomain, host, port, path })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it matches the URL; `None` if that is not certain. If only the port differs, the answer is
    /// [`Fit::Inapplicable`]: the URL fits neither the pattern nor `not` of it. The reason is that the reference
    /// implementation takes the default port of a pattern's scheme for any port.
    ///
    /// # Errors
    ///
    /// It takes too much work.
    pub fn matches(&self, text: &str, work: &mut Work) -> Result<Option<Fit>, TooMuch> {
        work.spend(PARSE_STEPS + text.len())?;
        let Some(url) = parse(text) else { return Ok(None) };
        let host = url.host_str().unwrap_or_default();
        if self.scheme.as_ref().is_some_and(|scheme| scheme != url.scheme()) || !self.has_host(host)
        {
            return Ok(Some(Fit::No));
        }
        let path = match &self.path {
            None => Some(Fit::Yes),
            Some(_) if !has_clear_path(text, url.path()) => None,
            Some(path) => path.matches(url.path(), work)?.map(Fit::from),
        };
        // The reference implementation knows the default ports of these two schemes only.
        let port = match url.scheme() {
            "http" | "https" => url.port_or_known_default(),
            _ => url.port(),
        };
        let is_other_port = self.port.is_some() && self.port != port;
        Ok(match path {
            Some(Fit::Yes) if is_other_port => Some(Fit::Inapplicable),
            path => path,
        })
    }

    /// Whether `other` is at most as wide. False if that is not certain.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        // The reference implementation compares prefixes only where a component ends.
        let path = match (&self.path, &other.path) {
            (None, _) => true,
            (Some(mine), Some(theirs)) => {
                mine == theirs || (mine.as_str().ends_with("/*") && mine.covers(theirs))
            }
            (Some(_), None) => false,
        };
        (self.scheme.is_none() || self.scheme == other.scheme)
            && (self.port.is_none() || self.port == other.port)
            && (self.scheme.is_some() || !self.is_default_port_of(other.scheme.as_deref()))
            && (self.any_subdomain || !other.any_subdomain)
            && self.has_host(&other.host)
            && path
    }

    /// Whether the reference implementation reads the same port of another scheme as no port. It reads `*` as `https`.
    fn is_default_port_of(&self, scheme: Option<&str>) -> bool {
        matches!((scheme, self.port), (Some("http" | "ws"), Some(80)) | (Some("ftp"), Some(21)))
    }

    fn has_host(&self, host: &str) -> bool {
        match host.strip_suffix(self.host.as_str()) {
            Some("") => true,
            Some(before) => self.any_subdomain && before.ends_with('.'),
            None => false,
        }
    }
}

/// Whether all servers read the path of a URL as it is written there. Some decode escapes of these characters before they
/// look at the path, some cut a component at `;`, and some take `//` for `/` before they resolve `..`.
fn has_clear_path(text: &str, path: &str) -> bool {
    let authority_and_path = text.split(['?', '#']).next().and_then(after_scheme);
    let written = authority_and_path.and_then(|(_, rest)| rest.split_once('/'));
    let (_, written) = written.unwrap_or_default();
    let is_needed = |byte: u8| {
        !byte.is_ascii_alphanumeric()
            && !byte.is_ascii_control()
            && !matches!(byte, b'-' | b'.' | b'_' | b'~' | b'/' | b'\\' | b'%' | b';')
    };
    let is_clear_escape = |escape: &str| {
        let byte = escape.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_some_and(is_needed)
    };
    !written.contains(';')
        && !path.contains("//")
        && !written.split('/').any(|part| matches!(part, "." | ".."))
        && written.split('%').skip(1).all(is_clear_escape)
}

/// URLs of hosts on the public internet, which may be restricted further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlSafe {
    pub schemes: Vec<String>,
    pub allow_domains: Option<Vec<String>>,
    pub deny_domains: Option<Vec<String>>,
    pub allow_ports: Option<Vec<u16>>,
    /// Private networks, loopback, metadata services, reserved addresses: all are blocked here, whatever these
    /// say. They only take part in narrowing.
    pub blocks: [bool; 4],
    pub block_internal_tlds: bool,
}

/// The names of [`UrlSafe::blocks`].
const BLOCKS: [&str; 4] = ["block_private", "block_loopback", "block_metadata", "block_reserved"];

impl Default for UrlSafe {
    fn default() -> Self {
        Self {
            schemes: vec!["http".to_owned(), "https".to_owned()],
            allow_domains: None,
            deny_domains: None,
            allow_ports: None,
            blocks: [true; 4],
            block_internal_tlds: false,
        }
    }
}

impl UrlSafe {
    /// # Errors
    ///
    /// It does not have the form.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (mut read, mut blocks) = (Self::default(), [true; BLOCKS.len()]);
        let [private, loopback, metadata, reserved] = &mut blocks;
        reader.members(&mut |reader, name| {
            match name {
                "schemes" => read.schemes = texts(reader)?,
                "allow_domains" => read.allow_domains = domains(reader)?,
                "deny_domains" => read.deny_domains = domains(reader)?,
                "allow_ports" => {
                    read.allow_ports = match reader.null() {
                        true => None,
                        false => Some(reader.list(MAX_DOMAINS, Reader::small)?),
                    };
                }
                "block_internal_tlds" => read.block_internal_tlds = reader.flag()?,
                // The names of `BLOCKS`. A search in that list is compiled to ten times the code of these lines.
                "block_private" => *private = reader.flag()?,
                "block_loopback" => *loopback = reader.flag()?,
                "block_metadata" => *metadata = reader.flag()?,
                "block_reserved" => *reserved = reader.flag()?,
                _ => return Err(Malformed("a safe URL has an unknown member")),
            }
            Ok(())
        })?;
        read.blocks = blocks;
        Ok(read)
    }

    pub fn write(&self, writer: &mut Writer) {
        let texts = |writer: &mut Writer, texts: &[String]| {
            writer.array(texts.len());
            texts.iter().for_each(|text| writer.text(text));
        };
        writer.map(9);
        writer.text("schemes");
        texts(writer, &self.schemes);
        for (name, domains) in
            [("allow_domains", &self.allow_domains), ("deny_domains", &self.deny_domains)]
        {
            writer.text(name);
            match domains {
                Some(domains) => texts(writer, domains),
                None => writer.null(),
            }
        }
        writer.text("allow_ports");
        match &self.allow_ports {
            Some(ports) => {
                writer.array(ports.len());
                ports.iter().for_each(|port| writer.unsigned(u64::from(*port)));
            }
            None => writer.null(),
        }
        for (name, block) in BLOCKS.iter().zip(self.blocks) {
            writer.text(name);
            writer.flag(block);
        }
        writer.text("block_internal_tlds");
        writer.flag(self.block_internal_tlds);
    }

    /// Whether the URL is safe; `None` if that is not certain. If only its host is not public, the answer is
    /// [`Fit::Inapplicable`]: the URL fits neither this constraint nor `not` of it. The reason is that the reference
    /// implementation takes some of these hosts for safe.
    ///
    /// # Errors
    ///
    /// It takes too much work.
    pub fn matches(&self, text: &str, work: &mut Work) -> Result<Option<Fit>, TooMuch> {
        work.spend(PARSE_STEPS + text.len())?;
        if !self.has_clear_domains(work)? {
            return Ok(None);
        }
        let Some(url) = parse(text) else { return Ok(None) };
        let (Some(host), Some(name)) = (url.host(), url.host_str()) else { return Ok(None) };
        let last = name.rsplit('.').next().unwrap_or_default();
        let within = |domains: &[String]| domains.iter().any(|domain| is_within(name, domain));
        let port = url.port_or_known_default();
        let is_safe = has_scheme(&self.schemes, url.scheme())
            && !(self.block_internal_tlds && INTERNAL_DOMAINS.contains(&last))
            && self
                .allow_ports
                .as_ref()
                .is_none_or(|ports| port.is_some_and(|port| ports.contains(&port)))
            && self.allow_domains.as_deref().is_none_or(within)
            && !self.deny_domains.as_deref().is_some_and(within);
        Ok(Some(match is_safe && not_public(&host).is_some() {
            true => Fit::Inapplicable,
            false => is_safe.into(),
        }))
    }

    fn has_clear_domains(&self, work: &mut Work) -> Result<bool, TooMuch> {
        let lists = [&self.allow_domains, &self.deny_domains];
        for domain in lists.into_iter().flatten().flatten() {
            work.spend(1 + domain.len().min(MAX_DOMAIN_BYTES))?;
            if !is_domain(domain) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether `other` is at most as wide. False if that is not certain.
    ///
    /// # Errors
    ///
    /// It takes too much work.
    pub fn covers(&self, other: &Self, work: &mut Work) -> Result<bool, TooMuch> {
        if !self.has_clear_domains(work)? || !other.has_clear_domains(work)? {
            return Ok(false);
        }
        work.spend(pairs(self.allow_domains.as_deref(), other.allow_domains.as_deref()))?;
        work.spend(pairs(self.deny_domains.as_deref(), other.deny_domains.as_deref()))?;
        work.spend(pairs(Some(&self.schemes), Some(&other.schemes)))?;
        let ports = |list: &Option<Vec<u16>>| list.as_ref().map_or(0, Vec::len);
        work.spend(ports(&self.allow_ports).saturating_mul(ports(&other.allow_ports)))?;
        // Each domain that `other` allows must be within one that `self` allows. A missing list allows all
        // domains.
        let allowed = match (&self.allow_domains, &other.allow_domains) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine), Some(theirs)) => are_within(theirs, mine),
        };
        // Each domain that `self` denies must be within one that `other` denies. If `self` has a list, even
        // an empty one, `other` must have one too.
        let denied = match (&self.deny_domains, &other.deny_domains) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine), Some(theirs)) => are_within(mine, theirs),
        };
        let ports = match (&self.allow_ports, &other.allow_ports) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(mine), Some(theirs)) => theirs.iter().all(|port| mine.contains(port)),
        };
        let mut blocks = self.blocks.iter().zip(&other.blocks);
        Ok(allowed
            && denied
            && ports
            && other.schemes.iter().all(|scheme| has_scheme(&self.schemes, scheme))
            && blocks.all(|(mine, theirs)| *theirs || !*mine)
            && (other.block_internal_tlds || !self.block_internal_tlds))
    }
}

/// Whether the list has the scheme. Capital letters mean the same.
#[inline(never)]
fn has_scheme(schemes: &[String], scheme: &str) -> bool {
    schemes.iter().any(|one| one.eq_ignore_ascii_case(scheme))
}

/// Whether each of `some` is within one of `others`.
#[inline(never)]
fn are_within(some: &[String], others: &[String]) -> bool {
    some.iter().all(|one| others.iter().any(|other| is_within(one, other)))
}

/// Steps of comparing each text of a list with each of another, at most.
#[inline(never)]
fn pairs(some: Option<&[String]>, others: Option<&[String]>) -> usize {
    let bytes: usize = some.unwrap_or_default().iter().map(|text| 1 + text.len() / 16).sum();
    bytes.saturating_mul(others.map_or(0, <[String]>::len))
}

#[inline(never)]
fn texts(reader: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    reader.list(MAX_DOMAINS, Reader::owned_text)
}

#[inline(never)]
fn domains(reader: &mut Reader<'_>) -> Result<Option<Vec<String>>, Malformed> {
    match reader.null() {
        true => Ok(None),
        false => texts(reader).map(Some),
    }
}

/// A host in lower case, or `*.` before a name: an address has no subdomains.
fn is_domain(domain: &str) -> bool {
    match domain.strip_prefix("*.") {
        None => host_kind(domain).is_some(),
        Some(suffix) => host_kind(suffix) == Some(HostKind::Name),
    }
}

/// What a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostKind {
    Name,
    /// An IPv4 address.
    Address,
}

/// What a host in lower case is; `None` if a parser of URLs may read it otherwise than it is written, as `0x7f.1`, or refuse
/// it, as some names with `xn--`. It is not asked: a warrant can have thousands of hosts.
fn host_kind(host: &str) -> Option<HostKind> {
    let of_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    if host.len() > MAX_DOMAIN_BYTES || !host.bytes().all(of_name) {
        return None;
    }
    if host.split('.').any(|label| label.is_empty() || label.starts_with("xn--")) {
        return None;
    }
    // The URL standard: a host whose last label is a number is an IPv4 address.
    let last = host.rsplit('.').next().unwrap_or_default();
    let is_hex = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_numeric = is_number(last) || last.strip_prefix("0x").is_some_and(is_hex);
    match is_numeric {
        false => Some(HostKind::Name),
        true => host.parse::<Ipv4Addr>().is_ok().then_some(HostKind::Address),
    }
}

/// Whether a host, or all hosts of a `*.` name, are within a domain of a list.
fn is_within(name: &str, domain: &str) -> bool {
    match domain.strip_prefix("*.") {
        None => name == domain,
        Some(suffix) => {
            let name = name.strip_prefix("*.").unwrap_or(name);
            name == suffix || name.strip_suffix(suffix).is_some_and(|before| before.ends_with('.'))
        }
    }
}

#[cfg(test)]
mod tests;
