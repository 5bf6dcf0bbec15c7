//! Which tool an HTTP request calls, and with which input.
//!
//! INVARIANT (one reading): policies judge what the API will take. A path or query that two
//! readers could read differently is refused and not interpreted: percent-encoding is undone once,
//! and what is left must have no second meaning. Names that differ only in case or percent-encoding
//! are one name to some APIs, so no two of them are in one input, and no path fits a route's literal
//! only when case is folded. What an API makes of `a[]` and `a.b` is the tool's input schema to bound.
//!
//! Out of scope: what the method or the tool may do, and where the request goes.

use std::{fmt, mem};

use serde::{Deserialize, Serialize};

use crate::bounds::{MAX_JSON_DEPTH, MAX_JSON_NODES, MAX_RESOURCE_BYTES};
use crate::json::{Json, Names, same_folded, utf16_order};
use crate::percent::{decode, lenient};
use crate::registry::upstream::HttpRoute;

/// The field that holds a body that is no object.
const BODY: &str = "body";

/// Characters of a name in a message, which is written down.
const MAX_SHOWN_CHARS: usize = 64;

/// A request for a server's API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpRequest {
    pub method: String,
    /// As it was sent, below the server: begins with a slash, has no query.
    pub path: String,
    /// As it was sent, without the question mark.
    pub query: String,
    /// The JSON body, if there is one.
    pub body: Option<Json>,
}

/// The call that a request is.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    pub tool: String,
    /// Always [`Json::Object`].
    pub input: Json,
    /// The decoded path.
    pub resource: String,
    /// The path of the route.
    pub route: String,
}

/// Why a request is no call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unresolved {
    /// No route fits, or the path is none that a route could be trusted to fit.
    Unmapped(String),
    /// A route fits; the input is ambiguous or too large.
    InputInvalid(String),
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unmapped(why) => f.write_str(why),
            Self::InputInvalid(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unresolved {}

/// Where an input's field comes from.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Path,
    Query,
    Body,
}

/// Finds the tool that `request` calls: the first route whose method and path fit.
///
/// # Errors
///
/// Says why there is none, or what is wrong with its input.
pub fn resolve(routes: &[HttpRoute], request: &HttpRequest) -> Result<Resolved, Unresolved> {
    let segments = segments(&request.path).map_err(unmapped)?;
    let resource = format!("/{}", segments.join("/"));
    if resource.len() > MAX_RESOURCE_BYTES {
        return Err(unmapped("the path is too long"));
    }
    let mut fitting = routes.iter().filter(|route| route.method == request.method);
    let fitting = fitting.find_map(|route| Some((route, parameters(&route.path, &segments)?)));
    let Some((route, mut fields)) = fitting else {
        return Err(unmapped("no route of the server fits the method and path"));
    };
    if routes.iter().any(|other| is_shadowed(&other.path, &route.path, &segments)) {
        return Err(unmapped("the path fits another route when case or a last slash is ignored"));
    }
    read_query(&request.query, &mut fields)?;
    match &request.body {
        Some(Json::Object(body)) => {
            let body = body.iter().map(|(name, value)| (name.clone(), Source::Body, value.clone()));
            fields.extend(body);
        }
        Some(other) => fields.push((BODY.to_owned(), Source::Body, other.clone())),
        None => {}
    }
    let input = Json::Object(merge(fields)?);
    if size(&input, MAX_JSON_DEPTH).is_none_or(|nodes| nodes > MAX_JSON_NODES) {
        return Err(Unresolved::InputInvalid("the input has too many values".to_owned()));
    }
    if let Some(name) = input.twin_by(&lenient) {
        let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
        let why = format!("`{name}` can be taken for another name in path, query and body");
        return Err(Unresolved::InputInvalid(why));
    }
    let (tool, route) = (route.tool.clone(), route.path.clone());
    Ok(Resolved { tool, input, resource, route })
}

/// Takes the named fields out of a request that came by the route of this path: out of the query and,
/// at any depth, out of the body. Returns whether that could be done: the path must stay whole.
#[must_use]
pub fn redact(request: &mut HttpRequest, route: &str, fields: &[String]) -> bool {
    let fields = Names::by(fields, lenient);
    let names = |name: &str| fields.has(name);
    if route.split('/').filter_map(parameter).any(names) {
        return false;
    }
    let named = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default();
        decode(&name.replace('+', " ")).is_some_and(|name| names(&name))
    };
    let kept: Vec<&str> = request.query.split('&').filter(|part| !named(part)).collect();
    request.query = kept.join("&");
    // A body that is no object is a field itself.
    request.body.take_if(|body| !matches!(body, Json::Object(_)) && names(BODY));
    if let Some(body) = &mut request.body {
        body.remove(&fields);
    }
    true
}

fn unmapped(why: &str) -> Unresolved {
    Unresolved::Unmapped(why.to_owned())
}

/// A path's segments, decoded.
fn segments(path: &str) -> Result<Vec<String>, &'static str> {
    // A matrix parameter (`/..;x/`) is part of the segment to some and not to others.
    if !visible(path) || path.contains(['\\', ';', '?']) {
        return Err("the path holds what must be percent-encoded");
    }
    let path = path.strip_prefix('/').ok_or("the path does not begin with a slash")?;
    let last = path.split('/').count() - 1;
    let decoded = path.split('/').enumerate().map(|(at, segment)| {
        let segment = decode(segment).ok_or("the path's percent-encoding is not UTF-8")?;
        let bytes = segment.as_bytes();
        let encoded_twice =
            bytes.windows(3).any(|w| matches!(w, [b'%', a, b] if is_hex(a) && is_hex(b)));
        if segment.contains(|c: char| c == '/' || c == '\\' || c.is_control()) || encoded_twice {
            return Err("the path holds an encoded slash, control character or percent-encoding");
        }
        // Some readers cut a segment at a semicolon after they decode it.
        let cut = segment.split(';').next().unwrap_or_default();
        if cut == "." || cut == ".." || (segment.is_empty() && at < last) {
            return Err("the path has an empty, `.` or `..` segment");
        }
        Ok(segment)
    });
    decoded.collect()
}

/// The parameters of a path if it fits the template; one never stands for an empty segment.
fn parameters(template: &str, segments: &[String]) -> Option<Vec<(String, Source, Json)>> {
    let mut parts = template.strip_prefix('/')?.split('/');
    let mut found = Vec::new();
    for segment in segments {
        let part = parts.next()?;
        match parameter(part) {
            Some(name) if !segment.is_empty() => {
                found.push((name.to_owned(), Source::Path, Json::String(segment.clone())));
            }
            None if part == segment => {}
            _ => return None,
        }
    }
    parts.next().is_none().then_some(found)
}

/// Whether a router that ignores case, or a slash at the end, may take the path for `other`, which has
/// a literal where the route that it fits has a parameter.
fn is_shadowed(other: &str, route: &str, segments: &[String]) -> bool {
    if parameters(other, segments).is_some() {
        // It fits as it is: then the order of the routes decides.
        return false;
    }
    let segments = match segments {
        [rest @ .., last] if last.is_empty() && !rest.is_empty() => rest,
        all => all,
    };
    let (other, route) = (parts(other), parts(route));
    let fits =
        |(part, segment): (&&str, &String)| parameter(part).is_some() || same_folded(part, segment);
    let mut pairs = other.iter().zip(&route);
    other.len() == segments.len()
        && pairs.any(|(other, route)| parameter(other).is_none() && parameter(route).is_some())
        && other.iter().zip(segments).all(fits)
}

/// A template's segments, without an empty one at the end.
fn parts(template: &str) -> Vec<&str> {
    let template = template.strip_prefix('/').unwrap_or(template);
    template.strip_suffix('/').unwrap_or(template).split('/').collect()
}

/// The name of a template's segment that stands for any.
fn parameter(part: &str) -> Option<&str> {
    part.strip_prefix('{')?.strip_suffix('}')
}

fn read_query(query: &str, fields: &mut Vec<(String, Source, Json)>) -> Result<(), Unresolved> {
    let invalid = |why: &str| Unresolved::InputInvalid(why.to_owned());
    // Some readers end a field at a semicolon.
    if !visible(query) || query.contains(';') {
        return Err(invalid("the query holds what must be percent-encoded"));
    }
    let form = |text: &str| decode(&text.replace('+', " "));
    for field in query.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let (Some(name), Some(value)) = (form(name), form(value)) else {
            return Err(invalid("the query's percent-encoding is not UTF-8"));
        };
        fields.push((name, Source::Query, Json::String(value)));
    }
    Ok(())
}

/// Sorts fields as an object has them; of a query, those of one name become an array.
fn merge(mut fields: Vec<(String, Source, Json)>) -> Result<Vec<(String, Json)>, Unresolved> {
    fields.sort_by(|(a, ..), (b, ..)| utf16_order(a, b));
    let mut merged: Vec<(String, Json)> = Vec::with_capacity(fields.len());
    let mut last = Source::Path;
    for (name, source, value) in fields {
        match merged.last_mut() {
            Some((known, values)) if *known == name => {
                if source != Source::Query || last != Source::Query {
                    let name: String = name.chars().take(MAX_SHOWN_CHARS).collect();
                    let why = format!("`{name}` stands twice in path, query and body");
                    return Err(Unresolved::InputInvalid(why));
                }
                match values {
                    Json::Array(values) => values.push(value),
                    one => *one = Json::Array(vec![mem::replace(one, Json::Null), value]),
                }
            }
            _ => merged.push((name, value)),
        }
        last = source;
    }
    Ok(merged)
}

/// How many values `value` is; `None` if it nests deeper than `levels`.
fn size(value: &Json, levels: usize) -> Option<usize> {
    let within = || levels.checked_sub(1);
    let add = |levels| move |sum: usize, item: &Json| Some(sum + size(item, levels)?);
    match value {
        Json::Array(items) => items.iter().try_fold(1, add(within()?)),
        Json::Object(fields) => fields.iter().map(|(_, item)| item).try_fold(1, add(within()?)),
        _ => Some(1),
    }
}

/// Whether a URL's part can be sent as it is, and has no fragment.
fn visible(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() && b != b'#')
}

fn is_hex(byte: &u8) -> bool {
    byte.is_ascii_hexdigit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use proptest::prelude::*;

    fn routes(lines: &[&str]) -> Vec<HttpRoute> {
        let route = |line: &&str| {
            let mut words = line.split(' ').map(str::to_owned);
            let (method, path) = (words.next().unwrap(), words.next().unwrap());
            HttpRoute { method, path, tool: words.next().unwrap() }
        };
        lines.iter().map(route).collect()
    }

    fn github() -> Vec<HttpRoute> {
        routes(&[
            "GET / root",
            "GET /repos/{owner}/{repo}/issues list_issues",
            "POST /repos/{owner}/{repo}/issues create_issue",
            "GET /repos/{owner}/{repo}/{thing} get_thing",
            "GET /users/me get_me",
            "GET /users/{user} get_user",
            "GET /users/ list_users",
            "HEAD /users/{user} probe_user",
            "DELETE /twice/{x}/{x} never",
            "GET /a%20b never",
            "GET /a·b dotted",
            "PUT /a;b never",
            "PUT /a%2Fb never",
            "PUT /x put_x",
        ])
    }

    /// The tool, resource and canonical input of `method path?query body`, or why there is none.
    fn resolved(line: &str) -> Result<(String, String, String), Unresolved> {
        let mut words = line.splitn(3, ' ');
        let (method, uri) = (words.next().unwrap(), words.next().unwrap());
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let body = words.next().map(|text| json::parse(text.as_bytes()).unwrap());
        let request =
            HttpRequest { method: method.into(), path: path.into(), query: query.into(), body };
        resolve(&github(), &request).map(|r| (r.tool, r.resource, r.input.canonical()))
    }

    #[test]
    fn what_is_redacted_is_taken_out_wherever_it_can_be() {
        for (route, query, body, expected) in [
            (
                "/a",
                "email=x&b=1&e%6Dail=y",
                r#"{"email":1,"c":[{"email":2,"d":3}]}"#,
                Some(("b=1", r#"{"c":[{"d":3}]}"#)),
            ),
            ("/a", "e%256Dail=x&b=1", "{}", Some(("b=1", "{}"))),
            ("/a", "Email=x&b=1", r#"{"EMA\u0130L":0,"eMail":1}"#, Some(("b=1", "{\"EMAİL\":0}"))),
            ("/a/{Email}", "", "{}", None),
            ("/a", "b=1", r#"[{"email":1}]"#, Some(("b=1", "[{}]"))),
            ("/a", "", r#""x""#, Some(("", "null"))),
            ("/a/{email}", "", "{}", None),
        ] {
            let mut request = HttpRequest {
                method: "POST".to_owned(),
                path: "/a".to_owned(),
                query: query.to_owned(),
                body: Some(json::parse(body.as_bytes()).unwrap()),
            };
            let fields = ["email".to_owned(), "body".to_owned()];
            let fields = if body == r#""x""# { &fields[..] } else { &fields[..1] };
            let done = redact(&mut request, route, fields);
            let found = request.body.as_ref().map_or("null".to_owned(), Json::canonical);
            let found = done.then_some((request.query.as_str(), found.as_str()));
            assert_eq!(found, expected, "{route} {query} {body}");
        }
    }

    #[test]
    fn a_request_calls_the_first_tool_whose_route_fits() {
        for (line, tool, resource, input) in [
            ("GET /", "root", "/", "{}"),
            (
                "GET /repos/gate/ward/issues",
                "list_issues",
                "/repos/gate/ward/issues",
                r#"{"owner":"gate","repo":"ward"}"#,
            ),
            (
                "GET /repos/a/b/pulls",
                "get_thing",
                "/repos/a/b/pulls",
                r#"{"owner":"a","repo":"b","thing":"pulls"}"#,
            ),
            ("GET /users/me", "get_me", "/users/me", "{}"),
            ("GET /users/%6De", "get_me", "/users/me", "{}"),
            ("GET /users/Mel", "get_user", "/users/Mel", r#"{"user":"Mel"}"#),
            ("GET /users/", "list_users", "/users/", "{}"),
            ("HEAD /users/me", "probe_user", "/users/me", r#"{"user":"me"}"#),
            ("GET /users/a%20b+c", "get_user", "/users/a b+c", r#"{"user":"a b+c"}"#),
            ("GET /users/%C3%A4%3B", "get_user", "/users/ä;", r#"{"user":"ä;"}"#),
            ("GET /%61%C2%B7b", "dotted", "/a·b", "{}"),
            ("GET /users/100%25", "get_user", "/users/100%", r#"{"user":"100%"}"#),
            ("GET /users/...%3B", "get_user", "/users/...;", r#"{"user":"...;"}"#),
            ("GET /users/...", "get_user", "/users/...", r#"{"user":"..."}"#),
            ("GET /users/{user}", "get_user", "/users/{user}", r#"{"user":"{user}"}"#),
        ] {
            let expected = (tool.to_owned(), resource.to_owned(), input.to_owned());
            assert_eq!(resolved(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn an_input_has_the_fields_of_path_query_and_body() {
        for (line, input) in [
            ("GET /users/me?a=1&b=x+y%2Bz&c", r#"{"a":"1","b":"x y+z","c":""}"#),
            ("GET /users/me?a=2&b=&a=1&&a", r#"{"a":["2","1",""],"b":""}"#),
            ("GET /users/me?a=b=c&=d&%61=e", r#"{"":"d","a":["b=c","e"]}"#),
            ("GET /users/me?a[]=1&a=2", r#"{"a":"2","a[]":"1"}"#),
            // By UTF-16 units, in which what is astral comes before U+FB33.
            (
                "GET /users/me?%EF%AC%B3=1&%F0%9F%98%80=2",
                "{\"\u{1f600}\":\"2\",\"\u{fb33}\":\"1\"}",
            ),
            (
                r#"POST /repos/o/r/issues?dry=1 {"title":"t","labels":[1,{"x":null}]}"#,
                r#"{"dry":"1","labels":[1,{"x":null}],"owner":"o","repo":"r","title":"t"}"#,
            ),
            (
                r#"POST /repos/o/r/issues [{"owner":1}]"#,
                r#"{"body":[{"owner":1}],"owner":"o","repo":"r"}"#,
            ),
            ("POST /repos/o/r/issues null", r#"{"body":null,"owner":"o","repo":"r"}"#),
        ] {
            assert_eq!(resolved(line).unwrap().2, input, "{line}");
        }
    }

    #[test]
    fn a_path_that_no_route_fits_or_that_could_be_read_otherwise_is_unmapped() {
        let long = format!("GET /users/{}", "a".repeat(MAX_RESOURCE_BYTES));
        for line in [
            "GET /users",
            "GET /users/a/b",
            "GET /repos//ward/issues",
            "GET //",
            "GET //users/me",
            "GET users/me",
            "POST /users/me",
            "get /users/me",
            "OPTIONS /users/me",
            "HEAD /repos/a/b/issues",
            "GET /users/a%2Fb",
            "GET /users/a%2fb",
            "GET /users/a%5Cb",
            "GET /users/a\\b",
            "GET /users/a%00b",
            "GET /users/a%0Ab",
            "GET /users/a%C2%85b",
            "GET /users/.",
            "GET /users/..",
            "GET /users/%2e%2E",
            "GET /repos/../users/me",
            "GET /repos/.%2E/users/me",
            "GET /users/..;",
            "GET /users/..%3B",
            "GET /users/%2e%2e%3bx=1",
            "GET /repos/.%3Bx/ward/issues",
            "GET /users/me;x",
            "PUT /a;b",
            "PUT /a%2Fb",
            "PUT /a%252Fb",
            "GET /users/%252e%252e",
            "GET /users/a%252Fb",
            "GET /users/a%2520b",
            "GET /users/%",
            "GET /users/%4",
            "GET /users/%+4",
            "GET /users/%zz",
            "GET /users/%C3",
            "GET /users/%FF",
            "GET /users/ä",
            "GET /users/a#b",
            "GET /users/a\u{7f}",
            "PUT /x/",
            // A router that ignores case takes these for `/users/me`, `/repos/…/issues` and `/users/`.
            "GET /users/Me",
            "GET /users/M%45",
            "HEAD /users/ME",
            "GET /repos/a/b/Issues",
            "GET /repos/a/b/i%C5%BF%C5%BFues",
            &long,
        ] {
            assert!(matches!(resolved(line), Err(Unresolved::Unmapped(_))), "{line}");
        }
    }

    #[test]
    fn a_path_that_fits_another_route_for_a_lenient_router_is_unmapped() {
        for (lines, path, expected) in [
            (&["GET /users/{user} one", "GET /users/me two"][..], "/users/me", Some("one")),
            (&["GET /users/{user} one", "GET /users/me two"], "/users/Me", None),
            (&["GET /users/{user} one", "DELETE /users/me two"], "/users/Me", None),
            (&["GET /users/{user} one", "GET /users/me two"], "/users/mel", Some("one")),
            // An API that tells the two apart has a route for each.
            (&["GET /users/me one", "GET /users/Me two"], "/users/Me", Some("two")),
            (&["GET /users one", "GET /users/ two"], "/users", Some("one")),
            (&["GET /users one", "GET /users/ two"], "/users/", Some("two")),
            (&["GET /{name} one", "GET /users/ two"], "/users", None),
            (&["GET /{name}/ one", "GET /users two"], "/users/", None),
            (&["GET /{name} one", "GET /users/ two"], "/user", Some("one")),
            (&["GET /a/{x} one", "GET /{y}/me two"], "/a/ME", None),
            (&["GET / one", "GET /{x} two"], "/", Some("one")),
        ] {
            let (method, query) = ("GET".to_owned(), String::new());
            let request = HttpRequest { method, path: path.to_owned(), query, body: None };
            let found = resolve(&routes(lines), &request);
            assert_eq!(found.ok().map(|found| found.tool).as_deref(), expected, "{lines:?} {path}");
        }
    }

    #[test]
    fn an_input_that_could_be_read_otherwise_is_refused() {
        let many = format!("GET /users/me?{}", "a&".repeat(MAX_JSON_NODES));
        let fields: Vec<String> = (0..MAX_JSON_NODES - 1).map(|n| format!("\"{n}\":1")).collect();
        let full = format!("POST /repos/o/r/issues {{{}}}", fields.join(","));
        let deep = "[".repeat(MAX_JSON_DEPTH) + &"]".repeat(MAX_JSON_DEPTH);
        let deep = format!("POST /repos/o/r/issues {deep}");
        for line in [
            "GET /users/x?user=y",
            "GET /users/x?%75ser=y",
            "DELETE /twice/1/2",
            r#"POST /repos/o/r/issues {"owner":"p"}"#,
            r#"POST /repos/o/r/issues?a=1 {"a":"1"}"#,
            r#"POST /repos/o/r/issues?a=1&a=2 {"a":"1"}"#,
            "POST /repos/o/r/issues?body=1 []",
            // Names that differ only in case or percent-encoding.
            r#"POST /repos/o/r/issues {"amount":1,"Amount":5000}"#,
            r#"POST /repos/o/r/issues?Amount=5000 {"amount":1}"#,
            r#"POST /repos/o/r/issues?%2541mount=5000 {"amount":1}"#,
            r#"POST /repos/o/r/issues {"amount":1,"%61mount":5000}"#,
            r#"POST /repos/o/r/issues {"payment":[{"amount":1,"AMOUNT":5000}]}"#,
            r#"POST /repos/o/r/issues [{"amount":1,"Amount":5000}]"#,
            r#"POST /repos/o/r/issues {"Owner":"p"}"#,
            "POST /repos/o/r/issues?Body=1 []",
            "GET /users/x?User=y",
            "GET /users/me?a=1&A=2",
            "GET /users/me?k=1&%E2%84%AA=2",
            "GET /users/me?a=1&a%00=2",
            "GET /users/me?a=%",
            "GET /users/me?%C3=1",
            "GET /users/me?a=1;b=2",
            "GET /users/me?a=1#b",
            "GET /users/me?a=ä",
            &many,
            &full,
            &deep,
        ] {
            assert!(matches!(resolved(line), Err(Unresolved::InputInvalid(_))), "{line:.60}");
        }
    }

    #[test]
    fn a_name_is_matched_as_the_most_lenient_reader_does() {
        for (name, expected) in [
            ("Amount", "amount"),
            ("%41mount", "amount"),
            ("%2541mount", "amount"),
            ("%%34%31mount", "amount"),
            ("am%6", "am%6"),
            ("100%", "100%"),
            ("a\0", "a"),
            ("\u{17f}", "s"),
        ] {
            assert_eq!(lenient(name), expected, "{name}");
        }
        // Each is decoded in one pass, however often it was encoded.
        let deep = format!("%{}41", "25".repeat(100_000));
        assert_eq!(lenient(&deep), "a");
    }

    #[test]
    fn a_request_travels_as_it_is() {
        let body = Some(json::parse(br#"{"a":[1,0.5,null]}"#).unwrap());
        let request =
            HttpRequest { method: "GET".into(), path: "/%41".into(), query: "b".into(), body };
        let bytes = postcard::to_allocvec(&request).unwrap();
        assert_eq!(postcard::from_bytes::<HttpRequest>(&bytes), Ok(request));
    }

    fn encode(text: &str) -> String {
        text.bytes().map(|b| format!("%{b:02x}")).collect()
    }

    /// The URL that a template, its parameters and the rest of an input come to.
    fn build(template: &str, input: &Json) -> (String, String) {
        let Json::Object(fields) = input else { panic!("an input is an object") };
        let name = |part: &str| Some(part.strip_prefix('{')?.strip_suffix('}')?.to_owned());
        let names: Vec<String> = template.split('/').filter_map(name).collect();
        let path = template.split('/').map(|part| match name(part) {
            Some(name) => encode(input.get(&name).unwrap().as_str().unwrap()),
            None => part.to_owned(),
        });
        let mut query = Vec::new();
        for (name, value) in fields.iter().filter(|(name, _)| !names.contains(name)) {
            let values =
                if let Json::Array(values) = value { values } else { &vec![value.clone()] };
            for value in values {
                query.push(format!("{}={}", encode(name), encode(value.as_str().unwrap())));
            }
        }
        (path.collect::<Vec<_>>().join("/"), query.join("&"))
    }

    proptest! {
        #[test]
        fn what_resolves_gives_the_same_input_when_its_url_is_built_again(
            path in "(/(a|b|x|%61|%C3%A4|[ab.;+%25fF]{0,4})){1,3}",
            query in "([ab&=+;]|%61|%62|%26|%25|%C3%A4){0,12}",
        ) {
            let routes = routes(&["GET /a one", "GET /{a} two", "GET /a/{b} three", "GET /{b}/{a}/ four",
                "GET /{x}/b/{y} five", "GET /{x}/{y} six"]);
            let request = HttpRequest { method: "GET".into(), path, query, body: None };
            if let Ok(resolved) = resolve(&routes, &request) {
                let route = routes.iter().find(|route| route.tool == resolved.tool).unwrap();
                let (path, query) = build(&route.path, &resolved.input);
                let again = resolve(&routes, &HttpRequest { path, query, ..request });
                prop_assert_eq!(again, Ok(resolved));
            }
        }

        #[test]
        fn no_request_makes_it_panic(path in "\\PC{0,40}", query in "\\PC{0,40}") {
            let request = HttpRequest { method: "GET".into(), path, query, body: None };
            let _ = resolve(&github(), &request);
        }
    }
}
