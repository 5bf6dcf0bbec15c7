//! A record in titled sections, for people.

use serde_json::Value;

use crate::table::{pairs, printable};

/// A title, and rows of names and texts below it.
pub fn section(title: &str, rows: &[(String, String)]) -> String {
    text_section(title, &pairs(rows))
}

/// A title, and a text below it.
pub fn text_section(title: &str, text: &str) -> String {
    let mut section = title.to_owned();
    for line in text.lines() {
        section.push('\n');
        section.push_str(format!("  {line}").trim_end());
    }
    section
}

pub fn row(name: impl Into<String>, text: impl Into<String>) -> (String, String) {
    (name.into(), text.into())
}

pub fn field(record: &Value, name: &str) -> (String, String) {
    row(name, one(record, name))
}

/// A member in one line, or a hyphen if it is empty.
pub fn one(record: &Value, name: &str) -> String {
    let text = match record.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => printable(text),
        Some(Value::Array(items)) => {
            let items = items.iter().map(|item| item.as_str().map(printable));
            items.map(Option::unwrap_or_default).collect::<Vec<_>>().join(", ")
        }
        Some(value) => printable(&value.to_string()),
    };
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Text of several lines, each made safe for the terminal.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(printable).collect();
    lines.join("\n")
}
