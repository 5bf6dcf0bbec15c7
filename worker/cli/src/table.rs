//! Records as tables for people: one row a record, or one record with a row for each field.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// A field of a kind of record, as the API names it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    pub name: &'static str,
    /// What stands for null.
    null: &'static str,
    /// Whether lists have a column for it.
    pub listed: bool,
}

impl Field {
    /// Shown in lists and alone.
    pub const fn column(name: &'static str) -> Self {
        Self { name, null: "", listed: true }
    }

    /// Shown only where one record is shown.
    pub const fn detail(name: &'static str) -> Self {
        Self { name, null: "", listed: false }
    }

    /// With a word for null.
    pub const fn null(self, null: &'static str) -> Self {
        Self { null, ..self }
    }
}

/// What null is where a list restricts: nothing is restricted. Its opposite, the empty list, is
/// shown as `none`, and the two must never look alike.
pub const ANY: &str = "any";
const NONE: &str = "none";

/// Rows of records; a header alone when there are none.
pub fn list(fields: &[Field], records: &[Value]) -> String {
    let columns = || fields.iter().filter(|field| field.listed);
    let mut table = empty();
    table.set_header(columns().map(|field| field.name));
    for record in records {
        table.add_row(columns().map(|field| cell(field.null, record.get(field.name))));
    }
    without_margin(&table)
}

/// One record: its known fields in order, then what the API has beyond them.
pub fn record(fields: &[Field], record: &Value) -> String {
    let mut table = empty();
    for field in fields {
        if let Some(value) = record.get(field.name) {
            table.add_row([field.name.to_owned(), cell(field.null, Some(value))]);
        }
    }
    for (name, value) in record.as_object().into_iter().flatten() {
        if fields.iter().all(|field| field.name != name) {
            table.add_row([printable(name), cell("", Some(value))]);
        }
    }
    without_margin(&table)
}

/// One record as one line, its fields separated by two spaces.
pub fn line(fields: &[Field], record: &Value) -> String {
    let cells = fields.iter().filter(|field| field.listed);
    let cells: Vec<_> = cells.map(|field| cell(field.null, record.get(field.name))).collect();
    cells.join("  ")
}

fn empty() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    table
}

fn without_margin(table: &Table) -> String {
    let text = table.trim_fmt();
    let lines: Vec<_> = text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    lines.join("\n")
}

fn cell(null: &str, value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Null) => null.to_owned(),
        Some(Value::String(text)) => printable(text),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) if items.is_empty() => NONE.to_owned(),
        Some(Value::Array(items)) => {
            let items: Vec<_> = items.iter().map(|item| cell("", Some(item))).collect();
            items.join(", ")
        }
        Some(value) => printable(&value.to_string()),
    }
}

/// Text without control characters: some of it comes from strangers (a user's name, a reason),
/// and must not command the terminal.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIELDS: &[Field] = &[
        Field::column("agent"),
        Field::column("allowed_tools").null(ANY),
        Field::detail("frozen"),
        Field::column("expires_at").null("never"),
    ];

    #[test]
    fn null_and_empty_lists_never_look_alike() {
        let records = [
            json!({"agent": "a", "allowed_tools": null, "expires_at": null, "frozen": true}),
            json!({"agent": "bcd", "allowed_tools": [], "expires_at": "2026-01-02T03:04:05.000Z"}),
            json!({"agent": "e", "allowed_tools": ["crm/*", "github/get_issue"]}),
        ];
        let expected = "\
agent  allowed_tools            expires_at
a      any                      never
bcd    none                     2026-01-02T03:04:05.000Z
e      crm/*, github/get_issue";
        assert_eq!(list(FIELDS, &records), expected);
    }

    #[test]
    fn an_empty_list_has_its_header() {
        assert_eq!(list(FIELDS, &[]), "agent  allowed_tools  expires_at");
    }

    #[test]
    fn a_record_shows_known_fields_in_order_then_the_rest() {
        let value = json!({"detail": {"b": [1]}, "frozen": true, "agent": "a", "zone": 3});
        let expected = "\
agent   a
frozen  yes
detail  {\"b\":[1]}
zone    3";
        assert_eq!(record(FIELDS, &value), expected);
    }

    #[test]
    fn text_from_strangers_does_not_command_the_terminal() {
        let value = json!({"agent": "a\u{1b}[2J\u{7}\nb\u{9b}", "allowed_tools": []});
        assert_eq!(line(FIELDS, &value), "a\\u{1b}[2J\\u{7}\\nb\\u{9b}  none  ");
    }
}
