//! What people write, and what is shown of it.

use gateward_core::json::parse;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Result<Vec<(String, Arguments)>, Wrong> {
    tools(&parse(text.as_bytes()).unwrap())
}

#[test]
fn a_mistake_is_named_with_its_place() {
    for (text, expected) in [
        ("[]", "it must be an object"),
        ("{}", "name at least one tool"),
        (r#"{"t": 1}"#, "/t: it must be an object"),
        (r#"{"t": {"a": 50}}"#, "/t/a: it must be an object"),
        (
            r#"{"t": {"a": {}}}"#,
            "/t/a: it must have one member: the name of the constraint, with its body",
        ),
        (r#"{"s/t": {"a~b": {"wildcard": 1}}}"#, "/s~1t/a~0b/wildcard: it must be null"),
        (r#"{"t": {"a": {"range": {"max": "5"}}}}"#, "/t/a/range/max: it must be a number"),
        (
            r#"{"t": {"a": {"range": {"most": 5}}}}"#,
            "/t/a/range/most: it is unknown; there are min, max, min_inclusive, max_inclusive",
        ),
        (
            r#"{"t": {"a": {"all": [{"wildcard": null}, {"pattern": 1}]}}}"#,
            "/t/a/all/1/pattern: it must be a text",
        ),
        (r#"{"t": {"a": {"any": []}}}"#, "/t/a/any: a list of constraints is empty"),
        (
            r#"{"t": {"a": {"cidr": "10.0.0.1/8"}}}"#,
            "/t/a/cidr: it must be a network in CIDR notation, or an address",
        ),
        (
            r#"{"t": {"a": {"subpath": {"root": "data"}}}}"#,
            "/t/a/subpath: a subpath's root is not an absolute path in its normal form",
        ),
        (r#"{"t": {"a": {"subpath": {}}}}"#, "/t/a/subpath: it must have a `root`"),
        (
            r#"{"t": {"a": {"url_safe": {"allow_ports": [70000]}}}}"#,
            "/t/a/url_safe/allow_ports: it must be a list of ports",
        ),
        // A worker would deny each call.
        (
            r#"{"t": {"a": {"pattern": "[ab]*"}}}"#,
            "/t/a/pattern: it must not have `[`, `]` or `**`, which are not evaluated",
        ),
        (
            r#"{"t": {"a": {"not": {"pattern": "/data/**"}}}}"#,
            "/t/a/not/pattern: it must not have `[`, `]` or `**`, which are not evaluated",
        ),
        (
            r#"{"t": {"a": {"url_pattern": "https://a.example/**"}}}"#,
            "/t/a/url_pattern: it must not have `**`, which is not evaluated",
        ),
        (r#"{"t": {"a": {"one_of": []}}}"#, "/t/a/one_of: it must have a value"),
        (
            r#"{"t": {"a": {"range": {"min": 5, "max": 4}}}}"#,
            "/t/a/range: a number must be between `min` and `max`",
        ),
        (
            r#"{"t": {"a": {"range": {"min": 5, "max": 5, "min_inclusive": false}}}}"#,
            "/t/a/range: a number must be between `min` and `max`",
        ),
        (
            r#"{"t": {"a": {"url_safe": {"deny_domains": ["A.example"]}}}}"#,
            "/t/a/url_safe: its domains must be hosts in lower case, such as `a.example` or `*.a.example`",
        ),
        (
            r#"{"t": {"a": {"url_safe": {"allow_domains": ["https://a.example"]}}}}"#,
            "/t/a/url_safe: its domains must be hosts in lower case, such as `a.example` or `*.a.example`",
        ),
        (
            r#"{"t": {"a": {"url_safe": {"schemes": ["ssh"]}}}}"#,
            "/t/a/url_safe: it must have a scheme of http, https, ws, wss and ftp",
        ),
        (
            r#"{"t": {"a": {"url_safe": {"allow_ports": []}}}}"#,
            "/t/a/url_safe: its lists of what is allowed must not be empty",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), expected, "{text}");
    }
    let unknown = read(r#"{"t": {"a": {"regex": "x"}}}"#).unwrap_err();
    assert_eq!(unknown, format!("/t/a/regex: there is no such constraint; there are {NAMES}"));
}

#[test]
fn every_type_has_the_name_that_it_has_elsewhere() {
    for (text, name) in [
        (r#"{"wildcard": null}"#, "wildcard"),
        (r#"{"exact": {"a": [1, null]}}"#, "exact"),
        (r#"{"pattern": "a*"}"#, "pattern"),
        (r#"{"range": {"max": 5.5, "min_inclusive": false}}"#, "range"),
        (r#"{"one_of": ["a", 1]}"#, "one_of"),
        (r#"{"not_one_of": []}"#, "not_one_of"),
        (r#"{"cidr": "10.0.0.0/8"}"#, "cidr"),
        (r#"{"url_pattern": "https://a.example/*"}"#, "url_pattern"),
        (r#"{"contains": [1]}"#, "contains"),
        (r#"{"subset": [1]}"#, "subset"),
        (r#"{"all": [{"wildcard": null}]}"#, "all"),
        (r#"{"any": [{"not": {"exact": 1}}]}"#, "any"),
        (r#"{"not": {"exact": 1}}"#, "not"),
        (r#"{"subpath": {"root": "/data", "allow_equal": false}}"#, "subpath"),
        (r#"{"url_safe": {"allow_domains": ["a.example"], "block_private": false}}"#, "url_safe"),
    ] {
        let read = constraint(&parse(text.as_bytes()).unwrap(), "").unwrap();
        assert_eq!(read.name(), name);
        assert_eq!(written(&read), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        assert!(NAMES.contains(name));
    }
    let unsupported = Constraint::Unsupported(5, vec![0xa0]);
    assert_eq!(written(&unsupported), json!({"regex": "a0"}));
}

#[test]
fn tools_and_arguments_are_sorted_by_bytes() {
    let tools = read(r#"{"\ud83d\ude00": {}, "\uffff": {"b": {"exact": 1}, "a": {"exact": 2}}}"#);
    let tools = tools.unwrap();
    let names: Vec<_> = tools.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["\u{ffff}", "\u{1f600}"]);
    assert_eq!(tools[0].1.constraints[0].0, "a");
}

fn values() -> impl Strategy<Value = Json> {
    let number = (-1e15..1e15)
        .prop_filter("an integer is another value", |number: &f64| number.fract() != 0.0);
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        (-MAX_INTEGER..=MAX_INTEGER).prop_map(Json::Integer),
        number.prop_map(Json::Number),
        ".*".prop_map(Json::String),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            // Of ASCII, so that both orders are the same.
            prop::collection::btree_map("[ -~]*", inner, 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

fn all_constraints() -> impl Strategy<Value = Constraint> {
    let list = || prop::collection::vec(values(), 0..4);
    let bound = || prop::option::of(prop_oneof![-1e15..1e15, (-50_i32..50).prop_map(f64::from)]);
    let domains = || prop::collection::vec("([*][.])?[a-z]{1,5}[.]example", 1..3);
    let schemes = ["http", "HTTPS", "ws", "foo"].map(str::to_owned).to_vec();
    let leaf = prop_oneof![
        Just(Constraint::Wildcard),
        values().prop_map(Constraint::Exact),
        ".*".prop_map(|text| Constraint::Pattern(Pattern::new(text))),
        (bound(), bound(), any::<bool>(), any::<bool>()).prop_map(
            |(min, max, min_inclusive, max_inclusive)| {
                Constraint::Range(Range { min, max, min_inclusive, max_inclusive })
            }
        ),
        list().prop_map(Constraint::OneOf),
        list().prop_map(Constraint::NotOneOf),
        list().prop_map(Constraint::Contains),
        list().prop_map(Constraint::Subset),
        (any::<u8>(), any::<bool>()).prop_map(|(byte, host)| {
            let text = if host { format!("10.{byte}.0.1") } else { format!("10.{byte}.0.0/16") };
            Constraint::cidr(&text).unwrap()
        }),
        "(https|[*])://([*][.])?[a-z]{1,5}[.]example(:[1-9][0-9]{2})?(/[a-z*]{0,5})?"
            .prop_map(|text| Constraint::UrlPattern(Box::new(UrlPattern::new(&text).unwrap()))),
        ("/([a-z]{1,5}(/[a-z]{1,5}){0,2})?", any::<bool>(), any::<bool>()).prop_map(
            |(root, case_sensitive, allow_equal)| {
                Constraint::Subpath(Subpath { root, case_sensitive, allow_equal })
            }
        ),
        (
            prop::sample::subsequence(schemes, 1..=4),
            prop::option::of(domains()),
            prop::option::of(domains()),
            prop::option::of(prop::collection::vec(any::<u16>(), 1..3)),
            any::<[bool; 4]>(),
            any::<bool>(),
        )
            .prop_map(
                |(schemes, allow_domains, deny_domains, allow_ports, blocks, internal)| {
                    Constraint::UrlSafe(Box::new(UrlSafe {
                        schemes,
                        allow_domains,
                        deny_domains,
                        allow_ports,
                        blocks,
                        block_internal_tlds: internal,
                    }))
                }
            ),
    ];
    let leaf = leaf.prop_filter("no value fits it", |leaf| must_be(leaf).is_none());
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Constraint::All),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Constraint::Any),
            inner.prop_map(|inner| Constraint::Not(Box::new(inner))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_the_same(expected in all_constraints()) {
        let text = written(&expected).to_string();
        let read = constraint(&parse(text.as_bytes()).unwrap(), "");
        prop_assert_eq!(read, Ok(expected), "{}", text);
    }
}
