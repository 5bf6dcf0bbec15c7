//! Which headers a proxy forwards in each direction, and which caches may store a response.

use crate::json::Json;
use crate::name::OWN_PREFIX;
use crate::warrant::carried::HEADER_PREFIX;
use std::collections::HashSet;

/// Headers for one connection only (RFC 9110, section 7.6.1).
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

/// The caller's headers that go to every upstream. None of them changes what a request does or for whom, so
/// policies need not see them. `Prefer` and `Baggage` are missing because some APIs act on them.
const ALLOWED: [&str; 14] = [
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
    "user-agent",
    "x-request-id",
];

/// The caller's headers that are never forwarded: for Gateward only (credential, signature), for this host
/// name only (cookies), about the caller's address, or those that Gateward sets anew: about the body, and about the
/// trace (`trace.rs`).
const NEVER_FORWARDED: [&str; 22] = [
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
    "traceparent",
    "tracestate",
    "true-client-ip",
    "via",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-original-host",
    "x-real-ip",
    "x-remote-user",
];

/// Headers by which some APIs replace the method or the URL of a request.
const OVERRIDES: [&str; 6] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
];

/// Prefixes of headers that say where a request came from.
const ORIGIN_PREFIXES: [&str; 2] = ["cf-", "x-forwarded-"];

/// Bytes of the name of a header that can be registered. The longest in IANA's registry has some 50.
pub const MAX_HEADER_NAME_BYTES: usize = 64;

/// An upstream's headers that are not forwarded: about the upstream itself, about its host name, which the
/// caller does not use, or about the body, for which Gateward sets them anew.
const NOT_RETURNED: [&str; 11] = [
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

/// Headers of a response that hold only for its bytes as the upstream sent them.
const OF_BYTES: [&str; 10] = [
    "accept-ranges",
    "content-digest",
    "content-md5",
    "content-range",
    "digest",
    "etag",
    "last-modified",
    "repr-digest",
    "signature",
    "signature-input",
];

/// Headers that ask for a part of a body.
const OF_PARTS: [&str; 2] = ["if-range", "range"];

/// Whether a header asks for a part of a body.
#[must_use]
pub fn is_range_header(name: &str) -> bool {
    OF_PARTS.contains(&name)
}

/// Whether bodies of this media type are pictures, sounds or films, which nobody reads as text.
#[must_use]
pub fn is_media_type(media_type: &str) -> bool {
    ["image/", "audio/", "video/"].iter().any(|kind| {
        let begin = media_type.trim_start().as_bytes().get(..kind.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(kind.as_bytes()))
    }) && !media_type.contains("svg")
}

/// Whether a header becomes wrong if the body is changed.
#[must_use]
pub fn describes_sent_bytes(name: &str) -> bool {
    OF_BYTES.contains(&name)
}

const CACHE_CONTROL: &str = "cache-control";

/// Suffixes of headers that take precedence over `Cache-Control` in some caches (RFC 9213 and older ones).
const TARGETED: [&str; 2] = ["cdn-cache-control", "surrogate-control"];

/// Whether `name` is a header's name in lower case (RFC 9110, section 5.6.2).
#[must_use]
pub fn is_header_name(name: &str) -> bool {
    let token = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte)
    };
    !name.is_empty() && name.bytes().all(token)
}

/// Whether a caller's header can be registered for forwarding. Headers for this connection, and headers
/// that say who the caller is or which request it makes, cannot.
#[must_use]
pub fn is_forwardable(name: &str) -> bool {
    // CGI does not distinguish underscores from hyphens, so `x_gateward_agent` would pass for Gateward's.
    is_header_name(name)
        && name.len() <= MAX_HEADER_NAME_BYTES
        && !name.contains('_')
        && !HOP_BY_HOP.contains(&name)
        && !NEVER_FORWARDED.contains(&name)
        && !OVERRIDES.contains(&name)
        && !name.starts_with(OWN_PREFIX)
        && !name.starts_with(HEADER_PREFIX)
        && !ORIGIN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The caller's headers that go to an upstream: those for every upstream, and those that are registered for
/// this one. Names are in lower case.
#[must_use]
pub fn to_upstream(headers: Vec<(String, String)>, registered: &[String]) -> Vec<(String, String)> {
    end_to_end(headers, |name| is_wanted(name, registered))
}

fn is_wanted(name: &str, registered: &[String]) -> bool {
    (ALLOWED.contains(&name) || registered.iter().any(|known| known == name))
        && is_forwardable(name)
}

/// The name of the only member of the object that [`beside`] returns.
const HEADERS: &str = "headers";

/// The caller's headers that some upstream may get, for the shield.
#[must_use]
pub fn beside(headers: Vec<(String, String)>) -> Json {
    let headers = end_to_end(headers, is_forwardable);
    let headers = headers.into_iter().map(|(name, value)| (name, Json::String(value)));
    Json::Object(vec![(HEADERS.to_owned(), Json::Object(headers.collect()))])
}

/// Removes from the result of [`beside`] all headers that this upstream does not get. `registered` are the
/// headers that are registered for the upstream.
pub fn retain_forwarded(beside: &mut Json, registered: &[String]) {
    if let Json::Object(members) = beside
        && let Some((_, Json::Object(headers))) = members.first_mut()
    {
        headers.retain(|(name, _)| is_wanted(name, registered));
    }
}

/// Which caches may store a response, as far as the upstream allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caches {
    All,
    /// Only the caller's own. A shared one would serve the response to agents that no policy decided on.
    Own,
    /// The caller's own cache would serve the response in a later run, which it would not taint.
    None,
}

/// The upstream's headers that go to the caller. Names are in lower case.
#[must_use]
pub fn to_caller(headers: Vec<(String, String)>, caches: Caches) -> Vec<(String, String)> {
    let headers =
        end_to_end(headers, |name| !NOT_RETURNED.contains(&name) && !name.starts_with(OWN_PREFIX));
    match caches {
        Caches::All => headers,
        Caches::Own => private(headers),
        Caches::None => {
            let mut headers = private(headers);
            // Nothing beside `no-store`: `must-understand` would lift it (RFC 9111, section 5.2.2.3).
            headers.retain(|(name, _)| name != CACHE_CONTROL);
            headers.push((CACHE_CONTROL.to_owned(), "no-store".to_owned()));
            headers
        }
    }
}

/// The headers of a response that only the caller's own cache may store. The upstream's other cache
/// directives stay, so the result is never weaker than the upstream's.
fn private(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    let (cache_control, mut headers): (Vec<_>, Vec<_>) =
        headers.into_iter().partition(|(name, _)| name == CACHE_CONTROL);
    headers.retain(|(name, _)| !TARGETED.iter().any(|end| name.ends_with(end)));
    let kept = cache_control.iter().flat_map(|(_, value)| directives(value)).filter(|directive| {
        let name = directive.split('=').next().unwrap_or_default().trim();
        // `private="x"` makes only that field private.
        !["public", "s-maxage", "private"].iter().any(|gone| gone.eq_ignore_ascii_case(name))
    });
    let value: Vec<&str> = std::iter::once("private").chain(kept).collect();
    headers.push((CACHE_CONTROL.to_owned(), value.join(", ")));
    headers
}

/// The directives of a `Cache-Control`. A comma inside of quotes does not end a directive.
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

/// The end-to-end headers that are `wanted`.
fn end_to_end(
    headers: Vec<(String, String)>,
    wanted: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    // `Connection` names further headers that are for one connection only.
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
    fn what_the_shield_reads_is_what_is_forwarded() {
        let names = ["authorization", "cookie", "user-agent", "x-filter", "x-other"];
        let sent = names.map(|name| (name.to_owned(), "v".to_owned())).to_vec();
        let mut beside = beside(sent);
        assert_eq!(
            beside.canonical(),
            r#"{"headers":{"user-agent":"v","x-filter":"v","x-other":"v"}}"#
        );
        retain_forwarded(&mut beside, &["x-filter".to_owned()]);
        assert_eq!(beside.canonical(), r#"{"headers":{"user-agent":"v","x-filter":"v"}}"#);
    }

    #[test]
    fn an_upstream_gets_only_allowed_and_registered_headers() {
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
                ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
                ("tracestate", "a=1"),
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
            // Headers that an older version let register are still checked.
            (
                &["cookie", "traceparent", "x-gateward-agent", "x-forwarded-for", "x-hop"],
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
    fn headers_about_the_caller_or_the_request_cannot_be_registered() {
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
            ("traceparent", false),
            ("tracestate", false),
            ("content-digest", false),
            ("content-type", false),
            ("content-length", false),
            ("transfer-encoding", false),
            ("connection", false),
            ("x-gateward-agent", false),
            ("x-tenuo-pop", false),
            ("x-tenuo-warrant-id", false),
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
    fn the_gateways_of_forward_auth_remove_headers_that_replace_the_request() {
        let page = include_str!("../../../../docs/forward-auth.md").to_lowercase();
        for (gateway, before, after) in [
            ("nginx", "proxy_set_header ", " \"\";"),
            ("traefik", " ", ": \"\""),
            ("envoy", "- ", ""),
            ("caddy", " -", ""),
        ] {
            let (_, section) = page.split_once(&format!("\n## {gateway}\n")).unwrap();
            let section = section.split("\n## ").next().unwrap();
            for name in OVERRIDES {
                let line = [before, name, after, "\n"].concat();
                assert!(section.contains(&line), "{gateway} does not remove {name}");
            }
        }
    }

    #[test]
    fn no_shared_cache_stores_a_response_unless_allowed() {
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
            let answered = |caches| {
                let headers = to_caller(sent(headers), caches);
                let lines = headers.iter().map(|(name, value)| [name, ": ", value].concat());
                lines.collect::<Vec<_>>().join("; ")
            };
            let seen = (answered(Caches::All), answered(Caches::Own));
            assert_eq!((seen.0.as_str(), seen.1.as_str()), (shared, expected));
            assert_eq!(answered(Caches::None), "cache-control: no-store");
        }
    }

    #[test]
    fn an_upstreams_headers_about_itself_are_not_returned() {
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
        assert_eq!(names(&to_caller(headers, Caches::All)), ["content-type", "etag"]);
    }
}
