//! The values in the arguments of a call.

use crate::json::Json;

/// Calls `found` with each value that is not empty, no array and no object, and with each name in an object
/// that can be a value. A name of letters is left out, since most of these are the tool's own, such as `email`. Those
/// that are not are in [`super::undeclared`].
pub fn each_leaf(value: &Json, found: &mut dyn FnMut(&Json)) {
    match value {
        Json::Null => {}
        Json::String(text) if text.is_empty() => {}
        Json::Array(items) => items.iter().for_each(|item| each_leaf(item, found)),
        Json::Object(fields) => {
            for (name, field) in fields {
                if !name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_') {
                    found(&Json::String(name.clone()));
                }
                each_leaf(field, found);
            }
        }
        _ => found(value),
    }
}
