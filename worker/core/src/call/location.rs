//! Where the `Location` and `Content-Location` of an API lead a caller of Gateward.
//!
//! INVARIANT (an API does not choose the caller's next call): a caller resolves these headers against the URL
//! that it sent, which is Gateward's, and HTTP clients repeat their credential when they stay on one host. So no value is
//! passed on as the API wrote it. It leads below the server's own prefix, or to another host.
//!
//! Out of scope: addresses in other headers (`Link`, `Refresh`) and in bodies, which HTTP clients do not follow by themselves.

use url::Url;

/// Whether the value of a response's header is an address that clients resolve or follow.
#[must_use]
pub fn is_address(name: &str) -> bool {
    matches!(name, "location" | "content-location")
}

/// The URLs of one exchange with an API.
#[derive(Debug, Clone, Copy)]
pub struct Exchanged<'a> {
    /// The URL that was requested of the API.
    pub sent: &'a str,
    /// The URL that the API is registered with.
    pub base: &'a str,
    /// The name under which the API is registered.
    pub server: &'a str,
    /// Scheme, host and port at which the caller reached Gateward.
    pub own_origin: &'a str,
}

impl Exchanged<'_> {
    /// The value for the caller: a path of Gateward's for an address below the API's registered URL, and otherwise the whole
    /// address. `None`: the header is removed. The address cannot be read, is not one of HTTP, or is on
    /// Gateward's host.
    #[must_use]
    pub fn to_caller(&self, value: &str) -> Option<String> {
        let url = Url::parse(self.sent).ok()?.join(value).ok()?;
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        if let Some(rest) = below(&url, &Url::parse(self.base).ok()?) {
            return Some(["/http/", self.server, &rest].concat());
        }
        // Only the host counts. A proxy in front of Gateward can have another scheme and another port.
        let own = Url::parse(self.own_origin).ok()?;
        (host(&url) != host(&own)).then(|| url.into())
    }
}

/// What follows the base in the URL, from a slash on: the rest of the path, query and fragment. `None` if the URL is not
/// below the base.
fn below(url: &Url, base: &Url) -> Option<String> {
    if url.origin() != base.origin() {
        return None;
    }
    let path = url.path().strip_prefix(base.path().trim_end_matches('/'))?;
    if !path.is_empty() && !path.starts_with('/') {
        return None;
    }
    let mut rest = if path.is_empty() { "/" } else { path }.to_owned();
    for (mark, part) in [("?", url.query()), ("#", url.fragment())] {
        rest.extend(part.into_iter().flat_map(|part| [mark, part]));
    }
    Some(rest)
}

/// The host, without the dot that marks a name as complete.
fn host(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCHANGED: Exchanged<'_> = Exchanged {
        sent: "https://api.example.com/v3/orders?draft=1",
        base: "https://api.example.com/v3/?ignored",
        server: "shop",
        own_origin: "https://Gate.example.com",
    };

    #[test]
    fn an_address_leads_below_the_servers_prefix_or_to_another_host() {
        for (value, expected) in [
            // Below the registered URL.
            ("/v3/orders/7", Some("/http/shop/orders/7")),
            ("https://api.example.com/v3/orders/7", Some("/http/shop/orders/7")),
            ("HTTPS://API.Example.COM:443/v3/orders/7", Some("/http/shop/orders/7")),
            ("https://user:secret@api.example.com/v3/a", Some("/http/shop/a")),
            ("//api.example.com/v3/orders/7?a=b#c", Some("/http/shop/orders/7?a=b#c")),
            ("orders/7", Some("/http/shop/orders/7")),
            ("?page=2", Some("/http/shop/orders?page=2")),
            ("#top", Some("/http/shop/orders?draft=1#top")),
            ("", Some("/http/shop/orders?draft=1")),
            ("/v3", Some("/http/shop/")),
            ("/v3?a=b", Some("/http/shop/?a=b")),
            ("/v3/", Some("/http/shop/")),
            ("/v3//gate.example.com/x", Some("/http/shop//gate.example.com/x")),
            (r"\v3\orders", Some("/http/shop/orders")),
            (" \t/v3/or\nders\r ", Some("/http/shop/orders")),
            ("/v3/ä b", Some("/http/shop/%C3%A4%20b")),
            // Elsewhere on the API's host, so the address is whole.
            ("/orders/7", Some("https://api.example.com/orders/7")),
            (
                "/http/bank/payments?amount=900",
                Some("https://api.example.com/http/bank/payments?amount=900"),
            ),
            ("/v1/agents", Some("https://api.example.com/v1/agents")),
            ("/v30/orders", Some("https://api.example.com/v30/orders")),
            ("/V3/orders", Some("https://api.example.com/V3/orders")),
            ("../http/bank/x", Some("https://api.example.com/http/bank/x")),
            ("/v3/../http/bank/x", Some("https://api.example.com/http/bank/x")),
            ("/v3/%2E%2e/http/bank/x", Some("https://api.example.com/http/bank/x")),
            ("http://api.example.com/v3/a", Some("http://api.example.com/v3/a")),
            ("https://api.example.com:8443/v3/a", Some("https://api.example.com:8443/v3/a")),
            // On another host.
            ("https://other.example.com/x?y#z", Some("https://other.example.com/x?y#z")),
            ("//other.example.com", Some("https://other.example.com/")),
            (r"\\other.example.com\x", Some("https://other.example.com/x")),
            ("http://169.254.169.254/latest", Some("http://169.254.169.254/latest")),
            (
                "https://gate.example.com.evil.example/x",
                Some("https://gate.example.com.evil.example/x"),
            ),
            // On Gateward's host.
            ("https://gate.example.com/http/bank/payments", None),
            ("https://GATE.example.com:443/v1/agents", None),
            ("//gate.example.com/http/bank/payments", None),
            (r"\\gate.example.com\http\bank", None),
            ("https:/\t/gate.example.com/x", None),
            ("http://gate.example.com/x", None),
            ("https://gate.example.com:8443/x", None),
            ("https://gate.example.com./x", None),
            ("https://g%61te.example.com/x", None),
            ("https://ｇate.example.com/x", None),
            ("https://user@gate.example.com/x", None),
            // No address that HTTP clients follow.
            ("https://", None),
            ("https://a b/", None),
            ("http://[::1", None),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("mailto:a@example.com", None),
        ] {
            assert_eq!(EXCHANGED.to_caller(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn a_base_without_a_path_is_the_whole_origin_also_on_the_machine_of_gateward() {
        let local = Exchanged {
            sent: "http://127.0.0.1:4000/orders",
            base: "http://127.0.0.1:4000",
            own_origin: "http://127.0.0.1:8787",
            ..EXCHANGED
        };
        for (value, expected) in [
            ("/http/bank/payments", Some("/http/shop/http/bank/payments")),
            ("//127.0.0.1:4000//x", Some("/http/shop//x")),
            ("http://127.1:4000/x", Some("/http/shop/x")),
            ("http://127.0.0.1:8787/http/bank/payments", None),
            ("http://0x7f.1:8787/", None),
        ] {
            assert_eq!(local.to_caller(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn without_readable_urls_no_address_is_passed_on() {
        for broken in [
            Exchanged { sent: "", ..EXCHANGED },
            Exchanged { base: "", ..EXCHANGED },
            Exchanged { own_origin: "", ..EXCHANGED },
        ] {
            assert_eq!(broken.to_caller("https://other.example.com/"), None, "{broken:?}");
        }
    }
}
