//! The outcome of a call that its caller made itself, as the caller reports it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::field::parse;
use crate::limit::Amount;
use crate::limit::reservation::Ending;
use crate::problem::Problem;

/// The body of `POST /v1/decisions/{decision_id}/outcome`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ReportOutcome)]
pub struct OutcomeRequest {
    outcome: Reported,
    /// What was spent, if it was less than the call's own number: a decimal number in a string.
    #[serde(default)]
    amount: Option<Amount>,
}

crate::text_enum::text_enum! {
    /// What became of a call.
    Reported {
        Succeeded = "succeeded",
        /// It did nothing.
        Failed = "failed",
    }
}

/// A caller's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedOutcome {
    pub decision_id: String,
    pub outcome: Reported,
    pub amount: Option<Amount>,
}

impl ReportedOutcome {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// `malformed_request`, `input_invalid` or `invalid_field`.
    pub fn parse(decision_id: String, body: &[u8]) -> Result<Self, Problem> {
        let OutcomeRequest { outcome, amount } = parse(body)?;
        if outcome == Reported::Failed && amount.is_some() {
            return Err(Problem::field("amount", "`amount`: a call that failed spent nothing"));
        }
        Ok(Self { decision_id, outcome, amount })
    }

    #[must_use]
    pub const fn ending(&self) -> Ending {
        match self.outcome {
            Reported::Succeeded => Ending::Succeeded(self.amount),
            Reported::Failed => Ending::Failed,
        }
    }
}
