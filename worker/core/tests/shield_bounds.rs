//! How much the shield reads: hostile texts of the largest size, many short texts, and ids that only look encoded.

use gateward_core::json::Json;
use gateward_core::provenance::part::Part;
use gateward_core::provenance::{ArgumentRoles, ValueKey};
use gateward_core::shield::{Finding, Findings, Severity, Shield};
use serde_json::json;

const KEY: ValueKey = ValueKey::new([0; 16]);

fn shield() -> Shield {
    Shield::new(gateward_policies::bundle().shield)
}

fn inspect(shield: &Shield, value: &Json) -> Findings {
    shield.inspect("", &KEY, ("", value, &Json::Null), None)
}

/// Texts of the largest size that an attacker would try against the reading itself. If one of them cost more than its
/// length, this test would not end.
#[test]
fn the_largest_hostile_texts_are_read_to_their_end() {
    const BYTES: usize = 250 * 1024;
    let shield = shield();
    let roles: ArgumentRoles = serde_json::from_value(json!({"/other": "sink"})).unwrap();
    for (begin, repeated, end) in [
        ("-----BEGIN", " ", ""),
        ("Authorization: Bearer", " ", ""),
        ("", ")", "<"),
        ("", ")/onabc=", "<"),
        ("", "-----BEGIN PRIVATE KEY-----abcdefghijklmnopqrstuvwxyz012345", ""),
        ("", "![", "]("),
        ("", "//1 ", ""),
        ("", "http:///é ", ""),
        ("", "'\"`", ""),
        ("", "/*", ""),
        ("", "<a on=", ">"),
        ("", "%25", ""),
        ("", "&#38;", ""),
        ("", "$(", ""),
        ("", "1 ", ""),
        ("", "a@", ""),
        ("", "../", ""),
        ("", "api_key=", ""),
        ("", "eyJ.", ""),
        ("", "Private-Lines:", ""),
        ("", "mailto:a@", ""),
        ("'", "\n", "a"),
        ("'", "a\n", ""),
        ("", "sk-", ""),
        ("", "AA11 ", ""),
        ("", "ignore all ", ""),
        ("", "а\u{200b}b", ""),
        ("", ";", ""),
        ("", ";id", ""),
        ("", "\\\n", ""),
        ("", ";''", ""),
        ("", " onabc=\"", ""),
        ("", "//1-1.", ""),
        ("&#", "0", ""),
        ("", "&#0", ""),
        ("", "&#00%30", ""),
        ("data:", ",", ""),
        ("", "![x", "](<"),
        ("[", "[\"", ""),
        ("", "{\"", ""),
        ("[", "\"[\",", "1]"),
        ("ignore", " \n", "all"),
        ("", "％２５", ""),
        (&" ".repeat(BYTES / 2), ";id", ""),
        // Each of these cost more than twenty times what ordinary text costs.
        ("", ")/onabc=/", "<"),
        ("1' ", "onload=alert&#x3c;", ""),
        ("%25252541 ", ">&&or aж<%;cat ", ""),
        ("%25252541 ", "://4", ""),
        ("%25252541 ", "&&&&or`", ""),
        ("", "4111 1111 1111 1111 ", ""),
        ("", "1' union--\n", ""),
        ("1'", "--", ""),
        ("", "token=\"token='", ""),
        ("", "<img src=", ""),
        ("", "![a][a] [a]://a?", "b"),
        ("", r"\u{0", ""),
        ("", "passwordpass ", ""),
    ] {
        let text = [begin, &repeated.repeat((BYTES - begin.len()) / repeated.len()), end].concat();
        let text = Json::String(text);
        // With roles, a text of any length is read like a short one.
        for roles in [None, Some(&roles)] {
            let found = shield.inspect("", &KEY, ("", &text, &Json::Null), roles);
            assert!(found.list.len() < 100, "{repeated:?}");
        }
    }
    // A text with more hosts than are judged is not read to its end.
    for (hosts, truncated) in [(1_000, false), (1_100, true)] {
        let text: String = (0..hosts).map(|at| format!("see https://{at}.example-1/ ")).collect();
        let found = shield.inspect("", &KEY, ("", &Json::String(text), &Json::Null), None);
        assert_eq!(found.truncated, truncated, "{hosts}");
    }
    let address = "http:///é http://Aé/ http://169.254.169.254/latest/";
    assert!(shield.matches("", address).iter().any(|it| it.rule == "metadata-address"));
}

/// A call can be made of many short texts. Each of their decoded forms costs much more than their bytes.
#[test]
fn only_so_many_short_texts_are_decoded() {
    let shield = shield();
    let url = "https://shop.example/search?q=red%20shoes&size=42&sort=price%2Basc&page=17";
    for (text, count, truncated) in [
        ("%41;id", 3_900, false),
        ("%41;id", 6_000, true),
        (r#"["%41"]"#, 6_000, true),
        ("L’été", 3_900, false),
        (url, 5_000, false),
        // A row that is JSON, as tools of databases get them.
        (r#"{"id":42,"name":"Ada","city":"Paris","note":"none"}"#, 1_200, false),
        // These have no other form.
        ("Отчёт", 9_000, false),
        ("Übung", 9_000, false),
        ("R&D 50%", 9_000, false),
        ("a\\q", 9_000, false),
    ] {
        let texts = vec![Json::String(text.to_owned()); count];
        let found = inspect(&shield, &Json::Array(texts));
        assert_eq!(found.truncated, truncated, "{count} times {text}");
        let answer = json!(vec![text; count]).to_string();
        let found = shield.inspect_answer("", &KEY, &[Part::whole(&answer)]);
        assert!(!found.truncated, "{count} times {text}");
    }
    // A text of JSON is read in each of its forms, unless most of it is signs that are costly to read.
    let lines = "The build fails &lt;since&gt; Tuesday: see src/client.rs.\n";
    let row =
        json!({"id": 1, "name": "Ada", "note": "Don’t\n“now”", "url": "https://a.example/x%20y"});
    for (inner, truncated) in [
        (json!(lines.repeat(500)), false),
        (json!("&lt;&&or`".repeat(20_000)), true),
        // A file of JSON.
        (json!(vec![row; 2_500]), false),
    ] {
        let text = json!({ "text": inner }).to_string();
        assert_eq!(
            inspect(&shield, &Json::String(text.clone())).truncated,
            truncated,
            "{text:.40}"
        );
    }
    // A long text pays for itself.
    let mut texts = vec![Json::String("%41;id".to_owned()); 6_000];
    texts.push(Json::String(["%3Cscript%3Ealert(1)%3C/script%3E", &" x".repeat(50)].concat()));
    let found = inspect(&shield, &Json::Array(texts));
    assert!(found.truncated && found.list.iter().any(|it| it.rule == "script-with-code"));
}

/// Ids are ordinary, although their digits are also those of bytes.
#[test]
fn an_id_is_no_attack() {
    const IDS: usize = 2_000;
    const DIGITS: &[u8] = b"0123456789";
    const HEXADECIMAL: &[u8] = b"0123456789abcdef";
    const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let shield = shield();
    let is_attack = |it: &Finding| it.severity >= Severity::High && !it.decodings.is_empty();
    let mut seed = 1_u64;
    let mut digit = |of: &[u8]| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(of[(seed >> 33) as usize % of.len()])
    };
    for (digits, length) in [
        (DIGITS, 16),
        (DIGITS, 17),
        (DIGITS, 18),
        (DIGITS, 19),
        (HEXADECIMAL, 16),
        (HEXADECIMAL, 24),
        (HEXADECIMAL, 32),
        (HEXADECIMAL, 40),
        (BASE64, 16),
        (BASE64, 22),
    ] {
        for _ in 0..IDS {
            let id: String = (0..length).map(|_| digit(digits)).collect();
            let found = inspect(&shield, &Json::String(id.clone()));
            assert!(!found.list.iter().any(is_attack), "{id}: {found:?}");
        }
    }
    // A control character at its end does not make an id of an attack: `' or 1=1 --\x01`.
    let found = inspect(&shield, &Json::String("JyBvciAxPTEgLS0B".to_owned()));
    assert!(found.list.iter().any(is_attack), "{found:?}");
    for id in ["162659486872704232", "2223003122003222"] {
        let found = inspect(&shield, &Json::String(id.to_owned()));
        assert!(!found.list.iter().any(is_attack), "{id}: {found:?}");
    }
}
