//! The lane's SQL, run on Durable Object storage.

use gateward_core::lane::{LaneSql, StorageError, Value};
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
        let Some(rows) = rows else { return Ok(Vec::new()) };
        read_rows(&rows.to_vec())
            .ok_or_else(|| StorageError("a value of a type that lanes do not store".to_owned()))
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

/// Reads the rows that `exec` in `io.js` returns. `None` if a value is neither null nor an integer nor a text.
fn read_rows(bytes: &[u8]) -> Option<Vec<Vec<Value>>> {
    let (doubles, _) = bytes.as_chunks();
    let mut numbers = doubles.iter().map(|double| f64::from_le_bytes(*double));
    let (columns, values) = (numbers.next()? as usize, numbers.next()? as usize);
    let mut texts = std::str::from_utf8(bytes.get(16 * (values + 1)..)?).ok()?;
    let is_ascii = texts.is_ascii();
    let mut rows = Vec::with_capacity(values / columns.max(1));
    for _ in 0..values / columns.max(1) {
        let mut row = Vec::with_capacity(columns);
        for _ in 0..columns {
            let (kind, number) = (numbers.next()?, numbers.next()?);
            row.push(if kind == io::SQL_NULL {
                Value::Null
            } else if kind == io::SQL_INTEGER && is_integer(number) {
                Value::Integer(number as i64)
            } else if kind == io::SQL_TEXT {
                let units = number as usize;
                let end = if is_ascii { units } else { utf8_length(texts, units) };
                let (text, rest) = texts.split_at_checked(end)?;
                texts = rest;
                Value::Text(text.to_owned())
            } else {
                return None;
            });
        }
        rows.push(row);
    }
    // Else two texts met in half a character each, and their lengths are not those of the texts in UTF-8.
    texts.is_empty().then_some(rows)
}

/// The length in bytes of the beginning of a text that has so many UTF-16 code units.
fn utf8_length(text: &str, units: usize) -> usize {
    let mut read = 0;
    for (at, character) in text.char_indices() {
        if read >= units {
            return at;
        }
        read += character.len_utf16();
    }
    text.len()
}

/// Whether the double represents exactly one integer.
fn is_integer(number: f64) -> bool {
    number.fract() == 0.0 && number.abs() <= js_sys::Number::MAX_SAFE_INTEGER
}
