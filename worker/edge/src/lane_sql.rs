//! The lane's SQL on Durable Object storage.

use gateward_core::lane::{LaneSql, StorageError, Value};
use worker::{SqlStorage, SqlStorageValue};

/// Storage of the object that runs.
pub struct ObjectSql(pub SqlStorage);

impl LaneSql for ObjectSql {
    fn exec(&self, statement: &str, values: &[Value]) -> Result<Vec<Vec<Value>>, StorageError> {
        let error = |e: worker::Error| StorageError(e.to_string());
        let values: Vec<SqlStorageValue> = values
            .iter()
            .map(|value| match value {
                Value::Null => SqlStorageValue::Null,
                Value::Integer(number) => SqlStorageValue::Integer(*number),
                Value::Text(text) => SqlStorageValue::String(text.clone()),
            })
            .collect();
        let cursor = self.0.exec(statement, values).map_err(error)?;
        cursor.raw().map(|row| row.map_err(error)?.into_iter().map(value).collect()).collect()
    }

    fn size_bytes(&self) -> u64 {
        self.0.database_size() as u64
    }
}

fn value(value: SqlStorageValue) -> Result<Value, StorageError> {
    match value {
        SqlStorageValue::Null => Ok(Value::Null),
        SqlStorageValue::Integer(number) => Ok(Value::Integer(number)),
        SqlStorageValue::String(text) => Ok(Value::Text(text)),
        other => Err(StorageError(format!("a value of a kind that no lane stores: {other:?}"))),
    }
}
