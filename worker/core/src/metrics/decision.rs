//! What the journal row of a decision has for its series. The row has the decision, the reason code, the server and the tool
//! in any case, so only the rest is added to it.

use serde::{Serialize, Serializer};

/// A key id as metrics show it: `kh_` and eight hexadecimal digits of a keyed hash. A reader of metrics cannot test
/// guesses of key ids, because the hash's key is derived from the worker's MAC key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHash([u8; 11]);

impl KeyHash {
    /// The text of a hash.
    #[must_use]
    pub fn new(hash: u64) -> Self {
        // Each of the eight low digits gets a byte of its own, the lowest digit first. All become text at once.
        let mut digits = hash & 0xffff_ffff;
        digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff;
        digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff;
        digits = (digits | digits << 4) & 0x0f0f_0f0f_0f0f_0f0f;
        let is_letter = ((digits + 0x0606_0606_0606_0606) >> 4) & 0x0101_0101_0101_0101;
        let to_letter = u64::from(b'a' - b'0' - 10);
        let ascii = digits + 0x3030_3030_3030_3030 + is_letter * to_letter;
        let mut text = *b"kh_00000000";
        if let Some(end) = text.last_chunk_mut() {
            *end = ascii.to_le_bytes();
        }
        Self(text)
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl Serialize for KeyHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Which of the names in a decision's row metrics show. The others are shown as [`UNKNOWN`](super::bounds::UNKNOWN).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShownNames {
    Neither,
    Server,
    ServerAndTool,
}

/// The hash of the decision's key id, and how many of the row's names metrics show: the server, or the server and the tool.
/// Persisted as a JSON array in journal rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountedDecision(KeyHash, u8);

impl CountedDecision {
    #[must_use]
    pub const fn new(credential: KeyHash, names: ShownNames) -> Self {
        Self(credential, names as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_unchanged() {
        for (hash, names, expected) in [
            (0xdead_beef_0123_45af, ShownNames::ServerAndTool, r#"["kh_fa543210",2]"#),
            (0, ShownNames::Server, r#"["kh_00000000",1]"#),
            (u64::MAX, ShownNames::Neither, r#"["kh_ffffffff",0]"#),
        ] {
            let counted = CountedDecision::new(KeyHash::new(hash), names);
            assert_eq!(serde_json::to_string(&counted).unwrap(), expected);
        }
    }
}
