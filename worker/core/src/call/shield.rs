//! Step 4: searches the texts in a call's arguments for phrases that are typical of attacks.
//!
//! A finding is a fact for policies (`context.shield`), never a decision by itself: honest tickets often
//! describe attacks. The list of phrases is short, and case is ignored.

use serde::{Deserialize, Serialize};

use crate::json::Json;

/// The names that were found, sorted and without duplicates, and the sum of their weights up to 100.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    pub names: Vec<String>,
    pub score: u8,
}

/// The name of a finding, its weight, and the phrase in lower case.
const SIGNS: &[(&str, u8, &str)] = &[
    ("prompt_injection", 60, "ignore previous instructions"),
    ("prompt_injection", 60, "ignore all previous"),
    ("prompt_injection", 60, "disregard the above"),
    ("prompt_injection", 60, "you are now in developer mode"),
    ("private_key", 80, "-----begin private key-----"),
    ("private_key", 80, "-----begin rsa private key-----"),
    ("private_key", 80, "-----begin openssh private key-----"),
    ("path_traversal", 40, "../../"),
    ("path_traversal", 40, "/etc/passwd"),
    ("metadata_address", 70, "169.254.169.254"),
    ("sql_injection", 50, "union select"),
    ("sql_injection", 50, "'; drop table"),
    ("script_injection", 40, "<script"),
];

/// The highest score.
const MAX_SCORE: u8 = 100;

/// Scans every string in `arguments`, including keys.
#[must_use]
pub fn scan(arguments: &Json) -> Findings {
    let mut findings = Findings::default();
    scan_value(arguments, &mut findings);
    findings.names.sort_unstable();
    findings
}

fn scan_value(value: &Json, findings: &mut Findings) {
    match value {
        Json::String(text) => scan_text(text, findings),
        Json::Array(items) => items.iter().for_each(|item| scan_value(item, findings)),
        Json::Object(fields) => {
            for (key, value) in fields {
                scan_text(key, findings);
                scan_value(value, findings);
            }
        }
        Json::Null | Json::Bool(_) | Json::Integer(_) | Json::Number(_) | Json::Verbatim(_) => {}
    }
}

fn scan_text(text: &str, findings: &mut Findings) {
    let shortest = SIGNS.iter().map(|(_, _, sign)| sign.len()).min().unwrap_or(0);
    if text.len() < shortest {
        return;
    }
    let lower = text.to_ascii_lowercase();
    for (name, weight, sign) in SIGNS {
        if !findings.names.iter().any(|found| found == name) && lower.contains(sign) {
            findings.names.push((*name).to_owned());
            findings.score = findings.score.saturating_add(*weight).min(MAX_SCORE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn finds_phrases_at_any_depth_and_names_each_finding_once() {
        let cases: [(&str, &[&str], u8); 4] = [
            (r#"{"title":"Fix the build"}"#, &[], 0),
            (
                r#"{"a":[{"b":"please IGNORE previous\u0020instructions"}]}"#,
                &["prompt_injection"],
                60,
            ),
            (r#"["<script>","<SCRIPT>"]"#, &["script_injection"], 40),
            (
                r#"["-----BEGIN PRIVATE KEY-----","x' UNION SELECT 1"]"#,
                &["private_key", "sql_injection"],
                100,
            ),
        ];
        for (text, names, score) in cases {
            let findings = scan(&parse(text.as_bytes()).unwrap());
            assert_eq!(
                (findings.names, findings.score),
                (names.iter().map(|n| (*n).to_owned()).collect(), score)
            );
        }
    }
}
