//! Source trust: where the content that led to a call came from, and how far it is trusted.

use crate::text_enum::text_enum;

text_enum! {
    /// The source trust levels, from the most to the least trusted.
    #[derive(PartialOrd, Ord)]
    SourceTrust {
        TrustedInternalSigned = "trusted_internal_signed",
        TrustedInternalUnsigned = "trusted_internal_unsigned",
        SemiTrustedCustomer = "semi_trusted_customer",
        UntrustedExternal = "untrusted_external",
        MaliciousSuspected = "malicious_suspected",
        Unknown = "unknown",
    }
}

impl SourceTrust {
    /// Reads a claim. A value that is not in the list counts as unknown, the least trusted.
    #[must_use]
    pub fn from_claim(text: &str) -> Self {
        Self::parse(text).unwrap_or(Self::Unknown)
    }

    /// The less trusted of two.
    #[must_use]
    pub fn lowest(self, other: Self) -> Self {
        self.max(other)
    }
}
