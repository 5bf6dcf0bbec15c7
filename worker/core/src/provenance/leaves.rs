//! The values in the arguments of a call.

use crate::json::Json;

/// Calls `found` with each value that is not empty, no array and no object, and with each name in an object
/// that [can be a value](can_be_value).
pub fn each_leaf(value: &Json, found: &mut dyn FnMut(&Json)) {
    match value {
        Json::Null => {}
        Json::String(text) if text.is_empty() => {}
        Json::Array(items) => items.iter().for_each(|item| each_leaf(item, found)),
        Json::Object(fields) => {
            for (name, field) in fields {
                if can_be_value(name) {
                    found(&Json::String(name.clone()));
                }
                each_leaf(field, found);
            }
        }
        _ => found(value),
    }
}

/// Whether the name of a member can be a value, such as `eve@x.com`. A name of only letters and `_` is not a
/// value, because most such names belong to the tool, such as `email`. In arguments, [`super::undeclared`]
/// finds names that the tool did not declare.
pub fn can_be_value(name: &str) -> bool {
    !name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}
