//! The member `kind` of bodies, which selects their schema.

use utoipa::openapi::{Object, Type};

/// The schema of a `kind` with one value.
pub fn only(kind: &str) -> Object {
    Object::builder().schema_type(Type::String).enum_values(Some([kind])).build()
}
