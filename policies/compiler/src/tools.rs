//! Reads tool descriptions, in the form of MCP's `tools/list`, into typed tools.

use std::collections::BTreeSet;

use gateward_core::name::{is_name, is_tool_name};
use gateward_core::policy::bundle::Risk;
use serde_json::{Map, Value};

use crate::bounds::{MAX_FIELD_BYTES, MAX_PROPERTIES, MAX_TOOLS, MAX_TYPE_DEPTH};
use crate::error::PolicyError;
use crate::json_keys::{JsonKeys, escape};
use crate::sources::SourceFile;

/// As [`gateward_core::policy::bundle::ToolRecord`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tool {
    /// `<server>/<tool>`.
    pub id: String,
    pub mutates: bool,
    pub egress: bool,
    pub risk: Risk,
    pub canary: bool,
    pub input: RecordType,
}

/// As [`gateward_core::policy::bundle::ArgumentType`], owned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgumentType {
    Bool,
    Long,
    Decimal,
    String,
    Set(Box<ArgumentType>),
    Record(RecordType),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordType {
    /// Sorted by name.
    pub fields: Vec<Field>,
    pub open: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub name: String,
    pub required: bool,
    pub kind: ArgumentType,
}

/// The prefix of Gateward's own keys in `_meta`, and the known keys.
const META_PREFIX: &str = "gateward/";
const META: [&str; 4] = ["gateward/canary", "gateward/egress", "gateward/mutates", "gateward/risk"];

/// JSON Schema keywords that give a property its type.
const TYPING: [&str; 5] = ["type", "properties", "required", "additionalProperties", "items"];

/// JSON Schema keywords that describe a value, or narrow it within its type. Any other keyword could
/// widen the type or make it a union, and no Cedar type would fit.
const NARROWING: [&str; 32] = [
    "$comment",
    "$id",
    "$schema",
    "const",
    "contains",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "description",
    "enum",
    "example",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "title",
    "uniqueItems",
    "writeOnly",
];

/// Returns the tools of all files, sorted by id, and adds every mistake to `errors`.
pub(crate) fn read(files: &[SourceFile], errors: &mut Vec<PolicyError>) -> Vec<Tool> {
    let mut tools: Vec<Tool> = files.iter().flat_map(|file| read_file(file, errors)).collect();
    if tools.len() > MAX_TOOLS {
        let message = format!("at most {MAX_TOOLS} tools can be described, not");
        errors.push(PolicyError::of_file("tools", message, &tools.len().to_string()));
    }
    tools.sort_by(|a, b| a.id.cmp(&b.id));
    tools
}

fn read_file(file: &SourceFile, errors: &mut Vec<PolicyError>) -> Vec<Tool> {
    let server = file.path.strip_prefix("tools/").and_then(|name| name.strip_suffix(".json"));
    let Some(server) = server.filter(|server| is_name(server)) else {
        let message = "tool descriptions must be at `tools/<server>.json`, not";
        errors.push(PolicyError::of_file(&file.path, message, &file.path));
        return Vec::new();
    };
    let document: Value = match serde_json::from_str(&file.text) {
        Ok(document) => document,
        Err(error) => {
            let before = file.text.lines().take(error.line().saturating_sub(1));
            let start: usize = before.map(|line| line.len() + 1).sum();
            errors.push(PolicyError::at(file, start..file.text.len(), format!("{error}, in")));
            return Vec::new();
        }
    };
    let mut reader =
        Reader { file, keys: JsonKeys::of(&file.text), errors, tool: String::new(), properties: 0 };
    for (pointer, offset) in std::mem::take(&mut reader.keys.repeated) {
        reader.wrong_at(offset, &pointer, "an object has this key twice:");
    }
    let Some(described) = document.get("tools").and_then(Value::as_array) else {
        reader.wrong("", "missing array `tools` in");
        return Vec::new();
    };
    let mut tools = Vec::new();
    let mut ids = BTreeSet::new();
    for (at, tool) in described.iter().enumerate() {
        let pointer = format!("/tools/{at}");
        if let Some(tool) = reader.tool(server, tool, &pointer) {
            if ids.insert(tool.id.clone()) {
                tools.push(tool);
            } else {
                reader.wrong(&format!("{pointer}/name"), "the file describes this tool twice, at");
            }
        }
    }
    tools
}

/// The state of reading, for messages.
struct Reader<'a> {
    file: &'a SourceFile,
    keys: JsonKeys,
    errors: &'a mut Vec<PolicyError>,
    /// The current tool's name. Empty before it is known.
    tool: String,
    /// Properties of the current tool.
    properties: usize,
}

impl Reader<'_> {
    /// Reports a mistake at a JSON pointer.
    fn wrong(&mut self, pointer: &str, message: &str) {
        self.wrong_at(self.keys.offset(pointer), pointer, message);
    }

    fn wrong_at(&mut self, offset: usize, pointer: &str, message: &str) {
        let about = match (self.tool.as_str(), property_path(pointer).as_str()) {
            ("", _) => String::new(),
            (tool, "") => format!("tool `{tool}`: "),
            (tool, path) => format!("tool `{tool}`, property `{path}`: "),
        };
        let message = format!("{about}{message}");
        self.errors.push(PolicyError::at(self.file, offset..self.file.text.len(), message));
    }

    fn tool(&mut self, server: &str, tool: &Value, pointer: &str) -> Option<Tool> {
        self.tool.clear();
        self.properties = 0;
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        if !is_tool_name(name) {
            let message = "a tool's name must be 1 to 128 of `[A-Za-z0-9_./-]`, at";
            self.wrong(&format!("{pointer}/name"), message);
            return None;
        }
        name.clone_into(&mut self.tool);

        let meta_pointer = format!("{pointer}/_meta");
        let empty = Map::new();
        let meta = tool.get("_meta").and_then(Value::as_object).unwrap_or(&empty);
        for key in meta.keys().filter(|key| key.starts_with(META_PREFIX)) {
            if !META.contains(&key.as_str()) {
                self.wrong(&format!("{meta_pointer}/{}", escape(key)), "unknown key");
            }
        }
        let mutates = meta.get("gateward/mutates").and_then(Value::as_bool);
        if mutates.is_none() {
            let pointer = format!("{meta_pointer}/gateward~1mutates");
            self.wrong(&pointer, "`_meta` must have `gateward/mutates` (`true` or `false`), at");
        }
        let risk = meta.get("gateward/risk").and_then(Value::as_str).and_then(parse_risk);
        if risk.is_none() {
            let pointer = format!("{meta_pointer}/gateward~1risk");
            let message =
                "`_meta` must have `gateward/risk` (`low`, `medium`, `high` or `critical`), at";
            self.wrong(&pointer, message);
        }
        let mut flag = |name: &str| {
            let value = meta.get(&format!("{META_PREFIX}{name}"));
            let value = value.map_or(Some(false), Value::as_bool);
            if value.is_none() {
                let pointer = format!("{meta_pointer}/gateward~1{name}");
                self.wrong(
                    &pointer,
                    &format!("`{META_PREFIX}{name}` must be `true` or `false`, at"),
                );
            }
            value
        };
        let (canary, egress) = (flag("canary"), flag("egress"));

        let schema_pointer = format!("{pointer}/inputSchema");
        let input = match tool.get("inputSchema") {
            Some(schema) => self.argument_type(schema, &schema_pointer, 0),
            None => {
                self.wrong(&schema_pointer, "missing `inputSchema`, at");
                None
            }
        };
        let input = match input {
            Some(ArgumentType::Record(input)) => Some(input),
            Some(_) => {
                self.wrong(&schema_pointer, "`inputSchema` must have type `object`, at");
                None
            }
            None => None,
        };
        let id = format!("{server}/{name}");
        Some(Tool {
            id,
            mutates: mutates?,
            egress: egress?,
            risk: risk?,
            canary: canary?,
            input: input?,
        })
    }

    /// The Cedar type of all values that a JSON Schema allows. If there is none, reports why and returns
    /// `None`.
    fn argument_type(
        &mut self,
        schema: &Value,
        pointer: &str,
        depth: usize,
    ) -> Option<ArgumentType> {
        if depth > MAX_TYPE_DEPTH {
            self.wrong(pointer, &format!("types can nest at most {MAX_TYPE_DEPTH} levels, at"));
            return None;
        }
        let Some(schema) = schema.as_object() else {
            self.wrong(pointer, "a schema must be an object, at");
            return None;
        };
        let supported = |keyword: &&String| {
            TYPING.contains(&keyword.as_str()) || NARROWING.contains(&keyword.as_str())
        };
        let unsupported: Vec<&String> = schema.keys().filter(|key| !supported(key)).collect();
        for keyword in &unsupported {
            let message = format!("JSON Schema keyword `{keyword}` is not supported, at");
            self.wrong(&format!("{pointer}/{}", escape(keyword)), &message);
        }
        if !unsupported.is_empty() {
            return None;
        }
        let type_pointer = format!("{pointer}/type");
        match schema.get("type") {
            Some(Value::String(name)) => match name.as_str() {
                "boolean" => Some(ArgumentType::Bool),
                "integer" => Some(ArgumentType::Long),
                "number" => Some(ArgumentType::Decimal),
                "string" => Some(ArgumentType::String),
                "array" => {
                    let items_pointer = format!("{pointer}/items");
                    let Some(items) = schema.get("items") else {
                        self.wrong(pointer, "an array must have `items`, at");
                        return None;
                    };
                    let items = self.argument_type(items, &items_pointer, depth + 1)?;
                    Some(ArgumentType::Set(Box::new(items)))
                }
                "object" => self.record_type(schema, pointer, depth).map(ArgumentType::Record),
                _ => {
                    self.wrong(&type_pointer, "there is no Cedar type for");
                    None
                }
            },
            Some(_) => {
                self.wrong(&type_pointer, "`type` must be the name of one type, not");
                None
            }
            None => {
                self.wrong(pointer, "missing `type`, at");
                None
            }
        }
    }

    fn record_type(
        &mut self,
        schema: &Map<String, Value>,
        pointer: &str,
        depth: usize,
    ) -> Option<RecordType> {
        let open = match schema.get("additionalProperties") {
            None => true,
            Some(Value::Bool(open)) => *open,
            Some(_) => {
                let pointer = format!("{pointer}/additionalProperties");
                self.wrong(&pointer, "`additionalProperties` must be `true` or `false`, at");
                return None;
            }
        };
        let empty = Map::new();
        let properties = match schema.get("properties") {
            None => &empty,
            Some(Value::Object(properties)) => properties,
            Some(_) => {
                self.wrong(&format!("{pointer}/properties"), "`properties` must be an object, at");
                return None;
            }
        };
        let required = self.required(schema, properties, pointer)?;
        self.properties += properties.len();
        if self.properties > MAX_PROPERTIES {
            self.wrong(
                pointer,
                &format!("a tool can have at most {MAX_PROPERTIES} properties, at"),
            );
            return None;
        }

        // Reads every property, so that all mistakes are reported.
        let mut fields = Vec::new();
        for (name, schema) in properties {
            let pointer = format!("{pointer}/properties/{}", escape(name));
            if !(1..=MAX_FIELD_BYTES).contains(&name.len()) {
                self.wrong(&pointer, &format!("a name must have 1 to {MAX_FIELD_BYTES} bytes, at"));
            } else if let Some(kind) = self.argument_type(schema, &pointer, depth + 1) {
                let required = required.contains(name.as_str());
                fields.push(Field { name: name.clone(), required, kind });
            }
        }
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        (fields.len() == properties.len()).then_some(RecordType { fields, open })
    }

    fn required<'s>(
        &mut self,
        schema: &'s Map<String, Value>,
        properties: &Map<String, Value>,
        pointer: &str,
    ) -> Option<BTreeSet<&'s str>> {
        let mut required = BTreeSet::new();
        let pointer = format!("{pointer}/required");
        let Some(list) = schema.get("required") else {
            return Some(required);
        };
        let Some(list) = list.as_array() else {
            self.wrong(&pointer, "`required` must be an array, at");
            return None;
        };
        for (at, name) in list.iter().enumerate() {
            match name.as_str().filter(|name| properties.contains_key(*name)) {
                Some(name) => {
                    required.insert(name);
                }
                None => {
                    self.wrong(&format!("{pointer}/{at}"), "`required` must name a property, not");
                    return None;
                }
            }
        }
        Some(required)
    }
}

/// The property to which a pointer into a tool points, such as `filter.labels[]`.
fn property_path(pointer: &str) -> String {
    let mut path = String::new();
    // `/tools/<n>/inputSchema`, then keywords; a property's name follows `properties`.
    let mut parts = pointer.split('/').skip(4);
    while let Some(keyword) = parts.next() {
        match keyword {
            "properties" => {
                let Some(name) = parts.next() else { break };
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&name.replace("~1", "/").replace("~0", "~"));
            }
            "items" => path.push_str("[]"),
            _ => break,
        }
    }
    path
}

fn parse_risk(text: &str) -> Option<Risk> {
    match text {
        "low" => Some(Risk::Low),
        "medium" => Some(Risk::Medium),
        "high" => Some(Risk::High),
        "critical" => Some(Risk::Critical),
        _ => None,
    }
}
