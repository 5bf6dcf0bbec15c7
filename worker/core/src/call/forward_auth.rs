//! Forward authentication: reads the original request, as nginx, Traefik, Caddy and Envoy describe it.
//!
//! INVARIANT (one request): policies decide on the request that the gateway received. A client can send
//! the headers that another kind of gateway would set. So all descriptions must agree, and method and URI
//! must come from the same kind of gateway.
//!
//! Out of scope: bodies and the arguments in them, because these gateways do not send them.

use url::form_urlencoded;

use crate::call::http_tool::HttpRequest;
use crate::name::is_name;
use crate::problem::{Problem, ProblemCode};

/// Bytes of a method: the longest that is registered is `UPDATEREDIRECTREF`.
const MAX_METHOD_BYTES: usize = 32;

/// Bytes of a URI: nginx's default limit for a request line.
const MAX_URI_BYTES: usize = 8 * 1_024;

/// A gateway's request to Gateward.
#[derive(Debug)]
pub struct Question<'a> {
    pub method: &'a str,
    /// The server in the path.
    pub server: Option<&'a str>,
    /// The rest of the path after the server.
    pub rest: Option<&'a str>,
    pub query: &'a str,
}

/// The request that the gateway received.
#[derive(Debug, PartialEq)]
pub struct Original {
    pub server: String,
    pub request: HttpRequest,
    /// The status for an agent over its rate: 429 if the gateway passes it to the client, else 403.
    pub rate_limited_status: u16,
}

/// Reads the original request. Envoy sends the original method, and appends the original path and query to
/// the server's path. The others send headers; their query has the options in the gateway's configuration.
///
/// # Errors
///
/// `original_request_unknown` or `original_request_conflict`.
pub fn original(
    question: &Question<'_>,
    header: impl Fn(&str) -> Option<String>,
) -> Result<Original, Problem> {
    let options = match question.rest {
        Some(_) => Options { server: None, rate_limited_status: 429 },
        None => options(question.query)?,
    };
    let server = match (question.server, &options.server) {
        (Some(server), None) => server,
        (None, Some(server)) if is_name(server) => server,
        _ => {
            return Err(unknown(
                "the URL that the gateway calls must name one server, in its path or as the option `server`",
            ));
        }
    };
    let uri = |name| header(name).map(|uri| without_origin(&uri).to_owned());
    let original = header("x-original-method");
    let forwarded = header("x-forwarded-method");
    let own = question.rest.map(|rest| match question.query {
        "" => rest.to_owned(),
        query => [rest, query].join("?"),
    });
    let told = [
        (own.is_some().then(|| question.method.to_owned()), own),
        (original.clone(), uri("x-original-uri")),
        (original, uri("x-original-url")),
        (forwarded, uri("x-forwarded-uri")),
    ];
    let whole = told.iter().find_map(|(method, uri)| Some((method.as_ref()?, uri.as_ref()?)));
    let Some((method, uri)) = whole else {
        let detail = "the gateway must send `X-Original-Method` and `X-Original-URI`, or \
            `X-Forwarded-Method` and `X-Forwarded-Uri`";
        return Err(unknown(detail));
    };
    let agrees = |(other_method, other_uri): &(Option<String>, Option<String>)| {
        other_method.as_ref().is_none_or(|other| other == method)
            && other_uri.as_ref().is_none_or(|other| other == uri)
    };
    if !told.iter().all(agrees) {
        let detail = "the headers describe two different requests; send one of the two pairs";
        return Err(Problem::new(ProblemCode::OriginalRequestConflict, detail));
    }
    if method.len() > MAX_METHOD_BYTES || uri.len() > MAX_URI_BYTES {
        return Err(unknown(
            "the original method must have at most 32 bytes, and the URI at most 8,192",
        ));
    }
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    Ok(Original {
        server: server.to_owned(),
        request: HttpRequest {
            method: method.clone(),
            path: path.to_owned(),
            query: query.to_owned(),
            body: None,
        },
        rate_limited_status: options.rate_limited_status,
    })
}

/// The HTTP status for a problem. Gateways take 401 and 403 for a denial, and most other statuses for a
/// failure. A gateway that is configured to fail open would let the request pass.
#[must_use]
pub const fn status(code: ProblemCode, rate_limited_status: u16) -> u16 {
    match code.status() {
        401 => 401,
        429 => rate_limited_status,
        _ => 403,
    }
}

/// The options in the query, which the gateway's configuration sets.
struct Options {
    server: Option<String>,
    rate_limited_status: u16,
}

fn options(query: &str) -> Result<Options, Problem> {
    let mut options = Options { server: None, rate_limited_status: 403 };
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match (name.as_ref(), value.as_ref()) {
            ("server", server) if options.server.is_none() => {
                options.server = Some(server.to_owned());
            }
            ("rate_limited", "403") => options.rate_limited_status = 403,
            ("rate_limited", "429") => options.rate_limited_status = 429,
            _ => {
                return Err(unknown(
                    "the URL that the gateway calls has an option that is unknown or repeated",
                ));
            }
        }
    }
    Ok(options)
}

/// The path and query of a URI. Some gateways send the whole URL.
fn without_origin(uri: &str) -> &str {
    let after = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"));
    after.and_then(|rest| rest.split_at_checked(rest.find('/')?)).map_or(uri, |(_, path)| path)
}

fn unknown(detail: &str) -> Problem {
    Problem::new(ProblemCode::OriginalRequestUnknown, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Parsed<'a> = Result<(String, String, String, String, u16), &'a str>;

    /// The original request for `method address` and these headers, or the code of the problem.
    fn parsed(line: &str, headers: &[(&str, &str)]) -> Parsed<'static> {
        let (method, address) = line.split_once(' ').unwrap();
        let (server_and_rest, query) = address.split_once('?').unwrap_or((address, ""));
        let end = server_and_rest.find('/').unwrap_or(server_and_rest.len());
        let (server, rest) = server_and_rest.split_at(end);
        let some = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        let (server, rest) = (some(server.to_owned().leak()), some(rest.to_owned().leak()));
        let header = |name: &str| {
            let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| (*value).to_owned())
        };
        match original(&Question { method, server, rest, query }, header) {
            Ok(Original { server, request, rate_limited_status }) => {
                assert_eq!(request.body, None);
                Ok((server, request.method, request.path, request.query, rate_limited_status))
            }
            Err(problem) => Err(problem.code.code()),
        }
    }

    #[test]
    fn the_original_request_is_read_from_every_kind_of_gateway() {
        let nginx = [("X-Original-Method", "PUT"), ("X-Original-URI", "/a%20b?c=d?e")];
        let ingress = [("X-Original-Method", "PUT"), ("X-Original-URL", "https://h:1/a%20b?c=d?e")];
        let traefik = [("X-Forwarded-Method", "PUT"), ("X-Forwarded-Uri", "/a%20b?c=d?e")];
        let both = [nginx[0], nginx[1], traefik[0], traefik[1]];
        for (line, headers, limited) in [
            ("GET crm", &nginx[..], 403),
            ("GET ?server=crm", &nginx, 403),
            ("GET ?server=crm&rate_limited=429", &nginx, 429),
            ("POST crm?rate_limited=429", &ingress, 429),
            ("GET crm?rate_limited=403", &traefik, 403),
            ("GET crm", &both, 403),
            ("PUT crm/a%20b?c=d?e", &[], 429),
            ("PUT crm/a%20b?c=d?e", &both, 429),
        ] {
            let expected = ("crm", "PUT", "/a%20b", "c=d?e", limited);
            let expected = (
                expected.0.into(),
                expected.1.into(),
                expected.2.into(),
                expected.3.into(),
                limited,
            );
            assert_eq!(parsed(line, headers), Ok(expected), "{line} {headers:?}");
        }
        // After a server's path, the query is the caller's, and the path stays as it was sent.
        let expected = ("crm".into(), "GET".into(), "//a/../b".into(), "server=x".into(), 429);
        assert_eq!(parsed("GET crm//a/../b?server=x", &[]), Ok(expected));
        let expected = ("crm".into(), "GET".into(), "".into(), "".into(), 403);
        let bare = [("X-Original-Method", "GET"), ("X-Original-URI", "")];
        assert_eq!(parsed("GET crm", &bare), Ok(expected));
    }

    #[test]
    fn an_incomplete_or_contradictory_description_is_rejected() {
        const UNKNOWN: Parsed<'static> = Err("original_request_unknown");
        const CONFLICT: Parsed<'static> = Err("original_request_conflict");
        let (method, uri) = (("X-Original-Method", "GET"), ("X-Original-URI", "/a"));
        let (other_method, other_uri) = (("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/a"));
        let long_uri = format!("/{}", "a".repeat(MAX_URI_BYTES));
        let long_method = "A".repeat(MAX_METHOD_BYTES + 1);
        for (line, headers, expected) in [
            ("GET crm", &[][..], UNKNOWN),
            ("GET crm", &[method], UNKNOWN),
            ("GET crm", &[uri], UNKNOWN),
            // Half of each of two kinds of gateways: one half is the client's.
            ("GET crm", &[other_method, uri], UNKNOWN),
            ("GET crm", &[method, other_uri], UNKNOWN),
            ("GET ", &[method, uri], UNKNOWN),
            ("GET ?server=", &[method, uri], UNKNOWN),
            ("GET ?server=CRM", &[method, uri], UNKNOWN),
            ("GET crm?server=crm", &[method, uri], UNKNOWN),
            ("GET ?server=crm&server=erp", &[method, uri], UNKNOWN),
            ("GET crm?rate_limited=503", &[method, uri], UNKNOWN),
            ("GET crm?path=/b", &[method, uri], UNKNOWN),
            ("GET crm", &[method, ("X-Original-URI", &long_uri)], UNKNOWN),
            ("GET crm", &[("X-Original-Method", &long_method), uri], UNKNOWN),
            ("GET crm", &[method, uri, ("X-Forwarded-Uri", "/b")], CONFLICT),
            ("GET crm", &[method, uri, ("X-Forwarded-Method", "POST")], CONFLICT),
            ("GET crm", &[method, uri, ("X-Original-URL", "http://h/b")], CONFLICT),
            ("GET crm", &[other_method, other_uri, ("X-Original-URI", "/b")], CONFLICT),
            ("GET crm", &[other_method, other_uri, ("X-Original-Method", "")], CONFLICT),
            ("GET crm/a", &[("X-Forwarded-Uri", "/b")], CONFLICT),
            ("POST crm/a", &[method, uri], CONFLICT),
            ("GET crm/a?b", &[method, uri], CONFLICT),
            ("GET crm/", &[method, uri], CONFLICT),
        ] {
            assert_eq!(parsed(line, headers), expected, "{line} {headers:?}");
        }
    }

    #[test]
    fn every_problem_has_a_status_that_gateways_take_for_a_denial() {
        for code in ProblemCode::ALL.iter().copied() {
            let expected = match code.status() {
                status @ (401 | 429) => status,
                _ => 403,
            };
            assert_eq!(status(code, 429), expected, "{code:?}");
            assert_eq!(status(code, 403), if expected == 401 { 401 } else { 403 }, "{code:?}");
        }
    }
}
