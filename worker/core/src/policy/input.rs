//! JSON arguments become Cedar values.
//!
//! The arguments of a described tool convert by its types. Others convert by their JSON type: an
//! integer is a Long, any other number a decimal. `null` is absent. A value that does not convert
//! is refused. No value is dropped: every other value reaches the policies.

use std::fmt;

use crate::json::Json;
use crate::policy::bundle::{ArgumentType, RecordType};
use crate::policy::decimal::{self, DECIMAL_DIGITS};
use crate::policy::request;
use crate::schema::{MISMATCH, quoted};
use cedar_policy_core::ast::Value;

/// Cedar stores a decimal in 64 bits. A larger number does not fit.
const MAX_DECIMAL: f64 = 922_337_203_685_477.0;

/// Bytes of a path in a message: enough to find the argument. A message is stored, so it holds no
/// values, and names are shortened.
const MAX_PATH_BYTES: usize = 96;

/// An argument that does not convert, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputError {
    /// A JSON Pointer; empty for the arguments as a whole.
    path: String,
    problem: String,
    /// The keyword of JSON Schema that says the same as the tool's description; `None` if no policy
    /// could judge such an argument of any tool.
    keyword: Option<&'static str>,
}

impl InputError {
    fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into(), keyword: None }
    }

    fn mismatch(keyword: &'static str, problem: impl Into<String>) -> Self {
        Self { keyword: Some(keyword), ..Self::new(problem) }
    }

    /// Whether the arguments differ from the tool's description.
    #[must_use]
    pub fn is_mismatch(&self) -> bool {
        self.keyword.is_some()
    }

    /// Puts a step before the argument's path. The path is built while an error returns, so it
    /// costs nothing if there is no error.
    fn within(mut self, step: &str) -> Self {
        if self.path.len() < MAX_PATH_BYTES {
            let mut end = step.len().min(MAX_PATH_BYTES);
            while !step.is_char_boundary(end) {
                end -= 1;
            }
            let step = step.get(..end).unwrap_or("").replace('~', "~0").replace('/', "~1");
            self.path.insert_str(0, &["/", &step].concat());
        }
        self
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.path.as_str() {
            "" => "the arguments".to_owned(),
            path => quoted(path),
        };
        let problem = &self.problem;
        match self.keyword {
            Some(keyword) => write!(f, "{MISMATCH}: {place} {problem} (`{keyword}`)."),
            None => write!(f, "No policy can judge the arguments: {place} {problem}."),
        }
    }
}

type Converted = Result<Value, InputError>;

/// Converts the arguments of a tool described by `types`, or of one without description.
///
/// # Errors
///
/// The first argument that does not convert.
pub fn convert(input: &Json, types: Option<&RecordType>) -> Converted {
    match types {
        Some(types) => typed_record(input, types),
        None => untyped(input),
    }
}

fn typed(value: &Json, kind: &ArgumentType) -> Converted {
    match (kind, value) {
        (ArgumentType::Bool, Json::Bool(_))
        | (ArgumentType::Long, Json::Integer(_))
        | (ArgumentType::Decimal, Json::Number(_))
        | (ArgumentType::String, Json::String(_)) => untyped(value),
        (ArgumentType::Decimal, Json::Integer(value)) => {
            decimal(&format!("{value}.0"), *value as f64)
        }
        (ArgumentType::Set(inner), Json::Array(items)) => set(items, |item| typed(item, inner)),
        (ArgumentType::Record(types), Json::Object(_)) => typed_record(value, types),
        (kind, _) => Err(mistyped(expected(kind))),
    }
}

fn mistyped(expected: &str) -> InputError {
    InputError::mismatch("type", format!("must be of type {expected}"))
}

fn expected(kind: &ArgumentType) -> &'static str {
    match kind {
        ArgumentType::Bool => "boolean",
        ArgumentType::Long => "integer",
        ArgumentType::Decimal => "number",
        ArgumentType::String => "string",
        ArgumentType::Set(_) => "array",
        ArgumentType::Record(_) => "object",
    }
}

fn typed_record(value: &Json, types: &RecordType) -> Converted {
    let Json::Object(fields) = value else {
        return Err(mistyped("object"));
    };
    for field in types.fields {
        if field.required && !value.get(field.name).is_some_and(present) {
            let must = format!("must have {}", quoted(field.name));
            return Err(InputError::mismatch("required", must));
        }
    }
    record(fields, |name, value| {
        let known = types.fields.binary_search_by(|field| field.name.cmp(name)).ok();
        match known.and_then(|at| types.fields.get(at)) {
            Some(field) => typed(value, &field.kind),
            None if types.open => untyped(value),
            None => Err(InputError::mismatch("additionalProperties", "must be absent")),
        }
    })
}

fn untyped(value: &Json) -> Converted {
    match value {
        Json::Null => Err(InputError::new("must not be null inside an array")),
        Json::Bool(value) => Ok(Value::from(*value)),
        Json::Integer(value) => Ok(Value::from(*value)),
        // No argument is such a number.
        Json::Verbatim(_) => Err(InputError::new("is a number that is too large")),
        Json::Number(value) => decimal(ryu_js::Buffer::new().format_finite(*value), *value),
        Json::String(text) => Ok(Value::from(text.as_str())),
        Json::Array(items) => set(items, untyped),
        Json::Object(fields) => record(fields, |_, value| untyped(value)),
    }
}

fn present(value: &Json) -> bool {
    !matches!(value, Json::Null)
}

fn set(items: &[Json], convert: impl Fn(&Json) -> Converted) -> Converted {
    let converted: Result<Vec<_>, _> = items
        .iter()
        .enumerate()
        .map(|(at, item)| convert(item).map_err(|error| error.within(&at.to_string())))
        .collect();
    Ok(Value::set(converted?, None))
}

fn record(fields: &[(String, Json)], convert: impl Fn(&str, &Json) -> Converted) -> Converted {
    let converted: Result<Vec<_>, _> = fields
        .iter()
        .filter(|(_, value)| present(value))
        .map(|(name, value)| match convert(name, value) {
            Ok(value) => Ok((name.as_str(), value)),
            Err(error) => Err(error.within(name)),
        })
        .collect();
    converted.map(request::record)
}

fn decimal(text: &str, value: f64) -> Converted {
    let fits = value.abs() <= MAX_DECIMAL;
    fits.then(|| decimal::value(text)).flatten().ok_or_else(|| {
        InputError::new(format!("has more than {DECIMAL_DIGITS} decimals or is too large"))
    })
}
