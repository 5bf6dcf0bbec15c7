//! What a result contained, as far as later calls need it.

use serde::{Deserialize, Serialize};

use super::{blob, pointers};
use crate::text_enum::text_enum;

/// Trusted values of one result, and values of one call's arguments. A listing of a few hundred records has fewer; 4,096
/// hashes are 32 KiB in the row of a call.
pub const MAX_RESULT_VALUES: usize = 4_096;

/// Untrusted values of one result. A web page of 250 KB has 7,000, and a missing one closes the run. 16,384 hashes are
/// 128 KiB in the row of the result.
pub const MAX_UNTRUSTED_VALUES: usize = 16_384;

text_enum! {
    /// Whether values of a part of a result count as trusted: whether an attacker could have written them.
    ResultLevel {
        Trusted = "trusted",
        Untrusted = "untrusted",
    }
}

/// Which parts of a tool's results are trusted, by JSON Pointer (RFC 6901) into the structured result, or into
/// a text that is JSON. `*` as a step stands for every item of an array. The empty pointer is the whole
/// result. The longest pointer counts. What no pointer names has the trust of the server. As JSON:
/// `{"/contacts":"trusted"}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ResultTrust(#[serde(with = "pointers")] pub Vec<(String, ResultLevel)>);

impl ResultTrust {
    /// Whether strangers may have written a part of the result.
    #[must_use]
    pub fn has_untrusted(&self) -> bool {
        self.0.iter().any(|(_, level)| *level == ResultLevel::Untrusted)
    }

    /// Whether a text into which no pointer leads is trusted. `trust` has the tool's pointers, if it has any. With an
    /// untrusted pointer the text is untrusted: its author could have made it unreadable.
    #[must_use]
    pub fn trusts_text(trust: Option<&Self>, server_trusted: bool) -> bool {
        let Some(trust) = trust else { return server_trusted };
        let has_whole = trust.0.iter().any(|(pointer, _)| pointer.is_empty());
        !trust.has_untrusted() && (server_trusted || has_whole)
    }
}

/// The values of a result, as keyed hashes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// The fingerprint of the key.
    pub key: u32,
    #[serde(with = "blob")]
    pub trusted: Vec<u64>,
    #[serde(with = "blob")]
    pub untrusted: Vec<u64>,
    /// Whether values are missing, because there were too many or the result was too long.
    pub incomplete: bool,
}

impl Observed {
    /// Whether it says nothing about a run.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.trusted.is_empty() && self.untrusted.is_empty() && !self.incomplete
    }

    /// Adds the values of another part of the same result.
    pub fn add(&mut self, mut part: Self) {
        self.key = part.key;
        self.trusted.append(&mut part.trusted);
        self.untrusted.append(&mut part.untrusted);
        self.incomplete |= part.incomplete;
        for list in [&mut self.trusted, &mut self.untrusted] {
            list.sort_unstable();
            list.dedup();
        }
        // A missing trusted value only counts as seen nowhere.
        self.trusted.truncate(MAX_RESULT_VALUES);
        self.incomplete |= self.untrusted.len() > MAX_UNTRUSTED_VALUES;
        self.untrusted.truncate(MAX_UNTRUSTED_VALUES);
    }
}
