//! Which headers a proxy passes on, in each direction, and who may store an answer.

use crate::name::OWN_PREFIX;
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

/// What of a caller's goes to every upstream: which form of the answer it takes, which version of
/// the resource it knows, which request this is, and who sends it. None of these changes what a
/// request does or for whom, and so they need no decision. `Prefer` and `Baggage` are not among them:
/// some APIs act on what these say.
const ALLOWED: [&str; 16] = [
    "accept",
    "accept-charset",
    "accept-language",
    "cache-control",
    "content-language",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
    "traceparent",
    "tracestate",
    "user-agent",
    "x-request-id",
];

/// What a caller sends for Gateward alone, or what is made anew: its credential and signature, its
/// cookies for this host name, where it came from, and what says how the body is to be read.
const CALLERS_OWN: [&str; 20] = [
    "accept-encoding",
    "authorization",
    "client-ip",
    "content-digest",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "signature",
    "signature-input",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-host",
    "x-real-ip",
    "x-remote-user",
];

/// With these some APIs take a request for another one than it is.
const OVERRIDES: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// How names begin that say where a request came from.
const ORIGIN_PREFIXES: [&str; 2] = ["cf-", "x-forwarded-"];

/// Bytes of a header's name that can be registered: the longest in IANA's registry has some 50.
pub const MAX_HEADER_NAME_BYTES: usize = 64;

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

const CACHE_CONTROL: &str = "cache-control";

/// How the names of headers end that say the same to some caches alone, before `Cache-Control`
/// (RFC 9213, and what was there before it).
const TARGETED: [&str; 2] = ["cdn-cache-control", "surrogate-control"];

/// Whether `name` is a header's name in lower case (RFC 9110, section 5.6.2).
#[must_use]
pub fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    !name.is_empty() && name.bytes().all(token)
}

/// Whether a header of a caller's can be registered to go to an upstream: it has a name of its own,
/// and is neither for this hop alone nor about who the caller is or which request this is.
#[must_use]
pub fn is_forwardable(name: &str) -> bool {
    // CGI and its like cannot tell an underscore from a hyphen, and take `x_gateward_agent` for ours.
    is_header_name(name)
        && name.len() <= MAX_HEADER_NAME_BYTES
        && !name.contains('_')
        && !HOP_BY_HOP.contains(&name)
        && !CALLERS_OWN.contains(&name)
        && !OVERRIDES.contains(&name)
        && !name.starts_with(OWN_PREFIX)
        && !ORIGIN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Those of a caller's headers that go to an upstream: what goes to every one, and what is registered
/// for this one. Names are in lower case.
#[must_use]
pub fn to_upstream(headers: Vec<(String, String)>, registered: &[String]) -> Vec<(String, String)> {
    end_to_end(headers, |name| {
        let is_wanted = ALLOWED.contains(&name) || registered.iter().any(|known| known == name);
        is_wanted && is_forwardable(name)
    })
}

/// Those of an upstream's headers that go to the caller; names are in lower case. Unless the answer is
/// for shared caches too, none may store it: another agent was not asked whether it may see it.
#[must_use]
pub fn to_caller(headers: Vec<(String, String)>, shared_cache: bool) -> Vec<(String, String)> {
    let headers =
        end_to_end(headers, |name| !UPSTREAMS_OWN.contains(&name) && !name.starts_with(OWN_PREFIX));
    if shared_cache { headers } else { private(headers) }
}

/// The headers of an answer that only the caller's own cache may store. Whatever else the upstream
/// says of storing it stays, so that nothing becomes weaker.
fn private(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    let (said, mut headers): (Vec<_>, Vec<_>) =
        headers.into_iter().partition(|(name, _)| name == CACHE_CONTROL);
    headers.retain(|(name, _)| !TARGETED.iter().any(|end| name.ends_with(end)));
    let kept = said.iter().flat_map(|(_, value)| directives(value)).filter(|directive| {
        let name = directive.split('=').next().unwrap_or_default().trim();
        // `private="x"` makes only that field private.
        !["public", "s-maxage", "private"].iter().any(|gone| gone.eq_ignore_ascii_case(name))
    });
    let value: Vec<&str> = std::iter::once("private").chain(kept).collect();
    headers.push((CACHE_CONTROL.to_owned(), value.join(", ")));
    headers
}

/// The directives of a `Cache-Control`; a comma within quotes ends none.
fn directives(value: &str) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    let ends = move |character: char| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ',' => return !quoted,
            _ => {}
        }
        false
    };
    value.split(ends).map(str::trim).filter(|directive| !directive.is_empty())
}

/// The headers that go from end to end and that are `wanted`.
fn end_to_end(
    headers: Vec<(String, String)>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    // A sender may name more that is for the next hop alone.
    let named: HashSet<String> = headers
        .iter()
        .filter(|(name, _)| name == "connection")
        .flat_map(|(_, value)| value.split(',').map(|name| name.trim().to_ascii_lowercase()))
        .collect();
    let mut headers = headers;
    headers.retain(|(name, _)| {
        let name = name.as_str();
        !HOP_BY_HOP.contains(&name) && !named.contains(name) && wanted(name)
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
    fn of_a_callers_headers_an_upstream_gets_those_that_are_listed() {
        let headers = || {
            sent(&[
                ("accept", "*/*"),
                ("idempotency-key", "k"),
                ("x-api-version", "2"),
                ("x-user", "root"),
                ("authorization", "Bearer gw_t"),
                ("connection", "close, X-Hop"),
                ("cookie", "a=b"),
                ("cf-connecting-ip", "192.0.2.1"),
                ("content-digest", "sha-256=:AA==:"),
                ("content-type", "application/json"),
                ("host", "gate"),
                ("signature", "sig1=:AA==:"),
                ("signature-input", "sig1=()"),
                ("x-forwarded-for", "192.0.2.1"),
                ("x-gateward-agent", "root"),
                ("x_gateward_agent", "root"),
                ("x-hop", "1"),
                ("x-http-method-override", "DELETE"),
                ("x-trace", "1"),
            ])
        };
        let registered = |listed: &[&str]| -> Vec<String> {
            listed.iter().map(|name| (*name).to_owned()).collect()
        };
        for (listed, expected) in [
            (&[][..], &["accept", "idempotency-key"][..]),
            (
                &["x-api-version", "x-trace"],
                &["accept", "idempotency-key", "x-api-version", "x-trace"],
            ),
            // What was registered by the rules of another version is still held to these.
            (
                &["cookie", "x-gateward-agent", "x-forwarded-for", "x-hop"],
                &["accept", "idempotency-key"],
            ),
        ] {
            assert_eq!(names(&to_upstream(headers(), &registered(listed))), expected, "{listed:?}");
        }
        for name in ALLOWED {
            assert!(is_forwardable(name), "{name}");
        }
    }

    #[test]
    fn what_says_who_the_caller_is_or_which_request_this_is_is_never_forwarded() {
        for (name, expected) in [
            ("x-api-version", true),
            ("x-tenant", true),
            ("prefer", true),
            ("", false),
            ("X-Api-Version", false),
            ("x api", false),
            ("x:y", false),
            ("x_api_version", false),
            ("authorization", false),
            ("cookie", false),
            ("signature", false),
            ("signature-input", false),
            ("content-digest", false),
            ("content-type", false),
            ("content-length", false),
            ("transfer-encoding", false),
            ("connection", false),
            ("x-gateward-agent", false),
            ("x-forwarded-host", false),
            ("cf-connecting-ip", false),
            ("x-http-method-override", false),
            ("x-original-url", false),
            (&"x".repeat(MAX_HEADER_NAME_BYTES + 1), false),
        ] {
            assert_eq!(is_forwardable(name), expected, "{name}");
        }
    }

    #[test]
    fn no_shared_cache_stores_an_answer_unless_it_may() {
        for (headers, shared, expected) in [
            (&[][..], "", "cache-control: private"),
            (
                &[("cache-control", "public, max-age=60")],
                "cache-control: public, max-age=60",
                "cache-control: private, max-age=60",
            ),
            (
                &[("cache-control", "Public"), ("cache-control", "S-MaxAge=60 , immutable,")],
                "cache-control: Public; cache-control: S-MaxAge=60 , immutable,",
                "cache-control: private, immutable",
            ),
            (
                &[("cache-control", "no-store")],
                "cache-control: no-store",
                "cache-control: private, no-store",
            ),
            (
                &[("cache-control", "private=\"a, public\", no-cache=\"b, s-maxage\"")],
                "cache-control: private=\"a, public\", no-cache=\"b, s-maxage\"",
                "cache-control: private, no-cache=\"b, s-maxage\"",
            ),
            (
                &[
                    ("cdn-cache-control", "max-age=60"),
                    ("cloudflare-cdn-cache-control", "max-age=60"),
                    ("surrogate-control", "max-age=60"),
                ],
                "cdn-cache-control: max-age=60; cloudflare-cdn-cache-control: max-age=60; surrogate-control: max-age=60",
                "cache-control: private",
            ),
        ] {
            let answered = |shared_cache| {
                let headers = to_caller(sent(headers), shared_cache);
                let lines = headers.iter().map(|(name, value)| [name, ": ", value].concat());
                lines.collect::<Vec<_>>().join("; ")
            };
            assert_eq!((answered(true).as_str(), answered(false).as_str()), (shared, expected));
        }
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
        assert_eq!(names(&to_caller(headers, true)), ["content-type", "etag"]);
    }
}
