//! The values that a text has, in the form in which a sink names them.

use gateward_core::provenance::Level;

use super::Run;

#[test]
fn a_value_is_found_in_the_text_that_has_it() {
    let yaml = "- id: '26'\n  sender: emma.johnson@bluesparrowtech.com\n  subject: Quarterly plan\n  \
        recipients:\n  - Bob.Baker@x.com\n  - david lee\n  date: 2024-05-15\n  amount: 1,200.50\n  \
        file: reports/q3 final.txt\n  tags: urgent, bank fees , other thing\n";
    let prose = "Dear Alice Smith, please pay $98.70 to DE89 3704 0044 0532 0130 00 by 22nd of November \
        2026. See https://x.com/a/b?c=d#e, or (www.y.org), commit 9f2c1ab, \u{201c}the old garden\u{201d} \
        and `rm -rf tmp`. Call +49 170 1234567. The Bank of England's #general has user_7.";
    let cases: &[(&str, &[&str])] = &[
        (
            yaml,
            &[
                "26",
                "emma.johnson@bluesparrowtech.com",
                "quarterly plan",
                "bob.baker@x.com",
                "david lee",
                "15 May 2024",
                "1200.5",
                "reports/q3 final.txt",
                "reports",
                "urgent",
                "bank fees",
                "other thing",
            ],
        ),
        (
            prose,
            &[
                "alice smith",
                "Alice",
                "98.7",
                "DE89370400440532013000",
                "2026-11-22",
                "https://x.com/a/b?c=d#e",
                "http://x.com/a/b",
                "x.com",
                "https://www.y.org/",
                "9f2c1ab",
                "the old garden",
                "rm -rf tmp",
                "+49 (170) 123-4567",
                "bank of england",
                "#general",
                "general",
                "user_7",
            ],
        ),
        (
            "name,mail,iban\nbo li,bo@x.com,GB82WEST12345698765432\n",
            &["bo li", "GB82 WEST 1234 5698 7654 32"],
        ),
        ("| who | where |\n| jane doe | main street 5 |", &["jane doe", "main street 5"]),
        ("who\twhere\njane doe\tmain street 5", &["jane doe", "main street 5"]),
        ("main\nfeature work\n", &["main", "feature work"]),
        (
            "{'name': 'jo roe', 'iban': 'US133000000121212121212'}",
            &["jo roe", "us133000000121212121212"],
        ),
        ("name;iban\nMallory;GB33 BUKB 2020 1555 5555 55", &["Mallory", "GB33BUKB20201555555555"]),
        ("Hello, iban=GB33 BUKB 2020 1555 5555 55;thanks", &["GB33BUKB20201555555555"]),
        ("To IBAN:GB33 BUKB 2020 1555 5555 55, please", &["GB33BUKB20201555555555"]),
        ("to Corp,GB33 BUKB 2020 1555 5555 55,5.00 by May", &["GB33BUKB20201555555555"]),
        (
            "1. first thing\n2) second thing\n* third thing",
            &["first thing", "second thing", "third thing"],
        ),
        (
            "card 4111-1111-1111-1111, or 4242 4242 4242 4242.",
            &["4111111111111111", "4242424242424242"],
        ),
        (r#"{"a":["bo li",{"b":98.70}],"c":"see jo@x.com"}"#, &["bo li", "98.70", "jo@x.com"]),
        ("main", &["main"]),
    ];
    for (text, values) in cases {
        let run = Run::default().untrusted(text);
        for value in *values {
            assert_eq!(run.text(value), Level::Untrusted, "{value} in {text}");
        }
        let run = Run::default().trusted(text);
        for value in *values {
            assert_eq!(run.text(value), Level::Trusted, "{value} in {text}");
        }
    }
    // The names of fields are not values.
    assert_eq!(Run::default().trusted(r#"{"secretname":1}"#).text("secretname"), Level::Nowhere);
    // The parts of an amount or an account are not other amounts.
    for space in [' ', '\u{a0}', '\u{202f}'] {
        let text = format!(
            "Pay 1{space}200 to DE89{space}3704{space}0044{space}0532{space}0130{space}00."
        );
        let after_colon = text.replace("DE89", "IBAN:DE89");
        assert_eq!(
            Run::default().instruction(&after_colon).text("DE89370400440532013000"),
            Run::default().instruction(&text).text("DE89370400440532013000"),
            "{after_colon}"
        );
        for other in ["1", "200", "3704", "0532", "00"] {
            assert_eq!(
                Run::default().instruction(&text).text(other),
                Level::Nowhere,
                "{text} {other}"
            );
        }
    }
    for other in ["1", "200.5", "200.50"] {
        let run = Run::default().instruction("Pay 1,200.50 to Bob").untrusted("due: 1,200.50");
        assert_eq!(run.text(other), Level::Nowhere, "{other}");
    }
}

#[test]
fn a_value_that_ends_with_punctuation_is_known_with_it() {
    let stated = |text| Run::default().instruction(text);
    let trusted = |text| Run::default().trusted(text);
    for (run, value, level) in [
        (stated("Ask \"Who has the keys?\""), "Who has the keys?", Level::Instruction),
        (stated("Ask \"Who has the keys?\""), " Who has the keys? ", Level::Instruction),
        (stated("Ask \"Who has the keys?\""), "Who has the keys", Level::Instruction),
        (stated("Ask \"Who has the keys?\""), "Who has the keys!", Level::Nowhere),
        (stated("Delete \"plan.md\""), "plan.md!", Level::Nowhere),
        (stated("Don't delete plan.md!"), "plan.md!", Level::Nowhere),
        (stated("Delete `old/..`"), "old/..", Level::Nowhere),
        (stated("Delete: a.md, plan.md,"), "plan.md,", Level::Nowhere),
        (trusted(r#"{"name":"Sizes (cm"}"#), "Sizes (cm", Level::Trusted),
        (trusted(r#"{"name":"Yahoo!"}"#), "Yahoo!", Level::Trusted),
        (trusted(r#"{"name":"Yahoo!"}"#), "Yahoo", Level::Trusted),
        (trusted(r#"{"name":"Yahoo!"}"#), "Yahoo!!", Level::Nowhere),
        (trusted("Acme\nYahoo!\n"), "Yahoo!", Level::Trusted),
        (trusted("Yahoo!"), "Yahoo!", Level::Trusted),
        (trusted(r#"["Yahoo"]"#), "Yahoo!", Level::Nowhere),
        (trusted(r#"["Yahoo!"]"#).untrusted("Yahoo!"), "Yahoo!", Level::Trusted),
        // First seen in the prose of a stranger.
        (
            Run::default().untrusted("Pay Yahoo! now").trusted(r#"["Yahoo!"]"#),
            "Yahoo!",
            Level::Untrusted,
        ),
        (
            Run::default().untrusted("Pay Yahoo! now").instruction("Pay \"Yahoo!\""),
            "Yahoo!",
            Level::Instruction,
        ),
    ] {
        assert_eq!(run.text(value), level, "{value}");
    }
}

#[test]
fn a_component_with_gaps_keeps_its_case() {
    let stated = |text| Run::default().instruction(text);
    let trusted = |text| Run::default().trusted(text);
    for (run, path, level) in [
        (stated("Delete a.txt in \"My Documents\""), "My Documents/a.txt", Level::Instruction),
        (stated("Delete a.txt in My Documents"), "My Documents/a.txt", Level::Instruction),
        (stated("Delete a.txt in the old Plans folder"), "old Plans/a.txt", Level::Instruction),
        (stated("Delete a.txt in Anna's notes"), "/Anna/a.txt", Level::Instruction),
        (stated("Delete a.txt in \"My Documents\""), "my documents/a.txt", Level::Instruction),
        (stated("Delete a.txt in \"My Documents\""), "MY Documents/a.txt", Level::Nowhere),
        (stated("Delete a.txt in my documents"), "My Documents/a.txt", Level::Nowhere),
        (trusted(r#"["Project Plans","a.txt"]"#), "Project Plans/a.txt", Level::Trusted),
        (trusted("- Project Plans\n- a.txt"), "Project Plans/a.txt", Level::Trusted),
        (trusted(r#"["project plans","a.txt"]"#), "Project Plans/a.txt", Level::Nowhere),
        (
            Run::default().untrusted("See Project Plans").trusted(r#"["Project Plans","a.txt"]"#),
            "Project Plans/a.txt",
            Level::Untrusted,
        ),
    ] {
        assert_eq!(run.text(path), level, "{path}");
    }
}

#[test]
fn the_repository_of_a_reference_is_a_value() {
    for text in ["Fixed by acme/shop#12.", "See (acme/shop!12)", "Like acme/shop@9f2c1ab, but"] {
        assert_eq!(Run::default().trusted(text).text("acme/shop"), Level::Trusted, "{text}");
        assert_eq!(
            Run::default().instruction(text).text("acme/shop"),
            Level::Instruction,
            "{text}"
        );
        let both = Run::default().untrusted(text).trusted(r#"["acme/shop"]"#);
        assert_eq!(both.text("acme/shop"), Level::Untrusted, "{text}");
    }
    for text in ["acme/shop@v4", "acme/shop#top", "/acme/shop#12"] {
        assert_eq!(Run::default().trusted(text).text("acme/shop"), Level::Nowhere, "{text}");
    }
}
