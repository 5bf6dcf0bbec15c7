//! Where a value came from.

use crate::text_enum::text_enum;

text_enum! {
    /// Where a value came from, the lowest first. The lowest among the parts of a value counts.
    #[derive(PartialOrd, Ord, Hash)]
    Level {
        /// It was not seen before: the model made it up, or it was changed on the way.
        Nowhere = "nowhere",
        /// It was first seen in an untrusted result.
        Untrusted = "untrusted",
        /// It was first seen in a trusted result.
        Trusted = "trusted",
        /// The tenant's allow-list has it.
        Allowed = "allowed",
        /// The user's instruction or plan has it, or an approver approved it in this run.
        Instruction = "instruction",
    }
}
