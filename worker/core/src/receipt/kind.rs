//! The member `kind` of bodies, which selects their schema.

use utoipa::openapi::{Object, Type};

use crate::text_enum::text_enum;

text_enum! {
    /// What a receipt is about.
    ReceiptKind {
        Decision = "decision",
        Approval = "approval",
        DeadLetter = "dead_letter",
        Outcome = "outcome",
        Registry = "registry",
        LaneCheckpoint = "lane_checkpoint",
        RegistryEvent = "registry_event",
    }
}

/// The schema of a `kind` with one value.
pub fn only(kind: ReceiptKind) -> Object {
    Object::builder().schema_type(Type::String).enum_values(Some([kind.as_str()])).build()
}
