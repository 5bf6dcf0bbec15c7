//! Which URLs fit a constraint, and which constraints are narrower than another.

use super::*;

#[test]
fn a_host_is_read_by_every_parser_as_it_is_written() {
    let parts = [
        "a", "b-c", "_x", "1", "01", "0x7f", "127", "256", "0", "999999", "xn--a", "x1", "1x",
        "0xg",
    ];
    for hosts in [1, 2, 3, 4].map(|length| {
        (0..length).fold(vec![String::new()], |before, _| {
            before
                .iter()
                .flat_map(|host| {
                    parts.map(|part| match host.as_str() {
                        "" => part.to_owned(),
                        _ => format!("{host}.{part}"),
                    })
                })
                .collect()
        })
    }) {
        for host in hosts {
            let read = Url::parse(&format!("http://{host}/")).ok();
            let as_written = read.as_ref().map(|url| url.host_str() == Some(host.as_str()));
            let is_address =
                read.is_some_and(|url| matches!(url.host(), Some(::url::Host::Ipv4(_))));
            match host_kind(&host) {
                Some(HostKind::Address) => {
                    assert!(is_address && as_written == Some(true), "{host}")
                }
                // A text that is not a URL matches no pattern.
                Some(HostKind::Name) => {
                    assert!(!is_address && as_written != Some(false), "{host}")
                }
                // International names are refused, although parsers may accept them.
                None => assert!(as_written != Some(true) || host.contains("xn--"), "{host}"),
            }
        }
    }
}

#[test]
fn url_patterns_match_clear_urls_only() {
    for (pattern, url, expected) in [
        ("https://example.com/api/*", "https://example.com/api/x", Some(true)),
        ("https://example.com/api/*", "https://EXAMPLE.com/api/x?y=1", Some(true)),
        ("https://example.com/api/*", "https://example.com/other", Some(false)),
        ("https://example.com/api/*", "https://example.com/api/../x", None),
        ("https://example.com/api/*", "https://example.com/api/%2e%2e/x", None),
        ("https://example.com/api/*", "https://example.com/api/..;/admin", None),
        ("https://example.com/api/*", "https://example.com/api/..%3B/admin", None),
        ("https://example.com/admin/*", "https://example.com/admin;x/y", None),
        ("https://example.com/api/*", "https://example.com/api//../admin", None),
        ("https://example.com/admin/*", "https://example.com//admin/x", None),
        ("https://example.com/api/*", "https://example.com/api/%u002e%u002e/admin", None),
        ("https://example.com/api/*", "https://example.com/api/..%00/admin", None),
        ("https://example.com/api/*", "https://example.com/api/x?y=/..;/#//", Some(true)),
        ("https://example.com/api/*", "https://example.com?/api/..;/x", Some(false)),
        ("https://example.com", "https://example.com/api/..;/admin", Some(true)),
        ("https://example.com/api/*", "https://example.com/api/..%2Fadmin", None),
        ("https://example.com/api/*", "https://example.com/api/%2e%2e%5cadmin", None),
        ("https://example.com/admin/*", "https://example.com/%61dmin/x", None),
        ("https://example.com/api/*", "https://example.com/api/a%20b%C3%A9", Some(true)),
        ("https://example.com", "https://example.com/%61", Some(true)),
        ("https://example.com/api/*", "http://example.com/api/x", Some(false)),
        ("*://example.com", "ftp://example.com/", Some(true)),
        ("*://example.com", "foo://example.com/", None),
        ("*://example.com/*", "foo://example.com", None),
        ("*://10.0.0.5", "ssh://10.0.0.5/", None),
        ("*://example.com:80", "http://example.com/", Some(true)),
        ("*://example.com:80", "ws://example.com/", Some(false)),
        ("ftp://example.com:21", "ftp://example.com/", Some(false)),
        ("https://*.example.com", "https://a.b.example.com/", Some(true)),
        ("https://*.example.com", "https://example.com/", Some(true)),
        ("https://*.example.com", "https://badexample.com/", Some(false)),
        ("https://example.com:8443", "https://example.com:8443/", Some(true)),
        ("https://example.com:443", "https://example.com/", Some(true)),
        ("https://example.com:443", "https://example.com:8443/", Some(false)),
        ("https://example.com", "https://example.com:8443/", Some(true)),
        ("https://example.com", "https://example.com@evil.example/", None),
        ("https://example.com", "https://evil.example\\@example.com/", None),
        ("https://example.com", "https://example.com./", None),
        ("https://example.com", " https://example.com/", None),
        ("https://example.com", "https:/\t/example.com/", None),
        ("https://example.com", "https:example.com/", None),
        ("https://example.com", "not a url", None),
        ("https://127.0.0.1", "https://0x7f.1/", None),
        ("https://127.0.0.1", "https://127.0.0.1/", Some(true)),
    ] {
        let matched = UrlPattern::new(pattern).unwrap().matches(url, &mut Work::default());
        let fits = matched.map(|found| found.map(|fit| fit == Fit::Yes));
        assert_eq!(fits, Ok(expected), "{pattern} {url}");
    }
    for pattern in [
        "",
        "example.com",
        "https://",
        "https://*/x",
        "https://exa*.com",
        "ht*://example.com",
        "https://*.10.0.0.1",
        "https://0x7f.1",
        "https://a.example/../x",
        "https://a.example/x?y",
        "https://u@a.example",
        "https://a.example:port",
        "https://a.example:+80",
        "foo://a.example",
        "1http://a.example",
        "https://a.example/*.json",
        "https://xn--a.example",
        "https://__tenuo_host_wildcard__.a.example",
        "https://a.example/{x}",
        "https://a.example/x;y",
        "https://a.example/x//y",
        "https://a.example/x<y",
    ] {
        assert_eq!(UrlPattern::new(pattern), None, "{pattern}");
    }
}

#[test]
fn a_url_pattern_covers_what_is_certainly_narrower() {
    for (wide, narrow, expected) in [
        ("https://a.example/x/*", "https://a.example/x/y/*", true),
        ("https://a.example/x/*", "https://a.example/x/y", true),
        ("https://a.example/x", "https://a.example/x/y", false),
        // Narrower, but the reference implementation refuses them.
        ("https://a.example/x*", "https://a.example/x", false),
        ("https://a.example/x*", "https://a.example/x/*", false),
        ("https://a.example/x*", "https://a.example/x*", true),
        ("https://a.example/*", "https://a.example/x", true),
        ("*://a.example:80", "http://a.example:80", false),
        ("*://a.example:443", "https://a.example:443", true),
        ("*://a.example:8443", "https://a.example:8443", true),
        ("https://*.example", "https://a.example", true),
        ("https://*.example", "https://*.a.example", true),
        ("https://a.example", "https://*.a.example", false),
        ("https://a.example", "http://a.example", false),
        ("*://a.example", "http://a.example", true),
        ("http://a.example", "*://a.example", false),
        ("https://a.example:1", "https://a.example", false),
        ("https://a.example", "https://a.example:1", true),
        ("https://a.example/x", "https://a.example", false),
    ] {
        let [wide, narrow] = [wide, narrow].map(|text| UrlPattern::new(text).unwrap());
        assert_eq!(wide.covers(&narrow), expected, "{wide:?} {narrow:?}");
    }
}

#[test]
fn a_safe_url_is_on_the_public_internet() {
    let with = |change: &dyn Fn(&mut UrlSafe)| {
        let mut safe = UrlSafe::default();
        change(&mut safe);
        safe
    };
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let any = with(&|_| {});
    let domains = with(&|it| it.allow_domains = list(&["*.example.com", "api.test.example"]));
    let denied = with(&|it| it.deny_domains = list(&["evil.example"]));
    let ports = with(&|it| it.allow_ports = Some(vec![443]));
    let private = with(&|it| it.blocks = [false; 4]);
    let strange = with(&|it| it.allow_domains = list(&["EXAMPLE.com"]));
    let address = with(&|it| it.allow_domains = list(&["*.8.8.8.8"]));
    let nothing_denied = with(&|it| it.deny_domains = list(&[]));
    let capitals = with(&|it| it.schemes = vec!["HTTPS".to_owned()]);
    let shell = with(&|it| it.schemes = vec!["ssh".to_owned()]);
    let international = with(&|it| it.deny_domains = list(&["xn--a"]));
    for (safe, url, expected) in [
        (&any, "https://example.com/", Some(true)),
        (&any, "ftp://example.com/", Some(false)),
        (&any, "http://169.254.169.254/latest", Some(false)),
        (&any, "http://localhost/", Some(false)),
        (&any, "http://metadata.google.internal/", Some(false)),
        (&any, "http://metadata.goog/computeMetadata/v1/", Some(false)),
        (&any, "http://localhost.localdomain/", Some(false)),
        (&capitals, "https://example.com/", Some(true)),
        (&shell, "ssh://10.0.0.5/", None),
        (&shell, "ssh://evil%2eexample/", None),
        (&international, "https://example.com/", None),
        (&any, "http://[::ffff:127.0.0.1]/", None),
        (&any, "http://[::1]/", Some(false)),
        (&any, "http://2130706433/", None),
        (&any, "http://0177.0.0.1/", None),
        (&any, "http://127.1/", None),
        (&any, "http://user@example.com/", None),
        (&private, "http://10.0.0.1/", Some(false)),
        (&domains, "https://a.example.com/", Some(true)),
        (&domains, "https://example.com/", Some(true)),
        (&domains, "https://b.test.example/", Some(false)),
        (&denied, "https://evil.example/", Some(false)),
        (&denied, "https://good.example/", Some(true)),
        (&ports, "https://good.example/", Some(true)),
        (&ports, "http://good.example/", Some(false)),
        (&strange, "https://example.com/", None),
        (&address, "https://8.8.8.8/", None),
    ] {
        let matched = safe.matches(url, &mut Work::default());
        let fits = matched.map(|found| found.map(|fit| fit == Fit::Yes));
        assert_eq!(fits, Ok(expected), "{url} {safe:?}");
    }
    let covers = |wide: &UrlSafe, narrow: &UrlSafe| wide.covers(narrow, &mut Work::default());
    for (wide, narrow, expected) in [
        (&any, &domains, true),
        (&domains, &any, false),
        (&any, &denied, true),
        (&denied, &any, false),
        (&any, &ports, true),
        (&ports, &any, false),
        (&any, &private, false),
        (&private, &any, true),
        (&strange, &strange, false),
        (&nothing_denied, &denied, true),
        (&nothing_denied, &any, false),
        (&any, &capitals, true),
        (&any, &shell, false),
    ] {
        assert_eq!(covers(wide, narrow), Ok(expected), "{wide:?} {narrow:?}");
    }
}
