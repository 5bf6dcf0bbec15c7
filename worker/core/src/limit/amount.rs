//! Amounts: exact decimals, so that sums of cents are exact.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::{Object, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::json::{Json, decimal};

/// Digits after the point: more than any currency has, and enough for prices of parts.
const DIGITS: u32 = 9;

/// Units in one.
const ONE: u128 = 10_u128.pow(DIGITS);

/// The largest amount is below this: an amount of any currency. Sums of it stay far below the type's bound.
const MAX_WHOLE: u128 = 10_u128.pow(18);

/// Bytes of an amount's text: 18 digits, a point and nine digits.
const MAX_BYTES: usize = 28;

/// A number from zero on with nine digits after the point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Amount(u128);

impl Amount {
    pub const ZERO: Self = Self(0);

    /// The largest amount that can be stored and read again.
    pub const LARGEST: Self = Self(MAX_WHOLE * ONE - 1);

    /// Larger than every sum of amounts.
    pub const MAX: Self = Self(u128::MAX);

    #[must_use]
    pub const fn whole(number: u64) -> Self {
        Self(number as u128 * ONE)
    }

    /// The number that a call gives: a JSON number, or a string of digits with at most one point, as APIs of
    /// banks have it. `None` for anything else, a negative number, and one that has no exact amount.
    #[must_use]
    pub fn of(value: &Json) -> Option<Self> {
        match value {
            Json::Integer(number) => u64::try_from(*number).ok().map(Self::whole),
            Json::Number(number) => Self::of_number(ryu_js::Buffer::new().format_finite(*number)),
            Json::Verbatim(number) => Self::of_number(number),
            Json::String(text) => text.parse().ok(),
            Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => None,
        }
    }

    fn of_number(text: &str) -> Option<Self> {
        let (negative, digits, power) = decimal(text)?;
        if digits.is_empty() {
            return Some(Self::ZERO);
        }
        let shift = u32::try_from(power + i64::from(DIGITS)).ok()?;
        if negative || digits.len() > MAX_BYTES || shift as usize > MAX_BYTES {
            return None;
        }
        let units = digits.parse::<u128>().ok()?.checked_mul(10_u128.checked_pow(shift)?)?;
        (units < MAX_WHOLE * ONE).then_some(Self(units))
    }

    /// The amount if it is a whole number.
    #[must_use]
    pub fn as_whole(self) -> Option<u64> {
        self.0.is_multiple_of(ONE).then(|| u64::try_from(self.0 / ONE).ok()).flatten()
    }

    /// The largest whole number that is not above it.
    #[must_use]
    pub fn floor(self) -> u64 {
        u64::try_from(self.0 / ONE).unwrap_or(u64::MAX)
    }

    /// The number in units of the last of `digits` digits after the point, at most nine, rounded up.
    #[must_use]
    pub fn units_above(self, digits: u32) -> u128 {
        self.0.div_ceil(10_u128.pow(DIGITS.saturating_sub(digits)))
    }

    /// The sum. It cannot overflow: what is added is below 2^94 ([`Self::whole`]), and no sum has 2^34 parts.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }

    /// The difference; at least zero.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl FromStr for Amount {
    type Err = &'static str;

    /// Digits, with at most one point between two of them.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "must be a number from 0 to below 10^18, with at most 9 digits after the point";
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if text.len() > MAX_BYTES || !is_number(whole) || !is_number(fraction) {
            return Err(EXPECTED);
        }
        Self::of_number(text).ok_or(EXPECTED)
    }
}

impl TryFrom<String> for Amount {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // In front of the fraction is a one, so that it keeps its zeros.
        let (whole, fraction) = (self.0 / ONE, self.0 % ONE + ONE);
        let mut digits = itoa::Buffer::new();
        match u64::try_from(whole) {
            Ok(whole) => f.write_str(digits.format(whole))?,
            Err(_) => write!(f, "{whole}")?,
        }
        if fraction == ONE {
            return Ok(());
        }
        let fraction = digits.format(fraction as u64).get(1..).unwrap_or_default();
        f.write_str(".")?;
        f.write_str(fraction.trim_end_matches('0'))
    }
}

impl PartialSchema for Amount {
    fn schema() -> RefOr<Schema> {
        Object::builder()
            .schema_type(Type::String)
            .pattern(Some(r"^[0-9]{1,18}(\.[0-9]{1,9})?$"))
            .into()
    }
}

impl ToSchema for Amount {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json;

    fn of(text: &str) -> Option<String> {
        Amount::of(&json::parse(text.as_bytes()).ok()?).map(|amount| amount.to_string())
    }

    #[test]
    fn an_amount_is_the_number_as_it_was_written() {
        for (text, expected) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.0", "0"),
            ("1", "1"),
            ("1.0", "1"),
            ("0.1", "0.1"),
            ("1.10", "1.1"),
            ("1e2", "100"),
            ("1.5E-3", "0.0015"),
            ("0.000000001", "0.000000001"),
            ("9007199254740991", "9007199254740991"),
            ("\"1200.50\"", "1200.5"),
            ("\"007\"", "7"),
            ("\"999999999999999999.999999999\"", "999999999999999999.999999999"),
        ] {
            assert_eq!(of(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_has_no_exact_amount_is_none() {
        for text in [
            "-1",
            "-0.01",
            "0.0000000001",
            "1e18",
            "1e300",
            "1e-300",
            "null",
            "true",
            "[1]",
            "{}",
            "\"\"",
            "\"-1\"",
            "\"+1\"",
            "\"1e3\"",
            "\"1,000\"",
            "\" 1\"",
            "\".5\"",
            "\"5.\"",
            "\"1.2.3\"",
            "\"0x10\"",
            "\"NaN\"",
            "\"١\"",
            "\"1000000000000000000\"",
            "\"0.0000000001\"",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn sums_are_exact_and_texts_come_back(a in 0..10_u64.pow(15), b in 0..10_u64.pow(15)) {
            let cents = |cents: u64| format!("{}.{:02}", cents / 100, cents % 100);
            let (one, other): (Amount, Amount) = (cents(a).parse().unwrap(), cents(b).parse().unwrap());
            let sum: Amount = cents(a + b).parse().unwrap();
            prop_assert_eq!(one.plus(other), sum);
            prop_assert_eq!(sum.minus(other), one);
            prop_assert_eq!(sum.to_string().parse(), Ok(sum));
        }
    }
}
