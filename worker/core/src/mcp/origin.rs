//! Which web pages may send requests: pages of the same `https` origin and, locally, pages of this machine.
//!
//! With DNS rebinding, a hostile page points its own host name to this machine. It then sends that name
//! both as the host and in `Origin`. So equal names prove nothing without TLS.

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Whether a request from a page of `origin` is served. `own` is the origin that received it.
#[must_use]
pub fn is_allowed(origin: &str, own: &str) -> bool {
    let secure = own.starts_with("https://") && origin.eq_ignore_ascii_case(own);
    secure || (is_loopback(origin) && is_loopback(own))
}

fn is_loopback(origin: &str) -> bool {
    let Some((_, host)) = origin.split_once("://") else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    LOOPBACK.iter().any(|loopback| name.eq_ignore_ascii_case(loopback))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_the_same_https_origin_or_of_this_machine_are_served() {
        for (origin, own, expected) in [
            ("https://gate.example.com", "https://gate.example.com", true),
            ("https://other.example.com", "https://gate.example.com", false),
            ("https://gate.example.com:8443", "https://gate.example.com", false),
            ("http://gate.example.com", "https://gate.example.com", false),
            ("http://evil.example.com", "http://evil.example.com", false),
            ("http://localhost:5173", "http://127.0.0.1:8787", true),
            ("http://[::1]:1", "http://localhost", true),
            ("http://evil.example.com", "http://localhost:8787", false),
            ("http://localhost.evil.example.com", "http://localhost:8787", false),
            ("http://localhost:1", "http://evil.example.com", false),
            ("null", "http://localhost:8787", false),
            ("", "http://localhost:8787", false),
        ] {
            assert_eq!(is_allowed(origin, own), expected, "{origin} at {own}");
        }
    }
}
