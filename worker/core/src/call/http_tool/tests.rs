use super::*;
use crate::json;
use crate::shield::{Rules, Shield};
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

/// The tool, resource and canonical input of `method path?query body`, or the error.
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
fn redacted_fields_are_removed_from_query_and_body() {
    let shield = Shield::new(Rules::default());
    let nothing = Redaction { shield: &shield, tenant: "t", categories: &[] };
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
        let done = redact(&mut request, route, fields, nothing);
        let found = request.body.as_ref().map_or("null".to_owned(), Json::canonical);
        let found = done.then_some((request.query.as_str(), found.as_str()));
        assert_eq!(found, expected, "{route} {query} {body}");
    }
}

#[test]
fn a_request_calls_the_tool_of_the_first_route_that_matches() {
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
        // Sorted by UTF-16 units: astral characters come before U+FB33.
        ("GET /users/me?%EF%AC%B3=1&%F0%9F%98%80=2", "{\"\u{1f600}\":\"2\",\"\u{fb33}\":\"1\"}"),
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
fn a_path_without_a_route_or_with_two_readings_is_unmapped() {
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
        // A router that ignores case reads these as `/users/me`, `/repos/…/issues` and `/users/`.
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
fn a_path_that_matches_another_route_without_case_is_unmapped() {
    for (lines, path, expected) in [
        (&["GET /users/{user} one", "GET /users/me two"][..], "/users/me", Some("one")),
        (&["GET /users/{user} one", "GET /users/me two"], "/users/Me", None),
        (&["GET /users/{user} one", "DELETE /users/me two"], "/users/Me", None),
        (&["GET /users/{user} one", "GET /users/me two"], "/users/mel", Some("one")),
        // An API that distinguishes the two has a route for each.
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
fn an_input_with_two_readings_is_rejected() {
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
fn a_name_is_decoded_until_no_encoding_is_left_and_folded() {
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
        assert_eq!(fully_decoded(name), expected, "{name}");
    }
    // One pass decodes a name that was encoded many times.
    let deep = format!("%{}41", "25".repeat(100_000));
    assert_eq!(fully_decoded(&deep), "a");
}

#[test]
fn a_request_is_encoded_and_decoded_unchanged() {
    let body = Some(json::parse(br#"{"a":[1,0.5,null]}"#).unwrap());
    let request =
        HttpRequest { method: "GET".into(), path: "/%41".into(), query: "b".into(), body };
    let bytes = postcard::to_allocvec(&request).unwrap();
    assert_eq!(postcard::from_bytes::<HttpRequest>(&bytes), Ok(request));
}

fn encode(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02x}")).collect()
}

/// The path and query that a template and an input make.
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
        let values = if let Json::Array(values) = value { values } else { &vec![value.clone()] };
        for value in values {
            query.push(format!("{}={}", encode(name), encode(value.as_str().unwrap())));
        }
    }
    (path.collect::<Vec<_>>().join("/"), query.join("&"))
}

proptest! {
    #[test]
    fn a_url_that_is_built_from_an_input_resolves_to_the_same_input(
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
    fn no_path_or_query_panics(path in "\\PC{0,40}", query in "\\PC{0,40}") {
        let request = HttpRequest { method: "GET".into(), path, query, body: None };
        let _ = resolve(&github(), &request);
    }
}
