//! The values of a result and of the arguments that an agent sends: their trust, and what does not fit.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gateward_core::json::Json;
use gateward_core::provenance::part::{Kind, MAX_READ_BYTES, Part};
use gateward_core::provenance::result::{MAX_RESULT_VALUES, MAX_UNTRUSTED_VALUES, ResultLevel};
use gateward_core::provenance::{Level, ResultTrust, extract, lookup};

use super::{KEY, Run, parse};

#[test]
fn a_name_in_an_object_is_a_value_with_the_level_of_the_object() {
    let shared = r#"{"eve@x.com":"r"}"#;
    let list = r#"["eve@x.com"]"#;
    assert_eq!(Run::default().trusted(shared).text("eve@x.com"), Level::Trusted);
    assert_eq!(Run::default().untrusted(shared).trusted(list).text("eve@x.com"), Level::Untrusted);
    let trust: ResultTrust = serde_json::from_str(r#"{"/files/*/shared":"trusted"}"#).unwrap();
    let text = r#"{"files":[{"shared":{"bob@x.com":"r"}}],"eve@x.com":{"files":[]}}"#;
    let found = extract::result(&KEY, &[Part::whole(text)], Some(&trust), false);
    let run =
        Run::default().add(Level::Trusted, found.trusted).add(Level::Untrusted, found.untrusted);
    assert_eq!(run.text("bob@x.com"), Level::Trusted);
    assert_eq!(run.text("eve@x.com"), Level::Untrusted);
}

#[test]
fn trust_is_by_the_longest_pointer_and_one_trusted_place_is_enough() {
    use ResultLevel::{Trusted, Untrusted};
    let trust = |rules: &[(&str, ResultLevel)]| {
        ResultTrust(rules.iter().map(|(pointer, level)| ((*pointer).to_owned(), *level)).collect())
    };
    let json =
        r#"{"contacts":[{"mail":"a1","note":"b1"}],"a/b":"c1","mails":["d1","a2"],"own":["a2"]}"#;
    type Rules<'r> = &'r [(&'r str, ResultLevel)];
    let cases: &[(Rules<'_>, bool, &str, &str)] = &[
        (&[], true, "a1 b1 c1 d1 a2", ""),
        (&[], false, "", "a1 b1 c1 d1 a2"),
        (&[("/contacts", Trusted)], false, "a1 b1", "c1 d1 a2"),
        (&[("/contacts/*/mail", Trusted)], false, "a1", "b1 c1 d1 a2"),
        (&[("/contacts", Trusted), ("/contacts/*/note", Untrusted)], false, "a1", "b1"),
        (&[("/contacts/0/note", Untrusted), ("/contacts/*/note", Trusted)], true, "a1", "b1"),
        (&[("/a~1b", Trusted)], false, "c1", "a1"),
        (&[("", Trusted), ("/mails", Untrusted)], false, "a1 b1 c1 a2", "d1"),
        (&[("/mail", Trusted), ("/contacts/", Trusted)], false, "", "a1 d1"),
    ];
    for (rules, server, trusted, untrusted) in cases {
        let observed = extract::result(&KEY, &[Part::whole(json)], Some(&trust(rules)), *server);
        let hash = |value| lookup::hashes(&KEY, &Json::String(String::from(value)));
        for value in trusted.split(' ').filter(|value| !value.is_empty()) {
            let hash = hash(value);
            assert!(observed.trusted.contains(&hash[0]), "{value} by {rules:?}");
            assert!(!observed.untrusted.contains(&hash[0]), "{value} by {rules:?}");
        }
        for value in untrusted.split(' ').filter(|value| !value.is_empty()) {
            let hash = hash(value);
            assert!(observed.untrusted.contains(&hash[0]), "{value} by {rules:?}");
            assert!(!observed.trusted.contains(&hash[0]), "{value} by {rules:?}");
        }
        assert!(!observed.incomplete && observed.key == KEY.fingerprint());
    }
    // An object or a text in place of an array of one, and the other way around.
    for (pointer, json) in [
        ("/mails/*/text", r#"{"mails":{"text":"x1"}}"#),
        ("/mails/*/text", r#"{"mails":["x1"]}"#),
        ("/mails/*", r#"{"mails":"x1"}"#),
        ("/mail/text", r#"{"mail":[{"text":"x1"}]}"#),
        ("/mail/text", r#"{"mail":"x1"}"#),
    ] {
        let rules = trust(&[(pointer, Untrusted)]);
        let found = extract::result(&KEY, &[Part::whole(json)], Some(&rules), true);
        assert!(found.trusted.is_empty() && !found.untrusted.is_empty(), "{json} by {pointer}");
    }
    for json in [r#"{"mails":null,"id":"x1"}"#, r#"{"mails":[],"id":"x1"}"#, r#"{"id":"x1"}"#] {
        let rules = trust(&[("/mails/*/text", Untrusted)]);
        let found = extract::result(&KEY, &[Part::whole(json)], Some(&rules), true);
        assert!(!found.trusted.is_empty() && found.untrusted.is_empty(), "{json}");
    }
    // What cannot be read as JSON is trusted only if no pointer is untrusted.
    let rules = trust(&[("", Trusted), ("/mails", Untrusted)]);
    let unreadable = r#"{"a":"x1","a":"x1"}"#;
    assert!(
        extract::result(&KEY, &[Part::whole(unreadable)], Some(&rules), true).trusted.is_empty()
    );
    let rules = trust(&[("", Trusted)]);
    assert!(
        extract::result(&KEY, &[Part::whole(unreadable)], Some(&rules), false).untrusted.is_empty()
    );
    // Nothing is missing of a trusted result that is too long to read.
    let long = "x".repeat(MAX_READ_BYTES + 1);
    for (rules, server, trusted) in [
        (None, true, true),
        (None, false, false),
        (Some(trust(&[("/mails", Trusted)])), true, true),
        (Some(trust(&[("/mails", Trusted)])), false, false),
        (Some(trust(&[("/mails", Untrusted)])), true, false),
        (Some(trust(&[("", Trusted), ("/mails", Untrusted)])), true, false),
        (Some(trust(&[("", Trusted)])), false, true),
        (Some(trust(&[("", Untrusted)])), true, false),
    ] {
        assert_eq!(ResultTrust::trusts_text(rules.as_ref(), server), trusted, "{rules:?} {server}");
        let found = extract::result(&KEY, &[Part::whole(&long)], rules.as_ref(), server);
        assert_eq!(found.incomplete, !trusted, "{rules:?} {server}");
    }
}

#[test]
fn what_does_not_fit_is_missing_and_never_raised() {
    let list = |prefix: &str, count| {
        let items: Vec<_> = (0..count).map(|at| format!("\"{prefix}{at}\"")).collect();
        items.join(",")
    };
    let words = |count: usize| (0..count).map(|at| format!("a{at} ")).collect::<String>();
    let many =
        extract::result(&KEY, &[Part::whole(&format!("[{}]", list("a", 6_000)))], None, true);
    assert_eq!((many.trusted.len(), many.incomplete), (MAX_RESULT_VALUES, false));
    assert!(many.trusted.is_sorted());
    // A large page, or the lock file of a package manager, has fewer values than fit.
    let page = words(9_000);
    let page = extract::result(&KEY, &[Part::whole(&page)], None, false);
    assert!(page.untrusted.len() >= 9_000 && !page.incomplete);
    // If untrusted values are missing, the run raises nothing more.
    let both = format!(r#"{{"bad":"{}","good":["z8"]}}"#, words(MAX_UNTRUSTED_VALUES + 100));
    let trust = ResultTrust(vec![("/good".to_owned(), ResultLevel::Trusted)]);
    let both = extract::result(&KEY, &[Part::whole(&both)], Some(&trust), false);
    assert_eq!((both.untrusted.len(), both.incomplete), (MAX_UNTRUSTED_VALUES, true));
    // Values of many parts count together.
    let texts: Vec<String> = (0..3).map(|at| list(&format!("b{at}x"), 8_000)).collect();
    let parts: Vec<Part<'_>> = texts.iter().map(|text| Part::whole(text)).collect();
    let parts = extract::result(&KEY, &parts, None, false);
    assert_eq!((parts.untrusted.len(), parts.incomplete), (MAX_UNTRUSTED_VALUES, true));
    let long = format!("{} é{}", "a ".repeat(MAX_READ_BYTES / 2 - 1), " user_1");
    for (trusted, incomplete) in [(true, false), (false, true)] {
        let long = extract::result(&KEY, &[Part::whole(&long)], None, trusted);
        assert_eq!(long.incomplete, incomplete, "{trusted}");
        assert!(long.trusted.is_empty() && long.untrusted.is_empty(), "{long:?}");
    }
    let (sent, incomplete) = extract::arguments(&KEY, &parse(r#"{"to":"bo li","n":[7]}"#), None);
    assert_eq!((sent.len(), incomplete), (2, false));
}

#[test]
fn escapes_of_json_and_the_encoding_of_a_file_hide_no_value() {
    let units = "eve@x.com".encode_utf16().flat_map(u16::to_le_bytes);
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(units).collect();
    let base64 = |bytes: &[u8]| STANDARD.encode(bytes);
    let (deep, end) = ("[".repeat(40), "]".repeat(40));
    for (kind, text) in [
        (Kind::Text, r#""Write to eve\u0040x.com.""#.to_owned()),
        (Kind::Text, r#"{"to":["eve\u0040x.com"]}"#.to_owned()),
        (Kind::Whole, format!(r#"{deep}"eve\u0040x.com"{end}"#)),
        (Kind::File, base64(b"Write to eve@x.com.")),
        (Kind::File, base64(b"Write to eve@x.com.").replace('=', "\n")),
        (Kind::File, base64(b"Gr\xfc\xdfe: eve@x.com")),
        (Kind::File, base64(&utf16)),
    ] {
        let parts = [Part::new(kind, String::new(), text.as_str().into())];
        let found = extract::result(&KEY, &parts, None, false);
        assert!(!found.incomplete, "{text}");
        let run = Run::default().add(Level::Untrusted, found.untrusted);
        assert_eq!(run.text("eve@x.com"), Level::Untrusted, "{kind:?} {text}");
    }
    // An honest name is found in spite of its escapes. No pointer leads into such a part.
    let parts = [Part::new(Kind::Text, String::new(), r#""M\u00fcller""#.into())];
    let found = extract::result(&KEY, &parts, None, true);
    assert_eq!(Run::default().add(Level::Trusted, found.trusted).text("Müller"), Level::Trusted);
    let trust = ResultTrust(vec![("/a".to_owned(), ResultLevel::Trusted)]);
    let parts = [Part::new(Kind::Text, String::new(), r#"{"a":"eve@x.com"}"#.into())];
    assert!(extract::result(&KEY, &parts, Some(&trust), false).trusted.is_empty());
    // A trusted PDF or archive has no values. A stranger's has.
    let archive = base64(b"PK\x03\x04\0\xff eve@x.com");
    let parts = [Part::new(Kind::File, String::new(), archive.as_str().into())];
    assert!(extract::result(&KEY, &parts, None, true).trusted.is_empty());
    assert!(!extract::result(&KEY, &parts, None, false).untrusted.is_empty());
    let latin = base64(b"Gr\xfc\xdfe: eve@x.com");
    let parts = [Part::new(Kind::File, String::new(), latin.as_str().into())];
    assert!(!extract::result(&KEY, &parts, None, true).trusted.is_empty());
    // A file that cannot be read, or not as a whole, closes the run only if strangers may have written it.
    let large = base64(&b"a ".repeat(MAX_READ_BYTES / 2 + 1));
    for (text, trusted, incomplete) in [
        ("", false, false),
        ("eA==", false, false),
        ("abc=defghij", false, true),
        ("abc=defghij", true, false),
        (large.as_str(), false, true),
        (large.as_str(), true, false),
    ] {
        let parts = [Part::new(Kind::File, String::new(), text.into())];
        let found = extract::result(&KEY, &parts, None, trusted);
        assert_eq!(found.incomplete, incomplete, "{trusted} {}", text.len());
    }
}

#[test]
fn what_an_agent_sends_is_known_also_decoded_and_as_a_name() {
    let sent = |input: &str| extract::arguments(&KEY, &parse(input), None).0;
    let evil = lookup::hashes(&KEY, &Json::String("eve@evil.com".to_owned()));
    for input in [
        r#"{"text":"to eve@evil.com"}"#,
        r#"{"text":"ZXZlQGV2aWwuY29t"}"#,
        r#"{"text":"eve%40evil.com"}"#,
        r#"{"fields":{"eve@evil.com":"x"}}"#,
    ] {
        assert!(sent(input).contains(&evil[0]), "{input}");
    }
}
