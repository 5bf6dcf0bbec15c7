//! The schema: `schema.cedarschema`, and one typed action for each described tool.
//!
//! A tool's action applies to the same principals and resources as `Action::"call"`. It has the same
//! context, except for the types of `input` and `velocity`: the tool's arguments, and the windows that count its
//! calls. So only the schema file defines the fields of the context.

use cedar_policy::ffi::DetailedError;
use cedar_policy::{Schema, SchemaFragment};
use serde_json::{Map, Value, json};

use crate::error::PolicyError;
use crate::sources::{SCHEMA_PATH, SourceFile};
use crate::tools::{ArgumentType, RecordType, Tool};
use crate::velocity::Window;

/// The schema, and its text in Cedar's schema syntax. On a mistake, adds it to `errors` and returns
/// `None`.
pub(crate) fn combine(
    text: &str,
    tools: &[Tool],
    windows: &[Window],
    errors: &mut Vec<PolicyError>,
) -> Option<(Schema, String)> {
    let file = SourceFile { path: SCHEMA_PATH.to_owned(), text: text.to_owned() };
    match combined_fragment(&file, tools, windows) {
        Ok(found) => Some(found),
        Err(error) => {
            errors.push(*error);
            None
        }
    }
}

fn combined_fragment(
    file: &SourceFile,
    tools: &[Tool],
    windows: &[Window],
) -> Result<(Schema, String), Box<PolicyError>> {
    let lacks =
        |what: &str| Box::new(PolicyError::of_file(&file.path, "the schema must define", what));
    let refused = |error: DetailedError| {
        let range =
            error.source_locations.first().map_or(0..0, |label| label.loc.start..label.loc.end);
        Box::new(PolicyError::at(file, range, format!("{}, at", error.message)))
    };

    let (fragment, _) = SchemaFragment::from_cedarschema_str(&file.text)
        .map_err(|error| refused(DetailedError::from(&error)))?;
    let mut json =
        fragment.to_json_value().map_err(|error| refused(DetailedError::from(&error)))?;

    let context = json
        .pointer_mut("//commonTypes/CallContext")
        .filter(|context| {
            ["/attributes/input", "/attributes/velocity"]
                .iter()
                .all(|it| context.pointer(it).is_some())
        })
        .ok_or_else(|| lacks("type CallContext = { input: {}, velocity: {}, … }"))?;
    // A call of a tool that is not described has every window that may count it.
    set_velocity(context, windows.iter().map(|window| (window, window.covers_all())));
    let context = context.clone();
    let actions = json
        .pointer_mut("//actions")
        .and_then(Value::as_object_mut)
        .ok_or_else(|| lacks("action \"call\""))?;
    for group in ["call", "read", "write", "egress", "canary"] {
        if !actions.contains_key(group) {
            return Err(lacks(&format!("action {group:?}")));
        }
    }
    let applies_to = actions
        .get("call")
        .and_then(|call| call.get("appliesTo"))
        .cloned()
        .ok_or_else(|| lacks("action \"call\" appliesTo { … }"))?;
    for tool in tools {
        let mut context = context.clone();
        if let Some(input) = context.pointer_mut("/attributes/input") {
            *input = record_json(&tool.input);
        }
        let of_tool = windows.iter().filter(|window| window.covers(&tool.id));
        set_velocity(&mut context, of_tool.map(|window| (window, true)));
        let mut applies_to = applies_to.clone();
        if let Some(slot) = applies_to.as_object_mut() {
            slot.insert("context".to_owned(), context);
        }
        let mut groups = vec![if tool.mutates || tool.egress { "write" } else { "read" }];
        groups.extend(tool.egress.then_some("egress"));
        groups.extend(tool.canary.then_some("canary"));
        let member_of: Vec<Value> = groups.iter().map(|group| json!({ "id": group })).collect();
        let action = json!({ "appliesTo": applies_to, "memberOf": member_of });
        if actions.insert(tool.id.clone(), action).is_some() {
            let message = "the schema defines an action that a tool description also defines:";
            return Err(Box::new(PolicyError::of_file(&file.path, message, &tool.id)));
        }
    }

    let fragment = SchemaFragment::from_json_value(json)
        .map_err(|error| refused(DetailedError::from(&error)))?;
    let text = fragment.to_cedarschema().map_err(|error| refused(DetailedError::from(&error)))?;
    let schema = Schema::from_schema_fragments([fragment])
        .map_err(|error| refused(DetailedError::from(&error)))?;
    Ok((schema, text))
}

/// The windows that a call has, and whether it always has them.
fn set_velocity<'a>(context: &mut Value, windows: impl Iterator<Item = (&'a Window, bool)>) {
    let attributes: Map<String, Value> =
        windows.map(|(window, always)| (window.name.clone(), window.type_json(always))).collect();
    if let Some(velocity) = context.pointer_mut("/attributes/velocity") {
        *velocity = json!({ "type": "Record", "attributes": attributes });
    }
}

fn record_json(record: &RecordType) -> Value {
    let attributes: Map<String, Value> = record
        .fields
        .iter()
        .map(|field| {
            let mut json = type_json(&field.kind);
            if let Some(json) = json.as_object_mut() {
                json.insert("required".to_owned(), field.required.into());
            }
            (field.name.clone(), json)
        })
        .collect();
    json!({ "type": "Record", "attributes": attributes })
}

fn type_json(kind: &ArgumentType) -> Value {
    match kind {
        ArgumentType::Bool => json!({ "type": "Boolean" }),
        ArgumentType::Long => json!({ "type": "Long" }),
        ArgumentType::Decimal => json!({ "type": "Extension", "name": "decimal" }),
        ArgumentType::String => json!({ "type": "String" }),
        ArgumentType::Set(element) => json!({ "type": "Set", "element": type_json(element) }),
        ArgumentType::Record(record) => record_json(record),
    }
}
