//! The lane's SQL, run on Durable Object storage.

use gateward_core::lane::{LaneSql, StorageError, Value};
use js_sys::Array;
use wasm_bindgen::{JsCast as _, JsValue};
use worker::SqlStorage;

use crate::io;

/// The storage of this Durable Object.
pub struct ObjectSql(pub SqlStorage);

impl LaneSql for ObjectSql {
    fn exec(&self, statement: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StorageError> {
        let mut texts = String::with_capacity(values.iter().map(text_bytes).sum());
        let mut kinds = Vec::with_capacity(2 * values.len());
        for value in values {
            kinds.extend(match value {
                Value::Null => [io::SQL_NULL, 0.0],
                // Exact: all of the lane's integers are below 2^53.
                Value::Integer(number) => [io::SQL_INTEGER, *number as f64],
                Value::Text(text) => {
                    texts.push_str(text);
                    [io::SQL_TEXT, utf16_length(text) as f64]
                }
            });
        }
        let rows = io::exec(self.0.as_ref(), statement, &texts, &kinds)
            .map_err(|error| StorageError(worker::Error::from(error).to_string()))?;
        rows.iter().map(|row| row.unchecked_into::<Array>().iter().map(value).collect()).collect()
    }

    fn size_bytes(&self) -> u64 {
        self.0.database_size() as u64
    }
}

fn text_bytes(value: &Value) -> usize {
    if let Value::Text(text) = value { text.len() } else { 0 }
}

/// The length of the text in JavaScript, in UTF-16 code units.
fn utf16_length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

fn value(value: JsValue) -> Result<Value, StorageError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let Some(number) = value.as_f64().filter(|number| is_integer(*number)) {
        return Ok(Value::Integer(number as i64));
    }
    let text = value.as_string().map(Value::Text);
    text.ok_or_else(|| {
        let kind = value.js_typeof().as_string().unwrap_or_default();
        StorageError(format!("a value of a type that lanes do not store: {kind}"))
    })
}

/// Whether the double represents exactly one integer.
fn is_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= js_sys::Number::MAX_SAFE_INTEGER
}
