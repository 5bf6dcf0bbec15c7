//! The project's own corpora of the shield (`tests/shield/`): what is found in attacks, and what is not in ordinary calls.
//!
//! Not every attack is found, and `tests/shield/expected.json` says how many are. A change that finds fewer, or that
//! finds more in ordinary calls, fails here. A better one raises the numbers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gateward_core::json::{self, Json};
use gateward_core::provenance::ValueKey;
use gateward_core::shield::{Findings, Severity, Shield};
use proptest::prelude::*;
use serde::Deserialize;

const KEY: ValueKey = ValueKey::new([0; 16]);

/// What a line of a corpus holds; see `tests/shield/README.md`.
#[derive(Deserialize)]
struct Line {
    arguments: Option<serde_json::Value>,
    text: Option<String>,
    #[serde(default)]
    prefix_bytes: usize,
    #[serde(default)]
    finds: Vec<String>,
}

fn shield() -> Shield {
    Shield::new(gateward_policies::bundle().shield)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/shield")
}

fn inspect(shield: &Shield, line: &Line) -> Findings {
    let arguments = match (&line.arguments, &line.text) {
        (Some(arguments), _) => json::parse(arguments.to_string().as_bytes()).unwrap(),
        (None, text) => {
            let before =
                "Ordinary text of a ticket, line after line. ".repeat(line.prefix_bytes / 44 + 1);
            Json::String(before + text.as_deref().unwrap())
        }
    };
    shield.inspect("", &KEY, "", (&arguments, &Json::Null))
}

/// For each file of a folder: lines whose expected category was found at any severity, or in which ordinary text was
/// found at high severity.
fn counts(part: &str) -> BTreeMap<String, usize> {
    let shield = shield();
    let count = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Line>(line).unwrap());
        lines
            .filter(|line| {
                let found = inspect(&shield, line);
                match part {
                    "attacks" => line
                        .finds
                        .iter()
                        .all(|name| found.list.iter().any(|it| it.category.as_str() == name)),
                    _ => found.list.iter().any(|it| it.severity >= Severity::High),
                }
            })
            .count()
    };
    fs::read_dir(folder().join(part))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), count(&path)))
        .collect()
}

#[test]
fn the_corpora_are_found_as_well_as_they_were() {
    type Expected = BTreeMap<String, BTreeMap<String, usize>>;
    let expected = fs::read_to_string(folder().join("expected.json")).unwrap();
    let expected: Expected = serde_json::from_str(&expected).unwrap();
    let counted: Expected =
        ["attacks", "ordinary"].map(|part| (part.to_owned(), counts(part))).into();
    let shown = serde_json::to_string_pretty(&counted).unwrap();
    assert_eq!(counted, expected, "tests/shield/expected.json would be\n{shown}");
}

/// Each evasion that the shield claims to see through, on one attack.
#[test]
fn an_attack_is_found_in_each_decoded_form() {
    let shield = shield();
    for text in [
        "<script>alert(1)</script>",
        "%3Cscript%3Ealert(1)%3C/script%3E",
        "%253Cscript%253Ealert(1)%253C%252Fscript%253E",
        "&lt;script&gt;alert&#40;1&#x29;&lt;/script&gt;",
        r"\u003cscript\u003ealert(1)\u003c/script\u003e",
        "%u003cscript%u003ealert(1)",
        "%c0%bcscript%c0%bealert(1)",
        "&#37;3Cscript&#37;3Ealert(1)",
        "PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
        "3c7363726970743e616c6572742831293c2f7363726970743e",
        "H4sIAAAAAAACA7MpTi7KLCixS8xJLSrRMNS00YcKAAB27ib+GQAAAA==",
        "eJyzKU4uyiwosUvMSS0q0TDUtNGHCgAAdfMI6A==",
        "＜script＞alert(1)＜/script＞",
        "<ѕсriрt>alert(1)</ѕсriрt>",
        "<scr\u{200b}ipt>ale\u{200d}rt(1)</script>",
        "<ScRiPt\n>alert(1)</script>",
    ] {
        let found = shield.matches("", text);
        assert!(found.iter().any(|it| it.rule == "script-with-code"), "{text}: {found:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever is sent, inspection ends, is the same each time, and names places that exist.
    #[test]
    fn any_text_is_inspected(
        text in r#"([a-z '"<>/\\%&;:.=(){}\[\]$`|#!@0-9-]|%[0-9a-f]{2}|&#x?[0-9a-f]{1,3};|\\u00[0-9a-f]{2}|\PC){0,80}"#,
    ) {
        let shield = shield_once();
        let value = Json::String(text.clone());
        let found = shield.inspect("", &KEY, "", (&value, &Json::Null));
        prop_assert_eq!(&found, &shield.inspect("", &KEY, "", (&value, &Json::Null)));
        for found in shield.matches("", &text) {
            if let Some(bytes) = found.bytes {
                prop_assert!(text.get(bytes).is_some());
            }
        }
    }
}

fn shield_once() -> &'static Shield {
    thread_local! {
        static SHIELD: &'static Shield = Box::leak(Box::new(shield()));
    }
    SHIELD.with(|shield| *shield)
}

/// Texts of the largest size that an attacker would try against the reading itself. If one of them cost more than its
/// length, this test would not end.
#[test]
fn the_largest_hostile_texts_are_read_to_their_end() {
    const BYTES: usize = 250 * 1024;
    let shield = shield();
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
        ("", "sk-", ""),
        ("", "AA11 ", ""),
        ("", "ignore all ", ""),
        ("", "а\u{200b}b", ""),
    ] {
        let text = [begin, &repeated.repeat(BYTES / repeated.len()), end].concat();
        let found = shield.inspect("", &KEY, "", (&Json::String(text), &Json::Null));
        assert!(found.list.len() < 100, "{repeated:?}");
    }
    let address = "http:///é http://Aé/ http://169.254.169.254/latest/";
    assert!(shield.matches("", address).iter().any(|it| it.rule == "metadata-address"));
}
