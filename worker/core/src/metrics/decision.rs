//! What the journal row of a decision has for its series. The row has the decision, the reason code, the server and the tool
//! in any case, so only the rest is added to it.

use serde::{Deserialize, Serialize};

/// A keyed hash of a key id. A reader of metrics cannot test guesses of key ids, because the hash's key is derived from the
/// worker's MAC key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyHash(u32);

impl KeyHash {
    /// The low half of a hash.
    #[must_use]
    pub const fn new(hash: u64) -> Self {
        Self(hash as u32)
    }

    /// A key id as metrics show it: `kh_` and the hash's eight hexadecimal digits, the lowest one first.
    #[must_use]
    pub fn label(self) -> String {
        let digit = |at: u32| char::from_digit(self.0 >> (4 * at) & 0xf, 16).unwrap_or_default();
        "kh_".chars().chain((0..8).map(digit)).collect()
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
        for (hash, names, expected, label) in [
            (0xdead_beef_0123_45af, ShownNames::ServerAndTool, "[19088815,2]", "kh_fa543210"),
            (0, ShownNames::Server, "[0,1]", "kh_00000000"),
            (u64::MAX, ShownNames::Neither, "[4294967295,0]", "kh_ffffffff"),
        ] {
            let hash = KeyHash::new(hash);
            let counted = CountedDecision::new(hash, names);
            assert_eq!(serde_json::to_string(&counted).unwrap(), expected);
            assert_eq!(hash.label(), label);
        }
    }
}
