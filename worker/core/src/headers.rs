//! Which headers a proxy passes on, in each direction.

use std::collections::HashSet;

/// Between two hops, not between the ends (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What of a caller's is Gateward's, or is made anew: its credential, its cookies for this host name,
/// where it came from, and what says how the body is to be read.
const CALLERS_OWN: [&str; 10] = [
    "accept-encoding",
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "x-real-ip",
];

/// With these some APIs take a request for another one than it is.
const OVERRIDES: [&str; 5] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
];

/// What Gateward says to upstreams, and to callers, in its own name.
pub const OWN_PREFIX: &str = "x-gateward-";

/// What an upstream says of itself, of a body that comes in another form from here, or of its own
/// host name, which the caller does not know it by.
const UPSTREAMS_OWN: [&str; 11] = [
    "alt-svc",
    "clear-site-data",
    "content-encoding",
    "content-length",
    "ratelimit",
    "ratelimit-policy",
    "server",
    "set-cookie",
    "strict-transport-security",
    "x-powered-by",
    "x-request-id",
];

/// Those of a caller's headers that go to an upstream; names are in lower case.
#[must_use]
pub fn to_upstream(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    let own = |name: &str| {
        // CGI and its like cannot tell it from a hyphen, and take `x_gateward_agent` for ours.
        name.contains('_')
            || CALLERS_OWN.contains(&name)
            || OVERRIDES.contains(&name)
            || ["cf-", "x-forwarded-"].iter().any(|prefix| name.starts_with(prefix))
    };
    end_to_end(headers, own)
}

/// Those of an upstream's headers that go to the caller; names are in lower case.
#[must_use]
pub fn to_caller(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    end_to_end(headers, |name| UPSTREAMS_OWN.contains(&name))
}

fn end_to_end(headers: Vec<(String, String)>, own: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    // A sender may name more that is for the next hop alone.
    let named: HashSet<String> = headers
        .iter()
        .filter(|(name, _)| name == "connection")
        .flat_map(|(_, value)| value.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .collect();
    let mut headers = headers;
    headers.retain(|(name, _)| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name)
            && !named.contains(name)
            && !name.starts_with(OWN_PREFIX)
            && !own(name)
    });
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(headers: &[(String, String)]) -> Vec<&str> {
        headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn sent(headers: &[(&str, &str)]) -> Vec<(String, String)> {
        headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_caller_passes_on_what_it_says_to_the_upstream_and_nothing_else() {
        let headers = sent(&[
            ("accept", "*/*"),
            ("authorization", "Bearer gw_t"),
            ("connection", "close, X-Hop"),
            ("cookie", "a=b"),
            ("cf-connecting-ip", "192.0.2.1"),
            ("content-type", "application/json"),
            ("host", "gate"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-gateward-agent", "root"),
            ("x_gateward_agent", "root"),
            ("x-hop", "1"),
            ("x-http-method-override", "DELETE"),
            ("x-trace", "1"),
        ]);
        assert_eq!(names(&to_upstream(headers)), ["accept", "x-trace"]);
    }

    #[test]
    fn an_upstream_says_nothing_of_itself() {
        let headers = sent(&[
            ("content-encoding", "gzip"),
            ("content-type", "text/html"),
            ("etag", "\"1\""),
            ("server", "nginx"),
            ("set-cookie", "a=b"),
            ("transfer-encoding", "chunked"),
            ("x-gateward-decision", "allow"),
            ("x-powered-by", "PHP"),
        ]);
        assert_eq!(names(&to_caller(headers)), ["content-type", "etag"]);
    }
}
