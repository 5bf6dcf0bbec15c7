//! How much the shield reads: hostile texts of the largest size, many short texts, and ids that only look encoded.

use std::fs;
use std::path::Path;

use gateward_core::json::{self, Json};
use gateward_core::provenance::part::Part;
use gateward_core::provenance::{ArgumentRoles, ValueKey};
use gateward_core::shield::{Category, Finding, Findings, Severity, Shield};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
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
    let address = "http:///é http://Aé/ http://169.254.169.254/latest/";
    assert!(shield.matches("", address).iter().any(|it| it.rule == "metadata-address"));
}

/// A call can be made of many short texts. Each of their decoded forms costs much more than their bytes.
#[test]
fn only_so_many_short_texts_are_decoded() {
    let shield = shield();
    let url = "https://shop.example/search?q=red%20shoes&size=42&sort=price%2Basc&page=17";
    for (text, count, truncated) in [
        ("%41;id", 1_500, false),
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

/// Ordinary texts are read to their end with a reserve, and the texts of the attacks too: also if a call has many of them.
#[test]
fn the_texts_of_the_corpora_need_two_thirds_of_the_budget_at_most() {
    const BYTES: usize = 128 * 1024;
    let shield = shield();
    for part in ["ordinary", "attacks"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/shield").join(part);
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let lines = fs::read_to_string(&path).unwrap();
            let value = |line: &str| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                line.get("arguments").or(line.get("text")).unwrap().to_string()
            };
            let values: Vec<String> = lines.lines().map(value).collect();
            let one = json::parse_definition(format!("[{}]", values.join(",")).as_bytes()).unwrap();
            let bytes: usize = values.iter().map(|value| value.len() + 1).sum();
            for times in [1, (64 * 1024_usize).div_ceil(bytes), BYTES.div_ceil(bytes)] {
                let value = Json::Array(vec![one.clone(); times]);
                let (taken, budget) = shield.work(&value, false);
                let name = path.display();
                assert!(3 * taken <= 2 * budget, "{taken} of {budget}: {times} times {name}");
            }
        }
    }
}

/// Texts that cost much, each in its own way.
const DEAR: [&str; 8] =
    ["&&or`", "{{a}}", "%41;id", "\"'`<", "&amp;lt;", "[\"%41\"]", "<a onx=a(", "//a1.b2 "];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Work is refused before it would exceed the budget, and then the call counts as not read to its end.
    #[test]
    fn no_call_takes_more_than_its_budget(
        fragments in vec(prop_oneof![select(&DEAR[..]).prop_map(String::from), ".{1,8}"], 1..4),
        times in 1_usize..2_000,
        count in 1_usize..40,
    ) {
        let shield = shield();
        let text = Json::String(fragments.concat().repeat(times / count + 1));
        let value = Json::Array(vec![text; count]);
        let (taken, budget) = shield.work(&value, true);
        prop_assert!(taken <= budget);
        let (wanted, budget) = shield.work(&value, false);
        prop_assert!(wanted <= budget || inspect(&shield, &value).truncated);
    }
}

/// What was found before the budget was used up stays. An attack after it may stay unseen, but the call is truncated.
#[test]
fn an_attack_before_a_dear_text_is_found() {
    let shield = shield();
    let attack = "1' UNION SELECT password FROM users--";
    for dear in ["{{a}}", "&&or`"] {
        // The escape has it read again.
        let dear = ["%41 ", &dear.repeat(20_000)].concat();
        let one = Json::String([attack, " ", &dear].concat());
        let two = Json::Array([attack, &dear].map(|text| Json::String(text.to_owned())).into());
        for value in [one, two] {
            let found = inspect(&shield, &value);
            assert!(found.truncated, "{dear:.9}");
            let is_found = |it: &Finding| it.category == Category::SqlInjection;
            assert!(found.list.iter().any(is_found), "{dear:.9}: {:?}", found.list);
        }
        let value = Json::Array([&dear, attack].map(|text| Json::String(text.to_owned())).into());
        assert!(inspect(&shield, &value).truncated, "{dear:.9}");
    }
}
