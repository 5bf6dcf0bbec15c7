//! Shows records as tables: a list with one row for each record, or one record with one row for
//! each field.

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

/// A field of a kind of record, with its name in the API.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    pub name: &'static str,
    /// JSON pointers to its value; the first one that exists counts. If empty, the member with the
    /// field's name.
    pointers: &'static [&'static str],
    /// The text for null.
    null: &'static str,
    /// If values are objects, only these members are shown.
    members: &'static [&'static str],
    /// Whether the object that the value is in has a field for each of its members, and is not shown itself.
    part: bool,
    /// Whether an object has a row for each of its members when one record is shown.
    nested: bool,
    /// Whether lists have a column for it.
    pub listed: bool,
}

impl Field {
    /// A field that is shown in lists and for one record.
    pub const fn column(name: &'static str) -> Self {
        Self {
            name,
            pointers: &[],
            null: "",
            members: &[],
            part: false,
            nested: false,
            listed: true,
        }
    }

    /// A field that is shown only for one record.
    pub const fn detail(name: &'static str) -> Self {
        Self {
            name,
            pointers: &[],
            null: "",
            members: &[],
            part: false,
            nested: false,
            listed: false,
        }
    }

    /// With these JSON pointers.
    pub const fn at(self, pointers: &'static [&'static str]) -> Self {
        Self { pointers, ..self }
    }

    /// With these JSON pointers to members of an object, each of which has a field.
    pub const fn part(self, pointers: &'static [&'static str]) -> Self {
        Self { pointers, part: true, ..self }
    }

    /// Whether the field shows a member of the record, or a part of it.
    fn shows(&self, member: &str) -> bool {
        let is_inside = |pointer: &&str| pointer.split('/').nth(1) == Some(member);
        self.name == member || (self.part && self.pointers.iter().any(is_inside))
    }

    fn value<'a>(&self, record: &'a Value) -> Option<&'a Value> {
        match self.pointers {
            [] => record.get(self.name),
            pointers => pointers.iter().find_map(|pointer| record.pointer(pointer)),
        }
    }

    /// With this text for null.
    pub const fn null(self, null: &'static str) -> Self {
        Self { null, ..self }
    }

    /// With these members of its objects.
    pub const fn members(self, members: &'static [&'static str]) -> Self {
        Self { members, ..self }
    }

    /// With a row for each member of its object, and of objects inside it.
    pub const fn nested(self) -> Self {
        Self { nested: true, ..self }
    }
}

/// A field that this program does not know.
const UNKNOWN: Field = Field::detail("");

/// The text for null in a list that restricts: no restriction. The empty list means the opposite
/// and is shown as `none`. The two must never look alike.
pub const ANY: &str = "any";
const NONE: &str = "none";

/// Rows of records. Only a header if there are none.
pub fn list(fields: &[Field], records: &[Value]) -> String {
    let columns = || fields.iter().filter(|field| field.listed);
    let mut table = empty();
    table.set_header(columns().map(|field| field.name));
    for record in records {
        table.add_row(columns().map(|field| cell(field, field.value(record))));
    }
    without_margin(&table)
}

/// One record: its known fields in order, then the other fields of the API's answer.
pub fn record(fields: &[Field], record: &Value) -> String {
    let mut table = empty();
    for field in fields {
        if let Some(value) = field.value(record) {
            add_rows(&mut table, field.name, field, value);
        }
    }
    for (name, value) in record.as_object().into_iter().flatten() {
        if !fields.iter().any(|field| field.shows(name)) {
            table.add_row([printable(name), cell(&UNKNOWN, Some(value))]);
        }
    }
    without_margin(&table)
}

/// `taint.call.tool` is the member `tool` of the member `call` of `taint`.
fn add_rows(table: &mut Table, name: &str, field: &Field, value: &Value) {
    match value {
        Value::Object(members) if field.nested => {
            for (member, value) in members {
                add_rows(table, &format!("{name}.{}", printable(member)), field, value);
            }
        }
        value => {
            table.add_row([name.to_owned(), cell(field, Some(value))]);
        }
    }
}

/// One record as one line, its fields separated by two spaces.
pub fn line(fields: &[Field], record: &Value) -> String {
    let cells = fields.iter().filter(|field| field.listed);
    let cells: Vec<_> = cells.map(|field| cell(field, field.value(record))).collect();
    cells.join("  ")
}

/// Texts of several lines next to each other, each under its title.
pub fn beside(columns: &[(String, String)]) -> String {
    let mut table = empty();
    table.set_header(columns.iter().map(|(title, _)| title));
    table.add_row(columns.iter().map(|(_, text)| text));
    without_margin(&table)
}

/// One line for each name with its text.
pub fn pairs(rows: &[(String, String)]) -> String {
    let mut table = empty();
    for (name, text) in rows {
        table.add_row([name, text]);
    }
    without_margin(&table)
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

fn cell(field: &Field, value: Option<&Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::Null) => field.null.to_owned(),
        Some(Value::String(text)) => printable(text),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        Some(Value::Array(items)) if items.is_empty() => NONE.to_owned(),
        Some(Value::Array(items)) => {
            let field = Field { null: "", ..*field };
            let items: Vec<_> = items.iter().map(|item| cell(&field, Some(item))).collect();
            items.join(", ")
        }
        Some(Value::Object(object)) if !field.members.is_empty() => {
            let members = field.members.iter().map(|name| cell(&UNKNOWN, object.get(*name)));
            members.collect::<Vec<_>>().join(": ")
        }
        Some(value) => {
            let mut value = value.clone();
            value.sort_all_objects();
            printable(&value.to_string())
        }
    }
}

/// At most this many characters of a text. If it was longer, that is shown.
pub fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + "… (cut)",
        None => text.to_owned(),
    }
}

/// Text in which control characters, and characters that reorder or hide text, are escaped. Some
/// text comes from strangers (a user's name, a call's arguments). It must neither control the
/// terminal nor look like something else.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_deceptive(character) {
            safe.extend(character.escape_default());
        } else {
            safe.push(character);
        }
    }
    safe
}

/// The same for JSON text, with the escapes of JSON. In it, such characters occur only in strings, so its meaning stays
/// the same. Text that is already [`printable`] does not change.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\n' && (character.is_control() || is_deceptive(character)) {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(character);
        }
    }
    safe
}

/// Direction marks and overrides (Unicode's Bidi_Control), invisible characters
/// (Default_Ignorable_Code_Point), and line separators that are not control characters.
const fn is_deceptive(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
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
        let value = json!({"detail": {"c": 2, "b": [1]}, "frozen": true, "agent": "a", "zone": 3});
        let expected = "\
agent   a
frozen  yes
detail  {\"b\":[1],\"c\":2}
zone    3";
        assert_eq!(record(FIELDS, &value), expected);
    }

    #[test]
    fn members_of_a_nested_object_have_rows_of_their_own() {
        const NESTED: &[Field] = &[Field::detail("taint").null("none").nested()];
        let value = json!({"taint": {"call": {"tool": "get"}, "servers": ["web", "mail"]}});
        let expected = "\
taint.call.tool  get
taint.servers    web, mail";
        assert_eq!(record(NESTED, &value), expected);
        assert_eq!(record(NESTED, &json!({"taint": null})), "taint  none");
    }

    #[test]
    fn text_from_strangers_does_not_command_the_terminal() {
        let value = json!({"agent": "a\u{1b}[2J\u{7}\nb\u{9b}", "allowed_tools": []});
        assert_eq!(line(FIELDS, &value), "a\\u{1b}[2J\\u{7}\\nb\\u{9b}  none  ");
    }

    #[test]
    fn text_from_strangers_does_not_look_like_other_text() {
        for (text, expected) in [
            ("ma\u{202e}niam", "ma\\u{202e}niam"),
            ("ma\u{200b}in\u{2066}", "ma\\u{200b}in\\u{2066}"),
            ("a\u{2028}b\u{e0041}", "a\\u{2028}b\\u{e0041}"),
            ("Grüße 漢字 🚀", "Grüße 漢字 🚀"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

    /// Attack: the arguments of a call command the terminal in which `--json` shows it, or look like others.
    #[test]
    fn json_has_such_text_as_escapes_and_stays_the_same_value() {
        let hostile = "a\u{9b}2J\u{7f}b\u{202e}c\u{e0041}d\u{1b}e\nGrüße 🚀";
        let value = json!({"resource": hostile, hostile: [hostile]});
        for text in [value.to_string(), format!("{value:#}")] {
            let shown = escaped(&text);
            assert!(!shown.contains(|c: char| c != '\n' && c.is_control() || is_deceptive(c)));
            assert!(shown.contains("a\\u009b2J\\u007fb\\u202ec\\udb40\\udc41d\\u001be\\nGrüße 🚀"));
            assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
            assert_eq!(escaped(&shown), shown);
        }
    }

    #[test]
    fn a_column_shows_the_first_of_its_places_that_is_there() {
        const STEPS: &[Field] = &[Field::column("step").at(&["/body/decision", "/body/change"])];
        for (body, expected) in [
            (json!({"decision": "allow"}), "allow"),
            (json!({"change": "agent_restored"}), "agent_restored"),
            (json!({"decision": "deny", "change": "x"}), "deny"),
            (json!({}), ""),
        ] {
            assert_eq!(line(STEPS, &json!({ "body": body })), expected);
        }
    }

    #[test]
    fn of_objects_in_lists_the_members_are_shown_that_matter() {
        const GROUPS: &[Field] = &[Field::column("groups").members(&["group", "quorum"])];
        let value = json!({"groups": [{"quorum": 2, "group": "a"}, {"group": "b", "quorum": 1}]});
        assert_eq!(line(GROUPS, &value), "a: 2, b: 1");
        assert_eq!(line(GROUPS, &json!({"groups": []})), "none");
    }
}
