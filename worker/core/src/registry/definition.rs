//! Hashes of what a server says about itself and its tools.

use sha2::{Digest as _, Sha256};

use crate::json::Json;

/// Lower-case hex of SHA-256 over the text.
#[must_use]
pub fn instructions_sha256(instructions: &str) -> String {
    hex::encode(Sha256::digest(instructions))
}

/// Lower-case hex of SHA-256 over the canonical form: RFC 8785, but numbers that no double holds
/// exactly keep their text ([`crate::json::parse_definition`]).
#[must_use]
pub fn definition_sha256(definition: &Json) -> String {
    hex::encode(Sha256::digest(definition.canonical()))
}
