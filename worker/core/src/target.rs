//! URLs to which the worker itself may send requests. A URL that an administrator registers must not reach
//! hosts inside of the worker's own network.
//!
//! INVARIANT (the checked URL is the called URL): the WHATWG URL parser reads the URL, as the runtime does,
//! so `0x7f.1` is recognized as `127.0.0.1`. The parsed URL is written anew, and only that text is used.
//!
//! Out of scope: what a host name resolves to, which the core cannot find out. The runtime must not connect
//! to private addresses either. Cloudflare's does not, and workerd does not by default.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// Bytes of a URL: what servers and proxies accept.
pub const MAX_TARGET_BYTES: usize = 2_048;

/// IPv4 networks that are not part of the public internet: IANA's special-purpose addresses (RFC 6890 and its
/// registry), multicast, and a cloud's metadata service whose address is in none of these.
const NOT_PUBLIC_V4: [(Ipv4Net, &str); 16] = [
    (v4([0, 0, 0, 0], 8), "an unspecified address"),
    (v4([10, 0, 0, 0], 8), "a private address"),
    (v4([100, 64, 0, 0], 10), "an address of a carrier's own network"),
    (v4([127, 0, 0, 0], 8), "a loopback address"),
    (v4([168, 63, 129, 16], 32), "a cloud's metadata address"),
    (v4([169, 254, 0, 0], 16), "a link-local address"),
    (v4([172, 16, 0, 0], 12), "a private address"),
    (v4([192, 0, 0, 0], 24), "a reserved address"),
    (v4([192, 0, 2, 0], 24), "an address for documentation"),
    (v4([192, 88, 99, 0], 24), "a reserved address"),
    (v4([192, 168, 0, 0], 16), "a private address"),
    (v4([198, 18, 0, 0], 15), "an address for benchmarks"),
    (v4([198, 51, 100, 0], 24), "an address for documentation"),
    (v4([203, 0, 113, 0], 24), "an address for documentation"),
    (v4([224, 0, 0, 0], 4), "a multicast address"),
    (v4([240, 0, 0, 0], 4), "a reserved address"),
];

/// The same for IPv6. All addresses that embed an IPv4 address are included: no server needs one, and the
/// embedded address would have to be checked too.
const NOT_PUBLIC_V6: [(Ipv6Net, &str); 13] = [
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "an unspecified address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "an IPv4 address in another form"),
    (v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4 address in another form"),
    (v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 32), "an IPv4 address in another form"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "a reserved address"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "an address for documentation"),
    (v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), "an IPv4 address in another form"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "an address for documentation"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "a private address"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "a link-local address"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "a private address"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "a multicast address"),
];

/// The addresses that are assigned on the public internet (RFC 4291, section 2.4).
const GLOBAL_UNICAST_V6: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// Top-level domains that are never on the public internet: RFC 6761, RFC 6762, ICANN's for private use, which clouds also
/// use for their metadata services, and that of `localhost.localdomain`, a second name of the host itself.
const NOT_PUBLIC_DOMAINS: [&str; 4] = ["localhost", "local", "internal", "localdomain"];

/// A cloud's metadata service has this name too, under a public top-level domain.
const METADATA_NAME: &str = "metadata.goog";

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    let [a, b, c, d] = octets;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix)
}

/// A URL to which requests may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target(Url);

impl Target {
    /// Parses a URL. With `local_targets`, which is for development, any host and `http` are allowed.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with the URL, to follow its name.
    pub fn parse(text: &str, local_targets: bool) -> Result<Self, String> {
        if text.len() > MAX_TARGET_BYTES {
            return Err(format!("must have at most {MAX_TARGET_BYTES} bytes"));
        }
        let mut url = Url::parse(text).map_err(|error| format!("must be a URL: {error}"))?;
        if url.scheme() != "https" && !(local_targets && url.scheme() == "http") {
            return Err("must begin with `https://`".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("must not contain a user or a password".to_owned());
        }
        // Clients never send a fragment.
        url.set_fragment(None);
        let refused = url.host().map_or(Some("no host"), |host| not_public(&host));
        match refused {
            Some(what) if !local_targets => {
                Err(format!("must be on the public internet, but its host is {what}"))
            }
            _ => Ok(Self(url)),
        }
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Scheme, host and port. The path is left out, since it may contain a secret.
    #[must_use]
    pub fn origin(&self) -> String {
        self.0.origin().ascii_serialization()
    }
}

/// What kind of host this is, if it is not on the public internet.
#[must_use]
pub fn not_public(host: &Host<&str>) -> Option<&'static str> {
    match host {
        Host::Ipv4(address) => {
            NOT_PUBLIC_V4.iter().find(|(net, _)| net.contains(address)).map(|(_, what)| *what)
        }
        Host::Ipv6(address) => NOT_PUBLIC_V6
            .iter()
            .find(|(net, _)| net.contains(address))
            .map(|(_, what)| *what)
            .or((!GLOBAL_UNICAST_V6.contains(address)).then_some("a reserved address")),
        Host::Domain(name) => {
            // A trailing dot only marks the name as complete.
            let name = name.strip_suffix('.').unwrap_or(name);
            let last = name.rsplit('.').next().unwrap_or_default();
            if name.split('.').any(str::is_empty) {
                Some("a name with an empty part")
            } else if NOT_PUBLIC_DOMAINS.contains(&last) {
                Some("a name of a local network")
            } else if name == METADATA_NAME {
                Some("a cloud's metadata service")
            } else if last == name {
                Some("a name without a dot")
            } else {
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_on_the_public_internet_is_accepted_and_normalized() {
        for (text, expected) in [
            ("https://example.com", "https://example.com/"),
            (" HTTPS://Example.COM:443/Hook?a=b#c\n", "https://example.com/Hook?a=b"),
            ("https://hooks.example.com:8443/x/../y", "https://hooks.example.com:8443/y"),
            ("https://example.com./", "https://example.com./"),
            ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
            ("https://8.8.8.8/", "https://8.8.8.8/"),
            ("https://134744072/", "https://8.8.8.8/"),
            ("https://172.32.0.1/", "https://172.32.0.1/"),
            ("https://100.128.0.1/", "https://100.128.0.1/"),
            ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
            ("https://localhost.example.com/", "https://localhost.example.com/"),
            ("https://internal.example/", "https://internal.example/"),
            ("https://localdomain.example/", "https://localdomain.example/"),
            ("https://a.metadata.goog/", "https://a.metadata.goog/"),
        ] {
            let target = Target::parse(text, false);
            assert_eq!(target.as_ref().map(Target::as_str), Ok(expected), "{text}");
        }
        let target = Target::parse("https://hooks.example.com:8443/secret?token=x", false).unwrap();
        assert_eq!(target.origin(), "https://hooks.example.com:8443");
    }

    #[test]
    fn a_host_that_is_not_on_the_public_internet_is_rejected_in_every_spelling() {
        let hosts = [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("0", "unspecified"),
            ("10.0.0.1", "private"),
            ("10.255.255.255", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.1.1", "private"),
            ("0xc0a80101", "private"),
            ("0300.0250.1.1", "private"),
            ("100.64.0.1", "carrier"),
            ("100.100.100.200", "carrier"),
            ("127.0.0.1", "loopback"),
            ("127.1", "loopback"),
            ("0x7f.1", "loopback"),
            ("0177.0.0.1", "loopback"),
            ("2130706433", "loopback"),
            ("%31%32%37.0.0.1", "loopback"),
            ("127.0.0.1.", "loopback"),
            ("168.63.129.16", "metadata"),
            ("169.254.169.254", "link-local"),
            ("169.254.170.2", "link-local"),
            ("192.0.0.192", "reserved"),
            ("192.88.99.1", "reserved"),
            ("192.0.2.1", "documentation"),
            ("198.51.100.1", "documentation"),
            ("203.0.113.1", "documentation"),
            ("198.19.255.255", "benchmarks"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.250", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "reserved"),
            ("[::]", "unspecified"),
            ("[::1]", "loopback"),
            ("[0:0:0:0:0:0:0:1]", "loopback"),
            ("[::ffff:127.0.0.1]", "another form"),
            ("[::ffff:7f00:1]", "another form"),
            ("[::ffff:8.8.8.8]", "another form"),
            ("[::127.0.0.1]", "another form"),
            ("[::a00:1]", "another form"),
            ("[64:ff9b::10.0.0.1]", "another form"),
            ("[64:ff9b:1::10.0.0.1]", "another form"),
            ("[2002:7f00:1::]", "another form"),
            ("[2001::1]", "reserved"),
            ("[2001:2::1]", "reserved"),
            ("[2001:db8::1]", "documentation"),
            ("[3fff::1]", "documentation"),
            ("[fc00::1]", "private"),
            ("[fd00:ec2::254]", "private"),
            ("[fe80::1]", "link-local"),
            ("[fec0::1]", "private"),
            ("[ff02::1]", "multicast"),
            ("[100::1]", "reserved"),
            ("[4000::1]", "reserved"),
            ("localhost", "local network"),
            ("LOCALHOST.", "local network"),
            ("a.localhost", "local network"),
            ("printer.local", "local network"),
            ("metadata.google.internal", "local network"),
            ("metadata.google.internal.", "local network"),
            ("localhost.localdomain", "local network"),
            ("a.localdomain.", "local network"),
            ("metadata.goog", "metadata service"),
            ("METADATA.goog.", "metadata service"),
            ("metadata", "without a dot"),
            ("intranet.", "without a dot"),
            ("com", "without a dot"),
            ("localhost..", "an empty part"),
            ("a..example.com", "an empty part"),
        ];
        for (host, expected) in hosts {
            let refused = Target::parse(&format!("https://{host}:8443/x"), false);
            let sentence = refused.clone().unwrap_err();
            assert!(sentence.contains(expected), "{host}: {sentence}");
            let text = format!("http://{host}/x");
            assert!(Target::parse(&text, true).is_ok(), "{host} in development");
        }
    }

    #[test]
    fn a_url_that_is_not_valid_is_rejected() {
        let long = format!("https://example.com/{}", "x".repeat(MAX_TARGET_BYTES));
        for (text, expected) in [
            ("", "must be a URL"),
            ("example.com", "must be a URL"),
            ("//example.com", "must be a URL"),
            ("https://", "must be a URL"),
            ("https://exa mple.com", "must be a URL"),
            ("https://256.1.1.1/", "must be a URL"),
            // Browsers read these as 127.0.0.1, and the name in Punycode.
            ("https://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", "must be a URL"),
            ("https://127\u{3002}0\u{3002}0\u{3002}1/", "must be a URL"),
            ("https://b\u{fc}cher.example/", "must be a URL"),
            ("https://[fe80::1%25eth0]/", "must be a URL"),
            ("ftp://example.com", "must begin with `https://`"),
            ("file:///etc/passwd", "must begin with `https://`"),
            ("data:text/plain,x", "must begin with `https://`"),
            ("javascript:alert(1)", "must begin with `https://`"),
            ("https://user@example.com/", "a user or a password"),
            ("https://:secret@example.com/", "a user or a password"),
            ("https://example.com@127.0.0.1/", "a user or a password"),
            (long.as_str(), "at most 2048 bytes"),
        ] {
            for local_targets in [false, true] {
                let sentence = Target::parse(text, local_targets).unwrap_err();
                assert!(sentence.contains(expected), "{text}: {sentence}");
            }
        }
        let plain = "http://example.com/";
        assert_eq!(
            Target::parse(plain, false),
            Err("must begin with `https://`".to_owned()),
            "{plain}"
        );
        assert_eq!(Target::parse(plain, true).unwrap().as_str(), plain);
    }
}
