//! The patterns of schemas, which `worker/regex` matches: beside the crate regex-automata, and within a bound.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests only")]

use gateward_core::json::{self, Json};
use gateward_core::schema::{Schema, patterns};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use regex::Regex;
use regex_automata::meta;
use regex_syntax::hir::{Class, HirKind};

const ATOMS: [&str; 44] = [
    "a",
    "b",
    "c",
    "é",
    "😀",
    "0",
    "_",
    r"\n",
    r"\x{e9}",
    r"\.",
    "ab",
    ".",
    ".",
    "^",
    "$",
    r"\A",
    r"\z",
    r"\b",
    r"\B",
    r"\<",
    r"\>",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    r"\s",
    r"\S",
    r"\pL",
    r"\P{Lu}",
    r"\p{gc=Nd}",
    r"\p{General_Category!=Other}",
    "[a-c]",
    "[^a-c]",
    "[^é-ü]",
    "[😀-🙂b]",
    r"[\p{So}\d]",
    r"[a-c&&[^b]]",
    r"[\w--a0]",
    "[a-e~~[c-g]]",
    "[[:alpha:]_]",
    "[[:^punct:]]",
    r"[^\x00-\x{10ffff}]",
    r"[^\W\pL]",
    "",
];

const TIMES: [&str; 12] =
    ["*", "+", "?", "{2}", "{0,3}", "{1,}", "*?", "+?", "??", "{0}", "{3,5}?", "{2,}"];

fn pattern() -> impl Strategy<Value = String> {
    select(&ATOMS[..]).prop_map(ToOwned::to_owned).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|parts| parts.concat()),
            vec(inner.clone(), 1..4).prop_map(|parts| format!("({})", parts.join("|"))),
            (inner, select(&TIMES[..])).prop_map(|(part, times)| format!("(?:{part}){times}")),
        ]
    })
}

fn text() -> impl Strategy<Value = String> {
    let char = select(vec![
        'a',
        'a',
        'b',
        'b',
        'c',
        'A',
        '0',
        '_',
        ' ',
        '.',
        '\n',
        'é',
        '😀',
        '²',
        'ǅ',
        '\u{300}',
        '中',
        '\0',
        '\u{378}',
        '\u{10ffff}',
    ]);
    vec(char, 0..12).prop_map(String::from_iter)
}

/// The same pattern for regex-automata, whose classes and boundaries are those of Unicode.
fn reference(pattern: &str) -> String {
    let mut pattern = pattern.to_owned();
    for (ours, theirs) in [
        (r"\d", "[0-9]"),
        (r"\D", "[^0-9]"),
        (r"\w", "[0-9A-Za-z_]"),
        (r"\W", "[^0-9A-Za-z_]"),
        (r"\s", r"[\t-\r ]"),
        (r"\S", r"[^\t-\r ]"),
        (r"\b", r"(?-u:\b)"),
        (r"\B", r"(?-u:\B)"),
        (r"\<", r"(?-u:\<)"),
        (r"\>", r"(?-u:\>)"),
    ] {
        pattern = pattern.replace(ours, theirs);
    }
    pattern
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_pattern_matches_what_regex_automata_matches(pattern in pattern(), texts in vec(text(), 20)) {
        let ours = Regex::new(&pattern).unwrap();
        let theirs = meta::Regex::new(&reference(&pattern)).unwrap();
        for text in &texts {
            // Its `is_match` ends early at an empty match within a character, and so misses others.
            let expected = theirs.find(text).is_some();
            prop_assert_eq!(ours.is_match(text), expected, "{:?} {:?}", pattern, text);
        }
    }

    #[test]
    fn a_pattern_whose_cost_is_accepted_can_be_compiled(
        pattern in r"(([a-c.^$|]|\\d|\\S|\\pL|\[a-j\]|\(a\)|\(\?:b[ac]\)|é)([*+?]|\{[0-9],[1-9][0-9]{0,3}\})?){1,12}",
    ) {
        let compiled = Regex::new(&pattern);
        match patterns::cost(&pattern) {
            Ok(_) => {
                let is_expected = matches!(compiled, Ok(_) | Err(regex::Error::Syntax(_)));
                prop_assert!(is_expected, "{} {:?}", pattern, compiled);
            }
            Err(why) => prop_assert_eq!(why, "whose compiled form is too large"),
        }
    }
}

const CATEGORIES: [&str; 29] = [
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe", "Pi",
    "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Co", "Cn",
];

/// The table of `worker/regex/src/category.rs`, made from that of regex-syntax.
fn table() -> Vec<u8> {
    // Surrogates have no category there.
    let mut categories = vec![29; u32::from(char::MAX) as usize + 1];
    for (category, name) in (0..).zip(CATEGORIES) {
        let found = regex_syntax::parse(&format!(r"[\p{{{name}}}]")).unwrap();
        let ranges: Vec<(char, char)> = match found.kind() {
            HirKind::Class(Class::Unicode(class)) => {
                class.iter().map(|range| (range.start(), range.end())).collect()
            }
            // A category of one character.
            HirKind::Literal(literal) => {
                std::str::from_utf8(&literal.0).unwrap().chars().map(|one| (one, one)).collect()
            }
            other => panic!("{name}: {other:?}"),
        };
        for (first, last) in ranges {
            categories[first as usize..=last as usize].fill(category);
        }
    }
    let mut table = Vec::new();
    for run in categories.chunk_by(|one, other| one == other) {
        let mut rest = run.len() - 1;
        table.push(run[0] << 3 | rest.min(7) as u8);
        if rest >= 7 {
            rest -= 7;
            while rest > 127 {
                table.push(rest as u8 | 128);
                rest >>= 7;
            }
            table.push(rest as u8);
        }
    }
    table
}

#[test]
fn the_general_categories_are_those_of_regex_syntax() {
    let table = table();
    if table != include_bytes!("../../regex/src/category.bin") {
        let written = concat!(env!("CARGO_TARGET_TMPDIR"), "/category.bin");
        std::fs::write(written, &table).unwrap();
        panic!("regex-syntax has another version of Unicode: copy {written} to worker/regex/src");
    }
    let names = "L LC M N P S Z C Any Assigned Letter Cased_Letter Uppercase_Letter Mark Combining_Mark Number \
                 Decimal_Number digit Punctuation punct Symbol Math_Symbol Separator Space_Separator Other Control \
                 cntrl Format private-use unassigned";
    for name in names.split(' ').chain(CATEGORIES) {
        let pattern = format!(r"^\p{{{name}}}$");
        let (ours, theirs) = (Regex::new(&pattern).unwrap(), meta::Regex::new(&pattern).unwrap());
        for char in
            ('\0'..='\u{2fff}').chain('\u{d700}'..='\u{e0ff}').chain('\u{1f600}'..'\u{1f700}')
        {
            let text = char.to_string();
            assert_eq!(ours.is_match(&text), theirs.is_match(&text), "{name} {char:?}");
        }
    }
}

fn check(pattern: &str, texts: &[String]) -> Result<(), String> {
    let schema = json::parse(br#"{"items":{"pattern":""}}"#).unwrap().canonical();
    let pattern = Json::String(pattern.to_owned()).canonical();
    let schema = Schema::compile(&schema.replace("\"\"", &pattern)).unwrap();
    schema.check(&Json::Array(texts.iter().cloned().map(Json::String).collect()))
}

const TOO_LONG: &str =
    "The arguments take too long to match against the patterns of the tool's schema.";

/// Regression: an accepted pattern took up to 31 s to match 256 KB.
#[test]
fn patterns_that_take_too_long_to_match_are_an_error_and_ordinary_ones_are_not() {
    let zx = "zx".repeat(128 * 1_024);
    let letters = "中文é漢".repeat(20_000);
    for (pattern, text) in [
        (r"[^\u0000]{0,4000}!", &zx),
        (r"[\s\S]{9000}!", &zx),
        (r"(?:[\s\S]{0,90}x){45}!", &zx),
        (r"(?:a|b|c|d|e|f|g|.){0,500}!", &zx),
        (r"(?:z?x?){0,1500}!", &zx),
        (r"(?:\b|\B|.){0,900}!", &zx),
        (r"(?:\p{L}[^\p{Nd}][^\p{Zs}]){0,600}!", &letters),
    ] {
        assert_eq!(
            check(pattern, std::slice::from_ref(text)),
            Err(TOO_LONG.to_owned()),
            "{pattern}"
        );
    }
    // Each of many short texts takes long.
    let short = vec!["z".repeat(100); 2_500];
    assert_eq!(check(r"^(?:z?x?){0,1500}y$", &short), Err(TOO_LONG.to_owned()));
    // The error comes even if the schema is satisfied by what does not match.
    let schema = Schema::compile(r#"{"items":{"not":{"pattern":"[\\s\\S]{0,4000}!"}}}"#).unwrap();
    let input = Json::Array(vec![Json::String(zx)]);
    assert_eq!(schema.check(&input), Err(TOO_LONG.to_owned()));
    assert_eq!(schema.check(&json::parse(br#"["a"]"#).unwrap()), Ok(()));

    let prose =
        "The build of the web client fails since Tuesday, see https://ci.example/1 for it.\n";
    let kb_64 = vec![prose.repeat(800)];
    let fields: Vec<String> = (0..1_000).map(|at| format!("acme/web-client-{at}")).collect();
    for (pattern, texts) in [
        (r"^[\s\S]{1,4000}", &kb_64),
        (r"^(?:.{1,200}\n?)+$", &kb_64),
        (r"[^\u0000]{0,200}\n$", &kb_64),
        (r"^[^\x00-\x08\x0b\x0c\x0e-\x1f]*$", &kb_64),
        (r"\bhttps?://[\w.-]+(?:/[\w./-]*)?\s", &kb_64),
        (r"^[\p{L}\p{N}\p{P}\p{S}\s]*$", &kb_64),
        (r"^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[A-Za-z0-9._-]{1,100}$", &fields),
        (r"^(?:acme|example|test)/[\w-]{1,200}$", &fields),
    ] {
        assert_eq!(check(pattern, texts), Ok(()), "{pattern}");
    }
}
