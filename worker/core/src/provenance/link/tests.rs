//! Which URLs and mail addresses are found in texts, and which parts they have.

use super::*;

fn urls(token: &str) -> Vec<&str> {
    let mut all = Vec::new();
    each_url(token, &mut |url| all.push(url));
    all
}

#[test]
fn finds_every_url_of_a_token() {
    for (token, expected) in [
        ("https://x.com/a", vec!["https://x.com/a"]),
        ("(https://x.com/a_(b)).", vec!["https://x.com/a_(b)"]),
        ("(https://x.com)(https://evil.com)", vec!["https://x.com", "https://evil.com"]),
        ("HTTPS:evil.com", vec!["HTTPS:evil.com"]),
        ("http:\\\\evil.com", vec!["http:\\\\evil.com"]),
        ("src='//evil.com/x'", vec!["//evil.com/x"]),
        ("www.evil.com:www.x.com.", vec!["www.evil.com:www.x.com"]),
        ("https://x.com)@evil.com/x", vec!["https://x.com", "@evil.com/x"]),
        ("https://x.com).evil.com/x", vec!["https://x.com", ".evil.com/x"]),
        ("https://x.com'.evil.com", vec!["https://x.com", ".evil.com"]),
        (".evil.com/x", vec![".evil.com/x"]),
        ("@evil.com", vec!["@evil.com"]),
        ("аррӏе.com/login", vec![".com/login"]),
        ("/\\evil.com/x", vec!["/\\evil.com/x"]),
        ("///evil.com/x", vec!["///evil.com/x"]),
        ("//@evil.com/x", vec!["//@evil.com/x"]),
        ("Link:evil.com", vec!["evil.com"]),
        ("evil.com:", vec!["evil.com"]),
        ("x.com:8080", vec!["x.com:8080"]),
        ("/etc/hosts", vec![]),
        ("C:\\a\\b.c", vec![]),
        ("@alice", vec![]),
        (".env", vec![]),
        (".net", vec![]),
        ("www.evil.com.", vec!["www.evil.com"]),
        ("evil.com", vec!["evil.com"]),
        ("evil.xyz/a?b=c", vec!["evil.xyz/a?b=c"]),
        ("evil.rest/a", vec!["evil.rest/a"]),
        ("1.2.3.4:8080/x", vec!["1.2.3.4:8080/x"]),
        ("url=evil.com", vec!["evil.com"]),
        ("a.com,b.com", vec!["a.com", "b.com"]),
        ("x.com(y)", vec!["x.com"]),
        ("x.com%2eevil.com", vec!["x.com%2eevil.com"]),
        ("git+https://x.com/a", vec!["git+https://x.com/a"]),
        ("~www.evil.example/x~", vec!["www.evil.example/x"]),
        ("_www.evil.bar_", vec!["www.evil.bar"]),
        ("_https://x.com/a_", vec!["https://x.com/a"]),
        ("%www.evil.example", vec!["www.evil.example"]),
        ("+www.evil.example", vec!["www.evil.example"]),
        ("#evil.example/x", vec!["evil.example/x"]),
        ("&www.evil.example", vec!["www.evil.example"]),
        ("$evil.example", vec!["evil.example"]),
        ("^evil.example", vec!["evil.example"]),
        ("evil.zip/x", vec!["evil.zip/x"]),
        ("evil.mov/x", vec!["evil.mov/x"]),
        ("evil.md?x=1", vec!["evil.md?x=1"]),
        ("evil.pizza?x=1", vec!["evil.pizza?x=1"]),
        ("http:evil", vec!["http:evil"]),
        // Hosts on domains that are names of functions too.
        ("evil.info", vec!["evil.info"]),
        ("acme-login.info(now)", vec!["acme-login.info"]),
        ("evil.com(now)", vec!["evil.com"]),
        ("deadbeef.evil.support(now)", vec!["deadbeef.evil.support"]),
        ("a.self.evil.info(now)", vec!["a.self.evil.info"]),
        ("evil.info/(now)", vec!["evil.info/(now)"]),
        ("evil.self.info.example", vec!["evil.self.info.example"]),
        ("self.host/x", vec!["self.host/x"]),
        ("www.url.host/x", vec!["www.url.host/x"]),
        ("203.0.113.5/24", vec!["203.0.113.5/24"]),
        ("10.0.0.0/8/x", vec!["10.0.0.0/8/x"]),
        ("report.md", vec![]),
        ("src/main.rs:12", vec![]),
        ("main.rs:12", vec![]),
        ("main.rs#L12", vec![]),
        ("README.md/", vec![]),
        ("http:", vec![]),
        ("1.2.3", vec![]),
        // Code.
        ("logger.info(", vec![]),
        ("System.in)", vec![]),
        ("model.to(device)", vec![]),
        ("self.model.to(device)", vec![]),
        ("this.server.at(1)", vec![]),
        ("el.style.top", vec![]),
        ("window.location.host", vec![]),
        ("self.app.run()", vec![]),
        ("arr.at(-1)", vec![]),
        ("date.today()", vec![]),
        ("answer.receipt?.seq", vec![]),
        ("call.f?.(x)", vec![]),
        ("is.it.x?", vec![]),
        ("&self.host", vec![]),
        ("logging.INFO", vec![]),
        ("cache_entry.link", vec![]),
        ("ASP.NET", vec![]),
        ("socket.io", vec![]),
        ("10.0.0.0/8,172.16.0.0/12", vec![]),
        ("io.modelcontextprotocol/version", vec![]),
        ("and/or", vec![]),
        ("e.g.", vec![]),
        ("//comment", vec!["//comment"]),
        ("„https://x.com/a“,", vec!["https://x.com/a"]),
        ("“https://x.com/a.”", vec!["https://x.com/a"]),
        ("»https://x.com/a«", vec!["https://x.com/a"]),
        ("https://x.com/a…", vec!["https://x.com/a"]),
        ("„x.com“", vec!["x.com"]),
        ("https://x.com/a””", vec!["https://x.com/a”"]),
        ("https://x.com/a”b", vec!["https://x.com/a”b"]),
        ("x.com)x.com)x.com", vec!["x.com", "x.com", "x.com"]),
    ] {
        assert_eq!(urls(token), expected, "{token}");
    }
}

#[test]
fn a_url_has_parts_if_its_host_is_certain() {
    let host = |text| Link::parse(text).map(|link| link.host);
    for (text, expected) in [
        ("https://x.com", Some("x.com")),
        ("https://X.com:443/a?b#c", Some("X.com")),
        ("http://x.com:8080", Some("x.com:8080")),
        ("https://[::1]:8443/", Some("[::1]:8443")),
        ("https://10.0.0.1/", Some("10.0.0.1")),
        ("x.com/a", Some("x.com")),
        ("https://good.com@evil.com/", None),
        ("https://good.com:80@evil.com/", None),
        ("https://good.com\\@evil.com/", None),
        ("https://good.com\t.evil.com/", None),
        ("https://good.com\n.evil.com/", None),
        ("https://0x7f.1/", None),
        ("https://0177.0.0.1/", None),
        ("https://2130706433/", None),
        ("https://127.1/", None),
        ("https://10.0.0.1./", None),
        ("https://%67ood.com/", None),
        ("https://good.com%00.evil.com", None),
        ("https://bücher.example/", None),
        ("https://good.com:99999/", None),
        ("https://good.com:+80/", None),
        ("https://good..com/", None),
        ("https:///good.com", None),
        ("https:good.com", None),
        ("javascript://good.com/%0aalert(1)", None),
    ] {
        assert_eq!(host(text), expected, "{text}");
    }
    let link = Link::parse("https://x.com/a/b?c=d&e#f").unwrap();
    assert_eq!((link.path, link.query, link.fragment), ("/a/b", "c=d&e", "f"));
    assert_eq!((link.place, link.page), (Some("x.com/a/b?c=d&e#f"), Some("x.com/a/b")));
    assert_eq!(Link::parse("ssh://x.com/a").unwrap().place, None);
}

#[test]
fn the_lists_are_sorted() {
    for list in [LINKED_DOMAINS, FILE_EXTENSIONS, FILE_DOMAINS, FUNCTIONS] {
        assert!(list.is_sorted());
    }
    for domain in LINKED_DOMAINS {
        assert!(!is_in(FILE_EXTENSIONS, domain) && !is_in(FILE_DOMAINS, domain), "{domain}");
    }
    for name in FUNCTIONS {
        assert!(is_in(LINKED_DOMAINS, name), "{name}");
    }
}

#[test]
fn finds_addresses_whose_name_ends_with_an_unusual_character() {
    for (token, expected) in [
        ("alice@x.com", vec!["alice@x.com"]),
        ("(mailto:eve$@evil.example)", vec!["eve$@evil.example"]),
        ("<José@evil.bank>.", vec!["José@evil.bank"]),
        ("\"eve\"@evil.example", vec!["\"eve\"@evil.example"]),
        ("a@x.com,b%@y.com", vec!["a@x.com", "b%@y.com"]),
        ("@x.com", vec![]),
        ("(@x.com)", vec![]),
        ("\"$@\"", vec![]),
        ("@scope/pkg", vec![]),
        ("rollup@4.17.2", vec![]),
        ("eve@4.17.2.example", vec!["eve@4.17.2.example"]),
    ] {
        let mut found = Vec::new();
        each_address(token, &mut |address| found.push(address));
        assert_eq!(found, expected, "{token}");
    }
}

#[test]
fn only_names_that_apis_have_are_no_part_of_a_query() {
    let many = "q=1&".repeat(9);
    for (query, expected) in [
        ("q=a&page_size=b", "a b"),
        ("the_users_iban_is_de=a", "the_users_iban_is_de a"),
        ("Q=a", "Q a"),
        ("q=&page", "q page"),
        (many.as_str(), "1 1 1 1 1 1 1 1 q 1"),
    ] {
        let url = format!("x.com/?{query}");
        let mut parts = Vec::new();
        Link::parse(&url).unwrap().each_query_part(&mut |part| parts.push(part));
        parts.retain(|part| !part.is_empty());
        assert_eq!(parts.join(" "), expected, "{query}");
    }
}

#[test]
fn only_a_plain_mail_address_is_an_address() {
    for text in ["alice@x.com", "a.b+c_d-e@mail.x.co.uk"] {
        assert!(is_address(text), "{text}");
    }
    for text in [
        "alice",
        "@x.com",
        "alice@x",
        "alice@x.com.",
        "a@b@x.com",
        "a%evil.com@x.com",
        "a!b@x.com",
        "\"a b\"@x.com",
        "a@[1.2.3.4]",
        "а@x.com",
        "a@раyраl.com",
        "a@x..com",
        "a@1.2.3",
        "a b@x.com",
    ] {
        assert!(!is_address(text), "{text}");
    }
}
