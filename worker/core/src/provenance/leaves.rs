//! The values in the arguments of a call.

use crate::json::Json;

/// Calls `found` with each value that is not empty, no array and no object, and with each name in an object
/// that [can be a value](can_be_value).
pub fn each_leaf(value: &Json, found: &mut dyn FnMut(&Json)) {
    visit(value, &can_be_value, found);
}

/// The same without the names.
pub fn each_value(value: &Json, found: &mut dyn FnMut(&Json)) {
    visit(value, &|_| false, found);
}

/// The same with the names that `is_value` says.
pub fn visit(value: &Json, is_value: &dyn Fn(&str) -> bool, found: &mut dyn FnMut(&Json)) {
    match value {
        Json::Null => {}
        Json::String(text) if text.is_empty() => {}
        Json::Array(items) => items.iter().for_each(|item| visit(item, is_value, found)),
        Json::Object(fields) => {
            for (name, field) in fields {
                if is_value(name) {
                    found(&Json::String(name.clone()));
                }
                visit(field, is_value, found);
            }
        }
        _ => found(value),
    }
}

/// Whether an empty text or an empty object is in a value. A tool can take it for "all": an empty filter. A null is as if
/// the argument were left out, and an empty list names nobody.
pub fn has_blank(value: &Json) -> bool {
    match value {
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.iter().any(has_blank),
        Json::Object(fields) => {
            fields.is_empty() || fields.iter().any(|(_, field)| has_blank(field))
        }
        _ => false,
    }
}

/// Whether the name of a member can be a value, such as `eve@x.com`. A name of only letters and `_` is not a
/// value, because most such names belong to the tool, such as `email`. In arguments, [`super::undeclared`]
/// finds names that the tool did not declare.
pub fn can_be_value(name: &str) -> bool {
    !name.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}
