//! A statement with its values, as D1 binds them.

/// A bound value of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    /// D1 binds doubles; all of our numbers are below 2^53.
    Number(f64),
    Text(String),
}

impl Value {
    /// JSON text, or NULL.
    pub fn json<T: serde::Serialize>(value: Option<&T>) -> Self {
        // Records always serialize. If one did not, the column's check would refuse the text.
        value.map_or(Self::Null, |value| Self::Text(crate::json::to_string(value)))
    }

    /// A JSON array, or NULL for a list that restricts nothing.
    pub fn list<T: serde::Serialize>(list: Option<&Vec<T>>) -> Self {
        // Lists of texts always serialize. If one did not, it would allow nothing.
        list.map_or(Self::Null, |list| Self::Text(crate::json::to_string(list)))
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Number(value as f64)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A statement with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    pub sql: &'static str,
    pub values: Vec<Value>,
}

impl Statement {
    pub fn new(sql: &'static str, values: Vec<Value>) -> Self {
        Self { sql, values }
    }
}
