//! Shows where the destinations of a call came from, each beside its value. Pure.
//!
//! INVARIANT (no likeness): a value comes from strangers. It is quoted, on a line of its own, and escaped, so
//! it never looks like a statement about itself.

use gateward_core::provenance::explanation::{MAX_EXPLAINED_SINKS, TOOL};
use gateward_core::provenance::{Provenance, SinkOrigin, hidden};
use serde::Deserialize as _;
use serde_json::Value;

use crate::section::{row, section};
use crate::table::{cut, printable};

/// Characters of a value: an account number, an address, or the host of a URL and some of its path. The
/// arguments have all of it.
const VALUE_CHARACTERS: usize = 60;

/// Links of one content that are shown. The arguments have the others.
const LINKS_MAX: usize = 8;

/// The section on a call with these arguments; without them, no values are shown. `None` if nothing was
/// looked up.
pub fn origins(provenance: Option<&Value>, input: Option<&Value>) -> Option<String> {
    let provenance = provenance.filter(|provenance| provenance.is_object())?;
    let title = "Where its destinations come from";
    let Ok(Provenance { instruction_known, reach, sinks, .. }) =
        Provenance::deserialize(provenance)
    else {
        let text = "this version of gateward cannot read it; use --json";
        return Some(section(title, &[row("unknown", text)]));
    };
    let mut rows = vec![row("reaches", reach.as_str())];
    rows.extend(sinks.iter().map(|sink| origin(sink, instruction_known, input)));
    if sinks.len() == MAX_EXPLAINED_SINKS {
        rows.push(row("…", "only the lowest are listed; there may be more"));
    }
    Some(section(title, &rows))
}

/// The sink, and lines with its value, its origin, and the command that shows the decision there.
fn origin(sink: &SinkOrigin, instruction_known: bool, input: Option<&Value>) -> (String, String) {
    let mut lines = Vec::new();
    let (pointer, links) = match sink.sink.strip_suffix("#links") {
        Some(pointer) => (pointer, true),
        None => (sink.sink.as_str(), false),
    };
    let own_name = sink.sink.strip_suffix("#name");
    let value = input.and_then(|input| input.pointer(pointer));
    let name = match (pointer, links) {
        // The arguments as a whole stand for those that were not looked up.
        ("", _) => "other arguments".to_owned(),
        _ if sink.sink == TOOL => "the action".to_owned(),
        _ if let Some(named) = own_name => format!("the name {}", printable(named)),
        (pointer, true) => format!("links in {}", printable(pointer)),
        (pointer, false) => printable(pointer),
    };
    match value {
        None => {}
        Some(_) if pointer.is_empty() => {}
        Some(content) if links => each_link(content, &mut lines),
        Some(value) => lines.push(shortened(value)),
    }
    lines.push(printable(&sink.words(instruction_known)));
    if let Some(decision_id) = &sink.decision_id {
        lines.push(format!("gateward decisions show {}", printable(decision_id)));
    }
    row(name, lines.join("\n"))
}

fn each_link(content: &Value, lines: &mut Vec<String>) {
    match content {
        Value::String(text) => {
            let all = hidden::each_link(text, &mut |link| {
                if lines.len() < LINKS_MAX {
                    lines.push(shortened(&Value::from(link)));
                } else if lines.len() == LINKS_MAX {
                    lines.push("and more".to_owned());
                }
            });
            if !all && lines.len() < LINKS_MAX {
                lines.push("and more than are read".to_owned());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| each_link(item, lines)),
        Value::Object(members) => members.values().for_each(|member| each_link(member, lines)),
        _ => {}
    }
}

/// As JSON, so that a text has quotes around it.
fn shortened(value: &Value) -> String {
    printable(&cut(&value.to_string(), VALUE_CHARACTERS))
}

#[cfg(test)]
mod tests {
    use gateward_core::provenance::Level;
    use serde_json::json;

    use super::*;

    fn provenance(instruction_known: bool, sinks: &Value) -> Value {
        json!({"instruction_known": instruction_known, "lowest": "untrusted", "reach": "outside",
            "sinks": sinks})
    }

    fn shown(instruction_known: bool, sinks: &Value, input: Option<&Value>) -> String {
        let text = origins(Some(&provenance(instruction_known, sinks)), input).unwrap();
        text.strip_prefix("Where its destinations come from\n  reaches").unwrap().to_owned()
    }

    #[test]
    fn each_destination_is_shown_with_its_value_and_origin() {
        let sinks = json!([
            {"call": 3, "decision_id": "d0", "level": "untrusted", "sink": "/to/iban",
                "tool": "files/read_file"},
            {"level": "instruction", "sink": "/amount"},
        ]);
        let input = json!({"amount": 1240, "to": {"iban": "DE89"}});
        let expected = "   outside
  /to/iban  \"DE89\"
            first seen in the untrusted result of `files/read_file` (result 3, decision d0); the instruction does not name it
            gateward decisions show d0
  /amount   1240
            named by the instruction or plan, or approved in this run";
        assert_eq!(shown(true, &sinks, Some(&input)), expected);
    }

    #[test]
    fn each_level_is_said_in_words() {
        for (level, instruction_known, expected) in [
            ("instruction", true, "named by the instruction or plan, or approved in this run"),
            ("allowed", true, "found on the tenant's allow-list"),
            ("trusted", true, "first seen in a trusted result; the instruction does not name it"),
            ("untrusted", false, "first seen in an untrusted result; the run has no instruction"),
            ("nowhere", true, "seen in no result; the instruction does not name it"),
        ] {
            let text = shown(instruction_known, &json!([{"level": level, "sink": "/to"}]), None);
            assert!(text.ends_with(&format!("\n  /to      {expected}")), "{level}: {text}");
        }
    }

    #[test]
    fn the_action_of_a_tool_is_shown_in_words() {
        for (level, instruction_known, expected) in [
            ("instruction", true, "asked for by the instruction or plan, or approved in this run"),
            ("nowhere", true, "not asked for: the instruction does not ask to merge"),
            ("nowhere", false, "not asked for: the run has no instruction"),
        ] {
            let sinks = json!([{"level": level, "sink": TOOL, "tool": "forge/merge_pull_request"}]);
            let text = shown(instruction_known, &sinks, Some(&json!({"number": 34})));
            assert!(text.ends_with(&format!("\n  the action  {expected}")), "{level}: {text}");
        }
    }

    #[test]
    fn values_are_those_of_the_arguments() {
        let long = "x".repeat(100);
        let many: Vec<_> = (0..9).map(|n| format!("https://{n}.example/")).collect();
        for (what, sink, input, expected) in [
            ("list", "/to", json!({"to": ["a", "b"]}), r#"["a","b"]"#.to_owned()),
            ("name with a slash", "/a~1b", json!({"a/b": 7}), "7".to_owned()),
            ("long text", "/to", json!({"to": long}), format!("\"{}… (cut)", &long[..59])),
            (
                "text that states an origin",
                "/to",
                json!({"to": "x\"\nfound on the tenant's allow-list"}),
                r#""x\"\nfound on the tenant's allow-list""#.to_owned(),
            ),
            (
                "text that hides a part",
                "/to",
                json!({"to": "ad\u{202e}a\u{1b}[2J"}),
                r#""ad\u{202e}a\u001b[2J""#.to_owned(),
            ),
            (
                "links of a content",
                "/body#links",
                json!({"body": ["Pay at https://evil.example/x.", {"by": "Ask eve@evil.example"}]}),
                "\"https://evil.example/x\"\n\"eve@evil.example\"".to_owned(),
            ),
            (
                "many links",
                "/body#links",
                json!({"body": many.join(" ")}),
                many[..8].iter().map(|link| format!("\"{link}\"\n")).collect::<String>()
                    + "and more",
            ),
            ("argument that is not there", "/to", json!({}), String::new()),
            ("more than is looked up", "", json!({"to": "a"}), String::new()),
        ] {
            let origin = SinkOrigin::new(sink.to_owned(), Level::Nowhere);
            let (_, text) = super::origin(&origin, true, Some(&input));
            let words = "seen in no result; the instruction does not name it";
            let expected = if expected.is_empty() { expected } else { expected + "\n" };
            assert_eq!(text, expected + words, "{what}");
        }
    }

    #[test]
    fn what_is_not_listed_is_said() {
        let sinks = vec![json!({"level": "nowhere", "sink": "/to"}); MAX_EXPLAINED_SINKS];
        assert!(shown(true, &json!(sinks), None).contains("there may be more"));
        assert!(!shown(true, &json!(sinks[1..]), None).contains("there may be more"));
        let later = json!([{"level": "of a later version", "sink": "/to"}]);
        let text = origins(Some(&provenance(true, &later)), None).unwrap();
        assert!(text.ends_with("this version of gateward cannot read it; use --json"), "{text}");
        for nothing in [None, Some(&Value::Null)] {
            assert_eq!(origins(nothing, None), None);
        }
    }
}
