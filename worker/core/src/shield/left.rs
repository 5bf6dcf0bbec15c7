//! What of a call or an answer may still be read.

/// Bytes of a call's arguments that are read: more than a request may have.
const MAX_ARGUMENT_BYTES: usize = 512 * 1024;

/// Bytes that compressed data of one call may have when it is read. Arguments seldom hold files.
const MAX_INFLATED_BYTES: usize = 128 * 1024;

/// What each decoded form of a text takes from [`Left::again`], besides its bytes. To decode a short text and to read it
/// again costs many times what its bytes cost otherwise.
pub(super) const FORM_BYTES: usize = 64;

/// What a text that is JSON takes, and what each text in it takes besides its bytes.
pub(super) const NESTED_BYTES: usize = 16;

/// What each text adds to [`Left::again`], in times of its bytes. JSON with escapes in its texts is read twice again, and its
/// quotes cost more than their bytes.
pub(super) const READINGS: usize = 6;

/// What the texts of a call's arguments may take beyond what they add: about four thousand short texts that are encoded.
const MAX_ARGUMENT_AGAIN_BYTES: usize = 160 * 1024;

/// What may still be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left {
    pub bytes: usize,
    /// Bytes of compressed data.
    pub inflated: usize,
    /// Bytes that may be read again, in a decoded form or in a text that is JSON, as [`super::signs::cost`] counts them.
    pub again: usize,
}

impl Left {
    pub const fn of(bytes: usize) -> Self {
        Self { bytes, inflated: MAX_INFLATED_BYTES, again: bytes }
    }

    /// For the arguments of a call.
    pub const fn of_arguments() -> Self {
        Self { again: MAX_ARGUMENT_AGAIN_BYTES, ..Self::of(MAX_ARGUMENT_BYTES) }
    }
}
