//! JSON arguments to Cedar values.
//!
//! A described tool's arguments convert by its types; others by what they are: an integer is a
//! Long, any other number a decimal. `null` is absent. What does not convert is refused, and
//! nothing is dropped: every other value reaches the policies.

use std::fmt;

use cedar_policy::RestrictedExpression;

use crate::bundle::{ArgumentType, RecordType};
use crate::json::Json;

/// A Cedar decimal has this many digits after the point.
const DECIMAL_DIGITS: usize = 4;

/// Cedar keeps a decimal in 64 bits: beyond this many units it does not fit.
const MAX_DECIMAL: f64 = 922_337_203_685_477.0;

/// Where an argument does not convert, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    pub path: String,
    pub problem: String,
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument `{}` {}", self.path, self.problem)
    }
}

type Converted = Result<RestrictedExpression, InputError>;

/// Converts the arguments of a tool described by `types`, or of one without description.
///
/// # Errors
///
/// The first argument that does not convert.
pub fn convert(input: &Json, types: Option<&RecordType>) -> Converted {
    match types {
        Some(types) => typed_record(input, types, "input"),
        None => untyped(input, "input"),
    }
}

fn error(path: &str, problem: impl Into<String>) -> InputError {
    InputError { path: path.to_owned(), problem: problem.into() }
}

fn typed(value: &Json, kind: &ArgumentType, path: &str) -> Converted {
    match (kind, value) {
        (ArgumentType::Bool, Json::Bool(_))
        | (ArgumentType::Long, Json::Integer(_))
        | (ArgumentType::String, Json::String(_)) => untyped(value, path),
        (ArgumentType::Decimal, Json::Integer(value)) => {
            decimal(&format!("{value}.0"), *value as f64, path)
        }
        (ArgumentType::Decimal, Json::Number(_)) => untyped(value, path),
        (ArgumentType::Set(inner), Json::Array(items)) => {
            let items: Result<Vec<_>, _> = items
                .iter()
                .enumerate()
                .map(|(at, item)| typed(item, inner, &format!("{path}[{at}]")))
                .collect();
            Ok(RestrictedExpression::new_set(items?))
        }
        (ArgumentType::Record(types), Json::Object(_)) => typed_record(value, types, path),
        (kind, value) => {
            Err(error(path, format!("must be {}, not {}", expected(kind), value.kind())))
        }
    }
}

fn expected(kind: &ArgumentType) -> &'static str {
    match kind {
        ArgumentType::Bool => "a boolean",
        ArgumentType::Long => "an integer",
        ArgumentType::Decimal => "a number",
        ArgumentType::String => "a string",
        ArgumentType::Set(_) => "an array",
        ArgumentType::Record(_) => "an object",
    }
}

fn typed_record(value: &Json, types: &RecordType, path: &str) -> Converted {
    let Json::Object(fields) = value else {
        return Err(error(path, format!("must be an object, not {}", value.kind())));
    };
    let mut converted = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        if matches!(value, Json::Null) {
            continue;
        }
        let path = format!("{path}.{name}");
        let value = match types.fields.binary_search_by(|field| field.name.cmp(name)) {
            Ok(at) => match types.fields.get(at) {
                Some(field) => typed(value, &field.kind, &path)?,
                None => return Err(error(&path, "is not known")),
            },
            Err(_) if types.open => untyped(value, &path)?,
            Err(_) => return Err(error(&path, "is not an argument of this tool")),
        };
        converted.push((name.clone(), value));
    }
    for field in types.fields {
        if field.required && !converted.iter().any(|(name, _)| name == field.name) {
            return Err(error(&format!("{path}.{}", field.name), "is required"));
        }
    }
    record(converted, path)
}

fn untyped(value: &Json, path: &str) -> Converted {
    match value {
        Json::Null => Err(error(path, "must not be null inside an array")),
        Json::Bool(value) => Ok(RestrictedExpression::new_bool(*value)),
        Json::Integer(value) => Ok(RestrictedExpression::new_long(*value)),
        Json::Number(value) => decimal(ryu_js::Buffer::new().format_finite(*value), *value, path),
        Json::String(text) => Ok(RestrictedExpression::new_string(text.clone())),
        Json::Array(items) => {
            let items: Result<Vec<_>, _> = items
                .iter()
                .enumerate()
                .map(|(at, item)| untyped(item, &format!("{path}[{at}]")))
                .collect();
            Ok(RestrictedExpression::new_set(items?))
        }
        Json::Object(fields) => {
            let fields: Result<Vec<_>, _> = fields
                .iter()
                .filter(|(_, value)| !matches!(value, Json::Null))
                .map(|(name, value)| Ok((name.clone(), untyped(value, &format!("{path}.{name}"))?)))
                .collect();
            record(fields?, path)
        }
    }
}

fn record(fields: Vec<(String, RestrictedExpression)>, path: &str) -> Converted {
    RestrictedExpression::new_record(fields).map_err(|e| error(path, e.to_string()))
}

fn decimal(text: &str, value: f64, path: &str) -> Converted {
    let digits = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b'-');
    if plain && (1..=DECIMAL_DIGITS).contains(&digits) && value.abs() <= MAX_DECIMAL {
        Ok(RestrictedExpression::new_decimal(text))
    } else {
        Err(error(
            path,
            format!("`{text}` has more than {DECIMAL_DIGITS} decimals or is too large"),
        ))
    }
}
