//! What the shield costs: on ordinary arguments, on texts that are expensive to read, and compared with the regular
//! expressions of a usual sidecar on the same bytes.

use std::hint::black_box;

use gateward_core::json::{self, Json};
use gateward_core::provenance::ValueKey;
use gateward_core::shield::Shield;

use crate::decide::TENANT;
use crate::operation::{GATEWARD, Operation};

const KEY: ValueKey = ValueKey::new([7; 16]);

pub fn operations() -> Vec<Operation> {
    let mut all = vec![
        inspected("shield_get_benign", false, || {
            r#"{"owner":"acme","repo":"web","issue":42,"fields":"title,state"}"#.to_owned()
        }),
        inspected("shield_attack_found", true, || {
            r#"{"id":"1' UNION SELECT password FROM users--","note":"see \u0026lt;b\u0026gt;"}"#
                .to_owned()
        }),
    ];
    for (name, finds, text) in WORST_CASES {
        all.push(inspected(name, finds, move || text(65_536)));
    }
    for (name, bytes) in [
        ("shield_tools_call_220b", 220),
        ("shield_tools_call_2kb", 2_048),
        ("shield_tools_call_8kb", 8_192),
        ("shield_tools_call_64kb", 65_536),
    ] {
        all.push(inspected(name, false, move || ordinary(bytes)));
        #[cfg(not(target_arch = "wasm32"))]
        all.push(regex::searched(name, move || ordinary(bytes)));
    }
    all
}

fn inspected(name: &'static str, finds: bool, text: impl Fn() -> String + 'static) -> Operation {
    Operation::new(name, GATEWARD, move || {
        let (shield, value) = (Shield::new(gateward_policies::bundle().shield), parsed(&text()));
        let inspect =
            move || shield.inspect(TENANT, &KEY, ("", black_box(&value), &Json::Null), None);
        assert_eq!(!inspect().list.is_empty(), finds, "{name}: {:?}", inspect());
        inspect
    })
}

pub fn parsed(text: &str) -> Json {
    json::parse(text.as_bytes()).unwrap()
}

/// Arguments of this many bytes, as an agent sends them: a title, a text of lines with code and names, and labels.
pub fn ordinary(bytes: usize) -> String {
    let line = "The build of the web client fails since Tuesday: `cargo test -p web` stops in src/client.rs, line \
                42, with an error that O'Brien saw too (see https://ci.example/runs/8812?job=3). ";
    let frame = r#"{"title":"Build fails","body":"","labels":["bug","ci"],"assignees":["dana"],"priority":2}"#;
    let body: String = line.chars().cycle().take(bytes.saturating_sub(frame.len())).collect();
    frame.replace("\"body\":\"\"", &format!("\"body\":\"{body}\""))
}

/// A text of so many bytes.
type Text = fn(usize) -> String;

/// Texts that are expensive to read, each the dearest of its kind that we know, and whether something is found in it. The
/// first one is the dearest of all. `shield_worst_case`, an example of the core, searches for such texts.
const WORST_CASES: [(&str, bool, Text); 8] = [
    // JSON in JSON, with letters of two scripts: each layer is read as it is, and its letters are folded.
    ("shield_worst_case_64kb", false, |bytes| {
        let inner = Json::String("كلinstruções  @faites abstraction".repeat(8));
        let inner = Json::String(Json::Array(vec![inner]).canonical());
        short_texts(&Json::Array(vec![inner]).canonical(), bytes)
    }),
    // Escapes and commands, each in a text of its own.
    ("shield_worst_case_escapes_64kb", true, |bytes| short_texts("%41;id", bytes)),
    // Links, as an agent sends them.
    ("shield_worst_case_links_64kb", false, |bytes| {
        let link = "https://shop.example/search?q=red%20shoes&size=42&sort=price%2Basc&page=17";
        short_texts(link, bytes)
    }),
    // Entities of entities.
    ("shield_worst_case_entities_64kb", false, |bytes| short_texts("&amp;lt;", bytes)),
    // JSON with an escape in it.
    ("shield_worst_case_json_64kb", false, |bytes| short_texts(r#"["%41"]"#, bytes)),
    // No escape.
    ("shield_worst_case_plain_64kb", false, |bytes| short_texts("\"'`<", bytes)),
    ("shield_worst_case_long_64kb", false, worst_case),
    // Commands could begin at each separator.
    ("shield_worst_case_commands_64kb", false, |bytes| long_text("&&or`", bytes)),
];

/// A long text that is expensive to read: templates.
pub fn worst_case(bytes: usize) -> String {
    long_text("{{a}}", bytes)
}

/// One text. It begins with an escape, so that it is read again in its decoded form.
fn long_text(repeated: &str, bytes: usize) -> String {
    format!("[\"%41 {}\"]", repeated.repeat(bytes / repeated.len()))
}

/// Many short texts. When the budget of work is used up, the shield reads a text on only as far as its own bytes add to the budget.
fn short_texts(text: &str, bytes: usize) -> String {
    let text = Json::String(text.to_owned()).canonical();
    format!("[{}]", vec![text.as_str(); bytes / (text.len() + 1)].join(","))
}

/// Patterns like those of a usual sidecar. Each is tried on each text.
#[cfg(not(target_arch = "wasm32"))]
mod regex {
    use regex_automata::meta::Regex;
    use regex_automata::{Input, MatchKind, PatternSet};

    use super::*;

    const PATTERNS: [&str; 19] = [
        r"(?i)\bunion\s+(all\s+)?select\b",
        r"(?i)'\s*(or|and)\s+'?\d+'?\s*=\s*'?\d+",
        r"(?i);\s*(drop|delete|insert|update|alter)\s+",
        r"(?i)\b(sleep|benchmark|pg_sleep)\s*\(",
        r"(?i)<script[^>]*>",
        r"(?i)\bon(error|load|click|focus|mouseover)\s*=",
        r"(?i)javascript\s*:",
        r"(?i)<(iframe|object|embed|svg)\b",
        r"[;&|`]\s*(cat|ls|id|whoami|wget|curl|nc|bash|sh)\b",
        r"\$\([^)]*\)",
        r"(\.\./|\.\.\\){2,}",
        r"(?i)/etc/(passwd|shadow)",
        r"\{\{.*?\}\}",
        r"(?i)\b(127\.0\.0\.1|localhost|169\.254\.169\.254|10\.\d+\.\d+\.\d+)\b",
        r"(?i)ignore\s+(all\s+)?(previous|prior)\s+instructions",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
        r"\b\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{4}\b",
    ];

    pub fn searched(name: &'static str, text: impl Fn() -> String + 'static) -> Operation {
        Operation::new(name, "regex", move || {
            let config = Regex::config().match_kind(MatchKind::All);
            let patterns = Regex::builder().configure(config).build_many(&PATTERNS).unwrap();
            let value = parsed(&text());
            move || count(&patterns, black_box(&value))
        })
    }

    /// How many pairs of a pattern and a text match. `RegexSet` of the crate regex does the same.
    fn count(patterns: &Regex, value: &Json) -> usize {
        match value {
            Json::String(text) => count_in(patterns, text),
            Json::Array(items) => items.iter().map(|item| count(patterns, item)).sum(),
            Json::Object(fields) => fields
                .iter()
                .map(|(name, field)| count_in(patterns, name) + count(patterns, field))
                .sum(),
            _ => 0,
        }
    }

    fn count_in(patterns: &Regex, text: &str) -> usize {
        let mut found = PatternSet::new(patterns.pattern_len());
        patterns.which_overlapping_matches(&Input::new(text), &mut found);
        found.len()
    }
}
