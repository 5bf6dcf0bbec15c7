//! The detail of a change's audit event.

use serde::Serialize;
use serde_json::{Value as Json, json};

/// A detail with the changed fields. A new record has no changed fields.
pub(super) fn with_changes(mut detail: Json, changes: Option<Json>) -> Json {
    if let (Json::Object(fields), Some(changes)) = (&mut detail, changes) {
        fields.insert("changes".to_owned(), changes);
    }
    detail
}

/// The fields that differ between two views of a record, for the audit.
pub(super) fn difference(before: &impl Serialize, after: &impl Serialize) -> Json {
    let (before, after) = (json!(before), json!(after));
    let Json::Object(after) = after else { return Json::Null };
    let changed = after.into_iter().filter(|(name, value)| {
        !["revision", "updated_at"].contains(&name.as_str()) && before.get(name) != Some(value)
    });
    Json::Object(changed.collect())
}
