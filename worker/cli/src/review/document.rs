//! A review as a JSON document: printed for a person to edit, then read again and applied.
//!
//! For each tool, the verdict and the registration are applied. The other members are only for
//! reading and are ignored. An unknown member is refused, because a misspelt member would silently
//! change nothing.

use std::fs;

use gateward_core::policy::bundle::Risk;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::definition::{Change, difference};
use super::registration::{self, Registration};
use crate::failure::Failure;

/// Tools in one document: about 60 MB with the largest definitions of 128 KiB each. The other tools
/// wait for the next document.
pub const DOCUMENT_TOOLS_MAX: usize = 200;

/// Twice the largest size of [`DOCUMENT_TOOLS_MAX`] tools, because an editor may format the
/// document differently.
const DOCUMENT_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Lines of a difference. The document also has both definitions completely.
const DIFFERENCE_LINES_MAX: usize = 400;

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    pub server: String,
    pub tools: Vec<Reviewed>,
}

/// A tool in a review.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reviewed {
    pub tool: String,
    pub verdict: Verdict,
    pub mutates: bool,
    pub egress: bool,
    pub risk: Risk,
    pub definition_sha256: Option<String>,
    pub revision: u64,
    #[serde(default, rename = "change")]
    _change: Ignored,
    #[serde(default, rename = "signs_of_egress")]
    _signs_of_egress: Ignored,
    #[serde(default, rename = "roles")]
    _roles: Ignored,
    #[serde(default, rename = "difference")]
    _difference: Ignored,
    #[serde(default, rename = "definition")]
    _definition: Ignored,
    #[serde(default, rename = "approved_definition")]
    _approved_definition: Ignored,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Approve,
    Skip,
}

/// A member that is only for people to read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl Reviewed {
    pub fn registration(&self) -> Registration {
        Registration { mutates: self.mutates, egress: self.egress, risk: self.risk }
    }
}

/// The document of these tools, as text. Every verdict is `skip`, so that nothing is approved
/// unread.
pub fn write(server: &str, tools: &[Value]) -> Result<String, Failure> {
    let tools: Result<Vec<_>, _> = tools.iter().map(reviewed).collect();
    Ok(format!("{:#}", json!({"server": server, "tools": tools?})))
}

fn reviewed(tool: &Value) -> Result<Value, Failure> {
    let Registration { mutates, egress, risk } = Registration::proposed(tool)?;
    let change = Change::of(tool);
    let difference = match change {
        Change::Changed => difference(tool),
        _ => String::new(),
    };
    let mut lines: Vec<&str> = difference.lines().take(DIFFERENCE_LINES_MAX + 1).collect();
    if lines.len() > DIFFERENCE_LINES_MAX {
        lines.truncate(DIFFERENCE_LINES_MAX);
        lines.push("… (cut)");
    }
    let of = |name: &str| tool.get(name).cloned().unwrap_or_default();
    Ok(json!({
        "tool": of("tool"),
        "verdict": Verdict::Skip,
        "mutates": mutates,
        "egress": egress,
        "risk": risk,
        "definition_sha256": of("definition_sha256"),
        "revision": of("revision"),
        "change": change.as_str(),
        "signs_of_egress": registration::signs(tool),
        "roles": registration::roles(tool),
        "difference": lines,
        "definition": of("definition"),
        "approved_definition": of("approved_definition"),
    }))
}

/// Reads a document from a file.
pub fn read(file: &str) -> Result<Document, String> {
    let length = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if length > DOCUMENT_BYTES_MAX {
        return Err(format!("the file has more than {DOCUMENT_BYTES_MAX} bytes"));
    }
    let text = fs::read(file).map_err(|error| error.to_string())?;
    parse(&text)
}

fn parse(text: &[u8]) -> Result<Document, String> {
    let document: Document =
        serde_json::from_slice(text).map_err(|error| format!("not a review: {error}"))?;
    let mut names: Vec<&str> = document.tools.iter().map(|tool| tool.tool.as_str()).collect();
    names.sort_unstable();
    if let Some([twice, _]) = names.array_windows().find(|[one, other]| one == other) {
        return Err(format!("not a review: it has the tool `{twice}` twice"));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::escaped;

    fn tool(approved: Value, description: &str) -> Value {
        json!({
            "server": "s", "tool": "fetch", "status": "pending", "mutates": true, "egress": false,
            "risk": "medium", "revision": 7, "definition_sha256": "aa",
            "definition": {"description": description, "inputSchema": {"properties": {"url": {}}}},
            "approved_definition": approved,
        })
    }

    #[test]
    fn a_document_comes_back_as_it_was_written_and_approves_nothing() {
        let text = write("s", &[tool(json!({"description": "Before."}), "After.")]).unwrap();
        let shown: Value = serde_json::from_str(&text).unwrap();
        let shown = &shown["tools"][0];
        assert_eq!((&shown["change"], &shown["egress"]), (&json!("changed"), &json!(true)));
        assert_eq!(shown["signs_of_egress"], json!(["argument `url`"]));
        let difference = shown["difference"].to_string();
        assert!(difference.contains(r#"-  \"description\": \"Before.\""#), "{difference}");
        let Document { server, tools } = parse(text.as_bytes()).unwrap();
        assert_eq!(server, "s");
        let [fetch] = &tools[..] else { panic!("{tools:?}") };
        let expected = Registration { mutates: true, egress: true, risk: Risk::Medium };
        assert_eq!((fetch.verdict, fetch.registration()), (Verdict::Skip, expected));
        assert_eq!((fetch.definition_sha256.as_deref(), fetch.revision), (Some("aa"), 7));
    }

    /// Attack: a description that commands the terminal on which the document is read, or hides text.
    #[test]
    fn a_document_shows_no_hostile_character_and_loses_none() {
        let hostile = "a\u{1b}[2J\rb\u{202e}c\u{200b}d\u{e0041}e\u{9b}f\u{7f}g\u{2028}ü";
        let text = escaped(&write("s", &[tool(Value::Null, hostile)]).unwrap());
        let plain = |c: char| c == '\n' || c == 'ü' || (' '..='~').contains(&c);
        assert!(text.chars().all(plain), "{text:?}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["tools"][0]["definition"]["description"], hostile);
    }

    #[test]
    fn a_long_difference_is_cut() {
        let many = |offset: u32| json!((0..2_000).map(|n| n * 2 + offset).collect::<Vec<_>>());
        let mut tool = tool(json!({"n": many(0)}), "");
        tool["definition"] = json!({"n": many(1)});
        let value: Value = serde_json::from_str(&write("s", &[tool]).unwrap()).unwrap();
        let difference = value["tools"][0]["difference"].as_array().unwrap();
        assert_eq!(difference.len(), DIFFERENCE_LINES_MAX + 1);
        assert_eq!(difference.last().unwrap(), "… (cut)");
    }

    #[test]
    fn what_is_no_review_is_refused() {
        let good = json!({"tool": "t", "verdict": "approve", "mutates": false, "egress": false,
            "risk": "low", "definition_sha256": null, "revision": 1});
        let document = |tools: Value| json!({"server": "s", "tools": tools}).to_string();
        let with = |name: &str, value: Value| {
            let mut tool = good.clone();
            tool[name] = value;
            document(json!([tool]))
        };
        assert!(parse(document(json!([good])).as_bytes()).is_ok());
        for (what, text) in [
            ("no JSON", "{".to_owned()),
            ("no server", r#"{"tools":[]}"#.to_owned()),
            ("misspelt member", with("egres", json!(true))),
            ("unknown verdict", with("verdict", json!("yes"))),
            ("unknown risk", with("risk", json!("none"))),
            ("flag that is no Boolean", with("mutates", json!(0))),
            ("tool that is there twice", document(json!([good, good]))),
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{what}");
        }
    }
}
