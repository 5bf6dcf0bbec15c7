//! Reads and writes of D1, one module per table or purpose.

pub mod administration;
pub mod approvals;
pub mod audit;
pub mod decisions;
pub mod flush;
pub mod limits;
pub mod logs;
pub mod metrics;
pub mod receipts;
pub mod registry;
pub mod retention;
pub mod signatures;
pub mod webhooks;

use gateward_core::log::{Event, Line, of_json};
use gateward_core::problem::{Problem, ProblemCode};
use js_sys::Array;
use js_sys::futures::JsFuture;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use wasm_bindgen::JsValue;
use worker::{Env, Error, Result};

use crate::limits::D1_READ_MS;
use crate::{io, log};

/// The binding in wrangler.toml.
const BINDING: &str = "DB";

/// A statement with its values, in the form of `io.js`.
fn statement(sql: &str, values: &[JsValue]) -> Array {
    let mut statement = Array::of1(&sql.into());
    statement.extend(values.iter().cloned());
    statement
}

/// Runs one statement, or several in one transaction; returns the rows of each.
async fn query(env: &Env, statements: &[Array], limit_ms: u32) -> Result<Vec<Box<RawValue>>> {
    let statements: Array = statements.iter().collect();
    let answered = JsFuture::from(io::query(env, BINDING, &statements, limit_ms)?).await?;
    serde_json::from_str(&answered.as_string().unwrap_or_default()).map_err(unreadable)
}

/// The rows of one statement.
fn rows<T: DeserializeOwned>(rows: Option<&RawValue>) -> Result<Vec<T>> {
    serde_json::from_str(rows.map_or("", RawValue::get)).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::RustError(format!("D1's answer cannot be read: {}", of_json(&error)))
}

/// All rows of a statement that reads, within the limit for reads that a caller waits for.
async fn read<T: DeserializeOwned>(
    env: &Env,
    sql: &str,
    values: &[JsValue],
) -> std::result::Result<Vec<T>, Problem> {
    read_within(env, sql, values, D1_READ_MS).await
}

async fn read_within<T: DeserializeOwned>(
    env: &Env,
    sql: &str,
    values: &[JsValue],
    limit_ms: u32,
) -> std::result::Result<Vec<T>, Problem> {
    let first = |answered: &[Box<RawValue>]| rows(answered.first().map(Box::as_ref));
    read_all(env, &[statement(sql, values)], limit_ms, first).await
}

/// Runs statements that read, in one round trip, and reads their rows.
async fn read_all<T>(
    env: &Env,
    statements: &[Array],
    limit_ms: u32,
    rows: impl FnOnce(&[Box<RawValue>]) -> Result<T>,
) -> std::result::Result<T, Problem> {
    let read = query(env, statements, limit_ms).await.and_then(|answered| rows(&answered));
    read.map_err(|error| {
        log::write(&Line::new(Event::DatabaseFailed, error));
        unavailable()
    })
}

/// The problem for a failed read. If the read was part of a change, nothing was changed.
pub fn unavailable() -> Problem {
    let detail = "the database does not answer; nothing was changed; try again";
    Problem::new(ProblemCode::RegistryUnavailable, detail)
}

/// Numbers become doubles in JavaScript. This is exact: all of them are below 2^53.
fn number(value: u64) -> JsValue {
    JsValue::from_f64(value as f64)
}
