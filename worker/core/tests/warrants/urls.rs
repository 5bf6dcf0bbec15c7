//! URLs beside the reference implementation: each constraint on URLs with each URL, and with each other constraint.
//!
//! Random chains meet few of these pairs. Here no chain is needed: both are asked directly.

use gateward_core::json::Json;
use gateward_core::warrant::constraint::fit::{Fit, value_fits};
use gateward_core::warrant::constraint::narrow::is_narrower;
use gateward_core::warrant::constraint::{Constraint, UrlPattern, UrlSafe, Work};
use tenuo::constraints as reference;

const SCHEMES: [&str; 9] = ["http", "https", "HTTPS", "ws", "wss", "ftp", "file", "ssh", "foo"];

const HOSTS: [&str; 22] = [
    "a.example",
    "A.example",
    "x.a.example",
    "x.a%2eexample",
    "a.example.",
    "u@a.example",
    "xn--bcher-kva.example",
    "8.8.8.8",
    "10.0.0.5",
    "127.1",
    "0x7f000001",
    "169.254.169.254",
    "[::1]",
    "[2606:4700::1111]",
    "localhost",
    "localhost.localdomain",
    "x.localdomain",
    "metadata.goog",
    "metadata.google.internal",
    "x.lan",
    "x.svc",
    "lan",
];

/// Port, path and query.
const ENDS: [&str; 12] = [
    "",
    "/",
    "/x",
    ":80/",
    ":443/x/y?q",
    ":21/x.json",
    ":444/x/%78",
    ":0/x^y|z'~",
    "/x/../y",
    "/x/..;/y",
    "/x/..%3b/y",
    "/x//../y",
];

/// Gateward reads some of them, and refuses a warrant with another one.
const PATTERNS: [&str; 44] = [
    "*://a.example",
    "*://a.example/",
    "*://a.example/*",
    "*://a.example:80",
    "*://a.example:443",
    "*://a.example:21",
    "*://a.example:444/x/*",
    "*://a.example:0",
    "*://*.a.example",
    "*://*.A.example:80/x",
    "*://*.localdomain",
    "*://10.0.0.5",
    "*://8.8.8.8:443",
    "*://metadata.goog",
    "*://a.example/*.json",
    "*://a.example/x.*.y",
    "*://xn--a",
    "*://xn--bcher-kva.example",
    "*://__tenuo_host_wildcard__.a.example",
    "http://a.example",
    "http://a.example:80",
    "http://a.example:443/x",
    "http://a.example:+80",
    "https://a.example",
    "https://a.example:443",
    "https://a.example:80/*",
    "https://a.example/x",
    "https://a.example/x*",
    "https://a.example/x/*",
    "https://a.example/x^*",
    "https://a.example/x;y",
    "https://a.example/x//*",
    "https://a.example/__tenuo_path_wildcard__",
    "HTTPS://a.example/x/y",
    "ws://a.example",
    "ws://a.example:80",
    "wss://*.a.example:443/x",
    "ftp://a.example:21",
    "file://a.example/x",
    "foo://a.example",
    "foo://*.A.example",
    "ssh://10.0.0.5",
    "1http://a.example",
    "ht*://a.example",
];

/// A constraint of each implementation.
struct Both {
    ours: Constraint,
    theirs: reference::Constraint,
}

fn patterns() -> Vec<Both> {
    let read = PATTERNS.iter().filter_map(|text| {
        let ours = Constraint::UrlPattern(Box::new(UrlPattern::new(text)?));
        let theirs = reference::UrlPattern::new(text)
            .unwrap_or_else(|error| panic!("only Gateward reads `{text}`: {error}"));
        Some(Both { ours, theirs: reference::Constraint::UrlPattern(theirs) })
    });
    read.collect()
}

fn safe() -> Vec<Both> {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    type Change<'a> = &'a dyn Fn(&mut UrlSafe);
    let changes: [Change<'_>; 14] = [
        &|_| {},
        &|it| it.blocks = [false; 4],
        &|it| it.block_internal_tlds = true,
        &|it| (it.blocks, it.block_internal_tlds) = ([false; 4], true),
        &|it| it.schemes = list(&["HTTPS"]),
        &|it| it.schemes = list(&["https", "ftp"]),
        &|it| it.schemes = list(&["ssh", "foo", "ws", "file"]),
        &|it| it.schemes = Vec::new(),
        &|it| (it.schemes, it.allow_ports) = (list(&["ws", "foo"]), Some(vec![80])),
        &|it| it.allow_ports = Some(vec![443, 21]),
        &|it| it.allow_domains = Some(list(&["*.a.example", "8.8.8.8", "x.localdomain"])),
        &|it| it.deny_domains = Some(list(&["x.a.example"])),
        &|it| it.deny_domains = Some(list(&["xn--a"])),
        &|it| {
            (it.allow_domains, it.deny_domains) =
                (Some(list(&["*.example"])), Some(list(&["*.x.a.example"])));
        },
    ];
    let made = changes.map(|change| {
        let mut safe = UrlSafe::default();
        change(&mut safe);
        let [block_private, block_loopback, block_metadata, block_reserved] = safe.blocks;
        let theirs = reference::UrlSafe {
            schemes: safe.schemes.clone(),
            allow_domains: safe.allow_domains.clone(),
            deny_domains: safe.deny_domains.clone(),
            allow_ports: safe.allow_ports.clone(),
            block_private,
            block_loopback,
            block_metadata,
            block_reserved,
            block_internal_tlds: safe.block_internal_tlds,
        };
        let ours = Constraint::UrlSafe(Box::new(safe));
        Both { ours, theirs: reference::Constraint::UrlSafe(theirs) }
    });
    made.into()
}

#[test]
fn a_url_that_fits_or_does_not_fit_does_the_same_there() {
    let (mut fit, mut unfit) = (0, 0);
    let constraints: Vec<Both> = patterns().into_iter().chain(safe()).collect();
    for scheme in SCHEMES {
        for (host, end) in HOSTS.iter().flat_map(|host| ENDS.map(|end| (host, end))) {
            let url = format!("{scheme}://{host}{end}");
            let value = Json::String(url.clone());
            for Both { ours, theirs } in &constraints {
                let says = theirs.matches(&reference::ConstraintValue::String(url.clone()));
                match value_fits(ours, &value, &mut Work::default()) {
                    Ok(Fit::Yes) => {
                        fit += 1;
                        assert!(matches!(says, Ok(true)), "{url} fits {ours:?}: {says:?}");
                    }
                    Ok(Fit::No) => {
                        unfit += 1;
                        assert!(matches!(says, Ok(false)), "{url} does not fit {ours:?}: {says:?}");
                    }
                    // It fits neither the constraint nor `not` of it.
                    Ok(Fit::Inapplicable) | Err(_) => {}
                }
            }
        }
    }
    // Otherwise the URLs show little.
    assert!(fit > 500 && unfit > 5_000, "{fit} {unfit}");
}

#[test]
fn what_is_narrower_is_narrower_there() {
    let mut narrower = 0;
    for constraints in [patterns(), safe()] {
        for (wide, narrow) in
            constraints.iter().flat_map(|wide| constraints.iter().map(move |it| (wide, it)))
        {
            if is_narrower(&wide.ours, &narrow.ours, &mut Work::default()) == Ok(true) {
                narrower += 1;
                let says = wide.theirs.validate_attenuation(&narrow.theirs);
                assert!(says.is_ok(), "{:?} {:?}: {says:?}", wide.ours, narrow.ours);
            }
        }
    }
    assert!(narrower > 50, "{narrower}");
}
