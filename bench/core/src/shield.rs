//! What the shield costs: on ordinary arguments, on a long text that is expensive to read, and compared with the
//! regular expressions of a usual sidecar on the same bytes.

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
        inspected("shield_worst_case_64kb", false, || worst_case(65_536)),
        inspected("shield_worst_case_short_64kb", false, || short_texts(65_536)),
    ];
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

/// A long text that is expensive to read: a command could begin at each separator, and a separator can be an entity. It
/// begins with an escape, so that it is read again in its decoded form. `shield_worst_case`, an example of the core,
/// searches for such texts.
pub fn worst_case(bytes: usize) -> String {
    format!("[\"%41 {}\"]", "&&or`".repeat(bytes / 5))
}

/// Many short texts that are expensive to read: each is JSON with an escape in it. After some thousand of them, the shield
/// decodes no more.
fn short_texts(bytes: usize) -> String {
    let text = r#""[\"%41\"]""#;
    format!("[{}]", vec![text; bytes / (text.len() + 1)].join(","))
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
