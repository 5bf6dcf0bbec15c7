//! Cedar's extension `decimal`, without the parser that Cedar's own needs for the names in it.
//!
//! Values, functions and errors are as <https://docs.cedarpolicy.com/policies/syntax-datatypes.html>
//! describes them, and a test compares each function with Cedar's. Cedar's other extensions are not
//! offered: the schema that policies are validated against has no value of them.

use std::fmt;
use std::sync::{Arc, LazyLock};

use cedar_policy_core::ast::{
    CallStyle, Extension, ExtensionFunction, ExtensionOutputValue, ExtensionValue, Literal, Name,
    RepresentableExtensionValue, RestrictedExpr, Value, ValueKind,
};
use cedar_policy_core::entities::SchemaType;
use cedar_policy_core::evaluator::EvaluationError;
use cedar_policy_core::extensions::Extensions;

use crate::limit::Amount;
use crate::policy::expression::name;

/// Digits after the point, at most.
pub const DECIMAL_DIGITS: usize = 4;

/// A number in units of its last digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Decimal(i64);

/// The extension's name, that of its type, and that of the function that makes its values.
static DECIMAL: LazyLock<Name> = LazyLock::new(|| name("decimal"));

/// What the evaluator is given.
pub(crate) fn extensions() -> &'static Extensions<'static> {
    static EXTENSION: LazyLock<Extension> = LazyLock::new(extension);
    #[expect(clippy::expect_used, reason = "one extension, whose functions have different names")]
    static EXTENSIONS: LazyLock<Extensions<'static>> = LazyLock::new(|| {
        Extensions::specific_extensions(std::slice::from_ref(&*EXTENSION)).expect("no name twice")
    });
    &EXTENSIONS
}

/// `decimal("<text>")`; `None` if `text` is not a decimal number.
pub(crate) fn value(text: &str) -> Option<Value> {
    let value = Decimal::parse(text)?;
    let arguments = vec![RestrictedExpr::val(text)];
    let value = RepresentableExtensionValue::new(Arc::new(value), DECIMAL.clone(), arguments);
    Some(Value { value: ValueKind::ExtensionValue(Arc::new(value)), loc: None })
}

/// An amount, rounded up to the last digit, and at most the largest decimal number.
pub(crate) fn of_amount(amount: Amount) -> Value {
    let units = amount.units_above(DECIMAL_DIGITS as u32);
    let decimal = Decimal(i64::try_from(units).unwrap_or(i64::MAX));
    let arguments = vec![RestrictedExpr::val(decimal.to_string())];
    let value = RepresentableExtensionValue::new(Arc::new(decimal), DECIMAL.clone(), arguments);
    Value { value: ValueKind::ExtensionValue(Arc::new(value)), loc: None }
}

#[expect(clippy::result_large_err, reason = "the size is that of Cedar's error")]
fn extension() -> Extension {
    let kind = SchemaType::Extension { name: DECIMAL.clone() };
    let make = ExtensionFunction::unary(
        DECIMAL.clone(),
        CallStyle::FunctionStyle,
        Box::new(|argument| {
            match &argument.value {
                ValueKind::Lit(Literal::String(text)) => {
                    value(text).map(ExtensionOutputValue::Known)
                }
                _ => None,
            }
            .ok_or_else(failed)
        }),
        kind.clone(),
        SchemaType::String,
    );
    let compare = |called, holds: fn(&Decimal, &Decimal) -> bool| {
        ExtensionFunction::binary(
            name(called),
            CallStyle::MethodStyle,
            Box::new(move |left, right| match (decimal(left), decimal(right)) {
                (Some(left), Some(right)) => Ok(holds(left, right).into()),
                _ => Err(failed()),
            }),
            SchemaType::Bool,
            (kind.clone(), kind.clone()),
        )
    };
    let functions = [
        make,
        compare("lessThan", Decimal::lt),
        compare("lessThanOrEqual", Decimal::le),
        compare("greaterThan", Decimal::gt),
        compare("greaterThanOrEqual", Decimal::ge),
    ];
    Extension::new(DECIMAL.clone(), functions, [])
}

fn decimal(value: &Value) -> Option<&Decimal> {
    match &value.value {
        ValueKind::ExtensionValue(value) => value.value().as_any().downcast_ref(),
        _ => None,
    }
}

/// An error. The only thing that matters about it is that the policy fails. It is one of the errors
/// that can be created outside of Cedar.
fn failed() -> EvaluationError {
    match Extensions::none().func(&DECIMAL) {
        Err(error) => error.into(),
        Ok(_) => unreachable!("there are no extensions"),
    }
}

impl Decimal {
    /// A sign if it is negative, digits, a point, and one to [`DECIMAL_DIGITS`] digits.
    fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.')?;
        let (negative, digits) = match whole.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, whole),
        };
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !are_digits(digits) || !are_digits(part) || part.len() > DECIMAL_DIGITS {
            return None;
        }
        let units = format!("{}{digits}{part:0<DECIMAL_DIGITS$}", if negative { "-" } else { "" });
        units.parse().ok().map(Self)
    }
}

/// With all digits after the point.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u64.pow(DECIMAL_DIGITS as u32);
        let (sign, units) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        write!(f, "{sign}{}.{:0DECIMAL_DIGITS$}", units / unit, units % unit)
    }
}

impl ExtensionValue for Decimal {
    fn typename(&self) -> Name {
        DECIMAL.clone()
    }

    fn supports_operator_overloading(&self) -> bool {
        false
    }

    fn canonical_repr(&self) -> (Name, Vec<RestrictedExpr>) {
        (DECIMAL.clone(), vec![RestrictedExpr::val(self.to_string())])
    }
}

#[cfg(test)]
mod tests {
    use cedar_policy_core::ast::PartialValue;
    use proptest::prelude::*;

    use super::*;

    /// A call of a function of these extensions; `None` when it errs.
    fn call(extensions: &Extensions<'_>, function: &'static str, of: &[Value]) -> Option<Value> {
        match extensions.func(&name(function)).unwrap().call(of).ok()? {
            PartialValue::Value(value) => Some(value),
            PartialValue::Residual(rest) => panic!("{rest}"),
        }
    }

    const COMPARISONS: [&str; 4] =
        ["lessThan", "lessThanOrEqual", "greaterThan", "greaterThanOrEqual"];

    /// What one implementation makes of two texts: which are values, what they are equal to, how they
    /// are written, and how they compare.
    fn seen(extensions: &Extensions<'_>, left: &str, right: &str) -> Vec<Option<String>> {
        let value = |text| call(extensions, "decimal", &[Value::from(text)]);
        let (left, right) = (value(left), value(right));
        let written = |value: &Option<Value>| value.as_ref().map(ToString::to_string);
        let mut seen = vec![written(&left), written(&right), Some((left == right).to_string())];
        if let (Some(left), Some(right)) = (left, right) {
            let pair = [left, right];
            seen.extend(COMPARISONS.map(|function| written(&call(extensions, function, &pair))));
            let none = Value::from(true);
            seen.extend(COMPARISONS.map(|function| {
                written(&call(extensions, function, &[pair[0].clone(), none.clone()]))
            }));
            let canonical = |value: &Value| match &value.value {
                ValueKind::ExtensionValue(value) => format!("{:?}", value.value().canonical_repr()),
                other => panic!("{other:?}"),
            };
            seen.extend(pair.iter().map(|value| Some(canonical(value))));
        }
        seen
    }

    fn assert_as_cedar(left: &str, right: &str) {
        let (ours, cedars) = (extensions(), Extensions::all_available());
        assert_eq!(seen(ours, left, right), seen(cedars, left, right), "{left:?} {right:?}");
    }

    #[test]
    fn texts_and_comparisons_are_those_of_cedar() {
        let texts = [
            "0.0",
            "-0.0",
            "1.0",
            "1.00",
            "01.0",
            "-1.5",
            "-0.5",
            "0.5",
            "0.0001",
            "-0.0001",
            "12.3400",
            "922337203685477.5807",
            "922337203685477.5808",
            "-922337203685477.5808",
            "-922337203685477.5809",
            "99999999999999999999.0",
            "000000000000000000000001.0",
            "1.12345",
            "1.0000000",
            "",
            ".",
            "1.",
            ".1",
            "-.1",
            "1",
            "-1",
            "+1.0",
            "--1.0",
            "1.-0",
            "1.0.0",
            " 1.0",
            "1.0 ",
            "1.0\n",
            "1e2",
            "1.e2",
            "0x1.0",
            "\u{661}.0",
            "1.\u{661}",
            "1_0.0",
            "inf",
            "NaN",
            "-",
            "-.",
            "1,0",
        ];
        for left in texts {
            for right in texts {
                assert_as_cedar(left, right);
            }
        }
    }

    #[test]
    fn what_is_no_text_is_no_decimal() {
        let (ours, cedars) = (extensions(), Extensions::all_available());
        for of in [vec![Value::from(1)], vec![], vec![Value::from("1.0"), Value::from("1.0")]] {
            for extensions in [ours, cedars] {
                assert_eq!(call(extensions, "decimal", &of), None);
            }
        }
    }

    proptest! {
        #[test]
        fn generated_texts_are_as_cedar_takes_them(
            left in "-?[0-9]{0,16}\\.?[0-9]{0,5}", right in "-?[0-9]{1,15}\\.[0-9]{1,4}",
        ) {
            assert_as_cedar(&left, &right);
        }
    }
}
