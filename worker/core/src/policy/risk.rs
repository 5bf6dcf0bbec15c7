//! The risk tier of an agent, which policies use, and the risk score of a call. The score is for
//! people and dashboards and decides nothing.

use crate::policy::bundle::Risk;
use crate::text_enum::text_enum;
use crate::trust::SourceTrust;

text_enum! {
    /// The risk tier of an agent, lowest first.
    #[derive(Default, PartialOrd, Ord)]
    RiskTier {
        #[default]
        Low = "low",
        Medium = "medium",
        High = "high",
    }
}

impl RiskTier {
    /// The tier this many steps higher.
    #[must_use]
    pub const fn raised(self, steps: u8) -> Self {
        match (self, steps) {
            (tier, 0) => tier,
            (Self::Low, 1) => Self::Medium,
            _ => Self::High,
        }
    }
}

const MAX_SCORE: u8 = 100;

/// The call's score, 0–100: the tool's risk, sensitive data, and the findings of the shield.
#[must_use]
pub fn score(risk: Risk, writes: bool, sensitive: bool, shield_score: u8) -> u8 {
    let base = match risk {
        Risk::Low => 5,
        Risk::Medium => 25,
        Risk::High => 50,
        Risk::Critical => 75,
    };
    let extra = if writes { 10 } else { 0 } + if sensitive { 10 } else { 0 } + shield_score / 5;
    (base + extra).min(MAX_SCORE)
}

/// The composite score, 0–100: the call's score, raised if its run's root is less trusted.
#[must_use]
pub fn composite(score: u8, root: SourceTrust) -> u8 {
    let raise = match root {
        SourceTrust::TrustedInternalSigned => 0,
        SourceTrust::TrustedInternalUnsigned => 5,
        SourceTrust::SemiTrustedCustomer => 15,
        SourceTrust::UntrustedExternal | SourceTrust::Unknown => 30,
        SourceTrust::MaliciousSuspected => 50,
    };
    score.saturating_add(raise).min(MAX_SCORE)
}

/// The level of a score.
#[must_use]
pub const fn level(score: u8) -> Risk {
    match score {
        0..25 => Risk::Low,
        25..50 => Risk::Medium,
        50..75 => Risk::High,
        _ => Risk::Critical,
    }
}
