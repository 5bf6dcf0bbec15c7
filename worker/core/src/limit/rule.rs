//! What a limit requires.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::amount::Amount;
use super::window::{Day, Hours, Window};
use crate::bucket::Rate;
use crate::json::Json;

/// The currency that a call must name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LimitCurrency)]
pub struct Currency {
    /// A JSON Pointer (RFC 6901) into the arguments.
    #[schema(example = "/currency")]
    pub pointer: String,
    /// Compared as it is.
    #[schema(example = "EUR")]
    pub is: String,
}

/// A window's calendar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calendar {
    pub window: Window,
    pub time_zone: String,
}

/// Where a call has its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub pointer: String,
    pub currency: Option<Currency>,
}

impl Measured {
    /// The number in a call's arguments. `None` if they do not have it, if they have another currency, or if the number
    /// is `rounded`.
    #[must_use]
    pub fn read(&self, input: &Json, rounded: &[f64]) -> Option<Amount> {
        if let Some(currency) = &self.currency
            && input.pointer(&currency.pointer).and_then(Json::as_str) != Some(&currency.is)
        {
            return None;
        }
        let value = input.pointer(&self.pointer)?;
        // First, because an amount is one number, and a list of thousands is none.
        let amount = Amount::of(value)?;
        (!value.has_number_of(rounded)).then_some(amount)
    }
}

/// What a limit requires.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    Hours { days: Option<Vec<Day>>, hours: Option<Vec<Hours>>, time_zone: String },
    PerCall { max: Amount, measured: Measured },
    Rate(Rate),
    Concurrency { max: u64 },
    Quota { max: Amount, calendar: Calendar },
    Amount { max: Amount, measured: Measured, calendar: Calendar },
    Budget { max: Amount, calendar: Calendar },
}

impl Rule {
    /// The bound; `None` for `hours`.
    #[must_use]
    pub fn max(&self) -> Option<Amount> {
        match self {
            Self::Hours { .. } => None,
            Self::Rate(rate) => Some(Amount::whole(rate.capacity().into())),
            Self::Concurrency { max } => Some(Amount::whole(*max)),
            Self::PerCall { max, .. }
            | Self::Quota { max, .. }
            | Self::Amount { max, .. }
            | Self::Budget { max, .. } => Some(*max),
        }
    }

    /// The number in a call's arguments that it counts or bounds.
    #[must_use]
    pub const fn measured(&self) -> Option<&Measured> {
        match self {
            Self::PerCall { measured, .. } | Self::Amount { measured, .. } => Some(measured),
            Self::Hours { .. }
            | Self::Rate(_)
            | Self::Concurrency { .. }
            | Self::Quota { .. }
            | Self::Budget { .. } => None,
        }
    }

    #[must_use]
    pub fn calendar(&self) -> Option<&Calendar> {
        self.sum().map(|(_, calendar)| calendar)
    }

    /// The bound of a sum over a window.
    #[must_use]
    pub fn sum(&self) -> Option<(Amount, &Calendar)> {
        match self {
            Self::Quota { max, calendar }
            | Self::Amount { max, calendar, .. }
            | Self::Budget { max, calendar } => Some((*max, calendar)),
            Self::Hours { .. }
            | Self::PerCall { .. }
            | Self::Rate(_)
            | Self::Concurrency { .. } => None,
        }
    }
}
