//! Random values and texts: what is found in them, and what is never raised.

use gateward_core::json::Json;
use gateward_core::provenance::normal::normal;
use gateward_core::provenance::{Level, extract, link, lookup};
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization as _;

use super::{KEY, Run};

/// A value of a kind that agents pass on.
fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}[.][a-z0-9_]{1,6}@[a-z]{2,8}[.](com|org|co[.]uk)",
        "https?://[a-z]{2,8}[.](com|org|io)(/[a-z0-9_-]{1,6}){0,3}([?]q=[a-z0-9]{1,5})?",
        "[A-Z]{2}[0-9]{2}( [0-9]{4}){3,6}",
        "[A-Z]{2}[0-9]{20}",
        "[a-z]{1,6}[_-][a-z0-9]{1,6}",
        "[0-9a-f]{6}[0-9][a-f]{1,3}",
        "[1-9][0-9]{0,5}([.][0-9]{2})?",
        "[1-9][0-9]{0,2},[0-9]{3}[.][0-9]{2}",
        "[1-2][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|2[0-8])",
    ]
}

/// Texts that look like what results contain.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        values(),
        "[a-zA-Zéа]{1,9}",
        "[ \n\t,.:;'\"`()<>\\[\\]{}|=/@#*-]{1,3}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// The same with letters that have other normal forms (UAX #15): with accents, ligatures, digits in circles, Hangul,
/// katakana of half width, and signs that are equal to letters.
fn written() -> impl Strategy<Value = String> {
    prop_oneof![
        values(),
        "[A-ZÀ-Ý][a-zà-ö]{2,8}( [A-ZÀ-Ý][a-zà-ö]{2,8})?",
        "[a-zà-ö]{1,6}@[a-zà-ö]{2,6}[.]com",
        "[a-zﬁﬀſ①②½\u{212a}\u{212b}]{2,6}",
        "[가-힣ｱ-ﾝ]{2,6}",
    ]
}

/// The text with another character in place of each letter and digit of ASCII.
fn in_letters(text: &str, upper: u32, lower: u32, digit: u32) -> String {
    let from = |first: u32, character: char, of: char| {
        char::from_u32(first + u32::from(character) - u32::from(of)).unwrap()
    };
    let other = |character: char| match character {
        'A'..='Z' => from(upper, character, 'A'),
        'a'..='z' => from(lower, character, 'a'),
        '0'..='9' => from(digit, character, '0'),
        _ => character,
    };
    text.chars().map(other).collect()
}

/// Forms that a reader takes for the text, but that are not the text: of full width, mathematical, and with an invisible
/// character.
fn disguised(text: &str) -> [String; 3] {
    let second = text.chars().next().map_or(0, char::len_utf8);
    let (first, rest) = text.split_at(second);
    [
        in_letters(text, 0xff21, 0xff41, 0xff10),
        in_letters(text, 0x1d400, 0x1d41a, 0x1d7ce),
        format!("{first}\u{200b}{rest}"),
    ]
}

/// The text, its four normal forms, a form with a mark on its first letter, and the disguised ones. A URL whose first letter
/// is changed still has the host for everybody to see, so of a URL there are fewer.
fn forms(text: &str) -> Vec<String> {
    let [wide, mathematical, invisible] = disguised(text);
    let mut forms = vec![text.to_owned(), wide, mathematical];
    if !text.contains("://") {
        let mut letters = text.chars();
        let marked = letters.next().into_iter().chain(['\u{301}']).chain(letters).collect();
        let normal = [text.nfc().collect(), text.nfd().collect()];
        let compatible = [text.nfkc().collect(), text.nfkd().collect()];
        forms.extend([invisible, marked].into_iter().chain(normal).chain(compatible));
    }
    forms
}

fn found_in(text: &str) -> Vec<u64> {
    let mut hashes = Vec::new();
    extract::text(&KEY, text, &mut |hash| hashes.push(hash));
    hashes
}

proptest! {
    #[test]
    fn a_value_in_a_text_is_found_by_the_sink_of_that_value(
        value in values(),
        (before, after) in prop_oneof![
            Just((" ", " ")), Just(("to ", ". ")), Just(("\"", "\"")), Just(("(", ") ")), Just(("k: ", "\n")),
            Just(("- ", ", ")), Just(("<", ">")), Just(("'", "' ")), Just(("\n", "\r\n")),
        ],
    ) {
        let text = format!("some words {before}{value}{after}and more");
        let run = Run::default().add(Level::Trusted, found_in(&text));
        prop_assert_eq!(run.text(&value), Level::Trusted, "{}", text);
    }

    #[test]
    fn any_text_is_read_without_a_panic_and_in_linear_time(text in texts()) {
        // A byte is in one word, one line, and names and quotations of bounded length.
        let found = found_in(&text);
        prop_assert!(found.len() <= 24 * text.len() + 8, "{} in {}", found.len(), text.len());
        let run = Run::default().untrusted(&text).instruction(&text);
        run.links(&text);
        if !text.is_empty() {
            run.text(&text);
        }
    }

    #[test]
    fn lines_after_a_text_take_nothing_from_it(text in texts(), more in texts()) {
        let both = found_in(&format!("{text}\n{more}"));
        for hash in found_in(&text) {
            prop_assert!(both.contains(&hash));
        }
    }

    #[test]
    fn a_certain_host_is_the_host_that_browsers_see(
        host in "[a-zA-Z0-9.@:%\\[\\]_x-]{1,16}",
        rest in "[/?#a-z@\\\\.]{0,6}",
    ) {
        let text = format!("https://{host}{rest}");
        if let Some(link) = link::Link::parse(&text) {
            let url = url::Url::parse(&text);
            prop_assert!(url.is_ok(), "{}", text);
            let url = url.unwrap();
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let expected = format!("{}{port}", url.host_str().unwrap_or_default());
            let same = |a: &str, b: &str| a.eq_ignore_ascii_case(b);
            let v6 = link.host.starts_with('[');
            prop_assert!(v6 || same(link.host, &expected) || link.host.contains(":0"), "{} {}", text, expected);
        }
    }

    /// A value in another form is another value, whatever a decoding shows.
    #[test]
    fn another_unicode_form_is_never_raised_by_the_one_that_is_known(value in written()) {
        let forms = forms(&value);
        for known in &forms {
            let run = Run::default().trusted(known);
            prop_assert_eq!(run.text(known), Level::Trusted, "{:?}", known);
            for form in forms.iter().filter(|form| normal(form) != normal(known)) {
                prop_assert!(run.text(form) <= Level::Untrusted, "{:?} by {:?}", form, known);
                // Nor by a statement, which has the highest level.
                let stated = lookup::hashes(&KEY, &Json::String(known.clone()));
                let run = Run::default().add(Level::Instruction, stated);
                prop_assert!(run.text(form) <= Level::Untrusted, "{:?} by {:?}", form, known);
            }
        }
    }

    /// Which of two forms a trusted result has, and which an untrusted one, does not matter: the untrusted one stays low.
    #[test]
    fn an_untrusted_form_stays_low_beside_a_trusted_one(value in written(), trusted_first: bool) {
        let forms = forms(&value);
        for trusted in &forms {
            for untrusted in forms.iter().filter(|form| normal(form) != normal(trusted)) {
                let run = match trusted_first {
                    true => Run::default().trusted(trusted).untrusted(untrusted),
                    false => Run::default().untrusted(untrusted).trusted(trusted),
                };
                prop_assert!(run.text(untrusted) <= Level::Untrusted, "{:?} {:?}", untrusted, trusted);
            }
        }
    }

    #[test]
    fn a_disguised_form_of_an_untrusted_value_shows_where_it_came_from(value in values()) {
        let run = Run::default().untrusted(&value);
        for form in disguised(&value) {
            prop_assert_eq!(run.text(&form), Level::Untrusted, "{:?}", form);
        }
    }

    /// The case of a value does not count, except in paths.
    #[test]
    fn another_case_of_a_trusted_value_is_the_same_value(value in written()) {
        let cases = [value.to_uppercase(), value.to_lowercase()];
        let plain = "ﬁﬀſ\u{212a}\u{212b}/";
        for case in cases.iter().filter(|_| !value.contains(|letter| plain.contains(letter))) {
            prop_assert_eq!(normal(case), normal(&value));
            prop_assert_eq!(Run::default().trusted(&value).text(case), Level::Trusted, "{}", case);
        }
    }

    #[test]
    fn without_values_every_sink_is_nowhere(text in texts()) {
        let run = Run::default();
        let found = run.sink(&Json::String(text));
        prop_assert!(found.is_none_or(|level| level == Level::Nowhere));
    }
}
