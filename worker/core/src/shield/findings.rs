//! What the shield found in one call.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::mode::{Category, Severity};

/// Findings of one call that are kept. More findings would not help to understand the call.
pub const MAX_FINDINGS: usize = 16;

/// Bytes of a pointer, as far as it is kept.
pub const MAX_POINTER_BYTES: usize = 128;

/// Steps between a text as it was sent and the text in which a rule matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decoding {
    Base64,
    Hexadecimal,
    /// gzip or zlib.
    Compressed,
    Percent,
    /// HTML entities.
    Entities,
    /// `\u003c` and `\x3c`.
    Escapes,
    /// Compatibility forms, look-alikes, and invisible characters.
    Letters,
}

/// A rule that matched. What it matched is not kept. Fields are in the order that receipts need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ShieldFinding)]
pub struct Finding {
    pub category: Category,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decodings: Vec<Decoding>,
    /// A keyed hash of what matched (SipHash-1-3), as 16 hexadecimal digits. It shows that two findings are alike.
    pub digest: String,
    /// Bytes of what matched, in the text in which the rule matched.
    pub length: u32,
    /// The text's place in the arguments: a JSON Pointer, shortened; `#key` after it: the key itself.
    pub pointer: String,
    pub rule: String,
    pub severity: Severity,
}

/// What the shield found in one call, as callers, approvers and receipts see it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ShieldNote)]
pub struct Noted {
    /// At most 16, the gravest first.
    pub findings: Vec<Finding>,
    /// The categories whose findings are replaced by a marker before the call is forwarded. Who forwards a call itself
    /// must do so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacts: Vec<Category>,
    /// Whether a text was not read to its end in each of its forms, or more rules matched than are listed.
    pub truncated: bool,
}

impl Noted {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty() && !self.truncated
    }

    /// The share of the shield in a call's risk score, 0–100.
    #[must_use]
    pub fn score(&self) -> u8 {
        match self.findings.iter().map(|finding| finding.severity).max() {
            None => 0,
            Some(Severity::Low) => 10,
            Some(Severity::Medium) => 40,
            Some(Severity::High) => 70,
            Some(Severity::Critical) => 100,
        }
    }
}

/// All findings, and whether something was left unread.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    /// The gravest first; at most [`MAX_FINDINGS`] of each rule and severity.
    pub list: Vec<Finding>,
    /// Whether a text could not be read to its end in each of its forms.
    pub truncated: bool,
}

/// The same findings, the gravest first. A pass for each severity needs less code than a sort.
pub(super) fn gravest_first(mut findings: Vec<Finding>) -> Vec<Finding> {
    let mut ordered = Vec::with_capacity(findings.len());
    for severity in Severity::ALL.into_iter().rev() {
        ordered.extend(findings.extract_if(.., |finding| finding.severity == severity));
    }
    ordered
}
