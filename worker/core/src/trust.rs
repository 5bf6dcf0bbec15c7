//! Where the content that led to a call came from, and how far it is trusted.

use serde::{Deserialize, Serialize};

/// Provenance, from most to least trusted; the order is the ranking.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SourceTrust {
    TrustedInternalSigned,
    TrustedInternalUnsigned,
    SemiTrustedCustomer,
    UntrustedExternal,
    MaliciousSuspected,
    Unknown,
}

impl SourceTrust {
    pub const ALL: [SourceTrust; 6] = [
        Self::TrustedInternalSigned,
        Self::TrustedInternalUnsigned,
        Self::SemiTrustedCustomer,
        Self::UntrustedExternal,
        Self::MaliciousSuspected,
        Self::Unknown,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TrustedInternalSigned => "trusted_internal_signed",
            Self::TrustedInternalUnsigned => "trusted_internal_unsigned",
            Self::SemiTrustedCustomer => "semi_trusted_customer",
            Self::UntrustedExternal => "untrusted_external",
            Self::MaliciousSuspected => "malicious_suspected",
            Self::Unknown => "unknown",
        }
    }

    /// Any value outside the list counts as unknown, the least trusted.
    #[must_use]
    pub fn from_claim(text: &str) -> Self {
        Self::ALL.into_iter().find(|level| level.as_str() == text).unwrap_or(Self::Unknown)
    }

    /// The less trusted of two.
    #[must_use]
    pub fn lowest(self, other: Self) -> Self {
        self.max(other)
    }
}
